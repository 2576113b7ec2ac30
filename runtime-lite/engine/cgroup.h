/*
 * cgroup.h - purpose: one interface to cgroup v1, hybrid and v2, chosen by what is mounted.
 *
 * Paths are those of CRI: absolute, below the root of every hierarchy ("/kubepods/burstable/pod1"). On v1 and hybrid
 * hosts a cgroup is one directory in each mounted hierarchy, and one in the unified hierarchy where there is one (so
 * that cgroup.kill works). Only controllers that are mounted are used; a limit for a missing one is an error that
 * names the controller and the limit.
 *
 * v2: cgroup_create() enables the controllers in cgroup.subtree_control of every ancestor. On systemd hosts the root of
 * our paths must be ours: a top-level cgroup ("/runtime-lite", "/kubepods") is left alone by systemd; a path in a slice
 * or service needs Delegate=yes there.
 *
 * Thread-safe after cgroup_detect(). All calls block shortly.
 */
#pragma once
#include "common/base/error.h"
#include "common/base/str.h"
#include "runtime-lite/spec/limits.h"

#include <sys/types.h>

enum cgroup_mode { CGROUP_V1, CGROUP_HYBRID, CGROUP_V2 };

struct launch;

struct cgroup_stats {
	uint64_t timestamp_ns; /* realtime */
	uint64_t cpu_usage_ns;
	uint64_t cpu_throttled_ns;
	uint64_t memory_usage_bytes;
	uint64_t memory_working_set_bytes; /* usage - inactive file cache, as kubelet counts it */
	uint64_t memory_rss_bytes;
	uint64_t memory_limit_bytes; /* UINT64_MAX: none */
	uint64_t memory_swap_bytes;
	uint64_t page_faults, major_page_faults;
	uint64_t pids;
	uint64_t oom_kills;
	bool has_cpu, has_memory, has_pids; /* which controllers answered */
};

/* Finds the hierarchies. Call once at start. ERROR_PRECONDITION with the reason when there are none or they are
 * read-only. The second form reads `mountinfo` (the text of /proc/self/mountinfo) for tests. */
int cgroup_detect(struct error *err) MUST_USE;
int cgroup_detect_from(const char *mountinfo, struct error *err) MUST_USE;
enum cgroup_mode cgroup_mode(void);
const char *cgroup_mode_name(void); /* "v1", "hybrid", "v2" */
/* "cpu", "memory", "pids", "cpuset", "hugetlb", "devices", "freezer", "blkio"/"io": is it there? */
bool cgroup_has(const char *controller);

/* "/a//b/" -> "/a/b" joined with `leaf` (may be NULL); ERROR_INVALID for "..", empty and systemd slice names. */
int cgroup_path_join(const char *parent, const char *leaf, char **ret, struct error *err) MUST_USE;

/* Makes the cgroup and its missing ancestors. An existing one is fine. */
int cgroup_create(const char *path, struct error *err) MUST_USE;
bool cgroup_exists(const char *path);
/* Writes the limits that are set. `path` must exist. Growing and shrinking of memory and swap are ordered. */
int cgroup_apply(const char *path, const struct cgroup_limits *limits, struct error *err) MUST_USE;
/* Allows the default devices and those of the launch, denies the rest; all_devices: nothing is done. Once, before the
 * first process; never on updates. */
int cgroup_apply_devices(const char *path, const struct launch *launch, struct error *err) MUST_USE;
/* Fills cgroup_dirs, cgroup_names, cgroup_unified, cgroup_track and oom_file of the launch from launch->cgroup. */
void cgroup_fill_launch(struct launch *launch);
/* Directories of `path` for someone to join ("0" into their cgroup.procs). */
void cgroup_dirs(const char *path, struct strv *ret);
/* SIGKILL to all processes in it and below; waits until they are gone, at most timeout_ms. A missing cgroup is fine. */
int cgroup_kill(const char *path, unsigned timeout_ms, struct error *err) MUST_USE;
/* Removes it and what is below, retrying while the kernel says EBUSY (about 2 s). Missing is fine. */
int cgroup_remove(const char *path, struct error *err) MUST_USE;
/* ERROR_NOT_FOUND when the cgroup is gone. */
int cgroup_stats(const char *path, struct cgroup_stats *ret, struct error *err) MUST_USE;
/* Processes that the OOM killer took so far. */
int cgroup_oom_count(const char *path, uint64_t *ret, struct error *err) MUST_USE;
/* Frozen, itself or by an ancestor. */
bool cgroup_frozen(const char *path);
/* Pids in it and below; the caller frees *ret. */
int cgroup_pids(const char *path, pid_t **ret, size_t *ret_n, struct error *err) MUST_USE;

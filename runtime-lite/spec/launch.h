/*
 * launch.h - purpose: what the engine is told to start, as plain data: a pod sandbox or one process.
 *
 * Whoever builds a launch has decided everything (users are numbers, images are directories, defaults are filled in);
 * the engine executes it and decides nothing. Every string and array is owned by the launch and is malloc'ed; add to
 * arrays with the launch_add_* functions. launch_encode() makes the flat form that goes to the pod's monitor and
 * into <container dir>/launch; launch_decode() reads it in place, without malloc.
 */
#pragma once
#include "common/base/error.h"
#include "common/base/str.h"
#include "runtime-lite/spec/limits.h"

#include <linux/filter.h>
#include <sys/types.h>

enum { LAUNCH_ID_MAX = 64 }; /* ids are 1 to 64 characters of [a-zA-Z0-9_.-] and no "." or ".." */

enum launch_ns {
	LAUNCH_NS_POD,	  /* that of the pod, held by the monitor */
	LAUNCH_NS_OWN,	  /* a new one for this container (pid only) */
	LAUNCH_NS_NODE,	  /* the node's */
	LAUNCH_NS_TARGET, /* that of another container of the pod (pid only) */
};

enum launch_propagation {
	LAUNCH_PRIVATE = 0, /* the numbers are those of CRI's MountPropagation */
	LAUNCH_SLAVE = 1,   /* HOST_TO_CONTAINER */
	LAUNCH_SHARED = 2,  /* BIDIRECTIONAL */
};

struct launch_sysctl {
	char *name; /* "net.ipv4.ip_forward" or with slashes */
	char *value;
};

struct sandbox_launch {
	char *id;
	char *dir; /* <state>/sandboxes/<id>, absolute; must exist */
	char *hostname; /* "": the node's, no UTS namespace of its own */
	enum launch_ns net; /* POD or NODE */
	enum launch_ns ipc; /* POD or NODE */
	bool shared_pid;    /* make a PID namespace which containers join by LAUNCH_NS_POD */
	struct launch_sysctl *sysctls;
	size_t n_sysctls;
	uint64_t shm_bytes; /* size of the tmpfs on <dir>/shm; 0: none is mounted */
	char *cgroup;	    /* the pod's cgroup, "/kubepods/burstable/pod<uid>"; containers are made below it */
	bool cgroup_owned;  /* true: made with `limits`, and removed at the end; false: made only if missing, never removed */
	struct cgroup_limits limits;
	char *monitors_cgroup; /* where the monitor lives, "/runtime-lite/monitors" */

	struct strv monitor_dirs; /* filled in by the engine: the directories of that cgroup */
};

struct launch_mount {
	char *source; /* host path of a bind; else the file system's source name */
	char *target; /* absolute, inside the container; resolved inside of the root file system */
	char *type;   /* "bind", "tmpfs", ... */
	char *options; /* of the file system: "size=65536k,mode=1777"; NULL for binds */
	bool readonly;
	bool recursive_readonly; /* submounts, too; then propagation must be private */
	bool nosuid, nodev, noexec;
	bool recursive; /* bind submounts, too (rbind), which is what CRI wants */
	bool create_source; /* a missing source becomes a directory, 0755 */
	enum launch_propagation propagation;
};

struct launch_device {
	char *path; /* inside the container, "/dev/fuse" */
	char type;  /* 'c' or 'b' */
	uint32_t major, minor;
	mode_t mode; /* permission bits */
	uid_t uid;
	gid_t gid;
	char access[4]; /* cgroup permissions, out of "rwm" */
};

struct launch_rlimit {
	int resource; /* RLIMIT_NOFILE ... */
	uint64_t soft, hard;
};

struct launch_caps {
	uint64_t bounding, effective, permitted, inheritable, ambient; /* 1 << CAP_... */
};

struct launch_rootfs {
	struct strv lower; /* directories, top layer first; at most 500 */
	char *upper;	   /* NULL: nothing can be written (overlay of the lower ones alone) */
	char *work;
	char *merged; /* an empty directory to mount on, seen only by the container */
	bool readonly;
};

struct launch {
	char *id;
	char *sandbox_id;
	char *dir; /* <sandbox dir>/containers/<id> */

	struct strv args; /* args.v[0] is looked up in PATH of env */
	struct strv env;
	char *cwd; /* made when missing; NULL: "/" */
	uid_t uid;
	gid_t gid;
	gid_t *groups; /* supplementary, including the primary one */
	size_t n_groups;
	mode_t umask; /* 0022 when built by launch_new() */
	struct launch_caps caps;
	bool no_new_privs;
	struct sock_filter *seccomp; /* out of engine/seccomp.h; NULL: unconfined */
	size_t n_seccomp;
	char *apparmor; /* profile; NULL: unconfined */
	struct launch_rlimit *rlimits;
	size_t n_rlimits;
	bool has_oom_score_adj;
	int oom_score_adj; /* clamped to what the node allows us */

	struct launch_rootfs rootfs;
	/* Besides these every container gets /proc, /sys, /dev (with the usual nodes), /dev/pts, /dev/mqueue and
	 * /sys/fs/cgroup, unless a mount here has the same target. /dev/shm: add a bind of <sandbox dir>/shm. Mounts are
	 * made in this order after a stable sort by depth of their targets. */
	struct launch_mount *mounts;
	size_t n_mounts;
	struct launch_device *devices;
	size_t n_devices;
	bool all_devices; /* privileged: every device node of the node, and no device rules */
	bool sys_writable; /* privileged: /sys and /sys/fs/cgroup can be written to */
	struct strv masked_paths;
	struct strv readonly_paths;

	enum launch_ns pid;
	char *pid_target; /* container id for LAUNCH_NS_TARGET */

	bool tty, stdin_open, stdin_once;
	char *log_path; /* absolute; NULL or "": output is discarded */

	char *cgroup; /* the container's own, below the sandbox's: "/kubepods/.../<id>" */
	struct cgroup_limits limits;
	int stop_signal;

	/* Filled in by the engine before it encodes: where the process has to go. */
	struct strv cgroup_dirs; /* v1 directories to join */
	char *cgroup_unified;	 /* directory of v2 (or of the hybrid's unified hierarchy) or NULL */
	char *cgroup_track;	 /* the one of these in which execs are told apart and all is killed */
	char *oom_file;		 /* memory.events or memory.oom_control, or NULL */
	struct strv cgroup_names; /* v1: names of the mounts below the container's /sys/fs/cgroup, as cgroup_dirs */
	bool is_exec;		 /* a further process in a container which runs */
};

struct launch *launch_new(void) MUST_USE; /* umask 022, pid OWN, everything else zero */
struct launch *launch_free(struct launch *l); /* NULL is fine; returns NULL */
struct sandbox_launch *sandbox_launch_new(void) MUST_USE;
struct sandbox_launch *sandbox_launch_free(struct sandbox_launch *s);
DEFINE_CLEANUP(struct launch *, launch_free)
DEFINE_CLEANUP(struct sandbox_launch *, sandbox_launch_free)

/* Append a zeroed element (for mounts: recursive and private) and return it, valid until the next addition. */
struct launch_mount *launch_add_mount(struct launch *l, const char *source, const char *target);
struct launch_device *launch_add_device(struct launch *l, const char *path);
void launch_add_rlimit(struct launch *l, int resource, uint64_t soft, uint64_t hard);
void launch_add_group(struct launch *l, gid_t gid); /* once each */
void sandbox_launch_add_sysctl(struct sandbox_launch *s, const char *name, const char *value);

bool launch_id_valid(const char *id);
/* What a plan must hold, whoever built it: ids, absolute targets, args, at most 500 layers, sysctls that belong to a
 * namespace of the pod. ERROR_INVALID. */
int launch_check(const struct launch *l, struct error *err) MUST_USE;
int sandbox_launch_check(const struct sandbox_launch *s, struct error *err) MUST_USE;

/* The flat form; never fails. */
void launch_encode(const struct launch *l, struct str *ret);
void sandbox_launch_encode(const struct sandbox_launch *s, struct str *ret);
/* Read it. Strings point into `data`; arrays are taken from `arena`, of which encoded size * 2 + 4096 bytes are enough.
 * The result must not be freed by launch_free(). -EBADMSG: damaged, or of another version. */
int launch_decode(const void *data, size_t len, void *arena, size_t arena_len, struct launch *ret) MUST_USE;
int sandbox_launch_decode(const void *data, size_t len, void *arena, size_t arena_len, struct sandbox_launch *ret) MUST_USE;
/* Decodes into owned ones, for launch_free() and sandbox_launch_free(). ERROR_DATA_LOSS. */
int launch_parse(const void *data, size_t len, struct launch **ret, struct error *err) MUST_USE;
int sandbox_launch_parse(const void *data, size_t len, struct sandbox_launch **ret, struct error *err) MUST_USE;

/*
 * limits.h - purpose: resource limits of a cgroup as plain data, and how an update merges into them.
 *
 * "Unset" means: leave what the kernel has. Values are those of CRI's LinuxContainerResources; the mapping to files
 * of cgroup v1 and v2 is engine/cgroup_v1.c and engine/cgroup_v2.c.
 */
#pragma once
#include "common/base/error.h"

struct cgroup_hugetlb {
	char *page_size; /* "2MB", "1GB" */
	uint64_t limit_bytes;
};

/* One file of cgroup v2, e.g. "memory.oom.group" = "1". On v1 hosts the map is ignored. */
struct cgroup_unified {
	char *key;
	char *value;
};

struct cgroup_limits {
	int64_t memory_bytes;	    /* 0: unset, -1: unlimited */
	int64_t memory_swap_bytes;  /* memory and swap together; 0: unset, -1: unlimited */
	int64_t memory_low_bytes;   /* reservation; 0: unset */
	uint64_t cpu_shares;	    /* 0: unset */
	int64_t cpu_quota_us;	    /* 0: unset, -1: unlimited */
	uint64_t cpu_period_us;	    /* 0: unset */
	int64_t pids_max;	    /* 0: unset, -1: unlimited */
	char *cpuset_cpus;	    /* NULL or "": unset */
	char *cpuset_mems;
	struct cgroup_hugetlb *hugetlb;
	size_t n_hugetlb;
	struct cgroup_unified *unified;
	size_t n_unified;
};

#define CGROUP_LIMITS_INIT ((struct cgroup_limits){ 0 })

void cgroup_limits_done(struct cgroup_limits *l);
void cgroup_limits_copy(struct cgroup_limits *dst, const struct cgroup_limits *src);
/* Every field that `update` sets replaces that of `l`; hugetlb and unified go key by key. */
void cgroup_limits_merge(struct cgroup_limits *l, const struct cgroup_limits *update);
void cgroup_limits_set_hugetlb(struct cgroup_limits *l, const char *page_size, uint64_t limit_bytes);
void cgroup_limits_set_unified(struct cgroup_limits *l, const char *key, const char *value);
/* Negative sizes, swap below memory, keys with '/': ERROR_INVALID naming the field. */
int cgroup_limits_check(const struct cgroup_limits *l, struct error *err) MUST_USE;

/* cgroup_internal.h - purpose: what the three cgroup modules share; for nobody else. */
#pragma once
#include "runtime-lite/engine/cgroup.h"

/* One mounted hierarchy: v1 with its controllers, or v2. */
struct cgroup_hierarchy {
	char *mount; /* "/sys/fs/cgroup/memory" */
	struct strv controllers;
	bool v2;
};

enum { CGROUP_HIERARCHIES_MAX = 24 };

/* Set by cgroup_detect(), constant afterwards. */
extern struct cgroup_system {
	struct cgroup_hierarchy h[CGROUP_HIERARCHIES_MAX];
	size_t n;
	const struct cgroup_hierarchy *unified; /* or NULL */
	enum cgroup_mode mode;
} cgroup_system;

/* The hierarchy with this controller, or NULL. */
const struct cgroup_hierarchy *cgroup_find(const char *controller);
/* "<mount><path>", the caller frees. */
char *cgroup_dir(const struct cgroup_hierarchy *h, const char *path);
/* The directory of `path` in the hierarchy of the controller; else an error that names it and the limit. Caller frees. */
int cgroup_need(const char *controller, const char *path, const char *limit, char **ret, struct error *err) MUST_USE;
/* Writes <dir>/<file>; errors are prefixed with `limit`. */
int cgroup_write(const char *dir, const char *file, const char *value, const char *limit, struct error *err) MUST_USE;
int cgroup_write_number(const char *dir, const char *file, int64_t value, const char *limit, struct error *err) MUST_USE;
bool cgroup_file_exists(const char *dir, const char *file);
/* One number out of a file ("max": UINT64_MAX). false: not there. */
bool cgroup_read_number(const char *dir, const char *file, uint64_t *ret);
/* "key value" lines. false: no such file or key. */
bool cgroup_read_key(const char *dir, const char *file, const char *key, uint64_t *ret);

struct cgroup_device_rule {
	char type; /* 'c', 'b' */
	int64_t major, minor; /* -1: any */
	const char *access;
};
extern const struct cgroup_device_rule cgroup_default_devices[];
extern const size_t cgroup_n_default_devices;

int cgroup_v1_create(const struct cgroup_hierarchy *h, const char *path, struct error *err) MUST_USE;
int cgroup_v1_apply(const char *path, const struct cgroup_limits *l, struct error *err) MUST_USE;
int cgroup_v1_devices(const char *path, const struct launch *launch, struct error *err) MUST_USE;
void cgroup_v1_stats(const char *path, struct cgroup_stats *ret);

int cgroup_v2_create(const struct cgroup_hierarchy *h, const char *path, struct error *err) MUST_USE;
int cgroup_v2_apply(const char *path, const struct cgroup_limits *l, struct error *err) MUST_USE;
int cgroup_v2_devices(const char *dir, const struct launch *launch, struct error *err) MUST_USE;
void cgroup_v2_stats(const char *path, struct cgroup_stats *ret);
/* cpu.shares (2..262144) to cpu.weight (1..10000), the mapping of runc 1.3.2 and crun 1.23. */
uint64_t cgroup_v2_weight(uint64_t shares);
int cgroup_apply_hugetlb(const char *path, const struct cgroup_limits *l, struct error *err) MUST_USE;

/* cgroup_v1.c - purpose: limits, device rules and figures in the files of cgroup v1. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/sys/file.h"
#include "runtime-lite/engine/cgroup_internal.h"
#include "runtime-lite/spec/launch.h"

/* A new cpuset is empty and takes no process until it has CPUs and memory nodes: take the parent's. */
static int cpuset_inherit(const char *parent, const char *dir, struct error *err)
{
	static const char *const files[] = { "cpuset.cpus", "cpuset.mems" };

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		_cleanup_free_ char *own = xasprintf("%s/%s", dir, files[i]);
		_cleanup_free_ char *from = xasprintf("%s/%s", parent, files[i]);
		_cleanup_free_ char *value = NULL, *inherited = NULL;
		int r = file_read(AT_FDCWD, own, 65536, &value, NULL, err);

		if (r < 0)
			return r;
		if (value[0] != '\n' && value[0] != '\0')
			continue;
		r = file_read(AT_FDCWD, from, 65536, &inherited, NULL, err);
		if (r == 0)
			r = file_write(AT_FDCWD, own, inherited, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int cgroup_v1_create(const struct cgroup_hierarchy *h, const char *path, struct error *err)
{
	bool cpuset = strv_has(&h->controllers, "cpuset");
	_cleanup_free_ char *parent = xstrdup(h->mount);

	for (const char *p = path; *p;) {
		size_t n = strcspn(p + 1, "/") + 1;
		char *dir = xasprintf("%s%.*s", parent, (int)n, p);
		int r = 0;

		if (mkdir(dir, 0755) < 0 && errno != EEXIST)
			r = error_sys(err, errno, "make %s", dir);
		if (r == 0 && cpuset)
			r = cpuset_inherit(parent, dir, err);
		free(parent);
		parent = dir;
		if (r < 0)
			return r;
		p += n;
	}
	return 0;
}

static int apply_cpu(const char *path, const struct cgroup_limits *l, struct error *err)
{
	_cleanup_free_ char *dir = NULL;
	char limit[64];

	if (!l->cpu_shares && !l->cpu_quota_us && !l->cpu_period_us)
		return 0;
	snprintf(limit, sizeof(limit), "cpu limit (shares %llu, quota %lld, period %llu)", (unsigned long long)l->cpu_shares,
		(long long)l->cpu_quota_us, (unsigned long long)l->cpu_period_us);
	int r = cgroup_need("cpu", path, limit, &dir, err);

	if (r == 0 && l->cpu_shares)
		r = cgroup_write_number(dir, "cpu.shares", (int64_t)l->cpu_shares, limit, err);
	if (r < 0)
		return r;
	bool period_later = false;

	/* The kernel refuses a ratio above the parent's at each step, so the order may have to be the other one. */
	if (l->cpu_period_us) {
		r = cgroup_write_number(dir, "cpu.cfs_period_us", (int64_t)l->cpu_period_us, limit, err);
		period_later = r == -EINVAL && l->cpu_quota_us;
		if (r < 0 && !period_later)
			return r;
	}
	if (l->cpu_quota_us) {
		r = cgroup_write_number(dir, "cpu.cfs_quota_us", l->cpu_quota_us, limit, err);
		if (r < 0)
			return r;
	}
	return period_later ? cgroup_write_number(dir, "cpu.cfs_period_us", (int64_t)l->cpu_period_us, limit, err) : 0;
}

static int apply_cpuset(const char *path, const struct cgroup_limits *l, struct error *err)
{
	_cleanup_free_ char *dir = NULL;
	_cleanup_free_ char *limit = NULL;

	if (str_empty(l->cpuset_cpus) && str_empty(l->cpuset_mems))
		return 0;
	limit = xasprintf("cpuset (cpus \"%s\", mems \"%s\")", l->cpuset_cpus ? l->cpuset_cpus : "",
		l->cpuset_mems ? l->cpuset_mems : "");
	int r = cgroup_need("cpuset", path, limit, &dir, err);

	if (r == 0 && !str_empty(l->cpuset_cpus))
		r = cgroup_write(dir, "cpuset.cpus", l->cpuset_cpus, limit, err);
	if (r == 0 && !str_empty(l->cpuset_mems))
		r = cgroup_write(dir, "cpuset.mems", l->cpuset_mems, limit, err);
	return r;
}

static int write_memory(const char *dir, int64_t bytes, const char *limit, struct error *err)
{
	uint64_t usage = 0;
	int r = cgroup_write_number(dir, "memory.limit_in_bytes", bytes, limit, err);

	if (r == -EBUSY && cgroup_read_number(dir, "memory.usage_in_bytes", &usage))
		error_set(err, ERROR_PRECONDITION, "%s: %llu bytes are in use", limit, (unsigned long long)usage);
	return r;
}

/* memory.memsw counts memory and swap together and may never be below the memory limit: whichever grows goes first. */
static int apply_memory(const char *path, const struct cgroup_limits *l, struct error *err)
{
	_cleanup_free_ char *dir = NULL;
	char limit[80];
	int64_t swap = l->memory_swap_bytes;
	uint64_t now = 0;

	if (!l->memory_bytes && !swap && !l->memory_low_bytes)
		return 0;
	snprintf(limit, sizeof(limit), "memory limit %lld (with swap %lld)", (long long)l->memory_bytes, (long long)swap);
	int r = cgroup_need("memory", path, limit, &dir, err);

	if (r < 0)
		return r;
	bool has_swap = cgroup_read_number(dir, "memory.memsw.limit_in_bytes", &now);

	if (l->memory_bytes == -1 && swap == 0)
		swap = -1;
	if (swap > 0 && !has_swap && swap != l->memory_bytes)
		return error_set(err, ERROR_PRECONDITION, "%s: the kernel does not account swap", limit);
	if (!has_swap)
		swap = 0;
	bool swap_first = swap == -1 || (swap > 0 && (uint64_t)swap > now);

	if (swap && swap_first)
		r = cgroup_write_number(dir, "memory.memsw.limit_in_bytes", swap, limit, err);
	if (r == 0 && l->memory_bytes)
		r = write_memory(dir, l->memory_bytes, limit, err);
	if (r == 0 && swap && !swap_first)
		r = cgroup_write_number(dir, "memory.memsw.limit_in_bytes", swap, limit, err);
	if (r == 0 && l->memory_low_bytes)
		r = cgroup_write_number(dir, "memory.soft_limit_in_bytes", l->memory_low_bytes, limit, err);
	return r;
}

static int apply_pids(const char *path, const struct cgroup_limits *l, struct error *err)
{
	_cleanup_free_ char *dir = NULL;
	char limit[40], value[24] = "max";

	if (!l->pids_max)
		return 0;
	snprintf(limit, sizeof(limit), "pids limit %lld", (long long)l->pids_max);
	if (l->pids_max > 0)
		snprintf(value, sizeof(value), "%lld", (long long)l->pids_max);
	int r = cgroup_need("pids", path, limit, &dir, err);

	return r < 0 ? r : cgroup_write(dir, "pids.max", value, limit, err);
}

int cgroup_v1_apply(const char *path, const struct cgroup_limits *l, struct error *err)
{
	int r = apply_cpu(path, l, err);

	if (r == 0)
		r = apply_cpuset(path, l, err);
	if (r == 0)
		r = apply_memory(path, l, err);
	if (r == 0)
		r = apply_pids(path, l, err);
	return r;
}

static int allow(const char *dir, const struct cgroup_device_rule *rule, struct error *err)
{
	char major[24] = "*", minor[24] = "*", line[80];

	if (rule->major >= 0)
		snprintf(major, sizeof(major), "%lld", (long long)rule->major);
	if (rule->minor >= 0)
		snprintf(minor, sizeof(minor), "%lld", (long long)rule->minor);
	snprintf(line, sizeof(line), "%c %s:%s %s", rule->type, major, minor, rule->access);
	return cgroup_write(dir, "devices.allow", line, line, err);
}

int cgroup_v1_devices(const char *path, const struct launch *launch, struct error *err)
{
	_cleanup_free_ char *dir = cgroup_dir(cgroup_find("devices"), path);
	int r = cgroup_write(dir, "devices.deny", "a", "device rules", err);

	for (size_t i = 0; i < cgroup_n_default_devices && r == 0; i++)
		r = allow(dir, &cgroup_default_devices[i], err);
	for (size_t i = 0; i < launch->n_devices && r == 0; i++) {
		const struct launch_device *d = &launch->devices[i];

		if (d->access[0])
			r = allow(dir, &(struct cgroup_device_rule){ d->type, d->major, d->minor, d->access }, err);
	}
	return r < 0 ? error_prefix(err, "allow devices") : 0;
}

static void memory_stats(const char *dir, struct cgroup_stats *s)
{
	uint64_t inactive = 0, memsw = 0;

	s->has_memory = cgroup_read_number(dir, "memory.usage_in_bytes", &s->memory_usage_bytes);
	cgroup_read_key(dir, "memory.stat", "total_inactive_file", &inactive);
	cgroup_read_key(dir, "memory.stat", "total_rss", &s->memory_rss_bytes);
	cgroup_read_key(dir, "memory.stat", "total_pgfault", &s->page_faults);
	cgroup_read_key(dir, "memory.stat", "total_pgmajfault", &s->major_page_faults);
	s->memory_working_set_bytes = s->memory_usage_bytes - MIN(inactive, s->memory_usage_bytes);
	if (cgroup_read_number(dir, "memory.memsw.usage_in_bytes", &memsw))
		s->memory_swap_bytes = memsw - MIN(memsw, s->memory_usage_bytes);
	/* "No limit" is the largest multiple of the page size there. */
	if (cgroup_read_number(dir, "memory.limit_in_bytes", &s->memory_limit_bytes) && s->memory_limit_bytes >= INT64_MAX - 65536)
		s->memory_limit_bytes = UINT64_MAX;
}

void cgroup_v1_stats(const char *path, struct cgroup_stats *s)
{
	const struct cgroup_hierarchy *memory = cgroup_find("memory"), *cpuacct = cgroup_find("cpuacct");
	const struct cgroup_hierarchy *cpu = cgroup_find("cpu"), *pids = cgroup_find("pids");

	if (cpuacct) {
		_cleanup_free_ char *dir = cgroup_dir(cpuacct, path);

		s->has_cpu = cgroup_read_number(dir, "cpuacct.usage", &s->cpu_usage_ns);
	}
	if (cpu) {
		_cleanup_free_ char *dir = cgroup_dir(cpu, path);

		cgroup_read_key(dir, "cpu.stat", "throttled_time", &s->cpu_throttled_ns);
	}
	if (memory) {
		_cleanup_free_ char *dir = cgroup_dir(memory, path);

		memory_stats(dir, s);
	}
	if (pids) {
		_cleanup_free_ char *dir = cgroup_dir(pids, path);

		s->has_pids = cgroup_read_number(dir, "pids.current", &s->pids);
	}
}

/* cgroup_v2.c - purpose: limits, device rules and figures in the files of cgroup v2. */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <math.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "common/sys/file.h"
#include "runtime-lite/engine/cgroup_internal.h"
#include "runtime-lite/spec/launch.h"

/* Which controllers are on for the children of dir; missing ones are turned on one at a time, because one that the
 * node refuses (cpu with realtime processes, say) must not take the others along. cgroup_need() reports what is off. */
static void enable_controllers(const char *dir)
{
	static const char *const wanted[] = { "cpu", "cpuset", "memory", "io", "pids", "hugetlb" };
	_cleanup_free_ char *available = xasprintf("%s/cgroup.controllers", dir);
	_cleanup_free_ char *enabled = xasprintf("%s/cgroup.subtree_control", dir);
	_cleanup_free_ char *have = NULL, *on = NULL;
	_cleanup_(strv_done) struct strv have_list = STRV_INIT, on_list = STRV_INIT;

	if (file_read(AT_FDCWD, available, 65536, &have, NULL, NULL) < 0 || file_read(AT_FDCWD, enabled, 65536, &on, NULL, NULL) < 0)
		return;
	have[strcspn(have, "\n")] = on[strcspn(on, "\n")] = '\0';
	strv_split(&have_list, have, ' ');
	strv_split(&on_list, on, ' ');
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		char text[24];

		if (!strv_has(&have_list, wanted[i]) || strv_has(&on_list, wanted[i]))
			continue;
		snprintf(text, sizeof(text), "+%s", wanted[i]);
		(void)!file_write(AT_FDCWD, enabled, text, NULL);
	}
}

int cgroup_v2_create(const struct cgroup_hierarchy *h, const char *path, struct error *err)
{
	_cleanup_free_ char *parent = xstrdup(h->mount);

	for (const char *p = path; *p;) {
		size_t n = strcspn(p + 1, "/") + 1;
		char *dir = xasprintf("%s%.*s", parent, (int)n, p);
		int r = 0;

		if (h->controllers.n)
			enable_controllers(parent);
		if (mkdir(dir, 0755) < 0 && errno != EEXIST)
			r = error_sys(err, errno, "make %s", dir);
		free(parent);
		parent = dir;
		if (r < 0)
			return r;
		p += n;
	}
	return 0;
}

/* runtime.md D2. The points 2 -> 1, 1024 -> 100 and 262144 -> 10000 are exact; the small term keeps 100.0000001 from
 * becoming 101. */
uint64_t cgroup_v2_weight(uint64_t shares)
{
	if (shares == 0)
		return 0;
	if (shares <= 2)
		return 1;
	if (shares >= 262144)
		return 10000;
	double l = log2((double)shares);
	double exponent = (l * l + 125 * l) / 612.0 - 7.0 / 34.0;

	return (uint64_t)ceil(pow(10, exponent) - 1e-9);
}

static int apply_cpu(const char *path, const struct cgroup_limits *l, struct error *err)
{
	_cleanup_free_ char *dir = NULL;
	char limit[64], value[64];

	if (!l->cpu_shares && !l->cpu_quota_us && !l->cpu_period_us)
		return 0;
	snprintf(limit, sizeof(limit), "cpu limit (shares %llu, quota %lld, period %llu)", (unsigned long long)l->cpu_shares,
		(long long)l->cpu_quota_us, (unsigned long long)l->cpu_period_us);
	int r = cgroup_need("cpu", path, limit, &dir, err);

	if (r == 0 && l->cpu_shares)
		r = cgroup_write_number(dir, "cpu.weight", (int64_t)cgroup_v2_weight(l->cpu_shares), limit, err);
	if (r < 0 || (!l->cpu_quota_us && !l->cpu_period_us))
		return r;
	if (l->cpu_quota_us > 0)
		snprintf(value, sizeof(value), "%lld %llu", (long long)l->cpu_quota_us,
			(unsigned long long)(l->cpu_period_us ? l->cpu_period_us : 100000));
	else if (l->cpu_period_us)
		snprintf(value, sizeof(value), "max %llu", (unsigned long long)l->cpu_period_us);
	else
		snprintf(value, sizeof(value), "max");
	/* A period alone must not lift the quota that is there. */
	if (l->cpu_quota_us == 0) {
		_cleanup_free_ char *file = xasprintf("%s/cpu.max", dir);
		_cleanup_free_ char *now = NULL;

		if (file_read(AT_FDCWD, file, 128, &now, NULL, NULL) == 0)
			snprintf(value, sizeof(value), "%.*s %llu", (int)MIN(strcspn(now, " \n"), (size_t)24), now,
				(unsigned long long)l->cpu_period_us);
	}
	return cgroup_write(dir, "cpu.max", value, limit, err);
}

static int write_max(const char *dir, const char *file, int64_t value, const char *limit, struct error *err)
{
	return value < 0 ? cgroup_write(dir, file, "max", limit, err) : cgroup_write_number(dir, file, value, limit, err);
}

/* CRI counts swap as v1 does, together with memory; v2 alone. */
static int apply_swap(const char *dir, const struct cgroup_limits *l, const char *limit, struct error *err)
{
	int64_t swap = l->memory_swap_bytes;

	if (swap == 0 && l->memory_bytes != -1)
		return 0;
	swap = swap <= 0 ? -1 : swap - l->memory_bytes;
	if (!cgroup_file_exists(dir, "memory.swap.max"))
		return swap <= 0 ? 0 : error_set(err, ERROR_PRECONDITION, "%s: the kernel does not account swap", limit);
	return write_max(dir, "memory.swap.max", swap, limit, err);
}

static int apply_memory(const char *path, const struct cgroup_limits *l, struct error *err)
{
	_cleanup_free_ char *dir = NULL;
	char limit[80];

	if (!l->memory_bytes && !l->memory_swap_bytes && !l->memory_low_bytes)
		return 0;
	snprintf(limit, sizeof(limit), "memory limit %lld (with swap %lld)", (long long)l->memory_bytes,
		(long long)l->memory_swap_bytes);
	int r = cgroup_need("memory", path, limit, &dir, err);

	if (r == 0)
		r = apply_swap(dir, l, limit, err);
	if (r == 0 && l->memory_bytes)
		r = write_max(dir, "memory.max", l->memory_bytes, limit, err);
	if (r == 0 && l->memory_low_bytes)
		r = write_max(dir, "memory.low", l->memory_low_bytes, limit, err);
	return r;
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

static int apply_unified(const char *path, const struct cgroup_limits *l, struct error *err)
{
	for (size_t i = 0; i < l->n_unified; i++) {
		const char *key = l->unified[i].key;
		_cleanup_free_ char *controller = xstrndup(key, strcspn(key, "."));
		_cleanup_free_ char *limit = xasprintf("%s = %s", key, l->unified[i].value);
		_cleanup_free_ char *dir = NULL;

		if (str_eq(controller, "cgroup"))
			return error_set(err, ERROR_INVALID, "unified \"%s\": is not a resource", key);
		int r = cgroup_need(controller, path, limit, &dir, err);
		if (r == 0)
			r = cgroup_write(dir, key, l->unified[i].value, limit, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int cgroup_v2_apply(const char *path, const struct cgroup_limits *l, struct error *err)
{
	int r = apply_cpu(path, l, err);

	if (r == 0)
		r = apply_cpuset(path, l, err);
	if (r == 0)
		r = apply_memory(path, l, err);
	if (r == 0 && l->pids_max) {
		_cleanup_free_ char *dir = NULL;
		char limit[40];

		snprintf(limit, sizeof(limit), "pids limit %lld", (long long)l->pids_max);
		r = cgroup_need("pids", path, limit, &dir, err);
		if (r == 0)
			r = write_max(dir, "pids.max", l->pids_max, limit, err);
	}
	return r < 0 ? r : apply_unified(path, l, err);
}

enum { DEVICE_INSNS_MAX = 4096, RULE_INSNS = 8, LOG_BYTES = 4096 };

struct program {
	struct bpf_insn insns[DEVICE_INSNS_MAX];
	size_t n;
};

static void emit(struct program *p, uint8_t code, uint8_t dst, uint8_t src, int16_t off, int32_t imm)
{
	p->insns[p->n++] = (struct bpf_insn){ .code = code, .dst_reg = dst & 15, .src_reg = src & 15, .off = off, .imm = imm };
}

static int access_bits(const char *access)
{
	int bits = 0;

	for (; *access; access++)
		bits |= *access == 'm' ? BPF_DEVCG_ACC_MKNOD : *access == 'r' ? BPF_DEVCG_ACC_READ : *access == 'w' ? BPF_DEVCG_ACC_WRITE : 0;
	return bits;
}

/* "if it is this device and nothing but this access: return 1". Registers: 2 type, 3 access, 4 major, 5 minor. */
static void emit_rule(struct program *p, const struct cgroup_device_rule *rule)
{
	size_t jumps[4], n = 0;
	int type = rule->type == 'b' ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR;

	jumps[n++] = p->n;
	emit(p, BPF_JMP | BPF_JNE | BPF_K, 2, 0, 0, type);
	emit(p, BPF_ALU64 | BPF_MOV | BPF_X, 1, 3, 0, 0);
	emit(p, BPF_ALU64 | BPF_AND | BPF_K, 1, 0, 0, ~access_bits(rule->access) & 7);
	jumps[n++] = p->n;
	emit(p, BPF_JMP | BPF_JNE | BPF_K, 1, 0, 0, 0);
	if (rule->major >= 0) {
		jumps[n++] = p->n;
		emit(p, BPF_JMP | BPF_JNE | BPF_K, 4, 0, 0, (int32_t)rule->major);
	}
	if (rule->minor >= 0) {
		jumps[n++] = p->n;
		emit(p, BPF_JMP | BPF_JNE | BPF_K, 5, 0, 0, (int32_t)rule->minor);
	}
	emit(p, BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 1);
	emit(p, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	for (size_t i = 0; i < n; i++)
		p->insns[jumps[i]].off = (int16_t)(p->n - jumps[i] - 1);
}

static int build_program(struct program *p, const struct launch *launch, struct error *err)
{
	emit(p, BPF_LDX | BPF_MEM | BPF_W, 2, 1, offsetof(struct bpf_cgroup_dev_ctx, access_type), 0);
	emit(p, BPF_ALU64 | BPF_MOV | BPF_X, 3, 2, 0, 0);
	emit(p, BPF_ALU64 | BPF_AND | BPF_K, 2, 0, 0, 0xffff);
	emit(p, BPF_ALU64 | BPF_RSH | BPF_K, 3, 0, 0, 16);
	emit(p, BPF_LDX | BPF_MEM | BPF_W, 4, 1, offsetof(struct bpf_cgroup_dev_ctx, major), 0);
	emit(p, BPF_LDX | BPF_MEM | BPF_W, 5, 1, offsetof(struct bpf_cgroup_dev_ctx, minor), 0);
	for (size_t i = 0; i < cgroup_n_default_devices; i++)
		emit_rule(p, &cgroup_default_devices[i]);
	for (size_t i = 0; i < launch->n_devices; i++) {
		const struct launch_device *d = &launch->devices[i];

		if (p->n + RULE_INSNS + 2 > DEVICE_INSNS_MAX)
			return error_set(err, ERROR_INVALID, "device rules: more than fit into a program (%zu devices)", launch->n_devices);
		if (d->access[0])
			emit_rule(p, &(struct cgroup_device_rule){ d->type, d->major, d->minor, d->access });
	}
	emit(p, BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0);
	emit(p, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	return 0;
}

static int bpf(int cmd, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

/* Kernels before 5.11 count programs against RLIMIT_MEMLOCK. */
static int load_program(const struct program *p)
{
	union bpf_attr attr;
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };

	for (int try = 0; try < 2; try++) {
		memset(&attr, 0, sizeof(attr));
		attr.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
		attr.insns = (uintptr_t)p->insns;
		attr.insn_cnt = (uint32_t)p->n;
		attr.license = (uintptr_t) "Apache-2.0";
		int fd = bpf(BPF_PROG_LOAD, &attr);

		if (fd >= 0)
			return fd;
		if (errno != EPERM || setrlimit(RLIMIT_MEMLOCK, &all) < 0)
			return -errno;
	}
	return -EPERM;
}

int cgroup_v2_devices(const char *dir, const struct launch *launch, struct error *err)
{
	_cleanup_free_ struct program *p = xnew(struct program);
	union bpf_attr attr;
	int r = build_program(p, launch, err);

	if (r < 0)
		return r;
	_cleanup_fd_ int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir_fd < 0)
		return error_sys(err, errno, "device rules: open %s", dir);
	_cleanup_fd_ int fd = load_program(p);

	if (fd < 0)
		return error_sys(err, fd, "device rules: load the BPF program");
	memset(&attr, 0, sizeof(attr));
	attr.target_fd = (uint32_t)dir_fd;
	attr.attach_bpf_fd = (uint32_t)fd;
	attr.attach_type = BPF_CGROUP_DEVICE;
	attr.attach_flags = BPF_F_ALLOW_MULTI;
	return bpf(BPF_PROG_ATTACH, &attr) < 0 ? error_sys(err, errno, "device rules: attach the BPF program to %s", dir) : 0;
}

void cgroup_v2_stats(const char *path, struct cgroup_stats *s)
{
	_cleanup_free_ char *dir = cgroup_dir(cgroup_system.unified, path);
	uint64_t inactive = 0, us = 0;

	s->has_cpu = cgroup_read_key(dir, "cpu.stat", "usage_usec", &us);
	s->cpu_usage_ns = us * 1000;
	if (cgroup_read_key(dir, "cpu.stat", "throttled_usec", &us))
		s->cpu_throttled_ns = us * 1000;
	s->has_memory = cgroup_read_number(dir, "memory.current", &s->memory_usage_bytes);
	cgroup_read_key(dir, "memory.stat", "inactive_file", &inactive);
	cgroup_read_key(dir, "memory.stat", "anon", &s->memory_rss_bytes);
	cgroup_read_key(dir, "memory.stat", "pgfault", &s->page_faults);
	cgroup_read_key(dir, "memory.stat", "pgmajfault", &s->major_page_faults);
	s->memory_working_set_bytes = s->memory_usage_bytes - MIN(inactive, s->memory_usage_bytes);
	cgroup_read_number(dir, "memory.swap.current", &s->memory_swap_bytes);
	cgroup_read_number(dir, "memory.max", &s->memory_limit_bytes);
	s->has_pids = cgroup_read_number(dir, "pids.current", &s->pids);
}

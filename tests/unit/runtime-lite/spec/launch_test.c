/* launch_test.c - purpose: the flat form of launches, damaged ones, and the checks of plans and limits. */
#include <check.h>
#include <errno.h>
#include <stdio.h>

#include "runtime-lite/spec/launch.h"

static struct launch *full(void)
{
	struct launch *l = launch_new();

	l->id = xstrdup("c1");
	l->sandbox_id = xstrdup("s1");
	l->dir = xstrdup("/run/x");
	strv_add(&l->args, "sh");
	strv_add(&l->args, "");
	strv_add(&l->env, "A=\xff\xfe");
	l->cwd = xstrdup("/");
	l->uid = 1;
	l->gid = 2;
	launch_add_group(l, 2);
	launch_add_group(l, 3);
	launch_add_group(l, 3);
	l->caps = (struct launch_caps){ 1, 2, 3, 4, ~0ull };
	l->no_new_privs = true;
	l->n_seccomp = 2;
	l->seccomp = xcalloc(2, sizeof(*l->seccomp));
	l->seccomp[1].k = 77;
	launch_add_rlimit(l, 7, 8, UINT64_MAX);
	l->has_oom_score_adj = true;
	l->oom_score_adj = -999;
	strv_add(&l->rootfs.lower, "/l1");
	l->rootfs.merged = xstrdup("/m");
	launch_add_mount(l, "/src", "/dst")->propagation = LAUNCH_SHARED;
	struct launch_device *d = launch_add_device(l, "/dev/x");
	d->type = 'c';
	d->major = 10;
	strcpy(d->access, "rwm");
	strv_add(&l->masked_paths, "/proc/keys");
	l->cgroup = xstrdup("/a/b");
	l->limits.memory_bytes = -1;
	cgroup_limits_set_hugetlb(&l->limits, "2MB", 5);
	cgroup_limits_set_unified(&l->limits, "memory.high", "1");
	return l;
}

START_TEST(round_trip)
{
	struct launch *l = full(), *copy = NULL;
	_cleanup_(str_done) struct str once = STR_INIT, twice = STR_INIT;
	struct error err = ERROR_INIT;

	launch_encode(l, &once);
	ck_assert_msg(launch_parse(once.buf, once.len, &copy, &err) == 0, "%s", err.text);
	ck_assert_int_eq(copy->oom_score_adj, -999);
	ck_assert_int_eq((int)copy->n_groups, 2);
	ck_assert(copy->rlimits[0].hard == UINT64_MAX && copy->caps.ambient == ~0ull);
	ck_assert_int_eq((int)copy->seccomp[1].k, 77);
	ck_assert_str_eq(copy->args.v[1], "");
	ck_assert_ptr_null(copy->args.v[2]);
	ck_assert_ptr_null(copy->log_path);
	ck_assert_str_eq(copy->devices[0].access, "rwm");
	ck_assert_int_eq((int)copy->limits.memory_bytes, -1);
	launch_encode(copy, &twice);
	ck_assert_int_eq((int)once.len, (int)twice.len);
	ck_assert_int_eq(memcmp(once.buf, twice.buf, once.len), 0);
	launch_free(l);
	launch_free(copy);
}
END_TEST

START_TEST(in_place)
{
	struct launch *l = full(), read;
	_cleanup_(str_done) struct str flat = STR_INIT;
	launch_encode(l, &flat);
	size_t arena_len = flat.len * 2 + 4096;
	_cleanup_free_ char *arena = xmalloc(arena_len);

	ck_assert_int_eq(launch_decode(flat.buf, flat.len, arena, arena_len, &read), 0);
	ck_assert_str_eq(read.args.v[0], "sh");
	ck_assert_str_eq(read.limits.unified[0].key, "memory.high");
	ck_assert_int_lt(launch_decode(flat.buf, flat.len, arena, 64, &read), 0); /* arena too small */
	launch_free(l);
}
END_TEST

/* Cut anywhere, and with any byte changed, it is refused or read, but never leads out of the buffers (ASan watches). */
START_TEST(damaged)
{
	struct launch *l = full(), *copy;
	_cleanup_(str_done) struct str flat = STR_INIT;
	launch_encode(l, &flat);
	size_t arena_len = flat.len * 2 + 4096;
	_cleanup_free_ char *arena = xmalloc(arena_len);

	for (size_t n = 0; n < flat.len; n++) {
		struct launch read;
		_cleanup_free_ char *cut = xmemdup(flat.buf, n);

		ck_assert_int_lt(launch_decode(cut, n, arena, arena_len, &read), 0);
		ck_assert_int_lt(launch_parse(cut, n, &copy, NULL), 0);
	}
	for (size_t n = 0; n < flat.len; n++) {
		struct launch read;
		_cleanup_free_ char *bent = xmemdup(flat.buf, flat.len);

		bent[n] = (char)(bent[n] ^ 0x81);
		(void)!launch_decode(bent, flat.len, arena, arena_len, &read);
		copy = NULL;
		if (launch_parse(bent, flat.len, &copy, NULL) == 0)
			launch_free(copy);
	}
	launch_free(l);
}
END_TEST

START_TEST(sandbox_round_trip)
{
	struct sandbox_launch *s = sandbox_launch_new(), *copy = NULL;
	_cleanup_(str_done) struct str flat = STR_INIT;

	s->id = xstrdup("s1");
	s->dir = xstrdup("/d");
	s->net = LAUNCH_NS_NODE;
	sandbox_launch_add_sysctl(s, "net.x", "1");
	s->cgroup = xstrdup("/c");
	s->monitors_cgroup = xstrdup("/m");
	sandbox_launch_encode(s, &flat);
	ck_assert_int_eq(sandbox_launch_parse(flat.buf, flat.len, &copy, NULL), 0);
	ck_assert_int_eq(copy->net, LAUNCH_NS_NODE);
	ck_assert_str_eq(copy->sysctls[0].value, "1");
	ck_assert_ptr_null(copy->hostname);
	sandbox_launch_free(copy);
	struct launch *l = NULL;
	ck_assert_int_lt(launch_parse(flat.buf, flat.len, &l, NULL), 0); /* of the other kind */
	sandbox_launch_free(s);
}
END_TEST

START_TEST(ids)
{
	ck_assert(launch_id_valid("a") && launch_id_valid("A-b_c.d9"));
	ck_assert(!launch_id_valid("") && !launch_id_valid(NULL) && !launch_id_valid("..") && !launch_id_valid("a/b") && !launch_id_valid(".x"));
	ck_assert(!launch_id_valid("0123456789012345678901234567890123456789012345678901234567890123456789"));
}
END_TEST

static void no_args(struct launch *l) { strv_done(&l->args); }
static void no_layers(struct launch *l) { strv_done(&l->rootfs.lower); }
static void many_layers(struct launch *l) { while (l->rootfs.lower.n <= 500) strv_add(&l->rootfs.lower, "/l"); }
static void upper_alone(struct launch *l) { l->rootfs.upper = xstrdup("/u"); }
static void relative_mask(struct launch *l) { strv_add(&l->masked_paths, "proc"); }
static void relative_cwd(struct launch *l) { free(l->cwd); l->cwd = xstrdup("x"); }
static void rro_shared(struct launch *l) { l->mounts[0].readonly = l->mounts[0].recursive_readonly = true; }
static void large_uid(struct launch *l) { l->uid = 1u << 31; }
static void bad_swap(struct launch *l) { l->limits.memory_bytes = 10; l->limits.memory_swap_bytes = 5; }
static void bad_cpus(struct launch *l) { l->limits.cpuset_cpus = xstrdup("0;1"); }
static void bad_unified(struct launch *l) { cgroup_limits_set_unified(&l->limits, "../x.y", "1"); }
static void negative(struct launch *l) { l->limits.memory_bytes = -2; }
static void bad_id(struct launch *l) { l->id[0] = '/'; }

static const struct {
	void (*bend)(struct launch *l);
	const char *text;
} bad[] = {
	{ no_args, "no command specified" },
	{ no_layers, "no layers" },
	{ many_layers, "501 layers" },
	{ upper_alone, "both an upper and a work" },
	{ relative_mask, "masked path \"proc\"" },
	{ relative_cwd, "working directory \"x\"" },
	{ rro_shared, "recursive read-only" },
	{ large_uid, "2147483647" },
	{ bad_swap, "below the memory limit" },
	{ bad_cpus, "cpuset cpus: \"0;1\"" },
	{ bad_unified, "unified" },
	{ negative, "memory limit: -2: must be -1 or more" },
	{ bad_id, "container id" },
};

START_TEST(checks)
{
	struct launch *l = full();
	struct error err = ERROR_INIT;

	ck_assert_msg(launch_check(l, &err) == 0, "%s", err.text);
	bad[_i].bend(l);
	ck_assert_int_eq(launch_check(l, &err), -EINVAL);
	ck_assert_msg(strstr(err.text, bad[_i].text), "%s", err.text);
	launch_free(l);
}
END_TEST

static const struct {
	const char *name, *value;
	enum launch_ns net, ipc;
	bool ok;
} sysctls[] = {
	{ "net.ipv4.ip_forward", "1", LAUNCH_NS_POD, LAUNCH_NS_POD, true },
	{ "net/ipv4/ip_forward", "1", LAUNCH_NS_POD, LAUNCH_NS_POD, true },
	{ "kernel.shmmax", "1", LAUNCH_NS_POD, LAUNCH_NS_POD, true },
	{ "fs.mqueue.msg_max", "1", LAUNCH_NS_POD, LAUNCH_NS_POD, true },
	{ "net.ipv4.ip_forward", "1", LAUNCH_NS_NODE, LAUNCH_NS_POD, false },
	{ "kernel.shmmax", "1", LAUNCH_NS_POD, LAUNCH_NS_NODE, false },
	{ "kernel.core_pattern", "1", LAUNCH_NS_POD, LAUNCH_NS_POD, false },
	{ "net.../kernel/core_pattern", "x", LAUNCH_NS_POD, LAUNCH_NS_POD, false },
	{ "net/../kernel/core_pattern", "x", LAUNCH_NS_POD, LAUNCH_NS_POD, false },
	{ "vm.swappiness", "1", LAUNCH_NS_POD, LAUNCH_NS_POD, false },
	{ "net.x", "a\nb", LAUNCH_NS_POD, LAUNCH_NS_POD, false },
	{ "", "1", LAUNCH_NS_POD, LAUNCH_NS_POD, false },
};

START_TEST(sysctl)
{
	struct sandbox_launch *s = sandbox_launch_new();

	s->id = xstrdup("s1");
	s->dir = xstrdup("/d");
	s->cgroup = xstrdup("/c");
	s->monitors_cgroup = xstrdup("/m");
	s->net = sysctls[_i].net;
	s->ipc = sysctls[_i].ipc;
	sandbox_launch_add_sysctl(s, sysctls[_i].name, sysctls[_i].value);
	ck_assert_int_eq(sandbox_launch_check(s, NULL) == 0, sysctls[_i].ok);
	sandbox_launch_free(s);
}
END_TEST

START_TEST(merge)
{
	struct cgroup_limits a = { .memory_bytes = 1, .cpu_shares = 2, .cpuset_cpus = xstrdup("0") };
	struct cgroup_limits b = { .cpu_shares = 3, .cpu_quota_us = -1, .cpuset_cpus = xstrdup("1") }, copy;

	cgroup_limits_set_unified(&a, "memory.high", "1");
	cgroup_limits_set_unified(&b, "memory.high", "2");
	cgroup_limits_set_unified(&b, "memory.low", "3");
	cgroup_limits_set_hugetlb(&b, "2MB", 4);
	cgroup_limits_merge(&a, &b);
	cgroup_limits_copy(&copy, &a);
	ck_assert(copy.memory_bytes == 1 && copy.cpu_shares == 3 && copy.cpu_quota_us == -1);
	ck_assert_str_eq(copy.cpuset_cpus, "1");
	ck_assert_int_eq((int)copy.n_unified, 2);
	ck_assert_str_eq(copy.unified[0].value, "2");
	ck_assert(copy.n_hugetlb == 1 && copy.hugetlb[0].limit_bytes == 4);
	cgroup_limits_done(&a);
	cgroup_limits_done(&b);
	cgroup_limits_done(&copy);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("launch");
	TCase *c = tcase_create("launch");

	tcase_add_test(c, round_trip);
	tcase_add_test(c, in_place);
	tcase_add_test(c, damaged);
	tcase_add_test(c, sandbox_round_trip);
	tcase_add_test(c, ids);
	tcase_add_loop_test(c, checks, 0, ARRAY_LEN(bad));
	tcase_add_loop_test(c, sysctl, 0, ARRAY_LEN(sysctls));
	tcase_add_test(c, merge);
	suite_add_tcase(s, c);
	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}

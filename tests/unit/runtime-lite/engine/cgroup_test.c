/* cgroup_test.c - purpose: which hierarchies are found; the files of v2 on a copy of its tree; the node's own cgroups. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/sys/file.h"
#include "runtime-lite/engine/cgroup.h"
#include "runtime-lite/engine/cgroup_internal.h"
#include "runtime-lite/spec/launch.h"

#define V1_MEMORY "31 24 0:27 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
#define V1_CPU "32 24 0:28 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
#define V1_SYSTEMD "33 24 0:29 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n"
#define HYBRID "34 24 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate\n"
#define V2 "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n"
#define OTHER "21 1 8:1 / / rw - ext4 /dev/sda rw\n22 1 0:5 / /proc rw - proc proc rw\n"

static const struct {
	const char *mountinfo;
	int mode; /* -1: an error with this text */
	const char *text;
	size_t n;
} detect[] = {
	{ OTHER V2, CGROUP_V2, NULL, 1 },
	{ OTHER V1_MEMORY V1_CPU V1_SYSTEMD, CGROUP_V1, NULL, 3 },
	{ OTHER V1_MEMORY V1_CPU V1_SYSTEMD HYBRID, CGROUP_HYBRID, NULL, 4 },
	{ V1_MEMORY V1_MEMORY V1_CPU, CGROUP_V1, NULL, 2 },
	{ "31 24 0:27 / /mnt/x\\040y rw - cgroup cgroup rw,memory\n", CGROUP_V1, NULL, 1 },
	{ V1_MEMORY "31 24 0:27 /foo /mnt/x rw - cgroup cgroup rw,memory\n", CGROUP_V1, NULL, 1 },
	{ OTHER, -1, "no cgroup file system is mounted", 0 },
	{ "", -1, "no cgroup file system is mounted", 0 },
	{ "30 24 0:26 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup2 rw\n", -1, "mounted read-only", 0 },
	{ "30 24\n- -\n30 24 0:26 / /sys/fs/cgroup rw -\n", -1, "no cgroup", 0 },
};

START_TEST(hierarchies)
{
	struct error err = ERROR_INIT;
	int r = cgroup_detect_from(detect[_i].mountinfo, &err);

	ck_assert_int_eq((int)cgroup_system.n, (int)detect[_i].n);
	if (detect[_i].mode < 0) {
		ck_assert_int_eq(r, -EBUSY);
		ck_assert_msg(strstr(err.text, detect[_i].text), "%s", err.text);
		return;
	}
	ck_assert_int_eq(r, 0);
	ck_assert_int_eq((int)cgroup_mode(), detect[_i].mode);
	if (strstr(detect[_i].mountinfo, "cpuacct"))
		ck_assert(cgroup_has("cpu") && cgroup_has("cpuacct") && cgroup_has("memory") && !cgroup_has("rw") && !cgroup_has("pids"));
	if (strstr(detect[_i].mountinfo, "040"))
		ck_assert_str_eq(cgroup_system.h[0].mount, "/mnt/x y");
}
END_TEST

static const struct {
	const char *parent, *leaf, *path;
} paths[] = {
	{ "/kubepods/burstable", "abc", "/kubepods/burstable/abc" },
	{ "//kubepods//x/", "abc", "/kubepods/x/abc" },
	{ "/", "abc", "/abc" },
	{ "runtime", NULL, "/runtime" },
	{ "/a/./b", NULL, "/a/b" },
	{ "/a/../b", "x", NULL },
	{ "/a", "..", NULL },
	{ "/a", "x/y", NULL },
	{ "", NULL, NULL },
	{ "kubepods-burstable.slice", NULL, NULL },
};

START_TEST(path_joined)
{
	_cleanup_free_ char *got = NULL;
	int r = cgroup_path_join(paths[_i].parent, paths[_i].leaf, &got, NULL);

	ck_assert_int_eq(r == 0, paths[_i].path != NULL);
	if (paths[_i].path)
		ck_assert_str_eq(got, paths[_i].path);
}
END_TEST

START_TEST(weight)
{
	/* runtime.md D2 */
	static const uint64_t points[][2] = { { 0, 0 }, { 1, 1 }, { 2, 1 }, { 3, 2 }, { 10, 4 }, { 51, 11 }, { 102, 17 }, { 204, 29 }, { 256, 35 },
		{ 512, 59 }, { 1024, 100 }, { 2048, 174 }, { 4096, 303 }, { 8192, 532 }, { 102400, 4429 }, { 262144, 10000 }, { 1000000, 10000 } };

	for (size_t i = 0; i < ARRAY_LEN(points); i++)
		ck_assert_int_eq((int)cgroup_v2_weight(points[i][0]), (int)points[i][1]);
}
END_TEST

/* A directory with the files of a v2 cgroup. */
static char root[64];

static void put(const char *dir, const char *file, const char *text)
{
	_cleanup_free_ char *p = xasprintf("%s%s/%s", root, dir, file);

	ck_assert_int_eq(file_replace(AT_FDCWD, p, text, strlen(text), 0600, NULL), 0);
}

static void expect_file(const char *dir, const char *file, const char *text)
{
	_cleanup_free_ char *p = xasprintf("%s%s/%s", root, dir, file), *got = NULL;

	ck_assert_int_eq(file_read(AT_FDCWD, p, 4096, &got, NULL, NULL), 0);
	ck_assert_str_eq(got, text);
}

static void fake_setup(void)
{
	static const char *const files[] = { "cpu.weight", "cpu.max", "memory.max", "memory.swap.max", "memory.low", "memory.high", "pids.max",
		"cpuset.cpus", "cpuset.mems", "hugetlb.2MB.max", "hugetlb.2MB.rsvd.max" };
	_cleanup_free_ char *mountinfo = NULL, *dir = NULL;

	strcpy(root, "/tmp/cgroup-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(root));
	put("", "cgroup.controllers", "cpuset cpu io memory hugetlb pids\n");
	put("", "cgroup.subtree_control", "\n");
	mountinfo = xasprintf("30 24 0:26 / %s rw,nosuid - cgroup2 cgroup2 rw\n", root);
	ck_assert_int_eq(cgroup_detect_from(mountinfo, NULL), 0);
	ck_assert_int_eq(cgroup_create("/pod", NULL), 0);
	put("/pod", "cgroup.controllers", "cpuset cpu io memory hugetlb pids\n");
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		put("/pod", files[i], "");
}

static void fake_teardown(void)
{
	ck_assert_int_eq(dir_remove(AT_FDCWD, root, NULL), 0);
}

START_TEST(v2_limits)
{
	struct cgroup_limits l = { .memory_bytes = 1000, .memory_swap_bytes = 1500, .memory_low_bytes = 10, .cpu_shares = 1024, .cpu_quota_us = 50000,
		.pids_max = -1, .cpuset_cpus = xstrdup("0-1") };
	struct error err = ERROR_INIT;

	cgroup_limits_set_unified(&l, "memory.high", "77");
	cgroup_limits_set_hugetlb(&l, "2MB", 4096);
	ck_assert_msg(cgroup_apply("/pod", &l, &err) == 0, "%s", err.text);
	expect_file("/pod", "memory.max", "1000");
	expect_file("/pod", "memory.swap.max", "500");
	expect_file("/pod", "memory.low", "10");
	expect_file("/pod", "memory.high", "77");
	expect_file("/pod", "cpu.weight", "100");
	expect_file("/pod", "cpu.max", "50000 100000");
	expect_file("/pod", "pids.max", "max");
	expect_file("/pod", "cpuset.cpus", "0-1");
	expect_file("/pod", "hugetlb.2MB.max", "4096");
	expect_file("/pod", "hugetlb.2MB.rsvd.max", "4096");
	cgroup_limits_done(&l);

	/* A period alone keeps the quota. */
	put("/pod", "cpu.max", "50000 100000\n");
	l = (struct cgroup_limits){ .cpu_period_us = 200000 };
	ck_assert_int_eq(cgroup_apply("/pod", &l, NULL), 0);
	expect_file("/pod", "cpu.max", "50000 200000\n"); /* a real one would be replaced whole */
	put("/pod", "cpu.max", "");
	l = (struct cgroup_limits){ .cpu_period_us = 100000, .cpu_quota_us = -1, .memory_bytes = -1 };
	put("/pod", "memory.max", "");
	put("/pod", "memory.swap.max", "");
	ck_assert_int_eq(cgroup_apply("/pod", &l, NULL), 0);
	expect_file("/pod", "cpu.max", "max 100000");
	expect_file("/pod", "memory.max", "max");
	expect_file("/pod", "memory.swap.max", "max");
}
END_TEST

START_TEST(v2_missing_controller)
{
	struct cgroup_limits l = { .memory_bytes = 4096 }, huge = { 0 };
	struct error err = ERROR_INIT;

	put("/pod", "cgroup.controllers", "cpu pids\n");
	ck_assert_int_eq(cgroup_apply("/pod", &l, &err), -EBUSY);
	ck_assert_msg(strstr(err.text, "memory limit 4096") && strstr(err.text, "\"memory\" is not enabled"), "%s", err.text);
	cgroup_limits_set_unified(&huge, "io.weight", "5");
	ck_assert_int_lt(cgroup_apply("/pod", &huge, &err), 0);
	ck_assert_msg(strstr(err.text, "io.weight = 5"), "%s", err.text);
	cgroup_limits_done(&huge);
	huge = CGROUP_LIMITS_INIT;
	cgroup_limits_set_unified(&huge, "cgroup.procs", "1");
	ck_assert_int_lt(cgroup_apply("/pod", &huge, &err), 0);
	cgroup_limits_done(&huge);
}
END_TEST

START_TEST(v2_stats)
{
	struct cgroup_stats s;

	put("/pod", "cpu.stat", "usage_usec 1500\nuser_usec 1\nthrottled_usec 7\n");
	put("/pod", "memory.current", "10000\n");
	put("/pod", "memory.stat", "anon 4000\nfile 6000\ninactive_file 2500\npgfault 11\npgmajfault 3\n");
	put("/pod", "memory.max", "max\n");
	put("/pod", "memory.events", "low 0\nhigh 0\nmax 5\noom 2\noom_kill 2\n");
	put("/pod", "pids.current", "4\n");
	ck_assert_int_eq(cgroup_stats("/pod", &s, NULL), 0);
	ck_assert(s.cpu_usage_ns == 1500000 && s.cpu_throttled_ns == 7000 && s.memory_usage_bytes == 10000 && s.memory_working_set_bytes == 7500);
	ck_assert(s.memory_rss_bytes == 4000 && s.memory_limit_bytes == UINT64_MAX && s.pids == 4 && s.oom_kills == 2 && s.page_faults == 11);
	ck_assert_int_eq(cgroup_stats("/gone", &s, NULL), -ENOENT);
}
END_TEST

START_TEST(v2_places)
{
	_cleanup_(launch_free_p) struct launch *l = launch_new();
	_cleanup_free_ char *want = xasprintf("%s/pod/c1", root), *oom = xasprintf("%s/pod/c1/memory.events", root);

	l->cgroup = xstrdup("/pod/c1");
	cgroup_fill_launch(l);
	cgroup_fill_launch(l); /* again: no leak, same result */
	ck_assert_int_eq((int)l->cgroup_dirs.n, 0);
	ck_assert_str_eq(l->cgroup_unified, want);
	ck_assert_str_eq(l->cgroup_track, want);
	ck_assert_str_eq(l->oom_file, oom);
	expect_file("", "cgroup.subtree_control", "+hugetlb"); /* the last one written; the kernel adds them up */
}
END_TEST

static char own[64];

static void real_setup(void)
{
	ck_assert_int_eq(cgroup_detect(NULL), 0);
	snprintf(own, sizeof(own), "/cgroup-test-%d", (int)getpid());
	ck_assert_int_eq(cgroup_create(own, NULL), 0);
}

static void real_teardown(void)
{
	struct error err = ERROR_INIT;

	ck_assert_msg(cgroup_remove(own, &err) == 0, "%s", err.text);
	ck_assert(!cgroup_exists(own));
	ck_assert_int_eq(cgroup_remove(own, NULL), 0);
}

static pid_t spawn_in(const char *path, bool forks)
{
	_cleanup_(strv_done) struct strv dirs = STRV_INIT;
	int sync[2];
	char c;

	ck_assert_int_eq(pipe(sync), 0);
	cgroup_dirs(path, &dirs);
	pid_t pid = fork();

	if (pid == 0) {
		close(sync[0]);
		for (size_t i = 0; i < dirs.n; i++) {
			char file[512];

			snprintf(file, sizeof(file), "%s/cgroup.procs", dirs.v[i]);
			if (file_write(AT_FDCWD, file, "0", NULL) < 0)
				_exit(1);
		}
		if (forks)
			for (int i = 0; i < 5; i++)
				fork();
		signal(SIGPIPE, SIG_IGN);
		(void)!write(sync[1], "x", 1);
		for (;;)
			pause();
	}
	close(sync[1]);
	ck_assert_int_eq((int)read(sync[0], &c, 1), 1);
	close(sync[0]);
	return pid;
}

START_TEST(kill_and_remove)
{
	_cleanup_free_ char *sub = xasprintf("%s/sub/deeper", own), *other = xasprintf("%s/other", own);
	struct error err = ERROR_INIT;
	pid_t *pids;
	size_t n = 0;

	signal(SIGCHLD, SIG_IGN);
	ck_assert_int_eq(cgroup_create(sub, NULL), 0);
	ck_assert_int_eq(cgroup_create(other, NULL), 0);
	spawn_in(sub, true);
	spawn_in(other, false);
	for (int i = 0; i < 500 && n != 33; i++) {
		usleep(10000);
		ck_assert_int_eq(cgroup_pids(own, &pids, &n, NULL), 0);
		free(pids);
	}
	ck_assert_int_eq((int)n, 33);
	ck_assert_msg(cgroup_kill(own, 5000, &err) == 0, "%s", err.text);
	ck_assert_int_eq(cgroup_pids(own, &pids, &n, NULL), 0);
	ck_assert_int_eq((int)n, 0);
	free(pids);
	ck_assert_int_eq(cgroup_kill("/not-there", 1000, NULL), 0);
}
END_TEST

START_TEST(remove_while_occupied)
{
	/* R13: EBUSY of the kernel reaches nobody. */
	signal(SIGCHLD, SIG_IGN);
	spawn_in(own, true);
}
END_TEST

START_TEST(frozen)
{
	pid_t pid;

	if (!cgroup_has("freezer"))
		return;
	_cleanup_free_ char *dir = cgroup_dir(cgroup_find("freezer"), own);

	signal(SIGCHLD, SIG_IGN);
	pid = spawn_in(own, false);
	ck_assert(!cgroup_frozen(own));
	ck_assert_int_eq(cgroup_write(dir, "freezer.state", "FROZEN", NULL, NULL), 0);
	ck_assert(cgroup_frozen(own));
	ck_assert_int_eq(cgroup_kill(own, 5000, NULL), 0);
	ck_assert_int_eq(kill(pid, 0), -1);

	/* Frozen from above: a container of a frozen pod dies, another stays frozen. */
	_cleanup_free_ char *one = xasprintf("%s/one", own), *two = xasprintf("%s/two", own);
	struct error err = ERROR_INIT;

	ck_assert_int_eq(cgroup_create(one, &err), 0);
	ck_assert_int_eq(cgroup_create(two, &err), 0);
	pid = spawn_in(one, false);
	pid_t other = spawn_in(two, false);

	ck_assert_int_eq(cgroup_write(dir, "freezer.state", "FROZEN", NULL, NULL), 0);
	ck_assert_msg(cgroup_kill(one, 5000, &err) == 0, "%s", err.text);
	ck_assert_int_eq(kill(pid, 0), -1);
	ck_assert(cgroup_frozen(two));
	ck_assert_int_eq(kill(other, 0), 0);
	ck_assert_int_eq(cgroup_kill(own, 5000, NULL), 0);
	ck_assert_int_eq(kill(other, 0), -1);
}
END_TEST

START_TEST(memory_order)
{
	/* Growing and shrinking with swap accounted, in any order. */
	static const int64_t steps[][2] = { { 64, 64 }, { 128, 256 }, { 256, 256 }, { 32, 48 }, { 512, 512 }, { 16, 16 }, { -1, -1 }, { 64, 128 } };
	struct error err = ERROR_INIT;
	struct cgroup_stats s;

	for (size_t i = 0; i < ARRAY_LEN(steps) && cgroup_has("memory"); i++) {
		struct cgroup_limits l = { .memory_bytes = steps[i][0] < 0 ? -1 : steps[i][0] << 20,
			.memory_swap_bytes = steps[i][1] < 0 ? -1 : steps[i][1] << 20 };

		ck_assert_msg(cgroup_apply(own, &l, &err) == 0, "%zu: %s", i, err.text);
		ck_assert_int_eq(cgroup_stats(own, &s, NULL), 0);
		ck_assert(s.memory_limit_bytes == (steps[i][0] < 0 ? UINT64_MAX : (uint64_t)l.memory_bytes));
	}
}
END_TEST

START_TEST(stats)
{
	struct cgroup_stats s;

	signal(SIGCHLD, SIG_IGN);
	spawn_in(own, false);
	ck_assert_int_eq(cgroup_stats(own, &s, NULL), 0);
	ck_assert(s.has_cpu || !cgroup_has("cpuacct"));
	ck_assert(!s.has_pids || s.pids == 1);
	ck_assert(s.timestamp_ns > 1600000000000000000ull);
	ck_assert_int_eq(cgroup_kill(own, 5000, NULL), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cgroup");
	TCase *pure = tcase_create("pure"), *fake = tcase_create("v2 files"), *real = tcase_create("node");

	tcase_add_loop_test(pure, hierarchies, 0, ARRAY_LEN(detect));
	tcase_add_loop_test(pure, path_joined, 0, ARRAY_LEN(paths));
	tcase_add_test(pure, weight);
	tcase_add_checked_fixture(fake, fake_setup, fake_teardown);
	tcase_add_test(fake, v2_limits);
	tcase_add_test(fake, v2_missing_controller);
	tcase_add_test(fake, v2_stats);
	tcase_add_test(fake, v2_places);
	suite_add_tcase(s, pure);
	suite_add_tcase(s, fake);
	if (geteuid() == 0 && cgroup_detect(NULL) == 0) {
		tcase_add_checked_fixture(real, real_setup, real_teardown);
		tcase_add_test(real, kill_and_remove);
		tcase_add_test(real, remove_while_occupied);
		tcase_add_test(real, frozen);
		tcase_add_test(real, memory_order);
		tcase_add_test(real, stats);
		tcase_set_timeout(real, 60);
	} else {
		printf("the node's cgroups are skipped: needs root and cgroups\n");
	}
	suite_add_tcase(s, real);
	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}

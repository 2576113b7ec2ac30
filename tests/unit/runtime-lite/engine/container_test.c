/* container_test.c - purpose: what a container's process finds when it runs, and what is left of it afterwards. */
#include "tests/unit/runtime-lite/engine/fixture.h"

#include <linux/capability.h>
#include <sys/sysmacros.h>

static struct sandbox_launch *sandbox;
static struct pod_monitor *pod;

static void setup(void)
{
	fx_setup();
	sandbox = fx_sandbox();
	pod = fx_start_pod(sandbox);
}

static void teardown(void)
{
	fx_stop(pod, sandbox);
	fx_teardown();
}

/* Runs a script and compares its whole output. */
static void expect(struct launch *l, int status, const char *output)
{
	_cleanup_free_ char *log = fx_run(pod, l, status);

	ck_assert_str_eq(log, output);
	launch_free(l);
}

static void expect_error(struct launch *l, enum error_code code, const char *text)
{
	struct error err = ERROR_INIT;
	pid_t pid;
	uint64_t started;

	ck_assert_int_lt(pod_container_start(pod, l, 0, &pid, &started, &err), 0);
	ck_assert_msg(strstr(err.text, text), "\"%s\" is not in \"%s\"", text, err.text);
	ck_assert_int_eq(err.code, code);
	ck_assert(!cgroup_exists(l->cgroup));
	launch_free(l);
}

static const struct {
	const char *name, *script;
	int status;
	const char *output;
} scripts[] = {
	{ "exit code", "exit 7", 7, "" },
	{ "killed by KILL", "kill -9 $$", 0, "" }, /* PID 1 is immune to its own signals */
	{ "host name", "hostname", 0, "test-pod\n" },
	{ "environment", "env | grep KEY", 0, "KEY=value\n" },
	{ "PID 1", "echo $$", 0, "1\n" },
	{ "descriptors", "exec ls /proc/self/fd", 0, "0\n1\n2\n3\n" }, /* 3: the directory itself */
	{ "umask", "umask", 0, "0022\n" },
	{ "capabilities", "grep -E 'Cap(Inh|Eff|Amb)' /proc/self/status | tr -d '\\t'", 0,
		"CapInh:0000000000000000\nCapEff:00000000a80425fb\nCapAmb:0000000000000000\n" },
	{ "seccomp is on", "grep Seccomp: /proc/self/status | tr -d '\\t'", 0, "Seccomp:2\n" },
	{ "seccomp stops unshare", "unshare -n true 2>&1 | grep -c 'not permitted'", 0, "1\n" },
	{ "own cgroup", "cut -d: -f3 /proc/self/cgroup | sort -u", 0, "/\n" },
	{ "cgroups are read-only", "for d in /sys/fs/cgroup /sys/fs/cgroup/mem*y; do mkdir $d/x 2>&1 | grep -o -i read-only; done | sort -u", 0, "Read-only\n" },
	{ "sys is read-only", "touch /sys/x 2>&1 | grep -c -i read-only", 0, "1\n" },
	{ "null works", "echo x >/dev/null && head -c 4 /dev/zero | wc -c", 0, "4\n" },
	{ "devices are denied", "mknod /tmp/m c 1 1 && cat /tmp/m 2>&1 | grep -c 'not permitted'", 0, "1\n" },
	{ "stdout can be reopened", "echo hello >/dev/stdout", 0, "hello\n" },
	{ "shm", "df /dev/shm | tail -n1 | tr -s ' ' | cut -d' ' -f2", 0, "1024\n" },
	{ "CR is dropped", "printf 'a\\r\\nb\\n\\n'", 0, "a\nb\n\n" },
	{ "unterminated tail", "printf 'a\\nb'", 0, "a\nb" },
	{ "orphans are reaped", "(sleep 0.1 &) ; sleep 0.3; ps -o comm | grep -c sleep", 1, "0\n" },
	{ "loopback is up", "ip addr show lo | grep -c 127.0.0.1", 0, "1\n" },
};

START_TEST(script)
{
	expect(fx_container(sandbox, scripts[_i].script), scripts[_i].status, scripts[_i].output);
}
END_TEST

START_TEST(users)
{
	struct launch *l = fx_container(sandbox, "id -u; id -g; id -G; grep -E 'CapEff|CapPrm' /proc/self/status | tr -d '\\t'; touch /etc/x");

	l->uid = 1000;
	l->gid = 2000;
	l->n_groups = 0;
	launch_add_group(l, 2000);
	launch_add_group(l, 3000);
	launch_add_group(l, 3000);
	l->caps.effective = l->caps.permitted = 0;
	expect(l, 1, "1000\n2000\n2000 3000\nCapPrm:0000000000000000\nCapEff:0000000000000000\ntouch: /etc/x: Permission denied\n");
}
END_TEST

START_TEST(ambient)
{
	struct launch *l = fx_container(sandbox, "grep -E 'CapEff|CapAmb' /proc/self/status | tr -d '\\t'");
	uint64_t cap = 1ull << CAP_NET_BIND_SERVICE;

	l->uid = l->gid = 1000;
	l->caps = (struct launch_caps){ cap, cap, cap, cap, cap };
	expect(l, 0, "CapEff:0000000000000400\nCapAmb:0000000000000400\n");
}
END_TEST

START_TEST(no_new_privs)
{
	struct launch *l = fx_container(sandbox, "grep -E 'NoNewPrivs|Seccomp:' /proc/self/status | tr -d '\\t'");

	l->no_new_privs = true;
	l->uid = 1000;
	expect(l, 0, "NoNewPrivs:1\nSeccomp:2\n");
}
END_TEST

START_TEST(rlimits_and_cwd)
{
	struct launch *l = fx_container(sandbox, "ulimit -n; ulimit -Hn; pwd; cat /proc/self/oom_score_adj");

	launch_add_rlimit(l, RLIMIT_NOFILE, 512, 1024);
	l->cwd = xstrdup("/made/for/me");
	l->has_oom_score_adj = true;
	l->oom_score_adj = 321;
	expect(l, 0, "512\n1024\n/made/for/me\n321\n");
}
END_TEST

START_TEST(mounts)
{
	struct launch *l = fx_container(sandbox, "cat /data/f; echo new >/data/g; echo x 2>&1 >/ro/g; cat /ro/f; cat /etc/conf/one");
	_cleanup_free_ char *dir = xasprintf("%s/vol", fx_root), *file = xasprintf("%s/vol/f", fx_root);
	_cleanup_free_ char *missing = xasprintf("%s/not/there", fx_root);

	fx_sh("mkdir %s && echo content >%s", dir, file);
	launch_add_mount(l, dir, "/data");
	launch_add_mount(l, dir, "/ro")->readonly = true;
	launch_add_mount(l, file, "/etc/conf/one");
	launch_add_mount(l, missing, "/made")->create_source = true;
	expect(l, 0, "content\nsh: can't create /ro/g: Read-only file system\ncontent\ncontent\n");
	ck_assert_int_eq(access(missing, F_OK), 0);
	fx_sh("grep -q new %s/g", dir);
}
END_TEST

START_TEST(readonly_submounts)
{
	_cleanup_free_ char *dir = xasprintf("%s/vol", fx_root);

	fx_sh("mkdir -p %s/sub && mount -t tmpfs t %s/sub", dir, dir);
	for (int recursive = 0; recursive < 2; recursive++) {
		struct launch *l = fx_container(sandbox, "touch /v/x 2>/dev/null || echo top; touch /v/sub/x 2>/dev/null || echo sub");
		struct launch_mount *m = launch_add_mount(l, dir, "/v");

		m->readonly = true;
		m->recursive_readonly = recursive;
		expect(l, 0, recursive ? "top\nsub\n" : "top\n");
	}
	fx_sh("umount %s/sub", dir);
}
END_TEST

START_TEST(propagation)
{
	_cleanup_free_ char *dir = xasprintf("%s/vol", fx_root);

	fx_sh("mkdir -p %s && mount -t tmpfs t %s && mount --make-shared %s && mkdir %s/a %s/b", dir, dir, dir, dir, dir);
	struct launch *l = fx_container(sandbox, "while ! test -e /v/a/there; do sleep 0.02; done; echo seen");

	launch_add_mount(l, dir, "/v")->propagation = LAUNCH_SLAVE;
	fx_start(pod, l);
	fx_sh("mount -t tmpfs t %s/a && touch %s/a/there", dir, dir);
	ck_assert_int_eq(fx_wait(l).status, 0);
	launch_free(l);

	l = fx_container(sandbox, "mount -t tmpfs t /v/b && touch /v/b/from-inside");
	launch_add_mount(l, dir, "/v")->propagation = LAUNCH_SHARED;
	l->n_seccomp = 0;
	l->caps.effective = l->caps.permitted = l->caps.bounding = ~0ull >> 24 & ~(1ull << CAP_SYS_RESOURCE);
	expect(l, 0, "");
	fx_sh("test -e %s/b/from-inside && umount %s/a %s/b && umount %s", dir, dir, dir, dir);
}
END_TEST

START_TEST(propagation_refused)
{
	struct launch *l = fx_container(sandbox, "true");
	_cleanup_free_ char *dir = xasprintf("%s/vol", fx_root);

	fx_sh("mkdir %s", dir);
	launch_add_mount(l, dir, "/v")->propagation = LAUNCH_SHARED;
	expect_error(l, ERROR_INVALID, "but it is not a shared mount");
	l = fx_container(sandbox, "true");
	launch_add_mount(l, dir, "/v")->propagation = LAUNCH_SLAVE;
	expect_error(l, ERROR_INVALID, "but it is not a shared or slave mount");
}
END_TEST

START_TEST(masks)
{
	struct launch *l = fx_container(sandbox, "wc -c </proc/keys; ls /sys/firmware | wc -l; ls /proc/scsi 2>/dev/null | wc -l; echo 1 2>&1 >/proc/sys/kernel/domainname; touch /x 2>&1");

	strv_add(&l->masked_paths, "/proc/keys");
	strv_add(&l->masked_paths, "/sys/firmware");
	strv_add(&l->masked_paths, "/proc/scsi");
	strv_add(&l->masked_paths, "/proc/not-there");
	strv_add(&l->readonly_paths, "/proc/sys");
	l->rootfs.readonly = true;
	expect(l, 1, "0\n0\n0\nsh: can't create /proc/sys/kernel/domainname: Read-only file system\ntouch: /x: Read-only file system\n");
}
END_TEST

START_TEST(devices)
{
	struct launch *l = fx_container(sandbox, "ls -l /dev/kmsg2 /dev/sub/mem | tr -s ' ' | cut -d' ' -f1,3-6; cat /dev/sub/mem 2>&1 | grep -c 'not permitted'; : >/dev/kmsg2; echo $?");
	struct launch_device *d = launch_add_device(l, "/dev/kmsg2");

	*d = (struct launch_device){ .path = d->path, .type = 'c', .major = 1, .minor = 11, .mode = 0640, .uid = 5, .gid = 6, .access = "w" };
	d = launch_add_device(l, "/dev/sub/mem");
	*d = (struct launch_device){ .path = d->path, .type = 'c', .major = 1, .minor = 1, .mode = 0600 };
	expect(l, 0, "crw-r----- 5 6 1, 11\ncrw------- root 0 1, 1\n1\n0\n");
}
END_TEST

START_TEST(privileged)
{
	struct launch *l = fx_container(sandbox, "test -c /dev/kmsg && dd if=/dev/kmsg bs=1 count=0 2>/dev/null && d=$(ls -d /sys/fs/cgroup/pids || echo /sys/fs/cgroup) 2>/dev/null && mkdir $d/x && rmdir $d/x && unshare -m true && echo ok");

	l->all_devices = l->sys_writable = true;
	free(l->seccomp);
	l->seccomp = NULL;
	l->n_seccomp = 0;
	l->caps.effective = l->caps.permitted = l->caps.bounding = ~0ull >> 23 & ~(1ull << CAP_SYS_RESOURCE);
	expect(l, 0, "ok\n");
}
END_TEST

START_TEST(terminal)
{
	struct launch *l = fx_container(sandbox, "tty; test -t 0 && test -t 1 && test -t 2 && echo terminal; ls -l /dev/console | cut -c1; stty size >/dev/null && ps -o tty | tail -n1");

	l->tty = true;
	strv_add(&l->env, "TERM=xterm");
	_cleanup_free_ char *log = fx_run(pod, l, 0);
	ck_assert_msg(strstr(log, "/dev/pts/0\nterminal\nc\n"), "%s", log);
	launch_free(l);
}
END_TEST

START_TEST(limits)
{
	struct launch *l = fx_container(sandbox, "cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/cpu/cpu.shares /sys/fs/cgroup/cpu/cpu.cfs_quota_us /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/cpuset/cpuset.cpus");

	if (cgroup_mode() == CGROUP_V2)
		return;
	l->limits = (struct cgroup_limits){ .memory_bytes = 64 << 20, .cpu_shares = 512, .cpu_quota_us = 50000, .cpu_period_us = 100000,
		.pids_max = 77, .cpuset_cpus = xstrdup("0") };
	expect(l, 0, "67108864\n512\n50000\n77\n0\n");
}
END_TEST

START_TEST(oom)
{
	/* Case 7: named each time, not by a race won. */
	for (int i = 0; i < 50; i++) {
		struct launch *l = fx_container(sandbox, "exec dd if=/dev/zero of=/dev/null bs=40M");

		l->limits.memory_bytes = l->limits.memory_swap_bytes = 15 << 20;
		fx_start(pod, l);
		struct exit_record e = fx_wait(l);
		ck_assert_int_eq(e.status, 137);
		ck_assert(e.oom);
		ck_assert_int_eq(pod_container_remove(l->cgroup, NULL), 0);
		launch_free(l);
	}
}
END_TEST

START_TEST(signals)
{
	struct launch *l = fx_container(sandbox, "trap 'echo term; exit 3' TERM; echo up; while :; do sleep 0.05; done");

	fx_start(pod, l);
	for (int i = 0; i < 100; i++) {
		_cleanup_free_ char *log = fx_log(l);

		if (strstr(log, "up"))
			break;
		usleep(10000);
	}
	ck_assert_int_eq(pod_container_signal(pod, l->id, SIGTERM, NULL), 0);
	ck_assert_int_eq(fx_wait(l).status, 3);
	ck_assert_int_eq(pod_container_signal(pod, l->id, SIGTERM, NULL), 0); /* gone already */
	launch_free(l);

	l = fx_container(sandbox, "sleep 100");
	fx_start(pod, l);
	ck_assert_int_eq(pod_container_signal(pod, l->id, SIGKILL, NULL), 0);
	struct exit_record e = fx_wait(l);
	ck_assert_int_eq(e.status, 137);
	ck_assert(!e.oom);
	launch_free(l);

	l = fx_container(sandbox, NULL);
	strv_add(&l->args, "sleep");
	strv_add(&l->args, "100");
	l->pid = LAUNCH_NS_NODE; /* as PID 1 it would be immune */
	fx_start(pod, l);
	ck_assert_int_eq(pod_container_signal(pod, l->id, SIGTERM, NULL), 0);
	ck_assert_int_eq(fx_wait(l).status, 143);
	launch_free(l);
}
END_TEST

START_TEST(kill_all)
{
	struct launch *l = fx_container(sandbox, "sleep 100 & sleep 100 & setsid sleep 100 & wait");
	pid_t *pids;
	size_t n = 0;

	l->pid = LAUNCH_NS_NODE;
	fx_start(pod, l);
	for (int i = 0; i < 500 && n < 4; i++) {
		usleep(10000);
		ck_assert_int_eq(cgroup_pids(l->cgroup, &pids, &n, NULL), 0);
		free(pids);
	}
	ck_assert_int_ge((int)n, 4);
	ck_assert_int_eq(pod_container_kill_all(pod, l->id, NULL), 0);
	ck_assert_int_eq(fx_wait(l).status, 137);
	ck_assert_int_eq(pod_container_remove(l->cgroup, NULL), 0);
	launch_free(l);

	/* The end of the first process takes the others along, in whatever PID namespace. */
	l = fx_container(sandbox, "setsid sleep 100 & exit 0");
	l->pid = LAUNCH_NS_NODE;
	_cleanup_free_ char *log = fx_run(pod, l, 0);
	ck_assert_int_eq(cgroup_kill(l->cgroup, 2000, NULL), 0);
	ck_assert_int_eq(cgroup_remove(l->cgroup, NULL), 0);
	launch_free(l);
}
END_TEST

START_TEST(commands)
{
	static const struct {
		const char *command, *text;
		enum error_code code;
	} cases[] = {
		{ "nosuch", "exec: \"nosuch\": executable file not found in $PATH", ERROR_NOT_FOUND },
		{ "/no/such", "exec: \"/no/such\": stat /no/such: no such file or directory", ERROR_NOT_FOUND },
		{ "/etc/passwd", "exec: \"/etc/passwd\": permission denied", ERROR_DENIED },
		{ "/etc", "exec: \"/etc\": permission denied", ERROR_DENIED },
		{ "/bin/script", "the interpreter of /bin/script is missing", ERROR_NOT_FOUND },
		{ "/bin/garbage", "exec format error", ERROR_INVALID },
	};

	fx_sh("printf '#!/bin/nosuch\\n' >%s/layer/bin/script; printf '\\001\\002' >%s/layer/bin/garbage; chmod 755 %s/layer/bin/script %s/layer/bin/garbage",
		fx_root, fx_root, fx_root, fx_root);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct launch *l = fx_container(sandbox, NULL);

		strv_add(&l->args, cases[i].command);
		expect_error(l, cases[i].code, cases[i].text);
	}
}
END_TEST

START_TEST(bad_plans)
{
	struct launch *l = fx_container(sandbox, "true");

	launch_add_mount(l, "/no/such/source", "/x");
	expect_error(l, ERROR_INTERNAL, "mount /x: source /no/such/source");
	l = fx_container(sandbox, "true");
	launch_add_mount(l, "/tmp", "relative");
	expect_error(l, ERROR_INVALID, "must be an absolute path");
	l = fx_container(sandbox, "true");
	launch_add_mount(l, "/tmp", "/proc/self");
	expect_error(l, ERROR_INVALID, "inside of /proc");
	l = fx_container(sandbox, "true");
	l->pid = LAUNCH_NS_POD;
	expect_error(l, ERROR_PRECONDITION, "shares no PID namespace");
	l = fx_container(sandbox, "true");
	l->pid = LAUNCH_NS_TARGET;
	l->pid_target = xstrdup("nobody");
	expect_error(l, ERROR_PRECONDITION, "does not run");
	l = fx_container(sandbox, "true");
	l->limits.cpuset_cpus = xstrdup("4000");
	expect_error(l, ERROR_INTERNAL, "cpuset (cpus \"4000\"");
}
END_TEST

START_TEST(hostile_links)
{
	/* The image points /etc, /dev and a volume's target out of itself. */
	struct launch *l = fx_container(sandbox, "cat /etc/marker; test -c /dev/null && echo null; cat /deep/vol/f");
	_cleanup_free_ char *dir = xasprintf("%s/vol", fx_root);

	fx_sh("mkdir %s/outside %s/vol && echo content >%s/vol/f && cd %s/layer && rm -r etc && ln -s ../../../../..%s/outside etc && ln -s ../../../../../../etc dev && ln -s /var/lib/deep deep && "
	      "mkdir -p var/lib", fx_root, fx_root, fx_root, fx_root, fx_root);
	launch_add_mount(l, dir, "/deep/vol");
	_cleanup_free_ char *marker = xasprintf("%s/vol/f", fx_root);
	launch_add_mount(l, marker, "/etc/marker");
	_cleanup_free_ char *log = fx_run(pod, l, 0);
	ck_assert_str_eq(log, "content\nnull\ncontent\n");
	fx_sh("test -z \"$(ls %s/outside)\"", fx_root);
	launch_free(l);

	l = fx_container(sandbox, "true");
	fx_sh("cd %s/layer && ln -s /etc proc", fx_root);
	expect_error(l, ERROR_INVALID, "mount /proc: is a symbolic link in the image");
}
END_TEST

START_TEST(layers)
{
	struct launch *l = fx_container(sandbox, "cat /one /two /both");
	_cleanup_(strv_done) struct strv lower = STRV_INIT;

	for (int i = 0; i < 60; i++) {
		_cleanup_free_ char *dir = xasprintf("%s/l%d", fx_root, i);

		fx_sh("mkdir %s && echo %d >%s/both", dir, i, dir);
		strv_add(&lower, dir);
	}
	fx_sh("echo 1 >%s/l3/one; echo 2 >%s/l59/two", fx_root, fx_root);
	strv_add(&lower, l->rootfs.lower.v[0]);
	strv_done(&l->rootfs.lower);
	l->rootfs.lower = lower;
	lower = STRV_INIT;
	expect(l, 0, "1\n2\n0\n");
}
END_TEST

START_TEST(pid_namespaces)
{
	struct launch *a = fx_container(sandbox, "sleep 100"), *b = fx_container(sandbox, "ps | grep -c '[s]leep 100'");

	fx_start(pod, a);
	b->pid = LAUNCH_NS_TARGET;
	b->pid_target = xstrdup(a->id);
	_cleanup_free_ char *log = fx_run(pod, b, 0);
	ck_assert_msg(str_starts(log, "1\n") || str_starts(log, "2\n"), "%s", log);
	launch_free(a);
	launch_free(b);
}
END_TEST

START_TEST(log_format)
{
	/* 40 000 bytes make two full P records and the rest; both streams go into one file. */
	struct launch *l = fx_container(sandbox, "head -c 40000 /dev/zero | tr '\\0' x; echo; echo err >&2");
	_cleanup_free_ char *text = NULL;
	int p = 0, f = 0, bytes = 0;

	fx_start(pod, l);
	ck_assert_int_eq(fx_wait(l).status, 0);
	ck_assert_int_eq(file_read(AT_FDCWD, l->log_path, 1 << 20, &text, NULL, NULL), 0);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		int year, month, day, h, m, s, at = 0;
		long ns;
		char stream[8], tag;

		ck_assert_int_eq(sscanf(line, "%4d-%2d-%2dT%2d:%2d:%2d.%9ldZ %6s %c %n", &year, &month, &day, &h, &m, &s, &ns, stream, &tag, &at), 9);
		if (str_eq(stream, "stderr")) {
			ck_assert_str_eq(line + at, "err");
			ck_assert_int_eq(tag, 'F');
			continue;
		}
		p += tag == 'P';
		f += tag == 'F';
		bytes += (int)strlen(line + at);
		ck_assert_int_le((int)strlen(line + at), 16384);
	}
	ck_assert_int_eq(p, 2);
	ck_assert_int_eq(f, 1);
	ck_assert_int_eq(bytes, 40000);
	launch_free(l);
}
END_TEST

START_TEST(log_large)
{
	struct launch *l = fx_container(sandbox, "seq 1 200000");
	_cleanup_free_ char *log = fx_run(pod, l, 0);

	ck_assert_int_eq((int)strlen(log), 1288895);
	ck_assert(str_ends(log, "\n199999\n200000\n"));
	launch_free(l);
}
END_TEST

START_TEST(log_reopen)
{
	struct launch *l = fx_container(sandbox, "i=0; while [ $i -lt 400 ]; do i=$((i+1)); echo $i; done; sleep 0.5; echo last");
	_cleanup_free_ char *old = NULL, *new = NULL;
	struct error err = ERROR_INIT;

	fx_start(pod, l);
	usleep(200000);
	old = xasprintf("%s.1", l->log_path);
	ck_assert_int_eq(rename(l->log_path, old), 0);
	ck_assert_msg(pod_container_reopen_log(pod, l->id, l->log_path, &err) == 0, "%s", err.text);
	ck_assert_int_eq(access(l->log_path, F_OK), 0);
	ck_assert_int_eq(fx_wait(l).status, 0);
	new = fx_log(l);
	ck_assert_str_eq(new, "last\n");
	ck_assert_int_eq(pod_container_reopen_log(pod, l->id, l->log_path, &err), -EBUSY);
	ck_assert_int_eq(err.code, ERROR_PRECONDITION);
	launch_free(l);
}
END_TEST

START_TEST(log_full_disk)
{
	/* A full disk neither stops the container nor tears a record. */
	struct launch *l = fx_container(sandbox, "seq 1 100000; echo done >/tmp/done");
	_cleanup_free_ char *text = NULL;
	size_t len;

	fx_sh("mkdir %s/full && mount -t tmpfs -o size=64k t %s/full", fx_root, fx_root);
	free(l->log_path);
	l->log_path = xasprintf("%s/full/log", fx_root);
	fx_start(pod, l);
	struct exit_record e = fx_wait(l);
	ck_assert_int_eq(e.status, 0);
	ck_assert_int_gt((int)e.log_dropped, 100000);
	ck_assert_int_eq(file_read(AT_FDCWD, l->log_path, 1 << 20, &text, &len, NULL), 0);
	ck_assert_int_eq(text[len - 1], '\n');
	fx_sh("umount %s/full", fx_root);
	launch_free(l);
}
END_TEST

START_TEST(large_plan)
{
	/* A megabyte of environment does not fit into any packet; hundreds of mounts take hundreds of descriptors. */
	struct launch *l = fx_container(sandbox, "env | grep -c ^BIG; ls /m | wc -l; cat /m/299");
	_cleanup_free_ char *file = xasprintf("%s/one", fx_root);

	fx_sh("echo content >%s", file);
	for (int i = 0; i < 10; i++) {
		_cleanup_free_ char *value = xmalloc(100001);

		memset(value, 'x', 100000);
		value[100000] = '\0';
		strv_add_take(&l->env, xasprintf("BIG%d=%s", i, value));
	}
	for (int i = 0; i < 300; i++) {
		_cleanup_free_ char *target = xasprintf("/m/%d", i);

		launch_add_mount(l, file, target);
	}
	expect(l, 0, "10\n300\ncontent\n");
}
END_TEST

START_TEST(start_time_out)
{
	/* Whatever moment it is cut at: an error, and nothing is left. */
	for (unsigned i = 0; i < 30; i++) {
		struct launch *l = fx_container(sandbox, "exec sleep 1000");
		struct error err = ERROR_INIT;
		pid_t pid;
		uint64_t started;

		if (pod_container_start(pod, l, 1 + i % 6, &pid, &started, &err) < 0) {
			ck_assert_int_eq(err.code, ERROR_DEADLINE);
			ck_assert(!cgroup_exists(l->cgroup));
		} else {
			ck_assert_int_eq(pod_container_remove(l->cgroup, &err), 0);
		}
		launch_free(l);
	}
}
END_TEST

static void add_tests(TCase *c)
{
	tcase_add_test(c, large_plan);
	tcase_add_test(c, start_time_out);
	tcase_add_loop_test(c, script, 0, ARRAY_LEN(scripts));
	tcase_add_test(c, users);
	tcase_add_test(c, ambient);
	tcase_add_test(c, no_new_privs);
	tcase_add_test(c, rlimits_and_cwd);
	tcase_add_test(c, mounts);
	tcase_add_test(c, readonly_submounts);
	tcase_add_test(c, propagation);
	tcase_add_test(c, propagation_refused);
	tcase_add_test(c, masks);
	tcase_add_test(c, devices);
	tcase_add_test(c, privileged);
	tcase_add_test(c, terminal);
	tcase_add_test(c, limits);
	tcase_add_test(c, oom);
	tcase_add_test(c, signals);
	tcase_add_test(c, kill_all);
	tcase_add_test(c, commands);
	tcase_add_test(c, bad_plans);
	tcase_add_test(c, hostile_links);
	tcase_add_test(c, layers);
	tcase_add_test(c, pid_namespaces);
	tcase_add_test(c, log_format);
	tcase_add_test(c, log_large);
	tcase_add_test(c, log_reopen);
	tcase_add_test(c, log_full_disk);
}

int main(void)
{
	Suite *s = suite_create("container");
	TCase *c = tcase_create("container");
	const char *missing = fx_missing();

	if (missing)
		printf("skipped: %s\n", missing);
	else
		add_tests(c);
	tcase_add_checked_fixture(c, setup, teardown);
	tcase_set_timeout(c, 60);
	suite_add_tcase(s, c);
	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}

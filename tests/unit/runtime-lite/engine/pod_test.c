/* pod_test.c - purpose: a pod's life: start, a daemon that dies, a monitor that dies or hangs, many pods, nothing left. */
#include "tests/unit/runtime-lite/engine/fixture.h"

#include <poll.h>
#include <sched.h>

static void setup(void)
{
	fx_setup();
}

static void teardown(void)
{
	fx_teardown();
}

static struct pod_event wait_event(struct pod_monitor *m, int timeout_ms)
{
	struct pollfd p = { .fd = pod_monitor_fd(m), .events = POLLIN };
	struct pod_event e = { .kind = POD_EVENT_NONE };

	for (int i = 0; i < 10 && pod_monitor_next_event(m, &e) == 0; i++)
		ck_assert_int_eq(poll(&p, 1, timeout_ms), 1);
	return e;
}

static bool alive(pid_t pid)
{
	char path[32], state;
	_cleanup_free_ char *text = NULL;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (file_read(AT_FDCWD, path, 4096, &text, NULL, NULL) < 0)
		return false;
	state = strrchr(text, ')')[2];
	return state != 'Z' && state != 'X';
}

static void wait_gone(pid_t pid)
{
	for (int i = 0; i < 200 && alive(pid); i++)
		usleep(10000);
	ck_assert(!alive(pid));
}

START_TEST(empty)
{
	struct sandbox_launch *s = fx_sandbox();
	struct pod_monitor *m = fx_start_pod(s);
	pid_t pid = pod_monitor_pid(m);
	struct error err = ERROR_INIT;
	int netns = pod_monitor_netns(m);
	struct stat ours, pods;

	ck_assert_int_ge(netns, 0);
	ck_assert_int_eq(fstat(netns, &pods), 0);
	ck_assert_int_eq(stat("/proc/self/ns/net", &ours), 0);
	ck_assert(ours.st_ino != pods.st_ino);
	close(netns);
	ck_assert_int_eq(getsid(pid) == getsid(0), 0);
	ck_assert_msg(pod_monitor_stop(m, &err) == 0, "%s", err.text);
	ck_assert_msg(pod_monitor_stop(m, &err) == 0, "again: %s", err.text);
	ck_assert_int_eq(wait_event(m, 1000).kind, POD_EVENT_GONE);
	wait_gone(pid);
	pod_monitor_free(m);
	ck_assert_msg(pod_cleanup(s->dir, &err) == 0, "%s", err.text);
	fx_sh("! grep -q %s/shm /proc/mounts", s->dir);
	sandbox_launch_free(s);
}
END_TEST

START_TEST(node_namespaces)
{
	struct sandbox_launch *s = fx_sandbox();
	struct stat ours, pods;

	s->net = s->ipc = LAUNCH_NS_NODE;
	free(s->hostname);
	s->hostname = NULL;
	struct pod_monitor *m = fx_start_pod(s);
	struct launch *l = fx_container(s, "readlink /proc/self/ns/net");
	_cleanup_free_ char *log = fx_run(m, l, 0);
	int netns = pod_monitor_netns(m);

	ck_assert_int_eq(fstat(netns, &pods), 0);
	ck_assert_int_eq(stat("/proc/self/ns/net", &ours), 0);
	ck_assert(ours.st_ino == pods.st_ino);
	close(netns);
	launch_free(l);
	fx_stop(m, s);
}
END_TEST

START_TEST(sysctls)
{
	struct sandbox_launch *s = fx_sandbox(), *bad = fx_sandbox();
	struct error err = ERROR_INIT;
	struct pod_monitor *m;

	sandbox_launch_add_sysctl(s, "net.ipv4.ip_unprivileged_port_start", "0");
	sandbox_launch_add_sysctl(s, "kernel.shm_rmid_forced", "1");
	sandbox_launch_add_sysctl(s, "net/ipv4/conf/lo/rp_filter", "2");
	m = fx_start_pod(s);
	struct launch *l = fx_container(s, "cat /proc/sys/net/ipv4/ip_unprivileged_port_start /proc/sys/kernel/shm_rmid_forced /proc/sys/net/ipv4/conf/lo/rp_filter");
	_cleanup_free_ char *log = fx_run(m, l, 0);

	ck_assert_str_eq(log, "0\n1\n2\n");
	launch_free(l);
	fx_stop(m, s);

	sandbox_launch_add_sysctl(bad, "kernel.core_pattern", "|/bin/x");
	ck_assert_int_eq(pod_monitor_start(bad, fx_libexec, &m, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "is not namespaced"));
	bad->sysctls[0].name[0] = '\0';
	strcpy(bad->sysctls[0].name, "net.nosuch");
	ck_assert_int_lt(pod_monitor_start(bad, fx_libexec, &m, &err), 0);
	ck_assert_ptr_nonnull(strstr(err.text, "set sysctl net.nosuch = |/bin/x"));
	ck_assert(!cgroup_exists(bad->cgroup));
	fx_sh("! grep -q %s/shm /proc/mounts", bad->dir);
	sandbox_launch_free(bad);
}
END_TEST

START_TEST(shared_pid)
{
	struct sandbox_launch *s = fx_sandbox();

	s->shared_pid = true;
	struct pod_monitor *m = fx_start_pod(s);
	struct launch *a = fx_container(s, "exec sleep 1000"), *b = fx_container(s, "until pidof sleep >/dev/null; do usleep 10000; done; ps -o pid,comm | grep -E 'sleep|init' | tr -s ' '; kill $(pidof sleep); (sleep 0.05 &); sleep 0.2");

	a->pid = b->pid = LAUNCH_NS_POD;
	fx_start(m, a);
	_cleanup_free_ char *log = fx_run(m, b, 0);
	ck_assert_msg(strstr(log, "1 pod-init\n") && strstr(log, "sleep\n"), "%s", log);
	ck_assert_int_eq(fx_wait(a).status, 143);
	launch_free(a);
	launch_free(b);
	fx_stop(m, s);
}
END_TEST

START_TEST(events)
{
	struct sandbox_launch *s = fx_sandbox();
	struct pod_monitor *m = fx_start_pod(s);
	struct launch *l = fx_container(s, "exit 5");
	struct exit_record record;
	pid_t pid;
	uint64_t started;

	fx_start(m, l);
	struct pod_event e = wait_event(m, 2000);

	ck_assert_int_eq(e.kind, POD_EVENT_EXITED);
	ck_assert_str_eq(e.container_id, l->id);
	ck_assert_int_eq(e.exit.status, 5);
	ck_assert_int_eq(pod_container_exit(l->dir, &record, NULL), 0); /* there before the event */
	ck_assert_int_eq(record.status, 5);
	ck_assert(record.finished_ns == e.exit.finished_ns);
	ck_assert_int_eq(pod_container_pid(l->dir, &pid, &started, NULL), 0);
	ck_assert(started <= record.finished_ns && clock_realtime_ns() - started < 60000000000ull);
	launch_free(l);
	fx_stop(m, s);
}
END_TEST

/* The daemon is killed; its monitors and containers go on, and what happened meanwhile is found. */
START_TEST(daemon_dies)
{
	struct sandbox_launch *s = fx_sandbox();
	struct launch *a = fx_container(s, "sleep 0.3; echo later; exit 9"), *b = fx_container(s, "exec sleep 1000");
	struct pod_monitor *m = NULL;
	struct error err = ERROR_INIT;
	pid_t pid = fork();

	if (pid == 0) {
		m = fx_start_pod(s);
		fx_start(m, a);
		fx_start(m, b);
		kill(getpid(), SIGKILL);
	}
	waitpid(pid, NULL, 0);
	usleep(600000);
	ck_assert_msg(pod_monitor_connect(s->dir, &m, &err) == 0, "%s", err.text);
	struct exit_record e = fx_wait(a);
	_cleanup_free_ char *log = fx_log(a);

	ck_assert_int_eq(e.status, 9);
	ck_assert_str_eq(log, "later\n");
	ck_assert_int_eq(pod_container_exit(b->dir, &e, NULL), -ENOENT);
	ck_assert_int_eq(pod_container_signal(m, b->id, SIGKILL, NULL), 0);
	ck_assert_str_eq(wait_event(m, 2000).container_id, b->id);
	launch_free(a);
	launch_free(b);
	fx_stop(m, s);
}
END_TEST

START_TEST(monitor_dies)
{
	struct sandbox_launch *s = fx_sandbox();
	struct pod_monitor *m = fx_start_pod(s), *again = NULL;
	struct launch *a = fx_container(s, "sleep 1000 & sleep 1000"), *b = fx_container(s, "sleep 1000 & sleep 1000");
	struct error err = ERROR_INIT;
	struct exit_record e;
	pid_t pid;
	uint64_t started;

	b->pid = LAUNCH_NS_NODE;
	fx_start(m, a);
	fx_start(m, b);
	ck_assert_int_eq(pod_container_pid(a->dir, &pid, &started, NULL), 0);
	kill(pod_monitor_pid(m), SIGKILL);
	ck_assert_int_eq(wait_event(m, 1000).kind, POD_EVENT_GONE);
	wait_gone(pid); /* by PDEATHSIG */
	ck_assert_int_eq(pod_monitor_connect(s->dir, &again, &err), -ENOENT);
	ck_assert_int_eq(err.code, ERROR_NOT_FOUND);
	ck_assert_int_eq(pod_container_signal(m, a->id, SIGTERM, &err), 0);
	ck_assert_msg(pod_cleanup(s->dir, &err) == 0, "%s", err.text);
	ck_assert_int_eq(pod_container_exit(a->dir, &e, NULL), 0);
	ck_assert_int_eq(e.status, 137);
	ck_assert_int_eq(pod_container_exit(b->dir, &e, NULL), 0);
	launch_free(a);
	launch_free(b);
	fx_stop(m, s);
}
END_TEST

START_TEST(monitor_hangs)
{
	struct sandbox_launch *s = fx_sandbox(), *other = fx_sandbox();
	struct pod_monitor *m = fx_start_pod(s), *fine = fx_start_pod(other);
	struct launch *l = fx_container(s, "exec sleep 1000");
	struct error err = ERROR_INIT;

	fx_start(m, l);
	kill(pod_monitor_pid(m), SIGSTOP);
	uint64_t begin = clock_monotonic_ns();
	ck_assert_int_eq(pod_container_signal(m, l->id, SIGTERM, &err), -ETIMEDOUT);
	ck_assert_int_eq(err.code, ERROR_DEADLINE);
	ck_assert(clock_monotonic_ns() - begin < 12000000000ull);
	fx_stop(fine, other);
	launch_free(l);
	fx_stop(m, s); /* kills it after its time-out */
}
END_TEST

START_TEST(directory_goes)
{
	struct sandbox_launch *s = fx_sandbox();
	struct pod_monitor *m = fx_start_pod(s);
	struct launch *l = fx_container(s, "exec sleep 1000");

	fx_start(m, l);
	fx_sh("umount %s/shm && rm -rf %s", s->dir, s->dir);
	ck_assert_int_eq(wait_event(m, 2000).kind, POD_EVENT_EXITED);
	ck_assert_int_eq(wait_event(m, 2000).kind, POD_EVENT_GONE);
	pod_monitor_free(m);
	ck_assert_int_eq(cgroup_kill(s->cgroup, 2000, NULL), 0);
	ck_assert_int_eq(cgroup_remove(s->cgroup, NULL), 0);
	launch_free(l);
	sandbox_launch_free(s);
}
END_TEST

START_TEST(terminated_with_node)
{
	/* SIGTERM, as a node that shuts down sends it to all: not while a container runs, but after it. */
	struct sandbox_launch *s = fx_sandbox();
	struct pod_monitor *m = fx_start_pod(s);
	struct launch *l = fx_container(s, "sleep 0.4; exit 6");
	pid_t pid = pod_monitor_pid(m);

	fx_start(m, l);
	kill(pid, SIGTERM);
	ck_assert_int_eq(fx_wait(l).status, 6);
	wait_gone(pid);
	launch_free(l);
	fx_stop(m, s);
}
END_TEST

START_TEST(existing_socket)
{
	struct sandbox_launch *s = fx_sandbox();
	struct pod_monitor *m = NULL;
	struct error err = ERROR_INIT;

	ck_assert_int_lt(pod_monitor_start(s, "/nonexistent", &m, &err), 0);
	ck_assert_msg(strstr(err.text, "run /nonexistent/monitor: No such file"), "%s", err.text);
	ck_assert(!cgroup_exists(s->cgroup));
	m = fx_start_pod(s); /* the failed one left nothing in the way */
	fx_stop(m, s);
}
END_TEST

START_TEST(outsider)
{
	/* Only root may speak to a monitor, and a wrong packet does no harm. */
	struct sandbox_launch *s = fx_sandbox();
	struct pod_monitor *m = fx_start_pod(s);
	struct stat st;
	_cleanup_free_ char *path = xasprintf("%s/monitor.sock", s->dir);

	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(st.st_mode & 0777, 0600);
	struct launch *l = fx_container(s, "true");
	free(fx_run(m, l, 0));
	launch_free(l);
	fx_stop(m, s);
}
END_TEST

/* PSS of the process in kB. */
static long pss_kb(pid_t pid)
{
	char path[64];
	_cleanup_free_ char *text = NULL;

	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
	ck_assert_int_eq(file_read(AT_FDCWD, path, 65536, &text, NULL, NULL), 0);
	return atol(strstr(text, "\nPss:") + 5);
}

START_TEST(fifty_pods)
{
	enum { PODS = 50 };
	struct sandbox_launch *s[PODS];
	struct pod_monitor *m[PODS];
	struct launch *l[PODS];
	long sum = 0;
	uint64_t begin = clock_monotonic_ns();

	for (int i = 0; i < PODS; i++) {
		s[i] = fx_sandbox();
		m[i] = fx_start_pod(s[i]);
		l[i] = fx_container(s[i], "exec sleep 1000");
		fx_start(m[i], l[i]);
	}
	printf("%d pods: %.1f ms each\n", PODS, (double)(clock_monotonic_ns() - begin) / 1e6 / PODS);
	for (int i = 0; i < PODS; i++)
		sum += pss_kb(pod_monitor_pid(m[i]));
	printf("monitor: %ld kB PSS\n", sum / PODS);
	ck_assert_int_lt(sum / PODS, 150);
	/* R1: some die at the same moment as their containers. */
	for (int i = 0; i < PODS; i += 3) {
		pid_t pid;
		uint64_t started;

		ck_assert_int_eq(pod_container_pid(l[i]->dir, &pid, &started, NULL), 0);
		if (i % 2)
			kill(pid, SIGKILL);
		kill(pod_monitor_pid(m[i]), SIGKILL);
	}
	for (int i = 0; i < PODS; i++) {
		fx_stop(m[i], s[i]);
		launch_free(l[i]);
	}
}
END_TEST

START_TEST(deletion_at_exit)
{
	/* R13: the last process ends at the moment the pod is deleted. */
	for (int i = 0; i < 40; i++) {
		struct sandbox_launch *s = fx_sandbox();
		struct pod_monitor *m = fx_start_pod(s);
		struct launch *l = fx_container(s, "usleep 3000");

		fx_start(m, l);
		usleep((unsigned)(i % 10) * 1000);
		fx_stop(m, s);
		launch_free(l);
	}
}
END_TEST

START_TEST(zombies)
{
	/* Orphans of a container in the node's PID namespace come to the monitor. */
	struct sandbox_launch *s = fx_sandbox();
	struct pod_monitor *m = fx_start_pod(s);
	struct launch *l = fx_container(s, "for i in 1 2 3 4 5; do (setsid sleep 0.05 &) ; done; sleep 0.3");

	l->pid = LAUNCH_NS_NODE;
	free(fx_run(m, l, 0));
	fx_sh("test -z \"$(cat /proc/%d/task/%d/children)\"", (int)pod_monitor_pid(m), (int)pod_monitor_pid(m));
	launch_free(l);
	fx_stop(m, s);
}
END_TEST

static void add_tests(TCase *c)
{
	tcase_add_test(c, empty);
	tcase_add_test(c, node_namespaces);
	tcase_add_test(c, sysctls);
	tcase_add_test(c, shared_pid);
	tcase_add_test(c, events);
	tcase_add_test(c, daemon_dies);
	tcase_add_test(c, monitor_dies);
	tcase_add_test(c, monitor_hangs);
	tcase_add_test(c, directory_goes);
	tcase_add_test(c, terminated_with_node);
	tcase_add_test(c, existing_socket);
	tcase_add_test(c, outsider);
	tcase_add_test(c, fifty_pods);
	tcase_add_test(c, deletion_at_exit);
	tcase_add_test(c, zombies);
}

int main(void)
{
	Suite *s = suite_create("pod");
	TCase *c = tcase_create("pod");
	const char *missing = fx_missing();

	if (missing)
		printf("skipped: %s\n", missing);
	else
		add_tests(c);
	tcase_add_checked_fixture(c, setup, teardown);
	tcase_set_timeout(c, 120);
	suite_add_tcase(s, c);
	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}

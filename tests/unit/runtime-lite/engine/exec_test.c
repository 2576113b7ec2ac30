/* exec_test.c - purpose: commands in a running container: their surroundings, output, time-outs and left-overs. */
#include "tests/unit/runtime-lite/engine/fixture.h"

#include <pthread.h>

enum { MAX_OUTPUT = 8 << 20 };

static struct sandbox_launch *sandbox;
static struct pod_monitor *pod;
static struct launch *container;

static void setup(void)
{
	fx_setup();
	sandbox = fx_sandbox();
	pod = fx_start_pod(sandbox);
	container = fx_container(sandbox, "exec sleep 1000");
	fx_start(pod, container);
}

static void teardown(void)
{
	launch_free(container);
	fx_stop(pod, sandbox);
	fx_teardown();
}

struct output {
	struct str out, err;
	struct exec_result result;
	struct error error;
	int r;
	double seconds;
};

static struct output exec_in(const char *script, uint64_t timeout_ms)
{
	struct exec_spec spec = { .timeout_ns = timeout_ms * 1000000 };
	struct output o = { .error = ERROR_INIT };
	uint64_t begin = clock_monotonic_ns();

	strv_add(&spec.args, "sh");
	strv_add(&spec.args, "-c");
	strv_add(&spec.args, script);
	strv_add(&spec.env, "KEY=other");
	strv_add(&spec.env, "MORE=1");
	o.r = pod_exec_sync(pod, container->dir, &spec, MAX_OUTPUT, &o.out, &o.err, &o.result, &o.error);
	o.seconds = (double)(clock_monotonic_ns() - begin) / 1e9;
	strv_done(&spec.args);
	strv_done(&spec.env);
	return o;
}

static void output_done(struct output *o)
{
	str_done(&o->out);
	str_done(&o->err);
}

static size_t cgroup_processes(void)
{
	pid_t *pids = NULL;
	size_t n = 0;

	ck_assert_int_eq(cgroup_pids(container->cgroup, &pids, &n, NULL), 0);
	free(pids);
	return n;
}

static void expect_processes(size_t want)
{
	for (int i = 0; i < 100 && cgroup_processes() != want; i++)
		usleep(10000);
	ck_assert_int_eq((int)cgroup_processes(), (int)want);
}

static const struct {
	const char *name, *script;
	int status;
	const char *out, *err;
} scripts[] = {
	{ "output and code", "echo out; echo err >&2; exit 3", 3, "out\n", "err\n" },
	{ "environment", "echo $KEY $MORE $PATH", 0, "other 1 /bin\n", "" },
	{ "same namespaces", "hostname; readlink /proc/1/exe; for n in mnt net ipc uts pid cgroup; do test $(readlink /proc/1/ns/$n) = $(readlink /proc/self/ns/$n) || echo $n; done", 0,
		"test-pod\n/bin/busybox\n", "" },
	{ "confined alike", "grep -E 'CapEff|NoNew|Seccomp:' /proc/self/status | tr -d '\\t'", 0, "CapEff:00000000a80425fb\nNoNewPrivs:0\nSeccomp:2\n", "" },
	{ "in the cgroup", "cut -d: -f3 /proc/self/cgroup | sed 's,exec-.*,,' | sort -u", 0, "/\n", "" },
	{ "descriptors", "ls /proc/self/fd | tr '\\n' ' '", 0, "0 1 2 3 ", "" },
	{ "killed", "kill -9 $$", 137, "", "" },
	{ "terminated", "kill -15 $$", 143, "", "" },
	{ "stdin is empty", "cat", 0, "", "" },
};

START_TEST(script)
{
	struct output o = exec_in(scripts[_i].script, 10000);

	ck_assert_msg(o.r == 0, "%s", o.error.text);
	ck_assert_int_eq(o.result.status, scripts[_i].status);
	ck_assert_str_eq(str_get(&o.out), scripts[_i].out);
	ck_assert_str_eq(str_get(&o.err), scripts[_i].err);
	output_done(&o);
	expect_processes(1);
}
END_TEST

START_TEST(large_output)
{
	struct output o = exec_in("seq 1 300000", 0);

	ck_assert_int_eq(o.r, 0);
	ck_assert_int_eq((int)o.out.len, 1988895);
	output_done(&o);
	o = exec_in("head -c 20000000 /dev/zero", 0);
	ck_assert_int_eq(o.r, 0);
	ck_assert_int_eq((int)o.out.len, MAX_OUTPUT);
	output_done(&o);
}
END_TEST

START_TEST(time_out)
{
	struct output o = exec_in("setsid sleep 100 & sleep 100", 300);

	ck_assert_int_lt(o.r, 0);
	ck_assert_int_eq(o.error.code, ERROR_DEADLINE);
	ck_assert_ptr_nonnull(strstr(o.error.text, "timeout 0.3s exceeded"));
	ck_assert(o.seconds < 1.5);
	expect_processes(1);
	output_done(&o);
}
END_TEST

START_TEST(background_holds_the_pipe)
{
	/* Case 2: the shell is gone at once, its child keeps stdout. */
	struct output o = exec_in("sleep 20 & echo here", 5000);

	ck_assert_msg(o.r == 0, "%s", o.error.text);
	ck_assert_int_eq(o.result.status, 0);
	ck_assert_str_eq(str_get(&o.out), "here\n");
	ck_assert(o.seconds < 2);
	output_done(&o);
	expect_processes(2); /* it lives on, in the container's own cgroup */
	ck_assert_int_eq(pod_container_signal(pod, container->id, SIGKILL, NULL), 0);
	fx_wait(container);
	ck_assert_int_eq(cgroup_remove(container->cgroup, NULL), 0);
}
END_TEST

START_TEST(no_command)
{
	struct exec_spec spec = { 0 };
	struct error err = ERROR_INIT;
	struct str out = STR_INIT, errors = STR_INIT;
	struct exec_result result;

	strv_add(&spec.args, "nosuch");
	ck_assert_int_lt(pod_exec_sync(pod, container->dir, &spec, 100, &out, &errors, &result, &err), 0);
	ck_assert_str_eq(err.text, "exec: \"nosuch\": executable file not found in $PATH");
	ck_assert_int_eq(err.code, ERROR_NOT_FOUND);
	strv_done(&spec.args);
	expect_processes(1);
}
END_TEST

START_TEST(not_running)
{
	ck_assert_int_eq(pod_container_signal(pod, container->id, SIGKILL, NULL), 0);
	fx_wait(container);
	struct output o = exec_in("true", 1000);

	ck_assert_int_lt(o.r, 0);
	ck_assert_int_eq(o.error.code, ERROR_PRECONDITION);
	ck_assert_ptr_nonnull(strstr(o.error.text, "does not run"));
}
END_TEST

START_TEST(frozen)
{
	if (!cgroup_has("freezer"))
		return;
	fx_sh("echo FROZEN >/sys/fs/cgroup/freezer%s/freezer.state", container->cgroup);
	struct output o = exec_in("true", 1000);

	ck_assert_int_lt(o.r, 0);
	ck_assert_ptr_nonnull(strstr(o.error.text, "is frozen"));
	ck_assert(o.seconds < 0.5);
	fx_sh("echo THAWED >/sys/fs/cgroup/freezer%s/freezer.state", container->cgroup);
}
END_TEST

START_TEST(ends_with_container)
{
	struct output o;

	if (fork() == 0) {
		usleep(200000);
		struct pod_monitor *m = NULL;

		if (pod_monitor_connect(sandbox->dir, &m, NULL) == 0)
			(void)!pod_container_signal(m, container->id, SIGKILL, NULL);
		_exit(0);
	}
	o = exec_in("sleep 100", 0);
	ck_assert_int_eq(o.r, 0);
	ck_assert_int_eq(o.result.status, 137);
	ck_assert(o.seconds < 3);
	output_done(&o);
	wait(NULL);
}
END_TEST

START_TEST(caller_goes)
{
	/* Killed in the middle of an exec, as the daemon may be: the process must not stay. */
	pid_t pid = fork();

	if (pid == 0) {
		exec_in("sleep 100", 0);
		_exit(0);
	}
	expect_processes(2);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	expect_processes(1);
}
END_TEST

static void *many(void *arg)
{
	intptr_t *failures = arg;

	for (int i = 0; i < 10; i++) {
		struct output o = exec_in("echo x", 20000);

		if (o.r < 0 || o.result.status != 0 || !str_eq(str_get(&o.out), "x\n"))
			(*failures)++;
		output_done(&o);
	}
	return NULL;
}

START_TEST(parallel)
{
	pthread_t threads[8];
	intptr_t failures[8] = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(threads); i++)
		pthread_create(&threads[i], NULL, many, &failures[i]);
	for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
		pthread_join(threads[i], NULL);
		ck_assert_int_eq((int)failures[i], 0);
	}
	expect_processes(1);
	/* No descriptor and no cgroup is left of them. */
	fx_sh("test $(ls /proc/%d/fd | wc -l) -lt 24", (int)pod_monitor_pid(pod));
	if (cgroup_mode() == CGROUP_HYBRID)
		fx_sh("! ls -d /sys/fs/cgroup/unified%s/exec-* 2>/dev/null", container->cgroup);
}
END_TEST

START_TEST(terminal)
{
	struct exec_spec spec = { .tty = true };
	struct exec_result result;
	struct error err = ERROR_INIT;
	int out[2], in[2];
	char text[256];

	ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(in, O_CLOEXEC), 0);
	strv_add(&spec.args, "sh");
	strv_add(&spec.args, "-c");
	strv_add(&spec.args, "tty; read x; echo got $x; exit 4");
	ck_assert_int_eq((int)write(in[1], "hello\n", 6), 6);
	ck_assert_msg(pod_exec(pod, container->dir, &spec, in[0], out[1], -1, &result, &err) == 0, "%s", err.text);
	ck_assert_int_eq(result.status, 4);
	ssize_t n = read(out[0], text, sizeof(text) - 1);

	ck_assert_int_gt((int)n, 0);
	text[n] = '\0';
	ck_assert_msg(strstr(text, "/dev/pts/") && strstr(text, "got hello"), "%s", text);
	for (int i = 0; i < 2; i++) {
		close(out[i]);
		close(in[i]);
	}
	strv_done(&spec.args);
}
END_TEST

START_TEST(user)
{
	struct exec_spec spec = { 0 };
	struct str out = STR_INIT, errors = STR_INIT;
	struct exec_result result;
	struct launch *l = fx_container(sandbox, "exec sleep 1000");
	struct error err = ERROR_INIT;

	l->uid = l->gid = 1234;
	l->caps.effective = l->caps.permitted = 0;
	l->no_new_privs = true;
	l->cwd = xstrdup("/tmp");
	fx_start(pod, l);
	strv_add(&spec.args, "sh");
	strv_add(&spec.args, "-c");
	strv_add(&spec.args, "id -u; pwd; grep -E 'CapEff|NoNew' /proc/self/status | tr -d '\\t'");
	ck_assert_msg(pod_exec_sync(pod, l->dir, &spec, 1000, &out, &errors, &result, &err) == 0, "%s", err.text);
	ck_assert_str_eq(str_get(&out), "1234\n/tmp\nCapEff:0000000000000000\nNoNewPrivs:1\n");
	str_done(&out);
	str_done(&errors);
	strv_done(&spec.args);
	launch_free(l);
}
END_TEST

START_TEST(monitor_hangs)
{
	kill(pod_monitor_pid(pod), SIGSTOP);
	struct output o = exec_in("echo never", 0);

	ck_assert_int_lt(o.r, 0);
	ck_assert_int_eq(o.error.code, ERROR_DEADLINE);
	ck_assert_msg(o.seconds > 9 && o.seconds < 12, "%g s", o.seconds);
	kill(pod_monitor_pid(pod), SIGCONT);
	output_done(&o);
	o = exec_in("echo again", 0);
	ck_assert_msg(o.r == 0, "%s", o.error.text);
	output_done(&o);
}
END_TEST

static void add_tests(TCase *c)
{
	tcase_add_loop_test(c, script, 0, ARRAY_LEN(scripts));
	tcase_add_test(c, large_output);
	tcase_add_test(c, time_out);
	tcase_add_test(c, background_holds_the_pipe);
	tcase_add_test(c, no_command);
	tcase_add_test(c, not_running);
	tcase_add_test(c, frozen);
	tcase_add_test(c, ends_with_container);
	tcase_add_test(c, caller_goes);
	tcase_add_test(c, parallel);
	tcase_add_test(c, monitor_hangs);
	tcase_add_test(c, terminal);
	tcase_add_test(c, user);
}

int main(void)
{
	Suite *s = suite_create("exec");
	TCase *c = tcase_create("exec");
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

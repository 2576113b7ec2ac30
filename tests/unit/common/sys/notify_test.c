/* notify_test.c - purpose: what the service manager hears, on a socket of our own. */
#include "common/sys/notify.h"

#include <check.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

static int manager(const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t n = strlen(name);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	memcpy(address.sun_path, name, n);
	if (*name == '@')
		address.sun_path[0] = '\0';
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)), 0);
	setenv("NOTIFY_SOCKET", name, 1);
	return fd;
}

static void hear(int fd, const char *want)
{
	char buf[600];
	ssize_t n = recv(fd, buf, sizeof(buf) - 1, 0);

	ck_assert_msg(n > 0 || !want, "nothing came, want %s", want);
	if (!want)
		return;
	buf[n] = '\0';
	ck_assert_str_eq(buf, want);
}

static void on_timer(uv_timer_t *timer)
{
	uv_stop(timer->loop);
}

/* 0: a path; 1: an abstract name */
START_TEST(talks)
{
	char name[100], pid[20];
	uv_loop_t loop;
	uv_timer_t end;

	snprintf(name, sizeof(name), "%sheard-%d", _i ? "@" : "/tmp/", (int)getpid());
	int fd = manager(name);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	setenv("WATCHDOG_USEC", "100000", 1);
	setenv("WATCHDOG_PID", pid, 1);
	uv_loop_init(&loop);
	struct notify *notify = notify_start(&loop);
	ck_assert_ptr_null(getenv("NOTIFY_SOCKET"));
	hear(fd, "READY=1");
	notify_status(notify, "3 pods\nFD=1");
	hear(fd, "STATUS=3 pods");
	uv_timer_init(&loop, &end);
	uv_timer_start(&end, on_timer, 130, 0);
	uv_run(&loop, UV_RUN_DEFAULT);
	hear(fd, "WATCHDOG=1");
	hear(fd, "WATCHDOG=1");
	notify_stop(notify);
	hear(fd, "STOPPING=1");
	uv_close((uv_handle_t *)&end, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
	close(fd);
	if (!_i)
		unlink(name);
}
END_TEST

START_TEST(watchdog_of_another_process)
{
	uv_loop_t loop;
	int fd = manager("@heard-other");

	setenv("WATCHDOG_USEC", "1000", 1);
	setenv("WATCHDOG_PID", "1", 1);
	uv_loop_init(&loop);
	struct notify *notify = notify_start(&loop);
	ck_assert(!uv_loop_alive(&loop));
	hear(fd, "READY=1");
	notify_stop(notify);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
	close(fd);
}
END_TEST

static const char *const nobody[] = { NULL, "", "x", "relative/path", "/tmp/nobody/listens",
	"/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" };

START_TEST(nobody_listens)
{
	uv_loop_t loop;

	unsetenv("NOTIFY_SOCKET");
	if (nobody[_i])
		setenv("NOTIFY_SOCKET", nobody[_i], 1);
	uv_loop_init(&loop);
	struct notify *notify = notify_start(&loop);
	notify_status(notify, "x");
	notify_stop(notify);
	notify_stop(NULL);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("notify");
	TCase *t = tcase_create("notify");

	tcase_add_loop_test(t, talks, 0, 2);
	tcase_add_test(t, watchdog_of_another_process);
	tcase_add_loop_test(t, nobody_listens, 0, ARRAY_LEN(nobody));
	suite_add_tcase(s, t);
	SRunner *runner = srunner_create(s);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}

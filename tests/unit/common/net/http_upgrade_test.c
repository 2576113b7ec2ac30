/*
 * http_upgrade_test.c - purpose: connections that leave HTTP behind: what was sent ahead, pauses, slow readers, both
 * ends.
 *
 * The server runs in the test's loop, clients on threads.
 */
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>

#include "common/base/str.h"
#include "common/net/http_server.h"
#include "tests/unit/quotes.h"

enum { MANY = 3000000 };

static uv_loop_t loop;
static struct http_server *server;
static char dir[32];
static struct sock_address address;
static struct http_exchange *tunnel; /* NULL: none, or gone */
static struct str seen;
static int closed;
static size_t to_send; /* of "many" */
static bool paused_once;
static uv_timer_t timer;

static void on_closed(void *data)
{
	(void)data;
	closed++;
	tunnel = NULL;
	uv_stop(&loop);
}

static void resume(uv_timer_t *t)
{
	(void)t;
	http_upgrade_pause(tunnel, false);
}

/* Says back what comes; "pause" makes the client wait for a while, "end" ends it. */
static void on_data(void *data, const char *p, size_t len)
{
	ck_assert_ptr_eq(data, &seen);
	str_add_bytes(&seen, p, len);
	ck_assert_int_eq(http_stream_write(tunnel, p, len), 0);
	if (strstr(seen.buf, "pause") && !paused_once) {
		paused_once = true;
		http_upgrade_pause(tunnel, true);
		uv_timer_start(&timer, resume, 50, 0);
	}
	if (strstr(seen.buf, "end")) {
		http_stream_end(tunnel);
		tunnel = NULL;
		uv_stop(&loop);
	}
}

static void more(void *data)
{
	static char block[10000];

	(void)data;
	while (to_send && http_stream_pending(tunnel) < 64 * 1024) {
		ck_assert_int_eq(http_stream_write(tunnel, block, sizeof(block)), 0);
		to_send -= sizeof(block);
	}
	if (to_send)
		return;
	http_stream_on_drain(tunnel, NULL, NULL);
	http_stream_end(tunnel);
	tunnel = NULL;
	uv_stop(&loop);
}

static void handle(void *context, struct http_exchange *e, const struct http_request *r)
{
	(void)context;
	if (!http_wants_upgrade(e)) {
		http_respond(e, 400, "text/plain", "no\n", 3);
		return;
	}
	ck_assert_str_eq(http_wants_upgrade(e), "echo");
	ck_assert_str_eq(http_header_at(e, "X-Name", 1), "two");
	ck_assert_ptr_null(http_header_at(e, "X-Name", 2));
	http_add_header(e, "X-Answer", "yes");
	tunnel = e;
	http_upgrade(e, "echo", on_data, on_closed, &seen);
	if (str_eq(r->path, "/many")) {
		to_send = MANY;
		http_stream_on_drain(e, more, NULL);
	}
	if (str_eq(r->path, "/end")) {
		ck_assert_int_eq(http_stream_write(e, "bye", 3), 0);
		http_stream_end(e);
		tunnel = NULL;
		uv_stop(&loop);
	}
}

static void set_up(void)
{
	struct error err = ERROR_INIT;
	int fd;

	strcpy(dir, "/tmp/http-upgrade.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	_cleanup_free_ char *path = xasprintf("%s/s", dir);

	ck_assert_int_eq(sock_address_parse(path, &address, &err), 0);
	ck_assert_int_eq(sock_listen(&address, 0600, &fd, &err), 0);
	uv_loop_init(&loop);
	uv_timer_init(&loop, &timer);
	server = http_server_new(&loop, fd, NULL, 1000, handle, NULL);
}

static void tear_down(void)
{
	http_server_close(server, NULL, NULL);
	uv_close((uv_handle_t *)&timer, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
	str_done(&seen);
	unlink(address.un.sun_path);
	rmdir(dir);
}

#define HEAD " HTTP/1.1\r\nHost: x\r\nX-Name: one\r\nx-name: two\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"

struct client {
	const char *first, *then; /* bytes to send at once, and when something has come */
	size_t slow;		  /* bytes for each read */
	bool leave;		  /* close when something has come */
	struct str got;
};

static void *run_client(void *data)
{
	struct client *c = data;
	_cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char buf[65536];
	ssize_t n;

	if (connect(fd, &address.sa, address.len) < 0 || write(fd, c->first, strlen(c->first)) < 0)
		return NULL;
	while ((n = read(fd, buf, c->slow ? c->slow : sizeof(buf))) > 0) {
		str_add_bytes(&c->got, buf, (size_t)n);
		if (c->leave)
			break;
		if (c->then && write(fd, c->then, strlen(c->then)) < 0)
			break;
		c->then = NULL;
		if (c->slow)
			usleep(200);
	}
	return NULL;
}

static void run_with(struct client *c)
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, run_client, c), 0);
	uv_run(&loop, UV_RUN_DEFAULT);
	/* What was ended goes out, and the client's end comes in. */
	while (pthread_tryjoin_np(thread, NULL) != 0)
		uv_run(&loop, UV_RUN_NOWAIT);
}

#define ANSWER "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\nX-Answer: yes\r\n\r\n"

START_TEST(ahead_and_after)
{
	struct client c = { .first = "GET /" HEAD "ahead ", .then = "after end" };

	run_with(&c);
	ck_assert_str_eq(c.got.buf, ANSWER "ahead after end");
	ck_assert_int_eq(closed, 0);
	str_done(&c.got);
}
END_TEST

START_TEST(a_pause)
{
	struct client c = { .first = "POST /" HEAD "pause ", .then = "later end" };

	run_with(&c);
	ck_assert(paused_once);
	ck_assert_str_eq(c.got.buf, ANSWER "pause later end");
	str_done(&c.got);
}
END_TEST

START_TEST(ended_at_once)
{
	struct client c = { .first = "GET /end" HEAD "nobody reads this" };

	run_with(&c);
	ck_assert_str_eq(c.got.buf, ANSWER "bye");
	ck_assert_int_eq(closed, 0);
	str_done(&c.got);
}
END_TEST

START_TEST(a_slow_reader_that_still_talks)
{
	struct client c = { .first = "GET /many" HEAD, .then = "chatter", .slow = 5000 };

	run_with(&c);
	ck_assert_uint_eq(c.got.len, strlen(ANSWER) + MANY + strlen("chatter"));
	str_done(&c.got);
}
END_TEST

START_TEST(a_client_that_goes)
{
	struct client c = { .first = "GET /" HEAD "x", .leave = true };

	run_with(&c);
	ck_assert_int_eq(closed, 1);
	ck_assert_ptr_null(tunnel);
	str_done(&c.got);
}
END_TEST

START_TEST(no_upgrade)
{
	struct client c = { .first = "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: echo\r\nConnection: close\r\n\r\n" };
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, run_client, &c), 0);
	while (pthread_tryjoin_np(thread, NULL) != 0)
		uv_run(&loop, UV_RUN_NOWAIT);
	ck_assert(str_starts(c.got.buf, "HTTP/1.1 400 "));
	str_done(&c.got);
}
END_TEST

START_TEST(the_server_goes)
{
	struct client c = { .first = "GET /" HEAD "x" };
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, run_client, &c), 0);
	while (!tunnel)
		uv_run(&loop, UV_RUN_ONCE);
	http_server_close(server, NULL, NULL);
	ck_assert_int_eq(closed, 1);
	while (pthread_tryjoin_np(thread, NULL) != 0)
		uv_run(&loop, UV_RUN_NOWAIT);
	str_done(&c.got);
	/* For tear_down(). */
	unlink(address.un.sun_path);
	int fd;
	ck_assert_int_eq(sock_listen(&address, 0600, &fd, NULL), 0);
	server = http_server_new(&loop, fd, NULL, 1000, handle, NULL);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("http_upgrade");

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_set_timeout(t, 30);
	tcase_add_test(t, ahead_and_after);
	tcase_add_test(t, a_pause);
	tcase_add_test(t, ended_at_once);
	tcase_add_test(t, a_slow_reader_that_still_talks);
	tcase_add_test(t, a_client_that_goes);
	tcase_add_test(t, no_upgrade);
	tcase_add_test(t, the_server_goes);
	return run_case(t);
}

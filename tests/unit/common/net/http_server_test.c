/* http_server_test.c - purpose: requests as bytes on a socket, answers as bytes; keep-alive, pipelining, streams, refusals. */
#include "common/net/http_server.h"

#include "common/base/str.h"
#include "tests/unit/quotes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>

static uv_loop_t loop;
static struct http_server *server;
static char dir[] = "/tmp/http-server-test.XXXXXX";
static struct sock_address address;
static int streams_closed;
static struct http_exchange *open_stream;

static void stream_closed(void *data)
{
	(void)data;
	streams_closed++;
	open_stream = NULL;
}

static void handle(void *context, struct http_exchange *e, const struct http_request *r)
{
	_cleanup_free_ char *name = http_query(e, "name");
	_cleanup_free_ char *text = xasprintf("%s %s [%s] %zu", r->method, r->path, name ? name : "-", r->body_len);

	(void)context;
	if (str_eq(r->path, "/stream")) {
		http_stream_begin(e, 200, "text/plain", stream_closed, NULL);
		ck_assert_int_eq(http_stream_write(e, "one\n", 4), 0);
		ck_assert_int_eq(http_stream_write(e, "two\n", 4), 0);
		http_stream_end(e);
		return;
	}
	if (str_eq(r->path, "/endless")) {
		http_stream_begin(e, 200, "text/plain", stream_closed, NULL);
		ck_assert_int_eq(http_stream_write(e, "first\n", 6), 0);
		open_stream = e;
		return;
	}
	if (http_header(e, "X-Test"))
		http_add_header(e, "X-Answer", http_header(e, "X-Test"));
	http_respond(e, 200, "text/plain", text, strlen(text));
}

static void set_up(void)
{
	struct error err = ERROR_INIT;
	int fd;

	streams_closed = 0;
	open_stream = NULL;
	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	_cleanup_free_ char *path = xasprintf("%s/s", dir);

	ck_assert_int_eq(sock_address_parse(path, &address, &err), 0);
	ck_assert_int_eq(sock_listen(&address, 0600, &fd, &err), 0);
	uv_loop_init(&loop);
	server = http_server_new(&loop, fd, NULL, 1000, handle, NULL);
}

static void server_closed(void *data)
{
	*(bool *)data = true;
}

static void tear_down(void)
{
	bool closed = false;

	http_server_close(server, server_closed, &closed);
	uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert(closed);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
	unlink(address.un.sun_path);
	rmdir(dir);
}

static int dial(void)
{
	int fd;

	ck_assert_int_eq(sock_connect(&address, &fd, NULL), 0);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return fd;
}

static void turn(int times)
{
	while (times-- > 0)
		uv_run(&loop, UV_RUN_NOWAIT);
}

/* What comes back; *ret_eof: the server has closed. */
static char *read_back(int fd, bool *ret_eof)
{
	_cleanup_(str_done) struct str s = STR_INIT;
	char buf[4096];

	for (int i = 0; i < 50; i++) {
		turn(3);
		ssize_t n = recv(fd, buf, sizeof(buf), 0);

		if (n > 0)
			str_add_bytes(&s, buf, (size_t)n);
		if (ret_eof)
			*ret_eof = n == 0;
		if (n == 0)
			break;
	}
	return str_take(&s);
}

static void send_text(int fd, const char *text, size_t piece)
{
	size_t len = strlen(text);

	for (size_t at = 0; at < len; at += piece) {
		if (send(fd, text + at, MIN(piece, len - at), MSG_NOSIGNAL) < 0)
			return;
		turn(2);
	}
}

#define H "Host: a\r\n"

static const struct {
	const char *request;
	int status;
	const char *body; /* part of what is answered, or NULL */
	bool closes;
} cases[] = {
	{ "GET /a%20b?name=x%26y HTTP/1.1\r\n" H "\r\n", 200, "\r\n\r\nGET /a b [x&y] 0", false },
	{ "GET / HTTP/1.1\r\n" H "Connection: close\r\n\r\n", 200, "Connection: close", true },
	{ "GET / HTTP/1.0\r\n\r\n", 200, "Connection: close", true },
	{ "HEAD /h HTTP/1.1\r\n" H "\r\n", 200, "Content-Length: 12\r\n\r\n", false },
	{ "POST /p HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhello", 200, "POST /p [-] 5", false },
	{ "POST /p HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", 200, "POST /p [-] 5", false },
	{ "POST /p HTTP/1.1\r\n" H "Expect: 100-continue\r\nContent-Length: 2\r\n\r\nab", 100, "POST /p [-] 2", false },
	{ "GET /1 HTTP/1.1\r\n" H "\r\nGET /2 HTTP/1.1\r\n" H "\r\n", 200, "GET /2 [-] 0", false },
	{ "GET http://a/abs?name=1 HTTP/1.1\r\n" H "\r\n", 200, "GET /abs [1] 0", false },
	{ "GET / HTTP/1.1\r\n" H "X-Test: yes\r\n\r\n", 200, "X-Answer: yes\r\n", false },
	{ "GET /stream HTTP/1.1\r\n" H "\r\n", 200, "4\r\ntwo\n\r\n0\r\n\r\n", false },
	{ "GET /stream HTTP/1.0\r\n\r\n", 200, "\r\n\r\none\ntwo\n", true },
	{ "GET /bad%zz HTTP/1.1\r\n" H "\r\n", 400, NULL, true },
	{ "GET /bad%00 HTTP/1.1\r\n" H "\r\n", 400, NULL, true },
	{ "nonsense\r\n\r\n", 400, NULL, true },
	{ "GET / HTTP/1.1\r\n\r\n", 400, NULL, true },
	{ "GET / HTTP/1.1\r\n" H "Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400, NULL, true },
	{ "POST / HTTP/1.1\r\n" H "Content-Length: 1001\r\n\r\n", 413, NULL, true },
	{ "GET / HTTP/2.0\r\n" H "\r\n", 505, NULL, true },
};

START_TEST(request_case)
{
	static const size_t pieces[] = { 100000, 1, 7 };

	set_up();
	for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
		_cleanup_fd_ int fd = dial();
		bool eof = false;
		char status[16];

		send_text(fd, cases[_i].request, pieces[i]);
		_cleanup_free_ char *answer = read_back(fd, &eof);

		snprintf(status, sizeof(status), "HTTP/1.1 %d ", cases[_i].status);
		ck_assert_msg(str_starts(answer, status), "%s\n--\n%s", cases[_i].request, answer);
		ck_assert_msg(!cases[_i].body || strstr(answer, cases[_i].body), "%s\n--\n%s", cases[_i].request, answer);
		ck_assert_msg(eof == cases[_i].closes, "%s\n--\n%s", cases[_i].request, answer);
	}
	tear_down();
}
END_TEST

START_TEST(client_leaves_stream)
{
	set_up();
	int fd = dial();

	send_text(fd, "GET /endless HTTP/1.1\r\n" H "\r\n", 1000);
	_cleanup_free_ char *answer = read_back(fd, NULL);

	ck_assert_ptr_nonnull(strstr(answer, "6\r\nfirst\n\r\n"));
	ck_assert_int_eq(streams_closed, 0);
	close(fd);
	turn(10);
	ck_assert_int_eq(streams_closed, 1);
	tear_down();
}
END_TEST

START_TEST(server_closes_stream)
{
	set_up();
	_cleanup_fd_ int fd = dial();

	send_text(fd, "GET /endless HTTP/1.1\r\n" H "\r\n", 1000);
	turn(5);
	tear_down();
	ck_assert_int_eq(streams_closed, 1);
}
END_TEST

/* A reader that does not read holds at most a bounded amount, then the writer is told. */
START_TEST(slow_reader)
{
	static char block[65536];
	int r = 0;
	size_t n = 0;

	set_up();
	_cleanup_fd_ int fd = dial();

	send_text(fd, "GET /endless HTTP/1.1\r\n" H "\r\n", 1000);
	turn(5);
	ck_assert_ptr_nonnull(open_stream);
	for (; n < 1000 && r == 0; n++)
		r = http_stream_write(open_stream, block, sizeof(block));
	ck_assert_int_eq(r, -ENOBUFS);
	ck_assert_uint_lt(n * sizeof(block), 20u << 20);
	tear_down();
}
END_TEST

START_TEST(too_many_connections)
{
	int fds[HTTP_CONNECTIONS_MAX + 1];

	set_up();
	for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
		fds[i] = dial();
		turn(3);
	}
	_cleanup_free_ char *answer = read_back(fds[HTTP_CONNECTIONS_MAX], NULL);

	ck_assert(str_starts(answer, "HTTP/1.1 503 "));
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		close(fds[i]);
	turn(10);
	_cleanup_fd_ int fd = dial();

	send_text(fd, "GET / HTTP/1.1\r\n" H "\r\n", 1000);
	_cleanup_free_ char *again = read_back(fd, NULL);

	ck_assert(str_starts(again, "HTTP/1.1 200 "));
	tear_down();
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("http_server");

	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, request_case, 0, ARRAY_LEN(cases));
	tcase_add_test(t, client_leaves_stream);
	tcase_add_test(t, server_closes_stream);
	tcase_add_test(t, slow_reader);
	tcase_add_test(t, too_many_connections);
	return run_case(t);
}

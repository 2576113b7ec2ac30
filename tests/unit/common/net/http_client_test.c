/* http_client_test.c - purpose: requests against a scripted server: answers of every shape, breaks, limits, reuse. */
#include "common/net/http_client.h"

#include "common/base/str.h"
#include "tests/unit/common/net/fake_http.h"

#include <signal.h>

struct result {
	bool ended;
	int heads, status;
	struct error err;
	struct str body;
	struct http_request_handle *request;
	struct http_client *client;
	bool cancel_in_body, free_in_body, free_in_end;
	uv_loop_t *loop;
};

static void on_head(void *data, int status UNUSED, const char *type UNUSED)
{
	((struct result *)data)->heads++;
}

static void on_body(void *data, const char *p, size_t len)
{
	struct result *r = data;

	str_add_bytes(&r->body, p, len);
	if (r->cancel_in_body) {
		http_request_cancel(r->request);
		r->ended = true;
		r->status = -1;
	}
	if (r->free_in_body)
		http_client_free(r->client);
}

static void on_end(void *data, int status, const struct error *err)
{
	struct result *r = data;

	ck_assert(!r->ended);
	r->ended = true;
	r->status = status;
	r->err = *err;
	if (r->free_in_end)
		http_client_free(r->client);
}

static struct http_client *client_of(uv_loop_t *loop, const char *path)
{
	struct http_client_options options = { .host = "node-lite", .bearer = "secret" };

	ck_assert_int_eq(sock_address_parse(path, &options.address, NULL), 0);
	return http_client_new(loop, &options);
}

static struct http_call call_of(struct result *r)
{
	return (struct http_call){ .method = "GET", .target = "/x", .timeout_ms = 3000, .on_head = on_head, .on_body = on_body, .on_end = on_end,
		.data = r };
}

static void run_until(uv_loop_t *loop, const bool *flag)
{
	while (!*flag)
		uv_run(loop, UV_RUN_ONCE);
}

static void finish(uv_loop_t *loop)
{
	uv_run(loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(uv_loop_close(loop), 0);
}

static const struct {
	const char *name;
	struct fake_step step;
	int status;
	enum error_code code;
	const char *body; /* or, after an error, the end of its text */
} answers[] = {
	{ "length", { "GET /x HTTP/1.1\r\nHost: node-lite\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", FAKE_KEEP, 0, 0 }, 200, 0, "hello" },
	{ "bearer", { "Authorization: Bearer secret\r\n", "HTTP/1.1 204 No\r\n\r\n", FAKE_KEEP, 0, 0 }, 204, 0, "" },
	{ "byte by byte", { "Accept: application/json", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", FAKE_KEEP, 1, 1 }, 200, 0, "hello" },
	{ "chunks", { NULL, FAKE_OK("text/plain", "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"), FAKE_KEEP, 3, 1 }, 200, 0, "abcde" },
	{ "to the end", { NULL, "HTTP/1.1 404 Not Found\r\n\r\nabc", FAKE_CLOSE, 0, 0 }, 404, 0, "abc" },
	{ "cut off", { NULL, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", FAKE_CLOSE, 0, 0 }, 200, ERROR_UNAVAILABLE,
		"HTTP: connection closed in the middle of a body" },
	{ "cut off in a chunk", { NULL, FAKE_OK("a", "5\r\nhel"), FAKE_CLOSE, 0, 0 }, 200, ERROR_UNAVAILABLE, "HTTP: connection closed in the middle of a body" },
	{ "cut off in the head", { NULL, "HTTP/1.1 20", FAKE_CLOSE, 0, 0 }, 0, ERROR_UNAVAILABLE, "HTTP: connection closed in the middle of a head" },
	{ "nothing", { NULL, "", FAKE_CLOSE, 0, 0 }, 0, ERROR_UNAVAILABLE, "connection closed without an answer" },
	{ "garbage", { NULL, "220 mail.example.com ESMTP\r\n\r\n", FAKE_KEEP, 0, 0 }, 0, ERROR_INVALID, "HTTP: malformed status line" },
	{ "garbage behind", { NULL, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nabc", FAKE_KEEP, 0, 0 }, 200, 0, "a" },
	{ "bad chunk", { NULL, FAKE_OK("a", "zz\r\n"), FAKE_KEEP, 0, 0 }, 200, ERROR_INVALID, "HTTP: malformed chunk size" },
	{ "interim", { NULL, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", FAKE_KEEP, 0, 0 }, 200, 0, "x" },
};

START_TEST(answer_case)
{
	uv_loop_t loop;
	struct fake_http fake;
	struct result r = { 0 };

	uv_loop_init(&loop);
	fake_http_start(&fake, &answers[_i].step, 1);
	r.client = client_of(&loop, fake.path);
	struct http_call call = call_of(&r);
	r.request = http_request_start(r.client, &call);
	ck_assert(!r.ended);
	run_until(&loop, &r.ended);
	ck_assert_msg(r.err.code == answers[_i].code, "%s: %s", answers[_i].name, r.err.text);
	ck_assert_int_eq(r.status, answers[_i].status);
	ck_assert_int_eq(r.heads, r.status != 0);
	if (r.err.code)
		ck_assert_msg(str_ends(r.err.text, answers[_i].body) && str_starts(r.err.text, fake.path), "%s: %s", answers[_i].name, r.err.text);
	else
		ck_assert_str_eq(str_get(&r.body), answers[_i].body);
	http_client_free(r.client);
	finish(&loop);
	fake_http_stop(&fake);
	str_done(&r.body);
}
END_TEST

START_TEST(connection_is_reused)
{
	static const struct fake_step steps[] = {
		{ "GET /x", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", FAKE_KEEP, 0, 0 },
		{ "POST /x HTTP/1.1", "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n", FAKE_KEEP, 0, 0 },
		{ "HEAD /x", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", FAKE_CLOSE, 0, 0 }, /* closes while idle */
		{ "GET /x", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nb", FAKE_KEEP, 0, 0 },
		{ "GET /x", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nc", FAKE_KEEP, 0, 0 },
	};
	static const char *const methods[] = { "GET", "POST", "HEAD", "GET", "GET" };
	uv_loop_t loop;
	struct fake_http fake;
	struct http_client *client;

	uv_loop_init(&loop);
	fake_http_start(&fake, steps, ARRAY_LEN(steps));
	client = client_of(&loop, fake.path);
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		struct result r = { 0 };
		struct http_call call = call_of(&r);

		call.method = methods[i];
		http_request_start(client, &call);
		run_until(&loop, &r.ended);
		ck_assert_msg(r.err.code == ERROR_OK, "%zu: %s", i, r.err.text);
		str_done(&r.body);
	}
	http_client_free(client);
	finish(&loop);
	fake_http_stop(&fake);
	ck_assert_uint_eq(fake.accepted, 3);
}
END_TEST

/* The server closes a kept connection without a word just as the next request comes: a GET goes out again, a POST fails. */
START_TEST(stale_connection)
{
	static const struct fake_step steps[] = {
		{ NULL, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", FAKE_KEEP, 0, 0 },
		{ NULL, "", FAKE_CLOSE, 0, 0 },
		{ NULL, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nb", FAKE_KEEP, 0, 0 },
	};
	bool post = _i == 1;
	uv_loop_t loop;
	struct fake_http fake;
	struct result first = { 0 }, second = { 0 };

	uv_loop_init(&loop);
	fake_http_start(&fake, steps, ARRAY_LEN(steps));
	struct http_client *client = client_of(&loop, fake.path);
	struct http_call call = call_of(&first);
	http_request_start(client, &call);
	run_until(&loop, &first.ended);
	call = call_of(&second);
	call.method = post ? "POST" : "GET";
	http_request_start(client, &call);
	run_until(&loop, &second.ended);
	ck_assert_int_eq(second.err.code, post ? ERROR_UNAVAILABLE : ERROR_OK);
	if (!post)
		ck_assert_str_eq(second.body.buf, "b");
	http_client_free(client);
	finish(&loop);
	fake_http_stop(&fake);
	str_done(&first.body);
	str_done(&second.body);
}
END_TEST

static const struct {
	const char *name;
	struct fake_step step;
	uint64_t timeout_ms, idle_ms;
	enum error_code code;
	const char *text;
} limits[] = {
	{ "no answer", { NULL, "", FAKE_HANG, 0, 0 }, 80, 0, ERROR_DEADLINE, "no answer in time" },
	{ "slow body", { NULL, "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n0123456789", FAKE_HANG, 1, 5 }, 150, 0, ERROR_DEADLINE, "no answer in time" },
	{ "stops", { NULL, FAKE_OK("a", "1\r\na\r\n"), FAKE_HANG, 0, 0 }, 0, 80, ERROR_DEADLINE, "the answer has stopped coming" },
	{ "slow but alive", { NULL, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", FAKE_KEEP, 4, 20 }, 0, 150, ERROR_OK, "" },
};

START_TEST(limit_case)
{
	uv_loop_t loop;
	struct fake_http fake;
	struct result r = { 0 };

	uv_loop_init(&loop);
	fake_http_start(&fake, &limits[_i].step, 1);
	struct http_client *client = client_of(&loop, fake.path);
	struct http_call call = call_of(&r);
	call.timeout_ms = limits[_i].timeout_ms;
	call.idle_timeout_ms = limits[_i].idle_ms;
	http_request_start(client, &call);
	run_until(&loop, &r.ended);
	ck_assert_msg(r.err.code == limits[_i].code, "%s: %d %s", limits[_i].name, r.err.code, r.err.text);
	ck_assert_msg(str_ends(r.err.text, limits[_i].text), "%s: %s", limits[_i].name, r.err.text);
	http_client_free(client);
	finish(&loop);
	fake_http_stop(&fake);
	str_done(&r.body);
}
END_TEST

START_TEST(no_server)
{
	static const char *const addresses[] = { "/tmp/there/is/no/such/socket", "127.0.0.1:1", "[::1]:1" };
	uv_loop_t loop;
	struct result r = { 0 };

	uv_loop_init(&loop);
	struct http_client *client = client_of(&loop, addresses[_i]);
	struct http_call call = call_of(&r);
	http_request_start(client, &call);
	ck_assert(!r.ended);
	run_until(&loop, &r.ended);
	ck_assert_int_eq(r.err.code, ERROR_UNAVAILABLE);
	ck_assert_ptr_nonnull(strstr(r.err.text, addresses[_i]));
	ck_assert_ptr_nonnull(strstr(r.err.text, ": connect: "));
	http_client_free(client);
	finish(&loop);
}
END_TEST

/* 0: cancel in a callback; 1: free the client in on_body; 2: in on_end; 3: cancel at once; 4: free at once */
START_TEST(ends_from_inside)
{
	static const struct fake_step step = { NULL, FAKE_OK("a", "1\r\na\r\n1\r\nb\r\n0\r\n\r\n"), FAKE_KEEP, 0, 0 };
	uv_loop_t loop;
	struct fake_http fake;
	struct result r = { .cancel_in_body = _i == 0, .free_in_body = _i == 1, .free_in_end = _i == 2 };

	uv_loop_init(&loop);
	fake_http_start(&fake, &step, 1);
	r.client = client_of(&loop, fake.path);
	struct http_call call = call_of(&r);
	r.request = http_request_start(r.client, &call);
	if (_i == 3)
		http_request_cancel(r.request);
	if (_i == 4)
		http_client_free(r.client);
	if (_i != 3)
		run_until(&loop, &r.ended);
	if (_i == 1 || _i == 4)
		ck_assert_int_eq(r.err.code, ERROR_CANCELLED);
	if (_i == 0 || _i == 3)
		http_client_free(r.client);
	ck_assert(r.ended == (_i != 3));
	finish(&loop);
	fake_http_stop(&fake);
	str_done(&r.body);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("http_client");
	TCase *t = tcase_create("http_client");

	signal(SIGPIPE, SIG_IGN);
	tcase_set_timeout(t, 30);
	tcase_add_loop_test(t, answer_case, 0, ARRAY_LEN(answers));
	tcase_add_test(t, connection_is_reused);
	tcase_add_loop_test(t, stale_connection, 0, 2);
	tcase_add_loop_test(t, limit_case, 0, ARRAY_LEN(limits));
	tcase_add_loop_test(t, no_server, 0, 3);
	tcase_add_loop_test(t, ends_from_inside, 0, 5);
	suite_add_tcase(s, t);
	SRunner *runner = srunner_create(s);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}

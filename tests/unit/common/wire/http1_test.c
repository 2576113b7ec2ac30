/* http1_test.c - purpose: messages as event traces, read whole, byte by byte and in odd pieces. */
#include "common/wire/http1.h"

#include <check.h>
#include <errno.h>

#define HOST "Host: a\r\n"

/* Reads `text` in pieces of `step` bytes; returns the trace: "HEAD GET / 1.1 keep; BODY abc; END; rest 5" or "error N: text". */
static char *trace(enum http1_role role, const char *text, size_t len, size_t step, bool eof, size_t body_max, bool no_body)
{
	_cleanup_(http1_done) struct http1 h;
	_cleanup_(str_done) struct str out = STR_INIT, body = STR_INIT;
	struct error err = ERROR_INIT;
	struct http1_event ev = { 0 };
	bool ended = false;

	http1_init(&h, role);
	h.body_max = body_max;
	h.head_max = 300;
	if (no_body)
		http1_expect_no_body(&h);
	for (size_t at = 0; at < len && !ended; at += step) {
		/* A copy of exact size, so that ASan sees a read beyond it. */
		size_t n = MIN(step, len - at);
		_cleanup_free_ char *piece = xmemdup(text + at, n);
		struct bytes in = { piece, n };

		for (;;) {
			if (http1_read(&h, &in, &ev, &err) < 0) {
				str_addf(&out, "error %d: %s", h.answer, err.text + strlen("HTTP: "));
				return str_take(&out);
			}
			if (ev.kind == HTTP1_MORE) {
				ck_assert_uint_eq(in.len, 0);
				break;
			}
			if (ev.kind == HTTP1_HEAD && role == HTTP1_REQUEST)
				str_addf(&out, "HEAD %s %s %d%s%s%s%s; ", h.method, h.target, h.minor, h.keep_alive ? " keep" : "",
					h.upgrade ? " upgrade=" : "", h.upgrade ? h.upgrade : "", h.expect_continue ? " expect" : "");
			if (ev.kind == HTTP1_HEAD && role == HTTP1_RESPONSE)
				str_addf(&out, "HEAD %d %d%s%s%s; ", h.status, h.minor, h.keep_alive ? " keep" : "",
					h.upgrade ? " upgrade=" : "", h.upgrade ? h.upgrade : "");
			if (ev.kind == HTTP1_BODY) {
				ck_assert_uint_gt(ev.body.len, 0);
				str_add_bytes(&body, ev.body.ptr, ev.body.len);
			}
			if (ev.kind == HTTP1_END) {
				ended = true;
				if (len - at - n + in.len)
					str_addf(&body, "|rest %zu", len - at - n + in.len);
				break;
			}
		}
	}
	if (!ended && eof) {
		if (http1_eof(&h, &ev, &err) < 0) {
			str_addf(&out, "error: %s", err.text);
			return str_take(&out);
		}
		ended = ev.kind == HTTP1_END;
	}
	str_addf(&out, "%s; %s", str_get(&body), ended ? "END" : "MORE");
	return str_take(&out);
}

static const struct {
	const char *text, *want;
} requests[] = {
	{ "GET / HTTP/1.1\r\n" HOST "\r\n", "HEAD GET / 1 keep; ; END" },
	{ "\r\n\r\nGET /a?b=%20 HTTP/1.1\r\n" HOST "\r\nGET", "HEAD GET /a?b=%20 1 keep; |rest 3; END" },
	{ "GET / HTTP/1.0\r\n\r\n", "HEAD GET / 0; ; END" },
	{ "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "HEAD GET / 0 keep; ; END" },
	{ "GET / HTTP/1.1\r\n" HOST "Connection: foo, Close\r\n\r\n", "HEAD GET / 1; ; END" },
	{ "POST / HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabcd", "HEAD POST / 1 keep; abc|rest 1; END" },
	{ "POST / HTTP/1.1\r\n" HOST "Content-Length: 3\r\nContent-Length:3 \r\n\r\nabc", "HEAD POST / 1 keep; abc; END" },
	{ "POST / HTTP/1.1\r\n" HOST "content-length: 0\r\n\r\n", "HEAD POST / 1 keep; ; END" },
	{ "POST / HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n", "HEAD POST / 1 keep expect; ; MORE" },
	{ "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0a;x=\"y\"\r\n0123456789\r\n0\r\n\r\nX",
		"HEAD POST / 1 keep; abc0123456789|rest 1; END" },
	{ "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: Chunked\r\n\r\n0\r\nA: b\r\nC: d\r\n\r\n", "HEAD POST / 1 keep; ; END" },
	{ "GET /x HTTP/1.1\r\n" HOST "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\nBYTES",
		"HEAD GET /x 1 keep upgrade=websocket; |rest 5; END" },
	{ "GET /x HTTP/1.1\r\n" HOST "Upgrade: websocket\r\n\r\n", "HEAD GET /x 1 keep; ; END" },
	{ "GET / HTTP/1.7\r\n" HOST "\r\n", "HEAD GET / 1 keep; ; END" },
	/* malformed */
	{ "GET / HTTP/1.1\r\n\r\n", "error 400: no Host field" },
	{ "GET / HTTP/1.1\r\n" HOST "Host: b\r\n\r\n", "error 400: more than one Host field" },
	{ "GET / HTTP/2.0\r\n" HOST "\r\n", "error 505: only HTTP/1.0 and HTTP/1.1 are spoken here" },
	{ "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "error 505: only HTTP/1.0 and HTTP/1.1 are spoken here" },
	{ "GET / HTTP/11\r\n" HOST "\r\n", "error 400: malformed request line" },
	{ "GET / http/1.1\r\n" HOST "\r\n", "error 400: malformed version in the first line" },
	{ "GET  / HTTP/1.1\r\n" HOST "\r\n", "error 400: malformed request line" },
	{ "GET / x HTTP/1.1\r\n" HOST "\r\n", "error 400: malformed request line" },
	{ "GET /\tx HTTP/1.1\r\n" HOST "\r\n", "error 400: malformed request line" },
	{ "GET /\xc3\xa4 HTTP/1.1\r\n" HOST "\r\n", "error 400: malformed request line" },
	{ "GET\r\n" HOST "\r\n", "error 400: malformed method in the request line" },
	{ " GET / HTTP/1.1\r\n" HOST "\r\n", "error 400: malformed method in the request line" },
	{ "G\"T / HTTP/1.1\r\n" HOST "\r\n", "error 400: malformed method in the request line" },
	{ "GET / HTTP/1.1\n" HOST "\r\n", "error 400: bare CR or LF in the head" },
	{ "GET / HTTP/1.1\r\nHost: a\n\r\n", "error 400: bare CR or LF in the head" },
	{ "GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n", "error 400: bare CR or LF in the head" },
	{ "GET / HTTP/1.1\r\nHost : a\r\n\r\n", "error 400: malformed header name" },
	{ "GET / HTTP/1.1\r\n: a\r\n\r\n", "error 400: malformed header name" },
	{ "GET / HTTP/1.1\r\nHost\r\n\r\n", "error 400: malformed header name" },
	{ "GET / HTTP/1.1\r\n" HOST "A: b\r\n c\r\n\r\n", "error 400: folded header line" },
	{ "GET / HTTP/1.1\r\n" HOST "A: b\x01\r\n\r\n", "error 400: control character in a header value" },
	{ "\r\n\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\n" HOST "\r\n", "error 400: empty lines before the message" },
	/* two lengths: smuggling */
	{ "POST / HTTP/1.1\r\n" HOST "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
		"error 400: both Content-Length and Transfer-Encoding" },
	{ "POST / HTTP/1.1\r\n" HOST "Content-Length: 3\r\nContent-Length: 4\r\n\r\n", "error 400: two different Content-Lengths" },
	{ "POST / HTTP/1.1\r\n" HOST "Content-Length: 3, 3\r\n\r\n", "error 400: malformed Content-Length" },
	{ "POST / HTTP/1.1\r\n" HOST "Content-Length: +3\r\n\r\n", "error 400: malformed Content-Length" },
	{ "POST / HTTP/1.1\r\n" HOST "Content-Length: 0x3\r\n\r\n", "error 400: malformed Content-Length" },
	{ "POST / HTTP/1.1\r\n" HOST "Content-Length:\r\n\r\n", "error 400: malformed Content-Length" },
	{ "POST / HTTP/1.1\r\n" HOST "Content-Length: 99999999999999999999\r\n\r\n", "error 400: malformed Content-Length" },
	{ "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n", "error 501: transfer coding other than \"chunked\"" },
	{ "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: identity\r\n\r\n", "error 501: transfer coding other than \"chunked\"" },
	{ "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
		"error 501: transfer coding other than \"chunked\"" },
	{ "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "error 400: Transfer-Encoding in HTTP/1.0" },
	{ "POST / HTTP/1.1\r\n" HOST "Content-Length: 11\r\n\r\n", "error 413: body too large" },
};

#define CHUNKED "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
static const struct {
	const char *body, *want;
} chunks[] = {
	{ "0x3\r\nabc\r\n", "malformed chunk size" }, { "-3\r\nabc\r\n", "malformed chunk size" }, { " 3\r\nabc\r\n", "malformed chunk size" },
	{ "3 \r\nabc\r\n", "malformed chunk size" }, { "\r\nabc\r\n", "malformed chunk size" }, { ";x\r\nabc\r\n", "malformed chunk size" },
	{ "3\nabc\r\n", "malformed chunk size" }, { "3\rabc\r\n", "bare CR behind a chunk size" },
	{ "3\r\nabcd\r\n", "chunk longer than its size" }, { "3\r\nabc\n", "chunk longer than its size" },
	{ "3\r\nabc\rx", "bare CR behind a chunk" }, { "ffffffffffffffff\r\n", "chunk size too large" },
	{ "3;a\nb\r\nabc\r\n", "malformed chunk extension" }, { "0\r\n a: b\r\n\r\n", "malformed trailer" },
	{ "0\r\na: b\n\r\n", "malformed trailer" }, { "0\r\n\rx", "bare CR in a trailer" }, { "0\r\na: b\rx", "bare CR in a trailer" },
	{ "b\r\nabcdefghijk\r\n", "body too large" }, { "6\r\nabcdef\r\n6\r\nabcdef\r\n", "body too large" },
};

static const struct {
	const char *text, *want;
	bool no_body;
} responses[] = {
	{ "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcX", "HEAD 200 1 keep; abc|rest 1; END", false },
	{ "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", "HEAD 200 1 keep; ; END", false },
	{ "HTTP/1.1 404 Not Found Here\r\nContent-Length: 3\r\n\r\nab", "error: HTTP: connection closed in the middle of a body", false },
	{ "HTTP/1.1 200 OK\r\n\r\nabc", "HEAD 200 1; abc; END", false },
	{ "HTTP/1.0 200 OK\r\n\r\n", "HEAD 200 0; ; END", false },
	{ "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", "HEAD 204 1 keep; ; END", false },
	{ "HTTP/1.1 304 x\r\n\r\nabc", "HEAD 304 1 keep; |rest 3; END", false },
	{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "HEAD 200 1 keep; ; END", true },
	{ "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 x\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", "HEAD 200 1 keep; x; END",
		false },
	{ "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n", "HEAD 200 1 keep; ; END", true },
	{ "HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\nBYTES", "HEAD 101 1 keep upgrade=SPDY/3.1; |rest 5; END", false },
	{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "HEAD 200 1 keep; abc; END", false },
	{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", "error: HTTP: connection closed in the middle of a body", false },
	{ "HTTP/1.1 20", "error: HTTP: connection closed in the middle of a head", false },
	{ "", "; MORE", false },
	{ "SSH-2.0-OpenSSH_9.2p1 Debian\r\n\r\n", "error 400: malformed status line", false },
	{ "HTTP/1.1 abc x\r\n\r\n", "error 400: malformed status number", false },
	{ "HTTP/1.1 2000\r\n\r\n", "error 400: malformed status number", false },
	{ "HTTP/1.1 099 x\r\n\r\n", "error 400: malformed status number", false },
	{ "\r\nHTTP/1.1 200 OK\r\n\r\n", "error 400: empty lines before the message", false },
};

/* The head of an error is not printed by all of the pieces alike, so drop what stands before "error". */
static const char *from_error(const char *text)
{
	const char *error = strstr(text, "error");

	return error ? error : text;
}

static const size_t steps[] = { 100000, 1, 2, 3, 7, 64 };

START_TEST(request_case)
{
	const char *text = requests[_i].text;

	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		_cleanup_free_ char *got = trace(HTTP1_REQUEST, text, strlen(text), steps[i], false, 10, false);

		if (strstr(requests[_i].want, "0123456789")) {
			free(got);
			got = trace(HTTP1_REQUEST, text, strlen(text), steps[i], false, 13, false);
		}
		ck_assert_msg(str_eq(from_error(got), requests[_i].want), "step %zu, %s\n got: %s\nwant: %s", steps[i], text, got,
			requests[_i].want);
	}
}
END_TEST

START_TEST(chunk_case)
{
	_cleanup_free_ char *text = xasprintf("%s%s", CHUNKED, chunks[_i].body);
	_cleanup_free_ char *want = xasprintf("error %d: %s", strstr(chunks[_i].want, "large") && strstr(chunks[_i].want, "body") ? 413 : 400,
		chunks[_i].want);

	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		_cleanup_free_ char *got = trace(HTTP1_REQUEST, text, strlen(text), steps[i], false, 10, false);

		ck_assert_msg(str_eq(from_error(got), want), "step %zu, %s\n got: %s\nwant: %s", steps[i], text, got, want);
	}
}
END_TEST

START_TEST(response_case)
{
	const char *text = responses[_i].text;

	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		_cleanup_free_ char *got = trace(HTTP1_RESPONSE, text, strlen(text), steps[i], true, 0, responses[_i].no_body);

		ck_assert_msg(str_eq(from_error(got), responses[_i].want), "step %zu, %s\n got: %s\nwant: %s", steps[i], text, got,
			responses[_i].want);
	}
}
END_TEST

START_TEST(limits)
{
	_cleanup_(str_done) struct str many = STR_INIT, tall = STR_INIT, trailer = STR_INIT;

	str_add(&many, "GET / HTTP/1.1\r\n" HOST);
	str_add(&tall, "GET / HTTP/1.1\r\n" HOST "A: ");
	str_add(&trailer, CHUNKED "0\r\n");
	for (int i = 0; i < 300; i++) {
		str_add(&tall, "x");
		str_add(&trailer, "a: b\r\n");
	}
	for (int i = 0; i < 100; i++)
		str_add(&many, "A:\r\n");
	str_add(&many, "\r\n");
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		_cleanup_free_ char *a = trace(HTTP1_REQUEST, tall.buf, tall.len, steps[i], false, 0, false);
		_cleanup_free_ char *b = trace(HTTP1_REQUEST, trailer.buf, trailer.len, steps[i], false, 0, false);

		ck_assert_str_eq(from_error(a), "error 431: head too large");
		ck_assert_str_eq(from_error(b), "error 431: trailer too large");
	}

	_cleanup_(http1_done) struct http1 h;
	struct bytes in = { many.buf, many.len };
	struct http1_event ev;
	struct error err;
	http1_init(&h, HTTP1_REQUEST);
	ck_assert_int_lt(http1_read(&h, &in, &ev, &err), 0);
	ck_assert_int_eq(h.answer, 431);
	ck_assert_int_eq(err.code, ERROR_EXHAUSTED);
	ck_assert_int_lt(http1_read(&h, &in, &ev, &err), 0);
	ck_assert_int_lt(http1_eof(&h, &ev, &err), 0);
}
END_TEST

START_TEST(pipeline_and_fields)
{
	const char *text = "POST /1 HTTP/1.1\r\n" HOST "X-Y:  some text \t\r\nContent-Length: 2\r\n\r\nhiGET /2 HTTP/1.1\r\n" HOST "\r\n";
	_cleanup_(http1_done) struct http1 h;
	struct bytes in = { text, strlen(text) };
	struct http1_event ev;
	struct error err;

	http1_init(&h, HTTP1_REQUEST);
	ck_assert_int_eq(http1_read(&h, &in, &ev, &err), 0);
	ck_assert_int_eq(ev.kind, HTTP1_HEAD);
	ck_assert_str_eq(http1_header(&h, "x-y"), "some text");
	ck_assert_ptr_null(http1_header(&h, "x"));
	ck_assert_uint_eq(h.content_length, 2);
	ck_assert_int_eq(http1_read(&h, &in, &ev, &err), 0);
	ck_assert_int_eq(ev.kind, HTTP1_BODY);
	ck_assert_int_eq(http1_read(&h, &in, &ev, &err), 0);
	ck_assert_int_eq(ev.kind, HTTP1_END);
	http1_next(&h);
	ck_assert_int_eq(http1_read(&h, &in, &ev, &err), 0);
	ck_assert_int_eq(ev.kind, HTTP1_HEAD);
	ck_assert_str_eq(h.target, "/2");
	ck_assert_ptr_null(http1_header(&h, "x-y"));
	ck_assert_int_eq(http1_read(&h, &in, &ev, &err), 0);
	ck_assert_int_eq(ev.kind, HTTP1_END);
	ck_assert_uint_eq(in.len, 0);
	ck_assert_int_eq(http1_read(&h, &in, &ev, &err), 0);
	ck_assert_int_eq(ev.kind, HTTP1_MORE);
	in = (struct bytes){ "x", 1 };
	ck_assert_int_lt(http1_read(&h, &in, &ev, &err), 0);
}
END_TEST

START_TEST(written_is_read)
{
	_cleanup_(str_done) struct str out = STR_INIT;

	http1_write_request(&out, "GET", "/a b\r\nX: y");
	http1_write_field(&out, "Host", "evil\r\nInjected: 1");
	http1_write_fieldf(&out, "N", "%d", 5);
	http1_write_field(&out, "Transfer-Encoding", "chunked");
	http1_write_head_end(&out);
	http1_write_chunk(&out, "hello", 5);
	http1_write_chunk(&out, "", 0);
	http1_write_chunk(&out, " world and more", 15);
	http1_write_chunk_end(&out);
	_cleanup_free_ char *got = trace(HTTP1_REQUEST, out.buf, out.len, 3, false, 0, false);
	ck_assert_str_eq(got, "HEAD GET /a%20b%20%20X:%20y 1 keep; hello world and more; END");

	str_reset(&out);
	http1_write_status(&out, 404);
	http1_write_field(&out, "Content-Length", "0");
	http1_write_head_end(&out);
	ck_assert_str_eq(out.buf, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
	ck_assert_str_eq(http1_reason(299), "");
}
END_TEST

START_TEST(tokens)
{
	ck_assert(http1_has_token("a, Bc ,d", "bC"));
	ck_assert(http1_has_token("upgrade", "Upgrade"));
	ck_assert(!http1_has_token("upgraded", "upgrade"));
	ck_assert(!http1_has_token("", "a"));
	ck_assert(!http1_has_token(NULL, "a"));
	ck_assert(!http1_has_token(", ,", "a"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("http1");
	TCase *t = tcase_create("http1");

	tcase_add_loop_test(t, request_case, 0, ARRAY_LEN(requests));
	tcase_add_loop_test(t, chunk_case, 0, ARRAY_LEN(chunks));
	tcase_add_loop_test(t, response_case, 0, ARRAY_LEN(responses));
	tcase_add_test(t, limits);
	tcase_add_test(t, pipeline_and_fields);
	tcase_add_test(t, written_is_read);
	tcase_add_test(t, tokens);
	suite_add_tcase(s, t);
	SRunner *runner = srunner_create(s);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}

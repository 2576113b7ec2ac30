/* stream_test.c - purpose: tokens, versions, sessions and port-forwarding as their clients see them, without sockets.
 */
#include <check.h>
#include <stdio.h>

#include "common/wire/spdy.h"
#include "common/wire/websocket.h"
#include "runtime-lite/stream/forward.h"
#include "runtime-lite/stream/protocols.h"
#include "runtime-lite/stream/session.h"
#include "runtime-lite/stream/token.h"

/* --- tokens */

#define TOKEN_A "00000000000000000000000000000001"
#define TOKEN_B "00000000000000000000000000000002"

static struct stream_request *take(struct tokens *t, enum stream_kind kind, const char *token, uint64_t now_ns)
{
	return tokens_take(t, kind, token, now_ns);
}

START_TEST(tokens_once)
{
	struct tokens *t = tokens_new();

	ck_assert_int_eq(tokens_add(t, stream_request_new(STREAM_EXEC, "c1"), TOKEN_A, 0, NULL), 0);
	ck_assert_int_eq(tokens_add(t, stream_request_new(STREAM_ATTACH, "c2"), TOKEN_B, 0, NULL), 0);
	_cleanup_(stream_request_free_p) struct stream_request *a = take(t, STREAM_EXEC, TOKEN_A, 1);
	ck_assert_str_eq(a->id, "c1");
	ck_assert_ptr_null(take(t, STREAM_EXEC, TOKEN_A, 1));
	ck_assert_ptr_null(take(t, STREAM_EXEC, TOKEN_B, 1)); /* of another kind: used up, too */
	ck_assert_ptr_null(take(t, STREAM_ATTACH, TOKEN_B, 1));
	ck_assert_ptr_null(take(t, STREAM_EXEC, "", 1));
	ck_assert_ptr_null(take(t, STREAM_EXEC, TOKEN_A "0", 1));
	tokens_free(t);
}
END_TEST

START_TEST(tokens_age)
{
	struct tokens *t = tokens_new();

	ck_assert_int_eq(tokens_add(t, stream_request_new(STREAM_EXEC, "c1"), TOKEN_A, 5, NULL), 0);
	_cleanup_(stream_request_free_p) struct stream_request *a =
		take(t, STREAM_EXEC, TOKEN_A, 5 + TOKEN_LIFE_NS - 1);
	ck_assert_ptr_nonnull(a);
	ck_assert_int_eq(tokens_add(t, stream_request_new(STREAM_EXEC, "c1"), TOKEN_A, 5, NULL), 0);
	ck_assert_ptr_null(take(t, STREAM_EXEC, TOKEN_A, 5 + TOKEN_LIFE_NS));
	tokens_free(t);
}
END_TEST

START_TEST(tokens_are_bounded)
{
	struct tokens *t = tokens_new();
	struct error err = ERROR_INIT;
	char token[TOKEN_LEN + 1];

	for (int i = 0; i < TOKENS_MAX; i++) {
		snprintf(token, sizeof(token), "%032d", i);
		ck_assert_int_eq(tokens_add(t, stream_request_new(STREAM_EXEC, "c"), token, 0, &err), 0);
	}
	ck_assert_int_lt(tokens_add(t, stream_request_new(STREAM_EXEC, "c"), TOKEN_A "", TOKEN_LIFE_NS - 1, &err), 0);
	ck_assert_int_eq(err.code, ERROR_EXHAUSTED);
	/* Old ones make room. */
	ck_assert_int_eq(tokens_add(t, stream_request_new(STREAM_EXEC, "c"), TOKEN_A "", TOKEN_LIFE_NS, &err), 0);
	tokens_free(t);
}
END_TEST

/* --- versions */

static const struct {
	const struct protocol *known;
	const char *offers; /* headers, separated by '|' */
	const char *picked; /* NULL: none */
} offers[] = {
	{ protocols_spdy, "v5.channel.k8s.io|v4.channel.k8s.io", "v5.channel.k8s.io" },
	{ protocols_spdy, "v9.channel.k8s.io, v3.channel.k8s.io ,v4.channel.k8s.io", "v3.channel.k8s.io" },
	{ protocols_spdy, "", "" },
	{ protocols_spdy, "v9.channel.k8s.io", NULL },
	{ protocols_spdy, ",, ,", "" },
	{ protocols_websocket, "v2.channel.k8s.io|base64.channel.k8s.io", "base64.channel.k8s.io" },
	{ protocols_websocket, "chat", NULL },
	{ protocols_forward_spdy, "portforward.k8s.io", "portforward.k8s.io" },
	{ protocols_forward_spdy, "", NULL },
	{ protocols_forward_websocket, "SPDY/3.1+portforward.k8s.io", "SPDY/3.1+portforward.k8s.io" },
};

START_TEST(versions)
{
	_cleanup_(strv_done) struct strv headers = STRV_INIT, names = STRV_INIT;

	strv_split(&headers, offers[_i].offers, '|');
	for (size_t i = 0; i < headers.n; i++)
		protocols_add_offers(&names, headers.v[i]);
	const struct protocol *p = protocols_pick(offers[_i].known, &names);

	ck_assert_msg(offers[_i].picked ? p && str_eq(p->name, offers[_i].picked) : !p, "%s: %s", offers[_i].offers,
		p ? p->name : "none");
}
END_TEST

/* --- sessions */

static char *events(struct session *s, const struct str *bytes, size_t step)
{
	struct str out = STR_INIT;
	struct error err = ERROR_INIT;

	for (size_t at = 0; at == 0 || at < bytes->len; at += step) {
		size_t n = MIN(step, bytes->len - at);
		_cleanup_free_ char *piece = xmemdup(str_get(bytes) + at, n);
		struct bytes in = { piece, n };
		struct session_event ev;

		do {
			if (session_read(s, &in, &ev, &err) < 0) {
				str_addf(&out, "error %s", err.text);
				return str_take(&out);
			}
			switch (ev.kind) {
			case SESSION_READY:
				str_add(&out, "ready ");
				break;
			case SESSION_INPUT:
				str_add_bytes(&out, ev.data.ptr, ev.data.len);
				break;
			case SESSION_INPUT_END:
				str_add(&out, " end ");
				break;
			case SESSION_RESIZE:
				str_addf(&out, "%ux%u ", ev.rows, ev.columns);
				break;
			case SESSION_CLOSED:
				str_add(&out, "closed ");
				break;
			case SESSION_MORE:
				break;
			}
		} while (ev.kind != SESSION_MORE);
	}
	return str_take(&out);
}

static uint32_t open_stream(struct spdy *client, const char *type)
{
	return spdy_open(client, (const struct spdy_field[]){ { "streamtype", type } }, 1);
}

static const size_t steps[] = { 1, 4, 1000000 };

START_TEST(spdy_session)
{
	const struct session_wants wants = { .in = true, .out = true, .tty = true };
	_cleanup_(session_free_p) struct session *s = session_spdy(4, &wants);
	_cleanup_(spdy_free_p) struct spdy *client = spdy_new(SPDY_CLIENT);
	uint32_t error = open_stream(client, "error"), in = open_stream(client, "stdin"),
		 out = open_stream(client, "stdout");
	uint32_t resize = open_stream(client, "resize");

	ck_assert(error && out);
	spdy_end(client, out); /* as clients do: they do not write on it */
	spdy_data(client, resize, "{\"Width\":80,\"Hei", 16);
	spdy_data(client, resize, "ght\":24}\n{\"width\":1,\"height\":2}", 31);
	spdy_data(client, in, "abc", 3);
	spdy_end(client, in);
	_cleanup_free_ char *got = events(s, &client->out, steps[_i]);
	ck_assert_msg(str_starts(got, "ready ") && strstr(got, "2x1 ") && str_ends(got, "abc end "), "%s", got);
}
END_TEST

START_TEST(spdy_session_waits_for_all)
{
	const struct session_wants wants = { .out = true, .err = true };
	_cleanup_(session_free_p) struct session *s = session_spdy(4, &wants);
	_cleanup_(spdy_free_p) struct spdy *client = spdy_new(SPDY_CLIENT);

	ck_assert(open_stream(client, "error") && open_stream(client, "stdout") && open_stream(client, "stdin"));
	_cleanup_free_ char *some = events(s, &client->out, steps[_i]);
	ck_assert_str_eq(some, "");
	str_reset(&client->out);
	/* One of each; what is not known or was not asked for does no harm. */
	ck_assert(open_stream(client, "stdout") && open_stream(client, "coffee") && open_stream(client, "stderr"));
	_cleanup_free_ char *rest = events(s, &client->out, steps[_i]);
	ck_assert_str_eq(rest, "ready ");
}
END_TEST

static uint32_t no_chance(void)
{
	return 0x01020304;
}

static void put(struct websocket *client, const char *text, size_t len)
{
	websocket_write(client, false, text, len, NULL, 0);
}

START_TEST(websocket_session)
{
	const struct session_wants wants = { .in = true, .out = true, .err = true };
	_cleanup_(session_free_p) struct session *s = session_websocket(5, false, &wants),
						 *old = session_websocket(4, false, &wants);
	_cleanup_(websocket_free_p) struct websocket *client = websocket_new(WEBSOCKET_CLIENT, no_chance);

	put(client, "\0hello", 6);
	put(client, "\4{\"Width\":9,\"Height\":8}", 23);
	put(client, "", 0);
	put(client, "\7what", 5);
	put(client, "\0", 1);
	put(client, "\377\0", 2);
	put(client, "\0late", 5);
	_cleanup_free_ char *got = events(s, &client->out, steps[_i]);
	ck_assert_str_eq(got, "ready hello8x9  end ");
	/* Before version 5 nothing ends stdin but a close. */
	_cleanup_free_ char *got_old = events(old, &client->out, steps[_i]);
	ck_assert_str_eq(got_old, "ready hello8x9 late");
	str_reset(&client->out);
	websocket_close(client, WEBSOCKET_NORMAL, "");
	_cleanup_free_ char *closed = events(old, &client->out, steps[_i]);
	ck_assert_str_eq(closed, "closed ");
}
END_TEST

START_TEST(base64_session)
{
	const struct session_wants wants = { .in = true, .out = true };
	_cleanup_(session_free_p) struct session *s = session_websocket(4, true, &wants);
	_cleanup_(websocket_free_p) struct websocket *client = websocket_new(WEBSOCKET_CLIENT, no_chance);

	websocket_write(client, true, "0aGVs\nbG8=", 10, NULL, 0);
	websocket_write(client, true, "0IHdvcmxk", 9, NULL, 0);
	_cleanup_free_ char *got = events(s, &client->out, steps[_i]);
	ck_assert_str_eq(got, "ready hello world");
	str_reset(&client->out);
	websocket_write(client, true, "0IHdvcm", 7, NULL, 0);
	_cleanup_free_ char *cut = events(s, &client->out, steps[_i]);
	ck_assert_msg(strstr(cut, "error WebSocket: a message is not base64"), "%s", cut);
	struct str *out = session_out(s);
	str_reset(out);
	session_output(s, false, "hi", 2);
	ck_assert_uint_eq(out->len, 0); /* it has closed */
}
END_TEST

/* What a client reads, as "1:text 3:status close". */
static char *websocket_output(struct session *s)
{
	_cleanup_(websocket_free_p) struct websocket *client = websocket_new(WEBSOCKET_CLIENT, no_chance);
	struct str *bytes = session_out(s), out = STR_INIT;
	struct bytes in = { str_get(bytes), bytes->len };
	struct websocket_event ev;

	do {
		ck_assert_int_eq(websocket_read(client, &in, &ev, NULL), 0);
		if (ev.kind == WEBSOCKET_CLOSE)
			str_addf(&out, "close %d", ev.code);
		if (ev.kind == WEBSOCKET_DATA && ev.data.len)
			str_addf(&out, "%d:%.*s ", ev.data.ptr[0], (int)ev.data.len - 1, ev.data.ptr + 1);
	} while (ev.kind != WEBSOCKET_MORE);
	return str_take(&out);
}

START_TEST(websocket_output_ends)
{
	const struct session_wants wants = { .out = true, .err = true };
	_cleanup_(session_free_p) struct session *s = session_websocket(5, false, &wants);

	session_output(s, false, "out", 3);
	session_output(s, true, "err", 3);
	session_end(s, &(struct session_outcome){ .result = SESSION_SUCCESS });
	session_output(s, false, "late", 4);
	session_end(s, &(struct session_outcome){ .result = SESSION_SUCCESS });
	_cleanup_free_ char *got = websocket_output(s);
	ck_assert_str_eq(got, "1: 1:out 2:err 3:{\"metadata\":{},\"status\":\"Success\"} close 1000");
}
END_TEST

static const struct {
	int version;
	struct session_outcome outcome;
	const char *text;
} outcomes[] = {
	{ 4, { .result = SESSION_SUCCESS }, "{\"metadata\":{},\"status\":\"Success\"}" },
	{ 5, { .result = SESSION_EXIT }, "{\"metadata\":{},\"status\":\"Success\"}" },
	{ 4, { .result = SESSION_EXIT, .exit_code = 7 },
		"{\"metadata\":{},\"status\":\"Failure\",\"message\":\"command terminated with non-zero exit code: "
		"exit status 7\","
		"\"reason\":\"NonZeroExitCode\",\"details\":{\"causes\":[{\"reason\":\"ExitCode\",\"message\":\"7\"}]}"
		"}" },
	{ 4, { .result = SESSION_FAILURE, .message = "no \"x\"" },
		"{\"metadata\":{},\"status\":\"Failure\",\"message\":\"Internal error occurred: no "
		"\\\"x\\\"\",\"reason\":\"InternalError\","
		"\"details\":{\"causes\":[{\"message\":\"Internal error occurred: no \\\"x\\\"\"}]},\"code\":500}" },
	{ 1, { .result = SESSION_SUCCESS }, "" },
	{ 3, { .result = SESSION_EXIT, .exit_code = 7 }, "command terminated with non-zero exit code: exit status 7" },
	{ 2, { .result = SESSION_FAILURE, .message = "no" }, "Internal error occurred: no" },
};

START_TEST(statuses)
{
	_cleanup_(str_done) struct str text = STR_INIT;

	session_status(outcomes[_i].version, &outcomes[_i].outcome, &text);
	ck_assert_str_eq(str_get(&text), outcomes[_i].text);
}
END_TEST

START_TEST(status_of_strange_names)
{
	_cleanup_(str_done) struct str text = STR_INIT;

	session_status(4, &(struct session_outcome){ .result = SESSION_FAILURE, .message = "\xff\xfe" }, &text);
	ck_assert_ptr_nonnull(strstr(text.buf, "occurred: ??"));
}
END_TEST

/* --- port-forward */

static char *forward_events(struct forward *f, struct str *bytes, size_t step)
{
	struct str out = STR_INIT;
	struct error err = ERROR_INIT;

	for (size_t at = 0; at == 0 || at < bytes->len; at += step) {
		size_t n = MIN(step, bytes->len - at);
		_cleanup_free_ char *piece = xmemdup(str_get(bytes) + at, n);
		struct bytes in = { piece, n };
		struct forward_event ev;

		do {
			if (forward_read(f, &in, &ev, &err) < 0) {
				str_addf(&out, "error %s", err.text);
				return str_take(&out);
			}
			switch (ev.kind) {
			case FORWARD_OPEN:
				str_addf(&out, "open %u port %u; ", ev.pair, ev.port);
				break;
			case FORWARD_DATA:
				str_add_bytes(&out, ev.data.ptr, ev.data.len);
				break;
			case FORWARD_END:
				str_addf(&out, "; end %u; ", ev.pair);
				break;
			case FORWARD_GONE:
				str_addf(&out, "gone %u; ", ev.pair);
				break;
			case FORWARD_CLOSED:
				str_add(&out, "closed; ");
				break;
			case FORWARD_MORE:
				break;
			}
		} while (ev.kind != FORWARD_MORE);
	}
	str_reset(bytes);
	return str_take(&out);
}

static uint32_t open_half(struct spdy *client, const char *type, const char *port, const char *request)
{
	const struct spdy_field fields[] = { { "streamtype", type }, { "port", port }, { "requestid", request } };

	return spdy_open(client, fields, request ? 3 : 2);
}

#define assert_forward(f, client, step, wanted)                                                                        \
	do {                                                                                                           \
		_cleanup_free_ char *got_ = forward_events(f, &(client)->out, step);                                   \
		ck_assert_str_eq(got_, wanted);                                                                        \
	} while (0)

START_TEST(pairs)
{
	size_t step = steps[_i];
	_cleanup_(forward_free_p) struct forward *f = forward_spdy(false);
	_cleanup_(spdy_free_p) struct spdy *client = spdy_new(SPDY_CLIENT);

	ck_assert_uint_eq(open_half(client, "error", "80", "0"), 1);
	spdy_end(client, 1);
	assert_forward(f, client, step, "");
	ck_assert(forward_waits(f));
	ck_assert_uint_eq(open_half(client, "data", "80", "0"), 3);
	spdy_data(client, 3, "abc", 3);
	ck_assert_uint_eq(open_half(client, "error", "81", NULL), 5); /* an old client */
	ck_assert_uint_eq(open_half(client, "data", "81", NULL), 7);
	assert_forward(f, client, step, "open 3 port 80; abcopen 7 port 81; ");
	ck_assert(!forward_waits(f));
	/* Both ends, in both orders; then the client gives up. */
	forward_end(f, 3);
	spdy_end(client, 3);
	spdy_end(client, 7);
	assert_forward(f, client, step, "; end 3; ; end 7; ");
	forward_data(f, 7, "more", 4);
	forward_end(f, 7);
	forward_end(f, 7);
	forward_fail(f, 7, "too late");
	assert_forward(f, client, step, "");
}
END_TEST

START_TEST(pairs_that_go)
{
	size_t step = steps[_i];
	_cleanup_(forward_free_p) struct forward *f = forward_spdy(false);
	_cleanup_(spdy_free_p) struct spdy *client = spdy_new(SPDY_CLIENT);

	ck_assert(open_half(client, "error", "80", "a") && open_half(client, "data", "80", "a"));
	ck_assert(open_half(client, "error", "80", "b") && open_half(client, "data", "80", "b"));
	spdy_reset(client, 3, SPDY_CANCEL);
	assert_forward(f, client, step, "open 3 port 80; open 7 port 80; gone 3; ");
	forward_fail(f, 7, "error forwarding");
	spdy_data(client, 7, "x", 1);
	assert_forward(f, client, step, "");
	/* What the client sees of it. */
	struct bytes in = { str_get(forward_out(f)), forward_out(f)->len };
	_cleanup_(str_done) struct str text = STR_INIT;
	struct spdy_event ev;
	bool reset = false;
	do {
		ck_assert_int_eq(spdy_read(client, &in, &ev, NULL), 0);
		if (ev.kind == SPDY_DATA && ev.stream == 5)
			str_add_bytes(&text, ev.data.ptr, ev.data.len);
		reset |= ev.kind == SPDY_RESET && ev.stream == 7;
	} while (ev.kind != SPDY_MORE);
	ck_assert_str_eq(str_get(&text), "error forwarding");
	ck_assert(reset);
}
END_TEST

START_TEST(pairs_that_are_none)
{
	_cleanup_(forward_free_p) struct forward *f = forward_spdy(false);
	_cleanup_(spdy_free_p) struct spdy *client = spdy_new(SPDY_CLIENT);
	static const char *const bad[][3] = { { "data", "0", "1" }, { "data", "65536", "1" }, { "data", "8x", "1" },
		{ "data", "", "1" }, { "error", "-1", "1" }, { "tea", "80", "1" },
		{ "data", "80", "0123456789012345678901234567890123456789012345678901234567890123456789" } };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ck_assert(open_half(client, bad[i][0], bad[i][1], bad[i][2]));
	assert_forward(f, client, 1000, "");
	ck_assert(!forward_waits(f));
	/* Another port, or the same half twice. */
	ck_assert(open_half(client, "error", "80", "c") && open_half(client, "error", "80", "c") &&
		  open_half(client, "data", "81", "c"));
	assert_forward(f, client, 1000, "");
	ck_assert(forward_waits(f));
	forward_tick(f);
	ck_assert(forward_waits(f));
	forward_tick(f);
	ck_assert(!forward_waits(f));
}
END_TEST

START_TEST(tunnel)
{
	size_t step = steps[_i];
	_cleanup_(forward_free_p) struct forward *f = forward_spdy(true);
	_cleanup_(spdy_free_p) struct spdy *client = spdy_new(SPDY_CLIENT);
	_cleanup_(websocket_free_p) struct websocket *ws = websocket_new(WEBSOCKET_CLIENT, no_chance);

	ck_assert(open_half(client, "error", "80", "a") && open_half(client, "data", "80", "a"));
	spdy_data(client, 3, "hello", 5);
	spdy_end(client, 3);
	/* Messages are cut anywhere. */
	for (size_t at = 0; at < client->out.len; at += 5)
		websocket_write(ws, false, client->out.buf + at, MIN((size_t)5, client->out.len - at), NULL, 0);
	websocket_close(ws, WEBSOCKET_NORMAL, "");
	_cleanup_free_ char *got = forward_events(f, &ws->out, step);
	ck_assert_str_eq(got, "open 3 port 80; hello; end 3; closed; ");
}
END_TEST

START_TEST(channels)
{
	static const uint16_t ports[] = { 80, 443 };
	_cleanup_(forward_free_p) struct forward *f = forward_channels(false, ports, 2);
	_cleanup_(websocket_free_p) struct websocket *client = websocket_new(WEBSOCKET_CLIENT, no_chance);

	put(client, "\2abc", 4);
	put(client, "\1what", 5);
	put(client, "\6what", 5);
	put(client, "\0x", 2);
	_cleanup_free_ char *got = forward_events(f, &client->out, steps[_i]);
	ck_assert_str_eq(got, "open 0 port 80; open 1 port 443; abcx");
	str_reset(forward_out(f));
	forward_fail(f, 0, "no");
	forward_fail(f, 0, "no");
	ck_assert_uint_eq(forward_out(f)->len, 2 + 1 + 2);
	forward_end(f, 1);
	ck_assert_uint_gt(forward_out(f)->len, 5); /* all have ended: Close */
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("stream");
	Suite *s = suite_create("stream");

	tcase_add_test(t, tokens_once);
	tcase_add_test(t, tokens_age);
	tcase_add_test(t, tokens_are_bounded);
	tcase_add_loop_test(t, versions, 0, ARRAY_LEN(offers));
	tcase_add_loop_test(t, spdy_session, 0, ARRAY_LEN(steps));
	tcase_add_loop_test(t, spdy_session_waits_for_all, 0, ARRAY_LEN(steps));
	tcase_add_loop_test(t, websocket_session, 0, ARRAY_LEN(steps));
	tcase_add_loop_test(t, base64_session, 0, ARRAY_LEN(steps));
	tcase_add_test(t, websocket_output_ends);
	tcase_add_loop_test(t, statuses, 0, ARRAY_LEN(outcomes));
	tcase_add_test(t, status_of_strange_names);
	tcase_add_loop_test(t, pairs, 0, ARRAY_LEN(steps));
	tcase_add_loop_test(t, pairs_that_go, 0, ARRAY_LEN(steps));
	tcase_add_test(t, pairs_that_are_none);
	tcase_add_loop_test(t, tunnel, 0, ARRAY_LEN(steps));
	tcase_add_loop_test(t, channels, 0, ARRAY_LEN(steps));
	suite_add_tcase(s, t);
	SRunner *runner = srunner_create(s);

	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);

	srunner_free(runner);
	return failed != 0;
}

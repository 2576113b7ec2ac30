/* spdy_test.c - purpose: SPDY frames as event traces, both sides against each other, whole and in odd pieces. */
#include "common/wire/spdy.h"

#include <check.h>
#include <stdio.h>

#include "common/base/codec.h"

/* Moves all of `from->out` into `to`, in pieces; returns what `to` saw: "stream 1 a=b; data 1 xyz; end 1; ". Streams
 * are answered when `answer` is set. */
static char *pass(struct spdy *from, struct spdy *to, size_t step, bool answer)
{
	_cleanup_(str_done) struct str bytes = from->out;
	struct str out = STR_INIT;
	struct error err = ERROR_INIT;
	uint32_t data_of = 0;

	from->out = STR_INIT;
	for (size_t at = 0; at < bytes.len; at += step) {
		size_t n = MIN(step, bytes.len - at);
		_cleanup_free_ char *piece = xmemdup(bytes.buf + at, n);
		struct bytes in = { piece, n };
		struct spdy_event ev;

		do {
			if (spdy_read(to, &in, &ev, &err) < 0) {
				str_addf(&out, "error %s", err.text);
				return str_take(&out);
			}
			if (data_of && !(ev.kind == SPDY_DATA && ev.stream == data_of) && ev.kind != SPDY_MORE) {
				str_add(&out, "; ");
				data_of = 0;
			}
			switch (ev.kind) {
			case SPDY_STREAM:
				str_addf(&out, "stream %u", ev.stream);
				for (size_t i = 0; i < to->n_fields; i++)
					str_addf(&out, " %s=%s", to->fields[i].name, to->fields[i].value);
				str_add(&out, "; ");
				if (answer)
					spdy_reply(to, ev.stream);
				break;
			case SPDY_DATA: /* pieces are joined: how they are cut does not matter */
				ck_assert_uint_gt(ev.data.len, 0);
				if (!data_of)
					str_addf(&out, "data %u ", ev.stream);
				data_of = ev.stream;
				str_add_bytes(&out, ev.data.ptr, ev.data.len);
				break;
			case SPDY_REPLY:
				str_addf(&out, "reply %u; ", ev.stream);
				break;
			case SPDY_END:
				str_addf(&out, "end %u; ", ev.stream);
				break;
			case SPDY_RESET:
				str_addf(&out, "reset %u %u; ", ev.stream, ev.status);
				break;
			case SPDY_PONG:
				str_addf(&out, "pong %u; ", ev.stream);
				break;
			case SPDY_GOAWAY:
				str_add(&out, "goaway; ");
				break;
			case SPDY_MORE:
				break;
			}
		} while (ev.kind != SPDY_MORE);
	}
	if (data_of)
		str_add(&out, "; ");
	return str_take(&out);
}

#define assert_pass(from, to, step, wanted)                                                                            \
	do {                                                                                                           \
		_cleanup_free_ char *got_ = pass(from, to, step, true);                                                \
		ck_assert_str_eq(got_, wanted);                                                                        \
	} while (0)

static const size_t steps[] = { 1, 3, 7, 100000 };

START_TEST(two_sides)
{
	size_t step = steps[_i];
	_cleanup_(spdy_free_p) struct spdy *client = spdy_new(SPDY_CLIENT), *server = spdy_new(SPDY_SERVER);
	const struct spdy_field error[] = { { "streamtype", "error" } },
				data[] = { { "streamtype", "data" }, { "port", "80" } };

	ck_assert_uint_eq(spdy_open(client, error, 1), 1);
	ck_assert_uint_eq(spdy_open(client, data, 2), 3);
	spdy_data(client, 3, "hello", 5);
	spdy_end(client, 3);
	assert_pass(client, server, step,
		"stream 1 streamtype=error; stream 3 streamtype=data port=80; data 3 hello; end 3; ");
	assert_pass(server, client, step, "reply 1; reply 3; ");
	ck_assert(spdy_is_open(server, 3));
	spdy_data(server, 3, "bye", 3);
	spdy_end(server, 3);
	ck_assert(!spdy_is_open(server, 3));
	spdy_data(server, 3, "after the end", 13);
	spdy_reset(server, 1, SPDY_CANCEL);
	spdy_ping(server);
	spdy_goaway(server);
	spdy_goaway(server);
	assert_pass(server, client, step, "data 3 bye; end 3; reset 1 5; goaway; ");
	ck_assert(!spdy_is_open(client, 1) && !spdy_is_open(client, 3));
	assert_pass(client, server, step, "pong 2; ");
}
END_TEST

START_TEST(large_data_is_cut)
{
	_cleanup_(spdy_free_p) struct spdy *client = spdy_new(SPDY_CLIENT), *server = spdy_new(SPDY_SERVER);
	_cleanup_free_ char *big = xmalloc(100000);
	const struct spdy_field fields[] = { { "a", "" } };
	_cleanup_(str_done) struct str wanted = STR_INIT;

	memset(big, 'x', 100000);
	ck_assert_uint_eq(spdy_open(client, fields, 1), 1);
	spdy_data(client, 1, big, 100000);
	ck_assert_uint_gt(client->out.len, 100000 + 4 * 8);
	str_add(&wanted, "stream 1 a=; data 1 ");
	str_add_bytes(&wanted, big, 100000);
	str_add(&wanted, "; ");
	assert_pass(client, server, 999, wanted.buf);
}
END_TEST

/* Frames as they are on the wire, to a server on which stream 1 is open. */
static const struct {
	const char *name, *hex, *events, *answer;
} frames[] = {
	{ "data for nobody",
		"0000000900000001"
		"41",
		"", "reset 9 2; " },
	{ "data after the end",
		"0000000101000000"
		"0000000100000001"
		"41",
		"end 1; ", "reset 1 9; " },
	{ "empty data", "0000000100000000", "", "" },
	{ "end with data",
		"0000000101000002"
		"4142",
		"data 1 AB; end 1; ", "" },
	{ "reset",
		"8003000300000008"
		"00000001"
		"00000005",
		"reset 1 5; ", "" },
	{ "reset of nothing",
		"8003000300000008"
		"00000007"
		"00000005",
		"", "" },
	{ "short reset",
		"8003000300000004"
		"00000001",
		"error SPDY: RST_STREAM frame of 4 bytes", "goaway; " },
	{ "settings",
		"8003000400000004"
		"00000000",
		"", "" },
	{ "window update",
		"8003000900000008"
		"00000001"
		"00010000",
		"", "" },
	{ "noop of another kind",
		"800300ff00000003"
		"aabbcc",
		"", "" },
	{ "ping",
		"8003000600000004"
		"00000005",
		"", "pong 5; " },
	{ "long ping",
		"8003000600000005"
		"0000000500",
		"error SPDY: PING frame of 5 bytes", "goaway; " },
	{ "goaway",
		"8003000700000008"
		"00000000"
		"00000000",
		"goaway; ", "" },
	{ "version 2",
		"8002000600000004"
		"00000005",
		"error SPDY: frame of SPDY version 2", "goaway; " },
	{ "huge control frame", "8003000100ffffff",
		"error SPDY: control frame of 16777215 bytes; at most 65536 are taken", "goaway; " },
	{ "short SYN_STREAM",
		"8003000100000004"
		"00000003",
		"error SPDY: SYN_STREAM frame of 4 bytes", "goaway; " },
	{ "headers that are no zlib",
		"800300010000000e"
		"00000003"
		"00000000"
		"0000"
		"deadbeef",
		"error SPDY: header block: cannot be decompressed", "goaway; " },
	{ "no headers at all",
		"800300010000000a"
		"00000003"
		"00000000"
		"0000",
		"error SPDY: header block: too short", "goaway; " },
};

START_TEST(single_frames)
{
	for (size_t k = 0; k < ARRAY_LEN(steps); k++) {
		_cleanup_(spdy_free_p) struct spdy *client = spdy_new(SPDY_CLIENT), *server = spdy_new(SPDY_SERVER);
		size_t len = strlen(frames[_i].hex) / 2;
		_cleanup_free_ char *raw = xmalloc(len);
		const struct spdy_field fields[] = { { "a", "b" } };

		ck_assert_uint_eq(spdy_open(client, fields, 1), 1);
		assert_pass(client, server, 1000, "stream 1 a=b; ");
		assert_pass(server, client, 1000, "reply 1; ");
		ck_assert_int_eq(hex_decode(frames[_i].hex, len, raw), 0);
		str_add_bytes(&client->out, raw, len);
		_cleanup_free_ char *got = pass(client, server, steps[k], false);
		ck_assert_msg(str_eq(got, frames[_i].events), "%s: %s", frames[_i].name, got);
		/* A client's own pings come back to it as pongs; resets of streams that it does not know are not shown.
		 */
		_cleanup_(spdy_free_p) struct spdy *peer = spdy_new(SPDY_CLIENT);
		_cleanup_(str_done) struct str sent = STR_INIT;
		str_add_bytes(&sent, str_get(&server->out), server->out.len);
		bool reset = str_starts(frames[_i].answer, "reset");
		if (reset) {
			unsigned stream, status;
			unsigned char *b = (unsigned char *)sent.buf;

			ck_assert_int_eq(sscanf(frames[_i].answer, "reset %u %u", &stream, &status), 2);
			ck_assert_uint_eq(sent.len, 16);
			ck_assert(b[3] == 3 && b[11] == stream && b[15] == status);
			continue;
		}
		_cleanup_free_ char *answer = pass(server, peer, steps[k], false);
		ck_assert_msg(str_eq(answer, frames[_i].answer), "%s: answered %s", frames[_i].name, answer);
	}
}
END_TEST

/* Ids have to be the peer's and to grow. */
START_TEST(stream_ids)
{
	_cleanup_(spdy_free_p) struct spdy *first = spdy_new(SPDY_CLIENT), *server = spdy_new(SPDY_SERVER);
	const struct spdy_field fields[] = { { "a", "b" } };

	ck_assert_uint_eq(spdy_open(first, fields, 1), 1);
	ck_assert_uint_eq(spdy_open(first, fields, 1), 3);
	first->out.buf[8 + 3] = 7; /* the first says it is 7: then 3 comes too late */
	assert_pass(first, server, 5, "stream 7 a=b; ");
	ck_assert(!spdy_is_open(server, 3));
	/* An even id is a server's. */
	_cleanup_(spdy_free_p) struct spdy *second = spdy_new(SPDY_CLIENT), *other = spdy_new(SPDY_SERVER);
	ck_assert_uint_eq(spdy_open(second, fields, 1), 1);
	second->out.buf[8 + 3] = 2;
	assert_pass(second, other, 5, "");
	ck_assert_uint_eq(other->n_streams, 0);
}
END_TEST

START_TEST(too_many_streams)
{
	_cleanup_(spdy_free_p) struct spdy *client = spdy_new(SPDY_CLIENT), *server = spdy_new(SPDY_SERVER);
	const struct spdy_field fields[] = { { "a", "b" } };

	for (int i = 0; i < SPDY_STREAMS_MAX; i++)
		ck_assert_uint_eq(spdy_open(client, fields, 1), (uint32_t)i * 2 + 1);
	ck_assert_uint_eq(spdy_open(client, fields, 1), 0);
	free(pass(client, server, 100000, false));
	ck_assert_uint_eq(server->n_streams, SPDY_STREAMS_MAX);
	/* The client forgets one, the server does not hear of it. */
	spdy_reset(client, 1, SPDY_CANCEL);
	str_reset(&client->out);
	uint32_t id = spdy_open(client, fields, 1);
	free(pass(client, server, 100000, false));
	ck_assert(!spdy_is_open(server, id));
	_cleanup_free_ char *got = pass(server, client, 100000, false), *wanted = xasprintf("reset %u 3; ", id);
	ck_assert_str_eq(got, wanted);
}
END_TEST

START_TEST(a_bomb_of_headers)
{
	_cleanup_(spdy_free_p) struct spdy *client = spdy_new(SPDY_CLIENT), *server = spdy_new(SPDY_SERVER);
	_cleanup_free_ char *big = xcalloc(SPDY_HEADER_BLOCK_MAX + 2, 1);

	memset(big, 'x', SPDY_HEADER_BLOCK_MAX + 1);
	ck_assert_uint_eq(spdy_open(client, (const struct spdy_field[]){ { "a", big } }, 1), 1);
	_cleanup_free_ char *got = pass(client, server, 1000, false);
	ck_assert_str_eq(got, "error SPDY: header block: has more than 65536 bytes");
	_cleanup_(spdy_free_p) struct spdy *many = spdy_new(SPDY_CLIENT), *other = spdy_new(SPDY_SERVER);
	struct spdy_field fields[SPDY_HEADERS_MAX + 1];
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		fields[i] = (struct spdy_field){ "a", "b" };
	ck_assert_uint_eq(spdy_open(many, fields, ARRAY_LEN(fields)), 1);
	_cleanup_free_ char *got_many = pass(many, other, 1000, false);
	ck_assert_str_eq(got_many, "error SPDY: header block: has 65 fields; at most 64 are taken");
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("spdy");
	Suite *s = suite_create("spdy");

	tcase_add_loop_test(t, two_sides, 0, ARRAY_LEN(steps));
	tcase_add_test(t, large_data_is_cut);
	tcase_add_loop_test(t, single_frames, 0, ARRAY_LEN(frames));
	tcase_add_test(t, stream_ids);
	tcase_add_test(t, too_many_streams);
	tcase_add_test(t, a_bomb_of_headers);
	suite_add_tcase(s, t);
	SRunner *runner = srunner_create(s);

	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);

	srunner_free(runner);
	return failed != 0;
}

/* websocket_test.c - purpose: WebSocket frames as event traces, both sides against each other, and the handshake. */
#include "common/wire/websocket.h"

#include <check.h>

#include "common/base/codec.h"
#include "common/base/sha1.h"

static uint32_t no_chance(void)
{
	static uint32_t n = 0x01020304;

	return n += 0x10203;
}

/* "msg abc; text x; pong; close 1000; " or "error ..."; pieces of a message are joined. */
static char *read_all(struct websocket *ws, const char *p, size_t len, size_t step)
{
	struct str out = STR_INIT;
	struct error err = ERROR_INIT;

	for (size_t at = 0; at < len; at += step) {
		size_t n = MIN(step, len - at);
		_cleanup_free_ char *piece = xmemdup(p + at, n);
		struct bytes in = { piece, n };
		struct websocket_event ev;

		do {
			if (websocket_read(ws, &in, &ev, &err) < 0) {
				str_addf(&out, "error %s", err.text);
				return str_take(&out);
			}
			if (ev.kind == WEBSOCKET_DATA) {
				if (ev.first)
					str_add(&out, ev.text ? "text " : "msg ");
				str_add_bytes(&out, ev.data.ptr, ev.data.len);
				if (ev.last)
					str_add(&out, "; ");
			}
			if (ev.kind == WEBSOCKET_PONG)
				str_add(&out, "pong; ");
			if (ev.kind == WEBSOCKET_CLOSE)
				str_addf(&out, "close %d; ", ev.code);
		} while (ev.kind != WEBSOCKET_MORE);
	}
	return str_take(&out);
}

static char *pass(struct websocket *from, struct websocket *to, size_t step)
{
	_cleanup_(str_done) struct str bytes = from->out;

	from->out = STR_INIT;
	return read_all(to, str_get(&bytes), bytes.len, step);
}

static const size_t steps[] = { 1, 2, 5, 4097, 1000000 };

START_TEST(two_sides)
{
	_cleanup_(websocket_free_p) struct websocket *client = websocket_new(WEBSOCKET_CLIENT, no_chance);
	_cleanup_(websocket_free_p) struct websocket *server = websocket_new(WEBSOCKET_SERVER, NULL);
	static const size_t sizes[] = { 0, 1, 125, 126, 65535, 65536, 200000 };

	for (int way = 0; way < 2; way++)
		for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
			_cleanup_free_ char *text = xcalloc(sizes[i] + 1, 1);
			_cleanup_(str_done) struct str wanted = STR_INIT;

			for (size_t k = 0; k < sizes[i]; k++)
				text[k] = (char)('a' + k % 26);
			websocket_write(way ? server : client, i % 2, "\1", i % 3 ? 1 : 0, text, sizes[i]);
			websocket_ping(way ? server : client);
			str_addf(&wanted, "%s%s%s; ", i % 2 ? "text " : "msg ", i % 3 ? "\1" : "", text);
			_cleanup_free_ char *got = pass(way ? server : client, way ? client : server, steps[_i]);
			ck_assert_str_eq(got, wanted.buf);
			_cleanup_free_ char *back = pass(way ? client : server, way ? server : client, steps[_i]);
			ck_assert_str_eq(back, "pong; ");
		}
	websocket_close(client, WEBSOCKET_NORMAL, "bye");
	websocket_close(client, WEBSOCKET_NORMAL, "again");
	websocket_write(client, false, "late", 4, NULL, 0);
	_cleanup_free_ char *close = pass(client, server, steps[_i]), *answer = pass(server, client, steps[_i]);
	ck_assert_str_eq(close, "close 1000; ");
	ck_assert_str_eq(answer, "close 1000; ");
	ck_assert_uint_eq(client->out.len + server->out.len, 0);
}
END_TEST

/* To a server; a mask of zeros is a mask. */
#define MASK "00000000"
static const struct {
	const char *hex, *events, *answer; /* answer: hex of what it sends */
} frames[] = {
	{ "8283" MASK "414243", "msg ABC; ", "" },
	{ "828301020304"
	  "404047",
		"msg ABD; ", "" },
	{ "0281" MASK "41"
	  "0082" MASK "4243"
	  "8080" MASK,
		"msg ABC; ", "" },
	{ "0181" MASK "41"
	  "8981" MASK "70"
	  "8081" MASK "42",
		"text AB; ", "8a0170" },
	{ "8280" MASK, "msg ; ", "" },
	{ "82fe0003" MASK "414243", "msg ABC; ", "" },
	{ "82ff0000000000000003" MASK "414243", "msg ABC; ", "" },
	{ "8882" MASK "03e8", "close 1000; ", "880203e8" },
	{ "8880" MASK, "close 1005; ", "8800" },
	{ "8a80" MASK, "pong; ", "" },
	{ "8203414243", "error WebSocket: a client's frame is not masked", NULL },
	{ "c280" MASK, "error WebSocket: reserved bits are set", NULL },
	{ "8380" MASK, "error WebSocket: unknown opcode", NULL },
	{ "8b80" MASK, "error WebSocket: unknown opcode", NULL },
	{ "0980" MASK, "error WebSocket: a control frame is fragmented or long", NULL },
	{ "89fe007e" MASK, "error WebSocket: a control frame is fragmented or long", NULL },
	{ "8080" MASK, "error WebSocket: a continuation of nothing", NULL },
	{ "0281" MASK "41"
	  "8281" MASK "42",
		"msg Aerror WebSocket: a message begins inside of another", NULL },
	{ "82ff0000000001000001" MASK, "error WebSocket: message too big", NULL },
	{ "82ffffffffffffffffff" MASK, "error WebSocket: impossible length", NULL },
};

START_TEST(single_frames)
{
	for (size_t k = 0; k < ARRAY_LEN(steps); k++) {
		_cleanup_(websocket_free_p) struct websocket *ws = websocket_new(WEBSOCKET_SERVER, NULL);
		size_t len = strlen(frames[_i].hex) / 2;
		_cleanup_free_ char *raw = xmalloc(len);

		ck_assert_int_eq(hex_decode(frames[_i].hex, len, raw), 0);
		_cleanup_free_ char *got = read_all(ws, raw, len, steps[k]), *sent = xcalloc(ws->out.len + 1, 2);
		ck_assert_msg(str_eq(got, frames[_i].events), "%s: %s", frames[_i].hex, got);
		hex_encode(str_get(&ws->out), ws->out.len, sent);
		if (frames[_i].answer)
			ck_assert_str_eq(sent, frames[_i].answer);
		else
			ck_assert_msg(str_starts(sent, "88"), "%s: no Close: %s", frames[_i].hex, sent);
	}
}
END_TEST

START_TEST(many_fragments_do_not_add_up)
{
	_cleanup_(websocket_free_p) struct websocket *ws = websocket_new(WEBSOCKET_SERVER, NULL);
	_cleanup_(str_done) struct str in = STR_INIT;
	static const unsigned char first[] = { 0x02, 0x84, 0, 0, 0, 0, 'a', 'b', 'c', 'd' };

	ws->message_max = 10;
	str_add_bytes(&in, first, sizeof(first));
	in.buf[0] = 2;
	for (int i = 0; i < 2; i++) {
		str_add_bytes(&in, first, sizeof(first));
		in.buf[in.len - sizeof(first)] = 0;
	}
	_cleanup_free_ char *got = read_all(ws, in.buf, in.len, 3);
	ck_assert_str_eq(got, "msg abcdabcderror WebSocket: message too big");
}
END_TEST

START_TEST(handshake)
{
	char accept[WEBSOCKET_ACCEPT_MAX];

	/* RFC 6455, 1.3 */
	ck_assert(websocket_accept("dGhlIHNhbXBsZSBub25jZQ==", accept));
	ck_assert_str_eq(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
	ck_assert(!websocket_accept(NULL, accept));
	ck_assert(!websocket_accept("", accept));
	ck_assert(!websocket_accept("dGhlIHNhbXBsZSBub25jZ", accept));
	ck_assert(!websocket_accept("dGhlIHNhbXBsZSBub25jZQ!!", accept));
	ck_assert(!websocket_accept("dGhlIHNhbXBsZSBub25jZQAA", accept));
}
END_TEST

START_TEST(sha1_vectors)
{
	static const struct {
		const char *text, *hex;
	} vectors[] = {
		{ "", "da39a3ee5e6b4b0d3255bfef95601890afd80709" },
		{ "abc", "a9993e364706816aba3e25717850c26c9cd0d89d" },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
			"84983e441c3bd26ebaae4aa1f95129e5e54670f1" },
	};
	unsigned char digest[SHA1_BYTES];
	char hex[2 * SHA1_BYTES + 1];

	for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
		sha1(vectors[i].text, strlen(vectors[i].text), digest);
		hex_encode(digest, sizeof(digest), hex);
		ck_assert_str_eq(hex, vectors[i].hex);
	}
	_cleanup_free_ char *million = xmalloc(1000000);
	memset(million, 'a', 1000000);
	sha1(million, 1000000, digest);
	hex_encode(digest, sizeof(digest), hex);
	ck_assert_str_eq(hex, "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("websocket");
	Suite *s = suite_create("websocket");

	tcase_add_loop_test(t, two_sides, 0, ARRAY_LEN(steps));
	tcase_add_loop_test(t, single_frames, 0, ARRAY_LEN(frames));
	tcase_add_test(t, many_fragments_do_not_add_up);
	tcase_add_test(t, handshake);
	tcase_add_test(t, sha1_vectors);
	suite_add_tcase(s, t);
	SRunner *runner = srunner_create(s);

	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);

	srunner_free(runner);
	return failed != 0;
}

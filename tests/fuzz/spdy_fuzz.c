/*
 * spdy_fuzz.c - purpose: arbitrary frames to both sides of SPDY: the events may not depend on how the bytes are cut,
 * and what is answered is SPDY.
 *
 * Header blocks that decompress are out of a fuzzer's reach, so a first byte with bit 1 set makes every SYN_STREAM's
 * block out of the plain bytes that stand there.
 */
#include "common/wire/spdy.h"
#include "common/wire/spdy_headers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Frames whose header blocks are plain, with blocks that are compressed as a peer would. */
static void compress_blocks(const uint8_t *p, size_t len, struct str *out)
{
	struct spdy_zlib *zlib = spdy_zlib_new();

	while (len >= 8) {
		size_t n = MIN((size_t)p[5] << 16 | (size_t)p[6] << 8 | p[7], len - 8);
		bool syn = p[0] == 0x80 && p[1] == 3 && p[2] == 0 && (p[3] == 1 || p[3] == 2 || p[3] == 8);
		size_t fixed = p[3] == 1 ? 10 : 4;

		if (syn && n >= fixed) {
			_cleanup_(str_done) struct str block = STR_INIT;
			char *name = xstrndup((const char *)p + 8 + fixed, n - fixed);
			const struct spdy_field fields[] = { { name, "x" }, { "streamtype", name } };

			spdy_zlib_write(zlib, fields, ARRAY_LEN(fields), &block);
			free(name);
			size_t total = fixed + block.len;
			const unsigned char head[] = { p[0], p[1], p[2], p[3], p[4], (unsigned char)(total >> 16),
				(unsigned char)(total >> 8), (unsigned char)total };
			str_add_bytes(out, head, sizeof(head));
			str_add_bytes(out, p + 8, fixed);
			str_add_bytes(out, block.buf, block.len);
		} else {
			str_add_bytes(out, p, 8 + n);
		}
		p += 8 + n;
		len -= 8 + n;
	}
	str_add_bytes(out, p, len);
	spdy_zlib_free(zlib);
}

static char *trace(const char *text, size_t size, enum spdy_role role, size_t step)
{
	_cleanup_(spdy_free_p) struct spdy *s = spdy_new(role);
	struct str out = STR_INIT;
	struct error err = ERROR_INIT;
	uint32_t data_of = 0;

	if (role == SPDY_CLIENT)
		(void)!spdy_open(s, (const struct spdy_field[]){ { "a", "b" } }, 1);
	for (size_t at = 0; at < size; at += step) {
		size_t n = MIN(step, size - at);
		_cleanup_free_ char *piece = xmemdup(text + at, n);
		struct bytes in = { piece, n };
		struct spdy_event ev;

		do {
			if (spdy_read(s, &in, &ev, &err) < 0) {
				assert(err.text[0]);
				str_add(&out, "error");
				goto end;
			}
			if (ev.kind == SPDY_MORE)
				break;
			if (ev.kind != SPDY_DATA || ev.stream != data_of)
				str_addf(&out, "%d %u %u;", ev.kind, ev.stream, ev.status);
			data_of = ev.kind == SPDY_DATA ? ev.stream : 0;
			if (ev.kind == SPDY_DATA)
				str_add_bytes(&out, ev.data.ptr, ev.data.len);
			if (ev.kind == SPDY_STREAM) {
				assert(spdy_is_open(s, ev.stream));
				str_addf(&out, "%s", spdy_header(s, "streamtype") ? spdy_header(s, "streamtype") : "");
				spdy_reply(s, ev.stream);
				if (ev.stream % 3 == 0)
					spdy_end(s, ev.stream);
			}
			if (ev.kind == SPDY_DATA && ev.stream % 5 == 0)
				spdy_reset(s, ev.stream, SPDY_CANCEL);
			assert(s->n_streams <= SPDY_STREAMS_MAX);
		} while (ev.kind != SPDY_MORE);
		assert(in.len == 0);
	}
end:;
	/* The other side can read what was answered. */
	_cleanup_(spdy_free_p) struct spdy *peer = spdy_new(role == SPDY_CLIENT ? SPDY_SERVER : SPDY_CLIENT);
	struct bytes in = { str_get(&s->out), s->out.len };
	struct spdy_event ev;

	do
		if (spdy_read(peer, &in, &ev, &err) < 0)
			abort();
	while (ev.kind != SPDY_MORE);
	str_addf(&out, "|%zu", s->out.len);
	return str_take(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(str_done) struct str bytes = STR_INIT;

	if (size < 1)
		return 0;
	if (data[0] & 2)
		compress_blocks(data + 1, size - 1, &bytes);
	else
		str_add_bytes(&bytes, data + 1, size - 1);
	enum spdy_role role = data[0] & 1 ? SPDY_CLIENT : SPDY_SERVER;
	_cleanup_free_ char *a = trace(str_get(&bytes), bytes.len, role, 1);
	_cleanup_free_ char *b = trace(str_get(&bytes), bytes.len, role, 7);
	_cleanup_free_ char *c = trace(str_get(&bytes), bytes.len, role, MAX(bytes.len, (size_t)1));

	if (!str_eq(a, b) || !str_eq(a, c))
		abort();
	return 0;
}

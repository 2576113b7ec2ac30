/* websocket.c - purpose: WebSocket frames (RFC 6455). */
#include "common/wire/websocket.h"

#include <errno.h>

#include "common/base/codec.h"
#include "common/base/sha1.h"

enum { CONTINUATION = 0, TEXT = 1, BINARY = 2, CLOSE = 8, PING = 9, PONG = 10 };
enum { FIN = 0x80, RESERVED = 0x70, MASKED = 0x80 };

struct websocket *websocket_new(enum websocket_role role, uint32_t (*random)(void))
{
	struct websocket *ws = xnew(struct websocket);

	assert((role == WEBSOCKET_CLIENT) == (random != NULL));
	ws->role = role;
	ws->random = random;
	return ws;
}

struct websocket *websocket_free(struct websocket *ws)
{
	if (!ws)
		return NULL;
	str_done(&ws->out);
	free(ws);
	return NULL;
}

/* --- writing */

static void add_masked(struct str *out, const unsigned char *mask, size_t *at, const void *p, size_t len)
{
	const unsigned char *b = p;

	str_reserve(out, len);
	for (size_t i = 0; i < len; i++)
		str_add_char(out, (char)(b[i] ^ mask[(*at)++ % 4]));
}

static void put_frame(struct websocket *ws, int opcode, const void *a, size_t a_len, const void *b, size_t b_len)
{
	uint64_t len = (uint64_t)a_len + b_len;
	uint8_t masked = ws->role == WEBSOCKET_CLIENT ? MASKED : 0;
	unsigned char mask[4];
	size_t at = 0;

	if (ws->close_sent)
		return;
	str_add_char(&ws->out, (char)(FIN | opcode));
	str_add_char(&ws->out, (char)(masked | (len < 126 ? len : len <= UINT16_MAX ? 126 : 127)));
	for (int shift = len < 126 ? 0 : len <= UINT16_MAX ? 16 : 64; shift > 0; shift -= 8)
		str_add_char(&ws->out, (char)(len >> (shift - 8) & 255));
	if (masked) {
		uint32_t r = ws->random();

		memcpy(mask, &r, sizeof(mask));
		str_add_bytes(&ws->out, mask, sizeof(mask));
		add_masked(&ws->out, mask, &at, a, a_len);
		add_masked(&ws->out, mask, &at, b, b_len);
		return;
	}
	if (a_len)
		str_add_bytes(&ws->out, a, a_len);
	if (b_len)
		str_add_bytes(&ws->out, b, b_len);
}

void websocket_write(struct websocket *ws, bool text, const void *a, size_t a_len, const void *b, size_t b_len)
{
	put_frame(ws, text ? TEXT : BINARY, a, a_len, b, b_len);
}

void websocket_ping(struct websocket *ws)
{
	put_frame(ws, PING, NULL, 0, NULL, 0);
}

void websocket_pong(struct websocket *ws)
{
	put_frame(ws, PONG, NULL, 0, NULL, 0);
}

void websocket_close(struct websocket *ws, int code, const char *reason)
{
	const unsigned char number[] = { (unsigned char)(code >> 8), (unsigned char)code };
	size_t len = MIN(strlen(reason), (size_t)WEBSOCKET_CONTROL_MAX - sizeof(number));

	put_frame(ws, CLOSE, number, code == WEBSOCKET_NO_CODE ? 0 : sizeof(number), reason,
		code == WEBSOCKET_NO_CODE ? 0 : len);
	ws->close_sent = true;
}

/* --- reading */

static int fail(struct websocket *ws, int code, const char *why, struct error *err)
{
	websocket_close(ws, code, why);
	ws->failed = true;
	return error_set(err, code == WEBSOCKET_TOO_BIG ? ERROR_EXHAUSTED : ERROR_INVALID, "WebSocket: %s", why);
}

/* Bytes of the frame's head, known from its first two. */
static size_t head_wanted(const struct websocket *ws)
{
	if (ws->head_len < 2)
		return 2;
	size_t length = ws->head[1] & 0x7f;

	return 2u + (length == 126 ? 2 : length == 127 ? 8 : 0) + (ws->head[1] & MASKED ? 4 : 0);
}

static uint64_t head_length(const struct websocket *ws)
{
	size_t n = (ws->head[1] & 0x7f) == 126 ? 2 : (ws->head[1] & 0x7f) == 127 ? 8 : 0;
	uint64_t len = 0;

	for (size_t i = 0; i < n; i++)
		len = len << 8 | ws->head[2 + i];
	return n ? len : ws->head[1] & 0x7f;
}

static int check_data_frame(struct websocket *ws, struct error *err)
{
	uint64_t max = ws->message_max ? ws->message_max : WEBSOCKET_MESSAGE_MAX;

	if (ws->opcode != CONTINUATION && ws->message_opcode)
		return fail(ws, WEBSOCKET_PROTOCOL_ERROR, "a message begins inside of another", err);
	if (ws->opcode == CONTINUATION && !ws->message_opcode)
		return fail(ws, WEBSOCKET_PROTOCOL_ERROR, "a continuation of nothing", err);
	if (ws->opcode != CONTINUATION) {
		ws->message_opcode = ws->opcode;
		ws->message_len = 0;
		ws->first = true;
	}
	if (ws->left > max - ws->message_len)
		return fail(ws, WEBSOCKET_TOO_BIG, "message too big", err);
	ws->message_len += ws->left;
	return 0;
}

static int begin_frame(struct websocket *ws, struct error *err)
{
	bool masked = ws->head[1] & MASKED, control = ws->head[0] & 8;

	ws->fin = ws->head[0] & FIN;
	ws->opcode = ws->head[0] & 15;
	ws->left = head_length(ws);
	if (ws->head[0] & RESERVED)
		return fail(ws, WEBSOCKET_PROTOCOL_ERROR, "reserved bits are set", err);
	if (masked != (ws->role == WEBSOCKET_SERVER))
		return fail(ws, WEBSOCKET_PROTOCOL_ERROR,
			masked ? "a server's frame is masked" : "a client's frame is not masked", err);
	if (ws->opcode > PONG || (ws->opcode > BINARY && ws->opcode < CLOSE))
		return fail(ws, WEBSOCKET_PROTOCOL_ERROR, "unknown opcode", err);
	if (control && (ws->left > WEBSOCKET_CONTROL_MAX || !ws->fin))
		return fail(ws, WEBSOCKET_PROTOCOL_ERROR, "a control frame is fragmented or long", err);
	if (ws->left >> 63)
		return fail(ws, WEBSOCKET_PROTOCOL_ERROR, "impossible length", err);
	if (masked)
		memcpy(ws->mask, ws->head + ws->head_len - 4, 4);
	else
		memset(ws->mask, 0, 4);
	ws->mask_at = 0;
	ws->control_len = 0;
	ws->in_frame = true;
	return control ? 0 : check_data_frame(ws, err);
}

static void end_frame(struct websocket *ws)
{
	ws->in_frame = false;
	ws->head_len = 0;
}

static void unmask(struct websocket *ws, const char *from, size_t len, char *to)
{
	for (size_t i = 0; i < len; i++)
		to[i] = (char)(from[i] ^ ws->mask[ws->mask_at++ % 4]);
}

static size_t advance(struct websocket *ws, struct bytes *in, size_t max, char *to)
{
	size_t n = (size_t)MIN(ws->left, (uint64_t)MIN(in->len, max));

	unmask(ws, in->ptr, n, to);
	in->ptr += n;
	in->len -= n;
	ws->left -= n;
	return n;
}

static void on_close(struct websocket *ws, struct websocket_event *ret)
{
	int code = ws->control_len >= 2 ? ws->control[0] << 8 | ws->control[1] : WEBSOCKET_NO_CODE;

	*ret = (struct websocket_event){ .kind = WEBSOCKET_CLOSE, .code = code };
	websocket_close(ws, code, "");
}

static void read_control(struct websocket *ws, struct bytes *in, struct websocket_event *ret)
{
	ws->control_len +=
		advance(ws, in, sizeof(ws->control) - ws->control_len, (char *)ws->control + ws->control_len);
	if (ws->left)
		return;
	if (ws->opcode == PING)
		put_frame(ws, PONG, ws->control, ws->control_len, NULL, 0);
	else if (ws->opcode == PONG)
		*ret = (struct websocket_event){ .kind = WEBSOCKET_PONG };
	else
		on_close(ws, ret);
	end_frame(ws);
}

/* Empty pieces are given only where a message ends. */
static void read_data(struct websocket *ws, struct bytes *in, struct websocket_event *ret)
{
	size_t n = advance(ws, in, sizeof(ws->piece), ws->piece);
	bool last = !ws->left && ws->fin;

	if (n || last) {
		*ret = (struct websocket_event){ .kind = WEBSOCKET_DATA,
			.first = ws->first,
			.last = last,
			.text = ws->message_opcode == TEXT,
			.data = { ws->piece, n } };
		ws->first = false;
	}
	if (!ws->left)
		end_frame(ws);
	if (last)
		ws->message_opcode = 0;
}

static int read_head(struct websocket *ws, struct bytes *in, struct error *err)
{
	while (ws->head_len < head_wanted(ws) && in->len) {
		ws->head[ws->head_len++] = (unsigned char)*in->ptr++;
		in->len--;
	}
	return ws->head_len >= 2 && ws->head_len == head_wanted(ws) ? begin_frame(ws, err) : 0;
}

int websocket_read(struct websocket *ws, struct bytes *in, struct websocket_event *ret, struct error *err)
{
	struct websocket_event ev = { .kind = WEBSOCKET_MORE };

	if (ws->failed)
		return error_set(err, ERROR_INVALID, "WebSocket: the connection has failed before");
	while (ev.kind == WEBSOCKET_MORE) {
		if (!ws->in_frame) {
			if (!in->len)
				break;
			int r = read_head(ws, in, err);

			if (r < 0)
				return r;
			continue;
		}
		if (ws->left && !in->len)
			break;
		if (ws->opcode & 8)
			read_control(ws, in, &ev);
		else
			read_data(ws, in, &ev);
	}
	*ret = ev;
	return 0;
}

bool websocket_accept(const char *key, char ret[WEBSOCKET_ACCEPT_MAX])
{
	_cleanup_free_ char *joined = NULL, *text = NULL;
	_cleanup_free_ void *raw = NULL;
	unsigned char digest[SHA1_BYTES];
	size_t len;

	if (!key || strlen(key) != 24 || base64_decode(key, 24, &raw, &len) < 0 || len != 16)
		return false;
	joined = xasprintf("%s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", key);
	sha1(joined, strlen(joined), digest);
	text = base64_encode(digest, sizeof(digest));
	strcpy(ret, text);
	return true;
}

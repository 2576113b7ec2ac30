/* channels.c - purpose: several channels in one WebSocket. */
#include "runtime-lite/stream/channels.h"

#include <errno.h>

#include "common/base/codec.h"

void channels_init(struct channels *c, bool base64)
{
	*c = (struct channels){ .ws = websocket_new(WEBSOCKET_SERVER, NULL), .base64 = base64 };
}

void channels_done(struct channels *c)
{
	websocket_free(c->ws);
	str_done(&c->text);
	str_done(&c->decoded);
}

/* Whole groups of four are decoded as they come; line ends are none of it. */
static int decode(struct channels *c, struct bytes *data, bool last, struct error *err)
{
	_cleanup_free_ void *raw = NULL;
	size_t len = 0, whole;

	str_reset(&c->text);
	str_reset(&c->decoded);
	str_add_bytes(&c->text, c->rest, c->n_rest);
	for (size_t i = 0; i < data->len; i++)
		if (data->ptr[i] != '\n' && data->ptr[i] != '\r')
			str_add_char(&c->text, data->ptr[i]);
	whole = c->text.len / 4 * 4;
	c->n_rest = c->text.len - whole;
	memcpy(c->rest, str_get(&c->text) + whole, c->n_rest);
	if ((last && c->n_rest) || base64_decode(str_get(&c->text), whole, &raw, &len) < 0) {
		websocket_close(c->ws, WEBSOCKET_PROTOCOL_ERROR, "a message is not base64");
		return error_set(err, ERROR_INVALID, "WebSocket: a message is not base64");
	}
	str_add_bytes(&c->decoded, raw ? raw : "", len);
	*data = (struct bytes){ str_get(&c->decoded), c->decoded.len };
	return 0;
}

static int take_message(
	struct channels *c, const struct websocket_event *ev, struct channels_event *ret, struct error *err)
{
	struct bytes data = ev->data;

	if (ev->first) {
		c->begun = false;
		c->n_rest = 0;
	}
	if (!c->begun && data.len) {
		c->channel = (uint8_t)(*data.ptr - (c->base64 ? '0' : 0));
		c->begun = true;
		data.ptr++;
		data.len--;
	}
	if (!c->begun) /* an empty message, or nothing of it yet */
		return 0;
	if (c->base64 && decode(c, &data, ev->last, err) < 0)
		return -EINVAL;
	*ret = (struct channels_event){ .kind = CHANNELS_DATA, .channel = c->channel, .data = data };
	return 0;
}

int channels_read(struct channels *c, struct bytes *in, struct channels_event *ret, struct error *err)
{
	struct channels_event found = { .kind = CHANNELS_MORE };

	while (found.kind == CHANNELS_MORE) {
		struct websocket_event ev;
		int r = websocket_read(c->ws, in, &ev, err);

		if (r == 0 && ev.kind == WEBSOCKET_DATA)
			r = take_message(c, &ev, &found, err);
		if (r < 0)
			return r;
		if (ev.kind == WEBSOCKET_MORE)
			break;
		if (ev.kind == WEBSOCKET_CLOSE)
			found.kind = CHANNELS_CLOSE;
	}
	*ret = found;
	return 0;
}

static void write_one(struct channels *c, uint8_t channel, const char *p, size_t len)
{
	char number = (char)(channel + (c->base64 ? '0' : 0));
	_cleanup_free_ char *text = c->base64 ? base64_encode(p, len) : NULL;

	if (text)
		websocket_write(c->ws, true, &number, 1, text, strlen(text));
	else
		websocket_write(c->ws, false, &number, 1, p, len);
}

void channels_write(struct channels *c, uint8_t channel, const void *p, size_t len)
{
	size_t at = 0;

	do {
		size_t n = MIN(len - at, (size_t)CHANNEL_DATA_MAX);

		write_one(c, channel, p ? (const char *)p + at : "", n);
		at += n;
	} while (at < len);
}

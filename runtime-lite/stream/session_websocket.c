/* session_websocket.c - purpose: sessions over WebSocket: numbered channels. */
#include "runtime-lite/stream/channels.h"
#include "runtime-lite/stream/session_i.h"

enum channel { IN, OUT, ERR, ERRORS, RESIZE };

struct websocket_session {
	struct session base;
	struct channels channels;
	bool ready;
};

static struct websocket_session *of(struct session *s)
{
	return container_of(s, struct websocket_session, base);
}

static void on_message(struct session *s, const struct channels_event *ev, struct session_event *ret)
{
	bool input = s->wants.in && !s->input_ended;

	if (ev->channel == IN && input && ev->data.len) {
		*ret = (struct session_event){ .kind = SESSION_INPUT, .data = ev->data };
	} else if (ev->channel == RESIZE) {
		session_take_resize(s, ev->data, ret);
	} else if (ev->channel == CHANNEL_CLOSE && s->version >= 5 && input && ev->data.len && *ev->data.ptr == IN) {
		s->input_ended = true;
		*ret = (struct session_event){ .kind = SESSION_INPUT_END };
	}
}

static int read_websocket(struct session *session, struct bytes *in, struct session_event *ret, struct error *err)
{
	struct websocket_session *s = of(session);
	struct session_event found = { .kind = s->ready ? SESSION_MORE : SESSION_READY };

	s->ready = true;
	while (found.kind == SESSION_MORE) {
		struct channels_event ev;
		int r = channels_read(&s->channels, in, &ev, err);

		if (r < 0)
			return r;
		if (ev.kind == CHANNELS_MORE)
			break;
		if (ev.kind == CHANNELS_CLOSE)
			found.kind = SESSION_CLOSED;
		else
			on_message(session, &ev, &found);
	}
	*ret = found;
	return 0;
}

static void output(struct session *session, bool error, const void *p, size_t len)
{
	channels_write(&of(session)->channels, error ? ERR : OUT, p, len);
}

static void end(struct session *session, const struct str *status)
{
	struct channels *c = &of(session)->channels;

	if (status->len)
		channels_write(c, ERRORS, status->buf, status->len);
	websocket_close(c->ws, WEBSOCKET_NORMAL, "");
}

static void alive(struct session *session)
{
	websocket_pong(of(session)->channels.ws);
}

static struct str *out(struct session *session)
{
	return &of(session)->channels.ws->out;
}

static void free_websocket(struct session *session)
{
	struct websocket_session *s = of(session);

	channels_done(&s->channels);
	free(s);
}

static const struct session_carrier carrier = {
	.read = read_websocket, .output = output, .end = end, .alive = alive, .out = out, .free = free_websocket
};

struct session *session_websocket(int version, bool base64, const struct session_wants *wants)
{
	struct websocket_session *s = xnew(struct websocket_session);

	s->base = (struct session){ .carrier = &carrier, .version = version, .wants = *wants };
	channels_init(&s->channels, base64);
	/* Clients take the first message, an empty one, as "connected". */
	channels_write(&s->channels, wants->out ? OUT : wants->err ? ERR : ERRORS, NULL, 0);
	return &s->base;
}

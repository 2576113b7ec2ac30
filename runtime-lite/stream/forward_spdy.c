/*
 * forward_spdy.c - purpose: port-forwarding over SPDY streams, plain or tunnelled in WebSocket messages.
 *
 * A pair is named by the header requestid of both its streams; clients that send none open the error stream just before
 * the data stream. The id of the data stream is the pair's.
 */
#include "common/wire/spdy.h"
#include "common/wire/websocket.h"
#include "runtime-lite/stream/forward_i.h"

enum { REQUEST_ID_MAX = 64, MESSAGE_BYTES = 32 * 1024, TICKS_MAX = 2 };

struct pair {
	char *request_id;
	uint32_t error, data; /* streams, 0: not opened yet */
	uint16_t port;
	unsigned ticks; /* while it waits for its other half */
};

struct spdy_forward {
	struct forward base;
	struct spdy *spdy;
	struct websocket *ws; /* NULL: no tunnel */
	struct bytes inner;   /* of the tunnel's last message, not read yet */
	struct pair *pairs;
	size_t n_pairs;
};

static struct spdy_forward *of(struct forward *f)
{
	return container_of(f, struct spdy_forward, base);
}

static struct pair *by_stream(struct spdy_forward *f, uint32_t stream)
{
	for (size_t i = 0; i < f->n_pairs; i++)
		if (stream && (f->pairs[i].data == stream || f->pairs[i].error == stream))
			return &f->pairs[i];
	return NULL;
}

static struct pair *by_request(struct spdy_forward *f, const char *request_id)
{
	for (size_t i = 0; i < f->n_pairs; i++)
		if (str_eq(f->pairs[i].request_id, request_id))
			return &f->pairs[i];
	return NULL;
}

static void remove_pair(struct spdy_forward *f, struct pair *p)
{
	free(p->request_id);
	*p = f->pairs[--f->n_pairs];
}

static bool parse_port(const char *text, uint16_t *ret)
{
	unsigned port = 0;

	if (!text || !*text || strlen(text) > 5)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return false;
		port = port * 10 + (unsigned)(*text - '0');
	}
	*ret = (uint16_t)port;
	return port >= 1 && port <= 65535;
}

static struct pair *pair_for(struct spdy_forward *f, uint32_t stream, bool is_data, uint16_t port)
{
	const char *given = spdy_header(f->spdy, "requestid");
	_cleanup_free_ char *id =
		given ? xstrndup(given, REQUEST_ID_MAX + 1) : xasprintf("#%u", is_data ? stream - 2 : stream);
	struct pair *p = by_request(f, id);

	if (strlen(id) > REQUEST_ID_MAX || (p && (p->port != port || (is_data ? p->data : p->error))))
		return NULL;
	if (p)
		return p;
	f->pairs = xreallocarray(f->pairs, f->n_pairs + 1, sizeof(*f->pairs));
	p = &f->pairs[f->n_pairs++];
	*p = (struct pair){ .request_id = steal(id), .port = port };
	return p;
}

static void on_stream(struct spdy_forward *f, uint32_t stream, struct forward_event *ret)
{
	const char *type = spdy_header(f->spdy, "streamtype");
	bool is_data = str_eq(type, "data");
	uint16_t port;
	struct pair *p = NULL;

	if ((is_data || str_eq(type, "error")) && parse_port(spdy_header(f->spdy, "port"), &port))
		p = pair_for(f, stream, is_data, port);
	if (!p) {
		spdy_reset(f->spdy, stream, SPDY_PROTOCOL_ERROR);
		return;
	}
	spdy_reply(f->spdy, stream);
	*(is_data ? &p->data : &p->error) = stream;
	if (p->data && p->error)
		*ret = (struct forward_event){ .kind = FORWARD_OPEN, .pair = p->data, .port = p->port };
}

/* The pair has gone when its data stream has, or before it was one. */
static void on_gone(struct spdy_forward *f, struct pair *p, uint32_t stream, struct forward_event *ret)
{
	bool open = p->data && p->error;

	if (open && stream == p->error)
		return;
	if (open) {
		spdy_end(f->spdy, p->error);
		*ret = (struct forward_event){ .kind = FORWARD_GONE, .pair = p->data };
	}
	remove_pair(f, p);
}

static void on_event(struct spdy_forward *f, const struct spdy_event *ev, struct forward_event *ret)
{
	struct pair *p = by_stream(f, ev->stream);
	bool is_data = p && p->data == ev->stream && p->error;

	switch (ev->kind) {
	case SPDY_STREAM:
		on_stream(f, ev->stream, ret);
		break;
	case SPDY_DATA: /* before its error stream is there nobody could be told why it fails: not taken */
		if (is_data)
			*ret = (struct forward_event){ .kind = FORWARD_DATA, .pair = p->data, .data = ev->data };
		else if (p && p->data == ev->stream)
			spdy_reset(f->spdy, ev->stream, SPDY_PROTOCOL_ERROR);
		break;
	case SPDY_END:
		if (!is_data)
			break;
		*ret = (struct forward_event){ .kind = FORWARD_END, .pair = p->data };
		if (!spdy_is_open(f->spdy, p->data)) /* the port had ended before */
			remove_pair(f, p);
		break;
	case SPDY_RESET:
		if (p)
			on_gone(f, p, ev->stream, ret);
		break;
	default:
		break;
	}
}

/* The next bytes of SPDY. 0: none. */
static int next_bytes(
	struct spdy_forward *f, struct bytes *in, struct bytes **ret_from, bool *ret_closed, struct error *err)
{
	*ret_from = in;
	if (!f->ws)
		return in->len > 0;
	*ret_from = &f->inner;
	while (!f->inner.len) {
		struct websocket_event ev;
		int r = websocket_read(f->ws, in, &ev, err);

		if (r < 0)
			return r;
		*ret_closed = ev.kind == WEBSOCKET_CLOSE;
		if (*ret_closed || ev.kind == WEBSOCKET_MORE)
			return 0;
		if (ev.kind == WEBSOCKET_DATA)
			f->inner = ev.data;
	}
	return 1;
}

static int read_spdy(struct forward *forward, struct bytes *in, struct forward_event *ret, struct error *err)
{
	struct spdy_forward *f = of(forward);
	struct forward_event found = { .kind = FORWARD_MORE };

	while (found.kind == FORWARD_MORE) {
		struct bytes *from = f->ws ? &f->inner : in;
		struct spdy_event ev;
		bool closed = false;
		int r = spdy_read(f->spdy, from, &ev, err);

		if (r == 0 && ev.kind == SPDY_MORE) {
			r = next_bytes(f, in, &from, &closed, err);
			if (closed)
				found.kind = FORWARD_CLOSED;
			if (r == 0)
				break;
			if (r > 0)
				continue;
		}
		if (r < 0)
			return r;
		on_event(f, &ev, &found);
	}
	*ret = found;
	return 0;
}

static void data(struct forward *forward, uint32_t pair, const void *p, size_t len)
{
	spdy_data(of(forward)->spdy, pair, p, len);
}

/* The client takes the end of the error stream as the sign that there was none. */
static void end(struct forward *forward, uint32_t pair)
{
	struct spdy_forward *f = of(forward);
	struct pair *p = by_stream(f, pair);

	if (!p)
		return;
	spdy_end(f->spdy, p->data);
	spdy_end(f->spdy, p->error);
	if (!spdy_is_open(f->spdy, p->data))
		remove_pair(f, p);
}

static void fail(struct forward *forward, uint32_t pair, const char *text)
{
	struct spdy_forward *f = of(forward);
	struct pair *p = by_stream(f, pair);

	if (!p)
		return;
	if (text)
		spdy_data(f->spdy, p->error, text, strlen(text));
	spdy_end(f->spdy, p->error);
	spdy_reset(f->spdy, p->data, SPDY_CANCEL);
	remove_pair(f, p);
}

static struct str *out(struct forward *forward)
{
	struct spdy_forward *f = of(forward);
	struct str *inner = &f->spdy->out;

	if (!f->ws)
		return inner;
	for (size_t at = 0; at < inner->len; at += MESSAGE_BYTES)
		websocket_write(f->ws, false, inner->buf + at, MIN(inner->len - at, (size_t)MESSAGE_BYTES), NULL, 0);
	str_reset(inner);
	return &f->ws->out;
}

static bool waits(const struct forward *forward)
{
	const struct spdy_forward *f = of((struct forward *)forward);

	for (size_t i = 0; i < f->n_pairs; i++)
		if (!f->pairs[i].data || !f->pairs[i].error)
			return true;
	return false;
}

static void tick(struct forward *forward)
{
	struct spdy_forward *f = of(forward);

	for (size_t i = f->n_pairs; i-- > 0;) {
		struct pair *p = &f->pairs[i];

		if ((p->data && p->error) || ++p->ticks < TICKS_MAX)
			continue;
		if (p->error) {
			static const char text[] = "the data stream of this request was not opened in time";

			spdy_data(f->spdy, p->error, text, sizeof(text) - 1);
			spdy_end(f->spdy, p->error);
		}
		spdy_reset(f->spdy, p->data, SPDY_CANCEL);
		remove_pair(f, p);
	}
}

static void free_spdy(struct forward *forward)
{
	struct spdy_forward *f = of(forward);

	for (size_t i = 0; i < f->n_pairs; i++)
		free(f->pairs[i].request_id);
	free(f->pairs);
	spdy_free(f->spdy);
	websocket_free(f->ws);
	free(f);
}

static const struct forward_carrier carrier = { .read = read_spdy,
	.data = data,
	.end = end,
	.fail = fail,
	.out = out,
	.waits = waits,
	.tick = tick,
	.free = free_spdy };

struct forward *forward_spdy(bool tunnel)
{
	struct spdy_forward *f = xnew(struct spdy_forward);

	f->base.carrier = &carrier;
	f->spdy = spdy_new(SPDY_SERVER);
	f->ws = tunnel ? websocket_new(WEBSOCKET_SERVER, NULL) : NULL;
	return &f->base;
}

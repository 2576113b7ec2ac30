/*
 * forward_channels.c - purpose: port-forwarding over WebSocket channels: 2n carries the bytes of the n-th port that the
 * request named, 2n + 1 its error. Both begin with the port's number, low byte first.
 *
 * Neither side can end one channel: when all have ended on our side, we close.
 */
#include "runtime-lite/stream/channels.h"
#include "runtime-lite/stream/forward_i.h"

struct channel_forward {
	struct forward base;
	struct channels channels;
	uint16_t ports[FORWARD_PORTS_MAX];
	bool ended[FORWARD_PORTS_MAX];
	size_t n, opened, alive;
};

static struct channel_forward *of(struct forward *f)
{
	return container_of(f, struct channel_forward, base);
}

static int read_channels(struct forward *forward, struct bytes *in, struct forward_event *ret, struct error *err)
{
	struct channel_forward *f = of(forward);
	struct forward_event found = { .kind = FORWARD_MORE };

	if (f->opened < f->n) {
		*ret = (struct forward_event){
			.kind = FORWARD_OPEN, .pair = (uint32_t)f->opened, .port = f->ports[f->opened]
		};
		f->opened++;
		return 0;
	}
	while (found.kind == FORWARD_MORE) {
		struct channels_event ev;
		int r = channels_read(&f->channels, in, &ev, err);

		if (r < 0)
			return r;
		if (ev.kind == CHANNELS_MORE)
			break;
		if (ev.kind == CHANNELS_CLOSE)
			found.kind = FORWARD_CLOSED;
		else if (ev.channel % 2 == 0 && ev.channel / 2u < f->n && !f->ended[ev.channel / 2] && ev.data.len)
			found = (struct forward_event){
				.kind = FORWARD_DATA, .pair = ev.channel / 2u, .data = ev.data
			};
	}
	*ret = found;
	return 0;
}

static void data(struct forward *forward, uint32_t pair, const void *p, size_t len)
{
	struct channel_forward *f = of(forward);

	if (pair < f->n && !f->ended[pair])
		channels_write(&f->channels, (uint8_t)(pair * 2), p, len);
}

static void end(struct forward *forward, uint32_t pair)
{
	struct channel_forward *f = of(forward);

	if (pair >= f->n || f->ended[pair])
		return;
	f->ended[pair] = true;
	if (--f->alive == 0)
		websocket_close(f->channels.ws, WEBSOCKET_NORMAL, "");
}

static void fail(struct forward *forward, uint32_t pair, const char *text)
{
	struct channel_forward *f = of(forward);

	if (text && pair < f->n && !f->ended[pair])
		channels_write(&f->channels, (uint8_t)(pair * 2 + 1), text, strlen(text));
	end(forward, pair);
}

static struct str *out(struct forward *forward)
{
	return &of(forward)->channels.ws->out;
}

static void free_channels(struct forward *forward)
{
	struct channel_forward *f = of(forward);

	channels_done(&f->channels);
	free(f);
}

static const struct forward_carrier carrier = {
	.read = read_channels, .data = data, .end = end, .fail = fail, .out = out, .free = free_channels
};

struct forward *forward_channels(bool base64, const uint16_t *ports, size_t n)
{
	struct channel_forward *f = xnew(struct channel_forward);

	f->base.carrier = &carrier;
	f->n = f->alive = MIN(n, (size_t)(base64 ? 5 : FORWARD_PORTS_MAX)); /* digits name ten channels */
	channels_init(&f->channels, base64);
	for (size_t i = 0; i < f->n; i++) {
		const unsigned char number[] = { (unsigned char)ports[i], (unsigned char)(ports[i] >> 8) };

		f->ports[i] = ports[i];
		channels_write(&f->channels, (uint8_t)(i * 2), number, sizeof(number));
		channels_write(&f->channels, (uint8_t)(i * 2 + 1), number, sizeof(number));
	}
	return &f->base;
}

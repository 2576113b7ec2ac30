/*
 * session_spdy.c - purpose: sessions over SPDY: one stream each for errors, stdin, stdout, stderr and sizes.
 *
 * The client opens them all and says by a header what each is. READY when those are there that the request needs; more
 * than that do no harm.
 */
#include "common/wire/spdy.h"
#include "runtime-lite/stream/session_i.h"

enum stream { ERRORS, IN, OUT, ERR, RESIZE, STREAMS };

struct spdy_session {
	struct session base;
	struct spdy *spdy;
	uint32_t id[STREAMS]; /* 0: not opened yet */
	bool ready;
};

static struct spdy_session *of(struct session *s)
{
	return container_of(s, struct spdy_session, base);
}

static bool wanted(const struct session *s, enum stream which)
{
	switch (which) {
	case IN:
		return s->wants.in;
	case OUT:
		return s->wants.out;
	case ERR:
		return s->wants.err;
	case RESIZE:
		return s->wants.tty && s->version >= 3;
	default:
		return true;
	}
}

static bool all_there(const struct spdy_session *s)
{
	for (int i = 0; i < STREAMS; i++)
		if (!s->id[i] && wanted(&s->base, (enum stream)i))
			return false;
	return true;
}

static void on_stream(struct spdy_session *s, uint32_t id, struct session_event *ret)
{
	static const char *const names[STREAMS] = { "error", "stdin", "stdout", "stderr", "resize" };
	const char *name = spdy_header(s->spdy, "streamtype");
	int which = 0;

	while (which < STREAMS && !str_eq(name, names[which]))
		which++;
	if (which == STREAMS || s->id[which]) {
		spdy_reset(s->spdy, id, SPDY_PROTOCOL_ERROR);
		return;
	}
	s->id[which] = id;
	spdy_reply(s->spdy, id);
	if (s->ready || !all_there(s))
		return;
	s->ready = true;
	*ret = (struct session_event){ .kind = SESSION_READY };
}

static void on_data(struct spdy_session *s, const struct spdy_event *ev, struct session_event *ret)
{
	if (ev->stream == s->id[IN] && s->base.wants.in && !s->base.input_ended)
		*ret = (struct session_event){ .kind = SESSION_INPUT, .data = ev->data };
	else if (ev->stream == s->id[RESIZE])
		session_take_resize(&s->base, ev->data, ret);
}

static int read_spdy(struct session *session, struct bytes *in, struct session_event *ret, struct error *err)
{
	struct spdy_session *s = of(session);
	struct session_event found = { .kind = SESSION_MORE };

	while (found.kind == SESSION_MORE) {
		struct spdy_event ev;
		int r = spdy_read(s->spdy, in, &ev, err);

		if (r < 0)
			return r;
		if (ev.kind == SPDY_MORE)
			break;
		if (ev.kind == SPDY_STREAM)
			on_stream(s, ev.stream, &found);
		else if (ev.kind == SPDY_DATA)
			on_data(s, &ev, &found);
		else if ((ev.kind == SPDY_END || ev.kind == SPDY_RESET) && ev.stream == s->id[IN] &&
			 !session->input_ended) {
			session->input_ended = true;
			found.kind = SESSION_INPUT_END;
		}
	}
	*ret = found;
	return 0;
}

static void output(struct session *session, bool error, const void *p, size_t len)
{
	struct spdy_session *s = of(session);

	spdy_data(s->spdy, s->id[error ? ERR : OUT], p, len);
}

static void end(struct session *session, const struct str *status)
{
	struct spdy_session *s = of(session);

	spdy_end(s->spdy, s->id[OUT]);
	spdy_end(s->spdy, s->id[ERR]);
	if (status->len)
		spdy_data(s->spdy, s->id[ERRORS], status->buf, status->len);
	spdy_end(s->spdy, s->id[ERRORS]);
	spdy_goaway(s->spdy);
}

static struct str *out(struct session *session)
{
	return &of(session)->spdy->out;
}

static void free_spdy(struct session *session)
{
	struct spdy_session *s = of(session);

	spdy_free(s->spdy);
	free(s);
}

static const struct session_carrier carrier = {
	.read = read_spdy, .output = output, .end = end, .out = out, .free = free_spdy
};

struct session *session_spdy(int version, const struct session_wants *wants)
{
	struct spdy_session *s = xnew(struct spdy_session);

	s->base = (struct session){ .carrier = &carrier, .version = version, .wants = *wants };
	s->spdy = spdy_new(SPDY_SERVER);
	return &s->base;
}

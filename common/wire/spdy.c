/* spdy.c - purpose: SPDY/3.1 frames, and which streams are open. */
#include "common/wire/spdy.h"

#include <errno.h>
#include <stdio.h>

#include "common/wire/spdy_headers.h"

enum { HEAD_BYTES = 8, VERSION = 3 };
enum {
	SYN_STREAM = 1,
	SYN_REPLY = 2,
	RST_STREAM = 3,
	SETTINGS = 4,
	PING = 6,
	GOAWAY = 7,
	HEADERS = 8,
	WINDOW_UPDATE = 9
};
enum { FLAG_FIN = 1, FLAG_UNIDIRECTIONAL = 2 };
enum { GOAWAY_OK = 0, GOAWAY_PROTOCOL_ERROR = 1 };

/* Open as long as one side may still send. */
struct spdy_stream {
	uint32_t id;
	bool ended_here, ended_there;
};

static uint32_t get32(const char *p)
{
	const unsigned char *b = (const unsigned char *)p;

	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static void put32(struct str *out, uint32_t v)
{
	const unsigned char b[] = { (unsigned char)(v >> 24), (unsigned char)(v >> 16), (unsigned char)(v >> 8),
		(unsigned char)v };

	str_add_bytes(out, b, sizeof(b));
}

struct spdy *spdy_new(enum spdy_role role)
{
	struct spdy *s = xnew(struct spdy);

	s->role = role;
	s->next_id = role == SPDY_CLIENT ? 1 : 2;
	s->next_ping = s->next_id;
	s->zlib = spdy_zlib_new();
	return s;
}

struct spdy *spdy_free(struct spdy *s)
{
	if (!s)
		return NULL;
	spdy_zlib_free(s->zlib);
	str_done(&s->out);
	str_done(&s->frame);
	str_done(&s->block);
	free(s->streams);
	free(s);
	return NULL;
}

/* --- streams */

static struct spdy_stream *find(const struct spdy *s, uint32_t id)
{
	size_t low = 0, high = s->n_streams;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (s->streams[mid].id == id)
			return &s->streams[mid];
		if (s->streams[mid].id < id)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

bool spdy_is_open(const struct spdy *s, uint32_t stream)
{
	return find(s, stream) != NULL;
}

static struct spdy_stream *add(struct spdy *s, uint32_t id)
{
	size_t at = s->n_streams;

	/* Grown in steps: a connection has five streams, or hundreds. */
	if (s->n_streams % 8 == 0)
		s->streams = xreallocarray(s->streams, s->n_streams + 8, sizeof(*s->streams));
	while (at > 0 && s->streams[at - 1].id > id)
		at--;
	memmove(&s->streams[at + 1], &s->streams[at], (s->n_streams - at) * sizeof(*s->streams));
	s->streams[at] = (struct spdy_stream){ .id = id };
	s->n_streams++;
	return &s->streams[at];
}

static void drop(struct spdy *s, struct spdy_stream *stream)
{
	size_t at = (size_t)(stream - s->streams);

	s->n_streams--;
	memmove(stream, stream + 1, (s->n_streams - at) * sizeof(*s->streams));
}

static void ended(struct spdy *s, struct spdy_stream *stream)
{
	if (stream->ended_here && stream->ended_there)
		drop(s, stream);
}

/* --- writing */

static void put_control(struct spdy *s, int type, uint8_t flags, size_t len)
{
	put32(&s->out, 0x80000000u | (uint32_t)VERSION << 16 | (uint32_t)type);
	put32(&s->out, (uint32_t)flags << 24 | (uint32_t)len);
}

static void put_reset(struct spdy *s, uint32_t stream, enum spdy_status status)
{
	put_control(s, RST_STREAM, 0, 8);
	put32(&s->out, stream);
	put32(&s->out, status);
}

static void put_goaway(struct spdy *s, uint32_t status)
{
	if (s->gone)
		return;
	s->gone = true;
	put_control(s, GOAWAY, 0, 8);
	put32(&s->out, s->last_peer_id);
	put32(&s->out, status);
}

static void put_data(struct spdy *s, uint32_t stream, uint8_t flags, const void *p, size_t len)
{
	put32(&s->out, stream);
	put32(&s->out, (uint32_t)flags << 24 | (uint32_t)len);
	if (len)
		str_add_bytes(&s->out, p, len);
}

void spdy_reply(struct spdy *s, uint32_t stream)
{
	_cleanup_(str_done) struct str block = STR_INIT;

	if (!find(s, stream))
		return;
	spdy_zlib_write(s->zlib, NULL, 0, &block);
	put_control(s, SYN_REPLY, 0, 4 + block.len);
	put32(&s->out, stream);
	str_add_bytes(&s->out, block.buf, block.len);
}

uint32_t spdy_open(struct spdy *s, const struct spdy_field *fields, size_t n)
{
	_cleanup_(str_done) struct str block = STR_INIT;
	uint32_t id = s->next_id;

	if (s->n_streams >= SPDY_STREAMS_MAX || id > INT32_MAX - 2)
		return 0;
	s->next_id += 2;
	add(s, id);
	spdy_zlib_write(s->zlib, fields, n, &block);
	put_control(s, SYN_STREAM, 0, 10 + block.len);
	put32(&s->out, id);
	put32(&s->out, 0); /* associated to none */
	str_add_bytes(&s->out, "\0\0", 2);
	str_add_bytes(&s->out, block.buf, block.len);
	return id;
}

void spdy_data(struct spdy *s, uint32_t stream, const void *p, size_t len)
{
	const struct spdy_stream *t = find(s, stream);

	if (!t || t->ended_here)
		return;
	for (size_t at = 0; at < len; at += SPDY_DATA_FRAME)
		put_data(s, stream, 0, (const char *)p + at, MIN(len - at, (size_t)SPDY_DATA_FRAME));
}

void spdy_end(struct spdy *s, uint32_t stream)
{
	struct spdy_stream *t = find(s, stream);

	if (!t || t->ended_here)
		return;
	put_data(s, stream, FLAG_FIN, NULL, 0);
	t->ended_here = true;
	ended(s, t);
}

void spdy_reset(struct spdy *s, uint32_t stream, enum spdy_status status)
{
	struct spdy_stream *t = find(s, stream);

	if (!t)
		return;
	put_reset(s, stream, status);
	drop(s, t);
}

void spdy_ping(struct spdy *s)
{
	put_control(s, PING, 0, 4);
	put32(&s->out, s->next_ping);
	s->next_ping += 2;
}

void spdy_goaway(struct spdy *s)
{
	put_goaway(s, GOAWAY_OK);
}

/* --- reading */

const char *spdy_header(const struct spdy *s, const char *name)
{
	for (size_t i = 0; i < s->n_fields; i++)
		if (strcasecmp(s->fields[i].name, name) == 0)
			return s->fields[i].value;
	return NULL;
}

/* The block must be decompressed even when nobody wants it, or all later ones could not be. */
static int read_headers(struct spdy *s, const char *p, size_t len, struct error *err)
{
	str_reset(&s->block);
	return spdy_zlib_read(s->zlib, p, len, &s->block, s->fields, &s->n_fields, err);
}

static bool of_peer(const struct spdy *s, uint32_t id)
{
	return id % 2 == (s->role == SPDY_SERVER ? 1u : 0u);
}

static int on_syn_stream(
	struct spdy *s, uint8_t flags, const char *p, size_t len, struct spdy_event *ret, struct error *err)
{
	if (len < 10)
		return error_set(err, ERROR_INVALID, "SYN_STREAM frame of %zu bytes", len);
	uint32_t id = get32(p) & INT32_MAX;
	int r = read_headers(s, p + 10, len - 10, err);

	if (r < 0)
		return r;
	if (!of_peer(s, id) || id <= s->last_peer_id) {
		put_reset(s, id, SPDY_PROTOCOL_ERROR);
		return 0;
	}
	s->last_peer_id = id;
	if (s->n_streams >= SPDY_STREAMS_MAX || s->gone) {
		put_reset(s, id, SPDY_REFUSED_STREAM);
		return 0;
	}
	struct spdy_stream *t = add(s, id);

	t->ended_here = flags & FLAG_UNIDIRECTIONAL;
	if (flags & FLAG_FIN)
		s->end_of = id;
	*ret = (struct spdy_event){ .kind = SPDY_STREAM, .stream = id };
	return 0;
}

static int on_headers(
	struct spdy *s, int type, uint8_t flags, const char *p, size_t len, struct spdy_event *ret, struct error *err)
{
	if (len < 4)
		return error_set(err, ERROR_INVALID, "header frame of %zu bytes", len);
	uint32_t id = get32(p) & INT32_MAX;
	int r = read_headers(s, p + 4, len - 4, err);

	if (r < 0)
		return r;
	if (!find(s, id)) {
		put_reset(s, id, SPDY_INVALID_STREAM);
		return 0;
	}
	if (flags & FLAG_FIN)
		s->end_of = id;
	if (type == SYN_REPLY)
		*ret = (struct spdy_event){ .kind = SPDY_REPLY, .stream = id };
	return 0;
}

static int on_reset(struct spdy *s, const char *p, size_t len, struct spdy_event *ret, struct error *err)
{
	if (len != 8)
		return error_set(err, ERROR_INVALID, "RST_STREAM frame of %zu bytes", len);
	struct spdy_stream *t = find(s, get32(p) & INT32_MAX);

	if (!t)
		return 0;
	*ret = (struct spdy_event){ .kind = SPDY_RESET, .stream = t->id, .status = get32(p + 4) };
	drop(s, t);
	return 0;
}

static int on_ping(struct spdy *s, const char *p, size_t len, struct spdy_event *ret, struct error *err)
{
	if (len != 4)
		return error_set(err, ERROR_INVALID, "PING frame of %zu bytes", len);
	uint32_t id = get32(p);

	if (of_peer(s, id)) {
		put_control(s, PING, 0, 4);
		put32(&s->out, id);
	} else {
		*ret = (struct spdy_event){ .kind = SPDY_PONG, .stream = id };
	}
	return 0;
}

/* A whole control frame. ret->kind stays MORE when nobody has to know of it. */
static int on_control(struct spdy *s, struct spdy_event *ret, struct error *err)
{
	const char *head = s->frame.buf, *p = head + HEAD_BYTES;
	int version = (int)(get32(head) >> 16 & 0x7fff), type = (int)(get32(head) & 0xffff);
	uint8_t flags = (uint8_t)(get32(head + 4) >> 24);
	size_t len = s->frame.len - HEAD_BYTES;

	if (version != VERSION)
		return error_set(err, ERROR_INVALID, "frame of SPDY version %d", version);
	switch (type) {
	case SYN_STREAM:
		return on_syn_stream(s, flags, p, len, ret, err);
	case SYN_REPLY:
	case HEADERS:
		return on_headers(s, type, flags, p, len, ret, err);
	case RST_STREAM:
		return on_reset(s, p, len, ret, err);
	case PING:
		return on_ping(s, p, len, ret, err);
	case GOAWAY:
		*ret = (struct spdy_event){ .kind = SPDY_GOAWAY };
		return 0;
	default: /* SETTINGS, WINDOW_UPDATE, and what is not known (SPDY 2.2.1: ignored) */
		return 0;
	}
}

static void begin_data(struct spdy *s)
{
	struct spdy_stream *t;

	s->data_stream = get32(s->frame.buf) & INT32_MAX;
	s->data_left = get32(s->frame.buf + 4) & 0xffffff;
	s->data_flags = (uint8_t)(get32(s->frame.buf + 4) >> 24);
	str_reset(&s->frame);
	t = find(s, s->data_stream);
	s->data_dropped = !t || t->ended_there;
	if (s->data_dropped)
		put_reset(s, s->data_stream, t ? SPDY_STREAM_ALREADY_CLOSED : SPDY_INVALID_STREAM);
	else if (!s->data_left && s->data_flags & FLAG_FIN)
		s->end_of = s->data_stream;
}

static void read_data(struct spdy *s, struct bytes *in, struct spdy_event *ret)
{
	size_t n = MIN((size_t)s->data_left, in->len);

	/* A reset that we have sent meanwhile drops the rest. */
	if (!s->data_dropped && find(s, s->data_stream))
		*ret = (struct spdy_event){ .kind = SPDY_DATA, .stream = s->data_stream, .data = { in->ptr, n } };
	else
		s->data_dropped = true;
	in->ptr += n;
	in->len -= n;
	s->data_left -= (uint32_t)n;
	if (!s->data_left && s->data_flags & FLAG_FIN && !s->data_dropped)
		s->end_of = s->data_stream;
}

static void take(struct spdy *s, struct bytes *in, size_t wanted)
{
	size_t n = MIN(wanted - MIN(wanted, s->frame.len), in->len);

	str_add_bytes(&s->frame, in->ptr, n);
	in->ptr += n;
	in->len -= n;
}

/* One step towards an event. */
static int step(struct spdy *s, struct bytes *in, struct spdy_event *ret, struct error *err)
{
	if (s->data_left) {
		read_data(s, in, ret);
		return 0;
	}
	take(s, in, HEAD_BYTES);
	if (s->frame.len < HEAD_BYTES)
		return 0;
	if (!(get32(s->frame.buf) & 0x80000000u)) {
		begin_data(s);
		return 0;
	}
	size_t len = get32(s->frame.buf + 4) & 0xffffff;

	if (len > SPDY_CONTROL_MAX)
		return error_set(err, ERROR_EXHAUSTED, "control frame of %zu bytes; at most %d are taken", len,
			SPDY_CONTROL_MAX);
	take(s, in, HEAD_BYTES + len);
	if (s->frame.len < HEAD_BYTES + len)
		return 0;
	int r = on_control(s, ret, err);

	str_reset(&s->frame);
	return r;
}

static bool give_end(struct spdy *s, struct spdy_event *ret)
{
	struct spdy_stream *t = find(s, s->end_of);

	*ret = (struct spdy_event){ .kind = SPDY_END, .stream = s->end_of };
	s->end_of = 0;
	if (!t || t->ended_there)
		return false;
	t->ended_there = true;
	ended(s, t);
	return true;
}

int spdy_read(struct spdy *s, struct bytes *in, struct spdy_event *ret, struct error *err)
{
	struct spdy_event ev = { .kind = SPDY_MORE };

	if (s->failed)
		return error_set(err, ERROR_INVALID, "SPDY: the connection has failed before");
	while (ev.kind == SPDY_MORE) {
		if (s->end_of && give_end(s, &ev))
			break;
		ev.kind = SPDY_MORE;
		if (!in->len)
			break;
		int r = step(s, in, &ev, err);

		if (r < 0) {
			s->failed = true;
			put_goaway(s, GOAWAY_PROTOCOL_ERROR);
			return error_prefix(err, "SPDY");
		}
	}
	*ret = ev;
	return 0;
}

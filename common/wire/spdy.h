/*
 * spdy.h - purpose: SPDY/3.1 framing, both sides; bytes in, events out (no sockets, no clock).
 *
 * What Kubernetes' exec, attach and port-forward need: streams with headers, data, ends, resets, pings. Priorities are
 * ignored and windows are taken as unlimited, since the peers in this field neither send nor honour WINDOW_UPDATE: the
 * only back pressure is that of the transport, so a reader that must wait stops reading the connection.
 *
 *	struct bytes in = { buf, n };
 *	for (;;) {
 *		struct spdy_event ev;
 *		if (spdy_read(s, &in, &ev, &err) < 0)
 *			... send spdy->out (it holds a GOAWAY), close ...
 *		if (ev.kind == SPDY_MORE)
 *			break;      // all of `in` was taken
 *	}
 *	... send s->out, reset it ...
 *
 * Pings are answered here; settings and window updates are read and forgotten. A frame for a stream that is not open is
 * answered with a reset and does no harm to the others. What leaves the two sides in disagreement (a malformed control
 * frame, a header block that does not decompress) ends the connection.
 */
#pragma once
#include "common/base/error.h"
#include "common/base/str.h"

enum spdy_role { SPDY_SERVER, SPDY_CLIENT };

enum spdy_event_kind {
	SPDY_MORE,
	SPDY_STREAM, /* opened by the peer; headers by spdy_header(). Answer with spdy_reply() or spdy_reset() */
	SPDY_REPLY,  /* the peer took a stream of ours */
	SPDY_DATA,   /* a piece, borrowed from `in`, never empty */
	SPDY_END,    /* the peer sends no more on it */
	SPDY_RESET,  /* by the peer; the stream is gone */
	SPDY_PONG,
	SPDY_GOAWAY, /* the peer opens no more streams */
};

/* Of RST_STREAM. */
enum spdy_status {
	SPDY_PROTOCOL_ERROR = 1,
	SPDY_INVALID_STREAM = 2,
	SPDY_REFUSED_STREAM = 3,
	SPDY_CANCEL = 5,
	SPDY_INTERNAL_ERROR = 6,
	SPDY_STREAM_ALREADY_CLOSED = 9,
};

enum {
	SPDY_STREAMS_MAX = 1024,	   /* open at once, of both sides; more are refused */
	SPDY_CONTROL_MAX = 64 * 1024,	   /* bytes of a control frame */
	SPDY_HEADER_BLOCK_MAX = 64 * 1024, /* decompressed */
	SPDY_HEADERS_MAX = 64,
	SPDY_DATA_FRAME = 32 * 1024, /* what is written is cut into such */
};

struct spdy_event {
	enum spdy_event_kind kind;
	uint32_t stream; /* PONG: the ping's id */
	uint32_t status; /* RESET */
	struct bytes data;
};

struct spdy_field {
	const char *name;  /* lower case */
	const char *value; /* several values are separated by NUL: the first is seen */
};

struct spdy {
	struct str out; /* to be sent; the owner sends and resets it */
	struct spdy_zlib *zlib;
	struct spdy_stream *streams; /* sorted by id */
	size_t n_streams;
	/* Of the last SPDY_STREAM or SPDY_REPLY, until the next spdy_read(). */
	struct spdy_field fields[SPDY_HEADERS_MAX];
	size_t n_fields;

	/* private */
	enum spdy_role role;
	struct str frame;		 /* head, and for control frames the body, as far as they have come */
	struct str block;		 /* decompressed headers */
	uint32_t data_left, data_stream; /* of the data frame that is being read */
	uint8_t data_flags;
	bool data_dropped; /* its stream is not open */
	uint32_t end_of;   /* an END event to give next, 0: none */
	uint32_t last_peer_id, next_id, next_ping;
	bool failed, gone;
};

struct spdy *spdy_new(enum spdy_role role);
struct spdy *spdy_free(struct spdy *s); /* NULL is fine; returns NULL */
DEFINE_CLEANUP(struct spdy *, spdy_free)

/* Takes bytes from the front of *in (which moves on) up to the next event. ERROR_INVALID, ERROR_EXHAUSTED: the
 * connection is of no use any more; s->out ends with a GOAWAY. */
int spdy_read(struct spdy *s, struct bytes *in, struct spdy_event *ret, struct error *err) MUST_USE;
/* NULL if absent. Owned by s. */
const char *spdy_header(const struct spdy *s, const char *name);
bool spdy_is_open(const struct spdy *s, uint32_t stream);

/* All of these append to s->out; on a stream that is not open (any more), or that we have ended, they do nothing. */
void spdy_reply(struct spdy *s, uint32_t stream);
void spdy_data(struct spdy *s, uint32_t stream, const void *p, size_t len);
/* We send no more on it. The stream is gone when the peer has said so too. */
void spdy_end(struct spdy *s, uint32_t stream);
void spdy_reset(struct spdy *s, uint32_t stream, enum spdy_status status);
/* Opens a stream; returns its id, 0 when there are too many. `fields` as pairs of name and value. */
uint32_t spdy_open(struct spdy *s, const struct spdy_field *fields, size_t n) MUST_USE;
void spdy_ping(struct spdy *s);
void spdy_goaway(struct spdy *s);

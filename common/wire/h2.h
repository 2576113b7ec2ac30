/*
 * h2.h - purpose: one HTTP/2 connection, server or client side, as bytes in and bytes out (nghttp2 inside).
 *
 * The owner feeds what it read with h2_conn_feed() and sends what h2_conn_pull() gives. Events are called from inside
 * feed, pull and free; they may use every h2_stream_* function, but not feed, pull or free themselves.
 *
 * A stream lives until its on_close event has returned; every stream gets exactly one, in h2_conn_free() at the latest.
 * Limits: H2_HEADERS_MAX bytes of headers on a stream, H2_STREAMS_MAX streams opened by the peer.
 */
#pragma once
#include "common/base/error.h"

#include <sys/types.h>

enum { H2_HEADERS_MAX = 16 * 1024, H2_STREAMS_MAX = 256 };

struct h2_conn;
struct h2_stream;

struct h2_header {
	const char *name;
	const char *value;
};

/* Error codes of RST_STREAM and GOAWAY that we use (RFC 9113, 7). */
enum h2_code { H2_NO_ERROR = 0, H2_INTERNAL_ERROR = 2, H2_REFUSED_STREAM = 7, H2_CANCEL = 8 };

struct h2_events {
	/* The head has arrived (h2_header()): of a request on a server, where it announces the stream; of a response.
	 */
	void (*on_head)(void *data, struct h2_stream *stream);
	void (*on_data)(void *data, struct h2_stream *stream, const void *p, size_t len);
	/* The peer has sent its last byte and its trailers, which h2_header() finds as well. */
	void (*on_end)(void *data, struct h2_stream *stream);
	void (*on_close)(void *data, struct h2_stream *stream, uint32_t code);
	/* Client: the server takes no new requests. May be NULL. */
	void (*on_goaway)(void *data);
};

struct h2_conn *h2_server_new(const struct h2_events *events, void *data);
struct h2_conn *h2_client_new(const struct h2_events *events, void *data);
struct h2_conn *h2_conn_free(struct h2_conn *conn);

/* A negative return is the end of the connection: pull once more (GOAWAY may be waiting), then close it. */
int h2_conn_feed(struct h2_conn *conn, const void *p, size_t len, struct error *err) MUST_USE;
/* The next bytes to send, valid until the next call on conn: their number, 0 for none now, -EPIPE on a broken session.
 */
ssize_t h2_conn_pull(struct h2_conn *conn, const uint8_t **ret);
/* Nothing more will be sent or understood: close. */
bool h2_conn_finished(const struct h2_conn *conn);
size_t h2_conn_streams(const struct h2_conn *conn);
/* Server, graceful stop: first the notice, and when the streams have ended, the end. */
void h2_conn_notice(struct h2_conn *conn);
void h2_conn_goaway(struct h2_conn *conn);

/* Client: starts a request whose body follows by h2_stream_add() and h2_stream_finish(). NULL when the connection takes
 * no more (GOAWAY, stream ids used up). */
struct h2_stream *h2_request(struct h2_conn *conn, const struct h2_header *headers, size_t n);
/* Server: head of the response; the body follows. */
void h2_stream_respond(struct h2_stream *stream, const struct h2_header *headers, size_t n);
/* Server: a response that is a head alone. */
void h2_stream_respond_only(struct h2_stream *stream, const struct h2_header *headers, size_t n);
/* Room for `len` bytes of body at the end of the queue, to be filled before the next call on the stream. */
uint8_t *h2_stream_add(struct h2_stream *stream, size_t len) MUST_USE;
/* Bytes queued and not yet given out by h2_conn_pull(). */
size_t h2_stream_pending(const struct h2_stream *stream);
/* Ends our side when the queue is empty, with these trailers (n 0: none). */
void h2_stream_finish(struct h2_stream *stream, const struct h2_header *trailers, size_t n);
void h2_stream_reset(struct h2_stream *stream, enum h2_code code);

/* Value of a header of head or trailers, NULL if absent; owned by the stream. Names are in lower case. */
const char *h2_header(const struct h2_stream *stream, const char *name);
void h2_stream_set_user(struct h2_stream *stream, void *user);
void *h2_stream_user(const struct h2_stream *stream);

/*
 * http_server.h - purpose: serve HTTP/1.1 on Unix, TCP and TLS listeners from one libuv loop.
 *
 * Keep-alive and pipelining are handled here; handlers see one request with its whole body. Limits: head 64 kB, body
 * `body_max`, HTTP_CONNECTIONS_MAX connections, 60 s idle, 10 s for a head to arrive. Malformed requests answer 400.
 * Loop thread only.
 */
#pragma once
#include "common/base/error.h"
#include "common/net/sock.h"

#include <uv.h>

enum { HTTP_CONNECTIONS_MAX = 256 };

struct http_server;
struct http_exchange; /* one request and its answer */
struct tls_server;    /* tls.h */

struct http_request {
	const char *method;
	const char *path;  /* percent-decoded, without query */
	const char *query; /* raw, "" if none */
	const char *body;  /* NUL-terminated beyond body_len */
	size_t body_len;
	const char *peer_user; /* TLS client certificate's common name, or NULL */
	int64_t peer_uid;      /* user of the process behind a Unix socket; -1 where it is not known */
};

typedef void (*http_handler)(void *context, struct http_exchange *exchange, const struct http_request *request);

/* Takes listen_fd. `tls` NULL: cleartext. */
struct http_server *http_server_new(uv_loop_t *loop, int listen_fd, struct tls_server *tls, size_t body_max,
	http_handler handle, void *context);
/* Closes listener and connections; `closed` is called when all handles are closed, the server is then freed. */
void http_server_close(struct http_server *server, void (*closed)(void *data), void *data);

/* Header of the request, NULL if absent; name in any case. */
const char *http_header(const struct http_exchange *exchange, const char *name);
/* The n-th header of that name, from 0; NULL if there are fewer. */
const char *http_header_at(const struct http_exchange *exchange, const char *name, size_t n);
/* Decoded value of a query parameter, owned by the caller; NULL if absent. */
char *http_query(const struct http_exchange *exchange, const char *name) MUST_USE;

/* One more header of the answer; before http_respond() or http_stream_begin(). Copies. */
void http_add_header(struct http_exchange *exchange, const char *name, const char *value);
/* Answers and ends the exchange. */
void http_respond(struct http_exchange *exchange, int status, const char *content_type, const void *body, size_t len);
/* Or: a stream of chunks. After `begin`, `on_closed` is called once if the client goes away before http_stream_end();
 * the exchange may not be used afterwards. */
void http_stream_begin(struct http_exchange *exchange, int status, const char *content_type,
	void (*on_closed)(void *data), void *data);
/* Copies. -ENOBUFS when more than 16 MB wait for a slow reader: end it. */
int http_stream_write(struct http_exchange *exchange, const void *p, size_t len) MUST_USE;
/* Bytes not yet taken by the kernel, for producers that pause (log follow). */
size_t http_stream_pending(const struct http_exchange *exchange);
/* Called on the loop each time that all of it has been taken, until the end of the exchange or until set to NULL. The
 * first call comes even when nothing was written. */
void http_stream_on_drain(struct http_exchange *exchange, void (*on_drain)(void *data), void *data);
void http_stream_end(struct http_exchange *exchange);

/* The protocol that the client wants to change to (value of Upgrade), NULL if it does not. */
const char *http_wants_upgrade(const struct http_exchange *exchange);
/* Or: 101 with the headers added so far, and from then on the connection carries raw bytes. http_stream_write(), _pending(),
 * _on_drain() send them; http_stream_end() closes when all is sent, and waits for a slow client as long as it needs.
 * on_data gets what the client sends, first what it has sent ahead, never from inside a call of the owner's; a pause makes
 * the client wait. on_closed is called once when the client has ended its side or the connection broke; the exchange may
 * not be used afterwards. Without a byte in either direction the connection is closed after four hours. */
void http_upgrade(struct http_exchange *exchange, const char *protocol, void (*on_data)(void *data, const char *p, size_t len),
	void (*on_closed)(void *data), void *data);
void http_upgrade_pause(struct http_exchange *exchange, bool paused);

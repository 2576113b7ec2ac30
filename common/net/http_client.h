/*
 * http_client.h - purpose: HTTP/1.1 requests over Unix, TCP and TLS from a libuv loop.
 *
 * One connection for each request (kept and reused for the next one to the same endpoint when idle). Names are not
 * resolved. Loop thread only. Callbacks are never called from inside http_request_start().
 */
#pragma once
#include "common/base/error.h"
#include "common/net/sock.h"

#include <uv.h>

struct http_client; /* an endpoint: address, Host header, TLS context */
struct http_request_handle;
struct tls_client;

struct http_client_options {
	struct sock_address address;
	const char *host;       /* Host header; copied */
	struct tls_client *tls; /* NULL: cleartext; borrowed */
	const char *bearer;     /* Authorization, or NULL; copied */
};

struct http_client *http_client_new(uv_loop_t *loop, const struct http_client_options *options);
void http_client_free(struct http_client *client); /* pending requests end with CANCELLED from inside */

struct http_call {
	const char *method;       /* copied */
	const char *target;       /* path and query, already encoded; copied */
	const char *content_type; /* NULL: none */
	const char *accept;       /* NULL: application/json */
	const void *body;         /* copied */
	size_t body_len;
	uint64_t timeout_ms;      /* until the end of the response; 0: none */
	uint64_t idle_timeout_ms; /* without any byte; 0: none */
	/* on_head may be NULL. on_body gets pieces as they come (not the framing). on_end exactly once: OK, or
	 * UNAVAILABLE/DEADLINE/INVALID (malformed answer) with text. `status` is the HTTP status, 0 if none came. */
	void (*on_head)(void *data, int status, const char *content_type);
	void (*on_body)(void *data, const char *p, size_t len);
	void (*on_end)(void *data, int status, const struct error *err);
	void *data;
};

struct http_request_handle *http_request_start(struct http_client *client, const struct http_call *call);
/* No callback is called any more. */
void http_request_cancel(struct http_request_handle *request);

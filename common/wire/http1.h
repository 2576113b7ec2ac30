/*
 * http1.h - purpose: read and write HTTP/1.1 messages; bytes in, events out (no sockets, no clock).
 *
 * One struct http1 reads the messages of one direction of one connection: HTTP1_REQUEST in a server, HTTP1_RESPONSE in
 * a client. It takes bytes in pieces of any size and keeps only an unfinished head, never a body.
 *
 *	struct bytes in = { buf, n };
 *	for (;;) {
 *		struct http1_event ev;
 *		if (http1_read(&h, &in, &ev, &err) < 0)
 *			... answer with h.answer (server), close ...
 *		switch (ev.kind) {
 *		case HTTP1_MORE: return;            // all of `in` was taken
 *		case HTTP1_HEAD: h.method, h.target, http1_header(&h, "Host") ...
 *		case HTTP1_BODY: ev.body            // a piece, borrowed from `in`, never empty
 *		case HTTP1_END:  answer; what is left of `in` is the next message (pipelining) or, after an upgrade, the
 *		                 other protocol. Call http1_next() before reading the next message.
 *		}
 *	}
 *
 * What two parsers could read in two ways is refused (request smuggling): Content-Length together with
 * Transfer-Encoding, differing or malformed Content-Lengths, a transfer coding other than one "chunked", chunked in
 * HTTP/1.0, folded header lines, space before the colon, bare CR or LF, control characters, chunk sizes with anything
 * but hex digits (chunk extensions are skipped), a missing or double Host header in an HTTP/1.1 request.
 *
 * Interim responses (1xx other than 101) are skipped. A 101 response and a request with `Upgrade` end after their head
 * (ev END) as far as this parser is concerned: a request with an Upgrade header and a body is read like any other.
 */
#pragma once
#include "common/base/error.h"
#include "common/base/str.h"

enum http1_role { HTTP1_REQUEST, HTTP1_RESPONSE };

enum http1_event_kind { HTTP1_MORE, HTTP1_HEAD, HTTP1_BODY, HTTP1_END };

struct http1_event {
	enum http1_event_kind kind;
	struct bytes body; /* HTTP1_BODY */
};

enum { HTTP1_HEAD_MAX = 64 * 1024, HTTP1_HEADERS_MAX = 100 };

struct http1_field {
	const char *name;  /* as it was sent */
	const char *value; /* without surrounding white space */
};

struct http1 {
	enum http1_role role;
	size_t head_max; /* larger heads (and trailers) are refused with 431; 0: HTTP1_HEAD_MAX */
	size_t body_max; /* larger bodies are refused with 413; 0: no limit */

	/* Of the current message, valid from HTTP1_HEAD to http1_next(). Strings are owned by this struct. */
	const char *method; /* request */
	const char *target; /* request: as sent (origin form, "*", or absolute form) */
	int status;	    /* response */
	int minor;	    /* HTTP/1.minor: 0 or 1 */
	struct http1_field fields[HTTP1_HEADERS_MAX];
	size_t n_fields;
	bool chunked;
	bool has_length;
	uint64_t content_length; /* when has_length */
	bool keep_alive;	 /* may the connection be used again after this message? */
	const char *upgrade;	 /* value of Upgrade when Connection names it, else NULL */
	bool expect_continue;	 /* request: send "HTTP/1.1 100 Continue" before the body comes */

	int answer; /* after an error in a request: the status to answer with (400, 413, 414, 431, 501, 505) */

	/* private */
	bool no_body;
	int state;
	uint64_t left; /* of the body or of the chunk */
	uint64_t body_seen;
	size_t line_len; /* chunk size and trailer bytes seen */
	struct str head;
};

void http1_init(struct http1 *h, enum http1_role role);
void http1_done(struct http1 *h);
/* Takes bytes from the front of *in (which moves on) up to the next event. Returns 0, or a negative errno with an
 * ERROR_INVALID / ERROR_EXHAUSTED error; then the connection is of no use any more. */
int http1_read(struct http1 *h, struct bytes *in, struct http1_event *ret, struct error *err) MUST_USE;
/* The peer has closed. Gives END when that ends a body without length, MORE when no message was begun; a message that
 * was cut off is an error (ERROR_UNAVAILABLE). */
int http1_eof(struct http1 *h, struct http1_event *ret, struct error *err) MUST_USE;
/* After END: makes ready for the next message. Keeps role and limits. */
void http1_next(struct http1 *h);
/* Client, before the response to a HEAD request is read: it has no body whatever its header says. */
void http1_expect_no_body(struct http1 *h);
/* First field of that name (any case), NULL if absent. Owned by h. */
const char *http1_header(const struct http1 *h, const char *name);
/* Is `token` (any case) an element of the comma-separated list? NULL list: no. */
bool http1_has_token(const char *list, const char *token);

/* Writers append to `out`. Control characters in values become spaces, so that no text can forge a header. */
void http1_write_request(struct str *out, const char *method, const char *target);
void http1_write_status(struct str *out, int status);
void http1_write_field(struct str *out, const char *name, const char *value);
void http1_write_fieldf(struct str *out, const char *name, const char *fmt, ...) PRINTF(3, 4);
void http1_write_head_end(struct str *out);
/* One chunk of a chunked body; nothing for len 0. */
void http1_write_chunk(struct str *out, const void *p, size_t len);
/* The last chunk, which ends the body. */
void http1_write_chunk_end(struct str *out);
/* "Not Found"; "" for unknown numbers. Static. */
const char *http1_reason(int status);

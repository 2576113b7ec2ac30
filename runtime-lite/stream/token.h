/*
 * token.h - purpose: what clients of the streaming server are allowed: one-time tokens, each for one request. Pure.
 *
 * The token is the only thing that a client has to show: 128 random bits, good for one connection within a minute, and
 * never written to the log. Loop thread only.
 */
#pragma once
#include "common/base/error.h"
#include "common/base/str.h"

enum { TOKENS_MAX = 1000, TOKEN_LEN = 32 };
#define TOKEN_LIFE_NS UINT64_C(60000000000)

enum stream_kind { STREAM_EXEC, STREAM_ATTACH, STREAM_PORT_FORWARD };

/* What an RPC was asked for. */
struct stream_request {
	enum stream_kind kind;
	char *id;	  /* container; sandbox for PORT_FORWARD */
	struct strv args; /* EXEC */
	bool in, out, err, tty;
	uint16_t *ports; /* PORT_FORWARD: for clients that cannot name them themselves */
	size_t n_ports;
};

struct stream_request *stream_request_new(enum stream_kind kind, const char *id);
struct stream_request *stream_request_free(struct stream_request *r); /* NULL is fine; returns NULL */
DEFINE_CLEANUP(struct stream_request *, stream_request_free)

struct tokens;

struct tokens *tokens_new(void);
void tokens_free(struct tokens *t);
/* Takes the request, and `token` of TOKEN_LEN characters into it. EXHAUSTED when TOKENS_MAX are outstanding. */
int tokens_add(struct tokens *t, struct stream_request *request, const char *token, uint64_t now_ns,
	struct error *err) MUST_USE;
/* The request, once; the caller's. NULL: unknown, used, too old, or of another kind. */
struct stream_request *tokens_take(
	struct tokens *t, enum stream_kind kind, const char *token, uint64_t now_ns) MUST_USE;

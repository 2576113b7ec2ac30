/*
 * token.h - purpose: what to put into the Authorization header: Bearer tokens (anonymous or with credentials), Basic.
 *
 * Tokens are kept for each endpoint until they expire or the registry refuses them. Thread-safe. Credentials go to the
 * registry itself and to the token server that it names, and to a mirror only when the credentials name that host.
 */
#pragma once
#include "runtime-lite/pull/registry.h"

struct token_cache;
struct token_cache *token_cache_new(const struct registry_options *options);
struct token_cache *token_cache_free(struct token_cache *t);

/* What was good last time, or NULL. Owned by the caller. */
char *token_cached(struct token_cache *t, const struct endpoint *e) MUST_USE;
/* After a 401 with this WWW-Authenticate, in answer to `refused` (may be NULL): *ret is the header's new value, or NULL when
 * there is nothing else to offer. Fails when the token server cannot be asked. */
int token_fetch(struct token_cache *t, const struct endpoint *e, struct http_client *c, const char *authenticate,
	const char *refused, char **ret, struct error *err) MUST_USE;

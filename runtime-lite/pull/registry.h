/*
 * registry.h - purpose: fetch manifests and blobs of one repository: endpoints and mirrors in order, tokens, redirects without
 * leaking credentials, retries, resumed downloads.
 *
 * Tokens are shared between threads; each thread brings its own http_client.
 */
#pragma once
#include "runtime-lite/image/reference.h"
#include "runtime-lite/pull/http.h"

struct registry;

struct registry_options {
	const struct reference *ref;    /* borrowed, must outlive the registry */
	const char *config_dir;         /* certs.d */
	const struct strv *insecure;    /* plain HTTP */
	/* Credentials; any may be NULL. */
	const char *username, *password, *identity_token, *registry_token, *server_address;
};

int registry_new(const struct registry_options *options, struct registry **ret, struct error *err) MUST_USE;
struct registry *registry_free(struct registry *r);
DEFINE_CLEANUP(struct registry *, registry_free)

/* HEAD: what digest the target (tag or digest) has, by the registry's word; *ret NULL if it does not say. NOT_FOUND,
 * UNAUTHENTICATED, DENIED, UNAVAILABLE ("RegistryUnavailable: ..."). */
int registry_resolve(struct registry *r, struct http_client *c, const char *target, char **ret, struct error *err) MUST_USE;
/* A manifest (or index) whole. With `digest` (may be NULL) it is checked: DATA_LOSS. */
int registry_manifest(struct registry *r, struct http_client *c, const char *target, const char *digest, char **ret,
	size_t *ret_len, char **ret_media_type, struct error *err) MUST_USE;
/* A blob in order, resumed where it was cut: `sink` sees each byte once. *position (0 at first) counts them. The caller
 * checks digest and size. */
int registry_blob(struct registry *r, struct http_client *c, const char *digest, uint64_t size,
	int (*sink)(void *data, const void *p, size_t n, struct error *err), void *data, struct error *err) MUST_USE;

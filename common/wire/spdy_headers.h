/*
 * spdy_headers.h - purpose: SPDY/3's compressed header blocks: one zlib stream each way for the whole connection. For
 * spdy.c.
 */
#pragma once
#include "common/wire/spdy.h"

struct spdy_zlib;

struct spdy_zlib *spdy_zlib_new(void);
void spdy_zlib_free(struct spdy_zlib *z); /* NULL is fine */
/* Appends one compressed block. */
void spdy_zlib_write(struct spdy_zlib *z, const struct spdy_field *fields, size_t n, struct str *out);
/* Decompresses one block into `text` (which the fields point into) and parses it; at most SPDY_HEADERS_MAX fields. */
int spdy_zlib_read(struct spdy_zlib *z, const void *p, size_t len, struct str *text, struct spdy_field *ret,
	size_t *ret_n, struct error *err) MUST_USE;

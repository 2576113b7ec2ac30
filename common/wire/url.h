/*
 * url.h - purpose: percent encoding and query strings of request targets. Pure.
 */
#pragma once
#include "common/base/str.h"

/* Decodes %XX (and '+' as a space when `plus`, for queries). *ret is owned by the caller. -EINVAL for a broken escape
 * or an encoded NUL. */
int url_decode(const char *p, size_t len, bool plus, char **ret) MUST_USE;
/* Appends `text` with everything but unreserved characters (letters, digits, "-._~") percent-encoded. */
void url_encode(struct str *out, const char *text);
/* Decoded value of the first parameter `name` in a raw query ("a=1&b=%20"); NULL if absent or broken. "" for "name" and
 * "name=". Owned by the caller. */
char *url_query_get(const char *query, const char *name) MUST_USE;
/* All values of `name` (container=a&container=b), appended to `out`. */
void url_query_get_all(const char *query, const char *name, struct strv *out);

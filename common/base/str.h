/*
 * str.h - purpose: a growable string, and lists of strings.
 *
 *	_cleanup_(str_done) struct str s = STR_INIT;
 *	str_addf(&s, "%s/%s", ns, name);
 *	return str_take(&s);
 *
 * s.buf is always NUL-terminated once something was added; NULL bytes may be in it, s.len counts.
 */
#pragma once
#include "common/base/base.h"

#include <stdarg.h>

struct str {
	char *buf;
	size_t len;
	size_t cap;
};

#define STR_INIT ((struct str){ 0 })

void str_done(struct str *s);
void str_reset(struct str *s); /* keeps the memory */
void str_reserve(struct str *s, size_t more);
void str_add(struct str *s, const char *text);
void str_add_bytes(struct str *s, const void *p, size_t n);
void str_add_char(struct str *s, char c);
void str_addf(struct str *s, const char *fmt, ...) PRINTF(2, 3);
void str_vaddf(struct str *s, const char *fmt, va_list args) PRINTF(2, 0);
/* Removes the first n bytes. */
void str_consume(struct str *s, size_t n);
/* The text, owned by the caller ("" if nothing was added); s is empty afterwards. */
char *str_take(struct str *s) MUST_USE;
/* The text, owned by s; "" if empty. */
const char *str_get(const struct str *s);

/* A list of owned strings, `v` is NULL-terminated once something was added. */
struct strv {
	char **v;
	size_t n;
};
#define STRV_INIT ((struct strv){ 0 })
void strv_done(struct strv *l);
void strv_add(struct strv *l, const char *s);
void strv_add_take(struct strv *l, char *s); /* takes ownership of s */
bool strv_has(const struct strv *l, const char *s);
/* Splits at every `sep`, empty parts are kept ("" gives none). */
void strv_split(struct strv *l, const char *s, char sep);

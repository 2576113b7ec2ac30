/* str.c - purpose: a growable string, and lists of strings. */
#include "common/base/str.h"

#include <stdio.h>

void str_done(struct str *s)
{
	free(s->buf);
	*s = STR_INIT;
}

void str_reset(struct str *s)
{
	s->len = 0;
	if (s->buf)
		s->buf[0] = '\0';
}

void str_reserve(struct str *s, size_t more)
{
	size_t need;

	if (__builtin_add_overflow(s->len, more, &need) || __builtin_add_overflow(need, 1, &need))
		abort();
	if (need <= s->cap)
		return;
	s->cap = MAX(need, MAX((size_t)64, s->cap + s->cap / 2));
	s->buf = xrealloc(s->buf, s->cap);
	s->buf[s->len] = '\0';
}

void str_add_bytes(struct str *s, const void *p, size_t n)
{
	str_reserve(s, n);
	if (n)
		memcpy(s->buf + s->len, p, n);
	s->len += n;
	s->buf[s->len] = '\0';
}

void str_add(struct str *s, const char *text)
{
	str_add_bytes(s, text, strlen(text));
}

void str_add_char(struct str *s, char c)
{
	str_add_bytes(s, &c, 1);
}

void str_vaddf(struct str *s, const char *fmt, va_list args)
{
	va_list again;

	va_copy(again, args);
	int n = vsnprintf(NULL, 0, fmt, args);
	if (n < 0)
		abort();
	str_reserve(s, (size_t)n);
	vsnprintf(s->buf + s->len, (size_t)n + 1, fmt, again);
	va_end(again);
	s->len += (size_t)n;
}

void str_addf(struct str *s, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	str_vaddf(s, fmt, args);
	va_end(args);
}

void str_consume(struct str *s, size_t n)
{
	n = MIN(n, s->len);
	if (!n)
		return;
	memmove(s->buf, s->buf + n, s->len - n + 1);
	s->len -= n;
}

char *str_take(struct str *s)
{
	char *text = s->buf ? s->buf : xstrdup("");

	*s = STR_INIT;
	return text;
}

const char *str_get(const struct str *s)
{
	return s->buf ? s->buf : "";
}

void strv_done(struct strv *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i]);
	free(l->v);
	*l = STRV_INIT;
}

void strv_add_take(struct strv *l, char *s)
{
	l->v = xreallocarray(l->v, l->n + 2, sizeof(*l->v));
	l->v[l->n++] = s;
	l->v[l->n] = NULL;
}

void strv_add(struct strv *l, const char *s)
{
	strv_add_take(l, xstrdup(s));
}

bool strv_has(const struct strv *l, const char *s)
{
	for (size_t i = 0; i < l->n; i++)
		if (str_eq(l->v[i], s))
			return true;
	return false;
}

void strv_split(struct strv *l, const char *s, char sep)
{
	while (s && *s) {
		const char *end = strchrnul(s, sep);

		strv_add_take(l, xstrndup(s, (size_t)(end - s)));
		if (!*end)
			return;
		s = end + 1;
		if (!*s)
			strv_add(l, "");
	}
}

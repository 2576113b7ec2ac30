/* challenge.c - purpose: WWW-Authenticate headers: which scheme, with what parameters. */
#include "runtime-lite/image/challenge.h"

#include <strings.h>

enum { VALUE_MAX = 4096 };

void challenge_done(struct challenge *c)
{
	free(c->realm);
	free(c->service);
	free(c->scope);
	free(c->error);
	*c = (struct challenge){ 0 };
}

static bool token_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c && strchr("!#$%&'*+-.^_`|~", c));
}

static const char *skip(const char *p, const char *set)
{
	return p + strspn(p, set);
}

/* A quoted string or a token, appended to `out`. */
static const char *value(const char *p, struct str *out)
{
	if (*p != '"') {
		/* Tolerant: realms are seen without quotes. */
		while (*p && !strchr(", \t", *p))
			str_add_char(out, *p++);
		return p;
	}
	for (p++; *p && *p != '"'; p++) {
		if (*p == '\\' && p[1])
			p++;
		str_add_char(out, *p);
	}
	return *p ? p + 1 : p;
}

static void set(struct challenge *c, const char *name, size_t n, const char *text)
{
	struct {
		const char *name;
		char **field;
	} fields[] = { { "realm", &c->realm }, { "service", &c->service }, { "scope", &c->scope }, { "error", &c->error } };

	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		if (strlen(fields[i].name) == n && strncasecmp(fields[i].name, name, n) == 0 && strlen(text) <= VALUE_MAX) {
			free(*fields[i].field);
			*fields[i].field = xstrdup(text);
		}
	}
}

static enum challenge_scheme scheme_of(const char *name, size_t n)
{
	if (n == 6 && strncasecmp(name, "Bearer", 6) == 0)
		return CHALLENGE_BEARER;
	return n == 5 && strncasecmp(name, "Basic", 5) == 0 ? CHALLENGE_BASIC : CHALLENGE_NONE;
}

/* Keeps the better one of *best and *c, drops the other. */
static void offer(struct challenge *best, struct challenge *c)
{
	bool usable = c->scheme == CHALLENGE_BASIC || (c->scheme == CHALLENGE_BEARER && !str_empty(c->realm));

	if (usable && c->scheme > best->scheme) {
		challenge_done(best);
		*best = *c;
		*c = (struct challenge){ 0 };
	}
	challenge_done(c);
}

void challenge_parse(const char *header, struct challenge *ret)
{
	struct challenge best = { 0 }, c = { 0 };
	const char *p = header;

	while (*(p = skip(p, ", \t\r\n"))) {
		const char *name = p;

		while (token_char(*p))
			p++;
		size_t n = (size_t)(p - name);
		if (n == 0) {
			p++; /* garbage */
			continue;
		}
		const char *after = skip(p, " \t");
		if (*after == '=') {
			_cleanup_(str_done) struct str text = STR_INIT;

			p = value(skip(after + 1, " \t"), &text);
			set(&c, name, n, str_get(&text));
		} else {
			offer(&best, &c);
			c.scheme = scheme_of(name, n);
		}
	}
	offer(&best, &c);
	char **fields[] = { &best.realm, &best.service, &best.scope, &best.error };
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if (!*fields[i])
			*fields[i] = xstrdup("");
	*ret = best;
}

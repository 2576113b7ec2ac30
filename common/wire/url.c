/* url.c - purpose: percent encoding and query strings of request targets. */
#include "common/wire/url.h"

#include <errno.h>

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int url_decode(const char *p, size_t len, bool plus, char **ret)
{
	_cleanup_free_ char *text = xmalloc(len + 1);
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		char c = p[i];

		if (c == '+' && plus) {
			c = ' ';
		} else if (c == '%') {
			int high = i + 2 < len ? hex_digit(p[i + 1]) : -1;
			int low = i + 2 < len ? hex_digit(p[i + 2]) : -1;

			if (high < 0 || low < 0 || (!high && !low))
				return -EINVAL;
			c = (char)(high << 4 | low);
			i += 2;
		}
		text[n++] = c;
	}
	text[n] = '\0';
	*ret = steal(text);
	return 0;
}

void url_encode(struct str *out, const char *text)
{
	static const char digits[] = "0123456789ABCDEF";

	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		bool plain =
			(c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("-._~", c);

		if (plain) {
			str_add_char(out, *text);
			continue;
		}
		str_add_char(out, '%');
		str_add_char(out, digits[c >> 4]);
		str_add_char(out, digits[c & 15]);
	}
}

/* The next parameter of *query whose decoded name is `name`: its decoded value, NULL when there is none. */
static char *next_value(const char **query, const char *name)
{
	while (**query) {
		const char *part = *query;
		size_t len = strcspn(part, "&");
		const char *equals = memchr(part, '=', len);
		size_t name_len = equals ? (size_t)(equals - part) : len;
		_cleanup_free_ char *found = NULL, *value = NULL;

		*query = part + len + (part[len] == '&');
		if (url_decode(part, name_len, true, &found) < 0 || !str_eq(found, name))
			continue;
		if (!equals)
			return xstrdup("");
		if (url_decode(equals + 1, len - name_len - 1, true, &value) == 0)
			return steal(value);
	}
	return NULL;
}

char *url_query_get(const char *query, const char *name)
{
	return query ? next_value(&query, name) : NULL;
}

void url_query_get_all(const char *query, const char *name, struct strv *out)
{
	char *value;

	while (query && (value = next_value(&query, name)))
		strv_add_take(out, value);
}

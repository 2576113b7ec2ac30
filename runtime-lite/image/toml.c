/* toml.c - purpose: the part of TOML 1.0 that hosts.toml files use, read into JSON. */
#include "runtime-lite/image/toml.h"

#include <errno.h>

#include "common/base/str.h"

enum { DEPTH_MAX = 16 };

struct parser {
	const char *p, *end;
	unsigned line;
	struct error *err;
};

static int value(struct parser *t, unsigned depth, json_t **ret);

static int bad(struct parser *t, const char *what)
{
	return error_set(t->err, ERROR_INVALID, "line %u: %s", t->line, what);
}

static char peek(const struct parser *t)
{
	return t->p < t->end ? *t->p : '\0';
}

static bool accept(struct parser *t, const char *text)
{
	size_t n = strlen(text);

	if ((size_t)(t->end - t->p) < n || memcmp(t->p, text, n) != 0)
		return false;
	t->p += n;
	return true;
}

static void skip_blanks(struct parser *t)
{
	while (peek(t) == ' ' || peek(t) == '\t')
		t->p++;
}

/* Blanks, newlines and comments. */
static void skip_space(struct parser *t)
{
	for (;;) {
		skip_blanks(t);
		if (peek(t) == '#')
			while (t->p < t->end && *t->p != '\n')
				t->p++;
		if (peek(t) == '\n')
			t->line++;
		else if (peek(t) != '\r')
			return;
		t->p++;
	}
}

static int end_of_line(struct parser *t)
{
	skip_blanks(t);
	if (peek(t) == '#')
		while (t->p < t->end && *t->p != '\n')
			t->p++;
	accept(t, "\r");
	return t->p == t->end || peek(t) == '\n' ? 0 : bad(t, "unexpected text behind the value");
}

static void add_utf8(struct str *out, unsigned c)
{
	if (c < 0x80) {
		str_add_char(out, (char)c);
	} else if (c < 0x800) {
		str_add_char(out, (char)(0xc0 | c >> 6));
		str_add_char(out, (char)(0x80 | (c & 0x3f)));
	} else if (c < 0x10000) {
		str_add_char(out, (char)(0xe0 | c >> 12));
		str_add_char(out, (char)(0x80 | (c >> 6 & 0x3f)));
		str_add_char(out, (char)(0x80 | (c & 0x3f)));
	} else {
		str_add_char(out, (char)(0xf0 | c >> 18));
		str_add_char(out, (char)(0x80 | (c >> 12 & 0x3f)));
		str_add_char(out, (char)(0x80 | (c >> 6 & 0x3f)));
		str_add_char(out, (char)(0x80 | (c & 0x3f)));
	}
}

static int unicode_escape(struct parser *t, int digits, struct str *out)
{
	unsigned c = 0;

	for (int i = 0; i < digits; i++, t->p++) {
		char d = peek(t);
		const char *all = "0123456789abcdef0123456789ABCDEF";
		const char *at = d ? strchr(all, d) : NULL;

		if (!at)
			return bad(t, "a broken \\u escape");
		c = c << 4 | (unsigned)((at - all) % 16);
	}
	if (c == 0 || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return bad(t, "a \\u escape for no character");
	add_utf8(out, c);
	return 0;
}

static int escape(struct parser *t, bool multi, struct str *out)
{
	static const char from[] = "btnfre\"\\", to[] = "\b\t\n\f\r\x1b\"\\";
	char c = peek(t);
	const char *at = c ? strchr(from, c) : NULL;

	if (at) {
		t->p++;
		str_add_char(out, to[at - from]);
		return 0;
	}
	if (accept(t, "u"))
		return unicode_escape(t, 4, out);
	if (accept(t, "U"))
		return unicode_escape(t, 8, out);
	if (multi && (c == '\n' || c == ' ' || c == '\t' || c == '\r')) {
		for (; peek(t) == '\n' || peek(t) == ' ' || peek(t) == '\t' || peek(t) == '\r'; t->p++)
			t->line += *t->p == '\n';
		return 0;
	}
	return bad(t, "an unknown escape in a string");
}

/* After the opening quote(s). `quote` is `"`, `'`, `"""` or `'''`. */
static int string_rest(struct parser *t, const char *quote, struct str *out)
{
	bool multi = quote[1], basic = quote[0] == '"';

	if (multi)
		accept(t, "\r");
	if (multi && accept(t, "\n"))
		t->line++;
	while (!accept(t, quote)) {
		if (t->p == t->end)
			return bad(t, "a string without an end");
		char c = *t->p++;
		if (c == '\n') {
			if (!multi)
				return bad(t, "a string without an end");
			t->line++;
		}
		if (c == '\0')
			return bad(t, "a NUL in a string");
		if (c == '\\' && basic) {
			int r = escape(t, multi, out);

			if (r < 0)
				return r;
		} else {
			str_add_char(out, c);
		}
	}
	return 0;
}

static int string(struct parser *t, bool may_be_multi, struct str *out)
{
	if (may_be_multi && accept(t, "\"\"\""))
		return string_rest(t, "\"\"\"", out);
	if (may_be_multi && accept(t, "'''"))
		return string_rest(t, "'''", out);
	if (accept(t, "\""))
		return string_rest(t, "\"", out);
	if (accept(t, "'"))
		return string_rest(t, "'", out);
	return bad(t, "a string is missing");
}

static bool bare_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/* One part of a key. */
static int key_part(struct parser *t, struct str *out)
{
	skip_blanks(t);
	if (peek(t) == '"' || peek(t) == '\'')
		return string(t, false, out);
	if (!bare_char(peek(t)))
		return bad(t, "a key is missing");
	while (bare_char(peek(t)))
		str_add_char(out, *t->p++);
	return 0;
}

/* A dotted key: makes the tables on its way; *ret_table borrowed, the last part in `last`. */
static int key(struct parser *t, json_t *table, json_t **ret_table, struct str *last)
{
	for (;;) {
		str_reset(last);
		int r = key_part(t, last);

		if (r < 0)
			return r;
		skip_blanks(t);
		if (!accept(t, ".")) {
			*ret_table = table;
			return 0;
		}
		json_t *next = json_object_get(table, str_get(last));
		if (!next) {
			next = json_object();
			if (json_object_set_new(table, str_get(last), next) < 0)
				return bad(t, "a key that is not UTF-8");
		}
		if (!json_is_object(next))
			return bad(t, "a key that is a value and a table at once");
		table = next;
	}
}

static int pair(struct parser *t, json_t *table, unsigned depth)
{
	_cleanup_(str_done) struct str name = STR_INIT;
	json_t *target, *v = NULL;
	int r = key(t, table, &target, &name);

	if (r < 0)
		return r;
	if (!accept(t, "="))
		return bad(t, "a \"=\" is missing behind the key");
	if (json_object_get(target, str_get(&name)))
		return bad(t, "a key for the second time");
	skip_blanks(t);
	r = value(t, depth, &v);
	if (r == 0 && json_object_set_new(target, str_get(&name), v) < 0)
		r = bad(t, "a key that is not UTF-8");
	return r;
}

static int array(struct parser *t, unsigned depth, json_t **ret)
{
	_cleanup_json_ json_t *list = json_array();

	for (;;) {
		json_t *v = NULL;

		skip_space(t);
		if (accept(t, "]"))
			break;
		int r = value(t, depth + 1, &v);
		if (r < 0)
			return r;
		json_array_append_new(list, v);
		skip_space(t);
		if (!accept(t, ",") && peek(t) != ']')
			return bad(t, "\",\" or \"]\" is missing in an array");
	}
	*ret = steal(list);
	return 0;
}

static int inline_table(struct parser *t, unsigned depth, json_t **ret)
{
	_cleanup_json_ json_t *table = json_object();

	skip_blanks(t);
	if (!accept(t, "}")) {
		for (;;) {
			int r = pair(t, table, depth + 1);

			if (r < 0)
				return r;
			skip_blanks(t);
			if (accept(t, "}"))
				break;
			if (!accept(t, ","))
				return bad(t, "\",\" or \"}\" is missing in an inline table");
		}
	}
	*ret = steal(table);
	return 0;
}

static int integer(struct parser *t, json_t **ret)
{
	bool negative = accept(t, "-");
	int64_t v = 0;
	size_t digits = 0;

	if (!negative)
		accept(t, "+");
	for (; (peek(t) >= '0' && peek(t) <= '9') || (digits && peek(t) == '_'); t->p++) {
		if (*t->p == '_')
			continue;
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *t->p - '0', &v))
			return bad(t, "a number that is too large");
		digits++;
	}
	if (digits == 0 || bare_char(peek(t)) || peek(t) == '.' || peek(t) == ':')
		return bad(t, "a value that is no string, integer, boolean, array or inline table");
	*ret = json_integer(negative ? -v : v);
	return 0;
}

static int value(struct parser *t, unsigned depth, json_t **ret)
{
	char c = peek(t);

	if (depth > DEPTH_MAX)
		return bad(t, "values nested too deeply");
	if (c == '"' || c == '\'') {
		_cleanup_(str_done) struct str text = STR_INIT;
		int r = string(t, true, &text);

		if (r < 0)
			return r;
		*ret = json_stringn(str_get(&text), text.len);
		return *ret ? 0 : bad(t, "a string that is not UTF-8");
	}
	if (accept(t, "["))
		return array(t, depth, ret);
	if (accept(t, "{"))
		return inline_table(t, depth, ret);
	if ((accept(t, "true") && (*ret = json_true())) || (accept(t, "false") && (*ret = json_false())))
		return bare_char(peek(t)) ? bad(t, "an unknown value") : 0;
	return integer(t, ret);
}

/* "[a.b]": *ret_table is that table, borrowed. */
static int header(struct parser *t, json_t *root, json_t **ret_table)
{
	_cleanup_(str_done) struct str name = STR_INIT;
	json_t *parent;

	if (peek(t) == '[')
		return bad(t, "arrays of tables are not supported");
	int r = key(t, root, &parent, &name);
	if (r < 0)
		return r;
	if (!accept(t, "]"))
		return bad(t, "a \"]\" is missing");
	json_t *table = json_object_get(parent, str_get(&name));
	if (!table) {
		table = json_object();
		if (json_object_set_new(parent, str_get(&name), table) < 0)
			return bad(t, "a key that is not UTF-8");
	}
	if (!json_is_object(table))
		return bad(t, "a key that is a value and a table at once");
	*ret_table = table;
	return 0;
}

int toml_read(const char *text, size_t len, json_t **ret, struct error *err)
{
	struct parser t = { text, text + len, 1, err };
	_cleanup_json_ json_t *root = json_object();
	json_t *table = root;

	if (len > TOML_SIZE_MAX)
		return error_set(err, ERROR_INVALID, "larger than 256 KiB");
	for (;;) {
		skip_space(&t);
		if (t.p == t.end)
			break;
		int r = accept(&t, "[") ? header(&t, root, &table) : pair(&t, table, 0);
		if (r == 0)
			r = end_of_line(&t);
		if (r < 0)
			return r;
	}
	*ret = steal(root);
	return 0;
}

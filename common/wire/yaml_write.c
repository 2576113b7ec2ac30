/* yaml_write.c - purpose: write jansson trees as YAML block text, in the manner of kubectl -o yaml. */
#include "common/wire/json.h"
#include "common/wire/utf8.h"
#include "common/wire/yaml_scalar.h"

#include <stdio.h>

enum { SIMPLE_KEY_MAX = 1000 }; /* readers give up on a "key:" beyond 1024 */

enum style { STYLE_PLAIN, STYLE_SINGLE, STYLE_DOUBLE, STYLE_LITERAL };

/* What the text contains, as far as the choice of a style depends on it. */
struct looks {
	bool special;	 /* characters that only double quotes can hold */
	bool indicators; /* plain text would be read as something else */
	bool breaks;
	bool edge_space;  /* leading or trailing space or break */
	bool space_break; /* a space before a line break */
	bool break_space; /* a space behind a line break */
	bool ends_in_space;
};

static bool is_printable(uint32_t c)
{
	return (c >= 0x20 && c < 0x7f) || c == 0xa0 ||
	       (c > 0xa0 && c != 0xad && c != 0x2028 && c != 0x2029 && c != 0xfeff && !(c >= 0xd800 && c < 0xe000) &&
		       c != 0xfffe && c != 0xffff);
}

static struct looks look_at(const char *text, size_t len)
{
	struct looks looks = { 0 };
	bool before_space = true;

	looks.indicators = str_starts(text, "---") || str_starts(text, "...");
	for (size_t i = 0; i < len;) {
		uint32_t c = 0;
		size_t n = utf8_decode(text + i, len - i, &c);
		bool last = i + MAX(n, (size_t)1) >= len;
		char next = last ? ' ' : text[i + 1];
		bool space_next = next == ' ' || next == '\n' || next == '\t';

		if (!n || (c != '\n' && c != '\t' && !is_printable(c)) || c == '\t')
			looks.special = true;
		if (i == 0 && (strchr("#,[]{}&*!|>'\"%@`", (int)c) && c && c < 0x80))
			looks.indicators = true;
		if (i == 0 && (c == '-' || c == '?' || c == ':') && space_next)
			looks.indicators = true;
		if (i > 0 && ((c == ':' && space_next) || (c == '#' && before_space)))
			looks.indicators = true;
		looks.breaks |= c == '\n';
		looks.edge_space |= (c == ' ' || c == '\n') && (i == 0 || last);
		looks.space_break |= c == ' ' && !last && next == '\n';
		looks.break_space |= c == '\n' && !last && next == ' ';
		looks.ends_in_space = c == ' ';
		before_space = c == ' ' || c == '\n';
		i += MAX(n, (size_t)1);
	}
	return looks;
}

static enum style choose(const char *text, size_t len, bool key)
{
	struct looks looks = look_at(text, len);

	if (looks.special)
		return STYLE_DOUBLE;
	if (looks.breaks) {
		bool literal = !key && !looks.space_break && !looks.ends_in_space;

		return literal ? STYLE_LITERAL : STYLE_DOUBLE;
	}
	if (yaml_needs_quotes(text))
		return STYLE_DOUBLE;
	return looks.indicators || looks.edge_space ? STYLE_SINGLE : STYLE_PLAIN;
}

static void add_double(struct str *out, const char *text, size_t len)
{
	static const char from[] = "\a\b\t\n\v\f\r\033\"\\", to[] = "abtnvfre\"\\";

	str_add_char(out, '"');
	for (size_t i = 0; i < len;) {
		uint32_t c = 0xfffd;
		size_t n = utf8_decode(text + i, len - i, &c);
		const char *escape = c && c < 0x80 ? strchr(from, (int)c) : NULL;

		if (escape)
			str_addf(out, "\\%c", to[escape - from]);
		else if (is_printable(c) && n)
			str_add_bytes(out, text + i, n);
		else if (c <= 0xff)
			str_addf(out, "\\x%02X", c);
		else
			str_addf(out, "\\u%04X", c);
		i += MAX(n, (size_t)1);
	}
	str_add_char(out, '"');
}

static void add_single(struct str *out, const char *text)
{
	str_add_char(out, '\'');
	for (; *text; text++) {
		if (*text == '\'')
			str_add_char(out, '\'');
		str_add_char(out, *text);
	}
	str_add_char(out, '\'');
}

static void add_indent(struct str *out, int indent)
{
	for (int i = 0; i < indent; i++)
		str_add_char(out, ' ');
}

/* "|" with its hints, then the lines, without the last line break. */
static void add_literal(struct str *out, const char *text, size_t len, int indent)
{
	bool ends = text[len - 1] == '\n';
	bool keep = ends && (len == 1 || text[len - 2] == '\n');

	str_add_char(out, '|');
	if (text[0] == ' ' || text[0] == '\n')
		str_add(out, "2");
	if (!ends)
		str_add_char(out, '-');
	else if (keep)
		str_add_char(out, '+');
	for (const char *p = text, *end = text + len - ends; p <= end;) {
		const char *stop = memchr(p, '\n', (size_t)(end - p));
		size_t n = (size_t)((stop ? stop : end) - p);

		str_add_char(out, '\n');
		if (n)
			add_indent(out, indent);
		str_add_bytes(out, p, n);
		p += n + 1;
	}
}

static void add_string(struct str *out, const char *text, size_t len, int indent, bool key)
{
	switch (choose(text, len, key)) {
	case STYLE_PLAIN:
		str_add_bytes(out, text, len);
		break;
	case STYLE_SINGLE:
		add_single(out, text);
		break;
	case STYLE_DOUBLE:
		add_double(out, text, len);
		break;
	case STYLE_LITERAL:
		add_literal(out, text, len, MAX(indent, 2));
		break;
	}
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (unsigned char)c >= 0x80;
}

/* The order of go-yaml: letters behind other characters, numbers by value. */
static int compare_keys(const void *pa, const void *pb)
{
	const char *a = *(const char *const *)pa, *b = *(const char *const *)pb;

	while (*a && *a == *b) {
		a++;
		b++;
	}
	if (!*a || !*b)
		return (*a != 0) - (*b != 0);
	if (is_letter(*a) != is_letter(*b))
		return is_letter(*a) ? 1 : -1;
	size_t na = strspn(a, "0123456789"), nb = strspn(b, "0123456789");
	if (na && nb && na != nb && *a != '0' && *b != '0')
		return na < nb ? -1 : 1;
	return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
}

static void add_node(struct str *out, const json_t *node, int indent);

static bool is_block(const json_t *node)
{
	return (json_is_object(node) && json_object_size(node)) || (json_is_array(node) && json_array_size(node));
}

/* What stands behind "key:". A list stands in the column of its key, a map two further in. */
static void add_member_value(struct str *out, const json_t *node, int indent)
{
	if (!is_block(node)) {
		str_add_char(out, ' ');
		add_node(out, node, indent + 2);
		return;
	}
	str_add_char(out, '\n');
	int inner = json_is_array(node) ? indent : indent + 2;
	add_indent(out, inner);
	add_node(out, node, inner);
}

static void add_map(struct str *out, const json_t *object, int indent)
{
	size_t n = json_object_size(object), i = 0;
	_cleanup_free_ const char **keys = xcalloc(n, sizeof(*keys));
	const char *key;
	json_t *member;

	json_object_foreach((json_t *)object, key, member) keys[i++] = key;
	qsort(keys, n, sizeof(*keys), compare_keys);
	for (i = 0; i < n; i++) {
		size_t len = strlen(keys[i]);
		bool long_key = len > SIMPLE_KEY_MAX;

		if (i) {
			str_add_char(out, '\n');
			add_indent(out, indent);
		}
		if (long_key)
			str_add(out, "? ");
		add_string(out, keys[i], len, indent + 2, true);
		if (long_key) {
			str_add_char(out, '\n');
			add_indent(out, indent);
		}
		str_add_char(out, ':');
		add_member_value(out, json_object_get(object, keys[i]), indent);
	}
}

static void add_list(struct str *out, const json_t *array, int indent)
{
	for (size_t i = 0; i < json_array_size(array); i++) {
		if (i) {
			str_add_char(out, '\n');
			add_indent(out, indent);
		}
		str_add(out, "- ");
		add_node(out, json_array_get(array, i), indent + 2);
	}
}

/* The indentation of the first line has been written already. */
static void add_node(struct str *out, const json_t *node, int indent)
{
	switch (node ? json_typeof(node) : JSON_NULL) {
	case JSON_OBJECT:
		if (is_block(node))
			add_map(out, node, indent);
		else
			str_add(out, "{}");
		break;
	case JSON_ARRAY:
		if (is_block(node))
			add_list(out, node, indent);
		else
			str_add(out, "[]");
		break;
	case JSON_STRING:
		add_string(out, json_string_value(node), json_string_length(node), indent, false);
		break;
	default:
		json_add(out, node);
		break;
	}
}

char *yaml_text(const json_t *root)
{
	struct str out = STR_INIT;

	add_node(&out, root, 0);
	str_add_char(&out, '\n');
	return str_take(&out);
}

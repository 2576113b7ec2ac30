/* json.c - purpose: read JSON into jansson trees, as Go's decoder takes it; accessors by path. */
#include "common/wire/json.h"

#include "common/wire/utf8.h"

#include <errno.h>
#include <math.h>

/* Not jansson's own decoder: that refuses a whole document for one integer beyond 64 bits or one lone surrogate, which
 * the API server lets through. */
struct reader {
	const char *start, *p, *end;
	bool strict;
	struct error *err;
	struct str text; /* scratch of strings with escapes */
};

static json_t *read_value(struct reader *r, unsigned depth);

/* Returns NULL, so that a reader can say `return fail(...)`. */
static json_t *fail(struct reader *r, const char *at, const char *fmt, ...) PRINTF(3, 4);
static json_t *fail(struct reader *r, const char *at, const char *fmt, ...)
{
	size_t line = 1, column = 1;
	char text[ERROR_TEXT_MAX];
	va_list args;

	for (const char *p = r->start; p < at; p++) {
		column = *p == '\n' ? 1 : column + 1;
		line += *p == '\n';
	}
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	error_set(r->err, ERROR_INVALID, "line %zu, column %zu: %s", line, column, text);
	return NULL;
}

static void skip_space(struct reader *r)
{
	while (r->p < r->end && (*r->p == ' ' || *r->p == '\n' || *r->p == '\r' || *r->p == '\t'))
		r->p++;
}

static bool take(struct reader *r, char c)
{
	if (r->p == r->end || *r->p != c)
		return false;
	r->p++;
	return true;
}

/* What stands at the reading point, for messages. */
static const char *here(const struct reader *r, char buf[8])
{
	if (r->p == r->end)
		return "end of text";
	unsigned char c = (unsigned char)*r->p;
	snprintf(buf, 8, c > 0x20 && c < 0x7f ? "'%c'" : "0x%02x", c);
	return buf;
}

static json_t *unexpected(struct reader *r, const char *wanted)
{
	char buf[8];

	return fail(r, r->p, "%s where %s should be", here(r, buf), wanted);
}

/* Four hex digits; -1 if they are not there. */
static int32_t take_hex4(struct reader *r)
{
	int32_t v = 0;

	if (r->end - r->p < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		char c = r->p[i] | 0x20;
		int digit = r->p[i] >= '0' && r->p[i] <= '9' ? r->p[i] - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;

		if (digit < 0)
			return -1;
		v = v << 4 | digit;
	}
	r->p += 4;
	return v;
}

/* Behind "\u". A pair of surrogates becomes one character, a lone one U+FFFD. */
static bool take_unicode_escape(struct reader *r)
{
	int32_t c = take_hex4(r);

	if (c < 0)
		return fail(r, r->p, "malformed \\u escape");
	if (c == 0)
		return fail(r, r->p, "NUL character in a string");
	if (c >= 0xd800 && c < 0xdc00 && r->end - r->p >= 6 && r->p[0] == '\\' && r->p[1] == 'u') {
		const char *second = r->p;

		r->p += 2;
		int32_t low = take_hex4(r);
		if (low >= 0xdc00 && low < 0xe000)
			c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
		else
			r->p = second;
	}
	if (c >= 0xd800 && c < 0xe000)
		c = 0xfffd;
	utf8_add(&r->text, (uint32_t)c);
	return true;
}

static bool take_escape(struct reader *r)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";

	if (r->p == r->end)
		return unexpected(r, "an escape");
	char c = *r->p++;
	if (c == 'u')
		return take_unicode_escape(r);
	const char *at = c ? strchr(from, c) : NULL;
	if (!at)
		return fail(r, r->p - 1, "unknown escape in a string");
	str_add_char(&r->text, to[at - from]);
	return true;
}

/* A string behind its quote. Points into the text where it can, else into r->text. False on error. */
static bool read_string(struct reader *r, struct bytes *ret)
{
	const char *run = r->p;

	str_reset(&r->text);
	for (;;) {
		unsigned char c = r->p < r->end ? (unsigned char)*r->p : 0;
		uint32_t code;

		if (c >= 0x20 && c < 0x80 && c != '"' && c != '\\') {
			r->p++;
			continue;
		}
		size_t n = c >= 0x80 ? utf8_decode(r->p, (size_t)(r->end - r->p), &code) : 0;
		if (n) {
			r->p += n;
			continue;
		}
		if (c == '"' && !r->text.len) {
			*ret = (struct bytes){ run, (size_t)(r->p++ - run) };
			return true;
		}
		str_add_bytes(&r->text, run, (size_t)(r->p - run));
		if (r->p == r->end)
			return fail(r, r->p, "string without its end");
		if (c < 0x20)
			return fail(r, r->p, "control character 0x%02x in a string (it must be escaped)", c);
		r->p++;
		if (c == '"') {
			*ret = (struct bytes){ r->text.buf, r->text.len };
			return true;
		}
		if (c == '\\' && !take_escape(r))
			return false;
		if (c >= 0x80)
			utf8_add(&r->text, 0xfffd);
		run = r->p;
	}
}

static bool is_digit(const struct reader *r)
{
	return r->p < r->end && *r->p >= '0' && *r->p <= '9';
}

static bool take_digits(struct reader *r)
{
	bool any = is_digit(r);

	while (is_digit(r))
		r->p++;
	return any;
}

static json_t *number_of(struct reader *r, const char *start, bool integer)
{
	size_t len = (size_t)(r->p - start);
	char small[64], *end;
	_cleanup_free_ char *big = len >= sizeof(small) ? xstrndup(start, len) : NULL;
	char *text = big ? big : memcpy(small, start, len);

	text[len] = '\0';
	errno = 0;
	if (integer) {
		long long v = strtoll(text, &end, 10);

		if (!errno)
			return json_integer(v);
	}
	double d = strtod(text, &end);
	if (!isfinite(d))
		return fail(r, start, "number %.40s is out of range", text);
	return json_real(d);
}

static json_t *read_number(struct reader *r)
{
	const char *start = r->p;
	bool integer = true;

	take(r, '-');
	if (!take(r, '0') && !take_digits(r))
		return unexpected(r, "a value");
	if (is_digit(r))
		return fail(r, start, "number with a leading zero");
	if (take(r, '.')) {
		integer = false;
		if (!take_digits(r))
			return unexpected(r, "a digit");
	}
	if (take(r, 'e') || take(r, 'E')) {
		integer = false;
		if (!take(r, '+'))
			take(r, '-');
		if (!take_digits(r))
			return unexpected(r, "a digit");
	}
	return number_of(r, start, integer);
}

static json_t *read_array(struct reader *r, unsigned depth)
{
	_cleanup_json_ json_t *array = json_array();

	skip_space(r);
	if (take(r, ']'))
		return steal(array);
	for (;;) {
		json_t *value = read_value(r, depth + 1);

		if (!value)
			return NULL;
		json_array_append_new(array, value);
		if (take(r, ']'))
			return steal(array);
		if (!take(r, ','))
			return unexpected(r, "',' or ']'");
	}
}

/* One "key": value. */
static bool read_member(struct reader *r, json_t *object, unsigned depth)
{
	struct bytes text;

	skip_space(r);
	const char *at = r->p;
	if (!take(r, '"'))
		return unexpected(r, "a key in quotes");
	if (!read_string(r, &text))
		return false;
	/* A key with escapes stands in the scratch, which the value will use too. */
	_cleanup_free_ char *copy = text.ptr == r->text.buf ? xmemdup(text.ptr, text.len) : NULL;
	const char *key = copy ? copy : text.ptr;
	if (r->strict && json_object_getn(object, key, text.len))
		return fail(r, at, "key \"%.*s\" stands here twice", (int)MIN(text.len, (size_t)200), key);
	skip_space(r);
	if (!take(r, ':'))
		return unexpected(r, "':'");
	json_t *value = read_value(r, depth + 1);
	if (!value)
		return false;
	json_object_setn_new_nocheck(object, key, text.len, value);
	return true;
}

static json_t *read_object(struct reader *r, unsigned depth)
{
	_cleanup_json_ json_t *object = json_object();

	skip_space(r);
	if (take(r, '}'))
		return steal(object);
	for (;;) {
		if (!read_member(r, object, depth))
			return NULL;
		if (take(r, '}'))
			return steal(object);
		if (!take(r, ','))
			return unexpected(r, "',' or '}'");
	}
}

static json_t *read_word(struct reader *r, const char *word, json_t *value)
{
	size_t n = strlen(word);

	if ((size_t)(r->end - r->p) < n || memcmp(r->p, word, n) != 0) {
		json_decref(value);
		return unexpected(r, "a value");
	}
	r->p += n;
	return value;
}

static json_t *read_token(struct reader *r, unsigned depth)
{
	struct bytes text;

	switch (r->p < r->end ? *r->p : '\0') {
	case '{':
		r->p++;
		return read_object(r, depth);
	case '[':
		r->p++;
		return read_array(r, depth);
	case '"':
		r->p++;
		return read_string(r, &text) ? json_stringn_nocheck(text.ptr, text.len) : NULL;
	case 't':
		return read_word(r, "true", json_true());
	case 'f':
		return read_word(r, "false", json_false());
	case 'n':
		return read_word(r, "null", json_null());
	default:
		return read_number(r);
	}
}

/* A value and the white space around it. */
static json_t *read_value(struct reader *r, unsigned depth)
{
	skip_space(r);
	if (depth > JSON_DEPTH_MAX)
		return fail(r, r->p, "more than %d levels deep", JSON_DEPTH_MAX);
	json_t *value = read_token(r, depth);
	if (value)
		skip_space(r);
	return value;
}

int json_read_next(const char *text, size_t len, size_t *at, bool strict, json_t **ret, struct error *err)
{
	struct reader r = { text, text + *at, text + len, strict, err, STR_INIT };

	if (len > JSON_TEXT_MAX)
		return error_set(err, ERROR_EXHAUSTED, "text of %zu bytes is larger than %d", len, JSON_TEXT_MAX);
	json_t *value = read_value(&r, 0);
	str_done(&r.text);
	if (!value)
		return -EINVAL;
	*at = (size_t)(r.p - text);
	*ret = value;
	return 0;
}

int json_read(const char *text, size_t len, bool strict, json_t **ret, struct error *err)
{
	_cleanup_json_ json_t *value = NULL;
	size_t at = 0;

	int r = json_read_next(text, len, &at, strict, &value, err);
	if (r < 0)
		return r;
	if (at < len) {
		struct reader rest = { text, text + at, text + len, strict, err, STR_INIT };

		unexpected(&rest, "the end");
		return -EINVAL;
	}
	*ret = steal(value);
	return 0;
}

/* Index of an array element, or -1. */
static int64_t index_of(const char *text, size_t len)
{
	int64_t v = 0;

	if (!len || len > 9)
		return -1;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -1;
		v = v * 10 + (text[i] - '0');
	}
	return v;
}

const json_t *json_at(const json_t *root, const char *path)
{
	while (root && *path) {
		size_t len = strcspn(path, ".");

		if (json_is_array(root)) {
			int64_t i = index_of(path, len);

			root = i < 0 ? NULL : json_array_get(root, (size_t)i);
		} else {
			char small[128];
			_cleanup_free_ char *big = len >= sizeof(small) ? xstrndup(path, len) : NULL;
			char *key = big ? big : memcpy(small, path, len);

			key[len] = '\0';
			root = json_object_get(root, key);
		}
		path += len + (path[len] == '.');
	}
	return root;
}

const char *json_str_at(const json_t *root, const char *path, const char *fallback)
{
	const json_t *value = json_at(root, path);

	return json_is_string(value) ? json_string_value(value) : fallback;
}

int64_t json_int_at(const json_t *root, const char *path, int64_t fallback)
{
	const json_t *value = json_at(root, path);

	return json_is_integer(value) ? json_integer_value(value) : fallback;
}

bool json_bool_at(const json_t *root, const char *path, bool fallback)
{
	const json_t *value = json_at(root, path);

	return json_is_boolean(value) ? json_is_true(value) : fallback;
}

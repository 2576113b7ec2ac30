/* json_write.c - purpose: write jansson trees as compact JSON text. */
#include "common/wire/json.h"

#include <math.h>
#include <stdio.h>

/* Digits and exponent of the shortest decimal that reads back as v: "1.25e+02". */
static void shortest(double v, char *buf, size_t size)
{
	for (int precision = 0; precision < 17; precision++) {
		snprintf(buf, size, "%.*e", precision, v);
		if (strtod(buf, NULL) == v)
			return;
	}
}

void json_add_real(struct str *out, double value)
{
	char buf[40], digits[24];
	size_t n = 0;

	if (!isfinite(value)) { /* JSON has no such numbers, and no reader of ours makes them */
		str_add(out, "null");
		return;
	}
	shortest(fabs(value), buf, sizeof(buf));
	char *e = strchr(buf, 'e');
	int exponent = atoi(e + 1);
	for (const char *p = buf; p < e; p++)
		if (*p != '.')
			digits[n++] = *p;
	digits[n] = '\0';
	if (signbit(value))
		str_add_char(out, '-');
	if (value != 0 && (exponent < -6 || exponent >= 21)) {
		str_addf(out, "%c%s%se%c%02d", digits[0], n > 1 ? "." : "", digits + 1, exponent < 0 ? '-' : '+',
			abs(exponent));
		/* Go writes e-9, but e+21 */
		if (exponent < 0 && exponent > -10) {
			out->buf[out->len - 2] = out->buf[out->len - 1];
			out->buf[--out->len] = '\0';
		}
	} else if (exponent < 0) {
		str_add(out, "0.");
		for (int i = -1; i > exponent; i--)
			str_add_char(out, '0');
		str_add(out, digits);
	} else {
		for (int i = 0; i <= exponent; i++)
			str_add_char(out, (size_t)i < n ? digits[i] : '0');
		if (n > (size_t)exponent + 1)
			str_addf(out, ".%s", digits + exponent + 1);
	}
}

static void add_string(struct str *out, const char *p, size_t len)
{
	size_t run = 0;

	str_add_char(out, '"');
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)p[i];

		if (c >= 0x20 && c != '"' && c != '\\')
			continue;
		str_add_bytes(out, p + run, i - run);
		run = i + 1;
		if (c == '"' || c == '\\')
			str_addf(out, "\\%c", c);
		else if (c == '\n' || c == '\t' || c == '\r')
			str_addf(out, "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : 'r');
		else
			str_addf(out, "\\u%04x", c);
	}
	str_add_bytes(out, p + run, len - run);
	str_add_char(out, '"');
}

static int compare_keys(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void add(struct str *out, const json_t *value, bool sorted);

static void add_object(struct str *out, const json_t *object, bool sorted)
{
	size_t n = json_object_size(object), i = 0;
	_cleanup_free_ const char **keys = xcalloc(n, sizeof(*keys));
	const char *key;
	json_t *member;

	json_object_foreach((json_t *)object, key, member) keys[i++] = key;
	if (sorted)
		qsort(keys, n, sizeof(*keys), compare_keys);
	str_add_char(out, '{');
	for (i = 0; i < n; i++) {
		if (i)
			str_add_char(out, ',');
		add_string(out, keys[i], strlen(keys[i]));
		str_add_char(out, ':');
		add(out, json_object_get(object, keys[i]), sorted);
	}
	str_add_char(out, '}');
}

static void add_array(struct str *out, const json_t *array, bool sorted)
{
	str_add_char(out, '[');
	for (size_t i = 0; i < json_array_size(array); i++) {
		if (i)
			str_add_char(out, ',');
		add(out, json_array_get(array, i), sorted);
	}
	str_add_char(out, ']');
}

static void add(struct str *out, const json_t *value, bool sorted)
{
	switch (value ? json_typeof(value) : JSON_NULL) {
	case JSON_OBJECT:
		add_object(out, value, sorted);
		break;
	case JSON_ARRAY:
		add_array(out, value, sorted);
		break;
	case JSON_STRING:
		add_string(out, json_string_value(value), json_string_length(value));
		break;
	case JSON_INTEGER:
		str_addf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		break;
	case JSON_REAL:
		json_add_real(out, json_real_value(value));
		break;
	case JSON_TRUE:
		str_add(out, "true");
		break;
	case JSON_FALSE:
		str_add(out, "false");
		break;
	case JSON_NULL:
		str_add(out, "null");
		break;
	}
}

void json_add(struct str *out, const json_t *root)
{
	add(out, root, false);
}

char *json_text(const json_t *root)
{
	struct str out = STR_INIT;

	add(&out, root, false);
	return str_take(&out);
}

char *json_canonical(const json_t *root)
{
	struct str out = STR_INIT;

	add(&out, root, true);
	return str_take(&out);
}

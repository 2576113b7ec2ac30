/* decode.c - purpose: typed access to a JSON tree with paths in errors. */
#include "kubelet-lite/model/decode.h"

#include <stdio.h>

size_t decode_enter(struct decode *d, const char *fmt, ...)
{
	size_t mark = strlen(d->path), at = mark;
	va_list args;

	if (at && at + 1 < sizeof(d->path)) {
		d->path[at++] = '.';
		d->path[at] = '\0';
	}
	va_start(args, fmt);
	vsnprintf(d->path + at, sizeof(d->path) - at, fmt, args);
	va_end(args);
	return mark;
}

void decode_leave(struct decode *d, size_t mark)
{
	d->path[mark] = '\0';
}

void decode_fail(struct decode *d, const char *key, const char *want)
{
	if (d->failed)
		return;
	d->failed = true;
	error_set(d->err, ERROR_INVALID, "%s%s%s: must be %s", d->path, *d->path && *key ? "." : "", key, want);
}

void decode_unsupported(struct decode *d, const char *key, const char *why)
{
	if (d->pod && !d->pod->unsupported)
		d->pod->unsupported =
			arena_printf(d->arena, "%s%s%s: %s", d->path, *d->path && *key ? "." : "", key, why);
}

static const json_t *get(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	return json_is_null(v) ? NULL : v;
}

const char *decode_str(struct decode *d, const json_t *o, const char *key, const char *fallback)
{
	const json_t *v = get(o, key);

	if (!v)
		return fallback;
	if (!json_is_string(v)) {
		decode_fail(d, key, "a string");
		return fallback;
	}
	if (strlen(json_string_value(v)) != json_string_length(v)) {
		decode_fail(d, key, "a string without NUL characters");
		return fallback;
	}
	return *json_string_value(v) ? arena_strdup(d->arena, json_string_value(v)) : "";
}

int64_t decode_int(struct decode *d, const json_t *o, const char *key, int64_t fallback, int64_t min, int64_t max)
{
	const json_t *v = get(o, key);
	char want[80];

	if (!v)
		return fallback;
	if (json_is_integer(v) && json_integer_value(v) >= min && json_integer_value(v) <= max)
		return json_integer_value(v);
	snprintf(want, sizeof(want), "an integer from %lld to %lld", (long long)min, (long long)max);
	decode_fail(d, key, want);
	return fallback;
}

bool decode_bool(struct decode *d, const json_t *o, const char *key, bool fallback)
{
	enum tristate t = decode_tristate(d, o, key);

	return t == TRI_UNSET ? fallback : t == TRI_TRUE;
}

enum tristate decode_tristate(struct decode *d, const json_t *o, const char *key)
{
	const json_t *v = get(o, key);

	if (!v)
		return TRI_UNSET;
	if (!json_is_boolean(v))
		decode_fail(d, key, "true or false");
	return json_is_true(v) ? TRI_TRUE : TRI_FALSE;
}

const json_t *decode_object(struct decode *d, const json_t *o, const char *key)
{
	const json_t *v = get(o, key);

	if (v && !json_is_object(v)) {
		decode_fail(d, key, "an object");
		return NULL;
	}
	return v;
}

const json_t *decode_array(struct decode *d, const json_t *o, const char *key)
{
	const json_t *v = get(o, key);

	if (v && !json_is_array(v)) {
		decode_fail(d, key, "a list");
		return NULL;
	}
	return v;
}

struct str_list decode_strings(struct decode *d, const json_t *o, const char *key)
{
	const json_t *a = decode_array(d, o, key);
	struct str_list list = { .n = json_array_size(a) };

	if (list.n)
		list.v = arena_array(d->arena, list.n, sizeof(*list.v));
	for (size_t i = 0; i < list.n; i++) {
		const char *s = json_string_value(json_array_get(a, i));

		if (!s)
			decode_fail(d, key, "a list of strings");
		list.v[i] = s ? arena_strdup(d->arena, s) : "";
	}
	return list;
}

struct kv_list decode_map(struct decode *d, const json_t *o, const char *key)
{
	const json_t *m = decode_object(d, o, key);
	struct kv_list list = { .n = json_object_size(m) };
	const char *k;
	json_t *v;
	size_t i = 0;

	if (list.n)
		list.v = arena_array(d->arena, list.n, sizeof(*list.v));
	json_object_foreach((json_t *)m, k, v)
	{
		if (!json_is_string(v))
			decode_fail(d, key, "a map of strings");
		list.v[i].key = arena_strdup(d->arena, k);
		list.v[i++].value = json_is_string(v) ? arena_strdup(d->arena, json_string_value(v)) : "";
	}
	return list;
}

int decode_enum(struct decode *d, const json_t *o, const char *key, const char *const *names, int fallback)
{
	const char *s = decode_str(d, o, key, NULL);
	struct str want = STR_INIT;

	if (!s)
		return fallback;
	for (int i = 0; names[i]; i++)
		if (strcmp(names[i], s) == 0)
			return i;
	str_add(&want, "one of");
	for (int i = 0; names[i]; i++)
		str_addf(&want, " %s", *names[i] ? names[i] : "\"\"");
	str_addf(&want, ", not \"%.40s\"", s);
	decode_fail(d, key, str_get(&want));
	str_done(&want);
	return fallback;
}

bool decode_quantity(struct decode *d, const json_t *o, const char *key, struct quantity *ret)
{
	const json_t *v = get(o, key);
	struct error err = ERROR_INIT;

	if (!v)
		return false;
	if (json_is_integer(v)) {
		*ret = quantity_of(json_integer_value(v));
		return true;
	}
	if (json_is_real(v)) {
		char text[64];

		snprintf(text, sizeof(text), "%.9f", json_real_value(v));
		return quantity_parse(text, ret, NULL) == 0;
	}
	if (!json_is_string(v) || quantity_parse(json_string_value(v), ret, &err) < 0) {
		decode_fail(d, key, "a quantity like 100m or 64Mi");
		return false;
	}
	return true;
}

/* patch.c - purpose: merge patch (RFC 7386) and JSON patch (RFC 6902). */
#include "common/kube/patch.h"

#include <errno.h>

#include "common/base/str.h"
#include "common/wire/json.h"

static json_t *merged(json_t *target, const json_t *patch)
{
	const char *key;
	json_t *value;

	if (!json_is_object(patch))
		return json_deep_copy(patch);
	json_t *result = json_is_object(target) ? json_incref(target) : json_object();

	json_object_foreach ((json_t *)patch, key, value) {
		if (json_is_null(value)) {
			json_object_del(result, key);
			continue;
		}
		json_object_set_new(result, key, merged(json_object_get(result, key), value));
	}
	return result;
}

int patch_merge(json_t *target, const json_t *patch, struct error *err)
{
	if (!json_is_object(patch))
		return error_set(err, ERROR_INVALID, "a merge patch must be an object");
	json_decref(merged(target, patch));
	return 0;
}

/* A place in a tree: parent and key or index. */
struct place {
	json_t *parent; /* NULL: the root */
	char *key;      /* of an object */
	size_t index;   /* of an array; its size: behind the end */
	json_t *value;  /* what is there, or NULL */
};

static char *unescape(const char *text)
{
	char *out = xstrdup(text), *to = out;

	for (const char *p = text; *p; p++) {
		if (*p == '~' && (p[1] == '0' || p[1] == '1')) {
			*to++ = p[1] == '0' ? '~' : '/';
			p++;
		} else {
			*to++ = *p;
		}
	}
	*to = '\0';
	return out;
}

static int step(struct place *at, const char *token, struct error *err)
{
	json_t *here = at->value;

	free(steal(at->key));
	at->parent = here;
	at->key = unescape(token);
	if (json_is_object(here)) {
		at->value = json_object_get(here, at->key);
		return 0;
	}
	if (!json_is_array(here))
		return error_set(err, ERROR_INVALID, "\"%.60s\" is below something that is no object and no list", token);
	char *end = NULL;
	size_t size = json_array_size(here);
	bool dash = str_eq(token, "-");
	unsigned long index = dash ? size : strtoul(token, &end, 10);

	if (!dash && (!*token || *end || *token == '-' || *token == '+' || (*token == '0' && token[1]) || index > size))
		return error_set(err, ERROR_INVALID, "\"%.60s\" is no index of a list of %zu", token, size);
	at->index = index;
	at->value = json_array_get(here, index);
	return 0;
}

static int find(json_t *root, const char *pointer, struct place *ret, struct error *err)
{
	_cleanup_(strv_done) struct strv tokens = STRV_INIT;

	*ret = (struct place){ .value = root };
	if (!*pointer)
		return 0;
	if (*pointer != '/')
		return error_set(err, ERROR_INVALID, "path \"%.100s\" must begin with '/'", pointer);
	strv_split(&tokens, pointer + 1, '/');
	if (tokens.n == 0)
		strv_add(&tokens, "");
	for (size_t i = 0; i < tokens.n; i++) {
		if (!ret->value)
			return error_set(err, ERROR_INVALID, "path \"%.100s\" does not exist", pointer);
		int r = step(ret, tokens.v[i], err);

		if (r < 0)
			return error_prefix(err, "path \"%.100s\"", pointer);
	}
	return 0;
}

static void place_done(struct place *p)
{
	free(p->key);
}

/* Takes value. */
static void put(json_t **root, struct place *at, json_t *value, bool insert)
{
	if (!at->parent) {
		json_decref(*root);
		*root = value;
	} else if (json_is_object(at->parent)) {
		json_object_set_new(at->parent, at->key, value);
	} else if (insert) {
		json_array_insert_new(at->parent, at->index, value);
	} else {
		json_array_set_new(at->parent, at->index, value);
	}
}

static int take_out(json_t **root, const char *pointer, json_t **ret, struct error *err)
{
	_cleanup_(place_done) struct place at = { 0 };
	int r = find(*root, pointer, &at, err);

	if (r < 0)
		return r;
	if (!at.value || !at.parent)
		return error_set(err, ERROR_INVALID, "path \"%.100s\" %s", pointer,
			at.value ? "is the whole object, which cannot be removed" : "does not exist");
	*ret = json_incref(at.value);
	if (json_is_object(at.parent))
		json_object_del(at.parent, at.key);
	else
		json_array_remove(at.parent, at.index);
	return 0;
}

static int add(json_t **root, const char *pointer, json_t *value, struct error *err)
{
	_cleanup_(place_done) struct place at = { 0 };
	int r = find(*root, pointer, &at, err);

	if (r < 0) {
		json_decref(value);
		return r;
	}
	put(root, &at, value, true);
	return 0;
}

static int change(json_t **root, const char *pointer, const json_t *value, bool test, struct error *err)
{
	_cleanup_(place_done) struct place at = { 0 };
	int r = find(*root, pointer, &at, err);

	if (r < 0)
		return r;
	if (!at.value)
		return error_set(err, ERROR_INVALID, "path \"%.100s\" does not exist", pointer);
	if (!test)
		put(root, &at, json_deep_copy(value), false);
	else if (!json_equal(at.value, value))
		return error_set(err, ERROR_INVALID, "test failed: path \"%.100s\" has another value", pointer);
	return 0;
}

static int copy_from(json_t **root, const char *from, const char *path, struct error *err)
{
	_cleanup_(place_done) struct place at = { 0 };
	int r = find(*root, from, &at, err);

	if (r < 0)
		return r;
	if (!at.value)
		return error_set(err, ERROR_INVALID, "path \"%.100s\" does not exist", from);
	return add(root, path, json_deep_copy(at.value), err);
}

static int operate(json_t **root, const json_t *op, struct error *err)
{
	const char *name = json_str_at(op, "op", ""), *path = json_str_at(op, "path", NULL);
	const char *from = json_str_at(op, "from", NULL);
	const json_t *value = json_object_get(op, "value");
	bool wants_value = str_eq(name, "add") || str_eq(name, "replace") || str_eq(name, "test");
	bool wants_from = str_eq(name, "move") || str_eq(name, "copy");
	json_t *out = NULL;
	int r;

	if (!wants_value && !wants_from && !str_eq(name, "remove"))
		return error_set(err, ERROR_INVALID, "op \"%.30s\" must be one of add, remove, replace, move, copy, test", name);
	if (!path || (wants_from && !from) || (wants_value && !value))
		return error_set(err, ERROR_INVALID, "%s: %s is missing", name, !path ? "path" : wants_from ? "from" : "value");
	if (str_eq(name, "add"))
		return add(root, path, json_deep_copy(value), err);
	if (wants_value)
		return change(root, path, value, str_eq(name, "test"), err);
	if (str_eq(name, "copy"))
		return copy_from(root, from, path, err);
	if (wants_from && str_starts(path, from) && path[strlen(from)] == '/')
		return error_set(err, ERROR_INVALID, "move: \"%.100s\" is below \"%.100s\"", path, from);
	r = take_out(root, wants_from ? from : path, &out, err);
	if (r == 0 && wants_from)
		return add(root, path, out, err);
	json_decref(out);
	return r;
}

int patch_json(json_t **target, const json_t *patch, struct error *err)
{
	json_t *op;
	size_t i;

	if (!json_is_array(patch) || json_array_size(patch) > PATCH_OPERATIONS_MAX)
		return error_set(err, ERROR_INVALID, "a JSON patch must be a list of at most %d operations", PATCH_OPERATIONS_MAX);
	json_array_foreach ((json_t *)patch, i, op) {
		int r = operate(target, op, err);

		if (r < 0)
			return error_prefix(err, "operation %zu", i);
	}
	return 0;
}

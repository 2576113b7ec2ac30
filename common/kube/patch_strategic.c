/* patch_strategic.c - purpose: strategic merge patch: lists merge by the keys of the schema; directives. */
#include "common/kube/patch.h"

#include "common/base/str.h"
#include "common/wire/json.h"

#include <errno.h>

static int merge(const struct schema *schema, json_t *target, const json_t *patch, struct error *err);

static const char SET_ORDER[] = "$setElementOrder/", DELETE_FROM[] = "$deleteFromPrimitiveList/";

/* A patch's value for what the target does not have: without directives and nulls. */
static json_t *cleaned(const json_t *patch)
{
	const char *key;
	json_t *value;
	size_t i;

	if (json_is_object(patch)) {
		json_t *out = json_object();

		json_object_foreach ((json_t *)patch, key, value)
			if (*key != '$' && !json_is_null(value))
				json_object_set_new(out, key, cleaned(value));
		return out;
	}
	if (json_is_array(patch)) {
		json_t *out = json_array();

		json_array_foreach ((json_t *)patch, i, value)
			if (!str_eq(json_str_at(value, "$patch", ""), "delete"))
				json_array_append_new(out, cleaned(value));
		return out;
	}
	return json_deep_copy(patch);
}

static size_t index_by_key(const json_t *list, const char *key, const json_t *wanted)
{
	json_t *item;
	size_t i;

	json_array_foreach ((json_t *)list, i, item)
		if (wanted && json_equal(json_object_get(item, key), wanted))
			return i;
	return SIZE_MAX;
}

static size_t index_of_value(const json_t *list, const json_t *wanted)
{
	json_t *item;
	size_t i;

	json_array_foreach ((json_t *)list, i, item)
		if (json_equal(item, wanted))
			return i;
	return SIZE_MAX;
}

static int merge_element(const struct schema *element, json_t *list, const char *key, const json_t *patch,
	struct error *err)
{
	const json_t *id = json_object_get(patch, key);
	size_t at = index_by_key(list, key, id);
	const char *directive = json_str_at(patch, "$patch", "");

	if (!id)
		return error_set(err, ERROR_INVALID, "an element of the list has no \"%s\", by which it is merged", key);
	if (str_eq(directive, "delete")) {
		while (at != SIZE_MAX) {
			json_array_remove(list, at);
			at = index_by_key(list, key, id);
		}
		return 0;
	}
	if (at == SIZE_MAX) {
		json_array_append_new(list, cleaned(patch));
		return 0;
	}
	if (str_eq(directive, "replace")) {
		json_array_set_new(list, at, cleaned(patch));
		return 0;
	}
	return merge(element, json_array_get(list, at), patch, err);
}

/* {"$patch": "replace"} among the elements: the others are the list. */
static bool replaces_list(const json_t *patch)
{
	json_t *item;
	size_t i;

	json_array_foreach ((json_t *)patch, i, item)
		if (json_object_size(item) == 1 && str_eq(json_str_at(item, "$patch", ""), "replace"))
			return true;
	return false;
}

static json_t *without_directives(const json_t *patch)
{
	json_t *out = json_array(), *item;
	size_t i;

	json_array_foreach ((json_t *)patch, i, item)
		if (!json_object_get(item, "$patch"))
			json_array_append_new(out, cleaned(item));
	return out;
}

static int merge_list(const struct schema *list, json_t *target, const char *field, const json_t *patch, struct error *err)
{
	json_t *have = json_object_get(target, field), *item;
	_cleanup_free_ char *key = xstrndup(list->key.ptr ? list->key.ptr : "", list->key.len);
	struct schema element = schema_element(list);
	size_t i;

	if (list->kind != SCHEMA_LIST || !*key || replaces_list(patch)) {
		json_object_set_new(target, field, without_directives(patch));
		return 0;
	}
	if (!json_is_array(have)) {
		have = json_array();
		json_object_set_new(target, field, have);
	}
	json_array_foreach ((json_t *)patch, i, item) {
		int r = 0;

		if (!str_eq(key, "+"))
			r = merge_element(&element, have, key, item, err);
		else if (index_of_value(have, item) == SIZE_MAX)
			json_array_append_new(have, json_deep_copy(item));
		if (r < 0)
			return error_prefix(err, "%s[%zu]", field, i);
	}
	return 0;
}

/* Puts the elements that `order` names into its order; the others stay behind the one that they stood behind. */
static void reorder(json_t *list, const char *key, const json_t *order)
{
	bool scalars = !*key || str_eq(key, "+");
	_cleanup_json_ json_t *sorted = json_array();
	json_t *item;
	size_t i;

	json_array_foreach ((json_t *)order, i, item) {
		size_t at = scalars ? index_of_value(list, item) : index_by_key(list, key, json_object_get(item, key));

		if (at != SIZE_MAX && index_of_value(sorted, json_array_get(list, at)) == SIZE_MAX)
			json_array_append(sorted, json_array_get(list, at));
	}
	json_array_foreach (list, i, item) {
		if (index_of_value(sorted, item) != SIZE_MAX)
			continue;
		size_t before = i ? index_of_value(sorted, json_array_get(list, i - 1)) : SIZE_MAX;

		json_array_insert(sorted, before == SIZE_MAX ? 0 : before + 1, item);
	}
	json_array_clear(list);
	json_array_extend(list, sorted);
}

static void delete_from(json_t *list, const json_t *values)
{
	json_t *value;
	size_t i;

	json_array_foreach ((json_t *)values, i, value)
		for (size_t at; (at = index_of_value(list, value)) != SIZE_MAX;)
			json_array_remove(list, at);
}

static void retain_keys(json_t *target, const json_t *keys)
{
	const char *key;
	json_t *value;
	void *tmp;

	json_object_foreach_safe (target, tmp, key, value) {
		_cleanup_json_ json_t *name = json_string(key);

		if (index_of_value(keys, name) == SIZE_MAX)
			json_object_del(target, key);
	}
}

static int merge_field(const struct schema *schema, json_t *target, const char *field, const json_t *patch,
	struct error *err)
{
	struct schema type;
	json_t *have = json_object_get(target, field);
	const char *directive = json_is_object(patch) ? json_str_at(patch, "$patch", "") : "";

	schema_field(schema, field, &type);
	if (json_is_null(patch) || str_eq(directive, "delete")) {
		json_object_del(target, field);
		return 0;
	}
	if (json_is_array(patch))
		return merge_list(&type, target, field, patch, err);
	if (!json_is_object(patch) || !json_is_object(have) || str_eq(directive, "replace")) {
		json_object_set_new(target, field, cleaned(patch));
		return 0;
	}
	int r = merge(&type, have, patch, err);

	return r < 0 ? error_prefix(err, "%s", field) : 0;
}

static void order_lists(const struct schema *schema, json_t *target, const json_t *patch)
{
	const char *name;
	json_t *order;

	json_object_foreach ((json_t *)patch, name, order) {
		if (!str_starts(name, SET_ORDER))
			continue;
		const char *field = name + strlen(SET_ORDER);
		json_t *list = json_object_get(target, field);
		struct schema type;

		schema_field(schema, field, &type);
		_cleanup_free_ char *key = xstrndup(type.key.ptr ? type.key.ptr : "", type.key.len);

		if (json_is_array(list) && json_is_array(order))
			reorder(list, key, order);
	}
}

static int merge(const struct schema *schema, json_t *target, const json_t *patch, struct error *err)
{
	const char *name;
	json_t *value;

	if (str_eq(json_str_at(patch, "$patch", ""), "replace")) {
		_cleanup_json_ json_t *fresh = cleaned(patch);

		json_object_clear(target);
		json_object_update(target, fresh);
		return 0;
	}
	if (json_is_array(json_object_get(patch, "$retainKeys")))
		retain_keys(target, json_object_get(patch, "$retainKeys"));
	json_object_foreach ((json_t *)patch, name, value) {
		if (str_starts(name, DELETE_FROM))
			delete_from(json_object_get(target, name + strlen(DELETE_FROM)), value);
		if (*name == '$')
			continue;
		int r = merge_field(schema, target, name, value, err);

		if (r < 0)
			return r;
	}
	order_lists(schema, target, patch);
	return 0;
}

int patch_strategic(const struct schema *schema, json_t *target, const json_t *patch, struct error *err)
{
	if (!json_is_object(patch) || !json_is_object(target))
		return error_set(err, ERROR_INVALID, "a strategic merge patch must be an object");
	return merge(schema, target, patch, err);
}

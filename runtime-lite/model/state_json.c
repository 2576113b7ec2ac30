/* state_json.c - purpose: the few things that every state file needs from JSON. */
#include "runtime-lite/model/state_json.h"

#include "common/sys/file.h"

#include <fcntl.h>

void state_put(json_t *json, const char *key, const char *value)
{
	if (value)
		json_object_set_new(json, key, json_string(value));
}

void state_put_time(json_t *json, const char *key, uint64_t ns)
{
	if (ns)
		json_object_set_new(json, key, json_integer((json_int_t)ns));
}

void state_put_list(json_t *json, const char *key, const struct strv *list)
{
	json_t *array = json_array();

	for (size_t i = 0; i < list->n; i++)
		json_array_append_new(array, json_string(list->v[i]));
	json_object_set_new(json, key, array);
}

uint64_t state_get_time(const json_t *json, const char *key)
{
	json_int_t v = json_integer_value(json_object_get(json, key));

	return v > 0 ? (uint64_t)v : 0;
}

void state_get_list(const json_t *json, const char *key, struct strv *ret)
{
	json_t *item;
	size_t i;

	json_array_foreach (json_object_get(json, key), i, item)
		if (json_is_string(item))
			strv_add(ret, json_string_value(item));
}

int state_check_version(const json_t *json, int version, struct error *err)
{
	json_int_t have = json_integer_value(json_object_get(json, "version"));

	if (have > version)
		return error_set(err, ERROR_DATA_LOSS, "written by a newer version (format %lld, this program knows %d)",
			(long long)have, version);
	if (have < 1)
		return error_set(err, ERROR_DATA_LOSS, "has no format version");
	return 0;
}

int state_write(const char *dir, const char *name, const json_t *json, struct error *err)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", dir, name);
	_cleanup_free_ char *text = json_text(json);

	return file_replace(AT_FDCWD, path, text, strlen(text), 0600, err);
}

int state_read(const char *dir, const char *name, json_t **ret, struct error *err)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", dir, name);
	_cleanup_free_ char *text = NULL;
	size_t len;
	int r = file_read(AT_FDCWD, path, JSON_TEXT_MAX, &text, &len, err);

	if (r < 0)
		return r;
	r = json_read(text, len, false, ret, err);
	return r < 0 ? error_prefix(err, "%s", path) : 0;
}

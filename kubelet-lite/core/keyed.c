/* keyed.c - purpose: the data of a ConfigMap or a Secret as keys and bytes. */
#include "kubelet-lite/core/keyed.h"

#include "common/base/codec.h"

void keyed_done(struct keyed *keyed)
{
	for (size_t i = 0; i < keyed->n; i++) {
		free(keyed->v[i].key);
		free(keyed->v[i].data);
	}
	free(keyed->v);
	*keyed = (struct keyed){ 0 };
}

const struct keyed_item *keyed_get(const struct keyed *keyed, const char *key)
{
	for (size_t i = 0; i < keyed->n; i++)
		if (strcmp(keyed->v[i].key, key) == 0)
			return &keyed->v[i];
	return NULL;
}

static void add(struct keyed *keyed, const char *key, char *data, size_t len, bool binary)
{
	keyed->v = xreallocarray(keyed->v, keyed->n + 1, sizeof(*keyed->v));
	keyed->v[keyed->n++] = (struct keyed_item){ xstrdup(key), data, len, binary };
}

static int read_member(
	const json_t *object, const char *member, bool base64, bool binary, struct keyed *keyed, struct error *err)
{
	const char *key;
	json_t *value;

	json_object_foreach(json_object_get(object, member), key, value)
	{
		const char *text = json_string_value(value);
		size_t len = json_string_length(value);
		void *bytes;

		if (!text)
			return error_set(err, ERROR_INVALID, "%s.%s: must be a string", member, key);
		if (!base64) {
			char *copy = xmalloc(len + 1);

			memcpy(copy, text, len + 1);
			add(keyed, key, copy, len, binary);
			continue;
		}
		if (base64_decode(text, len, &bytes, &len) < 0)
			return error_set(err, ERROR_INVALID, "%s.%s: is not base64", member, key);
		add(keyed, key, bytes, len, binary);
	}
	return 0;
}

int keyed_read(const json_t *object, bool secret, struct keyed *ret, struct error *err)
{
	_cleanup_(keyed_done) struct keyed keyed = { 0 };
	int r = read_member(object, "data", secret, false, &keyed, err);

	if (r == 0)
		r = read_member(object, secret ? "stringData" : "binaryData", !secret, !secret, &keyed, err);
	if (r < 0)
		return r;
	*ret = keyed;
	keyed = (struct keyed){ 0 };
	return 0;
}

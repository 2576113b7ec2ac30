/*
 * keyed.h - purpose: the data of a ConfigMap or a Secret as keys and bytes. Pure.
 */
#pragma once
#include "common/base/error.h"

#include <jansson.h>

struct keyed_item {
	char *key;
	char *data; /* NUL-terminated beyond len */
	size_t len;
	bool binary; /* of binaryData: not for the environment */
};
struct keyed {
	struct keyed_item *v;
	size_t n;
};
void keyed_done(struct keyed *keyed);
/* data and binaryData of a ConfigMap; data (base64) and stringData of a Secret. */
int keyed_read(const json_t *object, bool secret, struct keyed *ret, struct error *err) MUST_USE;
const struct keyed_item *keyed_get(const struct keyed *keyed, const char *key);

/* How pure modules get at objects: false when there is none. `ret` is filled as by keyed_read(). */
typedef bool (*keyed_source)(void *data, bool secret, const char *name, struct keyed *ret);

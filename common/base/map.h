/*
 * map.h - purpose: a hash map from strings to pointers.
 *
 * Keys are copied and owned by the map, values are not. Insertion while iterating is not allowed, removal of the
 * current entry is. Iteration order is arbitrary.
 *
 *	struct map_iter it = MAP_ITER_INIT;
 *	while (map_next(&m, &it))
 *		use(it.key, it.value);
 */
#pragma once
#include "common/base/base.h"

struct map_entry {
	char *key; /* NULL: free slot or removed */
	void *value;
	uint32_t hash;
	bool removed;
};

struct map {
	struct map_entry *slots;
	size_t cap; /* 0 or a power of two */
	size_t count;
	size_t used; /* count and removed ones */
};

#define MAP_INIT ((struct map){ 0 })

struct map_iter {
	size_t next;
	const char *key;
	void *value;
};
#define MAP_ITER_INIT ((struct map_iter){ 0 })

/* Frees the map and its keys. Values must have been dealt with. */
void map_done(struct map *m);
/* Frees all values with `value_free` (may be NULL), then the map. */
void map_done_values(struct map *m, void (*value_free)(void *));
void *map_get(const struct map *m, const char *key);
/* Puts or replaces; returns the value that was there before, or NULL. `value` must not be NULL. */
void *map_put(struct map *m, const char *key, void *value);
/* Removes; returns the value that was there, or NULL. */
void *map_remove(struct map *m, const char *key);
bool map_next(const struct map *m, struct map_iter *it);

/* map.c - purpose: a hash map from strings to pointers: open addressing, linear probing. */
#include "common/base/map.h"

#include <sys/random.h>

/* Keys come from outside (names of objects): the start value is random, so that nobody can choose collisions. */
static uint32_t hash_seed(void)
{
	static uint32_t seed;

	while (!seed)
		if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
			seed = 2166136261u;
	return seed;
}

static uint32_t hash_of(const char *key)
{
	uint32_t h = hash_seed();

	for (; *key; key++) {
		h ^= (unsigned char)*key;
		h *= 16777619u;
		h ^= h >> 15;
	}
	return h;
}

static struct map_entry *find(const struct map *m, const char *key, uint32_t hash)
{
	if (!m->cap)
		return NULL;
	for (size_t i = hash & (m->cap - 1);; i = (i + 1) & (m->cap - 1)) {
		struct map_entry *e = &m->slots[i];

		if (!e->key && !e->removed)
			return NULL;
		if (e->key && e->hash == hash && strcmp(e->key, key) == 0)
			return e;
	}
}

static struct map_entry *free_slot(struct map *m, uint32_t hash)
{
	size_t i = hash & (m->cap - 1);

	while (m->slots[i].key)
		i = (i + 1) & (m->cap - 1);
	return &m->slots[i];
}

static void resize(struct map *m)
{
	struct map old = *m;

	m->cap = MAX((size_t)8, m->cap);
	while (m->cap < (old.count + 1) * 2)
		m->cap *= 2;
	m->slots = xcalloc(m->cap, sizeof(*m->slots));
	m->used = m->count;
	for (size_t i = 0; i < old.cap; i++)
		if (old.slots[i].key)
			*free_slot(m, old.slots[i].hash) = old.slots[i];
	free(old.slots);
}

void map_done(struct map *m)
{
	map_done_values(m, NULL);
}

void map_done_values(struct map *m, void (*value_free)(void *))
{
	for (size_t i = 0; i < m->cap; i++) {
		if (!m->slots[i].key)
			continue;
		free(m->slots[i].key);
		if (value_free)
			value_free(m->slots[i].value);
	}
	free(m->slots);
	*m = MAP_INIT;
}

void *map_get(const struct map *m, const char *key)
{
	struct map_entry *e = key ? find(m, key, hash_of(key)) : NULL;

	return e ? e->value : NULL;
}

void *map_put(struct map *m, const char *key, void *value)
{
	uint32_t hash = hash_of(key);
	struct map_entry *e = find(m, key, hash);

	assert(value);
	if (e) {
		void *before = e->value;

		e->value = value;
		return before;
	}
	if ((m->used + 1) * 4 > m->cap * 3)
		resize(m);
	e = free_slot(m, hash);
	m->used += !e->removed;
	m->count++;
	*e = (struct map_entry){ .key = xstrdup(key), .value = value, .hash = hash };
	return NULL;
}

void *map_remove(struct map *m, const char *key)
{
	struct map_entry *e = key ? find(m, key, hash_of(key)) : NULL;

	if (!e)
		return NULL;
	void *value = e->value;

	free(e->key);
	*e = (struct map_entry){ .removed = true };
	m->count--;
	return value;
}

bool map_next(const struct map *m, struct map_iter *it)
{
	while (it->next < m->cap) {
		const struct map_entry *e = &m->slots[it->next++];

		if (!e->key)
			continue;
		it->key = e->key;
		it->value = e->value;
		return true;
	}
	return false;
}

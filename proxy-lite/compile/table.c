/* table.c - purpose: what the kernel's table holds, by frontend, and how often endpoints and plans are in use. */
#include "proxy-lite/compile/table.h"

#include "proxy-lite/model/services.h"

#include <sys/random.h>

static uint32_t random_seed(void)
{
	uint32_t seed = 0;

	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		seed = 2654435761u;
	return seed;
}

void table_init(struct table *t)
{
	*t = (struct table){ .seed = random_seed() };
	t->plans.seed = t->hairpins.seed = t->seed;
}

void table_done(struct table *t)
{
	for (size_t i = 0; i < t->cap; i++)
		while (t->buckets[i]) {
			struct frontend *f = t->buckets[i];

			t->buckets[i] = f->next;
			if (f->owner)
				f->owner->frontends = NULL;
			frontend_free(f);
		}
	free(t->buckets);
	free(t->plans.slots);
	free(t->plans.touched);
	free(t->hairpins.slots);
	free(t->hairpins.touched);
	free(t->node_ips);
	*t = (struct table){ 0 };
}

static struct frontend **bucket(const struct table *t, const struct frontend_key *key)
{
	return &t->buckets[frontend_key_hash(key, t->seed) & (t->cap - 1)];
}

struct frontend *table_find(const struct table *t, const struct frontend_key *key)
{
	if (!t->cap)
		return NULL;
	for (struct frontend *f = *bucket(t, key); f; f = f->next)
		if (frontend_key_equal(&f->key, key))
			return f;
	return NULL;
}

static void grow(struct table *t)
{
	struct table old = *t;

	t->cap = old.cap ? old.cap * 2 : 64;
	t->buckets = xcalloc(t->cap, sizeof(struct frontend *));
	for (size_t i = 0; i < old.cap; i++)
		while (old.buckets[i]) {
			struct frontend *f = old.buckets[i], **head = bucket(t, &f->key);

			old.buckets[i] = f->next;
			f->next = *head;
			*head = f;
		}
	free(old.buckets);
}

void table_insert(struct table *t, struct frontend *frontend)
{
	struct frontend **head;

	if (t->count >= t->cap)
		grow(t);
	head = bucket(t, &frontend->key);
	frontend->next = *head;
	*head = frontend;
	t->count++;
	if (frontend->owner) {
		frontend->next_owned = frontend->owner->frontends;
		frontend->owner->frontends = frontend;
	}
}

void table_remove(struct table *t, struct frontend *frontend)
{
	struct frontend **p = bucket(t, &frontend->key);

	while (*p != frontend)
		p = &(*p)->next;
	*p = frontend->next;
	t->count--;
	frontend->next = NULL;
	if (frontend->owner) {
		for (p = &frontend->owner->frontends; *p != frontend; p = &(*p)->next_owned)
			;
		*p = frontend->next_owned;
		frontend->next_owned = NULL;
		frontend->owner = NULL;
	}
}

void table_each(const struct table *t, void (*each)(void *data, struct frontend *frontend), void *data)
{
	for (size_t i = 0; i < t->cap; i++)
		for (struct frontend *f = t->buckets[i]; f; f = f->next)
			each(data, f);
}

struct ref_key ref_plan_key(uint32_t plan_id)
{
	struct ref_key key = { .kind = REF_PLAN };

	memcpy(key.bytes, &plan_id, sizeof(plan_id));
	return key;
}

uint32_t ref_plan_id(const struct ref_key *key)
{
	uint32_t id;

	memcpy(&id, key->bytes, sizeof(id));
	return id;
}

static size_t ref_hash(const struct refs *refs, const struct ref_key *key)
{
	uint64_t a, b, h;

	memcpy(&a, key->bytes, 8);
	memcpy(&b, key->bytes + 8, 8);
	h = (a ^ refs->seed ^ key->kind) * 0x9e3779b97f4a7c15u;
	h = (h ^ h >> 32 ^ b) * 0xbf58476d1ce4e5b9u;
	return (size_t)(h >> 32);
}

static struct ref *ref_slot(const struct refs *refs, const struct ref_key *key)
{
	size_t i = ref_hash(refs, key) & (refs->cap - 1);

	while (refs->slots[i].used && memcmp(&refs->slots[i].key, key, sizeof(*key)) != 0)
		i = (i + 1) & (refs->cap - 1);
	return &refs->slots[i];
}

struct ref *refs_find(const struct refs *refs, const struct ref_key *key)
{
	struct ref *ref = refs->cap ? ref_slot(refs, key) : NULL;

	return ref && ref->used ? ref : NULL;
}

static void refs_resize(struct refs *refs)
{
	struct refs old = *refs;
	size_t alive = 0;

	for (size_t i = 0; i < old.cap; i++)
		alive += old.slots[i].used && (old.slots[i].held || old.slots[i].count || old.slots[i].touched);
	refs->cap = 64;
	while (refs->cap < (alive + 1) * 2)
		refs->cap *= 2;
	refs->slots = xcalloc(refs->cap, sizeof(*refs->slots));
	refs->used = 0;
	for (size_t i = 0; i < old.cap; i++)
		if (old.slots[i].used && (old.slots[i].held || old.slots[i].count || old.slots[i].touched)) {
			*ref_slot(refs, &old.slots[i].key) = old.slots[i];
			refs->used++;
		}
	free(old.slots);
}

static struct ref *ref_get(struct refs *refs, const struct ref_key *key)
{
	struct ref *ref = refs_find(refs, key);

	/* Only a new one may move the others. */
	if (!ref) {
		if (refs->used * 4 >= refs->cap * 3)
			refs_resize(refs);
		ref = ref_slot(refs, key);
		*ref = (struct ref){ .key = *key, .used = true };
		refs->used++;
	}
	return ref;
}

void refs_add(struct refs *refs, const struct ref_key *key, int32_t delta)
{
	struct ref *ref = ref_get(refs, key);

	ref->delta += delta;
	if (ref->touched)
		return;
	ref->touched = true;
	if (refs->n_touched == refs->cap_touched) {
		refs->cap_touched = MAX((size_t)16, refs->cap_touched * 2);
		refs->touched = xreallocarray(refs->touched, refs->cap_touched, sizeof(*refs->touched));
	}
	refs->touched[refs->n_touched++] = *key;
}

void refs_set_held(struct refs *refs, const struct ref_key *key, bool held)
{
	ref_get(refs, key)->held = held;
}

struct counting {
	struct refs *refs;
	int32_t sign;
};

static void count_plan(void *data, uint32_t id)
{
	struct counting *c = data;
	struct ref_key key = ref_plan_key(id);

	refs_add(c->refs, &key, c->sign);
}

void table_count(struct table *table, const struct frontend *frontend, int32_t sign)
{
	struct counting c = { &table->plans, sign };

	frontend_plans(frontend, count_plan, &c);
	for (uint32_t i = 0; i < frontend->n + frontend->n_inside; i++) {
		struct ref_key key;

		if (!frontend->backends[i].local)
			continue;
		memset(&key, 0, sizeof(key));
		key.kind = frontend->key.v6 ? REF_HAIRPIN6 : REF_HAIRPIN;
		memcpy(key.bytes, frontend->backends[i].address, sizeof(key.bytes));
		refs_add(&table->hairpins, &key, sign);
	}
}

static void refs_finish(struct refs *refs, bool committed)
{
	for (size_t i = 0; i < refs->n_touched; i++) {
		struct ref *ref = refs_find(refs, &refs->touched[i]);

		if (committed) {
			ref->count += ref->delta;
			/* Chains of plans outlive their last use for a while: see sync.c. */
			ref->held = ref->count > 0 || (ref->held && ref->key.kind == REF_PLAN);
		}
		ref->delta = 0;
		ref->touched = false;
	}
	if (refs->cap_touched > 4096) {
		free(refs->touched);
		refs->touched = NULL;
		refs->cap_touched = 0;
	}
	refs->n_touched = 0;
}

void refs_commit(struct refs *refs)
{
	refs_finish(refs, true);
}

void refs_rollback(struct refs *refs)
{
	refs_finish(refs, false);
}

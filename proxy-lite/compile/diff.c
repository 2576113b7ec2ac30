/* diff.c - purpose: from what is held to what is wanted by the smallest set of element changes. */
#include "proxy-lite/compile/diff.h"

#include <arpa/inet.h>

static uint8_t *put_port(uint8_t *p, uint16_t port)
{
	uint16_t big = htons(port);

	memset(p, 0, 4);
	memcpy(p, &big, sizeof(big));
	return p + 4;
}

static uint8_t *put_address(uint8_t *p, const uint8_t *address, bool v6)
{
	memcpy(p, address, ip_len(v6));
	return p + ip_len(v6);
}

void element_frontend_key(const struct frontend_key *key, uint8_t *buf)
{
	if (!key->node_port)
		buf = put_address(buf, key->address, key->v6);
	memset(buf, 0, 4);
	buf[0] = key->protocol;
	put_port(buf + 4, key->port);
}

void element_endpoint_key(const struct frontend_key *key, uint32_t number, uint8_t *buf)
{
	memcpy(buf, &number, sizeof(number));
	element_frontend_key(key, buf + 4);
}

void element_backend(const struct backend *backend, bool v6, uint8_t *buf)
{
	put_port(put_address(buf, backend->address, v6), backend->port);
}

void element_range(const struct frontend_key *key, const struct cidr *range, uint8_t *first, uint8_t *last)
{
	size_t at = ip_len(key->v6) + 8, len = ip_len(key->v6);
	uint8_t mask[16];

	element_frontend_key(key, first);
	element_frontend_key(key, last);
	cidr_mask(range, mask);
	for (size_t i = 0; i < len; i++) {
		first[at + i] = range->ip.bytes[i];
		last[at + i] = (uint8_t)(range->ip.bytes[i] | ~mask[i]);
	}
}

void element_address(enum set_id set, const uint8_t *address, uint8_t *buf)
{
	bool v6 = set == SET_HAIRPIN6 || set == SET_NODEIP6;

	buf = put_address(buf, address, v6);
	if (set == SET_HAIRPIN || set == SET_HAIRPIN6)
		put_address(buf, address, v6);
}

/* The look-up elements that a frontend has besides its endpoints. */
enum lookup { LOOKUP_FRONTEND, LOOKUP_INSIDE, LOOKUP_LOCAL, LOOKUP_REFUSE, LOOKUP_DROP, LOOKUPS };

static const enum set_id lookup_sets[LOOKUPS] = { SET_FRONTEND, SET_INSIDE, SET_LOCAL, SET_REFUSE, SET_DROP };

struct lookups {
	bool is[LOOKUPS];
	uint32_t plan[LOOKUPS];
};

static struct lookups lookups_of(const struct frontend *f)
{
	struct lookups l = { 0 };

	if (!f)
		return l;
	if (f->flavour == FLAVOUR_DIVERT || f->flavour == FLAVOUR_NONE) {
		l.is[LOOKUP_FRONTEND] = f->flavour == FLAVOUR_DIVERT && (f->n || f->n_inside);
		l.plan[LOOKUP_FRONTEND] = plan_id(FLAVOUR_DIVERT, f->key.node_port, f->key.v6, 0);
		l.is[LOOKUP_LOCAL] = f->n > 0 && !f->local_missing;
		l.plan[LOOKUP_LOCAL] = frontend_group_plan(f, false);
		l.is[LOOKUP_INSIDE] = f->n_inside > 0 && !f->inside_missing;
		l.plan[LOOKUP_INSIDE] = frontend_group_plan(f, true);
	} else {
		l.is[LOOKUP_FRONTEND] = f->n > 0;
		l.plan[LOOKUP_FRONTEND] = frontend_group_plan(f, false);
	}
	l.is[LOOKUP_REFUSE] = f->n == 0 && f->unserved == UNSERVED_REFUSE;
	l.is[LOOKUP_DROP] = f->n == 0 && f->unserved == UNSERVED_DROP;
	return l;
}

/* Ranges of one and not of the other. */
static void diff_ranges(
	const struct frontend *of, const struct frontend *without, bool add, const struct element_sink *sink)
{
	for (uint32_t i = 0; of && i < of->n_ranges; i++) {
		const struct cidr *r = &of->ranges[i];
		uint8_t first[SET_KEY_MAX], last[SET_KEY_MAX];
		bool found = false;

		for (uint32_t j = 0; without && j < without->n_ranges && !found; j++)
			found = r->prefix == without->ranges[j].prefix && ip_equal(&r->ip, &without->ranges[j].ip);
		if (found)
			continue;
		element_range(&of->key, r, first, last);
		sink->element(sink->data, set_of(SET_RANGE, of->key.v6), add, first, last);
	}
}

static void diff_guard(const struct frontend_key *key, const struct frontend *held, const struct frontend *wanted,
	const struct element_sink *sink)
{
	bool old = held && held->guarded, new = wanted && wanted->guarded;
	uint8_t bytes[SET_KEY_MAX];

	if (old != new) {
		element_frontend_key(key, bytes);
		sink->element(sink->data, set_of(SET_GUARDED, key->v6), new, bytes, NULL);
	}
	diff_ranges(held, wanted, false, sink);
	diff_ranges(wanted, held, true, sink);
}

static enum set_id set_for(enum set_id base, const struct frontend_key *key)
{
	return set_of((enum set_id)(base + (key->node_port ? SET_PORT_DISTANCE : 0)), key->v6);
}

static void diff_lookups(const struct frontend_key *key, const struct frontend *held, const struct frontend *wanted,
	const struct element_sink *sink)
{
	struct lookups old = lookups_of(held), new = lookups_of(wanted);
	uint8_t bytes[SET_KEY_MAX];

	element_frontend_key(key, bytes);
	for (int i = 0; i < LOOKUPS; i++) {
		enum set_id set = set_for(lookup_sets[i], key);

		if (old.is[i] == new.is[i] && old.plan[i] == new.plan[i])
			continue;
		if (old.is[i])
			sink->element(sink->data, set, false, bytes, NULL);
		if (new.is[i])
			sink->element(sink->data, set, true, bytes, (const uint8_t *)&new.plan[i]);
	}
}

static void diff_backends(const struct frontend_key *key, uint32_t base, const struct backend *held, uint32_t n_held,
	const struct backend *wanted, uint32_t n_wanted, const struct element_sink *sink)
{
	enum set_id set = set_for(SET_ENDPOINT, key);
	uint8_t bytes[SET_KEY_MAX], value[SET_VALUE_MAX];

	for (uint32_t i = 0; i < MAX(n_held, n_wanted); i++) {
		const struct backend *old = i < n_held && held[i].port ? &held[i] : NULL;
		const struct backend *new = i < n_wanted ? &wanted[i] : NULL;

		if (old && new && old->port == new->port &&
			memcmp(old->address, new->address, sizeof(old->address)) == 0)
			continue;
		if (!old && !new)
			continue;
		element_endpoint_key(key, base + i, bytes);
		if (old)
			sink->element(sink->data, set, false, bytes, NULL);
		if (new) {
			element_backend(new, key->v6, value);
			sink->element(sink->data, set, true, bytes, value);
		}
	}
}

/* ---- session affinity: slots by number, endpoints by id ---- */

struct element_list {
	struct list_element {
		enum set_id set;
		uint8_t key[SET_KEY_MAX], value[SET_VALUE_MAX];
	} * v;
	size_t n;
};

static struct list_element *list_add(struct element_list *list, enum set_id set)
{
	struct list_element *e = &list->v[list->n++];

	e->set = set;
	return e;
}

static void list_slot(struct element_list *list, const struct frontend_key *key, uint32_t number, uint32_t value)
{
	struct list_element *e = list_add(list, set_for(SET_SLOT, key));

	element_endpoint_key(key, number, e->key);
	memcpy(e->value, &value, sizeof(value));
}

static int list_order(const void *pa, const void *pb)
{
	const struct list_element *a = pa, *b = pb;

	return a->set != b->set ? (int)a->set - (int)b->set : memcmp(a->key, b->key, sizeof(a->key));
}

/* What the endpoints of one frontend are in the kernel, sorted, each once. The caller frees v. */
static struct element_list list_backends(const struct frontend *f)
{
	struct element_list list = { xcalloc(f ? 2 * ((size_t)f->n + f->n_inside) + 2 : 1, sizeof(*list.v)), 0 };
	size_t n = 0;

	for (uint32_t i = 0; f && i < f->n + f->n_inside; i++) {
		const struct backend *b = &f->backends[i];
		uint32_t number = i < f->n ? i : INSIDE_BASE + i - f->n;
		struct list_element *e;

		if (f->affinity_s && b->id)
			list_slot(&list, &f->key, number, b->id);
		if (!b->port)
			continue;
		e = list_add(&list, set_for(SET_ENDPOINT, &f->key));
		element_endpoint_key(&f->key, f->affinity_s ? b->id : number, e->key);
		element_backend(b, f->key.v6, e->value);
	}
	if (f && f->affinity_s && f->n)
		list_slot(&list, &f->key, COUNT_KEY, plan_draw_id(false, f->n));
	if (f && f->affinity_s && f->n_inside)
		list_slot(&list, &f->key, INSIDE_COUNT_KEY, plan_draw_id(true, f->n_inside));
	qsort(list.v, list.n, sizeof(*list.v), list_order);
	for (size_t i = 0; i < list.n; i++)
		if (i == 0 || list_order(&list.v[n - 1], &list.v[i]) != 0)
			list.v[n++] = list.v[i];
	list.n = n;
	return list;
}

static void diff_lists(const struct element_list *old, const struct element_list *new, const struct element_sink *sink)
{
	size_t i = 0, j = 0;

	while (i < old->n || j < new->n) {
		const struct list_element *o = &old->v[i], *w = &new->v[j];
		int order = i == old->n ? 1 : j == new->n ? -1 : list_order(o, w);

		if (order < 0 || (order == 0 && memcmp(o->value, w->value, sizeof(o->value)) != 0))
			sink->element(sink->data, o->set, false, o->key, NULL);
		if (order > 0 || (order == 0 && memcmp(o->value, w->value, sizeof(o->value)) != 0))
			sink->element(sink->data, w->set, true, w->key, w->value);
		i += order <= 0;
		j += order >= 0;
	}
}

static void diff_sticky(const struct frontend *held, const struct frontend *wanted, const struct element_sink *sink)
{
	struct element_list old = list_backends(held), new = list_backends(wanted);

	diff_lists(&old, &new, sink);
	free(old.v);
	free(new.v);
}

void diff_frontend(const struct frontend *held, const struct frontend *wanted, const struct element_sink *sink)
{
	static const struct frontend nothing;
	const struct frontend_key *key = held ? &held->key : &wanted->key;
	const struct frontend *h = held ? held : &nothing, *w = wanted ? wanted : &nothing;

	diff_lookups(key, held, wanted, sink);
	if (h->guarded || w->guarded)
		diff_guard(key, held, wanted, sink);
	if (h->affinity_s || w->affinity_s) {
		diff_sticky(held, wanted, sink);
		return;
	}
	diff_backends(key, 0, h->backends, h->n, w->backends, w->n, sink);
	diff_backends(key, INSIDE_BASE, h->backends + h->n, h->n_inside, w->backends + w->n, w->n_inside, sink);
}

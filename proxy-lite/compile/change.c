/* change.c - purpose: plan one transaction: from the dirty Services and the held table to pairs of (held, wanted). */
#include "proxy-lite/compile/change.h"

#include "proxy-lite/compile/elements.h"

#include <stdio.h>

static size_t index_slot(const struct changes *c, const struct frontend_key *key)
{
	size_t i = frontend_key_hash(key, 0) & (c->index_cap - 1);

	for (; c->index[i]; i = (i + 1) & (c->index_cap - 1)) {
		const struct change *at = &c->v[c->index[i] - 1];

		if (frontend_key_equal(&(at->wanted ? at->wanted : at->held)->key, key))
			break;
	}
	return i;
}

static struct change *change_find(const struct changes *c, const struct frontend_key *key)
{
	size_t i;

	if (!c->index_cap)
		return NULL;
	i = index_slot(c, key);
	return c->index[i] ? &c->v[c->index[i] - 1] : NULL;
}

static void index_grow(struct changes *c)
{
	free(c->index);
	c->index_cap = c->index_cap ? c->index_cap * 2 : 32;
	c->index = xcalloc(c->index_cap, sizeof(*c->index));
	for (size_t i = 0; i < c->n; i++) {
		const struct change *at = &c->v[i];

		c->index[index_slot(c, &(at->wanted ? at->wanted : at->held)->key)] = (uint32_t)i + 1;
	}
}

/* One of held and wanted must be given; there is no change for the key yet. */
static struct change *change_add(struct changes *c, struct frontend *held, struct frontend *wanted)
{
	if ((c->n + 1) * 2 > c->index_cap)
		index_grow(c);
	if (c->n == c->cap) {
		c->cap = MAX((size_t)16, c->cap * 2);
		c->v = xreallocarray(c->v, c->cap, sizeof(*c->v));
	}
	c->index[index_slot(c, &(wanted ? wanted : held)->key)] = (uint32_t)c->n + 1;
	c->v[c->n] = (struct change){ .held = held, .wanted = wanted };
	return &c->v[c->n++];
}

/* Does `a` win against `b`? */
static bool older(const struct service_entry *a, const struct service_entry *b)
{
	if (a->service->created != b->service->created)
		return a->service->created < b->service->created;
	return strcmp(a->key, b->key) < 0;
}

static void contest(struct contests *contests, struct services *services, struct service_entry *loser,
	const struct frontend_key *key, const struct service_entry *winner)
{
	char text[FRONTEND_TEXT_MAX + 700], at[FRONTEND_TEXT_MAX];

	snprintf(text, sizeof(text), "%s belongs to the older Service %s", frontend_key_format(key, at), winner->key);
	problems_set(&services->problems, "Service address of", loser->key, text);
	if (loser->contested)
		return;
	loser->contested = true;
	if (contests->n == contests->cap) {
		contests->cap = MAX((size_t)8, contests->cap * 2);
		contests->v = xreallocarray(contests->v, contests->cap, sizeof(struct service_entry *));
	}
	contests->v[contests->n++] = loser;
}

static void uncontest(struct contests *contests, struct services *services, struct service_entry *entry)
{
	if (!entry->contested)
		return;
	entry->contested = false;
	problems_set(&services->problems, "Service address of", entry->key, NULL);
	for (size_t i = 0; i < contests->n; i++)
		if (contests->v[i] == entry)
			contests->v[i--] = contests->v[--contests->n];
}

/* What the Service does not want any more, unless somebody else already took it in this transaction. */
static void release(struct changes *c, struct service_entry *entry)
{
	for (struct frontend *f = entry->frontends; f; f = f->next_owned) {
		struct change *at = change_find(c, &f->key);

		if (!at)
			at = change_add(c, f, NULL);
		at->released = true;
	}
}

struct planning {
	struct changes *changes;
	struct services *services;
	struct table *table;
	struct contests *contests;
};

/* Puts one wanted frontend into the transaction, or frees it when an older Service has the place. */
static void claim(struct planning *p, struct service_entry *entry, struct frontend *wanted)
{
	struct frontend *held = table_find(p->table, &wanted->key);
	struct change *at = change_find(p->changes, &wanted->key);
	struct service_entry *holder = NULL;

	if (at && at->wanted)
		holder = at->wanted->owner;
	else if (held && !(at && at->released))
		holder = held->owner;
	if (holder && holder != entry && holder->service && older(holder, entry)) {
		contest(p->contests, p->services, entry, &wanted->key, holder);
		frontend_free(wanted);
		return;
	}
	if (holder && holder != entry && holder->service)
		contest(p->contests, p->services, holder, &wanted->key, entry);
	frontend_renumber(wanted, held);
	if (!at) {
		change_add(p->changes, held, wanted);
	} else {
		frontend_free(at->wanted);
		at->wanted = wanted;
	}
}

static void process(struct planning *p, struct service_entry *entry)
{
	struct frontend *list = elements_compile(entry);

	uncontest(p->contests, p->services, entry);
	problems_set(&p->services->problems, "Service refused by the kernel:", entry->key, NULL);
	release(p->changes, entry);
	while (list) {
		struct frontend *next = list->next_owned;

		list->next_owned = NULL;
		claim(p, entry, list);
		list = next;
	}
}

static void take_entry(struct changes *c, struct service_entry *entry)
{
	if (entry->taken)
		return;
	entry->taken = true;
	if (c->n_entries == c->cap_entries) {
		c->cap_entries = MAX((size_t)16, c->cap_entries * 2);
		c->entries = xreallocarray(c->entries, c->cap_entries, sizeof(struct service_entry *));
	}
	c->entries[c->n_entries++] = entry;
}

static void orphan(void *data, struct frontend *f)
{
	struct changes *c = data;

	if (!f->owner && !change_find(c, &f->key))
		change_add(c, f, NULL);
}

/* What was read from the kernel may be needed by nobody. */
static void touch_held(struct refs *refs)
{
	for (size_t i = 0; i < refs->cap; i++)
		if (refs->slots[i].used && refs->slots[i].held && !refs->slots[i].touched) {
			struct ref_key key = refs->slots[i].key;

			refs_add(refs, &key, 0);
		}
}

/* Drops pairs that change nothing, and counts what the others use. */
static void settle(struct changes *c, struct table *table)
{
	for (size_t i = 0; i < c->n; i++) {
		struct change *at = &c->v[i];

		if (at->held && at->wanted && at->held->counted && at->held->owner == at->wanted->owner &&
			frontend_same(at->held, at->wanted)) {
			at->wanted = frontend_free(at->wanted);
			at->idle = true;
			continue;
		}
		if (at->held && at->held->counted)
			table_count(table, at->held, -1);
		if (at->wanted)
			table_count(table, at->wanted, 1);
	}
	if (c->full) {
		touch_held(&table->plans);
		touch_held(&table->hairpins);
	}
}

/* Losers look again last: what they wait for may just have become free. */
static void look_again(struct planning *p)
{
	size_t n = p->contests->n;
	_cleanup_free_ struct service_entry **losers =
		n ? xmemdup(p->contests->v, n * sizeof(struct service_entry *)) : NULL;

	for (size_t i = 0; i < n; i++) {
		take_entry(p->changes, losers[i]);
		process(p, losers[i]);
	}
}

void changes_plan(struct changes *c, struct services *services, struct table *table, struct contests *contests,
	bool full, const struct strays *strays)
{
	struct planning p = { c, services, table, contests };
	struct service_entry *entry;

	c->full = full;
	c->strays = strays;
	while ((entry = services_take(services))) {
		take_entry(c, entry);
		process(&p, entry);
	}
	look_again(&p);
	if (full)
		table_each(table, orphan, c);
	settle(c, table);
}

void changes_set_node_ips(struct changes *c, const struct ip *ips, size_t n)
{
	c->node_ips = ips;
	c->n_node_ips = n;
}

static bool has_ip(const struct ip *ips, size_t n, const struct ip *ip)
{
	for (size_t i = 0; i < n; i++)
		if (ip_equal(&ips[i], ip))
			return true;
	return false;
}

static void emit_ip(const struct ip *ip, bool add, const struct element_sink *sink)
{
	uint8_t key[SET_KEY_MAX];
	enum set_id set = set_of(SET_NODEIP, ip->v6);

	element_address(set, ip->bytes, key);
	sink->element(sink->data, set, add, key, NULL);
}

static void emit_node_ips(const struct changes *c, const struct table *table, const struct element_sink *sink)
{
	if (!c->node_ips)
		return;
	for (size_t i = 0; i < table->n_node_ips; i++)
		if (!has_ip(c->node_ips, c->n_node_ips, &table->node_ips[i]))
			emit_ip(&table->node_ips[i], false, sink);
	for (size_t i = 0; i < c->n_node_ips; i++)
		if (!has_ip(table->node_ips, table->n_node_ips, &c->node_ips[i]))
			emit_ip(&c->node_ips[i], true, sink);
}

static void emit_refs(const struct refs *refs, const struct element_sink *sink)
{
	uint8_t key[SET_KEY_MAX];

	for (size_t i = 0; i < refs->n_touched; i++) {
		const struct ref *ref = refs_find(refs, &refs->touched[i]);
		bool need = ref->count + ref->delta > 0;

		if (need == ref->held)
			continue;
		if (ref->key.kind != REF_PLAN) {
			enum set_id set = set_of(SET_HAIRPIN, ref->key.kind == REF_HAIRPIN6);

			element_address(set, ref->key.bytes, key);
			sink->element(sink->data, set, need, key, NULL);
		} else if (need) { /* those without need go later: see sync.c */
			uint32_t id = ref_plan_id(&ref->key);

			sink->chain(sink->data, id, true);
			if (plan_set(id) != SET_COUNT)
				sink->element(sink->data, plan_set(id), true, (const uint8_t *)&id, NULL);
		}
	}
}

void changes_emit(const struct changes *c, const struct table *table, const struct element_sink *sink,
	void (*cause)(void *data, uint32_t change))
{
	cause(sink->data, CHANGE_COMMON);
	for (size_t i = 0; c->strays && i < c->strays->n; i++)
		sink->element(sink->data, c->strays->v[i].set, false, c->strays->v[i].key, c->strays->v[i].last);
	emit_node_ips(c, table, sink);
	emit_refs(&table->plans, sink);
	emit_refs(&table->hairpins, sink);
	for (size_t i = 0; i < c->n; i++) {
		if (c->v[i].idle)
			continue;
		cause(sink->data, (uint32_t)i);
		diff_frontend(c->v[i].held, c->v[i].wanted, sink);
	}
}

void changes_refuse(struct changes *c, struct table *table, uint32_t change)
{
	struct change *at = &c->v[change];

	if (at->idle)
		return;
	if (at->held && at->held->counted)
		table_count(table, at->held, 1);
	if (at->wanted)
		table_count(table, at->wanted, -1);
	if (at->held && !at->held->counted) {
		table_count(table, at->held, 1);
		at->held->counted = true;
	}
	at->idle = true;
}

static void changes_clear(struct changes *c)
{
	for (size_t i = 0; i < c->n; i++)
		frontend_free(c->v[i].wanted);
	free(c->v);
	free(c->index);
	free(c->entries);
	*c = (struct changes){ 0 };
}

static void apply_node_ips(const struct changes *c, struct table *table)
{
	if (!c->node_ips)
		return;
	free(table->node_ips);
	table->node_ips = xmemdup(c->node_ips, MAX((size_t)1, c->n_node_ips) * sizeof(struct ip));
	table->n_node_ips = c->n_node_ips;
}

void changes_apply(struct changes *c, struct services *services, struct table *table)
{
	for (size_t i = 0; i < c->n; i++) {
		struct change *at = &c->v[i];

		if (at->idle)
			continue;
		if (at->held) {
			table_remove(table, at->held);
			frontend_free(at->held);
		}
		if (at->wanted) {
			at->wanted->counted = true;
			table_insert(table, steal(at->wanted));
		}
	}
	refs_commit(&table->plans);
	refs_commit(&table->hairpins);
	apply_node_ips(c, table);
	for (size_t i = 0; i < c->n_entries; i++) {
		c->entries[i]->taken = false;
		services_sweep(services, c->entries[i]);
	}
	changes_clear(c);
}

void changes_drop(struct changes *c, struct services *services, struct table *table)
{
	refs_rollback(&table->plans);
	refs_rollback(&table->hairpins);
	for (size_t i = 0; i < c->n_entries; i++) {
		c->entries[i]->taken = false;
		services_mark(services, c->entries[i]);
	}
	changes_clear(c);
}

/* walk_kernel.h - purpose: the pretended kernel of change_test.c: takes elements, and tells what packets would meet. */
#pragma once
#include "common/base/str.h"
#include "proxy-lite/compile/change.h"
#include "tests/unit/proxy-lite/compile/walk_world.h"

#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <stdio.h>

struct element {
	enum set_id set;
	uint8_t key[SET_KEY_MAX], value[SET_VALUE_MAX];
	bool add;
};

struct elements {
	struct element *v;
	size_t n, cap;
};

static struct {
	struct elements held, batch;
} kernel;

static struct element *append(struct elements *list)
{
	if (list->n == list->cap) {
		list->cap = MAX((size_t)64, list->cap * 2);
		list->v = xreallocarray(list->v, list->cap, sizeof(*list->v));
	}
	memset(&list->v[list->n], 0, sizeof(*list->v));
	return &list->v[list->n++];
}

static struct element *find_element(enum set_id set, const uint8_t *key)
{
	for (size_t i = 0; i < kernel.held.n; i++)
		if (kernel.held.v[i].set == set && memcmp(kernel.held.v[i].key, key, set_key_len(set)) == 0)
			return &kernel.held.v[i];
	return NULL;
}

static void sink_element(void *data, enum set_id set, bool add, const uint8_t *key, const uint8_t *value)
{
	struct element *e = append(&kernel.batch);

	(void)data;
	e->set = set;
	e->add = add;
	memcpy(e->key, key, set_key_len(set));
	if (set_is_verdict(set))
		memcpy(e->value, key, 4);
	else if (value && (add || set_spec(set)->interval))
		memcpy(e->value, value, set_value_len(set));
}

static void sink_chain(void *data, uint32_t id, bool add)
{
	struct plan plan;

	(void)data;
	ck_assert_msg(add && plan_parse(id, &plan), "plan %x", id);
}

static void sink_cause(void *data, uint32_t change)
{
	(void)data;
	(void)change;
}

/* All deletions, then all additions, as the real batch has them. */
static void kernel_commit(void)
{
	for (size_t i = 0; i < kernel.batch.n; i++) {
		struct element *b = &kernel.batch.v[i], *e;

		if (b->add)
			continue;
		e = find_element(b->set, b->key);
		ck_assert_msg(e != NULL, "deletion of a missing element of %s", set_spec(b->set)->name);
		*e = kernel.held.v[--kernel.held.n];
	}
	for (size_t i = 0; i < kernel.batch.n; i++) {
		struct element *b = &kernel.batch.v[i];

		if (!b->add)
			continue;
		ck_assert_msg(find_element(b->set, b->key) == NULL || set_is_verdict(b->set),
			"addition of an element of %s that is there", set_spec(b->set)->name);
		if (!find_element(b->set, b->key))
			*append(&kernel.held) = *b;
	}
	kernel.batch.n = 0;
}

static int text_order(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static char *join_sorted(struct strv *lines)
{
	struct str out = STR_INIT;

	if (lines->n)
		qsort(lines->v, lines->n, sizeof(char *), text_order);
	for (size_t i = 0; i < lines->n; i++)
		str_addf(&out, "%s\n", lines->v[i]);
	strv_done(lines);
	return str_take(&out);
}

/* ---- what the pretended kernel does, as the same text ---- */

static void key_text(const struct element *e, bool port, bool v6, char *buf, size_t len, const uint8_t *key)
{
	char ip[IP_TEXT_MAX] = "";
	uint16_t big;

	(void)e;
	if (!port) {
		inet_ntop(v6 ? AF_INET6 : AF_INET, key, ip, sizeof(ip));
		key += ip_len(v6);
	}
	memcpy(&big, key + 4, 2);
	snprintf(buf, len, "%s%s %d %s", port ? "port" : "", port ? (v6 ? "6" : "4") : ip, ntohs(big),
		key[0] == IPPROTO_UDP ? "UDP" : "TCP");
}

static uint32_t slot_value(enum set_id slot_set, const uint8_t *frontend_key, size_t key_len, uint32_t number)
{
	uint8_t key[SET_KEY_MAX];
	const struct element *e;
	uint32_t value;

	memcpy(key, &number, 4);
	memcpy(key + 4, frontend_key, key_len);
	e = find_element(slot_set, key);
	ck_assert_msg(e != NULL, "slot %u is missing", number);
	memcpy(&value, e->value, 4);
	return value;
}

/* Looks up numbers base..base+n-1 as a packet would; with affinity by way of the slots. */
static char *kernel_group(enum set_id endpoint_set, enum set_id slot_set, const uint8_t *frontend_key, size_t key_len,
	uint32_t base, uint32_t n, bool v6, bool sticky)
{
	struct strv list = STRV_INIT;
	struct str out = STR_INIT;

	for (uint32_t i = 0; i < n; i++) {
		uint8_t key[SET_KEY_MAX];
		uint32_t number = sticky ? slot_value(slot_set, frontend_key, key_len, base + i) : base + i;
		const struct element *e;
		char ip[IP_TEXT_MAX];
		uint16_t big;

		memcpy(key, &number, 4);
		memcpy(key + 4, frontend_key, key_len);
		e = find_element(endpoint_set, key);
		ck_assert_msg(e != NULL, "a look-up of number %u of %u misses", i, n);
		inet_ntop(v6 ? AF_INET6 : AF_INET, e->value, ip, sizeof(ip));
		memcpy(&big, e->value + ip_len(v6), 2);
		strv_add_take(&list, xasprintf("%s,%d", ip, ntohs(big)));
	}
	if (list.n)
		qsort(list.v, list.n, sizeof(char *), text_order);
	for (size_t i = 0; i < list.n; i++)
		str_addf(&out, " %s", list.v[i]);
	strv_done(&list);
	return str_take(&out);
}

/* As bits, as in the world; 16: guarded. */
static unsigned kernel_ranges(const uint8_t *frontend_key, bool v6, size_t *used)
{
	size_t len = set_key_len(set_of(SET_GUARDED, v6));
	unsigned bits = 0;

	if (!find_element(set_of(SET_GUARDED, v6), frontend_key))
		return 0;
	for (size_t i = 0; i < kernel.held.n; i++) {
		const struct element *e = &kernel.held.v[i];

		if (e->set != set_of(SET_RANGE, v6) || memcmp(e->key, frontend_key, len) != 0)
			continue;
		++*used;
		for (unsigned r = 0; r < RANGES; r++) {
			struct cidr range;

			ck_assert(cidr_parse(range_texts[r], &range));
			if (range.ip.v6 == v6 && memcmp(e->key + len, range.ip.bytes, ip_len(v6)) == 0 &&
				e->value[len + 1] == (range.prefix == 8 ? 255 : range.ip.bytes[1]))
				bits |= 1U << r;
		}
	}
	return bits | 16;
}

static uint32_t plan_of(enum set_id set, const uint8_t *key)
{
	const struct element *e = find_element(set, key), *chain;
	uint32_t id;

	if (!e)
		return 0;
	memcpy(&id, e->value, 4);
	chain = find_element(plan_set(id), e->value);
	ck_assert_msg(chain != NULL, "no chain for plan %u", id);
	return id;
}

/* How many different words there are in both. */
static size_t distinct(const char *a, const char *b)
{
	struct strv all = STRV_INIT, once = STRV_INIT;
	size_t n;

	strv_split(&all, a, ' ');
	strv_split(&all, b, ' ');
	for (size_t i = 0; i < all.n; i++)
		if (*all.v[i] && !strv_has(&once, all.v[i]))
			strv_add(&once, all.v[i]);
	n = once.n;
	strv_done(&all);
	strv_done(&once);
	return n;
}

static void kernel_line(struct strv *lines, const struct element *e, bool port, bool v6, size_t *endpoints,
	size_t *slots_used, size_t *ranges_used)
{
	enum set_id shift = port ? SET_PORT_DISTANCE : 0;
	size_t len = set_key_len(e->set);
	uint32_t id = plan_of(set_of(SET_FRONTEND + shift, v6), e->key);
	uint32_t local = plan_of(set_of(SET_LOCAL + shift, v6), e->key),
		 inside = plan_of(set_of(SET_INSIDE + shift, v6), e->key);
	enum set_id slots = set_of(SET_SLOT + shift, v6);
	bool refuse = find_element(set_of(SET_REFUSE + shift, v6), e->key),
	     drop = find_element(set_of(SET_DROP + shift, v6), e->key);
	static const char *const flavours[] = { "-", "cluster", "external", "divert" };
	struct plan plan = { 0 }, group_plan = { 0 }, inside_plan = { 0 };
	bool divert, sticky;
	uint32_t n, n_inside;

	ck_assert(!id || plan_parse(id, &plan));
	divert = plan.flavour == FLAVOUR_DIVERT;
	ck_assert(!local || plan_parse(local, &group_plan));
	ck_assert(!inside || plan_parse(inside, &inside_plan));
	if (!divert)
		group_plan = plan;
	sticky = group_plan.affinity_s || inside_plan.affinity_s;
	n = group_plan.affinity_s ? slot_value(slots, e->key, len, COUNT_KEY) & 0xffff : group_plan.n;
	n_inside = inside_plan.affinity_s ? slot_value(slots, e->key, len, INSIDE_COUNT_KEY) & 0xffff : inside_plan.n;
	_cleanup_free_ char *group =
		kernel_group(set_of(SET_ENDPOINT + shift, v6), slots, e->key, len, 0, n, v6, sticky);
	_cleanup_free_ char *in =
		kernel_group(set_of(SET_ENDPOINT + shift, v6), slots, e->key, len, INSIDE_BASE, n_inside, v6, sticky);
	char key[100];

	if (sticky)
		*slots_used += n + n_inside + (n > 0) + (n_inside > 0);
	*endpoints += sticky ? distinct(group, in) : n + n_inside;
	key_text(e, port, v6, key, sizeof(key), e->key);
	ck_assert_msg(!(refuse && drop) && (n > 0) != (refuse || drop), "%s: %u endpoints, refuse %d, drop %d", key, n,
		refuse, drop);
	ck_assert(divert || (!local && !inside));
	strv_add_take(lines, xasprintf("%s %s%u|%s|%s|%s|%x", key, flavours[plan.flavour],
				     MAX(group_plan.affinity_s, inside_plan.affinity_s), group, in,
				     refuse ? "refuse"
				     : drop ? "drop"
					    : "",
				     port ? 0 : kernel_ranges(e->key, v6, ranges_used)));
}

static char *kernel_model(void)
{
	struct strv lines = STRV_INIT;
	size_t endpoints = 0, counted = 0, slots = 0, counted_slots = 0, ranges = 0, counted_ranges = 0;

	for (size_t i = 0; i < kernel.held.n; i++) {
		const struct element *e = &kernel.held.v[i];
		bool port = e->set >= SET_PORT_FRONTEND && e->set < SET_HAIRPIN;
		enum set_id base = port ? e->set - SET_PORT_DISTANCE : e->set;
		bool v6 = (base - SET_FRONTEND) & 1;

		counted_ranges += e->set == SET_RANGE || e->set == SET_RANGE6;
		if (e->set < SET_FRONTEND || e->set >= SET_HAIRPIN)
			continue;
		base -= v6;
		counted += base == SET_ENDPOINT;
		counted_slots += base == SET_SLOT;
		/* Each frontend once: by its frontend element, or by refuse or drop where it has none. */
		if (base == SET_FRONTEND ||
			((base == SET_REFUSE || base == SET_DROP) &&
				!find_element(set_of(SET_FRONTEND + (port ? SET_PORT_DISTANCE : 0), v6), e->key)))
			kernel_line(&lines, e, port, v6, &endpoints, &slots, &ranges);
	}
	ck_assert_msg(ranges == counted_ranges, "%zu range elements, %zu in use", counted_ranges, ranges);
	ck_assert_msg(slots == counted_slots, "%zu slot elements, %zu in use", counted_slots, slots);
	ck_assert_msg(endpoints == counted, "%zu endpoint elements, %zu reachable", counted, endpoints);
	return join_sorted(&lines);
}

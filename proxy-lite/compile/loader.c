/* loader.c - purpose: turn the elements that the kernel lists back into frontends; what fits nowhere is a stray. */
#include "proxy-lite/compile/loader.h"

#include "proxy-lite/compile/diff.h"

#include <arpa/inet.h>

void strays_done(struct strays *strays)
{
	free(strays->v);
	*strays = (struct strays){ 0 };
}

static void add_stray(struct strays *strays, enum set_id set, const uint8_t *key)
{
	if (strays->n == strays->cap) {
		strays->cap = MAX((size_t)16, strays->cap * 2);
		strays->v = xreallocarray(strays->v, strays->cap, sizeof(*strays->v));
	}
	strays->v[strays->n].set = set;
	memcpy(strays->v[strays->n++].key, key, set_key_len(set));
}

const enum set_id *loader_order(void)
{
	static const enum set_id order[SET_COUNT] = { SET_PLAN, SET_LOCAL_PLAN, SET_HAIRPIN, SET_HAIRPIN6, SET_NODEIP,
		SET_NODEIP6, SET_LOCAL, SET_LOCAL6, SET_PORT_LOCAL, SET_PORT_LOCAL6, SET_INSIDE, SET_INSIDE6,
		SET_PORT_INSIDE, SET_PORT_INSIDE6, SET_FRONTEND, SET_FRONTEND6, SET_PORT_FRONTEND, SET_PORT_FRONTEND6,
		SET_REFUSE, SET_REFUSE6, SET_PORT_REFUSE, SET_PORT_REFUSE6, SET_DROP, SET_DROP6, SET_PORT_DROP,
		SET_PORT_DROP6, SET_ENDPOINT, SET_ENDPOINT6, SET_PORT_ENDPOINT, SET_PORT_ENDPOINT6 };

	return order;
}

/* The base set (IPv4, by address) of one of its four forms. */
static enum set_id base_of(enum set_id set, bool *ret_port, bool *ret_v6)
{
	*ret_port = set >= SET_PORT_FRONTEND && set < SET_PORT_FRONTEND + SET_PORT_DISTANCE;
	if (*ret_port)
		set = (enum set_id)(set - SET_PORT_DISTANCE);
	*ret_v6 = (set - SET_FRONTEND) & 1;
	return (enum set_id)(set - *ret_v6);
}

/* False when it is no key that we would write (padding that is not zero). */
static bool parse_key(const uint8_t *bytes, bool port, bool v6, struct frontend_key *ret)
{
	const uint8_t *start = bytes;
	uint8_t again[SET_KEY_MAX];
	struct frontend_key key;
	uint16_t big;

	memset(&key, 0, sizeof(key));
	if (!port) {
		memcpy(key.address, bytes, ip_len(v6));
		bytes += ip_len(v6);
	}
	memcpy(&big, bytes + 4, sizeof(big));
	key.protocol = bytes[0];
	key.port = ntohs(big);
	key.v6 = v6;
	key.node_port = port;
	element_frontend_key(&key, again);
	*ret = key;
	return memcmp(again, start, set_key_len(set_of(port ? SET_PORT_FRONTEND : SET_FRONTEND, v6))) == 0;
}

/* More endpoints than anybody has: what goes beyond is a stray, so that forged elements cannot eat all memory. */
enum { LOADED_MAX = 4 * 1024 * 1024 };

/* Finds or makes the frontend; where it exists with fewer endpoints it is made anew with room for them. NULL when there
 * are too many. */
static struct frontend *frontend_with(struct table *table, const struct frontend_key *key, uint32_t n, uint32_t n_inside)
{
	struct frontend *f = table_find(table, key), *grown;

	if (f && f->n >= n && f->n_inside >= n_inside)
		return f;
	table->n_loaded += n + n_inside;
	if (table->n_loaded > LOADED_MAX)
		return NULL;
	grown = frontend_new(key, f ? MAX(f->n, n) : n, f ? MAX(f->n_inside, n_inside) : n_inside);
	grown->unserved = UNSERVED_ABSENT;
	if (f) {
		grown->flavour = f->flavour;
		table_remove(table, f);
		frontend_free(f);
	}
	table_insert(table, grown);
	return grown;
}

/* An element of frontend, inside or local: it says how many endpoints there are. */
static bool load_lookup(struct table *table, enum set_id base, const struct frontend_key *key, uint32_t id)
{
	struct frontend *f = table_find(table, key);
	struct plan plan;

	if (!plan_parse(id, &plan) || plan.node_port != key->node_port || plan.v6 != key->v6)
		return false;
	switch (plan.flavour) {
	case FLAVOUR_LOCAL:
		return base == SET_LOCAL && frontend_with(table, key, plan.n, 0);
	case FLAVOUR_INSIDE:
		return base == SET_INSIDE && frontend_with(table, key, 0, plan.n);
	case FLAVOUR_DIVERT:
		if (base != SET_FRONTEND || !f)
			return false;
		f->flavour = FLAVOUR_DIVERT;
		return true;
	default:
		if (base != SET_FRONTEND || f || !(f = frontend_with(table, key, plan.n, 0)))
			return false;
		f->flavour = (uint8_t)plan.flavour;
		return true;
	}
}

static bool load_unserved(struct table *table, const struct frontend_key *key, enum unserved unserved)
{
	struct frontend *f = frontend_with(table, key, 0, 0);

	if (!f || f->n || f->unserved != UNSERVED_ABSENT)
		return false;
	f->unserved = (uint8_t)unserved;
	if (f->flavour == FLAVOUR_NONE && !f->n_inside)
		f->flavour = key->node_port ? FLAVOUR_EXTERNAL : FLAVOUR_CLUSTER;
	return true;
}

static bool load_endpoint(struct table *table, const struct frontend_key *key, uint32_t number, const uint8_t *value)
{
	struct frontend *f = table_find(table, key);
	struct backend *b;
	uint16_t big;

	memcpy(&big, value + ip_len(key->v6), sizeof(big));
	if (!f || big == 0)
		return false;
	if (number < f->n)
		b = &f->backends[number];
	else if (number >= INSIDE_BASE && number - INSIDE_BASE < f->n_inside)
		b = &f->backends[f->n + number - INSIDE_BASE];
	else
		return false;
	memcpy(b->address, value, ip_len(key->v6));
	b->port = ntohs(big);
	return true;
}

static bool load_address(struct table *table, enum set_id set, const uint8_t *key)
{
	bool v6 = set == SET_HAIRPIN6 || set == SET_NODEIP6;
	size_t len = ip_len(v6);

	if (set == SET_HAIRPIN || set == SET_HAIRPIN6) {
		struct ref_key ref = { .kind = v6 ? REF_HAIRPIN6 : REF_HAIRPIN };

		if (memcmp(key, key + len, len) != 0)
			return false;
		memcpy(ref.bytes, key, len);
		refs_set_held(&table->refs, &ref, true);
	} else {
		struct ip ip = { .v6 = v6 };

		memcpy(ip.bytes, key, len);
		table->node_ips = xreallocarray(table->node_ips, table->n_node_ips + 1, sizeof(ip));
		table->node_ips[table->n_node_ips++] = ip;
	}
	return true;
}

static bool load(struct table *table, enum set_id set, const uint8_t *key, const uint8_t *value, uint32_t plan)
{
	struct frontend_key fkey;
	enum set_id base;
	bool port, v6;
	uint32_t word;

	memcpy(&word, set_is_verdict(set) ? key : value ? value : key, sizeof(word));
	if (set_is_verdict(set)) {
		struct ref_key ref = ref_plan_key(word);
		struct plan parsed;

		if (plan != word || !plan_parse(word, &parsed) || plan_set(word) != set)
			return false;
		refs_set_held(&table->refs, &ref, true);
		return true;
	}
	if (set >= SET_HAIRPIN)
		return load_address(table, set, key);
	base = base_of(set, &port, &v6);
	if (base == SET_ENDPOINT) {
		memcpy(&word, key, sizeof(word));
		return parse_key(key + 4, port, v6, &fkey) && load_endpoint(table, &fkey, word, value);
	}
	if (!parse_key(key, port, v6, &fkey))
		return false;
	if (base == SET_REFUSE || base == SET_DROP)
		return load_unserved(table, &fkey, base == SET_DROP ? UNSERVED_DROP : UNSERVED_REFUSE);
	return load_lookup(table, base, &fkey, word);
}

void loader_element(struct table *table, struct strays *strays, enum set_id set, const uint8_t *key,
	const uint8_t *value, uint32_t plan)
{
	if (!load(table, set, key, value, plan))
		add_stray(strays, set, key);
}

struct finish {
	struct strays *strays;
	struct frontend **broken;
	size_t n, cap;
};

static void find_broken(void *data, struct frontend *f)
{
	struct finish *finish = data;

	if (f->flavour != FLAVOUR_NONE)
		return;
	if (finish->n == finish->cap) {
		finish->cap = MAX((size_t)16, finish->cap * 2);
		finish->broken = xreallocarray(finish->broken, finish->cap, sizeof(*finish->broken));
	}
	finish->broken[finish->n++] = f;
}

static void stray_element(void *data, enum set_id set, bool add, const uint8_t *key, const uint8_t *value)
{
	(void)add;
	(void)value;
	add_stray(data, set, key);
}

void loader_finish(struct table *table, struct strays *strays)
{
	struct finish finish = { .strays = strays };
	struct element_sink sink = { .element = stray_element, .data = strays };

	table_each(table, find_broken, &finish);
	for (size_t i = 0; i < finish.n; i++) {
		diff_frontend(finish.broken[i], NULL, &sink);
		table_remove(table, finish.broken[i]);
		frontend_free(finish.broken[i]);
	}
	free(finish.broken);
}

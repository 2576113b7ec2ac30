/* loader.c - purpose: turn the elements that the kernel lists back into frontends; what fits nowhere is a stray. */
#include "proxy-lite/compile/loader.h"

#include "proxy-lite/compile/diff.h"

#include <arpa/inet.h>

void strays_done(struct strays *strays)
{
	free(strays->v);
	*strays = (struct strays){ 0 };
}

static void add_stray(struct strays *strays, enum set_id set, const uint8_t *key, const uint8_t *value)
{
	if (strays->n == strays->cap) {
		strays->cap = MAX((size_t)16, strays->cap * 2);
		strays->v = xreallocarray(strays->v, strays->cap, sizeof(*strays->v));
	}
	strays->v[strays->n].set = set;
	memcpy(strays->v[strays->n].key, key, set_key_len(set));
	if (set_spec(set)->interval)
		memcpy(strays->v[strays->n].last, value, set_key_len(set));
	strays->n++;
}

#define FORMS(id)                                                                                                      \
	{ SET_##id, false }, { SET_##id##6, false }, { SET_PORT_##id, false },                                         \
	{                                                                                                              \
		SET_PORT_##id##6, false                                                                                \
	}
#define COUNTS(id)                                                                                                     \
	{ SET_##id, true }, { SET_##id##6, true }, { SET_PORT_##id, true },                                            \
	{                                                                                                              \
		SET_PORT_##id##6, true                                                                                 \
	}

const struct loader_step *loader_steps(void)
{
	static const struct loader_step steps[] = { { SET_PLAN, false }, { SET_LOCAL_PLAN, false }, { SET_DRAW, false },
		{ SET_HAIRPIN, false }, { SET_HAIRPIN6, false }, { SET_NODEIP, false }, { SET_NODEIP6, false },
		COUNTS(SLOT), FORMS(LOCAL), FORMS(INSIDE), FORMS(FRONTEND), FORMS(REFUSE), FORMS(DROP),
		{ SET_GUARDED, false }, { SET_GUARDED6, false }, { SET_RANGE, false }, { SET_RANGE6, false },
		FORMS(SLOT), FORMS(ENDPOINT), { SET_COUNT, false } };

	return steps;
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
static struct frontend *frontend_with(
	struct table *table, const struct frontend_key *key, uint32_t n, uint32_t n_inside)
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
		grown->affinity_s = f->affinity_s;
		grown->local_missing = f->local_missing;
		grown->inside_missing = f->inside_missing;
		grown->guarded = f->guarded;
		grown->n_ranges = f->n_ranges;
		grown->ranges = steal(f->ranges);
		table_remove(table, f);
		frontend_free(f);
	}
	table_insert(table, grown);
	return grown;
}

/* The time-out of an affinity whose count was read, but not yet what leads to it. */
enum { AFFINITY_UNKNOWN = 1 << 30 };

/* How many endpoints a frontend with affinity has. */
static bool load_count(struct table *table, const struct frontend_key *key, uint32_t number, uint32_t draw)
{
	bool inside = number == INSIDE_COUNT_KEY;
	struct frontend *f;
	struct plan plan;

	if (!plan_parse(draw, &plan) || plan.flavour != FLAVOUR_DRAW || plan.v6 != inside)
		return false;
	f = frontend_with(table, key, inside ? 0 : plan.n, inside ? plan.n : 0);
	if (!f)
		return false;
	f->affinity_s = AFFINITY_UNKNOWN;
	*(inside ? &f->inside_missing : &f->local_missing) = true;
	return true;
}

/* What leads to the endpoints of a frontend with affinity. */
static bool load_sticky(struct frontend *f, enum set_id base, const struct plan *plan)
{
	bool known;

	if (!f || !f->affinity_s)
		return false;
	known = f->affinity_s != AFFINITY_UNKNOWN;
	if (known && f->affinity_s != plan->affinity_s)
		return false;
	if (base == SET_LOCAL && plan->flavour == FLAVOUR_LOCAL && f->local_missing)
		f->local_missing = false;
	else if (base == SET_INSIDE && plan->flavour == FLAVOUR_INSIDE && f->inside_missing)
		f->inside_missing = false;
	else if (base == SET_FRONTEND && plan->flavour <= FLAVOUR_EXTERNAL && f->local_missing && !f->n_inside) {
		f->local_missing = false;
		f->flavour = (uint8_t)plan->flavour;
	} else
		return false;
	f->affinity_s = plan->affinity_s;
	return true;
}

/* An element of frontend, inside or local: it says how many endpoints there are. */
static bool load_lookup(struct table *table, enum set_id base, const struct frontend_key *key, uint32_t id)
{
	struct frontend *f = table_find(table, key);
	struct plan plan;

	if (!plan_parse(id, &plan) || plan.node_port != key->node_port || plan.v6 != key->v6)
		return false;
	if (plan.affinity_s)
		return load_sticky(f, base, &plan);
	if (plan.flavour == FLAVOUR_DIVERT) {
		if (base != SET_FRONTEND || !f || f->flavour != FLAVOUR_NONE)
			return false;
		f->flavour = FLAVOUR_DIVERT;
		return true;
	}
	if (f && f->affinity_s)
		return false;
	if (plan.flavour == FLAVOUR_LOCAL)
		return base == SET_LOCAL && frontend_with(table, key, plan.n, 0);
	if (plan.flavour == FLAVOUR_INSIDE)
		return base == SET_INSIDE && frontend_with(table, key, 0, plan.n);
	if (base != SET_FRONTEND || f || plan.flavour > FLAVOUR_EXTERNAL || !(f = frontend_with(table, key, plan.n, 0)))
		return false;
	f->flavour = (uint8_t)plan.flavour;
	return true;
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

static struct backend *backend_at(struct frontend *f, uint32_t number)
{
	if (number < f->n)
		return &f->backends[number];
	if (number >= INSIDE_BASE && number - INSIDE_BASE < f->n_inside)
		return &f->backends[f->n + number - INSIDE_BASE];
	return NULL;
}

static void set_backend(struct backend *b, const uint8_t *value, bool v6, uint16_t port)
{
	memcpy(b->address, value, ip_len(v6));
	b->port = port;
}

static bool load_endpoint(struct table *table, const struct frontend_key *key, uint32_t number, const uint8_t *value)
{
	struct frontend *f = table_find(table, key);
	struct backend *b;
	bool found = false;
	uint16_t big;

	memcpy(&big, value + ip_len(key->v6), sizeof(big));
	if (!f || big == 0)
		return false;
	if (!f->affinity_s) {
		b = backend_at(f, number);
		if (b)
			set_backend(b, value, key->v6, ntohs(big));
		return b != NULL;
	}
	for (uint32_t i = 0; i < f->n + f->n_inside; i++)
		if (f->backends[i].id == number && number) {
			set_backend(&f->backends[i], value, key->v6, ntohs(big));
			found = true;
		}
	return found;
}

static bool load_slot(struct table *table, const struct frontend_key *key, uint32_t number, uint32_t id)
{
	struct frontend *f = table_find(table, key);
	struct backend *b = f && f->affinity_s ? backend_at(f, number) : NULL;

	if (!b || id < FIRST_ID)
		return false;
	b->id = id;
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
		refs_set_held(&table->hairpins, &ref, true);
	} else {
		struct ip ip = { .v6 = v6 };

		memcpy(ip.bytes, key, len);
		table->node_ips = xreallocarray(table->node_ips, table->n_node_ips + 1, sizeof(ip));
		table->node_ips[table->n_node_ips++] = ip;
	}
	return true;
}

static bool load_guard(struct table *table, const uint8_t *bytes, bool v6)
{
	struct frontend_key key;
	struct frontend *f = parse_key(bytes, false, v6, &key) ? table_find(table, &key) : NULL;

	if (f)
		f->guarded = true;
	return f != NULL;
}

/* Only what element_range() makes: a prefix, for one address and port. */
static bool load_range(struct table *table, const uint8_t *first, const uint8_t *last, bool v6)
{
	struct cidr range = { .ip.v6 = v6 };
	size_t at = ip_len(v6) + 8, bits = 0;
	uint8_t again[SET_KEY_MAX], end[SET_KEY_MAX];
	struct frontend_key key;
	struct frontend *f = parse_key(first, false, v6, &key) ? table_find(table, &key) : NULL;

	if (!f || !f->guarded)
		return false;
	memcpy(range.ip.bytes, first + at, ip_len(v6));
	while (bits < ip_len(v6) * 8 && !((first[at + bits / 8] ^ last[at + bits / 8]) & (0x80 >> bits % 8)))
		bits++;
	range.prefix = (uint8_t)bits;
	element_range(&key, &range, again, end);
	if (memcmp(again, first, set_key_len(SET_RANGE + v6)) != 0 ||
		memcmp(end, last, set_key_len(SET_RANGE + v6)) != 0)
		return false;
	f->ranges = xreallocarray(f->ranges, f->n_ranges + 1, sizeof(range));
	f->ranges[f->n_ranges++] = range;
	return true;
}

static bool load_verdict(struct table *table, enum set_id set, uint32_t id, uint32_t plan)
{
	struct ref_key ref = ref_plan_key(id);
	struct plan parsed;

	if (plan != id || !plan_parse(id, &parsed) || plan_set(id) != set)
		return false;
	refs_set_held(&table->plans, &ref, true);
	return true;
}

/* Keys that begin with a number. */
static bool load_numbered(struct table *table, const struct loader_step *step, enum set_id base,
	const struct frontend_key *key, uint32_t number, const uint8_t *value)
{
	bool count = number == COUNT_KEY || number == INSIDE_COUNT_KEY;
	uint32_t word;

	if (base == SET_ENDPOINT)
		return load_endpoint(table, key, number, value);
	memcpy(&word, value, sizeof(word));
	if (count != step->counts)
		return true; /* in the other round */
	return count ? load_count(table, key, number, word) : load_slot(table, key, number, word);
}

static bool load(
	struct table *table, const struct loader_step *step, const uint8_t *key, const uint8_t *value, uint32_t plan)
{
	struct frontend_key fkey;
	enum set_id base;
	bool port, v6;
	uint32_t word;

	memcpy(&word, key, sizeof(word));
	if (set_is_verdict(step->set))
		return load_verdict(table, step->set, word, plan);
	if (step->set >= SET_RANGE)
		return load_range(table, key, value, step->set == SET_RANGE6);
	if (step->set >= SET_GUARDED)
		return load_guard(table, key, step->set == SET_GUARDED6);
	if (step->set >= SET_HAIRPIN)
		return load_address(table, step->set, key);
	base = base_of(step->set, &port, &v6);
	if (base == SET_ENDPOINT || base == SET_SLOT)
		return parse_key(key + 4, port, v6, &fkey) ? load_numbered(table, step, base, &fkey, word, value)
							   : step->counts;
	if (!parse_key(key, port, v6, &fkey))
		return false;
	if (base == SET_REFUSE || base == SET_DROP)
		return load_unserved(table, &fkey, base == SET_DROP ? UNSERVED_DROP : UNSERVED_REFUSE);
	memcpy(&word, value, sizeof(word));
	return load_lookup(table, base, &fkey, word);
}

void loader_element(struct table *table, struct strays *strays, const struct loader_step *step, const uint8_t *key,
	const uint8_t *value, uint32_t plan)
{
	if (!load(table, step, key, value, plan))
		add_stray(strays, step->set, key, value);
}

struct finish {
	struct strays *strays;
	struct frontend **broken;
	size_t n, cap;
};

static void find_broken(void *data, struct frontend *f)
{
	struct finish *finish = data;

	if (f->flavour != FLAVOUR_NONE && f->affinity_s != AFFINITY_UNKNOWN)
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
	add_stray(data, set, key, value);
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

/* frontend.c - purpose: one address and port that we serve, and the endpoints behind it in the order of their numbers.
 */
#include "proxy-lite/compile/frontend.h"

#include <netinet/in.h>
#include <stdio.h>

struct frontend *frontend_new(const struct frontend_key *key, uint32_t n, uint32_t n_inside)
{
	struct frontend *f = xcalloc(1, sizeof(*f) + ((size_t)n + n_inside) * sizeof(struct backend));

	f->key = *key;
	f->n = n;
	f->n_inside = n_inside;
	return f;
}

struct frontend *frontend_free(struct frontend *frontend)
{
	if (frontend)
		free(frontend->ranges);
	free(frontend);
	return NULL;
}

uint32_t frontend_key_hash(const struct frontend_key *key, uint32_t seed)
{
	const uint8_t *p = (const uint8_t *)key;
	uint64_t h = seed ^ 0x9e3779b97f4a7c15u;

	for (size_t i = 0; i < sizeof(*key); i++)
		h = (h ^ p[i]) * 0x100000001b3u;
	h ^= h >> 29;
	h *= 0xbf58476d1ce4e5b9u;
	return (uint32_t)(h >> 32);
}

bool frontend_key_equal(const struct frontend_key *a, const struct frontend_key *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

const char *protocol_name(uint8_t protocol)
{
	return protocol == IPPROTO_TCP	  ? "TCP"
	       : protocol == IPPROTO_UDP  ? "UDP"
	       : protocol == IPPROTO_SCTP ? "SCTP"
					  : "?";
}

const char *frontend_key_format(const struct frontend_key *key, char *buf)
{
	struct ip ip = { .v6 = key->v6 };
	char text[IP_TEXT_MAX];

	memcpy(ip.bytes, key->address, sizeof(ip.bytes));
	if (key->node_port)
		snprintf(buf, FRONTEND_TEXT_MAX, "node port %u/%s IPv%c", key->port, protocol_name(key->protocol),
			key->v6 ? '6' : '4');
	else
		snprintf(buf, FRONTEND_TEXT_MAX, key->v6 ? "[%s]:%u/%s" : "%s:%u/%s", ip_format(&ip, text), key->port,
			protocol_name(key->protocol));
	return buf;
}

static bool backend_same_address(const struct backend *a, const struct backend *b)
{
	return a->port == b->port && memcmp(a->address, b->address, sizeof(a->address)) == 0;
}

static int backend_order(const void *pa, const void *pb)
{
	const struct backend *a = pa, *b = pb;
	int r = memcmp(a->address, b->address, sizeof(a->address));

	return r ? r : (int)a->port - (int)b->port;
}

/* wanted[n] is reordered against held[n_held]. n log n, because one Service may have 10 000 endpoints. */
static void renumber(struct backend *wanted, uint32_t n, const struct backend *held, uint32_t n_held)
{
	_cleanup_free_ struct backend *sorted = NULL;
	_cleanup_free_ bool *used = NULL;
	uint32_t next = 0;

	if (n == 0)
		return;
	sorted = xmemdup(wanted, n * sizeof(*wanted));
	used = xcalloc(n, sizeof(*used));
	qsort(sorted, n, sizeof(*sorted), backend_order);
	/* A zero port marks the numbers that nobody keeps. */
	for (uint32_t i = 0; i < n; i++) {
		const struct backend *stays = i < n_held && held[i].port
						      ? bsearch(&held[i], sorted, n, sizeof(*sorted), backend_order)
						      : NULL;

		wanted[i].port = 0;
		if (stays && !used[stays - sorted]) {
			used[stays - sorted] = true;
			wanted[i] = *stays;
		}
	}
	for (uint32_t i = 0; i < n; i++) {
		if (wanted[i].port)
			continue;
		while (used[next])
			next++;
		used[next] = true;
		wanted[i] = sorted[next];
	}
}

struct identified {
	struct backend backend;
	struct backend *where;
};

static int identified_order(const void *a, const void *b)
{
	return backend_order(&((const struct identified *)a)->backend, &((const struct identified *)b)->backend);
}

/* All endpoints of both groups that have an id, sorted by address; the caller frees. */
static struct identified *identified(const struct frontend *f, uint32_t *ret_n)
{
	struct identified *v = xcalloc((size_t)f->n + f->n_inside + 1, sizeof(*v));
	uint32_t n = 0;

	for (uint32_t i = 0; i < f->n + f->n_inside; i++)
		if (f->backends[i].id && f->backends[i].port)
			v[n++] = (struct identified){ f->backends[i], NULL };
	qsort(v, n, sizeof(*v), identified_order);
	*ret_n = n;
	return v;
}

/* Who had an id keeps it; others get the next ones. The same endpoint in both groups has one id. */
static void give_ids(struct frontend *wanted, const struct frontend *held)
{
	_cleanup_free_ struct identified *old = NULL;
	uint32_t n_old = 0, next = FIRST_ID, all = wanted->n + wanted->n_inside;
	_cleanup_free_ struct identified *v = xcalloc((size_t)all + 1, sizeof(*v));

	if (held && held->affinity_s) {
		old = identified(held, &n_old);
		for (uint32_t i = 0; i < n_old; i++)
			next = MAX(next, old[i].backend.id + 1);
	}
	if (next < FIRST_ID || next > UINT32_MAX - 2 * FRONTEND_ENDPOINTS_MAX) /* ran over after years */
		next = FIRST_ID;
	for (uint32_t i = 0; i < all; i++)
		v[i] = (struct identified){ wanted->backends[i], &wanted->backends[i] };
	qsort(v, all, sizeof(*v), identified_order);
	for (uint32_t i = 0; i < all; i++) {
		const struct identified *had =
			n_old ? bsearch(&v[i], old, n_old, sizeof(*old), identified_order) : NULL;

		if (i && backend_same_address(&v[i - 1].backend, &v[i].backend))
			v[i].where->id = v[i - 1].where->id;
		else
			v[i].where->id = had ? had->backend.id : next++;
	}
}

void frontend_renumber(struct frontend *wanted, const struct frontend *held)
{
	static const struct backend none[1];

	renumber(wanted->backends, wanted->n, held ? held->backends : none, held ? held->n : 0);
	renumber(wanted->backends + wanted->n, wanted->n_inside, held ? held->backends + held->n : none,
		held ? held->n_inside : 0);
	if (wanted->affinity_s)
		give_ids(wanted, held);
}

static int cidr_order(const void *pa, const void *pb)
{
	const struct cidr *a = pa, *b = pb;
	int r = memcmp(a->ip.bytes, b->ip.bytes, sizeof(a->ip.bytes));

	return r ? r : (int)a->prefix - (int)b->prefix;
}

void frontend_guard(struct frontend *f, const struct cidr *ranges, size_t n)
{
	uint32_t kept = 0;

	f->guarded = true;
	f->n_ranges = 0;
	free(f->ranges);
	f->ranges = xcalloc(n + 1, sizeof(*f->ranges));
	for (size_t i = 0; i < n; i++)
		if (ranges[i].ip.v6 == f->key.v6)
			f->ranges[f->n_ranges++] = ranges[i];
	qsort(f->ranges, f->n_ranges, sizeof(*f->ranges), cidr_order);
	/* Sorted, a range stands right before all that it contains; two ranges never overlap otherwise. */
	for (uint32_t i = 0; i < f->n_ranges; i++)
		if (kept == 0 || !cidr_contains(&f->ranges[kept - 1], &f->ranges[i].ip))
			f->ranges[kept++] = f->ranges[i];
	f->n_ranges = kept;
}

static bool guard_same(const struct frontend *a, const struct frontend *b)
{
	if (a->guarded != b->guarded || a->n_ranges != b->n_ranges)
		return false;
	for (uint32_t i = 0; i < a->n_ranges; i++)
		if (cidr_order(&a->ranges[i], &b->ranges[i]) != 0)
			return false;
	return true;
}

bool frontend_same(const struct frontend *a, const struct frontend *b)
{
	if (a->flavour != b->flavour || a->n != b->n || a->n_inside != b->n_inside || a->affinity_s != b->affinity_s)
		return false;
	if ((a->n == 0 && a->unserved != b->unserved) || !guard_same(a, b))
		return false;
	for (uint32_t i = 0; i < a->n + a->n_inside; i++)
		if (!backend_same_address(&a->backends[i], &b->backends[i]) ||
			a->backends[i].local != b->backends[i].local || a->backends[i].id != b->backends[i].id)
			return false;
	return true;
}

/* Without affinity: flavour, node port, family, and below 65536 how many endpoints: nft prints it as "4:3". With
 * affinity the highest bit, flavour, node port, family, and 17 bits of seconds. */
enum { STICKY_SHIFT = 31, SECONDS_BITS = 17 };

uint32_t plan_id(enum flavour flavour, bool node_port, bool v6, uint32_t n)
{
	return (uint32_t)flavour << 18 | (uint32_t)node_port << 17 | (uint32_t)v6 << 16 | n;
}

uint32_t plan_sticky_id(enum flavour flavour, bool node_port, bool v6, uint32_t affinity_s)
{
	return (uint32_t)1 << STICKY_SHIFT | (uint32_t)flavour << 19 | (uint32_t)node_port << 18 |
	       (uint32_t)v6 << SECONDS_BITS | affinity_s;
}

static bool parse_sticky(uint32_t id, struct plan *plan)
{
	uint32_t flavour = id >> 19 & 0xfff;

	*plan = (struct plan){ (enum flavour)flavour, id >> 18 & 1, id >> SECONDS_BITS & 1, 0,
		id & ((1 << SECONDS_BITS) - 1) };
	return plan->affinity_s &&
	       (flavour == FLAVOUR_CLUSTER || flavour == FLAVOUR_EXTERNAL || flavour == FLAVOUR_INSIDE ||
		       flavour == FLAVOUR_LOCAL || flavour == FLAVOUR_HIT);
}

bool plan_parse(uint32_t id, struct plan *ret)
{
	struct plan plan;
	bool good;

	if (id >> STICKY_SHIFT) {
		good = parse_sticky(id, &plan);
	} else {
		plan = (struct plan){ (enum flavour)(id >> 18), id >> 17 & 1, id >> 16 & 1, id & 0xffff, 0 };
		good = plan.flavour > FLAVOUR_NONE && plan.flavour < FLAVOUR_HIT &&
		       (plan.flavour == FLAVOUR_DIVERT) == (plan.n == 0);
	}
	if (!good || (plan.node_port && plan.flavour == FLAVOUR_CLUSTER) ||
		(plan.flavour == FLAVOUR_DRAW && plan.node_port))
		return false;
	*ret = plan;
	return true;
}

const char *plan_chain_name(uint32_t id, char *buf)
{
	static const char *const names[] = { "?", "cluster", "external", "divert", "inside", "local", "draw", "hit" };
	struct plan plan;
	const char *port, *name;
	char family;

	if (!plan_parse(id, &plan)) {
		snprintf(buf, PLAN_NAME_MAX, "unknown_%u", id);
		return buf;
	}
	port = plan.node_port ? "port" : "";
	name = names[plan.flavour];
	family = plan.v6 ? '6' : '4';
	if (plan.affinity_s)
		snprintf(buf, PLAN_NAME_MAX, plan.flavour == FLAVOUR_HIT ? "%s%s%c_%u" : "%s%s%c_sticky_%u", port, name,
			family, plan.affinity_s);
	else if (plan.flavour == FLAVOUR_DIVERT)
		snprintf(buf, PLAN_NAME_MAX, "%s%s%c", port, name, family);
	else if (plan.flavour == FLAVOUR_DRAW)
		snprintf(buf, PLAN_NAME_MAX, plan.v6 ? "drawinside_%u" : "draw_%u", plan.n);
	else
		snprintf(buf, PLAN_NAME_MAX, "%s%s%c_%u", port, name, family, plan.n);
	return buf;
}

enum set_id plan_set(uint32_t id)
{
	struct plan plan = { 0 };

	if (!plan_parse(id, &plan) || plan.flavour == FLAVOUR_HIT)
		return SET_COUNT;
	if (plan.flavour == FLAVOUR_DRAW)
		return SET_DRAW;
	return plan.flavour == FLAVOUR_INSIDE || plan.flavour == FLAVOUR_LOCAL ? SET_LOCAL_PLAN : SET_PLAN;
}

uint32_t plan_draw_id(bool inside, uint32_t n)
{
	return plan_id(FLAVOUR_DRAW, false, inside, n);
}

uint32_t frontend_group_plan(const struct frontend *f, bool inside)
{
	enum flavour flavour = f->flavour == FLAVOUR_DIVERT || f->flavour == FLAVOUR_NONE
				       ? (inside ? FLAVOUR_INSIDE : FLAVOUR_LOCAL)
				       : (enum flavour)f->flavour;

	if (f->affinity_s)
		return plan_sticky_id(flavour, f->key.node_port, f->key.v6, f->affinity_s);
	return plan_id(flavour, f->key.node_port, f->key.v6, inside ? f->n_inside : f->n);
}

void frontend_plans(const struct frontend *f, void (*use)(void *data, uint32_t plan_id), void *data)
{
	bool port = f->key.node_port, v6 = f->key.v6;

	if (f->affinity_s && (f->n || f->n_inside))
		use(data, plan_sticky_id(FLAVOUR_HIT, port, v6, f->affinity_s));
	for (int inside = 0; inside < 2; inside++) {
		uint32_t n = inside ? f->n_inside : f->n;

		if (n && f->affinity_s)
			use(data, plan_draw_id(inside, n));
		if (n)
			use(data, frontend_group_plan(f, inside));
	}
	if (f->flavour == FLAVOUR_DIVERT && (f->n || f->n_inside))
		use(data, plan_id(FLAVOUR_DIVERT, port, v6, 0));
}

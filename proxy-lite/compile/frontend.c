/* frontend.c - purpose: one address and port that we serve, and the endpoints behind it in the order of their numbers. */
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
	return protocol == IPPROTO_TCP ? "TCP" : protocol == IPPROTO_UDP ? "UDP" : protocol == IPPROTO_SCTP ? "SCTP" : "?";
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
		const struct backend *stays =
			i < n_held && held[i].port ? bsearch(&held[i], sorted, n, sizeof(*sorted), backend_order) : NULL;

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

void frontend_renumber(struct frontend *wanted, const struct frontend *held)
{
	static const struct backend none[1];

	renumber(wanted->backends, wanted->n, held ? held->backends : none, held ? held->n : 0);
	renumber(wanted->backends + wanted->n, wanted->n_inside, held ? held->backends + held->n : none,
		held ? held->n_inside : 0);
}

bool frontend_same(const struct frontend *a, const struct frontend *b)
{
	if (a->flavour != b->flavour || a->n != b->n || a->n_inside != b->n_inside)
		return false;
	if (a->n == 0 && a->unserved != b->unserved)
		return false;
	for (uint32_t i = 0; i < a->n + a->n_inside; i++)
		if (!backend_same_address(&a->backends[i], &b->backends[i]) || a->backends[i].local != b->backends[i].local)
			return false;
	return true;
}

/* Major number: flavour, node port, family; minor number: how many endpoints. nft prints it as "5:3". */
uint32_t plan_id(enum flavour flavour, bool node_port, bool v6, uint32_t n)
{
	return (uint32_t)flavour << 18 | (uint32_t)node_port << 17 | (uint32_t)v6 << 16 | n;
}

bool plan_parse(uint32_t id, struct plan *ret)
{
	uint32_t flavour = id >> 18;

	if (flavour == FLAVOUR_NONE || flavour > FLAVOUR_LOCAL)
		return false;
	*ret = (struct plan){ (enum flavour)flavour, id >> 17 & 1, id >> 16 & 1, id & 0xffff };
	return (ret->flavour == FLAVOUR_DIVERT) == (ret->n == 0) && !(ret->node_port && ret->flavour == FLAVOUR_CLUSTER);
}

const char *plan_chain_name(uint32_t id, char *buf)
{
	static const char *const names[] = { "?", "cluster", "external", "divert", "inside", "local" };
	struct plan plan;

	if (!plan_parse(id, &plan))
		snprintf(buf, PLAN_NAME_MAX, "unknown_%u", id);
	else if (plan.flavour == FLAVOUR_DIVERT)
		snprintf(buf, PLAN_NAME_MAX, "%s%s%c", plan.node_port ? "port" : "", names[plan.flavour], plan.v6 ? '6' : '4');
	else
		snprintf(buf, PLAN_NAME_MAX, "%s%s%c_%u", plan.node_port ? "port" : "", names[plan.flavour],
			plan.v6 ? '6' : '4', plan.n);
	return buf;
}

enum set_id plan_set(uint32_t id)
{
	enum flavour flavour = (enum flavour)(id >> 18);

	return flavour == FLAVOUR_INSIDE || flavour == FLAVOUR_LOCAL ? SET_LOCAL_PLAN : SET_PLAN;
}

void frontend_plans(const struct frontend *f, void (*use)(void *data, uint32_t plan_id), void *data)
{
	bool port = f->key.node_port, v6 = f->key.v6;

	if (f->flavour != FLAVOUR_DIVERT) {
		if (f->n)
			use(data, plan_id(f->flavour, port, v6, f->n));
		return;
	}
	if (f->n || f->n_inside)
		use(data, plan_id(FLAVOUR_DIVERT, port, v6, 0));
	if (f->n)
		use(data, plan_id(FLAVOUR_LOCAL, port, v6, f->n));
	if (f->n_inside)
		use(data, plan_id(FLAVOUR_INSIDE, port, v6, f->n_inside));
}

/* elements.c - purpose: what a Service with its slices wants: frontends and the endpoints behind each. */
#include "proxy-lite/compile/elements.h"

/* The endpoints of one Service port and family that may be used, each once. */
struct choice {
	struct backend *all;   /* for policy Cluster */
	struct backend *local; /* on this node, for policy Local */
	uint32_t n_all, n_local;
	bool any; /* some endpoint exists for any client, perhaps elsewhere */
};

struct candidate {
	struct backend backend;
	uint16_t flags;
};

struct candidates {
	struct candidate *v;
	size_t n, cap;
};

static int candidate_order(const void *pa, const void *pb)
{
	const struct candidate *a = pa, *b = pb;
	int r = memcmp(a->backend.address, b->backend.address, sizeof(a->backend.address));

	return r ? r : (int)a->backend.port - (int)b->backend.port;
}

static void collect_slice(struct candidates *list, const struct slice *slice, uint16_t port)
{
	if (list->n + slice->n_endpoints > list->cap) {
		list->cap = (list->n + slice->n_endpoints) * 2;
		list->v = xreallocarray(list->v, list->cap, sizeof(*list->v));
	}
	for (size_t i = 0; i < slice->n_endpoints; i++) {
		const struct endpoint *e = &slice->endpoints[i];
		struct candidate c = { .flags = e->flags };

		if (!(e->flags & (ENDPOINT_READY | ENDPOINT_SERVING)))
			continue;
		memcpy(c.backend.address, e->address, sizeof(c.backend.address));
		c.backend.port = port;
		/* An endpoint that says no node may well be on ours. */
		c.backend.local = (e->flags & ENDPOINT_LOCAL) || !(e->flags & ENDPOINT_PLACED);
		list->v[list->n++] = c;
	}
}

/* While an endpoint moves between slices it is in two of them: one is enough, and any that calls it ready is right. */
static void unite_repeated(struct candidates *list)
{
	size_t n = 0;

	qsort(list->v, list->n, sizeof(*list->v), candidate_order);
	for (size_t i = 0; i < list->n; i++) {
		if (n && candidate_order(&list->v[n - 1], &list->v[i]) == 0) {
			list->v[n - 1].flags |= list->v[i].flags;
			list->v[n - 1].backend.local |= list->v[i].backend.local;
		} else {
			list->v[n++] = list->v[i];
		}
	}
	list->n = n;
}

static void collect(
	struct candidates *list, const struct service_entry *entry, const struct service_port *port, bool v6)
{
	for (uint32_t s = 0; s < entry->n_slices; s++) {
		const struct slice *slice = entry->slices[s];

		if (slice->v6 != v6)
			continue;
		for (size_t p = 0; p < slice->n_ports; p++)
			if (slice->ports[p].protocol == port->protocol && str_eq(slice->ports[p].name, port->name))
				collect_slice(list, slice, slice->ports[p].port);
	}
	if (list->n > 1)
		unite_repeated(list);
}

/* Hints count only when every usable endpoint has one and at least one is for us; nodes come before zones. */
static uint16_t hint_filter(const struct candidates *list)
{
	uint16_t all = ENDPOINT_NODE_HINT | ENDPOINT_ZONE_HINT, some = 0;

	for (size_t i = 0; i < list->n; i++)
		if (list->v[i].flags & ENDPOINT_READY) {
			all &= list->v[i].flags;
			some |= list->v[i].flags;
		}
	if ((all & ENDPOINT_NODE_HINT) && (some & ENDPOINT_OUR_NODE))
		return ENDPOINT_OUR_NODE;
	if ((all & ENDPOINT_ZONE_HINT) && (some & ENDPOINT_OUR_ZONE))
		return ENDPOINT_OUR_ZONE;
	return 0;
}

/* Those with all flags of `need`: ready ones, or if there are none, terminating ones that still serve. */
static uint32_t pick(const struct candidates *list, uint16_t need, uint16_t hint, struct backend **ret)
{
	static const uint16_t ranks[] = { ENDPOINT_READY, ENDPOINT_SERVING | ENDPOINT_TERMINATING };
	uint32_t n = 0;

	*ret = NULL;
	for (unsigned rank = 0; rank < ARRAY_LEN(ranks) && n == 0; rank++) {
		uint16_t want = need | ranks[rank] | (rank == 0 ? hint : 0);

		for (size_t i = 0; i < list->n && n < FRONTEND_ENDPOINTS_MAX; i++)
			if ((list->v[i].flags & want) == want) {
				if (!*ret)
					*ret = xcalloc(list->n, sizeof(**ret));
				(*ret)[n++] = list->v[i].backend;
			}
	}
	return n;
}

static void choose(const struct service_entry *entry, const struct service_port *port, bool v6, struct choice *ret)
{
	struct candidates list = { 0 };
	const struct service *service = entry->service;

	*ret = (struct choice){ 0 };
	collect(&list, entry, port, v6);
	ret->n_all = pick(&list, 0, hint_filter(&list), &ret->all);
	ret->any = ret->n_all > 0;
	if (service->internal_local || service->external_local)
		ret->n_local = pick(&list, ENDPOINT_LOCAL, 0, &ret->local);
	free(list.v);
}

struct build {
	struct service_entry *entry;
	const struct service_port *port;
	const struct choice *choice;
	bool v6;
	struct frontend **tail;
};

static struct frontend *add(struct build *b, const struct ip *ip, uint16_t port, bool use_local, bool inside)
{
	const struct choice *c = b->choice;
	uint32_t n = use_local ? c->n_local : c->n_all, n_inside = inside ? c->n_all : 0;
	struct frontend_key key;
	struct frontend *f;

	memset(&key, 0, sizeof(key));
	key.port = port;
	key.protocol = b->port->protocol;
	key.v6 = b->v6;
	key.node_port = ip == NULL;
	if (ip)
		memcpy(key.address, ip->bytes, sizeof(key.address));
	f = frontend_new(&key, n, n_inside);
	if (n)
		memcpy(f->backends, use_local ? c->local : c->all, n * sizeof(*f->backends));
	if (n_inside)
		memcpy(f->backends + n, c->all, n_inside * sizeof(*f->backends));
	/* Silence, not refusal, where others may get an answer. */
	f->unserved = use_local && c->any ? UNSERVED_DROP : UNSERVED_REFUSE;
	f->affinity_s = b->entry->service->affinity_s;
	f->owner = b->entry;
	*b->tail = f;
	b->tail = &f->next_owned;
	return f;
}

static struct frontend *add_outside(struct build *b, const struct ip *ip, uint16_t port)
{
	bool local = b->entry->service->external_local;
	struct frontend *f = add(b, ip, port, local, local);

	f->flavour = local ? FLAVOUR_DIVERT : FLAVOUR_EXTERNAL;
	return f;
}

static void add_external_ip(struct build *b, const struct service_outside *out, size_t i)
{
	struct frontend *f;

	if (out->external_ips[i].v6 != b->v6)
		return;
	f = add_outside(b, &out->external_ips[i], b->port->port);
	if (out->guarded && i + out->n_balancer_ips >= out->n_external_ips)
		frontend_guard(f, out->source_ranges, out->n_source_ranges);
}

static void compile_port(struct build *b)
{
	const struct service *service = b->entry->service;
	const struct service_outside *out = service->outside;

	for (unsigned i = 0; i < service->n_cluster_ips; i++)
		if (service->cluster_ips[i].v6 == b->v6)
			add(b, &service->cluster_ips[i], b->port->port, service->internal_local, false)->flavour =
				FLAVOUR_CLUSTER;
	if (b->port->node_port)
		add_outside(b, NULL, b->port->node_port);
	for (size_t i = 0; out && i < out->n_external_ips; i++)
		add_external_ip(b, out, i);
}

static bool has_family(const struct service *service, bool v6)
{
	for (unsigned i = 0; i < service->n_cluster_ips; i++)
		if (service->cluster_ips[i].v6 == v6)
			return true;
	return false;
}

struct frontend *elements_compile(struct service_entry *entry)
{
	struct frontend *first = NULL;
	struct build b = { .entry = entry, .tail = &first };

	if (!entry->service)
		return NULL;
	for (unsigned v6 = 0; v6 < 2; v6++) {
		if (!has_family(entry->service, v6))
			continue;
		for (size_t i = 0; i < entry->service->n_ports; i++) {
			struct choice choice;

			b.port = &entry->service->ports[i];
			b.v6 = v6;
			b.choice = &choice;
			choose(entry, b.port, v6, &choice);
			compile_port(&b);
			free(choice.all);
			free(choice.local);
		}
	}
	return first;
}

void elements_free(struct frontend *list)
{
	while (list) {
		struct frontend *next = list->next_owned;

		frontend_free(list);
		list = next;
	}
}

/*
 * change_test.c - purpose: random walks of Services against an independent slow model, through a pretended kernel.
 *
 * The world is a small pool of Services and slices, kept as plain structs. A step changes one at random, gives it to the
 * model as JSON, and now and then plans, writes to the pretended kernel and compares what that holds with what the slow
 * model says. Transactions are dropped at random, the table is read back at random, also after the kernel's content was
 * damaged at random. CK_SEED and CK_STEPS (environment) choose another or a longer walk.
 */
#include "common/base/str.h"
#include "proxy-lite/compile/change.h"
#include "proxy-lite/compile/flows.h"
#include "proxy-lite/compile/loader.h"

#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <stdio.h>

enum { SERVICES = 8, SLICES = 12, PORTS = 2, ENDPOINTS = 5, ADDRESSES = 6 };

/* ---- the world ---- */

/* Some contain others. */
static const char *const range_texts[] = { "10.0.0.0/8", "10.1.0.0/16", "192.0.2.0/24", "fd00::/16" };
enum { RANGES = ARRAY_LEN(range_texts) };

struct world_service {
	bool exists, v6, dual, node_port, internal_local, external_local, external_ip, sticky, balancer;
	unsigned ranges; /* bits: which source ranges; 0: not guarded */
	int ip, created, ports;
	struct {
		int port, node_port;
		bool udp;
	} port[PORTS];
};

struct world_endpoint {
	int address;
	bool ready, serving, terminating, local, placed;
};

struct world_slice {
	bool exists, v6;
	int service, n, ports;
	struct world_endpoint endpoints[ENDPOINTS];
};

static struct {
	struct world_service services[SERVICES];
	struct world_slice slices[SLICES];
} world;

static unsigned pick_number(unsigned n)
{
	return (unsigned)random() % n;
}

static bool chance(unsigned percent)
{
	return pick_number(100) < percent;
}

static void random_service(struct world_service *s)
{
	*s = (struct world_service){ .exists = chance(80), .v6 = chance(30), .dual = chance(30), .node_port = chance(50),
		.internal_local = chance(20), .external_local = chance(40), .external_ip = chance(20), .sticky = chance(35) };
	s->balancer = s->node_port && chance(40);
	s->ranges = s->balancer ? pick_number(1 << RANGES) : 0;
	s->ip = (int)pick_number(6);
	s->created = (int)pick_number(3);
	s->ports = 1 + (int)pick_number(PORTS);
	for (int i = 0; i < s->ports; i++) {
		s->port[i].port = 80 + i;
		s->port[i].node_port = 30000 + (int)pick_number(4) * 2 + i;
		s->port[i].udp = chance(40);
	}
}

static void random_slice(struct world_slice *s)
{
	*s = (struct world_slice){ .exists = chance(85), .v6 = chance(35) };
	s->service = (int)pick_number(SERVICES);
	s->n = (int)pick_number(ENDPOINTS + 1);
	s->ports = 1 + (int)pick_number(PORTS);
	for (int i = 0; i < s->n; i++) {
		struct world_endpoint *e = &s->endpoints[i];

		e->address = (int)pick_number(ADDRESSES);
		e->ready = chance(70);
		e->serving = e->ready || chance(50);
		e->terminating = !e->ready && chance(60);
		e->placed = chance(80);
		e->local = e->placed && chance(50);
	}
}

static json_t *service_json(int i)
{
	const struct world_service *s = &world.services[i];
	_cleanup_(str_done) struct str t = STR_INIT;
	json_error_t error;
	json_t *json;

	str_addf(&t, "{\"metadata\":{\"namespace\":\"n\",\"name\":\"s%d\",\"creationTimestamp\":\"2026-01-0%dT00:00:00Z\"},\"spec\":{", i,
		1 + s->created);
	str_addf(&t, "\"type\":\"%s\",\"clusterIPs\":[", s->balancer ? "LoadBalancer" : s->node_port ? "NodePort" : "ClusterIP");
	if (!s->v6 || s->dual)
		str_addf(&t, "\"10.0.0.%d\"%s", s->ip + 1, s->dual ? "," : "");
	if (s->v6 || s->dual)
		str_addf(&t, "\"fd00::%d\"", s->ip + 1);
	str_addf(&t, "],\"internalTrafficPolicy\":\"%s\",\"externalTrafficPolicy\":\"%s\"", s->internal_local ? "Local" : "Cluster",
		s->external_local ? "Local" : "Cluster");
	if (s->sticky)
		str_addf(&t, ",\"sessionAffinity\":\"ClientIP\",\"sessionAffinityConfig\":{\"clientIP\":{\"timeoutSeconds\":%d}}",
			100 + s->created);
	if (s->external_ip)
		str_addf(&t, ",\"externalIPs\":[\"192.0.2.%d\"]", s->ip + 1);
	str_add(&t, ",\"ports\":[");
	for (int p = 0; p < s->ports; p++)
		str_addf(&t, "%s{\"name\":\"p%d\",\"protocol\":\"%s\",\"port\":%d,\"nodePort\":%d}", p ? "," : "", p,
			s->port[p].udp ? "UDP" : "TCP", s->port[p].port, s->port[p].node_port);
	str_add(&t, "]");
	for (unsigned r = 0, first = 1; r < RANGES; r++)
		if (s->ranges >> r & 1) {
			str_addf(&t, "%s\"%s\"", first ? ",\"loadBalancerSourceRanges\":[" : ",", range_texts[r]);
			first = 0;
		}
	str_addf(&t, "%s},\"status\":{\"loadBalancer\":{\"ingress\":[{\"ip\":\"198.51.100.%d\"}]}}}", s->ranges ? "]" : "", s->ip + 1);
	json = json_loads(t.buf, 0, &error);
	ck_assert_msg(json != NULL, "%s: %s", error.text, t.buf);
	return json;
}

static json_t *slice_json(int i)
{
	const struct world_slice *s = &world.slices[i];
	_cleanup_(str_done) struct str t = STR_INIT;
	json_error_t error;
	json_t *json;

	str_addf(&t,
		"{\"metadata\":{\"namespace\":\"n\",\"name\":\"e%d\",\"labels\":{\"kubernetes.io/service-name\":\"s%d\"}},"
		"\"addressType\":\"%s\",\"ports\":[",
		i, s->service, s->v6 ? "IPv6" : "IPv4");
	for (int p = 0; p < s->ports; p++)
		str_addf(&t, "%s{\"name\":\"p%d\",\"protocol\":\"TCP\",\"port\":%d},{\"name\":\"p%d\",\"protocol\":\"UDP\",\"port\":%d}",
			p ? "," : "", p, 8000 + p, p, 8000 + p);
	str_add(&t, "],\"endpoints\":[");
	for (int e = 0; e < s->n; e++) {
		const struct world_endpoint *w = &s->endpoints[e];

		str_addf(&t, "%s{\"addresses\":[\"%s%d\"],\"conditions\":{\"ready\":%s,\"serving\":%s,\"terminating\":%s}", e ? "," : "",
			s->v6 ? "fd01::" : "10.1.0.", w->address + 1, w->ready ? "true" : "false", w->serving ? "true" : "false",
			w->terminating ? "true" : "false");
		if (w->placed)
			str_addf(&t, ",\"nodeName\":\"%s\"", w->local ? "we" : "they");
		str_add(&t, "}");
	}
	str_add(&t, "]}");
	json = json_loads(t.buf, 0, &error);
	ck_assert_msg(json != NULL, "%s: %s", error.text, t.buf);
	return json;
}

/* ---- the pretended kernel ---- */

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
		ck_assert_msg(find_element(b->set, b->key) == NULL || set_is_verdict(b->set), "addition of an element of %s that is there",
			set_spec(b->set)->name);
		if (!find_element(b->set, b->key))
			*append(&kernel.held) = *b;
	}
	kernel.batch.n = 0;
}

/* ---- the slow model ---- */

/* Backends as text, sorted, of one group; "" when there is none. */
static int text_order(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool matches(const struct world_endpoint *e, bool need_local, bool terminating)
{
	if (need_local && !e->local)
		return false;
	return terminating ? e->serving && e->terminating : e->ready;
}

static char *slow_group(int service, int port, bool udp, bool v6, bool need_local)
{
	struct strv list = STRV_INIT;
	struct str out = STR_INIT;

	(void)udp;
	for (int rank = 0; rank < 2 && list.n == 0; rank++)
		for (int i = 0; i < SLICES; i++) {
			const struct world_slice *s = &world.slices[i];

			if (!s->exists || s->service != service || s->v6 != v6 || port >= s->ports)
				continue;
			for (int e = 0; e < s->n; e++) {
				/* Flags of an endpoint that is in several slices unite. */
				struct world_endpoint u = { 0 };
				char text[60];

				for (int j = 0; j < SLICES; j++)
					for (int k = 0; k < world.slices[j].n; k++) {
						const struct world_slice *o = &world.slices[j];
						const struct world_endpoint *w = &o->endpoints[k];

						if (!o->exists || o->service != service || o->v6 != v6 || port >= o->ports ||
							w->address != s->endpoints[e].address || (!w->ready && !w->serving))
							continue;
						u.ready |= w->ready;
						u.serving |= w->serving;
						u.terminating |= w->terminating;
						u.local |= w->local;
					}
				if (!matches(&u, need_local, rank == 1))
					continue;
				snprintf(text, sizeof(text), v6 ? "fd01::%d,%d" : "10.1.0.%d,%d", s->endpoints[e].address + 1, 8000 + port);
				if (!strv_has(&list, text))
					strv_add(&list, text);
			}
		}
	if (list.n)
		qsort(list.v, list.n, sizeof(char *), text_order);
	for (size_t i = 0; i < list.n; i++)
		str_addf(&out, " %s", list.v[i]);
	strv_done(&list);
	return str_take(&out);
}

/* A line for each frontend that must be there: "address port proto flavour|group|inside|unserved". */
static void slow_line(struct strv *out, struct strv *owners, int service, int port, const char *at, bool node_port, bool v6,
	bool internal, unsigned ranges)
{
	const struct world_service *s = &world.services[service];
	bool local = internal ? s->internal_local : s->external_local;
	_cleanup_free_ char *all = slow_group(service, port, s->port[port].udp, v6, false);
	_cleanup_free_ char *here = slow_group(service, port, s->port[port].udp, v6, true);
	const char *group = local ? here : all;
	char key[100], *line;
	const char *flavour = internal ? "cluster" : local ? "divert" : "external";

	snprintf(key, sizeof(key), "%s%s %d %s", node_port ? "port" : "", node_port ? (v6 ? "6" : "4") : at,
		node_port ? s->port[port].node_port : s->port[port].port, s->port[port].udp ? "UDP" : "TCP");
	if (strv_has(owners, key))
		return;
	strv_add(owners, key);
	if (ranges & 1)
		ranges &= ~2U; /* 10.0.0.0/8 contains 10.1.0.0/16 */
	line = xasprintf("%s %s%d|%s|%s|%s|%x", key, *group || (!internal && local && *all) ? flavour : "-", s->sticky && (*group || (local && !internal && *all)) ? 100 + s->created : 0, group,
		!internal && local ? all : "", *group ? "" : local && *all ? "drop" : "refuse",
		ranges ? (v6 ? ranges & 8 : ranges & 7) | 16 : 0);
	strv_add_take(out, line);
}

static void slow_service(struct strv *out, struct strv *owners, int i)
{
	const struct world_service *s = &world.services[i];

	for (int v6 = 0; v6 < 2; v6++) {
		char ip[40], external[40], balancer[40];

		if (v6 ? !s->v6 && !s->dual : s->v6 && !s->dual)
			continue;
		snprintf(ip, sizeof(ip), v6 ? "fd00::%d" : "10.0.0.%d", s->ip + 1);
		snprintf(balancer, sizeof(balancer), "198.51.100.%d", s->ip + 1);
		snprintf(external, sizeof(external), "192.0.2.%d", s->ip + 1);
		for (int p = 0; p < s->ports; p++) {
			slow_line(out, owners, i, p, ip, false, v6, true, 0);
			if (s->node_port)
				slow_line(out, owners, i, p, "", true, v6, false, 0);
			if (s->external_ip && !v6)
				slow_line(out, owners, i, p, external, false, v6, false, 0);
			if (s->balancer && !v6)
				slow_line(out, owners, i, p, balancer, false, v6, false, s->ranges);
		}
	}
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

static char *slow_model(void)
{
	struct strv lines = STRV_INIT, owners = STRV_INIT;

	/* Who comes first, in order of age and then of name, has the address. */
	for (int created = 0; created < 3; created++)
		for (int i = 0; i < SERVICES; i++)
			if (world.services[i].exists && world.services[i].created == created)
				slow_service(&lines, &owners, i);
	strv_done(&owners);
	return join_sorted(&lines);
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

static void kernel_line(struct strv *lines, const struct element *e, bool port, bool v6, size_t *endpoints, size_t *slots_used, size_t *ranges_used)
{
	enum set_id shift = port ? SET_PORT_DISTANCE : 0;
	size_t len = set_key_len(e->set);
	uint32_t id = plan_of(set_of(SET_FRONTEND + shift, v6), e->key);
	uint32_t local = plan_of(set_of(SET_LOCAL + shift, v6), e->key), inside = plan_of(set_of(SET_INSIDE + shift, v6), e->key);
	enum set_id slots = set_of(SET_SLOT + shift, v6);
	bool refuse = find_element(set_of(SET_REFUSE + shift, v6), e->key), drop = find_element(set_of(SET_DROP + shift, v6), e->key);
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
	_cleanup_free_ char *group = kernel_group(set_of(SET_ENDPOINT + shift, v6), slots, e->key, len, 0, n, v6, sticky);
	_cleanup_free_ char *in =
		kernel_group(set_of(SET_ENDPOINT + shift, v6), slots, e->key, len, INSIDE_BASE, n_inside, v6, sticky);
	char key[100];

	if (sticky)
		*slots_used += n + n_inside + (n > 0) + (n_inside > 0);
	*endpoints += sticky ? distinct(group, in) : n + n_inside;
	key_text(e, port, v6, key, sizeof(key), e->key);
	ck_assert_msg(!(refuse && drop) && (n > 0) != (refuse || drop), "%s: %u endpoints, refuse %d, drop %d", key, n, refuse, drop);
	ck_assert(divert || (!local && !inside));
	strv_add_take(lines, xasprintf("%s %s%u|%s|%s|%s|%x", key, flavours[plan.flavour], MAX(group_plan.affinity_s, inside_plan.affinity_s), group, in, refuse ? "refuse" : drop ? "drop" : "", port ? 0 : kernel_ranges(e->key, v6, ranges_used)));
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

/* Hairpin elements are exactly the local endpoints in use. */
static void check_hairpins(const struct table *table)
{
	size_t n = 0;

	for (size_t i = 0; i < kernel.held.n; i++)
		n += kernel.held.v[i].set == SET_HAIRPIN || kernel.held.v[i].set == SET_HAIRPIN6;
	for (size_t i = 0; i < table->cap; i++)
		for (const struct frontend *f = table->buckets[i]; f; f = f->next)
			for (uint32_t b = 0; b < f->n + f->n_inside; b++) {
				uint8_t key[SET_KEY_MAX];
				enum set_id set = set_of(SET_HAIRPIN, f->key.v6);

				if (!f->backends[b].local)
					continue;
				element_address(set, f->backends[b].address, key);
				ck_assert(find_element(set, key) != NULL);
			}
	for (size_t i = 0; i < table->refs.cap; i++)
		if (table->refs.slots[i].used && table->refs.slots[i].key.kind != REF_PLAN) {
			ck_assert_int_eq(table->refs.slots[i].held, table->refs.slots[i].count > 0);
			n -= table->refs.slots[i].held;
		}
	ck_assert_uint_eq(n, 0);
}

/* ---- the walk ---- */

static struct services services;
static struct table table;
static struct contests contests;

static void change_something(void)
{
	bool service = chance(40);
	int i = (int)pick_number(service ? SERVICES : SLICES);
	enum object_kind kind = service ? OBJECT_SERVICE : OBJECT_SLICE;
	json_t *before = service ? service_json(i) : slice_json(i), *now;

	if (service)
		random_service(&world.services[i]);
	else
		random_slice(&world.slices[i]);
	now = service ? service_json(i) : slice_json(i);
	if (service ? world.services[i].exists : world.slices[i].exists)
		services_put(&services, kind, now);
	else
		services_delete(&services, kind, before);
	json_decref(before);
	json_decref(now);
}

static void list_everything(void)
{
	for (int kind = 0; kind < 2; kind++) {
		services_list_begin(&services, (enum object_kind)kind);
		for (int i = 0; i < (kind == OBJECT_SERVICE ? SERVICES : SLICES); i++) {
			json_t *json;

			if (!(kind == OBJECT_SERVICE ? world.services[i].exists : world.slices[i].exists))
				continue;
			json = kind == OBJECT_SERVICE ? service_json(i) : slice_json(i);
			services_put(&services, (enum object_kind)kind, json);
			json_decref(json);
		}
		services_list_end(&services, (enum object_kind)kind);
	}
}

/* Deletes, adds and changes elements at random. */
static void damage(void)
{
	for (unsigned i = pick_number(6); i > 0 && kernel.held.n; i--) {
		struct element *e = &kernel.held.v[pick_number((unsigned)kernel.held.n)], copy = *e;

		if (set_is_verdict(e->set))
			continue; /* other frontends' plans may need it: the kernel would not let it go */
		switch (pick_number(3)) {
		case 0:
			*e = kernel.held.v[--kernel.held.n];
			break;
		case 1:
			copy.key[pick_number((unsigned)set_key_len(copy.set))] ^= (uint8_t)(1 + pick_number(255));
			if (!find_element(copy.set, copy.key))
				*append(&kernel.held) = copy;
			break;
		default:
			if (set_value_len(e->set))
				e->value[pick_number((unsigned)set_value_len(e->set))] ^= (uint8_t)(1 + pick_number(255));
			break;
		}
	}
}

static void read_back(struct strays *strays)
{
	table_done(&table);
	table_init(&table);
	for (const struct loader_step *step = loader_steps(); step->set != SET_COUNT; step++) {
		enum set_id set = step->set;

		for (size_t i = 0; i < kernel.held.n; i++) {
			const struct element *e = &kernel.held.v[i];
			uint32_t plan = 0;

			if (e->set != set)
				continue;
			if (set_is_verdict(set))
				memcpy(&plan, e->key, 4);
			loader_element(&table, strays, step, e->key, set_value_len(set) ? e->value : NULL, plan);
		}
	}
	loader_finish(&table, strays);
	services_mark_all(&services);
}

/* One transaction; returns how many elements it had. */
static size_t transact(bool reload)
{
	struct element_sink sink = { sink_element, sink_chain, NULL };
	struct changes changes = { 0 };
	struct strays strays = { 0 };
	size_t n;

	if (reload)
		read_back(&strays);
	changes_plan(&changes, &services, &table, &contests, reload, &strays);
	kernel.batch.n = 0;
	changes_emit(&changes, &table, &sink, sink_cause);
	n = kernel.batch.n;
	if (!reload && chance(10)) { /* the kernel did not take it */
		changes_drop(&changes, &services, &table);
		return transact(false);
	}
	kernel_commit();
	changes_apply(&changes, &services, &table);
	strays_done(&strays);
	return n;
}

static void compare(void)
{
	_cleanup_free_ char *want = slow_model(), *got = kernel_model();

	ck_assert_msg(strcmp(want, got) == 0, "wanted\n%sgot\n%s", want, got);
	check_hairpins(&table);
}

START_TEST(walk)
{
	const char *seed = getenv("CK_SEED"), *steps = getenv("CK_STEPS");
	struct node_identity node = { .name = "we" };

	srandom((seed ? (unsigned)atoi(seed) : 1) * 100 + (unsigned)_i);
	memset(&world, 0, sizeof(world));
	services_init(&services, &node);
	table_init(&table);
	kernel.held.n = 0;
	for (int i = steps ? atoi(steps) : 600; i > 0; i--) {
		for (unsigned n = 1 + pick_number(4); n > 0; n--)
			change_something();
		if (chance(5))
			list_everything();
		if (chance(50)) {
			transact(false);
			compare();
		}
		if (chance(5)) {
			damage();
			transact(true);
			compare();
			ck_assert_msg(transact(true) == 0, "reading back what was just written finds something to write");
			compare();
		}
	}
	table_done(&table);
	services_done(&services);
	free(contests.v);
	memset(&contests, 0, sizeof(contests));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("change");
	TCase *t = tcase_create("change");
	SRunner *runner;
	int failed;

	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, walk, 0, 8);
	suite_add_tcase(suite, t);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	free(kernel.held.v);
	free(kernel.batch.v);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

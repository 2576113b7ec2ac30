/* frontend_test.c - purpose: numbers of endpoints, plan ids and stale flows: tests of compile/frontend.c and flows.c.
 */
#include "proxy-lite/compile/frontend.h"

#include "common/base/str.h"
#include "proxy-lite/compile/flows.h"

#include <check.h>
#include <netinet/in.h>

/* Endpoints are letters here: address 10.0.0.<letter>, port 1; '-' is a hole. */
static struct frontend *make(const char *letters, const char *inside)
{
	struct frontend_key key = { .port = 80, .protocol = IPPROTO_TCP };
	size_t n = strlen(letters), m = strlen(inside);
	struct frontend *f = frontend_new(&key, (uint32_t)n, (uint32_t)m);

	for (size_t i = 0; i < n + m; i++) {
		char c = i < n ? letters[i] : inside[i - n];

		f->backends[i].address[3] = (uint8_t)c;
		f->backends[i].port = c != '-';
	}
	return f;
}

static void text(const struct backend *v, uint32_t n, char *buf)
{
	for (uint32_t i = 0; i < n; i++)
		buf[i] = v[i].port ? (char)v[i].address[3] : '-';
	buf[n] = '\0';
}

static const struct {
	const char *name, *held, *wanted, *result;
} renumberings[] = {
	{ "new", "", "abc", "abc" },
	{ "new, in any order", "", "cab", "abc" },
	{ "the same", "bca", "abc", "bca" },
	{ "one more", "bca", "abcd", "bcad" },
	{ "the last one goes", "bca", "bc", "bc" },
	{ "the first one goes: the last moves into its place", "bca", "ca", "ac" },
	{ "one replaced", "bca", "bda", "bda" },
	{ "all replaced", "abc", "xyz", "xyz" },
	{ "all gone", "abc", "", "" },
	{ "a hole is filled", "a-c", "abc", "abc" },
	{ "a hole is filled by the one beyond the end", "a-c", "ac", "ac" },
	{ "the same twice in the kernel", "aab", "abc", "acb" },
	{ "many go", "abcdefgh", "bdfh", "fbhd" },
	{ "shrinks and changes", "abcd", "cx", "cx" },
};

START_TEST(renumbers)
{
	_cleanup_(frontend_free_p) struct frontend *held = make(renumberings[_i].held, renumberings[_i].held);
	_cleanup_(frontend_free_p) struct frontend *wanted = make(renumberings[_i].wanted, renumberings[_i].wanted);
	char got[20], inside[20];
	size_t moved = 0, could_stay = 0;

	frontend_renumber(wanted, held);
	text(wanted->backends, wanted->n, got);
	text(wanted->backends + wanted->n, wanted->n_inside, inside);
	ck_assert_str_eq(got, inside);
	/* Which newcomer gets which hole does not matter: that everybody who can stays does. */
	for (size_t i = 0; i < wanted->n; i++) {
		const char *at = strchr(renumberings[_i].held, got[i]);

		ck_assert(strchr(renumberings[_i].wanted, got[i]) != NULL && strchr(got + i + 1, got[i]) == NULL);
		could_stay += at && (size_t)(at - renumberings[_i].held) < wanted->n;
		moved += at && (size_t)(at - renumberings[_i].held) < wanted->n && renumberings[_i].held[i] != got[i];
	}
	ck_assert_msg(moved == 0, "%s: %zu of %zu moved: %s", renumberings[_i].name, moved, could_stay, got);
	if (strlen(renumberings[_i].wanted) <= 4)
		ck_assert_str_eq(got, renumberings[_i].result);
}
END_TEST

static const struct {
	enum flavour flavour;
	bool port, v6;
	uint32_t n;
	const char *chain;
	bool good;
} plans[] = {
	{ FLAVOUR_CLUSTER, false, false, 3, "cluster4_3", true },
	{ FLAVOUR_CLUSTER, false, true, 65535, "cluster6_65535", true },
	{ FLAVOUR_EXTERNAL, false, false, 1, "external4_1", true },
	{ FLAVOUR_EXTERNAL, true, true, 12, "portexternal6_12", true },
	{ FLAVOUR_DIVERT, true, false, 0, "portdivert4", true },
	{ FLAVOUR_INSIDE, false, true, 2, "inside6_2", true },
	{ FLAVOUR_LOCAL, true, false, 2, "portlocal4_2", true },
	{ FLAVOUR_CLUSTER, false, false, 0, NULL, false },
	{ FLAVOUR_CLUSTER, true, false, 1, NULL, false },
	{ FLAVOUR_DIVERT, false, false, 1, NULL, false },
	{ FLAVOUR_NONE, false, false, 1, NULL, false },
	{ FLAVOUR_DRAW, false, false, 3, "draw_3", true },
	{ FLAVOUR_DRAW, false, true, 3, "drawinside_3", true },
	{ FLAVOUR_HIT, false, false, 1, NULL, false },
	{ FLAVOUR_HIT + 1, false, false, 1, NULL, false },
};

START_TEST(plan_ids)
{
	uint32_t id = plan_id(plans[_i].flavour, plans[_i].port, plans[_i].v6, plans[_i].n);
	struct plan plan;
	char name[PLAN_NAME_MAX];

	ck_assert_int_eq(plan_parse(id, &plan), plans[_i].good);
	if (!plans[_i].good)
		return;
	ck_assert_int_eq(plan.flavour, plans[_i].flavour);
	ck_assert_uint_eq(plan.n, plans[_i].n);
	ck_assert(plan.node_port == plans[_i].port && plan.v6 == plans[_i].v6);
	ck_assert_str_eq(plan_chain_name(id, name), plans[_i].chain);
}
END_TEST

static const struct {
	enum flavour flavour;
	bool port, v6;
	uint32_t seconds;
	const char *chain;
	bool good;
} stickies[] = {
	{ FLAVOUR_CLUSTER, false, false, 10800, "cluster4_sticky_10800", true },
	{ FLAVOUR_EXTERNAL, true, true, 86400, "portexternal6_sticky_86400", true },
	{ FLAVOUR_LOCAL, true, false, 1, "portlocal4_sticky_1", true },
	{ FLAVOUR_HIT, false, true, 600, "hit6_600", true },
	{ FLAVOUR_CLUSTER, true, false, 10800, NULL, false },
	{ FLAVOUR_DIVERT, false, false, 600, NULL, false },
	{ FLAVOUR_DRAW, false, false, 600, NULL, false },
	{ FLAVOUR_CLUSTER, false, false, 0, NULL, false },
};

START_TEST(sticky_plan_ids)
{
	uint32_t id = plan_sticky_id(stickies[_i].flavour, stickies[_i].port, stickies[_i].v6, stickies[_i].seconds);
	struct plan plan;
	char name[PLAN_NAME_MAX];

	ck_assert_int_eq(plan_parse(id, &plan), stickies[_i].good);
	if (!stickies[_i].good)
		return;
	ck_assert_int_eq(plan.flavour, stickies[_i].flavour);
	ck_assert_uint_eq(plan.affinity_s, stickies[_i].seconds);
	ck_assert(plan.node_port == stickies[_i].port && plan.v6 == stickies[_i].v6);
	ck_assert_str_eq(plan_chain_name(id, name), stickies[_i].chain);
}
END_TEST

/* Who stays keeps its id, whatever happens to the numbers; nobody gets one that another has. */
START_TEST(ids_stay)
{
	_cleanup_(frontend_free_p) struct frontend *first = make("abcd", "ab"), *second = make("dxb", "xd"),
						   *third = make("abx", "");

	first->affinity_s = second->affinity_s = third->affinity_s = 60;
	frontend_renumber(first, NULL);
	frontend_renumber(second, first);
	frontend_renumber(third, second);
	for (uint32_t i = 0; i < second->n + second->n_inside; i++) {
		const struct backend *b = &second->backends[i];

		ck_assert_uint_ge(b->id, FIRST_ID);
		for (uint32_t j = 0; j < first->n + first->n_inside; j++)
			ck_assert_int_eq(
				first->backends[j].address[3] == b->address[3], first->backends[j].id == b->id);
	}
	for (uint32_t i = 0; i < third->n; i++)
		for (uint32_t j = 0; j < third->n; j++)
			ck_assert_int_eq(i == j, third->backends[i].id == third->backends[j].id);
}
END_TEST

/* ---- flows ---- */

static struct ip ip(const char *text_of_it)
{
	struct ip r;

	ck_assert(ip_parse(text_of_it, &r));
	return r;
}

static struct frontend *add(struct table *t, const char *address, uint16_t port, const char *backend)
{
	struct frontend_key key;
	struct frontend *f;

	memset(&key, 0, sizeof(key));
	key.port = port;
	key.protocol = IPPROTO_UDP;
	key.node_port = address == NULL;
	if (address)
		memcpy(key.address, ip(address).bytes, 16);
	f = frontend_new(&key, backend != NULL, 0);
	if (backend) {
		memcpy(f->backends[0].address, ip(backend).bytes, 16);
		f->backends[0].port = 5353;
	}
	table_insert(t, f);
	return f;
}

static const struct {
	const char *name, *destination;
	uint16_t port;
	const char *source;
	uint16_t source_port;
	bool dnat, stale;
} flows[] = {
	{ "to an endpoint", "10.96.0.1", 53, "10.1.0.1", 5353, true, false },
	{ "to an endpoint that is gone", "10.96.0.1", 53, "10.1.0.9", 5353, true, true },
	{ "to another port of it", "10.96.0.1", 53, "10.1.0.1", 5354, true, true },
	{ "recorded before there was an endpoint", "10.96.0.1", 53, "10.96.0.1", 53, false, true },
	{ "to a Service without endpoints, once served", "10.96.0.2", 53, "10.1.0.1", 5353, true, true },
	{ "to a Service without endpoints, never served", "10.96.0.2", 53, "10.96.0.2", 53, false, false },
	{ "to another port", "10.96.0.1", 54, "10.1.0.9", 5353, true, false },
	{ "somebody else's", "192.0.2.53", 53, "192.0.2.53", 53, false, false },
	{ "somebody else's DNAT", "192.0.2.53", 53, "10.1.0.9", 53, true, false },
	{ "a removed Service", "10.96.0.3", 53, "10.1.0.1", 5353, true, true },
	{ "a removed Service, not by us", "10.96.0.3", 53, "10.96.0.3", 53, false, false },
	{ "node port", "192.0.2.1", 30053, "10.1.0.1", 5353, true, false },
	{ "node port to an endpoint that is gone", "192.0.2.1", 30053, "10.1.0.2", 5353, true, true },
	{ "node port before there was an endpoint", "192.0.2.1", 30053, "192.0.2.1", 30053, false, true },
	{ "node port on another address", "192.0.2.9", 30053, "10.1.0.2", 5353, true, false },
	{ "removed node port", "192.0.2.1", 30054, "10.1.0.1", 5353, true, true },
	{ "a port of the node that was never ours", "192.0.2.1", 30055, "10.1.0.1", 5353, true, false },
};

START_TEST(stale_flows)
{
	struct table table;
	struct frontend_key gone[2];
	struct flow flow = { ip(flows[_i].destination), ip(flows[_i].source), flows[_i].port, flows[_i].source_port,
		IPPROTO_UDP, flows[_i].dnat };

	table_init(&table);
	table.node_ips = xcalloc(1, sizeof(struct ip));
	table.node_ips[0] = ip("192.0.2.1");
	table.n_node_ips = 1;
	add(&table, "10.96.0.1", 53, "10.1.0.1");
	add(&table, "10.96.0.2", 53, NULL);
	add(&table, NULL, 30053, "10.1.0.1");
	memset(gone, 0, sizeof(gone));
	gone[0] = (struct frontend_key){ .port = 53, .protocol = IPPROTO_UDP };
	memcpy(gone[0].address, ip("10.96.0.3").bytes, 16);
	gone[1] = (struct frontend_key){ .port = 30054, .protocol = IPPROTO_UDP, .node_port = true };
	ck_assert_msg(flow_is_stale(&table, gone, 2, &flow) == flows[_i].stale, "%s", flows[_i].name);
	flow.protocol = IPPROTO_SCTP; /* of another protocol, nothing is ours */
	ck_assert(!flow_is_stale(&table, gone, 2, &flow));
	table_done(&table);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("frontend");
	TCase *t = tcase_create("frontend");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(t, renumbers, 0, ARRAY_LEN(renumberings));
	tcase_add_loop_test(t, plan_ids, 0, ARRAY_LEN(plans));
	tcase_add_loop_test(t, sticky_plan_ids, 0, ARRAY_LEN(stickies));
	tcase_add_test(t, ids_stay);
	tcase_add_loop_test(t, stale_flows, 0, ARRAY_LEN(flows));
	suite_add_tcase(suite, t);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

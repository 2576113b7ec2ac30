/*
 * change_test.c - purpose: random walks of Services against an independent slow model, through a pretended kernel.
 *
 * The world is a small pool of Services and slices, kept as plain structs. A step changes one at random, gives it to
 * the model as JSON, and now and then plans, writes to the pretended kernel and compares what that holds with what the
 * slow model says. Transactions are dropped at random, the table is read back at random, also after the kernel's
 * content was damaged at random. CK_SEED and CK_STEPS (environment) choose another or a longer walk.
 */
#include "proxy-lite/compile/change.h"
#include "proxy-lite/compile/loader.h"
#include "tests/unit/proxy-lite/compile/walk_kernel.h"

#include <check.h>
#include <stdio.h>

/* ---- the slow model ---- */

/* Backends as text, sorted, of one group; "" when there is none. */
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

						if (!o->exists || o->service != service || o->v6 != v6 ||
							port >= o->ports || w->address != s->endpoints[e].address ||
							(!w->ready && !w->serving))
							continue;
						u.ready |= w->ready;
						u.serving |= w->serving;
						u.terminating |= w->terminating;
						u.local |= w->local;
					}
				if (!matches(&u, need_local, rank == 1))
					continue;
				snprintf(text, sizeof(text), v6 ? "fd01::%d,%d" : "10.1.0.%d,%d",
					s->endpoints[e].address + 1, 8000 + port);
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
static void slow_line(struct strv *out, struct strv *owners, int service, int port, const char *at, bool node_port,
	bool v6, bool internal, unsigned ranges)
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
	line = xasprintf("%s %s%d|%s|%s|%s|%x", key, *group || (!internal && local && *all) ? flavour : "-",
		s->sticky && (*group || (local && !internal && *all)) ? 100 + s->created : 0, group,
		!internal && local ? all : "",
		*group		? ""
		: local && *all ? "drop"
				: "refuse",
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
	for (size_t i = 0; i < table->hairpins.cap; i++)
		if (table->hairpins.slots[i].used) {
			ck_assert_int_eq(table->hairpins.slots[i].held, table->hairpins.slots[i].count > 0);
			n -= table->hairpins.slots[i].held;
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
				e->value[pick_number((unsigned)set_value_len(e->set))] ^=
					(uint8_t)(1 + pick_number(255));
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
			ck_assert_msg(
				transact(true) == 0, "reading back what was just written finds something to write");
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

/*
 * batch_test.c - purpose: transactions on the real kernel, in a network namespace of their own: what is refused is
 * named exactly, nothing of it stays, and a dump reads back what was written. Needs root; skipped without.
 */
#include "proxy-lite/kernel/batch.h"

#include "proxy-lite/kernel/dump.h"
#include "proxy-lite/sync/sync.h"

#include <check.h>
#include <errno.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>

static const struct base_config config = { .table = "nl_unit", .masquerade_mark = 0x4000 };
static struct netlink nl = NETLINK_INIT;
static bool allowed;

static void setup(void)
{
	struct error err = ERROR_INIT;

	allowed = unshare(CLONE_NEWNET) == 0;
	if (!allowed) {
		fprintf(stderr, "skipped: no network namespace without root\n");
		return;
	}
	ck_assert_msg(netlink_open(&nl, NETLINK_NETFILTER, &err) == 0, "%s", err.text);
}

static void teardown(void)
{
	netlink_close(&nl);
}

static void add_frontend(struct batch *b, unsigned i, uint32_t plan)
{
	struct frontend_key key;
	uint8_t bytes[SET_KEY_MAX];

	memset(&key, 0, sizeof(key));
	key.address[0] = 10;
	key.address[2] = (uint8_t)(i >> 8);
	key.address[3] = (uint8_t)i;
	key.port = 80;
	key.protocol = IPPROTO_TCP;
	element_frontend_key(&key, bytes);
	batch_element(b, SET_FRONTEND, true, bytes, (const uint8_t *)&plan);
}

static int commit(struct batch *b, uint32_t gen, struct batch_fault *fault, struct error *err)
{
	int r = batch_commit(b, &nl, gen, fault, err);

	batch_free(b);
	return r;
}

static size_t held(void)
{
	struct structure structure = { 0 };
	struct strays strays = { 0 };
	struct table table;
	struct error err = ERROR_INIT;
	uint32_t gen;
	size_t n;

	table_init(&table);
	ck_assert_msg(dump_table(&nl, &config, &structure, &table, &strays, &gen, &err) == 0, "%s", err.text);
	n = table.count;
	table_done(&table);
	strays_done(&strays);
	structure_done(&structure);
	return n;
}

static void make_base(void)
{
	struct batch *b = batch_new(&config, false);
	struct batch_fault fault;
	struct error err = ERROR_INIT;

	batch_base(b);
	ck_assert_msg(commit(b, 0, &fault, &err) == 0, "%s", err.text);
}

/* Element 700 of 1000 repeats the key of element 5 with another value: the kernel refuses it. */
static struct batch *with_conflict(bool singles)
{
	struct batch *b = batch_new(&config, singles);

	for (unsigned i = 0; i < 1000; i++) {
		batch_cause(b, i);
		add_frontend(b, i == 700 ? 5 : i, plan_id(FLAVOUR_CLUSTER, false, false, i == 700 ? 7 : 1));
	}
	return b;
}

START_TEST(the_fault_is_named)
{
	struct batch_fault fault;
	struct error err = ERROR_INIT;

	if (!allowed)
		return;
	make_base();
	ck_assert_int_eq(held(), 0);
	ck_assert_int_lt(commit(with_conflict(_i), 0, &fault, &err), 0);
	if (!fault.exact) /* a kernel that does not point at the element: what singles are for */
		ck_assert_int_eq(_i, 0);
	else
		ck_assert_uint_eq(fault.cause, 700);
	ck_assert_int_eq(held(), 0);
}
END_TEST

START_TEST(an_object_is_no_cause)
{
	struct batch *b = batch_new(&config, false);
	struct batch_fault fault;
	struct error err = ERROR_INIT;

	if (!allowed)
		return;
	batch_table_delete(b);
	batch_cause(b, 3);
	ck_assert_int_eq(commit(b, 0, &fault, &err), -ENOENT);
	ck_assert_uint_eq(fault.cause, BATCH_NO_CAUSE);
}
END_TEST

START_TEST(another_generation_is_refused)
{
	struct batch *b = batch_new(&config, false);
	struct batch_fault fault;
	struct error err = ERROR_INIT;
	uint32_t gen;

	if (!allowed)
		return;
	make_base();
	ck_assert(dump_generation(&nl, &gen, &err) == 0);
	add_frontend(b, 1, plan_id(FLAVOUR_CLUSTER, false, false, 1));
	ck_assert_int_eq(commit(b, gen + 1, &fault, &err), -ERESTART);
	ck_assert_int_eq(held(), 0);
	b = batch_new(&config, false);
	add_frontend(b, 1, plan_id(FLAVOUR_CLUSTER, false, false, 1));
	ck_assert_msg(commit(b, gen, &fault, &err) == 0, "%s", err.text);
	ck_assert_int_eq(held(), 1);
}
END_TEST

START_TEST(big_batches_fit)
{
	struct batch *b = batch_new(&config, false);
	struct batch_fault fault;
	struct error err = ERROR_INIT;

	if (!allowed)
		return;
	make_base();
	for (unsigned i = 0; i < 60000; i++)
		add_frontend(b, i, plan_id(FLAVOUR_CLUSTER, false, false, 1));
	ck_assert_uint_gt(batch_bytes(b), 2000000);
	ck_assert_msg(commit(b, 0, &fault, &err) == 0, "%s", err.text);
	/* The kernel's hash grows in the background; a dump meanwhile may miss some. */
	for (int i = 0; i < 50 && held() != 60000; i++)
		usleep(20000);
	ck_assert_int_eq(held(), 60000);
}
END_TEST

/* Elements that promise billions of endpoints do not make the reader take memory for them. */
START_TEST(forged_numbers_are_bounded)
{
	struct batch *b = batch_new(&config, false);
	struct batch_fault fault;
	struct error err = ERROR_INIT;

	if (!allowed)
		return;
	make_base();
	for (unsigned i = 0; i < 20000; i++)
		add_frontend(b, i, plan_id(FLAVOUR_CLUSTER, false, false, 65535));
	ck_assert_msg(commit(b, 0, &fault, &err) == 0, "%s", err.text);
	ck_assert_int_lt(held(), 100);
}
END_TEST

static void put(struct services *s, enum object_kind kind, const char *text)
{
	json_t *json = json_loads(text, 0, NULL);

	ck_assert_ptr_nonnull(json);
	services_put(s, kind, json);
	json_decref(json);
}

/* What we believe to hold is wrong: the batch is refused, the table read back, and the end is right all the same. */
START_TEST(wrong_beliefs_are_corrected)
{
	struct node_identity node = { .name = "we" };
	struct error err = ERROR_INIT;
	struct services services;
	struct sync sync;
	struct frontend *lie;
	struct frontend_key key;

	if (!allowed)
		return;
	services_init(&services, &node);
	ck_assert(sync_init(&sync, &config, &services, &err) == 0);
	put(&services, OBJECT_SERVICE,
		"{\"metadata\":{\"namespace\":\"n\",\"name\":\"s\"},\"spec\":{\"clusterIP\":\"10.0.0.1\",\"ports\":[{"
		"\"port\":80}]}}");
	ck_assert_msg(sync_run(&sync, &err) == 0, "%s", err.text);
	memset(&key, 0, sizeof(key));
	key.address[0] = 10;
	key.address[3] = 2;
	key.port = 80;
	key.protocol = IPPROTO_TCP;
	lie = frontend_new(&key, 1, 0);
	lie->flavour = FLAVOUR_CLUSTER;
	lie->backends[0].port = 1;
	table_insert(&sync.table, lie);
	put(&services, OBJECT_SERVICE,
		"{\"metadata\":{\"namespace\":\"n\",\"name\":\"t\"},\"spec\":{\"clusterIP\":\"10.0.0.2\",\"ports\":[{"
		"\"port\":80}]}}");
	ck_assert_msg(sync_run(&sync, &err) == 0, "%s", err.text);
	ck_assert_int_eq(held(), 2);
	ck_assert_ptr_ne(table_find(&sync.table, &key), lie);
	ck_assert_uint_eq(table_find(&sync.table, &key)->n, 0);
	sync_done(&sync);
	services_done(&services);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("batch");
	TCase *t = tcase_create("batch");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, the_fault_is_named, 0, 2);
	tcase_add_test(t, an_object_is_no_cause);
	tcase_add_test(t, another_generation_is_refused);
	tcase_add_test(t, big_batches_fit);
	tcase_add_test(t, forged_numbers_are_bounded);
	tcase_add_test(t, wrong_beliefs_are_corrected);
	suite_add_tcase(suite, t);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* services_test.c - purpose: tests of model/services.c: what becomes dirty, lists as levels, problems told once. */
#include "proxy-lite/model/services.h"

#include <check.h>

static struct services s;
static unsigned told;

static void count_report(void *data, const char *object, const char *text)
{
	(void)data;
	(void)object;
	(void)text;
	told++;
}

static void setup(void)
{
	struct node_identity node = { .name = "we" };

	services_init(&s, &node);
	problems_init(&s.problems, count_report, NULL);
	told = 0;
}

static void teardown(void)
{
	services_done(&s);
}

static bool put(enum object_kind kind, const char *text)
{
	json_t *json = json_loads(text, 0, NULL);
	bool changed;

	ck_assert_ptr_nonnull(json);
	changed = services_put(&s, kind, json);
	json_decref(json);
	return changed;
}

static bool gone(enum object_kind kind, const char *text)
{
	json_t *json = json_loads(text, 0, NULL);
	bool changed = services_delete(&s, kind, json);

	json_decref(json);
	return changed;
}

#define SERVICE(name, ip, more)                                                                                        \
	"{\"metadata\":{\"namespace\":\"n\",\"name\":\"" name "\"" more "},\"spec\":{\"clusterIP\":\"" ip              \
	"\",\"ports\":[{\"port\":80}]}}"
#define SLICE(name, service, ip)                                                                                       \
	"{\"addressType\":\"IPv4\",\"metadata\":{\"namespace\":\"n\",\"name\":\"" name                                 \
	"\",\"labels\":{\"kubernetes.io/service-name\":\"" service                                                     \
	"\"}},\"ports\":[{\"port\":1}],\"endpoints\":[{\"addresses\":[\"" ip "\"]}]}"

static void clean(void)
{
	struct service_entry *entry;

	while ((entry = services_take(&s)))
		services_sweep(&s, entry);
}

START_TEST(only_changes_are_dirty)
{
	ck_assert(put(OBJECT_SERVICE, SERVICE("a", "10.0.0.1", "")));
	ck_assert_uint_eq(s.n_dirty, 1);
	ck_assert(put(OBJECT_SLICE, SLICE("x", "a", "10.1.0.1")));
	ck_assert_uint_eq(s.n_dirty, 1);
	clean();
	ck_assert(
		!put(OBJECT_SERVICE, SERVICE("a", "10.0.0.1", ",\"labels\":{\"x\":\"y\"},\"resourceVersion\":\"7\"")));
	ck_assert(!put(OBJECT_SLICE, SLICE("x", "a", "10.1.0.1")));
	ck_assert_uint_eq(s.n_dirty, 0);
	ck_assert(put(OBJECT_SLICE, SLICE("x", "a", "10.1.0.2")));
	ck_assert_ptr_eq(services_take(&s), services_find(&s, "n/a"));
	ck_assert_uint_eq(s.changes[OBJECT_SERVICE], 1);
	/* A slice that is replaced counts as gone and come. */
	ck_assert_uint_ge(s.changes[OBJECT_SLICE], 2);
}
END_TEST

START_TEST(slices_before_their_service)
{
	ck_assert(put(OBJECT_SLICE, SLICE("x", "a", "10.1.0.1")));
	ck_assert_ptr_null(services_find(&s, "n/a")->service);
	ck_assert(put(OBJECT_SERVICE, SERVICE("a", "10.0.0.1", "")));
	ck_assert_uint_eq(services_find(&s, "n/a")->n_slices, 1);
	ck_assert(gone(OBJECT_SERVICE, SERVICE("a", "10.0.0.1", "")));
	ck_assert(!gone(OBJECT_SERVICE, SERVICE("a", "10.0.0.1", "")));
	clean();
	ck_assert_ptr_nonnull(services_find(&s, "n/a"));
	ck_assert(gone(OBJECT_SLICE, SLICE("x", "a", "10.1.0.1")));
	clean();
	ck_assert_ptr_null(services_find(&s, "n/a"));
}
END_TEST

START_TEST(a_slice_moves_to_another_service)
{
	put(OBJECT_SERVICE, SERVICE("a", "10.0.0.1", ""));
	put(OBJECT_SERVICE, SERVICE("b", "10.0.0.2", ""));
	put(OBJECT_SLICE, SLICE("x", "a", "10.1.0.1"));
	clean();
	ck_assert(put(OBJECT_SLICE, SLICE("x", "b", "10.1.0.1")));
	ck_assert_uint_eq(s.n_dirty, 2);
	ck_assert_uint_eq(services_find(&s, "n/a")->n_slices, 0);
	ck_assert_uint_eq(services_find(&s, "n/b")->n_slices, 1);
}
END_TEST

START_TEST(lists_are_levels)
{
	put(OBJECT_SERVICE, SERVICE("a", "10.0.0.1", ""));
	put(OBJECT_SERVICE, SERVICE("b", "10.0.0.2", ""));
	put(OBJECT_SLICE, SLICE("x", "a", "10.1.0.1"));
	put(OBJECT_SLICE, SLICE("y", "a", "10.1.0.2"));
	clean();
	services_list_begin(&s, OBJECT_SERVICE);
	put(OBJECT_SERVICE, SERVICE("a", "10.0.0.1", ""));
	/* A list that broke off begins again. */
	services_list_begin(&s, OBJECT_SERVICE);
	put(OBJECT_SERVICE, SERVICE("a", "10.0.0.1", ""));
	services_list_end(&s, OBJECT_SERVICE);
	ck_assert_uint_eq(s.n_dirty, 1);
	ck_assert_ptr_null(services_find(&s, "n/b")->service);
	clean();
	ck_assert_ptr_null(services_find(&s, "n/b"));
	services_list_begin(&s, OBJECT_SLICE);
	put(OBJECT_SLICE, SLICE("y", "a", "10.1.0.2"));
	services_list_end(&s, OBJECT_SLICE);
	ck_assert_uint_eq(services_find(&s, "n/a")->n_slices, 1);
	ck_assert_uint_eq(s.n_services, 1);
}
END_TEST

START_TEST(problems_are_told_once)
{
	const char *bad = SERVICE("a", "nonsense", "");

	put(OBJECT_SERVICE, bad);
	put(OBJECT_SERVICE, bad);
	ck_assert_uint_eq(told, 1);
	put(OBJECT_SERVICE, SERVICE("a", "rubbish", ""));
	ck_assert_uint_eq(told, 2);
	ck_assert_uint_eq(s.problems.texts.count, 1);
	put(OBJECT_SERVICE, SERVICE("a", "10.0.0.1", ""));
	ck_assert_uint_eq(s.problems.texts.count, 0);
	put(OBJECT_SERVICE, bad);
	gone(OBJECT_SERVICE, bad);
	ck_assert_uint_eq(s.problems.texts.count, 0);
	ck_assert_uint_eq(told, 3);
}
END_TEST

/* An object that became useless is not served as it was before. */
START_TEST(useless_objects_are_gone)
{
	put(OBJECT_SERVICE, SERVICE("a", "10.0.0.1", ""));
	put(OBJECT_SLICE, SLICE("x", "a", "10.1.0.1"));
	clean();
	ck_assert(put(OBJECT_SERVICE, "{\"metadata\":{\"namespace\":\"n\",\"name\":\"a\"},\"spec\":7}"));
	ck_assert_ptr_null(services_find(&s, "n/a")->service);
	ck_assert(put(OBJECT_SLICE, "{\"addressType\":\"x\",\"metadata\":{\"namespace\":\"n\",\"name\":\"x\","
				    "\"labels\":{\"kubernetes.io/service-name\":\"a\"}}}"));
	ck_assert_uint_eq(services_find(&s, "n/a")->n_slices, 0);
}
END_TEST

static const char *const nameless[] = {
	"{}",
	"[]",
	"{\"metadata\":null}",
	"{\"metadata\":{\"name\":\"a\"}}",
	"{\"metadata\":{\"namespace\":\"n\",\"name\":\"\"}}",
	"{\"metadata\":{\"namespace\":\"n\",\"name\":\"a\\nb\"}}",
	"{\"metadata\":{\"namespace\":\"n/m\",\"name\":\"a\"}}",
	"{\"metadata\":{\"namespace\":7,\"name\":\"a\"}}",
};

START_TEST(objects_without_a_name)
{
	ck_assert(!put(OBJECT_SERVICE, nameless[_i]));
	ck_assert(!put(OBJECT_SLICE, nameless[_i]));
	ck_assert_uint_eq(told, 2);
	ck_assert_uint_eq(s.entries.count, 0);
	ck_assert(!gone(OBJECT_SERVICE, nameless[_i]));
	ck_assert_uint_eq(s.problems.texts.count, 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("services");
	TCase *t = tcase_create("services");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, only_changes_are_dirty);
	tcase_add_test(t, slices_before_their_service);
	tcase_add_test(t, a_slice_moves_to_another_service);
	tcase_add_test(t, lists_are_levels);
	tcase_add_test(t, problems_are_told_once);
	tcase_add_test(t, useless_objects_are_gone);
	tcase_add_loop_test(t, objects_without_a_name, 0, ARRAY_LEN(nameless));
	suite_add_tcase(suite, t);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

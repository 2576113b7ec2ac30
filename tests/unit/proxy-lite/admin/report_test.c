/* report_test.c - purpose: tests of admin/: addresses as people type them, and what dump and explain say. */
#include "proxy-lite/admin/report.h"

#include <check.h>
#include <netinet/in.h>

static const struct {
	const char *text, *ip;
	int port, protocol;
} addresses[] = {
	{ "10.96.0.1:80", "10.96.0.1", 80, IPPROTO_TCP },
	{ "10.96.0.1:53/UDP", "10.96.0.1", 53, IPPROTO_UDP },
	{ "10.96.0.1:53/sctp", "10.96.0.1", 53, IPPROTO_SCTP },
	{ "[fd00::1]:443/tcp", "fd00::1", 443, IPPROTO_TCP },
	{ "fd00::1:443", "fd00::1", 443, IPPROTO_TCP },
	{ "10.96.0.1", NULL, 0, 0 },
	{ "10.96.0.1:", NULL, 0, 0 },
	{ ":80", NULL, 0, 0 },
	{ "10.96.0.1:0", NULL, 0, 0 },
	{ "10.96.0.1:65536", NULL, 0, 0 },
	{ "10.96.0.1:80/icmp", NULL, 0, 0 },
	{ "web:80", NULL, 0, 0 },
	{ "[]:80", NULL, 0, 0 },
	{ "", NULL, 0, 0 },
	{ "10.96.0.1:80/UDP and much more text than an address with a port could ever have, or so it seems", NULL, 0,
		0 },
};

START_TEST(parses)
{
	struct report_address at;
	struct error err = ERROR_INIT;
	char text[IP_TEXT_MAX];

	if (!addresses[_i].ip) {
		ck_assert_int_lt(report_address_parse(addresses[_i].text, &at, &err), 0);
		ck_assert_int_ne(err.text[0], '\0');
		return;
	}
	ck_assert_msg(report_address_parse(addresses[_i].text, &at, &err) == 0, "%s", err.text);
	ck_assert_str_eq(ip_format(&at.ip, text), addresses[_i].ip);
	ck_assert_int_eq(at.port, addresses[_i].port);
	ck_assert_int_eq(at.protocol, addresses[_i].protocol);
}
END_TEST

static struct services services;
static struct sync sync_state;
static struct contests contests;

static void put(enum object_kind kind, const char *text)
{
	json_t *json = json_loads(text, 0, NULL);

	ck_assert_ptr_nonnull(json);
	services_put(&services, kind, json);
	json_decref(json);
}

/* Applies what is dirty to the held table, as if a kernel had taken it. */
static void pretend_sync(void)
{
	struct changes changes = { 0 };

	changes_plan(&changes, &services, &sync_state.table, &contests, false, NULL);
	changes_apply(&changes, &services, &sync_state.table);
}

static void setup(void)
{
	static const struct node_identity node = { .name = "we" };

	services_init(&services, &node);
	sync_state = (struct sync){ .config = { .table = "t" }, .services = &services, .loaded = true };
	table_init(&sync_state.table);
	put(OBJECT_SERVICE, "{\"metadata\":{\"namespace\":\"n\",\"name\":\"web\"},\"spec\":{\"type\":\"NodePort\","
			    "\"clusterIP\":\"10.0.0.1\","
			    "\"ports\":[{\"name\":\"http\",\"port\":80,\"nodePort\":30080}]}}");
	put(OBJECT_SLICE, "{\"addressType\":\"IPv4\",\"metadata\":{\"namespace\":\"n\",\"name\":\"web-x\",\"labels\":{"
			  "\"kubernetes.io/service-name\":\"web\"}},"
			  "\"ports\":[{\"name\":\"http\",\"port\":8080}],\"endpoints\":[{\"addresses\":[\"10.1.0.1\"],"
			  "\"nodeName\":\"we\"},"
			  "{\"addresses\":[\"10.1.0.2\"],\"conditions\":{\"ready\":false}},"
			  "{\"addresses\":[\"10.1.0.3\"],\"conditions\":{\"ready\":false,\"serving\":true,"
			  "\"terminating\":true}}]}");
	put(OBJECT_SERVICE, "{\"metadata\":{\"namespace\":\"n\",\"name\":\"younger\",\"creationTimestamp\":\"2026-01-"
			    "01T00:00:00Z\"},\"spec\":{\"clusterIP\":"
			    "\"10.0.0.1\",\"ports\":[{\"port\":80}]}}");
	pretend_sync();
}

static void teardown(void)
{
	table_done(&sync_state.table);
	services_done(&services);
	free(contests.v);
	contests = (struct contests){ 0 };
}

static void has(const struct str *out, const char *what)
{
	ck_assert_msg(strstr(str_get(out), what) != NULL, "\"%s\" is not in:\n%s", what, str_get(out));
}

START_TEST(dump_says_it)
{
	_cleanup_(str_done) struct str out = STR_INIT;

	report_dump(&sync_state, &out);
	has(&out, "table inet t, generation 0: as wanted");
	has(&out, "2 Services, 2 frontends, 2 endpoints");
	has(&out, "10.0.0.1:80/TCP                      http       cluster  ok        10.1.0.1:8080\n");
	has(&out, "node port 30080/TCP IPv4             http       external ok        10.1.0.1:8080\n");
	has(&out, "contested, held by n/web");
	has(&out, "left out:\n  Service address of n/younger: 10.0.0.1:80/TCP belongs to the older Service n/web");
	str_reset(&out);
	put(OBJECT_SERVICE, "{\"metadata\":{\"namespace\":\"n\",\"name\":\"new\"},\"spec\":{\"clusterIP\":\"10.0.0.9\","
			    "\"ports\":[{\"port\":1}]}}");
	report_dump(&sync_state, &out);
	has(&out, "changes wait");
	has(&out, "10.0.0.9:1/TCP                       -          cluster  not held  none: refused");
	str_reset(&out);
	report_held(&sync_state, &out);
	has(&out, "well-formed");
	has(&out, "held      10.1.0.1:8080");
}
END_TEST

START_TEST(explain_says_it)
{
	_cleanup_(str_done) struct str out = STR_INIT;
	struct report_address at;

	ck_assert(report_address_parse("10.0.0.1:80", &at, NULL) == 0);
	report_explain(&sync_state, true, &at, &out);
	has(&out, "10.0.0.1:80/TCP: n/web\n");
	has(&out, "goes at random to: 10.1.0.1:8080\n");
	has(&out, "chains: cluster4_1\n");
	has(&out, "10.1.0.1:8080 used (on this node)\n");
	has(&out, "10.1.0.2:8080 not used: it is not ready\n");
	has(&out, "10.1.0.3:8080 not used: it terminates, and others are ready\n");
	str_reset(&out);
	ck_assert(report_address_parse("10.0.0.1:81", &at, NULL) == 0);
	report_explain(&sync_state, true, &at, &out);
	has(&out, "10.0.0.1 port 81/TCP is not the address of any Service");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("report");
	TCase *t = tcase_create("report");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, parses, 0, ARRAY_LEN(addresses));
	tcase_add_test(t, dump_says_it);
	tcase_add_test(t, explain_says_it);
	suite_add_tcase(suite, t);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

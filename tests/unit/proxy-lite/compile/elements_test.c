/* elements_test.c - purpose: from JSON objects to frontends: tests of model/ and compile/elements.c together, by table.
 */
#include "proxy-lite/compile/elements.h"

#include "common/base/str.h"

#include <check.h>
#include <stdio.h>

#define SPEC(text) "{\"metadata\":{\"namespace\":\"n\",\"name\":\"s\"},\"spec\":{" text "}}"
#define SLICE(name, type, ports, endpoints)                                                                            \
	"{\"addressType\":\"" type "\",\"metadata\":{\"namespace\":\"n\",\"name\":\"" name                             \
	"\",\"labels\":{\"kubernetes.io/service-name\":\"s\"}},\"ports\":[" ports "],\"endpoints\":[" endpoints "]}"
#define HTTP "{\"name\":\"http\",\"port\":8080}"
#define READY(ip) "{\"addresses\":[\"" ip "\"]}"
#define STATE(ip, r, s, t)                                                                                             \
	"{\"addresses\":[\"" ip "\"],\"conditions\":{\"ready\":" r ",\"serving\":" s ",\"terminating\":" t "}}"
#define ON(ip, node) "{\"addresses\":[\"" ip "\"],\"nodeName\":\"" node "\"}"
#define HINTED(ip, hints) "{\"addresses\":[\"" ip "\"],\"hints\":{" hints "}}"
#define ZONE(z) "\"forZones\":[{\"name\":\"" z "\"}]"
#define NODE(n) "\"forNodes\":[{\"name\":\"" n "\"}]"
#define ONE "\"clusterIP\":\"10.0.0.1\",\"ports\":[{\"name\":\"http\",\"port\":80}]"
#define NP                                                                                                             \
	"\"type\":\"NodePort\",\"clusterIP\":\"10.0.0.1\",\"ports\":[{\"name\":\"http\",\"port\":80,\"nodePort\":"     \
	"30080}]"
#define BOTH SLICE("a", "IPv4", HTTP, ON("10.1.0.1", "we") "," ON("10.1.0.2", "they"))

/* `want`: one line for each frontend; [L] behind an endpoint: on this node. `left`: part of what is left out. */
static const struct {
	const char *name, *service, *slices[3], *want, *left;
} cases[] = {
	{ "plain", SPEC(ONE), { SLICE("a", "IPv4", HTTP, READY("10.1.0.2") "," READY("10.1.0.1")) },
		"10.0.0.1:80/TCP cluster 10.1.0.1:8080[L] 10.1.0.2:8080[L]\n", NULL },
	{ "no slice", SPEC(ONE), { NULL }, "10.0.0.1:80/TCP cluster refuse\n", NULL },
	{ "no endpoint", SPEC(ONE), { SLICE("a", "IPv4", HTTP, "") }, "10.0.0.1:80/TCP cluster refuse\n", NULL },
	{ "another family", SPEC(ONE), { SLICE("a", "IPv6", HTTP, READY("fd00::1")) },
		"10.0.0.1:80/TCP cluster refuse\n", NULL },
	{ "another port name", SPEC(ONE), { SLICE("a", "IPv4", "{\"name\":\"x\",\"port\":1}", READY("10.1.0.1")) },
		"10.0.0.1:80/TCP cluster refuse\n", NULL },
	{ "another protocol", SPEC(ONE),
		{ SLICE("a", "IPv4", "{\"name\":\"http\",\"port\":1,\"protocol\":\"UDP\"}", READY("10.1.0.1")) },
		"10.0.0.1:80/TCP cluster refuse\n", NULL },
	{ "all ports", SPEC(ONE), { SLICE("a", "IPv4", "{\"name\":\"http\",\"port\":null}", READY("10.1.0.1")) },
		"10.0.0.1:80/TCP cluster refuse\n", NULL },
	{ "unnamed port", SPEC("\"clusterIP\":\"10.0.0.1\",\"ports\":[{\"port\":80}]"),
		{ SLICE("a", "IPv4", "{\"name\":\"\",\"port\":8080}", READY("10.1.0.1")) },
		"10.0.0.1:80/TCP cluster 10.1.0.1:8080[L]\n", NULL },
	{ "repeated in two slices", SPEC(ONE),
		{ SLICE("a", "IPv4", HTTP, STATE("10.1.0.1", "false", "false", "false")),
			SLICE("b", "IPv4", HTTP, READY("10.1.0.1") "," READY("10.1.0.3")) },
		"10.0.0.1:80/TCP cluster 10.1.0.1:8080[L] 10.1.0.3:8080[L]\n", NULL },
	{ "not ready", SPEC(ONE),
		{ SLICE("a", "IPv4", HTTP, STATE("10.1.0.1", "false", "null", "null") "," READY("10.1.0.2")) },
		"10.0.0.1:80/TCP cluster 10.1.0.2:8080[L]\n", NULL },
	{ "null conditions are ready", SPEC(ONE),
		{ SLICE("a", "IPv4", HTTP, STATE("10.1.0.1", "null", "null", "null")) },
		"10.0.0.1:80/TCP cluster 10.1.0.1:8080[L]\n", NULL },
	{ "terminating ones are the last resort", SPEC(ONE),
		{ SLICE("a", "IPv4", HTTP,
			STATE("10.1.0.1", "false", "true", "true") "," STATE("10.1.0.2", "false", "false", "true")) },
		"10.0.0.1:80/TCP cluster 10.1.0.1:8080[L]\n", NULL },
	{ "serving but neither ready nor terminating", SPEC(ONE),
		{ SLICE("a", "IPv4", HTTP, STATE("10.1.0.1", "false", "true", "false")) },
		"10.0.0.1:80/TCP cluster refuse\n", NULL },
	{ "dual stack", SPEC("\"clusterIPs\":[\"10.0.0.1\",\"fd00::1\"],\"ports\":[{\"name\":\"http\",\"port\":80}]"),
		{ SLICE("a", "IPv4", HTTP, READY("10.1.0.1")), SLICE("b", "IPv6", HTTP, READY("fd01::1")) },
		"10.0.0.1:80/TCP cluster 10.1.0.1:8080[L]\n[fd00::1]:80/TCP cluster [fd01::1]:8080[L]\n", NULL },
	{ "UDP and SCTP",
		SPEC("\"clusterIP\":\"10.0.0.1\",\"ports\":[{\"port\":53,\"protocol\":\"UDP\"},{\"name\":\"s\","
		     "\"port\":9,\"protocol\":\"SCTP\"}]"),
		{ NULL }, "10.0.0.1:53/UDP cluster refuse\n10.0.0.1:9/SCTP cluster refuse\n", NULL },
	{ "headless", SPEC("\"clusterIP\":\"None\",\"ports\":[{\"port\":80}]"), { NULL }, "", NULL },
	{ "not allocated yet", SPEC("\"ports\":[{\"port\":80}]"), { NULL }, "", NULL },
	{ "ExternalName",
		SPEC("\"type\":\"ExternalName\",\"externalName\":\"x\",\"clusterIP\":\"10.0.0.1\",\"ports\":[{\"port\":"
		     "80}]"),
		{ NULL }, "", NULL },
	{ "headless by label",
		"{\"metadata\":{\"namespace\":\"n\",\"name\":\"s\",\"labels\":{\"service.kubernetes.io/"
		"headless\":\"\"}},\"spec\":{" ONE "}}",
		{ NULL }, "", NULL },
	{ "another proxy's",
		"{\"metadata\":{\"namespace\":\"n\",\"name\":\"s\",\"labels\":{\"service.kubernetes.io/"
		"service-proxy-name\":\"x\"}},\"spec\":{" ONE "}}",
		{ NULL }, "", NULL },
	{ "node port", SPEC(NP), { BOTH },
		"10.0.0.1:80/TCP cluster 10.1.0.1:8080[L] 10.1.0.2:8080\nnode port 30080/TCP IPv4 external "
		"10.1.0.1:8080[L] 10.1.0.2:8080\n",
		NULL },
	{ "node port of a ClusterIP Service is no node port",
		SPEC("\"clusterIP\":\"10.0.0.1\",\"ports\":[{\"port\":80,\"nodePort\":30080}]"), { NULL },
		"10.0.0.1:80/TCP cluster refuse\n", NULL },
	{ "external policy Local", SPEC(NP ",\"externalTrafficPolicy\":\"Local\""), { BOTH },
		"10.0.0.1:80/TCP cluster 10.1.0.1:8080[L] 10.1.0.2:8080\n"
		"node port 30080/TCP IPv4 divert 10.1.0.1:8080[L] / 10.1.0.1:8080[L] 10.1.0.2:8080\n",
		NULL },
	{ "external policy Local, none here", SPEC(NP ",\"externalTrafficPolicy\":\"Local\""),
		{ SLICE("a", "IPv4", HTTP, ON("10.1.0.2", "they")) },
		"10.0.0.1:80/TCP cluster 10.1.0.2:8080\nnode port 30080/TCP IPv4 divert drop / 10.1.0.2:8080\n", NULL },
	{ "external policy Local, none at all", SPEC(NP ",\"externalTrafficPolicy\":\"Local\""), { NULL },
		"10.0.0.1:80/TCP cluster refuse\nnode port 30080/TCP IPv4 divert refuse\n", NULL },
	{ "external policy Local, terminating here, ready elsewhere", SPEC(NP ",\"externalTrafficPolicy\":\"Local\""),
		{ SLICE("a", "IPv4", HTTP,
			"{\"addresses\":[\"10.1.0.1\"],\"nodeName\":\"we\",\"conditions\":{\"ready\":false,\"serving\":"
			"true,\"terminating\":true}}," ON("10.1.0.2", "they")) },
		"10.0.0.1:80/TCP cluster 10.1.0.2:8080\nnode port 30080/TCP IPv4 divert 10.1.0.1:8080[L] / "
		"10.1.0.2:8080\n",
		NULL },
	{ "internal policy Local", SPEC(ONE ",\"internalTrafficPolicy\":\"Local\""), { BOTH },
		"10.0.0.1:80/TCP cluster 10.1.0.1:8080[L]\n", NULL },
	{ "internal policy Local, none here", SPEC(ONE ",\"internalTrafficPolicy\":\"Local\""),
		{ SLICE("a", "IPv4", HTTP, ON("10.1.0.2", "they")) }, "10.0.0.1:80/TCP cluster drop\n", NULL },
	{ "external addresses", SPEC(ONE ",\"externalIPs\":[\"192.0.2.1\",\"fd00::9\",\"127.0.0.1\"]"),
		{ SLICE("a", "IPv4", HTTP, READY("10.1.0.1")) },
		"10.0.0.1:80/TCP cluster 10.1.0.1:8080[L]\n192.0.2.1:80/TCP external 10.1.0.1:8080[L]\n",
		"externalIPs: \"127.0.0.1\"" },
	{ "load balancer",
		"{\"metadata\":{\"namespace\":\"n\",\"name\":\"s\"},\"spec\":{\"type\":\"LoadBalancer\"," ONE
		"},\"status\":{\"loadBalancer\":"
		"{\"ingress\":[{\"ip\":\"192.0.2.7\"},{\"ip\":\"192.0.2.8\",\"ipMode\":\"Proxy\"},{\"ip\":\"192.0.2."
		"9\",\"ipMode\":\"VIP\"},"
		"{\"hostname\":\"x\"}]}}}",
		{ SLICE("a", "IPv4", HTTP, READY("10.1.0.1")) },
		"10.0.0.1:80/TCP cluster 10.1.0.1:8080[L]\n192.0.2.7:80/TCP external "
		"10.1.0.1:8080[L]\n192.0.2.9:80/TCP external 10.1.0.1:8080[L]\n",
		NULL },
	{ "zone hints", SPEC(ONE),
		{ SLICE("a", "IPv4", HTTP, HINTED("10.1.0.1", ZONE("z1")) "," HINTED("10.1.0.2", ZONE("z2"))) },
		"10.0.0.1:80/TCP cluster 10.1.0.1:8080[L]\n", NULL },
	{ "zone hints, one endpoint without", SPEC(ONE),
		{ SLICE("a", "IPv4", HTTP, HINTED("10.1.0.1", ZONE("z1")) "," READY("10.1.0.2")) },
		"10.0.0.1:80/TCP cluster 10.1.0.1:8080[L] 10.1.0.2:8080[L]\n", NULL },
	{ "zone hints, none for us", SPEC(ONE),
		{ SLICE("a", "IPv4", HTTP, HINTED("10.1.0.1", ZONE("z3")) "," HINTED("10.1.0.2", ZONE("z2"))) },
		"10.0.0.1:80/TCP cluster 10.1.0.1:8080[L] 10.1.0.2:8080[L]\n", NULL },
	{ "node hints come first", SPEC(ONE),
		{ SLICE("a", "IPv4", HTTP,
			HINTED("10.1.0.1", ZONE("z1") "," NODE("they")) "," HINTED(
				"10.1.0.2", ZONE("z1") "," NODE("we"))) },
		"10.0.0.1:80/TCP cluster 10.1.0.2:8080[L]\n", NULL },
	{ "hints do not matter to policy Local", SPEC(ONE ",\"internalTrafficPolicy\":\"Local\""),
		{ SLICE("a", "IPv4", HTTP,
			"{\"addresses\":[\"10.1.0.1\"],\"nodeName\":\"we\",\"hints\":{" ZONE("z2") "}}") },
		"10.0.0.1:80/TCP cluster 10.1.0.1:8080[L]\n", NULL },
	{ "bad port beside good ones",
		SPEC("\"clusterIP\":\"10.0.0.1\",\"ports\":[{\"port\":0},{\"port\":65536},{\"port\":\"80\"},{},{"
		     "\"port\":80,\"protocol\":\"ICMP\"},{\"port\":81}]"),
		{ NULL }, "10.0.0.1:81/TCP cluster refuse\n", "spec.ports[0].port: is not 1 to 65535" },
	{ "bad cluster IP beside a good one",
		SPEC("\"clusterIPs\":[\"nonsense\",\"fd00::1\",\"fd00::2\",\"ff02::1\"],\"ports\":[{\"port\":80}]"),
		{ NULL }, "[fd00::1]:80/TCP cluster refuse\n",
		"\"nonsense\" is not a usable address; spec.clusterIPs: \"fd00::2\" is a second" },
	{ "bad endpoints beside good ones", SPEC(ONE),
		{ SLICE("a", "IPv4", HTTP, READY("127.0.0.1") "," READY("fd00::1") ",{}," READY("10.1.0.1")) },
		"10.0.0.1:80/TCP cluster 10.1.0.1:8080[L]\n", "endpoints[0].addresses" },
	{ "ports of another type", SPEC("\"clusterIP\":\"10.0.0.1\",\"ports\":{}"), { NULL }, "",
		"ports: is not an array" },
	{ "unknown policy", SPEC(ONE ",\"externalTrafficPolicy\":\"Sometimes\""), { NULL }, "",
		"\"Sometimes\" is not Cluster or Local" },
	{ "unknown type", SPEC("\"type\":\"X\"," ONE), { NULL }, "", "spec.type: \"X\"" },
	{ "unknown address type", SPEC(ONE), { SLICE("a", "IPX", HTTP, READY("10.1.0.1")) },
		"10.0.0.1:80/TCP cluster refuse\n", "IPX" },
	{ "FQDN slices are ignored", SPEC(ONE), { SLICE("a", "FQDN", HTTP, READY("example.org")) },
		"10.0.0.1:80/TCP cluster refuse\n", NULL },
	{ "bad source ranges",
		SPEC("\"type\":\"LoadBalancer\",\"loadBalancerSourceRanges\":[\" 10.0.0.0/8 \",\"10.0.0.0/33\"]," ONE),
		{ NULL }, "10.0.0.1:80/TCP cluster refuse\n", "\"10.0.0.0/33\" is not a CIDR" },
	{ "affinity time-out out of range",
		SPEC(ONE ",\"sessionAffinity\":\"ClientIP\",\"sessionAffinityConfig\":{\"clientIP\":{"
			 "\"timeoutSeconds\":100000}}"),
		{ NULL }, "10.0.0.1:80/TCP cluster refuse\n", "timeoutSeconds" },
};

static void text_of(const struct frontend *f, struct str *out)
{
	static const char *const flavours[] = { "?", "cluster", "external", "divert" };
	char name[FRONTEND_TEXT_MAX], ip_text[IP_TEXT_MAX];

	str_addf(out, "%s %s", frontend_key_format(&f->key, name), flavours[f->flavour]);
	if (f->n == 0)
		str_add(out, f->unserved == UNSERVED_DROP ? " drop" : " refuse");
	for (uint32_t i = 0; i < f->n + f->n_inside; i++) {
		struct ip ip = { .v6 = f->key.v6 };

		memcpy(ip.bytes, f->backends[i].address, 16);
		str_addf(out, f->key.v6 ? "%s [%s]:%u%s" : "%s %s:%u%s", i == f->n ? " /" : "", ip_format(&ip, ip_text),
			f->backends[i].port, f->backends[i].local ? "[L]" : "");
	}
	str_add_char(out, '\n');
}

static void note_problem(void *data, const char *object, const char *text)
{
	str_addf(data, "%s: %s\n", object, text);
}

static void put(struct services *s, enum object_kind kind, const char *text)
{
	json_error_t error;
	json_t *json = json_loads(text, 0, &error);

	ck_assert_msg(json != NULL, "test data: %s in %s", error.text, text);
	services_put(s, kind, json);
	json_decref(json);
}

START_TEST(compiles)
{
	struct node_identity node = { .name = "we", .zone = "z1" };
	_cleanup_(str_done) struct str got = STR_INIT, problems = STR_INIT;
	struct services s;
	struct service_entry *entry;

	services_init(&s, &node);
	problems_init(&s.problems, note_problem, &problems);
	put(&s, OBJECT_SERVICE, cases[_i].service);
	for (int i = 0; i < 3 && cases[_i].slices[i]; i++)
		put(&s, OBJECT_SLICE, cases[_i].slices[i]);
	entry = services_find(&s, "n/s");
	if (entry) {
		struct frontend *list = elements_compile(entry);

		for (struct frontend *f = list; f; f = f->next_owned) {
			frontend_renumber(f, NULL);
			text_of(f, &got);
		}
		elements_free(list);
	}
	ck_assert_msg(strcmp(str_get(&got), cases[_i].want) == 0, "%s: got\n%swanted\n%s", cases[_i].name,
		str_get(&got), cases[_i].want);
	if (cases[_i].left)
		ck_assert_msg(strstr(str_get(&problems), cases[_i].left) != NULL, "%s: \"%s\" is not in \"%s\"",
			cases[_i].name, cases[_i].left, str_get(&problems));
	else
		ck_assert_msg(problems.len == 0, "%s: %s", cases[_i].name, str_get(&problems));
	services_done(&s);
}
END_TEST

START_TEST(another_proxy_name)
{
	struct node_identity node = { .name = "we", .proxy_name = "x" };
	struct services s;

	services_init(&s, &node);
	put(&s, OBJECT_SERVICE, SPEC(ONE));
	ck_assert_ptr_null(services_find(&s, "n/s"));
	put(&s, OBJECT_SERVICE,
		"{\"metadata\":{\"namespace\":\"n\",\"name\":\"s\",\"labels\":{\"service.kubernetes.io/"
		"service-proxy-name\":\"x\"}},\"spec\":{" ONE "}}");
	ck_assert_ptr_nonnull(services_find(&s, "n/s"));
	services_done(&s);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("elements");
	TCase *t = tcase_create("elements");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(t, compiles, 0, ARRAY_LEN(cases));
	tcase_add_test(t, another_proxy_name);
	suite_add_tcase(suite, t);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

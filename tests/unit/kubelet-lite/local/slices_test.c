/* slices_test.c - purpose: EndpointSlices of a Service, by table. */
#include "kubelet-lite/local/slices.h"

#include "tests/unit/quotes.h"

#define POD(name, ip, ready, more)                                                                                     \
	"{'metadata':{'name':'" name "','namespace':'default','uid':'u" name "'" more "},'spec':{'nodeName':'n','containers':[{'ports':["       \
	"{'name':'http','containerPort':8080}]}]},'status':{'phase':'Running','podIP':'" ip "','conditions':[{'type':'Ready','status':'" ready \
	"'}]}}"
#define OTHER_PORT                                                                                                     \
	"{'metadata':{'name':'o','namespace':'default','uid':'uo'},'spec':{'nodeName':'n','containers':[{'ports':[{'name':'http',"              \
	"'containerPort':9090}]}]},'status':{'phase':'Running','podIP':'10.0.0.9','conditions':[{'type':'Ready','status':'True'}]}}"
#define SVC(spec) "{'metadata':{'name':'web','namespace':'default','uid':'us','labels':{'l':'1'}},'spec':{" spec "}}"
#define SEL "'selector':{'app':'web'},'ipFamilies':['IPv4'],"

static const char APP[] = "app=web\0x=y\0";

/* Slices as "ports|address:rst ..." with r, s, t for ready, serving, terminating. */
static const struct {
	const char *name, *service;
	const char *pods[3];
	const char *want;
} cases[] = {
	{ "ready ones", SVC(SEL "'ports':[{'name':'h','port':80,'protocol':'TCP','targetPort':'http'}]"),
		{ POD("a", "10.0.0.1", "True", ""), POD("b", "10.0.0.2", "False", "") }, "h/8080|10.0.0.1:rs- 10.0.0.2:---;" },
	{ "number", SVC(SEL "'ports':[{'port':80,'targetPort':81}]"), { POD("a", "10.0.0.1", "True", "") }, "/81|10.0.0.1:rs-;" },
	{ "no target: the port", SVC(SEL "'ports':[{'port':80}]"), { POD("a", "10.0.0.1", "True", "") }, "/80|10.0.0.1:rs-;" },
	{ "terminating", SVC(SEL "'ports':[{'port':80}]"), { POD("a", "10.0.0.1", "True", ",'deletionTimestamp':'t'") },
		"/80|10.0.0.1:-st;" },
	{ "publishNotReadyAddresses", SVC(SEL "'publishNotReadyAddresses':true,'ports':[{'port':80}]"),
		{ POD("a", "10.0.0.1", "False", "") }, "/80|10.0.0.1:r--;" },
	{ "no address yet", SVC(SEL "'ports':[{'port':80}]"), { POD("a", "", "True", "") }, "|;" },
	{ "nobody", SVC(SEL "'ports':[{'port':80}]"), { NULL }, "|;" },
	{ "not selected", SVC("'selector':{'app':'db'},'ports':[{'port':80}]"), { POD("a", "10.0.0.1", "True", "") }, "|;" },
	{ "no selector", SVC("'ports':[{'port':80}]"), { POD("a", "10.0.0.1", "True", "") }, "" },
	{ "external name", SVC("'selector':{'app':'web'},'type':'ExternalName'"), { POD("a", "10.0.0.1", "True", "") }, "" },
	{ "named port of two numbers", SVC(SEL "'ports':[{'name':'h','port':80,'targetPort':'http'}]"),
		{ POD("a", "10.0.0.1", "True", ""), OTHER_PORT }, "h/8080|10.0.0.1:rs-;h/9090|10.0.0.9:rs-;" },
	{ "name that no container has", SVC(SEL "'ports':[{'port':80,'targetPort':'nope'}]"), { POD("a", "10.0.0.1", "True", "") },
		"|10.0.0.1:rs-;" },
	{ "another family", SVC("'selector':{'app':'web'},'ipFamilies':['IPv6'],'ports':[{'port':80}]"),
		{ POD("a", "10.0.0.1", "True", ""), POD("b", "fd00::2", "True", "") }, "/80|fd00::2:rs-;" },
};

static void describe(const json_t *slices, struct str *out)
{
	json_t *slice, *p, *e;
	size_t i, j;

	json_array_foreach ((json_t *)slices, i, slice) {
		json_array_foreach (json_object_get(slice, "ports"), j, p)
			str_addf(out, "%s%s/%d", j ? "," : "", json_str_at(p, "name", ""), (int)json_int_at(p, "port", 0));
		str_add_char(out, '|');
		json_array_foreach (json_object_get(slice, "endpoints"), j, e)
			str_addf(out, "%s%s:%c%c%c", j ? " " : "",
				json_string_value(json_array_get(json_object_get(e, "addresses"), 0)),
				json_bool_at(e, "conditions.ready", false) ? 'r' : '-',
				json_bool_at(e, "conditions.serving", false) ? 's' : '-',
				json_bool_at(e, "conditions.terminating", false) ? 't' : '-');
		str_add_char(out, ';');
	}
}

START_TEST(slices_case)
{
	_cleanup_json_ json_t *service = quoted(cases[_i].service);
	const struct slice_pod *pods[3];
	_cleanup_(str_done) struct str got = STR_INIT;
	size_t n = 0;

	for (; n < 3 && cases[_i].pods[n]; n++) {
		_cleanup_json_ json_t *tree = quoted(cases[_i].pods[n]);

		pods[n] = slice_pod_new(tree, APP);
		_cleanup_json_ json_t *again = quoted(cases[_i].pods[n]);
		struct slice_pod *same = slice_pod_new(again, APP);

		ck_assert(slice_pod_equal(pods[n], same));
		slice_pod_free(same);
	}
	_cleanup_json_ json_t *slices = slices_of_service(service, pods, n);
	json_t *slice;
	size_t i;

	describe(slices, &got);
	ck_assert_msg(str_eq(str_get(&got), cases[_i].want), "%s: %s", cases[_i].name, str_get(&got));
	json_array_foreach (slices, i, slice) {
		const json_t *labels = json_at(slice, "metadata.labels");

		ck_assert_str_eq(json_string_value(json_object_get(labels, "kubernetes.io/service-name")), "web");
		ck_assert_str_eq(json_string_value(json_object_get(labels, "l")), "1");
		ck_assert(str_starts(json_str_at(slice, "metadata.name", ""), "web-"));
	}
	while (n > 0)
		slice_pod_free((struct slice_pod *)pods[--n]);
}
END_TEST

START_TEST(many_are_cut)
{
	_cleanup_json_ json_t *service = quoted(SVC(SEL "'ports':[{'port':80}]"));
	enum { N = SLICE_ENDPOINTS_MAX + 10 };
	const struct slice_pod **pods = xcalloc(N, sizeof(*pods));

	for (int i = 0; i < N; i++) {
		_cleanup_json_ json_t *tree = json_pack("{s{si ss} s{ss}}", "metadata", "x", i, "name", "p", "status", "podIP", "10.0.0.1");

		pods[i] = slice_pod_new(tree, APP);
	}
	_cleanup_json_ json_t *slices = slices_of_service(service, pods, N);

	ck_assert_uint_eq(json_array_size(slices), 2);
	ck_assert_str_ne(json_str_at(json_array_get(slices, 0), "metadata.name", ""),
		json_str_at(json_array_get(slices, 1), "metadata.name", ""));
	for (int i = 0; i < N; i++)
		slice_pod_free((struct slice_pod *)pods[i]);
	free(pods);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("slices");

	tcase_add_loop_test(t, slices_case, 0, ARRAY_LEN(cases));
	tcase_add_test(t, many_are_cut);
	return run_case(t);
}

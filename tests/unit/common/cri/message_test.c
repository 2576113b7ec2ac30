/* message_test.c - purpose: CRI messages: JSON both ways, copies, maps. */
#include "common/cri/message.h"

#include "common/wire/json.h"

#include <check.h>

static int parse(const char *text, CRI(PodSandboxConfig) * *ret, struct error *err)
{
	_cleanup_json_ json_t *json = NULL;

	ck_assert_int_eq(json_read(text, strlen(text), false, &json, err), 0);
	return message_from_json(&runtime__v1__pod_sandbox_config__descriptor, json, ret, err);
}

START_TEST(round_trip)
{
	static const char text[] =
		"{\"metadata\":{\"name\":\"p\",\"uid\":\"u\",\"namespace\":\"n\",\"attempt\":3},\"hostname\":\"h\","
		"\"port_mappings\":[{\"protocol\":\"UDP\",\"container_port\":53,\"host_port\":5353}],"
		"\"labels\":{\"a\":\"b\",\"c.d/e\":\"\"},"
		"\"linux\":{\"cgroup_parent\":\"/x\",\"security_context\":{\"run_as_user\":{\"value\":-5},\"supplemental_groups\":[1,2]},"
		"\"sysctls\":{\"net.x\":\"1\"}}}";
	_cleanup_message_ CRI(PodSandboxConfig) *config = NULL;
	struct error err = ERROR_INIT;

	ck_assert_msg(parse(text, &config, &err) == 0, "%s", err.text);
	ck_assert_str_eq(config->metadata->namespace_, "n");
	ck_assert_int_eq(config->port_mappings[0]->protocol, RUNTIME__V1__PROTOCOL__UDP);
	ck_assert_int_eq(config->linux->security_context->run_as_user->value, -5);
	ck_assert_int_eq(config->linux->security_context->supplemental_groups[1], 2);
	ck_assert_str_eq(message_map_get(config->n_labels, config->labels, "c.d/e"), "");
	ck_assert_ptr_null(message_map_get(config->n_labels, config->labels, "x"));

	_cleanup_message_ CRI(PodSandboxConfig) *copy = message_copy(config);
	_cleanup_json_ json_t *json = message_to_json(copy, MESSAGE_JSON_SHORT);
	_cleanup_json_ json_t *want = NULL;
	ck_assert_int_eq(json_read(text, strlen(text), false, &want, NULL), 0);
	_cleanup_free_ char *a = json_canonical(json), *b = json_canonical(want);
	ck_assert_str_eq(a, b);
}
END_TEST

static const struct {
	const char *text, *want;
} bad[] = {
	{ "[]", "must be an object" },
	{ "{\"nosuch\":1}", "unknown field \"nosuch\"" },
	{ "{\"hostname\":1}", "hostname: is a number, must be a string" },
	{ "{\"metadata\":{\"attempt\":-1}}", "metadata: attempt: -1 is negative" },
	{ "{\"metadata\":{\"attempt\":4294967296}}", "metadata: attempt: 4294967296 is out of range" },
	{ "{\"metadata\":{\"attempt\":\"x\"}}", "metadata: attempt: \"x\" is not a number" },
	{ "{\"metadata\":[]}", "metadata: must be an object" },
	{ "{\"labels\":{\"a\":1}}", "labels: \"a\" must be a string" },
	{ "{\"labels\":[]}", "labels: is a list, must be an object" },
	{ "{\"port_mappings\":{}}", "port_mappings: is an object, must be a list" },
	{ "{\"port_mappings\":[{\"protocol\":\"ICMP\"}]}", "port_mappings: protocol: \"ICMP\" is not one of its values (TCP, ...)" },
	{ "{\"log_directory\":\"a\",\"logDirectory\":\"b\"}", "log_directory: given twice" },
	{ "{\"linux\":{\"security_context\":{\"privileged\":1}}}",
		"linux: security_context: privileged: is a number, must be true or false" },
};

START_TEST(bad_json)
{
	CRI(PodSandboxConfig) *config = NULL;
	struct error err = ERROR_INIT;

	ck_assert_int_lt(parse(bad[_i].text, &config, &err), 0);
	ck_assert_str_eq(err.text, bad[_i].want);
	ck_assert_ptr_null(config);
}
END_TEST

START_TEST(camel_case_and_null)
{
	_cleanup_message_ CRI(PodSandboxConfig) *config = NULL;
	struct error err = ERROR_INIT;

	ck_assert_int_eq(parse("{\"logDirectory\":\"/l\",\"metadata\":null,\"linux\":{\"securityContext\":{\"runAsUser\":"
			       "{\"value\":\"1000\"}}}}", &config, &err), 0);
	ck_assert_str_eq(config->log_directory, "/l");
	ck_assert_ptr_null(config->metadata);
	ck_assert_int_eq(config->linux->security_context->run_as_user->value, 1000);
}
END_TEST

START_TEST(proto_style)
{
	_cleanup_message_ CRI(UInt64Value) *v = CRI_NEW(UInt64Value, uint64_value);
	v->value = UINT64_MAX;
	_cleanup_json_ json_t *json = message_to_json(v, MESSAGE_JSON_PROTO);
	ck_assert_str_eq(json_str_at(json, "value", ""), "18446744073709551615");

	_cleanup_json_ json_t *short_json = message_to_json(v, MESSAGE_JSON_SHORT);
	_cleanup_message_ CRI(UInt64Value) *back = NULL;
	ck_assert_int_eq(message_from_json(v->base.descriptor, short_json, &back, NULL), 0);
	ck_assert(back->value == UINT64_MAX);
}
END_TEST

START_TEST(bytes)
{
	static const struct {
		const char *data;
		size_t len;
	} cases[] = { { "text", 4 }, { "", 0 }, { "\xff\xfe", 2 }, { "a\0b", 3 }, { "gr\xc3\xbc\xc3\x9f", 6 } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_message_ CRI(KeyValue) *kv = CRI_NEW(KeyValue, key_value);
		_cleanup_message_ CRI(KeyValue) *back = NULL;

		message_set(&kv->key, "k");
		kv->value.len = cases[i].len;
		kv->value.data = xmemdup(cases[i].data, cases[i].len);
		_cleanup_json_ json_t *json = message_to_json(kv, MESSAGE_JSON_SHORT);
		ck_assert_int_eq(message_from_json(kv->base.descriptor, json, &back, NULL), 0);
		ck_assert_uint_eq(back->value.len, cases[i].len);
		ck_assert(!cases[i].len || memcmp(back->value.data, cases[i].data, cases[i].len) == 0);
	}
}
END_TEST

START_TEST(selectors)
{
	_cleanup_message_ CRI(PodSandboxConfig) *config = NULL;
	_cleanup_message_ CRI(PodSandboxConfig) *want = NULL;

	ck_assert_int_eq(parse("{\"labels\":{\"a\":\"1\",\"b\":\"2\"}}", &config, NULL), 0);
	ck_assert_int_eq(parse("{\"labels\":{\"b\":\"2\"},\"annotations\":{\"b\":\"\"}}", &want, NULL), 0);
	ck_assert(message_map_matches(want->n_labels, want->labels, config->n_labels, config->labels));
	ck_assert(message_map_matches(0, NULL, config->n_labels, config->labels));
	ck_assert(!message_map_matches(config->n_labels, config->labels, want->n_labels, want->labels));
	ck_assert(!message_map_matches(want->n_annotations, want->annotations, config->n_labels, config->labels));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("message");
	TCase *tcase = tcase_create("all");

	tcase_add_test(tcase, round_trip);
	tcase_add_loop_test(tcase, bad_json, 0, ARRAY_LEN(bad));
	tcase_add_test(tcase, camel_case_and_null);
	tcase_add_test(tcase, proto_style);
	tcase_add_test(tcase, bytes);
	tcase_add_test(tcase, selectors);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}

/* labels_test.c - purpose: selectors by table: what they match and how bad ones are refused; label names. */
#include "common/base/backoff.h"
#include "common/base/labels.h"

#include <check.h>

static json_t *labels_of(const char *text)
{
	json_t *object = json_object();
	_cleanup_(strv_done) struct strv parts = STRV_INIT;

	strv_split(&parts, text, ' ');
	for (size_t i = 0; i < parts.n; i++) {
		char *equals = strchr(parts.v[i], '=');

		*equals = '\0';
		json_object_set_new(object, parts.v[i], json_string(equals + 1));
	}
	return object;
}

static const struct {
	const char *selector, *labels;
	bool match;
} matches[] = {
	{ "", "a=b", true }, { "  ", "", true }, { "a=b", "a=b", true }, { "a==b", "a=b", true }, { " a = b ", "a=b", true }, { "a=b", "a=c", false },
	{ "a=b", "", false }, { "a!=b", "a=c", true }, { "a!=b", "a=b", false }, { "a!=b", "", true }, { "a", "a=", true }, { "a", "b=a", false },
	{ "!a", "a=", false }, { "! a", "b=", true }, { "a=", "a=", true }, { "a=", "", false }, { "a=,b=c", "a= b=c", true },
	{ "a in (b)", "a=b", true }, { "a in (b,c)", "a=c", true }, { "a in ( b , c )", "a=d", false }, { "a in (b,,c)", "a=", true },
	{ "a in ()", "a=", true }, { "a notin (b,c)", "a=d", true }, { "a notin (b,c)", "a=c", false }, { "a notin (b)", "", true },
	{ "a in(b)", "a=b", true }, { "in in (in)", "in=in", true }, { "notin", "notin=x", true }, { "in=notin", "in=notin", true },
	{ "a=b,c!=d,e,!f,g in (h,i)", "a=b e=1 g=i", true }, { "a=b,c!=d,e,!f,g in (h,i)", "a=b e=1 f=1 g=i", false },
	{ "n>5", "n=6", true }, { "n>5", "n=5", false }, { "n<5", "n=-3", true }, { "n>5", "n=x", false }, { "n>5", "", false },
	{ "app.kubernetes.io/name=web", "app.kubernetes.io/name=web", true }, { "x_y.z-1=A_b.c-2", "x_y.z-1=A_b.c-2", true },
};

START_TEST(match_case)
{
	_cleanup_(selector_done) struct selector s = SELECTOR_INIT;
	struct error err = ERROR_INIT;
	json_t *labels = labels_of(matches[_i].labels);

	ck_assert_msg(label_selector_parse(matches[_i].selector, &s, &err) == 0, "%s: %s", matches[_i].selector, err.text);
	ck_assert_msg(selector_match_labels(&s, labels) == matches[_i].match, "%s against %s", matches[_i].selector, matches[_i].labels);
	json_decref(labels);
}
END_TEST

static const struct {
	const char *selector, *want;
} bad[] = {
	{ ",", "unable to parse requirement: found ',', expected: !, identifier, or 'end of string'" },
	{ "a=b,", "unable to parse requirement: found '', expected: identifier after ','" },
	{ "a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, >, <" },
	{ "a in b", "unable to parse requirement: found 'b', expected: '('" }, { "a in (b", "unable to parse requirement: found '', expected: ',' or ')'" },
	{ "a in (b c)", "unable to parse requirement: found 'c)', expected: ',' or ')'" }, { "!", "unable to parse requirement: found '', expected: identifier" },
	{ "=b", "unable to parse requirement: found '=b'" }, { "a=b c", "unable to parse requirement: found 'c', expected: ',' or 'end of string'" },
	{ "!a=b", "unable to parse requirement: found '=b', expected: ','" }, { "a!b", "unable to parse requirement: found '!b'" },
	{ "a>x", "unable to parse requirement: label key a: for 'Gt', 'Lt' operators, the value must be an integer" },
	{ "-a=b", "unable to parse requirement: label key \"-a\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
		"with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
		"'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')" },
	{ "a=b/c", "unable to parse requirement: label value \"b/c\": a valid label must be an empty string or consist of" },
	{ "a/b/c", "unable to parse requirement: label key \"a/b/c\": a valid label key must consist of" },
	{ "/a", "unable to parse requirement: label key \"/a\": prefix part must be non-empty" },
	{ "A_/b", "unable to parse requirement: label key \"A_/b\": prefix part a lowercase RFC 1123 subdomain must consist of" },
	{ "a=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "unable to parse requirement: label value \"aaaa" },
};

START_TEST(bad_case)
{
	_cleanup_(selector_done) struct selector s = SELECTOR_INIT;
	struct error err = ERROR_INIT;

	ck_assert_int_lt(label_selector_parse(bad[_i].selector, &s, &err), 0);
	ck_assert_msg(str_starts(err.text, bad[_i].want), "%s\n got: %s\nwant: %s", bad[_i].selector, err.text, bad[_i].want);
}
END_TEST

static const struct {
	const char *selector;
	int match; /* -1: refused */
} fields[] = {
	{ "", 1 }, { "metadata.name=x", 1 }, { "metadata.name==x", 1 }, { "metadata.name!=x", 0 }, { "metadata.name=y", 0 }, { "spec.nodeName=", 1 },
	{ "spec.nodeName!=", 0 }, { "metadata.name=x,status.phase!=Running", 1 }, { "spec.n=5,spec.b=true", 1 }, { "a.b=c\\,d\\=e", 1 }, { ",metadata.name=x,", 1 },
	{ "metadata.name", -1 }, { "=x", -1 }, { "a=b=c", -1 }, { "metadata.name in (x)", -1 }, { "metadata=", 1 },
};

START_TEST(field_case)
{
	_cleanup_(selector_done) struct selector s = SELECTOR_INIT;
	struct error err = ERROR_INIT;
	json_t *object = json_pack("{s:{s:s},s:{s:i,s:b},s:{s:s}}", "metadata", "name", "x", "spec", "n", 5, "b", 1, "a", "b", "c,d=e");
	int r = field_selector_parse(fields[_i].selector, &s, &err);

	ck_assert_msg((r < 0) == (fields[_i].match < 0), "%s: %s", fields[_i].selector, err.text);
	if (r == 0)
		ck_assert_msg(selector_match_fields(&s, object) == (fields[_i].match == 1), "%s", fields[_i].selector);
	json_decref(object);
}
END_TEST

static const struct {
	const char *json;
	int match; /* of app=web,n=1; -1: refused */
} objects[] = {
	{ "{}", 1 }, { "{\"matchLabels\":{\"app\":\"web\"}}", 1 }, { "{\"matchLabels\":{\"app\":\"db\"}}", 0 }, { "{\"matchLabels\":{\"app\":1}}", -1 },
	{ "{\"matchLabels\":{\"-\":\"1\"}}", -1 }, { "{\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"In\",\"values\":[\"a\",\"web\"]}]}", 1 },
	{ "{\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"NotIn\",\"values\":[\"web\"]}]}", 0 },
	{ "{\"matchExpressions\":[{\"key\":\"n\",\"operator\":\"Exists\"},{\"key\":\"x\",\"operator\":\"DoesNotExist\"}]}", 1 },
	{ "{\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"in\",\"values\":[\"a\"]}]}", -1 },
	{ "{\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"In\"}]}", -1 }, { "{\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"Exists\",\"values\":[\"a\"]}]}", -1 },
	{ "{\"matchExpressions\":[{\"operator\":\"Exists\"}]}", -1 }, { "{\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"In\",\"values\":[1]}]}", -1 },
};

START_TEST(object_case)
{
	_cleanup_(selector_done) struct selector s = SELECTOR_INIT;
	json_t *labels = labels_of("app=web n=1"), *selector = json_loads(objects[_i].json, 0, NULL);
	int r = label_selector_from_json(selector, &s, NULL);

	ck_assert_msg((r < 0) == (objects[_i].match < 0), "%s", objects[_i].json);
	if (r == 0)
		ck_assert_int_eq(selector_match_labels(&s, labels), objects[_i].match);
	json_decref(selector);
	json_decref(labels);
}
END_TEST

static const char *get(void *data, const char *key)
{
	return str_eq(key, "a") ? data : NULL;
}

START_TEST(by_callback)
{
	_cleanup_(selector_done) struct selector s = SELECTOR_INIT;

	ck_assert_int_eq(label_selector_parse("a=x,!b", &s, NULL), 0);
	ck_assert(selector_match(&s, get, (void *)"x"));
	ck_assert(!selector_match(&s, get, (void *)"y"));
}
END_TEST

static const struct {
	const char *name;
	bool subdomain, key, value;
} names[] = {
	{ "", false, false, true }, { "a", true, true, true }, { "a-b.c", true, true, true }, { "A", false, true, true }, { "a_b", false, true, true },
	{ "-a", false, false, false }, { "a-", false, false, false }, { "a.-b", false, true, true }, { "a..b", false, true, true }, { "a-.b", false, true, true },
	{ ".a", false, false, false }, { "1", true, true, true }, { "a/b", false, true, false }, { "a b", false, false, false }, { "\xc3\xa4", false, false, false },
	{ "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", true, true, true },
	{ "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", true, false, false },
};

START_TEST(name_case)
{
	_cleanup_(strv_done) struct strv why = STRV_INIT;

	ck_assert_int_eq(dns_subdomain_check(names[_i].name, NULL), names[_i].subdomain);
	ck_assert_int_eq(label_key_check(names[_i].name, NULL), names[_i].key);
	ck_assert_int_eq(label_value_check(names[_i].name, &why), names[_i].value);
	ck_assert_int_eq(why.n == 0, names[_i].value);
}
END_TEST

START_TEST(backoff)
{
	struct backoff b = { .first_ms = 800, .max_ms = 30000 };
	static const uint64_t want[] = { 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000 };

	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		struct backoff copy = b;

		ck_assert_uint_eq(backoff_next_ms(&copy, 0), want[i]);
		uint64_t most = backoff_next_ms(&b, UINT32_MAX);
		ck_assert(most > want[i] && most <= want[i] + want[i] / 2);
	}
	for (int i = 0; i < 1000; i++)
		ck_assert_uint_le(backoff_next_ms(&b, UINT32_MAX), 45000);
	backoff_reset(&b);
	ck_assert_uint_eq(backoff_next_ms(&b, 0), 800);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("labels");
	TCase *t = tcase_create("labels");

	tcase_add_loop_test(t, match_case, 0, ARRAY_LEN(matches));
	tcase_add_loop_test(t, bad_case, 0, ARRAY_LEN(bad));
	tcase_add_loop_test(t, field_case, 0, ARRAY_LEN(fields));
	tcase_add_loop_test(t, object_case, 0, ARRAY_LEN(objects));
	tcase_add_test(t, by_callback);
	tcase_add_loop_test(t, name_case, 0, ARRAY_LEN(names));
	tcase_add_test(t, backoff);
	suite_add_tcase(s, t);
	SRunner *runner = srunner_create(s);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}

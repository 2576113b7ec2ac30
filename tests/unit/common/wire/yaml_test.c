/* yaml_test.c - purpose: YAML as Kubernetes reads it (checked against sigs.k8s.io/yaml), its errors, limits and writer. */
#include "common/wire/json.h"

#include <check.h>

static char *read_all(const char *text, size_t len)
{
	_cleanup_json_ json_t *documents = NULL;
	struct error err = ERROR_INIT;
	_cleanup_free_ char *exact = xmemdup(text, len); /* no NUL behind it: ASan watches */

	if (yaml_read(exact, len, &documents, &err) < 0)
		return xstrdup(err.text);
	return json_text(documents);
}

static const struct {
	const char *scalar, *want;
} scalars[] = {
	{ "", "null" }, { "~", "null" }, { "null", "null" }, { "Null", "null" }, { "nUll", "\"nUll\"" }, { "true", "true" },
	{ "True", "true" }, { "tRue", "\"tRue\"" }, { "y", "true" }, { "N", "false" }, { "yes", "true" }, { "No", "false" },
	{ "on", "true" }, { "OFF", "false" }, { "oN", "\"oN\"" }, { "0", "0" }, { "-1", "-1" }, { "+1", "1" }, { "010", "8" }, { "0o10", "8" },
	{ "08", "8" }, { "0x1F", "31" }, { "-0x1f", "-31" }, { "0xg", "\"0xg\"" }, { "0b101", "5" }, { "0b2", "\"0b2\"" }, { "1_000", "1000" },
	{ "_1", "\"_1\"" }, { "1e3", "1000" }, { "1.5", "1.5" }, { ".5", "0.5" }, { "5.", "5" }, { ".", "\".\"" }, { "-.5", "-0.5" },
	{ "1e400", "\"1e400\"" }, { "9223372036854775807", "9223372036854775807" }, { "-9223372036854775808", "-9223372036854775808" },
	{ "9223372036854775808", "9223372036854776000" }, { "0x1ffffffffffffffff", "\"0x1ffffffffffffffff\"" }, { "1.0", "1" },
	{ "2001-01-01", "\"2001-01-01\"" }, { "12:30", "\"12:30\"" }, { "10.0.0.1", "\"10.0.0.1\"" }, { "1Gi", "\"1Gi\"" }, { "100m", "\"100m\"" },
	{ "a:b", "\"a:b\"" }, { "a#b", "\"a#b\"" }, { "a #b", "\"a\"" }, { "'yes'", "\"yes\"" }, { "\"1\"", "\"1\"" }, { "'it''s'", "\"it's\"" },
	{ "\"\\x41\\u00e4\\n\"", "\"A\u00e4\\n\"" }, { "!!str 12", "\"12\"" }, { "!!int \"12\"", "12" }, { "!!float 1", "1" }, { "!!bool yes", "true" },
	{ "!!null \"\"", "null" }, { "!!binary aGVsbG8=", "\"hello\"" }, { "!mine 12", "\"12\"" }, { "[1, two, ]", "[1,\"two\"]" },
	{ "{a: 1, b}", "{\"a\":1,\"b\":null}" }, { "|\n  a\n   b\n", "\"a\\n b\\n\"" }, { "|-\n  a\n", "\"a\"" }, { "|+\n  a\n\n", "\"a\\n\\n\"" },
	{ ">\n  a\n  b\n\n  c\n", "\"a b\\nc\\n\"" }, { "a\n  b", "\"a b\"" }, { "<<", "\"<<\"" },
};

START_TEST(scalar_case)
{
	_cleanup_free_ char *text = xasprintf("v: %s", scalars[_i].scalar);
	_cleanup_free_ char *want = xasprintf("[{\"v\":%s}]", scalars[_i].want);
	_cleanup_free_ char *got = read_all(text, strlen(text));

	ck_assert_msg(str_eq(got, want), "%s\n got: %s\nwant: %s", text, got, want);
}
END_TEST

static const struct {
	const char *text, *want;
} documents[] = {
	{ "", "[]" }, { "# nothing\n", "[]" }, { "---\n", "[]" }, { "---\n---\na: 1\n---\n# x\n---\nb: 2\n...\n", "[{\"a\":1},{\"b\":2}]" },
	{ "a: 1\n---\n- 2\n", "[{\"a\":1},[2]]" }, { "%YAML 1.1\n---\na: 1\n", "[{\"a\":1}]" }, { "\xef\xbb\xbf" "a: 1\n", "[{\"a\":1}]" },
	{ "a:\n- 1\n- b: 2\n  c: 3\n", "[{\"a\":[1,{\"b\":2,\"c\":3}]}]" }, { "? a\n: 1\n", "[{\"a\":1}]" }, { "a: 1\r\nb: 2\r\n", "[{\"a\":1,\"b\":2}]" },
	{ "1: a\ntrue: b\n1.5: c\n0x10: d\nn: e", "[{\"1\":\"a\",\"true\":\"b\",\"1.5\":\"c\",\"16\":\"d\",\"false\":\"e\"}]" },
	{ "a: &x {b: 1}\nc: *x\n", "[{\"a\":{\"b\":1},\"c\":{\"b\":1}}]" }, { "a: &x 1\nb: &x 2\nc: *x\n", "[{\"a\":1,\"b\":2,\"c\":2}]" },
	{ "b: &b {x: 1, z: 2}\nd:\n  <<: *b\n  z: 3\n", "[{\"b\":{\"x\":1,\"z\":2},\"d\":{\"z\":3,\"x\":1}}]" },
	{ "b: &b {x: 1}\nc: &c {x: 5, z: 9}\nd:\n  <<: [*b, *c]\n", "[{\"b\":{\"x\":1},\"c\":{\"x\":5,\"z\":9},\"d\":{\"x\":1,\"z\":9}}]" },
	{ "'<<': 1\n", "[{\"<<\":1}]" }, { "a: &a {b: &a [1], c: *a}\nd: *a\n", "[{\"a\":{\"b\":[1],\"c\":[1]},\"d\":[1]}]" },
	{ "{\"a\":\t1,\n\t\"b\": [true]}", "[{\"a\":1,\"b\":[true]}]" }, { "{\"a\":1}\n{\"b\":2}\n", "[{\"a\":1},{\"b\":2}]" },
	{ "{\"a\": \"\\/\\ud83d\\ude00\"}", "[{\"a\":\"/\U0001f600\"}]" }, { "{a: b}", "[{\"a\":\"b\"}]" }, { "{\"a\": b}", "[{\"a\":\"b\"}]" },
	{ "[a, b]\n", "[[\"a\",\"b\"]]" },
	/* refused */
	{ "a: 1\nb: 2\na: 3\n", "line 3, column 1: key \"a\" stands here twice" }, { "{\"a\":1,\"a\":2}", "line 1, column 8: key \"a\" stands here twice" },
	{ "\"1\": a\n1: b\n", "line 2, column 1: key \"1\" stands here twice" }, { "a: *x\n", "line 1, column 4: unknown anchor \"x\"" },
	{ "a: &x 1\n---\nb: *x\n", "line 3, column 4: unknown anchor \"x\"" },
	{ "a: &x [1, *x]\n", "line 1, column 11: the value of anchor \"x\" contains itself" }, { "&x a: {b: &y {c: *y}}\n", "line 1, column 18: the value of anchor \"y\" contains itself" },
	{ "a:\n  - b\n c: 1\n", "line 3, column 2: did not find expected" }, { "a:\n\t- b\n", "line 2, column 1: found character that cannot start any token (while scanning for the next token); a tab" },
	{ "a: 'x\n", "line 2, column 1: found unexpected end of stream" }, { "a: [1, 2\n", "line 2, column 1: did not find expected ',' or ']'" },
	{ "a: b: c\n", "line 1, column 5: mapping values are not allowed in this context" }, { "null: 1\n", "line 1, column 1: a map key must be text, not null" },
	{ "? [a]\n: 1\n", "line 1, column 3: a map key must be text, not a list" }, { "a: .inf\n", "line 1, column 4: .inf has no form in JSON" },
	{ "a: !!int x\n", "line 1, column 4: \"x\" is not of type !!int" }, { "a: !!binary \"?\"\n", "line 1, column 4: !!binary value is not base64" },
	{ "<<: 1\n", "line 1, column 5: what is merged by \"<<\" must be a map" }, { "a: \"\\0\"\n", "line 1, column 4: NUL character in a string" },
	{ "a: \xff\n", "byte 3: invalid leading UTF-8 octet" }, { "a: \x01\n", "byte 3: control characters are not allowed" },
	{ "a: @b\n", "line 1, column 4: found character that cannot start any token" }, { "{\"a\": 1,", "line 1, column 9: end of text where a key in quotes should be" },
};

START_TEST(document_case)
{
	_cleanup_free_ char *got = read_all(documents[_i].text, strlen(documents[_i].text));

	ck_assert_msg(documents[_i].want[0] == '[' ? str_eq(got, documents[_i].want) : str_starts(got, documents[_i].want),
		"%s\n got: %s\nwant: %s", documents[_i].text, got, documents[_i].want);
}
END_TEST

START_TEST(bombs)
{
	_cleanup_(str_done) struct str s = STR_INIT, deep = STR_INIT, fat = STR_INIT, many = STR_INIT;

	/* "billion laughs": nine of the level below, nine times */
	str_add(&s, "a0: &a0 [x,x,x,x,x,x,x,x,x]\n");
	for (int i = 1; i < 10; i++)
		str_addf(&s, "a%d: &a%d [*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d]\n", i, i, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1,
			i - 1, i - 1);
	_cleanup_free_ char *got = read_all(s.buf, s.len);
	ck_assert_ptr_nonnull(strstr(got, "more than 1000000 nodes or 33554432 bytes, aliases included"));

	/* few nodes, much text */
	str_add(&fat, "a: &a ");
	for (int i = 0; i < 100000; i++)
		str_add_char(&fat, 'x');
	str_add(&fat, "\nb: [");
	for (int i = 0; i < 1000; i++)
		str_add(&fat, "*a,");
	str_add(&fat, "]\n");
	_cleanup_free_ char *got_fat = read_all(fat.buf, fat.len);
	ck_assert_ptr_nonnull(strstr(got_fat, "more than 1000000 nodes or 33554432 bytes, aliases included"));

	for (int i = 0; i < 10000; i++)
		str_add(&deep, "[");
	_cleanup_free_ char *got_deep = read_all(deep.buf, deep.len);
	ck_assert_str_eq(got_deep, "line 1, column 202: more than 200 levels deep");

	for (int i = 0; i < 1100; i++)
		str_add(&many, "---\na: 1\n");
	_cleanup_free_ char *got_many = read_all(many.buf, many.len);
	ck_assert_str_eq(got_many, "more than 1000 documents");
}
END_TEST

static const struct {
	const char *json, *want;
} texts[] = {
	{ "{}", "{}\n" }, { "[]", "[]\n" }, { "null", "null\n" }, { "\"x\"", "x\n" },
	{ "{\"b\":1,\"a\":{\"d\":[],\"c\":{}},\"l\":[1,{\"x\":1,\"z\":[2,[3,4]]},[]]}",
		"a:\n  c: {}\n  d: []\nb: 1\nl:\n- 1\n- x: 1\n  z:\n  - 2\n  - - 3\n    - 4\n- []\n" },
	{ "[\"true\",\"1\",\"\",\"~\",\"0x1\",\"2001-01-01\",\"12:30\",\"1e3\",\"yes\"]",
		"- \"true\"\n- \"1\"\n- \"\"\n- \"~\"\n- \"0x1\"\n- \"2001-01-01\"\n- \"12:30\"\n- \"1e3\"\n- \"yes\"\n" },
	{ "[\"a: b\",\"- a\",\"#a\",\"a #b\",\" a\",\"a \",\"*a\",\"it's: x\",\"a:\",\"@x\",\"---\"]",
		"- 'a: b'\n- '- a'\n- '#a'\n- 'a #b'\n- ' a'\n- 'a '\n- '*a'\n- 'it''s: x'\n- 'a:'\n- '@x'\n- '---'\n" },
	{ "[\"a:b\",\"a#b\",\"it's\",\"-a\",\"a,b\",\"10.0.0.1\",\"u\u00e4\"]", "- a:b\n- a#b\n- it's\n- -a\n- a,b\n- 10.0.0.1\n- u\u00e4\n" },
	{ "{\"k\":\"a\\nb\\n\",\"l\":\"a\\nb\",\"m\":\"a\\n\\n\",\"o\":\" a\\n b\"}", "k: |\n  a\n  b\nl: |-\n  a\n  b\nm: |+\n  a\n\no: |2-\n   a\n   b\n" },
	{ "[\"a\\tb\",\"\\u0001\",\"a \\nb\",\"a\\r\\n\",\"\\\"\\n \"]", "- \"a\\tb\"\n- \"\\x01\"\n- \"a \\nb\"\n- \"a\\r\\n\"\n- \"\\\"\\n \"\n" },
	{ "{\"a10\":1,\"a2\":2,\"A\":3,\"10\":4,\"9\":5,\"a-b\":6}", "\"9\": 5\n\"10\": 4\nA: 3\na-b: 6\na2: 2\na10: 1\n" },
	{ "[1.5,1e21,-0.001,9223372036854775807,true,null]", "- 1.5\n- 1e+21\n- -0.001\n- 9223372036854775807\n- true\n- null\n" },
};

START_TEST(text_case)
{
	_cleanup_json_ json_t *tree = NULL;

	ck_assert_int_eq(json_read(texts[_i].json, strlen(texts[_i].json), true, &tree, NULL), 0);
	_cleanup_free_ char *got = yaml_text(tree);
	ck_assert_str_eq(got, texts[_i].want);
}
END_TEST

/* Whatever a string contains, as value, list element and key: what is written is read back. */
START_TEST(written_is_read)
{
	static const char *const pieces[] = { "a", "b", " ", "  ", "\n", "\n\n", ":", "-", "#", "'", "\"", "\\", "0", "1", ".", "e", "yes", "~", "<<",
		"[", "]", "{", "}", ",", "&", "*", "!", "|", ">", "%", "@", "`", "?", "=", "---", "...", "\t", "\r", "\x01", "\u00a0", "\u2028", "\ufeff",
		"\u00e4", "\U0001f600", "\x7f", "0x", "_" };
	uint64_t x = 88172645463325252ULL;

	for (int i = 0; i < 20000; i++) {
		_cleanup_(str_done) struct str s = STR_INIT;
		_cleanup_json_ json_t *back = NULL;
		struct error err = ERROR_INIT;

		for (int n = (int)(x % 7); n >= 0; n--) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			str_add(&s, pieces[x % ARRAY_LEN(pieces)]);
		}
		_cleanup_json_ json_t *tree = json_pack("{s:s,s:[s,[s],{s:s}],s:{s:s,s:i}}", "k", s.buf, "l", s.buf, s.buf, "x", s.buf, "m", "n", s.buf,
			s.buf, 1);
		_cleanup_free_ char *text = yaml_text(tree);
		ck_assert_msg(yaml_read(text, strlen(text), &back, &err) == 0, "%s\n%s", err.text, text);
		_cleanup_free_ char *a = json_canonical(tree), *b = json_canonical(json_array_get(back, 0));
		ck_assert_msg(str_eq(a, b), "%s\n%s\n%s", text, a, b);
	}
}
END_TEST

START_TEST(long_key)
{
	_cleanup_json_ json_t *tree = json_object(), *back = NULL;
	char key[3000];

	memset(key, 'k', sizeof(key) - 1);
	key[sizeof(key) - 1] = '\0';
	json_object_set_new(tree, key, json_pack("[i,i]", 1, 2));
	_cleanup_free_ char *text = yaml_text(tree);
	ck_assert_int_eq(yaml_read(text, strlen(text), &back, NULL), 0);
	ck_assert(json_equal(tree, json_array_get(back, 0)));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("yaml");
	TCase *t = tcase_create("yaml");

	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, scalar_case, 0, ARRAY_LEN(scalars));
	tcase_add_loop_test(t, document_case, 0, ARRAY_LEN(documents));
	tcase_add_test(t, bombs);
	tcase_add_loop_test(t, text_case, 0, ARRAY_LEN(texts));
	tcase_add_test(t, written_is_read);
	tcase_add_test(t, long_key);
	suite_add_tcase(s, t);
	SRunner *runner = srunner_create(s);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}

/* json_test.c - purpose: JSON texts and trees by table, with the errors of bad ones. */
#include "common/wire/json.h"
#include "common/wire/utf8.h"

#include <check.h>
#include <math.h>

static const struct {
	const char *text, *want; /* compact text */
} good[] = {
	{ "{}", "{}" }, { " [ ] ", "[]" }, { "\t\r\n1\n", "1" }, { "null", "null" }, { "[true,false]", "[true,false]" },
	{ "{\"b\":1,\"a\":[2,{\"c\":null}]}", "{\"b\":1,\"a\":[2,{\"c\":null}]}" },
	{ "{\"a\":1,\"a\":2}", "{\"a\":2}" }, /* not strict: the last one */
	{ "[0,-0,-1,9223372036854775807,-9223372036854775808]", "[0,0,-1,9223372036854775807,-9223372036854775808]" },
	{ "9223372036854775808", "9223372036854776000" }, { "1e3", "1000" }, { "1.50", "1.5" }, { "1.1", "1.1" }, { "-2.5E-3", "-0.0025" },
	{ "1e21", "1e+21" }, { "1e-7", "1e-7" }, { "1e-10", "1e-10" }, { "123456789.125", "123456789.125" },
	{ "1.7976931348623157e308", "1.7976931348623157e+308" }, { "5e-324", "5e-324" }, { "0.000001", "0.000001" }, { "0.0", "0" },
	{ "\"\"", "\"\"" }, { "\"a\\\"\\\\\\/\\b\\f\\n\\r\\tz\"", "\"a\\\"\\\\/\\u0008\\u000c\\n\\r\\tz\"" },
	{ "\"\\u0041\\u00e4\\u20ac\\ud83d\\ude00\"", "\"A\u00e4\u20ac\U0001f600\"" }, { "\"\u00e4\"", "\"\u00e4\"" },
	{ "\"\\ud83d\"", "\"\ufffd\"" }, { "\"\\ude00x\"", "\"\ufffdx\"" }, { "\"\\ud83d\\u0041\"", "\"\ufffdA\"" },
	{ "\"\\ud83d\\ud83d\\ude00\"", "\"\ufffd\U0001f600\"" }, { "\"a\xff\xfe\"", "\"a\ufffd\ufffd\"" }, { "\"\xc0\x80\"", "\"\ufffd\ufffd\"" },
	{ "\"\xed\xa0\x80\"", "\"\ufffd\ufffd\ufffd\"" }, { "\"\x7f\"", "\"\x7f\"" },
};

START_TEST(good_case)
{
	_cleanup_json_ json_t *tree = NULL;
	struct error err = ERROR_INIT;
	size_t len = strlen(good[_i].text);
	_cleanup_free_ char *exact = xmemdup(good[_i].text, len); /* no NUL behind it: ASan watches */

	ck_assert_msg(json_read(exact, len, false, &tree, &err) == 0, "%s: %s", good[_i].text, err.text);
	_cleanup_free_ char *text = json_text(tree);
	ck_assert_str_eq(text, good[_i].want);
}
END_TEST

static const struct {
	const char *text, *want;
} bad[] = {
	{ "", "line 1, column 1: end of text where a value should be" },
	{ "  \n ", "line 2, column 2: end of text where a value should be" },
	{ "{\"a\":1,\n \"a\":2}", "line 2, column 2: key \"a\" stands here twice" },
	{ "{\"a\" 1}", "line 1, column 6: '1' where ':' should be" },
	{ "{\"a\":1", "line 1, column 7: end of text where ',' or '}' should be" },
	{ "{\"a\":1,}", "line 1, column 8: '}' where a key in quotes should be" },
	{ "{a:1}", "line 1, column 2: 'a' where a key in quotes should be" },
	{ "[1 2]", "line 1, column 4: '2' where ',' or ']' should be" }, { "[1,]", "line 1, column 4: ']' where a value should be" },
	{ "1 2", "line 1, column 3: '2' where the end should be" }, { "{}}", "line 1, column 3: '}' where the end should be" },
	{ "tru", "line 1, column 1: 't' where a value should be" }, { "nul", "line 1, column 1: 'n' where a value should be" },
	{ "\x01", "line 1, column 1: 0x01 where a value should be" }, { "'a'", "line 1, column 1: ''' where a value should be" },
	{ "01", "line 1, column 1: number with a leading zero" }, { "-", "line 1, column 2: end of text where a value should be" },
	{ "1.", "line 1, column 3: end of text where a digit should be" }, { "1e", "line 1, column 3: end of text where a digit should be" },
	{ ".5", "line 1, column 1: '.' where a value should be" }, { "+1", "line 1, column 1: '+' where a value should be" },
	{ "1e999", "line 1, column 1: number 1e999 is out of range" }, { "NaN", "line 1, column 1: 'N' where a value should be" },
	{ "\"abc", "line 1, column 5: string without its end" }, { "\"a\nb\"", "line 1, column 3: control character 0x0a in a string" },
	{ "\"\\x\"", "line 1, column 3: unknown escape" }, { "\"\\u12g4\"", "line 1, column 4: malformed \\u escape" },
	{ "\"\\u12", "line 1, column 4: malformed \\u escape" }, { "\"\\", "line 1, column 3: end of text where an escape should be" },
	{ "\"\\u0000\"", "line 1, column 8: NUL character in a string" },
};

START_TEST(bad_case)
{
	json_t *tree = NULL;
	struct error err = ERROR_INIT;
	size_t len = strlen(bad[_i].text);
	_cleanup_free_ char *exact = xmemdup(bad[_i].text, len);

	ck_assert_int_lt(json_read(exact, len, true, &tree, &err), 0);
	ck_assert_ptr_null(tree);
	ck_assert_int_eq(err.code, ERROR_INVALID);
	ck_assert_msg(str_starts(err.text, bad[_i].want), "%s\n got: %s\nwant: %s", bad[_i].text, err.text, bad[_i].want);
}
END_TEST

START_TEST(limits)
{
	_cleanup_(str_done) struct str s = STR_INIT;
	struct error err = ERROR_INIT;
	json_t *tree = NULL;

	for (int i = 0; i < 100000; i++)
		str_add(&s, "[");
	ck_assert_int_lt(json_read(s.buf, s.len, false, &tree, &err), 0);
	ck_assert_str_eq(err.text, "line 1, column 202: more than 200 levels deep");
	str_reset(&s);
	for (int i = 0; i < JSON_DEPTH_MAX; i++)
		str_add(&s, "[");
	for (int i = 0; i < JSON_DEPTH_MAX; i++)
		str_add(&s, "]");
	ck_assert_int_eq(json_read(s.buf, s.len, false, &tree, &err), 0);
	json_decref(tree);
	tree = NULL;
	str_reserve(&s, JSON_TEXT_MAX + 10);
	memset(s.buf, ' ', JSON_TEXT_MAX + 1);
	ck_assert_int_lt(json_read(s.buf, JSON_TEXT_MAX + 1, false, &tree, &err), 0);
	ck_assert_int_eq(err.code, ERROR_EXHAUSTED);
}
END_TEST

START_TEST(several)
{
	const char *text = " {\"a\":1} [2]\n3 ";
	size_t at = 0, n = 0;

	for (; at < strlen(text); n++) {
		_cleanup_json_ json_t *tree = NULL;

		ck_assert_int_eq(json_read_next(text, strlen(text), &at, true, &tree, NULL), 0);
	}
	ck_assert_uint_eq(n, 3);
}
END_TEST

START_TEST(paths)
{
	const char *text = "{\"spec\":{\"hostNetwork\":true,\"n\":5,\"r\":1.5,\"c\":[{\"name\":\"x\"},{\"name\":\"y\"}]},\"k\":null}";
	_cleanup_json_ json_t *tree = NULL;

	ck_assert_int_eq(json_read(text, strlen(text), true, &tree, NULL), 0);
	ck_assert(json_bool_at(tree, "spec.hostNetwork", false));
	ck_assert(json_bool_at(tree, "spec.n", true));
	ck_assert(!json_bool_at(tree, "spec.absent", false));
	ck_assert_int_eq(json_int_at(tree, "spec.n", 7), 5);
	ck_assert_int_eq(json_int_at(tree, "spec.r", 7), 7);
	ck_assert_int_eq(json_int_at(tree, "spec.n.x", 7), 7);
	ck_assert_str_eq(json_str_at(tree, "spec.c.1.name", "-"), "y");
	ck_assert_str_eq(json_str_at(tree, "spec.c.2.name", "-"), "-");
	ck_assert_str_eq(json_str_at(tree, "spec.c.-1.name", "-"), "-");
	ck_assert_str_eq(json_str_at(tree, "k", "-"), "-");
	ck_assert_ptr_null(json_str_at(NULL, "a", NULL));
	ck_assert_ptr_eq(json_at(tree, ""), tree);
	ck_assert_ptr_null(json_at(tree, "spec..n"));
}
END_TEST

START_TEST(canonical)
{
	const char *a = "{\"b\":{\"y\":1,\"x\":2},\"a\":[{\"d\":1,\"c\":2}]}", *b = "{\"a\":[{\"c\":2,\"d\":1}],\"b\":{\"x\":2,\"y\":1}}";
	_cleanup_json_ json_t *ja = NULL, *jb = NULL;

	ck_assert_int_eq(json_read(a, strlen(a), true, &ja, NULL), 0);
	ck_assert_int_eq(json_read(b, strlen(b), true, &jb, NULL), 0);
	_cleanup_free_ char *ta = json_canonical(ja), *tb = json_canonical(jb), *stored = json_text(ja);
	ck_assert_str_eq(ta, b);
	ck_assert_str_eq(ta, tb);
	ck_assert_str_eq(stored, a);
}
END_TEST

/* Doubles of every exponent come back bit by bit. */
START_TEST(reals_round_trip)
{
	uint64_t x = 88172645463325252ULL;

	for (int i = 0; i < 20000; i++) {
		_cleanup_(str_done) struct str s = STR_INIT;
		double v;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		memcpy(&v, &x, sizeof(v));
		if (!isfinite(v))
			continue;
		json_add_real(&s, v);
		ck_assert_msg(strtod(s.buf, NULL) == v, "%s", s.buf);
	}
}
END_TEST

START_TEST(utf8)
{
	uint32_t code;

	for (uint32_t c = 0; c <= 0x110000; c += c < 0x3000 ? 1 : 97) {
		_cleanup_(str_done) struct str s = STR_INIT;
		bool valid = c < 0x110000 && (c < 0xd800 || c >= 0xe000);

		utf8_add(&s, c);
		size_t n = utf8_decode(s.buf, s.len, &code);
		ck_assert_uint_eq(n, valid ? s.len : 0);
		if (valid)
			ck_assert_uint_eq(code, c);
		ck_assert_uint_eq(utf8_decode(s.buf, s.len - 1, &code), 0);
	}
	ck_assert(utf8_valid("a\u00e4\U0001f600", 7));
	ck_assert(!utf8_valid("a\xc3", 2));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("json");
	TCase *t = tcase_create("json");

	tcase_add_loop_test(t, good_case, 0, ARRAY_LEN(good));
	tcase_add_loop_test(t, bad_case, 0, ARRAY_LEN(bad));
	tcase_add_test(t, limits);
	tcase_add_test(t, several);
	tcase_add_test(t, paths);
	tcase_add_test(t, canonical);
	tcase_add_test(t, reals_round_trip);
	tcase_add_test(t, utf8);
	suite_add_tcase(s, t);
	SRunner *runner = srunner_create(s);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}

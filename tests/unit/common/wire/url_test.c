/* url_test.c - purpose: percent encoding and queries by table. */
#include "common/wire/url.h"

#include <check.h>

static const struct {
	const char *text;
	bool plus;
	const char *want; /* NULL: refused */
} decode[] = {
	{ "", false, "" }, { "a%20b", false, "a b" }, { "a+b", false, "a+b" }, { "a+b", true, "a b" }, { "%2F%2f", false, "//" },
	{ "%", false, NULL }, { "%2", false, NULL }, { "a%2", false, NULL }, { "%zz", false, NULL }, { "%00", false, NULL },
	{ "%C3%A4", false, "\xc3\xa4" }, { "%25", false, "%" },
};

START_TEST(decode_case)
{
	_cleanup_free_ char *got = NULL;
	_cleanup_free_ char *exact = xmemdup(decode[_i].text, strlen(decode[_i].text)); /* no NUL: ASan watches */
	int r = url_decode(exact, strlen(decode[_i].text), decode[_i].plus, &got);

	ck_assert_int_eq(r < 0, !decode[_i].want);
	ck_assert_pstr_eq(got, decode[_i].want);
}
END_TEST

START_TEST(encode)
{
	_cleanup_(str_done) struct str s = STR_INIT;

	url_encode(&s, "a=b,c in (d)/\xc3\xa4~-._%");
	ck_assert_str_eq(s.buf, "a%3Db%2Cc%20in%20%28d%29%2F%C3%A4~-._%25");
}
END_TEST

static const struct {
	const char *query, *name, *want;
} query[] = {
	{ "", "a", NULL }, { "a", "a", "" }, { "a=", "a", "" }, { "a=1&b=2", "b", "2" }, { "ab=1&b=2", "b", "2" }, { "a=1&a=2", "a", "1" },
	{ "a=%zz&a=2", "a", "2" }, { "%61=x", "a", "x" }, { "a=b=c", "a", "b=c" }, { "&&a=1&&", "a", "1" },
	{ "labelSelector=app%3Dweb+x", "labelSelector", "app=web x" }, { NULL, "a", NULL },
};

START_TEST(query_case)
{
	_cleanup_free_ char *got = url_query_get(query[_i].query, query[_i].name);

	ck_assert_pstr_eq(got, query[_i].want);
}
END_TEST

START_TEST(query_all)
{
	_cleanup_(strv_done) struct strv l = STRV_INIT;

	url_query_get_all("c=a&x=1&c=b&c", "c", &l);
	ck_assert_uint_eq(l.n, 3);
	ck_assert_str_eq(l.v[0], "a");
	ck_assert_str_eq(l.v[1], "b");
	ck_assert_str_eq(l.v[2], "");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("url");
	TCase *t = tcase_create("url");

	tcase_add_loop_test(t, decode_case, 0, ARRAY_LEN(decode));
	tcase_add_test(t, encode);
	tcase_add_loop_test(t, query_case, 0, ARRAY_LEN(query));
	tcase_add_test(t, query_all);
	suite_add_tcase(s, t);
	SRunner *runner = srunner_create(s);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}

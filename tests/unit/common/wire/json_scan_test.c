/* json_scan_test.c - purpose: lists and streams cut into items, in pieces of every size. */
#include "common/wire/json_scan.h"

#include <check.h>

static const struct {
	enum json_scan_mode mode;
	const char *text, *want; /* "<item><item>rest" or an error; "..." when more is to come */
} cases[] = {
	{ JSON_SCAN_STREAM, "{\"a\":1}\n{\"b\":{\"c\":[]}}\n", "<{\"a\":1}><{\"b\":{\"c\":[]}}>" },
	{ JSON_SCAN_STREAM, " \r\n\t{}{}", "<{}><{}>" },
	{ JSON_SCAN_STREAM, "{\"a\":\"}{\\\"}\"}{\"b\":\"\\\\\"}", "<{\"a\":\"}{\\\"}\"}><{\"b\":\"\\\\\"}>" },
	{ JSON_SCAN_STREAM, "{\"a\":1", "..." }, { JSON_SCAN_STREAM, "{\"a\":\"}", "..." },
	{ JSON_SCAN_STREAM, "{}x", "<{}>answer is not JSON: it begins with byte 0x78" },
	{ JSON_SCAN_STREAM, "<html>", "answer is not JSON: it begins with byte 0x3c" }, { JSON_SCAN_STREAM, "[1]", "answer is not JSON: it begins with byte 0x5b" },
	{ JSON_SCAN_STREAM, "{\"a\":1]]", "<{\"a\":1]>answer is not JSON: it begins with byte 0x5d" },
	{ JSON_SCAN_STREAM, "{\"a\":\"0123456789012345678901234567890123456789\"}{}", "<!><{}>" },
	{ JSON_SCAN_LIST, "{\"kind\":\"L\",\"items\":[{\"a\":1},{\"b\":[{}]}],\"m\":{\"x\":1}}", "<{\"a\":1}><{\"b\":[{}]}>{\"kind\":\"L\",\"items\":[],\"m\":{\"x\":1}}" },
	{ JSON_SCAN_LIST, " { \"items\" : [ { } ,\n { } ] , \"a\" : 1 } \n", "<{ }><{ }>{ \"items\" : [] , \"a\" : 1 }" },
	{ JSON_SCAN_LIST, "{\"items\":[]}", "{\"items\":[]}" }, { JSON_SCAN_LIST, "{\"items\":null}", "{\"items\":null}" }, { JSON_SCAN_LIST, "{}", "{}" },
	{ JSON_SCAN_LIST, "{\"m\":{\"items\":[{}]},\"a\":[[{}]]}", "{\"m\":{\"items\":[{}]},\"a\":[[{}]]}" },
	{ JSON_SCAN_LIST, "{\"a\":\"items\",\"b\":[{}]}", "{\"a\":\"items\",\"b\":[{}]}" }, { JSON_SCAN_LIST, "{\"itemsx\":[{}]}", "{\"itemsx\":[{}]}" },
	{ JSON_SCAN_LIST, "{\"items\":{\"items\":[{}]}}", "{\"items\":{\"items\":[{}]}}" },
	{ JSON_SCAN_LIST, "{\"a\":{},\"items\":[{}]}", "<{}>{\"a\":{},\"items\":[]}" }, { JSON_SCAN_LIST, "{\"a\":[1,{\"b\":2}],\"items\":[{}]}", "<{}>{\"a\":[1,{\"b\":2}],\"items\":[]}" },
	{ JSON_SCAN_LIST, "{\"items\":[1, \"a,]\" ,null,[{}],{}]}", "<1><\"a,]\" ><null><[{}]><{}>{\"items\":[]}" },
	{ JSON_SCAN_LIST, "{\"items\":[{\"a\":\"]}\"}]}", "<{\"a\":\"]}\"}>{\"items\":[]}" },
	{ JSON_SCAN_LIST, "{\"items\":[{\"a\":1", "..." }, { JSON_SCAN_LIST, "{\"items\":[{}]", "<{}>..." }, { JSON_SCAN_LIST, "{\"items\":[{}],\"a\":\"", "<{}>..." },
	{ JSON_SCAN_LIST, "{\"items\":[1}", "<1>'}' between the items of a list" }, { JSON_SCAN_LIST, "{} x", "{}bytes behind the end of a list" }, { JSON_SCAN_LIST, "", "" },
	{ JSON_SCAN_LIST, "{\"items\":[{\"a\":\"0123456789012345678901234567890123456789\"},{}]}", "<!><{}>{\"items\":[]}" },
};

static char *scan(enum json_scan_mode mode, const char *text, size_t len, size_t step)
{
	_cleanup_(json_scan_done) struct json_scan s;
	struct str out = STR_INIT;

	json_scan_init(&s, mode);
	s.item_max = 30;
	for (size_t at = 0; at < len; at += step) {
		size_t n = MIN(step, len - at);
		_cleanup_free_ char *piece = xmemdup(text + at, n);
		struct bytes in = { piece, n };
		enum json_scan_event ev;

		do {
			struct error err = ERROR_INIT;

			if (json_scan_read(&s, &in, &ev, &err) < 0) {
				str_add(&out, err.text);
				return str_take(&out);
			}
			if (ev == JSON_SCAN_ITEM)
				str_addf(&out, "<%s>", s.item.buf);
			if (ev == JSON_SCAN_TOO_LARGE)
				str_add(&out, "<!>");
			if (ev == JSON_SCAN_END)
				str_add(&out, s.rest.buf);
		} while (ev != JSON_SCAN_MORE);
		ck_assert_uint_eq(in.len, 0);
	}
	if (json_scan_inside(&s))
		str_add(&out, "...");
	return str_take(&out);
}

START_TEST(scan_case)
{
	for (size_t step = 1; step < 60; step++) {
		_cleanup_free_ char *got = scan(cases[_i].mode, cases[_i].text, strlen(cases[_i].text), step);

		ck_assert_msg(str_eq(got, cases[_i].want), "step %zu: %s\n got: %s\nwant: %s", step, cases[_i].text, got, cases[_i].want);
	}
}
END_TEST

START_TEST(limits)
{
	_cleanup_(str_done) struct str deep = STR_INIT, wide = STR_INIT;

	for (int i = 0; i < 20000; i++)
		str_add(&deep, "{\"a\":");
	str_add(&wide, "{\"a\":\"");
	for (int i = 0; i < JSON_SCAN_REST_MAX; i++)
		str_add_char(&wide, 'x');
	_cleanup_free_ char *a = scan(JSON_SCAN_STREAM, deep.buf, deep.len, 4096), *b = scan(JSON_SCAN_LIST, wide.buf, wide.len, 4096);
	ck_assert_str_eq(a, "object nested too deeply");
	ck_assert_str_eq(b, "more than 262144 bytes around the items of a list");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("json_scan");
	TCase *t = tcase_create("json_scan");

	tcase_add_loop_test(t, scan_case, 0, ARRAY_LEN(cases));
	tcase_add_test(t, limits);
	suite_add_tcase(s, t);
	SRunner *runner = srunner_create(s);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}

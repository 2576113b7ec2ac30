/* grpc_test.c - purpose: gRPC framing, time-outs and status texts, by table. */
#include "common/wire/grpc.h"

#include <check.h>
#include <stdio.h>

static const struct {
	const char *text;
	int r;
	uint64_t ns;
} timeouts[] = {
	{ "1n", 0, 1 },
	{ "0S", 0, 0 },
	{ "1999285u", 0, 1999285000ull },
	{ "10S", 0, 10000000000ull },
	{ "2M", 0, 120000000000ull },
	{ "99999999H", 0, UINT64_MAX }, /* 11 000 years */
	{ "00000001S", 0, 1000000000ull },
	{ "123456789S", -22, 0 },
	{ "", -22, 0 },
	{ "S", -22, 0 },
	{ "10", -22, 0 },
	{ "10s", -22, 0 },
	{ "10SS", -22, 0 },
	{ "-1S", -22, 0 },
	{ "1 S", -22, 0 },
};

START_TEST(timeout_case)
{
	uint64_t ns = 0;
	int r = grpc_timeout_parse(timeouts[_i].text, &ns);

	ck_assert_msg(r == timeouts[_i].r && (r < 0 || ns == timeouts[_i].ns), "\"%s\": got %d, %llu",
		timeouts[_i].text, r, (unsigned long long)ns);
}
END_TEST

static const struct {
	uint64_t ns;
	const char *text;
} formats[] = {
	{ 1, "1n" },
	{ 99999998, "99999998n" },
	{ 100000000, "100000u" },
	{ 10000000000ull, "10000000u" },
	{ 120000000001ull, "120001m" },
	{ 3600000000000000ull, "3600000S" },
	{ UINT64_MAX, "5124096H" },
};

START_TEST(format_case)
{
	char text[GRPC_TIMEOUT_TEXT_MAX];
	uint64_t back;

	grpc_timeout_format(formats[_i].ns, text);
	ck_assert_int_eq(grpc_timeout_parse(text, &back), 0);
	ck_assert_uint_ge(back, formats[_i].ns);
	ck_assert_str_eq(text, formats[_i].text);
}
END_TEST

static const struct {
	const char *plain;
	const char *wire;
} messages[] = {
	{ "", "" },
	{ "not found", "not found" },
	{ "100%", "100%25" },
	{ "Gr\xc3\xb6\xc3\x9f"
	  "e",
		"Gr%C3%B6%C3%9Fe" },
	{ "two\nlines", "two%0Alines" },
};

START_TEST(message_case)
{
	_cleanup_(str_done) struct str wire = STR_INIT, plain = STR_INIT;

	grpc_message_encode(&wire, messages[_i].plain);
	ck_assert_str_eq(str_get(&wire), messages[_i].wire);
	grpc_message_decode(&plain, messages[_i].wire);
	ck_assert_str_eq(str_get(&plain), messages[_i].plain);
}
END_TEST

START_TEST(message_bad)
{
	_cleanup_(str_done) struct str plain = STR_INIT;

	grpc_message_decode(&plain, "a%00b%zz%4%");
	ck_assert_str_eq(str_get(&plain), "a?b%zz%4%");
}
END_TEST

START_TEST(status_and_type)
{
	ck_assert_int_eq(grpc_status_parse("0"), ERROR_OK);
	ck_assert_int_eq(grpc_status_parse("5"), ERROR_NOT_FOUND);
	ck_assert_int_eq(grpc_status_parse("16"), ERROR_UNAUTHENTICATED);
	ck_assert_int_eq(grpc_status_parse("17"), ERROR_UNKNOWN);
	ck_assert_int_eq(grpc_status_parse(""), ERROR_UNKNOWN);
	ck_assert_int_eq(grpc_status_parse("-1"), ERROR_UNKNOWN);
	ck_assert_int_eq(grpc_status_parse("100"), ERROR_UNKNOWN);
	ck_assert(grpc_content_type("application/grpc"));
	ck_assert(grpc_content_type("application/grpc+proto"));
	ck_assert(grpc_content_type("application/grpc;charset=utf-8"));
	ck_assert(!grpc_content_type("application/grpc-web"));
	ck_assert(!grpc_content_type("text/plain"));
	ck_assert(!grpc_content_type(NULL));
}
END_TEST

/* Two messages of 3 and 0 bytes, cut at every place. */
START_TEST(reader_split)
{
	static const uint8_t wire[] = { 0, 0, 0, 0, 3, 'a', 'b', 'c', 0, 0, 0, 0, 0 };
	struct grpc_reader reader = GRPC_READER_INIT(10);
	struct bytes got;
	int n = 0, part;

	for (part = 0; part < 2; part++) {
		const uint8_t *p = part ? wire + _i : wire;
		size_t len = part ? sizeof(wire) - (size_t)_i : (size_t)_i;
		int r;

		while ((r = grpc_reader_next(&reader, &p, &len, &got, NULL)) > 0) {
			ck_assert_uint_eq(got.len, n == 0 ? 3 : 0);
			if (n++ == 0)
				ck_assert_int_eq(memcmp(got.ptr, "abc", 3), 0);
		}
		ck_assert_int_eq(r, 0);
		ck_assert_uint_eq(len, 0);
	}
	ck_assert_int_eq(n, 2);
	ck_assert(!grpc_reader_midway(&reader));
	grpc_reader_done(&reader);
}
END_TEST

static const struct {
	uint8_t prefix[5];
	enum error_code code;
} refused[] = {
	{ { 1, 0, 0, 0, 1 }, ERROR_UNIMPLEMENTED },
	{ { 0, 0, 0, 0, 11 }, ERROR_EXHAUSTED },
	{ { 0, 0xff, 0xff, 0xff, 0xff }, ERROR_EXHAUSTED },
};

START_TEST(reader_refuses)
{
	struct grpc_reader reader = GRPC_READER_INIT(10);
	const uint8_t *p = refused[_i].prefix;
	size_t len = 5;
	struct bytes got;
	struct error err = ERROR_INIT;

	ck_assert_int_lt(grpc_reader_next(&reader, &p, &len, &got, &err), 0);
	ck_assert_int_eq(err.code, refused[_i].code);
	grpc_reader_done(&reader);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("grpc");
	TCase *tc = tcase_create("grpc");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(tc, timeout_case, 0, ARRAY_LEN(timeouts));
	tcase_add_loop_test(tc, format_case, 0, ARRAY_LEN(formats));
	tcase_add_loop_test(tc, message_case, 0, ARRAY_LEN(messages));
	tcase_add_test(tc, message_bad);
	tcase_add_test(tc, status_and_type);
	tcase_add_loop_test(tc, reader_split, 0, 14);
	tcase_add_loop_test(tc, reader_refuses, 0, ARRAY_LEN(refused));
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}

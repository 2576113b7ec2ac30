/* quantity_test.c - purpose: quantities by table, checked against k8s.io/apimachinery's own parser. */
#include "common/base/quantity.h"

#include <check.h>
#include <stdio.h>

static const struct {
	const char *text, *canonical;
	int64_t value, milli; /* rounded away from zero */
} good[] = {
	{ "0", "0", 0, 0 }, { "-0", "0", 0, 0 }, { "+0", "0", 0, 0 }, { "0Ki", "0", 0, 0 }, { "0n", "0", 0, 0 }, { "00", "0", 0, 0 },
	{ "1", "1", 1, 1000 }, { "+1", "1", 1, 1000 }, { "-1", "-1", -1, -1000 }, { "007", "7", 7, 7000 }, { "1.", "1", 1, 1000 },
	{ ".5", "500m", 1, 500 }, { "0.5", "500m", 1, 500 }, { "1.5", "1500m", 2, 1500 }, { "0.1", "100m", 1, 100 }, { "1.0001", "1000100u", 2, 1001 },
	{ "100m", "100m", 1, 100 }, { "1000m", "1", 1, 1000 }, { "1500m", "1500m", 2, 1500 }, { "250m", "250m", 1, 250 }, { "1001m", "1001m", 2, 1001 },
	{ "0.5m", "500u", 1, 1 }, { "1u", "1u", 1, 1 }, { "1n", "1n", 1, 1 }, { "0.1n", "1n", 1, 1 }, { "1.1n", "2n", 1, 1 }, { "-0.1n", "-1n", -1, -1 },
	{ "999n", "999n", 1, 1 }, { "1000n", "1u", 1, 1 }, { "1000000000n", "1", 1, 1000 },
	{ "1k", "1k", 1000, 1000000 }, { "1M", "1M", 1000000, 1000000000 }, { "1G", "1G", 1000000000, 1000000000000 },
	{ "1T", "1T", 1000000000000, 1000000000000000 }, { "1P", "1P", 1000000000000000, 1000000000000000000 }, { "1E", "1E", 1000000000000000000, INT64_MAX },
	{ "1.5k", "1500", 1500, 1500000 }, { "1000k", "1M", 1000000, 1000000000 }, { "1234k", "1234k", 1234000, 1234000000 },
	{ "10000", "10k", 10000, 10000000 }, { "1.23G", "1230M", 1230000000, 1230000000000 },
	{ "1Ki", "1Ki", 1024, 1024000 }, { "1Mi", "1Mi", 1048576, 1048576000 }, { "1Gi", "1Gi", 1073741824, 1073741824000 },
	{ "1Ti", "1Ti", 1099511627776, 1099511627776000 }, { "1Pi", "1Pi", 1125899906842624, 1125899906842624000 },
	{ "1Ei", "1Ei", 1152921504606846976, INT64_MAX }, { "7Ei", "7Ei", 8070450532247928832, INT64_MAX },
	{ "1024Ki", "1Mi", 1048576, 1048576000 }, { "1.5Gi", "1536Mi", 1610612736, 1610612736000 }, { "0.5Mi", "512Ki", 524288, 524288000 },
	{ "0.5Ki", "512", 512, 512000 }, { "1025Ki", "1025Ki", 1049600, 1049600000 }, { "0.1Ki", "102400m", 103, 102400 },
	{ "0.0001Ki", "102400u", 1, 103 }, { "1.1Ki", "1126400m", 1127, 1126400 }, { "-2Ki", "-2Ki", -2048, -2048000 },
	{ "1e3", "1e3", 1000, 1000000 }, { "1E3", "1e3", 1000, 1000000 }, { "1e0", "1", 1, 1000 }, { "12e6", "12e6", 12000000, 12000000000 },
	{ "1e+3", "1e3", 1000, 1000000 }, { "1.5e3", "1500", 1500, 1500000 }, { "15e-1", "1500e-3", 2, 1500 }, { "1e-3", "1e-3", 1, 1 }, { "1e4", "10e3", 10000, 10000000 },
	{ "1e-9", "1e-9", 1, 1 }, { "1e-12", "1e-9", 1, 1 }, { "100e-2", "1", 1, 1000 },
	/* at and beyond 64 bits */
	{ "9223372036854775807", "9223372036854775807", INT64_MAX, INT64_MAX }, { "9223372036854775808", "9223372036854775808", INT64_MAX, INT64_MAX },
	{ "-9223372036854775808", "-9223372036854775808", INT64_MIN, INT64_MIN }, { "-9223372036854775809", "-9223372036854775809", INT64_MIN, INT64_MIN },
	{ "8Ei", "9223372036854775807", INT64_MAX, INT64_MAX }, { "1000Ei", "9223372036854775807", INT64_MAX, INT64_MAX }, { "-9Ei", "-9223372036854775807", -INT64_MAX, INT64_MIN },
	{ "99999999999999Ei", "9223372036854775807", INT64_MAX, INT64_MAX }, { "10E", "10E", INT64_MAX, INT64_MAX }, { "100000E", "100000E", INT64_MAX, INT64_MAX },
	{ "12345678.9", "12345678900m", 12345679, 12345678900 }, { "15.9999999999", "16", 16, 16000 },
};

START_TEST(good_case)
{
	struct quantity q;
	struct error err = ERROR_INIT;
	char text[QUANTITY_TEXT_MAX];

	ck_assert_msg(quantity_parse(good[_i].text, &q, &err) == 0, "%s: %s", good[_i].text, err.text);
	quantity_text(q, quantity_format_of(good[_i].text), text);
	ck_assert_msg(str_eq(text, good[_i].canonical), "%s: got %s, want %s", good[_i].text, text, good[_i].canonical);
	ck_assert_int_eq(quantity_value(q), good[_i].value);
	ck_assert_int_eq(quantity_milli(q), good[_i].milli);
}
END_TEST

static const char *const bad[] = { "", "-", "+", ".", "k", "Mi", "1 ", " 1", "1ki", "1K", "1mi", "1i", "1KI", "1kB", "1Gb", "1e", "1e+", "1e1.5", "1E-",
	"1e3Ki", "1..2", "1.2.3", "0x1", "1_0", "1,5", "--1", "+-1", "1m5", "1Mi5", "one", "1e101", "99999999999E", "1e99", "NaN", "Inf", "1\n" };

START_TEST(bad_case)
{
	struct quantity q = { 7 };
	struct error err = ERROR_INIT;

	ck_assert_msg(quantity_parse(bad[_i], &q, &err) < 0, "\"%s\" passed", bad[_i]);
	ck_assert_int_eq(err.code, ERROR_INVALID);
	ck_assert_ptr_nonnull(strstr(err.text, bad[_i]));
	ck_assert(q.nano == 7);
}
END_TEST

START_TEST(too_long)
{
	char text[401];
	struct quantity q;

	memset(text, '0', 400);
	text[400] = '\0';
	ck_assert_int_lt(quantity_parse(text, &q, NULL), 0);
	memset(text, '9', 400);
	ck_assert_int_lt(quantity_parse(text, &q, NULL), 0);
}
END_TEST

static const struct {
	const char *q, *divisor;
	int64_t want;
} divisions[] = {
	{ "1", "1", 1 }, { "1500m", "1", 2 }, { "1500m", "1m", 1500 }, { "64Mi", "1Mi", 64 }, { "65Mi", "1Gi", 1 }, { "64Mi", "1M", 68 },
	{ "0", "1Mi", 0 }, { "5", "0", 5 }, { "250m", "1", 1 },
};

START_TEST(division_case)
{
	struct quantity q, d;

	ck_assert_int_eq(quantity_parse(divisions[_i].q, &q, NULL), 0);
	ck_assert_int_eq(quantity_parse(divisions[_i].divisor, &d, NULL), 0);
	ck_assert_int_eq(quantity_divide(q, d), divisions[_i].want);
}
END_TEST

START_TEST(arithmetic)
{
	struct quantity a, b;

	ck_assert_int_eq(quantity_parse("1.5Gi", &a, NULL), 0);
	ck_assert_int_eq(quantity_parse("512Mi", &b, NULL), 0);
	ck_assert_int_eq(quantity_value(quantity_add(a, b)), INT64_C(2) << 30);
	ck_assert_int_gt(quantity_cmp(a, b), 0);
	ck_assert_int_lt(quantity_cmp(b, a), 0);
	ck_assert_int_eq(quantity_cmp(a, a), 0);
	ck_assert_int_eq(quantity_cmp(quantity_of(-3), QUANTITY_ZERO), -1);
}
END_TEST

/* The canonical text of every number is read back as the same number, in each format. */
START_TEST(text_round_trip)
{
	uint64_t x = 88172645463325252ULL;

	for (int i = 0; i < 30000; i++) {
		char text[QUANTITY_TEXT_MAX], again[QUANTITY_TEXT_MAX];
		struct quantity q, back;
		enum quantity_format format = (enum quantity_format)(i % 3);

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		q.nano = (__int128)(int64_t)x >> (i % 63);
		if (i % 2)
			q.nano *= 1000000000 >> (i % 5);
		quantity_text(q, format, text);
		ck_assert_msg(quantity_parse(text, &back, NULL) == 0, "%s", text);
		ck_assert_msg(back.nano == q.nano, "%s", text);
		quantity_text(back, quantity_format_of(text), again);
		if (quantity_format_of(text) == format)
			ck_assert_str_eq(again, text);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("quantity");
	TCase *t = tcase_create("quantity");

	tcase_add_loop_test(t, good_case, 0, ARRAY_LEN(good));
	tcase_add_loop_test(t, bad_case, 0, ARRAY_LEN(bad));
	tcase_add_test(t, too_long);
	tcase_add_loop_test(t, division_case, 0, ARRAY_LEN(divisions));
	tcase_add_test(t, arithmetic);
	tcase_add_test(t, text_round_trip);
	suite_add_tcase(s, t);
	SRunner *runner = srunner_create(s);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}

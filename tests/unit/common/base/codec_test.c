/* codec_test.c - purpose: base64, hex, times, durations and ages by table. */
#include "common/base/codec.h"

#include <check.h>
#include <errno.h>
#include <inttypes.h>

static const struct {
	const char *plain, *text;
} base64[] = {
	{ "", "" }, { "f", "Zg==" }, { "fo", "Zm8=" }, { "foo", "Zm9v" }, { "foob", "Zm9vYg==" }, { "fooba", "Zm9vYmE=" },
	{ "foobar", "Zm9vYmFy" }, { "\xff\xfe\xfd", "//79" }, { "\xfb\xef", "++8=" },
};

START_TEST(base64_case)
{
	_cleanup_free_ char *text = base64_encode(base64[_i].plain, strlen(base64[_i].plain));
	_cleanup_free_ void *back = NULL;
	size_t len;

	ck_assert_str_eq(text, base64[_i].text);
	ck_assert_int_eq(base64_decode(text, strlen(text), &back, &len), 0);
	ck_assert_uint_eq(len, strlen(base64[_i].plain));
	ck_assert_str_eq(back, base64[_i].plain);
}
END_TEST

static const char *const base64_bad[] = { "Z", "Zg", "Zg=", "Zg===", "Zh==", "Zm9=", "====", "Zg==Zg==", "Z-9v", "Zm9v ", "=Zg=",
	"Zm9vY===", "Z\nm\n", "Zg=a" };

START_TEST(base64_bad_case)
{
	void *back = NULL;
	size_t len;

	ck_assert_int_eq(base64_decode(base64_bad[_i], strlen(base64_bad[_i]), &back, &len), -EINVAL);
	ck_assert_ptr_null(back);
}
END_TEST

START_TEST(base64_lines)
{
	_cleanup_free_ void *back = NULL;
	size_t len;

	ck_assert_int_eq(base64_decode("Zm9v\r\nYmFy\n", 11, &back, &len), 0);
	ck_assert_str_eq(back, "foobar");
}
END_TEST

START_TEST(hex)
{
	unsigned char out[3] = { 9, 9, 9 };
	char text[7];

	ck_assert_int_eq(hex_decode("00fF1a", 3, out), 0);
	hex_encode(out, 3, text);
	ck_assert_str_eq(text, "00ff1a");
	ck_assert_int_eq(hex_decode("00ff1", 3, out), -EINVAL);
	ck_assert_int_eq(hex_decode("00ff1a0", 3, out), -EINVAL);
	ck_assert_int_eq(hex_decode("00ff1g", 3, out), -EINVAL);
	ck_assert_int_eq(out[1], 0xff);
}
END_TEST

static const struct {
	const char *text;
	int64_t ns;
	const char *seconds, *micros, *nanos, *go;
} times[] = {
	{ "2026-01-01T00:00:00Z", 1767225600000000000, "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000000Z",
		"2026-01-01T00:00:00.000000000Z", "2026-01-01T00:00:00Z" },
	{ "1970-01-01T00:00:00.5Z", 500000000, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.500000Z",
		"1970-01-01T00:00:00.500000000Z", "1970-01-01T00:00:00.5Z" },
	{ "1969-12-31T23:59:59.999999999Z", -1, "1969-12-31T23:59:59Z", "1969-12-31T23:59:59.999999Z",
		"1969-12-31T23:59:59.999999999Z", "1969-12-31T23:59:59.999999999Z" },
	{ "2024-02-29T12:34:56.123456789+02:00", 1709202896123456789, "2024-02-29T10:34:56Z", "2024-02-29T10:34:56.123456Z",
		"2024-02-29T10:34:56.123456789Z", "2024-02-29T10:34:56.123456789Z" },
	{ "2000-12-31t23:59:59.120-05:30z", 0, NULL, NULL, NULL, NULL },
	{ "2000-12-31t23:59:59.1200000009-05:30", 978326999120000000, "2001-01-01T05:29:59Z", "2001-01-01T05:29:59.120000Z",
		"2001-01-01T05:29:59.120000000Z", "2001-01-01T05:29:59.12Z" },
	{ "2262-04-11T23:47:16.854775807Z", INT64_MAX, "2262-04-11T23:47:16Z", "2262-04-11T23:47:16.854775Z",
		"2262-04-11T23:47:16.854775807Z", "2262-04-11T23:47:16.854775807Z" },
};

START_TEST(time_case)
{
	char text[TIME_TEXT_MAX];
	int64_t ns = 0;

	if (!times[_i].seconds) {
		ck_assert_int_eq(time_parse(times[_i].text, &ns), -EINVAL);
		return;
	}
	ck_assert_int_eq(time_parse(times[_i].text, &ns), 0);
	ck_assert_int_eq(ns, times[_i].ns);
	time_text(ns, TIME_SECONDS, text);
	ck_assert_str_eq(text, times[_i].seconds);
	time_text(ns, TIME_MICROS, text);
	ck_assert_str_eq(text, times[_i].micros);
	time_text(ns, TIME_NANOS, text);
	ck_assert_str_eq(text, times[_i].nanos);
	time_text(ns, TIME_GO, text);
	ck_assert_str_eq(text, times[_i].go);
}
END_TEST

static const struct {
	const char *text;
	int r;
} times_bad[] = {
	{ "", -EINVAL }, { "2026-01-01", -EINVAL }, { "2026-01-01T00:00:00", -EINVAL }, { "2026-13-01T00:00:00Z", -EINVAL },
	{ "2026-02-29T00:00:00Z", -EINVAL }, { "2100-02-29T00:00:00Z", -EINVAL }, { "2026-01-01T24:00:00Z", -EINVAL },
	{ "2026-01-01T00:60:00Z", -EINVAL }, { "2026-01-01T00:00:60Z", -EINVAL }, { "2026-01-01T00:00:00.Z", -EINVAL },
	{ "2026-01-01T00:00:00Zx", -EINVAL }, { "2026-01-01 00:00:00Z", -EINVAL }, { "26-01-01T00:00:00Z", -EINVAL },
	{ "2026-01-01T00:00:00+0200", -EINVAL }, { "2026-01-01T00:00:00+24:00", -EINVAL },
	{ "0001-01-01T00:00:00Z", -ERANGE }, { "9999-01-01T00:00:00Z", -ERANGE },
};

START_TEST(time_bad_case)
{
	int64_t ns = 7;

	ck_assert_int_eq(time_parse(times_bad[_i].text, &ns), times_bad[_i].r);
	ck_assert_int_eq(ns, 7);
}
END_TEST

START_TEST(time_every_day)
{
	/* Each day of 400 years and some: the calendar goes there and back, and days follow one another. */
	for (int64_t day = -100000; day < 90000; day++) {
		char text[TIME_TEXT_MAX];
		int64_t ns;

		time_text(day * 86400000000000, TIME_SECONDS, text);
		if (time_parse(text, &ns) != 0 || ns != day * 86400000000000)
			ck_abort_msg("day %" PRId64 ": %s", day, text);
	}
}
END_TEST

static const struct {
	const char *text;
	int64_t ns;
	const char *back;
} durations[] = {
	{ "0", 0, "0s" }, { "0s", 0, "0s" }, { "1ns", 1, "1ns" }, { "1100ns", 1100, "1.1\u00b5s" }, { "100us", 100000, "100\u00b5s" },
	{ "100\u00b5s", 100000, "100\u00b5s" }, { "100\u03bcs", 100000, "100\u00b5s" }, { "2200us", 2200000, "2.2ms" },
	{ "500ms", 500000000, "500ms" }, { "1s", 1000000000, "1s" }, { "1.5s", 1500000000, "1.5s" }, { ".5s", 500000000, "500ms" },
	{ "5.s", 5000000000, "5s" }, { "1m30s", 90000000000, "1m30s" }, { "90s", 90000000000, "1m30s" }, { "1h", 3600000000000, "1h0m0s" },
	{ "1h0.25s", 3600250000000, "1h0m0.25s" }, { "-1.5h", -5400000000000, "-1h30m0s" }, { "+5m", 300000000000, "5m0s" },
	{ "24h", 86400000000000, "24h0m0s" }, { "1m1m", 120000000000, "2m0s" }, { "0.3333333333333333333h", 1199999999999, "19m59.999999999s" },
	{ "9223372036854775807ns", INT64_MAX, "2562047h47m16.854775807s" }, { "-9223372036854775808ns", INT64_MIN, "-2562047h47m16.854775808s" },
};

START_TEST(duration_case)
{
	char text[DURATION_TEXT_MAX];
	int64_t ns;

	ck_assert_msg(duration_parse(durations[_i].text, &ns) == 0, "%s", durations[_i].text);
	ck_assert_int_eq(ns, durations[_i].ns);
	duration_text(ns, text);
	ck_assert_str_eq(text, durations[_i].back);
}
END_TEST

static const struct {
	const char *text;
	int r;
} durations_bad[] = {
	{ "", -EINVAL }, { "-", -EINVAL }, { "10", -EINVAL }, { "s", -EINVAL }, { ".s", -EINVAL }, { "1d", -EINVAL }, { "1 s", -EINVAL },
	{ "1s ", -EINVAL }, { "1S", -EINVAL }, { "--1s", -EINVAL }, { "1s-1s", -EINVAL }, { "9223372036854775808ns", -ERANGE },
	{ "2562048h", -ERANGE }, { "99999999999999999999999s", -ERANGE }, { "2562047h48m", -ERANGE },
};

START_TEST(duration_bad_case)
{
	int64_t ns = 7;

	ck_assert_msg(duration_parse(durations_bad[_i].text, &ns) == durations_bad[_i].r, "%s", durations_bad[_i].text);
	ck_assert_int_eq(ns, 7);
}
END_TEST

#define MINUTE 60
#define HOUR 3600
#define DAY (24 * HOUR)
#define YEAR (365LL * DAY)
static const struct {
	int64_t seconds;
	const char *text;
} ages[] = {
	{ -2, "<invalid>" }, { -1, "0s" }, { 0, "0s" }, { 119, "119s" }, { 120, "2m" }, { 121, "2m1s" }, { 200, "3m20s" },
	{ 10 * MINUTE + 5, "10m" }, { 179 * MINUTE, "179m" }, { 180 * MINUTE, "3h" }, { 3 * HOUR + 5 * MINUTE, "3h5m" },
	{ 8 * HOUR + 59 * MINUTE, "8h" }, { 47 * HOUR, "47h" }, { 2 * DAY, "2d" }, { 2 * DAY + HOUR, "2d1h" }, { 8 * DAY + HOUR, "8d" },
	{ 729 * DAY, "729d" }, { 2 * YEAR, "2y" }, { 2 * YEAR + DAY, "2y1d" }, { 8 * YEAR + DAY, "8y" },
};

START_TEST(age_case)
{
	char text[DURATION_TEXT_MAX];

	age_text(ages[_i].seconds * 1000000000, text);
	ck_assert_str_eq(text, ages[_i].text);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("codec");
	TCase *t = tcase_create("codec");

	tcase_add_loop_test(t, base64_case, 0, ARRAY_LEN(base64));
	tcase_add_loop_test(t, base64_bad_case, 0, ARRAY_LEN(base64_bad));
	tcase_add_test(t, base64_lines);
	tcase_add_test(t, hex);
	tcase_add_loop_test(t, time_case, 0, ARRAY_LEN(times));
	tcase_add_loop_test(t, time_bad_case, 0, ARRAY_LEN(times_bad));
	tcase_add_test(t, time_every_day);
	tcase_add_loop_test(t, duration_case, 0, ARRAY_LEN(durations));
	tcase_add_loop_test(t, duration_bad_case, 0, ARRAY_LEN(durations_bad));
	tcase_add_loop_test(t, age_case, 0, ARRAY_LEN(ages));
	suite_add_tcase(s, t);
	SRunner *runner = srunner_create(s);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}

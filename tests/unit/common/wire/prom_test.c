/* prom_test.c - purpose: metrics as Prometheus text. */
#include "common/wire/prom.h"

#include <check.h>
#include <math.h>
#include <stdio.h>

START_TEST(counters_and_gauges)
{
	struct prom_metric plain = PROM_COUNTER("a_total", "Some help\nwith \\ lines.");
	struct prom_metric labelled = PROM_COUNTER("b_total", "B.", "verb", "code");
	struct prom_metric gauge = PROM_GAUGE("g", "G.", NULL);
	_cleanup_(str_done) struct str out = STR_INIT;

	prom_write(&out, &plain);
	prom_write(&out, &labelled);
	prom_add(&plain, 1);
	prom_add(&plain, 2.5);
	prom_add(&labelled, 1, "PUT", "500");
	prom_add(&labelled, 1, "GET", "200");
	prom_add(&labelled, 1, "GET", "200");
	prom_add(&labelled, 1, "G\"E\\T\n", NULL);
	prom_set(&gauge, 3);
	prom_set(&gauge, -0.1);
	prom_write(&out, &plain);
	prom_write(&out, &labelled);
	prom_write(&out, &gauge);
	prom_set(&gauge, 12345678901234.0);
	prom_write(&out, &gauge);
	prom_set(&gauge, INFINITY);
	prom_write(&out, &gauge);
	ck_assert_str_eq(out.buf,
		"# HELP a_total Some help\\nwith \\\\ lines.\n# TYPE a_total counter\na_total 0\n"
		"# HELP b_total B.\n# TYPE b_total counter\n"
		"# HELP a_total Some help\\nwith \\\\ lines.\n# TYPE a_total counter\na_total 3.5\n"
		"# HELP b_total B.\n# TYPE b_total counter\n"
		"b_total{verb=\"GET\",code=\"200\"} 2\nb_total{verb=\"G\\\"E\\\\T\\n\",code=\"\"} 1\nb_total{verb=\"PUT\",code=\"500\"} 1\n"
		"# HELP g G.\n# TYPE g gauge\ng -0.1\n"
		"# HELP g G.\n# TYPE g gauge\ng 12345678901234\n"
		"# HELP g G.\n# TYPE g gauge\ng +Inf\n");
	prom_reset(&plain);
	prom_reset(&labelled);
	prom_reset(&gauge);
}
END_TEST

START_TEST(histogram)
{
	static const double bounds[] = { 0.001, 0.1, 5 };
	struct prom_metric h = PROM_HISTOGRAM("h_seconds", "H.", bounds, "op");
	_cleanup_(str_done) struct str out = STR_INIT;

	prom_observe(&h, 0.001, "x");
	prom_observe(&h, 0.05, "x");
	prom_observe(&h, 0.06, "x");
	prom_observe(&h, 7, "x");
	prom_write(&out, &h);
	ck_assert_str_eq(out.buf,
		"# HELP h_seconds H.\n# TYPE h_seconds histogram\n"
		"h_seconds_bucket{op=\"x\",le=\"0.001\"} 1\nh_seconds_bucket{op=\"x\",le=\"0.1\"} 3\nh_seconds_bucket{op=\"x\",le=\"5\"} 3\n"
		"h_seconds_bucket{op=\"x\",le=\"+Inf\"} 4\nh_seconds_sum{op=\"x\"} 7.111\nh_seconds_count{op=\"x\"} 4\n");
	prom_reset(&h);
}
END_TEST

START_TEST(series_are_limited)
{
	struct prom_metric m = PROM_GAUGE("m", "M.", "x");
	char name[16];

	for (int i = 0; i < PROM_SERIES_MAX + 10; i++) {
		snprintf(name, sizeof(name), "%d", i);
		prom_set(&m, 1, name);
	}
	ck_assert_uint_eq(m.series.count, PROM_SERIES_MAX);
	prom_reset(&m);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("prom");
	TCase *t = tcase_create("prom");

	tcase_add_test(t, counters_and_gauges);
	tcase_add_test(t, histogram);
	tcase_add_test(t, series_are_limited);
	suite_add_tcase(s, t);
	SRunner *runner = srunner_create(s);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}

/* options_test.c - purpose: flags in all their spellings, and what bad ones say. */
#include "common/base/options.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>

static const struct option_spec table[] = {
	{ "listen", OPTION_STRING, "/run/x.sock", "address", "Listen on this address" },
	{ "root", OPTION_STRING, NULL, "", "Directory" },
	{ "workers", OPTION_INT, "4", "", "Number of workers" },
	{ "dry-run", OPTION_BOOL, "false", "", "Change nothing" },
	{ "seccomp", OPTION_BOOL, "true", "", "Use seccomp" },
	{ "period", OPTION_DURATION, "10s", "", "Period" },
	{ "labels", OPTION_LIST, "a,b", "", "Labels" },
	{ 0 },
};

struct parsed {
	int r, rest;
	struct option_values *values;
	struct error err;
};

static struct parsed parse(const char *line)
{
	struct parsed p = { 0 };
	char *copy = xstrdup(line), *argv[20] = { (char *)"prog" }, *save = NULL;
	int argc = 1;

	for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save))
		argv[argc++] = str_eq(w, "''") ? (char *)"" : w;
	p.r = options_parse(table, "prog", "[flags]", argc, argv, &p.rest, &p.values, &p.err);
	free(copy);
	return p;
}

static const struct {
	const char *line;
	const char *listen, *root;
	int64_t workers;
	bool dry_run, seccomp;
	uint64_t period_ns;
	const char *labels; /* joined by '|' */
	int rest;
} good[] = {
	{ "", "/run/x.sock", NULL, 4, false, true, 10000000000, "a|b", 1 },
	{ "--listen=:80 --workers -7 --dry-run --seccomp=false", ":80", NULL, -7, true, false, 10000000000, "a|b", 6 },
	{ "--listen a=b --root= --period 1m30s", "a=b", "", 4, false, true, 90000000000, "a|b", 6 },
	{ "--period=500ms --labels=x --labels y,z", "/run/x.sock", NULL, 4, false, true, 500000000, "x|y|z", 5 },
	{ "--labels=", "/run/x.sock", NULL, 4, false, true, 10000000000, "", 2 },
	{ "--dry-run run --workers=9", "/run/x.sock", NULL, 4, true, true, 10000000000, "a|b", 2 },
	{ "--dry-run -- --workers=9", "/run/x.sock", NULL, 4, true, true, 10000000000, "a|b", 3 },
	{ "- x", "/run/x.sock", NULL, 4, false, true, 10000000000, "a|b", 1 },
	{ "--workers=1 --workers=2 --dry-run=T --dry-run=0", "/run/x.sock", NULL, 2, false, true, 10000000000, "a|b", 5 },
	{ "--period=0", "/run/x.sock", NULL, 4, false, true, 0, "a|b", 2 },
};

START_TEST(good_case)
{
	struct parsed p = parse(good[_i].line);
	_cleanup_(str_done) struct str labels = STR_INIT;

	ck_assert_msg(p.r == 0, "%s: %s", good[_i].line, p.err.text);
	ck_assert_pstr_eq(option_string(p.values, "listen"), good[_i].listen);
	ck_assert_pstr_eq(option_string(p.values, "root"), good[_i].root);
	ck_assert_int_eq(option_int(p.values, "workers"), good[_i].workers);
	ck_assert_int_eq(option_bool(p.values, "dry-run"), good[_i].dry_run);
	ck_assert_int_eq(option_bool(p.values, "seccomp"), good[_i].seccomp);
	ck_assert_uint_eq(option_duration_ns(p.values, "period"), good[_i].period_ns);
	const struct strv *list = option_list(p.values, "labels");
	for (size_t i = 0; i < list->n; i++)
		str_addf(&labels, "%s%s", i ? "|" : "", list->v[i]);
	ck_assert_str_eq(str_get(&labels), good[_i].labels);
	ck_assert_int_eq(p.rest, good[_i].rest);
	ck_assert_int_eq(option_given(p.values, "listen"), strstr(good[_i].line, "--listen") != NULL);
	option_values_free(p.values);
}
END_TEST

static const struct {
	const char *line, *text;
} bad[] = {
	{ "--lisen=x", "unknown flag --lisen=x; did you mean --listen? --help lists all flags" },
	{ "--frobnicate", "unknown flag --frobnicate; --help lists all flags" },
	{ "-x", "unknown flag -x; flags begin with two dashes, --help lists them" },
	{ "--workers", "flag --workers needs a value (int)" },
	{ "--listen", "flag --listen needs a value (address)" },
	{ "--workers=two", "flag --workers: value \"two\" is not allowed; allowed: a whole number between "
		"-9223372036854775808 and 9223372036854775807" },
	{ "--workers=9223372036854775808", "flag --workers: value \"9223372036854775808\" is not allowed; allowed: a whole "
		"number between -9223372036854775808 and 9223372036854775807" },
	{ "--workers=1.5", "flag --workers: value \"1.5\"" },
	{ "--workers=", "flag --workers: value \"\"" },
	{ "--workers=-", "flag --workers: value \"-\"" },
	{ "--dry-run=yes", "flag --dry-run: value \"yes\" is not allowed; allowed: true or false" },
	{ "--period=10", "flag --period: value \"10\" is not allowed; allowed: a number with a unit (ns, us, ms, s, m, h), "
		"such as 500ms or 1m30s, not negative" },
	{ "--period=-1s", "flag --period: value \"-1s\" is not allowed" },
};

START_TEST(bad_case)
{
	struct parsed p = parse(bad[_i].line);

	ck_assert_int_lt(p.r, 0);
	ck_assert_ptr_null(p.values);
	ck_assert_int_eq(p.err.code, ERROR_INVALID);
	ck_assert_msg(str_starts(p.err.text, bad[_i].text), "got: %s", p.err.text);
}
END_TEST

/* --help and --version exit: in a child with its stdout in a pipe. */
static char *output_of(const char *line, int *ret_code)
{
	int fds[2], status;
	char buf[4096];

	ck_assert_int_eq(pipe(fds), 0);
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(fds[1], STDOUT_FILENO);
		close(fds[0]);
		close(fds[1]);
		parse(line);
		exit(99);
	}
	close(fds[1]);
	size_t n = 0;
	for (ssize_t r; (r = read(fds[0], buf + n, sizeof(buf) - 1 - n)) > 0;)
		n += (size_t)r;
	close(fds[0]);
	buf[n] = '\0';
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	*ret_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	return xstrdup(buf);
}

START_TEST(help_lists_the_table)
{
	int code;
	_cleanup_free_ char *text = output_of("--workers=3 --help", &code);

	ck_assert_int_eq(code, 0);
	ck_assert_ptr_nonnull(strstr(text, "Usage:\n  prog [flags]\n\nFlags:\n"));
	ck_assert_ptr_nonnull(strstr(text, "      --listen address    Listen on this address (default \"/run/x.sock\")\n"));
	ck_assert_ptr_nonnull(strstr(text, "      --workers int       Number of workers (default 4)\n"));
	ck_assert_ptr_nonnull(strstr(text, "      --dry-run           Change nothing\n"));
	ck_assert_ptr_nonnull(strstr(text, "      --seccomp           Use seccomp (default true)\n"));
	ck_assert_ptr_nonnull(strstr(text, "      --labels strings    Labels (default [a,b])\n"));
	ck_assert_ptr_nonnull(strstr(text, "      --help "));
}
END_TEST

START_TEST(version_is_one_line)
{
	int code;
	_cleanup_free_ char *text = output_of("--version", &code);

	ck_assert_int_eq(code, 0);
	ck_assert_str_eq(text, "prog " NODE_LITE_VERSION "\n");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("options");
	TCase *t = tcase_create("options");

	tcase_add_loop_test(t, good_case, 0, ARRAY_LEN(good));
	tcase_add_loop_test(t, bad_case, 0, ARRAY_LEN(bad));
	tcase_add_test(t, help_lists_the_table);
	tcase_add_test(t, version_is_one_line);
	suite_add_tcase(s, t);
	SRunner *runner = srunner_create(s);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}

/*
 * options.h - purpose: command-line options, whose table is made from the manual page at build time.
 *
 * packaging/tools/man2opts.awk reads man/<daemon>.8: a comment `.\" opt: name type default` (type: string, int, bool,
 * duration, list; default "-" for none), its .It line, and the first sentence below, which becomes the help line. It writes
 * build/gen/<daemon>.opts.h with `static const struct option_spec <daemon>_options[]`.
 *
 * Flags are spelled --name=value or --name value; bools also --name alone; lists are comma-separated and may be
 * repeated. Unknown flags and bad values name the flag, the value and what is allowed.
 */
#pragma once
#include "common/base/error.h"
#include "common/base/str.h"

enum option_type { OPTION_STRING, OPTION_INT, OPTION_BOOL, OPTION_DURATION, OPTION_LIST };

struct option_spec {
	const char *name; /* NULL ends the table */
	enum option_type type;
	const char *fallback; /* default as text, NULL: none */
	const char *argument; /* shown in --help, e.g. "duration" */
	const char *help;
};

struct option_values; /* opaque */

/* Parses argv up to the first argument that is not a flag, or "--"; *ret_rest is the index of that argument.
 * --help prints usage from the table and exits 0; --version prints "<program> <version>" and exits 0. */
int options_parse(const struct option_spec *table, const char *program, const char *synopsis, int argc, char **argv,
	int *ret_rest, struct option_values **ret, struct error *err) MUST_USE;
/* Says "<program>: <what is wrong>" without the time of a log, since somebody has just typed it. The exit code: 1. */
int options_refuse(const char *program, const struct error *err) MUST_USE;
void option_values_free(struct option_values *values);

/* The name must be in the table (assert). Strings are owned by values; NULL when there is no value and no default. */
const char *option_string(const struct option_values *values, const char *name);
int64_t option_int(const struct option_values *values, const char *name);
bool option_bool(const struct option_values *values, const char *name);
uint64_t option_duration_ns(const struct option_values *values, const char *name);
const struct strv *option_list(const struct option_values *values, const char *name);
/* Was it given on the command line? */
bool option_given(const struct option_values *values, const char *name);

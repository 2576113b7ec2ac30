/* options.c - purpose: parse command-line options by a table, and print that table for --help. */
#include "common/base/options.h"

#include "common/base/codec.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

struct option_value {
	char *text;	/* string; NULL: no value */
	int64_t number; /* int, bool, duration in ns */
	struct strv list;
	bool given;
};

struct option_values {
	const struct option_spec *table;
	size_t n;
	struct option_value *v;
};

enum { HELP_COLUMN_MAX = 44, HELP_WIDTH = 118 };

void option_values_free(struct option_values *values)
{
	if (!values)
		return;
	for (size_t i = 0; i < values->n; i++) {
		free(values->v[i].text);
		strv_done(&values->v[i].list);
	}
	free(values->v);
	free(values);
}
DEFINE_CLEANUP(struct option_values *, option_values_free)

static bool one_of(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (str_eq(text, *words))
			return true;
	return false;
}

/* The spellings of Go's strconv.ParseBool, as people's kubelet flags have them. */
static int bool_parse(const char *text, int64_t *ret)
{
	static const char *const yes[] = { "true", "True", "TRUE", "t", "T", "1", NULL };
	static const char *const no[] = { "false", "False", "FALSE", "f", "F", "0", NULL };

	if (!one_of(text, yes) && !one_of(text, no))
		return -EINVAL;
	*ret = one_of(text, yes);
	return 0;
}

static int int_parse(const char *text, int64_t *ret)
{
	char *end;

	if (!*text || strspn(text, "+-0123456789") != strlen(text))
		return -EINVAL;
	errno = 0;
	int64_t v = strtoll(text, &end, 10);
	if (*end)
		return -EINVAL;
	if (errno)
		return -ERANGE;
	*ret = v;
	return 0;
}

static const char *allowed(enum option_type type)
{
	switch (type) {
	case OPTION_INT:
		return "a whole number between -9223372036854775808 and 9223372036854775807";
	case OPTION_BOOL:
		return "true or false";
	case OPTION_DURATION:
		return "a number with a unit (ns, us, ms, s, m, h), such as 500ms or 1m30s, not negative";
	case OPTION_STRING:
	case OPTION_LIST:
		break;
	}
	return "text";
}

static int value_set(const struct option_spec *spec, struct option_value *value, const char *text, struct error *err)
{
	int64_t number = 0;
	int r = 0;

	switch (spec->type) {
	case OPTION_STRING:
		free(value->text);
		value->text = xstrdup(text);
		return 0;
	case OPTION_LIST:
		strv_split(&value->list, text, ',');
		return 0;
	case OPTION_INT:
		r = int_parse(text, &number);
		break;
	case OPTION_BOOL:
		r = bool_parse(text, &number);
		break;
	case OPTION_DURATION:
		r = duration_parse(text, &number);
		if (r == 0 && number < 0)
			r = -EINVAL;
		break;
	}
	if (r < 0)
		return error_set(err, ERROR_INVALID, "flag --%s: value \"%s\" is not allowed; allowed: %s", spec->name,
			text, allowed(spec->type));
	value->number = number;
	return 0;
}

static struct option_values *values_new(const struct option_spec *table)
{
	struct option_values *values = xnew(struct option_values);

	values->table = table;
	while (table[values->n].name)
		values->n++;
	values->v = xcalloc(values->n, sizeof(*values->v));
	for (size_t i = 0; i < values->n; i++) {
		int r = table[i].fallback ? value_set(&table[i], &values->v[i], table[i].fallback, NULL) : 0;

		assert(r == 0); /* the manual page has a bad default */
		(void)r;
	}
	return values;
}

/* Edit distance of two short words, cut at 63 characters. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[64];
	size_t la = MIN(strlen(a), (size_t)63), lb = MIN(strlen(b), (size_t)63);

	for (size_t j = 0; j <= lb; j++)
		row[j] = (unsigned)j;
	for (size_t i = 1; i <= la; i++) {
		unsigned diagonal = row[0];

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= lb; j++) {
			unsigned cost = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			row[j] = MIN(cost, MIN(row[j], row[j - 1]) + 1);
		}
	}
	return row[lb];
}

static int unknown_flag(const struct option_spec *table, const char *arg, const char *name, struct error *err)
{
	const char *best = NULL;
	unsigned best_distance = 4;

	for (; table->name; table++) {
		unsigned d = distance(name, table->name);

		if (d < best_distance) {
			best_distance = d;
			best = table->name;
		}
	}
	if (best)
		return error_set(
			err, ERROR_INVALID, "unknown flag %s; did you mean --%s? --help lists all flags", arg, best);
	return error_set(err, ERROR_INVALID, "unknown flag %s; --help lists all flags", arg);
}

static const char *argument_name(const struct option_spec *spec)
{
	static const char *const names[] = { "string", "int", "", "duration", "strings" };

	return str_empty(spec->argument) ? names[spec->type] : spec->argument;
}

static int flag_width(const struct option_spec *spec)
{
	const char *argument = spec->type == OPTION_BOOL ? "" : argument_name(spec);

	return (int)(8 + strlen(spec->name) + (*argument ? 1 + strlen(argument) : 0));
}

/* Help text and default, wrapped between `column` and HELP_WIDTH. */
static void print_wrapped(const char *text, int column)
{
	int at = column;

	while (*text) {
		int n = (int)strcspn(text, " ");

		if (at > column && at + 1 + n > HELP_WIDTH) {
			printf("\n%*s", column, "");
			at = column;
		}
		at += printf("%s%.*s", at > column ? " " : "", n, text);
		text += n;
		text += strspn(text, " ");
	}
	putchar('\n');
}

static void print_option(const struct option_spec *spec, int column)
{
	_cleanup_(str_done) struct str text = STR_INIT;
	const char *argument = spec->type == OPTION_BOOL ? "" : argument_name(spec);
	int at = printf("      --%s%s%s", spec->name, *argument ? " " : "", argument);

	if (at + 2 > column)
		printf("\n%*s", column, "");
	else
		printf("%*s", column - at, "");
	str_add(&text, spec->help);
	bool quiet = str_empty(spec->fallback) || (spec->type == OPTION_BOOL && str_eq(spec->fallback, "false"));
	if (!quiet && spec->type == OPTION_STRING)
		str_addf(&text, " (default \"%s\")", spec->fallback);
	else if (!quiet && spec->type == OPTION_LIST)
		str_addf(&text, " (default [%s])", spec->fallback);
	else if (!quiet)
		str_addf(&text, " (default %s)", spec->fallback);
	print_wrapped(str_get(&text), column);
}

static void print_help(const struct option_spec *table, const char *program, const char *synopsis)
{
	static const struct option_spec own[] = {
		{ "help", OPTION_BOOL, NULL, NULL, "Print this list and exit" },
		{ "version", OPTION_BOOL, NULL, NULL, "Print the version and exit" },
	};
	int column = 0;

	for (const struct option_spec *s = table; s->name; s++)
		column = MAX(column, flag_width(s) + 3);
	column = MAX(20, MIN(column, HELP_COLUMN_MAX));
	printf("Usage:\n  %s %s\n\nFlags:\n", program, synopsis);
	for (const struct option_spec *s = table; s->name; s++)
		print_option(s, column);
	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		print_option(&own[i], column);
	printf("\nmanual page: man 8 %s\n", program);
}

static const struct option_spec *find(const struct option_spec *table, const char *name)
{
	for (; table->name; table++)
		if (str_eq(table->name, name))
			return table;
	return NULL;
}

/* One flag at argv[*i]; moves *i to its last word. */
static int parse_flag(struct option_values *values, int argc, char **argv, int *i, struct error *err)
{
	const char *arg = argv[*i];
	const char *equals = strchr(arg, '=');
	bool dashes = str_starts(arg, "--");
	_cleanup_free_ char *name =
		dashes ? xstrndup(arg + 2, equals ? (size_t)(equals - arg - 2) : strlen(arg + 2)) : NULL;

	if (!dashes)
		return error_set(
			err, ERROR_INVALID, "unknown flag %s; flags begin with two dashes, --help lists them", arg);
	const struct option_spec *spec = find(values->table, name);
	if (!spec)
		return unknown_flag(values->table, arg, name, err);

	const char *text = equals ? equals + 1 : NULL;
	if (!text && spec->type == OPTION_BOOL)
		text = "true";
	if (!text && *i + 1 >= argc)
		return error_set(err, ERROR_INVALID, "flag --%s needs a value (%s)", name, argument_name(spec));
	if (!text)
		text = argv[++*i];

	struct option_value *value = &values->v[spec - values->table];
	if (spec->type == OPTION_LIST && !value->given)
		strv_done(&value->list); /* what is given replaces the default */
	value->given = true;
	return value_set(spec, value, text, err);
}

int options_parse(const struct option_spec *table, const char *program, const char *synopsis, int argc, char **argv,
	int *ret_rest, struct option_values **ret, struct error *err)
{
	_cleanup_(option_values_free_p) struct option_values *values = values_new(table);
	int i = 1;

	for (; i < argc && argv[i][0] == '-' && argv[i][1]; i++) {
		if (str_eq(argv[i], "--")) {
			i++;
			break;
		}
		if ((str_eq(argv[i], "--help") || str_eq(argv[i], "-h")) && !find(table, "help")) {
			print_help(table, program, synopsis);
			exit(0);
		}
		if (str_eq(argv[i], "--version") && !find(table, "version")) {
			printf("%s %s\n", program, NODE_LITE_VERSION);
			exit(0);
		}
		int r = parse_flag(values, argc, argv, &i, err);
		if (r < 0)
			return r;
	}
	*ret_rest = MIN(i, argc);
	*ret = steal(values);
	return 0;
}

static struct option_value *value_of(const struct option_values *values, const char *name)
{
	const struct option_spec *spec = find(values->table, name);

	assert(spec);
	return &values->v[spec - values->table];
}

static struct option_value *value_typed(const struct option_values *values, const char *name, enum option_type type)
{
	struct option_value *value = value_of(values, name);

	assert(values->table[value - values->v].type == type);
	(void)type;
	return value;
}

const char *option_string(const struct option_values *values, const char *name)
{
	return value_typed(values, name, OPTION_STRING)->text;
}

int64_t option_int(const struct option_values *values, const char *name)
{
	return value_typed(values, name, OPTION_INT)->number;
}

bool option_bool(const struct option_values *values, const char *name)
{
	return value_typed(values, name, OPTION_BOOL)->number;
}

uint64_t option_duration_ns(const struct option_values *values, const char *name)
{
	return (uint64_t)value_typed(values, name, OPTION_DURATION)->number;
}

const struct strv *option_list(const struct option_values *values, const char *name)
{
	return &value_typed(values, name, OPTION_LIST)->list;
}

bool option_given(const struct option_values *values, const char *name)
{
	return value_of(values, name)->given;
}

int options_refuse(const char *program, const struct error *err)
{
	fprintf(stderr, "%s: %s\n", program, err->text);
	return 1;
}

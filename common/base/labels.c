/* labels.c - purpose: label and field selectors as the Kubernetes API spells them, and label names. */
#include "common/base/labels.h"

#include <errno.h>
#include <stdio.h>

void selector_done(struct selector *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->terms[i].key);
		strv_done(&s->terms[i].values);
	}
	free(s->terms);
	*s = SELECTOR_INIT;
}

static bool is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* [A-Za-z0-9] at both ends, also "-_." between. */
static bool is_label_name(const char *p)
{
	size_t n = strlen(p);

	for (size_t i = 0; i < n; i++)
		if (!is_alnum(p[i]) && !strchr("-_.", p[i]))
			return false;
	return n && is_alnum(p[0]) && is_alnum(p[n - 1]);
}

static bool is_subdomain(const char *p)
{
	char before = '.';

	for (; *p; before = *p++) {
		bool edge = *p == '-' || *p == '.';

		if (!(is_alnum(*p) && !(*p >= 'A' && *p <= 'Z')) && !edge)
			return false;
		if ((edge && before == '.') || (*p == '.' && before == '-'))
			return false;
	}
	return before != '.' && before != '-';
}

/* The API server's words: clients compare and people search for them. */
static void say_rule(struct strv *why, const char *prefix, const char *rule, const char *examples, const char *regex)
{
	if (why)
		strv_add_take(why,
			xasprintf("%s%s (e.g. %s, regex used for validation is '%s')", prefix, rule, examples, regex));
}

static void say_length(struct strv *why, const char *prefix, int max)
{
	if (why)
		strv_add_take(why, xasprintf("%smust be no more than %d bytes", prefix, max));
}

#define ALNUM_RULE "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
#define NAME_REGEX "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
#define NAME_EXAMPLES "'MyName',  or 'my.name',  or '123-abc'"

static bool check_subdomain(const char *name, const char *prefix, struct strv *why)
{
	bool valid = is_subdomain(name), fits = strlen(name) <= 253;

	if (!fits)
		say_length(why, prefix, 253);
	if (!valid)
		say_rule(why, prefix,
			"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
			"'.', and must start "
			"and end with an alphanumeric character",
			"'example.com'", "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*");
	return valid && fits;
}

bool dns_subdomain_check(const char *name, struct strv *why)
{
	return check_subdomain(name, "", why);
}

static bool check_key_name(const char *name, struct strv *why)
{
	bool fits = strlen(name) <= 63, valid = is_label_name(name);

	if (!*name && why)
		strv_add(why, "name part must be non-empty");
	if (!fits)
		say_length(why, "name part ", 63);
	if (!valid)
		say_rule(why, "name part ", "must consist of " ALNUM_RULE, NAME_EXAMPLES, NAME_REGEX);
	return fits && valid;
}

bool label_key_check(const char *key, struct strv *why)
{
	const char *slash = strchr(key, '/');
	bool ok = true;

	if (slash && strchr(slash + 1, '/')) {
		if (why)
			strv_add_take(
				why, xasprintf("a valid label key must consist of %s (e.g. %s, regex used for "
					       "validation is '%s') with an "
					       "optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
					     ALNUM_RULE, NAME_EXAMPLES, NAME_REGEX));
		return false;
	}
	if (slash) {
		_cleanup_free_ char *prefix = xstrndup(key, (size_t)(slash - key));

		if (!*prefix && why)
			strv_add(why, "prefix part must be non-empty");
		ok = *prefix && check_subdomain(prefix, "prefix part ", why);
	}
	return check_key_name(slash ? slash + 1 : key, why) && ok;
}

bool label_value_check(const char *value, struct strv *why)
{
	bool fits = strlen(value) <= 63, valid = !*value || is_label_name(value);

	if (!fits)
		say_length(why, "", 63);
	if (!valid)
		say_rule(why, "", "a valid label must be an empty string or consist of " ALNUM_RULE,
			"'MyValue',  or 'my_value',  or '12345'", "(" NAME_REGEX ")?");
	return fits && valid;
}

static struct selector_term *term_add(struct selector *s, const char *key, size_t len, enum selector_op op)
{
	s->terms = xreallocarray(s->terms, s->n + 1, sizeof(*s->terms));
	s->terms[s->n] = (struct selector_term){ .key = xstrndup(key, len), .op = op };
	return &s->terms[s->n++];
}

/* Every key and value must be one that a label can have: a typing error would else silently match nothing. */
static int check_term(const struct selector_term *term, struct error *err)
{
	_cleanup_(strv_done) struct strv why = STRV_INIT;

	if (!label_key_check(term->key, &why))
		return error_set(err, ERROR_INVALID, "label key \"%.80s\": %s", term->key, why.v[0]);
	bool numeric = term->op == SELECTOR_GREATER || term->op == SELECTOR_LESS;
	for (size_t i = 0; i < term->values.n; i++) {
		const char *value = term->values.v[i];
		size_t digits = strspn(value + (*value == '-'), "0123456789");

		if (numeric && (!digits || value[digits + (*value == '-')]))
			return error_set(err, ERROR_INVALID,
				"label key %s: for 'Gt', 'Lt' operators, the value must be an integer", term->key);
		if (!label_value_check(value, &why) && !numeric)
			return error_set(err, ERROR_INVALID, "label value \"%.80s\": %s", value, why.v[0]);
	}
	return 0;
}

struct lexer {
	const char *p;
};

static void skip_space(struct lexer *l)
{
	l->p += strspn(l->p, " \t\r\n");
}

/* Length of the word at the reading point, 0 if there is none. */
static size_t word(struct lexer *l)
{
	skip_space(l);
	return strcspn(l->p, " \t\r\n!=<>(),");
}

static bool take(struct lexer *l, const char *text)
{
	size_t n = strlen(text);

	skip_space(l);
	if (strncmp(l->p, text, n) != 0)
		return false;
	l->p += n;
	return true;
}

static bool take_word(struct lexer *l, const char *text)
{
	size_t n = word(l);

	if (n != strlen(text) || strncmp(l->p, text, n) != 0)
		return false;
	l->p += n;
	return true;
}

static int expected(struct lexer *l, const char *what, struct error *err)
{
	skip_space(l);
	return error_set(err, ERROR_INVALID, "found '%.80s', expected: %s", l->p, what);
}

/* "(a,b)" behind in or notin. */
static int parse_set(struct lexer *l, struct strv *values, struct error *err)
{
	if (!take(l, "("))
		return expected(l, "'('", err);
	do {
		size_t n = word(l);

		strv_add_take(values, xstrndup(l->p, n));
		l->p += n;
		if (values->n > SELECTOR_TERMS_MAX)
			return error_set(err, ERROR_EXHAUSTED, "more than %d values in a selector", SELECTOR_TERMS_MAX);
	} while (take(l, ","));
	return take(l, ")") ? 0 : expected(l, "',' or ')'", err);
}

/* What stands behind a key. */
static int parse_operator(struct lexer *l, struct selector_term *term, struct error *err)
{
	skip_space(l);
	if (!*l->p || *l->p == ',')
		return 0; /* "key": EXISTS */
	bool in = take_word(l, "in");
	if (in || take_word(l, "notin")) {
		term->op = in ? SELECTOR_IN : SELECTOR_NOT_IN;
		return parse_set(l, &term->values, err);
	}
	if (take(l, "!="))
		term->op = SELECTOR_NOT_IN;
	else if (take(l, "==") || take(l, "="))
		term->op = SELECTOR_IN;
	else if (take(l, ">"))
		term->op = SELECTOR_GREATER;
	else if (take(l, "<"))
		term->op = SELECTOR_LESS;
	else
		return expected(l, "in, notin, =, ==, !=, >, <", err);
	size_t n = word(l);
	strv_add_take(&term->values, xstrndup(l->p, n));
	l->p += n;
	return 0;
}

static int parse_term(struct lexer *l, struct selector *s, struct error *err)
{
	bool absent = take(l, "!");
	size_t n = word(l);

	if (!n)
		return expected(l, absent ? "identifier" : "!, identifier, or 'end of string'", err);
	struct selector_term *term = term_add(s, l->p, n, absent ? SELECTOR_ABSENT : SELECTOR_EXISTS);
	l->p += n;
	int r = absent ? 0 : parse_operator(l, term, err);
	return r < 0 ? r : check_term(term, err);
}

int label_selector_parse(const char *text, struct selector *ret, struct error *err)
{
	_cleanup_(selector_done) struct selector s = SELECTOR_INIT;
	struct lexer l = { text };

	skip_space(&l);
	while (*l.p) {
		int r = s.n < SELECTOR_TERMS_MAX ? parse_term(&l, &s, err)
						 : error_set(err, ERROR_EXHAUSTED, "too many terms");

		if (r == 0) {
			skip_space(&l);
			if (take(&l, ",")) {
				skip_space(&l);
				r = *l.p ? 0 : expected(&l, "identifier after ','", err);
			} else if (*l.p) {
				r = expected(&l, "',' or 'end of string'", err);
			}
		}
		if (r < 0)
			return error_prefix(err, "unable to parse requirement");
	}
	*ret = s;
	s = SELECTOR_INIT;
	return 0;
}

/* Text up to the next unescaped character of `stop` or the end, without its backslashes. Owned by the caller. */
static char *unescape(const char **p, const char *stop)
{
	struct str s = STR_INIT;

	for (; **p && !strchr(stop, **p); (*p)++) {
		if (**p == '\\' && (*p)[1] && strchr("\\,=", (*p)[1]))
			(*p)++;
		str_add_char(&s, **p);
	}
	return str_take(&s);
}

int field_selector_parse(const char *text, struct selector *ret, struct error *err)
{
	_cleanup_(selector_done) struct selector s = SELECTOR_INIT;
	const char *p = text;

	while (*p) {
		_cleanup_free_ char *key = unescape(&p, ",=!");
		enum selector_op op = SELECTOR_IN;

		if (!*key && (*p == ',' || !*p)) {
			p += *p == ',';
			continue;
		}
		if (str_starts(p, "!="))
			op = SELECTOR_NOT_IN;
		else if (*p != '=' || !*key)
			return error_set(err, ERROR_INVALID, "invalid field selector '%.80s': can't understand '%.80s'",
				text, key);
		p += str_starts(p, "!=") || str_starts(p, "==") ? 2 : 1;
		struct selector_term *term = term_add(&s, key, strlen(key), op);
		strv_add_take(&term->values, unescape(&p, ",="));
		if (*p == '=')
			return error_set(
				err, ERROR_INVALID, "invalid field selector '%.80s': unescaped '=' in a value", text);
		p += *p == ',';
		if (s.n > SELECTOR_TERMS_MAX)
			return error_set(err, ERROR_EXHAUSTED, "more than %d terms in a selector", SELECTOR_TERMS_MAX);
	}
	*ret = s;
	s = SELECTOR_INIT;
	return 0;
}

static int term_from_json(const json_t *expression, struct selector *s, struct error *err)
{
	static const struct {
		const char *name;
		enum selector_op op;
	} ops[] = { { "In", SELECTOR_IN }, { "NotIn", SELECTOR_NOT_IN }, { "Exists", SELECTOR_EXISTS },
		{ "DoesNotExist", SELECTOR_ABSENT } };
	const char *key = json_string_value(json_object_get(expression, "key"));
	const char *op = json_string_value(json_object_get(expression, "operator"));
	const json_t *values = json_object_get(expression, "values");
	size_t i = 0;

	while (i < ARRAY_LEN(ops) && !str_eq(op, ops[i].name))
		i++;
	if (!key || i == ARRAY_LEN(ops))
		return error_set(err, ERROR_INVALID,
			"matchExpressions: operator \"%.40s\" is not one of In, NotIn, Exists, DoesNotExist",
			op ? op : "");
	struct selector_term *term = term_add(s, key, strlen(key), ops[i].op);
	for (size_t v = 0; v < json_array_size(values); v++) {
		const char *value = json_string_value(json_array_get(values, v));

		if (!value)
			return error_set(
				err, ERROR_INVALID, "matchExpressions: values of key %.80s must be strings", key);
		strv_add(&term->values, value);
	}
	bool set = term->op == SELECTOR_IN || term->op == SELECTOR_NOT_IN;
	if (set != (term->values.n > 0))
		return error_set(err, ERROR_INVALID, "matchExpressions: operator %s of key %.80s needs %s values", op,
			key, set ? "some" : "no");
	return check_term(term, err);
}

int label_selector_from_json(const json_t *selector, struct selector *ret, struct error *err)
{
	_cleanup_(selector_done) struct selector s = SELECTOR_INIT;
	const json_t *expressions = json_object_get(selector, "matchExpressions");
	const char *key;
	json_t *value;
	int r = 0;

	json_object_foreach(json_object_get(selector, "matchLabels"), key, value)
	{
		if (!json_is_string(value))
			return error_set(err, ERROR_INVALID, "matchLabels: value of key %.80s must be a string", key);
		struct selector_term *term = term_add(&s, key, strlen(key), SELECTOR_IN);
		strv_add(&term->values, json_string_value(value));
		r = check_term(term, err);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < json_array_size(expressions); i++) {
		r = term_from_json(json_array_get(expressions, i), &s, err);
		if (r < 0)
			return r;
	}
	*ret = s;
	s = SELECTOR_INIT;
	return 0;
}

static bool compare_numbers(const char *value, const char *bound, bool greater)
{
	char *end;

	errno = 0;
	long long a = strtoll(value, &end, 10);
	if (*end || end == value || errno)
		return false;
	long long b = strtoll(bound, NULL, 10);
	return greater ? a > b : a < b;
}

static bool term_match(const struct selector_term *term, const char *value)
{
	switch (term->op) {
	case SELECTOR_IN:
		return value && strv_has(&term->values, value);
	case SELECTOR_NOT_IN:
		return !value || !strv_has(&term->values, value);
	case SELECTOR_EXISTS:
		return value;
	case SELECTOR_ABSENT:
		return !value;
	case SELECTOR_GREATER:
	case SELECTOR_LESS:
		return value && compare_numbers(value, term->values.v[0], term->op == SELECTOR_GREATER);
	}
	return false;
}

bool selector_match(const struct selector *s, selector_get get, void *data)
{
	for (size_t i = 0; i < s->n; i++)
		if (!term_match(&s->terms[i], get(data, s->terms[i].key)))
			return false;
	return true;
}

bool selector_match_labels(const struct selector *s, const json_t *labels)
{
	for (size_t i = 0; i < s->n; i++)
		if (!term_match(&s->terms[i], json_string_value(json_object_get(labels, s->terms[i].key))))
			return false;
	return true;
}

/* Text of a scalar at a dotted path; "" if there is none. Numbers are written to buf. */
static const char *field_text(const json_t *object, const char *path, char buf[32])
{
	while (*path && object) {
		size_t n = strcspn(path, ".");
		_cleanup_free_ char *key = xstrndup(path, n);

		object = json_object_get(object, key);
		path += n + (path[n] == '.');
	}
	if (json_is_string(object))
		return json_string_value(object);
	if (json_is_boolean(object))
		return json_is_true(object) ? "true" : "false";
	if (!json_is_integer(object))
		return "";
	snprintf(buf, 32, "%" JSON_INTEGER_FORMAT, json_integer_value(object));
	return buf;
}

bool selector_match_fields(const struct selector *s, const json_t *object)
{
	for (size_t i = 0; i < s->n; i++) {
		char buf[32];

		if (!term_match(&s->terms[i], field_text(object, s->terms[i].key, buf)))
			return false;
	}
	return true;
}

/* yaml_scalar.c - purpose: what a plain YAML scalar means to Kubernetes' parser (go-yaml v2: YAML 1.1 core). */
#include "common/wire/yaml_scalar.h"

#include <errno.h>
#include <math.h>

static const struct {
	const char *words;
	struct yaml_scalar value;
} fixed[] = {
	{ " y Y yes Yes YES true True TRUE on On ON ", { YAML_BOOL, true, 0, 0 } },
	{ " n N no No NO false False FALSE off Off OFF ", { YAML_BOOL, false, 0, 0 } },
	{ " ~ null Null NULL ", { YAML_NULL, false, 0, 0 } },
	{ " .nan .NaN .NAN .inf .Inf .INF +.inf +.Inf +.INF -.inf -.Inf -.INF ", { YAML_NOT_FINITE, false, 0, 0 } },
};

static bool lookup(const char *text, struct yaml_scalar *ret)
{
	char padded[8];
	size_t n = strlen(text);

	if (n > 5 || strchr(text, ' '))
		return false;
	padded[0] = ' ';
	memcpy(padded + 1, text, n);
	memcpy(padded + n + 1, " ", 2);
	for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
		if (strstr(fixed[i].words, padded)) {
			*ret = fixed[i].value;
			return true;
		}
	return false;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* [-+]? ( \.[0-9]+ | [0-9]+ (\.[0-9]*)? ) ([eE][-+]?[0-9]+)? */
static bool looks_real(const char *p)
{
	size_t whole = 0, fraction = 0;

	p += *p == '-' || *p == '+';
	for (; is_digit(*p); p++)
		whole++;
	if (*p == '.')
		for (p++; is_digit(*p); p++)
			fraction++;
	if (!whole && !fraction)
		return false;
	if (*p == 'e' || *p == 'E') {
		p++;
		p += *p == '-' || *p == '+';
		if (!is_digit(*p))
			return false;
		while (is_digit(*p))
			p++;
	}
	return !*p;
}

/* Go's strconv.ParseInt with base 0: 0x, 0o, 0b, a leading 0 for octal, else decimal. */
static bool parse_int(const char *text, struct yaml_scalar *ret)
{
	const char *p = text;
	bool negative = *p == '-';
	int base = 10;
	unsigned long long v = 0;
	double real = 0;
	bool large = false;

	p += *p == '-' || *p == '+';
	if (*p == '0' && p[1]) {
		char c = p[1] | 0x20;

		base = c == 'x' ? 16 : c == 'b' ? 2 : 8;
		p += c == 'x' || c == 'b' || c == 'o' ? 2 : 1;
	}
	if (!*p)
		return false;
	for (; *p; p++) {
		char c = *p | 0x20;
		int digit = is_digit(*p) ? *p - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;

		if (digit >= base)
			return false;
		large |= __builtin_mul_overflow(v, (unsigned long long)base, &v) ||
			 __builtin_add_overflow(v, (unsigned long long)digit, &v);
		real = real * base + digit;
	}
	if (!large && v <= (unsigned long long)INT64_MAX + negative)
		*ret = (struct yaml_scalar){ .kind = YAML_INT, .integer = negative ? (int64_t)(0 - v) : (int64_t)v };
	else if (isfinite(real) && (base == 10 || !large))
		*ret = (struct yaml_scalar){ .kind = YAML_REAL,
			.real = base == 10 ? strtod(text, NULL)
				: negative ? -real
					   : real };
	else
		return false;
	return true;
}

static bool parse_real(const char *text, struct yaml_scalar *ret)
{
	if (!looks_real(text))
		return false;
	double v = strtod(text, NULL);
	if (!isfinite(v))
		return false;
	/* Through JSON, 1e3 is 1000. */
	if (v == trunc(v) && fabs(v) < 9e18)
		*ret = (struct yaml_scalar){ .kind = YAML_INT, .integer = (int64_t)v };
	else
		*ret = (struct yaml_scalar){ .kind = YAML_REAL, .real = v };
	return true;
}

struct yaml_scalar yaml_resolve(const char *text)
{
	struct yaml_scalar value = { .kind = YAML_STRING };

	if (!*text)
		return (struct yaml_scalar){ .kind = YAML_NULL };
	if (lookup(text, &value))
		return value;
	if (*text == '.') {
		parse_real(text, &value);
	} else if (is_digit(*text) || *text == '-' || *text == '+') {
		_cleanup_free_ char *plain = xmalloc(strlen(text) + 1);
		char *out = plain;

		for (const char *p = text; *p; p++)
			if (*p != '_')
				*out++ = *p;
		*out = '\0';
		if (!parse_int(plain, &value))
			parse_real(plain, &value);
	}
	return value;
}

/* One or two digits, at most `max`. */
static bool take_number(const char **p, int max)
{
	int v = 0, n = 0;

	for (; n < 2 && is_digit(**p); n++, (*p)++)
		v = v * 10 + (**p - '0');
	return n > 0 && v <= max;
}

/* "2001-1-2", "2001-01-02T03:04:05.6Z", "2001-01-02 03:04:05". Days are not checked against the month: quotes too many
 * do no harm. */
static bool looks_timestamp(const char *p)
{
	if (strspn(p, "0123456789") != 4 || p[4] != '-')
		return false;
	p += 5;
	if (!take_number(&p, 12) || *p++ != '-' || !take_number(&p, 31))
		return false;
	if (!*p)
		return true;
	bool zone = *p != ' ';
	if (!strchr("Tt ", *p++) || !take_number(&p, 23) || *p++ != ':' || !take_number(&p, 59) || *p++ != ':' ||
		!take_number(&p, 59))
		return false;
	if (*p == '.')
		p += 1 + strspn(p + 1, "0123456789");
	if (!zone || !*p)
		return !zone && !*p;
	if (*p == 'Z')
		return !p[1];
	return strlen(p) == 6 && (*p == '+' || *p == '-') && p[3] == ':';
}

/* [-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)? */
static bool looks_base60(const char *p)
{
	bool any = false;

	p += *p == '-' || *p == '+';
	if (!is_digit(*p))
		return false;
	p += strspn(p, "0123456789_");
	for (; *p == ':'; any = true) {
		p++;
		if (!take_number(&p, 59))
			return false;
	}
	if (*p == '.')
		p += 1 + strspn(p + 1, "0123456789_");
	return any && !*p;
}

bool yaml_needs_quotes(const char *text)
{
	return yaml_resolve(text).kind != YAML_STRING || str_eq(text, "<<") || looks_timestamp(text) ||
	       looks_base60(text);
}

/* quantity.c - purpose: Kubernetes quantities to exact numbers. */
#include "common/base/quantity.h"

#include <limits.h>
#include <stdio.h>

#define NANO 1000000000

static const struct suffix {
	const char *text;
	int power10; /* of ten, or */
	int shift2;  /* of two */
} suffixes[] = {
	{ "n", -9, 0 },
	{ "u", -6, 0 },
	{ "m", -3, 0 },
	{ "", 0, 0 },
	{ "k", 3, 0 },
	{ "M", 6, 0 },
	{ "G", 9, 0 },
	{ "T", 12, 0 },
	{ "P", 15, 0 },
	{ "E", 18, 0 },
	{ "Ki", 0, 10 },
	{ "Mi", 0, 20 },
	{ "Gi", 0, 30 },
	{ "Ti", 0, 40 },
	{ "Pi", 0, 50 },
	{ "Ei", 0, 60 },
};

/* mantissa * 10^power, rounded away from zero; false when it does not fit 128 bits with room for sums. */
static bool scale(unsigned __int128 mantissa, int power, unsigned __int128 *ret)
{
	const unsigned __int128 limit = (unsigned __int128)1 << 120;
	bool rest = false;

	for (; power > 0 && mantissa; power--) {
		if (mantissa > limit / 10)
			return false;
		mantissa *= 10;
	}
	for (; power < 0 && mantissa; power++) {
		rest |= mantissa % 10 != 0;
		mantissa /= 10;
	}
	*ret = mantissa + rest;
	return mantissa < limit;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Reads digits and fraction: value = *ret * 10^*ret_power. False: none, or too many of them. */
static bool read_number(const char **p, unsigned __int128 *ret, int *ret_power)
{
	const unsigned __int128 limit = (unsigned __int128)1 << 118;
	unsigned __int128 value = 0;
	int power = 0, digits = 0;

	for (bool fraction = false;; (*p)++) {
		if (**p == '.' && !fraction) {
			fraction = true;
			continue;
		}
		if (!is_digit(**p))
			break;
		if (++digits > 200 || value > limit / 10)
			return false;
		value = value * 10 + (unsigned)(**p - '0');
		power -= fraction;
	}
	*ret = value;
	*ret_power = power;
	return digits > 0;
}

/* What follows the number: its power of ten and of two. */
static bool read_suffix(const char *p, int *ret_power10, int *ret_shift)
{
	for (size_t i = 0; i < ARRAY_LEN(suffixes); i++)
		if (strcmp(p, suffixes[i].text) == 0) {
			*ret_power10 = suffixes[i].power10;
			*ret_shift = suffixes[i].shift2;
			return true;
		}
	if (*p != 'e' && *p != 'E')
		return false;
	p++;
	int sign = *p == '-' ? -1 : 1, exponent = 0;
	if (*p == '-' || *p == '+')
		p++;
	if (!is_digit(*p))
		return false;
	for (; is_digit(*p); p++)
		if ((exponent = exponent * 10 + (*p - '0')) > 100)
			return false;
	*ret_power10 = sign * exponent;
	*ret_shift = 0;
	return *p == '\0';
}

int quantity_parse(const char *text, struct quantity *ret, struct error *err)
{
	const char *p = text;
	unsigned __int128 value;
	int power, power10, shift;
	bool negative = *p == '-';

	if (*p == '-' || *p == '+')
		p++;
	if (!read_number(&p, &value, &power) || !read_suffix(p, &power10, &shift))
		return error_set(err, ERROR_INVALID,
			"\"%.40s\" is not a quantity (a number with one of n u m k M G T P E Ki Mi Gi Ti Pi Ei, or an "
			"exponent)",
			text);
	const unsigned __int128 binary_max = (unsigned __int128)INT64_MAX * NANO;
	bool binary = shift > 0, fits = true;
	for (; shift > 0 && value && fits; shift--) {
		fits = !(value >> 119);
		value <<= 1;
	}
	fits = fits && scale(value, power + power10 + 9, &value);
	if (binary && (!fits || value > binary_max))
		value = binary_max;
	else if (!fits)
		return error_set(err, ERROR_INVALID, "quantity \"%.40s\" is too large", text);
	ret->nano = negative ? -(__int128)value : (__int128)value;
	return 0;
}

static int64_t divide_up(__int128 a, __int128 b)
{
	__int128 q = a / b;

	if (a % b != 0)
		q += (a > 0) == (b > 0) ? 1 : -1;
	return q > INT64_MAX ? INT64_MAX : q < INT64_MIN ? INT64_MIN : (int64_t)q;
}

int64_t quantity_value(struct quantity q)
{
	return divide_up(q.nano, NANO);
}

int64_t quantity_milli(struct quantity q)
{
	return divide_up(q.nano, NANO / 1000);
}

struct quantity quantity_of(int64_t units)
{
	return (struct quantity){ (__int128)units * NANO };
}

int64_t quantity_divide(struct quantity q, struct quantity divisor)
{
	return divide_up(q.nano, divisor.nano ? divisor.nano : NANO);
}

enum quantity_format quantity_format_of(const char *text)
{
	const char *suffix = text + strspn(text, "+-.0123456789");

	if (str_ends(suffix, "i"))
		return QUANTITY_BINARY;
	return (*suffix == 'e' || *suffix == 'E') && suffix[1] ? QUANTITY_EXPONENT : QUANTITY_DECIMAL;
}

/* printf() knows no 128 bits. */
static void put(char *ret, bool negative, unsigned __int128 value, const char *suffix)
{
	char digits[48], *p = digits + sizeof(digits) - 1;

	*p = '\0';
	do
		*--p = (char)('0' + (int)(value % 10));
	while (value /= 10);
	snprintf(ret, QUANTITY_TEXT_MAX, "%s%s%s", negative ? "-" : "", p, suffix);
}

static bool put_binary(char *ret, bool negative, unsigned __int128 nano)
{
	static const char *const names[] = { "", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei" };
	unsigned __int128 value = nano / NANO;
	size_t i = 0;

	if (value < 1024 || nano % NANO)
		return false;
	for (; value % 1024 == 0 && i + 1 < ARRAY_LEN(names); i++)
		value /= 1024;
	put(ret, negative, value, names[i]);
	return true;
}

void quantity_text(struct quantity q, enum quantity_format format, char ret[QUANTITY_TEXT_MAX])
{
	static const char *const names[] = { "n", "u", "m", "", "k", "M", "G", "T", "P", "E" };
	bool negative = q.nano < 0;
	unsigned __int128 value = negative ? -(unsigned __int128)q.nano : (unsigned __int128)q.nano;
	size_t i = 0;
	char suffix[16];

	if (format == QUANTITY_BINARY && put_binary(ret, negative, value))
		return;
	for (; value && value % 1000 == 0 && i + 1 < ARRAY_LEN(names); i++)
		value /= 1000;
	if (!value)
		i = 3;
	if (format == QUANTITY_EXPONENT && i != 3)
		snprintf(suffix, sizeof(suffix), "e%d", ((int)i - 3) * 3);
	else
		snprintf(suffix, sizeof(suffix), "%s", names[i]);
	put(ret, negative, value, suffix);
}

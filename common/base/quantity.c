/* quantity.c - purpose: Kubernetes quantities to exact numbers. */
#include "common/base/quantity.h"

#include <limits.h>

#define NANO 1000000000

static const struct suffix {
	const char *text;
	int power10;  /* of ten, or */
	int shift2; /* of two */
} suffixes[] = {
	{ "n", -9, 0 }, { "u", -6, 0 }, { "m", -3, 0 }, { "", 0, 0 }, { "k", 3, 0 }, { "M", 6, 0 }, { "G", 9, 0 },
	{ "T", 12, 0 }, { "P", 15, 0 }, { "E", 18, 0 }, { "Ki", 0, 10 }, { "Mi", 0, 20 }, { "Gi", 0, 30 },
	{ "Ti", 0, 40 }, { "Pi", 0, 50 }, { "Ei", 0, 60 },
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
			"\"%.40s\" is not a quantity (a number with one of n u m k M G T P E Ki Mi Gi Ti Pi Ei, or an exponent)",
			text);
	for (; shift > 0 && value; shift--) {
		if (value >> 119)
			return error_set(err, ERROR_INVALID, "quantity \"%.40s\" is too large", text);
		value <<= 1;
	}
	if (!scale(value, power + power10 + 9, &value))
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

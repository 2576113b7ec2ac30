/* codec.c - purpose: base64, hex, RFC 3339 times, Go durations and kubectl's ages, as text and back. */
#include "common/base/codec.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define NS_PER_S INT64_C(1000000000)

static const char base64_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *base64_encode(const void *p, size_t len)
{
	const unsigned char *in = p;
	char *text = xmalloc(len / 3 * 4 + 5), *out = text;

	for (size_t i = 0; i < len; i += 3) {
		uint32_t v = (uint32_t)in[i] << 16;

		v |= i + 1 < len ? (uint32_t)in[i + 1] << 8 : 0;
		v |= i + 2 < len ? in[i + 2] : 0;
		*out++ = base64_digits[v >> 18];
		*out++ = base64_digits[v >> 12 & 63];
		*out++ = i + 1 < len ? base64_digits[v >> 6 & 63] : '=';
		*out++ = i + 2 < len ? base64_digits[v & 63] : '=';
	}
	*out = '\0';
	return text;
}

static int base64_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int base64_decode(const char *text, size_t len, void **ret, size_t *ret_len)
{
	_cleanup_free_ unsigned char *buf = xmalloc(len / 4 * 3 + 4);
	size_t n = 0, digits = 0, pads = 0;
	uint32_t v = 0;

	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\n' || text[i] == '\r')
			continue;
		int d = text[i] == '=' ? 0 : base64_value(text[i]);
		if (d < 0 || (pads && text[i] != '='))
			return -EINVAL;
		pads += text[i] == '=';
		v = v << 6 | (uint32_t)d;
		if (++digits % 4)
			continue;
		/* The bits under the padding must be zero, so that each value has one spelling. */
		if (pads > 2 || (pads == 1 && (v & 0xff)) || (pads == 2 && (v & 0xffff)))
			return -EINVAL;
		buf[n++] = (unsigned char)(v >> 16);
		if (pads < 2)
			buf[n++] = (unsigned char)(v >> 8);
		if (pads < 1)
			buf[n++] = (unsigned char)v;
		v = 0;
	}
	if (digits % 4 || pads > 2)
		return -EINVAL;
	buf[n] = '\0';
	*ret = steal(buf);
	*ret_len = n;
	return 0;
}

void hex_encode(const void *p, size_t len, char *ret)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *in = p;

	for (size_t i = 0; i < len; i++) {
		*ret++ = digits[in[i] >> 4];
		*ret++ = digits[in[i] & 15];
	}
	*ret = '\0';
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int hex_decode(const char *text, size_t len, void *ret)
{
	unsigned char *out = ret;

	for (size_t i = 0; i < 2 * len; i++)
		if (hex_value(text[i]) < 0) /* also stops at the NUL */
			return -EINVAL;
	if (text[2 * len])
		return -EINVAL;
	for (size_t i = 0; i < len; i++)
		out[i] = (unsigned char)(hex_value(text[2 * i]) << 4 | hex_value(text[2 * i + 1]));
	return 0;
}

/* Days since 1970-01-01 of a date in the Gregorian calendar, and back: counted in eras of 400 years from a first of
 * March, so that the leap day is the last of its year. */
static int64_t days_of_date(int64_t year, int month, int day)
{
	year -= month <= 2;
	int64_t era = (year >= 0 ? year : year - 399) / 400;
	int64_t year_of_era = year - era * 400;
	int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

	return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

static void date_of_days(int64_t days, int *ret_year, int *ret_month, int *ret_day)
{
	days += 719468;
	int64_t era = (days >= 0 ? days : days - 146096) / 146097;
	int64_t doe = days - era * 146097;
	int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
	int64_t mp = (5 * doy + 2) / 153;

	*ret_day = (int)(doy - (153 * mp + 2) / 5 + 1);
	*ret_month = (int)(mp < 10 ? mp + 3 : mp - 9);
	*ret_year = (int)(yoe + era * 400 + (*ret_month <= 2));
}

void time_text(int64_t unix_ns, enum time_format format, char ret[TIME_TEXT_MAX])
{
	int64_t seconds = unix_ns / NS_PER_S, ns = unix_ns % NS_PER_S;
	int year, month, day;

	if (ns < 0) {
		ns += NS_PER_S;
		seconds--;
	}
	int64_t days = seconds / 86400, rest = seconds % 86400;
	if (rest < 0) {
		rest += 86400;
		days--;
	}
	date_of_days(days, &year, &month, &day);
	int n = snprintf(ret, TIME_TEXT_MAX, "%04d-%02d-%02dT%02d:%02d:%02d", year, month, day, (int)(rest / 3600),
		(int)(rest / 60 % 60), (int)(rest % 60));
	if (format == TIME_MICROS)
		n += snprintf(ret + n, TIME_TEXT_MAX - (size_t)n, ".%06d", (int)(ns / 1000));
	if (format == TIME_NANOS || (format == TIME_GO && ns))
		n += snprintf(ret + n, TIME_TEXT_MAX - (size_t)n, ".%09d", (int)ns);
	while (format == TIME_GO && ns && ret[n - 1] == '0')
		n--;
	ret[n] = 'Z';
	ret[n + 1] = '\0';
}

/* Exactly n decimal digits; -1 if they are not there. Moves *p. */
static int digits_take(const char **p, int n)
{
	int v = 0;

	for (int i = 0; i < n; i++) {
		if (**p < '0' || **p > '9')
			return -1;
		v = v * 10 + (*(*p)++ - '0');
	}
	return v;
}

static bool char_take(const char **p, const char *set)
{
	if (!**p || !strchr(set, **p))
		return false;
	(*p)++;
	return true;
}

static int days_in_month(int year, int month)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return days[month - 1] + (month == 2 && leap);
}

/* ".123456789" -> ns; a fraction needs a digit, digits past the ninth are cut. -1 if malformed. */
static int64_t fraction_take(const char **p)
{
	int64_t ns = 0, unit = NS_PER_S / 10;

	if (!char_take(p, ".,"))
		return 0;
	if (**p < '0' || **p > '9')
		return -1;
	for (; **p >= '0' && **p <= '9'; (*p)++, unit /= 10)
		ns += (**p - '0') * unit;
	return ns;
}

/* "Z" or "+hh:mm" -> seconds east of UTC. */
static int offset_take(const char **p, int *ret)
{
	if (char_take(p, "Zz")) {
		*ret = 0;
		return 0;
	}
	int sign = **p == '-' ? -1 : 1;
	if (!char_take(p, "+-"))
		return -EINVAL;
	int hours = digits_take(p, 2);
	if (hours < 0 || hours > 23 || !char_take(p, ":"))
		return -EINVAL;
	int minutes = digits_take(p, 2);
	if (minutes < 0 || minutes > 59)
		return -EINVAL;
	*ret = sign * (hours * 3600 + minutes * 60);
	return 0;
}

int time_parse(const char *text, int64_t *ret_ns)
{
	const char *p = text;
	int offset;

	int year = digits_take(&p, 4);
	if (year < 0 || !char_take(&p, "-"))
		return -EINVAL;
	int month = digits_take(&p, 2);
	if (month < 1 || month > 12 || !char_take(&p, "-"))
		return -EINVAL;
	int day = digits_take(&p, 2);
	if (day < 1 || day > days_in_month(year, month) || !char_take(&p, "Tt"))
		return -EINVAL;
	int hour = digits_take(&p, 2);
	if (hour < 0 || hour > 23 || !char_take(&p, ":"))
		return -EINVAL;
	int minute = digits_take(&p, 2);
	if (minute < 0 || minute > 59 || !char_take(&p, ":"))
		return -EINVAL;
	int second = digits_take(&p, 2);
	if (second < 0 || second > 59) /* Go refuses leap seconds too */
		return -EINVAL;
	int64_t ns = fraction_take(&p);
	if (ns < 0 || offset_take(&p, &offset) < 0 || *p)
		return -EINVAL;
	int64_t seconds = days_of_date(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - offset;
	if (__builtin_mul_overflow(seconds, NS_PER_S, &seconds) || __builtin_add_overflow(seconds, ns, &ns))
		return -ERANGE;
	*ret_ns = ns;
	return 0;
}

static const struct {
	const char *name;
	uint64_t ns;
} duration_units[] = {
	{ "ns", 1 },
	{ "us", 1000 },
	{ "\u00b5s", 1000 }, /* micro sign */
	{ "\u03bcs", 1000 }, /* Greek mu */
	{ "ms", 1000000 },
	{ "s", 1000000000 },
	{ "m", 60 * 1000000000ULL },
	{ "h", 3600 * 1000000000ULL },
};

static uint64_t unit_take(const char **p)
{
	size_t n = 0;

	while ((*p)[n] && (*p)[n] != '.' && ((*p)[n] < '0' || (*p)[n] > '9'))
		n++;
	for (size_t i = 0; i < ARRAY_LEN(duration_units); i++) {
		if (strlen(duration_units[i].name) == n && !strncmp(*p, duration_units[i].name, n)) {
			*p += n;
			return duration_units[i].ns;
		}
	}
	return 0;
}

/* One "1.5h". Digits of a fraction that can no longer matter are skipped. */
static int duration_part(const char **p, uint64_t *ret)
{
	uint64_t whole = 0, fraction = 0, scale = 1, total;
	const char *start = *p;
	size_t digits = 0;

	for (; **p >= '0' && **p <= '9'; (*p)++, digits++)
		if (__builtin_mul_overflow(whole, 10, &whole) || __builtin_add_overflow(whole, **p - '0', &whole))
			return -ERANGE;
	if (**p == '.')
		for ((*p)++; **p >= '0' && **p <= '9'; (*p)++, digits++) {
			if (scale >= 1000000000000000ULL)
				continue;
			fraction = fraction * 10 + (uint64_t)(**p - '0');
			scale *= 10;
		}
	if (!digits || *p == start)
		return -EINVAL;
	uint64_t unit = unit_take(p);
	if (!unit)
		return -EINVAL;
	if (__builtin_mul_overflow(whole, unit, &total))
		return -ERANGE;
	if (__builtin_add_overflow(total, (uint64_t)((unsigned __int128)fraction * unit / scale), &total))
		return -ERANGE;
	*ret = total;
	return 0;
}

int duration_parse(const char *text, int64_t *ret_ns)
{
	const char *p = text;
	uint64_t total = 0, part;
	bool negative = *p == '-';

	if (*p == '-' || *p == '+')
		p++;
	if (str_eq(p, "0")) {
		*ret_ns = 0;
		return 0;
	}
	if (!*p)
		return -EINVAL;
	while (*p) {
		int r = duration_part(&p, &part);
		if (r < 0)
			return r;
		if (__builtin_add_overflow(total, part, &total) || total > (uint64_t)INT64_MAX + negative)
			return -ERANGE;
	}
	*ret_ns = negative ? (int64_t)(0 - total) : (int64_t)total;
	return 0;
}

/* "1.5" for 1500 thousandths: v / 10^digits without trailing zeros. */
static int decimal_text(char *buf, size_t size, uint64_t v, int digits)
{
	uint64_t scale = 1;

	for (int i = 0; i < digits; i++)
		scale *= 10;
	int n = snprintf(buf, size, "%" PRIu64, v / scale);
	if (v % scale == 0)
		return n;
	n += snprintf(buf + n, size - (size_t)n, ".%0*" PRIu64, digits, v % scale);
	while (buf[n - 1] == '0')
		buf[--n] = '\0';
	return n;
}

void duration_text(int64_t ns, char ret[DURATION_TEXT_MAX])
{
	uint64_t v = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
	char *p = ret;
	const char *unit = "s";

	if (ns < 0)
		*p++ = '-';
	size_t room = DURATION_TEXT_MAX - 1;
	if (v < NS_PER_S) {
		int digits = v >= 1000000 ? 6 : v >= 1000 ? 3 : 0;

		unit = !v ? "s" : digits == 6 ? "ms" : digits == 3 ? "\u00b5s" : "ns";
		p += decimal_text(p, room, v, digits);
	} else {
		uint64_t minutes = v / NS_PER_S / 60;

		if (minutes >= 60)
			p += snprintf(p, room, "%" PRIu64 "h", minutes / 60);
		if (minutes)
			p += snprintf(p, room - (size_t)(p - ret), "%" PRIu64 "m", minutes % 60);
		p += decimal_text(p, room - (size_t)(p - ret), v - minutes * 60 * NS_PER_S, 9);
	}
	snprintf(p, DURATION_TEXT_MAX - (size_t)(p - ret), "%s", unit);
}

/* "3m20s", or "3m" when the second part is zero. */
static void age_pair(char *ret, int64_t a, const char *a_unit, int64_t b, const char *b_unit)
{
	if (b)
		snprintf(ret, DURATION_TEXT_MAX, "%" PRId64 "%s%" PRId64 "%s", a, a_unit, b, b_unit);
	else
		snprintf(ret, DURATION_TEXT_MAX, "%" PRId64 "%s", a, a_unit);
}

/* Steps as in k8s.io/apimachinery duration.HumanDuration: two units while the first is small. */
void age_text(int64_t ns, char ret[DURATION_TEXT_MAX])
{
	int64_t s = ns / NS_PER_S, minutes = s / 60, hours = s / 3600, days = hours / 24;

	if (s < -1)
		snprintf(ret, DURATION_TEXT_MAX, "<invalid>");
	else if (s < 120)
		age_pair(ret, MAX(s, 0), "s", 0, "");
	else if (minutes < 10)
		age_pair(ret, minutes, "m", s % 60, "s");
	else if (minutes < 180)
		age_pair(ret, minutes, "m", 0, "");
	else if (hours < 8)
		age_pair(ret, hours, "h", minutes % 60, "m");
	else if (hours < 48)
		age_pair(ret, hours, "h", 0, "");
	else if (hours < 24 * 8)
		age_pair(ret, days, "d", hours % 24, "h");
	else if (hours < 24 * 365 * 2)
		age_pair(ret, days, "d", 0, "");
	else if (hours < 24 * 365 * 8)
		age_pair(ret, days / 365, "y", days % 365, "d");
	else
		age_pair(ret, days / 365, "y", 0, "");
}

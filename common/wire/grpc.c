/* grpc.c - purpose: what gRPC adds to HTTP/2: message framing, time-outs, status texts. Sans I/O. */
#include "common/wire/grpc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

enum { BODY_FIRST_BYTES = 1024 * 1024 };

void grpc_reader_done(struct grpc_reader *reader)
{
	str_done(&reader->body);
	reader->prefix_len = 0;
}

bool grpc_reader_midway(const struct grpc_reader *reader)
{
	return reader->prefix_len > 0;
}

static int read_prefix(struct grpc_reader *reader, struct error *err)
{
	const uint8_t *h = reader->prefix;
	size_t need = (size_t)h[1] << 24 | (size_t)h[2] << 16 | (size_t)h[3] << 8 | h[4];

	if (h[0] != 0)
		return error_set(
			err, ERROR_UNIMPLEMENTED, "compressed gRPC messages are not supported (flag %u)", h[0]);
	if (need > reader->max)
		return error_set(err, ERROR_EXHAUSTED, "message of %zu bytes is larger than the limit of %zu", need,
			reader->max);
	reader->need = need;
	/* Most messages in one step, without letting a prefix alone take 16 MB. */
	str_reset(&reader->body);
	str_reserve(&reader->body, MIN(need, (size_t)BODY_FIRST_BYTES) + 1);
	return 0;
}

int grpc_reader_next(struct grpc_reader *reader, const uint8_t **p, size_t *len, struct bytes *ret, struct error *err)
{
	size_t n;

	if (reader->prefix_len < GRPC_PREFIX_BYTES) {
		n = MIN(*len, GRPC_PREFIX_BYTES - reader->prefix_len);
		if (n > 0)
			memcpy(reader->prefix + reader->prefix_len, *p, n);
		reader->prefix_len += n;
		*p += n;
		*len -= n;
		if (reader->prefix_len < GRPC_PREFIX_BYTES)
			return 0;
		int r = read_prefix(reader, err);
		if (r < 0)
			return r;
	}
	n = MIN(*len, reader->need - reader->body.len);
	if (n > 0)
		str_add_bytes(&reader->body, *p, n);
	*p += n;
	*len -= n;
	if (reader->body.len < reader->need)
		return 0;
	reader->prefix_len = 0;
	*ret = (struct bytes){ reader->body.buf, reader->body.len };
	return 1;
}

void grpc_prefix_write(uint8_t prefix[GRPC_PREFIX_BYTES], size_t len)
{
	assert(len <= UINT32_MAX);
	prefix[0] = 0;
	prefix[1] = (uint8_t)(len >> 24);
	prefix[2] = (uint8_t)(len >> 16);
	prefix[3] = (uint8_t)(len >> 8);
	prefix[4] = (uint8_t)len;
}

static const struct {
	char unit;
	uint64_t ns;
} units[] = {
	{ 'n', 1 },
	{ 'u', 1000 },
	{ 'm', 1000000 },
	{ 'S', 1000000000ull },
	{ 'M', 60 * 1000000000ull },
	{ 'H', 3600 * 1000000000ull },
};

int grpc_timeout_parse(const char *text, uint64_t *ret_ns)
{
	uint64_t value = 0;
	size_t digits = 0, i;

	for (; text[digits] >= '0' && text[digits] <= '9'; digits++) {
		if (digits == 8)
			return -EINVAL;
		value = value * 10 + (uint64_t)(text[digits] - '0');
	}
	if (digits == 0 || !text[digits] || text[digits + 1])
		return -EINVAL;
	for (i = 0; i < ARRAY_LEN(units); i++) {
		if (units[i].unit != text[digits])
			continue;
		/* 99999999 hours do not fit: that is "no deadline" to everybody alive. */
		if (__builtin_mul_overflow(value, units[i].ns, ret_ns))
			*ret_ns = UINT64_MAX;
		return 0;
	}
	return -EINVAL;
}

void grpc_timeout_format(uint64_t timeout_ns, char ret[GRPC_TIMEOUT_TEXT_MAX])
{
	size_t i = 0;

	/* The finest unit that fits, rounded up, so that a server never gives up before its client. */
	while (i + 1 < ARRAY_LEN(units) && timeout_ns / units[i].ns >= 99999999)
		i++;
	snprintf(ret, GRPC_TIMEOUT_TEXT_MAX, "%" PRIu64 "%c",
		MIN(timeout_ns / units[i].ns + (timeout_ns % units[i].ns != 0), (uint64_t)99999999), units[i].unit);
}

void grpc_message_encode(struct str *out, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c >= 0x20 && c <= 0x7e && c != '%')
			str_add_char(out, *text);
		else
			str_addf(out, "%%%02X", c);
	}
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

void grpc_message_decode(struct str *out, const char *text)
{
	for (; *text; text++) {
		int c = (unsigned char)*text;

		if (c == '%' && hex(text[1]) >= 0 && hex(text[2]) >= 0) {
			c = hex(text[1]) << 4 | hex(text[2]);
			text += 2;
		}
		str_add_char(out, (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f ? '?' : (char)c);
	}
}

enum error_code grpc_status_parse(const char *text)
{
	unsigned value = 0;

	if (!*text || strlen(text) > 2)
		return ERROR_UNKNOWN;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return ERROR_UNKNOWN;
		value = value * 10 + (unsigned)(*text - '0');
	}
	return value <= ERROR_UNAUTHENTICATED ? (enum error_code)value : ERROR_UNKNOWN;
}

bool grpc_content_type(const char *text)
{
	static const char base[] = "application/grpc";

	if (!text || !str_starts(text, base))
		return false;
	text += strlen(base);
	return *text == '\0' || *text == '+' || *text == ';';
}

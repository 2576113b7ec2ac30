/* http1_write.c - purpose: write HTTP/1.1 messages. */
#include "common/wire/http1.h"

static const struct {
	int status;
	const char *reason;
} reasons[] = {
	{ 100, "Continue" },
	{ 101, "Switching Protocols" },
	{ 200, "OK" },
	{ 201, "Created" },
	{ 202, "Accepted" },
	{ 204, "No Content" },
	{ 206, "Partial Content" },
	{ 301, "Moved Permanently" },
	{ 302, "Found" },
	{ 304, "Not Modified" },
	{ 307, "Temporary Redirect" },
	{ 308, "Permanent Redirect" },
	{ 400, "Bad Request" },
	{ 401, "Unauthorized" },
	{ 403, "Forbidden" },
	{ 404, "Not Found" },
	{ 405, "Method Not Allowed" },
	{ 406, "Not Acceptable" },
	{ 408, "Request Timeout" },
	{ 409, "Conflict" },
	{ 410, "Gone" },
	{ 413, "Content Too Large" },
	{ 414, "URI Too Long" },
	{ 415, "Unsupported Media Type" },
	{ 417, "Expectation Failed" },
	{ 422, "Unprocessable Content" },
	{ 426, "Upgrade Required" },
	{ 429, "Too Many Requests" },
	{ 431, "Request Header Fields Too Large" },
	{ 500, "Internal Server Error" },
	{ 501, "Not Implemented" },
	{ 502, "Bad Gateway" },
	{ 503, "Service Unavailable" },
	{ 504, "Gateway Timeout" },
	{ 505, "HTTP Version Not Supported" },
};

const char *http1_reason(int status)
{
	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "";
}

/* Appends with control characters (and spaces, in a first line) replaced. */
static void add_clean(struct str *out, const char *text, bool spaces)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		bool bad = (c < 0x20 && c != '\t') || c == 0x7f;

		if (!spaces && (bad || c == ' ' || c == '\t'))
			str_add(out, "%20");
		else
			str_add_char(out, bad ? ' ' : *text);
	}
}

void http1_write_request(struct str *out, const char *method, const char *target)
{
	str_add(out, method);
	str_add_char(out, ' ');
	add_clean(out, target, false);
	str_add(out, " HTTP/1.1\r\n");
}

void http1_write_status(struct str *out, int status)
{
	str_addf(out, "HTTP/1.1 %03d %s\r\n", status, http1_reason(status));
}

void http1_write_field(struct str *out, const char *name, const char *value)
{
	str_add(out, name);
	str_add(out, ": ");
	add_clean(out, value, true);
	str_add(out, "\r\n");
}

void http1_write_fieldf(struct str *out, const char *name, const char *fmt, ...)
{
	_cleanup_(str_done) struct str value = STR_INIT;
	va_list args;

	va_start(args, fmt);
	str_vaddf(&value, fmt, args);
	va_end(args);
	http1_write_field(out, name, str_get(&value));
}

void http1_write_head_end(struct str *out)
{
	str_add(out, "\r\n");
}

void http1_write_chunk(struct str *out, const void *p, size_t len)
{
	if (!len)
		return;
	str_addf(out, "%zx\r\n", len);
	str_add_bytes(out, p, len);
	str_add(out, "\r\n");
}

void http1_write_chunk_end(struct str *out)
{
	str_add(out, "0\r\n\r\n");
}

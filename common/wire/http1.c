/* http1.c - purpose: read HTTP/1.1 messages. Bytes in, events out; the writers are in http1_write.c. */
#include "common/wire/http1.h"

#include <errno.h>
#include <strings.h>

/*
 *	HEAD --+-> LENGTH ----------------------------------+
 *	  ^    +-> TO_EOF                                   v
 *	  |    +-> CHUNK_SIZE -> CHUNK_DATA -> CHUNK_END   END -> DONE
 *	  |    |       |  ^________________________|        ^
 *	  |    |       +-> TRAILER -------------------------+
 *	  +----+ interim response                           |
 *	       +--------------------------------------------+ no body
 */
enum {
	STATE_HEAD,
	STATE_LENGTH,
	STATE_TO_EOF,
	STATE_CHUNK_SIZE, /* in the hex digits */
	STATE_CHUNK_EXTENSION,
	STATE_CHUNK_SIZE_LF,
	STATE_CHUNK_DATA,
	STATE_CHUNK_CR, /* the CR LF behind the data */
	STATE_CHUNK_LF,
	STATE_TRAILER_START, /* first byte of a line behind the last chunk */
	STATE_TRAILER_LINE,
	STATE_TRAILER_LF,
	STATE_TRAILER_END_LF,
	STATE_END, /* END is to be given */
	STATE_DONE,
	STATE_FAILED,
};

enum { CHUNK_LINE_MAX = 256, METHOD_MAX = 32, BLANK_LINES_MAX = 8 };

void http1_init(struct http1 *h, enum http1_role role)
{
	*h = (struct http1){ .role = role };
}

void http1_done(struct http1 *h)
{
	str_done(&h->head);
}

void http1_next(struct http1 *h)
{
	struct str head = h->head;

	/* A long head should not stay in memory for as long as an idle connection lives. */
	if (head.cap > 4096)
		str_done(&head);
	str_reset(&head);
	*h = (struct http1){ .role = h->role, .head_max = h->head_max, .body_max = h->body_max, .head = head };
}

void http1_expect_no_body(struct http1 *h)
{
	h->no_body = true;
}

static int fail(struct http1 *h, int answer, struct error *err, const char *text)
{
	bool limit = answer == 413 || answer == 431;

	h->state = STATE_FAILED;
	h->answer = answer;
	return error_set(err, limit ? ERROR_EXHAUSTED : ERROR_INVALID, "HTTP: %s", text);
}

static size_t head_max(const struct http1 *h)
{
	return h->head_max ? h->head_max : HTTP1_HEAD_MAX;
}

static bool is_token_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_control(char c)
{
	return ((unsigned char)c < 0x20 && c != '\t') || c == 0x7f;
}

const char *http1_header(const struct http1 *h, const char *name)
{
	for (size_t i = 0; i < h->n_fields; i++)
		if (!strcasecmp(h->fields[i].name, name))
			return h->fields[i].value;
	return NULL;
}

bool http1_has_token(const char *list, const char *token)
{
	size_t want = strlen(token);

	while (list && *list) {
		list += strspn(list, ", \t");
		size_t n = strcspn(list, ", \t");
		if (n == want && !strncasecmp(list, token, n))
			return true;
		list += n;
	}
	return false;
}

/* In any of the fields of that name. */
static bool any_has_token(const struct http1 *h, const char *name, const char *token)
{
	for (size_t i = 0; i < h->n_fields; i++)
		if (!strcasecmp(h->fields[i].name, name) && http1_has_token(h->fields[i].value, token))
			return true;
	return false;
}

/* "HTTP/1.x" -> minor; 1.1 for later minors (RFC 9110, 2.5). */
static int parse_version(struct http1 *h, const char *p, struct error *err)
{
	bool shaped =
		!strncmp(p, "HTTP/", 5) && p[5] >= '0' && p[5] <= '9' && p[6] == '.' && p[7] >= '0' && p[7] <= '9';

	if (!shaped)
		return fail(h, 400, err, "malformed version in the first line");
	if (p[5] != '1')
		return fail(h, 505, err, "only HTTP/1.0 and HTTP/1.1 are spoken here");
	h->minor = p[7] > '0';
	return 0;
}

static int parse_request_line(struct http1 *h, char *line, struct error *err)
{
	size_t method = 0;

	while (is_token_char(line[method]))
		method++;
	if (!method || method > METHOD_MAX || line[method] != ' ')
		return fail(h, 400, err, "malformed method in the request line");
	char *target = line + method + 1;
	char *end = target;
	while (*end > 0x20 && *end < 0x7f)
		end++;
	if (end == target || *end != ' ' || strlen(end + 1) != 8)
		return fail(h, 400, err, "malformed request line");
	int r = parse_version(h, end + 1, err);
	if (r < 0)
		return r;
	line[method] = '\0';
	*end = '\0';
	h->method = line;
	h->target = target;
	return 0;
}

static int parse_status_line(struct http1 *h, const char *line, struct error *err)
{
	if (strlen(line) < 12 || line[8] != ' ')
		return fail(h, 400, err, "malformed status line");
	int r = parse_version(h, line, err);
	if (r < 0)
		return r;
	for (const char *p = line + 9; p < line + 12; p++) {
		if (*p < '0' || *p > '9')
			return fail(h, 400, err, "malformed status number");
		h->status = h->status * 10 + (*p - '0');
	}
	if (h->status < 100 || (line[12] && line[12] != ' '))
		return fail(h, 400, err, "malformed status number");
	return 0;
}

static int parse_field(struct http1 *h, char *line, struct error *err)
{
	size_t n = 0;

	if (*line == ' ' || *line == '\t')
		return fail(h, 400, err, "folded header line");
	while (is_token_char(line[n]))
		n++;
	if (!n || line[n] != ':')
		return fail(h, 400, err, "malformed header name");
	if (h->n_fields == HTTP1_HEADERS_MAX)
		return fail(h, 431, err, "too many header fields");
	line[n] = '\0';
	char *value = line + n + 1;
	value += strspn(value, " \t");
	for (const char *p = value; *p; p++)
		if (is_control(*p))
			return fail(h, 400, err, "control character in a header value");
	for (size_t len = strlen(value); len && (value[len - 1] == ' ' || value[len - 1] == '\t'); len--)
		value[len - 1] = '\0';
	h->fields[h->n_fields++] = (struct http1_field){ line, value };
	return 0;
}

static int parse_length(struct http1 *h, const char *value, struct error *err)
{
	uint64_t length = 0;

	if (!*value || strlen(value) > 18)
		return fail(h, 400, err, "malformed Content-Length");
	for (; *value; value++) {
		if (*value < '0' || *value > '9')
			return fail(h, 400, err, "malformed Content-Length");
		length = length * 10 + (uint64_t)(*value - '0');
	}
	if (h->has_length && h->content_length != length)
		return fail(h, 400, err, "two different Content-Lengths");
	h->has_length = true;
	h->content_length = length;
	return 0;
}

static int parse_framing(struct http1 *h, struct error *err)
{
	size_t hosts = 0;

	for (size_t i = 0; i < h->n_fields; i++) {
		const char *name = h->fields[i].name, *value = h->fields[i].value;
		int r = 0;

		if (!strcasecmp(name, "Content-Length"))
			r = parse_length(h, value, err);
		else if (!strcasecmp(name, "Host"))
			hosts++;
		else if (!strcasecmp(name, "Transfer-Encoding")) {
			if (h->chunked || strcasecmp(value, "chunked") != 0)
				return fail(h, 501, err, "transfer coding other than \"chunked\"");
			h->chunked = true;
		}
		if (r < 0)
			return r;
	}
	if (h->chunked && h->has_length)
		return fail(h, 400, err, "both Content-Length and Transfer-Encoding");
	if (h->chunked && h->minor == 0)
		return fail(h, 400, err, "Transfer-Encoding in HTTP/1.0");
	if (h->role == HTTP1_REQUEST && (hosts > 1 || (hosts == 0 && h->minor == 1)))
		return fail(h, 400, err, hosts ? "more than one Host field" : "no Host field");
	return 0;
}

static bool has_no_body(const struct http1 *h)
{
	if (h->role == HTTP1_REQUEST)
		return !h->chunked && h->content_length == 0;
	return h->no_body || h->status < 200 || h->status == 204 || h->status == 304 ||
	       (h->has_length && !h->content_length);
}

/* Everything that follows from the fields. */
static int understand(struct http1 *h, struct error *err)
{
	bool close = any_has_token(h, "Connection", "close");

	h->keep_alive = !close && (h->minor == 1 || any_has_token(h, "Connection", "keep-alive"));
	h->upgrade = any_has_token(h, "Connection", "upgrade") ? http1_header(h, "Upgrade") : NULL;
	h->expect_continue = h->minor == 1 && any_has_token(h, "Expect", "100-continue");
	if (has_no_body(h)) {
		h->state = STATE_END;
		h->expect_continue = false;
	} else if (h->chunked) {
		h->state = STATE_CHUNK_SIZE;
	} else if (h->has_length) {
		if (h->body_max && h->content_length > h->body_max)
			return fail(h, 413, err, "body too large");
		h->state = STATE_LENGTH;
		h->left = h->content_length;
	} else { /* only responses come here */
		h->state = STATE_TO_EOF;
		h->keep_alive = false;
	}
	return 0;
}

/* The whole head stands in h->head, each line ends in CR LF and there are no other CRs, LFs or NULs in it. */
static int parse_head(struct http1 *h, struct error *err)
{
	char *line = h->head.buf;

	for (bool first = true;; first = false) {
		char *end = strchr(line, '\r');
		int r;

		if (end == line)
			break;
		*end = '\0';
		if (!first)
			r = parse_field(h, line, err);
		else if (h->role == HTTP1_REQUEST)
			r = parse_request_line(h, line, err);
		else
			r = parse_status_line(h, line, err);
		if (r < 0)
			return r;
		line = end + 2;
	}
	int r = parse_framing(h, err);
	return r < 0 ? r : understand(h, err);
}

/* Takes bytes up to the blank line. Returns 1 when the head is whole, 0 when there is more to come. */
static int take_head(struct http1 *h, struct bytes *in, struct error *err)
{
	size_t n = 0;

	/* A client may send empty lines before a request (RFC 9112, 2.2); not for ever. */
	for (; !h->head.len && in->len && (*in->ptr == '\r' || *in->ptr == '\n'); in->ptr++, in->len--)
		if (h->role == HTTP1_RESPONSE || ++h->line_len > BLANK_LINES_MAX)
			return fail(h, 400, err, "empty lines before the message");

	size_t old = h->head.len;
	size_t room = head_max(h) - MIN(old, head_max(h));
	str_add_bytes(&h->head, in->ptr, MIN(in->len, room));
	const char *buf = h->head.buf;
	for (n = old; n < h->head.len; n++) {
		char before = n ? buf[n - 1] : 0;

		if ((buf[n] == '\n') != (before == '\r'))
			return fail(h, 400, err, "bare CR or LF in the head");
		if (buf[n] == '\0')
			return fail(h, 400, err, "NUL byte in the head");
		if (buf[n] == '\n' && n >= 3 && buf[n - 2] == '\n') {
			n++;
			h->head.len = n;
			h->head.buf[n] = '\0';
			in->ptr += n - old;
			in->len -= n - old;
			return 1;
		}
	}
	if (h->head.len >= head_max(h))
		return fail(h, 431, err, "head too large");
	in->ptr += n - old;
	in->len -= n - old;
	return 0;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int chunk_size_done(struct http1 *h, struct error *err)
{
	h->line_len = 0;
	if (!h->left) {
		h->state = STATE_TRAILER_START;
		return 0;
	}
	if (h->body_max && (h->left > h->body_max || h->body_seen > h->body_max - h->left))
		return fail(h, 413, err, "body too large");
	h->body_seen += h->left;
	h->state = STATE_CHUNK_DATA;
	return 0;
}

static int chunk_size_byte(struct http1 *h, char c, struct error *err)
{
	int digit = hex_digit(c);

	if (++h->line_len > CHUNK_LINE_MAX)
		return fail(h, 400, err, "chunk size line too long");
	if (digit >= 0) {
		if (h->line_len > 15)
			return fail(h, 400, err, "chunk size too large");
		h->left = h->left << 4 | (uint64_t)digit;
		return 0;
	}
	if (h->line_len == 1 || (c != ';' && c != '\r'))
		return fail(h, 400, err, "malformed chunk size");
	h->state = c == ';' ? STATE_CHUNK_EXTENSION : STATE_CHUNK_SIZE_LF;
	return 0;
}

/* One byte of what stands between and behind the chunks. */
static int framing_byte(struct http1 *h, char c, struct error *err)
{
	switch (h->state) {
	case STATE_CHUNK_SIZE:
		return chunk_size_byte(h, c, err);
	case STATE_CHUNK_EXTENSION:
		if (++h->line_len > CHUNK_LINE_MAX || (c != '\r' && is_control(c)))
			return fail(h, 400, err, "malformed chunk extension");
		if (c == '\r')
			h->state = STATE_CHUNK_SIZE_LF;
		return 0;
	case STATE_CHUNK_SIZE_LF:
		return c == '\n' ? chunk_size_done(h, err) : fail(h, 400, err, "bare CR behind a chunk size");
	case STATE_CHUNK_CR:
		h->state = STATE_CHUNK_LF;
		return c == '\r' ? 0 : fail(h, 400, err, "chunk longer than its size");
	case STATE_CHUNK_LF:
		h->state = STATE_CHUNK_SIZE;
		return c == '\n' ? 0 : fail(h, 400, err, "bare CR behind a chunk");
	case STATE_TRAILER_START:
		if (c != '\r' && !is_token_char(c))
			return fail(h, 400, err, "malformed trailer");
		h->state = c == '\r' ? STATE_TRAILER_END_LF : STATE_TRAILER_LINE;
		return 0;
	case STATE_TRAILER_LINE:
		if (++h->line_len > head_max(h))
			return fail(h, 431, err, "trailer too large");
		if (c != '\r' && is_control(c))
			return fail(h, 400, err, "malformed trailer");
		if (c == '\r')
			h->state = STATE_TRAILER_LF;
		return 0;
	case STATE_TRAILER_LF:
		h->state = STATE_TRAILER_START;
		return c == '\n' ? 0 : fail(h, 400, err, "bare CR in a trailer");
	case STATE_TRAILER_END_LF:
		h->state = STATE_END;
		return c == '\n' ? 0 : fail(h, 400, err, "bare CR in a trailer");
	default:
		assert(false);
		return fail(h, 500, err, "impossible state");
	}
}

/* A piece of body out of *in, at most what is left of it. */
static void take_body(struct http1 *h, struct bytes *in, struct http1_event *ret)
{
	size_t n = h->state == STATE_TO_EOF ? in->len : (size_t)MIN(h->left, (uint64_t)in->len);

	*ret = (struct http1_event){ HTTP1_BODY, { in->ptr, n } };
	in->ptr += n;
	in->len -= n;
	if (h->state == STATE_TO_EOF) {
		h->body_seen += n;
		return;
	}
	h->left -= n;
	if (!h->left)
		h->state = h->state == STATE_LENGTH ? STATE_END : STATE_CHUNK_CR;
}

/* A 1xx other than 101 says nothing that we use; the response proper follows. */
static bool is_interim(const struct http1 *h)
{
	return h->role == HTTP1_RESPONSE && h->status < 200 && h->status != 101;
}

/* Returns 1 when *ret was set, 0 to go on, negative on error. */
static int read_head(struct http1 *h, struct bytes *in, struct http1_event *ret, struct error *err)
{
	int r = take_head(h, in, err);

	if (r <= 0)
		return r;
	r = parse_head(h, err);
	if (r < 0)
		return r;
	if (is_interim(h)) {
		bool no_body = h->no_body;

		http1_next(h);
		h->no_body = no_body;
		return 0;
	}
	h->line_len = 0;
	*ret = (struct http1_event){ .kind = HTTP1_HEAD };
	return 1;
}

int http1_read(struct http1 *h, struct bytes *in, struct http1_event *ret, struct error *err)
{
	if (h->state == STATE_FAILED || (h->state == STATE_DONE && in->len))
		return error_set(err, ERROR_INVALID, "HTTP: bytes behind the end of the message");
	while (in->len && h->state != STATE_END) {
		int r;

		switch (h->state) {
		case STATE_HEAD:
			r = read_head(h, in, ret, err);
			if (r)
				return MIN(r, 0);
			break;
		case STATE_TO_EOF:
			if (h->body_max && in->len > h->body_max - h->body_seen)
				return fail(h, 413, err, "body too large");
			take_body(h, in, ret);
			return 0;
		case STATE_LENGTH:
		case STATE_CHUNK_DATA:
			take_body(h, in, ret);
			return 0;
		default:
			r = framing_byte(h, *in->ptr, err);
			if (r < 0)
				return r;
			in->ptr++;
			in->len--;
		}
	}
	*ret = (struct http1_event){ .kind = h->state == STATE_END ? HTTP1_END : HTTP1_MORE };
	if (h->state == STATE_END)
		h->state = STATE_DONE;
	return 0;
}

int http1_eof(struct http1 *h, struct http1_event *ret, struct error *err)
{
	if (h->state == STATE_FAILED)
		return error_set(err, ERROR_INVALID, "HTTP: malformed message");
	if (h->state == STATE_TO_EOF || h->state == STATE_END) {
		h->state = STATE_DONE;
		*ret = (struct http1_event){ .kind = HTTP1_END };
		return 0;
	}
	if (h->state == STATE_DONE || (h->state == STATE_HEAD && !h->head.len)) {
		*ret = (struct http1_event){ .kind = HTTP1_MORE };
		return 0;
	}
	bool head = h->state == STATE_HEAD;
	h->state = STATE_FAILED;
	h->answer = 400;
	return error_set(
		err, ERROR_UNAVAILABLE, "HTTP: connection closed in the middle of %s", head ? "a head" : "a body");
}

/* json_scan.c - purpose: cut a stream of JSON bytes into objects without building a tree of the whole. */
#include "common/wire/json_scan.h"

#include <errno.h>

/*
 *	STREAM: OUTSIDE -> ITEM -> OUTSIDE ...
 *	LIST:   OUTSIDE -> REST -> ("items": [) ITEMS -> ITEM | SCALAR -> ITEMS -> REST -> ENDED
 */
enum {
	STATE_OUTSIDE,
	STATE_REST,   /* inside the list object, outside its items */
	STATE_ITEMS,  /* between two items */
	STATE_ITEM,   /* inside an object or array */
	STATE_SCALAR, /* an item that is no object: whoever parses it will say so */
	STATE_ENDED,
};

enum { DEPTH_MAX = 10000, KEEP_BYTES = 64 * 1024 };

void json_scan_init(struct json_scan *s, enum json_scan_mode mode)
{
	*s = (struct json_scan){ .mode = mode };
}

void json_scan_done(struct json_scan *s)
{
	str_done(&s->item);
	str_done(&s->rest);
}

bool json_scan_inside(const struct json_scan *s)
{
	return s->state != STATE_OUTSIDE && s->state != STATE_ENDED;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* Follows strings and brackets over one byte. True if it is one that counts outside of strings. */
static bool track(struct json_scan *s, char c)
{
	if (s->in_string) {
		if (s->escaped)
			s->escaped = false;
		else if (c == '\\')
			s->escaped = true;
		else if (c == '"')
			s->in_string = false;
		return false;
	}
	if (c == '"')
		s->in_string = true;
	else if (c == '{' || c == '[')
		s->depth++;
	else if ((c == '}' || c == ']') && s->depth)
		s->depth--;
	return true;
}

static void item_begin(struct json_scan *s, int state)
{
	s->state = state;
	s->too_large = false;
}

static enum json_scan_event item_end(struct json_scan *s, int next)
{
	s->state = next;
	s->given = true;
	return s->too_large ? JSON_SCAN_TOO_LARGE : JSON_SCAN_ITEM;
}

static void item_add(struct json_scan *s, const char *p, size_t n)
{
	size_t max = s->item_max ? s->item_max : JSON_SCAN_ITEM_MAX;

	if (s->too_large || n > max - s->item.len) {
		s->too_large = true;
		str_done(&s->item);
		return;
	}
	str_add_bytes(&s->item, p, n);
}

/* Bytes that neither end a string nor are brackets outside of one: most of them, and track() need not see them. */
static size_t plain_run(const struct json_scan *s, const char *p, size_t len)
{
	static const bool special[256] = { ['"'] = true, ['{'] = true, ['}'] = true, ['['] = true, [']'] = true };
	size_t n = 0;

	if (s->escaped)
		return 0;
	if (s->in_string)
		while (n < len && p[n] != '"' && p[n] != '\\')
			n++;
	else
		while (n < len && !special[(unsigned char)p[n]])
			n++;
	return n;
}

/* A run of bytes of one item. */
static enum json_scan_event in_item(struct json_scan *s, struct bytes *in)
{
	unsigned outside = s->mode == JSON_SCAN_LIST ? 2 : 0;
	size_t n = 0;
	bool ended = false;

	while (!ended) {
		n += plain_run(s, in->ptr + n, in->len - n);
		if (n == in->len)
			break;
		bool counts = track(s, in->ptr[n++]);
		ended = counts && s->depth == outside;
	}
	item_add(s, in->ptr, n);
	in->ptr += n;
	in->len -= n;
	return ended ? item_end(s, s->mode == JSON_SCAN_LIST ? STATE_ITEMS : STATE_OUTSIDE) : JSON_SCAN_MORE;
}

/* Up to a comma or bracket, which stays. */
static enum json_scan_event in_scalar(struct json_scan *s, struct bytes *in)
{
	for (; in->len; in->ptr++, in->len--) {
		char c = *in->ptr;

		if (!s->in_string && (c == ',' || c == ']' || c == '}'))
			return item_end(s, STATE_ITEMS);
		track(s, c);
		item_add(s, &c, 1);
	}
	return JSON_SCAN_MORE;
}

static int between_items(struct json_scan *s, struct bytes *in, struct error *err)
{
	char c = *in->ptr;

	if (c == '}')
		return error_set(err, ERROR_INVALID, "'}' between the items of a list");
	if (c == ']') {
		s->state = STATE_REST; /* which takes the bracket */
		return 0;
	}
	if (c == '{' || c == '[') {
		item_begin(s, STATE_ITEM); /* which takes the bracket */
		return 0;
	}
	if (!is_space(c) && c != ',') {
		item_begin(s, STATE_SCALAR);
		return 0;
	}
	in->ptr++;
	in->len--;
	return 0;
}

/* At depth 1: which key are we behind? */
static void track_key(struct json_scan *s, char c, bool was_string)
{
	if (s->depth != 1 && !(s->depth == 2 && c == '[')) {
		s->key_due = false;
		return;
	}
	if (was_string) {
		if (s->in_key && s->in_string && s->key_len < sizeof(s->key))
			s->key[s->key_len++] = c;
		s->in_key = s->in_key && s->in_string;
		return;
	}
	if (c == '{' || c == ',') {
		s->key_due = true;
		s->key_len = 0;
	} else if (c == '"' && s->key_due) {
		s->in_key = true;
		s->key_due = false;
	}
}

/* One byte of the list object itself. */
static int in_rest(struct json_scan *s, struct bytes *in, struct error *err)
{
	char c = *in->ptr;
	bool was_string = s->in_string;

	in->ptr++;
	in->len--;
	if (s->rest.len >= JSON_SCAN_REST_MAX)
		return error_set(
			err, ERROR_EXHAUSTED, "more than %d bytes around the items of a list", JSON_SCAN_REST_MAX);
	str_add_char(&s->rest, c);
	track(s, c);
	track_key(s, c, was_string);
	if (s->depth > DEPTH_MAX)
		return error_set(err, ERROR_INVALID, "list nested too deeply");
	if (s->depth == 0)
		s->state = STATE_ENDED;
	else if (!was_string && c == '[' && s->depth == 2 && s->key_len == 5 && !memcmp(s->key, "items", 5))
		s->state = STATE_ITEMS;
	return 0;
}

static int outside(struct json_scan *s, struct bytes *in, struct error *err)
{
	char c = *in->ptr;

	if (is_space(c)) {
		in->ptr++;
		in->len--;
		return 0;
	}
	if (c != '{')
		return error_set(
			err, ERROR_INVALID, "answer is not JSON: it begins with byte 0x%02x", (unsigned char)c);
	if (s->mode == JSON_SCAN_LIST)
		s->state = STATE_REST;
	else
		item_begin(s, STATE_ITEM);
	return 0;
}

static int step(struct json_scan *s, struct bytes *in, enum json_scan_event *ret, struct error *err)
{
	switch (s->state) {
	case STATE_OUTSIDE:
		return outside(s, in, err);
	case STATE_REST: {
		int r = in_rest(s, in, err);

		if (r == 0 && s->state == STATE_ENDED)
			*ret = JSON_SCAN_END;
		return r;
	}
	case STATE_ITEMS:
		return between_items(s, in, err);
	case STATE_ITEM:
		*ret = in_item(s, in);
		return s->depth > DEPTH_MAX ? error_set(err, ERROR_INVALID, "object nested too deeply") : 0;
	case STATE_SCALAR:
		*ret = in_scalar(s, in);
		return 0;
	default:
		if (!is_space(*in->ptr))
			return error_set(err, ERROR_INVALID, "bytes behind the end of a list");
		in->ptr++;
		in->len--;
		return 0;
	}
}

int json_scan_read(struct json_scan *s, struct bytes *in, enum json_scan_event *ret, struct error *err)
{
	*ret = JSON_SCAN_MORE;
	if (s->given) {
		s->given = false;
		if (s->item.cap > KEEP_BYTES)
			str_done(&s->item);
		str_reset(&s->item);
	}
	while (in->len && *ret == JSON_SCAN_MORE) {
		int r = step(s, in, ret, err);

		if (r < 0)
			return r;
	}
	return 0;
}

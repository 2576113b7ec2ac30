/* log_line.c - purpose: lines of a CRI log file to what `kubectl logs` shows. */
#include "kubelet-lite/local/log_line.h"

#include "common/base/codec.h"

enum { TAIL_BLOCK = 16 * 1024 };

/* Takes the word up to the next space; false if there is none. */
static bool take_word(struct bytes *line, struct bytes *ret)
{
	const char *space = memchr(line->ptr, ' ', line->len);

	if (!space)
		return false;
	*ret = (struct bytes){ line->ptr, (size_t)(space - line->ptr) };
	line->len -= ret->len + 1;
	line->ptr = space + 1;
	return true;
}

static bool bytes_eq(struct bytes b, const char *s)
{
	return b.len == strlen(s) && memcmp(b.ptr, s, b.len) == 0;
}

/* False: the limit cut it. */
static bool put(struct log_filter *f, struct str *out, const char *p, size_t len)
{
	size_t n = f->left >= 0 && (int64_t)len > f->left ? (size_t)f->left : len;

	str_add_bytes(out, p, n);
	if (f->left >= 0)
		f->left -= (int64_t)n;
	return n == len;
}

static bool before(struct bytes time, int64_t since_ns)
{
	char text[TIME_TEXT_MAX];
	int64_t ns;

	if (!since_ns || time.len >= sizeof(text))
		return false;
	memcpy(text, time.ptr, time.len);
	text[time.len] = '\0';
	return time_parse(text, &ns) == 0 && ns < since_ns;
}

bool log_filter_line(struct log_filter *f, struct bytes line, struct str *out)
{
	struct bytes time = { 0 }, stream, tags, rest = line;
	bool cri = take_word(&rest, &time) && take_word(&rest, &stream) && take_word(&rest, &tags) &&
		(bytes_eq(stream, "stdout") || bytes_eq(stream, "stderr"));
	bool partial = cri && tags.len > 0 && tags.ptr[0] == 'P';
	bool ok = true;

	if (!cri)
		rest = line;
	if (cri && (before(time, f->since_ns) || (f->only && !bytes_eq(stream, f->only))))
		return false;
	if (cri && f->timestamps && !f->inside)
		ok = put(f, out, time.ptr, time.len) && put(f, out, " ", 1);
	ok = ok && put(f, out, rest.ptr, rest.len);
	if (!partial)
		ok = ok && put(f, out, "\n", 1);
	f->inside = partial;
	return !ok || f->left == 0;
}

int64_t log_tail_offset(int fd, int64_t size, int64_t n, int64_t *ret_missing)
{
	char buf[TAIL_BLOCK];
	int64_t at = size;
	bool last = true; /* the newline that ends the file begins no line */

	*ret_missing = 0;
	if (n == 0)
		return size;
	while (at > 0) {
		int64_t from = MAX(at - TAIL_BLOCK, 0);
		ssize_t got = pread(fd, buf, (size_t)(at - from), from);

		if (got <= 0)
			return size;
		for (ssize_t i = got; i-- > 0;) {
			if (buf[i] != '\n' && !last)
				continue;
			bool newline = buf[i] == '\n';

			if (newline && !last && n-- <= 1)
				return from + i + 1;
			last = false;
		}
		at = from;
	}
	*ret_missing = size > 0 ? n - 1 : n;
	return 0;
}

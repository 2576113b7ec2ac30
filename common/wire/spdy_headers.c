/*
 * spdy_headers.c - purpose: compress and decompress SPDY/3 header blocks.
 *
 * Both directions have one zlib stream for the life of the connection, primed with the dictionary of the SPDY/3 draft
 * (2.6.10.1) and flushed after each block. Streams are made when first used: a WebSocket session has none. Ours is
 * small (a window of 2 kB holds the dictionary); what the peer may use is for it to say.
 */
#include "common/wire/spdy_headers.h"

#include <errno.h>
#include <zlib.h>

enum { DICTIONARY_BYTES = 1423, WINDOW_BITS = 11, MEMORY_LEVEL = 1, CHUNK = 4096 };

struct spdy_zlib {
	z_stream in, out;
	bool in_open, out_open;
};

/* The dictionary: names (and a few values) with their lengths, then words. */
static const char *const dictionary_names[] = { "options", "head", "post", "put", "delete", "trace", "accept",
	"accept-charset", "accept-encoding", "accept-language", "accept-ranges", "age", "allow", "authorization",
	"cache-control", "connection", "content-base", "content-encoding", "content-language", "content-length",
	"content-location", "content-md5", "content-range", "content-type", "date", "etag", "expect", "expires", "from",
	"host", "if-match", "if-modified-since", "if-none-match", "if-range", "if-unmodified-since", "last-modified",
	"location", "max-forwards", "pragma", "proxy-authenticate", "proxy-authorization", "range", "referer",
	"retry-after", "server", "te", "trailer", "transfer-encoding", "upgrade", "user-agent", "vary", "via",
	"warning", "www-authenticate", "method", "get", "status", "200 OK", "version", "HTTP/1.1", "url", "public",
	"set-cookie", "keep-alive", "origin" };
static const char dictionary_words[] =
	"100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
	"203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 "
	"Forbidden"
	"404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
	"Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
	"chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/"
	"javascript,"
	"publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";

static void add32(struct str *out, size_t v)
{
	const unsigned char b[] = { (unsigned char)(v >> 24), (unsigned char)(v >> 16), (unsigned char)(v >> 8),
		(unsigned char)v };

	str_add_bytes(out, b, sizeof(b));
}

static void make_dictionary(struct str *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(dictionary_names); i++) {
		add32(ret, strlen(dictionary_names[i]));
		str_add(ret, dictionary_names[i]);
	}
	str_add(ret, dictionary_words);
	assert(ret->len == DICTIONARY_BYTES);
}

struct spdy_zlib *spdy_zlib_new(void)
{
	return xnew(struct spdy_zlib);
}

void spdy_zlib_free(struct spdy_zlib *z)
{
	if (!z)
		return;
	if (z->in_open)
		inflateEnd(&z->in);
	if (z->out_open)
		deflateEnd(&z->out);
	free(z);
}

static void open_out(struct spdy_zlib *z)
{
	_cleanup_(str_done) struct str dictionary = STR_INIT;

	if (z->out_open)
		return;
	make_dictionary(&dictionary);
	/* Only memory can be what is missing, and that ends a daemon as everywhere. */
	if (deflateInit2(&z->out, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WINDOW_BITS, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) !=
			Z_OK ||
		deflateSetDictionary(&z->out, (const Bytef *)dictionary.buf, (uInt)dictionary.len) != Z_OK)
		abort();
	z->out_open = true;
}

void spdy_zlib_write(struct spdy_zlib *z, const struct spdy_field *fields, size_t n, struct str *out)
{
	_cleanup_(str_done) struct str plain = STR_INIT;
	unsigned char buf[CHUNK];

	open_out(z);
	add32(&plain, n);
	for (size_t i = 0; i < n; i++) {
		add32(&plain, strlen(fields[i].name));
		str_add(&plain, fields[i].name);
		add32(&plain, strlen(fields[i].value));
		str_add(&plain, fields[i].value);
	}
	z->out.next_in = (Bytef *)plain.buf;
	z->out.avail_in = (uInt)plain.len;
	do {
		z->out.next_out = buf;
		z->out.avail_out = sizeof(buf);
		deflate(&z->out, Z_SYNC_FLUSH);
		str_add_bytes(out, buf, sizeof(buf) - z->out.avail_out);
	} while (z->out.avail_out == 0);
}

static int use_dictionary(struct spdy_zlib *z)
{
	_cleanup_(str_done) struct str dictionary = STR_INIT;

	make_dictionary(&dictionary);
	return inflateSetDictionary(&z->in, (const Bytef *)dictionary.buf, (uInt)dictionary.len);
}

static int decompress(struct spdy_zlib *z, const void *p, size_t len, struct str *text, struct error *err)
{
	unsigned char buf[CHUNK];
	int r = Z_OK;

	if (!z->in_open && inflateInit(&z->in) != Z_OK)
		abort();
	z->in_open = true;
	z->in.next_in = (Bytef *)p;
	z->in.avail_in = (uInt)len;
	do {
		z->in.next_out = buf;
		z->in.avail_out = sizeof(buf);
		r = inflate(&z->in, Z_SYNC_FLUSH);
		if (r == Z_NEED_DICT)
			r = use_dictionary(z);
		if (r != Z_OK && r != Z_BUF_ERROR)
			return error_set(err, ERROR_INVALID, "header block: cannot be decompressed");
		str_add_bytes(text, buf, sizeof(buf) - z->in.avail_out);
		if (text->len > SPDY_HEADER_BLOCK_MAX)
			return error_set(
				err, ERROR_EXHAUSTED, "header block: has more than %d bytes", SPDY_HEADER_BLOCK_MAX);
	} while (r == Z_OK && (z->in.avail_in > 0 || z->in.avail_out == 0));
	return z->in.avail_in ? error_set(err, ERROR_INVALID, "header block: cannot be decompressed") : 0;
}

/* A text with its length in front, from *at. It gets its NUL where the next length began, which was read before:
 * `next`. */
static bool read_length(const struct str *text, size_t at, size_t *ret)
{
	const unsigned char *b = (const unsigned char *)text->buf + at;

	if (text->len - at < 4)
		return false;
	*ret = (size_t)b[0] << 24 | (size_t)b[1] << 16 | (size_t)b[2] << 8 | b[3];
	return *ret <= text->len - at - 4;
}

static int parse(struct str *text, struct spdy_field *ret, size_t *ret_n, struct error *err)
{
	size_t at = 4, count;

	if (text->len < 4)
		return error_set(err, ERROR_INVALID, "header block: too short");
	count = (size_t)(unsigned char)text->buf[0] << 24 | (size_t)(unsigned char)text->buf[1] << 16 |
		(size_t)(unsigned char)text->buf[2] << 8 | (unsigned char)text->buf[3];
	if (count > SPDY_HEADERS_MAX)
		return error_set(err, ERROR_EXHAUSTED, "header block: has %zu fields; at most %d are taken", count,
			SPDY_HEADERS_MAX);
	for (size_t i = 0; i < count * 2; i++) {
		const char **field = i % 2 ? &ret[i / 2].value : &ret[i / 2].name;
		size_t len;

		if (!read_length(text, at, &len) || (i % 2 == 0 && !len))
			return error_set(err, ERROR_INVALID, "header block: malformed");
		/* The length has been read: its first byte becomes the end of the text before. */
		text->buf[at] = '\0';
		*field = text->buf + at + 4;
		at += 4 + len;
	}
	if (at != text->len)
		return error_set(err, ERROR_INVALID, "header block: bytes are left over");
	*ret_n = count;
	return 0;
}

int spdy_zlib_read(struct spdy_zlib *z, const void *p, size_t len, struct str *text, struct spdy_field *ret,
	size_t *ret_n, struct error *err)
{
	int r = decompress(z, p, len, text, err);

	*ret_n = 0;
	return r < 0 ? r : parse(text, ret, ret_n, err);
}

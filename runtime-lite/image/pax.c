/* pax.c - purpose: the records of a pax extended header, within limits (POSIX.1-2017, pax, "Extended Header"). */
#include "runtime-lite/image/pax.h"

#include <errno.h>

#include "common/base/codec.h"
#include "common/wire/url.h"

static int bad(struct error *err, const char *what)
{
	return error_set(err, ERROR_DATA_LOSS, "damaged tar archive: extended header: %s", what);
}

void pax_done(struct pax *pax)
{
	free(pax->path);
	free(pax->linkpath);
	for (size_t i = 0; i < pax->n_xattrs; i++) {
		free(pax->xattrs[i].name);
		free(pax->xattrs[i].value);
	}
	free(pax->xattrs);
	*pax = (struct pax){ 0 };
}

/* Decimal, with an optional sign; the whole text. */
static int integer(struct bytes text, int64_t *ret)
{
	bool negative = text.len && text.ptr[0] == '-';
	uint64_t v = 0;
	size_t i = negative;

	if (i == text.len)
		return -EINVAL;
	for (; i < text.len; i++) {
		if (text.ptr[i] < '0' || text.ptr[i] > '9')
			return -EINVAL;
		if (__builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, (unsigned)(text.ptr[i] - '0'), &v))
			return -ERANGE;
	}
	if (v > INT64_MAX)
		return -ERANGE;
	*ret = negative ? -(int64_t)v : (int64_t)v;
	return 0;
}

/* "1700000000.123456789": further digits are cut. A negative time with a fraction counts down from the whole second. */
static int time_value(struct bytes text, int64_t *ret_s, uint32_t *ret_ns)
{
	const char *dot = memchr(text.ptr, '.', text.len);
	struct bytes whole = { text.ptr, dot ? (size_t)(dot - text.ptr) : text.len };
	uint32_t ns = 0, unit = 100000000;
	int64_t s;
	int r = integer(whole, &s);

	if (r < 0)
		return r;
	for (const char *p = dot ? dot + 1 : text.ptr + text.len; p < text.ptr + text.len; p++, unit /= 10) {
		if (*p < '0' || *p > '9')
			return -EINVAL;
		ns += (uint32_t)(*p - '0') * unit;
	}
	if (ns && text.ptr[0] == '-') {
		s--;
		ns = 1000000000 - ns;
	}
	*ret_s = s;
	*ret_ns = ns;
	return 0;
}

static int set_name(char **field, struct bytes value, const char *key, struct error *err)
{
	if (memchr(value.ptr, '\0', value.len))
		return error_set(err, ERROR_DATA_LOSS, "damaged tar archive: extended header: a NUL in %s", key);
	if (value.len > TAR_NAME_MAX)
		return error_set(err, ERROR_INVALID, "%.100s...: a name of more than %d bytes", value.ptr, TAR_NAME_MAX);
	free(*field);
	*field = value.len ? xstrndup(value.ptr, value.len) : NULL;
	return 0;
}

static int set_number(bool *have, int64_t *field, struct bytes value, const char *key, struct error *err)
{
	*have = false;
	if (value.len == 0)
		return 0;
	if (integer(value, field) < 0)
		return error_set(err, ERROR_DATA_LOSS, "damaged tar archive: extended header: %s is no number", key);
	*have = true;
	return 0;
}

/* Takes both over. The last one of a name counts. */
static int add_xattr(struct pax *pax, char *name, void *value, size_t len, struct error *err)
{
	size_t i = 0;

	while (i < pax->n_xattrs && strcmp(pax->xattrs[i].name, name) != 0)
		i++;
	if (len > TAR_XATTR_MAX || i == TAR_XATTRS_MAX) {
		free(name);
		free(value);
		return bad(err, len > TAR_XATTR_MAX ? "an extended attribute of more than 64 KiB" :
						      "more than 128 extended attributes");
	}
	if (i < pax->n_xattrs) {
		free(pax->xattrs[i].name);
		free(pax->xattrs[i].value);
	} else {
		pax->xattrs = xreallocarray(pax->xattrs, ++pax->n_xattrs, sizeof(*pax->xattrs));
	}
	pax->xattrs[i] = (struct tar_xattr){ .name = name, .value = value, .len = len };
	return 0;
}

static int schily_xattr(struct pax *pax, struct bytes name, struct bytes value, struct error *err)
{
	if (name.len == 0 || name.len > 255)
		return bad(err, "the name of an extended attribute is empty or too long");
	return add_xattr(pax, xstrndup(name.ptr, name.len), xmemdup(value.ptr, value.len), value.len, err);
}

/* libarchive percent-encodes the name and writes the value in base64 without padding. */
static int libarchive_xattr(struct pax *pax, struct bytes name, struct bytes value, struct error *err)
{
	_cleanup_(str_done) struct str padded = STR_INIT;
	_cleanup_free_ char *decoded = NULL;
	void *data = NULL;
	size_t len = 0;

	if (name.len == 0 || name.len > 3 * 255 || url_decode(name.ptr, name.len, false, &decoded) < 0)
		return bad(err, "a LIBARCHIVE.xattr record with a broken name");
	if (value.len > 2 * TAR_XATTR_MAX)
		return bad(err, "an extended attribute of more than 64 KiB");
	str_add_bytes(&padded, value.ptr, value.len);
	while (padded.len % 4)
		str_add_char(&padded, '=');
	if (base64_decode(str_get(&padded), padded.len, &data, &len) < 0)
		return bad(err, "a LIBARCHIVE.xattr record with broken base64");
	return add_xattr(pax, steal(decoded), data, len, err);
}

static bool key_is(struct bytes key, const char *text)
{
	return key.len == strlen(text) && memcmp(key.ptr, text, key.len) == 0;
}

static bool key_after(struct bytes key, const char *prefix, struct bytes *ret)
{
	size_t n = strlen(prefix);

	if (key.len < n || memcmp(key.ptr, prefix, n) != 0)
		return false;
	*ret = (struct bytes){ key.ptr + n, key.len - n };
	return true;
}

static int record(struct pax *pax, struct bytes key, struct bytes value, struct error *err)
{
	struct bytes rest;

	if (key_is(key, "path"))
		return set_name(&pax->path, value, "path", err);
	if (key_is(key, "linkpath"))
		return set_name(&pax->linkpath, value, "linkpath", err);
	if (key_is(key, "size"))
		return set_number(&pax->have_size, &pax->size, value, "size", err);
	if (key_is(key, "uid"))
		return set_number(&pax->have_uid, &pax->uid, value, "uid", err);
	if (key_is(key, "gid"))
		return set_number(&pax->have_gid, &pax->gid, value, "gid", err);
	if (key_is(key, "mtime")) {
		pax->have_mtime = value.len > 0;
		if (pax->have_mtime && time_value(value, &pax->mtime_s, &pax->mtime_ns) < 0)
			return bad(err, "mtime is no time");
		return 0;
	}
	if (key_after(key, "SCHILY.xattr.", &rest))
		return schily_xattr(pax, rest, value, err);
	if (key_after(key, "LIBARCHIVE.xattr.", &rest))
		return libarchive_xattr(pax, rest, value, err);
	if (key_after(key, "GNU.sparse.", &rest))
		pax->sparse = true;
	return 0;
}

int pax_parse(struct pax *pax, const char *text, size_t len, struct error *err)
{
	const char *p = text, *end = text + len;

	pax_done(pax);
	while (p < end) {
		size_t n = 0;
		const char *q = p;

		for (; q < end && *q >= '0' && *q <= '9' && n <= TAR_META_MAX; q++)
			n = n * 10 + (size_t)(*q - '0');
		/* "N key=value\n": N counts all of it. */
		if (q == p || q == end || *q != ' ' || n > (size_t)(end - p) || n < (size_t)(q - p) + 3 || p[n - 1] != '\n')
			return bad(err, "a record of the wrong length");
		q++;
		const char *stop = p + n - 1;
		const char *equals = memchr(q, '=', (size_t)(stop - q));
		if (!equals || equals == q)
			return bad(err, "a record without a key");
		int r = record(pax, (struct bytes){ q, (size_t)(equals - q) },
			(struct bytes){ equals + 1, (size_t)(stop - equals - 1) }, err);
		if (r < 0)
			return r;
		p += n;
	}
	return 0;
}

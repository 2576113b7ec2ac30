/* decompress.c - purpose: gzip, zstd or plain bytes in pieces of any size, found by their first bytes. */
#include "runtime-lite/image/decompress.h"

#include <inttypes.h>
#include <zlib.h>
#include <zstd.h>

enum { MAGIC_LEN = 6, OUT_LEN = 256 * 1024, WINDOW_LOG_MAX = 27 };

enum kind { KIND_UNKNOWN, KIND_PLAIN, KIND_GZIP, KIND_ZSTD };

struct decompress {
	struct decompress_options options;
	enum kind kind;
	uint8_t magic[MAGIC_LEN]; /* the first bytes, until there are enough to tell */
	size_t n_magic;
	uint64_t in, out;
	z_stream z;
	bool z_open;
	bool between;  /* gzip: a member has ended, no other has begun; zstd: so for frames */
	bool zeros;    /* gzip: padding has begun */
	uint8_t first; /* gzip: the first byte of a member's header that came alone */
	bool have_first;
	ZSTD_DStream *zstd;
	uint8_t *buffer;
};

struct decompress *decompress_new(const struct decompress_options *options)
{
	struct decompress *d = xnew(struct decompress);

	d->options = *options;
	if (!d->options.max_bytes)
		d->options.max_bytes = 64ull << 30;
	if (!d->options.max_ratio)
		d->options.max_ratio = 200;
	if (!d->options.free_bytes)
		d->options.free_bytes = 256u << 20;
	return d;
}

struct decompress *decompress_free(struct decompress *d)
{
	if (!d)
		return NULL;
	if (d->z_open)
		inflateEnd(&d->z);
	ZSTD_freeDStream(d->zstd);
	free(d->buffer);
	free(d);
	return NULL;
}

static int give(struct decompress *d, const void *p, size_t n, struct error *err)
{
	d->out += n;
	if (d->out > d->options.max_bytes)
		return error_set(err, ERROR_EXHAUSTED, "it unpacks to more than the %" PRIu64 " bytes allowed", d->options.max_bytes);
	if (d->out > d->options.free_bytes && d->out / d->options.max_ratio > d->in)
		return error_set(err, ERROR_EXHAUSTED, "it unpacks to more than %" PRIu64 " times its size: a compression bomb",
			d->options.max_ratio);
	return n ? d->options.output(d->options.data, p, n, err) : 0;
}

static int start(struct decompress *d, struct error *err)
{
	const uint8_t *m = d->magic;

	if (d->n_magic >= 2 && m[0] == 0x1f && m[1] == 0x8b) {
		d->kind = KIND_GZIP;
		if (inflateInit2(&d->z, 15 + 16) != Z_OK)
			return error_set(err, ERROR_EXHAUSTED, "cannot start gzip");
		d->z_open = true;
	} else if (d->n_magic >= 4 && ((m[0] == 0x28 && m[1] == 0xb5 && m[2] == 0x2f && m[3] == 0xfd) ||
					       ((m[0] & 0xf0) == 0x50 && m[1] == 0x2a && m[2] == 0x4d && m[3] == 0x18))) {
		d->kind = KIND_ZSTD;
		d->zstd = ZSTD_createDStream();
		if (!d->zstd || ZSTD_isError(ZSTD_DCtx_setParameter(d->zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX)))
			return error_set(err, ERROR_EXHAUSTED, "cannot start zstd");
	} else if (d->n_magic == 6 && memcmp(m, "\xfd" "7zXZ", 6) == 0) {
		return error_set(err, ERROR_UNIMPLEMENTED, "it is compressed with xz; only gzip and zstd are supported");
	} else if (d->n_magic >= 3 && memcmp(m, "BZh", 3) == 0) {
		return error_set(err, ERROR_UNIMPLEMENTED, "it is compressed with bzip2; only gzip and zstd are supported");
	} else {
		d->kind = KIND_PLAIN;
		return 0;
	}
	d->buffer = xmalloc(OUT_LEN);
	return 0;
}

/* Bytes between two gzip members: zeros are padding up to the end, else the next member must begin. Returns how many
 * bytes were consumed, with d->between off when a member begins; or an error. */
static ssize_t between_members(struct decompress *d, const uint8_t *p, size_t n, struct error *err)
{
	size_t i = 0;

	while (i < n && p[i] == 0 && !d->have_first) {
		d->zeros = true;
		i++;
	}
	if (i == n)
		return (ssize_t)i;
	if (d->zeros || p[i] != (d->have_first ? 0x8b : 0x1f))
		return error_set(err, ERROR_DATA_LOSS, "garbage behind the gzip stream");
	if (!d->have_first) {
		d->have_first = true;
		return (ssize_t)(i + 1);
	}
	/* Both magic bytes are there: hand them to zlib, the rest follows. */
	uint8_t magic[2] = { 0x1f, 0x8b }, none;

	d->have_first = d->between = false;
	if (inflateReset(&d->z) != Z_OK)
		return error_set(err, ERROR_INTERNAL, "cannot restart gzip");
	d->z.next_in = magic;
	d->z.avail_in = 2;
	d->z.next_out = &none;
	d->z.avail_out = 1;
	if (inflate(&d->z, Z_NO_FLUSH) != Z_OK)
		return error_set(err, ERROR_DATA_LOSS, "damaged gzip stream");
	return (ssize_t)(i + 1);
}

static int feed_gzip(struct decompress *d, const uint8_t *p, size_t n, struct error *err)
{
	while (n > 0) {
		if (d->between) {
			ssize_t done = between_members(d, p, n, err);

			if (done < 0)
				return (int)done;
			p += done, n -= (size_t)done;
			continue;
		}
		d->z.next_in = (uint8_t *)p;
		d->z.avail_in = (unsigned)MIN(n, 1u << 30);
		unsigned before = d->z.avail_in;
		int z;
		do {
			d->z.next_out = d->buffer;
			d->z.avail_out = OUT_LEN;
			z = inflate(&d->z, Z_NO_FLUSH);
			if (z != Z_OK && z != Z_STREAM_END && z != Z_BUF_ERROR)
				return error_set(err, ERROR_DATA_LOSS, "damaged gzip stream: %s", d->z.msg ? d->z.msg : "no text");
			int r = give(d, d->buffer, OUT_LEN - d->z.avail_out, err);
			if (r < 0)
				return r;
		} while (z == Z_OK && (d->z.avail_in > 0 || d->z.avail_out == 0));
		d->between = z == Z_STREAM_END;
		p += before - d->z.avail_in;
		n -= before - d->z.avail_in;
	}
	return 0;
}

static int feed_zstd(struct decompress *d, const uint8_t *p, size_t n, struct error *err)
{
	ZSTD_inBuffer in = { p, n, 0 };
	bool more = true; /* output may wait in the decoder although all input was taken */

	while (in.pos < in.size || more) {
		ZSTD_outBuffer out = { d->buffer, OUT_LEN, 0 };
		size_t left = ZSTD_decompressStream(d->zstd, &out, &in);

		if (ZSTD_isError(left))
			return error_set(err, ERROR_DATA_LOSS, "damaged zstd stream: %s", ZSTD_getErrorName(left));
		d->between = left == 0;
		more = out.pos == out.size;
		int r = give(d, d->buffer, out.pos, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int feed(struct decompress *d, const void *p, size_t n, struct error *err)
{
	switch (d->kind) {
	case KIND_GZIP:
		return feed_gzip(d, p, n, err);
	case KIND_ZSTD:
		return n ? feed_zstd(d, p, n, err) : 0;
	default:
		return give(d, p, n, err);
	}
}

int decompress_feed(struct decompress *d, const void *data, size_t n, struct error *err)
{
	const uint8_t *p = data;

	d->in += n;
	if (d->kind == KIND_UNKNOWN) {
		size_t take = MIN(n, MAGIC_LEN - d->n_magic);

		memcpy(d->magic + d->n_magic, p, take);
		d->n_magic += take;
		p += take, n -= take;
		if (d->n_magic < MAGIC_LEN)
			return 0;
		int r = start(d, err);
		if (r == 0)
			r = feed(d, d->magic, d->n_magic, err);
		if (r < 0)
			return r;
	}
	return feed(d, p, n, err);
}

int decompress_finish(struct decompress *d, struct error *err)
{
	if (d->kind == KIND_UNKNOWN && d->n_magic) {
		int r = start(d, err);

		if (r == 0)
			r = feed(d, d->magic, d->n_magic, err);
		if (r < 0)
			return r;
	}
	bool whole = d->kind == KIND_GZIP ? d->between && !d->have_first : d->kind == KIND_ZSTD ? d->between : true;
	return whole ? 0 : error_set(err, ERROR_DATA_LOSS, "the compressed stream is truncated");
}

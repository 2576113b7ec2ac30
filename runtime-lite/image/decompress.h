/*
 * decompress.h - purpose: gzip, zstd or plain bytes in pieces of any size, found by their first bytes. Sans I/O.
 *
 * Several gzip members or zstd frames in a row are one stream; zeros behind gzip are padding, anything else is an error.
 * bzip2 and xz are refused by name; damage is DATA_LOSS. The ratio of what came out to what went in is bounded: see max_ratio.
 */
#pragma once
#include "common/base/error.h"

struct decompress; /* opaque */

struct decompress_options {
	int (*output)(void *data, const void *p, size_t n, struct error *err); /* a negative return stops */
	void *data;
	uint64_t max_bytes; /* out; 0: 64 GiB */
	uint64_t max_ratio; /* out / in, once more than free_bytes came out; 0: 200 */
	uint64_t free_bytes; /* 0: 256 MiB */
};

struct decompress *decompress_new(const struct decompress_options *options);
struct decompress *decompress_free(struct decompress *d);
DEFINE_CLEANUP(struct decompress *, decompress_free)
int decompress_feed(struct decompress *d, const void *p, size_t n, struct error *err) MUST_USE;
/* DATA_LOSS "truncated" when the stream is not complete. */
int decompress_finish(struct decompress *d, struct error *err) MUST_USE;

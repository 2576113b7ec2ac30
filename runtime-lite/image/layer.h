/*
 * layer.h - purpose: one layer from its transferred bytes to a directory: size, digest, decompression, diff id, tar, unpack.
 *
 * Fed in pieces, in order; nothing may be used before layer_finish() said that everything fits.
 */
#pragma once
#include "runtime-lite/image/survey.h"
#include "runtime-lite/image/unpack.h"

struct layer_want {
	const char *digest;  /* of the bytes as fed; NULL: not checked */
	uint64_t size;       /* of these; UINT64_MAX: not known */
	const char *diff_id; /* digest of the plain tar archive */
};

struct layer_limits {
	uint64_t max_bytes; /* of the tar archive; 0: 64 GiB */
	uint64_t max_ratio; /* 0: 200 */
	uint64_t ratio_free_bytes; /* 0: 256 MiB */
};

struct layer; /* opaque */
struct layer *layer_new(const struct layer_want *want, const struct layer_limits *limits, const struct unpack_options *unpack);
struct layer *layer_free(struct layer *layer);
DEFINE_CLEANUP(struct layer *, layer_free)
/* Bytes fed so far: where to resume after a cut. */
uint64_t layer_fed(const struct layer *layer);
int layer_feed(struct layer *layer, const void *p, size_t n, struct error *err) MUST_USE;
/* DATA_LOSS for a wrong digest, diff id or size; then everything is in place, with its times. */
int layer_finish(struct layer *layer, struct survey *ret, struct error *err) MUST_USE;

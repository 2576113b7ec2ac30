/* layer.c - purpose: one layer from its transferred bytes to a directory: size, digest, decompression, diff id, tar, unpack. */
#include "runtime-lite/image/layer.h"

#include <inttypes.h>

#include "common/base/sha256.h"
#include "runtime-lite/image/decompress.h"
#include "runtime-lite/image/reference.h"

struct layer {
	char *digest, *diff_id; /* digest may be NULL */
	uint64_t size;
	uint64_t fed;
	int root_fd;
	struct sha256 packed, plain;
	struct error damage; /* seen on the way; a wrong digest explains it better */
	struct decompress *decompress;
	struct tar *tar;
	struct unpack *unpack;
};

static int on_plain(void *data, const void *p, size_t n, struct error *err)
{
	struct layer *layer = data;

	sha256_add(&layer->plain, p, n);
	return tar_feed(layer->tar, p, n, err);
}

struct layer *layer_new(const struct layer_want *want, const struct layer_limits *limits, const struct unpack_options *unpack)
{
	struct layer *layer = xnew(struct layer);
	struct unpack_options options = *unpack;

	layer->digest = xstrdup(want->digest);
	layer->diff_id = xstrdup(want->diff_id);
	layer->size = want->size;
	layer->packed = layer->plain = SHA256_INIT;
	layer->root_fd = unpack->root_fd;
	options.limits.max_bytes = limits->max_bytes;
	layer->unpack = unpack_new(&options);
	layer->tar = tar_new(&unpack_tar_handler, layer->unpack);
	layer->decompress = decompress_new(&(struct decompress_options){ .output = on_plain, .data = layer,
		.max_bytes = limits->max_bytes, .max_ratio = limits->max_ratio, .free_bytes = limits->ratio_free_bytes });
	return layer;
}

struct layer *layer_free(struct layer *layer)
{
	if (!layer)
		return NULL;
	decompress_free(layer->decompress);
	tar_free(layer->tar);
	unpack_free(layer->unpack);
	free(layer->digest);
	free(layer->diff_id);
	free(layer);
	return NULL;
}

uint64_t layer_fed(const struct layer *layer)
{
	return layer->fed;
}

int layer_feed(struct layer *layer, const void *p, size_t n, struct error *err)
{
	if (layer->size != UINT64_MAX && n > layer->size - layer->fed)
		return error_set(err, ERROR_DATA_LOSS, "it is longer than the %" PRIu64 " bytes that its manifest says", layer->size);
	layer->fed += n;
	if (!layer->digest)
		return decompress_feed(layer->decompress, p, n, err);
	sha256_add(&layer->packed, p, n);
	if (layer->damage.code != ERROR_OK)
		return 0;
	struct error why = ERROR_INIT;
	int r = decompress_feed(layer->decompress, p, n, &why);
	/* Damaged: what it was meant to be can only be said when all of it has come. */
	if (r < 0 && why.code == ERROR_DATA_LOSS)
		layer->damage = why;
	else if (r < 0 && err)
		*err = why;
	return layer->damage.code != ERROR_OK ? 0 : r;
}

static int check(struct sha256 *h, const char *want, const char *what, struct error *err)
{
	char hex[SHA256_HEX_LEN + 1];

	sha256_end_hex(h, hex);
	if (strcmp(hex, digest_hex(want)) == 0)
		return 0;
	return error_set(err, ERROR_DATA_LOSS, "wrong %s: sha256:%s instead of %s", what, hex, want);
}

int layer_finish(struct layer *layer, struct survey *ret, struct error *err)
{
	int r = 0;

	if (layer->size != UINT64_MAX && layer->fed != layer->size)
		return error_set(err, ERROR_DATA_LOSS, "it is truncated: %" PRIu64 " of %" PRIu64 " bytes", layer->fed, layer->size);
	if (layer->digest)
		r = check(&layer->packed, layer->digest, "digest", err);
	if (r == 0 && layer->damage.code != ERROR_OK)
		r = error_set(err, layer->damage.code, "%s", layer->damage.text);
	if (r == 0)
		r = decompress_finish(layer->decompress, err);
	if (r == 0)
		r = tar_finish(layer->tar, err);
	if (r == 0)
		r = check(&layer->plain, layer->diff_id, "digest of the unpacked layer", err);
	if (r == 0)
		r = unpack_finish(layer->unpack, err);
	return r == 0 ? survey_tree(layer->root_fd, ret, err) : r;
}

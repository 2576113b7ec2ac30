/*
 * manifest.h - purpose: image manifests, indexes, configurations (OCI and Docker schema 2) and platforms. Pure.
 *
 * Everything is data from outside: sizes, counts and lengths are bounded, digests are checked, and a document that could be
 * taken for two kinds is refused (CVE-2021-41190).
 */
#pragma once
#include "runtime-lite/image/store.h"

enum {
	MANIFEST_SIZE_MAX = 4 * 1024 * 1024, /* what registries allow */
	CONFIG_SIZE_MAX = 8 * 1024 * 1024,
	LAYERS_MAX = 500, /* what overlayfs can stack */
	INDEX_ENTRIES_MAX = 1000,
	INDEX_DEPTH_MAX = 4,
};

struct platform {
	char *os, *architecture, *variant; /* normalised; "" if unknown */
};
/* Normalises and copies. */
void platform_set(struct platform *p, const char *os, const char *architecture, const char *variant);
/* "linux/arm64/v8" and friends (x86_64 and aarch64 are taken too). INVALID. */
int platform_parse(const char *text, struct platform *ret, struct error *err) MUST_USE;
/* The node that we run on. */
void platform_host(struct platform *ret);
void platform_done(struct platform *p);
/* "linux/amd64", "linux/arm/v7"; owned by the caller. */
char *platform_text(const struct platform *p) MUST_USE;
/* How well `have` runs on `node`: 0 not at all, more is better. What `have` does not say
 * (old images, hand-made ones) is taken for granted. */
unsigned platform_score(const struct platform *node, const struct platform *have);

struct descriptor {
	char *media_type; /* "" if absent */
	char *digest;     /* valid */
	uint64_t size;
	struct platform platform;
	char *name; /* its annotation with a name or tag: io.containerd.image.name, else org.opencontainers.image.ref.name; or "" */
	bool attestation; /* not an image but a statement about one */
};

enum manifest_kind { MANIFEST_IMAGE, MANIFEST_INDEX };

struct manifest {
	enum manifest_kind kind;
	struct descriptor config;   /* MANIFEST_IMAGE */
	struct descriptor *entries; /* layers, bottom first; or the index's manifests */
	size_t n_entries;
};
/* `media_type` is what the descriptor or the registry said, NULL or "" if nothing. INVALID; UNIMPLEMENTED for schema 1,
 * artifacts and encrypted layers. */
int manifest_parse(const char *text, size_t len, const char *media_type, struct manifest *ret, struct error *err) MUST_USE;
void manifest_done(struct manifest *m);
/* The entry of an index that fits the node best (the first of equals). NOT_FOUND listing what there is. */
int manifest_choose(const struct manifest *index, const struct platform *node, const struct descriptor **ret,
	struct error *err) MUST_USE;

/* An image configuration as far as we use it. */
struct image_spec {
	struct platform platform;
	struct image_config config;
	struct strv diff_ids; /* valid digests, bottom first */
};
int image_spec_parse(const char *text, size_t len, struct image_spec *ret, struct error *err) MUST_USE;
void image_spec_done(struct image_spec *spec);
void image_config_done(struct image_config *config);
/* PRECONDITION "image X is linux/arm64, this node is linux/amd64". */
int image_spec_check_platform(const struct image_spec *spec, const struct platform *node, const char *image,
	struct error *err) MUST_USE;
/* Chain ids in hex: the first is the diff id, each further one sha256("sha256:<before> sha256:<diff id>"). */
void chain_ids(const struct strv *diff_ids, struct strv *ret);

/* manifest.json of a docker-archive. */
struct archive_image {
	char *config; /* names of members of the archive */
	struct strv layers;
	struct strv repo_tags;
};
enum { ARCHIVE_IMAGES_MAX = 1000 };
int archive_manifest_parse(const char *text, size_t len, struct archive_image **ret, size_t *ret_n,
	struct error *err) MUST_USE;
void archive_images_free(struct archive_image *images, size_t n);

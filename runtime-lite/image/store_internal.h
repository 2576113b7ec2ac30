/* store_internal.h - purpose: what the parts of the image store share. Not for others. */
#pragma once
#include <pthread.h>

#include "common/base/map.h"
#include "runtime-lite/image/layout.h"
#include "runtime-lite/image/store.h"

struct image_store {
	struct layout layout;
	char *libexec_dir, *registry_config_dir; /* the latter may be NULL */
	struct strv pinned; /* normalised: "registry/path:tag", "registry/path@digest", or ids */
	struct strv insecure;
	struct image_limits limits; /* no zeros */
	bool shared;
	int daemon_lock_fd; /* -1 when shared */

	pthread_mutex_t mutex; /* around all below, and never while waiting for the network */
	int images_fd; /* the images.json that was read; while it is open its inode cannot be another file's. -1: there was none */
	struct image **images; /* sorted by id */
	size_t n_images;
	struct map refs;   /* container id -> struct strv * of chain ids, top first */
	struct map layers; /* chain id -> struct layer_usage * */
	uint64_t bytes, inodes; /* sums of layers; also read without the mutex (atomics) */
};

struct layer_usage {
	uint64_t bytes, inodes;
};

/* All with the mutex held. */
/* Reads images.json again if it is another file now, and sums up layers. */
int store_refresh(struct image_store *s, struct error *err) MUST_USE;
/* Reads it anyway; with the store.lock held before a change. */
int store_reload(struct image_store *s, struct error *err) MUST_USE;
/* Replaces the list, on disk and in memory. Takes `images` over, also on failure. store.lock must be held. */
int store_replace(struct image_store *s, struct image **images, size_t n, struct error *err) MUST_USE;
/* Borrowed; NULL and *ret_invalid set when the text is neither a reference nor an id. */
struct image *store_lookup(struct image_store *s, const char *reference, struct error *ret_invalid);
void store_count_layers(struct image_store *s);
/* Forgets images that lack a layer (a disk that was damaged, somebody who tidied up): who asks for them pulls them again. */
int store_drop_incomplete(struct image_store *s, struct error *err) MUST_USE;
bool store_is_pinned(const struct image_store *s, const struct image *image);

/* Without the mutex: what the pull program says is complete becomes an image. */
struct store_record {
	const char *config_digest;   /* the image's id */
	const char *manifest_digest; /* "" if there is none */
	uint64_t size_bytes;
	struct strv tags;    /* "registry/path:tag" */
	struct strv digests; /* "registry/path@sha256:..." */
};
int store_record(struct image_store *s, const struct store_record *record, struct error *err) MUST_USE;

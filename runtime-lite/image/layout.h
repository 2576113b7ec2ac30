/*
 * layout.h - purpose: the store's directories and locks (store.h has the rules), for daemon and pull program alike.
 */
#pragma once
#include "common/base/error.h"
#include "common/base/str.h"
#include "runtime-lite/image/survey.h"

struct layout {
	char *root;
	int root_fd, layers_fd, blobs_fd, staging_fd, locks_fd, refs_fd;
};
#define LAYOUT_INIT ((struct layout){ NULL, -1, -1, -1, -1, -1, -1 })

/* Makes what is missing: root 0711, the rest 0700. */
int layout_open(const char *root, struct layout *ret, struct error *err) MUST_USE;
void layout_done(struct layout *l);

/* The lock around changes of images.json; blocks. Close to release. */
int layout_lock_store(const struct layout *l, int *ret_fd, struct error *err) MUST_USE;
/* The lock of the one daemon; PRECONDITION when another has it. */
int layout_lock_daemon(const struct layout *l, int *ret_fd, struct error *err) MUST_USE;

/* A new locked directory in staging/. *ret_name is owned by the caller. */
int layout_staging_make(const struct layout *l, char **ret_name, int *ret_fd, struct error *err) MUST_USE;
/* Removes one; missing is fine. */
int layout_staging_remove(const struct layout *l, const char *name, struct error *err) MUST_USE;
/* Removes everything in staging/ that nobody has locked, and lock files that nobody holds. */
int layout_staging_clean(const struct layout *l, struct error *err) MUST_USE;

/* Blobs: small ones, read and written whole, by a valid digest. Reading checks the digest: DATA_LOSS. NOT_FOUND. */
int layout_blob_read(const struct layout *l, const char *digest, size_t max, char **ret, size_t *ret_len,
	struct error *err) MUST_USE;
/* Durable when it returns. */
int layout_blob_write(const struct layout *l, const char *digest, const void *p, size_t n, struct error *err) MUST_USE;
/* Keeps collection away until *ret_fd is closed; -ENOENT if it is not there. */
int layout_blob_pin(const struct layout *l, const char *digest, int *ret_fd) MUST_USE;

struct layer_meta {
	char diff_id[72]; /* "sha256:<hex>" */
	struct survey survey;
};
/* Layers by chain id (hex). *ret_fd is the directory layers/<chain>, kept from collection until it is closed. -ENOENT. */
int layout_layer_pin(const struct layout *l, const char *chain, int *ret_fd) MUST_USE;
/* Exclusive right to make a layer; blocks. Close to release. */
int layout_layer_lock(const struct layout *l, const char *chain, int *ret_fd, struct error *err) MUST_USE;
void layout_layer_unlock(const struct layout *l, const char *chain, int fd);
int layout_layer_meta(const struct layout *l, const char *chain, struct layer_meta *ret, struct error *err) MUST_USE;
/* Does the tree still look as it was surveyed? DATA_LOSS if not. */
int layout_layer_verify(const struct layout *l, const char *chain, struct error *err) MUST_USE;
/* Writes meta.json into the finished staging directory `name` of staging_fd, syncs, and puts it in place; what stands there
 * already (damaged) is replaced. Makes it durable. *ret_fd keeps it from collection until it is closed. */
int layout_layer_publish(const struct layout *l, int staging_fd, const char *name, const char *chain,
	const struct layer_meta *meta, int *ret_fd, struct error *err) MUST_USE;

/* Takes a layer or blob away unless it is pinned (-EBUSY): it goes to staging/, *ret_name, to be removed at leisure. */
int layout_layer_discard(const struct layout *l, const char *chain, char **ret_name) MUST_USE;
int layout_blob_discard(const struct layout *l, const char *hex) MUST_USE;

/* Names in a directory, without those that begin with a dot; sorted. */
int layout_names(int dir_fd, struct strv *ret, struct error *err) MUST_USE;

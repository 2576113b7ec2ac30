/* pull.h - purpose: what the parts of the pull program share: the request, the store, the way back to who asked. */
#pragma once
#include "runtime-lite/image/channel.h"
#include "runtime-lite/image/layer.h"
#include "runtime-lite/image/layout.h"
#include "runtime-lite/image/manifest.h"

/* Descriptors that the requester gives: see store_pull.c. */
enum { CHANNEL_FD = 0, INPUT_FD = 3, STAGING_FD = 4 };

struct pull {
	json_t *request; /* its strings are borrowed by the fields below */
	const char *op;  /* "pull" or "load" */
	const char *reference; /* pull */
	const char *name;      /* load: for images without a name, or NULL */
	const char *registry_config_dir;
	struct strv insecure_registries;
	uint64_t stall_timeout_ms, max_layer_bytes, max_ratio;
	bool want_progress;
	struct layout layout;
	struct platform node;
	struct channel channel;
};

/* An image that is complete in the store. */
struct found_image {
	const char *config_digest;
	const char *manifest_digest; /* "" if there is none */
	uint64_t size_bytes;
	const struct strv *tags, *digests;
};
/* Reports it and waits until it is recorded. Layers and blobs must be pinned until then. */
int pull_report_image(struct pull *p, const struct found_image *image, struct error *err) MUST_USE;
/* Writes a blob if it is not there, whole; pins it: *ret_fd. */
int pull_store_blob(struct pull *p, const char *digest, const char *text, size_t len, int *ret_fd, struct error *err) MUST_USE;

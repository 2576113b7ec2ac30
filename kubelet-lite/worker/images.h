/*
 * images.h - purpose: have an image there before a container is made, by the pod's pull policy.
 *
 * At most `max` images are pulled at once; requests for the same image share one pull; an image that is present never
 * waits for others that are pulled. Loop thread only.
 */
#pragma once
#include "kubelet-lite/core/credentials.h"
#include "kubelet-lite/cri/client.h"
#include "kubelet-lite/model/pod.h"

struct image_pulls;
struct image_request;

struct image_result {
	const char *reason; /* NULL: it is there. ErrImagePull, ErrImageNeverPull, ImageInspectError, InvalidImageName,
			       ... */
	const char *message;
	bool pulled;
	uint64_t size;
	uint64_t pull_ns, wait_ns;
	const char *ref; /* for CreateContainer */
	bool has_uid;
	int64_t uid;
	const char *user; /* "" */
};

struct image_pulls *image_pulls_new(uv_loop_t *loop, struct cri_client *cri, unsigned max);
void image_pulls_free(struct image_pulls *pulls);

struct image_want {
	const char *image;
	enum pull_policy policy;
	const struct image_credential *credential; /* NULL: anonymous; copied */
	void *data;
	void (*pulling)(void *data); /* a pull is needed and begins (or waits for its turn) */
	void (*done)(void *data, const struct image_result *result);
};
struct image_request *image_ensure(struct image_pulls *pulls, const struct image_want *want);
/* No callback any more; a pull that nobody waits for any more is cancelled. */
void image_cancel(struct image_request *request);

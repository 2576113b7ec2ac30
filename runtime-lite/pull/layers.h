/*
 * layers.h - purpose: the layers of one image into the store: those that are there are verified, the others made, several at
 * once, each by one process only.
 */
#pragma once
#include "runtime-lite/pull/http.h"
#include "runtime-lite/pull/pull.h"

struct layers {
	struct pull *pull;
	size_t n;
	const struct layer_want *wants; /* bottom first */
	const struct strv *chains;      /* of the same length */
	unsigned threads;
	int opaque_fd;
	/* Gives the bytes of layer `index` to layers_feed(). `client` is NULL unless http_clients. */
	int (*bring)(void *data, struct http_client *client, size_t index, struct layer *layer, struct error *err);
	void *data;
	bool http_clients;

	struct layers_state *state; /* private */
};

/* Blocks. On success pins[i] keeps layer i from collection; the caller closes them (also after a failure; -1: none). */
int layers_make(struct layers *l, int *pins, struct error *err) MUST_USE;
/* layer_feed() and progress; for `bring`. */
int layers_feed(struct layers *l, struct layer *layer, const void *p, size_t n, struct error *err) MUST_USE;

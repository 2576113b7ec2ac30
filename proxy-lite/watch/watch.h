/*
 * watch.h - purpose: follow Services and EndpointSlices of an API server into the model.
 *
 * Loop thread only.
 */
#pragma once
#include "common/net/sock.h"
#include "proxy-lite/model/services.h"
#include "proxy-lite/watch/node.h"

#include <uv.h>

struct watch;

struct watch_options {
	struct sock_address address; /* of the API, a Unix socket; unless there is a: */
	const char *kubeconfig;	     /* path, borrowed; NULL: none */
	struct services *services;   /* borrowed, with its node identity */
	/* Something that matters changed, or a list came to its end. */
	void (*changed)(void *data);
	/* Our Node object is known, or changed in what matters. */
	void (*node_changed)(void *data, const struct node_state *node);
	void *data;
};

int watch_start(uv_loop_t *loop, const struct watch_options *options, struct watch **ret, struct error *err) MUST_USE;
/* Reads the kubeconfig again if it, or a file that it names, has changed (certificates and tokens rotate), or while the
 * API is out of reach (its name may have moved); connects anew if that makes a difference. Call it now and then. */
void watch_refresh(struct watch *watch);
void watch_stop(struct watch *watch);
/* Reads all EndpointSlices again, for when the node identity of the services has changed. */
void watch_relist_slices(struct watch *watch);
/* Both lists were read to the end at least once: what is not in the model does not exist. */
bool watch_synced(const struct watch *watch);
/* Tells the object's owner by an Event; see events.h. */
void watch_warn(struct watch *watch, const char *object, const char *text);
/* For people: NULL while connected, else what is wrong. Borrowed. */
const char *watch_trouble(const struct watch *watch);

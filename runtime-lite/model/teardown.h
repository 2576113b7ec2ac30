/*
 * teardown.h - purpose: take pods and containers apart; used by stop and remove, by the undoing of what failed, and by
 * recovery. By the holder of the pod's operation. Everything may be repeated.
 */
#pragma once
#include "runtime-lite/image/store.h"
#include "runtime-lite/model/store.h"
#include "runtime-lite/net/bridge.h"

struct teardown {
	struct store *store;
	struct image_store *images;
	struct bridge_network *network; /* NULL: not touched */
};

/* Kills what runs, gives the network back. The sandbox is NOTREADY afterwards, also in its file. On failure what is
 * left is left for the next call. */
int teardown_stop_pod(const struct teardown *t, struct sandbox *s, struct error *err) MUST_USE;
/* Kills the container if it runs and removes all of it, its name last. */
int teardown_container(const struct teardown *t, struct container *c, struct error *err) MUST_USE;
/* Stops the pod, removes its containers and itself. */
int teardown_pod(const struct teardown *t, struct sandbox *s, struct error *err) MUST_USE;

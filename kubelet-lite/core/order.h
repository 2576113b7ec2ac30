/*
 * order.h - purpose: which containers may start and stop when, and how far the pod is. Pure.
 */
#pragma once
#include "kubelet-lite/core/seen.h"

enum pod_progress {
	PROGRESS_INIT,	    /* an init container is still to do */
	PROGRESS_RUNNING,   /* the regular containers' turn */
	PROGRESS_SUCCEEDED, /* all ended for good with 0 */
	PROGRESS_FAILED,    /* all ended for good, one not with 0; or an init container failed for good */
};

enum pod_progress order_progress(const struct pod *pod, const struct pod_seen *seen);
/* Is container i, now absent or ended, to be started (again)? Says nothing about when. */
bool order_wants_start(const struct pod *pod, const struct pod_seen *seen, size_t i);
/* May what comes after init container i start? */
bool order_init_passed(const struct pod *pod, const struct pod_seen *seen, size_t i);
/* Have all init containers passed, or has a regular container already been started after them? */
bool order_initialized(const struct pod *pod, const struct pod_seen *seen);
/* When a pod stops: sidecars wait for the regular containers and for the sidecars behind them. */
bool order_stop_turn(const struct pod *pod, const struct pod_seen *seen, size_t i);

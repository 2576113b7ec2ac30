/*
 * observe.h - purpose: ask the runtime what it has of one pod, and fold the answers into what is seen.
 *
 * An observation that other finished steps have overtaken is thrown away and made again. Loop thread only.
 */
#pragma once
#include "kubelet-lite/worker/node_i.h"

/* Starts one, or notes that another is needed after the one under way. */
void observe_pod(struct pod_worker *worker);
void observe_cancel(struct pod_worker *worker);

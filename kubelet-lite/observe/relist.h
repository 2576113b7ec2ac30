/*
 * relist.h - purpose: notice what happens in the runtime: its events, and a slow comparison of its lists as safety net.
 *
 * A runtime without GetContainerEvents is listed every second instead. The first list also finds pods that nobody wants
 * any more (their manifest went while we were down). Loop thread only.
 */
#pragma once
#include "kubelet-lite/worker/node_i.h"

struct relist *relist_start(struct node *node, uint64_t period_ms);
/* Lists now, not at the next turn. */
void relist_now(struct relist *relist);
/* Handles are closed in the background. */
void relist_stop(struct relist *relist);

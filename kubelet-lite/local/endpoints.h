/*
 * endpoints.h - purpose: EndpointSlices of Services with selectors follow the pods that they select.
 */
#pragma once
#include "kubelet-lite/store/objects.h"

struct endpoints;

/* Works by subscribing to Services and pods. */
struct endpoints *endpoints_start(uv_loop_t *loop, struct objects *objects) MUST_USE;
/* Slices stay. */
void endpoints_stop(struct endpoints *endpoints);

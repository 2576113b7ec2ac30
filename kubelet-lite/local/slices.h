/*
 * slices.h - purpose: the EndpointSlices of one Service, out of the Service and pods. Pure.
 */
#pragma once
#include "common/base/base.h"

#include <jansson.h>

enum { SLICE_ENDPOINTS_MAX = 1000 };

/* What matters of a pod. */
struct slice_pod;

struct slice_pod *slice_pod_new(const json_t *tree, const char *labels) MUST_USE;
void slice_pod_free(struct slice_pod *pod);
bool slice_pod_equal(const struct slice_pod *a, const struct slice_pod *b);

/* A new array of EndpointSlice trees; empty when the Service has no selector. One slice for each set of port numbers
 * that the pods resolve its ports to. `pods` are those of its namespace, in the order of their names. */
json_t *slices_of_service(const json_t *service, const struct slice_pod *const *pods, size_t n) MUST_USE;

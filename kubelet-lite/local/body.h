/*
 * body.h - purpose: the body of a request as a tree: JSON, YAML, or the API's protobuf form.
 */
#pragma once
#include "kubelet-lite/local/api_i.h"

/* New reference in *ret. Negative: the call is answered (400, 415). */
int body_read(const struct api_call *call, json_t **ret) MUST_USE;

/*
 * protobuf.h - purpose: the protobuf form of those objects that kubectl sends in it, as trees. Pure.
 *
 * kubectl create configmap|secret|namespace|service and typed clients send it and do not fall back to JSON. Messages are
 * described by a table of field numbers; what the table does not have is an error, never silently dropped.
 */
#pragma once
#include "common/base/error.h"

#include <jansson.h>

/* "k8s\0" and a runtime.Unknown with the object in it. */
int protobuf_read(const void *p, size_t len, json_t **ret, struct error *err) MUST_USE;

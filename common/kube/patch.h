/*
 * patch.h - purpose: apply the three kinds of patch of the Kubernetes API to an object. Pure.
 *
 * Each changes `target` in place; after an error it is in an undefined state: patch a copy.
 */
#pragma once
#include "common/base/error.h"
#include "common/kube/schema.h"

#include <jansson.h>

enum { PATCH_OPERATIONS_MAX = 10000 };

/* RFC 7386 (application/merge-patch+json). */
int patch_merge(json_t *target, const json_t *patch, struct error *err) MUST_USE;
/* RFC 6902 (application/json-patch+json): an array of operations. */
int patch_json(json_t **target, const json_t *patch, struct error *err) MUST_USE;
/* application/strategic-merge-patch+json: lists merge by the schema's keys, $patch, $retainKeys, $setElementOrder and
 * $deleteFromPrimitiveList directives. Also used for apply-patch (without conflicts). */
int patch_strategic(const struct schema *schema, json_t *target, const json_t *patch, struct error *err) MUST_USE;

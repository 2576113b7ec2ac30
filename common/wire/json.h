/*
 * json.h - purpose: read JSON and YAML from outside into jansson trees, within limits; small accessors for trees.
 *
 * Errors say line and column. Limits: JSON_TEXT_MAX bytes, JSON_DEPTH_MAX levels, and for YAML at most YAML_NODES_MAX
 * nodes after aliases are expanded (a "billion laughs" document is refused, not expanded). Duplicate keys are refused
 * where `strict`. YAML scalars become what Kubernetes' parser (sigs.k8s.io/yaml, YAML 1.1 core as go-yaml v2) makes of
 * them: true/false/null/int/float when plain, yes/no/on/off as booleans, 0o and 0 octal, strings when quoted. No I/O.
 */
#pragma once
#include "common/base/error.h"

#include <jansson.h>

enum { JSON_TEXT_MAX = 16 * 1024 * 1024, JSON_DEPTH_MAX = 200, YAML_NODES_MAX = 1000000, YAML_DOCUMENTS_MAX = 1000 };

static inline void json_decref_p(json_t **j)
{
	json_decref(*j);
}
#define _cleanup_json_ _cleanup_(json_decref_p)

/* One JSON document. *ret is a new reference. */
int json_read(const char *text, size_t len, bool strict, json_t **ret, struct error *err) MUST_USE;
/* Every document of a YAML (or JSON) stream: *ret is a new array; empty documents are left out. */
int yaml_read(const char *text, size_t len, json_t **ret, struct error *err) MUST_USE;

/* Accessors by dotted path ("spec.hostNetwork"); keys with dots: use json_object_get(). Absent or of another type gives
 * the fallback. Borrowed. */
const json_t *json_at(const json_t *root, const char *path);
const char *json_str_at(const json_t *root, const char *path, const char *fallback);
int64_t json_int_at(const json_t *root, const char *path, int64_t fallback);
bool json_bool_at(const json_t *root, const char *path, bool fallback);
/* Compact text in key order as stored; owned by the caller. */
char *json_text(const json_t *root) MUST_USE;
/* Compact text with sorted keys: equal for equal content. Owned by the caller. */
char *json_canonical(const json_t *root) MUST_USE;
/* As YAML block text, owned by the caller. */
char *yaml_text(const json_t *root) MUST_USE;

/*
 * json.h - purpose: read JSON and YAML from outside into jansson trees, within limits; small accessors for trees.
 *
 * Errors say line and column. Limits: JSON_TEXT_MAX bytes, JSON_DEPTH_MAX levels, and for YAML at most YAML_NODES_MAX
 * nodes after aliases are expanded (a "billion laughs" document is refused, not expanded). Duplicate keys are refused
 * where `strict`. YAML scalars become what Kubernetes' parser (sigs.k8s.io/yaml, YAML 1.1 core as go-yaml v2) makes of
 * them: true/false/null/int/float when plain, yes/no/on/off as booleans, 0o and 0 octal, strings when quoted. No I/O.
 *
 * Of the two parsers of Go, what is odd but harmless is kept: bytes that are not UTF-8 and lone surrogates become
 * U+FFFD, integers beyond 64 bits become reals. A NUL character in a string is refused, as C code would see only half
 * of it.
 */
#pragma once
#include "common/base/error.h"
#include "common/base/str.h"

#include <jansson.h>

enum { JSON_TEXT_MAX = 16 * 1024 * 1024, JSON_DEPTH_MAX = 200, YAML_NODES_MAX = 1000000, YAML_DOCUMENTS_MAX = 1000 };

static inline void json_decref_p(json_t **j)
{
	json_decref(*j);
}
#define _cleanup_json_ _cleanup_(json_decref_p)

/* One JSON document. *ret is a new reference. */
int json_read(const char *text, size_t len, bool strict, json_t **ret, struct error *err) MUST_USE;
/* One document of several: reads from *at, which moves behind it and the white space that follows. */
int json_read_next(const char *text, size_t len, size_t *at, bool strict, json_t **ret, struct error *err) MUST_USE;
/* Every document of a YAML (or JSON) stream: *ret is a new array; empty documents are left out. Duplicate keys are
 * always refused. Merge keys ("<<") are resolved: a key of the map itself wins, then the first of several merged maps.
 */
int yaml_read(const char *text, size_t len, json_t **ret, struct error *err) MUST_USE;

/* Accessors by dotted path ("spec.hostNetwork", "spec.containers.0.name"); keys with dots: use json_object_get().
 * Absent or of another type gives the fallback. Borrowed. */
const json_t *json_at(const json_t *root, const char *path);
const char *json_str_at(const json_t *root, const char *path, const char *fallback);
int64_t json_int_at(const json_t *root, const char *path, int64_t fallback);
bool json_bool_at(const json_t *root, const char *path, bool fallback);
/* Compact text in key order as stored; owned by the caller. */
char *json_text(const json_t *root) MUST_USE;
/* Compact text with sorted keys: equal for equal content. Owned by the caller. */
char *json_canonical(const json_t *root) MUST_USE;
/* Appends compact text in key order as stored; and a real as Go's encoding/json writes it (shortest that reads back).
 */
void json_add(struct str *out, const json_t *root);
void json_add_real(struct str *out, double value);
/* As YAML block text with sorted keys, as kubectl -o yaml prints it. Owned by the caller. */
char *yaml_text(const json_t *root) MUST_USE;

/*
 * validate.h - purpose: say what is wrong with an object: field, value, what is allowed. Pure.
 *
 * Works on objects with their defaults filled in. Checks are those of the Kubernetes API for the fields that this node
 * acts on.
 */
#pragma once
#include "common/base/str.h"
#include "kubelet-lite/store/objects.h"

/* As in details.causes of a Status. */
struct cause {
	const char *reason; /* "FieldValueRequired", ... static */
	char *field;
	char *message; /* `Invalid value: "x": must be ...` */
};

struct causes {
	struct cause *v;
	size_t n;
};
#define CAUSES_INIT ((struct causes){ 0 })
void causes_done(struct causes *causes);
/* "a: Required value" or "[a: Required value, b: ...]"; owned by the caller. */
char *causes_text(const struct causes *causes) MUST_USE;

/* Names, types and rules. Appends to causes. */
void validate_object(enum object_kind kind, const json_t *tree, struct causes *causes);
/* What a client may change of a pod that is there; both with their defaults. A manifest may change anything. */
void validate_pod_update(const json_t *tree, const json_t *old, struct causes *causes);
/* Paths of fields that the kind does not have. */
void validate_unknown(enum object_kind kind, const json_t *tree, struct strv *ret_paths);

/* Each returns NULL or what is wrong (static). */
const char *validate_dns_label(const char *s);     /* RFC 1123 label */
const char *validate_dns_subdomain(const char *s); /* RFC 1123 subdomain */
const char *validate_label_key(const char *s);
const char *validate_label_value(const char *s);

/* What objects_put() does to the tree before it keeps it: defaults, and all that is wrong (dry run). */
void objects_check(const struct objects *store, enum object_kind kind, json_t *tree, struct causes *causes);

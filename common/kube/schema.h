/*
 * schema.h - purpose: which fields the Kubernetes objects that we serve have, of which type, and how their lists merge.
 *
 * One text table (schema.c), read where it is needed: it tells unknown fields and wrong types in manifests and requests,
 * and merge keys to strategic merge patches. Pure.
 */
#pragma once
#include "common/base/base.h"
#include "common/base/error.h"

#include <jansson.h>

enum schema_kind {
	SCHEMA_ANY,
	SCHEMA_STRING,
	SCHEMA_INT,
	SCHEMA_BOOL,
	SCHEMA_QUANTITY, /* string or number */
	SCHEMA_INT_OR_STRING,
	SCHEMA_TIME,
	SCHEMA_OBJECT,
	SCHEMA_LIST,
	SCHEMA_MAP, /* keys chosen by the user */
};

/* A place in the schema. Points into the static table. */
struct schema {
	enum schema_kind kind;
	struct bytes type; /* OBJECT: its name; LIST and MAP: spelling of the element */
	struct bytes key;  /* LIST: field by which elements merge; "+" a set of scalars; "" replaced as a whole */
};

/* The type of a kind: "Pod". Unknown: SCHEMA_ANY. */
struct schema schema_of(const char *type);
/* False: an object of this type has no such field (*ret is SCHEMA_ANY then). */
bool schema_field(const struct schema *object, const char *field, struct schema *ret);
/* Of a LIST or MAP. */
struct schema schema_element(const struct schema *list);

/* What does not fit, one call for each, with a path like spec.containers[0].ports[1].hostPort. */
struct schema_problems {
	void *data;
	void (*unknown)(void *data, const char *path);
	/* "expected string, got number" */
	void (*wrong_type)(void *data, const char *path, const char *expected, const char *got);
};
/* Walks the tree; null is allowed everywhere. */
void schema_check(const struct schema *schema, const json_t *tree, const struct schema_problems *problems);
/* Takes out the fields that the schema does not have, as the API server does when it decodes. */
void schema_prune(const struct schema *schema, json_t *tree);

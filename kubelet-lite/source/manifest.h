/*
 * manifest.h - purpose: the text of a manifest file to objects, document by document; and objects back into the text.
 *
 * A broken document does not hide the others. Documents are cut at "---" lines before they are parsed, so that a change
 * of one leaves the text of the others, comments included, as it is. Pure.
 */
#pragma once
#include "common/base/str.h"
#include "kubelet-lite/store/objects.h"

struct manifest_object {
	enum object_kind kind;
	char *key; /* "Pod/default/web" */
	json_t *tree;
	unsigned line;     /* where its document starts */
	size_t start, len; /* of the document in the text */
	bool in_list;      /* an item of a List */
	size_t item;
};

struct manifest_problem {
	unsigned line;
	char *text;
	/* What stands there may be a spoiled version of an object that was good before. */
	bool broken;
};

struct manifest {
	struct manifest_object *objects;
	size_t n;
	struct manifest_problem *problems;
	size_t n_problems;
	bool broken; /* any of them */
};
#define MANIFEST_INIT ((struct manifest){ 0 })
void manifest_done(struct manifest *m);

enum { MANIFEST_OBJECTS_MAX = 10000 };

/* Reads all documents. Objects have kind, name and namespace; they are not validated. */
void manifest_read(const char *text, size_t len, bool is_json, struct manifest *ret);
/* The text with the object `key` replaced (tree NULL: taken out). *ret_left: documents that are left. ERROR_NOT_FOUND when
 * there is none in it. */
int manifest_replace(const char *text, size_t len, bool is_json, const char *key, const json_t *tree, char **ret,
	size_t *ret_left, struct error *err) MUST_USE;
/* What of an object belongs into a file: not status, not what the server fills in. New reference. */
json_t *manifest_strip(enum object_kind kind, const json_t *tree, const char *node_name) MUST_USE;
/* Text of a new file. */
char *manifest_text(const json_t *tree, bool is_json) MUST_USE;

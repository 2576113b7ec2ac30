/*
 * labels.h - purpose: label and field selectors as the Kubernetes API spells them, and label names. Pure.
 *
 * Labels:  "app=web,tier!=db,env in (a,b),x notin (c),key,!other,n>1" (a comma is AND; = and == are the same).
 * Fields:  "metadata.name=x,spec.nodeName!=y" (a backslash escapes a comma, an equals sign and itself).
 * An empty selector matches everything.
 */
#pragma once
#include "common/base/error.h"
#include "common/base/str.h"

#include <jansson.h>

enum selector_op { SELECTOR_IN, SELECTOR_NOT_IN, SELECTOR_EXISTS, SELECTOR_ABSENT, SELECTOR_GREATER, SELECTOR_LESS };

struct selector_term {
	char *key;
	enum selector_op op;
	struct strv values; /* "a=b" is IN with one value */
};

struct selector {
	struct selector_term *terms;
	size_t n;
};
#define SELECTOR_INIT ((struct selector){ 0 })
enum { SELECTOR_TERMS_MAX = 1000 };

void selector_done(struct selector *s);
int label_selector_parse(const char *text, struct selector *ret, struct error *err) MUST_USE;
int field_selector_parse(const char *text, struct selector *ret, struct error *err) MUST_USE;
/* metav1.LabelSelector: {matchLabels, matchExpressions}. NULL or {} gives a selector that matches everything. */
int label_selector_from_json(const json_t *selector, struct selector *ret, struct error *err) MUST_USE;

/* Value of a label or field, NULL if absent. */
typedef const char *(*selector_get)(void *data, const char *key);
bool selector_match(const struct selector *s, selector_get get, void *data);
/* Against an object of strings (metadata.labels; NULL: none). */
bool selector_match_labels(const struct selector *s, const json_t *labels);
/* Against an object by dotted paths; what is absent is "", as the API server has it. */
bool selector_match_fields(const struct selector *s, const json_t *object);

/* Appends, for each rule that is broken, what the API server says about it. True if the text is valid. */
bool label_key_check(const char *key, struct strv *why);
bool label_value_check(const char *value, struct strv *why);
bool dns_subdomain_check(const char *name, struct strv *why);

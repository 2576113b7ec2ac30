/*
 * select.h - purpose: label and field selectors of list and watch requests on objects of the store. Pure.
 */
#pragma once
#include "common/base/labels.h"
#include "kubelet-lite/store/objects.h"

/* "metadata.name=x,status.phase!=Running"; fields that the kind cannot be selected by are refused. */
int select_parse_fields(enum object_kind kind, const char *text, struct selector *ret, struct error *err) MUST_USE;
bool select_labels(const struct selector *selector, const struct object *object);
/* Builds a tree of the object only where it must. */
bool select_fields(const struct selector *selector, const struct object *object);
/* May a change of an object change the answer? (Names do not change.) */
bool select_is_mutable(const struct selector *fields);
/* metadata.name=name */
void select_add_name(struct selector *fields, const char *name);

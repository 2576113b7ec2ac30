/* object_fields.h - purpose: readers for single JSON fields, shared by the two object parsers. Private to model/. */
#pragma once
#include "proxy-lite/model/object.h"

/* Adds to the list of what was left out, "; " between; the list is kept short. */
void field_left_out(struct str *left_out, const char *fmt, ...) PRINTF(2, 3);
/* Absent and null give NULL; another type is the error. */
int field_array(const json_t *parent, const char *name, const json_t **ret, struct error *err) MUST_USE;
/* NULL when absent or of another type. Borrowed. */
const char *field_string(const json_t *parent, const char *name);
/* 1 to 65535. */
bool field_port(const json_t *parent, const char *name, uint16_t *ret) MUST_USE;
/* Absent means TCP. */
bool field_protocol(const json_t *parent, uint8_t *ret) MUST_USE;
/* "" means NULL. Owned by the caller. */
char *field_port_name(const json_t *parent) MUST_USE;
/* By the labels for headless Services and for other proxies. */
bool object_is_ours(const json_t *object, const struct node_identity *node);

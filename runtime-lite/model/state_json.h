/*
 * state_json.h - purpose: the few things that every state file needs from JSON.
 */
#pragma once
#include "common/base/error.h"
#include "common/base/str.h"
#include "common/wire/json.h"

/* NULL is left out. */
void state_put(json_t *json, const char *key, const char *value);
void state_put_time(json_t *json, const char *key, uint64_t ns);
void state_put_list(json_t *json, const char *key, const struct strv *list);
uint64_t state_get_time(const json_t *json, const char *key);
void state_get_list(const json_t *json, const char *key, struct strv *ret);
/* DATA_LOSS unless "version" is 1 to `version`; a newer file says so. */
int state_check_version(const json_t *json, int version, struct error *err) MUST_USE;
/* Writes a state file, mode 0600, atomically; reads one, at most 16 MB. */
int state_write(const char *dir, const char *name, const json_t *json, struct error *err) MUST_USE;
int state_read(const char *dir, const char *name, json_t **ret, struct error *err) MUST_USE;

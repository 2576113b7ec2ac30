/*
 * decode.h - purpose: the parts of pod_decode(), shared by its files: typed access to a JSON tree with paths in errors.
 *
 * A struct decode walks one tree. The first wrong type is kept as the error, the first unsupported field in `pod`; all
 * later values are still read, so callers need no checks in between.
 */
#pragma once
#include "common/base/str.h"
#include "kubelet-lite/model/pod.h"

struct decode {
	struct arena *arena;
	struct pod *pod; /* NULL when a lone part is decoded */
	struct error *err;
	bool failed;
	char path[256]; /* where we are, for messages */
};

/* Steps into a member ("volumes[3]") until decode_leave() gets the mark back. */
size_t decode_enter(struct decode *d, const char *fmt, ...) PRINTF(2, 3);
void decode_leave(struct decode *d, size_t mark);
void decode_fail(struct decode *d, const char *key, const char *want);
void decode_unsupported(struct decode *d, const char *key, const char *why);

const char *decode_str(struct decode *d, const json_t *o, const char *key, const char *fallback);
int64_t decode_int(struct decode *d, const json_t *o, const char *key, int64_t fallback, int64_t min, int64_t max);
bool decode_bool(struct decode *d, const json_t *o, const char *key, bool fallback);
enum tristate decode_tristate(struct decode *d, const json_t *o, const char *key);
/* Borrowed object or array, NULL if absent or null. */
const json_t *decode_object(struct decode *d, const json_t *o, const char *key);
const json_t *decode_array(struct decode *d, const json_t *o, const char *key);
struct str_list decode_strings(struct decode *d, const json_t *o, const char *key);
struct kv_list decode_map(struct decode *d, const json_t *o, const char *key);
/* Index of the value in a NULL-terminated list of names. */
int decode_enum(struct decode *d, const json_t *o, const char *key, const char *const *names, int fallback);
bool decode_quantity(struct decode *d, const json_t *o, const char *key, struct quantity *ret);

void decode_volumes(struct decode *d, const json_t *spec);
void decode_container(struct decode *d, const json_t *o, struct container *c);
struct security decode_security(struct decode *d, const json_t *o);
struct field_ref decode_field_ref(struct decode *d, const json_t *o, bool in_volume);
struct resource_ref decode_resource_ref(struct decode *d, const json_t *o);

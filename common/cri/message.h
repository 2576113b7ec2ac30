/*
 * message.h - purpose: make, copy and free CRI messages; their maps; and JSON for any of them, by reflection.
 *
 * Messages live on the heap and own their parts, as protobuf_c_message_free_unpacked() wants it. CRI(PodSandbox) is
 * Runtime__V1__PodSandbox. Strings are never NULL after CRI_NEW or unpacking ("" is the default), but sub-messages are.
 */
#pragma once
#include "common/base/error.h"
#include "common/base/str.h"

#include <cri.pb-c.h>
#include <jansson.h>

#define CRI(type) Runtime__V1__##type
/* A new message: CRI(PodIP) *ip = CRI_NEW(PodIP, pod_ip). */
#define CRI_NEW(type, prefix)                                                                                          \
	({                                                                                                             \
		CRI(type) *message_ = xmalloc(sizeof(*message_));                                                      \
		runtime__v1__##prefix##__init(message_);                                                               \
		message_;                                                                                              \
	})
#define CRI_MAX_DEPTH 64

/* Frees any message; NULL is fine. */
void message_free(void *message);
static inline void message_free_p(void *p)
{
	message_free(*(void **)p);
}
#define _cleanup_message_ _cleanup_(message_free_p)

/* A deep copy; NULL gives NULL. */
void *message_copy(const void *message) MUST_USE;
/* Unpacks; NULL when the bytes are malformed. */
void *message_unpack(const ProtobufCMessageDescriptor *type, const void *bytes, size_t len) MUST_USE;
/* Packs into one heap block. */
void *message_pack(const void *message, size_t *ret_len) MUST_USE;

/* Replaces a string field. NULL becomes "". */
void message_set(char **field, const char *value);
/* Replaces a string field by one whose ownership goes over. */
void message_set_take(char **field, char *value);
/* Appends to a repeated message field: message_add(&reply->n_items, &reply->items, item). */
#define message_add(count, list, item)                                                                                 \
	do {                                                                                                           \
		*(list) = xreallocarray(*(list), *(count) + 1, sizeof(**(list)));                                      \
		(*(list))[(*(count))++] = (item);                                                                      \
	} while (0)

/* map<string, string> fields: every generated entry type has this layout. */
struct message_entry {
	ProtobufCMessage base;
	char *key;
	char *value;
};
#define message_entry_at(entries, i) ((const struct message_entry *)(const void *)(entries)[i])
/* The value of a key, or NULL. `entries` is the field. */
const char *message_map_get_(size_t n, const void *entries, const char *key);
#define message_map_get(n, entries, key) message_map_get_(n, entries, key)
/* Makes a copy of a map whose entries have type `type` (the copy's). Returns an array of n entries, NULL for 0. */
void *message_map_copy(size_t n, const void *entries, const ProtobufCMessageDescriptor *type) MUST_USE;
/* Adds one entry (key not checked for being new). */
void message_map_add_(size_t *n, void *entries_field, const ProtobufCMessageDescriptor *type, const char *key,
	const char *value);
#define message_map_add(n, field, type, key, value) message_map_add_(n, field, type, key, value)
/* True when every entry of the selector stands in the map with the same value. */
bool message_map_matches(size_t n_selector, const void *selector, size_t n, const void *entries);

/* How JSON is written. MESSAGE_JSON_SHORT: names as in the .proto, defaults left out, 64-bit numbers as numbers (what
 * our state files have and crictl's config files look like). MESSAGE_JSON_PROTO: protojson with unpopulated fields, as
 * `crictl -o json` prints: camelCase, 64-bit numbers as strings. */
enum message_json { MESSAGE_JSON_SHORT, MESSAGE_JSON_PROTO };

/* New reference. Bytes that are UTF-8 text become a string, others {"base64": "..."}. */
json_t *message_to_json(const void *message, enum message_json style) MUST_USE;
/* Reads both styles. An unknown field or a wrong type is an error that names the path. */
int message_from_json(const ProtobufCMessageDescriptor *type, const json_t *json, void *ret_message,
	struct error *err) MUST_USE;
/* "SANDBOX_READY" and the like; "?" for an unknown number. */
const char *message_enum_name(const ProtobufCEnumDescriptor *type, int value);

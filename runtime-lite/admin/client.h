/*
 * client.h - purpose: what the commands share: calls, names, files, tables and JSON.
 */
#pragma once
#include "runtime-lite/admin/admin.h"

#include <stdarg.h>
#include <stdio.h>

enum { CLIENT_TIMEOUT_MS = 120000 };

/* One call; `method` is "RuntimeService/Version". *ret_reply: _cleanup_message_. */
int client_call(const struct admin *admin, const char *method, const void *request,
	const ProtobufCMessageDescriptor *reply, uint64_t timeout_ms, void *ret_reply, struct error *err) MUST_USE;
/* The same for a reply that nobody looks at. */
int client_do(const struct admin *admin, const char *method, const void *request,
	const ProtobufCMessageDescriptor *reply, uint64_t timeout_ms, struct error *err) MUST_USE;

/* The full id of a container or pod named by id, prefix of an id, or name. */
int client_container(const struct admin *admin, const char *name, char **ret_id, struct error *err) MUST_USE;
int client_pod(const struct admin *admin, const char *name, char **ret_id, struct error *err) MUST_USE;

/* Reads a JSON or YAML file ("-": standard input) into a message; errors name the file and the field. */
int client_read_file(const char *path, const ProtobufCMessageDescriptor *type, void *ret_message, struct error *err)
	MUST_USE;

/* Pretty-printed, as crictl's JSON. */
void client_print_json(const json_t *json);
void client_print_message(const void *message);
/* The value of --output, checked against the allowed ones ("table json id"). */
enum client_output { OUTPUT_TABLE, OUTPUT_JSON, OUTPUT_ID };
int client_output(const struct invocation *in, bool with_id, enum client_output *ret, struct error *err) MUST_USE;

/* Rows of a table: cells are copied; printed with columns as wide as needed. */
struct table {
	size_t columns;
	struct strv cells;
};
void table_add(struct table *t, ...); /* t->columns strings */
void table_print(const struct table *t);
void table_done(struct table *t);

/* "about an hour ago": "3m20s ago". */
void client_age(int64_t unix_ns, char ret[64]);
/* "12.3MB". */
void client_size(uint64_t bytes, char ret[32]);
/* The first 13 characters of an id. */
void client_short_id(const char *id, char ret[14]);

/*
 * tool.h - purpose: what the commands share: calls, names, files, tables and JSON.
 */
#pragma once
#include "runtime-lite/admin/admin.h"

#include <stdarg.h>
#include <stdio.h>

enum { TOOL_TIMEOUT_MS = 120000 };

/* One call; `method` is "RuntimeService/Version". *ret_reply: _cleanup_message_. */
int tool_call(const struct admin *admin, const char *method, const void *request,
	const ProtobufCMessageDescriptor *reply, uint64_t timeout_ms, void *ret_reply, struct error *err) MUST_USE;
/* The same for a reply that nobody looks at. */
int tool_do(const struct admin *admin, const char *method, const void *request,
	const ProtobufCMessageDescriptor *reply, uint64_t timeout_ms, struct error *err) MUST_USE;

/* The full id of a container or pod named by id, prefix of an id, or name. A container's name stands for its newest
 * attempt, a pod's name for its oldest running container. */
int tool_container(const struct admin *admin, const char *name, char **ret_id, struct error *err) MUST_USE;
int tool_pod(const struct admin *admin, const char *name, char **ret_id, struct error *err) MUST_USE;

/* The attempt of the same container before this one. */
int tool_previous(const struct admin *admin, const char *id, char **ret_id, struct error *err) MUST_USE;

/* The root directory of the daemon that answers on the socket, NULL if none does. The caller's. */
char *tool_daemon_root(const struct admin *admin);

/* Reads a JSON or YAML file ("-": standard input) into a message; errors name the file and the field. */
int tool_read_file(const char *path, const ProtobufCMessageDescriptor *type, void *ret_message, struct error *err)
	MUST_USE;

/* Pretty-printed, as crictl's JSON. */
void tool_print_json(const json_t *json);
void tool_print_message(const void *message);
/* The value of --output, checked against the allowed ones ("table json id"). */
enum tool_output { OUTPUT_TABLE, OUTPUT_JSON, OUTPUT_ID };
int tool_output(const struct invocation *in, bool with_id, enum tool_output *ret, struct error *err) MUST_USE;

/* Rows of a table: cells are copied; printed with columns as wide as needed. */
struct table {
	size_t columns;
	struct strv cells;
};
void table_add(struct table *t, ...); /* t->columns strings */
void table_print(const struct table *t);
void table_done(struct table *t);

/* "about an hour ago": "3m20s ago". */
void tool_age(int64_t unix_ns, char ret[64]);
/* "12.3MB". */
void tool_size(uint64_t bytes, char ret[32]);
/* The first 13 characters of an id. */
void tool_short_id(const char *id, char ret[14]);

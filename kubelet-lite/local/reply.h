/*
 * reply.h - purpose: answers of the API: objects, and Status objects for what went wrong.
 */
#pragma once
#include "common/net/http_server.h"
#include "kubelet-lite/local/route.h"
#include "kubelet-lite/store/validate.h"

/* One line of JSON and its end, as the API server ends its answers. */
void reply_text(struct http_exchange *exchange, int status, const char *json, size_t len);
/* Takes tree. */
void reply_json(struct http_exchange *exchange, int status, json_t *tree);
/* A Status with status Failure. reason: "NotFound", ... route NULL: no details. */
void reply_failure(struct http_exchange *exchange, int status, const char *reason, const struct route *route,
	const char *fmt, ...) PRINTF(5, 6);
/* 422 with every cause. */
void reply_invalid(struct http_exchange *exchange, const struct route *route, const char *name,
	const struct causes *causes);
/* What the error's code stands for. */
void reply_error(struct http_exchange *exchange, const struct route *route, const struct error *err);
/* The Status of a failure as a tree, for watch events. New reference. */
json_t *reply_status_tree(int status, const char *reason, const char *message) MUST_USE;
/* "pods \"web\" not found" */
void reply_not_found(struct http_exchange *exchange, const struct route *route);

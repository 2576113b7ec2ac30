/*
 * task.h - purpose: what the server and its running sessions (exec, attach, port-forward) know of each other.
 */
#pragma once
#include "common/base/error.h"
#include "runtime-lite/model/store.h"
#include "runtime-lite/stream/protocols.h"
#include "runtime-lite/stream/token.h"

#include <uv.h>

struct http_exchange;

/* At the front of each kind's own struct; in the list of the server from its beginning to its end. */
struct task {
	struct task *prev, *next;
	struct task **list;
	void (*abort)(struct task *task); /* the daemon stops: closes everything at once */
};

void task_begin(struct task *task, struct task **list, void (*abort)(struct task *task));
void task_end(struct task *task);

/* A client that has been let in. */
struct task_client {
	uv_loop_t *loop;
	struct store *store;
	struct task **list;
	struct http_exchange *exchange; /* headers of the answer are added; still to be upgraded */
	bool websocket;			/* else SPDY */
	const struct protocol *protocol;
};

/* Each takes the request. Nothing can fail any more: errors are told over the session. */
void exec_start(const struct task_client *client, struct stream_request *request);
void attach_start(const struct task_client *client, struct stream_request *request);
void portforward_start(const struct task_client *client, struct stream_request *request);

/* For the container or the pod of a request: still there, and running. */
int task_find_container(struct store *store, const char *id, struct container **ret, struct error *err) MUST_USE;
int task_find_sandbox(struct store *store, const char *id, struct sandbox **ret, struct error *err) MUST_USE;
/* Upgrades and begins the session of an exec or attach. */
struct stdio_owner;
struct stdio *task_stdio(const struct task_client *client, const struct stream_request *request,
	const struct stdio_owner *owner, void *data);

/*
 * handler.h - purpose: run what a probe or a hook asks for: a command, an HTTP request, a TCP connection, a pause.
 *
 * Takes copies of all it needs. The callback is called once, never from inside handler_start(), and not after
 * handler_cancel(). Loop thread only.
 */
#pragma once
#include "kubelet-lite/core/probe.h"
#include "kubelet-lite/cri/client.h"

struct handler_run;

struct handler_target {
	uv_loop_t *loop;
	struct cri_client *cri;
	const char *container_id; /* exec */
	const char *address;	  /* http, tcp: where the pod listens */
	int port;		  /* http, tcp; resolved */
	const char *user_agent;	  /* "kube-probe/1.36" */
	uint64_t timeout_ms;	  /* 0: none */
	bool any_status;	  /* hooks: an answer is enough */
};

/* `text` says why, or what the command printed; "" if nothing. */
typedef void (*handler_cb)(void *data, enum probe_outcome outcome, const char *text);
struct handler_run *handler_start(
	const struct handler *handler, const struct handler_target *target, handler_cb done, void *data);
void handler_cancel(struct handler_run *run);

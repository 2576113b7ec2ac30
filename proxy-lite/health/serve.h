/*
 * serve.h - purpose: the daemon's HTTP: health, metrics, and the administrator's socket.
 *
 * Loop thread only.
 */
#pragma once
#include "proxy-lite/proxy.h"

struct serve;

struct serve_options {
	const char *healthz_address, *metrics_address, *admin_socket; /* NULL or "": not served */
	const char *configz;                                          /* JSON text, borrowed */
	struct proxy *proxy;					      /* borrowed */
};

int serve_start(uv_loop_t *loop, const struct serve_options *options, struct serve **ret, struct error *err) MUST_USE;
/* Closes all; handles are closed when the loop runs on. Removes the socket file. */
void serve_stop(struct serve *serve);

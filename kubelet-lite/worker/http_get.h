/*
 * http_get.h - purpose: one GET as probes and hooks make it: a connection of its own, no proxies, no verification of
 * certificates, redirects only to the same host.
 */
#pragma once
#include "common/net/sock.h"
#include "kubelet-lite/model/pod.h"

#include <uv.h>

struct http_get;

/* `status` 0: no answer, `text` says why; else text is "HTTP probe failed with statuscode: 500". Called once, never
 * from inside http_get_start(). */
typedef void (*http_get_cb)(void *data, int status, const char *text);
/* `handler` gives path, headers and scheme; copied. */
struct http_get *http_get_start(uv_loop_t *loop, const struct sock_address *address, const struct handler *handler,
	const char *host, int port, const char *user_agent, http_get_cb done, void *data);
/* No callback any more. */
void http_get_cancel(struct http_get *get);

/*
 * server.h - purpose: the streaming server: HTTP for the clients of Exec, Attach and PortForward.
 *
 * The RPCs hand out a URL with a one-time token; whoever connects to it within a minute is upgraded to SPDY/3.1 or
 *WebSocket and joined to what the RPC was about. Loop thread only.
 *
 *	GET or POST /exec/<token>  /attach/<token>  /portforward/<token>
 *
 * Before the upgrade errors are plain text: 400 (no upgrade that we know), 403 (no version in common), 404 (no such
 *token), 405 (method), 426 (version of WebSocket).
 */
#pragma once
#include "common/net/sock.h"
#include "runtime-lite/model/store.h"
#include "runtime-lite/stream/token.h"

#include <uv.h>

struct stream_server;

/* Listens on `address` ("127.0.0.1:0": a port of the kernel's choice). */
int stream_server_new(uv_loop_t *loop, const char *address, struct store *store, struct stream_server **ret,
	struct error *err) MUST_USE;
/* Ends every session: execs are killed. Run the loop, then stream_server_free(). */
void stream_server_close(struct stream_server *s);
struct stream_server *stream_server_free(struct stream_server *s); /* NULL is fine; returns NULL */
/* Takes the request. *ret_url: "http://127.0.0.1:34567/exec/<token>", the caller's. EXHAUSTED. */
int stream_server_url(
	struct stream_server *s, struct stream_request *request, char **ret_url, struct error *err) MUST_USE;

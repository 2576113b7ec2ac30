/*
 * h2_pipe.h - purpose: carry one HTTP/2 connection (h2.h) over a Unix socket in a libuv loop. For rpc_server and
 * rpc_client.
 *
 * Writes are collected and sent once for each turn of the loop. Loop thread only.
 */
#pragma once
#include "common/base/str.h"
#include "common/wire/h2.h"

#include <uv.h>

struct h2_pipe {
	struct h2_conn *h2;
	uv_pipe_t handle; /* for uv_accept(), uv_pipe_connect() */
	void *owner;
	/* private */
	void (*on_closed)(struct h2_pipe *pipe);
	uv_idle_t idle; /* active while there may be something to send */
	uv_write_t write;
	struct str out;
	bool open;
	bool writing;
	bool closing;
	int handles;
	struct error error;
};

/* Takes h2. `on_closed` is called once when the connection has ended for whatever reason, its handles are closed and
 * every stream has had its on_close event; the pipe is freed afterwards. pipe->error tells why. */
struct h2_pipe *h2_pipe_new(uv_loop_t *loop, struct h2_conn *h2, void *owner, void (*on_closed)(struct h2_pipe *pipe));
/* The handle is accepted or connected: reads and writes begin. */
void h2_pipe_open(struct h2_pipe *pipe);
/* Something was submitted to pipe->h2: send it soon. */
void h2_pipe_kick(struct h2_pipe *pipe);
/* Ends it. `why` may be NULL. */
void h2_pipe_close(struct h2_pipe *pipe, const struct error *why);

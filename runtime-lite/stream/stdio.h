/*
 * stdio.h - purpose: move the bytes of one exec or attach between its client and the process, on the loop.
 *
 * Nothing is lost and nothing grows: a client that reads slowly stops the reading of the process's output, so that the
 * process waits; a process that does not read its stdin stops the reading of the client. When the process has ended all
 * that it has printed goes out before the outcome. (What a child of it may print, which keeps its pipes open, is waited
 * for no longer than POD_EXEC_DRAIN_MS.)
 *
 * When the client goes away the process is left to its fate, as peers do: its stdin ends, its output goes nowhere (it
 * gets SIGPIPE), its terminal hangs up.
 */
#pragma once
#include "common/net/http_server.h"
#include "runtime-lite/engine/pod_stream.h"
#include "runtime-lite/stream/session.h"

struct stdio;

struct stdio_owner {
	/* The client has opened all its streams; once. With a terminal: its size, if the client has said it. */
	void (*start)(void *owner, struct pod_terminal_size size);
	/* All of the client's input has been written, and no more will come; at most once, the client may live on. */
	void (*input_end)(void *owner, bool client_gone);
	/* From the descriptor given to stdio_set_conn(). */
	void (*event)(void *owner, const struct pod_stream_event *ev);
	/* The client has gone before the end; stdio_finish() is still due. */
	void (*gone)(void *owner);
	/* After stdio_finish(): all is closed, s is freed when this returns. */
	void (*closed)(void *owner);
};

/* Upgrades the exchange to `protocol`. Takes session. No callback comes from inside this call. */
struct stdio *stdio_new(uv_loop_t *loop, struct http_exchange *exchange, const char *protocol, struct session *session,
	const struct session_wants *wants, const struct stdio_owner *owner, void *data);
/* All of these take the descriptor (-1: none), and make it non-blocking; when the client has gone they close it. */
void stdio_set_conn(struct stdio *s, int fd);  /* of pod_stream_exec() or pod_stream_attach() */
void stdio_set_input(struct stdio *s, int fd); /* the process's stdin; input is thrown away after (-1) */
void stdio_set_output(struct stdio *s, bool error, int fd);
void stdio_set_terminal(
	struct stdio *s, int fd);	/* follows the client's sizes; another one than that of input and output */
int stdio_conn(const struct stdio *s);	/* borrowed; -1: closed */
bool stdio_gone(const struct stdio *s); /* the client */
/* Output to its end, then the outcome, then good-bye; closes the connection to the monitor at once. Once. */
void stdio_finish(struct stdio *s, const struct session_outcome *outcome);
/* Nobody is told anything: the daemon stops. */
void stdio_abort(struct stdio *s);

/*
 * rpc_server.h - purpose: serve gRPC (HTTP/2 cleartext) on a Unix socket from one libuv loop.
 *
 * Each method is a row of a table. RPC_INLINE handlers run on the loop thread and must not block; RPC_JOB handlers are
 * straight-line C on a worker thread (job.h). Either way the handler returns 0 and a reply, or a negative value and an
 * error whose code becomes the gRPC status. RPC_STREAM methods get a stream to send messages on, on the loop thread.
 *
 * Limits: requests above RPC_MESSAGE_MAX, more than RPC_STREAMS_MAX calls on a connection, RPC_CONNECTIONS_MAX
 * connections and header blocks above 16 kB are refused. When the client's deadline passes (grpc-timeout) the call is
 * answered DEADLINE_EXCEEDED; a handler that is still running goes on to its end and its reply is dropped.
 *
 * Makes the process ignore SIGPIPE (a program that it executes must set that back to the default).
 */
#pragma once
#include "common/base/error.h"

#include <protobuf-c/protobuf-c.h>
#include <uv.h>

enum { RPC_MESSAGE_MAX = 16 * 1024 * 1024, RPC_STREAMS_MAX = 256, RPC_CONNECTIONS_MAX = 384 };

enum rpc_kind { RPC_INLINE, RPC_JOB, RPC_STREAM };

struct rpc_server;
struct rpc_stream;

struct rpc_call {
	void *context;	      /* of the server */
	uint64_t deadline_ns; /* CLOCK_MONOTONIC; 0: none */
	/* True once the client has gone or the deadline has passed; may be polled from a worker thread. */
	bool (*cancelled)(const struct rpc_call *call);
};

/* `request` is borrowed, valid until return. *ret_reply is a heap message of the method's reply type made with
 * xnew()/<type>__init() whose parts are heap memory; the server frees it with protobuf_c_message_free_unpacked(). */
typedef int (*rpc_handler)(struct rpc_call *call, const void *request, ProtobufCMessage **ret_reply, struct error *err);
/* Loop thread. Keeps `stream` until rpc_stream_end() or until its on_closed was called. */
typedef void (*rpc_stream_handler)(struct rpc_call *call, const void *request, struct rpc_stream *stream);

struct rpc_method {
	const char *path; /* "/runtime.v1.RuntimeService/Version" */
	enum rpc_kind kind;
	const ProtobufCMessageDescriptor *request;
	rpc_handler handle;	   /* RPC_INLINE, RPC_JOB */
	rpc_stream_handler stream; /* RPC_STREAM */
};

/* Serves `listen_fd` (ownership goes over). `methods` ends with a row whose path is NULL and lives as long as the
 * server. A path that is not in the table answers UNIMPLEMENTED. Loop thread only, as all of this module. */
struct rpc_server *rpc_server_new(uv_loop_t *loop, int listen_fd, const struct rpc_method *methods, void *context);
/* Graceful: GOAWAY, no new calls; streams end with UNAVAILABLE (and on_closed); `stopped` is called on the loop when
 * the last call has been answered and every handle is closed. The socket file is left to the caller. */
void rpc_server_stop(struct rpc_server *server, void (*stopped)(void *data), void *data);
/* After `stopped` only. */
void rpc_server_free(struct rpc_server *server);

/* Queues one message (copied). -ENOBUFS when the client does not read and more than RPC_MESSAGE_MAX bytes wait: end it.
 * -EPIPE when the client has gone. */
int rpc_stream_send(struct rpc_stream *stream, const ProtobufCMessage *message) MUST_USE;
/* Ends with a status (NULL: OK); the stream may not be used afterwards, on_closed is not called any more. */
void rpc_stream_end(struct rpc_stream *stream, const struct error *status);
/* Called on the loop when the client went away or its deadline passed; the stream may not be used afterwards. An owner
 * that registers nothing keeps the stream valid until its rpc_stream_end(). */
void rpc_stream_on_closed(struct rpc_stream *stream, void (*on_closed)(void *data), void *data);

/*
 * rpc_client.h - purpose: call gRPC methods over a Unix socket from a libuv loop, and blocking for commands.
 *
 * One connection for all calls, made when first needed and again (with back-off from 100 ms to 3 s, jittered) after it
 * broke. Calls made while there is no connection wait for it until their deadline. Loop thread only. Callbacks may call
 * everything here, rpc_client_free() included. Replies above RPC_MESSAGE_MAX end with EXHAUSTED. Ignores SIGPIPE.
 */
#pragma once
#include "common/base/error.h"

#include <protobuf-c/protobuf-c.h>
#include <uv.h>

struct rpc_client;
struct rpc_request;

/* Called exactly once for each call, never from inside rpc_call(). `status->code` is ERROR_OK, a gRPC status from the
 * server (text = grpc-message), DEADLINE, or UNAVAILABLE when the connection failed. `reply` is borrowed, NULL unless
 * OK. */
typedef void (*rpc_reply_cb)(void *data, const struct error *status, const void *reply);
/* For each message of a server stream; then `end` exactly once. */
typedef void (*rpc_message_cb)(void *data, const void *message);
typedef void (*rpc_end_cb)(void *data, const struct error *status);

struct rpc_client *rpc_client_new(uv_loop_t *loop, const char *socket_path);
/* From now on, calls do not wait for a server that cannot be reached: they end with UNAVAILABLE at once. */
void rpc_client_fail_fast(struct rpc_client *client);
/* Pending calls end with CANCELLED, from inside this function. */
void rpc_client_free(struct rpc_client *client);
/* timeout_ms 0: no deadline. The request is packed at once, not kept. */
struct rpc_request *rpc_call(struct rpc_client *client, const char *path, const ProtobufCMessage *request,
	const ProtobufCMessageDescriptor *reply, uint64_t timeout_ms, rpc_reply_cb cb, void *data);
struct rpc_request *rpc_stream(struct rpc_client *client, const char *path, const ProtobufCMessage *request,
	const ProtobufCMessageDescriptor *message, rpc_message_cb on_message, rpc_end_cb end, void *data);
/* Resets the stream; the callback is not called any more. */
void rpc_cancel(struct rpc_request *request);

/* One blocking call on a connection of its own (runs a private loop); nobody listening is UNAVAILABLE at once.
 * *ret_reply: free with protobuf_c_message_free_unpacked(). For administrator's commands and tests. */
int rpc_call_blocking(const char *socket_path, const char *path, const ProtobufCMessage *request,
	const ProtobufCMessageDescriptor *reply, uint64_t timeout_ms, ProtobufCMessage **ret_reply,
	struct error *err) MUST_USE;

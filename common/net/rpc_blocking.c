/* rpc_blocking.c - purpose: one gRPC call without a loop of the caller's, for administrator's commands and tests. */
#include "common/net/rpc_client.h"

#include <errno.h>

struct outcome {
	bool done;
	struct error status;
	ProtobufCMessage *reply;
	const ProtobufCMessageDescriptor *descriptor;
};

static void on_reply(void *data, const struct error *status, const void *reply)
{
	struct outcome *outcome = data;

	outcome->done = true;
	outcome->status = *status;
	if (reply) { /* it is borrowed: copy it by its wire form */
		size_t len = protobuf_c_message_get_packed_size(reply);
		_cleanup_free_ uint8_t *packed = xmalloc(len + 1);

		protobuf_c_message_pack(reply, packed);
		outcome->reply = protobuf_c_message_unpack(outcome->descriptor, NULL, len, packed);
	}
}

int rpc_call_blocking(const char *socket_path, const char *path, const ProtobufCMessage *request,
	const ProtobufCMessageDescriptor *reply, uint64_t timeout_ms, ProtobufCMessage **ret_reply, struct error *err)
{
	struct outcome outcome = { .descriptor = reply };
	struct rpc_client *client;
	uv_loop_t loop;

	if (uv_loop_init(&loop) != 0)
		return error_sys(err, EMFILE, "event loop");
	client = rpc_client_new(&loop, socket_path);
	rpc_client_fail_fast(client);
	rpc_call(client, path, request, reply, timeout_ms, on_reply, &outcome);
	while (!outcome.done)
		uv_run(&loop, UV_RUN_ONCE);
	rpc_client_free(client);
	uv_run(&loop, UV_RUN_DEFAULT);
	uv_loop_close(&loop);
	if (outcome.status.code != ERROR_OK) {
		if (err)
			*err = outcome.status;
		return error_code_errno(outcome.status.code);
	}
	*ret_reply = outcome.reply;
	return 0;
}

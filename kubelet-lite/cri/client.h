/*
 * client.h - purpose: the calls to the CRI runtime that kubelet-lite makes, with their deadlines.
 *
 * One row for each method: its path and reply type. Reconnecting is rpc_client.h's. Loop thread only.
 */
#pragma once
#include "common/cri/message.h"
#include "common/net/rpc_client.h"

enum cri_method {
	CRI_VERSION,
	CRI_STATUS,
	CRI_RUNTIME_CONFIG,
	CRI_RUN_POD_SANDBOX,
	CRI_STOP_POD_SANDBOX,
	CRI_REMOVE_POD_SANDBOX,
	CRI_POD_SANDBOX_STATUS,
	CRI_LIST_POD_SANDBOX,
	CRI_CREATE_CONTAINER,
	CRI_START_CONTAINER,
	CRI_STOP_CONTAINER,
	CRI_REMOVE_CONTAINER,
	CRI_LIST_CONTAINERS,
	CRI_CONTAINER_STATUS,
	CRI_EXEC_SYNC,
	CRI_EXEC,
	CRI_ATTACH,
	CRI_PORT_FORWARD,
	CRI_REOPEN_CONTAINER_LOG,
	CRI_IMAGE_STATUS,
	CRI_PULL_IMAGE,
	CRI_METHOD_COUNT,
};

#define CRI_NO_DEADLINE UINT64_MAX

struct cri_client;

/* endpoint: "unix:///run/x.sock" or a path. */
int cri_client_new(uv_loop_t *loop, const char *endpoint, uint64_t timeout_ms, struct cri_client **ret,
	struct error *err) MUST_USE;
void cri_client_free(struct cri_client *client);
/* `extra_ms` is added to the usual deadline (twice the usual one for RunPodSandbox); CRI_NO_DEADLINE: none. The request
 * may be freed afterwards. The callback gets a reply of the method's type, see rpc_call(). */
struct rpc_request *cri_call(struct cri_client *client, enum cri_method method, const void *request, uint64_t extra_ms,
	rpc_reply_cb cb, void *data);
/* GetContainerEvents: messages are CRI(ContainerEventResponse). */
struct rpc_request *cri_events(struct cri_client *client, rpc_message_cb on_message, rpc_end_cb end, void *data);
/* Did the answer leave open whether the runtime has done it? */
bool cri_unclear(const struct error *status);

/* client.c - purpose: the calls to the CRI runtime that kubelet-lite makes, with their deadlines. */
#include "kubelet-lite/cri/client.h"

#include "common/net/sock.h"

enum { STATUS_TIMEOUT_MS = 10000 }; /* a runtime that needs longer counts as down */

#define RUNTIME "/runtime.v1.RuntimeService/"
#define IMAGE "/runtime.v1.ImageService/"

static const struct {
	const char *path;
	const ProtobufCMessageDescriptor *reply;
} methods[CRI_METHOD_COUNT] = {
	[CRI_VERSION] = { RUNTIME "Version", &runtime__v1__version_response__descriptor },
	[CRI_STATUS] = { RUNTIME "Status", &runtime__v1__status_response__descriptor },
	[CRI_RUNTIME_CONFIG] = { RUNTIME "RuntimeConfig", &runtime__v1__runtime_config_response__descriptor },
	[CRI_RUN_POD_SANDBOX] = { RUNTIME "RunPodSandbox", &runtime__v1__run_pod_sandbox_response__descriptor },
	[CRI_STOP_POD_SANDBOX] = { RUNTIME "StopPodSandbox", &runtime__v1__stop_pod_sandbox_response__descriptor },
	[CRI_REMOVE_POD_SANDBOX] = { RUNTIME "RemovePodSandbox",
		&runtime__v1__remove_pod_sandbox_response__descriptor },
	[CRI_POD_SANDBOX_STATUS] = { RUNTIME "PodSandboxStatus",
		&runtime__v1__pod_sandbox_status_response__descriptor },
	[CRI_LIST_POD_SANDBOX] = { RUNTIME "ListPodSandbox", &runtime__v1__list_pod_sandbox_response__descriptor },
	[CRI_CREATE_CONTAINER] = { RUNTIME "CreateContainer", &runtime__v1__create_container_response__descriptor },
	[CRI_START_CONTAINER] = { RUNTIME "StartContainer", &runtime__v1__start_container_response__descriptor },
	[CRI_STOP_CONTAINER] = { RUNTIME "StopContainer", &runtime__v1__stop_container_response__descriptor },
	[CRI_REMOVE_CONTAINER] = { RUNTIME "RemoveContainer", &runtime__v1__remove_container_response__descriptor },
	[CRI_LIST_CONTAINERS] = { RUNTIME "ListContainers", &runtime__v1__list_containers_response__descriptor },
	[CRI_CONTAINER_STATUS] = { RUNTIME "ContainerStatus", &runtime__v1__container_status_response__descriptor },
	[CRI_EXEC_SYNC] = { RUNTIME "ExecSync", &runtime__v1__exec_sync_response__descriptor },
	[CRI_EXEC] = { RUNTIME "Exec", &runtime__v1__exec_response__descriptor },
	[CRI_ATTACH] = { RUNTIME "Attach", &runtime__v1__attach_response__descriptor },
	[CRI_PORT_FORWARD] = { RUNTIME "PortForward", &runtime__v1__port_forward_response__descriptor },
	[CRI_REOPEN_CONTAINER_LOG] = { RUNTIME "ReopenContainerLog",
		&runtime__v1__reopen_container_log_response__descriptor },
	[CRI_IMAGE_STATUS] = { IMAGE "ImageStatus", &runtime__v1__image_status_response__descriptor },
	[CRI_PULL_IMAGE] = { IMAGE "PullImage", &runtime__v1__pull_image_response__descriptor },
};

struct cri_client {
	struct rpc_client *rpc;
	uint64_t timeout_ms;
};

int cri_client_new(
	uv_loop_t *loop, const char *endpoint, uint64_t timeout_ms, struct cri_client **ret, struct error *err)
{
	struct sock_address address;
	int r = sock_address_parse(endpoint, &address, err);

	if (r == 0 && !address.is_unix)
		r = error_set(err, ERROR_INVALID, "\"%s\" is not a Unix socket (unix:///path)", endpoint);
	if (r < 0)
		return error_prefix(err, "--container-runtime-endpoint");
	struct cri_client *client = xnew(struct cri_client);

	client->rpc = rpc_client_new(loop, address.un.sun_path);
	client->timeout_ms = timeout_ms;
	*ret = client;
	return 0;
}

void cri_client_free(struct cri_client *client)
{
	if (!client)
		return;
	rpc_client_free(client->rpc);
	free(client);
}

struct rpc_request *cri_call(struct cri_client *client, enum cri_method method, const void *request, uint64_t extra_ms,
	rpc_reply_cb cb, void *data)
{
	uint64_t timeout = client->timeout_ms;

	if (method == CRI_RUN_POD_SANDBOX)
		timeout *= 2;
	if (method == CRI_STATUS || method == CRI_VERSION || method == CRI_RUNTIME_CONFIG)
		timeout = MIN(timeout, (uint64_t)STATUS_TIMEOUT_MS);
	timeout = extra_ms == CRI_NO_DEADLINE ? 0 : timeout + extra_ms;
	return rpc_call(client->rpc, methods[method].path, request, methods[method].reply, timeout, cb, data);
}

struct rpc_request *cri_events(struct cri_client *client, rpc_message_cb on_message, rpc_end_cb end, void *data)
{
	CRI(GetEventsRequest) request = RUNTIME__V1__GET_EVENTS_REQUEST__INIT;

	return rpc_stream(client->rpc, RUNTIME "GetContainerEvents", &request.base,
		&runtime__v1__container_event_response__descriptor, on_message, end, data);
}

bool cri_unclear(const struct error *status)
{
	return status->code == ERROR_DEADLINE || status->code == ERROR_UNAVAILABLE || status->code == ERROR_CANCELLED ||
	       status->code == ERROR_UNKNOWN;
}

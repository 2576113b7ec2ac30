/* stop.c - purpose: `runtime-lite stop|rm|stopp|rmp|prune`. */
#include "runtime-lite/admin/tool.h"
#include "runtime-lite/engine/cgroup.h"
#include "runtime-lite/net/bridge.h"

COMMAND(command_stop)
{
	uint64_t grace_ns = option_duration_ns(in->options, "timeout");

	for (int i = 0; i < in->argc; i++) {
		CRI(StopContainerRequest) request = RUNTIME__V1__STOP_CONTAINER_REQUEST__INIT;
		_cleanup_free_ char *id = NULL;
		int r = tool_container(in->admin, in->argv[i], &id, err);

		request.container_id = id;
		request.timeout = (int64_t)((grace_ns + 999999999) / 1000000000);
		if (r == 0)
			r = tool_do(in->admin, "RuntimeService/StopContainer", &request,
				&runtime__v1__stop_container_response__descriptor,
				option_duration_ns(in->options, "abandon") / 1000000, err);
		if (r < 0)
			return r;
		puts(id);
	}
	return 0;
}

static int remove_container(const struct admin *admin, char *id, struct error *err)
{
	CRI(RemoveContainerRequest) request = RUNTIME__V1__REMOVE_CONTAINER_REQUEST__INIT;

	request.container_id = id;
	return tool_do(admin, "RuntimeService/RemoveContainer", &request,
		&runtime__v1__remove_container_response__descriptor, TOOL_TIMEOUT_MS, err);
}

static int container_runs(const struct admin *admin, char *id, bool *ret, struct error *err)
{
	CRI(ContainerStatusRequest) request = RUNTIME__V1__CONTAINER_STATUS_REQUEST__INIT;
	_cleanup_message_ CRI(ContainerStatusResponse) *reply = NULL;

	request.container_id = id;
	int r = tool_call(admin, "RuntimeService/ContainerStatus", &request,
		&runtime__v1__container_status_response__descriptor, TOOL_TIMEOUT_MS, &reply, err);
	if (r < 0)
		return r;
	*ret = reply->status && reply->status->state == RUNTIME__V1__CONTAINER_STATE__CONTAINER_RUNNING;
	return 0;
}

COMMAND(command_rm)
{
	for (int i = 0; i < in->argc; i++) {
		_cleanup_free_ char *id = NULL;
		bool runs = false;
		int r = tool_container(in->admin, in->argv[i], &id, err);

		if (r == 0 && !option_bool(in->options, "force"))
			r = container_runs(in->admin, id, &runs, err);
		if (r == 0 && runs)
			r = error_set(err, ERROR_PRECONDITION, "container %s is running: stop it, or use --force",
				in->argv[i]);
		if (r == 0)
			r = remove_container(in->admin, id, err);
		if (r < 0)
			return r;
		puts(id);
	}
	return 0;
}

static int stop_pod(const struct admin *admin, char *id, struct error *err)
{
	CRI(StopPodSandboxRequest) request = RUNTIME__V1__STOP_POD_SANDBOX_REQUEST__INIT;

	request.pod_sandbox_id = id;
	return tool_do(admin, "RuntimeService/StopPodSandbox", &request,
		&runtime__v1__stop_pod_sandbox_response__descriptor, TOOL_TIMEOUT_MS, err);
}

static int remove_pod(const struct admin *admin, char *id, struct error *err)
{
	CRI(RemovePodSandboxRequest) request = RUNTIME__V1__REMOVE_POD_SANDBOX_REQUEST__INIT;

	request.pod_sandbox_id = id;
	return tool_do(admin, "RuntimeService/RemovePodSandbox", &request,
		&runtime__v1__remove_pod_sandbox_response__descriptor, TOOL_TIMEOUT_MS, err);
}

static int list_pods(const struct admin *admin, CRI(ListPodSandboxResponse) * *ret, struct error *err)
{
	CRI(ListPodSandboxRequest) request = RUNTIME__V1__LIST_POD_SANDBOX_REQUEST__INIT;

	return tool_call(admin, "RuntimeService/ListPodSandbox", &request,
		&runtime__v1__list_pod_sandbox_response__descriptor, TOOL_TIMEOUT_MS, ret, err);
}

static int list_containers(const struct admin *admin, CRI(ListContainersResponse) * *ret, struct error *err)
{
	CRI(ListContainersRequest) request = RUNTIME__V1__LIST_CONTAINERS_REQUEST__INIT;

	return tool_call(admin, "RuntimeService/ListContainers", &request,
		&runtime__v1__list_containers_response__descriptor, TOOL_TIMEOUT_MS, ret, err);
}

COMMAND(command_stopp)
{
	for (int i = 0; i < in->argc; i++) {
		_cleanup_free_ char *id = NULL;
		int r = tool_pod(in->admin, in->argv[i], &id, err);

		if (r == 0)
			r = stop_pod(in->admin, id, err);
		if (r < 0)
			return r;
		puts(id);
	}
	return 0;
}

static int remove_one(const struct invocation *in, char *id, bool ready, struct error *err)
{
	if (ready && !option_bool(in->options, "force"))
		return error_set(err, ERROR_PRECONDITION, "pod %s is ready: stop it, or use --force", id);
	int r = ready ? stop_pod(in->admin, id, err) : 0;
	if (r == 0)
		r = remove_pod(in->admin, id, err);
	if (r == 0)
		puts(id);
	return r;
}

COMMAND(command_rmp)
{
	_cleanup_message_ CRI(ListPodSandboxResponse) *pods = NULL;
	bool all = option_bool(in->options, "all");
	int r = list_pods(in->admin, &pods, err);

	if (r == 0 && !all && !in->argc)
		r = error_set(err, ERROR_INVALID, "name a pod, or use --all");
	for (size_t i = 0; r == 0 && all && i < pods->n_items; i++)
		r = remove_one(in, pods->items[i]->id,
			pods->items[i]->state == RUNTIME__V1__POD_SANDBOX_STATE__SANDBOX_READY, err);
	for (int i = 0; r == 0 && !all && i < in->argc; i++) {
		_cleanup_free_ char *id = NULL;
		bool ready = false;

		r = tool_pod(in->admin, in->argv[i], &id, err);
		for (size_t k = 0; r == 0 && k < pods->n_items; k++)
			if (str_eq(pods->items[k]->id, id))
				ready = pods->items[k]->state == RUNTIME__V1__POD_SANDBOX_STATE__SANDBOX_READY;
		if (r == 0)
			r = remove_one(in, id, ready, err);
	}
	return r;
}

static int prune_images(const struct admin *admin, struct error *err)
{
	CRI(ListImagesRequest) request = RUNTIME__V1__LIST_IMAGES_REQUEST__INIT;
	_cleanup_message_ CRI(ListImagesResponse) *images = NULL;
	_cleanup_message_ CRI(ListContainersResponse) *containers = NULL;
	int r = tool_call(admin, "ImageService/ListImages", &request, &runtime__v1__list_images_response__descriptor,
		TOOL_TIMEOUT_MS, &images, err);

	if (r == 0)
		r = list_containers(admin, &containers, err);
	for (size_t i = 0; r == 0 && i < images->n_images; i++) {
		CRI(ImageSpec) spec = RUNTIME__V1__IMAGE_SPEC__INIT;
		CRI(RemoveImageRequest) remove = RUNTIME__V1__REMOVE_IMAGE_REQUEST__INIT;
		bool used = images->images[i]->pinned;

		for (size_t k = 0; k < containers->n_containers; k++)
			used = used || str_eq(containers->containers[k]->image_id, images->images[i]->id);
		if (used)
			continue;
		spec.image = images->images[i]->id;
		remove.image = &spec;
		r = tool_do(admin, "ImageService/RemoveImage", &remove,
			&runtime__v1__remove_image_response__descriptor, TOOL_TIMEOUT_MS, err);
		if (r == 0)
			printf("image %s\n", spec.image);
	}
	return r;
}

static bool cgroup_pids_in(const char *path)
{
	struct error ignored;
	pid_t *pids = NULL;
	size_t n = 0;

	if (cgroup_pids(path, &pids, &n, &ignored) < 0)
		return false;
	free(pids);
	return n > 0;
}

/* What the daemon leaves for its next start: bridge, table, empty cgroups. Works on the kernel itself, so that it can be
 * used when the daemon has been stopped for good; refused while pods have addresses. */
static int prune_network(const struct admin *admin, struct error *err)
{
	_cleanup_free_ char *dir = xasprintf("%s/network", admin->root);
	_cleanup_free_ char *monitors = NULL;
	struct bridge_config config = {
		.bridge = admin->bridge,
		.cidr = admin->pod_cidr,
		.state_dir = dir,
	};
	struct bridge_network *network = NULL;
	int r = bridge_network_new(&config, &network, err);

	if (r < 0)
		return r;
	r = bridge_remove(network, err);
	bridge_network_free(network);
	if (r == 0)
		r = cgroup_detect(err);
	if (r == 0)
		r = cgroup_path_join(admin->cgroup_parent, "monitors", &monitors, err);
	if (r == 0 && !cgroup_pids_in(admin->cgroup_parent))
		r = cgroup_remove(monitors, err);
	if (r == 0 && !cgroup_pids_in(admin->cgroup_parent))
		r = cgroup_remove(admin->cgroup_parent, err);
	return r;
}

COMMAND(command_prune)
{
	_cleanup_message_ CRI(ListPodSandboxResponse) *pods = NULL;
	_cleanup_message_ CRI(ListContainersResponse) *containers = NULL;

	if (option_bool(in->options, "network"))
		return prune_network(in->admin, err);
	int r = list_containers(in->admin, &containers, err);

	for (size_t i = 0; r == 0 && i < containers->n_containers; i++) {
		if (containers->containers[i]->state != RUNTIME__V1__CONTAINER_STATE__CONTAINER_EXITED)
			continue;
		r = remove_container(in->admin, containers->containers[i]->id, err);
		if (r == 0)
			printf("container %s\n", containers->containers[i]->id);
	}
	if (r == 0)
		r = list_pods(in->admin, &pods, err);
	for (size_t i = 0; r == 0 && i < pods->n_items; i++) {
		if (pods->items[i]->state == RUNTIME__V1__POD_SANDBOX_STATE__SANDBOX_READY)
			continue;
		r = remove_pod(in->admin, pods->items[i]->id, err);
		if (r == 0)
			printf("pod %s\n", pods->items[i]->id);
	}
	if (r == 0 && option_bool(in->options, "images"))
		r = prune_images(in->admin, err);
	return r;
}

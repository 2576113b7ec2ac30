/* sandbox_query.c - purpose: PodSandboxStatus, ListPodSandbox and UpdatePodSandboxResources. */
#include "runtime-lite/cri/handlers.h"

#include "common/sys/file.h"
#include "common/wire/json.h"
#include "runtime-lite/cri/convert.h"
#include "runtime-lite/engine/pod.h"

/* With the store's lock held. */
static char *info_text(const struct sandbox *s)
{
	_cleanup_json_ json_t *json = sandbox_to_json(s);

	if (s->monitor && !s->monitor_gone)
		json_object_set_new(json, "pid", json_integer(pod_monitor_pid(s->monitor)));
	json_object_set_new(json, "dir", json_string(s->dir));
	return json_text(json);
}

HANDLER(sandbox_status)
{
	struct service *svc = call->context;
	const CRI(PodSandboxStatusRequest) *req = request;
	_cleanup_sandbox_ struct sandbox *s = NULL;
	int r = store_get_sandbox(svc->store, req->pod_sandbox_id, &s, err);

	if (r < 0)
		return r;
	CRI(PodSandboxStatusResponse) *reply = CRI_NEW(PodSandboxStatusResponse, pod_sandbox_status_response);
	store_lock(svc->store);
	reply->status = convert_sandbox_status(s);
	convert_pod_statuses(s, &reply->n_containers_statuses, &reply->containers_statuses);
	reply->timestamp = (int64_t)clock_realtime_ns();
	if (req->verbose) {
		_cleanup_free_ char *info = info_text(s);

		message_map_add(&reply->n_info, &reply->info,
			&runtime__v1__pod_sandbox_status_response__info_entry__descriptor, "info", info);
	}
	store_unlock(svc->store);
	*ret_reply = &reply->base;
	return 0;
}

HANDLER(sandbox_list)
{
	struct service *svc = call->context;
	const CRI(ListPodSandboxRequest) *req = request;
	CRI(ListPodSandboxResponse) *reply = CRI_NEW(ListPodSandboxResponse, list_pod_sandbox_response);
	struct map_iter it = MAP_ITER_INIT;

	(void)err;
	store_lock(svc->store);
	reply->items = xcalloc(svc->store->sandboxes.count, sizeof(*reply->items));
	while (map_next(&svc->store->sandboxes, &it))
		if (sandbox_matches(it.value, req->filter))
			reply->items[reply->n_items++] = convert_sandbox(it.value);
	store_unlock(svc->store);
	*ret_reply = &reply->base;
	return 0;
}

/* The kubelet has resized the pod's cgroup itself and tells us: it is kept for those who look. */
HANDLER(sandbox_update_resources)
{
	struct service *svc = call->context;
	const CRI(UpdatePodSandboxResourcesRequest) *req = request;
	_cleanup_operation_ struct operation op = { 0 };
	_cleanup_sandbox_ struct sandbox *s = NULL;
	int r = store_get_sandbox(svc->store, req->pod_sandbox_id, &s, err);

	if (r == 0)
		r = operation_begin(&op, svc->store, s, "UpdatePodSandboxResources", service_cancelled, call, err);
	if (r < 0)
		return r;
	store_lock(svc->store);
	message_free(s->overhead);
	message_free(s->resources);
	s->overhead = message_copy(req->overhead);
	s->resources = message_copy(req->resources);
	bool gone = map_get(&svc->store->sandboxes, s->id) != s;
	store_unlock(svc->store);
	if (gone)
		return error_set(err, ERROR_NOT_FOUND, "pod sandbox \"%s\" not found", s->id);
	r = store_save_sandbox(svc->store, s, err);
	if (r < 0)
		return r;
	*ret_reply = &CRI_NEW(UpdatePodSandboxResourcesResponse, update_pod_sandbox_resources_response)->base;
	return 0;
}

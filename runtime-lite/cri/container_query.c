/* container_query.c - purpose: ContainerStatus and ListContainers. */
#include "runtime-lite/cri/handlers.h"

#include "common/wire/json.h"
#include "runtime-lite/cri/convert.h"

/* With the store's lock held. */
static char *info_text(const struct container *c)
{
	_cleanup_json_ json_t *json = container_to_json(c);

	json_object_set_new(json, "sandboxID", json_string(c->sandbox->id));
	json_object_set_new(json, "pid", json_integer(c->pid));
	json_object_set_new(json, "dir", json_string(c->dir));
	json_object_set_new(json, "layer_dir", json_string(c->layer_dir));
	json_object_set_new(json, "cgroup", json_string(c->cgroup));
	return json_text(json);
}

HANDLER(container_status)
{
	struct service *svc = call->context;
	const CRI(ContainerStatusRequest) *req = request;
	_cleanup_container_ struct container *c = NULL;
	int r = store_get_container(svc->store, req->container_id, &c, err);

	if (r < 0)
		return r;
	CRI(ContainerStatusResponse) *reply = CRI_NEW(ContainerStatusResponse, container_status_response);
	store_lock(svc->store);
	reply->status = convert_container_status(c);
	if (req->verbose) {
		_cleanup_free_ char *info = info_text(c);

		message_map_add(&reply->n_info, &reply->info,
			&runtime__v1__container_status_response__info_entry__descriptor, "info", info);
	}
	store_unlock(svc->store);
	*ret_reply = &reply->base;
	return 0;
}

HANDLER(container_list)
{
	struct service *svc = call->context;
	const CRI(ListContainersRequest) *req = request;
	CRI(ListContainersResponse) *reply = CRI_NEW(ListContainersResponse, list_containers_response);
	struct map_iter it = MAP_ITER_INIT;

	(void)err;
	store_lock(svc->store);
	reply->containers = xcalloc(svc->store->containers.count, sizeof(*reply->containers));
	while (map_next(&svc->store->containers, &it))
		if (container_matches(it.value, req->filter))
			reply->containers[reply->n_containers++] = convert_container(it.value);
	store_unlock(svc->store);
	*ret_reply = &reply->base;
	return 0;
}

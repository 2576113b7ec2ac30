/* container_update.c - purpose: UpdateContainerResources and ReopenContainerLog. */
#include "runtime-lite/cri/handlers.h"

#include "common/base/log.h"
#include "runtime-lite/engine/cgroup.h"
#include "runtime-lite/engine/pod.h"
#include "runtime-lite/spec/resources.h"

static void limits_done(struct cgroup_limits *l)
{
	cgroup_limits_done(l);
}

static int check(struct service *svc, const struct container *c, bool *ret_running, struct error *err)
{
	int r = 0;

	store_lock(svc->store);
	*ret_running = c->state == CONTAINER_RUNNING;
	if (map_get(&svc->store->containers, c->id) != c)
		r = error_set(err, ERROR_NOT_FOUND, "container \"%s\" not found", c->id);
	else if (c->removing)
		r = error_set(err, ERROR_PRECONDITION, "container %s is being removed", c->id);
	store_unlock(svc->store);
	return r;
}

/* Merges into what is stored, writes that, then the cgroup of one that runs; if the kernel refuses, the old values are
 * stored again. Fields that are zero leave what is there: the kubelet's CPU manager sends cpusets alone. */
static int update(struct service *svc, struct container *c, const CRI(LinuxContainerResources) * wanted, bool running,
	struct error *err)
{
	_cleanup_(limits_done) struct cgroup_limits changes = CGROUP_LIMITS_INIT, all = CGROUP_LIMITS_INIT;
	_cleanup_message_ CRI(LinuxContainerResources) *old = NULL;
	int r = resources_to_limits(wanted, &changes, err);

	if (r < 0)
		return r;
	store_lock(svc->store);
	old = message_copy(container_resources(c));
	resources_merge(container_resources(c), wanted);
	r = resources_to_limits(container_resources(c), &all, err);
	store_unlock(svc->store);
	if (r == 0)
		r = store_save_container(svc->store, c, err);
	if (r == 0 && running)
		r = cgroup_apply(c->cgroup, &all, err);
	if (r == 0)
		return 0;
	struct error ignored;
	store_lock(svc->store);
	message_free(c->config->linux->resources);
	c->config->linux->resources = steal(old);
	store_unlock(svc->store);
	if (store_save_container(svc->store, c, &ignored) < 0)
		log_error("container %s: %s", c->id, ignored.text);
	return r;
}

HANDLER(container_update)
{
	struct service *svc = call->context;
	const CRI(UpdateContainerResourcesRequest) *req = request;
	_cleanup_operation_ struct operation op = { 0 };
	_cleanup_container_ struct container *c = NULL;
	bool running;
	int r = store_get_container(svc->store, req->container_id, &c, err);

	if (r == 0)
		r = operation_begin(&op, svc->store, c->sandbox, "UpdateContainerResources", service_cancelled, call, err);
	if (r == 0)
		r = check(svc, c, &running, err);
	if (r == 0 && req->linux)
		r = update(svc, c, req->linux, running, err);
	if (r < 0)
		return error_prefix(err, "update container resources");
	*ret_reply = &CRI_NEW(UpdateContainerResourcesResponse, update_container_resources_response)->base;
	return 0;
}

/* Not an operation: log rotation must go on while the pod is busy. */
HANDLER(container_reopen_log)
{
	struct service *svc = call->context;
	const CRI(ReopenContainerLogRequest) *req = request;
	_cleanup_container_ struct container *c = NULL;
	int r = store_get_container(svc->store, req->container_id, &c, err);

	if (r < 0)
		return r;
	store_lock(svc->store);
	bool running = c->state == CONTAINER_RUNNING && c->sandbox->monitor;
	store_unlock(svc->store);
	if (!running)
		return error_set(err, ERROR_PRECONDITION, "container %s is not running", c->id);
	if (c->log_path)
		r = pod_container_reopen_log(c->sandbox->monitor, c->id, c->log_path, err);
	if (r < 0)
		return error_prefix(err, "reopen log of container %s", c->id);
	*ret_reply = &CRI_NEW(ReopenContainerLogResponse, reopen_container_log_response)->base;
	return 0;
}

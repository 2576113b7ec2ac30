/*
 * container_start.c - purpose: StartContainer.
 *
 * A start that fails leaves the container EXITED with 128 and "StartError", as kubelets know it. A process may end before
 * the start is published: its end is noted (exit_pending) and published right after the start.
 */
#include "runtime-lite/cri/handlers.h"

#include "common/base/log.h"
#include "common/sys/file.h"
#include "runtime-lite/cri/plan.h"
#include "runtime-lite/engine/pod.h"

enum { START_TIMEOUT_MS = 120000 };

static int begin_start(struct service *svc, struct container *c, struct error *err)
{
	int r = 0;

	store_lock(svc->store);
	if (map_get(&svc->store->containers, c->id) != c)
		r = error_set(err, ERROR_NOT_FOUND, "container \"%s\" not found", c->id);
	else if (c->removing)
		r = error_set(err, ERROR_PRECONDITION, "container %s is being removed", c->id);
	else if (c->state != CONTAINER_CREATED)
		r = error_set(err, ERROR_PRECONDITION, "container %s is %s, only a created one can be started", c->id,
			c->state == CONTAINER_RUNNING ? "running" : "exited");
	else if (c->sandbox->state != SANDBOX_READY || c->sandbox->monitor_gone || !c->sandbox->monitor)
		r = error_set(err, ERROR_PRECONDITION, "pod sandbox %s is not ready", c->sandbox->id);
	else
		c->starting = true;
	store_unlock(svc->store);
	return r;
}

static int start(struct service *svc, struct container *c, struct rpc_call *call, pid_t *ret_pid, uint64_t *ret_started_ns,
	struct error *err)
{
	_cleanup_(launch_free_p) struct launch *launch = NULL;
	int r = plan_container(svc, c, &launch, err);

	if (r < 0)
		return r;
	unsigned timeout_ms = (unsigned)service_time_left_ms(call, START_TIMEOUT_MS);
	return pod_container_start(c->sandbox->monitor, launch, timeout_ms, ret_pid, ret_started_ns, err);
}

static void end_start(struct service *svc, struct container *c, int r, pid_t pid, uint64_t started_ns,
	const struct error *err)
{
	store_lock(svc->store);
	c->starting = false;
	bool ended = r == 0 && c->exit_pending;
	if (r == 0 && container_set_running(c, pid, started_ns))
		store_notify(svc->store, CHANGE_STARTED, c->sandbox, c);
	if (r < 0 && container_set_start_failed(c, err->text, clock_realtime_ns()))
		store_notify(svc->store, CHANGE_STOPPED, c->sandbox, c);
	bool gone = c->sandbox->monitor_gone;
	store_unlock(svc->store);
	if (ended || (r == 0 && gone))
		store_sync_exit(svc->store, c);
}

HANDLER(container_start)
{
	struct service *svc = call->context;
	const CRI(StartContainerRequest) *req = request;
	_cleanup_operation_ struct operation op = { 0 };
	_cleanup_container_ struct container *c = NULL;
	struct error save = ERROR_INIT;
	struct exit_record record;
	uint64_t started_ns = 0;
	pid_t pid = 0;
	int r = store_get_container(svc->store, req->container_id, &c, err);

	if (r == 0)
		r = operation_begin(&op, svc->store, c->sandbox, "StartContainer", service_cancelled, call, err);
	if (r == 0)
		r = begin_start(svc, c, err);
	if (r < 0)
		return r;
	/* A former daemon may have started it without living long enough to know. */
	if (pod_container_pid(c->dir, &pid, &started_ns, err) == 0)
		c->exit_pending = pod_container_exit(c->dir, &record, &save) == 0;
	else
		r = start(svc, c, call, &pid, &started_ns, err);
	end_start(svc, c, r, pid, started_ns, err);
	if (r < 0) {
		if (store_save_container(svc->store, c, &save) < 0)
			log_error("container %s: %s", c->id, save.text);
		/* Neither "no such container" nor "not allowed to call": it is the command that fails. */
		if (err->code == ERROR_NOT_FOUND || err->code == ERROR_DENIED)
			err->code = ERROR_UNKNOWN;
		return error_prefix(err, "start container %s", c->config->metadata->name);
	}
	log_info("container %s runs: pod=%s/%s name=%s pid=%d", c->id, c->sandbox->config->metadata->namespace_,
		c->sandbox->config->metadata->name, c->config->metadata->name, pid);
	*ret_reply = &CRI_NEW(StartContainerResponse, start_container_response)->base;
	return 0;
}

/* sandbox_stop.c - purpose: StopPodSandbox and RemovePodSandbox. Unknown sandboxes are success. */
#include "runtime-lite/cri/handlers.h"

#include "common/base/log.h"
#include "runtime-lite/engine/pod.h"
#include "runtime-lite/model/teardown.h"

/* A start may hang on a volume; it holds the pod's operation, so its process is ended before that is waited for. */
static void end_start(struct service *svc, struct sandbox *s)
{
	_cleanup_container_ struct container *starting = NULL;
	struct error err = ERROR_INIT;

	store_lock(svc->store);
	for (struct container *c = s->containers; c && !starting; c = c->next_in_pod)
		if (c->starting && s->monitor && !s->monitor_gone)
			starting = container_ref(c);
	store_unlock(svc->store);
	if (starting && pod_container_kill_all(s->monitor, starting->id, &err) < 0)
		log_warning("container %s: end its start: %s", starting->id, err.text);
}

/* 1: it is gone, which is what the client wants. */
static int begin(struct rpc_call *call, const char *id, const char *name, struct operation *op, struct error *err)
{
	struct service *svc = call->context;
	_cleanup_sandbox_ struct sandbox *s = NULL;
	int r = store_get_sandbox(svc->store, id, &s, err);

	if (r < 0)
		return err->code == ERROR_NOT_FOUND ? 1 : r;
	end_start(svc, s);
	r = operation_begin(op, svc->store, s, name, service_cancelled, call, err);
	if (r < 0)
		return r;
	store_lock(svc->store);
	bool gone = map_get(&svc->store->sandboxes, s->id) != s;
	store_unlock(svc->store);
	return gone;
}

HANDLER(sandbox_stop)
{
	struct service *svc = call->context;
	const CRI(StopPodSandboxRequest) *req = request;
	const struct teardown t = { svc->store, svc->images, svc->network };
	_cleanup_operation_ struct operation op = { 0 };
	int r = begin(call, req->pod_sandbox_id, "StopPodSandbox", &op, err);

	if (r == 0) {
		bool ready = op.sandbox->state == SANDBOX_READY;

		r = teardown_stop_pod(&t, op.sandbox, err);
		if (r == 0 && ready)
			log_info("pod sandbox %s stopped", op.sandbox->id);
	}
	if (r < 0)
		return r;
	*ret_reply = &CRI_NEW(StopPodSandboxResponse, stop_pod_sandbox_response)->base;
	return 0;
}

HANDLER(sandbox_remove)
{
	struct service *svc = call->context;
	const CRI(RemovePodSandboxRequest) *req = request;
	const struct teardown t = { svc->store, svc->images, svc->network };
	_cleanup_operation_ struct operation op = { 0 };
	int r = begin(call, req->pod_sandbox_id, "RemovePodSandbox", &op, err);

	if (r == 0) {
		store_lock(svc->store);
		op.sandbox->removing = true;
		store_unlock(svc->store);
		r = teardown_pod(&t, op.sandbox, err);
		if (r == 0)
			log_info("pod sandbox %s removed", op.sandbox->id);
	}
	if (r < 0)
		return r;
	*ret_reply = &CRI_NEW(RemovePodSandboxResponse, remove_pod_sandbox_response)->base;
	return 0;
}

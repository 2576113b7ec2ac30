/* exec.c - purpose: ExecSync. */
#include "runtime-lite/cri/handlers.h"

#include "common/sys/file.h"
#include "runtime-lite/engine/pod.h"

/* Both streams and their framing must fit into a client's 16 MiB. */
enum { EXEC_OUTPUT_MAX = 7 << 20 };

static void spec_done(struct exec_spec *spec)
{
	strv_done(&spec->args);
	strv_done(&spec->env);
	free(spec->cwd);
}

/* The request's own limit, or what is left until the client's deadline: nobody would read the answer of a later end. */
static uint64_t time_limit_ns(const struct rpc_call *call, int64_t timeout_s)
{
	if (timeout_s > 0)
		return (uint64_t)MIN(timeout_s, INT64_C(1000000000)) * UINT64_C(1000000000);
	return call->deadline_ns ? service_time_left_ms(call, UINT64_MAX / 1000000) * 1000000 : 0;
}

static void take(struct str *from, ProtobufCBinaryData *to)
{
	to->len = from->len;
	to->data = (uint8_t *)str_take(from);
}

HANDLER(exec_sync)
{
	struct service *svc = call->context;
	const CRI(ExecSyncRequest) *req = request;
	_cleanup_(spec_done) struct exec_spec spec = { 0 };
	_cleanup_(str_done) struct str out = STR_INIT, errors = STR_INIT;
	_cleanup_container_ struct container *c = NULL;
	struct exec_result result = { 0 };
	int r = store_get_container(svc->store, req->container_id, &c, err);

	if (r < 0)
		return r;
	if (!req->n_cmd || !*req->cmd[0])
		return error_set(err, ERROR_INVALID, "cmd is empty");
	store_lock(svc->store);
	bool running = c->state == CONTAINER_RUNNING && c->sandbox->monitor;
	store_unlock(svc->store);
	if (!running)
		return error_set(err, ERROR_PRECONDITION, "container %s is not running", c->id);

	for (size_t i = 0; i < req->n_cmd; i++)
		strv_add(&spec.args, req->cmd[i]);
	spec.timeout_ns = time_limit_ns(call, req->timeout);
	spec.cancelled = service_cancelled;
	spec.cancelled_data = call;
	r = pod_exec_sync(c->sandbox->monitor, c->dir, &spec, EXEC_OUTPUT_MAX, &out, &errors, &result, err);
	if (r < 0) {
		if (err->code == ERROR_NOT_FOUND || err->code == ERROR_DENIED) /* the command, not the container */
			err->code = ERROR_UNKNOWN;
		return error_prefix(err, "exec in container %s", c->id);
	}
	CRI(ExecSyncResponse) *reply = CRI_NEW(ExecSyncResponse, exec_sync_response);
	take(&out, &reply->stdout);
	take(&errors, &reply->stderr);
	reply->exit_code = result.status;
	*ret_reply = &reply->base;
	return 0;
}

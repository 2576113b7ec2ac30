/*
 * stream.c - purpose: Exec, Attach and PortForward: what is asked for is checked and kept, the answer is a URL of the
 * streaming server.
 */
#include "runtime-lite/cri/handlers.h"

#include "runtime-lite/stream/forward.h"
#include "runtime-lite/stream/server.h"
#include "runtime-lite/stream/task.h"

/* The rules that clients know from other runtimes. */
static int check_streams(const char *id, bool in, bool out, bool err_wanted, bool tty, struct error *err)
{
	if (!*id)
		return error_set(err, ERROR_INVALID, "container_id is missing");
	if (tty && err_wanted)
		return error_set(err, ERROR_INVALID, "tty and stderr cannot both be true: a terminal has one output");
	if (!in && !out && !err_wanted)
		return error_set(err, ERROR_INVALID, "one of stdin, stdout and stderr must be true");
	return 0;
}

static struct stream_request *new_request(enum stream_kind kind, const char *id, bool in, bool out, bool err, bool tty)
{
	struct stream_request *r = stream_request_new(kind, id);

	r->in = in;
	r->out = out;
	r->err = err;
	r->tty = tty;
	return r;
}

HANDLER(stream_exec)
{
	struct service *svc = call->context;
	const CRI(ExecRequest) *req = request;
	_cleanup_container_ struct container *c = NULL;
	char *url = NULL;
	int r = check_streams(req->container_id, req->stdin, req->stdout, req->stderr, req->tty, err);

	if (r == 0 && (!req->n_cmd || !*req->cmd[0]))
		r = error_set(err, ERROR_INVALID, "cmd is empty");
	if (r == 0)
		r = task_find_container(svc->store, req->container_id, &c, err);
	if (r < 0)
		return error_prefix(err, "exec");
	struct stream_request *wanted = new_request(STREAM_EXEC, c->id, req->stdin, req->stdout, req->stderr, req->tty);

	for (size_t i = 0; i < req->n_cmd; i++)
		strv_add(&wanted->args, req->cmd[i]);
	r = stream_server_url(svc->streams, wanted, &url, err);
	if (r < 0)
		return r;
	CRI(ExecResponse) *reply = CRI_NEW(ExecResponse, exec_response);

	message_set_take(&reply->url, url);
	*ret_reply = &reply->base;
	return 0;
}

HANDLER(stream_attach)
{
	struct service *svc = call->context;
	const CRI(AttachRequest) *req = request;
	_cleanup_container_ struct container *c = NULL;
	char *url = NULL;
	int r = check_streams(req->container_id, req->stdin, req->stdout, req->stderr, req->tty, err);

	if (r == 0)
		r = task_find_container(svc->store, req->container_id, &c, err);
	if (r < 0)
		return error_prefix(err, "attach");
	r = stream_server_url(svc->streams,
		new_request(STREAM_ATTACH, c->id, req->stdin, req->stdout, req->stderr, req->tty), &url, err);
	if (r < 0)
		return r;
	CRI(AttachResponse) *reply = CRI_NEW(AttachResponse, attach_response);

	message_set_take(&reply->url, url);
	*ret_reply = &reply->base;
	return 0;
}

static int take_ports(const CRI(PortForwardRequest) * req, struct stream_request *wanted, struct error *err)
{
	if (req->n_port > FORWARD_PORTS_MAX)
		return error_set(err, ERROR_INVALID, "%zu ports; at most %d are taken", req->n_port, FORWARD_PORTS_MAX);
	wanted->ports = xcalloc(MAX(req->n_port, (size_t)1), sizeof(*wanted->ports));
	for (size_t i = 0; i < req->n_port; i++) {
		if (req->port[i] < 1 || req->port[i] > 65535)
			return error_set(err, ERROR_INVALID, "port %d: must be 1 to 65535", req->port[i]);
		wanted->ports[wanted->n_ports++] = (uint16_t)req->port[i];
	}
	return 0;
}

HANDLER(stream_port_forward)
{
	struct service *svc = call->context;
	const CRI(PortForwardRequest) *req = request;
	_cleanup_(stream_request_free_p) struct stream_request *wanted = NULL;
	_cleanup_sandbox_ struct sandbox *s = NULL;
	char *url = NULL;
	int r = *req->pod_sandbox_id ? task_find_sandbox(svc->store, req->pod_sandbox_id, &s, err)
				     : error_set(err, ERROR_INVALID, "pod_sandbox_id is missing");

	if (r == 0) {
		wanted = stream_request_new(STREAM_PORT_FORWARD, s->id);
		r = take_ports(req, wanted, err);
	}
	if (r == 0)
		r = stream_server_url(svc->streams, steal(wanted), &url, err);
	if (r < 0)
		return error_prefix(err, "port-forward");
	CRI(PortForwardResponse) *reply = CRI_NEW(PortForwardResponse, port_forward_response);

	message_set_take(&reply->url, url);
	*ret_reply = &reply->base;
	return 0;
}

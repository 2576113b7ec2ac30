/* stream.c - purpose: the calls Exec, Attach and PortForward. */
#include "kubelet-lite/cri/stream.h"

struct asked {
	enum stream_kind kind;
	stream_url_cb cb;
	void *data;
};

static const char *url_of(enum stream_kind kind, const void *reply)
{
	switch (kind) {
	case STREAM_EXEC:
		return ((const CRI(ExecResponse) *)reply)->url;
	case STREAM_ATTACH:
		return ((const CRI(AttachResponse) *)reply)->url;
	default:
		return ((const CRI(PortForwardResponse) *)reply)->url;
	}
}

static void on_reply(void *data, const struct error *status, const void *reply)
{
	struct asked *a = data;

	a->cb(a->data, reply ? url_of(a->kind, reply) : NULL, status);
	free(a);
}

static void exec(struct cri_client *client, const struct stream_wanted *w, char *id, struct asked *a)
{
	CRI(ExecRequest) request = RUNTIME__V1__EXEC_REQUEST__INIT;

	request.container_id = id;
	request.cmd = w->command.v;
	request.n_cmd = w->command.n;
	request.tty = w->tty;
	request.stdin = w->in;
	request.stdout = w->out;
	request.stderr = w->err;
	cri_call(client, CRI_EXEC, &request, 0, on_reply, a);
}

static void attach(struct cri_client *client, const struct stream_wanted *w, char *id, struct asked *a)
{
	CRI(AttachRequest) request = RUNTIME__V1__ATTACH_REQUEST__INIT;

	request.container_id = id;
	request.tty = w->tty;
	request.stdin = w->in;
	request.stdout = w->out;
	request.stderr = w->err;
	cri_call(client, CRI_ATTACH, &request, 0, on_reply, a);
}

static void port_forward(struct cri_client *client, const struct stream_wanted *w, char *id, struct asked *a)
{
	CRI(PortForwardRequest) request = RUNTIME__V1__PORT_FORWARD_REQUEST__INIT;

	request.pod_sandbox_id = id;
	request.port = (int32_t *)w->ports;
	request.n_port = w->n_ports;
	cri_call(client, CRI_PORT_FORWARD, &request, 0, on_reply, a);
}

void cri_stream_url(
	struct cri_client *client, const struct stream_wanted *wanted, const char *id, stream_url_cb cb, void *data)
{
	struct asked *a = xnew(struct asked);

	*a = (struct asked){ wanted->kind, cb, data };
	if (wanted->kind == STREAM_EXEC)
		exec(client, wanted, (char *)id, a);
	else if (wanted->kind == STREAM_ATTACH)
		attach(client, wanted, (char *)id, a);
	else
		port_forward(client, wanted, (char *)id, a);
}

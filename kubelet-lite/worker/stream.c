/* stream.c - purpose: which container or sandbox of the runtime an exec, attach or port-forward means. */
#include "kubelet-lite/worker/node_i.h"

static const char *running_container(const struct pod_worker *w, const char *name)
{
	int i = pod_container(w->pod, name);

	return i >= 0 && w->seen.c[i].now.state == STATE_RUNNING ? w->seen.c[i].now.id : NULL;
}

int node_stream_url(
	struct node *node, const struct stream_wanted *wanted, stream_url_cb cb, void *data, struct error *err)
{
	const struct object *o = objects_get(node->objects, KIND_POD, wanted->ns, wanted->pod);
	const struct pod_worker *w = o ? node_worker(node, o->uid) : NULL;
	const char *id;

	if (!w)
		return error_set(err, ERROR_NOT_FOUND, "pods \"%s\" not found", wanted->pod);
	if (wanted->kind == STREAM_PORT_FORWARD) {
		id = w->seen.sandbox.state == SANDBOX_READY ? w->seen.sandbox.id : NULL;
		if (!id)
			return error_set(err, ERROR_PRECONDITION, "unable to forward port because pod is not running");
	} else {
		id = running_container(w, wanted->container);
		if (!id)
			return error_set(err, ERROR_PRECONDITION,
				"unable to upgrade connection: container not found (\"%s\")", wanted->container);
	}
	cri_stream_url(node->cri, wanted, id, cb, data);
	return 0;
}

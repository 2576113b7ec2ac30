/*
 * api.h - purpose: the standalone Kubernetes API: the node's objects over HTTP on a Unix socket and on loopback TLS.
 */
#pragma once
#include "kubelet-lite/cri/stream.h"
#include "kubelet-lite/source/file.h"
#include "kubelet-lite/store/objects.h"

struct local_api;

struct local_api_options {
	uv_loop_t *loop;
	struct objects *objects;
	struct file_source *files;  /* NULL: read-only */
	const char *socket_path;    /* "/run/kubelet-lite/kubelet-lite.sock", or NULL */
	const char *tls_address;    /* "127.0.0.1:6443", or NULL: no TLS, OpenSSL is not loaded */
	const char *root_dir;       /* keys under <root_dir>/api */
	const char *kubeconfig;     /* written with mode 0600 when tls_address is given; NULL: <root_dir>/api/admin.kubeconfig */
	/* Path of a container's log; the worker's node_container_log_path(). */
	int (*log_path)(void *data, const char *ns, const char *pod, const char *container, bool previous, char **ret_path,
		struct error *err);
	/* The runtime's URL for an exec, attach or port-forward; the worker's node_stream_url(). NULL: there are none. */
	int (*stream_url)(void *data, const struct stream_wanted *wanted, stream_url_cb cb, void *cb_data, struct error *err);
	void *data;
};

/* Also starts the EndpointSlice controller and makes the namespace "default". */
int local_api_start(const struct local_api_options *options, struct local_api **ret, struct error *err) MUST_USE;
void local_api_stop(struct local_api *api, void (*stopped)(void *data), void *data);

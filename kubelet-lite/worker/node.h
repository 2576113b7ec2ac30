/*
 * node.h - purpose: the pods of this node: one worker for each, and the Node object.
 *
 * Follows Pods, ConfigMaps, Secrets and Services in the object store, makes the runtime match, and writes status and
 * events back. Loop thread only.
 */
#pragma once
#include "common/base/str.h"
#include "kubelet-lite/cri/stream.h"
#include "kubelet-lite/model/pod.h"
#include "kubelet-lite/store/objects.h"

struct node;

struct node_options {
	uv_loop_t *loop;
	struct objects *objects;
	const char *endpoint; /* CRI socket */
	const char *root_dir;
	const char *pod_logs_dir;
	const char *container_logs_dir;
	const char *node_name;
	const struct strv *node_ips;	/* one or two; empty: found out */
	const struct strv *node_labels; /* "key=value" */
	const char *cgroup_root;
	bool cgroups_per_qos;
	int64_t max_pods;
	const struct strv *cluster_dns;
	const char *cluster_domain;
	const char *resolv_conf;
	uint64_t request_timeout_ms;
	uint64_t relist_ms;
	unsigned max_pulls;
	int64_t log_max_bytes;
	unsigned log_max_files;
	const struct strv *unsafe_sysctls;
	bool seccomp_default;
};

/* Starts at once; a runtime that is not there is waited for. Strings are copied. */
int node_start(const struct node_options *options, struct node **ret, struct error *err) MUST_USE;
/* Pods go on running. `stopped` is called when all handles are closed; the node is then freed. */
void node_stop(struct node *node, void (*stopped)(void *data), void *data);

/* Host path of a container's log file: of the newest instance, or of the one before (`previous`). The errors are what
 * the API answers: NOT_FOUND, or INVALID with `container "c" in pod "p" is waiting to start: ContainerCreating`. */
int node_container_log_path(struct node *node, const char *ns, const char *pod, const char *container, bool previous,
	char **ret_path, struct error *err) MUST_USE;
/* Asks the runtime for the URL of a stream to a running container or pod. NOT_FOUND, PRECONDITION: then cb is not
 * called. */
int node_stream_url(struct node *node, const struct stream_wanted *wanted, stream_url_cb cb, void *data,
	struct error *err) MUST_USE;
/* Does the runtime answer? For /healthz. */
bool node_healthy(const struct node *node);
/* Prometheus text. */
void node_metrics(const struct node *node, struct str *out);

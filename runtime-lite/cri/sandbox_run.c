/*
 * sandbox_run.c - purpose: RunPodSandbox.
 *
 * The intent is on disk before the first kernel object exists, so that a kill -9 at any point is undone at the next start.
 * Whatever fails, and a client that has gone away, undoes all of it; the name is free again as soon as the call is over.
 */
#include "runtime-lite/cri/handlers.h"

#include "common/base/log.h"
#include "common/sys/file.h"
#include "runtime-lite/cri/pod_files.h"
#include "runtime-lite/model/teardown.h"
#include "runtime-lite/cri/watch.h"
#include "runtime-lite/engine/cgroup.h"
#include "runtime-lite/engine/pod.h"
#include "runtime-lite/model/state_json.h"
#include "runtime-lite/spec/sandbox_plan.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

static int gave_up(struct rpc_call *call, struct error *err)
{
	if (!call->cancelled || !call->cancelled(call))
		return 0;
	return error_set(err, ERROR_CANCELLED, "the client has gone or its deadline has passed");
}

/* Under the parent that the kubelet has made; a pod without one, or with one that is not there, gets its own. */
static int choose_cgroup(const struct service *svc, struct sandbox *s, struct error *err)
{
	const char *parent = s->config->linux ? s->config->linux->cgroup_parent : "";
	_cleanup_free_ char *clean = NULL;
	int r = cgroup_path_join(*parent ? parent : svc->options.cgroup_parent, NULL, &clean, err);

	if (r < 0)
		return error_prefix(err, "cgroup_parent");
	if (*parent && cgroup_exists(clean)) {
		s->cgroup = steal(clean);
		return 0;
	}
	s->cgroup_owned = true;
	return cgroup_path_join(clean, s->id, &s->cgroup, err);
}

static int make_dirs(const struct sandbox *s, struct error *err)
{
	_cleanup_free_ char *containers = xasprintf("%s/containers", s->dir);

	if (mkdir(s->dir, 0711) < 0)
		return error_sys(err, errno, "%s", s->dir);
	return dir_make(containers, 0711, err);
}

static int start_monitor(const struct service *svc, struct sandbox *s, struct error *err)
{
	_cleanup_(sandbox_launch_free_p) struct sandbox_launch *launch = NULL;
	struct sandbox_place place = {
		.id = s->id,
		.dir = s->dir,
		.cgroup = s->cgroup,
		.cgroup_owned = s->cgroup_owned,
		.monitors_cgroup = svc->monitors_cgroup,
		.node_hostname = svc->node_hostname,
	};
	int r = sandbox_plan(s->config, &place, &launch, err);

	if (r < 0)
		return r;
	return pod_monitor_start(launch, svc->options.libexec_dir, &s->monitor, err);
}

static size_t port_mappings(const CRI(PodSandboxConfig) * config, struct port_mapping *ports)
{
	static const uint8_t protocols[] = {
		[RUNTIME__V1__PROTOCOL__TCP] = IPPROTO_TCP,
		[RUNTIME__V1__PROTOCOL__UDP] = IPPROTO_UDP,
		[RUNTIME__V1__PROTOCOL__SCTP] = IPPROTO_SCTP,
	};
	size_t n = 0;

	for (size_t i = 0; i < config->n_port_mappings; i++) {
		const CRI(PortMapping) *from = config->port_mappings[i];
		struct port_mapping *to = &ports[n];

		if (!from->host_port)
			continue;
		to->protocol = protocols[from->protocol];
		to->host_port = (uint16_t)from->host_port;
		to->container_port = (uint16_t)from->container_port;
		snprintf(to->host_ip, sizeof(to->host_ip), "%s", from->host_ip);
		n++;
	}
	return n;
}

static int attach_network(const struct service *svc, struct sandbox *s, struct error *err)
{
	_cleanup_free_ struct port_mapping *ports = xcalloc(s->config->n_port_mappings, sizeof(*ports));
	char ip[INET6_ADDRSTRLEN];

	if (sandbox_host_network(s))
		return 0;
	_cleanup_fd_ int netns_fd = pod_monitor_netns(s->monitor);
	if (netns_fd < 0)
		return error_sys(err, netns_fd, "network namespace");
	/* From here on there may be something to give back; the file says so before it is true. */
	s->network_attached = true;
	int r = store_save_sandbox(svc->store, s, err);
	if (r == 0)
		r = bridge_attach(svc->network, s->id, netns_fd, ports, port_mappings(s->config, ports), ip, err);
	if (r < 0)
		return error_prefix(err, "network");
	strv_add(&s->ips, ip);
	return 0;
}

static int publish(struct service *svc, struct sandbox *s, struct rpc_call *call, struct error *err)
{
	/* The file first: once a client sees the sandbox, it survives us. */
	s->created_ns = clock_realtime_ns();
	store_lock(svc->store);
	s->state = SANDBOX_READY;
	_cleanup_json_ json_t *ready = sandbox_to_json(s);
	s->state = SANDBOX_CREATING;
	store_unlock(svc->store);
	int r = gave_up(call, err);
	if (r == 0)
		r = state_write(s->dir, "config.json", ready, err);
	if (r < 0)
		return r;
	store_lock(svc->store);
	s->state = SANDBOX_READY;
	store_notify(svc->store, CHANGE_CREATED, s, NULL);
	store_notify(svc->store, CHANGE_STARTED, s, NULL);
	store_unlock(svc->store);
	watch_add(svc, s);
	return 0;
}

static int run(struct service *svc, struct sandbox *s, struct rpc_call *call, struct error *err)
{
	int r = make_dirs(s, err);

	if (r == 0)
		r = choose_cgroup(svc, s, err);
	if (r == 0)
		r = store_save_sandbox(svc->store, s, err);
	if (r == 0)
		r = start_monitor(svc, s, err);
	if (r == 0)
		r = gave_up(call, err);
	if (r == 0)
		r = attach_network(svc, s, err);
	if (r == 0)
		r = pod_files_write(svc, s, err);
	if (r == 0)
		r = publish(svc, s, call, err);
	return r;
}

/* If even that fails the sandbox stays, NOTREADY, for the client's stop and remove to try again. */
static void undo(struct service *svc, struct sandbox *s)
{
	const struct teardown t = { svc->store, svc->images, svc->network };
	struct error err = ERROR_INIT;

	if (teardown_pod(&t, s, &err) == 0)
		return;
	log_error("pod sandbox %s: undo: %s", s->id, err.text);
	store_lock(svc->store);
	s->state = SANDBOX_NOTREADY;
	store_unlock(svc->store);
	if (store_save_sandbox(svc->store, s, &err) < 0)
		log_error("pod sandbox %s: %s", s->id, err.text);
}

HANDLER(sandbox_run)
{
	struct service *svc = call->context;
	const CRI(RunPodSandboxRequest) *req = request;
	_cleanup_operation_ struct operation op = { 0 };
	char id[65];
	int r = sandbox_config_check(req->config, err);

	if (r < 0)
		return r;
	if (*req->runtime_handler)
		return error_set(err, ERROR_INVALID, "no runtime for \"%.80s\" is configured", req->runtime_handler);
	random_hex(id, 64);
	_cleanup_sandbox_ struct sandbox *s = sandbox_new(id, message_copy(req->config), svc->options.state_dir);
	s->runtime_handler = xstrdup(req->runtime_handler);
	s->created_ns = clock_realtime_ns();
	r = store_add_sandbox(svc->store, s, err);
	if (r < 0)
		return r;
	r = operation_begin(&op, svc->store, s, "RunPodSandbox", NULL, NULL, err);
	if (r == 0)
		r = run(svc, s, call, err);
	if (r < 0) {
		undo(svc, s);
		return error_prefix(err, "run pod sandbox %s", s->name);
	}
	log_info("pod sandbox %s runs: pod=%s/%s ip=%s", s->id, s->config->metadata->namespace_,
		s->config->metadata->name, s->ips.n ? s->ips.v[0] : "node's");
	CRI(RunPodSandboxResponse) *reply = CRI_NEW(RunPodSandboxResponse, run_pod_sandbox_response);
	message_set(&reply->pod_sandbox_id, s->id);
	*ret_reply = &reply->base;
	return 0;
}

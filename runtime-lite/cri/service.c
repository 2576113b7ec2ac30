/* service.c - purpose: the table of CRI methods, and what their handlers share. */
#include "runtime-lite/cri/service.h"

#include "common/base/log.h"
#include "common/sys/file.h"
#include "runtime-lite/cri/container_stop.h"
#include "runtime-lite/cri/events.h"
#include "runtime-lite/cri/handlers.h"
#include "runtime-lite/cri/image.h"
#include "runtime-lite/cri/watch.h"
#include "runtime-lite/engine/cgroup.h"
#include "runtime-lite/model/recover.h"
#include "runtime-lite/model/state_json.h"
#include "runtime-lite/spec/caps.h"
#include "runtime-lite/stream/server.h"

#include <errno.h>
#include <malloc.h>

#define RUNTIME(name) "/runtime.v1.RuntimeService/" name
#define IMAGE(name) "/runtime.v1.ImageService/" name
#define REQUEST(prefix) &runtime__v1__##prefix##_request__descriptor

/* What is not here answers UNIMPLEMENTED. Lists are answered on the loop, from memory. */
static const struct rpc_method methods[] = {
	{ RUNTIME("Version"), RPC_INLINE, REQUEST(version), runtime_version, NULL },
	{ RUNTIME("Status"), RPC_JOB, REQUEST(status), runtime_status, NULL },
	{ RUNTIME("RuntimeConfig"), RPC_INLINE, REQUEST(runtime_config), runtime_config, NULL },
	{ RUNTIME("UpdateRuntimeConfig"), RPC_JOB, REQUEST(update_runtime_config), runtime_update_config, NULL },
	{ RUNTIME("RunPodSandbox"), RPC_JOB, REQUEST(run_pod_sandbox), sandbox_run, NULL },
	{ RUNTIME("StopPodSandbox"), RPC_JOB, REQUEST(stop_pod_sandbox), sandbox_stop, NULL },
	{ RUNTIME("RemovePodSandbox"), RPC_JOB, REQUEST(remove_pod_sandbox), sandbox_remove, NULL },
	{ RUNTIME("PodSandboxStatus"), RPC_INLINE, REQUEST(pod_sandbox_status), sandbox_status, NULL },
	{ RUNTIME("ListPodSandbox"), RPC_INLINE, REQUEST(list_pod_sandbox), sandbox_list, NULL },
	{ RUNTIME("UpdatePodSandboxResources"), RPC_JOB, REQUEST(update_pod_sandbox_resources),
		sandbox_update_resources, NULL },
	{ RUNTIME("CreateContainer"), RPC_JOB, REQUEST(create_container), container_create, NULL },
	{ RUNTIME("StartContainer"), RPC_JOB, REQUEST(start_container), container_start, NULL },
	{ RUNTIME("StopContainer"), RPC_STREAM, REQUEST(stop_container), NULL, container_stop },
	{ RUNTIME("RemoveContainer"), RPC_JOB, REQUEST(remove_container), container_remove, NULL },
	{ RUNTIME("ContainerStatus"), RPC_INLINE, REQUEST(container_status), container_status, NULL },
	{ RUNTIME("ListContainers"), RPC_INLINE, REQUEST(list_containers), container_list, NULL },
	{ RUNTIME("UpdateContainerResources"), RPC_JOB, REQUEST(update_container_resources), container_update, NULL },
	{ RUNTIME("ReopenContainerLog"), RPC_JOB, REQUEST(reopen_container_log), container_reopen_log, NULL },
	{ RUNTIME("ExecSync"), RPC_JOB, REQUEST(exec_sync), exec_sync, NULL },
	{ RUNTIME("Exec"), RPC_INLINE, REQUEST(exec), stream_exec, NULL },
	{ RUNTIME("Attach"), RPC_INLINE, REQUEST(attach), stream_attach, NULL },
	{ RUNTIME("PortForward"), RPC_INLINE, REQUEST(port_forward), stream_port_forward, NULL },
	{ RUNTIME("ContainerStats"), RPC_JOB, REQUEST(container_stats), stats_container, NULL },
	{ RUNTIME("ListContainerStats"), RPC_JOB, REQUEST(list_container_stats), stats_containers, NULL },
	{ RUNTIME("PodSandboxStats"), RPC_JOB, REQUEST(pod_sandbox_stats), stats_sandbox, NULL },
	{ RUNTIME("ListPodSandboxStats"), RPC_JOB, REQUEST(list_pod_sandbox_stats), stats_sandboxes, NULL },
	{ RUNTIME("GetContainerEvents"), RPC_STREAM, &runtime__v1__get_events_request__descriptor, NULL,
		events_subscribe },
	{ IMAGE("ListImages"), RPC_JOB, REQUEST(list_images), image_list, NULL },
	{ IMAGE("ImageStatus"), RPC_JOB, REQUEST(image_status), image_status, NULL },
	{ IMAGE("PullImage"), RPC_JOB, REQUEST(pull_image), image_pull_rpc, NULL },
	{ IMAGE("RemoveImage"), RPC_JOB, REQUEST(remove_image), image_remove, NULL },
	{ IMAGE("ImageFsInfo"), RPC_JOB, REQUEST(image_fs_info), image_fs_info, NULL },
	{ 0 },
};

enum { LATE_START_MS = 2000, SETTLE_MS = 3000 };

struct posted {
	void (*fn)(void *data);
	void *data;
	struct posted *next;
};

const struct rpc_method *service_methods(void)
{
	return methods;
}

bool service_cancelled(const void *data)
{
	const struct rpc_call *call = data;

	return call->cancelled && call->cancelled(call);
}

uint64_t service_time_left_ms(const struct rpc_call *call, uint64_t max_ms)
{
	uint64_t now_ns = clock_monotonic_ns();

	if (!call->deadline_ns)
		return max_ms;
	if (call->deadline_ns <= now_ns)
		return 1;
	return MAX(MIN((call->deadline_ns - now_ns) / 1000000, max_ms), (uint64_t)1);
}

static void on_async(uv_async_t *async)
{
	struct service *svc = async->data;

	pthread_mutex_lock(&svc->post_lock);
	struct posted *list = steal(svc->posted);
	pthread_mutex_unlock(&svc->post_lock);
	struct posted *in_order = NULL;
	while (list) {
		struct posted *p = list;

		list = p->next;
		p->next = in_order;
		in_order = p;
	}
	while (in_order) {
		struct posted *p = in_order;

		in_order = p->next;
		p->fn(p->data);
		free(p);
	}
}

void service_post(struct service *svc, void (*fn)(void *data), void *data)
{
	struct posted *p = xnew(struct posted);

	p->fn = fn;
	p->data = data;
	pthread_mutex_lock(&svc->post_lock);
	p->next = svc->posted;
	svc->posted = p;
	pthread_mutex_unlock(&svc->post_lock);
	uv_async_send(&svc->async);
}

static void on_settled(uv_timer_t *timer)
{
	(void)timer;
	malloc_trim(0);
}

void service_settle(struct service *svc)
{
	if (!uv_is_closing((uv_handle_t *)&svc->settle))
		uv_timer_start(&svc->settle, on_settled, SETTLE_MS, 0);
}

static int open_network(struct service *svc, struct error *err)
{
	_cleanup_free_ char *dir = xasprintf("%s/network", svc->options.root_dir);
	_cleanup_json_ json_t *saved = NULL;
	int r = dir_make(dir, 0700, err);

	if (r == 0) {
		r = state_read(dir, "config.json", &saved, err);
		r = r < 0 && err->code == ERROR_NOT_FOUND ? 0 : r;
	}
	if (r < 0)
		return r;
	svc->pod_cidr = xstrdup(saved ? json_str_at(saved, "pod_cidr", svc->options.pod_cidr) : svc->options.pod_cidr);
	struct bridge_config config = {
		.bridge = svc->options.bridge_name,
		.cidr = svc->pod_cidr,
		.state_dir = dir,
	};
	r = bridge_network_new(&config, &svc->network, err);
	return r < 0 ? error_prefix(err, "network") : 0;
}

static int open_all(struct service *svc, struct error *err)
{
	struct image_store_options images = {
		.root = svc->options.root_dir,
		.libexec_dir = svc->options.libexec_dir,
		.registry_config_dir = svc->options.registry_config_dir,
		.insecure_registries = svc->options.insecure_registries,
		.pinned = svc->options.pinned_images,
		.limits = svc->options.image_limits,
	};
	int r = store_open(svc->options.state_dir, svc->options.root_dir, &svc->store, err);

	if (r == 0)
		r = image_store_open(&images, &svc->images, err);
	if (r == 0)
		r = cgroup_detect(err);
	if (r == 0)
		r = cgroup_path_join(svc->options.cgroup_parent, "monitors", &svc->monitors_cgroup, err);
	if (r == 0)
		r = open_network(svc, err);
	if (r < 0)
		return r;
	const struct teardown t = { svc->store, svc->images, svc->network };
	return recover(&t, err);
}

static void on_late(uv_timer_t *timer)
{
	struct service *svc = timer->data;

	recover_late_starts(svc->store);
}

/* What was recovered and still runs is watched; stops that were under way keep their time. */
static void adopt(struct service *svc)
{
	struct map_iter it = MAP_ITER_INIT;

	while (map_next(&svc->store->sandboxes, &it)) {
		struct sandbox *s = it.value;

		if (s->state == SANDBOX_READY && s->monitor)
			watch_add(svc, s);
	}
	it = MAP_ITER_INIT;
	while (map_next(&svc->store->containers, &it)) {
		struct container *c = it.value;

		if (c->state == CONTAINER_RUNNING && c->kill_at_ns)
			stops_resume(svc, c);
	}
	if (svc->store->containers.count)
		uv_timer_start(&svc->late, on_late, LATE_START_MS, 0);
}

int service_new(uv_loop_t *loop, const struct service_options *options, struct service **ret, struct error *err)
{
	struct service *svc = xnew(struct service);

	svc->loop = loop;
	svc->options = *options;
	svc->caps = caps_of_daemon();
	svc->started_ns = clock_realtime_ns();
	pthread_mutex_init(&svc->post_lock, NULL);
	if (gethostname(svc->node_hostname, sizeof(svc->node_hostname) - 1) < 0)
		strcpy(svc->node_hostname, "localhost");
	int r = open_all(svc, err);
	if (r == 0)
		r = stream_server_new(loop, options->streaming_address, svc->store, &svc->streams, err);
	if (r < 0) {
		service_free(svc);
		return r;
	}
	uv_async_init(loop, &svc->async, on_async);
	svc->async.data = svc;
	uv_timer_init(loop, &svc->late);
	svc->late.data = svc;
	uv_timer_init(loop, &svc->settle);
	svc->events = events_new(svc);
	svc->stops = stops_new(svc);
	svc->pulls = pulls_new(svc);
	svc->watches = watches_new(svc);
	adopt(svc);
	*ret = svc;
	return 0;
}

void service_close(struct service *svc)
{
	on_async(&svc->async); /* what was posted last has handles of its own */
	stream_server_close(svc->streams);
	watches_close(svc->watches);
	stops_close(svc->stops);
	pulls_close(svc->pulls);
	uv_close((uv_handle_t *)&svc->async, NULL);
	uv_close((uv_handle_t *)&svc->late, NULL);
	uv_close((uv_handle_t *)&svc->settle, NULL);
}

struct service *service_free(struct service *svc)
{
	if (!svc)
		return NULL;
	if (svc->stops)
		stops_free(svc->stops);
	if (svc->store)
		store_observe(svc->store, NULL, NULL);
	if (svc->events)
		events_free(svc->events);
	if (svc->pulls)
		pulls_free(svc->pulls);
	if (svc->watches)
		watches_free(svc->watches);
	while (svc->posted) {
		struct posted *p = svc->posted;

		svc->posted = p->next;
		free(p);
	}
	stream_server_free(svc->streams);
	store_close(svc->store);
	if (svc->images)
		image_store_close(svc->images);
	if (svc->network)
		bridge_network_free(svc->network);
	pthread_mutex_destroy(&svc->post_lock);
	free(svc->monitors_cgroup);
	free(svc->pod_cidr);
	free(svc);
	return NULL;
}

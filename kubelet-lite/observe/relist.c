/* relist.c - purpose: notice what happens in the runtime. */
#include "kubelet-lite/observe/relist.h"

#include "kubelet-lite/observe/fold.h"
#include "kubelet-lite/observe/observe.h"
#include "kubelet-lite/worker/end.h"
#include "kubelet-lite/worker/orphan.h"

enum { FAST_MS = 1000, RETRY_MS = 500, STATUS_EVERY_MS = 30000 };

struct relist {
	struct node *node;
	uv_timer_t timer;	 /* next list */
	uv_timer_t status_timer; /* next Status, and next try of the event stream */
	uint64_t period_ms;
	bool no_events; /* the runtime has none */
	bool named;     /* it has said its name */
	bool listing;
	bool again;
	bool stopped;
	unsigned waiting;
	bool failed;
	CRI(ListPodSandboxResponse) * sandboxes;
	CRI(ListContainersResponse) * containers;
	struct rpc_request *events;
	unsigned open_handles;
	unsigned calls;
};

/* What the lists say of one pod. */
struct group {
	uint64_t signature;
	bool live;
};

static void start_list(struct relist *r);
static void ask_status(struct relist *r);

static void on_timer(uv_timer_t *timer)
{
	start_list(timer->data);
}

static void on_status_timer(uv_timer_t *timer)
{
	ask_status(timer->data);
}

static void schedule(struct relist *r, uint64_t ms)
{
	if (!r->stopped)
		uv_timer_start(&r->timer, on_timer, ms, 0);
}

static const char *uid_of_sandbox(const CRI(PodSandbox) * s)
{
	return message_map_get(s->n_labels, s->labels, LABEL_POD_UID);
}

static const char *uid_of_container(const CRI(Container) * c)
{
	return message_map_get(c->n_labels, c->labels, LABEL_POD_UID);
}

static struct group *group_of(struct map *groups, const char *uid)
{
	struct group *g = map_get(groups, uid);

	if (!g) {
		g = xnew(struct group);
		map_put(groups, uid, g);
	}
	return g;
}

/* By pod; what has no pod's label is not ours. */
static void group_lists(const struct relist *r, struct map *groups)
{
	struct listing one = { 0 };

	for (size_t i = 0; i < r->sandboxes->n_items; i++) {
		const CRI(PodSandbox) *s = r->sandboxes->items[i];
		const char *uid = uid_of_sandbox(s);

		if (str_empty(uid))
			continue;
		listing_add_sandbox(&one, s);
		struct group *g = group_of(groups, uid);
		g->signature += listing_signature(&one);
		g->live = g->live || one.v[0].state == STATE_RUNNING;
		listing_done(&one);
	}
	for (size_t i = 0; i < r->containers->n_containers; i++) {
		const CRI(Container) *c = r->containers->containers[i];
		const char *uid = uid_of_container(c);

		if (str_empty(uid))
			continue;
		listing_add_container(&one, c);
		group_of(groups, uid)->signature += listing_signature(&one);
		listing_done(&one);
	}
}

/* Stops it, unless there is a reason to wait. */
static void stop_orphan(struct relist *r, const char *uid)
{
	struct pod *pod = orphan_pod(r->sandboxes, r->containers, uid);
	int64_t grace = MAX((int64_t)1, MIN(pod->grace_seconds, (int64_t)INT32_MAX));

	if (orphan_held(r->node, pod)) {
		if (!map_get(&r->node->held, uid))
			log_warning("pod=%s/%s uid=%s: its manifest is broken; leaving it as it is", pod->ns, pod->name,
				uid);
		map_put(&r->node->held, uid, r);
		pod_free(pod);
		return;
	}
	map_remove(&r->node->held, uid);
	log_info("pod=%s/%s uid=%s: no object wants it any more; stopping it", pod->ns, pod->name, uid);
	pod_stop(node_add_orphan(r->node, pod), true, grace * SECOND_NS);
}

/* Held ones that are gone, or wanted again. */
static void drop_held(struct node *node, const struct map *groups)
{
	struct map_iter it = MAP_ITER_INIT;

	while (map_next(&node->held, &it))
		if (!map_get(groups, it.key) || node_worker(node, it.key))
			map_remove(&node->held, it.key);
}

static void compare(struct relist *r)
{
	struct map groups = MAP_INIT, live = MAP_INIT;
	struct map_iter it = MAP_ITER_INIT;
	bool first = !r->node->ready;

	group_lists(r, &groups);
	while (map_next(&groups, &it))
		if (((struct group *)it.value)->live)
			map_put(&live, it.key, it.value);
	if (first)
		node_set_ready(r->node, &live);
	it = MAP_ITER_INIT;
	while (map_next(&groups, &it)) {
		struct pod_worker *w = node_worker(r->node, it.key);

		if (!w)
			stop_orphan(r, it.key);
		else if (w->signature != ((struct group *)it.value)->signature)
			observe_pod(w);
	}
	/* Pods of which the runtime has nothing (any more). */
	it = MAP_ITER_INIT;
	while (map_next(&r->node->workers, &it)) {
		struct pod_worker *w = it.value;

		if (w->signature && !map_get(&groups, it.key))
			observe_pod(w);
		if (w->wait_list) {
			w->wait_list = false;
			pod_kick(w);
		}
	}
	drop_held(r->node, &groups);
	map_done(&live);
	map_done_values(&groups, free);
	if (first)
		end_sweep(r->node, &r->node->held);
}

static void lists_done(struct relist *r)
{
	r->listing = false;
	if (!r->stopped) {
		if (r->failed) {
			schedule(r, RETRY_MS);
		} else {
			compare(r);
			schedule(r, r->again ? 0 : r->no_events ? FAST_MS : r->period_ms);
			r->again = false;
		}
	}
	message_free(r->sandboxes);
	message_free(r->containers);
	r->sandboxes = NULL;
	r->containers = NULL;
}

static void maybe_free(struct relist *r)
{
	if (r->stopped && r->open_handles == 0 && r->calls == 0)
		free(r);
}

static void answered(struct relist *r, const struct error *status)
{
	r->calls--;
	r->failed = r->failed || status->code != ERROR_OK;
	if (--r->waiting == 0)
		lists_done(r);
	maybe_free(r);
}

static void on_sandboxes(void *data, const struct error *status, const void *reply)
{
	struct relist *r = data;

	r->sandboxes = reply ? message_copy(reply) : NULL;
	answered(r, status);
}

static void on_containers(void *data, const struct error *status, const void *reply)
{
	struct relist *r = data;

	r->containers = reply ? message_copy(reply) : NULL;
	answered(r, status);
}

static void start_list(struct relist *r)
{
	CRI(ListPodSandboxRequest) sandboxes = RUNTIME__V1__LIST_POD_SANDBOX_REQUEST__INIT;
	CRI(ListContainersRequest) containers = RUNTIME__V1__LIST_CONTAINERS_REQUEST__INIT;

	if (r->listing) {
		r->again = true;
		return;
	}
	r->listing = true;
	r->failed = false;
	r->waiting = 2;
	r->calls += 2;
	cri_call(r->node->cri, CRI_LIST_POD_SANDBOX, &sandboxes, 0, on_sandboxes, r);
	cri_call(r->node->cri, CRI_LIST_CONTAINERS, &containers, 0, on_containers, r);
}

void relist_now(struct relist *r)
{
	if (!r->stopped)
		start_list(r);
}

static void on_event(void *data, const void *message)
{
	struct relist *r = data;
	const CRI(ContainerEventResponse) *event = message;
	const CRI(PodSandboxStatus) *s = event->pod_sandbox_status;
	struct pod_worker *w = s && s->metadata ? node_worker(r->node, s->metadata->uid) : NULL;

	if (r->stopped)
		return;
	if (w)
		observe_pod(w);
	else if (!s || !s->metadata)
		start_list(r);
}

static void on_events_end(void *data, const struct error *status)
{
	struct relist *r = data;

	r->events = NULL;
	r->calls--;
	if (!r->stopped && status->code == ERROR_UNIMPLEMENTED && !r->no_events) {
		r->no_events = true;
		log_info("the runtime has no container events; listing its containers every second");
	}
	/* What happened while the stream was down has to be found by a list. */
	if (!r->stopped)
		schedule(r, RETRY_MS);
	if (!r->stopped && !r->no_events)
		uv_timer_start(&r->status_timer, on_status_timer, RETRY_MS, 0);
	maybe_free(r);
}

static void set_runtime_state(struct node *node, bool up, const char *problem, bool network)
{
	if (up != node->runtime_up)
		log_line(up ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING,
			up ? "the runtime answers" : "the runtime does not answer: %s", problem);
	node->runtime_up = up;
	node->network_ready = network;
	free(node->runtime_problem);
	node->runtime_problem = problem ? xstrdup(problem) : NULL;
	node_status_changed(node);
}

static void on_status(void *data, const struct error *status, const void *reply)
{
	struct relist *r = data;
	const CRI(StatusResponse) *s = reply;
	struct str problem = STR_INIT;
	bool network = true, ready = s != NULL;

	r->calls--;
	if (r->stopped) {
		maybe_free(r);
		return;
	}
	if (!s)
		str_add(&problem, status->text);
	for (size_t i = 0; s && s->status && i < s->status->n_conditions; i++) {
		const CRI(RuntimeCondition) *c = s->status->conditions[i];

		if (c->status)
			continue;
		network = network && !str_eq(c->type, "NetworkReady");
		ready = ready && !str_eq(c->type, "RuntimeReady");
		str_addf(&problem, "%scontainer runtime %s not ready: %s=false reason:%s message:%s",
			problem.len ? ", " : "", str_eq(c->type, "NetworkReady") ? "network" : "status", c->type,
			c->reason, c->message);
	}
	set_runtime_state(r->node, ready, problem.len ? problem.buf : NULL, network);
	str_done(&problem);
	uv_timer_start(&r->status_timer, on_status_timer, s ? STATUS_EVERY_MS : RETRY_MS, 0);
}

static void on_version(void *data, const struct error *status, const void *reply)
{
	struct relist *r = data;
	const CRI(VersionResponse) *v = reply;

	(void)status;
	r->calls--;
	if (v && !r->stopped) {
		free(r->node->runtime_name);
		free(r->node->runtime_version);
		r->node->runtime_name = xstrdup(v->runtime_name);
		r->node->runtime_version = xstrdup(v->runtime_version);
		r->named = true;
	}
	maybe_free(r);
}

static void on_config(void *data, const struct error *status, const void *reply)
{
	struct relist *r = data;
	const CRI(RuntimeConfigResponse) *c = reply;

	(void)status;
	r->calls--;
	if (c && c->linux && !r->stopped)
		r->node->cri_node.systemd_cgroups = c->linux->cgroup_driver == RUNTIME__V1__CGROUP_DRIVER__SYSTEMD;
	maybe_free(r);
}

/* Status now and then, and whatever a (new) runtime has to be asked once. */
static void ask_status(struct relist *r)
{
	CRI(StatusRequest) request = RUNTIME__V1__STATUS_REQUEST__INIT;
	CRI(VersionRequest) version = RUNTIME__V1__VERSION_REQUEST__INIT;
	CRI(RuntimeConfigRequest) config = RUNTIME__V1__RUNTIME_CONFIG_REQUEST__INIT;

	if (r->stopped)
		return;
	/* Container ids begin with the runtime's name: it is asked for until it is known. */
	if (!r->named || (!r->events && !r->no_events)) {
		version.version = (char *)"v1";
		r->calls++;
		cri_call(r->node->cri, CRI_VERSION, &version, 0, on_version, r);
	}
	if (!r->events && !r->no_events) {
		r->calls += 2;
		cri_call(r->node->cri, CRI_RUNTIME_CONFIG, &config, 0, on_config, r);
		r->events = cri_events(r->node->cri, on_event, on_events_end, r);
	}
	r->calls++;
	cri_call(r->node->cri, CRI_STATUS, &request, 0, on_status, r);
}

struct relist *relist_start(struct node *node, uint64_t period_ms)
{
	struct relist *r = xnew(struct relist);

	r->node = node;
	r->period_ms = period_ms;
	r->open_handles = 2;
	uv_timer_init(node->loop, &r->timer);
	uv_timer_init(node->loop, &r->status_timer);
	r->timer.data = r->status_timer.data = r;
	ask_status(r);
	start_list(r);
	return r;
}

static void on_closed(uv_handle_t *handle)
{
	struct relist *r = handle->data;

	r->open_handles--;
	maybe_free(r);
}

void relist_stop(struct relist *r)
{
	r->stopped = true;
	if (r->events) {
		rpc_cancel(r->events);
		r->events = NULL;
		r->calls--;
	}
	uv_close((uv_handle_t *)&r->timer, on_closed);
	uv_close((uv_handle_t *)&r->status_timer, on_closed);
}

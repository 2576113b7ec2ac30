/* node.c - purpose: the pods of this node: one worker for each; admission; what workers need of other objects. */
#include "kubelet-lite/worker/node_i.h"

#include "kubelet-lite/cgroup/pods.h"
#include "kubelet-lite/core/admission.h"
#include "kubelet-lite/observe/observe.h"
#include "kubelet-lite/observe/relist.h"
#include "kubelet-lite/worker/images.h"
#include "kubelet-lite/worker/node_object.h"

#include <fcntl.h>
#include <stdio.h>

enum { TICK_MS = 10000 };

int64_t node_now(const struct node *node)
{
	(void)node;
	return (int64_t)clock_monotonic_ns();
}

struct pod_worker *node_worker(struct node *node, const char *uid)
{
	return map_get(&node->workers, uid);
}

static void on_kick(uv_idle_t *idle)
{
	struct node *node = idle->data;

	/* What is kicked from inside waits for the next turn, so that timers and sockets get theirs. */
	struct pod_worker *list = node->kicked;

	node->kicked = NULL;
	while (list) {
		struct pod_worker *w = list;

		list = w->next_kicked;
		w->next_kicked = NULL;
		w->is_kicked = false;
		w->refs++;
		pod_reconcile(w);
		pod_worker_unref(w);
	}
	if (!node->kicked)
		uv_idle_stop(idle);
}

void node_wake(struct node *node)
{
	uv_idle_start(&node->kick_idle, on_kick);
}

bool node_name_taken(const struct node *node, const struct pod_worker *worker)
{
	struct map_iter it = MAP_ITER_INIT;

	if (worker->orphan)
		return false;
	while (map_next(&node->workers, &it)) {
		const struct pod_worker *w = it.value;

		if (w != worker && w->orphan && str_eq(w->pod->name, worker->pod->name) &&
			str_eq(w->pod->ns, worker->pod->ns))
			return true;
	}
	return false;
}

/* Which pods hold resources and ports. Array owned by the caller. */
static const struct pod **active_pods(const struct node *node, const struct pod_worker *except, size_t *ret_n)
{
	const struct pod **list = xcalloc(node->workers.count + 1, sizeof(struct pod *));
	struct map_iter it = MAP_ITER_INIT;

	*ret_n = 0;
	while (map_next(&node->workers, &it)) {
		const struct pod_worker *w = it.value;
		enum pod_progress progress;

		if (w == except || w->orphan || !w->admitted || w->want.reject || w->want.done)
			continue;
		progress = order_progress(w->pod, &w->seen);
		if ((progress == PROGRESS_SUCCEEDED || progress == PROGRESS_FAILED) && !w->want.stop)
			continue;
		list[(*ret_n)++] = w->pod;
	}
	return list;
}

static void admit(struct pod_worker *w)
{
	struct node *node = w->node;
	size_t n;
	_cleanup_free_ const struct pod **others = active_pods(node, w, &n);
	struct admission_node facts = { .cpu = node->cpu,
		.memory = node->memory,
		.storage = node->storage,
		.max_pods = node->max_pods,
		.labels = node->labels,
		.unsafe_sysctls = &node->unsafe_sysctls };
	struct verdict_text verdict = { 0 };
	bool was_refused = w->want.reject;

	if (!w->start_at)
		w->start_at = clock_realtime_ns();
	if (w->want.done || pod_admit(w->pod, others, n, &facts, &verdict)) {
		w->admitted = true;
		w->want.reject = false;
		w->reason = NULL;
		free(steal(w->message));
		if (w->pod->active_deadline_seconds >= 0) {
			int64_t active = (int64_t)(clock_realtime_ns() - w->start_at);

			w->deadline_ns =
				node_now(node) - MAX(active, (int64_t)0) + w->pod->active_deadline_seconds * SECOND_NS;
		}
	} else {
		bool changed = !was_refused || !str_eq(w->message, verdict.message);

		w->admitted = w->want.reject = true;
		w->reason = verdict.reason;
		free(w->message);
		w->message = verdict.message;
		if (changed)
			pod_event(w, "Warning", verdict.reason, "%s", verdict.message);
	}
	pod_kick(w);
}

/* Something went: pods that were refused may fit now. */
static void admit_refused(struct node *node)
{
	struct map_iter it = MAP_ITER_INIT;

	while (!node->stopping && map_next(&node->workers, &it)) {
		struct pod_worker *w = it.value;

		if (!w->orphan && w->want.reject && !w->want.stop && !w->pod->unsupported)
			admit(w);
	}
}

void node_set_ready(struct node *node, const struct map *live)
{
	node->ready = true;
	/* Those that run already go first, so that a restart of ours turns nobody out. */
	for (int round = 0; round < 2; round++) {
		struct map_iter it = MAP_ITER_INIT;

		while (map_next(&node->workers, &it)) {
			struct pod_worker *w = it.value;

			if (!w->admitted && (round == 1 || map_get(live, it.key)))
				admit(w);
		}
	}
}

static void add_worker(struct node *node, struct pod *pod)
{
	struct pod_worker *old = node_worker(node, pod->uid);

	if (old) {
		/* An orphan that is wanted again before it is gone: it goes first, its successor is made then. */
		log_warning("pod=%s/%s: still stopping an earlier one of the same uid", pod->ns, pod->name);
		pod_free(pod);
		return;
	}
	struct pod_worker *w = pod_worker_new(node, pod, false);

	map_put(&node->workers, pod->uid, w);
	/* Its broken manifest may have been mended into another version. */
	if (node->held.count) {
		w->wait_list = true;
		relist_now(node->relist);
	}
	if (pod->deleting)
		pod_stop(w, true,
			(pod->deletion_grace_seconds >= 0 ? pod->deletion_grace_seconds : pod->grace_seconds) *
				SECOND_NS);
	if (node->ready)
		admit(w);
	pod_kick(w);
}

struct pod_worker *node_add_orphan(struct node *node, struct pod *pod)
{
	struct pod_worker *w = pod_worker_new(node, pod, true);

	w->admitted = true;
	map_put(&node->workers, pod->uid, w);
	pod_kick(w);
	return w;
}

/* A pod object whose uid was that of an orphan that has just gone. */
static void add_missing(struct node *node, const char *ns, const char *name)
{
	const struct object *o = objects_get(node->objects, KIND_POD, ns, name);
	struct pod *pod;

	if (!o || node_worker(node, o->uid))
		return;
	_cleanup_json_ json_t *tree = object_tree(o);
	if (pod_decode(tree, &pod, NULL) == 0)
		add_worker(node, pod);
}

void node_drop_worker(struct node *node, struct pod_worker *w)
{
	struct map_iter it = MAP_ITER_INIT;
	_cleanup_free_ char *ns = xstrdup(w->pod->ns), *name = xstrdup(w->pod->name);
	bool orphan = w->orphan;

	map_remove(&node->workers, w->pod->uid);
	pod_worker_kill(w);
	while (map_next(&node->workers, &it)) {
		struct pod_worker *other = it.value;

		if (str_eq(other->pod->name, name) && str_eq(other->pod->ns, ns))
			pod_kick(other);
	}
	admit_refused(node);
	if (orphan)
		add_missing(node, ns, name);
}

static void refuse_undecodable(struct node *node, const struct object *object, const struct error *err)
{
	_cleanup_json_ json_t *status =
		json_pack("{s:s,s:s,s:s}", "phase", "Failed", "reason", "FailedValidation", "message", err->text);

	log_warning("%s: %s", object_title(object), err->text);
	events_record(node->objects, object, "Warning", "FailedValidation", "kubelet", "%s", err->text);
	node->putting = true;
	if (objects_put_status(node->objects, KIND_POD, object->ns, object->name, status, NULL) < 0)
		log_warning("%s: its status cannot be kept", object_title(object));
	node->putting = false;
}

static void on_pod(void *data, enum object_event event, const struct object *object)
{
	struct node *node = data;
	struct pod_worker *w = node_worker(node, object->uid);
	struct error err = ERROR_INIT;
	struct pod *pod;

	if (node->putting || node->stopping)
		return;
	if (event == OBJECT_DELETED) {
		/* Removed by somebody else than the worker (it drops itself before). */
		if (w)
			pod_stop(w, true, SECOND_NS);
		return;
	}
	_cleanup_json_ json_t *tree = object_tree(object);
	if (pod_decode(tree, &pod, &err) < 0) {
		refuse_undecodable(node, object, &err);
		if (object->deleting)
			objects_remove(node->objects, KIND_POD, object->ns, object->name, object->uid);
		return;
	}
	if (w && !w->orphan)
		pod_update(w, pod);
	else
		add_worker(node, pod);
}

/* A ConfigMap or Secret came, changed or went: files follow, and who waits for it tries again. */
static void refresh_users(struct node *node, bool secret, const struct object *object)
{
	struct map_iter it = MAP_ITER_INIT;

	while (map_next(&node->workers, &it)) {
		struct pod_worker *w = it.value;

		if (w->orphan || !str_eq(w->pod->ns, object->ns) || !pod_uses(w->pod, secret, object->name))
			continue;
		if (w->seen.volumes == VOLUMES_READY || w->seen.volumes_busy)
			w->seen.volumes_stale = true;
		w->seen.volumes_retry_at_ns = 0;
		for (size_t i = 0; i < w->seen.n; i++)
			if (str_eq(w->seen.c[i].wait_reason, "CreateContainerConfigError"))
				w->seen.c[i].retry_at_ns = 0;
		pod_kick(w);
	}
}

static void on_config_map(void *data, enum object_event event, const struct object *object)
{
	struct node *node = data;

	(void)event;
	if (!node->stopping)
		refresh_users(node, false, object);
}

static void on_secret(void *data, enum object_event event, const struct object *object)
{
	struct node *node = data;

	(void)event;
	if (!node->stopping)
		refresh_users(node, true, object);
}

bool node_keyed(void *data, bool secret, const char *name, struct keyed *ret)
{
	struct node_source *source = data;
	const struct object *o =
		objects_get(source->node->objects, secret ? KIND_SECRET : KIND_CONFIG_MAP, source->ns, name);

	if (!o)
		return false;
	_cleanup_json_ json_t *tree = object_tree(o);
	struct error err = ERROR_INIT;

	if (keyed_read(tree, secret, ret, &err) < 0) {
		log_warning("%s: %s", object_title(o), err.text);
		return false;
	}
	return true;
}

void node_service_env(struct node *node, const struct pod *pod, struct env *ret)
{
	const struct object *o;
	size_t i = 0;

	while ((o = objects_next(node->objects, KIND_SERVICE, &i))) {
		bool kubernetes = str_eq(o->ns, "default") && str_eq(o->name, "kubernetes");

		if (!kubernetes && (!pod->service_links || !str_eq(o->ns, pod->ns)))
			continue;
		_cleanup_json_ json_t *tree = object_tree(o);
		env_add_service(ret, tree);
	}
}

void node_env_sources(struct node *node, const struct pod_worker *w, struct node_source *source, struct str_list *ips,
	const struct env *services, struct env_sources *ret)
{
	bool host = w->pod->host_network;

	*source = (struct node_source){ node, w->pod->ns };
	*ips = host ? node->host_list : (struct str_list){ (const char **)w->seen.ips, w->seen.n_ips };
	*ret = (struct env_sources){
		.data = source,
		.data_of = node_keyed,
		.services = services,
		.host_ip = node->host_ips.n ? node->host_ips.v[0] : "",
		.host_ips = &node->host_list,
		.pod_ips = ips,
		.node_name = node->node_name,
		.node_cpu = node->cpu,
		.node_memory = node->memory,
		.node_storage = node->storage,
	};
}

static void on_tick(uv_timer_t *timer)
{
	struct node *node = timer->data;

	logs_rotate(node);
}

static void copy_strv(struct strv *to, const struct strv *from)
{
	for (size_t i = 0; from && i < from->n; i++)
		strv_add(to, from->v[i]);
}

/* Those of our own processors' thermal controls that exist: masked in containers. */
static void find_masked_paths(struct node *node)
{
	for (int cpu = 0; cpu < 4096; cpu++) {
		char path[80];

		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d", cpu);
		if (access(path, F_OK) < 0)
			break;
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/thermal_throttle", cpu);
		if (access(path, F_OK) == 0)
			strv_add(&node->masked_paths, path);
	}
}

static const char *read_boot_id(struct node *node)
{
	_cleanup_free_ char *text = NULL;

	if (file_read(AT_FDCWD, "/proc/sys/kernel/random/boot_id", 256, &text, NULL, NULL) < 0)
		return "";
	text[strcspn(text, "\n")] = '\0';
	return arena_strdup(&node->arena, text);
}

static void configure(struct node *node, const struct node_options *o)
{
	struct arena *a = &node->arena;

	node->cri_node = (struct cri_node){
		.pod_logs_dir = arena_strdup(a, o->pod_logs_dir),
		.root_dir = arena_strdup(a, o->root_dir),
		.cgroup_root = arena_strdup(a, o->cgroup_root),
		.cgroups_per_qos = o->cgroups_per_qos,
		.cgroup_v2 = pod_cgroups_v2(),
		.seccomp_default = o->seccomp_default,
		.masked_paths = &node->masked_paths,
	};
	node->node_name = arena_strdup(a, o->node_name);
	node->container_logs_dir = arena_strdup(a, o->container_logs_dir);
	node->cluster_domain = arena_strdup(a, o->cluster_domain);
	node->resolv_conf = arena_strdup(a, o->resolv_conf);
	node->boot_id = read_boot_id(node);
	copy_strv(&node->cluster_dns, o->cluster_dns);
	copy_strv(&node->unsafe_sysctls, o->unsafe_sysctls);
	copy_strv(&node->host_ips, o->node_ips);
	node->max_pods = o->max_pods;
	node->log_max_bytes = o->log_max_bytes;
	node->log_max_files = o->log_max_files;
	node->runtime_name = xstrdup("runtime");
	node->runtime_version = xstrdup("");
	node->started_ns = clock_monotonic_ns();
	find_masked_paths(node);
}

int node_start(const struct node_options *o, struct node **ret, struct error *err)
{
	struct node *node = xnew(struct node);
	int r = cri_client_new(o->loop, o->endpoint, o->request_timeout_ms, &node->cri, err);

	if (r == 0)
		r = dir_make(o->root_dir, 0755, err);
	if (r == 0)
		r = dir_make(o->pod_logs_dir, 0755, err);
	if (r == 0)
		r = dir_make(o->container_logs_dir, 0755, err);
	if (r < 0) {
		cri_client_free(node->cri);
		free(node);
		return r;
	}
	node->loop = o->loop;
	node->objects = o->objects;
	configure(node, o);
	uv_idle_init(node->loop, &node->kick_idle);
	uv_timer_init(node->loop, &node->tick);
	node->kick_idle.data = node->tick.data = node;
	node->alive = 2;
	uv_timer_start(&node->tick, on_tick, TICK_MS, TICK_MS);
	node->node_object = node_object_start(node, o);
	node->host_list = (struct str_list){ (const char **)node->host_ips.v, node->host_ips.n };
	node->pulls = image_pulls_new(node->loop, node->cri, o->max_pulls);
	logs_sweep(node);
	objects_subscribe(node->objects, KIND_CONFIG_MAP, on_config_map, node);
	objects_subscribe(node->objects, KIND_SECRET, on_secret, node);
	objects_subscribe(node->objects, KIND_POD, on_pod, node);
	node->relist = relist_start(node, o->relist_ms);
	*ret = node;
	return 0;
}

static void node_free(struct node *node)
{
	map_done(&node->workers);
	map_done(&node->held);
	strv_done(&node->masked_paths);
	strv_done(&node->cluster_dns);
	strv_done(&node->unsafe_sysctls);
	strv_done(&node->host_ips);
	free(node->runtime_name);
	free(node->runtime_version);
	free(node->runtime_problem);
	arena_done(&node->arena);
	free(node);
}

void node_release(struct node *node)
{
	void (*stopped)(void *) = node->stopped;
	void *data = node->stopped_data;

	if (--node->alive > 0)
		return;
	node_free(node);
	stopped(data);
}

static void on_handle_closed(uv_handle_t *handle)
{
	node_release(handle->data);
}

void node_stop(struct node *node, void (*stopped)(void *data), void *data)
{
	struct map_iter it = MAP_ITER_INIT;

	node->stopping = true;
	node->stopped = stopped;
	node->stopped_data = data;
	uv_timer_stop(&node->tick);
	relist_stop(node->relist);
	node_object_stop(node->node_object);
	while (map_next(&node->workers, &it))
		pod_worker_kill(it.value);
	image_pulls_free(node->pulls);
	/* Ends all calls, and with them all effects. Jobs under way hold their workers; the caller runs the loop dry.
	 */
	cri_client_free(node->cri);
	node->cri = NULL;
	uv_close((uv_handle_t *)&node->kick_idle, on_handle_closed);
	uv_close((uv_handle_t *)&node->tick, on_handle_closed);
}

bool node_healthy(const struct node *node)
{
	return node->runtime_up;
}

int node_container_log_path(struct node *node, const char *ns, const char *pod, const char *container, bool previous,
	char **ret_path, struct error *err)
{
	const struct object *o = objects_get(node->objects, KIND_POD, ns, pod);
	struct pod_worker *w = o ? node_worker(node, o->uid) : NULL;
	int i = w ? pod_container(w->pod, container) : -1;

	if (!o)
		return error_set(err, ERROR_NOT_FOUND, "pods \"%s\" not found", pod);
	if (i < 0)
		return error_set(err, ERROR_INVALID, "container %s is not valid for pod %s", container, pod);
	const struct container_seen *c = &w->seen.c[i];
	const struct instance *instance = previous ? &c->last : &c->now;

	/* While an instance waits for its start, what it has to say is the log of the one before. */
	if (!previous && (c->now.state == STATE_NONE || c->now.state == STATE_CREATED) && c->last.state == STATE_EXITED)
		instance = &c->last;
	if (previous && instance->state == STATE_NONE)
		return error_set(err, ERROR_INVALID, "previous terminated container \"%s\" in pod \"%s\" not found",
			container, pod);
	if (instance->state == STATE_NONE || instance->state == STATE_CREATED)
		return error_set(err, ERROR_INVALID, "container \"%s\" in pod \"%s\" is waiting to start: %s",
			container, pod,
			c->wait_reason	 ? c->wait_reason
			: w->pod->n_init ? "PodInitializing"
					 : "ContainerCreating");
	*ret_path = container_log_path(w, (size_t)i, instance->restarts);
	return 0;
}

void node_metrics(const struct node *node, struct str *out)
{
	struct map_iter it = MAP_ITER_INIT;
	size_t pods = 0, running = 0, containers = 0;

	while (map_next(&node->workers, &it)) {
		const struct pod_worker *w = it.value;
		size_t up = 0;

		for (size_t i = 0; i < w->seen.n; i++)
			up += w->seen.c[i].now.state == STATE_RUNNING;
		pods++;
		containers += up;
		running += up > 0;
	}
	str_addf(out,
		"# HELP kubelet_desired_pods Pods that this node knows.\n# TYPE kubelet_desired_pods "
		"gauge\nkubelet_desired_pods %zu\n"
		"# HELP kubelet_running_pods Pods with a running container.\n# TYPE kubelet_running_pods "
		"gauge\nkubelet_running_pods %zu\n"
		"# HELP kubelet_running_containers Containers that run.\n# TYPE kubelet_running_containers "
		"gauge\nkubelet_running_containers %zu\n"
		"# HELP kubelet_started_containers_total Containers started.\n# TYPE kubelet_started_containers_total "
		"counter\nkubelet_started_containers_total %llu\n"
		"# HELP kubelet_lite_reconciles_total Times that a pod was looked at.\n# TYPE "
		"kubelet_lite_reconciles_total counter\nkubelet_lite_reconciles_total %llu\n"
		"# HELP kubelet_lite_runtime_up Whether the CRI runtime answers.\n# TYPE kubelet_lite_runtime_up "
		"gauge\nkubelet_lite_runtime_up %d\n",
		pods, running, containers, (unsigned long long)node->count_starts,
		(unsigned long long)node->count_reconciles, node->runtime_up);
}

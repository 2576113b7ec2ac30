/* effects_pod.c - purpose: effects on the pod as a whole: sandbox, volumes, the end. */
#include "kubelet-lite/worker/node_i.h"

#include "kubelet-lite/cgroup/pods.h"
#include "kubelet-lite/observe/observe.h"
#include "kubelet-lite/volume/volume.h"
#include "kubelet-lite/worker/end.h"

#include <fcntl.h>

#define RETRY_FIRST_NS (1 * SECOND_NS)
#define RETRY_MAX_NS (60 * SECOND_NS)

static void sandbox_later(struct pod_worker *w)
{
	w->sandbox_failures++;
	w->seen.sandbox.retry_at_ns =
		node_now(w->node) + backoff_retry(w->sandbox_failures, RETRY_FIRST_NS, RETRY_MAX_NS);
}

static void sandbox_failed(struct pod_worker *w, const char *text)
{
	sandbox_later(w);
	pod_event(w, "Warning", "FailedCreatePodSandBox", "Failed to create pod sandbox: %s", text);
}

static void sandbox_run(
	struct pod_worker *w, size_t index, const char *id, const struct error *status, const void *reply)
{
	(void)index;
	(void)id;
	(void)reply;
	w->seen.sandbox.op = SANDBOX_OP_NONE;
	if (status->code == ERROR_OK)
		w->sandbox_failures = 0;
	else
		sandbox_failed(w, status->text);
	/* Its address, or what is left of the attempt. */
	w->seen.observed = false;
	observe_pod(w);
}

static void read_host_dns(struct node *node, struct dns_config *ret)
{
	_cleanup_free_ char *text = NULL;

	if (*node->resolv_conf && file_read(AT_FDCWD, node->resolv_conf, 65536, &text, NULL, NULL) == 0)
		dns_parse(text, ret);
	if (!ret->servers.n && !*node->resolv_conf)
		strv_add(&ret->servers, "127.0.0.1");
}

static void pod_dns(struct pod_worker *w, struct dns_config *ret)
{
	_cleanup_(dns_config_done) struct dns_config host = { 0 };
	_cleanup_(str_done) struct str warning = STR_INIT;
	const char *reason;

	read_host_dns(w->node, &host);
	dns_for_pod(w->pod, &host, &w->node->cluster_dns, w->node->cluster_domain, ret, &reason, &warning);
	if (warning.len && !w->dns_warned)
		pod_event(w, str_eq(reason, "MissingClusterDNS") ? "Normal" : "Warning", reason, "pod %s/%s: %s",
			w->pod->ns, w->pod->name, str_get(&warning));
	w->dns_warned = true;
}

void effect_run_sandbox(struct pod_worker *w)
{
	_cleanup_(dns_config_done) struct dns_config dns = { 0 };
	_cleanup_free_ char *hostname = NULL, *log_dir = NULL;
	_cleanup_message_ CRI(PodSandboxConfig) *config = NULL;
	CRI(RunPodSandboxRequest) request = RUNTIME__V1__RUN_POD_SANDBOX_REQUEST__INIT;
	struct sandbox_seen *s = &w->seen.sandbox;
	bool again = s->state != SANDBOX_NONE;
	struct error err = ERROR_INIT;

	log_dir = pod_log_dir(w->node->cri_node.pod_logs_dir, w->pod->ns, w->pod->name, w->pod->uid);
	if (pod_hostname(w->pod, w->node->cluster_domain, &hostname, &err) < 0 || dir_make(log_dir, 0755, &err) < 0) {
		sandbox_failed(w, err.text);
		pod_kick(w);
		return;
	}
	if (again)
		pod_event(w, "Normal", "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.");
	pod_dns(w, &dns);
	config = cri_sandbox_config(w->pod, again ? s->attempt + 1 : s->attempt, hostname, &dns, &w->node->cri_node);
	request.config = config;
	s->op = SANDBOX_OP_RUN;
	effect_call(w, CRI_RUN_POD_SANDBOX, &request, 0, 0, NULL, sandbox_run, NULL);
}

/* A stop or removal of sandbox `id` has been answered. True: done, and it is still the one that counts. */
static bool sandbox_done(struct pod_worker *w, const char *id, const struct error *status, const char *what)
{
	struct sandbox_seen *s = &w->seen.sandbox;

	s->op = SANDBOX_OP_NONE;
	if (!str_eq(s->id, id))
		return false;
	if (status->code == ERROR_OK || status->code == ERROR_NOT_FOUND) {
		w->sandbox_failures = 0;
		return true;
	}
	sandbox_later(w);
	pod_event(w, "Warning", "FailedKillPod", "error killing pod: failed to %s sandbox: %s", what, status->text);
	return false;
}

static void sandbox_stopped(
	struct pod_worker *w, size_t index, const char *id, const struct error *status, const void *reply)
{
	struct sandbox_seen *s = &w->seen.sandbox;

	(void)index;
	(void)reply;
	if (!sandbox_done(w, id, status, "stop"))
		return;
	s->stopped = true;
	if (s->state == SANDBOX_READY)
		s->state = SANDBOX_NOT_READY;
	observe_pod(w);
}

void effect_stop_sandbox(struct pod_worker *w)
{
	CRI(StopPodSandboxRequest) request = RUNTIME__V1__STOP_POD_SANDBOX_REQUEST__INIT;

	request.pod_sandbox_id = w->seen.sandbox.id;
	w->seen.sandbox.op = SANDBOX_OP_STOP;
	effect_call(w, CRI_STOP_POD_SANDBOX, &request, 0, 0, w->seen.sandbox.id, sandbox_stopped, NULL);
}

static void sandbox_removed(
	struct pod_worker *w, size_t index, const char *id, const struct error *status, const void *reply)
{
	(void)index;
	(void)reply;
	if (!sandbox_done(w, id, status, "remove"))
		return;
	w->seen.sandbox.state = SANDBOX_NONE;
	free(steal(w->seen.sandbox.id));
}

void effect_remove_sandbox(struct pod_worker *w)
{
	CRI(RemovePodSandboxRequest) request = RUNTIME__V1__REMOVE_POD_SANDBOX_REQUEST__INIT;

	request.pod_sandbox_id = w->seen.sandbox.id;
	w->seen.sandbox.op = SANDBOX_OP_REMOVE;
	effect_call(w, CRI_REMOVE_POD_SANDBOX, &request, 0, 0, w->seen.sandbox.id, sandbox_removed, NULL);
}

/* ---- volumes */

struct volumes_job {
	struct job job;
	struct pod_worker *worker;
	bool first; /* not a refresh */
	char *dir;
	char *cgroup; /* NULL: none */
	struct cgroup_values values;
	char *burstable, *best_effort; /* cgroups of the classes */
	int64_t burstable_shares;
	struct volume_step *steps;
	size_t n_steps;
	char *failed; /* name of the volume */
	struct error error;
};

static void volumes_work(struct job *job)
{
	struct volumes_job *v = container_of(job, struct volumes_job, job);
	struct error err = ERROR_INIT;

	if (v->error.code != ERROR_OK)
		return;
	if (v->first && dir_make(v->dir, 0750, &v->error) < 0)
		return;
	/* Limits hold for the containers too: a machine without these cgroups goes on, with a warning. */
	if (v->first && v->cgroup &&
		(pod_cgroup_set_shares(v->burstable, v->burstable_shares, &err) < 0 ||
			pod_cgroup_set_shares(v->best_effort, CPU_SHARES_MIN, &err) < 0 ||
			pod_cgroup_set(v->cgroup, &v->values, &err) < 0))
		log_warning("%s", err.text);
	for (size_t i = 0; i < v->n_steps; i++)
		if (volume_set_up(&v->steps[i], &v->error) < 0) {
			v->failed = xstrdup(v->steps[i].name);
			return;
		}
}

static void volumes_failed(struct pod_worker *w, const char *volume, const char *text)
{
	_cleanup_free_ char *message =
		volume ? xasprintf("MountVolume.SetUp failed for volume \"%s\" : %s", volume, text) : xstrdup(text);

	w->volume_failures++;
	w->seen.volumes_retry_at_ns =
		node_now(w->node) + backoff_retry(w->volume_failures, RETRY_FIRST_NS / 2, RETRY_MAX_NS);
	/* Said again only when it is another one. */
	if (str_eq(w->volume_error, message))
		return;
	free(w->volume_error);
	w->volume_error = xstrdup(message);
	pod_event(w, "Warning", "FailedMount", "%s", message);
}

static void volumes_job_free(struct volumes_job *v)
{
	for (size_t i = 0; i < v->n_steps; i++)
		volume_step_done(&v->steps[i]);
	free(v->steps);
	free(v->dir);
	free(v->cgroup);
	free(v->burstable);
	free(v->best_effort);
	free(v->failed);
	free(v);
}

static void volumes_done(struct job *job)
{
	struct volumes_job *v = container_of(job, struct volumes_job, job);
	struct pod_worker *w = v->worker;

	w->seen.volumes_busy = false;
	if (!w->dead) {
		if (v->error.code == ERROR_OK) {
			w->seen.volumes = VOLUMES_READY;
			w->volume_failures = 0;
			if (v->first)
				pod_write_source(w);
			free(steal(w->volume_error));
		} else {
			/* A refresh that failed leaves what is there, and is tried again. */
			w->seen.volumes_stale = w->seen.volumes == VOLUMES_READY;
			volumes_failed(w, v->failed, v->error.text);
		}
		pod_kick(w);
	}
	volumes_job_free(v);
	pod_worker_unref(w);
}

static int64_t pod_memory_limit(const struct pod *pod)
{
	struct cgroup_values v = pod_cgroup(pod);

	return v.memory_limit;
}

/* A volume in memory may be as large as its sizeLimit, the pod's memory, and the node's. */
static int64_t tmpfs_size(const struct node *node, const struct pod *pod, const struct volume *v)
{
	int64_t size = node->cri_node.memory, limit = pod_memory_limit(pod);

	if (limit > 0)
		size = MIN(size, limit);
	if (v->has_size_limit && quantity_value(v->size_limit) > 0)
		size = MIN(size, quantity_value(v->size_limit));
	return size;
}

static int add_step(struct volumes_job *job, const struct volume *v, const struct env_sources *sources)
{
	struct pod_worker *w = job->worker;
	struct volume_step *s = &job->steps[job->n_steps];

	if (!job->first && v->kind != VOLUME_PAYLOAD)
		return 0;
	*s = (struct volume_step){ .kind = v->kind, .fs_group = w->pod->fs_group };
	job->n_steps++;
	s->name = xstrdup(v->name);
	s->path = volume_path(w->node->cri_node.root_dir, w->pod, v);
	s->host_type = xstrdup(v->host_type);
	s->on_tmpfs = v->on_tmpfs || str_eq(v->medium, "Memory");
	if (v->kind == VOLUME_EMPTY_DIR && s->on_tmpfs)
		s->size_bytes = tmpfs_size(w->node, w->pod, v);
	return v->kind == VOLUME_PAYLOAD ? payload_build(w->pod, v, sources, &s->payload, &job->error) : 0;
}

/* What all Burstable pods ask for is the weight of their class. */
static int64_t burstable_shares(const struct node *node)
{
	struct quantity sum = QUANTITY_ZERO;
	struct map_iter it = MAP_ITER_INIT;

	while (map_next(&node->workers, &it)) {
		const struct pod_worker *w = it.value;

		if (!w->orphan && !w->want.reject && pod_qos(w->pod) == QOS_BURSTABLE)
			sum = quantity_add(sum, pod_request(w->pod, "cpu"));
	}
	return MAX((int64_t)CPU_SHARES_MIN, MIN((int64_t)CPU_SHARES_MAX, quantity_milli(sum) * 1024 / 1000));
}

static void set_cgroups(struct volumes_job *v)
{
	const struct cri_node *n = &v->worker->node->cri_node;

	v->cgroup = pod_cgroup_path(n->cgroup_root, v->worker->pod, n->systemd_cgroups);
	v->values = pod_cgroup(v->worker->pod);
	v->burstable = qos_cgroup_path(n->cgroup_root, QOS_BURSTABLE, n->systemd_cgroups);
	v->best_effort = qos_cgroup_path(n->cgroup_root, QOS_BEST_EFFORT, n->systemd_cgroups);
	v->burstable_shares = burstable_shares(v->worker->node);
}

void effect_volumes_up(struct pod_worker *w)
{
	struct node *node = w->node;
	struct volumes_job *v = xnew(struct volumes_job);
	struct node_source source;
	struct str_list ips;
	struct env no_services = { 0 };
	struct env_sources sources;

	node_env_sources(node, w, &source, &ips, &no_services, &sources);
	v->job = (struct job){ .work = volumes_work, .done = volumes_done };
	v->worker = w;
	v->first = w->seen.volumes == VOLUMES_NONE;
	v->dir = pod_dir(w);
	v->steps = xcalloc(w->pod->n_volumes + 1, sizeof(*v->steps));
	if (node->cri_node.cgroups_per_qos)
		set_cgroups(v);
	for (size_t i = 0; i < w->pod->n_volumes; i++)
		if (add_step(v, &w->pod->volumes[i], &sources) < 0) {
			v->failed = xstrdup(w->pod->volumes[i].name);
			break;
		}
	w->seen.volumes_busy = true;
	w->seen.volumes_stale = false;
	w->refs++;
	job_start(node->loop, &v->job);
}

/* ---- the end */

static void volumes_down_done(struct end_job *e);
static void finish_done(struct end_job *e);

static void volumes_down_done(struct end_job *e)
{
	struct pod_worker *w = e->worker;

	w->seen.volumes_busy = false;
	if (!w->dead && e->error.code == ERROR_OK) {
		w->seen.volumes = VOLUMES_NONE;
		w->volume_failures = 0;
	} else if (!w->dead) {
		w->volume_failures++;
		w->seen.volumes_retry_at_ns =
			node_now(w->node) + backoff_retry(w->volume_failures, RETRY_FIRST_NS / 2, RETRY_MAX_NS);
		log_warning("pod=%s/%s: take down its volumes: %s", w->pod->ns, w->pod->name, e->error.text);
	}
	pod_kick(w);
}

void effect_volumes_down(struct pod_worker *w)
{
	w->seen.volumes_busy = true;
	end_pod(w->node, w->pod->uid, NULL, w, volumes_down_done);
}

static void finish_done(struct end_job *e)
{
	struct pod_worker *w = e->worker;
	struct node *node = w->node;

	w->seen.finish_busy = false;
	if (w->dead || e->error.code != ERROR_OK) {
		if (!w->dead)
			log_warning("pod=%s/%s: clean up after it: %s", w->pod->ns, w->pod->name, e->error.text);
		w->volume_failures++;
		w->seen.finish_retry_at_ns =
			node_now(node) + backoff_retry(w->volume_failures, RETRY_FIRST_NS / 2, RETRY_MAX_NS);
		pod_kick(w);
	} else {
		pod_write_status(w);
		log_info("pod=%s/%s uid=%s: gone", w->pod->ns, w->pod->name, w->pod->uid);
		node_drop_worker(node, w);
		if (!w->orphan)
			objects_remove(node->objects, KIND_POD, w->pod->ns, w->pod->name, w->pod->uid);
		logs_sweep(node);
	}
}

void effect_finish(struct pod_worker *w)
{
	_cleanup_free_ char *log_dir =
		pod_log_dir(w->node->cri_node.pod_logs_dir, w->pod->ns, w->pod->name, w->pod->uid);

	w->seen.finish_busy = true;
	end_pod(w->node, w->pod->uid, log_dir, w, finish_done);
}

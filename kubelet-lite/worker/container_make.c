/*
 * container_make.c - purpose: CreateContainer: environment, mounts and files of one container, then the call.
 *
 *	resolve (loop: objects) -> prepare files (job) -> call
 */
#include "kubelet-lite/worker/node_i.h"

#include "kubelet-lite/volume/volume.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define CREATE_RETRY_NS (10 * SECOND_NS)
enum { HOSTS_MAX = 256 * 1024 };

/* A subPath that is to be bound to `target`. */
struct sub_path {
	char *volume_dir;
	char *sub_path;
	char *target;
};

struct make_job {
	struct job job;
	struct pod_worker *worker;
	size_t index;
	struct env env;
	struct cri_mount *mounts;
	size_t n_mounts;
	struct sub_path *sub_paths;
	size_t n_sub_paths;
	char *message_file;
	char *message_path; /* in the container; "" none */
	char *hosts_file;
	char *hosts_text; /* NULL: not ours */
	char *log_dir;
	uint32_t restarts;
	bool count_logs; /* nothing is known of earlier instances but their logs */
	struct error error;
};

static void make_job_free(struct make_job *m)
{
	env_done(&m->env);
	for (size_t i = 0; i < m->n_mounts; i++) {
		free(m->mounts[i].container_path);
		free(m->mounts[i].host_path);
	}
	for (size_t i = 0; i < m->n_sub_paths; i++) {
		free(m->sub_paths[i].volume_dir);
		free(m->sub_paths[i].sub_path);
		free(m->sub_paths[i].target);
	}
	free(m->mounts);
	free(m->sub_paths);
	free(m->message_file);
	free(m->message_path);
	free(m->hosts_file);
	free(m->hosts_text);
	free(m->log_dir);
	free(m);
}

/* ---- the job */

static int write_text(const char *path, const char *text, mode_t mode, struct error *err)
{
	_cleanup_fd_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode);

	if (fd < 0 || fchmod(fd, mode) < 0)
		return error_sys(err, errno, "create %s", path);
	int r = fd_write_full(fd, text, strlen(text));
	return r < 0 ? error_sys(err, r, "write %s", path) : 0;
}

static int make_parent(const char *path, mode_t mode, struct error *err)
{
	_cleanup_free_ char *dir = xstrndup(path, (size_t)(strrchr(path, '/') - path));

	return dir_make(dir, mode, err);
}

/* One more than the largest <n>.log. */
static uint32_t next_log(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	uint32_t next = 0;

	while (d && (e = readdir(d))) {
		char *end;
		unsigned long n = strtoul(e->d_name, &end, 10);

		if (end != e->d_name && str_starts(end, ".log") && n + 1 > next && n < UINT32_MAX - 1)
			next = (uint32_t)n + 1;
	}
	if (d)
		closedir(d);
	return next;
}

static void make_work(struct job *job)
{
	struct make_job *m = container_of(job, struct make_job, job);
	struct error *err = &m->error;

	if (dir_make(m->log_dir, 0755, err) < 0)
		return;
	if (m->count_logs)
		m->restarts = next_log(m->log_dir);
	if (*m->message_path &&
		(make_parent(m->message_file, 0750, err) < 0 || write_text(m->message_file, "", 0666, err) < 0))
		return;
	if (m->hosts_text &&
		(make_parent(m->hosts_file, 0750, err) < 0 || write_text(m->hosts_file, m->hosts_text, 0644, err) < 0))
		return;
	for (size_t i = 0; i < m->n_sub_paths; i++)
		if (volume_sub_path(m->sub_paths[i].volume_dir, m->sub_paths[i].sub_path, m->sub_paths[i].target, err) <
			0) {
			error_prefix(err, "failed to prepare subPath for volumeMount");
			return;
		}
}

/* ---- the outcome */

static void create_failed(struct pod_worker *w, size_t i, const char *reason, const char *text)
{
	struct container_seen *c = &w->seen.c[i];

	c->op = OP_NONE;
	if (!str_eq(c->wait_reason, reason) || !str_eq(c->wait_message, text) || w->run[i].create_failures % 6 == 0)
		pod_event_container(w, i, "Warning", "Failed", "Error: %s", text);
	w->run[i].create_failures++;
	pod_set_wait(w, i, reason, text);
	/* Which image is there is asked again: it may be removed in the meantime. */
	c->image_ready = false;
	c->retry_at_ns = node_now(w->node) + CREATE_RETRY_NS;
	pod_kick(w);
}

static void container_created(
	struct pod_worker *w, size_t i, const char *id, const struct error *status, const void *reply)
{
	const CRI(CreateContainerResponse) *r = reply;
	struct container_seen *c = &w->seen.c[i];

	(void)id;
	c->op = OP_NONE;
	if (status->code != ERROR_OK) {
		create_failed(w, i, "CreateContainerError", status->text);
		/* It may be there all the same. */
		w->seen.observed = !cri_unclear(status);
		return;
	}
	w->run[i].create_failures = 0;
	if (c->now.state == STATE_EXITED) {
		instance_done(&c->last);
		c->last = c->now;
	} else {
		instance_done(&c->now);
	}
	c->now = (struct instance){
		.state = STATE_CREATED,
		.id = xstrdup(r->container_id),
		.sandbox_id = xstrdup(w->seen.sandbox.id),
		.restarts = w->run[i].making_restarts,
		.backoff_ns = w->run[i].making_backoff_ns,
		.hash = w->pod->containers[i].hash,
		.created_at = clock_realtime_ns(),
	};
	c->retry_at_ns = 0;
	pod_new_instance(w, i, false);
	pod_event_container(w, i, "Normal", "Created", "Container created");
}

static void call_create(struct make_job *m)
{
	struct pod_worker *w = m->worker;
	const struct container *spec = &w->pod->containers[m->index];
	struct container_seen *c = &w->seen.c[m->index];
	_cleanup_(dns_config_done) struct dns_config no_dns = { 0 };
	_cleanup_message_ CRI(PodSandboxConfig) *sandbox = NULL;
	_cleanup_message_ CRI(ContainerConfig) *config = NULL;
	CRI(CreateContainerRequest) request = RUNTIME__V1__CREATE_CONTAINER_REQUEST__INIT;
	_cleanup_free_ char *hostname = NULL;
	struct cri_container make = {
		.restarts = m->restarts,
		.backoff_ns = backoff_next(&c->now),
		.image_ref = c->image_ref,
		.image_has_uid = c->image_has_uid,
		.image_uid = c->image_uid,
		.image_user = c->image_user ? c->image_user : "",
		.env = &m->env,
		.mounts = m->mounts,
		.n_mounts = m->n_mounts,
		.message_file = *m->message_path ? m->message_file : "",
	};

	w->run[m->index].making_restarts = make.restarts;
	w->run[m->index].making_backoff_ns = make.backoff_ns;
	if (pod_hostname(w->pod, w->node->cluster_domain, &hostname, NULL) < 0)
		hostname = xstrdup("");
	sandbox = cri_sandbox_config(w->pod, w->seen.sandbox.attempt, hostname, &no_dns, &w->node->cri_node);
	config = cri_container_config(w->pod, spec, &make, &w->node->cri_node);
	request.pod_sandbox_id = w->seen.sandbox.id;
	request.config = config;
	request.sandbox_config = sandbox;
	effect_call(w, CRI_CREATE_CONTAINER, &request, 0, m->index, NULL, container_created, NULL);
}

static void make_done(struct job *job)
{
	struct make_job *m = container_of(job, struct make_job, job);
	struct pod_worker *w = m->worker;

	if (!w->dead) {
		struct container_seen *c = &w->seen.c[m->index];

		/* The world may have changed during the job. */
		if (w->want.stop || w->seen.sandbox.state != SANDBOX_READY || w->seen.sandbox.stopped)
			c->op = OP_NONE;
		else if (m->error.code != ERROR_OK)
			create_failed(w, m->index, "CreateContainerConfigError", m->error.text);
		else
			call_create(m);
		pod_kick(w);
	}
	make_job_free(m);
	pod_worker_unref(w);
}

/* ---- resolve */

static void add_mount(
	struct make_job *m, const char *container_path, char *host_path, const struct volume_mount *vm, bool read_only)
{
	m->mounts = xreallocarray(m->mounts, m->n_mounts + 1, sizeof(*m->mounts));
	m->mounts[m->n_mounts++] = (struct cri_mount){
		.container_path = xstrdup(container_path),
		.host_path = host_path,
		.read_only = read_only,
		.recursive_read_only = vm && vm->recursive_read_only,
		.propagation = vm ? vm->propagation : "",
	};
}

static int resolve_mount(struct make_job *m, size_t k, struct error *err)
{
	struct pod_worker *w = m->worker;
	const struct container *spec = &w->pod->containers[m->index];
	const struct volume_mount *vm = &spec->mounts[k];
	const struct volume *volume = pod_volume(w->pod, vm->volume);
	char *path = volume_path(w->node->cri_node.root_dir, w->pod, volume);
	bool missing = false;
	_cleanup_free_ char *sub =
		*vm->sub_path_expr ? env_expand(vm->sub_path_expr, &m->env, &missing) : xstrdup(vm->sub_path);

	if (missing) {
		free(path);
		return error_set(err, ERROR_INVALID,
			"failed to expand subPath for volumeMount \"%s\": missing value for \"%s\"", vm->volume,
			vm->sub_path_expr);
	}
	if (*sub == '/' || str_eq(sub, "..") || str_starts(sub, "../") || strstr(sub, "/../") || str_ends(sub, "/..")) {
		free(path);
		return error_set(err, ERROR_INVALID, "subPath \"%s\" must be a relative path without \"..\"", sub);
	}
	if (*sub) {
		char *target = xasprintf("%s/pods/%s/volume-subpaths/%s/%s/%zu", w->node->cri_node.root_dir,
			w->pod->uid, vm->volume, spec->name, k);

		m->sub_paths = xreallocarray(m->sub_paths, m->n_sub_paths + 1, sizeof(*m->sub_paths));
		m->sub_paths[m->n_sub_paths++] = (struct sub_path){ path, xstrdup(sub), target };
		path = xstrdup(target);
	}
	add_mount(m, vm->path, path, vm, vm->read_only || volume->kind == VOLUME_PAYLOAD);
	return 0;
}

static bool mounts_at(const struct container *c, const char *path)
{
	for (size_t i = 0; i < c->n_mounts; i++)
		if (str_eq(c->mounts[i].path, path))
			return true;
	return false;
}

static void resolve_files(struct make_job *m)
{
	struct pod_worker *w = m->worker;
	const struct container *spec = &w->pod->containers[m->index];
	_cleanup_free_ char *dir = pod_dir(w), *host = NULL;
	char suffix[9];

	random_hex(suffix, 8);
	m->message_path = xstrdup(spec->termination_path);
	m->message_file = xasprintf("%s/containers/%s/%s", dir, spec->name, suffix);
	m->hosts_file = xasprintf("%s/etc-hosts", dir);
	if (*m->message_path)
		add_mount(m, m->message_path, xstrdup(m->message_file), NULL, false);
	if (mounts_at(spec, "/etc/hosts"))
		return;
	if (w->pod->host_network && file_read(AT_FDCWD, "/etc/hosts", HOSTS_MAX, &host, NULL, NULL) < 0)
		host = xstrdup("");
	m->hosts_text = pod_hosts_file(w->pod, w->seen.ips, w->seen.n_ips, w->node->cluster_domain, host);
	add_mount(m, "/etc/hosts", xstrdup(m->hosts_file), NULL, false);
}

static int resolve(struct make_job *m, struct error *err)
{
	struct pod_worker *w = m->worker;
	const struct container *spec = &w->pod->containers[m->index];
	struct container_seen *c = &w->seen.c[m->index];
	_cleanup_(env_done) struct env services = { 0 };
	struct node_source source;
	struct str_list ips;
	struct env_sources sources;
	struct cri_container user = { .image_has_uid = c->image_has_uid,
		.image_uid = c->image_uid,
		.image_user = c->image_user ? c->image_user : "" };
	int r;

	node_service_env(w->node, w->pod, &services);
	node_env_sources(w->node, w, &source, &ips, &services, &sources);
	r = env_build(w->pod, spec, &sources, &m->env, err);
	if (r == 0)
		r = cri_check_user(w->pod, spec, &user, err);
	for (size_t k = 0; k < spec->n_mounts && r == 0; k++)
		r = resolve_mount(m, k, err);
	if (r < 0)
		return r;
	resolve_files(m);
	_cleanup_free_ char *logs = pod_log_dir(w->node->cri_node.pod_logs_dir, w->pod->ns, w->pod->name, w->pod->uid);
	m->log_dir = xasprintf("%s/%s", logs, spec->name);
	m->count_logs = c->now.state == STATE_NONE;
	m->restarts = c->now.state == STATE_NONE ? 0 : c->now.restarts + 1;
	return 0;
}

void effect_create(struct pod_worker *w, size_t i)
{
	struct make_job *m = xnew(struct make_job);
	struct error err = ERROR_INIT;

	*m = (struct make_job){ .job = { .work = make_work, .done = make_done }, .worker = w, .index = i };
	w->seen.c[i].op = OP_CREATE;
	if (resolve(m, &err) < 0) {
		create_failed(w, i, "CreateContainerConfigError", err.text);
		make_job_free(m);
		return;
	}
	w->refs++;
	job_start(w->node->loop, &m->job);
}

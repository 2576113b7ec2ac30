/* end.c - purpose: take down what a pod leaves on the node, and sweep at the start. */
#include "kubelet-lite/worker/end.h"

#include "kubelet-lite/cgroup/pods.h"
#include "kubelet-lite/volume/volume.h"

#include <dirent.h>
#include <fcntl.h>

static void work(struct job *job)
{
	struct end_job *e = container_of(job, struct end_job, job);

	/* The pod's directory goes last: it is what a sweep after a crash finds the rest by. */
	if (volumes_tear_down(e->dir, false, &e->error) < 0)
		return;
	for (size_t i = 0; i < e->cgroups.n; i++)
		if (pod_cgroup_remove(e->cgroups.v[i], &e->error) < 0)
			return;
	if (!e->log_dir)
		return;
	if (e->last)
		pod_cgroups_leave(e->node->cri_node.cgroup_root, e->node->cri_node.systemd_cgroups);
	if (*e->log_dir && dir_remove(AT_FDCWD, e->log_dir, &e->error) < 0)
		return;
	(void)!volumes_tear_down(e->dir, true, &e->error);
}

static void finished(struct job *job)
{
	struct end_job *e = container_of(job, struct end_job, job);
	struct node *node = e->node;
	struct pod_worker *w = e->worker;

	if (e->done)
		e->done(e);
	else if (e->error.code != ERROR_OK)
		log_warning("sweep: %s", e->error.text);
	free(e->dir);
	free(e->log_dir);
	strv_done(&e->cgroups);
	free(e);
	if (w)
		pod_worker_unref(w);
	node_release(node);
}

/* Of several pods that end at once each tries to remove what they share, and the last one succeeds. */
static bool others_end(struct node *node, const struct pod_worker *w)
{
	struct map_iter it = MAP_ITER_INIT;

	while (map_next(&node->workers, &it)) {
		const struct pod_worker *other = it.value;

		if (other != w && !other->want.stop)
			return false;
	}
	return true;
}

void end_pod(struct node *node, const char *uid, const char *log_dir, struct pod_worker *w,
	void (*done)(struct end_job *end))
{
	struct end_job *e = xnew(struct end_job);
	const struct cri_node *n = &node->cri_node;

	e->job = (struct job){ .work = work, .done = finished };
	e->node = node;
	e->worker = w;
	e->done = done;
	e->dir = xasprintf("%s/pods/%s", n->root_dir, uid);
	e->log_dir = xstrdup(log_dir);
	e->last = n->cgroups_per_qos && others_end(node, w);
	if (n->cgroups_per_qos)
		pod_cgroup_candidates(n->cgroup_root, uid, n->systemd_cgroups, &e->cgroups);
	node->alive++;
	if (w)
		w->refs++;
	job_start(node->loop, &e->job);
}

/* uid -> log directory ("" if none is known) of what has no worker. */
static void add_leftover(struct node *node, struct map *found, const char *uid, const char *log_dir)
{
	char *old;

	if (!*uid || node_worker(node, uid))
		return;
	if (map_get(found, uid) && !*log_dir)
		return;
	old = map_put(found, uid, xstrdup(log_dir));
	free(old);
}

static void scan(struct node *node, const char *dir, struct map *found, bool logs)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		const char *uid = strrchr(e->d_name, '_');
		_cleanup_free_ char *path = logs ? xasprintf("%s/%s", dir, e->d_name) : xstrdup("");

		if (*e->d_name == '.' || (logs && !uid))
			continue;
		add_leftover(node, found, logs ? uid + 1 : e->d_name, path);
	}
	if (d)
		closedir(d);
}

void end_sweep(struct node *node, const struct map *held)
{
	struct map found = MAP_INIT;
	struct map_iter it = MAP_ITER_INIT;
	_cleanup_free_ char *pods = xasprintf("%s/pods", node->cri_node.root_dir);

	scan(node, pods, &found, false);
	scan(node, node->cri_node.pod_logs_dir, &found, true);
	while (map_next(&found, &it)) {
		if (map_get(held, it.key))
			continue;
		log_info("sweep: pod %s is no more; removing what it left", it.key);
		end_pod(node, it.key, it.value, NULL, NULL);
	}
	map_done_values(&found, free);
}

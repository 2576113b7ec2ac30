/*
 * logs.c - purpose: container logs: where they are, the links that log agents follow, and rotation.
 *
 * Rotation: <n>.log is renamed to <n>.log.<date> and the runtime opens a new one; of the old ones the newest
 * `log_max_files - 1` stay.
 */
#include "kubelet-lite/worker/node_i.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

char *container_log_path(const struct pod_worker *w, size_t i, uint32_t restarts)
{
	_cleanup_free_ char *dir = pod_log_dir(w->node->cri_node.pod_logs_dir, w->pod->ns, w->pod->name, w->pod->uid);

	return xasprintf("%s/%s/%u.log", dir, w->pod->containers[i].name, restarts);
}

void logs_link(struct pod_worker *w, size_t i, const char *container_id)
{
	_cleanup_free_ char *target = container_log_path(w, i, w->seen.c[i].now.restarts);
	_cleanup_free_ char *link = xasprintf("%s/%s_%s_%s-%s.log", w->node->container_logs_dir, w->pod->name,
		w->pod->ns, w->pod->containers[i].name, container_id);

	if (strlen(strrchr(link, '/') + 1) > 255)
		return; /* such a name is none; the log itself is there */
	int r = symlink(target, link) < 0 ? -errno : 0;
	/* Somebody may have removed the directory since the start. */
	if (r == -ENOENT && dir_make(w->node->container_logs_dir, 0755, NULL) == 0)
		r = symlink(target, link) < 0 ? -errno : 0;
	if (r < 0 && r != -EEXIST)
		log_warning("link %s: %s", link, strerrordesc_np(-r));
}

void logs_sweep(struct node *node)
{
	DIR *d = opendir(node->container_logs_dir);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		_cleanup_free_ char *path = xasprintf("%s/%s", node->container_logs_dir, e->d_name);
		char target[4096];
		ssize_t n;

		if (e->d_type != DT_LNK || (n = readlink(path, target, sizeof(target) - 1)) <= 0)
			continue;
		target[n] = '\0';
		/* Only ours: others may keep links here as well. */
		if (str_starts(target, node->cri_node.pod_logs_dir) && access(target, F_OK) < 0 && errno == ENOENT)
			unlink(path);
	}
	if (d)
		closedir(d);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Removes the oldest rotated files of one log. */
static void drop_old(const char *log, unsigned keep)
{
	_cleanup_free_ char *dir = xstrndup(log, (size_t)(strrchr(log, '/') - log));
	_cleanup_free_ char *prefix = xasprintf("%s.", strrchr(log, '/') + 1);
	_cleanup_(strv_done) struct strv names = STRV_INIT;
	DIR *d = opendir(dir);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (str_starts(e->d_name, prefix))
			strv_add(&names, e->d_name);
	if (d)
		closedir(d);
	if (names.n <= keep)
		return;
	qsort(names.v, names.n, sizeof(char *), by_name);
	for (size_t i = 0; i < names.n - keep; i++) {
		_cleanup_free_ char *path = xasprintf("%s/%s", dir, names.v[i]);

		unlink(path);
	}
}

/* A rotation under way. */
struct rotation {
	char *log;
	char *rotated;
};

static void on_reopened(void *data, const struct error *status, const void *reply)
{
	struct rotation *r = data;

	(void)reply;
	if (status->code != ERROR_OK && access(r->log, F_OK) < 0) {
		/* The runtime writes on into the old file: give it its name back. */
		log_warning("rotate %s: %s", r->log, status->text);
		(void)!rename(r->rotated, r->log);
	}
	free(r->log);
	free(r->rotated);
	free(r);
}

static void rotate(struct node *node, const char *log, const char *container_id)
{
	CRI(ReopenContainerLogRequest) request = RUNTIME__V1__REOPEN_CONTAINER_LOG_REQUEST__INIT;
	struct rotation *r = xnew(struct rotation);
	time_t now = (time_t)(clock_realtime_ns() / 1000000000);
	struct tm tm;
	char date[32];

	gmtime_r(&now, &tm);
	strftime(date, sizeof(date), "%Y%m%d-%H%M%S", &tm);
	r->log = xstrdup(log);
	r->rotated = xasprintf("%s.%s", log, date);
	if (rename(r->log, r->rotated) < 0) {
		log_warning("rotate %s: %s", log, strerrordesc_np(errno));
		free(r->log);
		free(r->rotated);
		free(r);
		return;
	}
	drop_old(log, node->log_max_files - 1);
	request.container_id = (char *)container_id;
	cri_call(node->cri, CRI_REOPEN_CONTAINER_LOG, &request, 0, on_reopened, r);
}

void logs_rotate(struct node *node)
{
	struct map_iter it = MAP_ITER_INIT;

	while (map_next(&node->workers, &it)) {
		struct pod_worker *w = it.value;

		for (size_t i = 0; i < w->seen.n && !w->orphan; i++) {
			const struct instance *now = &w->seen.c[i].now;
			struct stat st;

			if (now->state != STATE_RUNNING)
				continue;
			_cleanup_free_ char *log = container_log_path(w, i, now->restarts);
			if (stat(log, &st) == 0 && st.st_size >= node->log_max_bytes)
				rotate(node, log, now->id);
		}
	}
}

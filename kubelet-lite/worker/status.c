/*
 * status.c - purpose: the pod's status into the object store when it has changed, and beside it on disk.
 *
 * <root>/pods/<uid>/status.json is what an API server would keep for us: start time, since when conditions hold, and
 * which instances were ready. It is written beside and renamed; losing the last version in a power cut does no harm, so
 * nothing waits for the disk.
 */
#include "kubelet-lite/worker/node_i.h"

#include "common/base/codec.h"

#include <fcntl.h>
#include <stdio.h>

enum { CHECKPOINT_MAX = 1024 * 1024 };

static void write_file(const char *dir, const char *name, const char *text)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", dir, name);
	_cleanup_free_ char *beside = xasprintf("%s/.%s.new", dir, name);
	int fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return; /* no directory yet, or no more */
	bool ok = fd_write_full(fd, text, strlen(text)) == 0;
	close(fd);
	if (!ok || rename(beside, path) < 0)
		unlink(beside);
}

static uint32_t hash_text(const char *text)
{
	uint32_t h = 2166136261u;

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 16777619u;
	return h ? h : 1;
}

static void put(struct pod_worker *w, const json_t *status)
{
	struct error err = ERROR_INIT;

	w->node->putting = true;
	int r = objects_put_status(w->node->objects, KIND_POD, w->pod->ns, w->pod->name, status, &err);
	w->node->putting = false;
	if (r < 0)
		log_warning("pod=%s/%s: its status: %s", w->pod->ns, w->pod->name, err.text);
}

void pod_write_status(struct pod_worker *w)
{
	struct node *node = w->node;
	struct status_context context = {
		.now_ns = node_now(node),
		.now_at = clock_realtime_ns(),
		.start_at = w->start_at,
		.host_ip = node->host_list.n ? node->host_list.v[0] : "",
		.host_ips = &node->host_list,
		.runtime = node->runtime_name,
		.reason = w->reason,
		.message = w->message,
	};

	if (w->orphan || !pod_object(w))
		return;
	_cleanup_json_ json_t *status = pod_status(&w->want, &w->seen, &context, &w->times);
	_cleanup_free_ char *text = json_text(status);
	uint32_t hash = hash_text(text);

	if (hash == w->status_hash)
		return;
	w->status_hash = hash;
	put(w, status);
	if (w->seen.finish_busy)
		return; /* the directory is being removed */
	_cleanup_free_ char *dir = pod_dir(w);
	write_file(dir, "status.json", text);
}

void pod_write_source(struct pod_worker *w)
{
	const struct object *object = pod_object(w);
	_cleanup_free_ char *dir = pod_dir(w);

	if (object && object->source)
		write_file(dir, "source", object->source);
	w->status_hash = 0; /* there may not have been a directory for the status before */
}

void pod_read_checkpoint(struct pod_worker *w)
{
	_cleanup_free_ char *dir = pod_dir(w);
	_cleanup_free_ char *path = xasprintf("%s/status.json", dir);
	_cleanup_free_ char *text = NULL;
	size_t len;
	int64_t at;

	if (file_read(AT_FDCWD, path, CHECKPOINT_MAX, &text, &len, NULL) < 0 ||
		json_read(text, len, false, &w->last_status, NULL) < 0)
		return;
	condition_times_read(&w->times, w->last_status);
	if (time_parse(json_str_at(w->last_status, "startTime", ""), &at) == 0)
		w->start_at = (uint64_t)at;
}

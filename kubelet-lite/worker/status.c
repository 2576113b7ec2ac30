/*
 * status.c - purpose: the pod's status into the object store when it has changed, and beside it on disk.
 *
 * <root>/pods/<uid>/status.json is what an API server would keep for us: start time, since when conditions hold, and
 * which instances were ready; and that a pod has reached its end, which holds until the machine is booted again (the
 * file "boot" says for which boot). It is written beside and renamed; losing the last version in a power cut does no harm, so
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

static bool is_end(const char *phase)
{
	return str_eq(phase, "Succeeded") || str_eq(phase, "Failed");
}

/* Down to the sandbox, and not because somebody deletes it. */
static bool has_ended(const struct pod_worker *w)
{
	return !w->want.reject && !w->want.forget && w->seen.observed && is_end(pod_phase(&w->want, &w->seen)) &&
	       (w->seen.sandbox.state == SANDBOX_NONE || w->seen.sandbox.stopped);
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
	_cleanup_json_ json_t *status = w->final_status ? NULL : pod_status(&w->want, &w->seen, &context, &w->times);
	if (w->final_status && json_read(w->final_status, strlen(w->final_status), false, &status, NULL) < 0)
		return;
	_cleanup_free_ char *text = json_text(status);
	uint32_t hash = hash_text(text);

	if (!w->want.done && has_ended(w)) {
		w->want.done = true;
		w->final_status = xstrdup(text);
	}

	if (hash == w->status_hash)
		return;
	w->status_hash = hash;
	put(w, status);
	if (w->seen.finish_busy || w->want.reject)
		return; /* the directory is being removed; a refusal is decided anew */
	_cleanup_free_ char *dir = pod_dir(w);
	write_file(dir, "status.json", text);
}

void pod_write_source(struct pod_worker *w)
{
	const struct object *object = pod_object(w);
	_cleanup_free_ char *dir = pod_dir(w);

	if (object && object->source)
		write_file(dir, "source", object->source);
	write_file(dir, "boot", w->node->boot_id);
	w->status_hash = 0; /* there may not have been a directory for the status before */
}

static bool same_boot(const struct pod_worker *w, const char *dir)
{
	_cleanup_free_ char *path = xasprintf("%s/boot", dir);
	_cleanup_free_ char *boot = NULL;

	return file_read(AT_FDCWD, path, 256, &boot, NULL, NULL) == 0 && str_eq(boot, w->node->boot_id);
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
	if (is_end(json_str_at(w->last_status, "phase", "")) && same_boot(w, dir)) {
		w->want.done = true;
		w->final_status = steal(text);
	}
}

/*
 * watch.c - purpose: hear from the pods' monitors on the loop: what ended, and monitors that died.
 *
 * An event only says when to look: the truth is the exit file, which the monitor has written before it speaks. A monitor
 * that died takes its pod with it: what is left of the pod is killed and the sandbox is NOTREADY within moments, so that
 * nothing is reported as running that nobody reaps.
 */
#include "runtime-lite/cri/watch.h"

#include "common/base/log.h"
#include "common/net/job.h"
#include "runtime-lite/engine/pod.h"

#include <errno.h>
#include <fcntl.h>

struct watch {
	uv_poll_t poll;
	struct service *svc;
	struct sandbox *sandbox;
	int fd;
	struct watch *next;
};

struct watches {
	struct watch *first;
};

struct gone {
	struct job job;
	struct service *svc;
	struct sandbox *sandbox;
};

struct watches *watches_new(struct service *svc)
{
	(void)svc;
	return xnew(struct watches);
}

void watches_free(struct watches *w)
{
	free(w);
}

static void on_closed(uv_handle_t *handle)
{
	struct watch *w = handle->data;

	close(w->fd);
	sandbox_unref(w->sandbox);
	free(w);
}

static void watch_close(struct watch *w)
{
	struct watch **link = &w->svc->watches->first;

	while (*link && *link != w)
		link = &(*link)->next;
	if (*link)
		*link = w->next;
	uv_poll_stop(&w->poll);
	uv_close((uv_handle_t *)&w->poll, on_closed);
}

void watches_close(struct watches *w)
{
	while (w->first)
		watch_close(w->first);
}

/* Worker thread. */
static void gone_work(struct job *job)
{
	struct gone *g = container_of(job, struct gone, job);
	struct store *store = g->svc->store;
	struct sandbox *s = g->sandbox;
	struct error err = ERROR_INIT;

	if (pod_cleanup(s->dir, &err) < 0)
		log_warning("pod sandbox %s: clean up after its monitor died: %s", s->id, err.text);
	store_sync_exits(store, s);
	store_lock(store);
	bool changed = s->state == SANDBOX_READY && !s->stopping;
	if (changed) {
		s->state = SANDBOX_NOTREADY;
		store_notify(store, CHANGE_STOPPED, s, NULL);
	}
	store_unlock(store);
	if (changed && store_save_sandbox(store, s, &err) < 0)
		log_warning("pod sandbox %s: %s", s->id, err.text);
}

static void gone_done(struct job *job)
{
	struct gone *g = container_of(job, struct gone, job);

	sandbox_unref(g->sandbox);
	free(g);
}

static void monitor_gone(struct service *svc, struct sandbox *s)
{
	store_lock(svc->store);
	bool expected = s->stopping || s->state != SANDBOX_READY;
	s->monitor_gone = true;
	store_unlock(svc->store);
	if (expected)
		return;
	log_warning("pod sandbox %s: its monitor has died: pod=%s/%s is torn down", s->id,
		s->config->metadata->namespace_, s->config->metadata->name);
	struct gone *g = xnew(struct gone);
	g->job = (struct job){ .work = gone_work, .done = gone_done };
	g->svc = svc;
	g->sandbox = sandbox_ref(s);
	job_start(svc->loop, &g->job);
}

static void container_ended(struct service *svc, const struct pod_event *event)
{
	struct store *store = svc->store;

	store_lock(store);
	struct container *c = map_get(&store->containers, event->container_id);
	if (c && c->starting)
		c->exit_pending = true;
	else if (c && container_set_exited(c, &event->exit)) {
		log_info("container %s ended: exit code %d%s", c->id, c->exit_code, c->oom ? ", out of memory" : "");
		store_notify(store, CHANGE_STOPPED, c->sandbox, c);
	}
	store_unlock(store);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
	struct watch *w = poll->data;
	struct pod_event event;

	(void)events;
	while (pod_monitor_next_event(w->sandbox->monitor, &event) > 0) {
		if (event.kind == POD_EVENT_EXITED) {
			container_ended(w->svc, &event);
		} else if (event.kind == POD_EVENT_GONE) {
			monitor_gone(w->svc, w->sandbox);
			watch_close(w);
			return;
		}
	}
	if (status < 0) {
		log_error("pod sandbox %s: cannot watch its monitor: %s", w->sandbox->id, uv_strerror(status));
		watch_close(w);
	}
}

static void start(void *data)
{
	struct watch *w = data;

	w->poll.data = w;
	w->next = w->svc->watches->first;
	w->svc->watches->first = w;
	int r = uv_poll_init(w->svc->loop, &w->poll, w->fd);
	if (r == 0)
		r = uv_poll_start(&w->poll, UV_READABLE | UV_DISCONNECT, on_readable);
	if (r < 0)
		log_error("pod sandbox %s: cannot watch its monitor: %s", w->sandbox->id, uv_strerror(r));
}

void watch_add(struct service *svc, struct sandbox *s)
{
	struct watch *w = xnew(struct watch);

	w->svc = svc;
	w->sandbox = sandbox_ref(s);
	/* Our own descriptor: the monitor's may be closed by the last owner of the sandbox. */
	w->fd = fcntl(pod_monitor_fd(s->monitor), F_DUPFD_CLOEXEC, 3);
	if (w->fd < 0) {
		log_error("pod sandbox %s: cannot watch its monitor: %s", s->id, strerrordesc_np(errno));
		sandbox_unref(w->sandbox);
		free(w);
		return;
	}
	service_post(svc, start, w);
}

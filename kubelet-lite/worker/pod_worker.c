/*
 * pod_worker.c - purpose: one pod: think (pod_plan), act (effects), fold in what came of it, and think again.
 *
 *	new -> observed (what does the runtime have?) -> admitted or refused -> reconciled at each kick -> finished ->
 *freed
 */
#include "kubelet-lite/worker/node_i.h"

#include "kubelet-lite/core/container_status.h"
#include "kubelet-lite/observe/observe.h"

#include <stdarg.h>
#include <stdio.h>

static void on_wake(uv_timer_t *timer)
{
	pod_kick(timer->data);
}

struct pod_worker *pod_worker_new(struct node *node, struct pod *pod, bool orphan)
{
	struct pod_worker *w = xnew(struct pod_worker);

	w->node = node;
	w->pod = pod;
	w->orphan = orphan;
	w->want.pod = pod;
	w->refs = 1; /* the node's */
	node->alive++;
	w->grace_ns = INT64_MAX;
	w->run = xcalloc(pod->n_containers + 1, sizeof(*w->run));
	for (size_t i = 0; i < pod->n_containers; i++)
		w->run[i] = (struct container_run){ .worker = w, .index = i };
	pod_seen_init(&w->seen, pod->n_containers);
	uv_timer_init(node->loop, &w->wake);
	w->wake.data = w;
	if (!orphan)
		pod_read_checkpoint(w);
	return w;
}

static void on_wake_closed(uv_handle_t *handle)
{
	struct pod_worker *w = handle->data;
	struct node *node = w->node;

	for (size_t i = 0; i < w->pod->n_containers; i++)
		free(w->run[i].backoff_announced);
	free(w->run);
	pod_seen_done(&w->seen);
	json_decref(w->last_status);
	free(w->final_status);
	free(w->message);
	free(w->volume_error);
	pod_free(w->pod);
	free(w);
	node_release(node);
}

void pod_worker_unref(struct pod_worker *w)
{
	assert(w->refs > 0);
	if (--w->refs > 0)
		return;
	for (struct pod_worker **p = &w->node->kicked; *p; p = &(*p)->next_kicked)
		if (*p == w) {
			*p = w->next_kicked;
			break;
		}
	uv_close((uv_handle_t *)&w->wake, on_wake_closed);
}

void pod_worker_kill(struct pod_worker *w)
{
	if (w->dead)
		return;
	w->dead = true;
	for (size_t i = 0; i < w->pod->n_containers; i++) {
		prober_stop(w, i);
		effect_give_up(w, i);
	}
	observe_cancel(w);
	uv_timer_stop(&w->wake);
	pod_worker_unref(w);
}

void pod_kick(struct pod_worker *w)
{
	if (w->dead || w->is_kicked)
		return;
	w->is_kicked = true;
	w->next_kicked = w->node->kicked;
	w->node->kicked = w;
	node_wake(w->node);
}

const struct object *pod_object(const struct pod_worker *w)
{
	const struct object *o = objects_get(w->node->objects, KIND_POD, w->pod->ns, w->pod->name);

	return o && str_eq(o->uid, w->pod->uid) ? o : NULL;
}

const char *pod_address(const struct pod_worker *w)
{
	const struct str_list *host = &w->node->host_list;

	if (w->pod->host_network)
		return host->n ? host->v[0] : "127.0.0.1";
	return w->seen.n_ips ? w->seen.ips[0] : "";
}

char *pod_dir(const struct pod_worker *w)
{
	return xasprintf("%s/pods/%s", w->node->cri_node.root_dir, w->pod->uid);
}

static void event(struct pod_worker *w, const char *field_path, const char *type, const char *reason, const char *fmt,
	va_list args)
{
	const struct object *object = pod_object(w);
	struct str text = STR_INIT;

	str_vaddf(&text, fmt, args);
	if (object && field_path)
		events_record_at(w->node->objects, object, field_path, type, reason, "kubelet", "%s", str_get(&text));
	else if (object)
		events_record(w->node->objects, object, type, reason, "kubelet", "%s", str_get(&text));
	else
		events_record_for(w->node->objects, "Pod", w->pod->ns, w->pod->name, w->pod->uid, type, reason,
			"kubelet", "%s", str_get(&text));
	str_done(&text);
}

void pod_event(struct pod_worker *w, const char *type, const char *reason, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	event(w, NULL, type, reason, fmt, args);
	va_end(args);
}

void pod_event_container(struct pod_worker *w, size_t i, const char *type, const char *reason, const char *fmt, ...)
{
	_cleanup_free_ char *path = pod_field_path(&w->pod->containers[i]);
	va_list args;

	va_start(args, fmt);
	event(w, path, type, reason, fmt, args);
	va_end(args);
}

void pod_set_wait(struct pod_worker *w, size_t i, const char *reason, const char *message)
{
	struct container_seen *c = &w->seen.c[i];

	free(c->wait_reason);
	free(c->wait_message);
	c->wait_reason = xstrdup(reason);
	c->wait_message = xstrdup(message);
}

void pod_clear_wait(struct pod_worker *w, size_t i)
{
	struct container_seen *c = &w->seen.c[i];

	free(steal(c->wait_reason));
	free(steal(c->wait_message));
}

/* What the status on disk said of this very instance: a restart of ours does not make a ready pod unready. */
static void restore_probes(struct pod_worker *w, size_t i)
{
	struct container_seen *c = &w->seen.c[i];
	static const char *const lists[] = { "containerStatuses", "initContainerStatuses" };

	for (size_t k = 0; k < ARRAY_LEN(lists); k++) {
		const json_t *list = json_object_get(w->last_status, lists[k]);

		for (size_t j = 0; j < json_array_size(list); j++) {
			const json_t *o = json_array_get(list, j);
			const char *id = json_string_value(json_object_get(o, "containerID"));
			const char *slashes = id ? strstr(id, "://") : NULL;

			if (!slashes || !str_eq(slashes + 3, c->now.id))
				continue;
			if (json_is_true(json_object_get(o, "started")))
				c->probe[PROBE_STARTUP] = PROBE_SUCCESS;
			if (json_is_true(json_object_get(o, "ready")))
				c->probe[PROBE_READINESS] = PROBE_SUCCESS;
		}
	}
}

void pod_new_instance(struct pod_worker *w, size_t i, bool adopted)
{
	struct container_seen *c = &w->seen.c[i];

	prober_stop(w, i);
	for (int k = 0; k < PROBE_KINDS; k++)
		c->probe[k] = probe_initial((enum probe_kind)k);
	c->killing = c->pre_stop_done = false;
	c->post_start_done = adopted && c->now.state != STATE_CREATED;
	if (adopted)
		restore_probes(w, i);
}

/* Deletion, or the end of activeDeadlineSeconds. */
void pod_stop(struct pod_worker *w, bool forget, int64_t grace_ns)
{
	int64_t now = node_now(w->node);

	if (!w->want.stop) {
		w->want.stop = true;
		w->stop_at_ns = now;
	}
	w->want.forget = w->want.forget || forget;
	w->grace_ns = MIN(w->grace_ns, MAX(grace_ns, SECOND_NS));
	for (size_t i = 0; i < w->seen.n; i++) {
		struct container_seen *c = &w->seen.c[i];

		if (c->killing && c->kill_deadline_ns > now + w->grace_ns) {
			c->kill_deadline_ns = now + w->grace_ns;
			effect_hurry(w, i);
		}
		if (c->op == OP_IMAGE || c->op == OP_POST_START)
			effect_give_up(w, i);
	}
	pod_kick(w);
}

static bool kv_equal(const struct kv_list *a, const struct kv_list *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (!str_eq(kv_get(b, a->v[i].key), a->v[i].value))
			return false;
	return true;
}

void pod_update(struct pod_worker *w, struct pod *pod)
{
	int64_t grace = pod->deletion_grace_seconds >= 0 ? pod->deletion_grace_seconds : pod->grace_seconds;

	if (pod->n_containers != w->pod->n_containers || pod->n_volumes != w->pod->n_volumes) {
		log_error("pod=%s/%s: its spec has changed under the same uid; ignored", pod->ns, pod->name);
		pod_free(pod);
		return;
	}
	if (!kv_equal(&pod->labels, &w->pod->labels) || !kv_equal(&pod->annotations, &w->pod->annotations))
		w->seen.volumes_stale = w->seen.volumes == VOLUMES_READY;
	pod_free(w->pod);
	w->pod = pod;
	w->want.pod = pod;
	if (pod->deleting)
		pod_stop(w, true, grace * SECOND_NS);
	pod_kick(w);
}

/* One event for each time that a container enters its back-off. */
static void announce_backoffs(struct pod_worker *w, int64_t now)
{
	for (size_t i = 0; i < w->seen.n; i++) {
		const struct instance *instance = &w->seen.c[i].now;
		int64_t wait;

		if (!container_backs_off(&w->want, &w->seen, i, now, &wait) ||
			str_eq(w->run[i].backoff_announced, instance->id))
			continue;
		free(w->run[i].backoff_announced);
		w->run[i].backoff_announced = xstrdup(instance->id);
		pod_event_container(w, i, "Warning", "BackOff",
			"Back-off restarting failed container %s in pod %s_%s(%s)", w->pod->containers[i].name,
			w->pod->name, w->pod->ns, w->pod->uid);
	}
}

static void check_deadline(struct pod_worker *w, int64_t now)
{
	if (!w->deadline_ns || w->want.stop || w->want.done || now < w->deadline_ns)
		return;
	w->want.fail = true;
	w->reason = "DeadlineExceeded";
	free(w->message);
	w->message = xstrdup("Pod was active on the node longer than the specified deadline");
	pod_event(w, "Normal", "DeadlineExceeded", "%s", w->message);
	pod_stop(w, false, w->pod->grace_seconds * SECOND_NS);
}

static void set_wake(struct pod_worker *w, int64_t at, int64_t now)
{
	if (w->deadline_ns && !w->want.stop && !w->want.done && (!at || w->deadline_ns < at))
		at = w->deadline_ns;
	if (!at) {
		uv_timer_stop(&w->wake);
		return;
	}
	/* One millisecond late rather than early. */
	uint64_t ms = at > now ? (uint64_t)(at - now) / 1000000 + 1 : 1;

	uv_timer_start(&w->wake, on_wake, ms, 0);
}

static void act(struct pod_worker *w, int64_t now)
{
	struct pod_plan plan;

	check_deadline(w, now);
	pod_plan(&w->want, &w->seen, now, &plan);
	for (size_t i = 0; i < plan.n && !w->dead; i++)
		effect_run(w, &plan.v[i]);
	if (!w->dead)
		set_wake(w, plan.wake_ns, now);
	pod_plan_done(&plan);
}

static bool observed(struct pod_worker *w, int64_t now)
{
	if (w->seen.observed)
		return true;
	if (w->observation)
		return false;
	if (now >= w->observe_retry_ns)
		observe_pod(w);
	else
		set_wake(w, w->observe_retry_ns, now);
	return false;
}

void pod_reconcile(struct pod_worker *w)
{
	int64_t now = node_now(w->node);

	w->node->count_reconciles++;
	if (w->dead || !w->node->ready)
		return;
	if (!observed(w, now) && !w->adopted)
		return;
	if (!w->seen.observed || !w->admitted || w->wait_list || node_name_taken(w->node, w)) {
		pod_write_status(w);
		return;
	}
	w->refs++;
	act(w, now);
	if (!w->dead) {
		prober_sync(w);
		announce_backoffs(w, now);
		pod_write_status(w);
	}
	pod_worker_unref(w);
}

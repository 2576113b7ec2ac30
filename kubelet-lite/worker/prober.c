/*
 * prober.c - purpose: the probes of a pod's containers: when to check, and what the results mean to the pod.
 *
 * One task for each probe of a running instance, with one timer; at most one check of it is under way. Tasks hold the
 * indices of pod and container only, and end with the instance.
 */
#include "kubelet-lite/worker/node_i.h"

#include "kubelet-lite/worker/handler.h"

struct probe_task {
	struct pod_worker *worker;
	size_t index;
	enum probe_kind kind;
	uv_timer_t timer;
	char *instance; /* id of the container it is for */
	struct probe_run run;
	struct handler_run *check;
};

static const struct probe *probe_of(const struct probe_task *t)
{
	return &t->worker->pod->containers[t->index].probes[t->kind];
}

static void on_closed(uv_handle_t *handle)
{
	struct probe_task *t = handle->data;
	struct pod_worker *w = t->worker;

	free(t->instance);
	free(t);
	pod_worker_unref(w);
}

static void task_stop(struct pod_worker *w, size_t i, int kind)
{
	struct probe_task *t = w->run[i].probes[kind];

	if (!t)
		return;
	w->run[i].probes[kind] = NULL;
	if (t->check)
		handler_cancel(t->check);
	t->check = NULL;
	uv_close((uv_handle_t *)&t->timer, on_closed);
}

void prober_stop(struct pod_worker *w, size_t i)
{
	for (int k = 0; k < PROBE_KINDS; k++)
		task_stop(w, i, k);
}

static void on_timer(uv_timer_t *timer);

static void set_result(struct probe_task *t, enum probe_result result)
{
	struct pod_worker *w = t->worker;
	struct container_seen *c = &w->seen.c[t->index];

	if (c->probe[t->kind] == result)
		return;
	c->probe[t->kind] = result;
	pod_kick(w);
	/* Started: the others need not wait for their next turn. */
	for (int k = 0; t->kind == PROBE_STARTUP && result == PROBE_SUCCESS && k < PROBE_KINDS; k++) {
		struct probe_task *other = w->run[t->index].probes[k];

		if (other && k != PROBE_STARTUP)
			uv_timer_start(&other->timer, on_timer, 0, (uint64_t)probe_of(other)->period_seconds * 1000);
	}
}

static void on_checked(void *data, enum probe_outcome outcome, const char *text)
{
	struct probe_task *t = data;
	struct pod_worker *w = t->worker;
	struct container_seen *c = &w->seen.c[t->index];
	const char *name = probe_kind_name(t->kind);

	t->check = NULL;
	if (!str_eq(c->now.id, t->instance) || c->now.state != STATE_RUNNING)
		return;
	if (outcome == PROBE_FAILED)
		pod_event_container(w, t->index, "Warning", "Unhealthy", "%s probe failed: %s", name, text);
	else if (outcome == PROBE_ERROR && w->node->runtime_up)
		pod_event_container(w, t->index, "Warning", "Unhealthy", "%s probe errored: %s", name, text);
	set_result(t, probe_fold(probe_of(t), t->kind, &t->run, outcome, c->probe[t->kind]));
}

/* Is it time for a check at all? */
static bool wanted(const struct probe_task *t)
{
	const struct pod_worker *w = t->worker;
	const struct container_seen *c = &w->seen.c[t->index];
	int64_t delay = probe_of(t)->initial_delay_seconds * SECOND_NS;

	if (t->check || t->run.on_hold || c->now.state != STATE_RUNNING || (c->killing && t->kind != PROBE_READINESS))
		return false;
	if (t->kind != PROBE_STARTUP && !seen_started(&w->pod->containers[t->index], c))
		return false;
	return node_now(w->node) - c->now.started_ns >= delay;
}

/* A probe's command with $(VAR) replaced, by what the manifest itself says of the environment. */
static struct handler expanded(struct arena *arena, const struct container *spec, const struct handler *handler)
{
	struct handler out = *handler;
	struct env env = { 0 };
	bool any = false;

	for (size_t i = 0; i < handler->command.n; i++)
		any = any || strstr(handler->command.v[i], "$(") || strstr(handler->command.v[i], "$$");
	if (handler->kind != HANDLER_EXEC || !any)
		return out;
	env_static(spec, &env);
	out.command.v = arena_array(arena, out.command.n, sizeof(*out.command.v));
	for (size_t i = 0; i < out.command.n; i++) {
		_cleanup_free_ char *word = env_expand(handler->command.v[i], &env, NULL);

		out.command.v[i] = arena_strdup(arena, word);
	}
	env_done(&env);
	return out;
}

static void on_timer(uv_timer_t *timer)
{
	struct probe_task *t = timer->data;
	struct pod_worker *w = t->worker;
	const struct probe *probe = probe_of(t);
	const struct container *spec = &w->pod->containers[t->index];

	if (!wanted(t))
		return;
	struct arena arena = ARENA_INIT;
	struct handler handler = expanded(&arena, spec, &probe->handler);

	t->check = handler_start(&handler,
		&(struct handler_target){ .loop = w->node->loop,
			.cri = w->node->cri,
			.container_id = t->instance,
			.address = str_empty(probe->handler.host) ? pod_address(w) : probe->handler.host,
			.port = container_port_number(spec, &probe->handler.port),
			.user_agent = "kube-probe/1.36",
			.timeout_ms = (uint64_t)probe->timeout_seconds * 1000 },
		on_checked, t);
	arena_done(&arena);
}

static uint64_t spread(const char *id)
{
	uint64_t h = 14695981039346656037u;

	for (; *id; id++)
		h = (h ^ (unsigned char)*id) * 1099511628211u;
	return h;
}

/* After a restart of ours all pods are there at once: their probes are spread over a period. A new instance is checked
 * as soon as its delay allows. */
static uint64_t first_ms(const struct probe_task *t, int64_t now)
{
	const struct pod_worker *w = t->worker;
	const struct instance *instance = &w->seen.c[t->index].now;
	uint64_t period = (uint64_t)probe_of(t)->period_seconds * 1000;
	int64_t due = instance->started_ns + probe_of(t)->initial_delay_seconds * SECOND_NS;

	if (instance->started_ns < (int64_t)w->node->started_ns)
		return (spread(instance->id) + (uint64_t)t->kind * 7919) % period;
	return due > now ? (uint64_t)(due - now) / 1000000 + 1 : 0;
}

static void task_start(struct pod_worker *w, size_t i, enum probe_kind kind)
{
	struct probe_task *t = xnew(struct probe_task);

	*t = (struct probe_task){ .worker = w, .index = i, .kind = kind, .instance = xstrdup(w->seen.c[i].now.id) };
	uv_timer_init(w->node->loop, &t->timer);
	t->timer.data = t;
	w->refs++;
	w->run[i].probes[kind] = t;
	/* One that has started already (before a restart of ours) is not asked again. */
	t->run.on_hold = kind == PROBE_STARTUP && w->seen.c[i].probe[kind] == PROBE_SUCCESS;
	uv_timer_start(
		&t->timer, on_timer, first_ms(t, node_now(w->node)), (uint64_t)probe_of(t)->period_seconds * 1000);
}

void prober_sync(struct pod_worker *w)
{
	for (size_t i = 0; i < w->seen.n; i++) {
		const struct container_seen *c = &w->seen.c[i];

		for (int k = 0; k < PROBE_KINDS; k++) {
			const struct probe_task *t = w->run[i].probes[k];
			/* Readiness goes on to the end, so that Services see it. */
			bool want = w->pod->containers[i].probes[k].handler.kind != HANDLER_NONE &&
				    c->now.state == STATE_RUNNING && (!w->want.stop || k == PROBE_READINESS);

			if (t && (!want || !str_eq(t->instance, c->now.id)))
				task_stop(w, i, k);
			if (want && !w->run[i].probes[k])
				task_start(w, i, (enum probe_kind)k);
		}
	}
}

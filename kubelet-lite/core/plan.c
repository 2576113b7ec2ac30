/* plan.c - purpose: what to do next for one pod. */
#include "kubelet-lite/core/plan.h"

#include "kubelet-lite/core/backoff.h"
#include "kubelet-lite/core/order.h"

/* A pod that is to stop waits so long for a start in flight: it may hang on a volume. */
#define START_PATIENCE_NS (5 * SECOND_NS)

struct planner {
	const struct pod_want *want;
	const struct pod *pod;
	const struct pod_seen *seen;
	int64_t now;
	struct pod_plan *plan;
};

static void act(struct planner *p, struct action action)
{
	p->plan->v = xreallocarray(p->plan->v, p->plan->n + 1, sizeof(*p->plan->v));
	p->plan->v[p->plan->n++] = action;
}

static void wake_at(struct planner *p, int64_t at)
{
	if (!p->plan->wake_ns || at < p->plan->wake_ns)
		p->plan->wake_ns = at;
}

static bool is_due(struct planner *p, int64_t at)
{
	if (p->now >= at)
		return true;
	wake_at(p, at);
	return false;
}

static void act_when_due(struct planner *p, struct action action, int64_t at)
{
	if (is_due(p, at))
		act(p, action);
}

/* A kill that has begun: goes on to the stop when its turn has come. */
static void plan_kill_on(struct planner *p, size_t i, bool whole_pod)
{
	const struct container_seen *c = &p->seen->c[i];
	bool overdue = p->now >= c->kill_deadline_ns;

	if (c->op == OP_STOP)
		return;
	bool turn = c->pre_stop_done && (!whole_pod || order_stop_turn(p->pod, p->seen, i));
	if (turn || overdue)
		act_when_due(p, (struct action){ .kind = ACT_STOP, .index = i }, c->retry_at_ns);
	else
		wake_at(p, c->kill_deadline_ns);
}

static void plan_kill(struct planner *p, size_t i, enum kill_reason reason)
{
	const struct container_seen *c = &p->seen->c[i];

	if (c->killing)
		plan_kill_on(p, i, reason == KILL_POD);
	else if (c->op != OP_CREATE && c->op != OP_START)
		act(p, (struct action){ .kind = ACT_KILL, .index = i, .reason = reason });
}

static void plan_leftovers(struct planner *p, bool all)
{
	for (size_t i = 0; i < p->seen->n_leftovers; i++) {
		const struct leftover *l = &p->seen->leftovers[i];

		if (l->busy)
			continue;
		if (l->running)
			act_when_due(p, (struct action){ .kind = ACT_LEFTOVER_STOP, .index = i }, l->retry_at_ns);
		else if (!l->kept || all)
			act_when_due(p, (struct action){ .kind = ACT_LEFTOVER_REMOVE, .index = i }, l->retry_at_ns);
	}
}

static bool leftovers_running(const struct pod_seen *seen)
{
	for (size_t i = 0; i < seen->n_leftovers; i++)
		if (seen->leftovers[i].running || seen->leftovers[i].busy)
			return true;
	return false;
}

/* Stops what lives. True when all is down and nothing is in flight. */
static bool plan_all_down(struct planner *p)
{
	bool down = !leftovers_running(p->seen);

	for (size_t i = 0; i < p->seen->n; i++) {
		const struct container_seen *c = &p->seen->c[i];

		if (seen_alive(c)) {
			plan_kill(p, i, KILL_POD);
			down = false;
		}
		if (c->op == OP_START)
			act_when_due(p, (struct action){ .kind = ACT_GIVE_UP_START, .index = i },
				c->start_asked_ns + START_PATIENCE_NS);
		down = down && c->op == OP_NONE;
	}
	return down && p->seen->sandbox.op != SANDBOX_OP_RUN;
}

/* Removes containers, then sandboxes. True when none is left. */
static bool plan_remove(struct planner *p)
{
	const struct sandbox_seen *s = &p->seen->sandbox;
	bool gone = p->seen->n_leftovers == 0;

	for (size_t i = 0; i < p->seen->n; i++) {
		const struct container_seen *c = &p->seen->c[i];

		if (c->now.state == STATE_NONE && c->last.state == STATE_NONE)
			continue;
		gone = false;
		act_when_due(p, (struct action){ .kind = ACT_REMOVE, .index = i }, c->retry_at_ns);
	}
	if (!gone || s->state == SANDBOX_NONE)
		return gone;
	if (s->op == SANDBOX_OP_NONE)
		act_when_due(p, (struct action){ .kind = ACT_REMOVE_SANDBOX }, s->retry_at_ns);
	return false;
}

static void plan_stop(struct planner *p)
{
	const struct pod_seen *seen = p->seen;
	const struct sandbox_seen *s = &seen->sandbox;

	plan_leftovers(p, p->want->forget);
	if (!plan_all_down(p))
		return;
	if (s->state != SANDBOX_NONE && !s->stopped) {
		if (s->op == SANDBOX_OP_NONE)
			act_when_due(p, (struct action){ .kind = ACT_STOP_SANDBOX }, s->retry_at_ns);
		return;
	}
	if (p->want->forget && !plan_remove(p))
		return;
	if (seen->volumes_busy || seen->finish_busy)
		return;
	if (seen->volumes != VOLUMES_NONE)
		act_when_due(p, (struct action){ .kind = ACT_VOLUMES_DOWN }, seen->volumes_retry_at_ns);
	else if (p->want->forget)
		act_when_due(p, (struct action){ .kind = ACT_FINISH }, seen->finish_retry_at_ns);
}

/* The next step of starting container i. True when what comes after it has to wait. */
static bool plan_start(struct planner *p, size_t i)
{
	const struct container *spec = &p->pod->containers[i];
	const struct container_seen *c = &p->seen->c[i];
	enum container_state state = seen_state(p->seen, i);
	int64_t due = c->retry_at_ns;

	if (c->op != OP_NONE)
		return c->op != OP_STOP && c->op != OP_PRE_STOP;
	if ((c->killing && seen_alive(c)) || state == STATE_UNKNOWN)
		return false;
	if (state == STATE_RUNNING) {
		if (spec->post_start.kind == HANDLER_NONE || c->post_start_done)
			return false;
		act(p, (struct action){ .kind = ACT_POST_START, .index = i });
		return true;
	}
	if (!order_wants_start(p->pod, p->seen, i))
		return false;
	if (state == STATE_EXITED)
		due = MAX(due, backoff_due(&c->now));
	if (!is_due(p, due))
		return false;
	if (state == STATE_CREATED)
		act(p, (struct action){ .kind = ACT_START, .index = i });
	else
		act(p, (struct action){ .kind = c->image_ready ? ACT_CREATE : ACT_IMAGE, .index = i });
	return true;
}

static void plan_starts(struct planner *p)
{
	bool initialized = order_initialized(p->pod, p->seen);

	for (size_t i = 0; i < p->pod->n_init; i++) {
		if (initialized && p->pod->containers[i].kind == CONTAINER_INIT)
			continue;
		if (!initialized && p->pod->containers[i].kind == CONTAINER_INIT &&
			order_init_passed(p->pod, p->seen, i))
			continue;
		plan_start(p, i);
		if (!initialized && !order_init_passed(p->pod, p->seen, i))
			return;
	}
	for (size_t i = p->pod->n_init; i < p->pod->n_containers; i++)
		if (plan_start(p, i))
			return;
}

/* Containers that must end although the pod goes on. True when one lives in a sandbox that does not count. */
static bool plan_kills(struct planner *p, bool sandbox_lost)
{
	bool waits = false;

	for (size_t i = 0; i < p->seen->n; i++) {
		const struct container_seen *c = &p->seen->c[i];
		const struct container *spec = &p->pod->containers[i];

		if (!seen_alive(c)) {
			waits = waits ||
				(sandbox_lost && (c->op == OP_CREATE || c->op == OP_START || c->op == OP_STOP));
			continue;
		}
		if (sandbox_lost)
			plan_kill(p, i, KILL_SANDBOX);
		else if (c->killing)
			plan_kill(p, i, KILL_LIVENESS);
		else if (c->probe[PROBE_LIVENESS] == PROBE_FAILURE)
			plan_kill(p, i, KILL_LIVENESS);
		else if (c->probe[PROBE_STARTUP] == PROBE_FAILURE)
			plan_kill(p, i, KILL_STARTUP);
		else if (c->now.state == STATE_UNKNOWN || (c->now.hash && c->now.hash != spec->hash))
			plan_kill(p, i, KILL_CHANGED);
		waits = waits || sandbox_lost;
	}
	return waits;
}

/* Is there a container that will still be started? */
static bool anything_to_start(struct planner *p)
{
	for (size_t i = 0; i < p->pod->n_containers; i++)
		if (p->pod->containers[i].kind == CONTAINER_REGULAR && order_wants_start(p->pod, p->seen, i))
			return true;
	return false;
}

/* True when the sandbox is there and usable. */
static bool plan_sandbox(struct planner *p)
{
	const struct sandbox_seen *s = &p->seen->sandbox;
	bool lost = s->state == SANDBOX_NOT_READY || (s->state == SANDBOX_READY && s->stopped);

	if (plan_kills(p, lost) || s->op != SANDBOX_OP_NONE)
		return false;
	if (s->state == SANDBOX_READY && !lost)
		return true;
	if (lost && !s->stopped)
		act_when_due(p, (struct action){ .kind = ACT_STOP_SANDBOX }, s->retry_at_ns);
	else if (!lost || anything_to_start(p))
		act_when_due(p, (struct action){ .kind = ACT_RUN_SANDBOX }, s->retry_at_ns);
	return false;
}

static void plan_run(struct planner *p)
{
	const struct pod_seen *seen = p->seen;

	plan_leftovers(p, false);
	if ((seen->volumes == VOLUMES_NONE || seen->volumes_stale) && !seen->volumes_busy)
		act_when_due(p, (struct action){ .kind = ACT_VOLUMES_UP }, seen->volumes_retry_at_ns);
	if (seen->volumes == VOLUMES_NONE && seen->sandbox.state != SANDBOX_READY)
		return;
	if (plan_sandbox(p) && seen->volumes == VOLUMES_READY)
		plan_starts(p);
}

void pod_plan(const struct pod_want *want, const struct pod_seen *seen, int64_t now_ns, struct pod_plan *ret)
{
	struct planner p = { .want = want, .pod = want->pod, .seen = seen, .now = now_ns, .plan = ret };

	*ret = (struct pod_plan){ 0 };
	if (!seen->observed)
		return;
	enum pod_progress progress = order_progress(want->pod, seen);
	if (want->stop || want->reject || want->done || progress == PROGRESS_SUCCEEDED || progress == PROGRESS_FAILED)
		plan_stop(&p);
	else
		plan_run(&p);
}

void pod_plan_done(struct pod_plan *plan)
{
	free(plan->v);
	*plan = (struct pod_plan){ 0 };
}

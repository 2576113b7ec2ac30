/* order.c - purpose: which containers may start and stop when, and how far the pod is. */
#include "kubelet-lite/core/order.h"

static bool restarts_after(const struct pod *pod, const struct container *spec, int exit_code)
{
	if (spec->kind == CONTAINER_SIDECAR)
		return true;
	if (spec->kind == CONTAINER_INIT)
		return exit_code != 0 && pod->restart != RESTART_NEVER;
	return pod->restart == RESTART_ALWAYS || (pod->restart == RESTART_ON_FAILURE && exit_code != 0);
}

bool order_wants_start(const struct pod *pod, const struct pod_seen *seen, size_t i)
{
	const struct container *spec = &pod->containers[i];
	const struct container_seen *c = &seen->c[i];

	if (c->now.state == STATE_EXITED && seen_state(seen, i) == STATE_NONE && spec->kind == CONTAINER_REGULAR)
		return restarts_after(pod, spec, c->now.exit_code); /* ended in an older sandbox */
	switch (seen_state(seen, i)) {
	case STATE_NONE:
	case STATE_CREATED:
		return true;
	case STATE_EXITED:
		return restarts_after(pod, spec, c->now.exit_code);
	default:
		return false;
	}
}

bool order_init_passed(const struct pod *pod, const struct pod_seen *seen, size_t i)
{
	const struct container_seen *c = &seen->c[i];

	if (pod->containers[i].kind == CONTAINER_SIDECAR)
		return seen_state(seen, i) == STATE_RUNNING && seen_started(&pod->containers[i], c) &&
		       (c->post_start_done || pod->containers[i].post_start.kind == HANDLER_NONE) && !c->killing;
	return seen_state(seen, i) == STATE_EXITED && c->now.exit_code == 0;
}

bool order_initialized(const struct pod *pod, const struct pod_seen *seen)
{
	bool passed = true;

	for (size_t i = 0; i < pod->n_init; i++)
		passed = passed && order_init_passed(pod, seen, i);
	for (size_t i = pod->n_init; i < pod->n_containers; i++)
		passed = passed || seen_state(seen, i) >= STATE_RUNNING;
	return passed;
}

/* Ended for good? *ret_failed is set when it was not with 0. */
static bool ended(const struct pod *pod, const struct pod_seen *seen, size_t i, bool *ret_failed)
{
	const struct instance *now = &seen->c[i].now;

	if (now->state != STATE_EXITED || seen->c[i].op == OP_IMAGE || seen->c[i].op == OP_CREATE)
		return false;
	if (restarts_after(pod, &pod->containers[i], now->exit_code))
		return false;
	*ret_failed = *ret_failed || now->exit_code != 0;
	return true;
}

enum pod_progress order_progress(const struct pod *pod, const struct pod_seen *seen)
{
	bool failed = false;
	size_t done = 0;

	for (size_t i = pod->n_init; i < pod->n_containers; i++)
		done += ended(pod, seen, i, &failed);
	if (done == pod->n_containers - pod->n_init)
		return failed ? PROGRESS_FAILED : PROGRESS_SUCCEEDED;
	if (order_initialized(pod, seen))
		return PROGRESS_RUNNING;
	for (size_t i = 0; i < pod->n_init; i++) {
		bool init_failed = false;

		if (pod->containers[i].kind == CONTAINER_INIT && ended(pod, seen, i, &init_failed) && init_failed)
			return PROGRESS_FAILED;
	}
	return PROGRESS_INIT;
}

bool order_stop_turn(const struct pod *pod, const struct pod_seen *seen, size_t i)
{
	if (pod->containers[i].kind != CONTAINER_SIDECAR)
		return true;
	for (size_t j = i + 1; j < pod->n_containers; j++)
		if (pod->containers[j].kind != CONTAINER_INIT && seen_alive(&seen->c[j]))
			return false;
	return true;
}

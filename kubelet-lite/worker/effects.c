/* effects.c - purpose: carry out planned actions: the common part, and what concerns leftovers. */
#include "kubelet-lite/worker/node_i.h"

#include "kubelet-lite/observe/observe.h"

/* Every answer of the runtime comes through here. */
static void on_reply(void *data, const struct error *status, const void *reply)
{
	struct effect *effect = data;
	struct pod_worker *w = effect->worker;

	w->epoch++;
	if (!w->dead)
		effect->done(w, effect->index, effect->id, status, reply);
	free(effect->id);
	free(effect);
	pod_kick(w);
	pod_worker_unref(w);
}

struct rpc_request *effect_call(struct pod_worker *w, enum cri_method method, const void *request, uint64_t extra_ms,
	size_t index, const char *id,
	void (*done)(struct pod_worker *, size_t, const char *, const struct error *, const void *),
	struct effect **ret)
{
	struct effect *effect = xnew(struct effect);

	*effect = (struct effect){ .worker = w, .index = index, .id = xstrdup(id), .done = done };
	w->refs++;
	if (ret)
		*ret = effect;
	return cri_call(w->node->cri, method, request, extra_ms, on_reply, effect);
}

void effect_cancelled(struct effect *effect)
{
	struct pod_worker *w = effect->worker;

	w->epoch++;
	free(effect->id);
	free(effect);
	pod_worker_unref(w);
}

/* Found again by id: the list may have been made anew meanwhile. */
static struct leftover *leftover_of(struct pod_worker *w, const char *id)
{
	for (size_t i = 0; i < w->seen.n_leftovers; i++)
		if (str_eq(w->seen.leftovers[i].id, id))
			return &w->seen.leftovers[i];
	return NULL;
}

static void leftover_done(
	struct pod_worker *w, size_t index, const char *id, const struct error *status, const void *reply)
{
	struct leftover *l = leftover_of(w, id);

	(void)index;
	(void)reply;
	if (l)
		l->busy = false;
	if (l && status->code != ERROR_OK && status->code != ERROR_NOT_FOUND) {
		l->retry_at_ns = node_now(w->node) + 5 * SECOND_NS;
		log_warning("pod=%s/%s: left over %s: %s", w->pod->ns, w->pod->name, id, status->text);
	}
	observe_pod(w);
}

void effect_leftover(struct pod_worker *w, size_t i, bool stop)
{
	struct leftover *l = &w->seen.leftovers[i];

	l->busy = true;
	if (l->is_sandbox && stop) {
		CRI(StopPodSandboxRequest) request = RUNTIME__V1__STOP_POD_SANDBOX_REQUEST__INIT;

		request.pod_sandbox_id = l->id;
		effect_call(w, CRI_STOP_POD_SANDBOX, &request, 0, i, l->id, leftover_done, NULL);
	} else if (l->is_sandbox) {
		CRI(RemovePodSandboxRequest) request = RUNTIME__V1__REMOVE_POD_SANDBOX_REQUEST__INIT;

		request.pod_sandbox_id = l->id;
		effect_call(w, CRI_REMOVE_POD_SANDBOX, &request, 0, i, l->id, leftover_done, NULL);
	} else if (stop) {
		CRI(StopContainerRequest) request = RUNTIME__V1__STOP_CONTAINER_REQUEST__INIT;

		request.container_id = l->id;
		request.timeout = MAX(w->pod->grace_seconds, (int64_t)1);
		effect_call(w, CRI_STOP_CONTAINER, &request, (uint64_t)request.timeout * 1000, i, l->id, leftover_done,
			NULL);
	} else {
		CRI(RemoveContainerRequest) request = RUNTIME__V1__REMOVE_CONTAINER_REQUEST__INIT;

		request.container_id = l->id;
		effect_call(w, CRI_REMOVE_CONTAINER, &request, 0, i, l->id, leftover_done, NULL);
	}
}

void effect_run(struct pod_worker *w, const struct action *action)
{
	switch (action->kind) {
	case ACT_VOLUMES_UP:
		return effect_volumes_up(w);
	case ACT_VOLUMES_DOWN:
		return effect_volumes_down(w);
	case ACT_RUN_SANDBOX:
		return effect_run_sandbox(w);
	case ACT_STOP_SANDBOX:
		return effect_stop_sandbox(w);
	case ACT_REMOVE_SANDBOX:
		return effect_remove_sandbox(w);
	case ACT_IMAGE:
		return effect_image(w, action->index);
	case ACT_CREATE:
		return effect_create(w, action->index);
	case ACT_START:
		return effect_start(w, action->index);
	case ACT_GIVE_UP_START:
		return effect_give_up_start(w, action->index);
	case ACT_POST_START:
		return effect_post_start(w, action->index);
	case ACT_KILL:
		return effect_kill(w, action->index, action->reason);
	case ACT_STOP:
		return effect_stop(w, action->index);
	case ACT_REMOVE:
		return effect_remove(w, action->index);
	case ACT_LEFTOVER_STOP:
		return effect_leftover(w, action->index, true);
	case ACT_LEFTOVER_REMOVE:
		return effect_leftover(w, action->index, false);
	case ACT_FINISH:
		return effect_finish(w);
	}
}

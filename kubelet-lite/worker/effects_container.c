/* effects_container.c - purpose: effects on one container: image, start, hooks, kill, stop, remove. (create:
 * container_make.c) */
#include "kubelet-lite/worker/node_i.h"

#include "kubelet-lite/core/credentials.h"
#include "kubelet-lite/observe/observe.h"
#include "kubelet-lite/worker/handler.h"
#include "kubelet-lite/worker/images.h"

#include "common/base/codec.h"

#define PULL_BACKOFF_FIRST_NS (10 * SECOND_NS)
#define PULL_BACKOFF_MAX_NS (300 * SECOND_NS)
#define START_RETRY_NS (10 * SECOND_NS)
#define STOP_RETRY_NS (2 * SECOND_NS)
enum { STOP_SECONDS_MIN = 2 };

/* ---- image */

static void on_pulling(void *data)
{
	struct container_run *run = data;

	pod_event_container(run->worker, run->index, "Normal", "Pulling", "Pulling image \"%s\"",
		run->worker->pod->containers[run->index].image);
}

static void image_failed(struct pod_worker *w, size_t i, const struct image_result *result)
{
	const char *image = w->pod->containers[i].image;
	struct container_run *run = &w->run[i];
	int64_t now = node_now(w->node);
	bool never = str_eq(result->reason, "ErrImageNeverPull"), invalid = str_eq(result->reason, "InvalidImageName");

	if (never)
		pod_event_container(w, i, "Warning", "ErrImageNeverPull",
			"Container image \"%s\" is not present with pull policy of Never", image);
	else if (invalid)
		pod_event_container(w, i, "Warning", "InspectFailed", "Failed to apply default image tag \"%s\": %s",
			image, result->message);
	else
		pod_event_container(
			w, i, "Warning", "Failed", "Failed to pull image \"%s\": %s", image, result->message);
	pod_event_container(w, i, "Warning", "Failed", "Error: %s", result->reason);
	pod_set_wait(w, i, result->reason, result->message);
	run->pull_failures++;
	int64_t wait = backoff_retry(run->pull_failures, PULL_BACKOFF_FIRST_NS, PULL_BACKOFF_MAX_NS);
	run->pull_backoff_until_ns = never || invalid ? 0 : now + wait;
	/* For a while the failure itself is shown, then that we wait. */
	w->seen.c[i].retry_at_ns = now + (never || invalid ? wait : MIN(wait / 2, 10 * SECOND_NS));
}

static void image_present(struct pod_worker *w, size_t i, const struct image_result *result)
{
	const char *image = w->pod->containers[i].image;
	struct container_seen *c = &w->seen.c[i];
	char pull[DURATION_TEXT_MAX], all[DURATION_TEXT_MAX];

	if (result->pulled) {
		/* Milliseconds are enough for people. */
		duration_text((int64_t)(result->pull_ns / 1000000 * 1000000), pull);
		duration_text((int64_t)((result->pull_ns + result->wait_ns) / 1000000 * 1000000), all);
		pod_event_container(w, i, "Normal", "Pulled",
			"Successfully pulled image \"%s\" in %s (%s including waiting). Image size: %llu bytes.", image,
			pull, all, (unsigned long long)result->size);
		w->node->count_pulls++;
	} else {
		pod_event_container(w, i, "Normal", "Pulled",
			"Container image \"%s\" already present on machine and can be accessed by the pod", image);
	}
	w->run[i].pull_failures = 0;
	free(c->image_ref);
	free(c->image_user);
	c->image_ref = xstrdup(result->ref);
	c->image_user = xstrdup(result->user);
	c->image_has_uid = result->has_uid;
	c->image_uid = result->uid;
	c->image_ready = true;
}

static void on_image(void *data, const struct image_result *result)
{
	struct container_run *run = data;
	struct pod_worker *w = run->worker;

	run->image = NULL;
	w->seen.c[run->index].op = OP_NONE;
	if (result->reason)
		image_failed(w, run->index, result);
	else
		image_present(w, run->index, result);
	pod_kick(w);
	pod_worker_unref(w);
}

/* The first credential that a pull secret has for the image's registry. */
static bool find_credential(struct pod_worker *w, size_t i, struct image_credential *ret)
{
	struct node_source source = { w->node, w->pod->ns };

	for (size_t k = 0; k < w->pod->pull_secrets.n; k++) {
		const char *name = w->pod->pull_secrets.v[k];
		_cleanup_(keyed_done) struct keyed data = { 0 };

		if (!node_keyed(&source, true, name, &data))
			pod_event(w, "Warning", "FailedToRetrieveImagePullSecret",
				"Unable to retrieve some image pull secrets (%s); attempting to pull the image may not "
				"succeed.",
				name);
		else if (credential_find(&data, w->pod->containers[i].image, ret))
			return true;
	}
	return false;
}

void effect_image(struct pod_worker *w, size_t i)
{
	const struct container *spec = &w->pod->containers[i];
	struct container_run *run = &w->run[i];
	int64_t now = node_now(w->node);
	struct image_credential credential = { 0 };

	if (now < run->pull_backoff_until_ns) {
		_cleanup_free_ char *text = xasprintf("Back-off pulling image \"%s\": %s: %s", spec->image,
			w->seen.c[i].wait_reason ? w->seen.c[i].wait_reason : "ErrImagePull",
			w->seen.c[i].wait_message ? w->seen.c[i].wait_message : "");

		w->seen.c[i].retry_at_ns = run->pull_backoff_until_ns;
		pod_event_container(w, i, "Normal", "BackOff", "Back-off pulling image \"%s\"", spec->image);
		pod_event_container(w, i, "Warning", "Failed", "Error: ImagePullBackOff");
		pod_set_wait(w, i, "ImagePullBackOff", text);
		pod_kick(w);
		return;
	}
	w->refs++;
	w->seen.c[i].op = OP_IMAGE;
	bool found = find_credential(w, i, &credential);
	run->image = image_ensure(w->node->pulls, &(struct image_want){ .image = spec->image,
							  .policy = spec->pull,
							  .credential = found ? &credential : NULL,
							  .data = run,
							  .pulling = on_pulling,
							  .done = on_image });
	credential_done(&credential);
}

/* ---- start */

static void start_failed(struct pod_worker *w, size_t i, const struct error *status)
{
	pod_event_container(w, i, "Warning", "Failed", "Error: %s", status->text);
	pod_set_wait(w, i, "RunContainerError", status->text);
	w->seen.c[i].retry_at_ns = node_now(w->node) + START_RETRY_NS;
	w->seen.observed = false;
}

static void container_started(
	struct pod_worker *w, size_t i, const char *id, const struct error *status, const void *reply)
{
	struct container_seen *c = &w->seen.c[i];

	(void)reply;
	w->run[i].start_rpc = NULL;
	w->run[i].start_effect = NULL;
	c->op = OP_NONE;
	c->image_ready = false; /* the next start asks again */
	if (status->code != ERROR_OK) {
		start_failed(w, i, status);
		observe_pod(w);
		return;
	}
	pod_event_container(w, i, "Normal", "Started", "Container started");
	w->node->count_starts++;
	w->node->count_restarts += c->now.restarts > 0;
	pod_clear_wait(w, i);
	c->retry_at_ns = 0;
	if (str_eq(c->now.id, id) && c->now.state == STATE_CREATED) {
		c->now.state = STATE_RUNNING;
		c->now.started_at = clock_realtime_ns();
		c->now.started_ns = node_now(w->node);
	}
	logs_link(w, i, id);
	observe_pod(w); /* exact times; or it has ended already */
}

void effect_start(struct pod_worker *w, size_t i)
{
	CRI(StartContainerRequest) request = RUNTIME__V1__START_CONTAINER_REQUEST__INIT;
	struct container_seen *c = &w->seen.c[i];

	request.container_id = c->now.id;
	c->op = OP_START;
	c->start_asked_ns = node_now(w->node);
	w->run[i].start_rpc = effect_call(w, CRI_START_CONTAINER, &request, 0, i, c->now.id, container_started,
		&w->run[i].start_effect);
}

static void cancel_call(struct pod_worker *w, size_t i, struct rpc_request **rpc, struct effect **effect)
{
	rpc_cancel(*rpc);
	*rpc = NULL;
	w->seen.c[i].op = OP_NONE;
	w->refs++;
	effect_cancelled(steal(*effect));
	pod_worker_unref(w);
}

void effect_give_up_start(struct pod_worker *w, size_t i)
{
	struct container_run *run = &w->run[i];

	if (!run->start_rpc)
		return;
	cancel_call(w, i, &run->start_rpc, &run->start_effect);
	w->seen.observed = false;
	observe_pod(w);
}

/* ---- hooks */

static void start_hook(
	struct pod_worker *w, size_t i, const struct handler *handler, uint64_t timeout_ms, handler_cb done)
{
	const struct container *spec = &w->pod->containers[i];

	w->refs++;
	w->run[i].hook = handler_start(handler,
		&(struct handler_target){ .loop = w->node->loop,
			.cri = w->node->cri,
			.container_id = w->seen.c[i].now.id,
			.address = str_empty(handler->host) ? pod_address(w) : handler->host,
			.port = container_port_number(spec, &handler->port),
			.user_agent = "kube-lifecycle/1.36",
			.timeout_ms = timeout_ms,
			.any_status = true },
		done, &w->run[i]);
}

/* The hook of container i has been answered; false when nobody waits for it any more. */
static struct pod_worker *hook_done(void *data, size_t *ret_i)
{
	struct container_run *run = data;

	run->hook = NULL;
	*ret_i = run->index;
	return run->worker;
}

static void on_post_start(void *data, enum probe_outcome outcome, const char *text)
{
	size_t i;
	struct pod_worker *w = hook_done(data, &i);
	struct container_seen *c = &w->seen.c[i];

	c->op = OP_NONE;
	c->post_start_done = true;
	if (outcome != PROBE_OK && seen_alive(c) && !c->killing) {
		log_debug("pod=%s/%s container=%s: postStart: %s", w->pod->ns, w->pod->name, w->pod->containers[i].name,
			text);
		pod_event_container(w, i, "Warning", "FailedPostStartHook", "PostStartHook failed");
		pod_event_container(w, i, "Normal", "Killing", "FailedPostStartHook");
		pod_set_wait(w, i, "PostStartHookError", "PostStartHook failed");
		c->killing = c->pre_stop_done = true;
		c->kill_deadline_ns = node_now(w->node) + w->pod->grace_seconds * SECOND_NS;
	}
	pod_kick(w);
	pod_worker_unref(w);
}

void effect_post_start(struct pod_worker *w, size_t i)
{
	w->seen.c[i].op = OP_POST_START;
	start_hook(w, i, &w->pod->containers[i].post_start, 0, on_post_start);
}

static void on_pre_stop(void *data, enum probe_outcome outcome, const char *text)
{
	size_t i;
	struct pod_worker *w = hook_done(data, &i);
	struct container_seen *c = &w->seen.c[i];

	if (outcome != PROBE_OK && seen_alive(c)) {
		log_debug("pod=%s/%s container=%s: preStop: %s", w->pod->ns, w->pod->name, w->pod->containers[i].name,
			text);
		pod_event_container(w, i, "Warning", "FailedPreStopHook", "PreStopHook failed");
	}
	if (c->op == OP_PRE_STOP)
		c->op = OP_NONE;
	c->pre_stop_done = true;
	pod_kick(w);
	pod_worker_unref(w);
}

static void cancel_hook(struct pod_worker *w, size_t i)
{
	struct container_run *run = &w->run[i];

	if (!run->hook)
		return;
	handler_cancel(run->hook);
	run->hook = NULL;
	pod_worker_unref(w);
}

void effect_give_up(struct pod_worker *w, size_t i)
{
	struct container_seen *c = &w->seen.c[i];
	struct container_run *run = &w->run[i];

	if (run->image) {
		image_cancel(run->image);
		run->image = NULL;
		pod_worker_unref(w);
	}
	if (c->op == OP_POST_START)
		c->post_start_done = true;
	if (c->op == OP_PRE_STOP)
		c->pre_stop_done = true;
	if (c->op == OP_POST_START || c->op == OP_IMAGE || c->op == OP_PRE_STOP)
		c->op = OP_NONE;
	cancel_hook(w, i);
}

/* ---- kill and stop */

static int64_t kill_grace(const struct pod_worker *w, size_t i, enum kill_reason reason)
{
	const struct probe *probe =
		&w->pod->containers[i].probes[reason == KILL_STARTUP ? PROBE_STARTUP : PROBE_LIVENESS];
	int64_t grace = w->pod->grace_seconds * SECOND_NS;

	if (w->want.stop)
		grace = MIN(grace, w->grace_ns - MIN(w->grace_ns, node_now(w->node) - w->stop_at_ns));
	if ((reason == KILL_LIVENESS || reason == KILL_STARTUP) && probe->grace_seconds >= 0)
		grace = probe->grace_seconds * SECOND_NS;
	return MAX(grace, (int64_t)0);
}

static void announce_kill(struct pod_worker *w, size_t i, enum kill_reason reason)
{
	const char *name = w->pod->containers[i].name;

	if (reason == KILL_LIVENESS || reason == KILL_STARTUP)
		pod_event_container(w, i, "Normal", "Killing", "Container %s failed %s probe, will be restarted", name,
			reason == KILL_LIVENESS ? "liveness" : "startup");
	else if (reason == KILL_CHANGED)
		pod_event_container(
			w, i, "Normal", "Killing", "Container %s definition changed, will be restarted", name);
	else
		pod_event_container(w, i, "Normal", "Killing", "Stopping container %s", name);
}

void effect_kill(struct pod_worker *w, size_t i, enum kill_reason reason)
{
	struct container_seen *c = &w->seen.c[i];
	const struct handler *hook = &w->pod->containers[i].pre_stop;
	int64_t grace = kill_grace(w, i, reason);

	effect_give_up(w, i);
	announce_kill(w, i, reason);
	c->killing = true;
	c->kill_deadline_ns = node_now(w->node) + grace;
	c->pre_stop_done = hook->kind == HANDLER_NONE || grace <= 0 || c->now.state != STATE_RUNNING;
	c->retry_at_ns = 0;
	if (!c->pre_stop_done) {
		c->op = OP_PRE_STOP;
		start_hook(w, i, hook, (uint64_t)(grace / 1000000) + 1, on_pre_stop);
	}
	pod_kick(w);
}

static void container_stopped(
	struct pod_worker *w, size_t i, const char *id, const struct error *status, const void *reply)
{
	struct container_seen *c = &w->seen.c[i];

	(void)reply;
	w->run[i].stop_rpc = NULL;
	w->run[i].stop_effect = NULL;
	c->op = OP_NONE;
	if (status->code != ERROR_OK && status->code != ERROR_NOT_FOUND) {
		c->retry_at_ns = node_now(w->node) + STOP_RETRY_NS;
		pod_event_container(w, i, "Warning", "FailedKillPod", "error killing pod: %s", status->text);
	} else {
		c->retry_at_ns = 0;
		/* Gone without a trace: it cannot be observed any more. */
		if (status->code == ERROR_NOT_FOUND && str_eq(c->now.id, id)) {
			c->now.state = STATE_EXITED;
			c->now.exit_code = 137;
			c->now.finished_ns = node_now(w->node);
			c->now.finished_at = clock_realtime_ns();
			free(c->now.reason);
			c->now.reason = xstrdup("ContainerStatusUnknown");
		}
	}
	w->seen.observed = false;
	observe_pod(w);
}

void effect_stop(struct pod_worker *w, size_t i)
{
	CRI(StopContainerRequest) request = RUNTIME__V1__STOP_CONTAINER_REQUEST__INIT;
	struct container_seen *c = &w->seen.c[i];
	int64_t left = c->kill_deadline_ns - node_now(w->node);

	cancel_hook(w, i);
	c->pre_stop_done = true;
	c->op = OP_STOP;
	request.container_id = c->now.id;
	request.timeout = MAX((left + SECOND_NS - 1) / SECOND_NS, (int64_t)STOP_SECONDS_MIN);
	w->run[i].stop_rpc = effect_call(w, CRI_STOP_CONTAINER, &request, (uint64_t)request.timeout * 1000, i,
		c->now.id, container_stopped, &w->run[i].stop_effect);
}

void effect_hurry(struct pod_worker *w, size_t i)
{
	struct container_run *run = &w->run[i];

	if (run->stop_rpc)
		cancel_call(w, i, &run->stop_rpc, &run->stop_effect);
}

/* ---- remove */

static void container_removed(
	struct pod_worker *w, size_t i, const char *id, const struct error *status, const void *reply)
{
	struct container_seen *c = &w->seen.c[i];

	(void)reply;
	c->op = OP_NONE;
	if (status->code != ERROR_OK && status->code != ERROR_NOT_FOUND) {
		c->retry_at_ns = node_now(w->node) + STOP_RETRY_NS;
		log_warning("pod=%s/%s: remove container %s: %s", w->pod->ns, w->pod->name, w->pod->containers[i].name,
			status->text);
		return;
	}
	if (str_eq(c->last.id, id))
		c->last.state = STATE_NONE;
	else if (str_eq(c->now.id, id))
		c->now.state = STATE_NONE;
}

/* The older one first. What they say stays in `seen` for the last status. */
void effect_remove(struct pod_worker *w, size_t i)
{
	CRI(RemoveContainerRequest) request = RUNTIME__V1__REMOVE_CONTAINER_REQUEST__INIT;
	struct container_seen *c = &w->seen.c[i];
	const struct instance *which = c->last.state != STATE_NONE ? &c->last : &c->now;

	c->op = OP_REMOVE;
	request.container_id = which->id;
	effect_call(w, CRI_REMOVE_CONTAINER, &request, 0, i, which->id, container_removed, NULL);
}

/* container_status.c - purpose: what is seen of one container, as the API's ContainerStatus. */
#include "kubelet-lite/core/container_status.h"

#include "common/base/codec.h"
#include "kubelet-lite/core/backoff.h"
#include "kubelet-lite/core/order.h"

bool container_backs_off(
	const struct pod_want *want, const struct pod_seen *seen, size_t i, int64_t now_ns, int64_t *ret_wait_ns)
{
	const struct container_seen *c = &seen->c[i];

	if (want->stop || want->reject || c->now.state != STATE_EXITED || c->op != OP_NONE ||
		!order_wants_start(want->pod, seen, i))
		return false;
	*ret_wait_ns = backoff_wait(&c->now);
	return *ret_wait_ns > 0 && now_ns < backoff_due(&c->now);
}

static json_t *time_json(uint64_t at)
{
	char text[TIME_TEXT_MAX];

	if (!at)
		return json_null();
	time_text((int64_t)at, TIME_SECONDS, text);
	return json_string(text);
}

static json_t *container_id(const struct instance *i, const char *runtime)
{
	_cleanup_free_ char *id = xasprintf("%s://%s", runtime, i->id ? i->id : "");

	return json_string(id);
}

static json_t *terminated(const struct instance *i, const char *runtime)
{
	const char *reason = str_empty(i->reason) ? (i->exit_code ? "Error" : "Completed") : i->reason;
	json_t *t = json_pack("{s:i,s:s}", "exitCode", i->exit_code, "reason", reason);

	if (!str_empty(i->message)) {
		/* Texts from inside containers may be anything. */
		json_t *message = json_string(i->message);

		json_object_set_new(t, "message", message ? message : json_string("(not UTF-8 text)"));
	}
	json_object_set_new(t, "startedAt", time_json(i->started_at));
	json_object_set_new(t, "finishedAt", time_json(i->finished_at));
	json_object_set_new(t, "containerID", container_id(i, runtime));
	return json_pack("{s:o}", "terminated", t);
}

static json_t *waiting(const char *reason, const char *message)
{
	json_t *w = json_pack("{s:s}", "reason", reason);

	if (!str_empty(message)) {
		json_t *text = json_string(message);

		json_object_set_new(w, "message", text ? text : json_string("(not UTF-8 text)"));
	}
	return json_pack("{s:o}", "waiting", w);
}

static json_t *crash_loop(const struct pod *pod, const char *name, int64_t wait_ns)
{
	char delay[DURATION_TEXT_MAX];

	duration_text(wait_ns, delay);
	_cleanup_free_ char *message = xasprintf(
		"back-off %s restarting failed container=%s pod=%s_%s(%s)", delay, name, pod->name, pod->ns, pod->uid);
	return waiting("CrashLoopBackOff", message);
}

/* Sets state and lastState. */
static void set_states(
	json_t *o, const struct pod_want *want, const struct pod_seen *seen, size_t i, const struct status_context *ctx)
{
	const struct pod *pod = want->pod;
	const struct container_seen *c = &seen->c[i];
	const struct instance *previous = &c->last;
	json_t *state = NULL;
	int64_t wait;

	if (seen_alive(c)) {
		state = json_pack("{s:{s:o}}", "running", "startedAt", time_json(c->now.started_at));
	} else if (c->now.state == STATE_EXITED) {
		if (container_backs_off(want, seen, i, ctx->now_ns, &wait))
			state = crash_loop(pod, pod->containers[i].name, wait);
		else if (c->wait_reason && !want->stop && order_wants_start(pod, seen, i))
			state = waiting(c->wait_reason, c->wait_message);
		if (state)
			previous = &c->now;
		else
			state = terminated(&c->now, ctx->runtime);
	} else {
		const char *usual = pod->n_init ? "PodInitializing" : "ContainerCreating";

		state = waiting(c->wait_reason ? c->wait_reason : usual, c->wait_message);
	}
	json_object_set_new(o, "state", state);
	json_object_set_new(
		o, "lastState", previous->state == STATE_EXITED ? terminated(previous, ctx->runtime) : json_object());
}

static json_t *amounts(const struct resource_list *list)
{
	json_t *o = json_object();

	for (size_t i = 0; i < list->n; i++)
		json_object_set_new(o, list->v[i].name, json_string(list->v[i].text));
	return o;
}

static void set_resources(json_t *o, const struct container *spec)
{
	json_t *r = json_object();

	if (spec->limits.n)
		json_object_set_new(r, "limits", amounts(&spec->limits));
	if (spec->requests.n) {
		json_object_set_new(r, "requests", amounts(&spec->requests));
		json_object_set_new(o, "allocatedResources", amounts(&spec->requests));
	}
	json_object_set_new(o, "resources", r);
}

static void set_mounts(json_t *o, const struct container *spec)
{
	json_t *list = json_array();

	for (size_t i = 0; i < spec->n_mounts; i++) {
		const struct volume_mount *m = &spec->mounts[i];
		json_t *mount = json_pack("{s:s,s:s}", "name", m->volume, "mountPath", m->path);

		if (m->read_only) {
			json_object_set_new(mount, "readOnly", json_true());
			json_object_set_new(mount, "recursiveReadOnly",
				json_string(m->recursive_read_only ? "Enabled" : "Disabled"));
		}
		json_array_append_new(list, mount);
	}
	json_object_set_new(o, "volumeMounts", list);
}

static void set_user(json_t *o, const struct instance *i)
{
	json_t *groups = json_array();

	for (size_t k = 0; k < i->n_groups; k++)
		json_array_append_new(groups, json_integer(i->groups[k]));
	json_object_set_new(o, "user",
		json_pack("{s:{s:I,s:I,s:o}}", "linux", "uid", (json_int_t)i->uid, "gid", (json_int_t)i->gid,
			"supplementalGroups", groups));
}

json_t *container_status(
	const struct pod_want *want, const struct pod_seen *seen, size_t i, const struct status_context *ctx)
{
	const struct container *spec = &want->pod->containers[i];
	const struct container_seen *c = &seen->c[i];
	json_t *o = json_pack("{s:s}", "name", spec->name);

	set_states(o, want, seen, i, ctx);
	json_object_set_new(o, "ready", json_boolean(seen_ready(spec, c)));
	json_object_set_new(o, "restartCount", json_integer(c->now.restarts));
	json_object_set_new(o, "image", json_string(str_empty(c->now.image) ? spec->image : c->now.image));
	json_object_set_new(o, "imageID", json_string(c->now.image_ref ? c->now.image_ref : ""));
	if (c->now.id)
		json_object_set_new(o, "containerID", container_id(&c->now, ctx->runtime));
	json_object_set_new(o, "started", json_boolean(seen_started(spec, c)));
	if (c->now.state != STATE_NONE) {
		set_resources(o, spec);
		if (spec->n_mounts)
			set_mounts(o, spec);
		if (c->now.has_user)
			set_user(o, &c->now);
	}
	return o;
}

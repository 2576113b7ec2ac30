/* pod_status.c - purpose: what is seen of a pod, as the API's PodStatus. */
#include "kubelet-lite/core/pod_status.h"

#include "common/base/codec.h"
#include "kubelet-lite/core/backoff.h"
#include "kubelet-lite/core/container_status.h"
#include "kubelet-lite/core/order.h"
#include "kubelet-lite/core/qos.h"

static const char *const condition_names[CONDITION_COUNT] = {
	[CONDITION_READY_TO_START] = "PodReadyToStartContainers",
	[CONDITION_INITIALIZED] = "Initialized",
	[CONDITION_READY] = "Ready",
	[CONDITION_CONTAINERS_READY] = "ContainersReady",
	[CONDITION_SCHEDULED] = "PodScheduled",
};

static bool all_down(const struct pod_seen *seen)
{
	for (size_t i = 0; i < seen->n; i++)
		if (seen_alive(&seen->c[i]) || seen->c[i].op == OP_START)
			return false;
	return true;
}

/* Waiting, and never was anything else. */
static bool never_ran(const struct container_seen *c)
{
	return (c->now.state == STATE_NONE || c->now.state == STATE_CREATED) && c->last.state == STATE_NONE;
}

static bool any_failed(const struct pod *pod, const struct pod_seen *seen)
{
	for (size_t i = pod->n_init; i < pod->n_containers; i++)
		if (seen->c[i].now.state != STATE_EXITED || seen->c[i].now.exit_code != 0)
			return true;
	return false;
}

const char *pod_phase(const struct pod_want *want, const struct pod_seen *seen)
{
	const struct pod *pod = want->pod;
	enum pod_progress progress = order_progress(pod, seen);

	if (want->reject)
		return "Failed";
	if (all_down(seen)) {
		if (want->fail)
			return "Failed";
		if (progress == PROGRESS_SUCCEEDED)
			return "Succeeded";
		if (progress == PROGRESS_FAILED)
			return "Failed";
		if (want->stop)
			return any_failed(pod, seen) ? "Failed" : "Succeeded";
	}
	if (progress == PROGRESS_INIT)
		return "Pending";
	for (size_t i = pod->n_init; i < pod->n_containers; i++)
		if (never_ran(&seen->c[i]))
			return "Pending";
	return "Running";
}

bool pod_ready(const struct pod_want *want, const struct pod_seen *seen)
{
	const struct pod *pod = want->pod;

	if (want->reject || pod->readiness_gates.n)
		return false;
	for (size_t i = 0; i < pod->n_containers; i++)
		if (pod->containers[i].kind != CONTAINER_INIT && !seen_ready(&pod->containers[i], &seen->c[i]))
			return false;
	return true;
}

struct verdict {
	bool value;
	const char *reason; /* NULL: none */
	char *message;	    /* owned; NULL: none */
};

/* "containers with <what>: [a b]"; NULL when there is none. */
static char *names_of(const struct pod *pod, const struct pod_seen *seen, bool init, const char *what)
{
	struct str s = STR_INIT;

	for (size_t i = 0; i < pod->n_containers; i++) {
		const struct container *spec = &pod->containers[i];
		bool counts = init ? spec->kind != CONTAINER_REGULAR : spec->kind != CONTAINER_INIT;
		bool good = init ? order_init_passed(pod, seen, i) : seen_ready(spec, &seen->c[i]);

		if (counts && !good)
			str_addf(&s, "%s%s", s.len ? " " : "", spec->name);
	}
	if (!s.len)
		return NULL;
	char *text = xasprintf("containers with %s: [%s]", what, str_get(&s));
	str_done(&s);
	return text;
}

static struct verdict initialized(const struct pod *pod, const struct pod_seen *seen, const char *phase)
{
	if (str_eq(phase, "Succeeded"))
		return (struct verdict){ true, "PodCompleted", NULL };
	if (order_initialized(pod, seen))
		return (struct verdict){ true, NULL, NULL };
	return (struct verdict){ false, "ContainersNotInitialized", names_of(pod, seen, true, "incomplete status") };
}

static struct verdict containers_ready(const struct pod *pod, const struct pod_seen *seen, const char *phase)
{
	if (str_eq(phase, "Succeeded"))
		return (struct verdict){ false, "PodCompleted", NULL };
	if (str_eq(phase, "Failed"))
		return (struct verdict){ false, "PodFailed", NULL };
	char *unready = names_of(pod, seen, false, "unready status");
	return unready ? (struct verdict){ false, "ContainersNotReady", unready }
		       : (struct verdict){ true, NULL, NULL };
}

static struct verdict ready(const struct pod *pod, const struct pod_seen *seen, const char *phase)
{
	struct verdict v = containers_ready(pod, seen, phase);

	if (v.value && pod->readiness_gates.n)
		return (struct verdict){ false, "ReadinessGatesNotReady",
			xasprintf("corresponding condition of pod readiness gate \"%s\" does not exist.",
				pod->readiness_gates.v[0]) };
	return v;
}

static struct verdict judge(
	enum pod_condition which, const struct pod *pod, const struct pod_seen *seen, const char *phase)
{
	switch (which) {
	case CONDITION_READY_TO_START:
		return (struct verdict){ seen->sandbox.state == SANDBOX_READY && !seen->sandbox.stopped &&
						 (pod->host_network || seen->n_ips > 0),
			NULL, NULL };
	case CONDITION_INITIALIZED:
		return initialized(pod, seen, phase);
	case CONDITION_READY:
		return ready(pod, seen, phase);
	case CONDITION_CONTAINERS_READY:
		return containers_ready(pod, seen, phase);
	default:
		return (struct verdict){ true, NULL, NULL };
	}
}

static void set_time(json_t *o, const char *key, uint64_t at)
{
	char text[TIME_TEXT_MAX];

	time_text((int64_t)at, TIME_SECONDS, text);
	json_object_set_new(o, key, json_string(text));
}

static json_t *conditions(const struct pod *pod, const struct pod_seen *seen, const char *phase,
	const struct status_context *ctx, struct condition_times *times)
{
	json_t *list = json_array();

	for (int i = 0; i < CONDITION_COUNT; i++) {
		struct verdict v = judge((enum pod_condition)i, pod, seen, phase);
		json_t *c = json_pack("{s:s,s:s,s:n}", "type", condition_names[i], "status", v.value ? "True" : "False",
			"lastProbeTime");

		if (!times->known[i] || times->value[i] != v.value) {
			times->known[i] = true;
			times->value[i] = v.value;
			times->since_at[i] = ctx->now_at;
		}
		if (pod->generation)
			json_object_set_new(c, "observedGeneration", json_integer((json_int_t)pod->generation));
		set_time(c, "lastTransitionTime", times->since_at[i]);
		if (v.reason)
			json_object_set_new(c, "reason", json_string(v.reason));
		if (v.message)
			json_object_set_new(c, "message", json_string(v.message));
		free(v.message);
		json_array_append_new(list, c);
	}
	return list;
}

static json_t *ip_list(const char *key, const char *const *ips, size_t n)
{
	json_t *list = json_array();

	(void)key;
	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, json_pack("{s:s}", "ip", ips[i]));
	return list;
}

static void add_addresses(
	json_t *status, const struct pod *pod, const struct pod_seen *seen, const struct status_context *ctx)
{
	const char *const *ips = (const char *const *)seen->ips;
	size_t n = seen->n_ips;

	if (*ctx->host_ip) {
		json_object_set_new(status, "hostIP", json_string(ctx->host_ip));
		json_object_set_new(status, "hostIPs", ip_list("ip", ctx->host_ips->v, ctx->host_ips->n));
	}
	if (pod->host_network && *ctx->host_ip && seen->sandbox.state != SANDBOX_NONE) {
		ips = ctx->host_ips->v;
		n = ctx->host_ips->n;
	}
	if (!n)
		return;
	json_object_set_new(status, "podIP", json_string(ips[0]));
	json_object_set_new(status, "podIPs", ip_list("ip", ips, n));
}

static int by_name(const void *a, const void *b, void *pod)
{
	const struct container *c = ((const struct pod *)pod)->containers;

	return strcmp(c[*(const size_t *)a].name, c[*(const size_t *)b].name);
}

static void add_containers(
	json_t *status, const struct pod_want *want, const struct pod_seen *seen, const struct status_context *ctx)
{
	const struct pod *pod = want->pod;
	size_t regular = pod->n_containers - pod->n_init;
	_cleanup_free_ size_t *order = xcalloc(regular, sizeof(*order));
	json_t *inits = json_array(), *list = json_array();

	for (size_t i = 0; i < pod->n_init; i++)
		json_array_append_new(inits, container_status(want, seen, i, ctx));
	for (size_t i = 0; i < regular; i++)
		order[i] = pod->n_init + i;
	qsort_r(order, regular, sizeof(*order), by_name, (void *)pod);
	for (size_t i = 0; i < regular; i++)
		json_array_append_new(list, container_status(want, seen, order[i], ctx));
	if (pod->n_init)
		json_object_set(status, "initContainerStatuses", inits);
	json_decref(inits);
	json_object_set_new(status, "containerStatuses", list);
}

json_t *pod_status(const struct pod_want *want, const struct pod_seen *seen, const struct status_context *ctx,
	struct condition_times *times)
{
	const struct pod *pod = want->pod;
	const char *phase = pod_phase(want, seen);
	json_t *status = json_object();
	bool failed = str_eq(phase, "Failed");

	if (pod->generation)
		json_object_set_new(status, "observedGeneration", json_integer((json_int_t)pod->generation));
	json_object_set_new(status, "phase", json_string(phase));
	if (failed && ctx->reason) {
		json_object_set_new(status, "reason", json_string(ctx->reason));
		json_object_set_new(status, "message", json_string(ctx->message ? ctx->message : ""));
	}
	if (ctx->start_at)
		set_time(status, "startTime", ctx->start_at);
	json_object_set_new(status, "qosClass", json_string(qos_name(pod_qos(pod))));
	if (want->reject)
		return status;
	json_object_set_new(status, "conditions", conditions(pod, seen, phase, ctx, times));
	add_addresses(status, pod, seen, ctx);
	add_containers(status, want, seen, ctx);
	return status;
}

void condition_times_read(struct condition_times *times, const json_t *status)
{
	const json_t *list = json_object_get(status, "conditions");

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *c = json_array_get(list, i);
		const char *type = json_string_value(json_object_get(c, "type"));
		const char *value = json_string_value(json_object_get(c, "status"));
		const char *since = json_string_value(json_object_get(c, "lastTransitionTime"));
		int64_t at;

		for (int k = 0; k < CONDITION_COUNT; k++)
			if (str_eq(type, condition_names[k]) && value && since && time_parse(since, &at) == 0) {
				times->known[k] = true;
				times->value[k] = str_eq(value, "True");
				times->since_at[k] = (uint64_t)at;
			}
	}
}

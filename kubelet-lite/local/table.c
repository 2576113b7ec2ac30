/* table.c - purpose: objects as rows of the Table that kubectl prints. */
#include "kubelet-lite/local/table.h"

#include <stdio.h>

#include "common/base/codec.h"
#include "common/base/str.h"
#include "common/wire/json.h"

/* "Name" is the name itself; a '+' in front: shown with -o wide only. */
static const char *const COLUMNS[KIND_COUNT] = {
	[KIND_POD] = "Name,Ready,Status,Restarts,Age,+IP,+Node,+Nominated Node,+Readiness Gates",
	[KIND_SERVICE] = "Name,Type,Cluster-IP,External-IP,Port(s),Age,+Selector",
	[KIND_NODE] = "Name,Status,Roles,Age,Version,+Internal-IP,+External-IP,+OS-Image,+Kernel-Version,+Container-Runtime",
	[KIND_NAMESPACE] = "Name,Status,Age",
	[KIND_ENDPOINT_SLICE] = "Name,AddressType,Ports,Endpoints,Age",
	[KIND_CONFIG_MAP] = "Name,Data,Age",
	[KIND_SECRET] = "Name,Type,Data,Age",
	[KIND_EVENT] = "Last Seen,Type,Reason,Object,+Subobject,+Source,Message,+First Seen,+Count,+Name",
	[KIND_LEASE] = "Name,Holder,Age",
};

json_t *table_columns(enum object_kind kind)
{
	_cleanup_(strv_done) struct strv names = STRV_INIT;
	json_t *columns = json_array();

	strv_split(&names, COLUMNS[kind], ',');
	for (size_t i = 0; i < names.n; i++) {
		bool wide = *names.v[i] == '+';
		const char *name = names.v[i] + wide;
		bool is_name = str_eq(name, "Name");
		bool is_number = str_eq(name, "Data") || str_eq(name, "Count");

		json_array_append_new(columns, json_pack("{ss ss ss ss si}", "name", name, "type",
							is_number ? "integer" : "string", "format", is_name ? "name" : "",
							"description", name, "priority", wide ? 1 : 0));
	}
	return columns;
}

/* Takes text. */
static void cell_take(json_t *cells, char *text)
{
	json_array_append_new(cells, json_string(text));
	free(text);
}

static void cell(json_t *cells, const char *text)
{
	json_array_append_new(cells, json_string(text));
}

static void cell_or(json_t *cells, const char *text, const char *otherwise)
{
	cell(cells, str_empty(text) ? otherwise : text);
}

static void cell_age(json_t *cells, const char *time, int64_t now_ns)
{
	char text[DURATION_TEXT_MAX];
	int64_t then;

	if (str_empty(time) || time_parse(time, &then) < 0) {
		cell(cells, "<unknown>");
		return;
	}
	age_text(now_ns - then, text);
	cell(cells, text);
}

static void cell_created(json_t *cells, const json_t *tree, int64_t now_ns)
{
	cell_age(cells, json_str_at(tree, "metadata.creationTimestamp", ""), now_ns);
}

static bool condition_true(const json_t *tree, const char *type)
{
	json_t *c;
	size_t i;

	json_array_foreach ((json_t *)json_at(tree, "status.conditions"), i, c)
		if (str_eq(json_str_at(c, "type", ""), type))
			return str_eq(json_str_at(c, "status", ""), "True");
	return false;
}

/* What the columns of a pod are made of. */
struct pod_view {
	char reason[128];
	int64_t total, ready, restarts;
	const char *last_restart;
};

static void note_restart(struct pod_view *v, const json_t *status)
{
	const char *finished = json_str_at(status, "lastState.terminated.finishedAt", NULL);

	v->restarts += json_int_at(status, "restartCount", 0);
	if (finished && (!v->last_restart || strcmp(finished, v->last_restart) > 0))
		v->last_restart = finished;
}

static void exit_reason(struct pod_view *v, const char *prefix, const json_t *terminated)
{
	const char *reason = json_str_at(terminated, "reason", "");
	long long sig = json_int_at(terminated, "signal", 0), code = json_int_at(terminated, "exitCode", 0);

	if (*reason)
		snprintf(v->reason, sizeof(v->reason), "%s%s", prefix, reason);
	else if (sig)
		snprintf(v->reason, sizeof(v->reason), "%sSignal:%lld", prefix, sig);
	else
		snprintf(v->reason, sizeof(v->reason), "%sExitCode:%lld", prefix, code);
}

static bool is_sidecar(const json_t *spec, const char *name)
{
	json_t *c;
	size_t i;

	json_array_foreach (json_object_get(spec, "initContainers"), i, c)
		if (str_eq(json_str_at(c, "name", ""), name))
			return str_eq(json_str_at(c, "restartPolicy", ""), "Always");
	return false;
}

/* True: the pod is still in its init containers, and v->reason says where. */
static bool init_view(struct pod_view *v, const json_t *spec, const json_t *statuses, size_t n_init)
{
	json_t *s;
	size_t i;

	json_array_foreach ((json_t *)statuses, i, s) {
		const json_t *ended = json_at(s, "state.terminated");
		const char *waiting = json_str_at(s, "state.waiting.reason", "");

		note_restart(v, s);
		if (ended && json_int_at(ended, "exitCode", 0) == 0)
			continue;
		if (is_sidecar(spec, json_str_at(s, "name", "")) && json_bool_at(s, "started", false)) {
			v->ready += json_bool_at(s, "ready", false);
			continue;
		}
		if (ended)
			exit_reason(v, "Init:", ended);
		else if (*waiting && !str_eq(waiting, "PodInitializing"))
			snprintf(v->reason, sizeof(v->reason), "Init:%s", waiting);
		else
			snprintf(v->reason, sizeof(v->reason), "Init:%zu/%zu", i, n_init);
		return true;
	}
	return false;
}

static void main_view(struct pod_view *v, const json_t *tree, const json_t *statuses)
{
	bool running = false;

	for (size_t i = json_array_size(statuses); i-- > 0;) {
		const json_t *s = json_array_get(statuses, i), *ended = json_at(s, "state.terminated");
		const char *waiting = json_str_at(s, "state.waiting.reason", "");

		note_restart(v, s);
		if (*waiting) {
			snprintf(v->reason, sizeof(v->reason), "%s", waiting);
		} else if (ended) {
			exit_reason(v, "", ended);
		} else if (json_bool_at(s, "ready", false) && json_at(s, "state.running")) {
			running = true;
			v->ready++;
		}
	}
	if (running && str_eq(v->reason, "Completed"))
		snprintf(v->reason, sizeof(v->reason), "%s", condition_true(tree, "Ready") ? "Running" : "NotReady");
}

static void pod_view(const json_t *tree, struct pod_view *v)
{
	const json_t *spec = json_object_get(tree, "spec"), *status = json_object_get(tree, "status"), *c;
	const char *phase = json_str_at(status, "phase", "Unknown"), *why = json_str_at(status, "reason", "");
	size_t n_init = json_array_size(json_object_get(spec, "initContainers"));

	v->total = (int64_t)json_array_size(json_object_get(spec, "containers"));
	for (size_t i = 0; i < n_init; i++) {
		c = json_array_get(json_object_get(spec, "initContainers"), i);
		v->total += str_eq(json_str_at(c, "restartPolicy", ""), "Always");
	}
	snprintf(v->reason, sizeof(v->reason), "%s", *why ? why : phase);
	bool initializing = init_view(v, spec, json_object_get(status, "initContainerStatuses"), n_init);

	if (!initializing || condition_true(tree, "Initialized")) {
		if (!initializing)
			v->restarts = 0, v->last_restart = NULL;
		main_view(v, tree, json_object_get(status, "containerStatuses"));
	}
	bool terminal = str_eq(phase, "Succeeded") || str_eq(phase, "Failed");

	if (json_at(tree, "metadata.deletionTimestamp") && str_eq(why, "NodeLost"))
		snprintf(v->reason, sizeof(v->reason), "Unknown");
	else if (json_at(tree, "metadata.deletionTimestamp") && !terminal)
		snprintf(v->reason, sizeof(v->reason), "Terminating");
}

static char *readiness_gates(const json_t *tree)
{
	const json_t *gates = json_at(tree, "spec.readinessGates");
	size_t n = json_array_size(gates), met = 0;

	for (size_t i = 0; i < n; i++)
		met += condition_true(tree, json_str_at(json_array_get(gates, i), "conditionType", ""));
	return n ? xasprintf("%zu/%zu", met, n) : xstrdup("<none>");
}

static void pod_cells(json_t *cells, const json_t *tree, int64_t now_ns)
{
	struct pod_view v = { .reason = "" };
	char ago[DURATION_TEXT_MAX];
	int64_t then;

	pod_view(tree, &v);
	cell(cells, json_str_at(tree, "metadata.name", ""));
	cell_take(cells, xasprintf("%lld/%lld", (long long)v.ready, (long long)v.total));
	cell(cells, v.reason);
	if (v.restarts && v.last_restart && time_parse(v.last_restart, &then) == 0) {
		age_text(now_ns - then, ago);
		cell_take(cells, xasprintf("%lld (%s ago)", (long long)v.restarts, ago));
	} else {
		cell_take(cells, xasprintf("%lld", (long long)v.restarts));
	}
	cell_created(cells, tree, now_ns);
	const char *ip = json_str_at(json_array_get(json_at(tree, "status.podIPs"), 0), "ip", NULL);

	cell_or(cells, ip ? ip : json_str_at(tree, "status.podIP", ""), "<none>");
	cell_or(cells, json_str_at(tree, "spec.nodeName", ""), "<none>");
	cell_or(cells, json_str_at(tree, "status.nominatedNodeName", ""), "<none>");
	cell_take(cells, readiness_gates(tree));
}

static void join(struct str *s, const char *text)
{
	str_addf(s, "%s%s", s->len ? "," : "", text);
}

static char *or_none(struct str *s)
{
	if (!s->len)
		str_add(s, "<none>");
	return str_take(s);
}

static char *string_list(const json_t *list)
{
	_cleanup_(str_done) struct str s = STR_INIT;
	json_t *value;
	size_t i;

	json_array_foreach ((json_t *)list, i, value)
		if (json_is_string(value))
			join(&s, json_string_value(value));
	return or_none(&s);
}

static char *external_ip(const json_t *tree, const char *type)
{
	_cleanup_(str_done) struct str s = STR_INIT;
	json_t *in;
	size_t i;

	if (str_eq(type, "ExternalName"))
		return xstrdup(json_str_at(tree, "spec.externalName", ""));
	if (!str_eq(type, "LoadBalancer") || json_array_size(json_at(tree, "spec.externalIPs")))
		return string_list(json_at(tree, "spec.externalIPs"));
	json_array_foreach ((json_t *)json_at(tree, "status.loadBalancer.ingress"), i, in)
		join(&s, json_str_at(in, "ip", json_str_at(in, "hostname", "")));
	if (!s.len)
		str_add(&s, "<pending>");
	return str_take(&s);
}

static char *service_ports(const json_t *spec)
{
	_cleanup_(str_done) struct str s = STR_INIT;
	json_t *p;
	size_t i;

	json_array_foreach (json_object_get(spec, "ports"), i, p) {
		long long port = json_int_at(p, "port", 0), node = json_int_at(p, "nodePort", 0);
		const char *protocol = json_str_at(p, "protocol", "TCP");

		if (node)
			str_addf(&s, "%s%lld:%lld/%s", s.len ? "," : "", port, node, protocol);
		else
			str_addf(&s, "%s%lld/%s", s.len ? "," : "", port, protocol);
	}
	return or_none(&s);
}

static char *label_list(const json_t *map)
{
	_cleanup_(str_done) struct str s = STR_INIT;
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)map, key, value)
		str_addf(&s, "%s%s=%s", s.len ? "," : "", key, json_is_string(value) ? json_string_value(value) : "");
	return or_none(&s);
}

static void service_cells(json_t *cells, const json_t *tree, int64_t now_ns)
{
	const json_t *spec = json_object_get(tree, "spec");
	const char *type = json_str_at(spec, "type", "");

	cell(cells, json_str_at(tree, "metadata.name", ""));
	cell(cells, type);
	cell_or(cells, json_str_at(spec, "clusterIP", ""), "<none>");
	cell_take(cells, external_ip(tree, type));
	cell_take(cells, service_ports(spec));
	cell_created(cells, tree, now_ns);
	cell_take(cells, label_list(json_object_get(spec, "selector")));
}

static const char *node_address(const json_t *tree, const char *type)
{
	json_t *a;
	size_t i;

	json_array_foreach ((json_t *)json_at(tree, "status.addresses"), i, a)
		if (str_eq(json_str_at(a, "type", ""), type))
			return json_str_at(a, "address", "<none>");
	return "<none>";
}

static char *node_roles(const json_t *tree)
{
	static const char prefix[] = "node-role.kubernetes.io/";
	_cleanup_(str_done) struct str s = STR_INIT;
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)json_at(tree, "metadata.labels"), key, value)
		if (str_starts(key, prefix) && key[strlen(prefix)])
			join(&s, key + strlen(prefix));
	return or_none(&s);
}

static void node_cells(json_t *cells, const json_t *tree, int64_t now_ns)
{
	bool known = json_array_size(json_at(tree, "status.conditions")) > 0, ready = condition_true(tree, "Ready");

	cell(cells, json_str_at(tree, "metadata.name", ""));
	cell_take(cells, xasprintf("%s%s", !known ? "Unknown" : ready ? "Ready" : "NotReady",
				 json_bool_at(tree, "spec.unschedulable", false) ? ",SchedulingDisabled" : ""));
	cell_take(cells, node_roles(tree));
	cell_created(cells, tree, now_ns);
	cell(cells, json_str_at(tree, "status.nodeInfo.kubeletVersion", ""));
	cell(cells, node_address(tree, "InternalIP"));
	cell(cells, node_address(tree, "ExternalIP"));
	cell_or(cells, json_str_at(tree, "status.nodeInfo.osImage", ""), "<unknown>");
	cell_or(cells, json_str_at(tree, "status.nodeInfo.kernelVersion", ""), "<unknown>");
	cell_or(cells, json_str_at(tree, "status.nodeInfo.containerRuntimeVersion", ""), "<unknown>");
}

enum { SHOWN_MAX = 3 };

static char *more(struct str *s, size_t n)
{
	if (n > SHOWN_MAX)
		str_addf(s, " + %zu more...", n - SHOWN_MAX);
	return str_take(s);
}

static char *slice_ports(const json_t *tree)
{
	const json_t *ports = json_object_get(tree, "ports");
	_cleanup_(str_done) struct str s = STR_INIT;
	size_t n = json_array_size(ports);

	if (n == 0)
		return xstrdup("<unset>");
	for (size_t i = 0; i < n && i < SHOWN_MAX; i++) {
		long long port = json_int_at(json_array_get(ports, i), "port", 0);

		str_addf(&s, port ? "%s%lld" : "%s*", i ? "," : "", port);
	}
	return more(&s, n);
}

static char *slice_endpoints(const json_t *tree)
{
	const json_t *endpoints = json_object_get(tree, "endpoints");
	_cleanup_(str_done) struct str s = STR_INIT;
	size_t n = json_array_size(endpoints);

	if (n == 0)
		return xstrdup("<unset>");
	for (size_t i = 0; i < n && i < SHOWN_MAX; i++)
		str_addf(&s, "%s%s", i ? "," : "",
			json_string_value(json_array_get(json_object_get(json_array_get(endpoints, i), "addresses"), 0)));
	return more(&s, n);
}

static const char *event_time(const json_t *tree, const char *key)
{
	const char *time = json_str_at(tree, key, "");

	return *time ? time : json_str_at(tree, "eventTime", "");
}

static void event_cells(json_t *cells, const json_t *tree, int64_t now_ns)
{
	_cleanup_(str_done) struct str kind = STR_INIT;
	const char *component = json_str_at(tree, "source.component", json_str_at(tree, "reportingComponent", ""));
	const char *host = json_str_at(tree, "source.host", "");

	for (const char *p = json_str_at(tree, "involvedObject.kind", ""); *p; p++)
		str_add_char(&kind, *p >= 'A' && *p <= 'Z' ? (char)(*p + 32) : *p);
	cell_age(cells, event_time(tree, "lastTimestamp"), now_ns);
	cell(cells, json_str_at(tree, "type", ""));
	cell(cells, json_str_at(tree, "reason", ""));
	cell_take(cells, xasprintf("%s/%s", str_get(&kind), json_str_at(tree, "involvedObject.name", "")));
	cell(cells, json_str_at(tree, "involvedObject.fieldPath", ""));
	cell_take(cells, *host ? xasprintf("%s, %s", component, host) : xstrdup(component));
	_cleanup_free_ char *message = xstrdup(json_str_at(tree, "message", ""));
	size_t len = strlen(message);

	while (len && (message[len - 1] == '\n' || message[len - 1] == ' '))
		message[--len] = '\0';
	cell(cells, message);
	cell_age(cells, event_time(tree, "firstTimestamp"), now_ns);
	json_array_append_new(cells, json_integer(json_int_at(tree, "count", 1)));
	cell(cells, json_str_at(tree, "metadata.name", ""));
}

static void other_cells(enum object_kind kind, json_t *cells, const json_t *tree, int64_t now_ns)
{
	size_t data = json_object_size(json_object_get(tree, "data")) + json_object_size(json_object_get(tree, "binaryData"));

	cell(cells, json_str_at(tree, "metadata.name", ""));
	if (kind == KIND_NAMESPACE) {
		cell(cells, json_str_at(tree, "status.phase", ""));
	} else if (kind == KIND_ENDPOINT_SLICE) {
		cell(cells, json_str_at(tree, "addressType", ""));
		cell_take(cells, slice_ports(tree));
		cell_take(cells, slice_endpoints(tree));
	} else if (kind == KIND_LEASE) {
		cell(cells, json_str_at(tree, "spec.holderIdentity", ""));
	} else {
		if (kind == KIND_SECRET)
			cell(cells, json_str_at(tree, "type", ""));
		json_array_append_new(cells, json_integer((json_int_t)data));
	}
	cell_created(cells, tree, now_ns);
}

json_t *table_partial(const json_t *tree)
{
	return json_pack("{ss ss sO}", "kind", "PartialObjectMetadata", "apiVersion", "meta.k8s.io/v1", "metadata",
		json_object_get(tree, "metadata"));
}

json_t *table_row(enum object_kind kind, const json_t *tree, int64_t now_ns, enum table_include include)
{
	json_t *row = json_object(), *cells = json_array();

	json_object_set_new(row, "cells", cells);
	if (kind == KIND_POD)
		pod_cells(cells, tree, now_ns);
	else if (kind == KIND_SERVICE)
		service_cells(cells, tree, now_ns);
	else if (kind == KIND_NODE)
		node_cells(cells, tree, now_ns);
	else if (kind == KIND_EVENT)
		event_cells(cells, tree, now_ns);
	else
		other_cells(kind, cells, tree, now_ns);
	if (include == TABLE_OBJECT)
		json_object_set(row, "object", (json_t *)tree);
	else if (include == TABLE_METADATA)
		json_object_set_new(row, "object", table_partial(tree));
	else
		json_object_set_new(row, "object", json_null());
	return row;
}

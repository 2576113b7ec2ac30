/* container.c - purpose: decode one container of a Pod. */
#include "kubelet-lite/model/decode.h"

static struct port_ref decode_port(struct decode *d, const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	if (json_is_string(v))
		return (struct port_ref){ .name = decode_str(d, o, key, "") };
	return (struct port_ref){ .number = (int)decode_int(d, o, key, 0, 1, 65535), .name = "" };
}

static struct kv_list decode_headers(struct decode *d, const json_t *http)
{
	const json_t *a = decode_array(d, http, "httpHeaders");
	struct kv_list list = { .n = json_array_size(a) };

	list.v = arena_array(d->arena, list.n, sizeof(*list.v));
	for (size_t i = 0; i < list.n; i++) {
		list.v[i].key = decode_str(d, json_array_get(a, i), "name", "");
		list.v[i].value = decode_str(d, json_array_get(a, i), "value", "");
	}
	return list;
}

static struct handler decode_http(struct decode *d, const json_t *http)
{
	static const char *const schemes[] = { "HTTP", "HTTPS", NULL };

	return (struct handler){
		.kind = HANDLER_HTTP,
		.host = decode_str(d, http, "host", ""),
		.port = decode_port(d, http, "port"),
		.path = decode_str(d, http, "path", "/"),
		.https = decode_enum(d, http, "scheme", schemes, 0) == 1,
		.headers = decode_headers(d, http),
	};
}

static struct handler decode_handler(struct decode *d, const json_t *o)
{
	const json_t *exec = decode_object(d, o, "exec"), *http = decode_object(d, o, "httpGet"),
		     *tcp = decode_object(d, o, "tcpSocket"), *grpc = decode_object(d, o, "grpc"),
		     *sleep = decode_object(d, o, "sleep");

	if (exec)
		return (struct handler){ .kind = HANDLER_EXEC, .command = decode_strings(d, exec, "command") };
	if (http)
		return decode_http(d, http);
	if (tcp)
		return (struct handler){
			.kind = HANDLER_TCP, .host = decode_str(d, tcp, "host", ""), .port = decode_port(d, tcp, "port")
		};
	if (grpc)
		return (struct handler){ .kind = HANDLER_GRPC,
			.host = "",
			.port = decode_port(d, grpc, "port"),
			.service = decode_str(d, grpc, "service", "") };
	if (sleep)
		return (struct handler){ .kind = HANDLER_SLEEP,
			.sleep_seconds = decode_int(d, sleep, "seconds", 0, 0, INT32_MAX) };
	return (struct handler){ .kind = HANDLER_NONE };
}

struct handler handler_decode(struct arena *arena, const json_t *tree)
{
	struct error err;
	struct decode d = { .arena = arena, .err = &err };

	return decode_handler(&d, tree);
}

static struct probe decode_probe(struct decode *d, const json_t *o, const char *key)
{
	const json_t *p = decode_object(d, o, key);
	size_t mark = decode_enter(d, "%s", key);
	struct probe probe = {
		.handler = decode_handler(d, p),
		.initial_delay_seconds = (int)decode_int(d, p, "initialDelaySeconds", 0, 0, INT32_MAX),
		.timeout_seconds = (int)decode_int(d, p, "timeoutSeconds", 1, 1, INT32_MAX),
		.period_seconds = (int)decode_int(d, p, "periodSeconds", 10, 1, INT32_MAX),
		.success_threshold = (int)decode_int(d, p, "successThreshold", 1, 1, INT32_MAX),
		.failure_threshold = (int)decode_int(d, p, "failureThreshold", 3, 1, INT32_MAX),
		.grace_seconds = decode_int(d, p, "terminationGracePeriodSeconds", -1, 1, INT32_MAX),
	};

	if (p && probe.handler.kind == HANDLER_NONE)
		decode_fail(d, "", "an exec, httpGet, tcpSocket or grpc check");
	if (probe.handler.kind == HANDLER_SLEEP)
		decode_fail(d, "", "an exec, httpGet, tcpSocket or grpc check");
	decode_leave(d, mark);
	return probe;
}

static struct handler decode_hook(struct decode *d, const json_t *lifecycle, const char *key)
{
	struct handler h = decode_handler(d, decode_object(d, lifecycle, key));
	size_t mark = decode_enter(d, "lifecycle.%s", key);

	if (h.kind == HANDLER_TCP || h.kind == HANDLER_GRPC)
		decode_unsupported(d, "tcpSocket", "hooks are exec, httpGet or sleep");
	decode_leave(d, mark);
	return h;
}

struct field_ref decode_field_ref(struct decode *d, const json_t *o, bool in_volume)
{
	static const char *const known[] = { "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName",
		"spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs", NULL };
	const char *path = decode_str(d, o, "fieldPath", "");
	bool ok = str_starts(path, "metadata.labels['") || str_starts(path, "metadata.annotations['");

	if (in_volume)
		ok |= str_eq(path, "metadata.labels") || str_eq(path, "metadata.annotations");
	for (size_t i = 0; known[i] && !ok; i++)
		ok = str_eq(path, known[i]);
	if (!ok)
		decode_unsupported(d, "fieldRef.fieldPath", arena_printf(d->arena, "unknown field \"%.60s\"", path));
	return (struct field_ref){ .path = path };
}

struct resource_ref decode_resource_ref(struct decode *d, const json_t *o)
{
	struct resource_ref ref = {
		.container = decode_str(d, o, "containerName", ""),
		.resource = decode_str(d, o, "resource", ""),
		.divisor = quantity_of(1),
	};

	decode_quantity(d, o, "divisor", &ref.divisor);
	if (!str_starts(ref.resource, "limits.") && !str_starts(ref.resource, "requests."))
		decode_unsupported(d, "resourceFieldRef.resource",
			arena_printf(d->arena, "unknown resource \"%.60s\"", ref.resource));
	return ref;
}

static void decode_env_source(struct decode *d, const json_t *from, struct env_var *v)
{
	const json_t *field = decode_object(d, from, "fieldRef"),
		     *resource = decode_object(d, from, "resourceFieldRef"),
		     *map = decode_object(d, from, "configMapKeyRef"), *secret = decode_object(d, from, "secretKeyRef"),
		     *ref = map ? map : secret;

	if (field) {
		v->kind = ENV_FIELD;
		v->field = decode_field_ref(d, field, false);
	} else if (resource) {
		v->kind = ENV_RESOURCE;
		v->resource = decode_resource_ref(d, resource);
	} else if (ref) {
		v->kind = map ? ENV_CONFIG_MAP : ENV_SECRET;
		v->object = decode_str(d, ref, "name", "");
		v->key = decode_str(d, ref, "key", "");
		v->optional = decode_bool(d, ref, "optional", false);
	} else {
		decode_unsupported(d, "valueFrom",
			"one of fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef is supported by "
			"kubelet-lite");
	}
}

static void decode_env(struct decode *d, const json_t *o, struct container *c)
{
	const json_t *env = decode_array(d, o, "env"), *from = decode_array(d, o, "envFrom");

	c->n_env = json_array_size(env);
	c->env = arena_array(d->arena, c->n_env, sizeof(*c->env));
	for (size_t i = 0; i < c->n_env; i++) {
		const json_t *e = json_array_get(env, i);
		size_t mark = decode_enter(d, "env[%zu]", i);

		c->env[i].name = decode_str(d, e, "name", "");
		c->env[i].value = decode_str(d, e, "value", "");
		c->env[i].object = c->env[i].key = "";
		if (decode_object(d, e, "valueFrom"))
			decode_env_source(d, decode_object(d, e, "valueFrom"), &c->env[i]);
		decode_leave(d, mark);
	}
	c->n_env_from = json_array_size(from);
	c->env_from = arena_array(d->arena, c->n_env_from, sizeof(*c->env_from));
	for (size_t i = 0; i < c->n_env_from; i++) {
		const json_t *e = json_array_get(from, i), *secret = decode_object(d, e, "secretRef"),
			     *ref = secret ? secret : decode_object(d, e, "configMapRef");

		c->env_from[i].prefix = decode_str(d, e, "prefix", "");
		c->env_from[i].secret = secret != NULL;
		c->env_from[i].object = decode_str(d, ref, "name", "");
		c->env_from[i].optional = decode_bool(d, ref, "optional", false);
	}
}

static void decode_ports(struct decode *d, const json_t *o, struct container *c)
{
	const json_t *a = decode_array(d, o, "ports");

	c->n_ports = json_array_size(a);
	c->ports = arena_array(d->arena, c->n_ports, sizeof(*c->ports));
	for (size_t i = 0; i < c->n_ports; i++) {
		const json_t *p = json_array_get(a, i);
		size_t mark = decode_enter(d, "ports[%zu]", i);

		c->ports[i] = (struct container_port){
			.name = decode_str(d, p, "name", ""),
			.protocol = decode_str(d, p, "protocol", "TCP"),
			.container_port = (int)decode_int(d, p, "containerPort", 0, 1, 65535),
			.host_port = (int)decode_int(d, p, "hostPort", 0, 0, 65535),
			.host_ip = decode_str(d, p, "hostIP", ""),
		};
		decode_leave(d, mark);
	}
}

static void decode_mounts(struct decode *d, const json_t *o, struct container *c)
{
	const json_t *a = decode_array(d, o, "volumeMounts");

	if (json_array_size(decode_array(d, o, "volumeDevices")))
		decode_unsupported(d, "volumeDevices", "not supported by kubelet-lite");
	c->n_mounts = json_array_size(a);
	c->mounts = arena_array(d->arena, c->n_mounts, sizeof(*c->mounts));
	for (size_t i = 0; i < c->n_mounts; i++) {
		const json_t *m = json_array_get(a, i);
		const char *recursive = decode_str(d, m, "recursiveReadOnly", "Disabled");

		c->mounts[i] = (struct volume_mount){
			.volume = decode_str(d, m, "name", ""),
			.path = decode_str(d, m, "mountPath", ""),
			.sub_path = decode_str(d, m, "subPath", ""),
			.sub_path_expr = decode_str(d, m, "subPathExpr", ""),
			.read_only = decode_bool(d, m, "readOnly", false),
			.recursive_read_only = !str_eq(recursive, "Disabled"),
			.propagation = decode_str(d, m, "mountPropagation", "None"),
		};
		if (!*c->mounts[i].path)
			decode_fail(d, "volumeMounts", "mounts with a mountPath");
	}
}

static struct resource_list decode_amounts(struct decode *d, const json_t *resources, const char *key)
{
	const json_t *m = decode_object(d, resources, key);
	struct resource_list list = { 0 };
	const char *name;
	json_t *v;

	list.v = arena_array(d->arena, json_object_size(m), sizeof(*list.v));
	json_object_foreach((json_t *)m, name, v)
	{
		struct quantity amount = QUANTITY_ZERO;

		decode_quantity(d, m, name, &amount);
		const char *text = json_is_string(v)
					   ? arena_strdup(d->arena, json_string_value(v))
					   : arena_printf(d->arena, "%lld", (long long)quantity_value(amount));
		list.v[list.n++] = (struct resource){ arena_strdup(d->arena, name), amount, text };
	}
	return list;
}

/* A limit without a request is the request too (API defaulting). */
static void default_requests(struct decode *d, struct container *c)
{
	struct resource_list both = { .v = arena_array(
					      d->arena, c->requests.n + c->limits.n, sizeof(struct resource)) };
	struct quantity q;

	for (size_t i = 0; i < c->requests.n; i++)
		both.v[both.n++] = c->requests.v[i];
	for (size_t i = 0; i < c->limits.n; i++)
		if (!resource_get(&c->requests, c->limits.v[i].name, &q))
			both.v[both.n++] = c->limits.v[i];
	c->requests = both;
}

static void decode_resources(struct decode *d, const json_t *o, struct container *c)
{
	const json_t *r = decode_object(d, o, "resources");
	size_t mark = decode_enter(d, "resources");

	c->requests = decode_amounts(d, r, "requests");
	c->limits = decode_amounts(d, r, "limits");
	default_requests(d, c);
	if (json_array_size(decode_array(d, r, "claims")))
		decode_unsupported(d, "claims", "not supported by kubelet-lite");
	for (size_t i = 0; i < c->requests.n; i++) {
		const char *name = c->requests.v[i].name;

		if (!str_eq(name, "cpu") && !str_eq(name, "memory") && !str_eq(name, "ephemeral-storage"))
			decode_unsupported(
				d, arena_printf(d->arena, "requests[%.60s]", name), "this node has no such resource");
	}
	decode_leave(d, mark);
}

static void decode_lifecycle(struct decode *d, const json_t *o, struct container *c)
{
	const json_t *lifecycle = decode_object(d, o, "lifecycle");

	c->post_start = decode_hook(d, lifecycle, "postStart");
	c->pre_stop = decode_hook(d, lifecycle, "preStop");
	c->stop_signal = decode_str(d, lifecycle, "stopSignal", "");
	c->probes[PROBE_STARTUP] = decode_probe(d, o, "startupProbe");
	c->probes[PROBE_LIVENESS] = decode_probe(d, o, "livenessProbe");
	c->probes[PROBE_READINESS] = decode_probe(d, o, "readinessProbe");
}

static void decode_restart(struct decode *d, const json_t *o, struct container *c)
{
	const char *policy = decode_str(d, o, "restartPolicy", "");

	if (c->kind == CONTAINER_INIT && str_eq(policy, "Always"))
		c->kind = CONTAINER_SIDECAR;
	else if (*policy)
		decode_unsupported(d, "restartPolicy", "only Always on an init container is supported by kubelet-lite");
	if (json_array_size(decode_array(d, o, "restartPolicyRules")))
		decode_unsupported(d, "restartPolicyRules", "not supported by kubelet-lite");
}

/* FNV-1a over name and image. */
static uint32_t container_hash(const struct container *c)
{
	uint32_t h = 2166136261u;
	const char *parts[] = { c->name, c->image };

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		for (const char *p = parts[i]; *p; p++)
			h = (h ^ (unsigned char)*p) * 16777619u;
		h = (h ^ 0xff) * 16777619u;
	}
	return h;
}

static enum pull_policy default_pull(const char *image)
{
	const char *slash = strrchr(image, '/'), *tag = strchr(slash ? slash : image, ':');

	if (strchr(image, '@'))
		return PULL_IF_NOT_PRESENT;
	return !tag || str_eq(tag, ":latest") ? PULL_ALWAYS : PULL_IF_NOT_PRESENT;
}

void decode_container(struct decode *d, const json_t *o, struct container *c)
{
	static const char *const pulls[] = { "Always", "IfNotPresent", "Never", NULL };
	static const char *const messages[] = { "File", "FallbackToLogsOnError", NULL };

	c->name = decode_str(d, o, "name", "");
	if (!*c->name || strchr(c->name, '/') || *c->name == '.')
		decode_fail(d, "name", "a name without slashes");
	c->image = decode_str(d, o, "image", "");
	c->pull = (enum pull_policy)decode_enum(d, o, "imagePullPolicy", pulls, (int)default_pull(c->image));
	c->command = decode_strings(d, o, "command");
	c->args = decode_strings(d, o, "args");
	c->working_dir = decode_str(d, o, "workingDir", "");
	c->termination_path = decode_str(d, o, "terminationMessagePath", "/dev/termination-log");
	c->termination_from_logs = decode_enum(d, o, "terminationMessagePolicy", messages, 0) == 1;
	c->is_stdin = decode_bool(d, o, "stdin", false);
	c->stdin_once = decode_bool(d, o, "stdinOnce", false);
	c->tty = decode_bool(d, o, "tty", false);
	decode_env(d, o, c);
	decode_ports(d, o, c);
	decode_mounts(d, o, c);
	decode_resources(d, o, c);
	decode_lifecycle(d, o, c);
	decode_restart(d, o, c);
	size_t mark = decode_enter(d, "securityContext");
	c->security = decode_security(d, decode_object(d, o, "securityContext"));
	decode_leave(d, mark);
	c->hash = container_hash(c);
}

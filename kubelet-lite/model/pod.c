/* pod.c - purpose: decode a Pod: metadata and what belongs to the pod as a whole. */
#include "kubelet-lite/model/pod.h"

#include "common/base/codec.h"
#include "kubelet-lite/model/decode.h"

const char *kv_get(const struct kv_list *list, const char *key)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->v[i].key, key) == 0)
			return list->v[i].value;
	return NULL;
}

bool str_list_has(const struct str_list *list, const char *s)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->v[i], s) == 0)
			return true;
	return false;
}

bool resource_get(const struct resource_list *list, const char *name, struct quantity *ret)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->v[i].name, name) == 0) {
			*ret = list->v[i].amount;
			return true;
		}
	return false;
}

int pod_container(const struct pod *pod, const char *name)
{
	for (size_t i = 0; i < pod->n_containers; i++)
		if (strcmp(pod->containers[i].name, name) == 0)
			return (int)i;
	return -1;
}

const struct volume *pod_volume(const struct pod *pod, const char *name)
{
	for (size_t i = 0; i < pod->n_volumes; i++)
		if (strcmp(pod->volumes[i].name, name) == 0)
			return &pod->volumes[i];
	return NULL;
}

char *pod_field_path(const struct container *container)
{
	return xasprintf(
		"spec.%s{%s}", container->kind == CONTAINER_REGULAR ? "containers" : "initContainers", container->name);
}

static bool env_uses(const struct container *c, bool secret, const char *object)
{
	for (size_t i = 0; i < c->n_env; i++)
		if (c->env[i].kind == (secret ? ENV_SECRET : ENV_CONFIG_MAP) && strcmp(c->env[i].object, object) == 0)
			return true;
	for (size_t i = 0; i < c->n_env_from; i++)
		if (c->env_from[i].secret == secret && strcmp(c->env_from[i].object, object) == 0)
			return true;
	return false;
}

bool pod_uses(const struct pod *pod, bool secret, const char *object)
{
	for (size_t i = 0; i < pod->n_volumes; i++)
		for (size_t j = 0; j < pod->volumes[i].n_sources; j++) {
			const struct payload_source *s = &pod->volumes[i].sources[j];

			if (s->kind == (secret ? PAYLOAD_SECRET : PAYLOAD_CONFIG_MAP) && strcmp(s->object, object) == 0)
				return true;
		}
	for (size_t i = 0; i < pod->n_containers; i++)
		if (env_uses(&pod->containers[i], secret, object))
			return true;
	return secret && str_list_has(&pod->pull_secrets, object);
}

int container_port_number(const struct container *container, const struct port_ref *port)
{
	if (port->number || str_empty(port->name))
		return port->number;
	for (size_t i = 0; i < container->n_ports; i++)
		if (strcmp(container->ports[i].name, port->name) == 0)
			return container->ports[i].container_port;
	return 0;
}

static struct profile decode_profile(struct decode *d, const json_t *o, const char *key)
{
	const json_t *p = decode_object(d, o, key);

	return (struct profile){
		.type = decode_str(d, p, "type", ""),
		.localhost = decode_str(d, p, "localhostProfile", ""),
	};
}

struct security decode_security(struct decode *d, const json_t *o)
{
	const json_t *caps = decode_object(d, o, "capabilities"), *win = decode_object(d, o, "windowsOptions");

	if (json_object_size(win))
		decode_unsupported(d, "windowsOptions", "this is a Linux node");
	return (struct security){
		.run_as_user = decode_int(d, o, "runAsUser", -1, 0, UINT32_MAX),
		.run_as_group = decode_int(d, o, "runAsGroup", -1, 0, UINT32_MAX),
		.run_as_non_root = decode_tristate(d, o, "runAsNonRoot"),
		.privileged = decode_tristate(d, o, "privileged"),
		.read_only_root = decode_tristate(d, o, "readOnlyRootFilesystem"),
		.allow_escalation = decode_tristate(d, o, "allowPrivilegeEscalation"),
		.cap_add = decode_strings(d, caps, "add"),
		.cap_drop = decode_strings(d, caps, "drop"),
		.seccomp = decode_profile(d, o, "seccompProfile"),
		.apparmor = decode_profile(d, o, "appArmorProfile"),
		.proc_mount = decode_str(d, o, "procMount", ""),
		.selinux = decode_map(d, o, "seLinuxOptions"),
	};
}

static void decode_pod_security(struct decode *d, const json_t *spec, struct pod *pod)
{
	const json_t *o = decode_object(d, spec, "securityContext");
	size_t mark = decode_enter(d, "securityContext");
	static const char *const changes[] = { "Always", "OnRootMismatch", NULL };
	static const char *const policies[] = { "Merge", "Strict", NULL };

	pod->security = decode_security(d, o);
	pod->fs_group = decode_int(d, o, "fsGroup", -1, 0, UINT32_MAX);
	pod->fs_group_on_root_mismatch = decode_enum(d, o, "fsGroupChangePolicy", changes, 0) == 1;
	pod->strict_groups = decode_enum(d, o, "supplementalGroupsPolicy", policies, 0) == 1;

	const json_t *groups = decode_array(d, o, "supplementalGroups");
	pod->n_supplemental_groups = json_array_size(groups);
	pod->supplemental_groups = arena_array(d->arena, pod->n_supplemental_groups, sizeof(*pod->supplemental_groups));
	for (size_t i = 0; i < pod->n_supplemental_groups; i++)
		pod->supplemental_groups[i] = json_integer_value(json_array_get(groups, i));

	const json_t *sysctls = decode_array(d, o, "sysctls");
	pod->sysctls.n = json_array_size(sysctls);
	pod->sysctls.v = arena_array(d->arena, pod->sysctls.n, sizeof(*pod->sysctls.v));
	for (size_t i = 0; i < pod->sysctls.n; i++) {
		pod->sysctls.v[i].key = decode_str(d, json_array_get(sysctls, i), "name", "");
		pod->sysctls.v[i].value = decode_str(d, json_array_get(sysctls, i), "value", "");
	}
	decode_leave(d, mark);
}

static void decode_dns(struct decode *d, const json_t *spec, struct pod *pod)
{
	static const char *const policies[] = { "ClusterFirst", "ClusterFirstWithHostNet", "Default", "None", NULL };
	const json_t *config = decode_object(d, spec, "dnsConfig"), *options;

	pod->dns = (enum dns_policy)decode_enum(d, spec, "dnsPolicy", policies, DNS_CLUSTER_FIRST);
	pod->dns_servers = decode_strings(d, config, "nameservers");
	pod->dns_searches = decode_strings(d, config, "searches");
	options = decode_array(d, config, "options");
	pod->dns_options.n = json_array_size(options);
	pod->dns_options.v = arena_array(d->arena, pod->dns_options.n, sizeof(*pod->dns_options.v));
	for (size_t i = 0; i < pod->dns_options.n; i++) {
		pod->dns_options.v[i].key = decode_str(d, json_array_get(options, i), "name", "");
		pod->dns_options.v[i].value = decode_str(d, json_array_get(options, i), "value", "");
	}
}

static void decode_host_aliases(struct decode *d, const json_t *spec, struct pod *pod)
{
	const json_t *a = decode_array(d, spec, "hostAliases");

	pod->n_host_aliases = json_array_size(a);
	pod->host_aliases = arena_array(d->arena, pod->n_host_aliases, sizeof(*pod->host_aliases));
	for (size_t i = 0; i < pod->n_host_aliases; i++) {
		pod->host_aliases[i].ip = decode_str(d, json_array_get(a, i), "ip", "");
		pod->host_aliases[i].names = decode_strings(d, json_array_get(a, i), "hostnames");
	}
}

/* Fields that change what a pod is and that we do not have (yet). */
static void decode_refused(struct decode *d, const json_t *spec)
{
	static const char *const lists[] = { "ephemeralContainers", "resourceClaims", "schedulingGates", NULL };

	for (size_t i = 0; lists[i]; i++)
		if (json_array_size(decode_array(d, spec, lists[i])))
			decode_unsupported(d, lists[i], "not supported by kubelet-lite");
	if (*decode_str(d, spec, "runtimeClassName", ""))
		decode_unsupported(d, "runtimeClassName", "not supported by kubelet-lite");
	if (!decode_bool(d, spec, "hostUsers", true))
		decode_unsupported(d, "hostUsers", "user namespaces are not supported by kubelet-lite");
	if (json_object_size(decode_object(d, spec, "resources")))
		decode_unsupported(d, "resources", "pod-level resources are not supported by kubelet-lite");
	const json_t *required = json_object_get(json_object_get(json_object_get(spec, "affinity"), "nodeAffinity"),
		"requiredDuringSchedulingIgnoredDuringExecution");
	if (json_object_size(required))
		decode_unsupported(d, "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution",
			"not supported by kubelet-lite; use nodeSelector");
}

static void decode_container_list(struct decode *d, const json_t *spec, const char *key, struct container *to)
{
	const json_t *a = decode_array(d, spec, key);

	for (size_t i = 0; i < json_array_size(a); i++) {
		size_t mark = decode_enter(d, "%s[%zu]", key, i);
		const json_t *o = json_array_get(a, i);

		if (!json_is_object(o))
			decode_fail(d, "", "an object");
		to[i].kind = strcmp(key, "containers") == 0 ? CONTAINER_REGULAR : CONTAINER_INIT;
		decode_container(d, o, &to[i]);
		decode_leave(d, mark);
	}
}

static void decode_containers(struct decode *d, const json_t *spec, struct pod *pod)
{
	size_t regular = json_array_size(decode_array(d, spec, "containers"));

	pod->n_init = json_array_size(decode_array(d, spec, "initContainers"));
	pod->n_containers = pod->n_init + regular;
	if (!regular)
		decode_fail(d, "containers", "a list of at least one container");
	pod->containers = arena_array(d->arena, pod->n_containers, sizeof(*pod->containers));
	decode_container_list(d, spec, "initContainers", pod->containers);
	decode_container_list(d, spec, "containers", pod->containers + pod->n_init);
	for (size_t i = 0; i < pod->n_containers; i++)
		if (pod_container(pod, pod->containers[i].name) != (int)i)
			decode_fail(d, "containers", "names that differ from each other");
}

static struct str_list decode_names(struct decode *d, const json_t *o, const char *key, const char *member)
{
	const json_t *a = decode_array(d, o, key);
	struct str_list list = { .n = json_array_size(a) };

	list.v = arena_array(d->arena, list.n, sizeof(*list.v));
	for (size_t i = 0; i < list.n; i++)
		list.v[i] = decode_str(d, json_array_get(a, i), member, "");
	return list;
}

static void decode_spec(struct decode *d, const json_t *spec, struct pod *pod)
{
	static const char *const restarts[] = { "Always", "OnFailure", "Never", NULL };

	pod->restart = (enum restart_policy)decode_enum(d, spec, "restartPolicy", restarts, RESTART_ALWAYS);
	pod->grace_seconds = decode_int(d, spec, "terminationGracePeriodSeconds", 30, 0, INT32_MAX);
	pod->active_deadline_seconds = decode_int(d, spec, "activeDeadlineSeconds", -1, 1, INT32_MAX);
	pod->node_name = decode_str(d, spec, "nodeName", "");
	pod->service_account = decode_str(d, spec, "serviceAccountName", "default");
	pod->host_network = decode_bool(d, spec, "hostNetwork", false);
	pod->host_pid = decode_bool(d, spec, "hostPID", false);
	pod->host_ipc = decode_bool(d, spec, "hostIPC", false);
	pod->share_pid = decode_bool(d, spec, "shareProcessNamespace", false);
	pod->service_links = decode_bool(d, spec, "enableServiceLinks", true);
	pod->hostname = decode_str(d, spec, "hostname", "");
	pod->subdomain = decode_str(d, spec, "subdomain", "");
	pod->hostname_as_fqdn = decode_bool(d, spec, "setHostnameAsFQDN", false);
	pod->hostname_override = decode_str(d, spec, "hostnameOverride", "");
	pod->os = decode_str(d, decode_object(d, spec, "os"), "name", "");
	pod->node_selector = decode_map(d, spec, "nodeSelector");
	pod->pull_secrets = decode_names(d, spec, "imagePullSecrets", "name");
	pod->readiness_gates = decode_names(d, spec, "readinessGates", "conditionType");
	decode_host_aliases(d, spec, pod);
	decode_dns(d, spec, pod);
	decode_pod_security(d, spec, pod);
	decode_volumes(d, spec);
	decode_containers(d, spec, pod);
	decode_refused(d, spec);
}

/* Mounts must name volumes. Checked here too, because the rest relies on it. */
static void check_mounts(struct decode *d, const struct pod *pod)
{
	for (size_t i = 0; i < pod->n_containers; i++)
		for (size_t j = 0; j < pod->containers[i].n_mounts; j++)
			if (!pod_volume(pod, pod->containers[i].mounts[j].volume))
				decode_fail(d, pod->containers[i].name, "mounting volumes of spec.volumes only");
}

static void decode_metadata(struct decode *d, const json_t *meta, struct pod *pod)
{
	const char *created;
	int64_t ns;

	pod->ns = decode_str(d, meta, "namespace", "default");
	pod->name = decode_str(d, meta, "name", "");
	pod->uid = decode_str(d, meta, "uid", "");
	pod->generation = (uint64_t)decode_int(d, meta, "generation", 0, 0, INT64_MAX);
	pod->labels = decode_map(d, meta, "labels");
	pod->annotations = decode_map(d, meta, "annotations");
	pod->deleting = *decode_str(d, meta, "deletionTimestamp", "") != '\0';
	pod->deletion_grace_seconds = decode_int(d, meta, "deletionGracePeriodSeconds", -1, 0, INT32_MAX);
	created = decode_str(d, meta, "creationTimestamp", "");
	if (time_parse(created, &ns) == 0 && ns > 0)
		pod->created_ns = (uint64_t)ns;
	if (!*pod->name)
		decode_fail(d, "name", "set");
	/* They become parts of paths. */
	if (strchr(pod->name, '/') || strchr(pod->ns, '/') || strchr(pod->uid, '/') || *pod->uid == '.')
		decode_fail(d, "name", "free of slashes");
}

int pod_decode(const json_t *tree, struct pod **ret, struct error *err)
{
	_cleanup_(pod_free_p) struct pod *pod = xnew(struct pod);
	struct error local = ERROR_INIT;
	struct decode d = { .arena = &pod->arena, .pod = pod, .err = err ? err : &local };
	size_t mark;

	if (!json_is_object(tree))
		return error_set(err, ERROR_INVALID, "a pod must be an object");
	mark = decode_enter(&d, "metadata");
	decode_metadata(&d, decode_object(&d, tree, "metadata"), pod);
	decode_leave(&d, mark);
	mark = decode_enter(&d, "spec");
	decode_spec(&d, decode_object(&d, tree, "spec"), pod);
	if (!d.failed)
		check_mounts(&d, pod);
	decode_leave(&d, mark);
	if (d.failed)
		return error_code_errno(ERROR_INVALID);
	*ret = steal(pod);
	return 0;
}

struct pod *pod_free(struct pod *pod)
{
	if (!pod)
		return NULL;
	arena_done(&pod->arena);
	free(pod);
	return NULL;
}

/* validate_pod.c - purpose: say what is wrong with a Pod. */
#include "kubelet-lite/store/validate_i.h"

#include <ctype.h>

static const char *const PROTOCOLS[] = { "SCTP", "TCP", "UDP", NULL };

static bool has_named(const json_t *list, const char *name, size_t before)
{
	json_t *item;
	size_t i;

	json_array_foreach ((json_t *)list, i, item) {
		if (i >= before)
			break;
		if (str_eq(json_str_at(item, "name", ""), name))
			return true;
	}
	return false;
}

static bool bad_env_name(const char *name)
{
	for (const char *p = name; *p; p++)
		if (!isprint((unsigned char)*p) || *p == '=')
			return true;
	return !*name;
}

static void env_source(const json_t *source, const char *base, struct causes *c)
{
	static const char *const kinds[] = { "fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef" };
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		const json_t *ref = json_object_get(source, kinds[i]);

		if (!json_is_object(ref))
			continue;
		n++;
		if (i == 0 && str_empty(json_str_at(ref, "fieldPath", NULL)))
			cause_required(c, path_of("%s.fieldRef.fieldPath", base), NULL);
		if (i == 1 && str_empty(json_str_at(ref, "resource", NULL)))
			cause_required(c, path_of("%s.resourceFieldRef.resource", base), NULL);
		if ((i == 2 || i == 3) && str_empty(json_str_at(ref, "key", NULL)))
			cause_required(c, path_of("%s.%s.key", base, kinds[i]), NULL);
		if ((i == 2 || i == 3) && str_empty(json_str_at(ref, "name", NULL)))
			cause_required(c, path_of("%s.%s.name", base, kinds[i]), NULL);
	}
	if (n != 1)
		cause_invalid(c, base, NULL, n ? "may not have more than one field specified at a time"
					       : "must specify one of fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef");
}

static void env(const json_t *container, const char *base, struct causes *c)
{
	json_t *item;
	size_t i;

	json_array_foreach (json_object_get(container, "env"), i, item) {
		const char *at = path_of("%s.env[%zu]", base, i), *name = json_str_at(item, "name", "");
		const json_t *from = json_object_get(item, "valueFrom");

		if (!*name)
			cause_required(c, path_of("%s.name", at), NULL);
		else if (bad_env_name(name))
			cause_invalid(c, path_of("%s.name", at), name, "must be printable ASCII characters without '='");
		if (!json_is_object(from))
			continue;
		if (*json_str_at(item, "value", ""))
			cause_invalid(c, path_of("%s.valueFrom", at), NULL, "may not be specified when `value` is not empty");
		env_source(from, path_of("%s.valueFrom", at), c);
	}
	json_array_foreach (json_object_get(container, "envFrom"), i, item) {
		bool map = json_is_object(json_object_get(item, "configMapRef"));
		bool secret = json_is_object(json_object_get(item, "secretRef"));

		if (map == secret)
			cause_invalid(c, path_of("%s.envFrom[%zu]", base, i), NULL,
				"must specify one of: `configMapRef` or `secretRef`");
	}
}

static void handler(const json_t *h, const char *base, bool probe, struct causes *c)
{
	static const char *const schemes[] = { "HTTP", "HTTPS", NULL };
	const json_t *exec = json_object_get(h, "exec"), *http = json_object_get(h, "httpGet");
	const json_t *tcp = json_object_get(h, "tcpSocket"), *grpc = json_object_get(h, "grpc");
	const json_t *nap = json_object_get(h, "sleep");
	int n = json_is_object(exec) + json_is_object(http) + json_is_object(tcp) + json_is_object(grpc) + json_is_object(nap);

	if (n == 0)
		cause_required(c, base, "must specify a handler type");
	if (n > 1)
		cause_add(c, "FieldValueForbidden", base, "Forbidden: may not specify more than 1 handler type");
	if (json_is_object(exec) && json_array_size(json_object_get(exec, "command")) == 0)
		cause_required(c, path_of("%s.exec.command", base), NULL);
	if (json_is_object(http)) {
		check_port_ref(c, json_object_get(http, "port"), path_of("%s.httpGet.port", base));
		check_enum(c, http, path_of("%s.httpGet", base), "scheme", schemes);
	}
	if (json_is_object(tcp))
		check_port_ref(c, json_object_get(tcp, "port"), path_of("%s.tcpSocket.port", base));
	if (json_is_object(grpc))
		check_port_ref(c, json_object_get(grpc, "port"), path_of("%s.grpc.port", base));
	if (probe && json_is_object(nap))
		cause_add(c, "FieldValueForbidden", path_of("%s.sleep", base), "Forbidden: only for lifecycle hooks");
}

static void probes(const json_t *container, const char *base, bool init, struct causes *c)
{
	static const char *const names[] = { "livenessProbe", "readinessProbe", "startupProbe" };
	static const char *const hooks[] = { "postStart", "preStop" };
	const json_t *lifecycle = json_object_get(container, "lifecycle");

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const json_t *p = json_object_get(container, names[i]);
		const char *at = path_of("%s.%s", base, names[i]);

		if (!json_is_object(p))
			continue;
		if (init)
			cause_add(c, "FieldValueForbidden", at, "Forbidden: may not be set for init containers without restartPolicy=Always");
		handler(p, at, true, c);
		check_range(c, p, at, "initialDelaySeconds", 0, INT64_MAX);
		check_range(c, p, at, "timeoutSeconds", 1, INT64_MAX);
		check_range(c, p, at, "periodSeconds", 1, INT64_MAX);
		check_range(c, p, at, "failureThreshold", 1, INT64_MAX);
		check_range(c, p, at, "successThreshold", 1, i == 1 ? INT64_MAX : 1);
		check_range(c, p, at, "terminationGracePeriodSeconds", 1, INT64_MAX);
	}
	for (size_t i = 0; i < ARRAY_LEN(hooks); i++)
		if (json_is_object(json_object_get(lifecycle, hooks[i])))
			handler(json_object_get(lifecycle, hooks[i]), path_of("%s.lifecycle.%s", base, hooks[i]), false, c);
}

static void ports(const json_t *container, const char *base, const json_t *spec, struct causes *c)
{
	bool host = json_bool_at(spec, "hostNetwork", false);
	json_t *port;
	size_t i;

	json_array_foreach (json_object_get(container, "ports"), i, port) {
		const char *at = path_of("%s.ports[%zu]", base, i), *name = json_str_at(port, "name", "");
		int64_t host_port = json_int_at(port, "hostPort", 0);

		if (!json_object_get(port, "containerPort"))
			cause_required(c, path_of("%s.containerPort", at), NULL);
		check_range(c, port, at, "containerPort", 1, 65535);
		check_range(c, port, at, "hostPort", 0, 65535);
		check_enum(c, port, at, "protocol", PROTOCOLS);
		if (*name)
			check_port_ref(c, json_object_get(port, "name"), path_of("%s.name", at));
		if (*name && has_named(json_object_get(container, "ports"), name, i))
			cause_duplicate(c, path_of("%s.name", at), name);
		if (*json_str_at(port, "hostIP", "") && !is_ip(json_str_at(port, "hostIP", "")))
			cause_invalid(c, path_of("%s.hostIP", at), json_str_at(port, "hostIP", ""), "must be an IP address");
		if (host && host_port && host_port != json_int_at(port, "containerPort", 0))
			cause_invalid(c, path_of("%s.hostPort", at), path_of("%lld", (long long)host_port),
				"must match `containerPort` when `hostNetwork` is true");
	}
}

static void mounts(const json_t *container, const char *base, const json_t *spec, struct causes *c)
{
	static const char *const propagations[] = { "Bidirectional", "HostToContainer", "None", NULL };
	const json_t *list = json_object_get(container, "volumeMounts");
	json_t *m, *other;
	size_t i, j;

	json_array_foreach ((json_t *)list, i, m) {
		const char *at = path_of("%s.volumeMounts[%zu]", base, i);
		const char *name = json_str_at(m, "name", ""), *path = json_str_at(m, "mountPath", "");
		const char *sub = json_str_at(m, "subPath", "");

		if (!*name)
			cause_required(c, path_of("%s.name", at), NULL);
		else if (!has_named(json_object_get(spec, "volumes"), name, SIZE_MAX))
			cause_add(c, "FieldValueNotFound", path_of("%s.name", at), "Not found: \"%s\"", name);
		if (!*path)
			cause_required(c, path_of("%s.mountPath", at), NULL);
		if (*sub == '/' || str_eq(sub, "..") || str_starts(sub, "../") || strstr(sub, "/../") || str_ends(sub, "/.."))
			cause_invalid(c, path_of("%s.subPath", at), sub, "must be a relative path without '..'");
		check_enum(c, m, at, "mountPropagation", propagations);
		json_array_foreach ((json_t *)list, j, other)
			if (j < i && *path && str_eq(json_str_at(other, "mountPath", ""), path))
				cause_invalid(c, path_of("%s.mountPath", at), path, "must be unique");
	}
}

static void resources(const json_t *r, const char *base, struct causes *c)
{
	check_quantities(c, json_object_get(r, "limits"), path_of("%s.limits", base));
	check_quantities(c, json_object_get(r, "requests"), path_of("%s.requests", base));
}

static void security(const json_t *s, const char *base, struct causes *c)
{
	static const char *const mounts_allowed[] = { "Default", "Unmasked", NULL };
	static const char *const profiles[] = { "Localhost", "RuntimeDefault", "Unconfined", NULL };
	const json_t *escalation = json_object_get(s, "allowPrivilegeEscalation");

	check_range(c, s, base, "runAsUser", 0, INT32_MAX);
	check_range(c, s, base, "runAsGroup", 0, INT32_MAX);
	check_enum(c, s, base, "procMount", mounts_allowed);
	check_enum(c, json_object_get(s, "seccompProfile"), path_of("%s.seccompProfile", base), "type", profiles);
	check_enum(c, json_object_get(s, "appArmorProfile"), path_of("%s.appArmorProfile", base), "type", profiles);
	if (json_is_false(escalation) && json_bool_at(s, "privileged", false))
		cause_invalid(c, base, NULL, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
}

static void container(const json_t *k, const char *base, bool init, const json_t *spec, struct causes *c)
{
	static const char *const pulls[] = { "Always", "IfNotPresent", "Never", NULL };
	static const char *const messages[] = { "FallbackToLogsOnError", "File", NULL };
	static const char *const restarts[] = { "Always", "Never", "OnFailure", NULL };
	const char *name = json_str_at(k, "name", ""), *image = json_str_at(k, "image", "");
	bool sidecar = str_eq(json_str_at(k, "restartPolicy", ""), "Always");

	if (!*name)
		cause_required(c, path_of("%s.name", base), NULL);
	else if (validate_dns_label(name))
		cause_invalid(c, path_of("%s.name", base), name, validate_dns_label(name));
	if (!*image)
		cause_required(c, path_of("%s.image", base), NULL);
	else if (strpbrk(image, " \t\n"))
		cause_invalid(c, path_of("%s.image", base), image, "must not have white space");
	check_enum(c, k, base, "imagePullPolicy", pulls);
	check_enum(c, k, base, "terminationMessagePolicy", messages);
	check_enum(c, k, base, "restartPolicy", restarts);
	env(k, base, c);
	ports(k, base, spec, c);
	mounts(k, base, spec, c);
	probes(k, base, init && !sidecar, c);
	resources(json_object_get(k, "resources"), path_of("%s.resources", base), c);
	security(json_object_get(k, "securityContext"), path_of("%s.securityContext", base), c);
}

static void volume_items(const json_t *source, const char *base, struct causes *c)
{
	json_t *item;
	size_t i;

	check_range(c, source, base, "defaultMode", 0, 0777);
	json_array_foreach (json_object_get(source, "items"), i, item) {
		const char *path = json_str_at(item, "path", "");
		const char *at = path_of("%s.items[%zu]", base, i);

		if (!*path)
			cause_required(c, path_of("%s.path", at), NULL);
		else if (*path == '/' || str_starts(path, "..") || strstr(path, "/../") || str_ends(path, "/.."))
			cause_invalid(c, path_of("%s.path", at), path, "must be a relative path without '..'");
		check_range(c, item, at, "mode", 0, 0777);
	}
}

static void volume(const json_t *v, const char *base, struct causes *c)
{
	static const char *const host_types[] = { "", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket",
		"CharDevice", "BlockDevice", NULL };
	const json_t *host = json_object_get(v, "hostPath"), *secret = json_object_get(v, "secret");
	const json_t *map = json_object_get(v, "configMap"), *limit = json_at(v, "emptyDir.sizeLimit");
	const char *name = json_str_at(v, "name", "");

	if (!*name)
		cause_required(c, path_of("%s.name", base), NULL);
	else if (validate_dns_label(name))
		cause_invalid(c, path_of("%s.name", base), name, validate_dns_label(name));
	if (json_object_size(v) > 2)
		cause_add(c, "FieldValueForbidden", base, "Forbidden: may not specify more than 1 volume type");
	if (host && str_empty(json_str_at(host, "path", NULL)))
		cause_required(c, path_of("%s.hostPath.path", base), NULL);
	if (host && strstr(json_str_at(host, "path", ""), ".."))
		cause_invalid(c, path_of("%s.hostPath.path", base), json_str_at(host, "path", ""), "must not contain '..'");
	check_enum(c, host, path_of("%s.hostPath", base), "type", host_types);
	if (secret && str_empty(json_str_at(secret, "secretName", NULL)))
		cause_required(c, path_of("%s.secret.secretName", base), NULL);
	if (map && str_empty(json_str_at(map, "name", NULL)))
		cause_required(c, path_of("%s.configMap.name", base), NULL);
	volume_items(secret, path_of("%s.secret", base), c);
	volume_items(map, path_of("%s.configMap", base), c);
	volume_items(json_object_get(v, "downwardAPI"), path_of("%s.downwardAPI", base), c);
	if (limit) {
		_cleanup_json_ json_t *one = json_pack("{sO}", "sizeLimit", (json_t *)limit);

		check_quantities(c, one, path_of("%s.emptyDir", base));
	}
}

static void containers(const json_t *spec, struct causes *c)
{
	static const char *const lists[] = { "initContainers", "containers" };
	json_t *item;
	size_t i;

	if (json_array_size(json_object_get(spec, "containers")) == 0)
		cause_required(c, "spec.containers", NULL);
	for (size_t l = 0; l < ARRAY_LEN(lists); l++)
		json_array_foreach (json_object_get(spec, lists[l]), i, item) {
			const char *base = path_of("spec.%s[%zu]", lists[l], i), *name = json_str_at(item, "name", "");
			/* path_of()'s ring is too short for what container() does. */
			_cleanup_free_ char *kept = xstrdup(base);

			container(item, kept, l == 0, spec, c);
			if (*name && (has_named(json_object_get(spec, lists[l]), name, i) ||
					     (l == 1 && has_named(json_object_get(spec, lists[0]), name, SIZE_MAX))))
				cause_duplicate(c, path_of("%s.name", kept), name);
		}
}

static void pod_security(const json_t *spec, struct causes *c)
{
	const json_t *s = json_object_get(spec, "securityContext");
	json_t *item;
	size_t i;

	security(s, "spec.securityContext", c);
	check_range(c, s, "spec.securityContext", "fsGroup", 0, INT32_MAX);
	json_array_foreach (json_object_get(s, "sysctls"), i, item) {
		const char *name = json_str_at(item, "name", "");

		if (!*name || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_./") != strlen(name))
			cause_invalid(c, path_of("spec.securityContext.sysctls[%zu].name", i), name, "must be a sysctl name");
	}
}

void validate_pod(const json_t *tree, struct causes *c)
{
	static const char *const restarts[] = { "Always", "OnFailure", "Never", NULL };
	static const char *const dns[] = { "ClusterFirstWithHostNet", "ClusterFirst", "Default", "None", NULL };
	const json_t *spec = json_object_get(tree, "spec");
	const char *hostname = json_str_at(spec, "hostname", "");
	json_t *item;
	size_t i;

	if (!json_is_object(spec)) {
		cause_required(c, "spec", NULL);
		return;
	}
	json_array_foreach (json_object_get(spec, "volumes"), i, item) {
		_cleanup_free_ char *base = xasprintf("spec.volumes[%zu]", i);
		const char *name = json_str_at(item, "name", "");

		volume(item, base, c);
		if (*name && has_named(json_object_get(spec, "volumes"), name, i))
			cause_duplicate(c, path_of("%s.name", base), name);
	}
	containers(spec, c);
	check_enum(c, spec, "spec", "restartPolicy", restarts);
	check_enum(c, spec, "spec", "dnsPolicy", dns);
	if (str_eq(json_str_at(spec, "dnsPolicy", ""), "None") && json_array_size(json_at(spec, "dnsConfig.nameservers")) == 0)
		cause_required(c, "spec.dnsConfig.nameservers", "must provide at least one DNS nameserver when `dnsPolicy` is None");
	check_range(c, spec, "spec", "terminationGracePeriodSeconds", 0, INT64_MAX);
	check_range(c, spec, "spec", "activeDeadlineSeconds", 1, INT32_MAX);
	check_quantities(c, json_object_get(spec, "overhead"), "spec.overhead");
	if (*hostname && validate_dns_label(hostname))
		cause_invalid(c, "spec.hostname", hostname, validate_dns_label(hostname));
	json_array_foreach (json_object_get(spec, "hostAliases"), i, item)
		if (!is_ip(json_str_at(item, "ip", "")))
			cause_invalid(c, path_of("spec.hostAliases[%zu].ip", i), json_str_at(item, "ip", ""), "must be an IP address");
	pod_security(spec, c);
}

/* ---- changes ---- */

/* Takes out members that say nothing: clients whose types are those of Go do not send them back. */
static void drop_zeroes(json_t *value, int depth)
{
	const char *key;
	json_t *member;
	void *next;
	size_t i;

	if (depth > JSON_DEPTH_MAX)
		return;
	json_array_foreach (value, i, member)
		drop_zeroes(member, depth + 1);
	json_object_foreach_safe (value, next, key, member) {
		drop_zeroes(member, depth + 1);
		if (json_is_false(member) || json_is_null(member) || (json_is_integer(member) && json_integer_value(member) == 0) ||
			(json_is_string(member) && json_string_length(member) == 0) ||
			(json_is_array(member) && json_array_size(member) == 0) ||
			(json_is_object(member) && json_object_size(member) == 0))
			json_object_del(value, key);
	}
}

static void copy_member(json_t *to, const json_t *from, const char *key)
{
	json_t *value = json_object_get(from, key);

	if (value)
		json_object_set(to, key, value);
	else
		json_object_del(to, key);
}

static bool tolerations_kept(const json_t *now, const json_t *old)
{
	json_t *a, *b;
	size_t i, k;

	json_array_foreach ((json_t *)old, i, a) {
		bool found = false;

		json_array_foreach ((json_t *)now, k, b) {
			_cleanup_json_ json_t *same = json_copy(b);

			copy_member(same, a, "tolerationSeconds");
			found |= json_equal(same, a);
		}
		if (!found)
			return false;
	}
	return true;
}

/* May be set, and made shorter. */
static bool deadline_allowed(const json_t *now, const json_t *old)
{
	int64_t was = json_int_at(old, "activeDeadlineSeconds", INT64_MAX);

	return json_int_at(now, "activeDeadlineSeconds", INT64_MAX) <= was;
}

void validate_pod_update(const json_t *tree, const json_t *old, struct causes *c)
{
	static const char *const lists[] = { "initContainers", "containers" };
	_cleanup_json_ json_t *now = json_deep_copy(json_object_get(tree, "spec")), *was = json_deep_copy(json_object_get(old, "spec"));
	json_t *k;
	size_t i;

	drop_zeroes(now, 0);
	drop_zeroes(was, 0);
	for (size_t n = 0; n < ARRAY_LEN(lists); n++) {
		const json_t *list = json_object_get(was, lists[n]);

		if (json_array_size(list) != json_array_size(json_object_get(now, lists[n]))) {
			cause_add(c, "FieldValueForbidden", path_of("spec.%s", lists[n]),
				"Forbidden: pod updates may not add or remove containers");
			return;
		}
		json_array_foreach (json_object_get(now, lists[n]), i, k)
			copy_member(k, json_array_get(list, i), "image");
	}
	if (deadline_allowed(now, was))
		copy_member(now, was, "activeDeadlineSeconds");
	if (tolerations_kept(json_object_get(now, "tolerations"), json_object_get(was, "tolerations")))
		copy_member(now, was, "tolerations");
	if (json_int_at(was, "terminationGracePeriodSeconds", 0) < 0 && json_int_at(now, "terminationGracePeriodSeconds", 0) == 1)
		copy_member(now, was, "terminationGracePeriodSeconds");
	if (!json_equal(now, was))
		cause_add(c, "FieldValueForbidden", "spec",
			"Forbidden: pod updates may not change fields other than `spec.containers[*].image`, "
			"`spec.initContainers[*].image`, `spec.activeDeadlineSeconds`, `spec.tolerations` (only additions to existing "
			"tolerations), `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)");
}

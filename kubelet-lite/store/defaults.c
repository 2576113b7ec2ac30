/* defaults.c - purpose: the values that the Kubernetes API fills into objects where the user said nothing. */
#include "kubelet-lite/store/defaults.h"

#include "common/base/codec.h"
#include "common/wire/json.h"

/* Takes value. */
static void fill(json_t *object, const char *key, json_t *value)
{
	json_t *have = json_object_get(object, key);

	if (!have || json_is_null(have))
		json_object_set_new(object, key, value);
	else
		json_decref(value);
}

static void fill_str(json_t *object, const char *key, const char *value)
{
	fill(object, key, json_string(value));
}

static void fill_int(json_t *object, const char *key, int64_t value)
{
	/* Zero means "not set" to the API for what has a default that is not zero. */
	json_t *have = json_object_get(object, key);

	if (json_is_integer(have) && json_integer_value(have) == 0)
		json_integer_set(have, value);
	else
		fill(object, key, json_integer(value));
}

const char *defaults_pull_policy(const char *image)
{
	const char *slash = strrchr(image, '/');
	const char *last = slash ? slash + 1 : image;
	const char *tag = strchr(last, ':');

	if (strchr(last, '@'))
		return "IfNotPresent";
	return !tag || strcmp(tag, ":latest") == 0 ? "Always" : "IfNotPresent";
}

static void http_get(json_t *action)
{
	if (!json_is_object(action))
		return;
	fill_str(action, "path", "/");
	fill_str(action, "scheme", "HTTP");
}

static void probe(json_t *p)
{
	if (!json_is_object(p))
		return;
	fill_int(p, "timeoutSeconds", 1);
	fill_int(p, "periodSeconds", 10);
	fill_int(p, "successThreshold", 1);
	fill_int(p, "failureThreshold", 3);
	http_get(json_object_get(p, "httpGet"));
	json_t *grpc = json_object_get(p, "grpc");

	if (json_is_object(grpc))
		fill_str(grpc, "service", "");
}

static void field_ref(json_t *holder)
{
	json_t *ref = json_object_get(holder, "fieldRef");
	json_t *resource = json_object_get(holder, "resourceFieldRef");

	if (json_is_object(ref))
		fill_str(ref, "apiVersion", "v1");
	if (json_is_object(resource))
		fill_str(resource, "divisor", "0");
}

/* A limit without a request is a request too. */
static void resources(json_t *container)
{
	fill(container, "resources", json_object());
	json_t *r = json_object_get(container, "resources");
	json_t *limits = json_object_get(r, "limits"), *value;
	const char *key;

	if (!json_is_object(limits) || json_object_size(limits) == 0)
		return;
	fill(r, "requests", json_object());
	json_t *requests = json_object_get(r, "requests");

	if (json_is_object(requests))
		json_object_foreach (limits, key, value)
			fill(requests, key, json_copy(value));
}

static void container(json_t *c, bool host_network)
{
	json_t *item;
	size_t i;

	if (!json_is_object(c))
		return;
	fill_str(c, "terminationMessagePath", "/dev/termination-log");
	fill_str(c, "terminationMessagePolicy", "File");
	if (json_is_string(json_object_get(c, "image")))
		fill_str(c, "imagePullPolicy", defaults_pull_policy(json_str_at(c, "image", "")));
	resources(c);
	json_array_foreach (json_object_get(c, "ports"), i, item) {
		if (!json_is_object(item))
			continue;
		fill_str(item, "protocol", "TCP");
		json_t *port = json_object_get(item, "containerPort");

		if (host_network && json_is_integer(port))
			fill_int(item, "hostPort", json_integer_value(port));
	}
	json_array_foreach (json_object_get(c, "env"), i, item)
		field_ref(json_object_get(item, "valueFrom"));
	probe(json_object_get(c, "livenessProbe"));
	probe(json_object_get(c, "readinessProbe"));
	probe(json_object_get(c, "startupProbe"));
	http_get((json_t *)json_at(c, "lifecycle.postStart.httpGet"));
	http_get((json_t *)json_at(c, "lifecycle.preStop.httpGet"));
}

static void downward_items(json_t *items)
{
	json_t *item;
	size_t i;

	json_array_foreach (items, i, item)
		field_ref(item);
}

static void projected(json_t *source)
{
	json_t *item;
	size_t i;

	fill(source, "defaultMode", json_integer(0644));
	json_array_foreach (json_object_get(source, "sources"), i, item) {
		json_t *token = json_object_get(item, "serviceAccountToken");

		if (json_is_object(token))
			fill_int(token, "expirationSeconds", 3600);
		downward_items((json_t *)json_at(item, "downwardAPI.items"));
	}
}

static void volume(json_t *v)
{
	static const char *const with_mode[] = { "secret", "configMap", "downwardAPI" };

	if (!json_is_object(v))
		return;
	if (json_object_size(v) == 1 && json_object_get(v, "name"))
		json_object_set_new(v, "emptyDir", json_object());
	for (size_t i = 0; i < ARRAY_LEN(with_mode); i++) {
		json_t *source = json_object_get(v, with_mode[i]);

		if (json_is_object(source))
			fill(source, "defaultMode", json_integer(0644));
	}
	downward_items((json_t *)json_at(v, "downwardAPI.items"));
	if (json_is_object(json_object_get(v, "projected")))
		projected(json_object_get(v, "projected"));
	if (json_is_object(json_object_get(v, "hostPath")))
		fill_str(json_object_get(v, "hostPath"), "type", "");
	json_t *image = json_object_get(v, "image");

	if (json_is_object(image))
		fill_str(image, "pullPolicy", defaults_pull_policy(json_str_at(image, "reference", "")));
}

static void pod(json_t *tree)
{
	static const char *const lists[] = { "initContainers", "containers", "ephemeralContainers" };
	json_t *spec = json_object_get(tree, "spec"), *item;
	size_t i;

	if (!json_is_object(spec))
		return;
	fill_str(spec, "restartPolicy", "Always");
	fill(spec, "terminationGracePeriodSeconds", json_integer(30));
	fill_str(spec, "dnsPolicy", "ClusterFirst");
	fill(spec, "securityContext", json_object());
	fill_str(spec, "schedulerName", "default-scheduler");
	fill(spec, "enableServiceLinks", json_true());
	const char *class = json_str_at(spec, "priorityClassName", "");

	fill(spec, "priority", json_integer(str_eq(class, "system-node-critical") ? 2000001000
			: str_eq(class, "system-cluster-critical") ? 2000000000 : 0));
	bool host_network = json_bool_at(spec, "hostNetwork", false);

	for (size_t l = 0; l < ARRAY_LEN(lists); l++)
		json_array_foreach (json_object_get(spec, lists[l]), i, item)
			container(item, host_network);
	json_array_foreach (json_object_get(spec, "volumes"), i, item)
		volume(item);
}

static void service(json_t *tree)
{
	json_t *spec = json_object_get(tree, "spec"), *item;
	size_t i;

	if (!json_is_object(spec))
		return;
	fill_str(spec, "type", "ClusterIP");
	fill_str(spec, "sessionAffinity", "None");
	const char *type = json_str_at(spec, "type", "");

	if (str_eq(json_str_at(spec, "sessionAffinity", ""), "ClientIP"))
		fill(spec, "sessionAffinityConfig", json_pack("{s{si}}", "clientIP", "timeoutSeconds", 10800));
	json_array_foreach (json_object_get(spec, "ports"), i, item) {
		if (!json_is_object(item))
			continue;
		fill_str(item, "protocol", "TCP");
		json_t *port = json_object_get(item, "port"), *target = json_object_get(item, "targetPort");

		if (json_is_integer(target) && json_integer_value(target) == 0)
			json_object_del(item, "targetPort");
		if (json_is_integer(port) && !str_eq(type, "ExternalName"))
			fill(item, "targetPort", json_integer(json_integer_value(port)));
	}
	if (str_eq(type, "ExternalName"))
		return;
	if (str_eq(type, "NodePort") || str_eq(type, "LoadBalancer"))
		fill_str(spec, "externalTrafficPolicy", "Cluster");
	if (str_eq(type, "LoadBalancer"))
		fill(spec, "allocateLoadBalancerNodePorts", json_true());
	fill_str(spec, "internalTrafficPolicy", "Cluster");
	fill_str(spec, "ipFamilyPolicy", "SingleStack");
	fill(tree, "status", json_pack("{s{}}", "loadBalancer"));
}

/* stringData is for writing only: it goes into data, base64. */
static void secret(json_t *tree)
{
	json_t *texts = json_object_get(tree, "stringData"), *value;
	const char *key;

	if (json_is_object(texts)) {
		fill(tree, "data", json_object());
		json_object_foreach (texts, key, value) {
			if (!json_is_string(value))
				continue;
			_cleanup_free_ char *coded = base64_encode(json_string_value(value), json_string_length(value));

			json_object_set_new(json_object_get(tree, "data"), key, json_string(coded));
		}
		json_object_del(tree, "stringData");
	}
	fill_str(tree, "type", "Opaque");
}

static void endpoint_slice(json_t *tree)
{
	json_t *item;
	size_t i;

	json_array_foreach (json_object_get(tree, "ports"), i, item)
		if (json_is_object(item)) {
			fill_str(item, "name", "");
			fill_str(item, "protocol", "TCP");
		}
	fill(tree, "endpoints", json_array());
}

void defaults_apply(enum object_kind kind, json_t *tree)
{
	switch (kind) {
	case KIND_POD:
		pod(tree);
		break;
	case KIND_SERVICE:
		service(tree);
		break;
	case KIND_SECRET:
		secret(tree);
		break;
	case KIND_ENDPOINT_SLICE:
		endpoint_slice(tree);
		break;
	case KIND_NAMESPACE:
		fill(tree, "spec", json_pack("{s[s]}", "finalizers", "kubernetes"));
		fill(tree, "status", json_pack("{ss}", "phase", "Active"));
		break;
	default:
		break;
	}
}

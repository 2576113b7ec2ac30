/* slices.c - purpose: the EndpointSlices of one Service, out of the Service and pods. */
#include "kubelet-lite/local/slices.h"

#include <stdio.h>

#include "common/base/str.h"
#include "common/wire/json.h"

struct named_port {
	char *name; /* "" */
	char *protocol;
	int number;
};

struct slice_pod {
	char *ns, *name, *uid, *node, *hostname, *subdomain;
	char *labels; /* as struct object has them */
	size_t labels_len;
	struct strv ips;
	struct named_port *ports;
	size_t n_ports;
	bool ready, deleting, ended;
};

static size_t labels_size(const char *labels)
{
	const char *p = labels;

	while (p && *p)
		p += strlen(p) + 1;
	return p ? (size_t)(p - labels) + 1 : 0;
}

static bool is_ready(const json_t *tree)
{
	json_t *c;
	size_t i;

	json_array_foreach ((json_t *)json_at(tree, "status.conditions"), i, c)
		if (str_eq(json_str_at(c, "type", ""), "Ready"))
			return str_eq(json_str_at(c, "status", ""), "True");
	return false;
}

static void take_ports(struct slice_pod *pod, const json_t *containers, bool sidecars_only)
{
	json_t *c, *p;
	size_t i, j;

	json_array_foreach ((json_t *)containers, i, c) {
		if (sidecars_only && !str_eq(json_str_at(c, "restartPolicy", ""), "Always"))
			continue;
		json_array_foreach (json_object_get(c, "ports"), j, p) {
			if (!*json_str_at(p, "name", ""))
				continue; /* only names need to be looked up */
			pod->ports = xreallocarray(pod->ports, pod->n_ports + 1, sizeof(*pod->ports));
			pod->ports[pod->n_ports++] = (struct named_port){ xstrdup(json_str_at(p, "name", "")),
				xstrdup(json_str_at(p, "protocol", "TCP")), (int)json_int_at(p, "containerPort", 0) };
		}
	}
}

struct slice_pod *slice_pod_new(const json_t *tree, const char *labels)
{
	struct slice_pod *pod = xnew(struct slice_pod);
	const char *phase = json_str_at(tree, "status.phase", ""), *ip = json_str_at(tree, "status.podIP", "");
	json_t *item;
	size_t i;

	pod->ns = xstrdup(json_str_at(tree, "metadata.namespace", ""));
	pod->name = xstrdup(json_str_at(tree, "metadata.name", ""));
	pod->uid = xstrdup(json_str_at(tree, "metadata.uid", ""));
	pod->node = xstrdup(json_str_at(tree, "spec.nodeName", ""));
	pod->hostname = xstrdup(json_str_at(tree, "spec.hostname", ""));
	pod->subdomain = xstrdup(json_str_at(tree, "spec.subdomain", ""));
	pod->labels_len = labels_size(labels);
	pod->labels = pod->labels_len ? xmemdup(labels, pod->labels_len) : NULL;
	json_array_foreach ((json_t *)json_at(tree, "status.podIPs"), i, item)
		if (*json_str_at(item, "ip", ""))
			strv_add(&pod->ips, json_str_at(item, "ip", ""));
	if (pod->ips.n == 0 && *ip)
		strv_add(&pod->ips, ip);
	take_ports(pod, json_at(tree, "spec.containers"), false);
	take_ports(pod, json_at(tree, "spec.initContainers"), true);
	pod->ready = is_ready(tree);
	pod->deleting = json_at(tree, "metadata.deletionTimestamp") != NULL;
	pod->ended = str_eq(phase, "Succeeded") || str_eq(phase, "Failed");
	return pod;
}

void slice_pod_free(struct slice_pod *pod)
{
	free(pod->ns);
	free(pod->name);
	free(pod->uid);
	free(pod->node);
	free(pod->hostname);
	free(pod->subdomain);
	free(pod->labels);
	strv_done(&pod->ips);
	for (size_t i = 0; i < pod->n_ports; i++) {
		free(pod->ports[i].name);
		free(pod->ports[i].protocol);
	}
	free(pod->ports);
	free(pod);
}

bool slice_pod_equal(const struct slice_pod *a, const struct slice_pod *b)
{
	if (!str_eq(a->uid, b->uid) || !str_eq(a->hostname, b->hostname) || !str_eq(a->subdomain, b->subdomain) ||
		a->labels_len != b->labels_len || (a->labels_len && memcmp(a->labels, b->labels, a->labels_len) != 0) ||
		a->ready != b->ready || a->deleting != b->deleting || a->ended != b->ended || a->ips.n != b->ips.n ||
		a->n_ports != b->n_ports)
		return false;
	for (size_t i = 0; i < a->ips.n; i++)
		if (!str_eq(a->ips.v[i], b->ips.v[i]))
			return false;
	for (size_t i = 0; i < a->n_ports; i++)
		if (a->ports[i].number != b->ports[i].number || !str_eq(a->ports[i].name, b->ports[i].name) ||
			!str_eq(a->ports[i].protocol, b->ports[i].protocol))
			return false;
	return true;
}

static const char *label(const struct slice_pod *pod, const char *key)
{
	size_t len = strlen(key);

	for (const char *p = pod->labels; p && *p; p += strlen(p) + 1)
		if (strncmp(p, key, len) == 0 && p[len] == '=')
			return p + len + 1;
	return NULL;
}

static bool selects(const json_t *selector, const struct slice_pod *pod)
{
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)selector, key, value)
		if (!str_eq(label(pod, key), json_string_value(value)))
			return false;
	return true;
}

static const char *ip_of_family(const struct slice_pod *pod, bool v6)
{
	for (size_t i = 0; i < pod->ips.n; i++)
		if ((strchr(pod->ips.v[i], ':') != NULL) == v6)
			return pod->ips.v[i];
	return NULL;
}

/* Number of a Service's target port in this pod; 0: it has no port of that name. */
static int target_number(const json_t *port, const struct slice_pod *pod)
{
	const json_t *target = json_object_get(port, "targetPort");
	const char *protocol = json_str_at(port, "protocol", "TCP");

	if (json_is_integer(target))
		return (int)json_integer_value(target);
	if (!json_is_string(target))
		return (int)json_int_at(port, "port", 0);
	for (size_t i = 0; i < pod->n_ports; i++)
		if (str_eq(pod->ports[i].name, json_string_value(target)) && str_eq(pod->ports[i].protocol, protocol))
			return pod->ports[i].number;
	return 0;
}

static json_t *resolved_ports(const json_t *service, const struct slice_pod *pod)
{
	json_t *ports = json_array(), *port;
	size_t i;

	json_array_foreach ((json_t *)json_at(service, "spec.ports"), i, port) {
		int number = target_number(port, pod);
		const char *app = json_str_at(port, "appProtocol", NULL);

		if (number > 0)
			json_array_append_new(ports, json_pack("{ss ss si ss*}", "name", json_str_at(port, "name", ""), "protocol",
							     json_str_at(port, "protocol", "TCP"), "port", number, "appProtocol",
							     app));
	}
	return ports;
}

static json_t *endpoint(const json_t *service, const struct slice_pod *pod, const char *ip)
{
	bool all = json_bool_at(service, "spec.publishNotReadyAddresses", false);
	bool named = *pod->hostname && str_eq(pod->subdomain, json_str_at(service, "metadata.name", ""));

	return json_pack("{s[s] s{sb sb sb} ss* ss* s{ss ss ss ss}}", "addresses", ip, "conditions", "ready",
		all || (pod->ready && !pod->deleting), "serving", pod->ready, "terminating", pod->deleting, "hostname",
		named ? pod->hostname : NULL, "nodeName", *pod->node ? pod->node : NULL, "targetRef", "kind", "Pod", "namespace",
		pod->ns, "name", pod->name, "uid", pod->uid);
}

/* A name that follows from what the slice is for: the same group of pods has the same slice for ever. */
static char *slice_name(const char *service, const json_t *ports, size_t number)
{
	static const char digits[] = "bcdfghjklmnpqrstvwxz2456789";
	_cleanup_free_ char *text = json_canonical(ports);
	uint64_t h = 0xcbf29ce484222325ull ^ number;
	char suffix[6];

	for (const char *p = text; *p; p++)
		h = (h ^ (unsigned char)*p) * 0x100000001b3ull;
	h ^= h >> 29;
	for (int i = 0; i < 5; i++, h /= sizeof(digits) - 1)
		suffix[i] = digits[h % (sizeof(digits) - 1)];
	suffix[5] = '\0';
	return xasprintf("%s-%s", service, suffix);
}

/* Takes ports. */
static json_t *slice_new(const json_t *service, json_t *ports, size_t number)
{
	const char *name = json_str_at(service, "metadata.name", ""), *uid = json_str_at(service, "metadata.uid", "");
	bool v6 = str_eq(json_string_value(json_array_get(json_at(service, "spec.ipFamilies"), 0)), "IPv6");
	json_t *labels = json_object();
	_cleanup_free_ char *slice = slice_name(name, ports, number);

	if (json_is_object(json_at(service, "metadata.labels")))
		json_object_update(labels, (json_t *)json_at(service, "metadata.labels"));
	json_object_set_new(labels, "kubernetes.io/service-name", json_string(name));
	json_object_set_new(labels, "endpointslice.kubernetes.io/managed-by",
		json_string("endpointslice-controller.k8s.io"));
	if (str_eq(json_str_at(service, "spec.clusterIP", ""), "None"))
		json_object_set_new(labels, "service.kubernetes.io/headless", json_string(""));
	return json_pack("{s{ss ss so s[{ss ss ss ss sb sb}]} ss so s[]}", "metadata", "name", slice, "namespace",
		json_str_at(service, "metadata.namespace", ""), "labels", labels, "ownerReferences", "apiVersion", "v1", "kind",
		"Service", "name", name, "uid", uid, "controller", 1, "blockOwnerDeletion", 1, "addressType",
		v6 ? "IPv6" : "IPv4", "ports", ports, "endpoints");
}

/* The slice with these ports that has room, made if there is none. Takes ports. */
static json_t *slice_for(json_t *slices, const json_t *service, json_t *ports)
{
	size_t number = 0, i;
	json_t *slice;

	json_array_foreach (slices, i, slice) {
		if (!json_equal(json_object_get(slice, "ports"), ports))
			continue;
		if (json_array_size(json_object_get(slice, "endpoints")) < SLICE_ENDPOINTS_MAX) {
			json_decref(ports);
			return slice;
		}
		number++;
	}
	slice = slice_new(service, ports, number);
	json_array_append_new(slices, slice);
	return slice;
}

json_t *slices_of_service(const json_t *service, const struct slice_pod *const *pods, size_t n)
{
	const json_t *selector = json_at(service, "spec.selector");
	bool v6 = str_eq(json_string_value(json_array_get(json_at(service, "spec.ipFamilies"), 0)), "IPv6");
	json_t *slices = json_array();

	if (json_object_size(selector) == 0 || str_eq(json_str_at(service, "spec.type", ""), "ExternalName"))
		return slices;
	for (size_t i = 0; i < n; i++) {
		const char *ip = ip_of_family(pods[i], v6);

		if (!ip || pods[i]->ended || !selects(selector, pods[i]))
			continue;
		json_t *slice = slice_for(slices, service, resolved_ports(service, pods[i]));

		json_array_append_new(json_object_get(slice, "endpoints"), endpoint(service, pods[i], ip));
	}
	/* Nobody there: one empty slice says that somebody looked. */
	if (json_array_size(slices) == 0)
		json_array_append_new(slices, slice_new(service, json_array(), 0));
	return slices;
}

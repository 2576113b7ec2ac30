/* service_parse.c - purpose: read a Service from JSON. */
#include "proxy-lite/model/object_fields.h"

#include <errno.h>
#include <stdio.h>

enum { AFFINITY_DEFAULT_S = 10800, AFFINITY_MAX_S = 86400 };

/* "2026-01-02T03:04:05Z" to 20260102030405: only the order matters. */
static uint64_t timestamp_order(const char *text)
{
	uint64_t n = 0;

	for (unsigned digits = 0; text && *text && digits < 14; text++)
		if (*text >= '0' && *text <= '9') {
			n = n * 10 + (uint64_t)(*text - '0');
			digits++;
		}
	return n;
}

/* Fails when the value is a string that Kubernetes does not know. */
static int policy_local(const json_t *spec, const char *name, bool *ret, struct error *err)
{
	const char *text = field_string(spec, name);

	if (str_empty(text) || strcmp(text, "Cluster") == 0)
		*ret = false;
	else if (strcmp(text, "Local") == 0)
		*ret = true;
	else
		return error_set(err, ERROR_INVALID, "spec.%s: \"%.40s\" is not Cluster or Local", name, text);
	return 0;
}

static void add_cluster_ip(struct service *service, const char *text, struct str *left_out)
{
	struct ip ip;

	if (!text || !ip_parse(text, &ip) || !ip_is_destination(&ip)) {
		field_left_out(left_out, "spec.clusterIPs: \"%.60s\" is not a usable address", text ? text : "");
		return;
	}
	for (unsigned i = 0; i < service->n_cluster_ips; i++)
		if (service->cluster_ips[i].v6 == ip.v6) {
			field_left_out(left_out, "spec.clusterIPs: \"%.60s\" is a second one of its family", text);
			return;
		}
	service->cluster_ips[service->n_cluster_ips++] = ip;
}

/* Returns 0 when the Service has no cluster IP (headless, or not allocated yet), else 1. */
static int parse_cluster_ips(const json_t *spec, struct service *service, struct str *left_out, struct error *err)
{
	const char *single = field_string(spec, "clusterIP");
	const json_t *array, *item;
	size_t i;
	int r = field_array(spec, "clusterIPs", &array, err);

	if (r < 0)
		return error_prefix(err, "spec");
	if (str_eq(single, "None") ||
		(json_array_size(array) && str_eq(json_string_value(json_array_get(array, 0)), "None")))
		return 0;
	if (json_array_size(array) == 0) {
		if (str_empty(single))
			return 0;
		add_cluster_ip(service, single, left_out);
		return 1;
	}
	json_array_foreach(array, i, item)
	{
		if (i < 8)
			add_cluster_ip(service, json_string_value(item), left_out);
	}
	return 1;
}

static int parse_ports(
	const json_t *spec, struct service *service, bool node_ports, struct str *left_out, struct error *err)
{
	const json_t *array, *item;
	size_t i;
	int r = field_array(spec, "ports", &array, err);

	if (r < 0)
		return error_prefix(err, "spec");
	if (json_array_size(array) > OBJECT_PORTS_MAX)
		return error_set(err, ERROR_INVALID, "spec.ports: %zu are too many", json_array_size(array));
	service->ports = xcalloc(json_array_size(array) + 1, sizeof(*service->ports));
	json_array_foreach(array, i, item)
	{
		struct service_port *port = &service->ports[service->n_ports];
		const json_t *node_port = json_object_get(item, "nodePort");

		if (!field_port(item, "port", &port->port)) {
			field_left_out(left_out, "spec.ports[%zu].port: is not 1 to 65535", i);
			continue;
		}
		if (!field_protocol(item, &port->protocol)) {
			field_left_out(left_out, "spec.ports[%zu].protocol: \"%.20s\" is not TCP, UDP or SCTP", i,
				field_string(item, "protocol"));
			continue;
		}
		port->node_port = 0;
		if (node_ports && node_port && !json_is_null(node_port) && json_integer_value(node_port) != 0 &&
			!field_port(item, "nodePort", &port->node_port))
			field_left_out(left_out, "spec.ports[%zu].nodePort: is not 1 to 65535", i);
		port->name = field_port_name(item);
		service->n_ports++;
	}
	return 0;
}

static int parse_affinity(const json_t *spec, struct service *service, struct str *left_out, struct error *err)
{
	const char *text = field_string(spec, "sessionAffinity");
	const json_t *config = json_object_get(json_object_get(spec, "sessionAffinityConfig"), "clientIP");
	const json_t *timeout = json_object_get(config, "timeoutSeconds");

	if (str_empty(text) || strcmp(text, "None") == 0)
		return 0;
	if (strcmp(text, "ClientIP") != 0)
		return error_set(err, ERROR_INVALID, "spec.sessionAffinity: \"%.40s\" is not None or ClientIP", text);
	service->affinity_s = AFFINITY_DEFAULT_S;
	if (!timeout || json_is_null(timeout))
		return 0;
	if (json_integer_value(timeout) < 1 || json_integer_value(timeout) > AFFINITY_MAX_S)
		field_left_out(
			left_out, "spec.sessionAffinityConfig.clientIP.timeoutSeconds: is not 1 to %d", AFFINITY_MAX_S);
	else
		service->affinity_s = (uint32_t)json_integer_value(timeout);
	return 0;
}

static struct service_outside *outside_of(struct service *service)
{
	if (!service->outside)
		service->outside = xnew(struct service_outside);
	return service->outside;
}

static bool add_external_ip(struct service *service, const char *text)
{
	struct service_outside *out;
	struct ip ip;

	if (!text || !ip_parse(text, &ip) || !ip_is_destination(&ip) || ip_is_link_local(&ip))
		return false;
	out = outside_of(service);
	for (size_t i = 0; i < out->n_external_ips; i++)
		if (ip_equal(&out->external_ips[i], &ip))
			return true;
	out->external_ips = xreallocarray(out->external_ips, out->n_external_ips + 1, sizeof(ip));
	out->external_ips[out->n_external_ips++] = ip;
	return true;
}

static int parse_external_ips(const json_t *spec, struct service *service, struct str *left_out, struct error *err)
{
	const json_t *array, *item;
	size_t i;
	int r = field_array(spec, "externalIPs", &array, err);

	if (r < 0)
		return error_prefix(err, "spec");
	json_array_foreach(array, i, item)
	{
		if (!add_external_ip(service, json_string_value(item)))
			field_left_out(left_out, "spec.externalIPs: \"%.60s\" is not a usable address",
				json_string_value(item) ? json_string_value(item) : "");
	}
	return 0;
}

static int parse_balancer(
	const json_t *object, const json_t *spec, struct service *service, struct str *left_out, struct error *err)
{
	const json_t *status = json_object_get(json_object_get(object, "status"), "loadBalancer");
	const json_t *array, *item;
	size_t i, before = service->outside ? service->outside->n_external_ips : 0;
	int r = field_array(status, "ingress", &array, err);

	if (r < 0)
		return error_prefix(err, "status.loadBalancer");
	json_array_foreach(array, i, item)
	{
		const char *text = field_string(item, "ip");

		if (str_empty(text) || str_eq(field_string(item, "ipMode"), "Proxy"))
			continue; /* a hostname, or traffic that must leave to the balancer */
		if (!add_external_ip(service, text))
			field_left_out(
				left_out, "status.loadBalancer.ingress: \"%.60s\" is not a usable address", text);
	}
	if (service->outside)
		service->outside->n_balancer_ips = service->outside->n_external_ips - before;
	if (service->external_local)
		if (field_port(spec, "healthCheckNodePort", &outside_of(service)->health_port))
			(void)0; /* 0 or absent: none is served */
	return 0;
}

static int parse_source_ranges(const json_t *spec, struct service *service, struct str *left_out, struct error *err)
{
	const json_t *array, *item;
	size_t i;
	int r = field_array(spec, "loadBalancerSourceRanges", &array, err);

	if (r < 0)
		return error_prefix(err, "spec");
	json_array_foreach(array, i, item)
	{
		struct service_outside *out = outside_of(service);
		const char *text = json_string_value(item);
		char trimmed[64];
		struct cidr cidr;

		out->guarded = true;
		/* The API lets spaces through. */
		if (!text || sscanf(text, " %63s", trimmed) != 1 || !cidr_parse(trimmed, &cidr)) {
			field_left_out(
				left_out, "spec.loadBalancerSourceRanges: \"%.60s\" is not a CIDR", text ? text : "");
			continue;
		}
		out->source_ranges = xreallocarray(out->source_ranges, out->n_source_ranges + 1, sizeof(cidr));
		out->source_ranges[out->n_source_ranges++] = cidr;
	}
	return 0;
}

/* Returns 0 when the Service is not for us, 1 when it is. */
static int parse_spec(
	const json_t *object, const json_t *spec, struct service *service, struct str *left_out, struct error *err)
{
	const char *type = field_string(spec, "type");
	bool balancer = str_eq(type, "LoadBalancer"), node_ports = balancer || str_eq(type, "NodePort");
	int r;

	if (str_eq(type, "ExternalName"))
		return 0;
	if (!str_empty(type) && !node_ports && strcmp(type, "ClusterIP") != 0)
		return error_set(err, ERROR_INVALID, "spec.type: \"%.40s\" is not known", type);
	if ((r = parse_cluster_ips(spec, service, left_out, err)) <= 0)
		return r;
	if ((r = policy_local(spec, "internalTrafficPolicy", &service->internal_local, err)) < 0 ||
		(r = policy_local(spec, "externalTrafficPolicy", &service->external_local, err)) < 0 ||
		(r = parse_ports(spec, service, node_ports, left_out, err)) < 0 ||
		(r = parse_affinity(spec, service, left_out, err)) < 0 ||
		(r = parse_external_ips(spec, service, left_out, err)) < 0)
		return r;
	if (balancer && ((r = parse_balancer(object, spec, service, left_out, err)) < 0 ||
				(r = parse_source_ranges(spec, service, left_out, err)) < 0))
		return r;
	return 1;
}

int service_parse(const json_t *object, const struct node_identity *node, struct service **ret, struct str *left_out,
	struct error *err)
{
	_cleanup_(service_free_p) struct service *service = xnew(struct service);
	const json_t *spec = json_object_get(object, "spec");
	int r;

	service->key = object_key(object, err);
	if (!service->key)
		return -EINVAL;
	if (!json_is_object(spec))
		return error_set(err, ERROR_INVALID, "spec: is not an object");
	service->created = timestamp_order(field_string(json_object_get(object, "metadata"), "creationTimestamp"));
	r = object_is_ours(object, node) ? parse_spec(object, spec, service, left_out, err) : 0;
	if (r < 0)
		return r;
	*ret = r == 0 ? NULL : steal(service);
	return 0;
}

struct service *service_free(struct service *service)
{
	if (!service)
		return NULL;
	for (size_t i = 0; i < service->n_ports; i++)
		free(service->ports[i].name);
	if (service->outside) {
		free(service->outside->external_ips);
		free(service->outside->source_ranges);
		free(service->outside);
	}
	free(service->ports);
	free(service->key);
	free(service);
	return NULL;
}

static bool outside_equal(const struct service_outside *a, const struct service_outside *b)
{
	if (!a || !b)
		return a == b;
	if (a->n_external_ips != b->n_external_ips || a->n_balancer_ips != b->n_balancer_ips ||
		a->n_source_ranges != b->n_source_ranges || a->guarded != b->guarded ||
		a->health_port != b->health_port)
		return false;
	for (size_t i = 0; i < a->n_external_ips; i++)
		if (!ip_equal(&a->external_ips[i], &b->external_ips[i]))
			return false;
	for (size_t i = 0; i < a->n_source_ranges; i++)
		if (!ip_equal(&a->source_ranges[i].ip, &b->source_ranges[i].ip) ||
			a->source_ranges[i].prefix != b->source_ranges[i].prefix)
			return false;
	return true;
}

bool service_equal(const struct service *a, const struct service *b)
{
	if (a->created != b->created || a->n_cluster_ips != b->n_cluster_ips ||
		a->internal_local != b->internal_local || a->external_local != b->external_local ||
		a->affinity_s != b->affinity_s || a->n_ports != b->n_ports)
		return false;
	for (unsigned i = 0; i < a->n_cluster_ips; i++)
		if (!ip_equal(&a->cluster_ips[i], &b->cluster_ips[i]))
			return false;
	for (size_t i = 0; i < a->n_ports; i++) {
		const struct service_port *p = &a->ports[i], *q = &b->ports[i];

		if (p->port != q->port || p->node_port != q->node_port || p->protocol != q->protocol ||
			!str_eq(p->name, q->name))
			return false;
	}
	return outside_equal(a->outside, b->outside);
}

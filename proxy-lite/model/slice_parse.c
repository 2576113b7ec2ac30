/* slice_parse.c - purpose: read an EndpointSlice from JSON. */
#include "proxy-lite/model/object_fields.h"

#include <errno.h>
#include <time.h>

static int parse_ports(const json_t *object, struct slice *slice, struct str *left_out, struct error *err)
{
	const json_t *array, *item;
	size_t i;
	int r = field_array(object, "ports", &array, err);

	if (r < 0)
		return r;
	if (json_array_size(array) > OBJECT_PORTS_MAX)
		return error_set(err, ERROR_INVALID, "ports: %zu are too many", json_array_size(array));
	slice->ports = xcalloc(json_array_size(array) + 1, sizeof(*slice->ports));
	json_array_foreach(array, i, item)
	{
		struct slice_port *port = &slice->ports[slice->n_ports];
		const json_t *number = json_object_get(item, "port");

		if (!number || json_is_null(number))
			continue; /* "all ports": proxies have no use for it */
		if (!field_port(item, "port", &port->port)) {
			field_left_out(left_out, "ports[%zu].port: is not 1 to 65535", i);
			continue;
		}
		if (!field_protocol(item, &port->protocol)) {
			field_left_out(left_out, "ports[%zu].protocol: \"%.20s\" is not TCP, UDP or SCTP", i,
				field_string(item, "protocol"));
			continue;
		}
		port->name = field_port_name(item);
		slice->n_ports++;
	}
	return 0;
}

/* Null and absent give the fallback. */
static bool condition(const json_t *conditions, const char *name, bool fallback)
{
	const json_t *value = json_object_get(conditions, name);

	return json_is_boolean(value) ? json_is_true(value) : fallback;
}

static uint16_t condition_flags(const json_t *conditions)
{
	bool ready = condition(conditions, "ready", true);
	bool serving = condition(conditions, "serving", ready);
	bool terminating = condition(conditions, "terminating", false);

	return (uint16_t)((ready ? ENDPOINT_READY : 0) | (serving ? ENDPOINT_SERVING : 0) |
			  (terminating ? ENDPOINT_TERMINATING : 0));
}

/* One list of hints: `has` when there is any, and `ours` when we are in it. */
static uint16_t hint_flags(const json_t *hints, const char *list, const char *we, uint16_t has, uint16_t ours)
{
	const json_t *array = json_object_get(hints, list), *item;
	uint16_t flags = 0;
	size_t i;

	json_array_foreach(array, i, item)
	{
		flags |= has;
		if (we && str_eq(field_string(item, "name"), we))
			flags |= ours;
	}
	return flags;
}

static bool parse_endpoint(const json_t *item, bool v6, const struct node_identity *node, struct endpoint *ret)
{
	const json_t *addresses = json_object_get(item, "addresses"), *hints = json_object_get(item, "hints");
	/* "Consumers must handle multiple addresses"; all that exist use the first one. */
	const char *text = json_string_value(json_array_get(addresses, 0));
	const char *node_name = field_string(item, "nodeName");
	struct ip ip;

	if (!text || !ip_parse(text, &ip) || ip.v6 != v6 || !ip_is_destination(&ip))
		return false;
	memset(ret, 0, sizeof(*ret));
	memcpy(ret->address, ip.bytes, sizeof(ret->address));
	ret->flags = condition_flags(json_object_get(item, "conditions"));
	if (!str_empty(node_name))
		ret->flags |= ENDPOINT_PLACED | (str_eq(node_name, node->name) ? ENDPOINT_LOCAL : 0);
	ret->flags |= hint_flags(hints, "forZones", node->zone, ENDPOINT_ZONE_HINT, ENDPOINT_OUR_ZONE);
	ret->flags |= hint_flags(hints, "forNodes", node->name, ENDPOINT_NODE_HINT, ENDPOINT_OUR_NODE);
	return true;
}

static int parse_endpoints(const json_t *object, const struct node_identity *node, struct slice *slice,
	struct str *left_out, struct error *err)
{
	const json_t *array, *item;
	size_t i;
	int r = field_array(object, "endpoints", &array, err);

	if (r < 0)
		return r;
	if (json_array_size(array) > SLICE_ENDPOINTS_MAX)
		return error_set(err, ERROR_INVALID, "endpoints: %zu are too many", json_array_size(array));
	slice->endpoints = xcalloc(json_array_size(array) + 1, sizeof(*slice->endpoints));
	json_array_foreach(array, i, item)
	{
		if (parse_endpoint(item, slice->v6, node, &slice->endpoints[slice->n_endpoints]))
			slice->n_endpoints++;
		else
			field_left_out(left_out, "endpoints[%zu].addresses: has no usable %s address", i,
				slice->v6 ? "IPv6" : "IPv4");
	}
	return 0;
}

static uint64_t trigger_time_ms(const json_t *metadata)
{
	const char *text = field_string(
		json_object_get(metadata, "annotations"), "endpoints.kubernetes.io/last-change-trigger-time");
	struct tm tm = { 0 };
	const char *rest = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
	double fraction = rest && *rest == '.' ? strtod(rest, NULL) : 0;
	time_t t = rest ? timegm(&tm) : 0;

	return t > 0 ? (uint64_t)t * 1000 + (uint64_t)(fraction * 1000) : 0;
}

/* Returns 0 when the slice is not for us, 1 when it is. */
static int parse_slice(const json_t *object, const struct node_identity *node, struct slice *slice,
	struct str *left_out, struct error *err)
{
	const json_t *metadata = json_object_get(object, "metadata");
	const char *service = field_string(json_object_get(metadata, "labels"), "kubernetes.io/service-name");
	const char *type = field_string(object, "addressType");
	int r;

	if (!object_is_ours(object, node) || str_empty(service) || str_eq(type, "FQDN"))
		return 0;
	if (!str_eq(type, "IPv4") && !str_eq(type, "IPv6"))
		return error_set(
			err, ERROR_INVALID, "addressType: \"%.20s\" is not IPv4, IPv6 or FQDN", type ? type : "");
	slice->v6 = str_eq(type, "IPv6");
	slice->service_key = xasprintf("%s/%.253s", field_string(metadata, "namespace"), service);
	if ((r = parse_ports(object, slice, left_out, err)) < 0 ||
		(r = parse_endpoints(object, node, slice, left_out, err)) < 0)
		return r;
	slice->trigger_ms = trigger_time_ms(metadata);
	return 1;
}

int slice_parse(const json_t *object, const struct node_identity *node, struct slice **ret, struct str *left_out,
	struct error *err)
{
	_cleanup_(slice_free_p) struct slice *slice = xnew(struct slice);
	int r;

	slice->key = object_key(object, err);
	if (!slice->key)
		return -EINVAL;
	r = parse_slice(object, node, slice, left_out, err);
	if (r < 0)
		return r;
	*ret = r == 0 ? NULL : steal(slice);
	return 0;
}

struct slice *slice_free(struct slice *slice)
{
	if (!slice)
		return NULL;
	for (size_t i = 0; i < slice->n_ports; i++)
		free(slice->ports[i].name);
	free(slice->ports);
	free(slice->endpoints);
	free(slice->service_key);
	free(slice->key);
	free(slice);
	return NULL;
}

bool slice_equal(const struct slice *a, const struct slice *b)
{
	if (a->v6 != b->v6 || a->n_ports != b->n_ports || a->n_endpoints != b->n_endpoints ||
		!str_eq(a->service_key, b->service_key))
		return false;
	for (size_t i = 0; i < a->n_ports; i++)
		if (a->ports[i].port != b->ports[i].port || a->ports[i].protocol != b->ports[i].protocol ||
			!str_eq(a->ports[i].name, b->ports[i].name))
			return false;
	return memcmp(a->endpoints, b->endpoints, a->n_endpoints * sizeof(*a->endpoints)) == 0;
}

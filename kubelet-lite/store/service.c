/*
 * service.c - purpose: give Services their ClusterIP and nodePorts, the same ones for as long as they exist.
 *
 * Order of preference: what the manifest names, what the Service has, what it had before the restart, a free one.
 */
#include "kubelet-lite/store/objects_i.h"

#include <stdio.h>

#include "common/base/str.h"
#include "common/wire/json.h"
#include "kubelet-lite/store/kinds.h"

struct allocation {
	struct objects *store;
	json_t *spec;
	char *owner; /* "ns/name" */
	struct saved *saved;
	const json_t *have; /* spec of the Service as it is now, or NULL */
};

static int refused(const char *name, const char *field, struct error *err)
{
	int r = err->code == ERROR_EXISTS || err->code == ERROR_OUT_OF_RANGE ? error_code_errno(ERROR_INVALID) : 0;

	if (r)
		err->code = ERROR_INVALID;
	error_prefix(err, "Service \"%s\" is invalid: %s", name, field);
	return r ? r : error_code_errno(err->code);
}

/* An address that a Service had which is not there any more (its file is broken or gone) gives way. */
static void evict_absent(struct objects *store, const char *owner)
{
	if (!owner || !store->loaded)
		return;
	_cleanup_(strv_done) struct strv parts = STRV_INIT;

	strv_split(&parts, owner, '/');
	if (parts.n == 2 && !store_find(store, KIND_SERVICE, parts.v[0], parts.v[1])) {
		_cleanup_free_ char *copy = xstrdup(owner);

		addresses_release(&store->addresses, copy);
	}
}

static int take_ip(struct allocation *a, const char *want, char *text, struct error *err)
{
	if (want)
		evict_absent(a->store, map_get(&a->store->addresses.ips, want));
	return addresses_take_ip(&a->store->addresses, a->owner, want, text, err);
}

static int cluster_ip(struct allocation *a, struct error *err)
{
	const char *given = json_str_at(a->spec, "clusterIP", ""), *have = json_str_at(a->have, "clusterIP", "");
	char text[ADDRESS_TEXT_MAX] = "None";
	int r = 0;

	if (!*given)
		given = json_string_value(json_array_get(json_object_get(a->spec, "clusterIPs"), 0));
	if (!str_eq(given, "None")) {
		/* What it has or had is only a wish: the range may have changed. */
		const char *wishes[] = { *have && !str_eq(have, "None") ? have : NULL, a->saved->cluster_ip };

		r = !str_empty(given) ? take_ip(a, given, text, err) : -1;
		for (size_t i = 0; str_empty(given) && r < 0 && i < ARRAY_LEN(wishes); i++)
			r = wishes[i] ? take_ip(a, wishes[i], text, NULL) : -1;
		if (str_empty(given) && r < 0)
			r = take_ip(a, NULL, text, err);
		if (r < 0)
			return r;
	}
	if (*have && !str_eq(have, text))
		addresses_release_ip(&a->store->addresses, have, a->owner);
	json_object_set_new(a->spec, "clusterIP", json_string(text));
	json_object_set_new(a->spec, "clusterIPs", json_pack("[s]", text));
	bool v6 = a->store->addresses.range.v6;

	if (!json_array_size(json_object_get(a->spec, "ipFamilies")))
		json_object_set_new(a->spec, "ipFamilies", json_pack("[s]", v6 ? "IPv6" : "IPv4"));
	free(a->saved->cluster_ip);
	a->saved->cluster_ip = str_eq(text, "None") ? NULL : xstrdup(text);
	return 0;
}

static const char *port_tag(const json_t *port)
{
	static char tag[96];

	snprintf(tag, sizeof(tag), "%s/%s/%lld", json_str_at(port, "protocol", "TCP"), json_str_at(port, "name", ""),
		(long long)json_int_at(port, "port", 0));
	return tag;
}

/* nodePort of the same port in the Service as it is now. */
static unsigned port_have(const json_t *spec, const char *tag)
{
	_cleanup_free_ char *wanted = xstrdup(tag);
	json_t *port;
	size_t i;

	json_array_foreach (json_object_get(spec, "ports"), i, port)
		if (str_eq(port_tag(port), wanted))
			return (unsigned)json_int_at(port, "nodePort", 0);
	return 0;
}

/* ... before the restart: "TCP/http/80=30080,". */
static unsigned port_saved(const char *list, const char *tag)
{
	size_t len = strlen(tag);

	for (const char *p = list; p && *p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
		if (strncmp(p, tag, len) == 0 && p[len] == '=')
			return (unsigned)strtoul(p + len + 1, NULL, 10);
	return 0;
}

static int take_port(struct allocation *a, const json_t *port, unsigned want, unsigned *ret, struct error *err)
{
	const char *protocol = json_str_at(port, "protocol", "TCP");
	char key[32];

	snprintf(key, sizeof(key), "%.8s/%u", protocol, want);
	if (want)
		evict_absent(a->store, map_get(&a->store->addresses.ports, key));
	return addresses_take_port(&a->store->addresses, a->owner, protocol, json_str_at(port, "name", ""), want, ret, err);
}

static int node_ports(struct allocation *a, struct error *err)
{
	_cleanup_(str_done) struct str list = STR_INIT;
	json_t *port;
	size_t i;

	json_array_foreach (json_object_get(a->spec, "ports"), i, port) {
		unsigned want = (unsigned)json_int_at(port, "nodePort", 0), got = 0;
		unsigned have = port_have(a->have, port_tag(port)), saved = port_saved(a->saved->node_ports, port_tag(port));
		int r = want ? take_port(a, port, want, &got, err) : -1;

		if (!want && have)
			r = take_port(a, port, have, &got, NULL);
		if (!want && r < 0 && saved)
			r = take_port(a, port, saved, &got, NULL);
		if (!want && r < 0)
			r = take_port(a, port, 0, &got, err);
		if (r < 0)
			return error_prefix(err, "spec.ports[%zu].nodePort", i);
		json_object_set_new(port, "nodePort", json_integer(got));
		str_addf(&list, "%s=%u,", port_tag(port), got);
	}
	free(a->saved->node_ports);
	a->saved->node_ports = str_take(&list);
	return 0;
}

static bool has_node_ports(const json_t *spec)
{
	const char *type = json_str_at(spec, "type", "");

	return str_eq(type, "NodePort") ||
		(str_eq(type, "LoadBalancer") && json_bool_at(spec, "allocateLoadBalancerNodePorts", true));
}

static void no_node_ports(struct allocation *a)
{
	json_t *port;
	size_t i;

	json_array_foreach (json_object_get(a->spec, "ports"), i, port)
		json_object_del(port, "nodePort");
	free(steal(a->saved->node_ports));
}

/* After a change: give back what is not used any more. */
static void release_rest(struct allocation *a)
{
	struct map_iter it = MAP_ITER_INIT;
	struct map *ports = &a->store->addresses.ports;
	json_t *port;
	size_t i;

	while (map_next(ports, &it)) {
		bool used = false;

		if (!str_eq(it.value, a->owner))
			continue;
		json_array_foreach (json_object_get(a->spec, "ports"), i, port) {
			char key[32];

			snprintf(key, sizeof(key), "%.8s/%u", json_str_at(port, "protocol", "TCP"),
				(unsigned)json_int_at(port, "nodePort", 0));
			used |= str_eq(key, it.key);
		}
		if (!used)
			free(map_remove(ports, it.key));
	}
}

/* A change was refused: the Service keeps what it has. */
static void retake(struct allocation *a)
{
	const char *ip = json_str_at(a->have, "clusterIP", "");
	char text[ADDRESS_TEXT_MAX];
	json_t *port;
	size_t i;
	unsigned got;

	if (*ip && !str_eq(ip, "None") && addresses_take_ip(&a->store->addresses, a->owner, ip, text, NULL) == 0) {
		free(a->saved->cluster_ip);
		a->saved->cluster_ip = xstrdup(text);
	}
	json_array_foreach (json_object_get(a->have, "ports"), i, port)
		if (json_int_at(port, "nodePort", 0) > 0 && take_port(a, port, (unsigned)json_int_at(port, "nodePort", 0), &got, NULL) < 0)
			return;
}

int service_allocate(struct objects *store, json_t *tree, struct error *err)
{
	const char *ns = json_str_at(tree, "metadata.namespace", ""), *name = json_str_at(tree, "metadata.name", "");
	struct object *o = store_find(store, KIND_SERVICE, ns, name);
	_cleanup_json_ json_t *have = o ? object_tree(o) : NULL;
	_cleanup_free_ char *owner = xasprintf("%s/%s", ns, name), *key = store_key(KIND_SERVICE, ns, name);
	struct allocation a = { store, json_object_get(tree, "spec"), owner, state_entry(&store->state, key),
		json_object_get(have, "spec") };
	struct error inner = ERROR_INIT;
	bool external = str_eq(json_str_at(a.spec, "type", ""), "ExternalName");
	int r = 0;

	if (external) {
		static const char *const none[] = { "clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy" };

		for (size_t i = 0; i < ARRAY_LEN(none); i++)
			json_object_del(a.spec, none[i]);
		addresses_release(&store->addresses, owner);
		free(steal(a.saved->cluster_ip));
	} else if (cluster_ip(&a, &inner) < 0) {
		r = refused(name, "spec.clusterIP", &inner);
	}
	if (r == 0 && !external && has_node_ports(a.spec)) {
		if (node_ports(&a, &inner) < 0)
			r = refused(name, "spec.ports", &inner);
	} else if (r == 0) {
		no_node_ports(&a);
	}
	if (r < 0) {
		addresses_release(&store->addresses, owner);
		if (o)
			retake(&a);
		else if (!a.saved->uid)
			state_forget(&store->state, key);
		if (err)
			*err = inner;
		return r;
	}
	release_rest(&a);
	store_state_changed(store);
	return 0;
}

void service_reserve_saved(struct objects *store)
{
	struct map_iter it = MAP_ITER_INIT;

	while (map_next(&store->state.saved, &it)) {
		const struct saved *saved = it.value;
		const char *owner = strchr(it.key, '/') + 1;
		char text[ADDRESS_TEXT_MAX];

		if (!str_starts(it.key, "Service/"))
			continue;
		if (saved->cluster_ip && addresses_take_ip(&store->addresses, owner, saved->cluster_ip, text, NULL) < 0)
			continue; /* of another range: the Service gets a new one */
		for (const char *p = saved->node_ports; p && *p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
			_cleanup_free_ char *protocol = xstrndup(p, strcspn(p, "/,"));
			const char *value = p + strcspn(p, "=,");
			unsigned got;

			if (*value == '=' && addresses_take_port(&store->addresses, owner, protocol, "",
						     (unsigned)strtoul(value + 1, NULL, 10), &got, NULL) < 0)
				break;
		}
	}
}

void service_release(struct objects *store, const char *ns, const char *name)
{
	_cleanup_free_ char *owner = xasprintf("%s/%s", ns, name);

	addresses_release(&store->addresses, owner);
}

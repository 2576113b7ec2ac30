/* kinds.c - purpose: the kinds of object that are served: names, groups, scope, sub-resources. */
#include "kubelet-lite/store/kinds.h"

static const struct kind_info KINDS[KIND_COUNT] = {
	[KIND_NODE] = { "Node", "nodes", "node", "no", "", "v1", "v1", .status = true },
	[KIND_NAMESPACE] = { "Namespace", "namespaces", "namespace", "ns", "", "v1", "v1", .status = true, .writable = true },
	[KIND_POD] = { "Pod", "pods", "pod", "po", "", "v1", "v1", .namespaced = true, .status = true, .category_all = true,
		.writable = true },
	[KIND_SERVICE] = { "Service", "services", "service", "svc", "", "v1", "v1", .namespaced = true, .status = true,
		.category_all = true, .writable = true },
	[KIND_ENDPOINT_SLICE] = { "EndpointSlice", "endpointslices", "endpointslice", "", "discovery.k8s.io", "v1",
		"discovery.k8s.io/v1", .namespaced = true, .writable = true },
	[KIND_CONFIG_MAP] = { "ConfigMap", "configmaps", "configmap", "cm", "", "v1", "v1", .namespaced = true,
		.writable = true },
	[KIND_SECRET] = { "Secret", "secrets", "secret", "", "", "v1", "v1", .namespaced = true, .writable = true },
	[KIND_EVENT] = { "Event", "events", "event", "ev", "", "v1", "v1", .namespaced = true },
	[KIND_LEASE] = { "Lease", "leases", "lease", "", "coordination.k8s.io", "v1", "coordination.k8s.io/v1",
		.namespaced = true },
};

const struct kind_info *kind_info(enum object_kind kind)
{
	return &KINDS[kind];
}

bool kind_of(const char *api_version, const char *kind, enum object_kind *ret)
{
	for (int i = 0; i < KIND_COUNT; i++)
		if (str_eq(KINDS[i].api_version, api_version) && str_eq(KINDS[i].kind, kind)) {
			*ret = (enum object_kind)i;
			return true;
		}
	return false;
}

bool kind_by_plural(const char *group, const char *version, const char *plural, enum object_kind *ret)
{
	for (int i = 0; i < KIND_COUNT; i++)
		if (str_eq(KINDS[i].group, group) && str_eq(KINDS[i].version, version) &&
			str_eq(KINDS[i].plural, plural)) {
			*ret = (enum object_kind)i;
			return true;
		}
	return false;
}

const char *kinds_writable(void)
{
	return "Pod, Service, ConfigMap, Secret, Namespace (v1), EndpointSlice (discovery.k8s.io/v1), List (v1)";
}

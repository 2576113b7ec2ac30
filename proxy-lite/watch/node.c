/* node.c - purpose: what of our own Node object matters: zone, pod ranges, and whether it is about to go. */
#include "proxy-lite/watch/node.h"

#include <stdio.h>

static const char to_be_deleted[] = "ToBeDeletedByClusterAutoscaler";

static void add_range(struct node_state *state, const char *text)
{
	struct cidr cidr;

	if (!text || !cidr_parse(text, &cidr) || state->has_pods[cidr.ip.v6])
		return;
	state->has_pods[cidr.ip.v6] = true;
	state->pods[cidr.ip.v6] = cidr;
}

void node_state_parse(const json_t *object, struct node_state *ret)
{
	const json_t *metadata = json_object_get(object, "metadata"), *spec = json_object_get(object, "spec"), *item;
	const char *zone =
		json_string_value(json_object_get(json_object_get(metadata, "labels"), "topology.kubernetes.io/zone"));
	const char *deleted = json_string_value(json_object_get(metadata, "deletionTimestamp"));
	size_t i;

	memset(ret, 0, sizeof(*ret));
	if (zone)
		snprintf(ret->zone, sizeof(ret->zone), "%s", zone);
	ret->going = !str_empty(deleted);
	json_array_foreach(json_object_get(spec, "taints"), i, item)
	{
		ret->going |= str_eq(json_string_value(json_object_get(item, "key")), to_be_deleted);
	}
	json_array_foreach(json_object_get(spec, "podCIDRs"), i, item)
	{
		add_range(ret, json_string_value(item));
	}
	add_range(ret, json_string_value(json_object_get(spec, "podCIDR")));
}

static bool ranges_equal(const struct node_state *a, const struct node_state *b)
{
	for (int v6 = 0; v6 < 2; v6++)
		if (a->has_pods[v6] != b->has_pods[v6] ||
			(a->has_pods[v6] && (a->pods[v6].prefix != b->pods[v6].prefix ||
						    !ip_equal(&a->pods[v6].ip, &b->pods[v6].ip))))
			return false;
	return true;
}

bool node_state_equal(const struct node_state *a, const struct node_state *b)
{
	return strcmp(a->zone, b->zone) == 0 && a->going == b->going && ranges_equal(a, b);
}

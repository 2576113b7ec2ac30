/* qos.c - purpose: a pod's QoS class, and the cgroup values and names that follow from requests and limits. */
#include "kubelet-lite/core/qos.h"

static bool positive(const struct resource_list *list, const char *name, struct quantity *ret)
{
	return resource_get(list, name, ret) && ret->nano > 0;
}

enum qos_class pod_qos(const struct pod *pod)
{
	static const char *const names[] = { "cpu", "memory" };
	bool any = false, guaranteed = true;

	for (size_t i = 0; i < pod->n_containers; i++)
		for (size_t k = 0; k < ARRAY_LEN(names); k++) {
			const struct container *c = &pod->containers[i];
			struct quantity request, limit;
			bool has_request = positive(&c->requests, names[k], &request),
			     has_limit = positive(&c->limits, names[k], &limit);

			any = any || has_request || has_limit;
			guaranteed = guaranteed && has_limit && has_request && quantity_cmp(request, limit) == 0;
		}
	return !any ? QOS_BEST_EFFORT : guaranteed ? QOS_GUARANTEED : QOS_BURSTABLE;
}

const char *qos_name(enum qos_class qos)
{
	return qos == QOS_GUARANTEED ? "Guaranteed" : qos == QOS_BURSTABLE ? "Burstable" : "BestEffort";
}

static int64_t shares_of(int64_t milli_cpu)
{
	int64_t shares = milli_cpu * 1024 / 1000;

	return MAX((int64_t)CPU_SHARES_MIN, MIN((int64_t)CPU_SHARES_MAX, shares));
}

static int64_t quota_of(int64_t milli_cpu)
{
	return milli_cpu <= 0 ? 0 : MAX((int64_t)CPU_QUOTA_MIN_US, milli_cpu * CPU_PERIOD_US / 1000);
}

/* Sum of the regular containers and sidecars, or what an init container needs beside the sidecars before it. With
 * `complete`: false as soon as one container has no value. */
static bool pod_sum(const struct pod *pod, const char *name, bool limits, struct quantity *ret)
{
	struct quantity sidecars = QUANTITY_ZERO, peak = QUANTITY_ZERO, sum = QUANTITY_ZERO;
	bool complete = true;

	for (size_t i = 0; i < pod->n_containers; i++) {
		const struct container *c = &pod->containers[i];
		struct quantity q = QUANTITY_ZERO;

		if (!positive(limits ? &c->limits : &c->requests, name, &q))
			complete = false;
		if (c->kind == CONTAINER_SIDECAR)
			sidecars = quantity_add(sidecars, q);
		if (c->kind == CONTAINER_INIT && quantity_cmp(quantity_add(sidecars, q), peak) > 0)
			peak = quantity_add(sidecars, q);
		if (c->kind == CONTAINER_REGULAR)
			sum = quantity_add(sum, q);
	}
	sum = quantity_add(sum, sidecars);
	*ret = quantity_cmp(sum, peak) > 0 ? sum : peak;
	return complete;
}

struct quantity pod_request(const struct pod *pod, const char *resource)
{
	struct quantity q;

	pod_sum(pod, resource, false, &q);
	return q;
}

static int64_t oom_score(const struct pod *pod, const struct container *c, int64_t node_memory)
{
	struct quantity request = QUANTITY_ZERO;

	switch (pod_qos(pod)) {
	case QOS_GUARANTEED:
		return -997;
	case QOS_BEST_EFFORT:
		return 1000;
	default:
		resource_get(&c->requests, "memory", &request);
		int64_t bytes = quantity_value(request);
		int64_t score = node_memory > 0 ? 1000 - (int64_t)((__int128)1000 * bytes / node_memory) : 1000;

		return MAX((int64_t)3, MIN((int64_t)999, score));
	}
}

/* A sidecar is not killed before the regular container that is least likely to be. */
static int64_t sidecar_oom_score(const struct pod *pod, int64_t own, int64_t node_memory)
{
	int64_t smallest = own;

	for (size_t i = pod->n_init; i < pod->n_containers; i++)
		smallest = MIN(smallest, oom_score(pod, &pod->containers[i], node_memory));
	return smallest;
}

struct cgroup_values container_cgroup(const struct pod *pod, const struct container *c, int64_t node_memory)
{
	struct quantity request = QUANTITY_ZERO, limit = QUANTITY_ZERO, memory = QUANTITY_ZERO;
	struct cgroup_values v = { 0 };

	resource_get(&c->requests, "cpu", &request);
	resource_get(&c->limits, "cpu", &limit);
	resource_get(&c->limits, "memory", &memory);
	v.cpu_shares = shares_of(quantity_milli(request));
	v.cpu_quota_us = quota_of(quantity_milli(limit));
	v.memory_limit = quantity_value(memory);
	v.oom_score_adj = oom_score(pod, c, node_memory);
	if (c->kind == CONTAINER_SIDECAR)
		v.oom_score_adj = sidecar_oom_score(pod, v.oom_score_adj, node_memory);
	return v;
}

struct cgroup_values pod_cgroup(const struct pod *pod)
{
	struct cgroup_values v = { .cpu_shares = CPU_SHARES_MIN };
	struct quantity cpu, memory;
	enum qos_class qos = pod_qos(pod);

	if (qos == QOS_BEST_EFFORT)
		return v;
	v.cpu_shares = shares_of(quantity_milli(pod_request(pod, "cpu")));
	if (pod_sum(pod, "cpu", true, &cpu) || qos == QOS_GUARANTEED)
		v.cpu_quota_us = quota_of(quantity_milli(cpu));
	if (pod_sum(pod, "memory", true, &memory) || qos == QOS_GUARANTEED)
		v.memory_limit = quantity_value(memory);
	return v;
}

int64_t cgroup_weight(int64_t shares)
{
	return shares >= CPU_SHARES_MAX ? 10000 : 1 + (MAX(shares, (int64_t)2) - 2) * 9999 / 262142;
}

static const char *class_name(enum qos_class qos)
{
	return qos == QOS_BURSTABLE ? "burstable" : "besteffort";
}

char *qos_cgroup_path(const char *root, enum qos_class qos, bool systemd)
{
	const char *base = str_eq(root, "/") ? "" : root;

	if (qos == QOS_GUARANTEED)
		return xasprintf("%s/kubepods%s", base, systemd ? ".slice" : "");
	if (systemd)
		return xasprintf("%s/kubepods.slice/kubepods-%s.slice", base, class_name(qos));
	return xasprintf("%s/kubepods/%s", base, class_name(qos));
}

static char *slice_name(enum qos_class qos, const char *uid)
{
	char *slice = qos == QOS_GUARANTEED ? xasprintf("kubepods-pod%s.slice", uid)
					    : xasprintf("kubepods-%s-pod%s.slice", class_name(qos), uid);

	/* Dashes are levels to systemd. */
	for (char *p = strstr(slice, "-pod") + 4; *p && *p != '.'; p++)
		if (*p == '-')
			*p = '_';
	return slice;
}

static char *cgroup_path(const char *root, enum qos_class qos, const char *uid, bool systemd)
{
	_cleanup_free_ char *parent = qos_cgroup_path(root, qos, systemd);
	_cleanup_free_ char *slice = systemd ? slice_name(qos, uid) : NULL;

	return systemd ? xasprintf("%s/%s", parent, slice) : xasprintf("%s/pod%s", parent, uid);
}

char *pod_cgroup_path(const char *root, const struct pod *pod, bool systemd)
{
	return cgroup_path(root, pod_qos(pod), pod->uid, systemd);
}

char *pod_cgroup_parent(const char *root, const struct pod *pod, bool systemd)
{
	return systemd ? slice_name(pod_qos(pod), pod->uid) : pod_cgroup_path(root, pod, false);
}

void pod_cgroup_candidates(const char *root, const char *uid, bool systemd, struct strv *ret)
{
	static const enum qos_class all[] = { QOS_GUARANTEED, QOS_BURSTABLE, QOS_BEST_EFFORT };

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		strv_add_take(ret, cgroup_path(root, all[i], uid, systemd));
}

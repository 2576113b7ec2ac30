/* admission.c - purpose: may this pod run on this node? */
#include "kubelet-lite/core/admission.h"

#include "kubelet-lite/core/cri_config.h"
#include "kubelet-lite/core/qos.h"

static bool refuse(struct verdict_text *ret, const char *reason, char *message)
{
	ret->reason = reason;
	ret->message = message;
	return false;
}

/* Both spellings, a.b and a/b. */
static bool sysctl_eq(const char *a, const char *pattern)
{
	for (; *pattern && *pattern != '*'; a++, pattern++)
		if (*a != *pattern && !(*a == '/' && *pattern == '.'))
			return false;
	return *pattern == '*' || *a == '\0';
}

static bool sysctl_allowed(const struct pod *pod, const char *name, const struct strv *unsafe)
{
	static const char *const safe[] = { "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range",
		"net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range", "net.ipv4.ip_unprivileged_port_start",
		"net.ipv4.ip_local_reserved_ports", "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_keepalive_intvl",
		"net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem" };

	if (pod->host_network && sysctl_eq(name, "net.*"))
		return false;
	if (pod->host_ipc && (sysctl_eq(name, "kernel.shm*") || sysctl_eq(name, "kernel.msg*") ||
				     sysctl_eq(name, "kernel.sem") || sysctl_eq(name, "fs.mqueue.*")))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(safe); i++)
		if (sysctl_eq(name, safe[i]))
			return true;
	for (size_t i = 0; i < unsafe->n; i++)
		if (sysctl_eq(name, unsafe->v[i]))
			return true;
	return false;
}

static bool check_sysctls(const struct pod *pod, const struct admission_node *node, struct verdict_text *ret)
{
	for (size_t i = 0; i < pod->sysctls.n; i++)
		if (!sysctl_allowed(pod, pod->sysctls.v[i].key, node->unsafe_sysctls))
			return refuse(ret, "SysctlForbidden",
				xasprintf("forbidden sysctl: \"%s\" not allowlisted", pod->sysctls.v[i].key));
	return true;
}

static bool check_resource(const struct pod *pod, const struct pod *const *others, size_t n, const char *name,
	const char *reason, struct quantity have, struct verdict_text *ret)
{
	struct quantity used = QUANTITY_ZERO, want = pod_request(pod, name);
	bool milli = str_eq(name, "cpu");

	if (want.nano == 0)
		return true;
	for (size_t i = 0; i < n; i++)
		used = quantity_add(used, pod_request(others[i], name));
	if (quantity_cmp(quantity_add(used, want), have) <= 0)
		return true;
	return refuse(ret, reason,
		xasprintf("Node didn't have enough resource: %s, requested: %lld, used: %lld, capacity: %lld", name,
			(long long)(milli ? quantity_milli(want) : quantity_value(want)),
			(long long)(milli ? quantity_milli(used) : quantity_value(used)),
			(long long)(milli ? quantity_milli(have) : quantity_value(have))));
}

static bool check_resources(const struct pod *pod, const struct pod *const *others, size_t n,
	const struct admission_node *node, struct verdict_text *ret)
{
	if ((int64_t)n + 1 > node->max_pods)
		return refuse(ret, "OutOfpods",
			xasprintf("Node didn't have enough resource: pods, requested: 1, used: %zu, capacity: %lld", n,
				(long long)node->max_pods));
	return check_resource(pod, others, n, "cpu", "OutOfcpu", node->cpu, ret) &&
	       check_resource(pod, others, n, "memory", "OutOfmemory", node->memory, ret) &&
	       check_resource(pod, others, n, "ephemeral-storage", "OutOfephemeral-storage", node->storage, ret);
}

static bool check_os(const struct pod *pod, struct verdict_text *ret)
{
	const char *label = kv_get(&pod->labels, "kubernetes.io/os");

	if (label && !str_eq(label, "linux"))
		return refuse(ret, "PodOSSelectorNodeLabelDoesNotMatch",
			xstrdup("Failed to admit pod as the `kubernetes.io/os` label doesn't match node label"));
	if (*pod->os && !str_eq(pod->os, "linux"))
		return refuse(
			ret, "PodOSNotSupported", xstrdup("Failed to admit pod as the OS field doesn't match node OS"));
	return true;
}

static bool check_selector(const struct pod *pod, const struct admission_node *node, struct verdict_text *ret)
{
	for (size_t i = 0; i < pod->node_selector.n; i++)
		if (!str_eq(kv_get(&node->labels, pod->node_selector.v[i].key), pod->node_selector.v[i].value))
			return refuse(ret, "NodeAffinity",
				xstrdup("Predicate NodeAffinity failed: node(s) didn't match Pod's node "
					"affinity/selector"));
	return true;
}

static bool any_address(const char *ip)
{
	return !*ip || str_eq(ip, "0.0.0.0") || str_eq(ip, "::");
}

static const struct container_port *taken_by(const struct pod *other, const struct container_port *want)
{
	for (size_t i = 0; i < other->n_containers; i++)
		for (size_t j = 0; j < other->containers[i].n_ports; j++) {
			const struct container_port *p = &other->containers[i].ports[j];

			if (p->host_port == want->host_port && str_eq(p->protocol, want->protocol) &&
				(any_address(p->host_ip) || any_address(want->host_ip) ||
					str_eq(p->host_ip, want->host_ip)))
				return p;
		}
	return NULL;
}

static bool check_port(
	const struct container_port *want, const struct pod *const *others, size_t n, struct verdict_text *ret)
{
	for (size_t i = 0; want->host_port && i < n; i++)
		if (taken_by(others[i], want))
			return refuse(ret, "NodePorts",
				xasprintf("Predicate NodePorts failed: node(s) didn't have free ports for the "
					  "requested pod ports (%s %d is taken by pod %s/%s)",
					want->protocol, want->host_port, others[i]->ns, others[i]->name));
	return true;
}

static bool check_ports(const struct pod *pod, const struct pod *const *others, size_t n, struct verdict_text *ret)
{
	for (size_t i = 0; i < pod->n_containers; i++)
		for (size_t j = 0; j < pod->containers[i].n_ports; j++)
			if (!check_port(&pod->containers[i].ports[j], others, n, ret))
				return false;
	return true;
}

static bool check_signals(const struct pod *pod, struct verdict_text *ret)
{
	for (size_t i = 0; i < pod->n_containers; i++) {
		const struct container *c = &pod->containers[i];

		if (*c->stop_signal && cri_signal(c->stop_signal) < 0)
			return refuse(ret, "PodFeatureUnsupported",
				xasprintf("container %s: lifecycle.stopSignal: there is no signal \"%.40s\"", c->name,
					c->stop_signal));
	}
	return true;
}

bool pod_admit(const struct pod *pod, const struct pod *const *others, size_t n, const struct admission_node *node,
	struct verdict_text *ret)
{
	struct verdict_text v = { 0 };
	bool ok = true;

	if (pod->unsupported)
		ok = refuse(&v, "PodFeatureUnsupported", xstrdup(pod->unsupported));
	ok = ok && check_signals(pod, &v) && check_sysctls(pod, node, &v) && check_resources(pod, others, n, node, &v) && check_os(pod, &v) &&
	     check_selector(pod, node, &v) && check_ports(pod, others, n, &v);
	if (ok)
		return true;
	ret->reason = v.reason;
	ret->message = xasprintf("Pod was rejected: %s", v.message);
	free(v.message);
	return false;
}

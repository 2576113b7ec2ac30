/* sandbox_plan.c - purpose: from CRI's PodSandboxConfig to what the engine makes. Pure. */
#include "runtime-lite/spec/sandbox_plan.h"

#include "runtime-lite/spec/resources.h"

#include <ctype.h>

enum { SHM_BYTES = 64 << 20, NAME_MAX_LEN = 253, HOSTNAME_MAX_LEN = 64 };

static const CRI(NamespaceOption) * namespaces(const CRI(PodSandboxConfig) * config)
{
	return config->linux && config->linux->security_context ? config->linux->security_context->namespace_options
								  : NULL;
}

/* Names go into paths of logs, messages and reserved names; the kubelet's are DNS names. */
static int check_name(const char *field, const char *value, struct error *err)
{
	if (!*value)
		return error_set(err, ERROR_INVALID, "metadata.%s is empty", field);
	if (strlen(value) > NAME_MAX_LEN)
		return error_set(err, ERROR_INVALID, "metadata.%s is longer than %d characters", field, NAME_MAX_LEN);
	for (const char *p = value; *p; p++)
		if (*p == '/' || (unsigned char)*p <= ' ' || *p == 0x7f)
			return error_set(err, ERROR_INVALID, "metadata.%s \"%.80s\" has a '/', space or control character",
				field, value);
	return 0;
}

static int check_ports(const CRI(PodSandboxConfig) * config, struct error *err)
{
	for (size_t i = 0; i < config->n_port_mappings; i++) {
		const CRI(PortMapping) *p = config->port_mappings[i];

		if (p->host_port < 0 || p->host_port > 65535 || p->container_port < 0 || p->container_port > 65535 ||
			(p->host_port && !p->container_port))
			return error_set(err, ERROR_INVALID,
				"port_mappings[%zu]: host_port %d, container_port %d: must be 1 to 65535", i,
				p->host_port, p->container_port);
		if (p->protocol > RUNTIME__V1__PROTOCOL__SCTP)
			return error_set(err, ERROR_INVALID, "port_mappings[%zu]: unknown protocol %d", i,
				(int)p->protocol);
	}
	return 0;
}

static int check_namespaces(const CRI(NamespaceOption) * ns, struct error *err)
{
	if (!ns)
		return 0;
	if (ns->network != RUNTIME__V1__NAMESPACE_MODE__POD && ns->network != RUNTIME__V1__NAMESPACE_MODE__NODE)
		return error_set(err, ERROR_INVALID, "namespace_options.network must be POD or NODE");
	if (ns->ipc != RUNTIME__V1__NAMESPACE_MODE__POD && ns->ipc != RUNTIME__V1__NAMESPACE_MODE__NODE)
		return error_set(err, ERROR_INVALID, "namespace_options.ipc must be POD or NODE");
	if (ns->pid > RUNTIME__V1__NAMESPACE_MODE__TARGET)
		return error_set(err, ERROR_INVALID, "namespace_options.pid: unknown mode %d", (int)ns->pid);
	if (ns->userns_options && ns->userns_options->mode != RUNTIME__V1__NAMESPACE_MODE__NODE)
		return error_set(err, ERROR_INVALID,
			"namespace_options.userns_options: user namespaces of pods are not supported");
	return 0;
}

static int check_hostname(const char *hostname, struct error *err)
{
	if (strlen(hostname) > HOSTNAME_MAX_LEN)
		return error_set(err, ERROR_INVALID, "hostname \"%.80s\" is longer than %d characters", hostname,
			HOSTNAME_MAX_LEN);
	for (const char *p = hostname; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("-._", *p))
			return error_set(err, ERROR_INVALID,
				"hostname \"%.80s\" may have letters, digits, '-', '.' and '_' only", hostname);
	return 0;
}

int sandbox_config_check(const CRI(PodSandboxConfig) * config, struct error *err)
{
	if (!config)
		return error_set(err, ERROR_INVALID, "config is missing");
	if (!config->metadata)
		return error_set(err, ERROR_INVALID, "metadata is missing");
	int r = check_name("name", config->metadata->name, err);
	if (r == 0)
		r = check_name("namespace", config->metadata->namespace_, err);
	if (r == 0)
		r = check_name("uid", config->metadata->uid, err);
	if (r == 0)
		r = check_hostname(config->hostname, err);
	if (r == 0)
		r = check_ports(config, err);
	if (r == 0)
		r = check_namespaces(namespaces(config), err);
	if (r == 0 && *config->log_directory && *config->log_directory != '/')
		r = error_set(err, ERROR_INVALID, "log_directory \"%.200s\" must be an absolute path",
			config->log_directory);
	return r;
}

const char *sandbox_hostname(const CRI(PodSandboxConfig) * config, const char *node_hostname)
{
	return *config->hostname ? config->hostname : node_hostname;
}

static void add_sysctls(struct sandbox_launch *s, const CRI(PodSandboxConfig) * config)
{
	/* Ports below 1024 and ping need no privilege inside a pod, as in the peers. */
	static const char *const defaults[][2] = {
		{ "net.ipv4.ip_unprivileged_port_start", "0" },
		{ "net.ipv4.ping_group_range", "0 2147483647" },
	};
	const CRI(LinuxPodSandboxConfig) *linux = config->linux;
	size_t n = linux ? linux->n_sysctls : 0;

	for (size_t i = 0; i < ARRAY_LEN(defaults) && s->net == LAUNCH_NS_POD; i++) {
		_cleanup_free_ char *slashes = xstrdup(defaults[i][0]);

		for (char *p = slashes; *p; p++)
			if (*p == '.')
				*p = '/';
		if (!n || (!message_map_get(n, linux->sysctls, defaults[i][0]) &&
				  !message_map_get(n, linux->sysctls, slashes)))
			sandbox_launch_add_sysctl(s, defaults[i][0], defaults[i][1]);
	}
	for (size_t i = 0; i < n; i++)
		sandbox_launch_add_sysctl(s, linux->sysctls[i]->key, linux->sysctls[i]->value);
}

int sandbox_plan(const CRI(PodSandboxConfig) * config, const struct sandbox_place *place, struct sandbox_launch **ret,
	struct error *err)
{
	_cleanup_(sandbox_launch_free_p) struct sandbox_launch *s = sandbox_launch_new();
	const CRI(NamespaceOption) *ns = namespaces(config);
	bool host_network = ns && ns->network == RUNTIME__V1__NAMESPACE_MODE__NODE;
	bool host_ipc = ns && ns->ipc == RUNTIME__V1__NAMESPACE_MODE__NODE;

	s->id = xstrdup(place->id);
	s->dir = xstrdup(place->dir);
	/* A pod in the node's network that names itself not has the node's name, also when that changes. */
	s->hostname = xstrdup(host_network ? config->hostname : sandbox_hostname(config, place->node_hostname));
	s->net = host_network ? LAUNCH_NS_NODE : LAUNCH_NS_POD;
	s->ipc = host_ipc ? LAUNCH_NS_NODE : LAUNCH_NS_POD;
	s->shared_pid = !ns || ns->pid == RUNTIME__V1__NAMESPACE_MODE__POD;
	s->shm_bytes = host_ipc ? 0 : SHM_BYTES;
	s->cgroup = xstrdup(place->cgroup);
	s->cgroup_owned = place->cgroup_owned;
	s->monitors_cgroup = xstrdup(place->monitors_cgroup);
	add_sysctls(s, config);
	if (place->cgroup_owned && config->linux) {
		int r = resources_to_limits(config->linux->resources, &s->limits, err);
		if (r < 0)
			return error_prefix(err, "linux.resources");
	}
	int r = sandbox_launch_check(s, err);
	if (r < 0)
		return r;
	*ret = steal(s);
	return 0;
}

/* node_object.c - purpose: the Node object: capacity, addresses, labels, conditions. */
#include "kubelet-lite/worker/node_object.h"

#include "common/base/codec.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

enum { HEARTBEAT_MS = 5 * 60 * 1000 };

struct node_object {
	struct node *node;
	uv_timer_t timer;
	struct utsname uname;
	char *os_image;
	char *machine_id;
	char *system_uuid;
	uint64_t storage_bytes;
	int64_t cpus;
	bool ready, known;
	uint64_t ready_since_at;
	uint64_t started_at;
	char *last_problem;
};

static char *first_line(const char *path)
{
	char *text = NULL;

	if (file_read(AT_FDCWD, path, 4096, &text, NULL, NULL) < 0)
		return xstrdup("");
	text[strcspn(text, "\n")] = '\0';
	return text;
}

/* PRETTY_NAME of os-release. */
static char *os_image(void)
{
	_cleanup_free_ char *text = NULL;

	if (file_read(AT_FDCWD, "/etc/os-release", 65536, &text, NULL, NULL) < 0)
		return xstrdup("Linux");
	const char *p = strstr(text, "PRETTY_NAME=");
	if (!p || (p != text && p[-1] != '\n'))
		return xstrdup("Linux");
	p += strlen("PRETTY_NAME=");
	p += *p == '"';
	return xstrndup(p, strcspn(p, "\"\n"));
}

/* The kernel's own choice of a source address towards the world; nothing is sent. */
static bool source_address(int family, const char *towards, char *ret, size_t len)
{
	struct addrinfo hints = { .ai_family = family, .ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICHOST }, *to;
	struct sockaddr_storage own;
	socklen_t own_len = sizeof(own);
	bool ok = false;

	if (getaddrinfo(towards, "9", &hints, &to) != 0)
		return false;
	_cleanup_fd_ int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, to->ai_addr, to->ai_addrlen) == 0 &&
		getsockname(fd, (struct sockaddr *)&own, &own_len) == 0)
		ok = getnameinfo((struct sockaddr *)&own, own_len, ret, (socklen_t)len, NULL, 0, NI_NUMERICHOST) == 0;
	freeaddrinfo(to);
	return ok && !strchr(ret, '%');
}

static bool interface_address(char *ret, size_t len)
{
	struct ifaddrs *list;
	bool ok = false;

	if (getifaddrs(&list) < 0)
		return false;
	for (struct ifaddrs *i = list; i && !ok; i = i->ifa_next)
		if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET && !(i->ifa_flags & IFF_LOOPBACK) &&
			(i->ifa_flags & IFF_UP))
			ok = getnameinfo(i->ifa_addr, sizeof(struct sockaddr_in), ret, (socklen_t)len, NULL, 0,
				     NI_NUMERICHOST) == 0;
	freeifaddrs(list);
	return ok;
}

static void find_addresses(struct node *node)
{
	char text[NI_MAXHOST];

	if (node->host_ips.n)
		return;
	if (source_address(AF_INET, "192.0.2.1", text, sizeof(text)) || interface_address(text, sizeof(text)) ||
		source_address(AF_INET6, "2001:db8::1", text, sizeof(text)))
		strv_add(&node->host_ips, text);
	else
		strv_add(&node->host_ips, "127.0.0.1");
}

static const char *go_arch(const char *machine)
{
	static const char *const names[][2] = { { "x86_64", "amd64" }, { "aarch64", "arm64" }, { "armv7l", "arm" },
		{ "armv6l", "arm" }, { "ppc64le", "ppc64le" }, { "s390x", "s390x" }, { "riscv64", "riscv64" },
		{ "i686", "386" }, { "loongarch64", "loong64" }, { "mips64", "mips64le" } };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_eq(machine, names[i][0]))
			return names[i][1];
	return machine;
}

static void set_labels(struct node *node, const struct node_object *o, const struct strv *extra)
{
	const char *arch = go_arch(o->uname.machine);
	const struct kv ours[] = { { "kubernetes.io/hostname", node->node_name }, { "kubernetes.io/os", "linux" },
		{ "kubernetes.io/arch", arch }, { "beta.kubernetes.io/os", "linux" },
		{ "beta.kubernetes.io/arch", arch } };
	size_t n_extra = extra ? extra->n : 0;

	node->labels.v = arena_array(&node->arena, ARRAY_LEN(ours) + n_extra, sizeof(struct kv));
	for (size_t i = 0; i < ARRAY_LEN(ours); i++)
		node->labels.v[node->labels.n++] = (struct kv){ arena_strdup(&node->arena, ours[i].key),
			arena_strdup(&node->arena, ours[i].value) };
	for (size_t i = 0; i < n_extra; i++) {
		char *key = arena_strdup(&node->arena, extra->v[i]);
		char *equals = strchr(key, '=');

		if (equals)
			*equals = '\0';
		node->labels.v[node->labels.n++] = (struct kv){ key, equals ? equals + 1 : "" };
	}
}

static json_t *amounts(const struct node_object *o)
{
	const struct node *node = o->node;
	_cleanup_free_ char *cpu = xasprintf("%lld", (long long)o->cpus);
	_cleanup_free_ char *memory = xasprintf("%lldKi", (long long)(node->cri_node.memory / 1024));
	_cleanup_free_ char *storage = xasprintf("%lluKi", (unsigned long long)(o->storage_bytes / 1024));
	_cleanup_free_ char *pods = xasprintf("%lld", (long long)node->max_pods);

	return json_pack("{s:s,s:s,s:s,s:s}", "cpu", cpu, "memory", memory, "ephemeral-storage", storage, "pods", pods);
}

static json_t *addresses(const struct node *node)
{
	json_t *list = json_array();

	for (size_t i = 0; i < node->host_ips.n; i++)
		json_array_append_new(
			list, json_pack("{s:s,s:s}", "type", "InternalIP", "address", node->host_ips.v[i]));
	json_array_append_new(list, json_pack("{s:s,s:s}", "type", "Hostname", "address", node->node_name));
	return list;
}

static json_t *node_info(const struct node_object *o)
{
	_cleanup_free_ char *runtime = xasprintf("%s://%s", o->node->runtime_name, o->node->runtime_version);

	return json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s}", "machineID", o->machine_id, "systemUUID",
		o->system_uuid, "bootID", o->node->boot_id, "kernelVersion", o->uname.release, "osImage", o->os_image,
		"containerRuntimeVersion", runtime, "kubeletVersion", "v1.36.3-lite." NODE_LITE_VERSION,
		"kubeProxyVersion", "", "operatingSystem", "linux", "architecture", go_arch(o->uname.machine));
}

static json_t *condition(const char *type, bool value, const char *reason, const char *message, uint64_t since_at)
{
	char now[TIME_TEXT_MAX], since[TIME_TEXT_MAX];

	time_text((int64_t)clock_realtime_ns(), TIME_SECONDS, now);
	time_text((int64_t)since_at, TIME_SECONDS, since);
	return json_pack("{s:s,s:s,s:s,s:s,s:s,s:s}", "type", type, "status", value ? "True" : "False",
		"lastHeartbeatTime", now, "lastTransitionTime", since, "reason", reason, "message", message);
}

static json_t *conditions(const struct node_object *o)
{
	const char *problem = o->node->runtime_problem ? o->node->runtime_problem : "container runtime is down";
	_cleanup_free_ char *bad = xasprintf("[%s]", problem);
	json_t *list = json_array();

	json_array_append_new(list, condition("MemoryPressure", false, "KubeletHasSufficientMemory",
					    "kubelet has sufficient memory available", o->started_at));
	json_array_append_new(list, condition("DiskPressure", false, "KubeletHasNoDiskPressure",
					    "kubelet has no disk pressure", o->started_at));
	json_array_append_new(list, condition("PIDPressure", false, "KubeletHasSufficientPID",
					    "kubelet has sufficient PID available", o->started_at));
	json_array_append_new(list, condition("Ready", o->ready, o->ready ? "KubeletReady" : "KubeletNotReady",
					    o->ready ? "kubelet is posting ready status" : bad, o->ready_since_at));
	return list;
}

static json_t *status_json(const struct node_object *o)
{
	return json_pack("{s:o,s:o,s:o,s:o,s:o,s:{s:{s:i}}}", "capacity", amounts(o), "allocatable", amounts(o),
		"addresses", addresses(o->node), "nodeInfo", node_info(o), "conditions", conditions(o),
		"daemonEndpoints", "kubeletEndpoint", "Port", 0);
}

static void put_status(struct node_object *o)
{
	_cleanup_json_ json_t *status = status_json(o);
	struct error err = ERROR_INIT;

	if (objects_put_status(o->node->objects, KIND_NODE, "", o->node->node_name, status, &err) < 0)
		log_warning("node status: %s", err.text);
}

static void node_event(struct node_object *o, const char *type, const char *reason, const char *text)
{
	const struct object *object = objects_get(o->node->objects, KIND_NODE, "", o->node->node_name);

	if (object)
		events_record(o->node->objects, object, type, reason, "kubelet", "%s", text);
}

void node_status_changed(struct node *node)
{
	struct node_object *o = node->node_object;
	bool ready = node->runtime_up && node->network_ready;

	if (!o || (o->known && ready == o->ready && str_eq(o->last_problem, node->runtime_problem)))
		return;
	if (!o->known || ready != o->ready) {
		_cleanup_free_ char *text =
			xasprintf("Node %s status is now: %s", node->node_name, ready ? "NodeReady" : "NodeNotReady");

		o->ready_since_at = clock_realtime_ns();
		if (o->known || ready)
			node_event(o, "Normal", ready ? "NodeReady" : "NodeNotReady", text);
	}
	o->known = true;
	o->ready = ready;
	free(o->last_problem);
	o->last_problem = xstrdup(node->runtime_problem);
	put_status(o);
}

static void put_node(struct node_object *o)
{
	struct node *node = o->node;
	json_t *labels = json_object();
	struct error err = ERROR_INIT;

	for (size_t i = 0; i < node->labels.n; i++)
		json_object_set_new(labels, node->labels.v[i].key, json_string(node->labels.v[i].value));
	_cleanup_json_ json_t *tree = json_pack("{s:s,s:s,s:{s:s,s:o},s:{},s:o}", "apiVersion", "v1", "kind", "Node",
		"metadata", "name", node->node_name, "labels", labels, "spec", "status", status_json(o));
	if (objects_put(node->objects, KIND_NODE, tree, NULL, NULL, &err) < 0)
		log_error("node object: %s", err.text);
	put_status(o);
	node_event(o, "Normal", "Starting", "Starting kubelet.");
}

static void on_heartbeat(uv_timer_t *timer)
{
	put_status(timer->data);
}

static void find_capacity(struct node_object *o, const char *root_dir)
{
	struct node *node = o->node;
	struct sysinfo info;
	struct statvfs fs;

	o->cpus = sysconf(_SC_NPROCESSORS_ONLN);
	if (sysinfo(&info) == 0)
		node->cri_node.memory = (int64_t)((uint64_t)info.totalram * info.mem_unit);
	if (statvfs(root_dir, &fs) == 0)
		o->storage_bytes = (uint64_t)fs.f_blocks * fs.f_frsize;
	node->cpu = quantity_of(o->cpus);
	node->memory = quantity_of(node->cri_node.memory);
	node->storage = quantity_of((int64_t)o->storage_bytes);
}

struct node_object *node_object_start(struct node *node, const struct node_options *options)
{
	struct node_object *o = xnew(struct node_object);

	o->node = node;
	node->node_object = o;
	uname(&o->uname);
	o->os_image = os_image();
	o->machine_id = first_line("/etc/machine-id");
	o->system_uuid = first_line("/sys/class/dmi/id/product_uuid");
	o->started_at = o->ready_since_at = clock_realtime_ns();
	find_capacity(o, options->root_dir);
	find_addresses(node);
	set_labels(node, o, options->node_labels);
	put_node(o);
	uv_timer_init(node->loop, &o->timer);
	o->timer.data = o;
	uv_timer_start(&o->timer, on_heartbeat, HEARTBEAT_MS, HEARTBEAT_MS);
	return o;
}

static void on_closed(uv_handle_t *handle)
{
	struct node_object *o = handle->data;

	free(o->os_image);
	free(o->machine_id);
	free(o->system_uuid);
	free(o->last_problem);
	free(o);
}

void node_object_stop(struct node_object *o)
{
	o->node->node_object = NULL;
	uv_close((uv_handle_t *)&o->timer, on_closed);
}

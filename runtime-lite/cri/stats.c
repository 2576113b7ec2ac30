/*
 * stats.c - purpose: ContainerStats, ListContainerStats, PodSandboxStats, ListPodSandboxStats.
 *
 * Numbers of the cgroups are read when asked for. The size of a writable layer takes a walk over it: it is looked at
 * when somebody asks, and then not again for twenty times as long as the walk took (at least ten seconds).
 */
#include "runtime-lite/cri/handlers.h"

#include "common/sys/file.h"
#include "runtime-lite/cri/convert.h"
#include "runtime-lite/engine/cgroup.h"
#include "runtime-lite/engine/pod.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

enum { WALK_DEPTH_MAX = 128, WALK_REST_FACTOR = 20 };
#define WALK_REST_MIN_NS (10 * UINT64_C(1000000000))
#define SAMPLE_MIN_NS UINT64_C(500000000)

static CRI(UInt64Value) * number(uint64_t v)
{
	CRI(UInt64Value) *m = CRI_NEW(UInt64Value, uint64_value);

	m->value = v;
	return m;
}

/* Takes fd. Names that vanish meanwhile are no error. */
static void walk(int fd, int depth, uint64_t *bytes, uint64_t *inodes)
{
	DIR *dir = fdopendir(fd);
	struct dirent *e;

	if (!dir) {
		close(fd);
		return;
	}
	while ((e = readdir(dir))) {
		struct stat st;

		if (str_eq(e->d_name, ".") || str_eq(e->d_name, "..") ||
			fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		*bytes += (uint64_t)st.st_blocks * 512;
		++*inodes;
		if (!S_ISDIR(st.st_mode) || depth >= WALK_DEPTH_MAX)
			continue;
		int child = openat(dirfd(dir), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (child >= 0)
			walk(child, depth + 1, bytes, inodes);
	}
	closedir(dir);
}

static void refresh_layer(struct service *svc, struct container *c)
{
	_cleanup_free_ char *upper = xasprintf("%s/upper", c->layer_dir);
	uint64_t begin_ns = clock_monotonic_ns(), bytes = 0, inodes = 1;

	store_lock(svc->store);
	bool due = c->layer_next_ns <= begin_ns && !c->removing;
	if (due)
		c->layer_next_ns = begin_ns + WALK_REST_MIN_NS; /* others do not walk at the same time */
	store_unlock(svc->store);
	int fd = due ? open(upper, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	walk(fd, 0, &bytes, &inodes);
	uint64_t end_ns = clock_monotonic_ns();
	store_lock(svc->store);
	c->layer_bytes = bytes;
	c->layer_inodes = inodes;
	c->layer_sampled_ns = clock_realtime_ns();
	c->layer_next_ns = end_ns + MAX((end_ns - begin_ns) * WALK_REST_FACTOR, WALK_REST_MIN_NS);
	store_unlock(svc->store);
}

/* CPU use since the last sample, in billionths of a CPU. */
static uint64_t nano_cores(uint64_t now_ns, uint64_t usage_ns, uint64_t *sample_ns, uint64_t *sample_usage_ns, uint64_t last)
{
	if (*sample_ns && now_ns < *sample_ns + SAMPLE_MIN_NS)
		return last;
	uint64_t rate = *sample_ns && usage_ns >= *sample_usage_ns
				? (uint64_t)((double)(usage_ns - *sample_usage_ns) / (double)(now_ns - *sample_ns) * 1e9)
				: 0;
	*sample_ns = now_ns;
	*sample_usage_ns = usage_ns;
	return rate;
}

static CRI(CpuUsage) * cpu(const struct cgroup_stats *stats, uint64_t rate)
{
	CRI(CpuUsage) *m = CRI_NEW(CpuUsage, cpu_usage);

	m->timestamp = (int64_t)stats->timestamp_ns;
	m->usage_core_nano_seconds = number(stats->cpu_usage_ns);
	m->usage_nano_cores = number(rate);
	return m;
}

static CRI(MemoryUsage) * memory(const struct cgroup_stats *stats)
{
	CRI(MemoryUsage) *m = CRI_NEW(MemoryUsage, memory_usage);
	uint64_t used = stats->memory_working_set_bytes;

	m->timestamp = (int64_t)stats->timestamp_ns;
	m->working_set_bytes = number(used);
	if (stats->memory_limit_bytes != UINT64_MAX)
		m->available_bytes = number(stats->memory_limit_bytes > used ? stats->memory_limit_bytes - used : 0);
	m->usage_bytes = number(stats->memory_usage_bytes);
	m->rss_bytes = number(stats->memory_rss_bytes);
	m->page_faults = number(stats->page_faults);
	m->major_page_faults = number(stats->major_page_faults);
	return m;
}

static CRI(FilesystemUsage) * layer(const struct service *svc, const struct container *c)
{
	CRI(FilesystemUsage) *m = CRI_NEW(FilesystemUsage, filesystem_usage);

	m->timestamp = (int64_t)(c->layer_sampled_ns ? c->layer_sampled_ns : clock_realtime_ns());
	m->fs_id = CRI_NEW(FilesystemIdentifier, filesystem_identifier);
	message_set(&m->fs_id->mountpoint, svc->options.root_dir);
	m->used_bytes = number(c->layer_bytes);
	m->inodes_used = number(c->layer_inodes);
	return m;
}

static CRI(ContainerAttributes) * attributes(const struct container *c)
{
	CRI(ContainerAttributes) *m = CRI_NEW(ContainerAttributes, container_attributes);

	message_set(&m->id, c->id);
	m->metadata = message_copy(c->config->metadata);
	m->n_labels = c->config->n_labels;
	m->labels = message_map_copy(m->n_labels, c->config->labels,
		&runtime__v1__container_attributes__labels_entry__descriptor);
	m->n_annotations = c->config->n_annotations;
	m->annotations = message_map_copy(m->n_annotations, c->config->annotations,
		&runtime__v1__container_attributes__annotations_entry__descriptor);
	return m;
}

static CRI(SwapUsage) * swap(const struct cgroup_stats *stats)
{
	CRI(SwapUsage) *m = CRI_NEW(SwapUsage, swap_usage);

	m->timestamp = (int64_t)stats->timestamp_ns;
	m->swap_usage_bytes = number(stats->memory_swap_bytes);
	return m;
}

/* Containers that do not run have attributes and a layer only. */
static CRI(ContainerStats) * container_stats(struct service *svc, struct container *c)
{
	struct cgroup_stats stats = { 0 };
	struct error ignored;

	store_lock(svc->store);
	bool running = c->state == CONTAINER_RUNNING;
	store_unlock(svc->store);
	bool have = running && cgroup_stats(c->cgroup, &stats, &ignored) == 0;
	refresh_layer(svc, c);

	CRI(ContainerStats) *m = CRI_NEW(ContainerStats, container_stats);
	store_lock(svc->store);
	m->attributes = attributes(c);
	m->writable_layer = layer(svc, c);
	if (have && stats.has_cpu) {
		c->cpu_nano_cores = nano_cores(stats.timestamp_ns, stats.cpu_usage_ns, &c->cpu_sample_ns,
			&c->cpu_sample_usage_ns, c->cpu_nano_cores);
		m->cpu = cpu(&stats, c->cpu_nano_cores);
	}
	store_unlock(svc->store);
	if (have && stats.has_memory) {
		m->memory = memory(&stats);
		m->swap = swap(&stats);
	}
	return m;
}

static bool matches(const struct container *c, const CRI(ContainerStatsFilter) * filter)
{
	if (c->state == CONTAINER_CREATING)
		return false;
	return !filter || ((!*filter->id || str_starts(c->id, filter->id)) &&
				  (!*filter->pod_sandbox_id || str_starts(c->sandbox->id, filter->pod_sandbox_id)) &&
				  message_map_matches(filter->n_label_selector, filter->label_selector,
					  c->config->n_labels, c->config->labels));
}

/* References to what a filter selects; the caller drops them. */
static struct container **select_containers(struct store *store, const CRI(ContainerStatsFilter) * filter, size_t *ret_n)
{
	struct map_iter it = MAP_ITER_INIT;

	store_lock(store);
	struct container **list = xcalloc(store->containers.count, sizeof(struct container *));
	*ret_n = 0;
	while (map_next(&store->containers, &it))
		if (matches(it.value, filter))
			list[(*ret_n)++] = container_ref(it.value);
	store_unlock(store);
	return list;
}

HANDLER(stats_container)
{
	struct service *svc = call->context;
	const CRI(ContainerStatsRequest) *req = request;
	_cleanup_container_ struct container *c = NULL;
	int r = store_get_container(svc->store, req->container_id, &c, err);

	if (r < 0)
		return r;
	CRI(ContainerStatsResponse) *reply = CRI_NEW(ContainerStatsResponse, container_stats_response);
	reply->stats = container_stats(svc, c);
	*ret_reply = &reply->base;
	return 0;
}

HANDLER(stats_containers)
{
	struct service *svc = call->context;
	const CRI(ListContainerStatsRequest) *req = request;
	CRI(ListContainerStatsResponse) *reply = CRI_NEW(ListContainerStatsResponse, list_container_stats_response);
	size_t n;
	_cleanup_free_ struct container **list = select_containers(svc->store, req->filter, &n);

	(void)err;
	for (size_t i = 0; i < n; i++) {
		message_add(&reply->n_stats, &reply->stats, container_stats(svc, list[i]));
		container_unref(list[i]);
	}
	*ret_reply = &reply->base;
	return 0;
}

static CRI(NetworkUsage) * network(const struct sandbox *s)
{
	struct netns_stats stats;
	struct error ignored;
	_cleanup_fd_ int fd = pod_monitor_netns(s->monitor);

	if (fd < 0 || netns_link_stats(fd, "eth0", &stats, &ignored) < 0)
		return NULL;
	CRI(NetworkUsage) *m = CRI_NEW(NetworkUsage, network_usage);
	CRI(NetworkInterfaceUsage) *eth0 = CRI_NEW(NetworkInterfaceUsage, network_interface_usage);
	message_set(&eth0->name, "eth0");
	eth0->rx_bytes = number(stats.rx_bytes);
	eth0->rx_errors = number(stats.rx_errors);
	eth0->tx_bytes = number(stats.tx_bytes);
	eth0->tx_errors = number(stats.tx_errors);
	m->timestamp = (int64_t)clock_realtime_ns();
	m->default_interface = eth0;
	message_add(&m->n_interfaces, &m->interfaces, message_copy(eth0));
	return m;
}

static CRI(PodSandboxAttributes) * pod_attributes(const struct sandbox *s)
{
	CRI(PodSandboxAttributes) *m = CRI_NEW(PodSandboxAttributes, pod_sandbox_attributes);

	message_set(&m->id, s->id);
	m->metadata = convert_metadata(s);
	m->n_labels = s->config->n_labels;
	m->labels = message_map_copy(m->n_labels, s->config->labels,
		&runtime__v1__pod_sandbox_attributes__labels_entry__descriptor);
	m->n_annotations = s->config->n_annotations;
	m->annotations = message_map_copy(m->n_annotations, s->config->annotations,
		&runtime__v1__pod_sandbox_attributes__annotations_entry__descriptor);
	return m;
}

static void pod_cgroup_stats(struct service *svc, struct sandbox *s, CRI(LinuxPodSandboxStats) * m)
{
	struct cgroup_stats stats = { 0 };
	struct error ignored;

	if (cgroup_stats(s->cgroup, &stats, &ignored) < 0)
		return;
	store_lock(svc->store);
	if (stats.has_cpu) {
		s->cpu_nano_cores = nano_cores(stats.timestamp_ns, stats.cpu_usage_ns, &s->cpu_sample_ns,
			&s->cpu_sample_usage_ns, s->cpu_nano_cores);
		m->cpu = cpu(&stats, s->cpu_nano_cores);
	}
	store_unlock(svc->store);
	if (stats.has_memory)
		m->memory = memory(&stats);
	if (stats.has_pids) {
		m->process = CRI_NEW(ProcessUsage, process_usage);
		m->process->timestamp = (int64_t)stats.timestamp_ns;
		m->process->process_count = number(stats.pids);
	}
}

static CRI(PodSandboxStats) * pod_stats(struct service *svc, struct sandbox *s)
{
	CRI(PodSandboxStats) *m = CRI_NEW(PodSandboxStats, pod_sandbox_stats);
	CRI(ContainerStatsFilter) filter = RUNTIME__V1__CONTAINER_STATS_FILTER__INIT;
	size_t n;

	m->attributes = pod_attributes(s);
	m->linux = CRI_NEW(LinuxPodSandboxStats, linux_pod_sandbox_stats);
	store_lock(svc->store);
	bool ready = s->state == SANDBOX_READY && s->monitor && !s->monitor_gone;
	store_unlock(svc->store);
	if (ready) {
		pod_cgroup_stats(svc, s, m->linux);
		m->linux->network = sandbox_host_network(s) ? NULL : network(s);
	}
	filter.pod_sandbox_id = s->id;
	_cleanup_free_ struct container **list = select_containers(svc->store, &filter, &n);
	for (size_t i = 0; i < n; i++) {
		message_add(&m->linux->n_containers, &m->linux->containers, container_stats(svc, list[i]));
		container_unref(list[i]);
	}
	return m;
}

HANDLER(stats_sandbox)
{
	struct service *svc = call->context;
	const CRI(PodSandboxStatsRequest) *req = request;
	_cleanup_sandbox_ struct sandbox *s = NULL;
	int r = store_get_sandbox(svc->store, req->pod_sandbox_id, &s, err);

	if (r < 0)
		return r;
	CRI(PodSandboxStatsResponse) *reply = CRI_NEW(PodSandboxStatsResponse, pod_sandbox_stats_response);
	reply->stats = pod_stats(svc, s);
	*ret_reply = &reply->base;
	return 0;
}

static bool pod_matches(const struct sandbox *s, const CRI(PodSandboxStatsFilter) * filter)
{
	if (s->state == SANDBOX_CREATING)
		return false;
	return !filter || ((!*filter->id || str_starts(s->id, filter->id)) &&
				  message_map_matches(filter->n_label_selector, filter->label_selector,
					  s->config->n_labels, s->config->labels));
}

HANDLER(stats_sandboxes)
{
	struct service *svc = call->context;
	const CRI(ListPodSandboxStatsRequest) *req = request;
	CRI(ListPodSandboxStatsResponse) *reply = CRI_NEW(ListPodSandboxStatsResponse, list_pod_sandbox_stats_response);
	struct map_iter it = MAP_ITER_INIT;
	size_t n = 0;

	(void)err;
	store_lock(svc->store);
	_cleanup_free_ struct sandbox **list = xcalloc(svc->store->sandboxes.count, sizeof(struct sandbox *));
	while (map_next(&svc->store->sandboxes, &it))
		if (pod_matches(it.value, req->filter))
			list[n++] = sandbox_ref(it.value);
	store_unlock(svc->store);
	for (size_t i = 0; i < n; i++) {
		message_add(&reply->n_stats, &reply->stats, pod_stats(svc, list[i]));
		sandbox_unref(list[i]);
	}
	*ret_reply = &reply->base;
	return 0;
}

/* stats.c - purpose: `runtime-lite stats|statsp`. */
#include "runtime-lite/admin/tool.h"

#include <inttypes.h>

static uint64_t value(const CRI(UInt64Value) * v)
{
	return v ? v->value : 0;
}

static void add_cpu(const CRI(CpuUsage) * cpu, char percent[32], char total[32])
{
	if (!cpu) {
		snprintf(percent, 32, "-");
		snprintf(total, 32, "-");
		return;
	}
	snprintf(percent, 32, "%.2f", (double)value(cpu->usage_nano_cores) / 1e7);
	snprintf(total, 32, "%.2fs", (double)value(cpu->usage_core_nano_seconds) / 1e9);
}

static void print_containers(const CRI(ListContainerStatsResponse) * reply)
{
	_cleanup_(table_done) struct table t = { .columns = 7 };

	table_add(&t, "CONTAINER", "NAME", "CPU %", "CPU TIME", "MEM", "DISK", "INODES");
	for (size_t i = 0; i < reply->n_stats; i++) {
		const CRI(ContainerStats) *s = reply->stats[i];
		char id[14], percent[32], total[32], mem[32] = "-", disk[32] = "-", inodes[32] = "-";

		tool_short_id(s->attributes->id, id);
		add_cpu(s->cpu, percent, total);
		if (s->memory)
			tool_size(value(s->memory->working_set_bytes), mem);
		if (s->writable_layer) {
			tool_size(value(s->writable_layer->used_bytes), disk);
			snprintf(inodes, sizeof(inodes), "%" PRIu64, value(s->writable_layer->inodes_used));
		}
		table_add(&t, id, s->attributes->metadata ? s->attributes->metadata->name : "", percent, total, mem, disk,
			inodes);
	}
	table_print(&t);
}

/* Keeps what was named. */
static int filter(const struct invocation *in, size_t *n, void **list, const char *(*id_of)(const void *),
	int (*find)(const struct admin *, const char *, char **, struct error *), struct error *err)
{
	_cleanup_(strv_done) struct strv ids = STRV_INIT;

	for (int i = 0; i < in->argc; i++) {
		char *id = NULL;
		int r = find(in->admin, in->argv[i], &id, err);

		if (r < 0)
			return r;
		strv_add_take(&ids, id);
	}
	size_t kept = 0;
	for (size_t i = 0; i < *n; i++) {
		if (!in->argc || strv_has(&ids, id_of(list[i])))
			list[kept++] = list[i];
		else
			message_free(list[i]);
	}
	*n = kept;
	return 0;
}

static const char *container_id(const void *m)
{
	return ((const CRI(ContainerStats) *)m)->attributes->id;
}

static const char *pod_id(const void *m)
{
	return ((const CRI(PodSandboxStats) *)m)->attributes->id;
}

COMMAND(command_stats)
{
	_cleanup_message_ CRI(ListContainerStatsRequest) *request =
		CRI_NEW(ListContainerStatsRequest, list_container_stats_request);
	_cleanup_message_ CRI(ListContainerStatsResponse) *reply = NULL;
	const char *pod = option_string(in->options, "pod");
	enum tool_output output;
	int r = tool_output(in, false, &output, err);

	if (r == 0 && pod) {
		char *id = NULL;

		r = tool_pod(in->admin, pod, &id, err);
		request->filter = CRI_NEW(ContainerStatsFilter, container_stats_filter);
		if (r == 0)
			message_set_take(&request->filter->pod_sandbox_id, id);
	}
	if (r == 0)
		r = tool_call(in->admin, "RuntimeService/ListContainerStats", request,
			&runtime__v1__list_container_stats_response__descriptor, TOOL_TIMEOUT_MS, &reply, err);
	if (r == 0)
		r = filter(in, &reply->n_stats, (void **)reply->stats, container_id, tool_container, err);
	if (r < 0)
		return r;
	if (output == OUTPUT_JSON)
		tool_print_message(reply);
	else
		print_containers(reply);
	return 0;
}

static void print_pods(const CRI(ListPodSandboxStatsResponse) * reply)
{
	_cleanup_(table_done) struct table t = { .columns = 8 };

	table_add(&t, "POD ID", "NAME", "CPU %", "CPU TIME", "MEM", "PROCESSES", "RECEIVED", "SENT");
	for (size_t i = 0; i < reply->n_stats; i++) {
		const CRI(PodSandboxStats) *s = reply->stats[i];
		const CRI(LinuxPodSandboxStats) *l = s->linux;
		char id[14], percent[32] = "-", total[32] = "-", mem[32] = "-", procs[32] = "-", rx[32] = "-", tx[32] = "-";

		tool_short_id(s->attributes->id, id);
		add_cpu(l ? l->cpu : NULL, percent, total);
		if (l && l->memory)
			tool_size(value(l->memory->working_set_bytes), mem);
		if (l && l->process)
			snprintf(procs, sizeof(procs), "%" PRIu64, value(l->process->process_count));
		if (l && l->network && l->network->default_interface) {
			tool_size(value(l->network->default_interface->rx_bytes), rx);
			tool_size(value(l->network->default_interface->tx_bytes), tx);
		}
		table_add(&t, id, s->attributes->metadata ? s->attributes->metadata->name : "", percent, total, mem, procs,
			rx, tx);
	}
	table_print(&t);
}

COMMAND(command_statsp)
{
	CRI(ListPodSandboxStatsRequest) request = RUNTIME__V1__LIST_POD_SANDBOX_STATS_REQUEST__INIT;
	_cleanup_message_ CRI(ListPodSandboxStatsResponse) *reply = NULL;
	enum tool_output output;
	int r = tool_output(in, false, &output, err);

	if (r == 0)
		r = tool_call(in->admin, "RuntimeService/ListPodSandboxStats", &request,
			&runtime__v1__list_pod_sandbox_stats_response__descriptor, TOOL_TIMEOUT_MS, &reply, err);
	if (r == 0)
		r = filter(in, &reply->n_stats, (void **)reply->stats, pod_id, tool_pod, err);
	if (r < 0)
		return r;
	if (output == OUTPUT_JSON)
		tool_print_message(reply);
	else
		print_pods(reply);
	return 0;
}

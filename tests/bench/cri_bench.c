/*
 * cri_bench.c - purpose: time the pod path of any CRI v1 runtime, call by call, with one caller.
 *
 * cri_bench SOCKET IMAGE ROUNDS      prints "call<TAB>p50 ms<TAB>p99 ms" lines; "pod_path" is Run + Create + Start
 * cri_bench SOCKET IMAGE fill N      starts N pods with one sleeping container each and leaves them
 * cri_bench SOCKET IMAGE clear       stops and removes every pod that "fill" made
 */
#include "common/base/str.h"
#include "common/net/rpc_client.h"
#include "common/sys/file.h"
#include "cri.pb-c.h"

#include <stdio.h>

enum { ROUNDS_MAX = 1000, TIMEOUT_MS = 120000 };

static const char *const LABEL_KEY = "node-lite-bench";
static const char *sock;
static const char *image;

enum call { RUN, CREATE, START, EXEC, STATUS, STATS, STOP, REMOVE, STOP_POD, REMOVE_POD, POD_PATH, CALLS };

static const char *const names[CALLS] = {
	"RunPodSandbox",
	"CreateContainer",
	"StartContainer",
	"ExecSync",
	"ContainerStatus",
	"ContainerStats",
	"StopContainer",
	"RemoveContainer",
	"StopPodSandbox",
	"RemovePodSandbox",
	"pod_path",
};

static double samples[CALLS][ROUNDS_MAX];

static void *call(const char *method, void *request, const ProtobufCMessageDescriptor *reply, double *ret_ms)
{
	struct error err = ERROR_INIT;
	ProtobufCMessage *answer = NULL;
	_cleanup_free_ char *path = xasprintf("/runtime.v1.RuntimeService/%s", method);
	uint64_t start = clock_monotonic_ns();

	if (rpc_call_blocking(sock, path, request, reply, TIMEOUT_MS, &answer, &err) < 0) {
		fprintf(stderr, "cri_bench: %s: %s\n", method, err.text);
		exit(1);
	}
	if (ret_ms)
		*ret_ms = (double)(clock_monotonic_ns() - start) / 1e6;
	return answer;
}

static void done(void *message)
{
	protobuf_c_message_free_unpacked(message, NULL);
}

struct config {
	Runtime__V1__PodSandboxMetadata metadata;
	Runtime__V1__LinuxPodSandboxConfig linux_config;
	Runtime__V1__PodSandboxConfig__LabelsEntry label;
	Runtime__V1__PodSandboxConfig__LabelsEntry *labels[1];
	Runtime__V1__PodSandboxConfig pod;
	char name[64], uid[40], log_directory[96];
};

static void config_init(struct config *c, const char *prefix, unsigned n)
{
	snprintf(c->name, sizeof(c->name), "%s-%u", prefix, n);
	snprintf(c->log_directory, sizeof(c->log_directory), "/tmp/node-lite-bench-logs/%s", c->name);
	random_hex(c->uid, 32);
	runtime__v1__pod_sandbox_metadata__init(&c->metadata);
	c->metadata.name = c->name;
	c->metadata.uid = c->uid;
	c->metadata.namespace_ = "default";
	runtime__v1__linux_pod_sandbox_config__init(&c->linux_config);
	runtime__v1__pod_sandbox_config__labels_entry__init(&c->label);
	c->label.key = (char *)LABEL_KEY;
	c->label.value = "yes";
	c->labels[0] = &c->label;
	runtime__v1__pod_sandbox_config__init(&c->pod);
	c->pod.metadata = &c->metadata;
	c->pod.hostname = c->name;
	c->pod.log_directory = c->log_directory;
	c->pod.linux = &c->linux_config;
	c->pod.labels = c->labels;
	c->pod.n_labels = 1;
}

static char *run_pod(struct config *c, double *ret_ms)
{
	Runtime__V1__RunPodSandboxRequest request = RUNTIME__V1__RUN_POD_SANDBOX_REQUEST__INIT;

	request.config = &c->pod;
	Runtime__V1__RunPodSandboxResponse *reply =
		call("RunPodSandbox", &request, &runtime__v1__run_pod_sandbox_response__descriptor, ret_ms);
	char *id = xstrdup(reply->pod_sandbox_id);

	done(reply);
	return id;
}

static char *create_container(struct config *c, char *pod_id, double *ret_ms)
{
	Runtime__V1__ContainerMetadata metadata = RUNTIME__V1__CONTAINER_METADATA__INIT;
	Runtime__V1__ImageSpec spec = RUNTIME__V1__IMAGE_SPEC__INIT;
	Runtime__V1__LinuxContainerConfig linux_config = RUNTIME__V1__LINUX_CONTAINER_CONFIG__INIT;
	Runtime__V1__ContainerConfig config = RUNTIME__V1__CONTAINER_CONFIG__INIT;
	Runtime__V1__CreateContainerRequest request = RUNTIME__V1__CREATE_CONTAINER_REQUEST__INIT;
	char *command[] = { "sleep", "100000" };

	metadata.name = "main";
	spec.image = (char *)image;
	config.metadata = &metadata;
	config.image = &spec;
	config.command = command;
	config.n_command = ARRAY_LEN(command);
	config.log_path = "main.log";
	config.linux = &linux_config;
	request.pod_sandbox_id = pod_id;
	request.config = &config;
	request.sandbox_config = &c->pod;
	Runtime__V1__CreateContainerResponse *reply =
		call("CreateContainer", &request, &runtime__v1__create_container_response__descriptor, ret_ms);
	char *id = xstrdup(reply->container_id);

	done(reply);
	return id;
}

static void start_container(char *id, double *ret_ms)
{
	Runtime__V1__StartContainerRequest request = RUNTIME__V1__START_CONTAINER_REQUEST__INIT;

	request.container_id = id;
	done(call("StartContainer", &request, &runtime__v1__start_container_response__descriptor, ret_ms));
}

static void ask_container(char *id, unsigned n)
{
	Runtime__V1__ExecSyncRequest exec = RUNTIME__V1__EXEC_SYNC_REQUEST__INIT;
	Runtime__V1__ContainerStatusRequest status = RUNTIME__V1__CONTAINER_STATUS_REQUEST__INIT;
	Runtime__V1__ContainerStatsRequest stats = RUNTIME__V1__CONTAINER_STATS_REQUEST__INIT;
	char *command[] = { "true" };

	exec.container_id = status.container_id = stats.container_id = id;
	exec.cmd = command;
	exec.n_cmd = ARRAY_LEN(command);
	exec.timeout = 60;
	done(call("ExecSync", &exec, &runtime__v1__exec_sync_response__descriptor, &samples[EXEC][n]));
	done(call("ContainerStatus", &status, &runtime__v1__container_status_response__descriptor, &samples[STATUS][n]));
	done(call("ContainerStats", &stats, &runtime__v1__container_stats_response__descriptor, &samples[STATS][n]));
}

static void remove_container(char *id, double *ret_stop_ms, double *ret_remove_ms)
{
	Runtime__V1__StopContainerRequest stop = RUNTIME__V1__STOP_CONTAINER_REQUEST__INIT;
	Runtime__V1__RemoveContainerRequest remove_request = RUNTIME__V1__REMOVE_CONTAINER_REQUEST__INIT;

	stop.container_id = remove_request.container_id = id;
	done(call("StopContainer", &stop, &runtime__v1__stop_container_response__descriptor, ret_stop_ms));
	done(call("RemoveContainer", &remove_request, &runtime__v1__remove_container_response__descriptor,
		ret_remove_ms));
}

static void remove_pod(char *id, double *ret_stop_ms, double *ret_remove_ms)
{
	Runtime__V1__StopPodSandboxRequest stop = RUNTIME__V1__STOP_POD_SANDBOX_REQUEST__INIT;
	Runtime__V1__RemovePodSandboxRequest remove_request = RUNTIME__V1__REMOVE_POD_SANDBOX_REQUEST__INIT;

	stop.pod_sandbox_id = remove_request.pod_sandbox_id = id;
	done(call("StopPodSandbox", &stop, &runtime__v1__stop_pod_sandbox_response__descriptor, ret_stop_ms));
	done(call("RemovePodSandbox", &remove_request, &runtime__v1__remove_pod_sandbox_response__descriptor,
		ret_remove_ms));
}

static void one_round(unsigned n)
{
	struct config c;

	config_init(&c, "bench", n);
	_cleanup_free_ char *pod = run_pod(&c, &samples[RUN][n]);
	_cleanup_free_ char *container = create_container(&c, pod, &samples[CREATE][n]);
	start_container(container, &samples[START][n]);
	samples[POD_PATH][n] = samples[RUN][n] + samples[CREATE][n] + samples[START][n];
	ask_container(container, n);
	remove_container(container, &samples[STOP][n], &samples[REMOVE][n]);
	remove_pod(pod, &samples[STOP_POD][n], &samples[REMOVE_POD][n]);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void report(unsigned rounds)
{
	for (unsigned i = 0; i < CALLS; i++) {
		qsort(samples[i], rounds, sizeof(double), by_value);
		printf("%s\t%.2f\t%.2f\n", names[i], samples[i][rounds / 2], samples[i][rounds * 99 / 100]);
	}
}

static void fill(unsigned pods)
{
	for (unsigned i = 0; i < pods; i++) {
		struct config c;

		config_init(&c, "fill", i);
		_cleanup_free_ char *pod = run_pod(&c, NULL);
		_cleanup_free_ char *container = create_container(&c, pod, NULL);
		start_container(container, NULL);
	}
}

static void clear(void)
{
	Runtime__V1__PodSandboxFilter__LabelSelectorEntry label = RUNTIME__V1__POD_SANDBOX_FILTER__LABEL_SELECTOR_ENTRY__INIT;
	Runtime__V1__PodSandboxFilter__LabelSelectorEntry *labels[] = { &label };
	Runtime__V1__PodSandboxFilter filter = RUNTIME__V1__POD_SANDBOX_FILTER__INIT;
	Runtime__V1__ListPodSandboxRequest request = RUNTIME__V1__LIST_POD_SANDBOX_REQUEST__INIT;

	label.key = (char *)LABEL_KEY;
	label.value = "yes";
	filter.label_selector = labels;
	filter.n_label_selector = 1;
	request.filter = &filter;
	Runtime__V1__ListPodSandboxResponse *reply =
		call("ListPodSandbox", &request, &runtime__v1__list_pod_sandbox_response__descriptor, NULL);

	for (size_t i = 0; i < reply->n_items; i++)
		remove_pod(reply->items[i]->id, NULL, NULL);
	done(reply);
}

int main(int argc, char **argv)
{
	if (argc < 4) {
		fprintf(stderr, "usage: cri_bench SOCKET IMAGE ROUNDS | fill N | clear\n");
		return 2;
	}
	sock = argv[1];
	image = argv[2];
	if (str_eq(argv[3], "fill") && argc > 4) {
		fill((unsigned)atoi(argv[4]));
	} else if (str_eq(argv[3], "clear")) {
		clear();
	} else {
		unsigned rounds = MIN((unsigned)atoi(argv[3]), (unsigned)ROUNDS_MAX);

		for (unsigned i = 0; i < rounds; i++)
			one_round(i);
		report(rounds);
	}
	return 0;
}

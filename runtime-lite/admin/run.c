/* run.c - purpose: `runtime-lite runp|create|start|run|exec|update|reopen-log`. */
#include "runtime-lite/admin/tool.h"

static uint64_t timeout_ms(const struct invocation *in)
{
	return option_duration_ns(in->options, "timeout") / 1000000;
}

static int run_pod(const struct admin *admin, CRI(PodSandboxConfig) * config, const char *handler, uint64_t ms,
	char **ret_id, struct error *err)
{
	CRI(RunPodSandboxRequest) request = RUNTIME__V1__RUN_POD_SANDBOX_REQUEST__INIT;
	_cleanup_message_ CRI(RunPodSandboxResponse) *reply = NULL;

	request.config = config;
	request.runtime_handler = (char *)(handler ? handler : "");
	int r = tool_call(admin, "RuntimeService/RunPodSandbox", &request,
		&runtime__v1__run_pod_sandbox_response__descriptor, ms, &reply, err);
	if (r == 0)
		*ret_id = xstrdup(reply->pod_sandbox_id);
	return r;
}

static int create_container(const struct admin *admin, const char *pod_id, CRI(ContainerConfig) * config,
	CRI(PodSandboxConfig) * pod_config, uint64_t ms, char **ret_id, struct error *err)
{
	CRI(CreateContainerRequest) request = RUNTIME__V1__CREATE_CONTAINER_REQUEST__INIT;
	_cleanup_message_ CRI(CreateContainerResponse) *reply = NULL;

	request.pod_sandbox_id = (char *)pod_id;
	request.config = config;
	request.sandbox_config = pod_config;
	int r = tool_call(admin, "RuntimeService/CreateContainer", &request,
		&runtime__v1__create_container_response__descriptor, ms, &reply, err);
	if (r == 0)
		*ret_id = xstrdup(reply->container_id);
	return r;
}

static int start_container(const struct admin *admin, char *id, uint64_t ms, struct error *err)
{
	CRI(StartContainerRequest) request = RUNTIME__V1__START_CONTAINER_REQUEST__INIT;

	request.container_id = id;
	return tool_do(admin, "RuntimeService/StartContainer", &request,
		&runtime__v1__start_container_response__descriptor, ms, err);
}

static int read_pod(const char *path, CRI(PodSandboxConfig) * *ret, struct error *err)
{
	return tool_read_file(path, &runtime__v1__pod_sandbox_config__descriptor, ret, err);
}

static int read_container(const char *path, CRI(ContainerConfig) * *ret, struct error *err)
{
	return tool_read_file(path, &runtime__v1__container_config__descriptor, ret, err);
}

COMMAND(command_runp)
{
	_cleanup_message_ CRI(PodSandboxConfig) *config = NULL;
	_cleanup_free_ char *id = NULL;
	int r = read_pod(in->argv[0], &config, err);

	if (r == 0)
		r = run_pod(in->admin, config, option_string(in->options, "runtime-handler"), timeout_ms(in), &id, err);
	if (r < 0)
		return r;
	puts(id);
	return 0;
}

COMMAND(command_create)
{
	_cleanup_message_ CRI(ContainerConfig) *config = NULL;
	_cleanup_message_ CRI(PodSandboxConfig) *pod_config = NULL;
	_cleanup_free_ char *pod_id = NULL, *id = NULL;
	int r = read_container(in->argv[1], &config, err);

	if (r == 0)
		r = read_pod(in->argv[2], &pod_config, err);
	if (r == 0)
		r = tool_pod(in->admin, in->argv[0], &pod_id, err);
	if (r == 0)
		r = create_container(in->admin, pod_id, config, pod_config, timeout_ms(in), &id, err);
	if (r < 0)
		return r;
	puts(id);
	return 0;
}

COMMAND(command_start)
{
	for (int i = 0; i < in->argc; i++) {
		_cleanup_free_ char *id = NULL;
		int r = tool_container(in->admin, in->argv[i], &id, err);

		if (r == 0)
			r = start_container(in->admin, id, TOOL_TIMEOUT_MS, err);
		if (r < 0)
			return r;
		puts(id);
	}
	return 0;
}

static void remove_pod(const struct admin *admin, char *id)
{
	CRI(RemovePodSandboxRequest) request = RUNTIME__V1__REMOVE_POD_SANDBOX_REQUEST__INIT;
	struct error err = ERROR_INIT;

	request.pod_sandbox_id = id;
	if (tool_do(admin, "RuntimeService/RemovePodSandbox", &request,
		    &runtime__v1__remove_pod_sandbox_response__descriptor, TOOL_TIMEOUT_MS, &err) < 0)
		fprintf(stderr, "runtime-lite run: remove the pod: %s\n", err.text);
}

COMMAND(command_run_all)
{
	_cleanup_message_ CRI(ContainerConfig) *config = NULL;
	_cleanup_message_ CRI(PodSandboxConfig) *pod_config = NULL;
	_cleanup_free_ char *pod_id = NULL, *id = NULL;
	int r = read_container(in->argv[0], &config, err);

	if (r == 0)
		r = read_pod(in->argv[1], &pod_config, err);
	if (r == 0)
		r = run_pod(in->admin, pod_config, NULL, timeout_ms(in), &pod_id, err);
	if (r < 0)
		return r;
	r = create_container(in->admin, pod_id, config, pod_config, timeout_ms(in), &id, err);
	if (r == 0)
		r = start_container(in->admin, id, timeout_ms(in), err);
	if (r < 0) {
		remove_pod(in->admin, pod_id);
		return r;
	}
	puts(id);
	return 0;
}

COMMAND(command_exec)
{
	CRI(ExecSyncRequest) request = RUNTIME__V1__EXEC_SYNC_REQUEST__INIT;
	_cleanup_message_ CRI(ExecSyncResponse) *reply = NULL;
	_cleanup_free_ char *id = NULL;
	uint64_t ns = option_duration_ns(in->options, "timeout");
	int r = tool_container(in->admin, in->argv[0], &id, err);

	request.container_id = id;
	request.cmd = in->argv + 1;
	request.n_cmd = (size_t)in->argc - 1;
	request.timeout = (int64_t)((ns + 999999999) / 1000000000);
	if (r == 0)
		r = tool_call(in->admin, "RuntimeService/ExecSync", &request,
			&runtime__v1__exec_sync_response__descriptor, 0, &reply, err);
	if (r < 0)
		return r;
	if (reply->stdout.len)
		fwrite(reply->stdout.data, 1, reply->stdout.len, stdout);
	fflush(stdout);
	if (reply->stderr.len)
		fwrite(reply->stderr.data, 1, reply->stderr.len, stderr);
	return reply->exit_code;
}

static CRI(LinuxContainerResources) * update_resources(const struct option_values *options)
{
	CRI(LinuxContainerResources) *m = CRI_NEW(LinuxContainerResources, linux_container_resources);

	m->cpu_period = option_int(options, "cpu-period");
	m->cpu_quota = option_int(options, "cpu-quota");
	m->cpu_shares = option_int(options, "cpu-shares");
	m->memory_limit_in_bytes = option_int(options, "memory");
	m->memory_swap_limit_in_bytes = option_int(options, "memory-swap");
	message_set(&m->cpuset_cpus, option_string(options, "cpuset-cpus"));
	message_set(&m->cpuset_mems, option_string(options, "cpuset-mems"));
	return m;
}

COMMAND(command_update)
{
	_cleanup_message_ CRI(UpdateContainerResourcesRequest) *request =
		CRI_NEW(UpdateContainerResourcesRequest, update_container_resources_request);

	request->linux = update_resources(in->options);
	for (int i = 0; i < in->argc; i++) {
		char *id = NULL;
		int r = tool_container(in->admin, in->argv[i], &id, err);

		if (r < 0)
			return r;
		message_set_take(&request->container_id, id);
		r = tool_do(in->admin, "RuntimeService/UpdateContainerResources", request,
			&runtime__v1__update_container_resources_response__descriptor, TOOL_TIMEOUT_MS, err);
		if (r < 0)
			return r;
		puts(request->container_id);
	}
	return 0;
}

COMMAND(command_reopen_log)
{
	for (int i = 0; i < in->argc; i++) {
		CRI(ReopenContainerLogRequest) request = RUNTIME__V1__REOPEN_CONTAINER_LOG_REQUEST__INIT;
		_cleanup_free_ char *id = NULL;
		int r = tool_container(in->admin, in->argv[i], &id, err);

		request.container_id = id;
		if (r == 0)
			r = tool_do(in->admin, "RuntimeService/ReopenContainerLog", &request,
				&runtime__v1__reopen_container_log_response__descriptor, TOOL_TIMEOUT_MS, err);
		if (r < 0)
			return r;
	}
	return 0;
}

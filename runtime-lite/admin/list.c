/* list.c - purpose: `runtime-lite pods|ps|inspect|inspectp|info|version`. */
#include "runtime-lite/admin/tool.h"

#include "common/wire/json.h"

/* "key=value" words into a selector. */
static int add_labels(const struct strv *words, size_t *n, void *field, const ProtobufCMessageDescriptor *type,
	struct error *err)
{
	for (size_t i = 0; i < words->n; i++) {
		const char *equals = strchr(words->v[i], '=');

		if (!equals)
			return error_set(err, ERROR_INVALID, "--label \"%s\" must be key=value", words->v[i]);
		_cleanup_free_ char *key = xstrndup(words->v[i], (size_t)(equals - words->v[i]));
		message_map_add_(n, field, type, key, equals + 1);
	}
	return 0;
}

static int by_age_pod(const void *a, const void *b)
{
	int64_t x = (*(CRI(PodSandbox) *const *)a)->created_at, y = (*(CRI(PodSandbox) *const *)b)->created_at;

	return x < y ? 1 : x > y ? -1 : 0;
}

static int by_age_container(const void *a, const void *b)
{
	int64_t x = (*(CRI(Container) *const *)a)->created_at, y = (*(CRI(Container) *const *)b)->created_at;

	return x < y ? 1 : x > y ? -1 : 0;
}

static void print_pods(const CRI(ListPodSandboxResponse) * reply)
{
	_cleanup_(table_done) struct table t = { .columns = 7 };

	table_add(&t, "POD ID", "CREATED", "STATE", "NAME", "NAMESPACE", "ATTEMPT", "RUNTIME");
	for (size_t i = 0; i < reply->n_items; i++) {
		const CRI(PodSandbox) *s = reply->items[i];
		char id[14], age[64], attempt[16];

		tool_short_id(s->id, id);
		tool_age(s->created_at, age);
		snprintf(attempt, sizeof(attempt), "%u", s->metadata ? s->metadata->attempt : 0);
		table_add(&t, id, age, s->state == RUNTIME__V1__POD_SANDBOX_STATE__SANDBOX_READY ? "Ready" : "NotReady",
			s->metadata ? s->metadata->name : "", s->metadata ? s->metadata->namespace_ : "", attempt,
			*s->runtime_handler ? s->runtime_handler : "(default)");
	}
	table_print(&t);
}

COMMAND(command_pods)
{
	_cleanup_message_ CRI(ListPodSandboxRequest) *request =
		CRI_NEW(ListPodSandboxRequest, list_pod_sandbox_request);
	_cleanup_message_ CRI(ListPodSandboxResponse) *reply = NULL;
	enum tool_output output;
	int r = tool_output(in, true, &output, err);

	if (r < 0)
		return r;
	request->filter = CRI_NEW(PodSandboxFilter, pod_sandbox_filter);
	if (option_bool(in->options, "ready"))
		request->filter->state = CRI_NEW(PodSandboxStateValue, pod_sandbox_state_value);
	r = add_labels(option_list(in->options, "label"), &request->filter->n_label_selector,
		&request->filter->label_selector, &runtime__v1__pod_sandbox_filter__label_selector_entry__descriptor, err);
	if (r == 0)
		r = tool_call(in->admin, "RuntimeService/ListPodSandbox", request,
			&runtime__v1__list_pod_sandbox_response__descriptor, TOOL_TIMEOUT_MS, &reply, err);
	if (r < 0)
		return r;
	if (reply->n_items)
		qsort(reply->items, reply->n_items, sizeof(*reply->items), by_age_pod);
	if (output == OUTPUT_JSON)
		tool_print_message(reply);
	else if (output == OUTPUT_ID || option_bool(in->options, "quiet"))
		for (size_t i = 0; i < reply->n_items; i++)
			puts(reply->items[i]->id);
	else
		print_pods(reply);
	return 0;
}

static const char *state_name(CRI(ContainerState) state)
{
	static const char *const names[] = { "Created", "Running", "Exited", "Unknown" };

	return (size_t)state < ARRAY_LEN(names) ? names[state] : "Unknown";
}

static const char *pod_name_of(const CRI(ListPodSandboxResponse) * pods, const char *id)
{
	for (size_t i = 0; i < pods->n_items; i++)
		if (str_eq(pods->items[i]->id, id) && pods->items[i]->metadata)
			return pods->items[i]->metadata->name;
	return "";
}

static int print_containers(const struct admin *admin, const CRI(ListContainersResponse) * reply, struct error *err)
{
	CRI(ListPodSandboxRequest) request = RUNTIME__V1__LIST_POD_SANDBOX_REQUEST__INIT;
	_cleanup_message_ CRI(ListPodSandboxResponse) *pods = NULL;
	_cleanup_(table_done) struct table t = { .columns = 8 };
	int r = tool_call(admin, "RuntimeService/ListPodSandbox", &request,
		&runtime__v1__list_pod_sandbox_response__descriptor, TOOL_TIMEOUT_MS, &pods, err);

	if (r < 0)
		return r;
	table_add(&t, "CONTAINER", "IMAGE", "CREATED", "STATE", "NAME", "ATTEMPT", "POD ID", "POD");
	for (size_t i = 0; i < reply->n_containers; i++) {
		const CRI(Container) *c = reply->containers[i];
		char id[14], pod[14], age[64], attempt[16];

		tool_short_id(c->id, id);
		tool_short_id(c->pod_sandbox_id, pod);
		tool_age(c->created_at, age);
		snprintf(attempt, sizeof(attempt), "%u", c->metadata ? c->metadata->attempt : 0);
		table_add(&t, id, c->image ? c->image->image : "", age, state_name(c->state),
			c->metadata ? c->metadata->name : "", attempt, pod, pod_name_of(pods, c->pod_sandbox_id));
	}
	table_print(&t);
	return 0;
}

static int ps_request(const struct invocation *in, CRI(ContainerFilter) * filter, struct error *err)
{
	const char *pod = option_string(in->options, "pod");

	if (!option_bool(in->options, "all")) {
		filter->state = CRI_NEW(ContainerStateValue, container_state_value);
		filter->state->state = RUNTIME__V1__CONTAINER_STATE__CONTAINER_RUNNING;
	}
	if (pod) {
		char *id = NULL;
		int r = tool_pod(in->admin, pod, &id, err);

		if (r < 0)
			return r;
		message_set_take(&filter->pod_sandbox_id, id);
	}
	return add_labels(option_list(in->options, "label"), &filter->n_label_selector, &filter->label_selector,
		&runtime__v1__container_filter__label_selector_entry__descriptor, err);
}

COMMAND(command_ps)
{
	_cleanup_message_ CRI(ListContainersRequest) *request = CRI_NEW(ListContainersRequest, list_containers_request);
	_cleanup_message_ CRI(ListContainersResponse) *reply = NULL;
	enum tool_output output;
	int r = tool_output(in, true, &output, err);

	if (r < 0)
		return r;
	request->filter = CRI_NEW(ContainerFilter, container_filter);
	r = ps_request(in, request->filter, err);
	if (r == 0)
		r = tool_call(in->admin, "RuntimeService/ListContainers", request,
			&runtime__v1__list_containers_response__descriptor, TOOL_TIMEOUT_MS, &reply, err);
	if (r < 0)
		return r;
	if (reply->n_containers)
		qsort(reply->containers, reply->n_containers, sizeof(*reply->containers), by_age_container);
	if (output == OUTPUT_JSON)
		tool_print_message(reply);
	else if (output == OUTPUT_ID || option_bool(in->options, "quiet"))
		for (size_t i = 0; i < reply->n_containers; i++)
			puts(reply->containers[i]->id);
	else
		return print_containers(in->admin, reply, err);
	return 0;
}

/* The values of an info map are JSON texts: shown as what they say. */
static void expand_info(json_t *json)
{
	json_t *info = json_object_get(json, "info"), *value;
	const char *key;

	json_object_foreach (info, key, value) {
		json_t *parsed = NULL;

		if (json_read(json_string_value(value), json_string_length(value), false, &parsed, NULL) == 0)
			json_object_set_new(info, key, parsed);
	}
}

static void print_expanded(const void *message)
{
	_cleanup_json_ json_t *json = message_to_json(message, MESSAGE_JSON_PROTO);

	expand_info(json);
	tool_print_json(json);
}

COMMAND(command_inspect)
{
	for (int i = 0; i < in->argc; i++) {
		CRI(ContainerStatusRequest) request = RUNTIME__V1__CONTAINER_STATUS_REQUEST__INIT;
		_cleanup_message_ CRI(ContainerStatusResponse) *reply = NULL;
		_cleanup_free_ char *id = NULL;
		int r = tool_container(in->admin, in->argv[i], &id, err);

		request.container_id = id;
		request.verbose = true;
		if (r == 0)
			r = tool_call(in->admin, "RuntimeService/ContainerStatus", &request,
				&runtime__v1__container_status_response__descriptor, TOOL_TIMEOUT_MS, &reply, err);
		if (r < 0)
			return r;
		print_expanded(reply);
	}
	return 0;
}

COMMAND(command_inspectp)
{
	for (int i = 0; i < in->argc; i++) {
		CRI(PodSandboxStatusRequest) request = RUNTIME__V1__POD_SANDBOX_STATUS_REQUEST__INIT;
		_cleanup_message_ CRI(PodSandboxStatusResponse) *reply = NULL;
		_cleanup_free_ char *id = NULL;
		int r = tool_pod(in->admin, in->argv[i], &id, err);

		request.pod_sandbox_id = id;
		request.verbose = true;
		if (r == 0)
			r = tool_call(in->admin, "RuntimeService/PodSandboxStatus", &request,
				&runtime__v1__pod_sandbox_status_response__descriptor, TOOL_TIMEOUT_MS, &reply, err);
		if (r < 0)
			return r;
		print_expanded(reply);
	}
	return 0;
}

COMMAND(command_info)
{
	CRI(StatusRequest) request = RUNTIME__V1__STATUS_REQUEST__INIT;
	_cleanup_message_ CRI(StatusResponse) *reply = NULL;

	request.verbose = true;
	int r = tool_call(in->admin, "RuntimeService/Status", &request, &runtime__v1__status_response__descriptor,
		TOOL_TIMEOUT_MS, &reply, err);
	if (r < 0)
		return r;
	print_expanded(reply);
	return 0;
}

COMMAND(command_version)
{
	CRI(VersionRequest) request = RUNTIME__V1__VERSION_REQUEST__INIT;
	_cleanup_message_ CRI(VersionResponse) *reply = NULL;

	printf("Command:            %s\n", NODE_LITE_VERSION);
	int r = tool_call(in->admin, "RuntimeService/Version", &request, &runtime__v1__version_response__descriptor,
		TOOL_TIMEOUT_MS, &reply, err);
	if (r < 0)
		return r;
	printf("Version:            %s\nRuntimeName:        %s\nRuntimeVersion:     %s\nRuntimeApiVersion:  %s\n", reply->version,
		reply->runtime_name, reply->runtime_version, reply->runtime_api_version);
	return 0;
}

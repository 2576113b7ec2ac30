/* events.c - purpose: `runtime-lite events`: print what happens as it happens. */
#include "runtime-lite/admin/tool.h"

#include "common/base/codec.h"
#include "common/wire/json.h"
#include "common/net/rpc_client.h"

#include <uv.h>

struct watcher {
	struct rpc_client *client;
	struct rpc_request *stream;
	uv_loop_t loop;
	bool json;
	int64_t left; /* events until the end, 0: no end */
	struct error status;
	bool ended;
};

static const char *type_name(CRI(ContainerEventType) type)
{
	static const char *const names[] = { "created", "started", "stopped", "deleted" };

	return (size_t)type < ARRAY_LEN(names) ? names[type] : "?";
}

static void print_line(const CRI(ContainerEventResponse) * event)
{
	const CRI(PodSandboxStatus) *pod = event->pod_sandbox_status;
	char when[TIME_TEXT_MAX];
	const char *name = "", *reason = "";
	int code = 0;

	for (size_t i = 0; i < event->n_containers_statuses; i++) {
		const CRI(ContainerStatus) *c = event->containers_statuses[i];

		if (!str_eq(c->id, event->container_id))
			continue;
		name = c->metadata ? c->metadata->name : "";
		reason = c->reason;
		code = c->exit_code;
	}
	time_text(event->created_at, TIME_MICROS, when);
	printf("%s %s %s pod=%s/%s", when, type_name(event->container_event_type), event->container_id,
		pod && pod->metadata ? pod->metadata->namespace_ : "", pod && pod->metadata ? pod->metadata->name : "");
	if (*name)
		printf(" container=%s", name);
	if (*reason)
		printf(" reason=%s exit_code=%d", reason, code);
	putchar('\n');
}

static void on_message(void *data, const void *message)
{
	struct watcher *w = data;

	if (w->ended)
		return;
	if (w->json) {
		_cleanup_json_ json_t *json = message_to_json(message, MESSAGE_JSON_PROTO);
		_cleanup_free_ char *text = json_text(json);

		puts(text);
	} else {
		print_line(message);
	}
	fflush(stdout);
	if (w->left && --w->left == 0) {
		w->ended = true;
		uv_stop(&w->loop);
	}
}

static void on_end(void *data, const struct error *status)
{
	struct watcher *w = data;

	if (w->ended)
		return;
	w->ended = true;
	w->stream = NULL;
	w->status = *status;
	uv_stop(&w->loop);
}

COMMAND(command_events)
{
	CRI(GetEventsRequest) request = RUNTIME__V1__GET_EVENTS_REQUEST__INIT;
	struct watcher w = { .left = option_int(in->options, "count") };
	enum tool_output output;
	int r = tool_output(in, false, &output, err);

	if (r < 0)
		return r;
	w.json = output == OUTPUT_JSON;
	uv_loop_init(&w.loop);
	w.client = rpc_client_new(&w.loop, in->admin->socket_path);
	w.stream = rpc_stream(w.client, "/runtime.v1.RuntimeService/GetContainerEvents", &request.base,
		&runtime__v1__container_event_response__descriptor, on_message, on_end, &w);
	uv_run(&w.loop, UV_RUN_DEFAULT);
	w.ended = true;
	rpc_client_free(w.client);
	uv_run(&w.loop, UV_RUN_DEFAULT);
	uv_loop_close(&w.loop);
	if (w.status.code == ERROR_OK)
		return 0;
	*err = w.status;
	return error_prefix(err, "events");
}

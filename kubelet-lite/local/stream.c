/* stream.c - purpose: exec, attach and port-forward: what is asked for, checked as the API server and the kubelet do.
 */
#include "common/wire/json.h"
#include "common/wire/url.h"
#include "kubelet-lite/local/tunnel.h"

static void bad_request(const struct api_call *call, const char *text)
{
	reply_failure(call->exchange, 400, "BadRequest", NULL, "%s", text);
}

/* Which streams. Negative: answered. */
static int read_streams(const struct api_call *call, struct stream_wanted *w)
{
	w->in = api_query_bool(call->exchange, "stdin");
	w->out = api_query_bool(call->exchange, "stdout");
	w->tty = api_query_bool(call->exchange, "tty");
	w->err = api_query_bool(call->exchange, "stderr") && !w->tty; /* a terminal has one output */
	if (w->in || w->out || w->err)
		return 0;
	bad_request(call, "you must specify at least 1 of stdin, stdout, stderr");
	return -1;
}

/* For the channels of version 4 over WebSocket; other clients name ports later. Negative: answered. */
static int read_ports(const struct api_call *call, struct stream_wanted *w)
{
	_cleanup_(strv_done) struct strv ports = STRV_INIT;

	url_query_get_all(call->request->query, "ports", &ports);
	for (size_t i = 0; i < ports.n; i++) {
		char *end;
		long port = strtol(ports.v[i], &end, 10);

		if (w->n_ports == STREAM_PORTS_MAX || !*ports.v[i] || *end || port < 1 || port > 65535) {
			reply_failure(call->exchange, 400, "BadRequest", NULL,
				"ports: \"%.20s\" must be 1 to 65535, and at most %d of them", ports.v[i],
				STREAM_PORTS_MAX);
			return -1;
		}
		w->ports[w->n_ports++] = (int32_t)port;
	}
	return 0;
}

static bool is_over(const json_t *tree)
{
	const char *phase = json_str_at(tree, "status.phase", "");

	return str_eq(phase, "Succeeded") || str_eq(phase, "Failed");
}

/* All but the container. Negative: answered. */
static int read_wanted(const struct api_call *call, struct stream_wanted *w)
{
	const char *sub = call->route.sub;

	w->ns = call->route.ns;
	w->pod = call->route.name;
	w->kind = str_eq(sub, "exec") ? STREAM_EXEC : str_eq(sub, "attach") ? STREAM_ATTACH : STREAM_PORT_FORWARD;
	if (w->kind == STREAM_PORT_FORWARD)
		return read_ports(call, w);
	if (read_streams(call, w) < 0)
		return -1;
	if (w->kind != STREAM_EXEC)
		return 0;
	url_query_get_all(call->request->query, "command", &w->command);
	if (w->command.n && *w->command.v[0])
		return 0;
	bad_request(call, "you must specify a command");
	return -1;
}

static void open_tunnel(const struct api_call *call, const struct stream_wanted *wanted)
{
	struct tunnel *t = tunnel_new(call->api, call->exchange, call->request->method);
	struct error err = ERROR_INIT;

	if (!call->api->stream_url || call->api->stream_url(call->api->data, wanted, tunnel_connect, t, &err) < 0) {
		tunnel_abandon(t);
		if (err.code == ERROR_NOT_FOUND)
			reply_not_found(call->exchange, &call->route);
		else
			reply_failure(call->exchange, 500, "InternalError", NULL, "%s",
				*err.text ? err.text : "no container runtime with streams");
	}
}

void api_stream(const struct api_call *call)
{
	const struct object *o = objects_get(call->api->objects, KIND_POD, call->route.ns, call->route.name);
	struct stream_wanted wanted = { 0 };
	_cleanup_json_ json_t *tree = NULL;
	_cleanup_free_ char *container = NULL;

	if (!o) {
		reply_not_found(call->exchange, &call->route);
		return;
	}
	tree = object_tree(o);
	if (!http_wants_upgrade(call->exchange)) {
		bad_request(call, "Upgrade request required");
	} else if (read_wanted(call, &wanted) == 0) {
		if (wanted.kind != STREAM_PORT_FORWARD)
			container = api_choose_container(call, tree);
		wanted.container = container;
		if (!container && wanted.kind != STREAM_PORT_FORWARD)
			; /* answered */
		else if (is_over(tree))
			reply_failure(call->exchange, 400, "BadRequest", NULL,
				"cannot exec into, attach to or forward ports of a completed pod; current phase is %s",
				json_str_at(tree, "status.phase", ""));
		else
			open_tunnel(call, &wanted);
	}
	strv_done(&wanted.command);
}

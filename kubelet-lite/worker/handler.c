/*
 * handler.c - purpose: run what a probe or a hook asks for.
 *
 * One struct for all kinds; what a kind does not use stays closed. `finish` reports once, then the handles are closed
 * and the struct is freed. A cancelled run only closes.
 */
#include "kubelet-lite/worker/handler.h"

#include "common/net/sock.h"
#include "kubelet-lite/worker/grpc_check.h"
#include "kubelet-lite/worker/http_get.h"

#include <stdio.h>
#include <string.h>

enum { OUTPUT_MAX = 10 * 1024 };

struct handler_run {
	uv_timer_t timer; /* deadline, pause, or "report on the next turn" */
	handler_cb done;
	void *data;
	struct rpc_request *rpc;
	struct http_get *http;
	struct grpc_check *grpc;
	uv_tcp_t *tcp;
	uv_connect_t connect;
	unsigned handles;
	bool finished;
	bool tcp_closing;
	enum handler_kind kind;
	enum probe_outcome outcome; /* for the next turn */
	char *text;
};

static void maybe_free(struct handler_run *run)
{
	if (run->handles)
		return;
	free(run->tcp);
	free(run->text);
	free(run);
}

static void on_closed(uv_handle_t *handle)
{
	struct handler_run *run = handle->data;

	run->handles--;
	maybe_free(run);
}

static void close_all(struct handler_run *run)
{
	run->finished = true;
	if (run->rpc)
		rpc_cancel(run->rpc);
	run->rpc = NULL;
	if (run->http)
		http_get_cancel(run->http);
	run->http = NULL;
	if (run->grpc)
		grpc_check_cancel(run->grpc);
	run->grpc = NULL;
	if (run->tcp && !run->tcp_closing) {
		run->tcp_closing = true;
		uv_close((uv_handle_t *)run->tcp, on_closed);
	}
	uv_close((uv_handle_t *)&run->timer, on_closed);
}

static void finish(struct handler_run *run, enum probe_outcome outcome, const char *text)
{
	handler_cb done = run->done;
	void *data = run->data;
	_cleanup_free_ char *copy = xstrdup(text);

	if (run->finished)
		return;
	close_all(run);
	done(data, outcome, copy);
}

void handler_cancel(struct handler_run *run)
{
	if (!run->finished)
		close_all(run);
}

static void on_later(uv_timer_t *timer)
{
	struct handler_run *run = timer->data;

	finish(run, run->outcome, run->text);
}

/* Reports on the next turn of the loop. */
static void finish_later(struct handler_run *run, enum probe_outcome outcome, const char *text)
{
	run->outcome = outcome;
	run->text = xstrdup(text);
	uv_timer_start(&run->timer, on_later, 0, 0);
}

static void on_timeout(uv_timer_t *timer)
{
	struct handler_run *run = timer->data;

	finish(run, PROBE_FAILED, run->kind == HANDLER_EXEC ? "command timed out" : "context deadline exceeded");
}

/* ---- exec */

static void add_output(struct str *out, const ProtobufCBinaryData *bytes)
{
	size_t n = MIN(bytes->len, (size_t)OUTPUT_MAX - MIN(out->len, (size_t)OUTPUT_MAX));

	if (n)
		str_add_bytes(out, bytes->data, n);
}

static void on_exec(void *data, const struct error *status, const void *reply)
{
	struct handler_run *run = data;
	const CRI(ExecSyncResponse) *r = reply;
	struct str text = STR_INIT;

	run->rpc = NULL;
	if (status->code == ERROR_DEADLINE) {
		finish(run, PROBE_FAILED, "command timed out");
		return;
	}
	if (!r) {
		/* The runtime is away or the container is gone: neither good nor bad. */
		finish(run, PROBE_ERROR, status->text);
		return;
	}
	add_output(&text, &r->stdout);
	add_output(&text, &r->stderr);
	finish(run, r->exit_code ? PROBE_FAILED : PROBE_OK, str_get(&text));
	str_done(&text);
}

static void start_exec(struct handler_run *run, const struct handler *h, const struct handler_target *t)
{
	CRI(ExecSyncRequest) request = RUNTIME__V1__EXEC_SYNC_REQUEST__INIT;

	request.container_id = (char *)t->container_id;
	request.n_cmd = h->command.n;
	request.cmd = (char **)h->command.v;
	request.timeout = (int64_t)((t->timeout_ms + 999) / 1000);
	/* The runtime ends the command at the time-out and says so. Our own deadline comes later, for a runtime that
	 * hangs. */
	run->rpc = cri_call(
		t->cri, CRI_EXEC_SYNC, &request, t->timeout_ms ? t->timeout_ms : CRI_NO_DEADLINE, on_exec, run);
}

/* ---- http, tcp and grpc */

static void on_grpc(void *data, bool serving, const char *text)
{
	struct handler_run *run = data;

	run->grpc = NULL;
	finish(run, serving ? PROBE_OK : PROBE_FAILED, text);
}

static void on_http(void *data, int status, const char *text)
{
	struct handler_run *run = data;

	run->http = NULL;
	if (status == 0)
		finish(run, PROBE_FAILED, text);
	else if (run->outcome == PROBE_OK || (status >= 200 && status < 400))
		finish(run, PROBE_OK, "");
	else
		finish(run, PROBE_FAILED, text);
}

static void on_connect(uv_connect_t *request, int status)
{
	struct handler_run *run = request->data;
	char text[128];

	if (run->finished)
		return;
	snprintf(text, sizeof(text), "dial tcp: connect: %s", status < 0 ? uv_strerror(status) : "");
	finish(run, status < 0 ? PROBE_FAILED : PROBE_OK, status < 0 ? text : "");
}

static void start_tcp(struct handler_run *run, const struct handler_target *t, const struct sock_address *address)
{
	run->tcp = xnew(uv_tcp_t);
	uv_tcp_init(t->loop, run->tcp);
	run->tcp->data = run->connect.data = run;
	run->handles++;
	int r = uv_tcp_connect(&run->connect, run->tcp, &address->sa, on_connect);
	if (r < 0)
		finish_later(run, PROBE_FAILED, uv_strerror(r));
}

static void start_network(struct handler_run *run, const struct handler *h, const struct handler_target *t)
{
	_cleanup_free_ char *text = strchr(t->address, ':') ? xasprintf("[%s]:%d", t->address, t->port)
							    : xasprintf("%s:%d", t->address, t->port);
	struct sock_address address;
	struct error err = ERROR_INIT;

	if (!t->port) {
		finish_later(run, PROBE_ERROR, "the container has no port of that name");
		return;
	}
	if (!*t->address || sock_address_parse(text, &address, &err) < 0) {
		finish_later(run, PROBE_ERROR, *t->address ? err.text : "the pod has no address yet");
		return;
	}
	if (h->kind == HANDLER_TCP) {
		start_tcp(run, t, &address);
		return;
	}
	if (h->kind == HANDLER_GRPC) {
		run->grpc = grpc_check_start(t->loop, &address, text, h->service, t->user_agent, on_grpc, run);
		return;
	}
	run->outcome = t->any_status ? PROBE_OK : PROBE_FAILED;
	run->http = http_get_start(t->loop, &address, h, t->address, t->port, t->user_agent, on_http, run);
}

struct handler_run *handler_start(const struct handler *h, const struct handler_target *t, handler_cb done, void *data)
{
	struct handler_run *run = xnew(struct handler_run);

	*run = (struct handler_run){ .done = done, .data = data, .handles = 1, .kind = h->kind };
	uv_timer_init(t->loop, &run->timer);
	run->timer.data = run;
	if (t->timeout_ms && h->kind != HANDLER_EXEC)
		uv_timer_start(&run->timer, on_timeout, t->timeout_ms, 0);
	switch (h->kind) {
	case HANDLER_EXEC:
		start_exec(run, h, t);
		break;
	case HANDLER_HTTP:
	case HANDLER_TCP:
	case HANDLER_GRPC:
		start_network(run, h, t);
		break;
	case HANDLER_SLEEP:
		run->outcome = PROBE_OK;
		run->text = xstrdup("");
		uv_timer_start(&run->timer, on_later, (uint64_t)h->sleep_seconds * 1000, 0);
		break;
	default:
		finish_later(run, PROBE_ERROR, "no such check");
	}
	return run;
}

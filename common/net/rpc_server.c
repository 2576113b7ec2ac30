/*
 * rpc_server.c - purpose: serve gRPC (HTTP/2 cleartext) on a Unix socket from one libuv loop.
 *
 * The life of a call:
 *
 *	READING ──message, end──> RUNNING (inline: at once; job: on a worker) ──> answered, freed
 *	   │                      STREAMING (until rpc_stream_end) ─────────────> answered, freed
 *	   └──bad request──> answered, freed
 *
 * A call outlives its HTTP/2 stream while a worker or the owner of an rpc_stream still holds it: `h2` is NULL then and
 * nothing is answered. The deadline is kept by one timer of the server, which finds the nearest one by looking at all
 * calls: there are few, and a timer in each call would have to be closed asynchronously.
 */
#include "common/net/rpc_server.h"
#include "common/net/h2_pipe.h"
#include "common/net/job.h"
#include "common/sys/file.h"
#include "common/wire/grpc.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

enum call_state { CALL_READING, CALL_RUNNING, CALL_STREAMING };

struct rpc_server {
	uv_loop_t *loop;
	uv_pipe_t listener;
	uv_timer_t deadline_timer;
	uint64_t deadline_armed_ns; /* 0: not armed */
	const struct rpc_method *methods;
	void *context;
	struct conn *conns;
	size_t n_conns;
	struct rpc_stream *calls;
	size_t n_calls;
	int handles; /* listener and timer, until closed */
	bool stopping;
	void (*stopped)(void *data);
	void *stopped_data;
};

struct conn {
	struct rpc_server *server;
	struct conn *prev, *next;
	struct h2_pipe *pipe;
	bool goaway;
};

/* A call of any kind; the public name is of the kind that its owner sees. */
struct rpc_stream {
	struct rpc_call call; /* what handlers see */
	struct job job;
	struct rpc_server *server;
	struct rpc_stream *prev, *next;
	struct conn *conn;    /* NULL once h2 is */
	struct h2_stream *h2; /* NULL once answered or gone */
	const struct rpc_method *method;
	enum call_state state;
	struct grpc_reader reader;
	ProtobufCMessage *request;
	atomic_bool gone; /* client or deadline; read by workers */
	bool head_sent;
	int result;
	ProtobufCMessage *reply;
	struct error err;
	void (*on_closed)(void *data);
	void *on_closed_data;
};

static bool call_cancelled(const struct rpc_call *call)
{
	const struct rpc_stream *s = container_of(call, struct rpc_stream, call);

	return atomic_load(&s->gone) || (call->deadline_ns && clock_monotonic_ns() >= call->deadline_ns);
}

static const struct h2_header response_head[] = {
	{ ":status", "200" },
	{ "content-type", "application/grpc" },
};

static void advance_stop(struct rpc_server *server);

/* ---- the end of calls ---- */

static void call_free(struct rpc_stream *s)
{
	struct rpc_server *server = s->server;

	assert(!s->h2);
	if (s->prev)
		s->prev->next = s->next;
	else
		server->calls = s->next;
	if (s->next)
		s->next->prev = s->prev;
	server->n_calls--;
	grpc_reader_done(&s->reader);
	if (s->request)
		protobuf_c_message_free_unpacked(s->request, NULL);
	if (s->reply)
		protobuf_c_message_free_unpacked(s->reply, NULL);
	free(s);
	if (server->n_calls == 0) {
		uv_timer_stop(&server->deadline_timer);
		server->deadline_armed_ns = 0;
	}
	advance_stop(server);
}

/* The HTTP/2 stream is no longer ours. */
static void call_detach(struct rpc_stream *s)
{
	if (!s->h2)
		return;
	h2_stream_set_user(s->h2, NULL);
	h2_pipe_kick(s->conn->pipe);
	s->h2 = NULL;
	s->conn = NULL;
}

/* Answers with a status and detaches. NULL or ERROR_OK: success, after the queued messages. */
static void call_answer(struct rpc_stream *s, const struct error *status)
{
	_cleanup_(str_done) struct str message = STR_INIT;
	char code[8];
	struct h2_header headers[4] = { response_head[0], response_head[1] };
	size_t n = 2;

	if (!s->h2)
		return;
	snprintf(code, sizeof(code), "%d", status ? (int)status->code : 0);
	headers[n++] = (struct h2_header){ "grpc-status", code };
	if (status && status->code != ERROR_OK) {
		grpc_message_encode(&message, status->text);
		headers[n++] = (struct h2_header){ "grpc-message", str_get(&message) };
	}
	if (s->head_sent)
		h2_stream_finish(s->h2, headers + 2, n - 2);
	else
		h2_stream_respond_only(s->h2, headers, n);
	call_detach(s);
}

static void queue_message(struct rpc_stream *s, const ProtobufCMessage *message)
{
	size_t len = protobuf_c_message_get_packed_size(message);
	uint8_t *room;

	if (!s->head_sent) {
		s->head_sent = true;
		h2_stream_respond(s->h2, response_head, ARRAY_LEN(response_head));
	}
	room = h2_stream_add(s->h2, GRPC_PREFIX_BYTES + len);
	grpc_prefix_write(room, len);
	protobuf_c_message_pack(message, room + GRPC_PREFIX_BYTES);
	h2_pipe_kick(s->conn->pipe);
}

/* Result of a unary handler. */
static void call_complete(struct rpc_stream *s)
{
	if (s->h2 && s->result >= 0 && s->reply) {
		size_t len = protobuf_c_message_get_packed_size(s->reply);

		if (len <= RPC_MESSAGE_MAX) {
			queue_message(s, s->reply);
			call_answer(s, NULL);
		} else {
			error_set(&s->err, ERROR_EXHAUSTED, "reply of %zu bytes is larger than the limit of %d", len,
				RPC_MESSAGE_MAX);
			call_answer(s, &s->err);
		}
	} else if (s->h2) {
		if (s->err.code == ERROR_OK)
			error_set(&s->err, ERROR_INTERNAL, "%s: no reply and no reason", s->method->path);
		call_answer(s, &s->err);
	}
	call_free(s);
}

/* The client has gone or its deadline has passed; `h2` is NULL already. Frees the call unless somebody still holds it.
 */
static void call_gone(struct rpc_stream *s)
{
	atomic_store(&s->gone, true);
	switch (s->state) {
	case CALL_READING:
		call_free(s);
		break;
	case CALL_RUNNING: /* job_done() frees it */
		break;
	case CALL_STREAMING: /* without on_closed the owner cannot know: rpc_stream_end() frees it */
		if (s->on_closed) {
			void (*on_closed)(void *data) = s->on_closed;
			void *data = s->on_closed_data;

			s->on_closed = NULL;
			on_closed(data);
			call_free(s);
		}
		break;
	}
}

static void call_fail(struct rpc_stream *s, const struct error *status)
{
	call_answer(s, status);
	call_gone(s);
}

/* ---- deadlines ---- */

static void on_deadline(uv_timer_t *timer);

static void deadline_arm(struct rpc_server *server, uint64_t deadline_ns)
{
	uint64_t now = clock_monotonic_ns(), ms;

	if (server->deadline_armed_ns && server->deadline_armed_ns <= deadline_ns)
		return;
	server->deadline_armed_ns = deadline_ns;
	ms = deadline_ns > now ? (deadline_ns - now) / 1000000 + 1 : 0;
	uv_update_time(server->loop);
	uv_timer_start(&server->deadline_timer, on_deadline, ms, 0);
}

static void on_deadline(uv_timer_t *timer)
{
	struct rpc_server *server = timer->data;
	struct rpc_stream *s, *next;
	uint64_t now = clock_monotonic_ns(), nearest = 0;

	server->deadline_armed_ns = 0;
again:
	for (s = server->calls; s; s = next) {
		uint64_t deadline = s->call.deadline_ns;

		next = s->next;
		if (!s->h2 || !deadline)
			continue;
		if (deadline <= now) {
			struct error err;

			error_set(&err, ERROR_DEADLINE, "deadline exceeded");
			call_fail(s, &err);
			goto again; /* a callback may have ended other calls */
		}
		if (!nearest || deadline < nearest)
			nearest = deadline;
	}
	if (nearest)
		deadline_arm(server, nearest);
}

/* ---- running ---- */

static void job_work(struct job *job)
{
	struct rpc_stream *s = container_of(job, struct rpc_stream, job);

	s->result = s->method->handle(&s->call, s->request, &s->reply, &s->err);
}

static void job_done(struct job *job)
{
	call_complete(container_of(job, struct rpc_stream, job));
}

static void call_run(struct rpc_stream *s)
{
	switch (s->method->kind) {
	case RPC_INLINE:
		s->state = CALL_RUNNING;
		s->result = s->method->handle(&s->call, s->request, &s->reply, &s->err);
		call_complete(s);
		break;
	case RPC_JOB:
		s->state = CALL_RUNNING;
		s->job.work = job_work;
		s->job.done = job_done;
		job_start(s->server->loop, &s->job);
		break;
	case RPC_STREAM:
		s->state = CALL_STREAMING;
		s->method->stream(&s->call, s->request, s);
		break;
	}
}

/* ---- streams for handlers ---- */

int rpc_stream_send(struct rpc_stream *s, const ProtobufCMessage *message)
{
	if (!s->h2)
		return -EPIPE;
	if (h2_stream_pending(s->h2) > RPC_MESSAGE_MAX)
		return -ENOBUFS;
	queue_message(s, message);
	return 0;
}

void rpc_stream_end(struct rpc_stream *s, const struct error *status)
{
	call_answer(s, status);
	call_free(s);
}

void rpc_stream_on_closed(struct rpc_stream *s, void (*on_closed)(void *data), void *data)
{
	s->on_closed = on_closed;
	s->on_closed_data = data;
}

/* ---- HTTP/2 events ---- */

static const struct rpc_method *method_find(const struct rpc_server *server, const char *path)
{
	const struct rpc_method *m;

	for (m = server->methods; m->path; m++)
		if (strcmp(m->path, path) == 0)
			return m;
	return NULL;
}

/* Is it gRPC at all? Else answers by the HTTP status that the gRPC specification names. */
static bool request_is_grpc(struct h2_stream *h2)
{
	struct h2_header head = { ":status", NULL };
	const char *path = h2_header(h2, ":path");

	if (!str_eq(h2_header(h2, ":method"), "POST"))
		head.value = "405";
	else if (!grpc_content_type(h2_header(h2, "content-type")))
		head.value = "415";
	else if (!path || path[0] != '/')
		head.value = "400";
	if (head.value)
		h2_stream_respond_only(h2, &head, 1);
	return !head.value;
}

static struct rpc_stream *call_new(struct conn *conn, struct h2_stream *h2)
{
	struct rpc_server *server = conn->server;
	struct rpc_stream *s = xnew(struct rpc_stream);

	s->server = server;
	s->conn = conn;
	s->h2 = h2;
	s->call.context = server->context;
	s->call.cancelled = call_cancelled;
	s->reader = GRPC_READER_INIT(RPC_MESSAGE_MAX);
	s->next = server->calls;
	if (s->next)
		s->next->prev = s;
	server->calls = s;
	server->n_calls++;
	h2_stream_set_user(h2, s);
	return s;
}

static int call_read_head(struct rpc_stream *s, struct error *err)
{
	const char *path = h2_header(s->h2, ":path"), *timeout = h2_header(s->h2, "grpc-timeout");
	const char *encoding = h2_header(s->h2, "grpc-encoding");
	uint64_t ns;

	s->method = method_find(s->server, path);
	if (!s->method)
		return error_set(err, ERROR_UNIMPLEMENTED, "unknown method %.200s", path);
	if (encoding && !str_eq(encoding, "identity"))
		return error_set(err, ERROR_UNIMPLEMENTED, "grpc-encoding \"%.40s\" is not supported", encoding);
	if (!timeout)
		return 0;
	if (grpc_timeout_parse(timeout, &ns) < 0)
		return error_set(err, ERROR_INVALID, "malformed grpc-timeout \"%.40s\"", timeout);
	if (!__builtin_add_overflow(clock_monotonic_ns(), ns, &s->call.deadline_ns))
		deadline_arm(s->server, s->call.deadline_ns);
	else
		s->call.deadline_ns = 0;
	return 0;
}

static void on_head(void *data, struct h2_stream *h2)
{
	struct conn *conn = data;
	struct rpc_stream *s;
	struct error err = ERROR_INIT;

	if (conn->server->stopping) { /* it crossed our notice: the client may try elsewhere */
		h2_stream_reset(h2, H2_REFUSED_STREAM);
		return;
	}
	if (!request_is_grpc(h2))
		return;
	s = call_new(conn, h2);
	if (call_read_head(s, &err) < 0)
		call_fail(s, &err);
}

static int call_read_message(struct rpc_stream *s, struct bytes message, struct error *err)
{
	if (s->request)
		return error_set(err, ERROR_INVALID, "%s takes one request message, got more", s->method->path);
	s->request = protobuf_c_message_unpack(
		s->method->request, NULL, message.len, (const uint8_t *)(message.ptr ? message.ptr : ""));
	if (!s->request)
		return error_set(
			err, ERROR_INVALID, "%s: request is not a valid %s", s->method->path, s->method->request->name);
	/* The bytes are no longer needed and may be many. */
	grpc_reader_done(&s->reader);
	return 0;
}

static void on_data(void *data, struct h2_stream *h2, const void *p, size_t len)
{
	struct rpc_stream *s = h2_stream_user(h2);
	const uint8_t *next = p;
	struct error err = ERROR_INIT;
	struct bytes message;
	int r;

	(void)data;
	if (!s || s->state != CALL_READING)
		return;
	while ((r = grpc_reader_next(&s->reader, &next, &len, &message, &err)) > 0) {
		r = call_read_message(s, message, &err);
		if (r < 0)
			break;
	}
	if (r < 0)
		call_fail(s, &err);
}

static void on_end(void *data, struct h2_stream *h2)
{
	struct rpc_stream *s = h2_stream_user(h2);
	struct error err = ERROR_INIT;

	(void)data;
	if (!s || s->state != CALL_READING)
		return;
	if (s->request && !grpc_reader_midway(&s->reader)) {
		call_run(s);
		return;
	}
	error_set(&err, ERROR_INVALID, "%s: the request ended %s", s->method->path,
		grpc_reader_midway(&s->reader) ? "inside a message" : "without a message");
	call_fail(s, &err);
}

static void on_stream_close(void *data, struct h2_stream *h2, uint32_t code)
{
	struct rpc_stream *s = h2_stream_user(h2);

	(void)code;
	if (s) {
		call_detach(s);
		call_gone(s);
	}
	advance_stop(((struct conn *)data)->server);
}

static const struct h2_events server_events = {
	.on_head = on_head,
	.on_data = on_data,
	.on_end = on_end,
	.on_close = on_stream_close,
};

/* ---- connections ---- */

static void on_conn_closed(struct h2_pipe *pipe)
{
	struct conn *conn = pipe->owner;
	struct rpc_server *server = conn->server;

	if (conn->prev)
		conn->prev->next = conn->next;
	else
		server->conns = conn->next;
	if (conn->next)
		conn->next->prev = conn->prev;
	server->n_conns--;
	free(conn);
	advance_stop(server);
}

static void on_connection(uv_stream_t *listener, int status)
{
	struct rpc_server *server = listener->data;
	struct conn *conn;
	int r;

	if (status < 0 || server->stopping)
		return;
	conn = xnew(struct conn);
	conn->server = server;
	conn->pipe = h2_pipe_new(server->loop, h2_server_new(&server_events, conn), conn, on_conn_closed);
	conn->next = server->conns;
	if (conn->next)
		conn->next->prev = conn;
	server->conns = conn;
	server->n_conns++;
	r = uv_accept(listener, (uv_stream_t *)&conn->pipe->handle);
	if (r < 0 || server->n_conns > RPC_CONNECTIONS_MAX)
		h2_pipe_close(conn->pipe, NULL);
	else
		h2_pipe_open(conn->pipe);
}

struct rpc_server *rpc_server_new(uv_loop_t *loop, int listen_fd, const struct rpc_method *methods, void *context)
{
	struct rpc_server *server = xnew(struct rpc_server);

	signal(SIGPIPE, SIG_IGN);
	server->loop = loop;
	server->methods = methods;
	server->context = context;
	server->handles = 2;
	uv_timer_init(loop, &server->deadline_timer);
	uv_pipe_init(loop, &server->listener, 0);
	server->listener.data = server->deadline_timer.data = server;
	if (uv_pipe_open(&server->listener, listen_fd) != 0 ||
		uv_listen((uv_stream_t *)&server->listener, RPC_CONNECTIONS_MAX, on_connection) != 0)
		abort(); /* not a listening socket: a programming error */
	return server;
}

/* ---- the end of the server ---- */

static void on_server_handle_closed(uv_handle_t *handle)
{
	struct rpc_server *server = handle->data;

	server->handles--;
	advance_stop(server);
}

/* Takes the stop as far as it can go: connections whose streams have ended (answers that a slow client has not yet read
 * count), then the timer, then `stopped`. */
static void advance_stop(struct rpc_server *server)
{
	struct conn *conn;

	if (!server->stopping)
		return;
	for (conn = server->conns; conn; conn = conn->next) {
		if (conn->goaway || h2_conn_streams(conn->pipe->h2) > 0)
			continue;
		conn->goaway = true;
		h2_conn_goaway(conn->pipe->h2);
		h2_pipe_kick(conn->pipe);
	}
	if (server->conns || server->calls)
		return;
	if (!uv_is_closing((uv_handle_t *)&server->deadline_timer))
		uv_close((uv_handle_t *)&server->deadline_timer, on_server_handle_closed);
	if (server->handles > 0 || !server->stopped)
		return;
	steal(server->stopped)(server->stopped_data);
}

void rpc_server_stop(struct rpc_server *server, void (*stopped)(void *data), void *data)
{
	struct conn *conn;
	struct rpc_stream *s;
	struct error err;

	assert(!server->stopping);
	error_set(&err, ERROR_UNAVAILABLE, "the server is shutting down");
	for (conn = server->conns; conn; conn = conn->next) {
		h2_conn_notice(conn->pipe->h2);
		h2_pipe_kick(conn->pipe);
	}
again:
	for (s = server->calls; s; s = s->next) {
		if (s->state == CALL_RUNNING || !s->h2)
			continue;
		call_fail(s, &err); /* event streams would never end by themselves */
		goto again;
	}
	server->stopping = true;
	server->stopped = stopped;
	server->stopped_data = data;
	uv_close((uv_handle_t *)&server->listener, on_server_handle_closed);
	advance_stop(server);
}

void rpc_server_free(struct rpc_server *server)
{
	assert(!server || (server->stopping && !server->conns && !server->calls && server->handles == 0));
	free(server);
}

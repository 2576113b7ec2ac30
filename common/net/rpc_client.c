/*
 * rpc_client.c - purpose: call gRPC methods over a Unix socket from a libuv loop.
 *
 *	request:  WAITING (no connection) ──> SENT (has an HTTP/2 stream) ──> on the ready list ──> callback, freed
 *
 * What arrives is put on the request; callbacks run from an idle handle, one turn later at most. So a callback may free
 * the client, cancel its own request or start new calls, and none of that happens inside nghttp2.
 * A connection that got GOAWAY is let go of: its streams end in peace while new calls use a new one.
 */
#include "common/net/rpc_client.h"
#include "common/net/h2_pipe.h"
#include "common/net/rpc_server.h"
#include "common/sys/file.h"
#include "common/wire/grpc.h"

#include <signal.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/un.h>

enum { BACKOFF_FIRST_MS = 100, BACKOFF_MAX_MS = 3000, TRIES_MAX = 3 };

struct message {
	struct message *next;
	ProtobufCMessage *body;
};

struct rpc_request {
	struct rpc_client *client; /* NULL: the client was freed in one of our callbacks */
	struct rpc_request *prev, *next;
	struct rpc_request *next_ready;
	bool ready;
	struct link *link;
	struct h2_stream *h2; /* NULL: waiting or ended */
	char *path;
	struct str packed; /* framed */
	unsigned tries;
	uint64_t deadline_ns;
	const ProtobufCMessageDescriptor *descriptor;
	struct grpc_reader reader;
	struct message *messages, **messages_end;
	bool streaming;
	bool ended;
	bool cancelled;
	bool in_callback;
	struct error status;
	rpc_reply_cb on_reply;
	rpc_message_cb on_message;
	rpc_end_cb on_end;
	void *data;
};

struct link {
	struct rpc_client *client; /* NULL: it was freed */
	struct link *next;
	struct h2_pipe *pipe;
	uv_connect_t connect;
	bool connected;
	bool answered; /* the peer has sent something that made sense */
};

struct rpc_client {
	uv_loop_t *loop;
	char *path;
	bool fail_fast;
	bool freed;
	struct link *links; /* all, also those that only finish their calls */
	struct link *link;  /* takes new calls; NULL: none */
	struct rpc_request *requests;
	struct rpc_request *ready, **ready_end;
	uv_idle_t idle;
	uv_timer_t retry_timer;
	bool retry_waiting;
	unsigned backoff_ms;
	uv_timer_t deadline_timer;
	uint64_t deadline_armed_ns;
	int handles;
};

static void client_connect(struct rpc_client *client);
static void on_deadline(uv_timer_t *timer);

/* ---- requests ---- */

static void request_free(struct rpc_request *q)
{
	assert(!q->h2 && !q->ready);
	if (q->client) {
		if (q->prev)
			q->prev->next = q->next;
		else
			q->client->requests = q->next;
		if (q->next)
			q->next->prev = q->prev;
	}
	while (q->messages) {
		struct message *m = q->messages;

		q->messages = m->next;
		protobuf_c_message_free_unpacked(m->body, NULL);
		free(m);
	}
	grpc_reader_done(&q->reader);
	str_done(&q->packed);
	free(q->path);
	free(q);
}

static void request_detach(struct rpc_request *q, bool reset)
{
	if (!q->h2)
		return;
	h2_stream_set_user(q->h2, NULL);
	if (reset) {
		h2_stream_reset(q->h2, H2_CANCEL);
		h2_pipe_kick(q->link->pipe);
	}
	q->h2 = NULL;
	q->link = NULL;
}

static void on_ready(uv_idle_t *idle);

static void make_ready(struct rpc_request *q)
{
	struct rpc_client *client = q->client;

	if (q->ready)
		return;
	q->ready = true;
	q->next_ready = NULL;
	*client->ready_end = q;
	client->ready_end = &q->next_ready;
	uv_idle_start(&client->idle, on_ready);
}

/* The first end counts. */
static void request_end(struct rpc_request *q, const struct error *status)
{
	if (q->ended)
		return;
	q->ended = true;
	q->status = *status;
	make_ready(q);
}

/* Calls back what has come. The request is freed when it has ended, or was cancelled meanwhile. */
static void request_deliver(struct rpc_request *q)
{
	q->in_callback = true;
	while (q->streaming && q->messages && !q->cancelled) {
		struct message *m = q->messages;

		q->messages = m->next;
		if (!q->messages)
			q->messages_end = &q->messages;
		q->on_message(q->data, m->body);
		protobuf_c_message_free_unpacked(m->body, NULL);
		free(m);
	}
	if (q->ended && !q->cancelled) {
		if (q->streaming)
			q->on_end(q->data, &q->status);
		else
			q->on_reply(q->data, &q->status, q->status.code == ERROR_OK ? q->messages->body : NULL);
		q->cancelled = true;
	}
	q->in_callback = false;
	if (q->cancelled) {
		request_detach(q, true);
		request_free(q);
	}
}

static void client_release(struct rpc_client *client);

static void on_ready(uv_idle_t *idle)
{
	struct rpc_client *client = idle->data;
	struct rpc_request *q;

	uv_idle_stop(idle);
	client->handles++; /* keeps the struct while callbacks run */
	while (!client->freed && client->ready) {
		q = client->ready;
		client->ready = q->next_ready;
		if (!client->ready)
			client->ready_end = &client->ready;
		q->ready = false;
		request_deliver(q);
	}
	client_release(client);
}

static void unready(struct rpc_request *q)
{
	struct rpc_request **at;

	if (!q->ready)
		return;
	for (at = &q->client->ready; *at != q; at = &(*at)->next_ready) {
	}
	*at = q->next_ready;
	if (!*at)
		q->client->ready_end = at;
	q->ready = false;
}

void rpc_cancel(struct rpc_request *q)
{
	q->cancelled = true;
	request_detach(q, true);
	if (q->in_callback)
		return; /* request_deliver() frees it */
	if (q->client)
		unready(q);
	request_free(q);
}

/* Puts the request on a connection. */
static void request_send(struct rpc_request *q, struct link *link)
{
	_cleanup_free_ char *timeout = NULL;
	struct h2_header headers[8] = {
		{ ":method", "POST" },
		{ ":scheme", "http" },
		{ ":path", q->path },
		{ ":authority", "localhost" },
		{ "content-type", "application/grpc" },
		{ "te", "trailers" },
		{ "user-agent", "node-lite/" NODE_LITE_VERSION },
	};
	size_t n = 7;

	if (q->deadline_ns) {
		uint64_t now = clock_monotonic_ns();

		timeout = xcalloc(1, GRPC_TIMEOUT_TEXT_MAX);
		grpc_timeout_format(q->deadline_ns > now ? q->deadline_ns - now : 1, timeout);
		headers[n++] = (struct h2_header){ "grpc-timeout", timeout };
	}
	q->h2 = h2_request(link->pipe->h2, headers, n);
	if (!q->h2)
		return; /* waits for the next connection */
	q->tries++;
	q->link = link;
	h2_stream_set_user(q->h2, q);
	memcpy(h2_stream_add(q->h2, q->packed.len), q->packed.buf, q->packed.len);
	h2_stream_finish(q->h2, NULL, 0);
	h2_pipe_kick(link->pipe);
}

/* ---- HTTP/2 events; the data is the link ---- */

static void on_head(void *data, struct h2_stream *h2)
{
	struct link *link = data;
	struct rpc_request *q = h2_stream_user(h2);
	const char *status = h2_header(h2, ":status");
	struct error err;

	link->answered = true;
	if (link->client)
		link->client->backoff_ms = 0;
	if (!q)
		return;
	str_done(&q->packed); /* it will not be sent again */
	if (str_eq(status, "200") && grpc_content_type(h2_header(h2, "content-type")))
		return;
	error_set(&err, ERROR_UNAVAILABLE, "the server does not speak gRPC: HTTP status %.40s",
		status ? status : "missing");
	request_end(q, &err);
	request_detach(q, true);
}

static int take_message(struct rpc_request *q, struct bytes bytes, struct error *err)
{
	struct message *m;
	ProtobufCMessage *body;

	if (!q->streaming && q->messages)
		return error_set(err, ERROR_INTERNAL, "%s: more than one reply", q->path);
	body = protobuf_c_message_unpack(q->descriptor, NULL, bytes.len, (const uint8_t *)(bytes.ptr ? bytes.ptr : ""));
	if (!body)
		return error_set(err, ERROR_INTERNAL, "%s: the reply is not a valid %s", q->path, q->descriptor->name);
	m = xnew(struct message);
	m->body = body;
	*q->messages_end = m;
	q->messages_end = &m->next;
	return 0;
}

static void on_data(void *data, struct h2_stream *h2, const void *p, size_t len)
{
	struct rpc_request *q = h2_stream_user(h2);
	const uint8_t *next = p;
	struct error err = ERROR_INIT;
	struct bytes bytes;
	int r;

	(void)data;
	if (!q || q->ended)
		return;
	while ((r = grpc_reader_next(&q->reader, &next, &len, &bytes, &err)) > 0) {
		r = take_message(q, bytes, &err);
		if (r < 0)
			break;
		if (q->streaming)
			make_ready(q);
	}
	if (r < 0) {
		request_end(q, &err);
		request_detach(q, true);
	}
}

static void on_end(void *data, struct h2_stream *h2)
{
	struct rpc_request *q = h2_stream_user(h2);
	const char *code = h2_header(h2, "grpc-status"), *text = h2_header(h2, "grpc-message");
	struct error status = ERROR_INIT;

	(void)data;
	if (!q)
		return;
	if (!code) {
		error_set(&status, ERROR_INTERNAL, "%s: the answer ended without a status", q->path);
	} else if (grpc_status_parse(code) != ERROR_OK) {
		_cleanup_(str_done) struct str message = STR_INIT;

		grpc_message_decode(&message, text ? text : "");
		error_set(&status, grpc_status_parse(code), "%s", str_get(&message));
	} else if (grpc_reader_midway(&q->reader) || (!q->streaming && !q->messages)) {
		error_set(&status, ERROR_INTERNAL, "%s: the answer ended without a whole reply", q->path);
	}
	request_end(q, &status);
	request_detach(q, false);
}

static void on_stream_close(void *data, struct h2_stream *h2, uint32_t code)
{
	struct link *link = data;
	struct rpc_request *q = h2_stream_user(h2);
	struct error err;

	if (!q)
		return;
	request_detach(q, false);
	if (code == H2_REFUSED_STREAM && q->tries < TRIES_MAX && !q->messages) { /* it was certainly not processed */
		client_connect(q->client);
		return;
	}
	if (link->pipe->error.code != ERROR_OK)
		err = link->pipe->error;
	else
		error_set(&err, ERROR_UNAVAILABLE, "the server reset the call (HTTP/2 code %u)", code);
	error_prefix(&err, "%s", q->client->path);
	request_end(q, &err);
}

static void on_goaway(void *data)
{
	struct link *link = data;

	if (link->client && link->client->link == link)
		link->client->link = NULL; /* still in `links` */
}

static const struct h2_events client_events = {
	.on_head = on_head,
	.on_data = on_data,
	.on_end = on_end,
	.on_close = on_stream_close,
	.on_goaway = on_goaway,
};

/* ---- connecting ---- */

static void fail_waiting(struct rpc_client *client, const struct error *why)
{
	struct rpc_request *q;

	for (q = client->requests; q; q = q->next)
		if (!q->h2 && !q->ended)
			request_end(q, why);
}

static bool any_waiting(const struct rpc_client *client)
{
	const struct rpc_request *q;

	for (q = client->requests; q; q = q->next)
		if (!q->h2 && !q->ended)
			return true;
	return false;
}

static void on_retry(uv_timer_t *timer)
{
	struct rpc_client *client = timer->data;

	client->retry_waiting = false;
	if (any_waiting(client))
		client_connect(client);
}

/* Notes a failed connection: the next one is not tried before the back-off (+-25 %) has passed. */
static void back_off(struct rpc_client *client)
{
	uint32_t random = 0;
	unsigned ms = client->backoff_ms ? client->backoff_ms : BACKOFF_FIRST_MS;

	client->backoff_ms = MIN(ms * 8 / 5, (unsigned)BACKOFF_MAX_MS);
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = (uint32_t)clock_monotonic_ns();
	ms = ms * 3 / 4 + random % (ms / 2 + 1);
	client->retry_waiting = true;
	uv_update_time(client->loop);
	uv_timer_start(&client->retry_timer, on_retry, ms, 0);
}

static void on_link_closed(struct h2_pipe *pipe)
{
	struct link *link = pipe->owner;
	struct rpc_client *client = link->client;

	if (client) {
		struct link **at = &client->links;

		while (*at != link)
			at = &(*at)->next;
		*at = link->next;
		if (client->link == link)
			client->link = NULL;
		if (!link->answered && !client->retry_waiting)
			back_off(client);
		if (client->fail_fast) {
			error_prefix(&pipe->error, "%s", client->path);
			fail_waiting(client, &pipe->error);
		} else if (any_waiting(client)) {
			client_connect(client);
		}
	}
	free(link);
}

static void send_waiting(struct rpc_client *client)
{
	struct rpc_request *q;

	/* The list is newest first; calls go out oldest first. */
	for (q = client->requests; q && q->next; q = q->next) {
	}
	for (; q && client->link; q = q->prev)
		if (!q->h2 && !q->ended)
			request_send(q, client->link);
}

static void on_connect(uv_connect_t *connect, int status)
{
	struct link *link = connect->data;
	struct error err;

	if (status == UV_ECANCELED || !link->client)
		return; /* being closed */
	if (status < 0) {
		error_set(&err, ERROR_UNAVAILABLE, "connect: %s", uv_strerror(status));
		h2_pipe_close(link->pipe, &err);
		return;
	}
	link->connected = true;
	h2_pipe_open(link->pipe);
	send_waiting(link->client);
}

/* Makes sure that waiting calls will be sent: now, when connected, or after the back-off. */
static void client_connect(struct rpc_client *client)
{
	struct link *link = client->link;

	if (link && link->connected && !link->pipe->closing) {
		send_waiting(client);
		return;
	}
	if (link || client->retry_waiting)
		return;
	link = xnew(struct link);
	link->client = client;
	link->pipe = h2_pipe_new(client->loop, h2_client_new(&client_events, link), link, on_link_closed);
	link->connect.data = link;
	link->next = client->links;
	client->links = client->link = link;
	uv_pipe_connect(&link->connect, &link->pipe->handle, client->path, on_connect);
}

/* ---- deadlines ---- */

static void deadline_arm(struct rpc_client *client, uint64_t deadline_ns)
{
	uint64_t now = clock_monotonic_ns();

	if (client->deadline_armed_ns && client->deadline_armed_ns <= deadline_ns)
		return;
	client->deadline_armed_ns = deadline_ns;
	uv_update_time(client->loop);
	uv_timer_start(
		&client->deadline_timer, on_deadline, deadline_ns > now ? (deadline_ns - now) / 1000000 + 1 : 0, 0);
}

static void on_deadline(uv_timer_t *timer)
{
	struct rpc_client *client = timer->data;
	struct rpc_request *q;
	uint64_t now = clock_monotonic_ns(), nearest = 0;
	struct error err;

	client->deadline_armed_ns = 0;
	for (q = client->requests; q; q = q->next) {
		if (!q->deadline_ns || q->ended)
			continue;
		if (q->deadline_ns <= now) {
			error_set(&err, ERROR_DEADLINE, "%s: no %s within the time allowed", client->path,
				q->h2 ? "answer" : "connection");
			request_end(q, &err);
			request_detach(q, true);
		} else if (!nearest || q->deadline_ns < nearest) {
			nearest = q->deadline_ns;
		}
	}
	if (nearest)
		deadline_arm(client, nearest);
}

/* ---- the client ---- */

struct rpc_client *rpc_client_new(uv_loop_t *loop, const char *socket_path)
{
	struct rpc_client *client = xnew(struct rpc_client);

	signal(SIGPIPE, SIG_IGN);
	if (str_starts(socket_path, "unix://"))
		socket_path += strlen("unix://");
	client->loop = loop;
	client->path = xstrdup(socket_path);
	client->ready_end = &client->ready;
	client->handles = 3;
	uv_idle_init(loop, &client->idle);
	uv_timer_init(loop, &client->retry_timer);
	uv_timer_init(loop, &client->deadline_timer);
	client->idle.data = client->retry_timer.data = client->deadline_timer.data = client;
	return client;
}

void rpc_client_fail_fast(struct rpc_client *client)
{
	client->fail_fast = true;
}

static void client_release(struct rpc_client *client)
{
	if (--client->handles > 0)
		return;
	free(client->path);
	free(client);
}

static void on_client_handle_closed(uv_handle_t *handle)
{
	client_release(handle->data);
}

void rpc_client_free(struct rpc_client *client)
{
	struct rpc_request *q;
	struct link *link;

	if (!client)
		return;
	client->freed = true;
	while ((q = client->requests)) {
		if (q->next)
			q->next->prev = NULL;
		client->requests = q->next;
		request_detach(q, false);
		unready(q);
		q->client = NULL;
		q->prev = q->next = NULL;
		if (!q->ended) {
			q->ended = true;
			error_set(&q->status, ERROR_CANCELLED, "the client was closed");
		}
		if (!q->in_callback) /* else request_deliver() is below us and goes on to the end */
			request_deliver(q);
	}
	for (link = client->links; link; link = link->next) {
		link->client = NULL;
		h2_pipe_close(link->pipe, NULL);
	}
	client->link = NULL;
	uv_close((uv_handle_t *)&client->idle, on_client_handle_closed);
	uv_close((uv_handle_t *)&client->retry_timer, on_client_handle_closed);
	uv_close((uv_handle_t *)&client->deadline_timer, on_client_handle_closed);
}

static struct rpc_request *request_start(struct rpc_client *client, struct rpc_request *q, const char *path,
	const ProtobufCMessage *message, const ProtobufCMessageDescriptor *descriptor, uint64_t timeout_ms)
{
	size_t len = protobuf_c_message_get_packed_size(message);
	uint8_t prefix[GRPC_PREFIX_BYTES];

	q->client = client;
	q->path = xstrdup(path);
	q->descriptor = descriptor;
	q->reader = GRPC_READER_INIT(RPC_MESSAGE_MAX);
	q->messages_end = &q->messages;
	q->next = client->requests;
	if (q->next)
		q->next->prev = q;
	client->requests = q;
	grpc_prefix_write(prefix, len);
	str_reserve(&q->packed, GRPC_PREFIX_BYTES + len + 1);
	str_add_bytes(&q->packed, prefix, sizeof(prefix));
	protobuf_c_message_pack(message, (uint8_t *)q->packed.buf + q->packed.len);
	q->packed.len += len;
	if (timeout_ms) {
		q->deadline_ns = clock_monotonic_ns() + MIN(timeout_ms, (uint64_t)INT64_MAX / 2000000) * 1000000;
		deadline_arm(client, q->deadline_ns);
	}
	if (strlen(client->path) >= sizeof(((struct sockaddr_un *)NULL)->sun_path)) {
		struct error err;

		error_set(&err, ERROR_INVALID, "socket path \"%s\" is too long", client->path);
		request_end(q, &err);
	} else {
		client_connect(client);
	}
	return q;
}

struct rpc_request *rpc_call(struct rpc_client *client, const char *path, const ProtobufCMessage *request,
	const ProtobufCMessageDescriptor *reply, uint64_t timeout_ms, rpc_reply_cb cb, void *data)
{
	struct rpc_request *q = xnew(struct rpc_request);

	q->on_reply = cb;
	q->data = data;
	return request_start(client, q, path, request, reply, timeout_ms);
}

struct rpc_request *rpc_stream(struct rpc_client *client, const char *path, const ProtobufCMessage *request,
	const ProtobufCMessageDescriptor *message, rpc_message_cb on_message, rpc_end_cb end, void *data)
{
	struct rpc_request *q = xnew(struct rpc_request);

	q->streaming = true;
	q->on_message = on_message;
	q->on_end = end;
	q->data = data;
	return request_start(client, q, path, request, message, 0);
}

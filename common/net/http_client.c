/* http_client.c - purpose: HTTP/1.1 requests over Unix, TCP and TLS from a libuv loop. */
#include "common/net/http_client.h"

#include "common/base/str.h"
#include "common/net/tls.h"
#include "common/wire/http1.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/*
 * A request owns its text until it is sent; a connection owns the parser and borrows the request that it works for.
 * Both contain libuv handles, so both are freed in close callbacks. Callbacks of the user may start and cancel requests
 * and free the client, so after each of them only `conn` itself (which outlives its closing) is looked at.
 */
enum { IDLE_MAX = 2, READ_BYTES = 16 * 1024, CONNECT_TIMEOUT_MS = 10000 };

struct conn {
	union {
		uv_handle_t handle;
		uv_stream_t stream;
		uv_tcp_t tcp;
		uv_pipe_t pipe;
	};
	uv_connect_t connect;
	bool connected;
	bool closing;
	bool used_before; /* may have been closed by the server at the same moment: worth a second try */
	struct http1 http;
	struct tls_conn *tls;
	struct http_client *client;	     /* NULL once the client is gone */
	struct http_request_handle *request; /* NULL while idle */
	struct conn *next;		     /* in client->idle */
};

struct http_request_handle {
	uv_timer_t timer;
	struct http_client *client;
	struct conn *conn;
	struct http_call call; /* only callbacks, data and timeouts are used after the start */
	struct str text;       /* head and body */
	bool idempotent;
	bool head_method;
	bool answered; /* a byte of the response has come */
	int status;
	uint64_t started_ms, active_ms;
	struct error pending; /* to be reported from the timer */
	struct http_request_handle *prev, *next;
};

struct http_client {
	uv_loop_t *loop;
	struct sock_address address;
	char *host;
	char *bearer;
	struct tls_client *tls;
	struct conn *idle;
	unsigned n_idle;
	struct http_request_handle *requests;
};

static void request_start(struct http_request_handle *request, bool fresh);

static void on_conn_closed(uv_handle_t *handle)
{
	struct conn *conn = container_of(handle, struct conn, handle);

	http1_done(&conn->http);
	tls_conn_free(conn->tls);
	free(conn);
}

static void conn_close(struct conn *conn)
{
	if (conn->closing)
		return;
	conn->closing = true;
	for (struct conn **p = conn->client ? &conn->client->idle : NULL; p && *p; p = &(*p)->next) {
		if (*p != conn)
			continue;
		*p = conn->next;
		conn->client->n_idle--;
		break;
	}
	if (conn->request)
		conn->request->conn = NULL;
	conn->request = NULL;
	uv_close(&conn->handle, on_conn_closed);
}

static void on_request_closed(uv_handle_t *handle)
{
	struct http_request_handle *request = container_of((uv_timer_t *)handle, struct http_request_handle, timer);

	str_done(&request->text);
	free(request);
}

/* Takes the request out of everything; its memory lives until the timer is closed. */
static void request_detach(struct http_request_handle *request)
{
	if (request->conn)
		conn_close(request->conn);
	if (request->prev)
		request->prev->next = request->next;
	else
		request->client->requests = request->next;
	if (request->next)
		request->next->prev = request->prev;
	uv_close((uv_handle_t *)&request->timer, on_request_closed);
}

static void request_end(struct http_request_handle *request, const struct error *err)
{
	request_detach(request);
	request->call.on_end(request->call.data, request->status, err);
}

static void request_fail(struct http_request_handle *request, enum error_code code, const char *text)
{
	struct error err = ERROR_INIT;
	char name[160];

	sock_address_text(&request->client->address, name, sizeof(name));
	error_set(&err, code, "%s: %s", name, text);
	request_end(request, &err);
}

static void arm_timer(struct http_request_handle *request);

static void on_timer(uv_timer_t *timer)
{
	struct http_request_handle *request = container_of(timer, struct http_request_handle, timer);
	const struct http_call *call = &request->call;
	uint64_t now = uv_now(request->client->loop);
	bool connecting = !request->conn || !request->conn->connected;

	if (request->pending.code) {
		request_end(request, &request->pending);
		return;
	}
	if (call->timeout_ms && now - request->started_ms >= call->timeout_ms)
		request_fail(request, ERROR_DEADLINE, "no answer in time");
	else if (connecting && now - request->started_ms >= CONNECT_TIMEOUT_MS)
		request_fail(request, ERROR_UNAVAILABLE, "no connection in time");
	else if (call->idle_timeout_ms && now - request->active_ms >= call->idle_timeout_ms)
		request_fail(request, ERROR_DEADLINE, "the answer has stopped coming");
	else
		arm_timer(request);
}

/* To the nearest of the limits; activity moves the idle limit without touching the timer. */
static void arm_timer(struct http_request_handle *request)
{
	const struct http_call *call = &request->call;
	uint64_t now = uv_now(request->client->loop), at = UINT64_MAX;

	if (call->timeout_ms)
		at = request->started_ms + call->timeout_ms;
	if (call->idle_timeout_ms)
		at = MIN(at, request->active_ms + call->idle_timeout_ms);
	if (!request->conn || !request->conn->connected)
		at = MIN(at, request->started_ms + CONNECT_TIMEOUT_MS);
	if (request->pending.code)
		at = now;
	if (at == UINT64_MAX)
		uv_timer_stop(&request->timer);
	else
		uv_timer_start(&request->timer, on_timer, at > now ? at - now : 0, 0);
}

/* The connection broke. A reused one may have been closed by the server while it was idle: then the request goes out
 * once more on a new one, if that cannot do it twice. */
static void conn_broken(struct conn *conn, enum error_code code, const char *text)
{
	struct http_request_handle *request = conn->request;
	bool again = request && conn->used_before && !request->answered && request->idempotent;

	conn_close(conn);
	if (again)
		request_start(request, true);
	else if (request)
		request_fail(request, code, text);
}

struct write {
	uv_write_t req;
	struct conn *conn;
	char *text;
};

static void on_written(uv_write_t *req, int status)
{
	struct write *w = container_of(req, struct write, req);
	struct conn *conn = w->conn;

	free(w->text);
	free(w);
	/* A server may answer (413, say) and close before it has read everything: what it said counts, so that an error
	 * here waits for the reading side to see the end. */
	if (status < 0 && status != UV_ECANCELED && !conn->closing && status != UV_EPIPE && status != UV_ECONNRESET)
		conn_broken(conn, ERROR_UNAVAILABLE, uv_strerror(status));
}

/* Sends and empties `text`. */
static void conn_send(struct conn *conn, struct str *text)
{
	struct write *w;
	uv_buf_t buf;

	if (!text->len || conn->closing) {
		str_reset(text);
		return;
	}
	w = xnew(struct write);
	w->conn = conn;
	buf.len = text->len;
	w->text = buf.base = str_take(text);
	if (uv_write(&w->req, &conn->stream, &buf, 1, on_written) < 0) {
		free(w->text);
		free(w);
	}
}

/* The response is complete. The connection is kept when it may be, then the user is told. */
static void response_done(struct conn *conn, bool reusable)
{
	static const struct error ok = { .code = ERROR_OK };
	struct http_request_handle *request = conn->request;
	struct http_client *client = conn->client;

	if (reusable && conn->http.keep_alive && conn->http.status != 101 && client->n_idle < IDLE_MAX) {
		http1_next(&conn->http);
		conn->used_before = true;
		conn->request = NULL;
		request->conn = NULL;
		conn->next = client->idle;
		client->idle = conn;
		client->n_idle++;
	}
	request_end(request, &ok); /* closes the connection if it still belongs to the request */
}

/* One event of the parser. False: stop reading. */
static bool handle_event(struct conn *conn, const struct http1_event *ev, const struct bytes *rest)
{
	struct http_request_handle *request = conn->request;
	const struct http_call *call = &request->call;

	switch (ev->kind) {
	case HTTP1_HEAD:
		request->status = conn->http.status;
		if (call->on_head)
			call->on_head(call->data, conn->http.status, http1_header(&conn->http, "Content-Type"));
		return true;
	case HTTP1_BODY:
		if (call->on_body)
			call->on_body(call->data, ev->body.ptr, ev->body.len);
		return true;
	case HTTP1_END:
		response_done(conn, rest->len == 0);
		return false;
	case HTTP1_MORE:
		break;
	}
	return false;
}

/* Bytes of HTTP. */
static void conn_input(struct conn *conn, struct bytes in)
{
	bool more = true;

	if (!conn->request) { /* nothing was asked: an idle connection that talks is of no use */
		conn_close(conn);
		return;
	}
	conn->request->answered = true;
	conn->request->active_ms = uv_now(conn->client->loop);
	while (more && conn->request && !conn->closing) {
		struct http1_event ev;
		struct error err = ERROR_INIT;

		if (http1_read(&conn->http, &in, &ev, &err) < 0) {
			request_fail(conn->request, ERROR_INVALID, err.text);
			return;
		}
		more = handle_event(conn, &ev, &in);
	}
}

static void conn_eof(struct conn *conn)
{
	struct http1_event ev = { .kind = HTTP1_MORE };
	struct error err = ERROR_INIT;

	if (!conn->request) {
		conn_close(conn);
		return;
	}
	if (http1_eof(&conn->http, &ev, &err) < 0)
		conn_broken(conn, ERROR_UNAVAILABLE, err.text);
	else if (ev.kind == HTTP1_END)
		response_done(conn, false);
	else
		conn_broken(conn, ERROR_UNAVAILABLE, "connection closed without an answer");
}

static void conn_input_tls(struct conn *conn, const char *p, size_t n)
{
	_cleanup_(str_done) struct str plain = STR_INIT, out = STR_INIT;
	struct error err = ERROR_INIT;
	int r = tls_conn_feed(conn->tls, p, n, &plain, &out, &err);

	conn_send(conn, &out);
	if (plain.len)
		conn_input(conn, (struct bytes){ plain.buf, plain.len });
	if (r < 0 && !conn->closing)
		conn_broken(conn, ERROR_UNAVAILABLE, err.text);
}

static void on_alloc(uv_handle_t *handle UNUSED, size_t suggested UNUSED, uv_buf_t *buf)
{
	*buf = uv_buf_init(xmalloc(READ_BYTES), READ_BYTES);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct conn *conn = container_of(stream, struct conn, stream);
	_cleanup_free_ char *owned = buf->base;

	if (conn->closing || n == 0)
		return;
	if (n == UV_EOF)
		conn_eof(conn);
	else if (n < 0)
		conn_broken(conn, ERROR_UNAVAILABLE, uv_strerror((int)n));
	else if (conn->tls)
		conn_input_tls(conn, owned, (size_t)n);
	else
		conn_input(conn, (struct bytes){ owned, (size_t)n });
}

/* Puts the request on a connection that is up. */
static void conn_take_request(struct conn *conn)
{
	struct http_request_handle *request = conn->request;
	_cleanup_(str_done) struct str out = STR_INIT;
	struct error err = ERROR_INIT;

	if (request->head_method)
		http1_expect_no_body(&conn->http);
	if (conn->tls) {
		if (tls_conn_write(conn->tls, request->text.buf, request->text.len, &out, &err) < 0) {
			conn_broken(conn, ERROR_UNAVAILABLE, err.text);
			return;
		}
	} else {
		str_add_bytes(&out, request->text.buf, request->text.len);
	}
	if (!request->idempotent) /* else it may have to be sent again */
		str_done(&request->text);
	conn_send(conn, &out);
	arm_timer(request);
}

static void on_connected(uv_connect_t *req, int status)
{
	struct conn *conn = container_of(req, struct conn, connect);
	char text[200];

	if (conn->closing)
		return;
	if (status == 0)
		status = uv_read_start(&conn->stream, on_alloc, on_read);
	if (status < 0) {
		snprintf(text, sizeof(text), "connect: %s", uv_strerror(status));
		conn_broken(conn, ERROR_UNAVAILABLE, text);
		return;
	}
	conn->connected = true;
	conn_take_request(conn);
}

/* Starts to connect; the request hears of a failure from its timer or from on_connected(). */
static struct conn *conn_new(struct http_client *client)
{
	struct conn *conn = xnew(struct conn);
	const struct sock_address *address = &client->address;

	conn->client = client;
	http1_init(&conn->http, HTTP1_RESPONSE);
	if (client->tls)
		conn->tls = tls_connect(client->tls);
	if (address->is_unix) {
		uv_pipe_init(client->loop, &conn->pipe, 0);
		uv_pipe_connect(&conn->connect, &conn->pipe, address->un.sun_path, on_connected);
		return conn;
	}
	uv_tcp_init(client->loop, &conn->tcp);
	uv_tcp_nodelay(&conn->tcp, 1);
	/* A watch may be silent for minutes: the kernel finds out whether the peer is still there. */
	uv_tcp_keepalive(&conn->tcp, 1, 15);
	int r = uv_tcp_connect(&conn->connect, &conn->tcp, &address->sa, on_connected);
	if (r < 0) {
		conn_close(conn);
		errno = -r;
		return NULL;
	}
	return conn;
}

static void request_start(struct http_request_handle *request, bool fresh)
{
	struct http_client *client = request->client;
	struct conn *conn = fresh ? NULL : client->idle;

	if (conn) {
		client->idle = conn->next;
		client->n_idle--;
		conn->request = request;
		request->conn = conn;
		conn_take_request(conn);
		return;
	}
	conn = conn_new(client);
	if (conn) {
		conn->request = request;
		request->conn = conn;
	} else {
		char name[160];

		sock_address_text(&client->address, name, sizeof(name));
		error_set(&request->pending, ERROR_UNAVAILABLE, "%s: connect: %s", name, strerrordesc_np(errno));
	}
	arm_timer(request);
}

struct http_client *http_client_new(uv_loop_t *loop, const struct http_client_options *options)
{
	struct http_client *client = xnew(struct http_client);

	client->loop = loop;
	client->address = options->address;
	client->host = xstrdup(options->host ? options->host : "localhost");
	client->bearer = xstrdup(options->bearer);
	client->tls = options->tls;
	return client;
}

void http_client_free(struct http_client *client)
{
	struct error cancelled = ERROR_INIT;

	if (!client)
		return;
	error_set(&cancelled, ERROR_CANCELLED, "the HTTP client is closed");
	while (client->requests)
		request_end(client->requests, &cancelled);
	while (client->idle)
		conn_close(client->idle);
	free(client->host);
	free(client->bearer);
	free(client);
}

static void write_head(const struct http_client *client, const struct http_call *call, struct str *out)
{
	bool sends = call->body_len || str_eq(call->method, "POST") || str_eq(call->method, "PUT") ||
		     str_eq(call->method, "PATCH");

	http1_write_request(out, call->method, call->target);
	http1_write_field(out, "Host", client->host);
	http1_write_field(out, "User-Agent", "node-lite/" NODE_LITE_VERSION);
	http1_write_field(out, "Accept", call->accept ? call->accept : "application/json");
	if (client->bearer)
		http1_write_fieldf(out, "Authorization", "Bearer %s", client->bearer);
	if (call->content_type)
		http1_write_field(out, "Content-Type", call->content_type);
	if (sends)
		http1_write_fieldf(out, "Content-Length", "%zu", call->body_len);
	http1_write_head_end(out);
}

struct http_request_handle *http_request_start(struct http_client *client, const struct http_call *call)
{
	struct http_request_handle *request = xnew(struct http_request_handle);

	assert(call->on_end);
	request->client = client;
	request->call = *call;
	request->head_method = str_eq(call->method, "HEAD");
	request->idempotent = request->head_method || str_eq(call->method, "GET") || str_eq(call->method, "PUT") ||
			      str_eq(call->method, "DELETE");
	write_head(client, call, &request->text);
	str_add_bytes(&request->text, call->body, call->body_len);
	uv_timer_init(client->loop, &request->timer);
	request->started_ms = request->active_ms = uv_now(client->loop);
	request->next = client->requests;
	if (request->next)
		request->next->prev = request;
	client->requests = request;
	request_start(request, false);
	return request;
}

void http_request_cancel(struct http_request_handle *request)
{
	if (request)
		request_detach(request);
}

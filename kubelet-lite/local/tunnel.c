/*
 * tunnel.c - purpose: join a client of the API to the runtime's streaming server.
 *
 *	ASKING --------> CONNECTING -----> HEAD -------> RAW -----> DRAINING
 *	   | the runtime     | request      | 101           | client gone: what it has sent is passed on, then the end
 *	   | has no URL      v sent         | else          | runtime's end: what it has sent is passed on, then the end
 *	   +---------------> answered with an error <-------+
 *
 * Neither side is read when the other has OUT_HIGH or IN_HIGH bytes waiting.
 */
#include "kubelet-lite/local/tunnel.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "common/net/sock.h"
#include "common/wire/http1.h"

enum {
	HEAD_MS = 30 * 1000,  /* for the runtime to answer */
	DRAIN_MS = 30 * 1000, /* for the runtime to take the last of a client that has gone */
	READ_BYTES = 32 * 1024,
	READ_ROUNDS = 4,
	OUT_HIGH = 64 * 1024,
	IN_HIGH = 256 * 1024,
	RECEIVE_BUFFER_BYTES = 128 * 1024,
	ERROR_BODY_MAX = 16 * 1024,
};

enum state { ASKING, CONNECTING, HEAD, RAW, DRAINING };

struct tunnel {
	struct local_api *api; /* NULL: stopped, or closed */
	struct tunnel *prev, *next;
	struct http_exchange *exchange; /* NULL: gone, or answered */
	char *method;
	enum state state;
	int fd; /* -1: none */
	uv_poll_t poll;
	uv_timer_t timer;
	bool timer_open;
	unsigned open_handles;
	struct http1 answer;
	struct str body; /* of an answer that is no 101 */
	struct str to_runtime;
	bool paused; /* the client does not read */
	bool shut;
};

static void tunnel_close(struct tunnel *t);
static void watch(struct tunnel *t);

static void tunnel_free(struct tunnel *t)
{
	http1_done(&t->answer);
	str_done(&t->body);
	str_done(&t->to_runtime);
	free(t->method);
	free(t);
}

static void handle_closed(uv_handle_t *handle)
{
	struct tunnel *t = handle->data;

	if (--t->open_handles == 0)
		tunnel_free(t);
}

static void forget(struct tunnel *t)
{
	if (!t->api)
		return;
	*(t->prev ? &t->prev->next : &t->api->tunnels) = t->next;
	if (t->next)
		t->next->prev = t->prev;
	t->api = NULL;
}

/* The exchange has been dealt with. */
static void tunnel_close(struct tunnel *t)
{
	forget(t);
	if (t->fd >= 0) {
		uv_poll_stop(&t->poll);
		uv_close((uv_handle_t *)&t->poll, handle_closed);
		close(t->fd);
		t->fd = -1;
	}
	if (t->timer_open) {
		t->timer_open = false;
		uv_close((uv_handle_t *)&t->timer, handle_closed);
	}
}

static void fail(struct tunnel *t, int status, const char *reason, const char *text)
{
	struct http_exchange *exchange = steal(t->exchange);

	if (exchange)
		reply_failure(exchange, status, reason, NULL, "%s", text);
	tunnel_close(t);
}

static void end(struct tunnel *t)
{
	struct http_exchange *exchange = steal(t->exchange);

	if (exchange) {
		http_stream_on_drain(exchange, NULL, NULL);
		http_stream_end(exchange);
	}
	tunnel_close(t);
}

/* --- client to runtime */

static void write_runtime(struct tunnel *t)
{
	size_t done = 0;

	while (done < t->to_runtime.len) {
		ssize_t n = send(t->fd, t->to_runtime.buf + done, t->to_runtime.len - done, MSG_NOSIGNAL);

		if (n > 0)
			done += (size_t)n;
		else if (n < 0 && errno == EAGAIN)
			break;
		else if (n == 0 || errno != EINTR)
			done = t->to_runtime.len; /* it has gone; the next read tells */
	}
	str_consume(&t->to_runtime, done);
	if (!t->to_runtime.len && t->to_runtime.cap > READ_BYTES)
		str_done(&t->to_runtime);
	if (t->state == DRAINING && !t->to_runtime.len && !t->shut) {
		t->shut = true;
		shutdown(t->fd, SHUT_WR);
	}
	if (t->state == RAW)
		http_upgrade_pause(t->exchange, t->to_runtime.len > IN_HIGH);
}

static void on_client_data(void *data, const char *p, size_t len)
{
	struct tunnel *t = data;

	str_add_bytes(&t->to_runtime, p, len);
	write_runtime(t);
	watch(t);
}

static void on_client_gone(void *data)
{
	struct tunnel *t = data;

	t->exchange = NULL;
	if (t->fd < 0)
		return;
	t->state = DRAINING;
	t->paused = false;
	uv_timer_again(&t->timer);
	write_runtime(t);
	watch(t);
}

/* --- runtime to client */

static void on_drain(void *data)
{
	struct tunnel *t = data;

	http_stream_on_drain(t->exchange, NULL, NULL);
	t->paused = false;
	watch(t);
}

static void to_client(struct tunnel *t, const char *p, size_t len)
{
	if (!t->exchange || !len)
		return;
	if (http_stream_write(t->exchange, p, len) < 0) {
		end(t);
		return;
	}
	if (!t->paused && http_stream_pending(t->exchange) > OUT_HIGH) {
		t->paused = true;
		http_stream_on_drain(t->exchange, on_drain, t);
	}
}

static void copy_header(struct tunnel *t, const char *name)
{
	const char *value = http1_header(&t->answer, name);

	if (value)
		http_add_header(t->exchange, name, value);
}

/* The answer's head is there. */
static void begin_raw(struct tunnel *t, struct bytes rest)
{
	copy_header(t, "X-Stream-Protocol-Version");
	copy_header(t, "Sec-WebSocket-Accept");
	copy_header(t, "Sec-WebSocket-Protocol");
	t->state = RAW;
	uv_timer_stop(&t->timer);
	uv_timer_set_repeat(&t->timer, DRAIN_MS);
	http_upgrade(t->exchange, t->answer.upgrade, on_client_data, on_client_gone, t);
	to_client(t, rest.ptr, rest.len);
}

/* The runtime's own words, as far as they are text. */
static void pass_refusal(struct tunnel *t)
{
	int status = t->answer.status >= 400 ? t->answer.status : 502;

	for (size_t i = 0; i < t->body.len; i++)
		if ((unsigned char)t->body.buf[i] < ' ')
			t->body.buf[i] = ' ';
	while (t->body.len && t->body.buf[t->body.len - 1] == ' ')
		t->body.buf[--t->body.len] = '\0';
	fail(t, status,
		status == 403	? "Forbidden"
		: status == 404 ? "NotFound"
		: status == 400 ? "BadRequest"
				: "InternalError",
		t->body.len ? t->body.buf : http1_reason(status));
}

static void read_head(struct tunnel *t, const char *p, size_t len)
{
	struct bytes in = { p, len };
	struct error err = ERROR_INIT;

	while (t->state == HEAD && t->fd >= 0) {
		struct http1_event ev;

		if (http1_read(&t->answer, &in, &ev, &err) < 0) {
			fail(t, 502, "BadGateway", err.text);
			return;
		}
		if (ev.kind == HTTP1_MORE)
			return;
		if (ev.kind == HTTP1_BODY && t->body.len < ERROR_BODY_MAX)
			str_add_bytes(&t->body, ev.body.ptr, MIN(ev.body.len, ERROR_BODY_MAX - t->body.len));
		if (ev.kind != HTTP1_END)
			continue;
		if (t->answer.status == 101 && t->answer.upgrade)
			begin_raw(t, in);
		else
			pass_refusal(t);
	}
}

/* Negative: an error, 0: its end. */
static void on_runtime_end(struct tunnel *t, ssize_t n)
{
	if (t->state == HEAD) {
		struct http1_event ev;

		if (n == 0 && http1_eof(&t->answer, &ev, NULL) == 0 && ev.kind == HTTP1_END && t->answer.status != 101)
			pass_refusal(t);
		else
			fail(t, 502, "BadGateway", "the container runtime closed the connection instead of answering");
		return;
	}
	end(t);
}

static void read_runtime(struct tunnel *t)
{
	static char buf[READ_BYTES]; /* loop thread only */

	for (int round = 0; round < READ_ROUNDS && t->fd >= 0 && !t->paused; round++) {
		ssize_t n = recv(t->fd, buf, sizeof(buf), 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			on_runtime_end(t, n);
			return;
		}
		if (t->state == HEAD)
			read_head(t, buf, (size_t)n);
		else
			to_client(t, buf, (size_t)n);
	}
}

/* --- the connection */

static void on_connected(struct tunnel *t)
{
	int failed = 0;
	socklen_t len = sizeof(failed);

	if (getsockopt(t->fd, SOL_SOCKET, SO_ERROR, &failed, &len) < 0 || failed) {
		_cleanup_free_ char *text = xasprintf("connect to the streaming server of the container runtime: %s",
			strerrordesc_np(failed ? failed : errno));

		fail(t, 502, "BadGateway", text);
		return;
	}
	t->state = HEAD;
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
	struct tunnel *t = poll->data;

	if (status < 0)
		events = UV_READABLE;
	if (t->state == CONNECTING)
		on_connected(t);
	if (t->fd >= 0 && t->to_runtime.len)
		write_runtime(t);
	if (t->fd >= 0 && (events & UV_READABLE))
		read_runtime(t);
	watch(t);
}

static void watch(struct tunnel *t)
{
	bool write = t->state == CONNECTING || t->to_runtime.len;
	int events = (t->paused || t->state == CONNECTING ? 0 : UV_READABLE) | (write ? UV_WRITABLE : 0);

	if (t->fd < 0)
		return;
	if (events)
		uv_poll_start(&t->poll, events, on_ready);
	else
		uv_poll_stop(&t->poll);
}

static void on_late(uv_timer_t *timer)
{
	struct tunnel *t = timer->data;

	if (t->state == DRAINING)
		end(t);
	else
		fail(t, 504, "Timeout", "the container runtime does not answer in time");
}

static int open_socket(const struct sock_address *address, int *ret_fd, struct error *err)
{
	_cleanup_fd_ int fd = socket(address->sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1, size = RECEIVE_BUFFER_BYTES;

	if (fd < 0)
		return error_sys(err, errno, "socket");
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (connect(fd, &address->sa, address->len) < 0 && errno != EINPROGRESS)
		return error_sys(err, errno, "connect to the streaming server of the container runtime");
	*ret_fd = steal_fd(&fd);
	return 0;
}

/* "http://127.0.0.1:34567/exec/x" to its address, host and target. Names are not resolved: the runtime is on this node.
 */
static int parse_url(const char *url, struct sock_address *ret, char **ret_host, char **ret_target, struct error *err)
{
	const char *host = str_starts(url, "http://") ? url + strlen("http://") : NULL;
	size_t n = host ? strcspn(host, "/?") : 0;
	_cleanup_free_ char *name = host ? xstrndup(host, n) : NULL;

	if (!host || sock_address_parse(name, ret, NULL) < 0 || ret->is_unix)
		return error_set(err, ERROR_UNIMPLEMENTED,
			"the container runtime gave a URL that is none of http://<IP address>:<port>/...");
	*ret_host = steal(name);
	*ret_target = xasprintf("%s%s", host[n] == '/' ? "" : "/", host + n);
	return 0;
}

static void write_request(struct tunnel *t, const char *host, const char *target)
{
	static const char *const passed[] = { "X-Stream-Protocol-Version", "Sec-WebSocket-Key", "Sec-WebSocket-Version",
		"Sec-WebSocket-Protocol" };
	struct str *out = &t->to_runtime;
	const char *value;

	http1_write_request(out, t->method, target);
	http1_write_field(out, "Host", host);
	http1_write_field(out, "Connection", "Upgrade");
	http1_write_field(out, "Upgrade", http_wants_upgrade(t->exchange));
	for (size_t i = 0; i < ARRAY_LEN(passed); i++)
		for (size_t k = 0; (value = http_header_at(t->exchange, passed[i], k)); k++)
			http1_write_field(out, passed[i], value);
	http1_write_field(out, "Content-Length", "0");
	http1_write_head_end(out);
}

static int open_connection(struct tunnel *t, const char *url, struct error *err)
{
	struct sock_address address;
	_cleanup_free_ char *host = NULL, *target = NULL;
	int r = parse_url(url, &address, &host, &target, err);

	if (r == 0)
		r = open_socket(&address, &t->fd, err);
	if (r < 0)
		return r;
	write_request(t, host, target);
	t->state = CONNECTING;
	uv_poll_init(t->api->loop, &t->poll, t->fd);
	uv_timer_init(t->api->loop, &t->timer);
	t->poll.data = t->timer.data = t;
	t->timer_open = true;
	t->open_handles = 2;
	uv_timer_start(&t->timer, on_late, HEAD_MS, HEAD_MS);
	watch(t);
	return 0;
}

void tunnel_connect(void *data, const char *url, const struct error *status)
{
	struct tunnel *t = data;
	struct error err = *status;

	if (!t->api) { /* stopped meanwhile */
		tunnel_free(t);
		return;
	}
	if (url && open_connection(t, url, &err) == 0)
		return;
	fail(t, err.code == ERROR_INVALID ? 400 : 500, err.code == ERROR_INVALID ? "BadRequest" : "InternalError",
		err.text);
	tunnel_free(t);
}

void tunnel_abandon(struct tunnel *t)
{
	forget(t);
	tunnel_free(t);
}

struct tunnel *tunnel_new(struct local_api *api, struct http_exchange *exchange, const char *method)
{
	struct tunnel *t = xnew(struct tunnel);

	t->api = api;
	t->exchange = exchange;
	t->method = xstrdup(method);
	t->fd = -1;
	http1_init(&t->answer, HTTP1_RESPONSE);
	t->next = api->tunnels;
	if (t->next)
		t->next->prev = t;
	api->tunnels = t;
	return t;
}

/* One that still waits for its URL is freed when that comes. */
void tunnels_stop(struct local_api *api)
{
	while (api->tunnels) {
		struct tunnel *t = api->tunnels;

		if (t->state == RAW || t->state == DRAINING)
			end(t);
		else
			fail(t, 503, "ServiceUnavailable", "the API is being stopped");
	}
}

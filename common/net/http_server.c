/*
 * http_server.c - purpose: serve HTTP/1.1 on Unix, TCP and TLS listeners from one libuv loop.
 *
 * A connection: bytes -> (TLS) -> http1 -> a request with its body -> handler -> answer -> (TLS) -> bytes. There is at
 * most one exchange at a time on it; what a client sends ahead waits in `in`. Nothing is closed from inside a call of a
 * handler's: a connection that breaks meanwhile is closed by its timer in the next turn of the loop.
 */
#include "common/net/http_server_i.h"

#include "common/base/log.h"
#include "common/net/tls.h"
#include "common/wire/url.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>

static void process(struct connection *c);
static void conn_close(struct connection *c);

static void server_handle_closed(struct http_server *s)
{
	if (--s->open_handles > 0)
		return;
	if (s->closed)
		s->closed(s->closed_data);
	free(s);
}

static void conn_handle_closed(uv_handle_t *handle)
{
	struct connection *c = handle->data;
	struct http_server *s = c->server;

	if (--c->open_handles == 0) {
		close(c->fd);
		http1_done(&c->parser);
		str_done(&c->in);
		str_done(&c->body);
		str_done(&c->plain);
		str_done(&c->out);
		if (c->tls)
			tls_conn_free(c->tls);
		free(c);
	}
	server_handle_closed(s);
}

static void exchange_free(struct http_exchange *e)
{
	if (!e)
		return;
	e->conn->exchange = NULL;
	str_done(&e->headers);
	free(e->path);
	free(e);
}

static void conn_close_handles(struct connection *c);

/* Tells the owner of a stream that its client has gone. */
static void conn_abandon(struct connection *c)
{
	struct http_exchange *e = c->exchange;

	if (e) {
		void (*on_closed)(void *data) = e->on_closed;
		void *data = e->closed_data;

		exchange_free(e);
		if (on_closed)
			on_closed(data);
	}
	conn_close_handles(c);
}

static void conn_close(struct connection *c)
{

	if (c->closing)
		return;
	c->closing = true;
	*(c->prev ? &c->prev->next : &c->server->first) = c->next;
	if (c->next)
		c->next->prev = c->prev;
	c->server->n--;
	uv_poll_stop(&c->poll);
	uv_timer_stop(&c->timer);
	/* A handler that still works on a request has it until it answers (into nothing). */
	if (!c->exchange || c->exchange->streaming)
		conn_abandon(c);
}

/* The part of conn_close() that an exchange of the handler's may hold up. */
static void conn_close_handles(struct connection *c)
{
	uv_close((uv_handle_t *)&c->poll, conn_handle_closed);
	uv_close((uv_handle_t *)&c->timer, conn_handle_closed);
}

static void conn_timeout(uv_timer_t *timer)
{
	struct connection *c = timer->data;

	if (c->closing)
		conn_abandon(c); /* a stream was begun after the client had gone */
	else if (c->lingering && !c->broken && http_raw_lingers(c))
		http_conn_wait(c, LINGER_MS);
	else
		conn_close(c);
}

void http_conn_abandon_soon(struct connection *c)
{
	uv_timer_start(&c->timer, conn_timeout, 0, 0);
}

uint64_t http_conn_idle_ms(const struct connection *c)
{
	return c->raw ? RAW_IDLE_MS : IDLE_MS;
}

void http_conn_wait(struct connection *c, uint64_t ms)
{
	if (!c->broken && !c->closing)
		uv_timer_start(&c->timer, conn_timeout, ms, 0);
}

static void conn_break(struct connection *c)
{
	if (c->closing)
		return;
	c->broken = true;
	uv_timer_start(&c->timer, conn_timeout, 0, 0);
}

static void on_ready(uv_poll_t *poll, int status, int events);

static void conn_poll(struct connection *c, int events)
{
	if (c->events == events || c->closing)
		return;
	c->events = events;
	if (events)
		uv_poll_start(&c->poll, events, on_ready);
	else
		uv_poll_stop(&c->poll);
}

static size_t pending(const struct connection *c)
{
	return c->plain.len + c->out.len - c->sent;
}

void http_conn_poll_again(struct connection *c)
{
	const struct http_exchange *e = c->exchange;
	bool paused = c->raw && e && e->paused, to_deliver = c->raw && e && !paused && c->in.len;
	bool want_write = pending(c) > 0 || (e && e->on_drain) || to_deliver;
	bool want_read = !c->eof && (!c->close_when_sent || (c->raw && e)) && !paused && c->in.len < AHEAD_BYTES_MAX;

	conn_poll(c, (want_read ? UV_READABLE : 0) | (want_write ? UV_WRITABLE : 0));
}

static int send_some(struct connection *c, struct str *from)
{
	while (c->sent < from->len) {
		ssize_t n = send(c->fd, from->buf + c->sent, from->len - c->sent, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
		c->sent += (size_t)n;
		http_conn_wait(c, http_conn_idle_ms(c));
	}
	c->sent = 0;
	if (from->cap > FLUSH_BYTES)
		str_done(from);
	else
		str_reset(from);
	return 0;
}

static int send_all(struct connection *c)
{
	struct error err = ERROR_INIT;

	if (!c->tls)
		return send_some(c, &c->plain);
	if (c->plain.len) {
		int r = tls_conn_write(c->tls, c->plain.buf, c->plain.len, &c->out, &err);

		if (r < 0)
			return r;
		if (c->plain.cap > FLUSH_BYTES)
			str_done(&c->plain);
		else
			str_reset(&c->plain);
	}
	return send_some(c, &c->out);
}

static void linger(struct connection *c)
{
	if (c->tls && !c->lingering) {
		tls_conn_shutdown(c->tls, &c->out);
		if (send_some(c, &c->out) < 0)
			conn_break(c);
	}
	c->lingering = true;
	shutdown(c->fd, SHUT_WR);
	if (c->eof) {
		conn_break(c);
		return;
	}
	conn_poll(c, UV_READABLE);
	http_conn_wait(c, LINGER_MS);
}

void http_conn_flush(struct connection *c)
{
	if (c->broken || c->closing || c->lingering)
		return;
	if (send_all(c) < 0) {
		conn_break(c);
		return;
	}
	if (pending(c) == 0 && c->exchange && c->exchange->streaming && !c->raw)
		uv_timer_stop(&c->timer); /* nobody owes anything */
	if (pending(c) == 0 && c->close_when_sent && !c->exchange) {
		linger(c);
		return;
	}
	http_conn_poll_again(c);
}

static void write_head(struct http_exchange *e, int status, const char *content_type)
{
	struct connection *c = e->conn;
	struct str *out = &c->plain;
	char date[64];
	time_t now = time(NULL);
	struct tm tm;

	gmtime_r(&now, &tm);
	strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
	http1_write_status(out, status);
	if (content_type)
		http1_write_field(out, "Content-Type", content_type);
	http1_write_field(out, "Date", date);
	http1_write_field(out, "Cache-Control", "no-cache, private");
	str_add_bytes(out, str_get(&e->headers), e->headers.len);
	if (!c->parser.keep_alive || c->eof)
		c->close_when_sent = true;
	if (c->close_when_sent)
		http1_write_field(out, "Connection", "close");
}

/* The exchange is over; the next request, if it is here already. */
static void exchange_end(struct http_exchange *e)
{
	struct connection *c = e->conn;

	exchange_free(e);
	if (c->closing) {
		conn_close_handles(c); /* conn_close() waited for us */
		return;
	}
	http_conn_wait(c, http_conn_idle_ms(c));
	if (!c->close_when_sent)
		http1_next(&c->parser);
	str_done(&c->body);
	http_conn_flush(c);
	if (!c->reading && !c->in_handler && !c->broken && !c->closing && !c->close_when_sent)
		process(c);
}

void http_add_header(struct http_exchange *exchange, const char *name, const char *value)
{
	http1_write_field(&exchange->headers, name, value);
}

void http_respond(struct http_exchange *e, int status, const char *content_type, const void *body, size_t len)
{
	struct connection *c = e->conn;

	assert(!e->streaming);
	if (!c->closing) {
		write_head(e, status, content_type);
		http1_write_fieldf(&c->plain, "Content-Length", "%zu", len);
		http1_write_head_end(&c->plain);
		if (!e->head_only)
			str_add_bytes(&c->plain, body, len);
	}
	exchange_end(e);
}

void http_stream_begin(struct http_exchange *e, int status, const char *content_type, void (*on_closed)(void *data),
	void *data)
{
	struct connection *c = e->conn;

	e->streaming = true;
	e->on_closed = on_closed;
	e->closed_data = data;
	if (c->closing) {
		http_conn_abandon_soon(c);
		return;
	}
	e->chunked = c->parser.minor > 0;
	if (!e->chunked)
		c->close_when_sent = true;
	write_head(e, status, content_type);
	if (e->chunked)
		http1_write_field(&c->plain, "Transfer-Encoding", "chunked");
	http1_write_head_end(&c->plain);
	uv_timer_stop(&c->timer);
	http_conn_flush(c);
}

int http_stream_write(struct http_exchange *e, const void *p, size_t len)
{
	struct connection *c = e->conn;

	if (c->closing || c->broken || e->head_only || len == 0)
		return 0;
	if (pending(c) > STREAM_PENDING_MAX)
		return -ENOBUFS;
	if (pending(c) == 0)
		http_conn_wait(c, http_conn_idle_ms(c));
	if (e->chunked)
		http1_write_chunk(&c->plain, p, len);
	else
		str_add_bytes(&c->plain, p, len);
	if (c->plain.len >= FLUSH_BYTES)
		http_conn_flush(c);
	else
		http_conn_poll_again(c);
	return 0;
}

size_t http_stream_pending(const struct http_exchange *e)
{
	return pending(e->conn);
}

void http_stream_on_drain(struct http_exchange *e, void (*on_drain)(void *data), void *data)
{
	e->on_drain = on_drain;
	e->drain_data = data;
	if (!e->conn->closing && !e->conn->broken)
		http_conn_poll_again(e->conn);
}

void http_stream_end(struct http_exchange *e)
{
	if (e->chunked && !e->conn->closing && !e->head_only)
		http1_write_chunk_end(&e->conn->plain);
	exchange_end(e);
}

const char *http_header(const struct http_exchange *exchange, const char *name)
{
	return http1_header(&exchange->conn->parser, name);
}

char *http_query(const struct http_exchange *exchange, const char *name)
{
	return url_query_get(exchange->request.query, name);
}

/* Path and query of the target; NULL: broken. */
static char *target_path(const char *target, const char **ret_query)
{
	const char *scheme = strstr(target, "://"), *mark;
	char *path = NULL;

	if (*target != '/' && scheme) {
		target = strchr(scheme + 3, '/');
		if (!target)
			target = "/";
	}
	mark = strchr(target, '?');
	*ret_query = mark ? mark + 1 : "";
	return url_decode(target, mark ? (size_t)(mark - target) : strlen(target), false, &path) < 0 ? NULL : path;
}

static void refuse(struct connection *c, int status, const char *why)
{
	_cleanup_free_ char *text = xasprintf("%s\n", why);

	c->close_when_sent = true;
	http1_write_status(&c->plain, status);
	http1_write_field(&c->plain, "Content-Type", "text/plain");
	http1_write_field(&c->plain, "Connection", "close");
	http1_write_fieldf(&c->plain, "Content-Length", "%zu", strlen(text));
	http1_write_head_end(&c->plain);
	str_add(&c->plain, text);
	http_conn_flush(c);
}

static int64_t peer_uid(int fd)
{
	struct ucred cred = { .uid = (uid_t)-1 };
	struct sockaddr_storage address;
	socklen_t len = sizeof(address), cred_len = sizeof(cred);

	if (getsockname(fd, (struct sockaddr *)&address, &len) < 0 || address.ss_family != AF_UNIX ||
		getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &cred_len) < 0)
		return -1;
	return cred.uid;
}

static void dispatch(struct connection *c)
{
	struct http_exchange *e = xnew(struct http_exchange);

	e->conn = c;
	c->exchange = e;
	e->path = target_path(c->parser.target, &e->request.query);
	if (!e->path) {
		exchange_free(e);
		refuse(c, 400, "the path of the request has a broken escape");
		return;
	}
	e->head_only = str_eq(c->parser.method, "HEAD");
	e->request.method = e->head_only ? "GET" : c->parser.method;
	e->request.path = e->path;
	e->request.body = str_get(&c->body);
	e->request.body_len = c->body.len;
	e->request.peer_uid = peer_uid(c->fd);
	e->request.peer_user = c->tls ? tls_conn_peer(c->tls) : NULL;
	uv_timer_stop(&c->timer);
	c->in_handler = true;
	c->server->handle(c->server->context, e, &e->request);
	c->in_handler = false;
}

/* One event of the parser. False: nothing more can be done now. */
static bool step(struct connection *c, struct bytes *in)
{
	struct http1_event ev;
	struct error err = ERROR_INIT;

	if (http1_read(&c->parser, in, &ev, &err) < 0) {
		refuse(c, c->parser.answer ? c->parser.answer : 400, err.text);
		return false;
	}
	switch (ev.kind) {
	case HTTP1_MORE:
		return false;
	case HTTP1_HEAD:
		if (c->parser.expect_continue) {
			str_add(&c->plain, "HTTP/1.1 100 Continue\r\n\r\n");
			http_conn_flush(c);
		}
		http_conn_wait(c, BODY_MS);
		break;
	case HTTP1_BODY:
		str_add_bytes(&c->body, ev.body.ptr, ev.body.len);
		break;
	case HTTP1_END:
		dispatch(c);
		break;
	}
	return true;
}

static void process(struct connection *c)
{
	_cleanup_(str_done) struct str bytes = c->in;
	struct bytes in = { str_get(&bytes), bytes.len };

	c->in = STR_INIT;
	c->reading = true;
	while (!c->closing && !c->broken && !c->close_when_sent && !c->exchange && step(c, &in))
		;
	c->reading = false;
	if (c->closing || c->broken)
		return;
	if (in.len && (!c->close_when_sent || c->raw))
		str_add_bytes(&c->in, in.ptr, in.len);
	if (c->eof && !c->exchange) {
		c->close_when_sent = true;
		http_conn_flush(c);
		return;
	}
	http_conn_poll_again(c);
}

/* Bytes of the network, decrypted, to c->in. Negative: the connection is of no use. 0: end of file. */
static ssize_t read_some(struct connection *c)
{
	char buf[READ_BYTES];
	struct error err = ERROR_INIT;
	ssize_t n = recv(c->fd, buf, sizeof(buf), MSG_DONTWAIT);

	if (n <= 0)
		return n < 0 ? -errno : 0;
	if (!c->tls) {
		str_add_bytes(&c->in, buf, (size_t)n);
		return n;
	}
	int r = tls_conn_feed(c->tls, buf, (size_t)n, &c->in, &c->out, &err);

	if (r < 0)
		log_debug("TLS connection ended error=%s", err.text);
	http_conn_flush(c);
	return r < 0 ? r : n;
}

/* After the last answer. */
static void drop_input(struct connection *c)
{
	char buf[READ_BYTES];
	ssize_t n = recv(c->fd, buf, sizeof(buf), MSG_DONTWAIT);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		conn_close(c);
}

static void on_readable(struct connection *c)
{
	if (c->lingering) {
		drop_input(c);
		return;
	}
	bool begins = !c->exchange && !c->in.len && !c->body.len && !c->parser.head.len;
	ssize_t n = read_some(c);

	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n < 0) {
		conn_close(c);
		return;
	}
	if (n > 0 && c->raw) {
		http_conn_wait(c, RAW_IDLE_MS);
		http_raw_deliver(c);
		http_conn_poll_again(c);
		return;
	}
	if (n == 0) {
		c->eof = true;
		if (!c->exchange || c->exchange->streaming) {
			conn_close(c);
			return;
		}
		http_conn_poll_again(c);
		return;
	}
	if (begins)
		http_conn_wait(c, HEAD_MS);
	else if (!c->exchange && c->body.len)
		http_conn_wait(c, BODY_MS);
	if (!c->exchange)
		process(c);
	else
		http_conn_poll_again(c);
}

static void on_writable(struct connection *c)
{
	http_conn_flush(c);
	struct http_exchange *e = c->exchange;

	if (c->broken || c->closing || pending(c) > 0)
		return;
	if (e && e->on_drain)
		e->on_drain(e->drain_data);
	if (c->raw && c->exchange && !c->closing && !c->broken) {
		http_raw_deliver(c);
		http_conn_poll_again(c);
	}
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
	struct connection *c = poll->data;

	if (status < 0) {
		conn_close(c);
		return;
	}
	if ((events & UV_WRITABLE) && !c->lingering)
		on_writable(c);
	if ((events & UV_READABLE) && !c->closing && !c->broken)
		on_readable(c);
}

static void conn_new(struct http_server *s, int fd)
{
	struct connection *c = xnew(struct connection);

	c->server = s;
	c->fd = fd;
	http1_init(&c->parser, HTTP1_REQUEST);
	c->parser.body_max = s->body_max;
	c->tls = s->tls ? tls_accept(s->tls) : NULL;
	c->poll.data = c->timer.data = c;
	c->next = s->first;
	if (s->first)
		s->first->prev = c;
	s->first = c;
	s->n++;
	uv_timer_init(s->loop, &c->timer);
	uv_poll_init(s->loop, &c->poll, fd);
	c->open_handles = 2;
	s->open_handles += 2;
	conn_poll(c, UV_READABLE);
	http_conn_wait(c, HEAD_MS);
}

static void on_connection(uv_poll_t *poll, int status, int events);

static void accept_again(uv_timer_t *timer)
{
	struct http_server *s = timer->data;

	uv_poll_start(&s->poll, UV_READABLE, on_connection);
}

static void on_connection(uv_poll_t *poll, int status, int events)
{
	static const char BUSY[] = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
	struct http_server *s = poll->data;

	(void)events;
	for (int i = 0; status == 0 && i < 16; i++) {
		int fd = accept4(s->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) {
			log_warning("cannot accept a connection error=%s", strerror(errno));
			uv_poll_stop(&s->poll);
			uv_timer_start(&s->pause, accept_again, ACCEPT_PAUSE_MS, 0);
		}
		if (fd < 0)
			return;
		if (s->n < HTTP_CONNECTIONS_MAX) {
			conn_new(s, fd);
			continue;
		}
		if (!s->tls && send(fd, BUSY, sizeof(BUSY) - 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			log_debug("a refused client is gone already");
		close(fd);
	}
}

struct http_server *http_server_new(uv_loop_t *loop, int listen_fd, struct tls_server *tls, size_t body_max,
	http_handler handle, void *context)
{
	struct http_server *s = xnew(struct http_server);

	s->loop = loop;
	s->fd = listen_fd;
	s->tls = tls;
	s->body_max = body_max;
	s->handle = handle;
	s->context = context;
	s->open_handles = 2;
	s->poll.data = s->pause.data = s;
	uv_poll_init(loop, &s->poll, listen_fd);
	uv_timer_init(loop, &s->pause);
	uv_poll_start(&s->poll, UV_READABLE, on_connection);
	return s;
}

static void listener_closed(uv_handle_t *handle)
{
	struct http_server *s = handle->data;

	if (handle == (uv_handle_t *)&s->poll)
		close(s->fd);
	server_handle_closed(s);
}

void http_server_close(struct http_server *s, void (*closed)(void *data), void *data)
{
	s->closing = true;
	s->closed = closed;
	s->closed_data = data;
	for (struct connection *c = s->first, *next; c; c = next) {
		next = c->next;
		conn_close(c);
	}
	uv_close((uv_handle_t *)&s->poll, listener_closed);
	uv_close((uv_handle_t *)&s->pause, listener_closed);
}

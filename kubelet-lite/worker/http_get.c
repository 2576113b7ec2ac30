/* http_get.c - purpose: one GET as probes and hooks make it. */
#include "kubelet-lite/worker/http_get.h"

#include "common/net/tls.h"
#include "common/wire/http1.h"

#include <stdio.h>
#include <strings.h>

enum { REDIRECTS_MAX = 10, READ_BYTES = 4096, RESPONSE_MAX = 128 * 1024 };

struct http_get {
	uv_loop_t *loop;
	uv_timer_t later;
	struct sock_address address;
	char *host; /* of the URL, without port */
	int port;
	char *path;
	bool https;
	struct strv names, values; /* headers as given */
	char *user_agent;
	http_get_cb done;
	void *data;
	bool finished;
	unsigned handles;
	int redirects;
	int late_status;
	char *late_text;
	struct connection *connection;
	struct tls_client *tls;
};

/* One connection; a redirect makes another. */
struct connection {
	struct http_get *get; /* NULL: given up */
	uv_tcp_t tcp;
	uv_connect_t connect;
	uv_write_t write;
	struct str out;	    /* the request, then bytes of TLS */
	struct str sending; /* what the kernel is given */
	struct tls_conn *tls;
	struct http1 parser;
	size_t seen;
	char buffer[READ_BYTES];
	bool writing;
};

static void maybe_free(struct http_get *g)
{
	if (g->handles)
		return;
	free(g->host);
	free(g->path);
	free(g->user_agent);
	free(g->late_text);
	strv_done(&g->names);
	strv_done(&g->values);
	tls_client_free(g->tls);
	free(g);
}

static void on_later_closed(uv_handle_t *handle)
{
	struct http_get *g = handle->data;

	g->handles--;
	maybe_free(g);
}

static void on_connection_closed(uv_handle_t *handle)
{
	struct connection *c = handle->data;

	str_done(&c->out);
	str_done(&c->sending);
	http1_done(&c->parser);
	tls_conn_free(c->tls);
	free(c);
}

static void drop_connection(struct http_get *g)
{
	if (!g->connection)
		return;
	g->connection->get = NULL;
	uv_close((uv_handle_t *)&g->connection->tcp, on_connection_closed);
	g->connection = NULL;
}

void http_get_cancel(struct http_get *g)
{
	if (g->finished)
		return;
	g->finished = true;
	drop_connection(g);
	uv_close((uv_handle_t *)&g->later, on_later_closed);
}

static void finish(struct http_get *g, int status, const char *text)
{
	http_get_cb done = g->done;
	void *data = g->data;

	if (g->finished)
		return;
	http_get_cancel(g);
	done(data, status, text);
}

static void on_later(uv_timer_t *timer)
{
	struct http_get *g = timer->data;
	_cleanup_free_ char *text = steal(g->late_text);

	finish(g, g->late_status, text);
}

static void finish_later(struct http_get *g, const char *text)
{
	g->late_text = xstrdup(text);
	uv_timer_start(&g->later, on_later, 0, 0);
}

static const char *given(const struct http_get *g, const char *name)
{
	for (size_t i = 0; i < g->names.n; i++)
		if (strcasecmp(g->names.v[i], name) == 0)
			return g->values.v[i];
	return NULL;
}

/* User-Agent and Accept have defaults; given with an empty value they are left out. */
static void write_request(const struct http_get *g, struct str *out)
{
	const char *host = given(g, "Host");
	_cleanup_free_ char *own =
		strchr(g->host, ':') ? xasprintf("[%s]:%d", g->host, g->port) : xasprintf("%s:%d", g->host, g->port);

	http1_write_request(out, "GET", g->path);
	http1_write_field(out, "Host", str_empty(host) ? own : host);
	if (!given(g, "User-Agent"))
		http1_write_field(out, "User-Agent", g->user_agent);
	if (!given(g, "Accept"))
		http1_write_field(out, "Accept", "*/*");
	for (size_t i = 0; i < g->names.n; i++) {
		bool special = strcasecmp(g->names.v[i], "User-Agent") == 0 || strcasecmp(g->names.v[i], "Accept") == 0;

		if (strcasecmp(g->names.v[i], "Host") != 0 && (!special || *g->values.v[i]))
			http1_write_field(out, g->names.v[i], g->values.v[i]);
	}
	http1_write_field(out, "Connection", "close");
	http1_write_head_end(out);
}

static void open_connection(struct http_get *g);

/* True when the request goes on elsewhere; else the status stands. */
static bool redirect(struct http_get *g, const char *location)
{
	const char *p = location, *scheme = strstr(location, "://");
	size_t host_len;
	int port = g->port;
	bool https = g->https;

	if (*location == '/' && location[1] != '/') {
		free(g->path);
		g->path = xstrdup(location);
		return true;
	}
	if (!scheme)
		return false;
	https = strncasecmp(location, "https", 5) == 0;
	p = scheme + 3;
	host_len = *p == '[' ? strcspn(p, "]") + 1 : strcspn(p, ":/?#");
	_cleanup_free_ char *host =
		*p == '[' ? xstrndup(p + 1, host_len > 2 ? host_len - 2 : 0) : xstrndup(p, host_len);
	const char *own = str_empty(given(g, "Host")) ? g->host : given(g, "Host");
	size_t own_len = strchr(own, ':') == strrchr(own, ':') ? strcspn(own, ":") : strlen(own);

	if (strlen(host) != own_len || strncasecmp(host, own, own_len) != 0)
		return false;
	p += host_len;
	port = *p == ':' ? atoi(p + 1) : https ? 443 : 80;
	p += strcspn(p, "/?#");
	if (port < 1 || port > 65535)
		return false;
	free(g->path);
	g->path = *p == '/' ? xstrdup(p) : xasprintf("/%s", p);
	g->https = https;
	g->port = port;
	if (g->address.sa.sa_family == AF_INET6)
		((struct sockaddr_in6 *)&g->address.storage)->sin6_port = htons((uint16_t)port);
	else
		((struct sockaddr_in *)&g->address.storage)->sin_port = htons((uint16_t)port);
	return true;
}

static void on_head(struct http_get *g, const struct http1 *parser)
{
	const char *location = http1_header(parser, "Location");
	int status = parser->status;
	char text[64];

	if (status >= 300 && status < 400 && status != 304 && location) {
		if (++g->redirects > REDIRECTS_MAX) {
			finish(g, 0, "stopped after 10 redirects");
			return;
		}
		_cleanup_free_ char *copy = xstrdup(location);
		if (redirect(g, copy)) {
			drop_connection(g);
			open_connection(g);
			return;
		}
	}
	snprintf(text, sizeof(text), "HTTP probe failed with statuscode: %d", status);
	finish(g, status, text);
}

static void feed(struct connection *c, const char *p, size_t len)
{
	struct bytes in = { p, len };
	struct error err = ERROR_INIT;

	for (;;) {
		struct http1_event event;

		if (http1_read(&c->parser, &in, &event, &err) < 0) {
			finish(c->get, 0, err.text);
			return;
		}
		if (event.kind == HTTP1_MORE)
			return;
		if (event.kind == HTTP1_HEAD) {
			on_head(c->get, &c->parser);
			return;
		}
	}
}

static void flush(struct connection *c);

static void on_written(uv_write_t *request, int status)
{
	struct connection *c = request->data;

	c->writing = false;
	str_reset(&c->sending);
	if (!c->get)
		return;
	if (status < 0)
		finish(c->get, 0, uv_strerror(status));
	else
		flush(c);
}

static void flush(struct connection *c)
{
	uv_buf_t buf;

	if (c->writing || !c->out.len)
		return;
	struct str empty = c->sending;

	c->sending = c->out;
	c->out = empty;
	c->writing = true;
	c->write.data = c;
	buf = uv_buf_init(c->sending.buf, (unsigned)c->sending.len);
	int r = uv_write(&c->write, (uv_stream_t *)&c->tcp, &buf, 1, on_written);
	if (r < 0) {
		c->writing = false;
		finish(c->get, 0, uv_strerror(r));
	}
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
	struct connection *c = handle->data;

	(void)suggested;
	*buf = uv_buf_init(c->buffer, sizeof(c->buffer));
}

static void take(struct connection *c, const char *p, size_t len)
{
	struct str plain = STR_INIT;
	struct error err = ERROR_INIT;

	c->seen += len;
	if (c->seen > RESPONSE_MAX) {
		finish(c->get, 0, "the head of the answer is too long");
		return;
	}
	if (!c->tls) {
		feed(c, p, len);
		return;
	}
	int r = tls_conn_feed(c->tls, p, len, &plain, &c->out, &err);
	/* The answer and the close may come at once. */
	if (plain.len)
		feed(c, plain.buf, plain.len);
	if (c->get && r < 0)
		finish(c->get, 0, err.text);
	else if (c->get)
		flush(c);
	str_done(&plain);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct connection *c = stream->data;

	if (!c->get || n == 0)
		return;
	if (n < 0)
		finish(c->get, 0, n == UV_EOF ? "EOF" : uv_strerror((int)n));
	else
		take(c, buf->base, (size_t)n);
}

static void on_connect(uv_connect_t *request, int status)
{
	struct connection *c = request->data;
	struct error err = ERROR_INIT;
	struct str text = STR_INIT;

	if (!c->get)
		return;
	if (status < 0) {
		_cleanup_free_ char *why = xasprintf("Get \"%s://%s:%d%s\": dial tcp %s:%d: connect: %s",
			c->get->https ? "https" : "http", c->get->host, c->get->port, c->get->path, c->get->host,
			c->get->port, uv_strerror(status));
		finish(c->get, 0, why);
		return;
	}
	write_request(c->get, &text);
	int r = 0;
	if (c->tls)
		r = tls_conn_write(c->tls, text.buf, text.len, &c->out, &err);
	else
		str_add_bytes(&c->out, text.buf, text.len);
	str_done(&text);
	if (r < 0) {
		finish(c->get, 0, err.text);
		return;
	}
	uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read);
	flush(c);
}

static void open_connection(struct http_get *g)
{
	struct connection *c = xnew(struct connection);
	struct error err = ERROR_INIT;

	c->get = g;
	g->connection = c;
	http1_init(&c->parser, HTTP1_RESPONSE);
	uv_tcp_init(g->loop, &c->tcp);
	c->tcp.data = c->connect.data = c;
	if (g->https && !g->tls) {
		if (tls_client_new(NULL, NULL, NULL, NULL, &g->tls, &err) < 0) {
			finish_later(g, err.text);
			return;
		}
		tls_client_trust_all(g->tls);
	}
	if (g->https)
		c->tls = tls_connect(g->tls);
	int r = uv_tcp_connect(&c->connect, &c->tcp, &g->address.sa, on_connect);
	if (r < 0)
		finish_later(g, uv_strerror(r));
}

struct http_get *http_get_start(uv_loop_t *loop, const struct sock_address *address, const struct handler *h,
	const char *host, int port, const char *user_agent, http_get_cb done, void *data)
{
	struct http_get *g = xnew(struct http_get);

	g->loop = loop;
	g->address = *address;
	g->host = xstrdup(host);
	g->port = port;
	g->path = *h->path == '/' ? xstrdup(h->path) : xasprintf("/%s", h->path);
	g->https = h->https;
	g->user_agent = xstrdup(user_agent);
	g->done = done;
	g->data = data;
	for (size_t i = 0; i < h->headers.n; i++) {
		strv_add(&g->names, h->headers.v[i].key);
		strv_add(&g->values, h->headers.v[i].value);
	}
	uv_timer_init(loop, &g->later);
	g->later.data = g;
	g->handles = 1;
	open_connection(g);
	return g;
}

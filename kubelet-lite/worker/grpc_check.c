/* grpc_check.c - purpose: one call of grpc.health.v1.Health/Check. */
#include "kubelet-lite/worker/grpc_check.h"

#include "common/wire/grpc.h"
#include "common/wire/h2.h"

enum { READ_BYTES = 4096, ANSWER_MAX = 1024, SERVICE_MAX = 1000 };

struct grpc_check {
	uv_tcp_t tcp;
	uv_connect_t connect;
	uv_write_t write;
	uv_timer_t later;
	struct h2_conn *h2;
	struct h2_stream *stream;
	struct grpc_reader reader;
	grpc_check_cb done;
	void *data;
	char *authority;
	char *service;
	char *user_agent;
	char *late_text;
	bool finished;
	bool writing;
	unsigned handles;
	int serving; /* status of the answer; -1: none yet */
	struct str out;
	char buffer[READ_BYTES];
};

static void on_closed(uv_handle_t *handle)
{
	struct grpc_check *c = handle->data;

	if (--c->handles)
		return;
	h2_conn_free(c->h2);
	grpc_reader_done(&c->reader);
	str_done(&c->out);
	free(c->authority);
	free(c->service);
	free(c->user_agent);
	free(c->late_text);
	free(c);
}

void grpc_check_cancel(struct grpc_check *c)
{
	if (c->finished)
		return;
	c->finished = true;
	uv_close((uv_handle_t *)&c->tcp, on_closed);
	uv_close((uv_handle_t *)&c->later, on_closed);
}

static void on_later(uv_timer_t *timer)
{
	struct grpc_check *c = timer->data;
	grpc_check_cb done = c->done;
	void *data = c->data;
	bool serving = c->serving == 1;
	_cleanup_free_ char *text = steal(c->late_text);

	grpc_check_cancel(c);
	done(data, serving, text ? text : "");
}

/* From inside events of h2 nothing may be freed: the report waits for the next turn. */
static void finish(struct grpc_check *c, const char *text)
{
	if (c->finished || c->late_text)
		return;
	c->late_text = xstrdup(text);
	uv_timer_start(&c->later, on_later, 0, 0);
}

/* ---- HTTP/2 */

/* HealthCheckResponse: field 1, varint. */
static int parse_answer(struct bytes message)
{
	const unsigned char *p = (const unsigned char *)message.ptr;

	if (message.len == 0)
		return 0;
	return message.len >= 2 && p[0] == 0x08 && p[1] < 0x80 ? p[1] : -1;
}

static void on_data(void *data, struct h2_stream *stream, const void *p, size_t len)
{
	struct grpc_check *c = data;
	const uint8_t *bytes = p;
	struct bytes message;

	(void)stream;
	if (grpc_reader_next(&c->reader, &bytes, &len, &message, NULL) == 1)
		c->serving = parse_answer(message);
}

static void on_end(void *data, struct h2_stream *stream)
{
	struct grpc_check *c = data;
	const char *status = h2_header(stream, "grpc-status"), *message = h2_header(stream, "grpc-message");
	_cleanup_free_ char *text = NULL;

	if (!status || grpc_status_parse(status) != ERROR_OK)
		text = xasprintf("error: health rpc probe failed: %s %s",
			status ? error_code_name(grpc_status_parse(status)) : "no gRPC status", message ? message : "");
	else if (c->serving != 1)
		text = xasprintf("service unhealthy (responded with \"%s\")", c->serving == 2	? "NOT_SERVING"
									      : c->serving == 3 ? "SERVICE_UNKNOWN"
												: "UNKNOWN");
	if (text)
		c->serving = 0;
	finish(c, text ? text : "");
}

static void on_close(void *data, struct h2_stream *stream, uint32_t code)
{
	struct grpc_check *c = data;

	(void)stream;
	(void)code;
	c->stream = NULL;
	if (!c->late_text)
		c->serving = 0;
	finish(c, "error: health rpc probe failed: the stream was reset");
}

static void on_head(void *data, struct h2_stream *stream)
{
	(void)data;
	(void)stream;
}

static const struct h2_events events = {
	.on_head = on_head, .on_data = on_data, .on_end = on_end, .on_close = on_close
};

/* ---- the connection */

static void flush(struct grpc_check *c);

static void on_written(uv_write_t *request, int status)
{
	struct grpc_check *c = request->data;

	c->writing = false;
	if (c->finished)
		return;
	if (status < 0)
		finish(c, uv_strerror(status));
	else
		flush(c);
}

static void flush(struct grpc_check *c)
{
	const uint8_t *p;
	ssize_t n;

	if (c->writing)
		return;
	str_reset(&c->out);
	while ((n = h2_conn_pull(c->h2, &p)) > 0)
		str_add_bytes(&c->out, p, (size_t)n);
	if (!c->out.len)
		return;
	uv_buf_t buf = uv_buf_init(c->out.buf, (unsigned)c->out.len);
	c->write.data = c;
	c->writing = uv_write(&c->write, (uv_stream_t *)&c->tcp, &buf, 1, on_written) == 0;
	if (!c->writing)
		finish(c, "error: write");
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
	struct grpc_check *c = handle->data;

	(void)suggested;
	*buf = uv_buf_init(c->buffer, sizeof(c->buffer));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct grpc_check *c = stream->data;
	struct error err = ERROR_INIT;

	if (c->finished || n == 0)
		return;
	if (n < 0) {
		finish(c, n == UV_EOF ? "error: health rpc probe failed: EOF" : uv_strerror((int)n));
		return;
	}
	if (h2_conn_feed(c->h2, buf->base, (size_t)n, &err) < 0)
		finish(c, err.text);
	else
		flush(c);
}

static void send_request(struct grpc_check *c)
{
	const struct h2_header headers[] = { { ":method", "POST" }, { ":scheme", "http" },
		{ ":path", "/grpc.health.v1.Health/Check" }, { ":authority", c->authority }, { "te", "trailers" },
		{ "content-type", "application/grpc" }, { "user-agent", c->user_agent } };
	size_t len = strlen(c->service), message = len ? len + (len < 128 ? 2 : 3) : 0;

	c->stream = h2_request(c->h2, headers, ARRAY_LEN(headers));
	if (!c->stream) {
		finish(c, "error: no stream");
		return;
	}
	uint8_t *p = h2_stream_add(c->stream, GRPC_PREFIX_BYTES + message);
	grpc_prefix_write(p, message);
	p += GRPC_PREFIX_BYTES;
	if (len) {
		*p++ = 0x0a; /* field 1, length-delimited */
		if (len >= 128)
			*p++ = (uint8_t)(len & 0x7f) | 0x80;
		*p++ = (uint8_t)(len >= 128 ? len >> 7 : len);
		memcpy(p, c->service, len);
	}
	h2_stream_finish(c->stream, NULL, 0);
	flush(c);
}

static void on_connect(uv_connect_t *request, int status)
{
	struct grpc_check *c = request->data;

	if (c->finished)
		return;
	if (status < 0) {
		_cleanup_free_ char *text = xasprintf(
			"error: failed to connect service at \"%s\": connect: %s", c->authority, uv_strerror(status));
		finish(c, text);
		return;
	}
	uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read);
	send_request(c);
}

struct grpc_check *grpc_check_start(uv_loop_t *loop, const struct sock_address *address, const char *authority,
	const char *service, const char *user_agent, grpc_check_cb done, void *data)
{
	struct grpc_check *c = xnew(struct grpc_check);

	*c = (struct grpc_check){
		.done = done, .data = data, .handles = 2, .serving = -1, .reader = GRPC_READER_INIT(ANSWER_MAX)
	};
	c->authority = xstrdup(authority);
	c->service = xstrndup(service, SERVICE_MAX);
	c->user_agent = xstrdup(user_agent);
	c->h2 = h2_client_new(&events, c);
	uv_tcp_init(loop, &c->tcp);
	uv_timer_init(loop, &c->later);
	c->tcp.data = c->later.data = c->connect.data = c;
	int r = uv_tcp_connect(&c->connect, &c->tcp, &address->sa, on_connect);
	if (r < 0)
		finish(c, uv_strerror(r));
	return c;
}

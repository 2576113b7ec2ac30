/*
 * h2.c - purpose: one HTTP/2 connection, server or client side, as bytes in and bytes out (nghttp2 inside).
 *
 * nghttp2's own checks of HTTP semantics are off, because they refuse the ":authority: /run/x.sock" that several gRPC
 * clients send on Unix sockets; what matters to gRPC is checked by our users. Header values with a NUL are refused
 * here, which lets headers be kept as "name\0value\0" in one buffer.
 */
#include "common/wire/h2.h"
#include "common/base/str.h"

#include <errno.h>
#include <nghttp2/nghttp2.h>

/* The default windows of 64 kB stall messages of several MB (facts: libraries 3.3). */
enum { STREAM_WINDOW = 1024 * 1024, CONNECTION_WINDOW = 4 * 1024 * 1024, HEADERS_SENT_MAX = 16, HEADER_OVERHEAD = 32 };

struct h2_conn {
	nghttp2_session *session;
	const struct h2_events *events;
	void *data;
	struct h2_stream *streams;
	size_t n_streams;
	bool server;
};

struct h2_stream {
	struct h2_conn *conn;
	struct h2_stream *prev, *next;
	int32_t id;
	void *user;
	struct str headers;  /* "name\0value\0" ... */
	size_t headers_size; /* as HTTP/2 counts it */
	bool head_done;
	bool ended; /* on_end was called */
	struct str out;
	size_t out_sent;
	bool deferred; /* nghttp2 waits for h2_stream_resume */
	bool finish;
	struct str trailers; /* as headers */
	size_t n_trailers;
};

static struct h2_stream *stream_new(struct h2_conn *conn, int32_t id)
{
	struct h2_stream *s = xnew(struct h2_stream);

	s->conn = conn;
	s->id = id;
	s->next = conn->streams;
	if (s->next)
		s->next->prev = s;
	conn->streams = s;
	conn->n_streams++;
	return s;
}

static void stream_close(struct h2_stream *s, uint32_t code)
{
	struct h2_conn *conn = s->conn;

	conn->n_streams--; /* first: the event may ask for the number of those that are left */
	conn->events->on_close(conn->data, s, code);
	if (s->prev)
		s->prev->next = s->next;
	else
		conn->streams = s->next;
	if (s->next)
		s->next->prev = s->prev;
	str_done(&s->headers);
	str_done(&s->out);
	str_done(&s->trailers);
	free(s);
}

static struct h2_stream *stream_get(nghttp2_session *session, int32_t id)
{
	return id == 0 ? NULL : nghttp2_session_get_stream_user_data(session, id);
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *data)
{
	struct h2_conn *conn = data;

	if (conn->server && frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		nghttp2_session_set_stream_user_data(
			session, frame->hd.stream_id, stream_new(conn, frame->hd.stream_id));
	return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
	const uint8_t *value, size_t value_len, uint8_t flags, void *data)
{
	struct h2_stream *s = stream_get(session, frame->hd.stream_id);

	(void)flags;
	(void)data;
	if (!s)
		return 0;
	s->headers_size += name_len + value_len + HEADER_OVERHEAD;
	if (s->headers_size > H2_HEADERS_MAX || memchr(name, 0, name_len) || memchr(value, 0, value_len))
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	str_add_bytes(&s->headers, name, name_len);
	str_add_char(&s->headers, '\0');
	str_add_bytes(&s->headers, value, value_len);
	str_add_char(&s->headers, '\0');
	return 0;
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *data)
{
	struct h2_conn *conn = data;
	struct h2_stream *s = stream_get(session, frame->hd.stream_id);

	if (frame->hd.type == NGHTTP2_GOAWAY && conn->events->on_goaway)
		conn->events->on_goaway(conn->data);
	if (!s || (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA))
		return 0;
	if (frame->hd.type == NGHTTP2_HEADERS && !s->head_done) {
		s->head_done = true;
		conn->events->on_head(conn->data, s);
	}
	if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM && !s->ended) {
		s->ended = true;
		conn->events->on_end(conn->data, s);
	}
	return 0;
}

/* A server that has answered before the request ended tells its client to stop (RFC 9113, 8.1). Submitted any earlier,
 * the reset would overtake the answer. */
static int on_frame_send(nghttp2_session *session, const nghttp2_frame *frame, void *data)
{
	struct h2_conn *conn = data;
	struct h2_stream *s = stream_get(session, frame->hd.stream_id);

	if (conn->server && s && !s->ended && (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
		frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
		nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_NO_ERROR);
	return 0;
}

static int on_data_chunk(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t len, void *data)
{
	struct h2_conn *conn = data;
	struct h2_stream *s = stream_get(session, id);

	(void)flags;
	if (s && len > 0)
		conn->events->on_data(conn->data, s, p, len);
	return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *data)
{
	struct h2_stream *s = stream_get(session, id);

	(void)data;
	if (s)
		stream_close(s, code);
	return 0;
}

static struct h2_conn *conn_new(bool server, const struct h2_events *events, void *data)
{
	struct h2_conn *conn = xnew(struct h2_conn);
	const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, server ? H2_STREAMS_MAX : 0 },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, H2_HEADERS_MAX },
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
	};
	nghttp2_session_callbacks *callbacks;
	nghttp2_option *option;
	int r;

	conn->server = server;
	conn->events = events;
	conn->data = data;
	if (nghttp2_session_callbacks_new(&callbacks) != 0 || nghttp2_option_new(&option) != 0)
		abort();
	nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame_recv);
	nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_send);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data_chunk);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
	nghttp2_option_set_no_http_messaging(option, 1);
	nghttp2_option_set_no_closed_streams(option, 1);
	r = server ? nghttp2_session_server_new2(&conn->session, callbacks, conn, option)
		   : nghttp2_session_client_new2(&conn->session, callbacks, conn, option);
	nghttp2_option_del(option);
	nghttp2_session_callbacks_del(callbacks);
	if (r != 0)
		abort(); /* out of memory is the only reason */
	/* A server may not speak of push. */
	nghttp2_submit_settings(conn->session, NGHTTP2_FLAG_NONE, settings, ARRAY_LEN(settings) - (server ? 1 : 0));
	nghttp2_session_set_local_window_size(conn->session, NGHTTP2_FLAG_NONE, 0, CONNECTION_WINDOW);
	return conn;
}

struct h2_conn *h2_server_new(const struct h2_events *events, void *data)
{
	return conn_new(true, events, data);
}

struct h2_conn *h2_client_new(const struct h2_events *events, void *data)
{
	return conn_new(false, events, data);
}

struct h2_conn *h2_conn_free(struct h2_conn *conn)
{
	if (!conn)
		return NULL;
	/* The session last: an on_close event may still use other streams of this connection. */
	while (conn->streams)
		stream_close(conn->streams, H2_INTERNAL_ERROR);
	nghttp2_session_del(conn->session);
	free(conn);
	return NULL;
}

int h2_conn_feed(struct h2_conn *conn, const void *p, size_t len, struct error *err)
{
	ssize_t n = nghttp2_session_mem_recv(conn->session, p, len);

	if (n < 0)
		return error_set(err, ERROR_UNAVAILABLE, "HTTP/2: %s", nghttp2_strerror((int)n));
	return 0;
}

ssize_t h2_conn_pull(struct h2_conn *conn, const uint8_t **ret)
{
	ssize_t n = nghttp2_session_mem_send(conn->session, ret);

	return n < 0 ? -EPIPE : n;
}

bool h2_conn_finished(const struct h2_conn *conn)
{
	return !nghttp2_session_want_read(conn->session) && !nghttp2_session_want_write(conn->session);
}

size_t h2_conn_streams(const struct h2_conn *conn)
{
	return conn->n_streams;
}

void h2_conn_notice(struct h2_conn *conn)
{
	nghttp2_submit_shutdown_notice(conn->session);
}

void h2_conn_goaway(struct h2_conn *conn)
{
	nghttp2_session_terminate_session(conn->session, NGHTTP2_NO_ERROR);
}

/* Returns n; flags 0, so that nghttp2 copies. */
static size_t to_nv(nghttp2_nv nv[HEADERS_SENT_MAX], const struct h2_header *headers, size_t n)
{
	size_t i;

	assert(n <= HEADERS_SENT_MAX);
	for (i = 0; i < n; i++)
		nv[i] = (nghttp2_nv){ (uint8_t *)headers[i].name, (uint8_t *)headers[i].value, strlen(headers[i].name),
			strlen(headers[i].value), NGHTTP2_NV_FLAG_NONE };
	return n;
}

static void submit_trailers(struct h2_stream *s)
{
	struct h2_header headers[HEADERS_SENT_MAX];
	nghttp2_nv nv[HEADERS_SENT_MAX];
	const char *p = s->trailers.buf;
	size_t i;

	for (i = 0; i < s->n_trailers; i++) {
		headers[i].name = p;
		headers[i].value = p + strlen(p) + 1;
		p = headers[i].value + strlen(headers[i].value) + 1;
	}
	nghttp2_submit_trailer(s->conn->session, s->id, nv, to_nv(nv, headers, s->n_trailers));
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *buf, size_t len, uint32_t *flags,
	nghttp2_data_source *source, void *data)
{
	struct h2_stream *s = source->ptr;
	size_t n = MIN(len, s->out.len - s->out_sent);

	(void)session;
	(void)id;
	(void)data;
	if (n > 0)
		memcpy(buf, s->out.buf + s->out_sent, n);
	s->out_sent += n;
	if (s->out_sent == s->out.len) {
		str_done(&s->out);
		s->out_sent = 0;
		if (s->finish) {
			*flags |= NGHTTP2_DATA_FLAG_EOF;
			if (s->n_trailers > 0) {
				*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
				submit_trailers(s);
			}
		} else if (n == 0) {
			s->deferred = true;
			return NGHTTP2_ERR_DEFERRED;
		}
	}
	return (ssize_t)n;
}

struct h2_stream *h2_request(struct h2_conn *conn, const struct h2_header *headers, size_t n)
{
	struct h2_stream *s;
	nghttp2_nv nv[HEADERS_SENT_MAX];
	nghttp2_data_provider provider = { .read_callback = read_body };
	int32_t id;

	if (!nghttp2_session_check_request_allowed(conn->session))
		return NULL;
	s = stream_new(conn, 0);
	provider.source.ptr = s;
	id = nghttp2_submit_request(conn->session, NULL, nv, to_nv(nv, headers, n), &provider, s);
	if (id < 0) {
		conn->streams = s->next;
		if (s->next)
			s->next->prev = NULL;
		conn->n_streams--;
		free(s);
		return NULL;
	}
	s->id = id;
	return s;
}

void h2_stream_respond(struct h2_stream *s, const struct h2_header *headers, size_t n)
{
	nghttp2_nv nv[HEADERS_SENT_MAX];
	nghttp2_data_provider provider = { .source.ptr = s, .read_callback = read_body };

	nghttp2_submit_response(s->conn->session, s->id, nv, to_nv(nv, headers, n), &provider);
}

void h2_stream_respond_only(struct h2_stream *s, const struct h2_header *headers, size_t n)
{
	nghttp2_nv nv[HEADERS_SENT_MAX];

	nghttp2_submit_response(s->conn->session, s->id, nv, to_nv(nv, headers, n), NULL);
}

static void stream_resume(struct h2_stream *s)
{
	if (!s->deferred)
		return;
	s->deferred = false;
	nghttp2_session_resume_data(s->conn->session, s->id);
}

uint8_t *h2_stream_add(struct h2_stream *s, size_t len)
{
	uint8_t *room;

	if (s->out_sent > s->out.len / 2) {
		str_consume(&s->out, s->out_sent);
		s->out_sent = 0;
	}
	str_reserve(&s->out, len + 1);
	room = (uint8_t *)s->out.buf + s->out.len;
	s->out.len += len;
	s->out.buf[s->out.len] = '\0';
	stream_resume(s);
	return room;
}

size_t h2_stream_pending(const struct h2_stream *s)
{
	return s->out.len - s->out_sent;
}

void h2_stream_finish(struct h2_stream *s, const struct h2_header *trailers, size_t n)
{
	size_t i;

	assert(n <= HEADERS_SENT_MAX && !s->finish);
	for (i = 0; i < n; i++) {
		str_add_bytes(&s->trailers, trailers[i].name, strlen(trailers[i].name) + 1);
		str_add_bytes(&s->trailers, trailers[i].value, strlen(trailers[i].value) + 1);
	}
	s->n_trailers = n;
	s->finish = true;
	stream_resume(s);
}

void h2_stream_reset(struct h2_stream *s, enum h2_code code)
{
	nghttp2_submit_rst_stream(s->conn->session, NGHTTP2_FLAG_NONE, s->id, code);
}

const char *h2_header(const struct h2_stream *s, const char *name)
{
	const char *p = s->headers.buf, *end = p + s->headers.len, *found = NULL;

	while (p && p < end) {
		const char *value = p + strlen(p) + 1;

		if (strcmp(p, name) == 0)
			found = value;
		p = value + strlen(value) + 1;
	}
	return found;
}

void h2_stream_set_user(struct h2_stream *s, void *user)
{
	s->user = user;
}

void *h2_stream_user(const struct h2_stream *s)
{
	return s->user;
}

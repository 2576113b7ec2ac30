/*
 * h2_pipe.c - purpose: carry one HTTP/2 connection (h2.h) over a Unix socket in a libuv loop.
 *
 * Sending is driven by an idle handle: while it is active the loop does not sleep, so a submit from any callback is
 * sent in the same or the next turn, and many submits in one turn are one write (facts: libraries 3.3, 8).
 */
#include "common/net/h2_pipe.h"

enum { BATCH_BYTES = 32 * 1024 };

static void on_handle_closed(uv_handle_t *handle)
{
	struct h2_pipe *pipe = handle->data;

	if (--pipe->handles > 0)
		return;
	pipe->h2 = h2_conn_free(pipe->h2);
	pipe->on_closed(pipe);
	str_done(&pipe->out);
	free(pipe);
}

void h2_pipe_close(struct h2_pipe *pipe, const struct error *why)
{
	if (pipe->closing)
		return;
	pipe->closing = true;
	if (why)
		pipe->error = *why;
	else
		error_set(&pipe->error, ERROR_UNAVAILABLE, "connection closed");
	uv_close((uv_handle_t *)&pipe->handle, on_handle_closed);
	uv_close((uv_handle_t *)&pipe->idle, on_handle_closed);
}

static void close_uv(struct h2_pipe *pipe, int r)
{
	struct error err;

	if (r == UV_EOF)
		error_set(&err, ERROR_UNAVAILABLE, "connection closed by the peer");
	else
		error_set(&err, ERROR_UNAVAILABLE, "connection: %s", uv_strerror(r));
	h2_pipe_close(pipe, &err);
}

static void on_written(uv_write_t *write, int status)
{
	struct h2_pipe *pipe = write->data;

	pipe->writing = false;
	str_reset(&pipe->out);
	if (status < 0)
		close_uv(pipe, status);
	else
		h2_pipe_kick(pipe);
}

/* Collects what HTTP/2 wants to send. False: the session is broken. */
static bool fill(struct h2_pipe *pipe)
{
	while (pipe->out.len < BATCH_BYTES) {
		const uint8_t *p;
		ssize_t n = h2_conn_pull(pipe->h2, &p);

		if (n < 0)
			return false;
		if (n == 0)
			break;
		str_add_bytes(&pipe->out, p, (size_t)n);
	}
	return true;
}

/* True while there is more to send now. */
static bool flush_once(struct h2_pipe *pipe)
{
	uv_buf_t buf;
	int r;

	if (!fill(pipe)) {
		h2_pipe_close(pipe, NULL);
		return false;
	}
	if (pipe->out.len == 0)
		return false;
	buf = uv_buf_init(pipe->out.buf, (unsigned)pipe->out.len);
	r = uv_try_write((uv_stream_t *)&pipe->handle, &buf, 1);
	if (r < 0 && r != UV_EAGAIN) {
		close_uv(pipe, r);
		return false;
	}
	str_consume(&pipe->out, r > 0 ? (size_t)r : 0);
	if (pipe->out.len == 0)
		return true;
	buf = uv_buf_init(pipe->out.buf, (unsigned)pipe->out.len);
	r = uv_write(&pipe->write, (uv_stream_t *)&pipe->handle, &buf, 1, on_written);
	if (r < 0)
		close_uv(pipe, r);
	else
		pipe->writing = true;
	return false;
}

static void on_idle(uv_idle_t *idle)
{
	struct h2_pipe *pipe = idle->data;

	uv_idle_stop(idle);
	if (pipe->closing || pipe->writing || !pipe->open)
		return;
	while (flush_once(pipe)) {
	}
	if (pipe->closing || pipe->writing)
		return;
	str_done(&pipe->out);
	if (h2_conn_finished(pipe->h2))
		h2_pipe_close(pipe, NULL);
}

void h2_pipe_kick(struct h2_pipe *pipe)
{
	if (!pipe->closing && pipe->open)
		uv_idle_start(&pipe->idle, on_idle);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
	(void)handle;
	*buf = uv_buf_init(xmalloc(suggested), (unsigned)suggested);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct h2_pipe *pipe = stream->data;
	struct error err = ERROR_INIT;

	if (n < 0) {
		close_uv(pipe, (int)n);
	} else if (n > 0 && !pipe->closing) {
		if (h2_conn_feed(pipe->h2, buf->base, (size_t)n, &err) < 0) {
			if (!pipe->closing && !pipe->writing)
				flush_once(pipe); /* a last GOAWAY */
			h2_pipe_close(pipe, &err);
		}
		h2_pipe_kick(pipe);
	}
	free(buf->base);
}

void h2_pipe_open(struct h2_pipe *pipe)
{
	int r = uv_read_start((uv_stream_t *)&pipe->handle, on_alloc, on_read);

	pipe->open = true;
	if (r < 0)
		close_uv(pipe, r);
	h2_pipe_kick(pipe);
}

struct h2_pipe *h2_pipe_new(uv_loop_t *loop, struct h2_conn *h2, void *owner, void (*on_closed)(struct h2_pipe *pipe))
{
	struct h2_pipe *pipe = xnew(struct h2_pipe);

	pipe->h2 = h2;
	pipe->owner = owner;
	pipe->on_closed = on_closed;
	pipe->handles = 2;
	uv_pipe_init(loop, &pipe->handle, 0);
	uv_idle_init(loop, &pipe->idle);
	pipe->handle.data = pipe->idle.data = pipe->write.data = pipe;
	return pipe;
}

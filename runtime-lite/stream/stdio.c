/*
 * stdio.c - purpose: move the bytes of one exec or attach.
 *
 *	            client's streams are there         process ends           output is at its end, all is told
 *	OPENING ------------------------------> RUNNING ------------> DRAINING ------------------------------> CLOSED
 *	   |                                       |                                                             ^
 *	   +---------------------------------------+---- the client goes (gone): stdio_finish() ends at once ----+
 */
#include "runtime-lite/stream/stdio.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>

#include "common/base/log.h"

enum {
	READ_BYTES = 32 * 1024,
	READ_ROUNDS = 8,
	OUTPUT_HIGH = 64 * 1024,     /* bytes that wait for the client: no more is read from the process */
	ANSWERS_HIGH = 1024 * 1024,  /* the same, of answers to pings: no more is read from the client */
	INPUT_HIGH = 256 * 1024,     /* bytes that wait for the process: no more is read from the client */
	TERMINAL_BYTES = 128 * 1024, /* what can be in a terminal when the process ends, at most */
	SIZE_WAIT_MS = 100,	     /* for the terminal's first size */
	START_WAIT_MS = 30 * 1000,   /* for the client's streams */
	GONE_FLUSH_MS = 30 * 1000,   /* for a process to take the last input of a client that has gone */
	ALIVE_MS = 15 * 1000,	     /* a client that waits for the process is told that we live */
};

struct output {
	uv_poll_t poll;
	int fd;		  /* -1: none, or at its end */
	bool settled;	  /* all that the process itself had printed has been read; while DRAINING */
	size_t since_end; /* bytes read since the process has ended */
	size_t capacity;  /* what can have been in it then */
};

struct stdio {
	uv_loop_t *loop;
	struct http_exchange *exchange; /* NULL: the client has gone, or has been told everything */
	struct session *session;
	struct session_wants wants;
	const struct stdio_owner *owner;
	void *data;
	struct output out[2];
	uv_poll_t in, conn;
	int in_fd, conn_fd, terminal;
	struct str input; /* for the process */
	bool input_ended, input_dead, input_told;
	bool ready, started, gone, paused, finishing, deadline, closing;
	bool size_known;
	struct pod_terminal_size size;
	uv_timer_t timer; /* START_WAIT, SIZE_WAIT, then DRAIN or GONE_FLUSH */
	uv_timer_t alive; /* while the client is made to wait */
	struct session_outcome outcome;
	char *message;
	unsigned open_handles;
};

static void advance(struct stdio *s);
static void poll_outputs(struct stdio *s);
static void read_outputs(struct stdio *s);
static void pause_client(struct stdio *s);

static void handle_closed(uv_handle_t *handle)
{
	struct stdio *s = handle->data;

	if (--s->open_handles > 0)
		return;
	s->owner->closed(s->data);
	session_free(s->session);
	str_done(&s->input);
	free(s->message);
	free(s);
}

/* The descriptor is closed after its poll has been taken off it. */
static void stop_poll(uv_poll_t *poll, int *fd)
{
	if (*fd < 0)
		return;
	uv_poll_stop(poll);
	uv_close((uv_handle_t *)poll, handle_closed);
	close(*fd);
	*fd = -1;
}

static bool start_poll(struct stdio *s, uv_poll_t *poll, int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 || uv_poll_init(s->loop, poll, fd) < 0)
		return false;
	poll->data = s;
	s->open_handles++;
	return true;
}

static void close_all(struct stdio *s)
{
	if (s->closing)
		return;
	s->closing = true;
	stop_poll(&s->out[0].poll, &s->out[0].fd);
	stop_poll(&s->out[1].poll, &s->out[1].fd);
	stop_poll(&s->in, &s->in_fd);
	stop_poll(&s->conn, &s->conn_fd);
	if (s->terminal >= 0)
		close(s->terminal);
	s->terminal = -1;
	uv_close((uv_handle_t *)&s->timer, handle_closed);
	uv_close((uv_handle_t *)&s->alive, handle_closed);
}

/* --- to the client */

static void on_drain(void *data)
{
	struct stdio *s = data;

	http_stream_on_drain(s->exchange, NULL, NULL);
	s->paused = false;
	poll_outputs(s);
	pause_client(s);
	read_outputs(s);
}

/* What the session has made goes out. A client that does not take it stops the process. */
static void push(struct stdio *s)
{
	struct str *out = session_out(s->session);

	if (!s->exchange || !out->len)
		return;
	(void)!http_stream_write(s->exchange, out->buf, out->len); /* far below its limit */
	if (out->cap > READ_BYTES * 2)
		str_done(out);
	else
		str_reset(out);
	if (!s->paused && http_stream_pending(s->exchange) > OUTPUT_HIGH) {
		s->paused = true;
		poll_outputs(s);
		http_stream_on_drain(s->exchange, on_drain, s);
	}
}

/* --- from the process */

static void end_output(struct stdio *s, struct output *o)
{
	stop_poll(&o->poll, &o->fd);
	o->settled = true;
	advance(s);
}

static void read_output(struct stdio *s, struct output *o)
{
	static char buf[READ_BYTES]; /* loop thread only */

	for (int round = 0; round < READ_ROUNDS && o->fd >= 0 && !s->paused && !s->closing; round++) {
		ssize_t n = read(o->fd, buf, sizeof(buf));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			o->settled = s->finishing;
			break;
		}
		if (n <= 0) { /* a terminal whose last user has gone says EIO */
			end_output(s, o);
			return;
		}
		o->since_end += s->finishing ? (size_t)n : 0;
		o->settled = s->finishing && o->since_end >= o->capacity;
		session_output(s->session, o == &s->out[1], buf, (size_t)n);
		push(s);
	}
	advance(s);
}

/* Does not wait for events: that there is nothing (more) is what has to be known at the end. */
static void read_outputs(struct stdio *s)
{
	for (int i = 0; i < 2; i++)
		if (!s->closing && s->out[i].fd >= 0)
			read_output(s, &s->out[i]);
	advance(s);
}

static void on_output(uv_poll_t *poll, int status, int events)
{
	struct stdio *s = poll->data;

	(void)status, (void)events;
	read_output(s, container_of(poll, struct output, poll));
}

static void poll_outputs(struct stdio *s)
{
	for (int i = 0; i < 2; i++) {
		if (s->out[i].fd < 0)
			continue;
		if (s->paused)
			uv_poll_stop(&s->out[i].poll);
		else
			uv_poll_start(&s->out[i].poll, UV_READABLE, on_output);
	}
}

/* --- to the process */

static void on_input(uv_poll_t *poll, int status, int events);

static void tell_input_end(struct stdio *s)
{
	if (s->input_told || s->closing || !s->input_ended || s->input.len)
		return;
	s->input_told = true;
	/* The other end of a terminal stays: there is output to come. */
	if (s->terminal < 0 || s->gone)
		stop_poll(&s->in, &s->in_fd);
	s->owner->input_end(s->data, s->gone);
}

static void on_alive(uv_timer_t *timer)
{
	struct stdio *s = timer->data;

	session_alive(s->session);
	push(s);
}

/* The client waits as long as the process does not read, or as the client does not read our answers. */
static void pause_client(struct stdio *s)
{
	bool full = s->input.len > INPUT_HIGH || (s->exchange && http_stream_pending(s->exchange) > ANSWERS_HIGH);

	if (!s->exchange)
		return;
	http_upgrade_pause(s->exchange, full);
	if (full && !uv_is_active((uv_handle_t *)&s->alive))
		uv_timer_start(&s->alive, on_alive, ALIVE_MS, ALIVE_MS);
	else if (!full)
		uv_timer_stop(&s->alive);
}

static void write_input(struct stdio *s)
{
	size_t done = 0;

	while (s->in_fd >= 0 && done < s->input.len) {
		ssize_t n = write(s->in_fd, s->input.buf + done, s->input.len - done);

		if (n > 0) {
			done += (size_t)n;
		} else if (n < 0 && errno == EAGAIN) {
			break;
		} else if (n == 0 || errno != EINTR) {
			s->input_dead = true;
			stop_poll(&s->in, &s->in_fd);
		}
	}
	if (s->input_dead)
		done = s->input.len;
	str_consume(&s->input, done);
	if (!s->input.len && s->input.cap > READ_BYTES)
		str_done(&s->input);
	if (s->in_fd >= 0 && s->input.len)
		uv_poll_start(&s->in, UV_WRITABLE, on_input);
	else if (s->in_fd >= 0)
		uv_poll_stop(&s->in);
	pause_client(s);
	tell_input_end(s);
}

static void on_input(uv_poll_t *poll, int status, int events)
{
	struct stdio *s = poll->data;

	(void)status, (void)events;
	write_input(s);
}

/* --- the end */

static bool outputs_done(const struct stdio *s)
{
	bool ended = s->out[0].fd < 0 && s->out[1].fd < 0;
	bool settled = (s->out[0].fd < 0 || s->out[0].settled) && (s->out[1].fd < 0 || s->out[1].settled);

	return ended || (s->deadline && settled);
}

static void advance(struct stdio *s)
{
	if (!s->finishing || s->closing || (s->exchange && !outputs_done(s)))
		return;
	if (s->exchange) {
		struct http_exchange *exchange = s->exchange;

		session_end(s->session, &s->outcome);
		push(s);
		s->exchange = NULL;
		http_stream_on_drain(exchange, NULL, NULL);
		http_stream_end(exchange);
	}
	close_all(s);
}

static void on_drain_deadline(uv_timer_t *timer)
{
	struct stdio *s = timer->data;

	s->deadline = true;
	advance(s);
}

void stdio_finish(struct stdio *s, const struct session_outcome *outcome)
{
	if (s->finishing || s->closing)
		return;
	s->finishing = true;
	s->outcome = *outcome;
	s->message = xstrdup(outcome->message);
	s->outcome.message = s->message;
	s->input_dead = true;
	str_done(&s->input);
	stop_poll(&s->conn, &s->conn_fd);
	for (int i = 0; i < 2; i++) {
		int bytes = s->out[i].fd < 0 ? 0 : fcntl(s->out[i].fd, F_GETPIPE_SZ);

		s->out[i].capacity = bytes > 0 ? (size_t)bytes : TERMINAL_BYTES;
	}
	uv_timer_start(&s->timer, on_drain_deadline, POD_EXEC_DRAIN_MS, 0);
	pause_client(s);
	read_outputs(s);
}

void stdio_abort(struct stdio *s)
{
	s->exchange = NULL;
	s->gone = s->finishing = true;
	close_all(s);
}

/* --- from the client */

static void begin(struct stdio *s)
{
	if (s->started || s->gone || s->closing)
		return;
	s->started = true;
	uv_timer_stop(&s->timer);
	s->owner->start(s->data, s->size);
}

static void on_gone_late(uv_timer_t *timer);

static void on_size_late(uv_timer_t *timer)
{
	begin(timer->data);
}

static void resize(struct stdio *s, const struct session_event *ev)
{
	struct winsize w = { .ws_row = ev->rows, .ws_col = ev->columns };

	s->size = (struct pod_terminal_size){ ev->rows, ev->columns };
	s->size_known = true;
	if (s->terminal >= 0)
		(void)ioctl(s->terminal, TIOCSWINSZ, &w);
}

/* No client any more, whoever has closed. */
static void client_lost(struct stdio *s)
{
	s->exchange = NULL;
	if (s->closing)
		return;
	s->gone = true;
	uv_timer_stop(&s->alive);
	stop_poll(&s->out[0].poll, &s->out[0].fd);
	stop_poll(&s->out[1].poll, &s->out[1].fd);
	if (s->finishing) {
		close_all(s);
		return;
	}
	s->input_ended = true;
	uv_timer_start(&s->timer, on_gone_late, GONE_FLUSH_MS, 0);
	if (s->input_told && s->terminal >= 0) /* input had ended before: now the terminal hangs up, too */
		stop_poll(&s->in, &s->in_fd);
	if (s->terminal >= 0)
		close(s->terminal);
	s->terminal = -1;
	s->owner->gone(s->data);
	if (!s->closing && !s->finishing)
		write_input(s);
}

static void on_gone_late(uv_timer_t *timer)
{
	struct stdio *s = timer->data;

	s->input_dead = true;
	write_input(s);
}

/* We close: it has said good-bye, or broken the protocol. */
static void drop_client(struct stdio *s)
{
	struct http_exchange *exchange = s->exchange;

	push(s);
	if (exchange) {
		http_stream_on_drain(exchange, NULL, NULL);
		http_stream_end(exchange);
	}
	client_lost(s);
}

static void on_closed(void *data)
{
	client_lost(data);
}

static void on_start_late(uv_timer_t *timer)
{
	struct stdio *s = timer->data;

	session_end(s->session, &(struct session_outcome){ .result = SESSION_FAILURE,
					.message = "the client did not open its streams in time" });
	drop_client(s);
}

/* False: the client is no longer to be listened to. */
static bool on_event(struct stdio *s, const struct session_event *ev)
{
	switch (ev->kind) {
	case SESSION_READY:
		s->ready = true;
		if (s->wants.tty && !s->size_known)
			uv_timer_start(&s->timer, on_size_late, SIZE_WAIT_MS, 0);
		else /* now, since the client may say all that it has to, and good-bye, in one go */
			begin(s);
		break;
	case SESSION_INPUT:
		if (!s->input_dead)
			str_add_bytes(&s->input, ev->data.ptr, ev->data.len);
		break;
	case SESSION_INPUT_END:
		s->input_ended = true;
		break;
	case SESSION_RESIZE:
		resize(s, ev);
		if (s->ready)
			begin(s);
		break;
	case SESSION_CLOSED:
		return false;
	default:
		break;
	}
	return true;
}

static void read_client(struct stdio *s, const char *p, size_t len)
{
	struct bytes in = { p, len };
	struct session_event ev;
	struct error err = ERROR_INIT;

	do {
		int r = session_read(s->session, &in, &ev, &err);

		if (r < 0)
			log_debug("streaming client broke the protocol: %s", err.text);
		if (r < 0 || !on_event(s, &ev)) {
			drop_client(s);
			return;
		}
	} while (ev.kind != SESSION_MORE);
	push(s);
	if (!s->closing && !s->finishing)
		write_input(s);
	else if (!s->closing)
		pause_client(s);
}

static void on_data(void *data, const char *p, size_t len)
{
	read_client(data, p, len);
}

/* Some clients wait for us to speak first. */
static void on_first_turn(uv_timer_t *timer)
{
	struct stdio *s = timer->data;

	uv_timer_start(&s->timer, on_start_late, START_WAIT_MS, 0);
	read_client(s, "", 0);
}

/* --- what the owner gives */

int stdio_conn(const struct stdio *s)
{
	return s->conn_fd;
}

bool stdio_gone(const struct stdio *s)
{
	return s->gone;
}

static void on_conn(uv_poll_t *poll, int status, int events)
{
	struct stdio *s = poll->data;
	struct pod_stream_event ev;

	(void)status, (void)events;
	pod_stream_next(s->conn_fd, &ev);
	if (ev.kind != POD_STREAM_NONE)
		s->owner->event(s->data, &ev);
}

void stdio_set_conn(struct stdio *s, int fd)
{
	if (s->closing || !start_poll(s, &s->conn, fd)) {
		close(fd);
		return;
	}
	s->conn_fd = fd;
	uv_poll_start(&s->conn, UV_READABLE, on_conn);
}

void stdio_set_input(struct stdio *s, int fd)
{
	if (fd >= 0 && (s->closing || s->input_dead || s->input_told || !start_poll(s, &s->in, fd))) {
		close(fd);
		fd = -1;
	}
	s->in_fd = fd;
	s->input_dead |= fd < 0;
	if (!s->closing)
		write_input(s);
}

void stdio_set_output(struct stdio *s, bool error, int fd)
{
	struct output *o = &s->out[error];

	if (fd < 0)
		return;
	if (s->closing || s->gone || !start_poll(s, &o->poll, fd)) {
		close(fd);
		return;
	}
	o->fd = fd;
	poll_outputs(s);
}

void stdio_set_terminal(struct stdio *s, int fd)
{
	struct winsize w = { .ws_row = s->size.rows, .ws_col = s->size.columns };

	if (fd >= 0 && (s->closing || s->gone)) {
		close(fd);
		return;
	}
	s->terminal = fd;
	if (s->size_known && fd >= 0)
		(void)ioctl(fd, TIOCSWINSZ, &w);
}

struct stdio *stdio_new(uv_loop_t *loop, struct http_exchange *exchange, const char *protocol, struct session *session,
	const struct session_wants *wants, const struct stdio_owner *owner, void *data)
{
	struct stdio *s = xnew(struct stdio);

	s->loop = loop;
	s->exchange = exchange;
	s->session = session;
	s->wants = *wants;
	s->owner = owner;
	s->data = data;
	s->in_fd = s->conn_fd = s->terminal = s->out[0].fd = s->out[1].fd = -1;
	s->open_handles = 2;
	uv_timer_init(loop, &s->timer);
	uv_timer_init(loop, &s->alive);
	s->timer.data = s->alive.data = s;
	http_upgrade(exchange, protocol, on_data, on_closed, s);
	uv_timer_start(&s->timer, on_first_turn, 0, 0);
	return s;
}

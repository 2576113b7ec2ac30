/*
 * portforward.c - purpose: port-forwarding of one client: connections into a pod's network namespace.
 *
 * Each pair of streams has a connection of its own. A job makes its sockets, on a thread that joins the pod's namespace
 * (and ends with the job); wherever they are used from, they stay there. localhost means 127.0.0.1, then ::1. Both
 * directions end separately; a connection that is reset takes its pair with it and nothing else.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>

#include "common/base/log.h"
#include "common/net/http_server.h"
#include "common/net/job.h"
#include "runtime-lite/engine/pod.h"
#include "runtime-lite/stream/forward.h"
#include "runtime-lite/stream/task.h"

enum {
	READ_BYTES = 32 * 1024,
	READ_ROUNDS = 4,
	CLIENT_HIGH = 64 * 1024, /* bytes that wait for the client: no more is read from the ports */
	ANSWERS_HIGH =
		1024 * 1024,	/* the same, of answers to pings and refused streams: no more is read from the client */
	PORT_HIGH = 512 * 1024, /* bytes that wait for one port: no more is read from the client */
	TICK_MS = 15 * 1000,
	CONNECT_TICKS = 2,
	FAMILIES = 2,
};

struct forwarding {
	struct task task;
	uv_loop_t *loop;
	struct store *store;
	struct stream_request *request;
	struct http_exchange *exchange; /* NULL: over */
	struct forward *forward;
	struct pair *pairs;
	size_t n_full; /* pairs with more than PORT_HIGH */
	size_t n_connecting;
	bool paused;
	uv_timer_t timer;
	unsigned refs; /* the timer, each pair */
};

/*
 *	      job: sockets            connect(), IPv4 then IPv6
 *	(new) ------------> connecting ------------------------> open ----> closed
 *	  |                     |                                             ^
 *	  +---------------------+----- failed: the client is told why --------+
 *
 * Closed: taken off the list, and its stream given up; freed when job and handles are done with it.
 */
struct pair {
	struct pair *prev, *next;
	struct forwarding *of;
	uint32_t id;
	uint16_t port;
	struct job job;
	bool working, connecting, closed, client_ended, shut, port_ended, full;
	unsigned ticks; /* while connecting */
	int family;	/* which of both is tried, or used */
	int fd;		/* the socket that is tried, or used; -1: none */
	uv_poll_t polls[FAMILIES];
	unsigned open_handles;
	struct str to_port;
	int sockets[FAMILIES]; /* of the job; those that were not tried yet. -1: none */
	struct error error;    /* of the job; then of the first connection that failed */
};

static void unref(struct forwarding *w)
{
	if (--w->refs > 0)
		return;
	task_end(&w->task);
	stream_request_free(w->request);
	forward_free(w->forward);
	free(w);
}

static void pair_free(struct pair *p)
{
	struct forwarding *w = p->of;

	str_done(&p->to_port);
	free(p);
	unref(w);
}

static void free_if_done(struct pair *p)
{
	if (p->closed && !p->working && !p->open_handles)
		pair_free(p);
}

static void poll_closed(uv_handle_t *handle)
{
	struct pair *p = handle->data;

	p->open_handles--;
	free_if_done(p);
}

static void drop_socket(struct pair *p)
{
	if (p->fd < 0)
		return;
	uv_poll_stop(&p->polls[p->family]);
	uv_close((uv_handle_t *)&p->polls[p->family], poll_closed);
	close(p->fd);
	p->fd = -1;
}

static void set_connecting(struct pair *p, bool connecting)
{
	if (p->connecting == connecting)
		return;
	p->connecting = connecting;
	p->of->n_connecting += connecting ? 1 : (size_t)-1;
}

static void set_full(struct pair *p, bool full)
{
	if (p->full == full)
		return;
	p->full = full;
	p->of->n_full += full ? 1 : (size_t)-1;
}

/* Frees it, too, now or when its job is done. */
static void pair_close(struct pair *p)
{
	if (p->closed)
		return;
	p->closed = true;
	set_full(p, false);
	*(p->prev ? &p->prev->next : &p->of->pairs) = p->next;
	if (p->next)
		p->next->prev = p->prev;
	set_connecting(p, false);
	drop_socket(p);
	for (int i = 0; i < FAMILIES && !p->working; i++)
		if (p->sockets[i] >= 0)
			close(p->sockets[i]);
	free_if_done(p);
}

static void timer_closed(uv_handle_t *handle)
{
	unref(handle->data);
}

/* The end of it all. */
static void forwarding_close(struct forwarding *w)
{
	if (uv_is_closing((uv_handle_t *)&w->timer))
		return;
	w->exchange = NULL;
	while (w->pairs)
		pair_close(w->pairs);
	uv_close((uv_handle_t *)&w->timer, timer_closed);
}

/* --- to the client */

static void poll_pair(struct pair *p);

static void pause_client(struct forwarding *w)
{
	if (w->exchange)
		http_upgrade_pause(w->exchange, w->n_full > 0 || http_stream_pending(w->exchange) > ANSWERS_HIGH);
}

static void poll_pairs(struct forwarding *w)
{
	for (struct pair *p = w->pairs; p; p = p->next)
		poll_pair(p);
}

static void on_drain(void *data)
{
	struct forwarding *w = data;

	http_stream_on_drain(w->exchange, NULL, NULL);
	w->paused = false;
	poll_pairs(w);
	pause_client(w);
}

static void push(struct forwarding *w)
{
	struct str *out = forward_out(w->forward);

	if (!w->exchange || !out->len)
		return;
	(void)!http_stream_write(w->exchange, out->buf, out->len); /* far below its limit */
	if (out->cap > READ_BYTES * 2)
		str_done(out);
	else
		str_reset(out);
	if (!w->paused && http_stream_pending(w->exchange) > CLIENT_HIGH) {
		w->paused = true;
		poll_pairs(w);
		http_stream_on_drain(w->exchange, on_drain, w);
	}
}

/* --- one connection */

static void fail_pair(struct pair *p, const char *text)
{
	struct forwarding *w = p->of;

	forward_fail(w->forward, p->id, text);
	pair_close(p);
	push(w);
}

static void end_if_over(struct pair *p)
{
	if (p->port_ended && p->client_ended && !p->to_port.len)
		pair_close(p);
}

static void read_port(struct pair *p)
{
	static char buf[READ_BYTES]; /* loop thread only */

	for (int round = 0; round < READ_ROUNDS && !p->closed && !p->port_ended && !p->of->paused; round++) {
		ssize_t n = recv(p->fd, buf, sizeof(buf), 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) { /* reset: what the client sees of it is an end */
			fail_pair(p, NULL);
			return;
		}
		if (n == 0) {
			p->port_ended = true;
			forward_end(p->of->forward, p->id);
		} else {
			forward_data(p->of->forward, p->id, buf, (size_t)n);
		}
		push(p->of);
	}
}

static void write_port(struct pair *p)
{
	size_t done = 0;

	while (done < p->to_port.len) {
		ssize_t n = send(p->fd, p->to_port.buf + done, p->to_port.len - done, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN) {
			fail_pair(p, NULL);
			return;
		}
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	str_consume(&p->to_port, done);
	if (!p->to_port.len && p->to_port.cap > READ_BYTES)
		str_done(&p->to_port);
	if (!p->to_port.len && p->client_ended && !p->shut) {
		p->shut = true;
		shutdown(p->fd, SHUT_WR);
	}
	set_full(p, p->to_port.len > PORT_HIGH);
}

static void on_connect(struct pair *p);

static void on_port(uv_poll_t *poll, int status, int events)
{
	struct pair *p = poll->data;
	struct forwarding *w = p->of;

	if (p->connecting) {
		on_connect(p);
		pause_client(w);
		return;
	}
	if (status < 0)
		events = UV_READABLE;
	if (events & UV_WRITABLE)
		write_port(p);
	if ((events & UV_READABLE) && !p->closed)
		read_port(p);
	if (!p->closed) {
		end_if_over(p);
		poll_pair(p);
	}
	pause_client(w);
}

static void poll_pair(struct pair *p)
{
	int events = (!p->port_ended && !p->of->paused ? UV_READABLE : 0) | (p->to_port.len ? UV_WRITABLE : 0);

	if (p->closed || p->fd < 0)
		return;
	if (p->connecting)
		events = UV_WRITABLE;
	if (events)
		uv_poll_start(&p->polls[p->family], events, on_port);
	else
		uv_poll_stop(&p->polls[p->family]);
}

/* --- what takes too long */

static void fail_to_connect(struct pair *p);

static void on_tick(uv_timer_t *timer)
{
	struct forwarding *w = timer->data;

	forward_tick(w->forward);
	for (struct pair *p = w->pairs, *next; p; p = next) {
		next = p->next;
		if (!p->connecting || ++p->ticks < CONNECT_TICKS)
			continue;
		error_set(&p->error, ERROR_DEADLINE, "connect to localhost:%u in the pod: nobody answers", p->port);
		fail_to_connect(p);
	}
	push(w);
	if (!forward_waits(w->forward) && !w->n_connecting)
		uv_timer_stop(timer);
}

static void watch_ticks(struct forwarding *w)
{
	if ((forward_waits(w->forward) || w->n_connecting) && !uv_is_active((uv_handle_t *)&w->timer))
		uv_timer_start(&w->timer, on_tick, TICK_MS, TICK_MS);
}

/* --- connecting */

static int connect_to_localhost(int fd, int family, uint16_t port)
{
	const struct sockaddr_in in = {
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = { htonl(INADDR_LOOPBACK) }
	};
	const struct sockaddr_in6 in6 = {
		.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT
	};

	return family == 0 ? connect(fd, (const struct sockaddr *)&in, sizeof(in))
			   : connect(fd, (const struct sockaddr *)&in6, sizeof(in6));
}

static void fail_to_connect(struct pair *p)
{
	_cleanup_free_ char *text =
		xasprintf("error forwarding port %u to pod %s, uid : %s", p->port, p->of->request->id, p->error.text);

	fail_pair(p, text);
}

/* The next of the sockets that are left. The reason that is told is that of the first. */
static void try_next(struct pair *p)
{
	for (; p->fd < 0 && p->family < FAMILIES; p->family++) {
		int fd = steal_fd(&p->sockets[p->family]);

		if (fd < 0)
			continue;
		if ((connect_to_localhost(fd, p->family, p->port) == 0 || errno == EINPROGRESS) &&
			uv_poll_init(p->of->loop, &p->polls[p->family], fd) == 0) {
			p->fd = fd;
			break;
		}
		if (!p->error.code)
			error_sys(&p->error, errno, "connect to localhost:%u in the pod", p->port);
		close(fd);
	}
	if (p->fd < 0) {
		fail_to_connect(p);
		return;
	}
	p->polls[p->family].data = p;
	p->open_handles++;
	set_connecting(p, true);
	poll_pair(p);
}

static void on_connect(struct pair *p)
{
	int failed = 0;
	socklen_t len = sizeof(failed);

	if (getsockopt(p->fd, SOL_SOCKET, SO_ERROR, &failed, &len) < 0)
		failed = errno;
	if (failed) {
		if (!p->error.code)
			error_sys(&p->error, failed, "connect to localhost:%u in the pod", p->port);
		drop_socket(p);
		p->family++;
		try_next(p);
		return;
	}
	set_connecting(p, false);
	write_port(p);
	if (!p->closed)
		poll_pair(p);
}

static void work(struct job *job)
{
	static const int families[FAMILIES] = { AF_INET, AF_INET6 };
	struct pair *p = container_of(job, struct pair, job);
	_cleanup_sandbox_ struct sandbox *s = NULL;
	int on = 1;

	if (task_find_sandbox(p->of->store, p->of->request->id, &s, &p->error) < 0)
		return;
	_cleanup_fd_ int netns = pod_monitor_netns(s->monitor);

	/* This thread stays there; it ends with its job. */
	if (netns < 0 || setns(netns, CLONE_NEWNET) < 0) {
		error_sys(&p->error, netns < 0 ? netns : errno, "enter the pod's network namespace");
		return;
	}
	for (int i = 0; i < FAMILIES; i++) {
		p->sockets[i] = socket(families[i], SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (p->sockets[i] < 0 && i == 0)
			error_sys(&p->error, errno, "make a socket in the pod");
		else if (p->sockets[i] >= 0)
			(void)setsockopt(p->sockets[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	}
}

static void done(struct job *job)
{
	struct pair *p = container_of(job, struct pair, job);
	struct forwarding *w = p->of;

	p->working = false;
	if (p->closed) {
		for (int i = 0; i < FAMILIES; i++)
			if (p->sockets[i] >= 0)
				close(p->sockets[i]);
		free_if_done(p);
		return;
	}
	try_next(p);
	watch_ticks(w);
	pause_client(w);
}

/* --- from the client */

static struct pair *find(struct forwarding *w, uint32_t id)
{
	struct pair *p = w->pairs;

	while (p && p->id != id)
		p = p->next;
	return p;
}

static void open_pair(struct forwarding *w, uint32_t id, uint16_t port)
{
	struct pair *p = xnew(struct pair);

	*p = (struct pair){
		.of = w, .id = id, .port = port, .fd = -1, .sockets = { -1, -1 }, .working = true, .next = w->pairs
	};
	if (p->next)
		p->next->prev = p;
	w->pairs = p;
	w->refs++;
	p->job = (struct job){ .work = work, .done = done };
	job_start(w->loop, &p->job);
}

static void on_event(struct forwarding *w, const struct forward_event *ev)
{
	struct pair *p = ev->kind == FORWARD_OPEN ? NULL : find(w, ev->pair);

	if (ev->kind == FORWARD_OPEN)
		open_pair(w, ev->pair, ev->port);
	if (!p)
		return;
	if (ev->kind == FORWARD_GONE) {
		pair_close(p);
		return;
	}
	if (ev->kind == FORWARD_DATA)
		str_add_bytes(&p->to_port, ev->data.ptr, ev->data.len);
	if (ev->kind == FORWARD_END)
		p->client_ended = true;
	if (p->fd >= 0 && !p->connecting)
		write_port(p);
	else
		set_full(p, p->to_port.len > PORT_HIGH);
	if (!p->closed) {
		end_if_over(p);
		poll_pair(p);
	}
}

static void drop_client(struct forwarding *w)
{
	struct http_exchange *exchange = w->exchange;

	push(w);
	if (exchange) {
		http_stream_on_drain(exchange, NULL, NULL);
		http_stream_end(exchange);
	}
	forwarding_close(w);
}

static void on_data(void *data, const char *p, size_t len)
{
	struct forwarding *w = data;
	struct bytes in = { p, len };
	struct forward_event ev;
	struct error err = ERROR_INIT;

	do {
		int r = forward_read(w->forward, &in, &ev, &err);

		if (r < 0)
			log_debug("port-forward client broke the protocol: %s", err.text);
		if (r < 0 || ev.kind == FORWARD_CLOSED) {
			drop_client(w);
			return;
		}
		on_event(w, &ev);
	} while (ev.kind != FORWARD_MORE);
	push(w);
	pause_client(w);
	watch_ticks(w);
}

/* Some clients wait for us to speak first. */
static void on_first_turn(uv_timer_t *timer)
{
	on_data(timer->data, "", 0);
}

static void on_closed(void *data)
{
	forwarding_close(data);
}

static void abort_forwarding(struct task *task)
{
	forwarding_close(container_of(task, struct forwarding, task));
}

void portforward_start(const struct task_client *client, struct stream_request *request)
{
	const struct protocol *protocol = client->protocol;
	struct forwarding *w = xnew(struct forwarding);

	w->loop = client->loop;
	w->store = client->store;
	w->request = request;
	w->exchange = client->exchange;
	w->refs = 1;
	if (client->websocket && !protocol->tunnel)
		w->forward = forward_channels(protocol->base64, request->ports, request->n_ports);
	else
		w->forward = forward_spdy(protocol->tunnel);
	task_begin(&w->task, client->list, abort_forwarding);
	uv_timer_init(w->loop, &w->timer);
	w->timer.data = w;
	http_upgrade(w->exchange, client->websocket ? "websocket" : "SPDY/3.1", on_data, on_closed, w);
	uv_timer_start(&w->timer, on_first_turn, 0, 0);
}

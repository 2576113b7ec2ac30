/*
 * portforward.c - purpose: port-forwarding of one client: connections into a pod's network namespace.
 *
 * Each pair of streams has a socket of its own, made by a job on a thread that joins the pod's namespace (and ends with the
 * job). localhost means 127.0.0.1, then ::1. Both directions end separately; a connection that is reset takes its pair with
 * it and nothing else.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include "common/base/log.h"
#include "common/net/http_server.h"
#include "common/net/job.h"
#include "runtime-lite/engine/pod.h"
#include "runtime-lite/stream/forward.h"
#include "runtime-lite/stream/task.h"

enum {
	CONNECT_MS = 10 * 1000,
	READ_BYTES = 32 * 1024,
	READ_ROUNDS = 4,
	CLIENT_HIGH = 64 * 1024,    /* bytes that wait for the client: no more is read from the ports */
	ANSWERS_HIGH = 1024 * 1024, /* the same, of answers to pings and refused streams: no more is read from the client */
	PORT_HIGH = 512 * 1024,	    /* bytes that wait for one port: no more is read from the client */
	TICK_MS = 15 * 1000,
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
	bool paused;
	uv_timer_t timer;
	unsigned refs; /* the timer, each pair */
};

/*
 * connecting (a job) -> open (fd) -> closed. Removed from the list, and its stream given up, when it is closed; freed when job
 * and handle are done with it.
 */
struct pair {
	struct pair *prev, *next;
	struct forwarding *of;
	uint32_t id;
	uint16_t port;
	struct job job;
	bool working, closed, client_ended, shut, port_ended, full;
	int fd; /* -1: none */
	uv_poll_t poll;
	struct str to_port;
	int connected; /* of the job: its socket, or -1 and the error */
	struct error error;
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

static void poll_closed(uv_handle_t *handle)
{
	pair_free(handle->data);
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
	if (p->fd >= 0) {
		uv_poll_stop(&p->poll);
		uv_close((uv_handle_t *)&p->poll, poll_closed);
		close(p->fd);
		p->fd = -1;
	} else if (!p->working) {
		pair_free(p);
	}
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

static void on_port(uv_poll_t *poll, int status, int events)
{
	struct pair *p = poll->data;
	struct forwarding *w = p->of;

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
	if (events)
		uv_poll_start(&p->poll, events, on_port);
	else
		uv_poll_stop(&p->poll);
}

/* --- connecting */

static int connect_to(int family, uint16_t port, int *ret_fd)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	const struct sockaddr *address = family == AF_INET ? (struct sockaddr *)&in : (struct sockaddr *)&in6;
	_cleanup_fd_ int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int failed = 0, on = 1;
	socklen_t len = sizeof(failed);

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (connect(fd, address, family == AF_INET ? sizeof(in) : sizeof(in6)) < 0) {
		struct pollfd p = { .fd = fd, .events = POLLOUT };

		if (errno != EINPROGRESS)
			return -errno;
		if (poll(&p, 1, CONNECT_MS) <= 0)
			return -ETIMEDOUT;
		if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &len) < 0)
			return -errno;
		if (failed)
			return -failed;
	}
	*ret_fd = steal_fd(&fd);
	return 0;
}

static void work(struct job *job)
{
	struct pair *p = container_of(job, struct pair, job);
	_cleanup_sandbox_ struct sandbox *s = NULL;

	if (task_find_sandbox(p->of->store, p->of->request->id, &s, &p->error) < 0)
		return;
	_cleanup_fd_ int netns = pod_monitor_netns(s->monitor);

	/* This thread stays there; it ends with its job. */
	if (netns < 0 || setns(netns, CLONE_NEWNET) < 0) {
		error_sys(&p->error, netns < 0 ? netns : errno, "enter the pod's network namespace");
		return;
	}
	int r = connect_to(AF_INET, p->port, &p->connected);

	if (r < 0 && connect_to(AF_INET6, p->port, &p->connected) < 0)
		error_sys(&p->error, r, "connect to localhost:%u in the pod", p->port);
}

static void done(struct job *job)
{
	struct pair *p = container_of(job, struct pair, job);
	struct forwarding *w = p->of;

	p->working = false;
	if (p->closed) {
		if (p->connected >= 0)
			close(p->connected);
		pair_free(p);
		return;
	}
	p->fd = p->connected;
	if (p->fd < 0) {
		_cleanup_free_ char *text = xasprintf("error forwarding port %u to pod %s, uid : %s", p->port, w->request->id, p->error.text);

		fail_pair(p, text);
		return;
	}
	uv_poll_init(w->loop, &p->poll, p->fd);
	p->poll.data = p;
	write_port(p);
	if (!p->closed)
		poll_pair(p);
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

	*p = (struct pair){ .of = w, .id = id, .port = port, .fd = -1, .connected = -1, .working = true, .next = w->pairs };
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
	if (p->fd >= 0)
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

static void on_tick(uv_timer_t *timer);

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
	if (forward_waits(w->forward) && !uv_is_active((uv_handle_t *)&w->timer))
		uv_timer_start(&w->timer, on_tick, TICK_MS, TICK_MS);
}

static void on_tick(uv_timer_t *timer)
{
	struct forwarding *w = timer->data;

	forward_tick(w->forward);
	push(w);
	if (!forward_waits(w->forward))
		uv_timer_stop(timer);
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

/*
 * container_stop.c - purpose: StopContainer: one schedule for each container that is asked to stop.
 *
 *	first call:   stop signal, kill_at = now + timeout          every call waits for the end of the container;
 *	later calls:  kill_at = min(kill_at, now + timeout)         none of them takes a thread
 *	kill_at:      SIGKILL to all of it; again each 10 s, and then the monitor is asked whether it still works
 *	the end:      everybody is answered
 *
 * A client that goes away takes nothing back and hastens nothing: the schedule stands, on disk too. Served as a stream
 * of one reply, so that a thousand long graces cost a thousand small structs.
 */
#include "runtime-lite/cri/container_stop.h"

#include "common/base/log.h"
#include "common/net/job.h"
#include "common/sys/file.h"
#include "runtime-lite/cri/handlers.h"
#include "runtime-lite/engine/pod.h"

#include <signal.h>

enum { KILL_AGAIN_MS = 10000 };

struct waiter {
	struct rpc_stream *stream;
	struct stop *stop;
	struct waiter *next;
};

struct stop {
	struct container *container;
	struct waiter *waiters;
	uint64_t kill_at_ns; /* monotonic */
	bool busy;	     /* a job is at work for it */
	bool wants_signal, wants_kill, wants_save;
	unsigned kills;
	struct stop *next;
};

struct stops {
	struct service *svc;
	uv_timer_t timer;
	struct stop *first;
};

struct stop_job {
	struct job job;
	struct stop *stop;
	struct stops *stops;
	bool signal, kill, again, save;
	struct error err;
	int r;
};

static void reschedule(struct stops *stops);

struct stops *stops_new(struct service *svc)
{
	struct stops *stops = xnew(struct stops);

	stops->svc = svc;
	uv_timer_init(svc->loop, &stops->timer);
	stops->timer.data = stops;
	return stops;
}

static void reply_ok(struct rpc_stream *stream)
{
	CRI(StopContainerResponse) reply = RUNTIME__V1__STOP_CONTAINER_RESPONSE__INIT;

	/* If the client has gone meanwhile nobody misses the answer. */
	(void)!rpc_stream_send(stream, &reply.base);
	rpc_stream_end(stream, NULL);
}

static bool has_ended(struct stops *stops, const struct container *c)
{
	store_lock(stops->svc->store);
	bool ended = c->state != CONTAINER_RUNNING && !c->starting;
	store_unlock(stops->svc->store);
	return ended;
}

static void answer(struct stop *stop, const struct error *err)
{
	while (stop->waiters) {
		struct waiter *w = stop->waiters;

		stop->waiters = w->next;
		if (err)
			rpc_stream_end(w->stream, err);
		else
			reply_ok(w->stream);
		free(w);
	}
}

static void stop_free(struct stop *stop)
{
	container_unref(stop->container);
	free(stop);
}

void stops_check(struct service *svc)
{
	struct stops *stops = svc->stops;
	struct stop **link = &stops->first;

	while (*link) {
		struct stop *stop = *link;

		if (has_ended(stops, stop->container)) {
			answer(stop, NULL);
			if (!stop->busy) {
				*link = stop->next;
				stop_free(stop);
				continue;
			}
		}
		link = &stop->next;
	}
	reschedule(stops);
}

/* Worker thread. */
static void stop_work(struct job *job)
{
	struct stop_job *j = container_of(job, struct stop_job, job);
	struct store *store = j->stops->svc->store;
	struct container *c = j->stop->container;

	if (j->save && store_save_container(store, c, &j->err) < 0)
		log_warning("container %s: %s", c->id, j->err.text); /* it only matters after a restart */
	if (!c->sandbox->monitor || c->sandbox->monitor_gone)
		return;
	if (j->kill)
		j->r = pod_container_kill_all(c->sandbox->monitor, c->id, &j->err);
	else if (j->signal)
		j->r = pod_container_signal(c->sandbox->monitor, c->id, c->stop_signal, &j->err);
	if (j->again)
		pod_monitor_kill_hung(c->sandbox->monitor, c->id);
}

static void run_job(struct stops *stops, struct stop *stop);

static void stop_done(struct job *job)
{
	struct stop_job *j = container_of(job, struct stop_job, job);
	struct stop *stop = j->stop;
	struct stops *stops = j->stops;

	stop->busy = false;
	if (j->r < 0) {
		log_warning("container %s: stop: %s", stop->container->id, j->err.text);
		error_prefix(&j->err, "stop container %s", stop->container->id);
		if (!has_ended(stops, stop->container))
			answer(stop, &j->err);
	}
	free(j);
	if (stop->wants_signal || stop->wants_kill || stop->wants_save)
		run_job(stops, stop);
	stops_check(stops->svc);
}

static void run_job(struct stops *stops, struct stop *stop)
{
	if (stop->busy)
		return;
	struct stop_job *j = xnew(struct stop_job);
	j->job = (struct job){ .work = stop_work, .done = stop_done };
	j->stop = stop;
	j->stops = stops;
	j->signal = stop->wants_signal;
	j->kill = stop->wants_kill;
	j->again = stop->wants_kill && stop->kills > 1;
	j->save = stop->wants_save;
	stop->wants_signal = stop->wants_kill = stop->wants_save = false;
	stop->busy = true;
	job_start(stops->svc->loop, &j->job);
}

static void on_timer(uv_timer_t *timer)
{
	struct stops *stops = timer->data;
	uint64_t now_ns = clock_monotonic_ns();

	for (struct stop *stop = stops->first; stop; stop = stop->next) {
		if (stop->kill_at_ns > now_ns)
			continue;
		if (stop->kills++)
			log_warning("container %s is still there after SIGKILL", stop->container->id);
		stop->kill_at_ns = now_ns + KILL_AGAIN_MS * UINT64_C(1000000);
		stop->wants_kill = true;
		run_job(stops, stop);
	}
	reschedule(stops);
}

/* The timer goes off at the earliest kill. */
static void reschedule(struct stops *stops)
{
	uint64_t now_ns = clock_monotonic_ns(), at_ns = UINT64_MAX;

	for (const struct stop *stop = stops->first; stop; stop = stop->next)
		at_ns = MIN(at_ns, stop->kill_at_ns);
	if (at_ns == UINT64_MAX)
		uv_timer_stop(&stops->timer);
	else
		uv_timer_start(&stops->timer, on_timer, at_ns > now_ns ? (at_ns - now_ns + 999999) / 1000000 : 0, 0);
}

static struct stop *stop_of(struct stops *stops, struct container *c)
{
	struct stop *stop = stops->first;

	while (stop && stop->container != c)
		stop = stop->next;
	if (stop)
		return stop;
	stop = xnew(struct stop);
	stop->container = container_ref(c);
	stop->kill_at_ns = UINT64_MAX;
	stop->next = stops->first;
	stops->first = stop;
	return stop;
}

/* Lowers the deadline; asks for the signal if it was never sent. */
static void schedule(struct stops *stops, struct stop *stop, uint64_t kill_at_ns)
{
	struct container *c = stop->container;

	if (kill_at_ns < stop->kill_at_ns) {
		stop->kill_at_ns = kill_at_ns;
		stop->wants_save = true;
	}
	store_lock(stops->svc->store);
	c->kill_at_ns = stop->kill_at_ns;
	if (!c->stop_signalled) {
		stop->wants_signal = true;
		stop->wants_save = true;
	}
	c->stop_signalled = true;
	store_unlock(stops->svc->store);
	if (stop->kill_at_ns <= clock_monotonic_ns()) {
		stop->wants_kill = true;
		stop->kills++;
		stop->kill_at_ns = clock_monotonic_ns() + KILL_AGAIN_MS * UINT64_C(1000000);
	}
	if (stop->wants_signal || stop->wants_kill || stop->wants_save)
		run_job(stops, stop);
	reschedule(stops);
}

static void on_client_gone(void *data)
{
	struct waiter *w = data;
	struct waiter **link = &w->stop->waiters;

	while (*link && *link != w)
		link = &(*link)->next;
	if (*link)
		*link = w->next;
	free(w);
}

STREAM_HANDLER(container_stop)
{
	struct service *svc = call->context;
	const CRI(StopContainerRequest) *req = request;
	_cleanup_container_ struct container *c = NULL;
	struct error err = ERROR_INIT;
	int r = store_get_container(svc->store, req->container_id, &c, &err);

	if (r < 0 && err.code != ERROR_NOT_FOUND) {
		rpc_stream_end(stream, &err);
		return;
	}
	if (r < 0 || has_ended(svc->stops, c)) {
		reply_ok(stream);
		return;
	}
	struct waiter *w = xnew(struct waiter);
	w->stream = stream;
	w->stop = stop_of(svc->stops, c);
	w->next = w->stop->waiters;
	w->stop->waiters = w;
	rpc_stream_on_closed(stream, on_client_gone, w);

	uint64_t grace_s = (uint64_t)MAX(MIN(req->timeout, INT64_C(1000000000)), 0);
	log_info("container %s is asked to stop, grace %llus", c->id, (unsigned long long)grace_s);
	schedule(svc->stops, w->stop, clock_monotonic_ns() + grace_s * UINT64_C(1000000000));
}

void stops_resume(struct service *svc, struct container *c)
{
	struct stop *stop = stop_of(svc->stops, c);

	stop->kill_at_ns = c->kill_at_ns;
	reschedule(svc->stops);
}

void stops_close(struct stops *stops)
{
	uv_timer_stop(&stops->timer);
	uv_close((uv_handle_t *)&stops->timer, NULL);
}

void stops_free(struct stops *stops)
{
	while (stops->first) {
		struct stop *stop = stops->first;

		stops->first = stop->next;
		stop_free(stop);
	}
	free(stops);
}

/*
 * events.c - purpose: GetContainerEvents: tell every subscriber what changes, with the state right after the change.
 *
 * A message is made where the change is made, under the store's lock, so that it shows that state and no later one; it
 * is sent on the loop. Nothing is made while nobody listens. A subscriber that does not read is dropped, not waited for.
 */
#include "runtime-lite/cri/events.h"

#include "common/base/log.h"
#include "common/sys/file.h"
#include "runtime-lite/cri/container_stop.h"
#include "runtime-lite/cri/convert.h"
#include "runtime-lite/cri/handlers.h"

#include <stdatomic.h>

enum { QUEUE_MAX = 10000 };

struct subscriber {
	struct rpc_stream *stream;
	struct events *events;
	struct subscriber *next;
};

struct queued {
	CRI(ContainerEventResponse) * message;
	struct queued *next;
};

struct events {
	struct service *svc;
	struct subscriber *first; /* loop thread */
	atomic_uint subscribers;
	atomic_bool check_stops;
	/* Protected by the store's lock. */
	struct queued *head, **tail;
	size_t n_queued;
	bool posted, overflow;
	int64_t last_created_at;
};

static void drop_all(struct events *events, const char *why)
{
	struct error err = ERROR_INIT;

	error_set(&err, ERROR_EXHAUSTED, "%s", why);
	while (events->first) {
		struct subscriber *s = events->first;

		events->first = s->next;
		events->subscribers--;
		rpc_stream_end(s->stream, &err);
		free(s);
	}
}

static void send_all(struct events *events, const CRI(ContainerEventResponse) * message)
{
	struct subscriber **link = &events->first;

	while (*link) {
		struct subscriber *s = *link;
		struct error err = ERROR_INIT;

		if (rpc_stream_send(s->stream, &message->base) == 0) {
			link = &s->next;
			continue;
		}
		log_warning("a client of GetContainerEvents does not read: dropped");
		error_set(&err, ERROR_EXHAUSTED, "the client does not read its events");
		*link = s->next;
		events->subscribers--;
		rpc_stream_end(s->stream, &err);
		free(s);
	}
}

/* Loop thread. */
static void flush(void *data)
{
	struct events *events = data;
	struct store *store = events->svc->store;

	store_lock(store);
	struct queued *q = events->head;
	bool overflow = events->overflow;
	events->head = NULL;
	events->tail = &events->head;
	events->n_queued = 0;
	events->posted = events->overflow = false;
	store_unlock(store);
	while (q) {
		struct queued *next = q->next;

		send_all(events, q->message);
		message_free(q->message);
		free(q);
		q = next;
	}
	if (overflow)
		drop_all(events, "too many events at once");
	if (atomic_exchange(&events->check_stops, false))
		stops_check(events->svc);
	service_settle(events->svc);
}

static CRI(ContainerEventResponse) * make(struct events *events, enum store_change change, const struct sandbox *s,
	const struct container *c)
{
	CRI(ContainerEventResponse) *m = CRI_NEW(ContainerEventResponse, container_event_response);

	message_set(&m->container_id, c ? c->id : s->id);
	m->container_event_type = (CRI(ContainerEventType))change;
	/* Clients order by this time. */
	m->created_at = MAX((int64_t)clock_realtime_ns(), events->last_created_at + 1);
	events->last_created_at = m->created_at;
	m->pod_sandbox_status = convert_sandbox_status(s);
	convert_pod_statuses(s, &m->n_containers_statuses, &m->containers_statuses);
	return m;
}

/* With the store's lock held, any thread. */
static void observe(void *data, enum store_change change, struct sandbox *s, struct container *c)
{
	struct events *events = data;

	if (c && change != CHANGE_CREATED)
		events->check_stops = true;
	if (events->subscribers && events->n_queued >= QUEUE_MAX) {
		events->overflow = true;
	} else if (events->subscribers) {
		struct queued *q = xnew(struct queued);

		q->message = make(events, change, s, c);
		*events->tail = q;
		events->tail = &q->next;
		events->n_queued++;
	}
	if (!events->posted)
		service_post(events->svc, flush, events);
	events->posted = true;
}

struct events *events_new(struct service *svc)
{
	struct events *events = xnew(struct events);

	events->svc = svc;
	events->tail = &events->head;
	store_observe(svc->store, observe, events);
	return events;
}

void events_free(struct events *events)
{
	while (events->head) {
		struct queued *q = events->head;

		events->head = q->next;
		message_free(q->message);
		free(q);
	}
	while (events->first) {
		struct subscriber *s = events->first;

		events->first = s->next;
		free(s);
	}
	free(events);
}

static void on_client_gone(void *data)
{
	struct subscriber *s = data;
	struct subscriber **link = &s->events->first;

	while (*link && *link != s)
		link = &(*link)->next;
	if (*link) {
		*link = s->next;
		s->events->subscribers--;
	}
	free(s);
}

STREAM_HANDLER(events_subscribe)
{
	struct service *svc = call->context;
	struct subscriber *s = xnew(struct subscriber);

	(void)request;
	s->stream = stream;
	s->events = svc->events;
	s->next = svc->events->first;
	svc->events->first = s;
	svc->events->subscribers++;
	rpc_stream_on_closed(stream, on_client_gone, s);
}

/* watch.c - purpose: follow Services and EndpointSlices of an API server into the model. */
#include "proxy-lite/watch/watch.h"

#include "common/base/log.h"
#include "common/kube/list_watch.h"
#include "proxy-lite/watch/events.h"

#include <stdio.h>

struct source {
	struct watch *watch;
	enum object_kind kind;
	const char *name;
	struct list_watch *lw;
	bool synced;
	bool listing;
	bool troubled;
};

struct watch {
	struct watch_options options;
	struct http_client *client;
	struct events *events;
	struct source sources[2];
	char trouble[ERROR_TEXT_MAX + 40];
};

static const char selector[] = "!service.kubernetes.io/headless";

static void list_begin(void *data)
{
	struct source *s = data;

	services_list_begin(s->watch->options.services, s->kind);
	s->listing = true;
}

static void object(void *data, enum watch_event event, const json_t *json)
{
	struct source *s = data;
	struct watch *w = s->watch;
	bool changed = event == WATCH_DELETED ? services_delete(w->options.services, s->kind, json) :
						services_put(w->options.services, s->kind, json);

	if (changed && !s->listing)
		w->options.changed(w->options.data);
}

static void list_end(void *data)
{
	struct source *s = data;

	services_list_end(s->watch->options.services, s->kind);
	s->listing = false;
	if (!s->synced)
		log_info("%s are listed", s->name);
	s->synced = true;
	s->watch->options.changed(s->watch->options.data);
}

static void bad(void *data, const struct error *err)
{
	const struct source *s = data;

	problems_set(&s->watch->options.services->problems, s->name, "from the API server", err->text);
}

static void state(void *data, bool connected, const struct error *err)
{
	struct source *s = data;

	if (!connected && !s->troubled && err && err->code)
		log_warning("%s: %s; what is known goes on being served", s->name, err->text);
	if (connected && s->troubled)
		log_info("%s: connected again", s->name);
	s->troubled = !connected && err && err->code;
	if (s->troubled)
		snprintf(s->watch->trouble, sizeof(s->watch->trouble), "%s: %s", s->name, err->text);
}

struct watch *watch_start(uv_loop_t *loop, const struct watch_options *options)
{
	static const struct {
		const char *name, *path;
	} kinds[] = {
		[OBJECT_SERVICE] = { "Services", "/api/v1/services" },
		[OBJECT_SLICE] = { "EndpointSlices", "/apis/discovery.k8s.io/v1/endpointslices" },
	};
	struct watch *w = xnew(struct watch);

	w->options = *options;
	w->client = http_client_new(loop, &(struct http_client_options){ .address = options->address, .host = "kubernetes" });
	w->events = events_new(w->client, options->services->node.name);
	for (int kind = 0; kind < 2; kind++) {
		struct source *s = &w->sources[kind];

		*s = (struct source){ .watch = w, .kind = (enum object_kind)kind, .name = kinds[kind].name };
		s->lw = list_watch_start(loop, &(struct list_watch_options){ .client = w->client,
						       .path = kinds[kind].path,
						       .label_selector = selector,
						       .data = s,
						       .on_list_begin = list_begin,
						       .on_object = object,
						       .on_list_end = list_end,
						       .on_bad = bad,
						       .on_state = state });
	}
	return w;
}

void watch_stop(struct watch *w)
{
	if (!w)
		return;
	for (int kind = 0; kind < 2; kind++)
		list_watch_stop(w->sources[kind].lw);
	http_client_free(w->client);
	events_free(w->events);
	free(w);
}

void watch_warn(struct watch *w, const char *object, const char *text)
{
	events_warn(w->events, object, text);
}

bool watch_synced(const struct watch *w)
{
	return w->sources[0].synced && w->sources[1].synced;
}

const char *watch_trouble(const struct watch *w)
{
	return w->sources[0].troubled || w->sources[1].troubled ? w->trouble : NULL;
}

/*
 * watch.c - purpose: tell clients about changes: from now, from everything that exists, or from a resourceVersion on.
 *
 * No history of versions is kept. A watch that resumes gets each object that changed since in its present state, and
 * what was deleted since (the store remembers that for a while): the same level, fewer steps.
 */
#include "kubelet-lite/local/api_i.h"

#include <errno.h>
#include <stdio.h>

#include "common/base/map.h"
#include "common/base/str.h"
#include "common/sys/file.h"
#include "common/wire/json.h"
#include "kubelet-lite/store/kinds.h"

enum {
	WATCH_SLOW_BYTES = 4 * 1024 * 1024, /* a client that is so far behind starts again */
	WATCH_DEFAULT_S = 1800,
	WATCH_MAX_S = 24 * 3600,
	BOOKMARK_MS = 60 * 1000,
};

/* Of an object that is selected by what may change: what the client was told of it. */
static char TOLD[] = "told", LEFT[] = "left";

struct watcher {
	struct local_api *api;
	struct http_exchange *exchange;
	struct watcher *prev, *next;
	enum object_kind kind;
	char *ns;
	struct selector labels, fields;
	struct api_view view;
	bool columns_sent;
	bool bookmarks;
	bool mutable_selector;
	struct map told;         /* "ns/name" -> TOLD or LEFT, with mutable_selector */
	uint64_t start_version;  /* where it began */
	uint64_t sent_version;   /* newest resourceVersion that the client knows */
	bool initial;            /* existing objects are being sent, up to (at_ns, at_name) */
	bool initial_end;        /* the client wants to be told when that is done */
	char *at_ns, *at_name;
	uv_timer_t timer;
	uint64_t end_ms;         /* of the loop's clock */
};

static void timer_closed(uv_handle_t *handle)
{
	struct watcher *w = handle->data;

	selector_done(&w->labels);
	selector_done(&w->fields);
	map_done(&w->told);
	free(w->ns);
	free(w->at_ns);
	free(w->at_name);
	free(w);
}

/* The exchange is gone or ended. */
static void forget(void *data)
{
	struct watcher *w = data;

	if (w->prev)
		w->prev->next = w->next;
	else
		w->api->watchers = w->next;
	if (w->next)
		w->next->prev = w->prev;
	w->api->n_watchers--;
	w->exchange = NULL;
	uv_close((uv_handle_t *)&w->timer, timer_closed);
}

static void end(struct watcher *w)
{
	struct http_exchange *exchange = w->exchange;

	http_stream_on_drain(exchange, NULL, NULL);
	forget(w);
	http_stream_end(exchange);
}

/* Negative: the watch was ended. */
static int write_event(struct watcher *w, const char *type, const char *object_text)
{
	_cleanup_free_ char *line = xasprintf("{\"type\":\"%s\",\"object\":%s}\n", type, object_text);

	if (!w->exchange)
		return -EPIPE;
	if (http_stream_pending(w->exchange) > WATCH_SLOW_BYTES ||
		http_stream_write(w->exchange, line, strlen(line)) < 0) {
		end(w);
		return -ENOBUFS;
	}
	return 0;
}

static int write_object(struct watcher *w, const char *type, const struct object *o)
{
	_cleanup_free_ char *text = w->view.form == FORM_PLAIN ? NULL : api_view_text(&w->view, o);

	w->sent_version = MAX(w->sent_version, o->resource_version);
	if (w->view.form != FORM_TABLE)
		return write_event(w, type, text ? text : o->json);
	/* Each event is a table of one row; the first has the columns. */
	_cleanup_json_ json_t *columns = w->columns_sent ? json_array() : table_columns(w->kind);
	_cleanup_free_ char *columns_text = json_text(columns);
	_cleanup_free_ char *table = xasprintf("{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":"
					       "{\"resourceVersion\":\"%llu\"},\"columnDefinitions\":%s,\"rows\":[%s]}",
		(unsigned long long)o->resource_version, w->columns_sent ? "null" : columns_text, text);

	w->columns_sent = true;
	return write_event(w, type, table);
}

static void bookmark(struct watcher *w, uint64_t version, bool initial_end)
{
	const struct kind_info *info = kind_info(w->kind);
	const char *note = initial_end ? ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}" : "";
	_cleanup_free_ char *text = w->view.form == FORM_TABLE
		? xasprintf("{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{\"resourceVersion\":\"%llu\"},"
			    "\"columnDefinitions\":null,\"rows\":[{\"cells\":[],\"object\":{\"kind\":\"PartialObjectMetadata\","
			    "\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{\"resourceVersion\":\"%llu\"%s}}}]}",
			      (unsigned long long)version, (unsigned long long)version, note)
		: xasprintf("{\"kind\":\"%s\",\"apiVersion\":\"%s\",\"metadata\":{\"resourceVersion\":\"%llu\"%s}}", info->kind,
			      info->api_version, (unsigned long long)version, note);

	w->sent_version = MAX(w->sent_version, version);
	if (write_event(w, "BOOKMARK", text) < 0)
		return; /* it is gone */
}

static bool matches(const struct watcher *w, const struct object *o)
{
	return (!*w->ns || str_eq(w->ns, o->ns)) && select_labels(&w->labels, o) &&
		select_fields(&w->fields, o);
}

/* What an event of the store is to a client whose selection can change; NULL: nothing. */
static const char *selected_type(struct watcher *w, enum object_event event, const struct object *o)
{
	_cleanup_free_ char *key = xasprintf("%s/%s", o->ns, o->name);
	const char *told = map_get(&w->told, key);
	/* Before the watch began it may have been selected: the client knows, we do not. */
	bool maybe = !told && o->created_version <= w->start_version;

	if (event == OBJECT_DELETED) {
		map_remove(&w->told, key);
		return told == TOLD || (!told && (maybe || matches(w, o))) ? "DELETED" : NULL;
	}
	if (matches(w, o)) {
		map_put(&w->told, key, TOLD);
		return told == TOLD || maybe ? "MODIFIED" : "ADDED";
	}
	map_put(&w->told, key, LEFT);
	return told == TOLD || maybe ? "DELETED" : NULL;
}

static int tell(struct watcher *w, enum object_event event, const struct object *o)
{
	static const char *const types[] = { "ADDED", "MODIFIED", "DELETED" };
	const char *type = types[event];

	if (*w->ns && !str_eq(w->ns, o->ns))
		return 0;
	if (w->mutable_selector)
		type = selected_type(w, event, o);
	else if (!select_fields(&w->fields, o))
		type = NULL;
	return type ? write_object(w, type, o) : 0;
}

static bool behind_cursor(const struct watcher *w, const struct object *o)
{
	int c = strcmp(o->ns, w->at_ns);

	return c > 0 || (c == 0 && strcmp(o->name, w->at_name) > 0);
}

/* The store gives an object in its present state: two changes in a row are the same news twice. Each change has a
 * resourceVersion of its own. */
static bool told_already(struct local_api *api, const struct object *o)
{
	for (size_t i = 0; i < ARRAY_LEN(api->told); i++)
		if (api->told[i] == o->resource_version)
			return true;
	api->told[api->next_told++ % ARRAY_LEN(api->told)] = o->resource_version;
	return false;
}

static void on_change(void *data, enum object_event event, const struct object *o)
{
	struct local_api *api = data;

	if (told_already(api, o))
		return;
	if (o->kind == KIND_POD)
		logs_pod_changed(api, o);

	for (struct watcher *w = api->watchers, *next; w; w = next) {
		next = w->next;
		if (w->kind != o->kind || o->resource_version <= w->start_version)
			continue;
		if (w->initial && behind_cursor(w, o))
			continue; /* the walk will come to it */
		if (tell(w, event, o) < 0)
			continue;
	}
}

static void send_initial(void *data)
{
	struct watcher *w = data;
	const struct object *o;

	while (http_stream_pending(w->exchange) < API_PAUSE_BYTES) {
		o = objects_after(w->api->objects, w->kind, w->at_ns, w->at_name);
		if (!o)
			break;
		free(w->at_ns);
		free(w->at_name);
		w->at_ns = xstrdup(o->ns);
		w->at_name = xstrdup(o->name);
		if (matches(w, o)) {
			if (w->mutable_selector) {
				_cleanup_free_ char *key = xasprintf("%s/%s", o->ns, o->name);

				map_put(&w->told, key, TOLD);
			}
			if (write_object(w, "ADDED", o) < 0)
				return;
		}
	}
	if (objects_after(w->api->objects, w->kind, w->at_ns, w->at_name)) {
		http_stream_on_drain(w->exchange, send_initial, w);
		return;
	}
	http_stream_on_drain(w->exchange, NULL, NULL);
	w->initial = false;
	if (w->initial_end)
		bookmark(w, objects_version(w->api->objects), true);
}

/* For a watch that resumes: what changed since, in order. */
struct missed {
	const struct object **v;
	size_t n;
};

static void add_missed(void *data, enum object_event event, const struct object *o)
{
	struct missed *m = data;

	(void)event;
	m->v = xreallocarray(m->v, m->n + 1, sizeof(*m->v));
	m->v[m->n++] = o;
}

static int by_version(const void *a, const void *b)
{
	uint64_t x = (*(const struct object *const *)a)->resource_version;
	uint64_t y = (*(const struct object *const *)b)->resource_version;

	return x < y ? -1 : x > y;
}

static void send_missed(struct watcher *w)
{
	struct objects *objects = w->api->objects;
	struct missed m = { 0 };
	const struct object *o;
	size_t i = 0;

	objects_deleted_since(objects, w->kind, w->start_version, add_missed, &m);
	size_t n_deleted = m.n;

	while ((o = objects_next(objects, w->kind, &i)))
		if (o->resource_version > w->start_version)
			add_missed(&m, OBJECT_MODIFIED, o);
	if (m.n > n_deleted)
		qsort(m.v, m.n, sizeof(*m.v), by_version);
	for (i = 0; i < m.n; i++) {
		bool is_new = m.v[i]->created_version > w->start_version;
		enum object_event event = m.v[i]->removed ? OBJECT_DELETED : is_new ? OBJECT_ADDED : OBJECT_MODIFIED;

		if (event == OBJECT_DELETED && is_new && !w->mutable_selector)
			continue; /* came and went */
		if (tell(w, event, m.v[i]) < 0)
			break;
	}
	free(m.v);
}

static void on_timer(uv_timer_t *timer);

static void plan_timer(struct watcher *w)
{
	uint64_t now = uv_now(w->api->loop), left = w->end_ms > now ? w->end_ms - now : 0;

	/* Without bookmarks only the end matters. */
	uv_timer_start(&w->timer, on_timer, w->bookmarks ? MIN(left, (uint64_t)BOOKMARK_MS) : left, 0);
}

static void on_timer(uv_timer_t *timer)
{
	struct watcher *w = timer->data;
	uint64_t version = objects_version(w->api->objects);
	bool over = uv_now(w->api->loop) >= w->end_ms;

	if (w->bookmarks && !w->initial && version > w->sent_version)
		bookmark(w, version, false);
	if (w->exchange && over)
		end(w);
	else if (w->exchange)
		plan_timer(w);
}

static void start_timer(struct watcher *w, int64_t seconds)
{
	uv_update_time(w->api->loop);
	w->end_ms = uv_now(w->api->loop) + (uint64_t)seconds * 1000;
	plan_timer(w);
}

static struct watcher *watcher_new(const struct api_call *call)
{
	struct watcher *w = xnew(struct watcher);

	w->api = call->api;
	w->exchange = call->exchange;
	w->kind = call->route.kind;
	w->ns = xstrdup(call->route.ns);
	w->view = api_view_of(call);
	w->bookmarks = api_query_bool(call->exchange, "allowWatchBookmarks");
	w->at_ns = xstrdup("");
	w->at_name = xstrdup("");
	uv_timer_init(call->api->loop, &w->timer);
	w->timer.data = w;
	w->next = call->api->watchers;
	if (w->next)
		w->next->prev = w;
	call->api->watchers = w;
	call->api->n_watchers++;
	return w;
}

/* 410: the client lists again. */
static void send_expired(struct watcher *w)
{
	_cleanup_json_ json_t *status = reply_status_tree(410, "Expired", "too old resource version");
	_cleanup_free_ char *text = json_text(status);

	if (write_event(w, "ERROR", text) == 0)
		end(w);
}

static void begin(struct watcher *w, bool from_start, uint64_t since)
{
	struct objects *objects = w->api->objects;
	uint64_t now = objects_version(objects);

	http_stream_begin(w->exchange, 200, "application/json", forget, w);
	if (from_start) {
		w->start_version = 0; /* what happens during the walk counts by the cursor */
		w->initial = true;
		send_initial(w);
		return;
	}
	w->start_version = since;
	if (since > now || !objects_deleted_since(objects, w->kind, since, NULL, NULL)) {
		send_expired(w);
		return;
	}
	w->sent_version = since;
	send_missed(w);
}

void api_watch(const struct api_call *call)
{
	_cleanup_free_ char *version = http_query(call->exchange, "resourceVersion");
	bool initial_events = api_query_bool(call->exchange, "sendInitialEvents");
	int64_t since, seconds;

	if (call->api->n_watchers >= API_WATCHERS_MAX) {
		http_add_header(call->exchange, "Retry-After", "1");
		reply_failure(call->exchange, 429, "TooManyRequests", NULL, "more than %d watches", API_WATCHERS_MAX);
		return;
	}
	if (api_query_int(call, "resourceVersion", 0, &since) < 0 ||
		api_query_int(call, "timeoutSeconds", WATCH_DEFAULT_S, &seconds) < 0)
		return;
	struct watcher *w = watcher_new(call);

	if (api_selectors(call, &w->labels, &w->fields) < 0) {
		forget(w);
		return;
	}
	if (*call->route.name) /* GET .../pods/web?watch=1 */
		select_add_name(&w->fields, call->route.name);
	w->mutable_selector = w->labels.n > 0 || select_is_mutable(&w->fields);
	w->initial_end = initial_events && w->bookmarks;
	start_timer(w, seconds == 0 ? WATCH_DEFAULT_S : MIN(seconds, WATCH_MAX_S));
	begin(w, initial_events || since == 0, (uint64_t)since);
}

void watch_subscribe(struct local_api *api)
{
	for (int i = 0; i < KIND_COUNT; i++)
		objects_subscribe(api->objects, (enum object_kind)i, on_change, api);
}

void watch_stop(struct local_api *api)
{
	while (api->watchers)
		end(api->watchers);
}

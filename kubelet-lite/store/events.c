/* events.c - purpose: record Kubernetes Events: what happened to an object, counted and bounded. */
#include "kubelet-lite/store/events.h"

#include "common/base/codec.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/sys/file.h"
#include "common/wire/json.h"
#include "common/wire/utf8.h"
#include "kubelet-lite/store/kinds.h"
#include "kubelet-lite/store/objects_i.h"

enum { EVENT_TTL_S = 3600, EVENT_SWEEP_MS = 300 * 1000, EVENT_MESSAGE_MAX = 1024 };

struct event_entry {
	uint64_t hash; /* of what must be equal to be "the same again" */
	char *ns, *name;
	uint64_t last_ns; /* monotonic */
};

struct events {
	struct event_entry v[EVENTS_MAX];
	size_t n;
	uv_timer_t sweep;
};

/* What an Event says, before it is an object. */
struct happening {
	const char *kind, *api_version, *ns, *name, *uid, *field_path, *type, *reason, *component, *message;
};

static uint64_t hash_of(const struct happening *h)
{
	const char *parts[] = { h->kind, h->ns, h->name, h->uid, h->field_path, h->type, h->reason, h->message };
	uint64_t hash = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		for (const char *p = parts[i]; p && *p; p++)
			hash = (hash ^ (unsigned char)*p) * 0x100000001b3ull;
		hash = (hash ^ 0x1f) * 0x100000001b3ull;
	}
	return hash;
}

static void entry_drop(struct objects *store, size_t i)
{
	struct events *e = store->events;
	struct event_entry old = e->v[i];
	struct object *o = store_find(store, KIND_EVENT, old.ns, old.name);

	e->v[i] = e->v[--e->n];
	if (o)
		store_remove(store, o);
	free(old.ns);
	free(old.name);
}

static void sweep(uv_timer_t *timer)
{
	struct objects *store = timer->data;
	struct events *e = store->events;
	uint64_t now = clock_monotonic_ns();

	for (size_t i = e->n; i-- > 0;)
		if (now - e->v[i].last_ns > EVENT_TTL_S * 1000000000ull)
			entry_drop(store, i);
	if (e->n == 0)
		uv_timer_stop(timer);
}

static struct events *events_of(struct objects *store)
{
	if (!store->events) {
		store->events = xnew(struct events);
		uv_timer_init(store->loop, &store->events->sweep);
		store->events->sweep.data = store;
		uv_unref((uv_handle_t *)&store->events->sweep);
	}
	if (!uv_is_active((uv_handle_t *)&store->events->sweep))
		uv_timer_start(&store->events->sweep, sweep, EVENT_SWEEP_MS, EVENT_SWEEP_MS);
	return store->events;
}

static void closed(uv_handle_t *handle)
{
	free(container_of(handle, struct events, sweep));
}

void events_free(struct objects *store)
{
	struct events *e = store->events;

	for (size_t i = 0; e && i < e->n; i++) {
		free(e->v[i].ns);
		free(e->v[i].name);
	}
	if (e)
		uv_close((uv_handle_t *)&e->sweep, closed);
}

static void log_event(const struct happening *h, int64_t count)
{
	enum log_level level = str_eq(h->type, "Warning") ? LOG_LEVEL_WARNING : LOG_LEVEL_DEBUG;

	char kind[32] = "";

	for (size_t i = 0; h->kind[i] && i < sizeof(kind) - 1; i++)
		kind[i] = h->kind[i] >= 'A' && h->kind[i] <= 'Z' ? (char)(h->kind[i] + 32) : h->kind[i];
	/* What repeats is logged at 1, 2, 4, 8 ... times. */
	if ((count & (count - 1)) == 0)
		log_line(level, "%s: %s %s=%s%s%s%s%s count=%lld", h->reason, h->message, kind, h->ns, *h->ns ? "/" : "", h->name,
			h->field_path ? " field=" : "", h->field_path ? h->field_path : "", (long long)count);
}

/* True: it was there, and counts one more. */
static bool count_again(struct objects *store, const struct happening *h, uint64_t hash)
{
	struct events *e = store->events;
	char now[TIME_TEXT_MAX];

	for (size_t i = 0; i < e->n; i++) {
		if (e->v[i].hash != hash)
			continue;
		struct object *o = store_find(store, KIND_EVENT, e->v[i].ns, e->v[i].name);

		if (!o)
			return false;
		_cleanup_json_ json_t *tree = object_tree(o);
		int64_t count = json_int_at(tree, "count", 1) + 1;

		time_text((int64_t)clock_realtime_ns(), TIME_SECONDS, now);
		json_object_set_new(tree, "count", json_integer(count));
		json_object_set_new(tree, "lastTimestamp", json_string(now));
		e->v[i].last_ns = clock_monotonic_ns();
		log_event(h, count);
		store_commit(store, o, tree, OBJECT_MODIFIED);
		return true;
	}
	return false;
}

static json_t *event_tree(const struct objects *store, const struct happening *h, const char *ns, const char *name)
{
	const char *host = objects_node_name(store);
	char now[TIME_TEXT_MAX];

	time_text((int64_t)clock_realtime_ns(), TIME_SECONDS, now);
	return json_pack("{s{ss ss} s{ss ss* ss ss* ss ss*} ss ss s{ss ss} ss ss si ss ss ss}", "metadata", "name", name,
		"namespace", ns, "involvedObject", "kind", h->kind, "namespace", *h->ns ? h->ns : NULL, "name", h->name, "uid",
		h->uid, "apiVersion", h->api_version, "fieldPath", h->field_path, "reason", h->reason, "message", h->message,
		"source", "component", h->component, "host", host, "firstTimestamp", now, "lastTimestamp", now, "count", 1,
		"type", h->type, "reportingComponent", h->component, "reportingInstance", host);
}

static void make_room(struct objects *store)
{
	struct events *e = store->events;
	size_t oldest = 0;

	if (e->n < EVENTS_MAX)
		return;
	for (size_t i = 1; i < e->n; i++)
		if (e->v[i].last_ns < e->v[oldest].last_ns)
			oldest = i;
	entry_drop(store, oldest);
}

static void record(struct objects *store, const struct happening *h)
{
	struct events *e = events_of(store);
	uint64_t hash = hash_of(h);

	if (count_again(store, h, hash))
		return;
	log_event(h, 1);
	make_room(store);
	const char *ns = *h->ns ? h->ns : "default";
	_cleanup_free_ char *name = xasprintf("%s.%llx", h->name, (unsigned long long)clock_realtime_ns());
	_cleanup_json_ json_t *tree = event_tree(store, h, ns, name);
	struct error err = ERROR_INIT;

	if (!tree || objects_put(store, KIND_EVENT, tree, NULL, NULL, &err) < 0) {
		log_warning("cannot record an event reason=%s error=%s", h->reason, tree ? err.text : "not UTF-8");
		return;
	}
	e->v[e->n++] = (struct event_entry){ hash, xstrdup(ns), xstrdup(name), clock_monotonic_ns() };
}

int events_put(struct objects *store, json_t *tree, struct error *err)
{
	struct events *e = events_of(store);
	const struct object *o;
	int r = objects_put(store, KIND_EVENT, tree, NULL, &o, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < e->n; i++)
		if (str_eq(e->v[i].name, o->name) && str_eq(e->v[i].ns, o->ns)) {
			e->v[i].last_ns = clock_monotonic_ns();
			return 0;
		}
	_cleanup_free_ char *ns = xstrdup(o->ns), *name = xstrdup(o->name);

	make_room(store);
	e->v[e->n++] = (struct event_entry){ 0, steal(ns), steal(name), clock_monotonic_ns() };
	return 0;
}

/* Text from outside may be long, and is cut at a character's start. */
static char *message_text(const char *fmt, va_list args)
{
	_cleanup_(str_done) struct str s = STR_INIT;

	str_vaddf(&s, fmt, args);
	for (size_t i = 0, n; i < s.len; i += n) {
		uint32_t code;

		n = utf8_decode(s.buf + i, s.len - i, &code);
		if (n == 0) {
			s.buf[i] = '?';
			n = 1;
		}
	}
	if (s.len > EVENT_MESSAGE_MAX) {
		size_t n = EVENT_MESSAGE_MAX;

		while (n > 0 && (s.buf[n] & 0xc0) == 0x80)
			n--;
		s.buf[n] = '\0';
		s.len = n;
	}
	return str_take(&s);
}

static void record_about(struct objects *store, const struct object *about, const char *field_path, const char *type,
	const char *reason, const char *component, const char *message)
{
	const struct kind_info *info = kind_info(about->kind);
	/* `kubectl describe node` looks for the node's name where the uid should be. */
	const char *uid = about->kind == KIND_NODE ? about->name : about->uid;

	record(store, &(struct happening){ info->kind, info->api_version, about->ns, about->name, uid, field_path, type, reason,
			      component, message });
}

void events_record(struct objects *store, const struct object *about, const char *type, const char *reason,
	const char *component, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	_cleanup_free_ char *message = message_text(fmt, args);
	va_end(args);
	record_about(store, about, NULL, type, reason, component, message);
}

void events_record_at(struct objects *store, const struct object *about, const char *field_path, const char *type,
	const char *reason, const char *component, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	_cleanup_free_ char *message = message_text(fmt, args);
	va_end(args);
	record_about(store, about, field_path, type, reason, component, message);
}

void events_record_for(struct objects *store, const char *kind, const char *ns, const char *name, const char *uid,
	const char *type, const char *reason, const char *component, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	_cleanup_free_ char *message = message_text(fmt, args);
	va_end(args);
	record(store, &(struct happening){ kind, "v1", ns ? ns : "", str_empty(name) ? "unnamed" : name, uid, NULL, type,
			      reason, component, message });
}

/* objects.c - purpose: every Kubernetes object that this node knows: lists, versions, subscribers, deletion. */
#include "kubelet-lite/store/objects_i.h"

#include <stdio.h>

#include "common/base/codec.h"
#include "common/base/log.h"
#include "common/sys/file.h"
#include "common/wire/json.h"
#include "kubelet-lite/store/kinds.h"

static void object_unref(struct object *o)
{
	if (--o->references > 0)
		return;
	free((char *)o->ns);
	free((char *)o->name);
	free(o->uid);
	free(o->json);
	free(o->labels);
	free(o->source);
	free(o->replacement);
	free(o->replacement_source);
	free(o);
}

char *store_key(enum object_kind kind, const char *ns, const char *name)
{
	return xasprintf("%s/%s/%s", kind_info(kind)->kind, ns, name);
}

/* Index of the first object that is not before (ns, name); *ret_found: is it that one? */
static size_t position(const struct object_list *list, const char *ns, const char *name, bool *ret_found)
{
	size_t low = 0, high = list->n;

	*ret_found = false;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int c = strcmp(list->v[mid]->ns, ns);

		if (c == 0)
			c = strcmp(list->v[mid]->name, name);
		if (c == 0) {
			*ret_found = true;
			return mid;
		}
		if (c < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct object *store_find(const struct objects *store, enum object_kind kind, const char *ns, const char *name)
{
	bool found;
	size_t at = position(&store->lists[kind], ns ? ns : "", name ? name : "", &found);

	return found ? store->lists[kind].v[at] : NULL;
}

struct object *store_insert(struct objects *store, enum object_kind kind, const char *ns, const char *name)
{
	struct object_list *list = &store->lists[kind];
	struct object *o = xnew(struct object);
	bool found;
	size_t at = position(list, ns, name, &found);

	assert(!found);
	o->kind = kind;
	o->ns = xstrdup(ns);
	o->name = xstrdup(name);
	o->references = 1;
	if ((list->n & (list->n - 1)) == 0)
		list->v = xreallocarray(list->v, list->n ? list->n * 2 : 1, sizeof(*list->v));
	memmove(&list->v[at + 1], &list->v[at], (list->n - at) * sizeof(*list->v));
	list->v[at] = o;
	list->n++;
	return o;
}

static void write_now(uv_timer_t *timer)
{
	struct objects *store = timer->data;
	struct error err = ERROR_INIT;

	if (state_write(&store->state, &err) < 0)
		log_warning("cannot write the state of objects, trying again error=%s", err.text);
	else
		return;
	uv_timer_start(timer, write_now, 5000, 0);
}

void store_state_changed(struct objects *store)
{
	if (!uv_is_active((uv_handle_t *)&store->write_timer))
		uv_timer_start(&store->write_timer, write_now, STATE_DELAY_MS, 0);
}

uint64_t store_next_version(struct objects *store)
{
	if (++store->version >= store->state.version_limit) {
		struct error err = ERROR_INIT;

		store->state.version_limit += STATE_RESERVE;
		if (state_write(&store->state, &err) < 0)
			log_warning("cannot reserve resourceVersions error=%s", err.text);
	}
	return store->version;
}

static void tell_subscribers(struct objects *store, enum object_event event, struct object *o)
{
	/* Subscribers may be added meanwhile: indexes, not pointers. */
	for (size_t i = 0; i < store->n_subscribers; i++) {
		struct subscriber s = store->subscribers[i];

		if (s.cb && s.kind == o->kind && (event == OBJECT_DELETED || !o->removed))
			s.cb(s.data, event, o);
	}
}

/* What happens while subscribers are being told of something else is told next: one at a time, in order. */
static void notify(struct objects *store, enum object_event event, struct object *o)
{
	o->references++;
	store->queue = xreallocarray(store->queue, store->n_queue + 1, sizeof(*store->queue));
	store->queue[store->n_queue++] = (struct notification){ event, o };
	if (store->notifying)
		return;
	store->notifying = true;
	for (size_t i = 0; i < store->n_queue; i++) {
		struct notification n = store->queue[i];

		tell_subscribers(store, n.event, n.object);
		object_unref(n.object);
	}
	store->notifying = false;
	store->n_queue = 0;
	free(steal(store->queue));
}

static void take_labels(struct object *o, const json_t *tree)
{
	_cleanup_(str_done) struct str s = STR_INIT;
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)json_at(tree, "metadata.labels"), key, value)
		if (json_is_string(value)) {
			str_addf(&s, "%s=%s", key, json_string_value(value));
			str_add_bytes(&s, "", 1);
		}
	str_add_bytes(&s, "", 1);
	free(o->labels);
	o->labels = str_take(&s);
}

static void take_text(struct objects *store, struct object *o, json_t *tree)
{
	json_t *meta = json_object_get(tree, "metadata");

	o->resource_version = store_next_version(store);
	if (!o->created_version)
		o->created_version = o->resource_version;
	_cleanup_free_ char *version = xasprintf("%llu", (unsigned long long)o->resource_version);

	json_object_set_new(meta, "resourceVersion", json_string(version));
	free(o->json);
	o->json = json_text(tree);
	o->json_len = strlen(o->json);
	o->generation = (uint64_t)json_int_at(meta, "generation", 0);
	o->deleting = json_object_get(meta, "deletionTimestamp") != NULL;
	take_labels(o, tree);
}

void store_commit(struct objects *store, struct object *o, json_t *tree, enum object_event event)
{
	take_text(store, o, tree);
	notify(store, event, o);
}

static void tomb_drop(struct object_list *list)
{
	struct object *old = list->tombs[0];

	list->tomb_floor = old->resource_version;
	list->tomb_bytes -= old->json_len;
	memmove(&list->tombs[0], &list->tombs[1], (--list->n_tombs) * sizeof(*list->tombs));
	object_unref(old);
}

/* Takes over the list's reference. */
static void tomb_add(struct object_list *list, struct object *o)
{
	if (!list->tombs)
		list->tombs = xreallocarray(NULL, TOMBSTONES_MAX + 1, sizeof(*list->tombs));
	list->tombs[list->n_tombs++] = o;
	list->tomb_bytes += o->json_len;
	while (list->n_tombs > TOMBSTONES_MAX || (list->tomb_bytes > TOMBSTONE_BYTES_MAX && list->n_tombs > 1))
		tomb_drop(list);
}

void store_remove(struct objects *store, struct object *o)
{
	struct object_list *list = &store->lists[o->kind];
	_cleanup_json_ json_t *tree = object_tree(o);
	_cleanup_free_ char *key = store_key(o->kind, o->ns, o->name);
	bool found;
	size_t at = position(list, o->ns, o->name, &found);

	assert(found && list->v[at] == o);
	memmove(&list->v[at], &list->v[at + 1], (list->n - at - 1) * sizeof(*list->v));
	list->n--;
	o->removed = true;
	if (o->kind == KIND_SERVICE)
		service_release(store, o->ns, o->name);
	if (state_get(&store->state, key)) {
		state_forget(&store->state, key);
		store_state_changed(store);
	}
	if (o->kind == KIND_EVENT) { /* watchers need no more than its name */
		json_object_del(tree, "message");
		json_object_del(tree, "source");
	}
	o->references++;
	store_commit(store, o, tree, OBJECT_DELETED);
	tomb_add(list, o);
	object_unref(o);
}

bool objects_deleted_since(const struct objects *store, enum object_kind kind, uint64_t since, objects_cb cb, void *data)
{
	const struct object_list *list = &store->lists[kind];

	if (since < list->tomb_floor)
		return false;
	for (size_t i = 0; cb && i < list->n_tombs; i++)
		if (list->tombs[i]->resource_version > since)
			cb(data, OBJECT_DELETED, list->tombs[i]);
	return true;
}

int objects_new(uv_loop_t *loop, const struct objects_options *options, struct objects **ret, struct error *err)
{
	struct objects *store = xnew(struct objects);
	const char *cidr = options->service_cidr ? options->service_cidr : "10.96.0.0/16";
	uint64_t version = 0;

	store->state = STATE_INIT;
	store->loop = loop;
	store->addresses.port_min = options->node_port_min ? options->node_port_min : 30000;
	store->addresses.port_max = options->node_port_max ? options->node_port_max : 32767;
	int r = ip_range_parse(cidr, &store->addresses.range, err);

	if (r < 0)
		error_prefix(err, "range of ClusterIPs");
	else
		r = state_open(&store->state, options->root_dir, &version, err);
	if (r < 0) {
		state_done(&store->state);
		free(store);
		return r;
	}
	store->version = version;
	for (int i = 0; i < KIND_COUNT; i++)
		store->lists[i].tomb_floor = version;
	service_reserve_saved(store);
	store->node_name = xstrdup(options->node_name);
	uv_timer_init(loop, &store->write_timer);
	store->write_timer.data = store;
	uv_unref((uv_handle_t *)&store->write_timer);
	*ret = store;
	return 0;
}

static void closed(uv_handle_t *handle)
{
	free(handle->data);
}

void objects_free(struct objects *store)
{
	struct error err = ERROR_INIT;

	if (!store)
		return;
	if (uv_is_active((uv_handle_t *)&store->write_timer) && state_write(&store->state, &err) < 0)
		log_warning("cannot write the state of objects error=%s", err.text);
	for (int i = 0; i < KIND_COUNT; i++) {
		struct object_list *list = &store->lists[i];

		for (size_t j = 0; j < list->n; j++)
			object_unref(list->v[j]);
		for (size_t j = 0; j < list->n_tombs; j++)
			object_unref(list->tombs[j]);
		free(list->v);
		free(list->tombs);
	}
	events_free(store);
	addresses_done(&store->addresses);
	state_done(&store->state);
	free(store->subscribers);
	free(store->node_name);
	uv_close((uv_handle_t *)&store->write_timer, closed);
}

const struct object *objects_get(const struct objects *store, enum object_kind kind, const char *ns, const char *name)
{
	return store_find(store, kind, ns, name);
}

const struct object *objects_next(const struct objects *store, enum object_kind kind, size_t *i)
{
	const struct object_list *list = &store->lists[kind];

	return *i < list->n ? list->v[(*i)++] : NULL;
}

const struct object *objects_after(const struct objects *store, enum object_kind kind, const char *ns, const char *name)
{
	const struct object_list *list = &store->lists[kind];
	bool found;
	size_t at = position(list, ns, name, &found);

	if (found)
		at++;
	return at < list->n ? list->v[at] : NULL;
}

size_t objects_count(const struct objects *store, enum object_kind kind)
{
	return store->lists[kind].n;
}

json_t *object_tree(const struct object *object)
{
	json_t *tree = NULL;

	/* Our own text: it can always be read back. */
	if (json_read(object->json, object->json_len, false, &tree, NULL) < 0)
		abort();
	return tree;
}

const char *object_label(const struct object *object, const char *key)
{
	size_t len = strlen(key);

	for (const char *p = object->labels; p && *p; p += strlen(p) + 1)
		if (strncmp(p, key, len) == 0 && p[len] == '=')
			return p + len + 1;
	return NULL;
}

const char *object_title(const struct object *object)
{
	static char ring[2][400];
	static unsigned next;
	char *buf = ring[next++ % 2];
	const char *kind = kind_info(object->kind)->singular;

	if (*object->ns)
		snprintf(buf, sizeof(ring[0]), "%s=%s/%s", kind, object->ns, object->name);
	else
		snprintf(buf, sizeof(ring[0]), "%s=%s", kind, object->name);
	return buf;
}

int objects_put_status(struct objects *store, enum object_kind kind, const char *ns, const char *name,
	const json_t *status, struct error *err)
{
	struct object *o = store_find(store, kind, ns, name);

	if (!o)
		return error_set(err, ERROR_NOT_FOUND, "%s \"%s\" not found", kind_info(kind)->plural, name);
	_cleanup_json_ json_t *tree = object_tree(o);

	if (json_equal(json_object_get(tree, "status"), status))
		return 0;
	json_object_set(tree, "status", (json_t *)status);
	store_commit(store, o, tree, OBJECT_MODIFIED);
	return 0;
}

static void mark_deleting(struct objects *store, struct object *o, int64_t grace)
{
	_cleanup_json_ json_t *tree = object_tree(o);
	json_t *meta = json_object_get(tree, "metadata");
	char when[TIME_TEXT_MAX];

	if (grace < 0)
		grace = json_int_at(tree, "spec.terminationGracePeriodSeconds", 30);
	/* A day is more than anyone waits for, and keeps the sum below in range. */
	grace = MIN(grace, 86400 * 365);
	if (o->deleting && json_int_at(meta, "deletionGracePeriodSeconds", 0) <= grace)
		return;
	time_text((int64_t)clock_realtime_ns() + grace * 1000000000, TIME_SECONDS, when);
	json_object_set_new(meta, "deletionTimestamp", json_string(when));
	json_object_set_new(meta, "deletionGracePeriodSeconds", json_integer(grace));
	store_commit(store, o, tree, OBJECT_MODIFIED);
}

int objects_delete(struct objects *store, enum object_kind kind, const char *ns, const char *name, int64_t grace_seconds,
	struct error *err)
{
	struct object *o = store_find(store, kind, ns, name);

	if (!o)
		return error_set(err, ERROR_NOT_FOUND, "%s \"%s\" not found", kind_info(kind)->plural, name);
	if (kind != KIND_POD) {
		store_remove(store, o);
		return 0;
	}
	free(steal(o->replacement));
	free(steal(o->replacement_source));
	mark_deleting(store, o, grace_seconds);
	return 0;
}

void objects_remove(struct objects *store, enum object_kind kind, const char *ns, const char *name, const char *uid)
{
	struct object *o = store_find(store, kind, ns, name);

	if (!o || (uid && !str_eq(o->uid, uid)))
		return;
	_cleanup_free_ char *next = steal(o->replacement);
	_cleanup_free_ char *source = steal(o->replacement_source);

	store_remove(store, o);
	if (!next)
		return;
	_cleanup_json_ json_t *tree = NULL;
	struct error err = ERROR_INIT;

	if (json_read(next, strlen(next), false, &tree, &err) < 0 || objects_put(store, kind, tree, source, NULL, &err) < 0)
		log_warning("replacement is not accepted %s=%s/%s error=%s", kind_info(kind)->singular, ns, name, err.text);
}

void objects_subscribe(struct objects *store, enum object_kind kind, objects_cb cb, void *data)
{
	store->subscribers = xreallocarray(store->subscribers, store->n_subscribers + 1, sizeof(*store->subscribers));
	store->subscribers[store->n_subscribers++] = (struct subscriber){ kind, cb, data };
	_cleanup_free_ char *ns = xstrdup(""), *name = xstrdup("");

	for (const struct object *o; (o = objects_after(store, kind, ns, name));) {
		free(ns);
		free(name);
		ns = xstrdup(o->ns);
		name = xstrdup(o->name);
		cb(data, OBJECT_ADDED, o);
	}
}

void objects_unsubscribe(struct objects *store, const void *data)
{
	for (size_t i = 0; i < store->n_subscribers; i++)
		if (store->subscribers[i].data == data)
			store->subscribers[i].cb = NULL;
}

uint64_t objects_version(const struct objects *store)
{
	return store->version;
}

void objects_loaded(struct objects *store)
{
	store->loaded = true;
}

const char *objects_node_name(const struct objects *store)
{
	return store->node_name ? store->node_name : "";
}

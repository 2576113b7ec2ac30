/*
 * endpoints.c - purpose: EndpointSlices of Services with selectors follow the pods that they select.
 *
 * Of each pod only what matters here is kept. A change of it marks the Services of its namespace; they are computed in
 * the next turn of the loop, so that many changes at once cost one computation.
 */
#include "kubelet-lite/local/endpoints.h"

#include <stdio.h>

#include "common/base/log.h"
#include "common/base/map.h"
#include "common/base/str.h"
#include "common/wire/json.h"
#include "kubelet-lite/local/slices.h"

struct endpoints {
	struct objects *objects;
	struct map pods;  /* "ns/name" -> struct slice_pod */
	struct map dirty; /* "ns/service" -> itself */
	uv_timer_t timer;
};

static char DIRTY[] = "dirty";

static void free_pod(void *pod)
{
	slice_pod_free(pod);
}

static void work(uv_timer_t *timer);

static void mark(struct endpoints *e, const char *ns, const char *name)
{
	_cleanup_free_ char *key = xasprintf("%s/%s", ns, name);

	map_put(&e->dirty, key, DIRTY);
	uv_timer_start(&e->timer, work, 0, 0);
}

static void mark_namespace(struct endpoints *e, const char *ns)
{
	const struct object *o;

	for (const char *name = ""; (o = objects_after(e->objects, KIND_SERVICE, ns, name)) && str_eq(o->ns, ns);
		name = o->name)
		mark(e, o->ns, o->name);
}

static void on_pod(void *data, enum object_event event, const struct object *o)
{
	struct endpoints *e = data;
	_cleanup_free_ char *key = xasprintf("%s/%s", o->ns, o->name);
	struct slice_pod *old = map_get(&e->pods, key), *pod = NULL;

	if (event != OBJECT_DELETED) {
		_cleanup_json_ json_t *tree = object_tree(o);

		pod = slice_pod_new(tree, o->labels);
	}
	if (pod && old && slice_pod_equal(pod, old)) {
		slice_pod_free(pod);
		return;
	}
	if (pod)
		map_put(&e->pods, key, pod);
	else
		map_remove(&e->pods, key);
	if (old)
		slice_pod_free(old);
	mark_namespace(e, o->ns);
}

static void on_service(void *data, enum object_event event, const struct object *o)
{
	(void)event;
	mark(data, o->ns, o->name);
}

/* Slices of ours that the Service does not need (any more). */
static void delete_others(struct endpoints *e, const char *ns, const char *service, const json_t *wanted)
{
	_cleanup_(strv_done) struct strv names = STRV_INIT;
	const struct object *o;
	json_t *slice;
	size_t i;

	for (const char *name = ""; (o = objects_after(e->objects, KIND_ENDPOINT_SLICE, ns, name)) && str_eq(o->ns, ns);
		name = o->name) {
		bool keep = o->source || !str_eq(object_label(o, "kubernetes.io/service-name"), service);

		json_array_foreach ((json_t *)wanted, i, slice)
			keep |= str_eq(json_str_at(slice, "metadata.name", ""), o->name);
		if (!keep)
			strv_add(&names, o->name);
	}
	for (i = 0; i < names.n; i++)
		if (objects_delete(e->objects, KIND_ENDPOINT_SLICE, ns, names.v[i], -1, NULL) < 0)
			continue; /* a subscriber was faster */
}

static json_t *compute(struct endpoints *e, const struct object *service)
{
	_cleanup_json_ json_t *tree = object_tree(service);
	const struct slice_pod **pods = xcalloc(e->pods.count + 1, sizeof(*pods));
	const struct object *o;
	size_t n = 0;

	for (const char *name = ""; (o = objects_after(e->objects, KIND_POD, service->ns, name)) && str_eq(o->ns, service->ns);
		name = o->name) {
		_cleanup_free_ char *key = xasprintf("%s/%s", o->ns, o->name);
		const struct slice_pod *pod = map_get(&e->pods, key);

		if (pod)
			pods[n++] = pod;
	}
	json_t *slices = slices_of_service(tree, pods, n);

	free(pods);
	return slices;
}

static void update(struct endpoints *e, const char *ns, const char *name)
{
	const struct object *service = objects_get(e->objects, KIND_SERVICE, ns, name);
	_cleanup_json_ json_t *slices = service ? compute(e, service) : json_array();
	json_t *slice;
	size_t i;

	json_array_foreach (slices, i, slice) {
		struct error err = ERROR_INIT;
		const struct object *have =
			objects_get(e->objects, KIND_ENDPOINT_SLICE, ns, json_str_at(slice, "metadata.name", ""));

		if (have && have->source)
			continue; /* a manifest has taken that name */
		if (objects_put(e->objects, KIND_ENDPOINT_SLICE, slice, NULL, NULL, &err) < 0)
			log_warning("cannot keep an EndpointSlice service=%s/%s error=%s", ns, name, err.text);
	}
	delete_others(e, ns, name, slices);
}

static void work(uv_timer_t *timer)
{
	struct endpoints *e = timer->data;
	struct map dirty = e->dirty;
	struct map_iter it = MAP_ITER_INIT;

	e->dirty = MAP_INIT;
	while (map_next(&dirty, &it)) {
		_cleanup_free_ char *ns = xstrdup(it.key);
		char *slash = strchr(ns, '/');

		*slash = '\0';
		update(e, ns, slash + 1);
	}
	map_done(&dirty);
}

struct endpoints *endpoints_start(uv_loop_t *loop, struct objects *objects)
{
	struct endpoints *e = xnew(struct endpoints);

	e->objects = objects;
	uv_timer_init(loop, &e->timer);
	e->timer.data = e;
	objects_subscribe(objects, KIND_SERVICE, on_service, e);
	objects_subscribe(objects, KIND_POD, on_pod, e);
	return e;
}

static void closed(uv_handle_t *handle)
{
	struct endpoints *e = handle->data;

	map_done(&e->dirty);
	map_done_values(&e->pods, free_pod);
	free(e);
}

void endpoints_stop(struct endpoints *e)
{
	if (!e)
		return;
	objects_unsubscribe(e->objects, e);
	uv_close((uv_handle_t *)&e->timer, closed);
}

/* services.c - purpose: all Services with their EndpointSlices, and which of them changed since the last sync. */
#include "proxy-lite/model/services.h"

static const char *const kind_names[] = { "Service", "EndpointSlice" };
static const char nameless[] = "without a usable name"; /* such objects cannot be told apart */

void services_init(struct services *s, const struct node_identity *node)
{
	*s = (struct services){ .node = *node };
}

static void entry_free(void *p)
{
	struct service_entry *entry = p;

	service_free(entry->service);
	free(entry->slices); /* the slices themselves are in the other map */
	free(entry);
}

static void slice_free_value(void *slice)
{
	slice_free(slice);
}

void services_done(struct services *s)
{
	map_done_values(&s->entries, entry_free);
	map_done_values(&s->slices, slice_free_value);
	problems_done(&s->problems);
	*s = (struct services){ 0 };
}

struct service_entry *services_find(const struct services *s, const char *key)
{
	return map_get(&s->entries, key);
}

static struct service_entry *entry_get(struct services *s, const char *key)
{
	struct service_entry *entry = map_get(&s->entries, key);

	if (!entry) {
		size_t n = strlen(key) + 1;

		entry = xcalloc(1, sizeof(*entry) + n);
		memcpy(entry->key, key, n);
		map_put(&s->entries, key, entry);
	}
	return entry;
}

void services_mark(struct services *s, struct service_entry *entry)
{
	if (entry->dirty)
		return;
	entry->dirty = true;
	entry->next = NULL;
	if (s->dirty_last)
		s->dirty_last->next = entry;
	else
		s->dirty = entry;
	s->dirty_last = entry;
	s->n_dirty++;
}

void services_mark_all(struct services *s)
{
	struct map_iter it = MAP_ITER_INIT;

	while (map_next(&s->entries, &it))
		services_mark(s, it.value);
}

struct service_entry *services_take(struct services *s)
{
	struct service_entry *entry = s->dirty;

	if (!entry)
		return NULL;
	s->dirty = entry->next;
	if (!s->dirty)
		s->dirty_last = NULL;
	entry->dirty = false;
	entry->next = NULL;
	s->n_dirty--;
	return entry;
}

void services_sweep(struct services *s, struct service_entry *entry)
{
	if (entry->service || entry->n_slices || entry->frontends || entry->dirty)
		return;
	map_remove(&s->entries, entry->key);
	entry_free(entry);
}

static void changed(struct services *s, struct service_entry *entry, enum object_kind kind)
{
	s->changes[kind]++;
	services_mark(s, entry);
}

static bool has_health_port(const struct service *service)
{
	return service && service->outside && service->outside->health_port;
}

/* NULL removes. */
static bool set_service(struct services *s, const char *key, struct service *service)
{
	struct service_entry *entry = service ? entry_get(s, key) : services_find(s, key);

	if (!entry || (!service && !entry->service))
		return false;
	entry->seen = true;
	if (service && entry->service && service_equal(service, entry->service)) {
		service_free(service);
		return false;
	}
	s->n_services += (size_t)(service != NULL) - (size_t)(entry->service != NULL);
	s->n_health_ports += (size_t)has_health_port(service) - (size_t)has_health_port(entry->service);
	service_free(entry->service);
	entry->service = service;
	changed(s, entry, OBJECT_SERVICE);
	return true;
}

static void unlink_slice(struct services *s, struct slice *slice)
{
	struct service_entry *entry = services_find(s, slice->service_key);

	for (uint32_t i = 0; i < entry->n_slices; i++)
		if (entry->slices[i] == slice) {
			entry->slices[i] = entry->slices[--entry->n_slices];
			break;
		}
	changed(s, entry, OBJECT_SLICE);
}

/* NULL removes. */
static bool set_slice(struct services *s, const char *key, struct slice *slice)
{
	struct slice *before = map_get(&s->slices, key);
	struct service_entry *entry;

	if (!slice && !before)
		return false;
	if (slice && before && slice_equal(slice, before)) {
		before->seen = true;
		slice_free(slice);
		return false;
	}
	if (before) {
		unlink_slice(s, before);
		map_remove(&s->slices, key);
		slice_free(before);
	}
	if (!slice)
		return true;
	slice->seen = true;
	map_put(&s->slices, key, slice);
	entry = entry_get(s, slice->service_key);
	entry->slices = xreallocarray(entry->slices, entry->n_slices + 1, sizeof(slice));
	entry->slices[entry->n_slices++] = slice;
	changed(s, entry, OBJECT_SLICE);
	if (slice->trigger_ms && (!s->oldest_trigger_ms || slice->trigger_ms < s->oldest_trigger_ms))
		s->oldest_trigger_ms = slice->trigger_ms;
	return true;
}

bool services_put(struct services *s, enum object_kind kind, const json_t *object)
{
	_cleanup_(str_done) struct str left_out = STR_INIT;
	_cleanup_free_ char *key = NULL;
	struct error err = ERROR_INIT;
	struct service *service = NULL;
	struct slice *slice = NULL;
	const char *text;
	int r;

	key = object_key(object, &err);
	if (!key) {
		problems_set(&s->problems, kind_names[kind], nameless, err.text);
		return false;
	}
	r = kind == OBJECT_SERVICE ? service_parse(object, &s->node, &service, &left_out, &err)
				   : slice_parse(object, &s->node, &slice, &left_out, &err);
	text = r < 0 ? err.text : str_get(&left_out);
	problems_set(&s->problems, kind_names[kind], key, text);
	return kind == OBJECT_SERVICE ? set_service(s, key, service) : set_slice(s, key, slice);
}

static bool remove_key(struct services *s, enum object_kind kind, const char *key)
{
	problems_set(&s->problems, kind_names[kind], key, NULL);
	return kind == OBJECT_SERVICE ? set_service(s, key, NULL) : set_slice(s, key, NULL);
}

bool services_delete(struct services *s, enum object_kind kind, const json_t *object)
{
	_cleanup_free_ char *key = object_key(object, NULL);

	if (!key)
		problems_set(&s->problems, kind_names[kind], nameless, NULL);
	return key && remove_key(s, kind, key);
}

void services_list_begin(struct services *s, enum object_kind kind)
{
	struct map_iter it = MAP_ITER_INIT;

	problems_set(&s->problems, kind_names[kind], nameless, NULL);
	if (kind == OBJECT_SERVICE)
		while (map_next(&s->entries, &it))
			((struct service_entry *)it.value)->seen = false;
	else
		while (map_next(&s->slices, &it))
			((struct slice *)it.value)->seen = false;
}

void services_list_end(struct services *s, enum object_kind kind)
{
	struct map_iter it = MAP_ITER_INIT;
	struct strv gone = STRV_INIT;

	if (kind == OBJECT_SERVICE) {
		while (map_next(&s->entries, &it)) {
			const struct service_entry *entry = it.value;

			if (entry->service && !entry->seen)
				strv_add(&gone, it.key);
		}
	} else {
		while (map_next(&s->slices, &it))
			if (!((const struct slice *)it.value)->seen)
				strv_add(&gone, it.key);
	}
	for (size_t i = 0; i < gone.n; i++)
		remove_key(s, kind, gone.v[i]);
	strv_done(&gone);
}

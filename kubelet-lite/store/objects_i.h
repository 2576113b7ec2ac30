/* objects_i.h - purpose: what the modules of the object store share. */
#pragma once
#include "kubelet-lite/store/addresses.h"
#include "kubelet-lite/store/objects.h"
#include "kubelet-lite/store/state.h"

enum { TOMBSTONES_MAX = 500, TOMBSTONE_BYTES_MAX = 256 * 1024, STATE_DELAY_MS = 20 };

struct object_list {
	struct object **v; /* sorted by namespace and name */
	size_t n;
	/* What was deleted lately, oldest first. */
	struct object **tombs;
	size_t n_tombs;
	size_t tomb_bytes;
	uint64_t tomb_floor; /* resourceVersion up to which deletions are forgotten */
};

struct subscriber {
	enum object_kind kind;
	objects_cb cb;
	void *data;
};

struct notification {
	enum object_event event;
	struct object *object; /* a reference */
};

struct objects {
	uv_loop_t *loop;
	uv_timer_t write_timer;
	char *node_name;
	struct object_list lists[KIND_COUNT];
	struct subscriber *subscribers;
	size_t n_subscribers;
	struct notification *queue;
	size_t n_queue;
	bool notifying;
	uint64_t version;
	struct state state;
	struct addresses addresses;
	struct events *events; /* events.c */
	bool loaded;           /* who is absent now does not come back by itself */
};

uint64_t store_next_version(struct objects *store);
/* "Pod/default/web"; owned by the caller. */
char *store_key(enum object_kind kind, const char *ns, const char *name) MUST_USE;
/* The state file is written soon. */
void store_state_changed(struct objects *store);
struct object *store_find(const struct objects *store, enum object_kind kind, const char *ns, const char *name);
struct object *store_insert(struct objects *store, enum object_kind kind, const char *ns, const char *name);
/* Gives the tree the next resourceVersion, keeps it as text, tells subscribers. */
void store_commit(struct objects *store, struct object *object, json_t *tree, enum object_event event);
void store_remove(struct objects *store, struct object *object);
/* One ClusterIP and the nodePorts of a Service, written into its tree. */
int service_allocate(struct objects *store, json_t *tree, struct error *err);
/* At start: what Services had before is not given to others while they are read. */
void service_reserve_saved(struct objects *store);
void service_release(struct objects *store, const char *ns, const char *name);
void events_free(struct objects *store);

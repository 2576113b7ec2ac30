/*
 * objects.h - purpose: every Kubernetes object that this node knows; the one source of truth in memory.
 *
 * An object is kept as compact JSON text (a jansson tree of it would need twelve times as much). What users may write
 * (metadata, spec, data) comes by objects_put(), what the node finds out (status) by objects_put_status(). Each change
 * gets the next resourceVersion, of one counter for all kinds that never goes backwards, not even over restarts.
 * uids, creation times, ClusterIPs and nodePorts are kept over restarts in a small state file.
 *
 * A pod whose spec changes becomes another pod (new uid): the old one is marked as deleting, the new one waits until
 * objects_remove() says that the old one is gone. There are never two pods of one name, and the last version wins.
 * Labels and annotations change in place.
 *
 * Loop thread only.
 */
#pragma once
#include "common/base/error.h"

#include <jansson.h>
#include <uv.h>

enum object_kind {
	KIND_NODE,
	KIND_NAMESPACE,
	KIND_POD,
	KIND_SERVICE,
	KIND_ENDPOINT_SLICE,
	KIND_CONFIG_MAP,
	KIND_SECRET,
	KIND_EVENT,
	KIND_LEASE,
	KIND_COUNT,
};

enum object_event { OBJECT_ADDED, OBJECT_MODIFIED, OBJECT_DELETED };

/* Owned by the store. Pointers stay valid until the object is removed, the strings until it next changes. */
struct object {
	enum object_kind kind;
	const char *ns; /* "" for what has no namespace */
	const char *name;
	char *uid;
	char *json; /* the whole object, compact, with metadata and status */
	size_t json_len;
	char *labels; /* "a=1\0b=2\0\0" */
	uint64_t resource_version;
	uint64_t created_version; /* resourceVersion of its creation */
	uint64_t generation;
	bool deleting; /* metadata.deletionTimestamp is set */
	char *source;  /* path of the manifest file, or NULL: made by the node itself */

	/* private */
	char *replacement;        /* pod: the next version (JSON), waiting for this one to go */
	char *replacement_source; /* its file */
	unsigned references;
	bool removed;
};

struct objects;

struct objects_options {
	const char *root_dir;           /* state file "objects.json" and a lock are kept here; NULL: nothing is kept (tests) */
	const char *node_name;          /* spec.nodeName of pods */
	const char *service_cidr;       /* NULL: "10.96.0.0/16"; IPv4 or IPv6 */
	unsigned node_port_min;         /* 0: 30000-32767 */
	unsigned node_port_max;
};

/* Fails with ERROR_EXISTS when another process uses root_dir. */
int objects_new(uv_loop_t *loop, const struct objects_options *options, struct objects **ret, struct error *err) MUST_USE;
/* Writes state that is not yet on disk. Subscribers are not told. Closes its handles: run the loop once more. */
void objects_free(struct objects *store);

const struct object *objects_get(const struct objects *store, enum object_kind kind, const char *ns, const char *name);
/*	size_t i = 0;
 *	while ((o = objects_next(store, KIND_POD, &i))) ...
 * Sorted by namespace and name. Nothing of that kind may be added or removed meanwhile. */
const struct object *objects_next(const struct objects *store, enum object_kind kind, size_t *i);
/* The first one behind (ns, name) in that order, for walks that are interrupted by other work. */
const struct object *objects_after(const struct objects *store, enum object_kind kind, const char *ns, const char *name);
size_t objects_count(const struct objects *store, enum object_kind kind);
/* A new tree of the object. */
json_t *object_tree(const struct object *object) MUST_USE;
/* Value of a label, NULL if absent. Owned by the object. */
const char *object_label(const struct object *object, const char *key);
/* "pod=ns/name", for log lines: "Pod default/web". Static buffer of 2, loop thread. */
const char *object_title(const struct object *object);

/*
 * Adds or replaces. `tree` is borrowed; defaults are filled into it. Errors are ERROR_INVALID and name field, value and
 * what is allowed. status is kept (a status in the tree is used only for a new object). Nothing happens when nothing
 * differs. `source` is the manifest file, NULL for objects of the node itself; *ret may be NULL and is the object (for a
 * pod that waits for its predecessor: the predecessor).
 */
int objects_put(struct objects *store, enum object_kind kind, json_t *tree, const char *source, const struct object **ret,
	struct error *err) MUST_USE;
/* Replaces .status only. `status` is borrowed. A new resourceVersion only if it differs. ERROR_NOT_FOUND. */
int objects_put_status(struct objects *store, enum object_kind kind, const char *ns, const char *name,
	const json_t *status, struct error *err) MUST_USE;
/*
 * Pods: sets deletionTimestamp and deletionGracePeriodSeconds (grace_seconds -1: the pod's own; a second call can only
 * shorten it), subscribers get MODIFIED with `deleting`, and the one who tears the pod down then calls objects_remove().
 * A waiting replacement is dropped. Other kinds go at once. ERROR_NOT_FOUND.
 */
int objects_delete(struct objects *store, enum object_kind kind, const char *ns, const char *name, int64_t grace_seconds,
	struct error *err) MUST_USE;
/* The pod is gone for good: DELETED; then its waiting replacement, if any, is ADDED. Ignored when the uid is not that of
 * the present object (NULL: any). */
void objects_remove(struct objects *store, enum object_kind kind, const char *ns, const char *name, const char *uid);

typedef void (*objects_cb)(void *data, enum object_event event, const struct object *object);
/* Called synchronously after each change, at once with ADDED for what exists already. A subscriber may change the store
 * from inside; all are told of that when they have been told of the first change (no call from inside a call). The
 * object is given in its present state, which may be a later one than that of the event. Lives as long as the store. */
void objects_subscribe(struct objects *store, enum object_kind kind, objects_cb cb, void *data);
/* Ends all subscriptions that have this `data`. */
void objects_unsubscribe(struct objects *store, const void *data);

/* The newest resourceVersion that was given out. */
uint64_t objects_version(const struct objects *store);
/* What was deleted lately, for watches that resume: calls cb for each with resource_version > since, in order, with
 * resource_version being that of the deletion. False: since is too old (410 Gone). */
bool objects_deleted_since(const struct objects *store, enum object_kind kind, uint64_t since, objects_cb cb, void *data);

/* All manifests have been read once: addresses that were kept for Services that are not among them may be given away. */
void objects_loaded(struct objects *store);
const char *objects_node_name(const struct objects *store);

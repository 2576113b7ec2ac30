/*
 * store.h - purpose: all sandboxes and containers, by id and by reserved name, in memory and on disk.
 *
 * One lock protects all of it and is held for short, non-blocking sections only; files are written outside of it by
 * whoever holds the pod's operation (below), so that lists are always answered at once. Objects are
 * reference-counted: what store_get_...() returns stays valid after the object was removed.
 *
 * One operation may change a pod at a time (run, create, start, update, remove, stop of the pod). Others wait their
 * turn; stopping a container, exec, status and lists are not operations and never wait.
 */
#pragma once
#include "common/base/map.h"
#include "runtime-lite/model/container.h"
#include "runtime-lite/model/sandbox.h"

#include <pthread.h>

enum store_change {
	CHANGE_CREATED, /* numbers of CRI's ContainerEventType */
	CHANGE_STARTED,
	CHANGE_STOPPED,
	CHANGE_DELETED,
};

/* Called with the lock held, from any thread; must not block. `c` is NULL when the sandbox itself changed. */
typedef void (*store_observer)(void *data, enum store_change change, struct sandbox *s, struct container *c);

struct store {
	pthread_mutex_t lock;
	pthread_mutex_t save_lock; /* taken before `lock`: files are written in the order of their content */
	pthread_cond_t changed; /* something that a thread may wait for: an operation's end, a container's end */
	char *state_dir, *root_dir; /* absolute */
	struct map sandboxes, containers; /* by id */
	struct map names; /* reserved name -> the id's text, owned by the object */
	store_observer observer;
	void *observer_data;
	int state_lock_fd;
};

/* Makes the directories and takes the lock of the state directory: PRECONDITION "... is in use by another
 * runtime-lite". Nothing is read yet: recover.h. */
int store_open(const char *state_dir, const char *root_dir, struct store **ret, struct error *err) MUST_USE;
/* Drops all objects, without touching their files. */
struct store *store_close(struct store *store);
void store_observe(struct store *store, store_observer observer, void *data);

static inline void store_lock(struct store *store)
{
	pthread_mutex_lock(&store->lock);
}
static inline void store_unlock(struct store *store)
{
	pthread_mutex_unlock(&store->lock);
}
/* With the lock held: wakes waiters and tells the observer. */
void store_notify(struct store *store, enum store_change change, struct sandbox *s, struct container *c);

/* By id or by a prefix that only one has. A new reference. NOT_FOUND; INVALID for "" and ambiguous prefixes. Sandboxes
 * in CREATING are not found. */
int store_get_sandbox(struct store *store, const char *id, struct sandbox **ret, struct error *err) MUST_USE;
int store_get_container(struct store *store, const char *id, struct container **ret, struct error *err) MUST_USE;

/* Puts a new object in and reserves its name; EXISTS when the name is taken, saying by whom. The store holds a reference. */
int store_add_sandbox(struct store *store, struct sandbox *s, struct error *err) MUST_USE;
int store_add_container(struct store *store, struct container *c, struct error *err) MUST_USE;
/* Takes it out and frees its name. Files are the caller's. */
void store_drop_sandbox(struct store *store, struct sandbox *s);
void store_drop_container(struct store *store, struct container *c);

/* Writes <dir>/config.json. Blocking. */
int store_save_sandbox(struct store *store, struct sandbox *s, struct error *err) MUST_USE;
int store_save_container(struct store *store, struct container *c, struct error *err) MUST_USE;

/* Waits until no operation runs on the pod, then begins one. `cancelled` (may be NULL) is asked every 100 ms: CANCELLED.
 * EXHAUSTED when already more than OPERATIONS_WAITING_MAX wait. */
enum { OPERATIONS_WAITING_MAX = 32 };
struct operation {
	struct store *store;
	struct sandbox *sandbox; /* referenced while it runs; NULL: none */
};
int operation_begin(struct operation *op, struct store *store, struct sandbox *s, const char *name,
	bool (*cancelled)(const void *data), const void *data, struct error *err) MUST_USE;
void operation_end(struct operation *op);
#define _cleanup_operation_ _cleanup_(operation_end)

/* Waits until the container has ended; DEADLINE after timeout_ms. */
int store_wait_exited(struct store *store, struct container *c, uint64_t timeout_ms, struct error *err) MUST_USE;

/* Reads the exit file of a container that should have ended and publishes it; a container that never started is left
 * alone, one without a record is lost. While it is being started its end is only noted (exit_pending). Blocking; without
 * the lock. */
void store_sync_exit(struct store *store, struct container *c);
/* The same for all of a pod's containers that are said to run; for when its monitor is gone. */
void store_sync_exits(struct store *store, struct sandbox *s);

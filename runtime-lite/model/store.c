/* store.c - purpose: all sandboxes and containers, by id and by reserved name, in memory and on disk. */
#include "runtime-lite/model/store.h"

#include "common/sys/file.h"
#include "runtime-lite/model/state_json.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

enum { CANCEL_POLL_MS = 100 };

/* Like mkdir -p, but owned by us and not open to others: the state has secrets of pods in it. */
static int make_dir(const char *base, const char *name, mode_t mode, struct error *err)
{
	_cleanup_free_ char *path = xasprintf("%s%s%s", base, name ? "/" : "", name ? name : "");

	return dir_make(path, mode, err);
}

static int lock_dir(const char *dir, int *ret_fd, struct error *err)
{
	_cleanup_free_ char *path = xasprintf("%s/daemon.lock", dir);
	_cleanup_fd_ int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return error_sys(err, errno, "%s", path);
	int r = fd_lock(fd);
	if (r == -EWOULDBLOCK)
		return error_set(err, ERROR_PRECONDITION, "state directory %s is in use by another runtime-lite", dir);
	if (r < 0)
		return error_sys(err, r, "lock %s", path);
	*ret_fd = steal_fd(&fd);
	return 0;
}

static void init_sync(struct store *store)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&store->lock, NULL);
	pthread_mutex_init(&store->save_lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&store->changed, &attr);
	pthread_condattr_destroy(&attr);
}

int store_open(const char *state_dir, const char *root_dir, struct store **ret, struct error *err)
{
	_cleanup_fd_ int lock_fd = -1;
	int r = make_dir(state_dir, NULL, 0711, err);

	if (r == 0)
		r = make_dir(state_dir, "sandboxes", 0711, err);
	if (r == 0)
		r = make_dir(root_dir, NULL, 0711, err);
	if (r == 0)
		r = make_dir(root_dir, "containers", 0700, err);
	if (r == 0)
		r = lock_dir(state_dir, &lock_fd, err);
	if (r < 0)
		return r;
	struct store *store = xnew(struct store);
	init_sync(store);
	store->state_dir = xstrdup(state_dir);
	store->root_dir = xstrdup(root_dir);
	store->state_lock_fd = steal_fd(&lock_fd);
	*ret = store;
	return 0;
}

struct store *store_close(struct store *store)
{
	struct map_iter it = MAP_ITER_INIT;

	if (!store)
		return NULL;
	while (map_next(&store->containers, &it))
		container_unref(it.value);
	it = MAP_ITER_INIT;
	while (map_next(&store->sandboxes, &it))
		sandbox_unref(it.value);
	map_done(&store->containers);
	map_done(&store->sandboxes);
	map_done(&store->names);
	pthread_mutex_destroy(&store->lock);
	pthread_mutex_destroy(&store->save_lock);
	pthread_cond_destroy(&store->changed);
	close(store->state_lock_fd);
	free(store->state_dir);
	free(store->root_dir);
	free(store);
	return NULL;
}

void store_observe(struct store *store, store_observer observer, void *data)
{
	store->observer = observer;
	store->observer_data = data;
}

void store_notify(struct store *store, enum store_change change, struct sandbox *s, struct container *c)
{
	pthread_cond_broadcast(&store->changed);
	if (store->observer && s->state != SANDBOX_CREATING)
		store->observer(store->observer_data, change, s, c);
}

/* The object of an id, or the only one whose id begins so. */
static int find(const struct map *map, const char *what, const char *id, void **ret, struct error *err)
{
	struct map_iter it = MAP_ITER_INIT;
	void *found = NULL;

	if (str_empty(id))
		return error_set(err, ERROR_INVALID, "%s id is empty", what);
	found = map_get(map, id);
	bool exact = found;
	while (!exact && map_next(map, &it)) {
		if (!str_starts(it.key, id))
			continue;
		if (found)
			return error_set(err, ERROR_INVALID, "%s id \"%.64s\" is ambiguous", what, id);
		found = it.value;
	}
	if (!found)
		return error_set(err, ERROR_NOT_FOUND, "%s \"%.64s\" not found", what, id);
	*ret = found;
	return 0;
}

int store_get_sandbox(struct store *store, const char *id, struct sandbox **ret, struct error *err)
{
	void *found = NULL;

	store_lock(store);
	int r = find(&store->sandboxes, "pod sandbox", id, &found, err);
	struct sandbox *s = found;
	if (r == 0 && s->state == SANDBOX_CREATING)
		r = error_set(err, ERROR_NOT_FOUND, "pod sandbox \"%.64s\" not found", id);
	if (r == 0)
		*ret = sandbox_ref(s);
	store_unlock(store);
	return r;
}

int store_get_container(struct store *store, const char *id, struct container **ret, struct error *err)
{
	void *found = NULL;

	store_lock(store);
	int r = find(&store->containers, "container", id, &found, err);
	struct container *c = found;
	if (r == 0 && c->state == CONTAINER_CREATING)
		r = error_set(err, ERROR_NOT_FOUND, "container \"%.64s\" not found", id);
	if (r == 0)
		*ret = container_ref(c);
	store_unlock(store);
	return r;
}

/* A client whose call timed out comes back with the same name while the first one may still be at work or being
 * undone: it is told so. */
static int reserve(struct store *store, const char *what, const char *name, char *id, struct error *err)
{
	const char *owner = map_get(&store->names, name);
	const struct sandbox *s = owner ? map_get(&store->sandboxes, owner) : NULL;
	const struct container *c = owner ? map_get(&store->containers, owner) : NULL;
	bool creating = (s && s->state == SANDBOX_CREATING) || (c && c->state == CONTAINER_CREATING);

	if (owner)
		return error_set(err, ERROR_EXISTS, "%s name \"%s\" is reserved for %s%s", what, name, owner,
			creating ? ", which is still being created or undone" : "");
	map_put(&store->names, name, id);
	return 0;
}

int store_add_sandbox(struct store *store, struct sandbox *s, struct error *err)
{
	store_lock(store);
	int r = reserve(store, "pod sandbox", s->name, s->id, err);
	if (r == 0)
		map_put(&store->sandboxes, s->id, sandbox_ref(s));
	store_unlock(store);
	return r;
}

int store_add_container(struct store *store, struct container *c, struct error *err)
{
	store_lock(store);
	int r = reserve(store, "container", c->name, c->id, err);
	if (r == 0) {
		map_put(&store->containers, c->id, container_ref(c));
		c->next_in_pod = c->sandbox->containers;
		c->sandbox->containers = c;
	}
	store_unlock(store);
	return r;
}

void store_drop_sandbox(struct store *store, struct sandbox *s)
{
	store_lock(store);
	struct sandbox *held = map_remove(&store->sandboxes, s->id);
	if (held)
		map_remove(&store->names, s->name);
	pthread_cond_broadcast(&store->changed);
	store_unlock(store);
	sandbox_unref(held);
}

void store_drop_container(struct store *store, struct container *c)
{
	store_lock(store);
	struct container *held = map_remove(&store->containers, c->id);
	if (held) {
		struct container **link = &c->sandbox->containers;

		map_remove(&store->names, c->name);
		while (*link && *link != c)
			link = &(*link)->next_in_pod;
		if (*link)
			*link = c->next_in_pod;
	}
	pthread_cond_broadcast(&store->changed);
	store_unlock(store);
	container_unref(held);
}

int store_save_sandbox(struct store *store, struct sandbox *s, struct error *err)
{
	pthread_mutex_lock(&store->save_lock);
	store_lock(store);
	_cleanup_json_ json_t *json = sandbox_to_json(s);
	store_unlock(store);
	int r = state_write(s->dir, "config.json", json, err);
	pthread_mutex_unlock(&store->save_lock);
	return r;
}

int store_save_container(struct store *store, struct container *c, struct error *err)
{
	pthread_mutex_lock(&store->save_lock);
	store_lock(store);
	_cleanup_json_ json_t *json = container_to_json(c);
	store_unlock(store);
	int r = state_write(c->dir, "config.json", json, err);
	pthread_mutex_unlock(&store->save_lock);
	return r;
}

/* With the lock held; wakes up by a change or after `ms`. */
static void wait_changed(struct store *store, uint64_t ms)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	uint64_t ns = (uint64_t)until.tv_nsec + ms * 1000000;
	until.tv_sec += (time_t)(ns / 1000000000);
	until.tv_nsec = (long)(ns % 1000000000);
	pthread_cond_timedwait(&store->changed, &store->lock, &until);
}

int operation_begin(struct operation *op, struct store *store, struct sandbox *s, const char *name,
	bool (*cancelled)(const void *data), const void *data, struct error *err)
{
	int r = 0;

	store_lock(store);
	if (s->operation && s->waiting >= OPERATIONS_WAITING_MAX)
		r = error_set(err, ERROR_EXHAUSTED, "pod sandbox %s: %s is still at work and %u calls wait for it", s->id,
			s->operation, s->waiting);
	s->waiting++;
	while (r == 0 && s->operation) {
		if (cancelled && cancelled(data))
			r = error_set(err, ERROR_CANCELLED, "pod sandbox %s: cancelled while %s was at work", s->id,
				s->operation);
		else
			wait_changed(store, CANCEL_POLL_MS);
	}
	s->waiting--;
	if (r == 0) {
		s->operation = name;
		op->store = store;
		op->sandbox = sandbox_ref(s);
	}
	store_unlock(store);
	return r;
}

void operation_end(struct operation *op)
{
	if (!op->sandbox)
		return;
	store_lock(op->store);
	op->sandbox->operation = NULL;
	pthread_cond_broadcast(&op->store->changed);
	store_unlock(op->store);
	op->sandbox = sandbox_unref(op->sandbox);
}

int store_wait_exited(struct store *store, struct container *c, uint64_t timeout_ms, struct error *err)
{
	uint64_t until_ns = clock_monotonic_ns() + timeout_ms * 1000000;
	int r = 0;

	store_lock(store);
	while (r == 0 && c->state == CONTAINER_RUNNING) {
		uint64_t now_ns = clock_monotonic_ns();

		if (now_ns >= until_ns)
			r = error_set(err, ERROR_DEADLINE, "container %s still runs", c->id);
		else
			wait_changed(store, (until_ns - now_ns) / 1000000 + 1);
	}
	store_unlock(store);
	return r;
}

void store_sync_exit(struct store *store, struct container *c)
{
	struct exit_record record;
	struct error err = ERROR_INIT;
	int r = pod_container_exit(c->dir, &record, &err);

	store_lock(store);
	bool changed = false;
	if (c->starting)
		c->exit_pending = r == 0;
	else if (r == 0)
		changed = container_set_exited(c, &record);
	else if (c->state == CONTAINER_RUNNING)
		changed = container_set_lost(c, clock_realtime_ns());
	if (changed)
		store_notify(store, CHANGE_STOPPED, c->sandbox, c);
	store_unlock(store);
}

void store_sync_exits(struct store *store, struct sandbox *s)
{
	for (;;) {
		store_lock(store);
		struct container *c = s->containers;
		while (c && (c->state != CONTAINER_RUNNING || c->starting))
			c = c->next_in_pod;
		if (c)
			container_ref(c);
		store_unlock(store);
		if (!c)
			return;
		store_sync_exit(store, c); /* leaves it EXITED */
		container_unref(c);
	}
}

/*
 * recover.c - purpose: at start, find again what a former daemon has left: running pods, and what was half done.
 *
 *	what is there                      what it means                          what is done
 *	sandbox, no readable file          died before the intent was written     cleaned up, removed
 *	sandbox "creating"                 RunPodSandbox did not end              undone
 *	sandbox "ready", monitor answers   it runs                                adopted
 *	sandbox "ready", no monitor        it died with or after the daemon       killed by cgroup, NOTREADY
 *	container "creating"               CreateContainer did not end            undone
 *	container with pid, no exit file   it runs (the monitor lives)            RUNNING
 *	container with exit file           it ended, perhaps while we were away   EXITED with the recorded code and time
 *	layer directory without container  removal did not end, or a reboot       removed
 */
#include "runtime-lite/model/recover.h"

#include "common/base/log.h"
#include "common/sys/file.h"
#include "runtime-lite/engine/pod.h"
#include "runtime-lite/model/state_json.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>

/* Names of the sub-directories; a missing directory has none. */
static int list_dirs(const char *path, struct strv *ret, struct error *err)
{
	DIR *dir = opendir(path);
	struct dirent *e;

	if (!dir)
		return errno == ENOENT ? 0 : error_sys(err, errno, "%s", path);
	while ((e = readdir(dir)))
		if (launch_id_valid(e->d_name) && (e->d_type == DT_DIR || e->d_type == DT_UNKNOWN))
			strv_add(ret, e->d_name);
	closedir(dir);
	return 0;
}

static bool is_newer(const json_t *json)
{
	return json && json_int_at(json, "version", 0) > 1;
}

/* Without a file nobody knows what it was to be; nothing of it can be in use by a client. */
static void discard_sandbox(const struct teardown *t, const char *id, const char *why)
{
	_cleanup_free_ char *dir = xasprintf("%s/sandboxes/%s", t->store->state_dir, id);
	struct error err = ERROR_INIT;
	int r = pod_cleanup(dir, &err);

	log_warning("pod sandbox %s: %s: removed", id, why);
	if (r == 0 && t->network)
		r = bridge_detach(t->network, id, &err);
	if (r == 0)
		r = dir_remove(AT_FDCWD, dir, &err);
	if (r < 0)
		log_error("pod sandbox %s: %s", id, err.text);
}

static void discard_container(const struct teardown *t, const struct sandbox *s, const char *id, const char *why)
{
	_cleanup_free_ char *dir = xasprintf("%s/containers/%s", s->dir, id);
	_cleanup_free_ char *cgroup = xasprintf("%s/%s", s->cgroup ? s->cgroup : "", id);
	struct error err = ERROR_INIT;
	int r = s->cgroup ? pod_container_remove(cgroup, &err) : 0;

	log_warning("container %s: %s: removed", id, why);
	if (r == 0)
		r = image_layers_release(t->images, id, &err);
	if (r == 0)
		r = dir_remove(AT_FDCWD, dir, &err);
	if (r < 0)
		log_error("container %s: %s", id, err.text);
}

/* Pid and exit files are the monitor's word; a record of ours ("end") is for what it cannot know. */
static void match_container(struct container *c)
{
	struct error ignored;
	uint64_t started_ns = 0;
	struct exit_record exit;
	pid_t pid = 0;

	if (c->state == CONTAINER_CREATING)
		return;
	bool started = pod_container_pid(c->dir, &pid, &started_ns, &ignored) == 0;
	if (started && c->state == CONTAINER_EXITED)
		c->started_ns = started_ns;
	if (started)
		container_set_running(c, pid, started_ns);
	if (pod_container_exit(c->dir, &exit, &ignored) == 0)
		container_set_exited(c, &exit);
	else if (c->state == CONTAINER_RUNNING && c->sandbox->monitor_gone)
		container_set_lost(c, clock_realtime_ns());
}

static int load_container(const struct teardown *t, struct sandbox *s, const char *id, struct error *err)
{
	_cleanup_free_ char *dir = xasprintf("%s/containers/%s", s->dir, id);
	_cleanup_container_ struct container *c = NULL;
	_cleanup_json_ json_t *json = NULL;
	int r = state_read(dir, "config.json", &json, err);

	if (r == 0)
		r = container_from_json(json, s, t->store->root_dir, &c, err);
	if (r == 0 && !str_eq(c->id, id))
		r = error_set(err, ERROR_DATA_LOSS, "holds the state of %s", c->id);
	if (r == 0) {
		match_container(c);
		r = store_add_container(t->store, c, err);
	}
	if (r == 0)
		return 0;
	if (is_newer(json))
		return error_prefix(err, "%s", dir);
	discard_container(t, s, id, err->text);
	return 0;
}

static void match_monitor(const struct teardown *t, struct sandbox *s)
{
	struct error err = ERROR_INIT;

	s->monitor_gone = true;
	if (s->state == SANDBOX_READY) {
		if (pod_monitor_connect(s->dir, &s->monitor, &err) == 0) {
			s->monitor_gone = false;
			return;
		}
		log_warning("pod sandbox %s: its monitor is gone (%s): pod=%s/%s is torn down", s->id, err.text,
			s->config->metadata->namespace_, s->config->metadata->name);
	}
	if (pod_cleanup(s->dir, &err) < 0)
		log_error("pod sandbox %s: clean up: %s", s->id, err.text);
	if (s->state != SANDBOX_READY)
		return;
	s->state = SANDBOX_NOTREADY;
	if (store_save_sandbox(t->store, s, &err) < 0)
		log_error("pod sandbox %s: %s", s->id, err.text);
}

static int load_containers(const struct teardown *t, struct sandbox *s, struct error *err)
{
	_cleanup_free_ char *path = xasprintf("%s/containers", s->dir);
	_cleanup_(strv_done) struct strv ids = STRV_INIT;
	int r = list_dirs(path, &ids, err);

	for (size_t i = 0; r == 0 && i < ids.n; i++)
		r = load_container(t, s, ids.v[i], err);
	return r;
}

static int load_sandbox(const struct teardown *t, const char *id, struct error *err)
{
	_cleanup_free_ char *dir = xasprintf("%s/sandboxes/%s", t->store->state_dir, id);
	_cleanup_sandbox_ struct sandbox *s = NULL;
	_cleanup_json_ json_t *json = NULL;
	int r = state_read(dir, "config.json", &json, err);

	if (r == 0)
		r = sandbox_from_json(json, t->store->state_dir, &s, err);
	if (r == 0 && !str_eq(s->id, id))
		r = error_set(err, ERROR_DATA_LOSS, "holds the state of %s", s->id);
	if (r == 0)
		r = store_add_sandbox(t->store, s, err);
	if (r < 0 && is_newer(json))
		return error_prefix(err, "%s", dir);
	if (r < 0) {
		discard_sandbox(t, id, err->text);
		return 0;
	}
	match_monitor(t, s);
	return load_containers(t, s, err);
}

/* One that is half made, or NULL. */
static struct sandbox *half_sandbox(struct store *store)
{
	struct map_iter it = MAP_ITER_INIT;

	while (map_next(&store->sandboxes, &it)) {
		struct sandbox *s = it.value;

		if (s->state == SANDBOX_CREATING)
			return sandbox_ref(s);
	}
	return NULL;
}

static struct container *half_container(struct store *store)
{
	struct map_iter it = MAP_ITER_INIT;

	while (map_next(&store->containers, &it)) {
		struct container *c = it.value;

		if (c->state == CONTAINER_CREATING && !c->removing)
			return container_ref(c);
	}
	return NULL;
}

static void undo_half_done(const struct teardown *t)
{
	struct error err = ERROR_INIT;

	for (struct sandbox *s; (s = half_sandbox(t->store)); sandbox_unref(s)) {
		log_info("pod sandbox %s: was being created: undone", s->id);
		if (teardown_pod(t, s, &err) == 0)
			continue;
		log_error("pod sandbox %s: undo: %s", s->id, err.text);
		s->state = SANDBOX_NOTREADY; /* for the client to stop and remove */
	}
	for (struct container *c; (c = half_container(t->store)); container_unref(c)) {
		log_info("container %s: was being created: undone", c->id);
		if (teardown_container(t, c, &err) == 0)
			continue;
		log_error("container %s: undo: %s", c->id, err.text);
		c->state = CONTAINER_CREATED;
	}
}

/* Layers on disk outlive the state, which a reboot takes away. */
static int drop_orphans(const struct teardown *t, struct error *err)
{
	_cleanup_free_ char *path = xasprintf("%s/containers", t->store->root_dir);
	_cleanup_(strv_done) struct strv found = STRV_INIT, known = STRV_INIT;
	struct map_iter it = MAP_ITER_INIT;
	int r = list_dirs(path, &found, err);

	for (size_t i = 0; r == 0 && i < found.n; i++) {
		_cleanup_free_ char *dir = xasprintf("%s/%s", path, found.v[i]);
		struct error why = ERROR_INIT;

		if (!map_get(&t->store->containers, found.v[i]) && dir_remove(AT_FDCWD, dir, &why) < 0)
			log_warning("writable layer without a container: %s", why.text);
	}
	while (map_next(&t->store->containers, &it))
		strv_add(&known, it.key);
	return r < 0 ? r : image_layers_retain_only(t->images, &known, err);
}

static int reconcile_network(const struct teardown *t, struct error *err)
{
	_cleanup_(strv_done) struct strv live = STRV_INIT;
	struct map_iter it = MAP_ITER_INIT;

	while (map_next(&t->store->sandboxes, &it)) {
		const struct sandbox *s = it.value;

		if (s->network_attached)
			strv_add(&live, s->id);
	}
	return t->network ? bridge_reconcile(t->network, (const char *const *)live.v, live.n, err) : 0;
}

int recover(const struct teardown *t, struct error *err)
{
	_cleanup_free_ char *path = xasprintf("%s/sandboxes", t->store->state_dir);
	_cleanup_(strv_done) struct strv ids = STRV_INIT;
	struct error why = ERROR_INIT;
	int r = list_dirs(path, &ids, err);

	for (size_t i = 0; r == 0 && i < ids.n; i++)
		r = load_sandbox(t, ids.v[i], err);
	if (r < 0)
		return r;
	undo_half_done(t);
	r = drop_orphans(t, err);
	if (r < 0)
		return r;
	/* Pods that use the node's network can run without: NetworkReady says what is wrong. */
	if (reconcile_network(t, &why) < 0)
		log_error("network: %s", why.text);
	if (t->store->sandboxes.count)
		log_info("found %zu pod sandboxes and %zu containers", t->store->sandboxes.count,
			t->store->containers.count);
	return 0;
}

void recover_late_starts(struct store *store)
{
	struct map_iter it = MAP_ITER_INIT;

	store_lock(store);
	while (map_next(&store->containers, &it)) {
		struct container *c = it.value;

		if (c->state != CONTAINER_CREATED || c->starting)
			continue;
		match_container(c);
		if (c->state == CONTAINER_CREATED)
			continue;
		log_info("container %s was started when the daemon was restarted", c->id);
		store_notify(store, CHANGE_STARTED, c->sandbox, c);
		if (c->state == CONTAINER_EXITED)
			store_notify(store, CHANGE_STOPPED, c->sandbox, c);
	}
	store_unlock(store);
}

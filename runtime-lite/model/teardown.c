/* teardown.c - purpose: take pods and containers apart. */
#include "runtime-lite/model/teardown.h"

#include "common/base/log.h"
#include "common/sys/file.h"
#include "runtime-lite/engine/pod.h"

#include <errno.h>
#include <fcntl.h>

enum { KILL_WAIT_MS = 10000 };

static int stop_processes(const struct teardown *t, struct sandbox *s, struct error *err)
{
	store_lock(t->store);
	s->stopping = true;
	bool alive = s->monitor && !s->monitor_gone;
	store_unlock(t->store);
	int r = alive ? pod_monitor_stop(s->monitor, err) : pod_cleanup(s->dir, err);

	if (r < 0)
		return error_prefix(err, "stop processes");
	store_lock(t->store);
	s->monitor_gone = true;
	store_unlock(t->store);
	store_sync_exits(t->store, s);
	return 0;
}

static int release_network(const struct teardown *t, struct sandbox *s, struct error *err)
{
	if (!s->network_attached || !t->network)
		return 0;
	int r = bridge_detach(t->network, s->id, err);
	if (r < 0)
		return error_prefix(err, "release network");
	store_lock(t->store);
	s->network_attached = false;
	store_unlock(t->store);
	return 0;
}

int teardown_stop_pod(const struct teardown *t, struct sandbox *s, struct error *err)
{
	store_lock(t->store);
	bool stopped = s->state == SANDBOX_NOTREADY && s->monitor_gone && !s->network_attached;
	store_unlock(t->store);
	if (stopped)
		return 0;
	int r = stop_processes(t, s, err);
	if (r == 0)
		r = release_network(t, s, err);
	store_lock(t->store);
	bool creating = s->state == SANDBOX_CREATING, ready = s->state == SANDBOX_READY;
	if (ready) {
		s->state = SANDBOX_NOTREADY;
		store_notify(t->store, CHANGE_STOPPED, s, NULL);
	}
	store_unlock(t->store);
	if (r < 0)
		return error_prefix(err, "pod sandbox %s", s->id);
	/* A full disk keeps nobody from stopping: after a restart the missing monitor says the same. */
	struct error why = ERROR_INIT;
	if (!creating && !s->removing && store_save_sandbox(t->store, s, &why) < 0)
		log_warning("pod sandbox %s: %s", s->id, why.text);
	return 0;
}

static int kill_container(const struct teardown *t, struct container *c, struct error *err)
{
	store_lock(t->store);
	bool running = c->state == CONTAINER_RUNNING;
	bool gone = c->sandbox->monitor_gone || !c->sandbox->monitor;
	store_unlock(t->store);
	if (!running)
		return 0;
	if (!gone) {
		int r = pod_container_kill_all(c->sandbox->monitor, c->id, err);

		if (r == 0)
			r = store_wait_exited(t->store, c, KILL_WAIT_MS, err);
		if (r < 0 && pod_monitor_kill_hung(c->sandbox->monitor, c->id))
			r = store_wait_exited(t->store, c, KILL_WAIT_MS, err);
		if (r < 0)
			return r;
	}
	store_sync_exit(t->store, c);
	return 0;
}

/* What cannot be removed now (a shell of the administrator stands in it) must not keep the container: the next start of
 * the daemon cleans up what no container owns. */
static void remove_dir(const char *id, const char *path)
{
	struct error err = ERROR_INIT;

	if (dir_remove(AT_FDCWD, path, &err) < 0)
		log_warning("container %s: left behind: %s", id, err.text);
}

int teardown_container(const struct teardown *t, struct container *c, struct error *err)
{
	store_lock(t->store);
	c->removing = true;
	store_unlock(t->store);
	int r = kill_container(t, c, err);
	if (r == 0)
		r = pod_container_remove(c->cgroup, err);
	if (r == 0)
		r = image_layers_release(t->images, c->id, err);
	if (r < 0) {
		store_lock(t->store);
		c->removing = false;
		store_unlock(t->store);
		return error_prefix(err, "container %s", c->id);
	}
	remove_dir(c->id, c->layer_dir);
	remove_dir(c->id, c->dir);
	store_lock(t->store);
	bool visible = c->state != CONTAINER_CREATING;
	if (visible)
		store_notify(t->store, CHANGE_DELETED, c->sandbox, c);
	store_unlock(t->store);
	store_drop_container(t->store, c);
	return 0;
}

int teardown_pod(const struct teardown *t, struct sandbox *s, struct error *err)
{
	int r = teardown_stop_pod(t, s, err);

	while (r == 0) {
		store_lock(t->store);
		_cleanup_container_ struct container *c = s->containers ? container_ref(s->containers) : NULL;
		store_unlock(t->store);
		if (!c)
			break;
		r = teardown_container(t, c, err);
	}
	if (r < 0)
		return r;
	r = dir_remove(AT_FDCWD, s->dir, err);
	if (r < 0)
		return error_prefix(err, "pod sandbox %s", s->id);
	store_lock(t->store);
	store_notify(t->store, CHANGE_DELETED, s, NULL);
	store_unlock(t->store);
	store_drop_sandbox(t->store, s);
	return 0;
}

/* state.c - purpose: what must outlive the process about objects: uid, creation time, addresses, the resourceVersion. */
#include "kubelet-lite/store/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>

#include "common/base/log.h"
#include "common/base/str.h"
#include "common/sys/file.h"
#include "common/wire/json.h"

enum { STATE_BYTES_MAX = 64 * 1024 * 1024 };

static void saved_free(void *data)
{
	struct saved *saved = data;

	if (!saved)
		return;
	free(saved->uid);
	free(saved->hash);
	free(saved->cluster_ip);
	free(saved->node_ports);
	free(saved);
}

struct saved *state_get(const struct state *s, const char *key)
{
	return map_get(&s->saved, key);
}

struct saved *state_entry(struct state *s, const char *key)
{
	struct saved *saved = map_get(&s->saved, key);

	if (!saved) {
		saved = xnew(struct saved);
		map_put(&s->saved, key, saved);
	}
	return saved;
}

void state_forget(struct state *s, const char *key)
{
	saved_free(map_remove(&s->saved, key));
}

static int lock(struct state *s, const char *root_dir, struct error *err)
{
	_cleanup_free_ char *path = xasprintf("%s/objects.lock", root_dir);

	s->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->lock_fd < 0)
		return error_sys(err, errno, "open %s", path);
	if (flock(s->lock_fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno == EWOULDBLOCK)
		return error_set(err, ERROR_EXISTS, "directory %s is in use by another kubelet-lite (lock on %s)", root_dir, path);
	return error_sys(err, errno, "lock %s", path);
}

static void load_object(struct state *s, const char *key, const json_t *o)
{
	struct saved *saved = strchr(key, '/') ? state_entry(s, key) : NULL;

	if (!saved)
		return;
	saved->uid = xstrdup(json_str_at(o, "uid", NULL));
	saved->hash = xstrdup(json_str_at(o, "hash", NULL));
	saved->created = json_int_at(o, "created", 0);
	saved->cluster_ip = xstrdup(json_str_at(o, "clusterIP", NULL));
	saved->node_ports = xstrdup(json_str_at(o, "nodePorts", NULL));
	saved->unseen = (unsigned)json_int_at(o, "unseen", 0) + 1;
	if (saved->unseen > STATE_UNSEEN_MAX)
		state_forget(s, key);
}

static int load(struct state *s, struct error *err)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_json_ json_t *tree = NULL;
	size_t len;
	int r = file_read(AT_FDCWD, s->path, STATE_BYTES_MAX, &text, &len, err);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	struct error broken = ERROR_INIT;

	if (json_read(text, len, false, &tree, &broken) < 0 || !json_is_object(tree)) {
		_cleanup_free_ char *aside = xasprintf("%s.broken", s->path);

		log_warning("state file is broken, starting without it path=%s aside=%s error=%s", s->path, aside, broken.text);
		return rename(s->path, aside) < 0 ? error_sys(err, errno, "rename %s", s->path) : 0;
	}
	if (json_int_at(tree, "version", 0) != STATE_VERSION)
		return error_set(err, ERROR_PRECONDITION, "%s: version %lld is not known to this kubelet-lite (it writes %d)",
			s->path, (long long)json_int_at(tree, "version", 0), STATE_VERSION);
	s->version_limit = (uint64_t)json_int_at(tree, "resourceVersionLimit", 0);
	const char *key;
	json_t *value;

	json_object_foreach (json_object_get(tree, "objects"), key, value)
		load_object(s, key, value);
	return 0;
}

int state_open(struct state *s, const char *root_dir, uint64_t *ret_version, struct error *err)
{
	int r;

	if (root_dir) {
		r = dir_make(root_dir, 0755, err);
		if (r < 0)
			return r;
		r = lock(s, root_dir, err);
		if (r < 0)
			return r;
		s->path = xasprintf("%s/objects.json", root_dir);
		r = load(s, err);
		if (r < 0)
			return r;
	}
	/* Without a file: far above what a lost one can have said. */
	uint64_t start = s->version_limit ? s->version_limit : clock_realtime_ns() / 1000000;

	s->version_limit = start + STATE_RESERVE;
	r = state_write(s, err);
	if (r < 0)
		return r;
	*ret_version = start;
	return 0;
}

static json_t *saved_tree(const struct saved *saved)
{
	json_t *o = json_object();

	if (saved->uid)
		json_object_set_new(o, "uid", json_string(saved->uid));
	if (saved->hash)
		json_object_set_new(o, "hash", json_string(saved->hash));
	json_object_set_new(o, "created", json_integer(saved->created));
	if (saved->cluster_ip)
		json_object_set_new(o, "clusterIP", json_string(saved->cluster_ip));
	if (saved->node_ports)
		json_object_set_new(o, "nodePorts", json_string(saved->node_ports));
	if (saved->unseen)
		json_object_set_new(o, "unseen", json_integer(saved->unseen));
	return o;
}

int state_write(const struct state *s, struct error *err)
{
	_cleanup_(str_done) struct str text = STR_INIT;
	struct map_iter it = MAP_ITER_INIT;
	bool first = true;

	if (!s->path)
		return 0;
	str_addf(&text, "{\"version\":%d,\"resourceVersionLimit\":%llu,\"objects\":{", STATE_VERSION,
		(unsigned long long)s->version_limit);
	while (map_next(&s->saved, &it)) {
		_cleanup_json_ json_t *o = saved_tree(it.value);
		_cleanup_free_ char *value = json_text(o);

		/* Keys are kinds and validated names: nothing in them needs escaping. */
		str_addf(&text, "%s\n\"%s\":%s", first ? "" : ",", it.key, value);
		first = false;
	}
	str_add(&text, "}}\n");
	return file_replace(AT_FDCWD, s->path, text.buf, text.len, 0600, err);
}

void state_done(struct state *s)
{
	map_done_values(&s->saved, saved_free);
	free(s->path);
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	*s = STATE_INIT;
}

/*
 * file.c - purpose: the manifests directory as the source of truth.
 *
 * Everything is decided by file_scan(), which compares what the directory holds with what was put into the store before;
 * inotify only says when to look. A file that is being written (modified, not closed) is left alone until its writer
 * closes it.
 */
#include "kubelet-lite/source/file_i.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "common/base/log.h"
#include "common/base/map.h"
#include "common/sys/file.h"
#include "common/wire/json.h"
#include "kubelet-lite/source/manifest.h"
#include "kubelet-lite/store/events.h"
#include "kubelet-lite/store/kinds.h"
#include "kubelet-lite/store/validate.h"

enum { FILE_NOW_MS = 10, FILE_WRITER_MS = 5000, FILE_ABSENT_MS = 1000, FILES_MAX = 20000 };

static void settle_later(struct file_source *s, uint64_t ms);

static void entries_drop(struct entry *entries, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(entries[i].key);
		json_decref(entries[i].tree);
	}
	free(entries);
}

void file_free(void *data)
{
	struct file *f = data;

	entries_drop(f->entries, f->n);
	free(f->name);
	free(f);
}

void file_applied_free(void *data)
{
	struct applied *a = data;

	free(a->file);
	free(a);
}

static bool is_manifest(const char *name)
{
	return *name != '.' && (str_ends(name, ".yaml") || str_ends(name, ".yml") || str_ends(name, ".json"));
}

static uint64_t hash_text(const char *p)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (; *p; p++)
		h = (h ^ (unsigned char)*p) * 0x100000001b3ull;
	return h ? h : 1;
}

static bool due(uint64_t since_ns, uint64_t ms)
{
	return clock_monotonic_ns() - since_ns >= ms * 1000000;
}

/* kind: "Node" for what belongs to no object. */
static void report(struct file_source *s, const char *kind, const char *ns, const char *name, const char *reason,
	const char *text)
{
	bool node = str_eq(kind, "Node");
	const char *about = node ? objects_node_name(s->store) : name;

	events_record_for(s->store, kind, ns, about, node ? about : NULL, "Warning", reason, "kubelet", "%s", text);
}

static void report_key(struct file_source *s, const char *key, const char *reason, const char *text)
{
	_cleanup_(strv_done) struct strv parts = STRV_INIT;

	strv_split(&parts, key, '/');
	report(s, parts.v[0], parts.v[1], parts.v[2], reason, text);
}

static void report_problems(struct file_source *s, struct file *f, const struct manifest *m)
{
	_cleanup_(str_done) struct str all = STR_INIT;

	for (size_t i = 0; i < m->n_problems; i++)
		str_addf(&all, "%u %s\n", m->problems[i].line, m->problems[i].text);
	uint64_t hash = hash_text(str_get(&all));

	if (hash == f->problem_hash)
		return;
	f->problem_hash = hash;
	for (size_t i = 0; i < m->n_problems; i++) {
		_cleanup_free_ char *text = xasprintf("%s/%s: document at line %u: %s%s", s->dir, f->name,
			m->problems[i].line, m->problems[i].text,
			m->problems[i].broken && f->n ? " (what this file defined before stays)" : "");

		report(s, "Node", "", NULL, "InvalidManifest", text);
	}
}

static void take_manifest(struct file *f, struct manifest *m)
{
	entries_drop(f->entries, f->n);
	f->entries = m->n ? xcalloc(m->n, sizeof(*f->entries)) : NULL;
	f->n = m->n;
	f->broken = m->broken;
	for (size_t i = 0; i < m->n; i++) {
		struct manifest_object *o = &m->objects[i];
		_cleanup_free_ char *text = json_canonical(o->tree);

		f->entries[i] = (struct entry){ o->kind, steal(o->key), hash_text(text), o->line, steal(o->tree) };
	}
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
		a->st_mtim.tv_nsec == b->st_mtim.tv_nsec && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
		a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static void read_failed(struct file_source *s, struct file *f, const struct error *err)
{
	uint64_t hash = hash_text(err->text);

	f->broken = true;
	if (hash != f->problem_hash)
		report(s, "Node", "", NULL, "InvalidManifest", err->text);
	f->problem_hash = hash;
}

/* Reads the file if it is another one than before. `force`: in any case (its trees are needed). */
static void file_read_again(struct file_source *s, struct file *f, bool force)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", s->dir, f->name), *text = NULL;
	_cleanup_(manifest_done) struct manifest m = MANIFEST_INIT;
	struct error err = ERROR_INIT;
	struct stat st;
	size_t len;

	if (stat(path, &st) < 0)
		return;
	if (!force && f->read && same_file(&st, &f->stat))
		return;
	if (f->writer_ns && !due(f->writer_ns, FILE_WRITER_MS)) {
		settle_later(s, FILE_WRITER_MS);
		return;
	}
	if (file_read(AT_FDCWD, path, FILE_SIZE_MAX, &text, &len, &err) < 0) {
		if (err.code != ERROR_NOT_FOUND)
			read_failed(s, f, &err);
		return;
	}
	manifest_read(text, len, str_ends(f->name, ".json"), &m);
	if (m.n == 0 && m.n_problems == 0 && f->n) {
		/* Emptied: perhaps only the first half of being rewritten. */
		if (!f->empty_ns)
			f->empty_ns = clock_monotonic_ns();
		if (!due(f->empty_ns, FILE_EMPTY_MS)) {
			settle_later(s, FILE_EMPTY_MS);
			return;
		}
	}
	f->empty_ns = 0;
	f->stat = st;
	f->read = true;
	report_problems(s, f, &m);
	take_manifest(f, &m);
}

static struct file *file_of(struct file_source *s, const char *name)
{
	struct file *f = map_get(&s->files, name);

	if (!f) {
		f = xnew(struct file);
		f->name = xstrdup(name);
		map_put(&s->files, name, f);
	}
	return f;
}

static int by_name(const void *a, const void *b)
{
	return strcmp((*(struct file *const *)a)->name, (*(struct file *const *)b)->name);
}

/* All files that count now, in order; those that are missing only since a moment ago among them. */
static struct file **list_files(struct file_source *s, size_t *ret_n)
{
	DIR *dir = opendir(s->dir);
	struct map_iter it = MAP_ITER_INIT;
	struct file **v = NULL;
	size_t n = 0;

	for (struct dirent *d; dir && (d = readdir(dir));)
		if (is_manifest(d->d_name) && s->files.count < FILES_MAX)
			file_of(s, d->d_name)->listed = true;
	if (!dir && !s->missing)
		log_warning("manifests directory cannot be read, its pods go unless it is back soon dir=%s error=%s", s->dir,
			strerror(errno));
	s->missing = !dir;
	if (dir)
		closedir(dir);
	else
		settle_later(s, FILE_ABSENT_MS);
	while (map_next(&s->files, &it)) {
		struct file *f = it.value;
		bool listed = f->listed;
		uint64_t wait = s->missing ? FILE_EMPTY_MS : FILE_SETTLE_MS;

		f->listed = false;
		if (listed)
			f->missing_ns = 0;
		else if (!f->missing_ns)
			f->missing_ns = clock_monotonic_ns();
		if (!listed && due(f->missing_ns, wait)) {
			map_remove(&s->files, it.key);
			file_free(f);
			continue;
		}
		if (listed)
			file_read_again(s, f, false);
		else
			settle_later(s, wait);
		v = xreallocarray(v, n + 1, sizeof(*v));
		v[n++] = f;
	}
	if (n)
		qsort(v, n, sizeof(*v), by_name);
	*ret_n = n;
	return v;
}

static void warn_unknown(struct file_source *s, const struct file *f, const struct entry *e)
{
	_cleanup_(strv_done) struct strv paths = STRV_INIT;

	validate_unknown(e->kind, e->tree, &paths);
	for (size_t i = 0; i < paths.n && i < 10; i++) {
		_cleanup_free_ char *text = xasprintf("%s/%s: document at line %u: unknown field \"%s\" is ignored", s->dir,
			f->name, e->line, paths.v[i]);

		report_key(s, e->key, "UnknownField", text);
	}
}

/* Puts one object into the store if it is not there in this version. */
static void apply(struct file_source *s, struct file *f, struct entry *e, struct applied *a)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", s->dir, f->name);
	struct error err = ERROR_INIT;

	if (e->hash == a->refused || (a->in_store && a->hash == e->hash && str_eq(a->file, f->name)))
		return;
	if (!e->tree) {
		/* Known from an earlier scan, wanted only now: its content is in the file. */
		_cleanup_free_ char *key = xstrdup(e->key);
		uint64_t hash = e->hash;

		file_read_again(s, f, true);
		e = NULL;
		for (size_t i = 0; i < f->n && !e; i++)
			if (str_eq(f->entries[i].key, key) && f->entries[i].hash == hash && f->entries[i].tree)
				e = &f->entries[i];
		if (!e) {
			settle_later(s, FILE_SETTLE_MS);
			return;
		}
	}
	warn_unknown(s, f, e);
	a->kind = e->kind;
	if (objects_put(s->store, e->kind, e->tree, path, NULL, &err) < 0) {
		_cleanup_free_ char *text = xasprintf("%s: document at line %u: %s%s", path, e->line, err.text,
			a->in_store ? " (the version before stays)" : "");

		a->refused = e->hash;
		report_key(s, e->key, "FailedValidation", text);
		return;
	}
	a->refused = 0;
	a->hash = e->hash;
	a->in_store = true;
	free(a->file);
	a->file = xstrdup(f->name);
}

static void want(struct file_source *s, struct file *f, size_t i)
{
	struct entry *e = &f->entries[i];
	struct applied *a = map_get(&s->applied, e->key);

	if (a && a->wanted) {
		if (!e->reported_duplicate) {
			_cleanup_free_ char *text = xasprintf(
				"%s/%s: document at line %u: %s is defined already in %s, which counts", s->dir, f->name, e->line,
				e->key, a->file ? a->file : "an earlier file");

			report_key(s, e->key, "DuplicateManifest", text);
		}
		e->reported_duplicate = true;
		return;
	}
	if (!a) {
		a = xnew(struct applied);
		map_put(&s->applied, e->key, a);
	}
	a->wanted = true;
	apply(s, f, e, a);
}

static bool file_is_broken(struct file_source *s, const char *name)
{
	const struct file *f = name ? map_get(&s->files, name) : NULL;

	return f && f->broken;
}

/* A Service that clashed with another may fit now. */
void file_forget_refusals(struct file_source *s)
{
	struct map_iter it = MAP_ITER_INIT;
	bool any = false;

	while (map_next(&s->applied, &it))
		if (((struct applied *)it.value)->kind == KIND_SERVICE && ((struct applied *)it.value)->refused) {
			((struct applied *)it.value)->refused = 0;
			any = true;
		}
	if (any)
		settle_later(s, FILE_NOW_MS);
}

static void remove_object(struct file_source *s, const char *key, enum object_kind kind, int64_t grace)
{
	_cleanup_(strv_done) struct strv parts = STRV_INIT;

	strv_split(&parts, key, '/');
	if (parts.n == 3 && objects_delete(s->store, kind, parts.v[1], parts.v[2], grace, NULL) == 0)
		log_info("manifest is gone, removing %s", key);
	if (kind == KIND_SERVICE)
		file_forget_refusals(s);
}

static void remove_unwanted(struct file_source *s)
{
	_cleanup_(strv_done) struct strv keys = STRV_INIT;
	struct map_iter it = MAP_ITER_INIT;

	while (map_next(&s->applied, &it)) {
		struct applied *a = it.value;

		if (!a->wanted && !file_is_broken(s, a->file))
			strv_add(&keys, it.key);
		a->wanted = false;
	}
	for (size_t i = 0; i < keys.n; i++) {
		struct applied *a = map_remove(&s->applied, keys.v[i]);

		if (a->in_store)
			remove_object(s, keys.v[i], a->kind, -1);
		file_applied_free(a);
	}
}

static void watch_again(struct file_source *s)
{
	const uint32_t mask = IN_CLOSE_WRITE | IN_MODIFY | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB |
		IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;

	if (s->watch >= 0)
		inotify_rm_watch(s->inotify_fd, s->watch);
	s->watch = inotify_add_watch(s->inotify_fd, s->dir, mask);
}

/* ConfigMaps and Secrets come first, so that pods of the same scan find them. */
void file_scan(struct file_source *s)
{
	size_t n = 0;

	if (s->watch < 0)
		watch_again(s); /* before looking: nothing is missed in between */
	struct file **v = list_files(s, &n);

	for (int pods = 0; pods < 2; pods++)
		for (size_t i = 0; i < n; i++)
			for (size_t j = 0; j < v[i]->n; j++)
				if ((v[i]->entries[j].kind == KIND_POD) == pods)
					want(s, v[i], j);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < v[i]->n; j++) {
			json_decref(v[i]->entries[j].tree);
			v[i]->entries[j].tree = NULL;
		}
	free(v);
	remove_unwanted(s);
}

static void settled(uv_timer_t *timer)
{
	file_scan(timer->data);
}

static void rescan(uv_timer_t *timer)
{
	file_forget_refusals(timer->data);
	file_scan(timer->data);
}

static void settle_later(struct file_source *s, uint64_t ms)
{
	/* The earlier of what is planned and this. */
	if (uv_is_active((uv_handle_t *)&s->settle) && uv_timer_get_due_in(&s->settle) <= ms)
		return;
	uv_timer_start(&s->settle, settled, ms, 0);
}

static void one_event(struct file_source *s, const struct inotify_event *e)
{
	if (e->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED)) {
		if (e->wd == s->watch) {
			inotify_rm_watch(s->inotify_fd, s->watch); /* a moved directory is none of ours */
			s->watch = -1;
		}
		settle_later(s, FILE_SETTLE_MS);
		return;
	}
	if (e->mask & IN_Q_OVERFLOW)
		settle_later(s, FILE_SETTLE_MS);
	if (e->len == 0 || !is_manifest(e->name))
		return;
	struct file *f = map_get(&s->files, e->name);

	if (e->mask & (IN_CLOSE_WRITE | IN_MOVED_TO)) {
		if (f)
			f->writer_ns = 0;
		settle_later(s, FILE_NOW_MS);
	} else if (e->mask & (IN_DELETE | IN_MOVED_FROM)) {
		if (f && !f->missing_ns)
			f->missing_ns = clock_monotonic_ns();
		settle_later(s, FILE_SETTLE_MS + 1);
	} else {
		if (!f && (e->mask & IN_MODIFY) && s->files.count < FILES_MAX)
			f = file_of(s, e->name);
		if (f && (e->mask & IN_MODIFY))
			f->writer_ns = clock_monotonic_ns();
		settle_later(s, FILE_SETTLE_MS);
	}
}

static void readable(uv_poll_t *poll, int status, int events)
{
	struct file_source *s = poll->data;
	_Alignas(struct inotify_event) char buf[8192];
	ssize_t n;

	(void)events;
	while (status == 0 && (n = read(s->inotify_fd, buf, sizeof(buf))) > 0)
		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *e = (const struct inotify_event *)(buf + at);

			one_event(s, e);
			at += (ssize_t)(sizeof(*e) + e->len);
		}
}

int file_source_start(uv_loop_t *loop, struct objects *store, const char *dir, struct file_source **ret, struct error *err)
{
	int r = dir_make(dir, 0755, err);

	if (r < 0)
		return error_prefix(err, "manifests directory");
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	if (fd < 0)
		return error_sys(err, errno, "inotify for %s", dir);
	struct file_source *s = xnew(struct file_source);

	s->loop = loop;
	s->store = store;
	s->dir = xstrdup(dir);
	s->inotify_fd = fd;
	s->watch = -1;
	s->open_handles = 3;
	uv_poll_init(loop, &s->poll, fd);
	uv_timer_init(loop, &s->settle);
	uv_timer_init(loop, &s->rescan);
	s->poll.data = s->settle.data = s->rescan.data = s;
	watch_again(s);
	if (s->watch < 0)
		log_warning("cannot watch the manifests directory, looking every %d s dir=%s error=%s", FILE_RESCAN_MS / 1000,
			dir, strerror(errno));
	uv_poll_start(&s->poll, UV_READABLE, readable);
	uv_timer_start(&s->rescan, rescan, FILE_RESCAN_MS, FILE_RESCAN_MS);
	file_scan(s);
	objects_loaded(store);
	*ret = s;
	return 0;
}

static void closed(uv_handle_t *handle)
{
	struct file_source *s = handle->data;

	if (--s->open_handles > 0)
		return;
	close(s->inotify_fd);
	map_done_values(&s->files, file_free);
	map_done_values(&s->applied, file_applied_free);
	free(s->dir);
	free(s);
}

void file_source_stop(struct file_source *s)
{
	if (!s)
		return;
	uv_close((uv_handle_t *)&s->poll, closed);
	uv_close((uv_handle_t *)&s->settle, closed);
	uv_close((uv_handle_t *)&s->rescan, closed);
}

/* layers.c - purpose: the layers of one image into the store: verified or made, several at once, each by one process only. */
#include "runtime-lite/pull/layers.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "runtime-lite/pull/opaque.h"

enum { THREADS_MAX = 8, PROGRESS_NS = 500000000 };

struct layers_state {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	size_t next;   /* the layer that the next free thread takes: always lower ones first, so that waiting for them ends */
	size_t running; /* threads */
	bool *done;    /* complete in the store and pinned */
	size_t n_done;
	int *pins;
	bool failed; /* also read without the mutex, by downloads: give up */
	struct error error;
	uint64_t bytes_done, bytes_total; /* atomics */
};

/* What one layer under work needs. */
struct work {
	struct layers *layers;
	size_t index;
	int *lower_fds; /* asked for by the unpacker, or NULL */
	size_t n_lower;
};

static int wait_for_lower(struct work *w, struct error *err)
{
	struct layers_state *s = w->layers->state;
	bool all;

	pthread_mutex_lock(&s->mutex);
	for (;;) {
		all = true;
		for (size_t i = 0; i < w->index; i++)
			all = all && s->done[i];
		if (all || s->failed)
			break;
		pthread_cond_wait(&s->changed, &s->mutex);
	}
	pthread_mutex_unlock(&s->mutex);
	return all ? 0 : error_set(err, ERROR_CANCELLED, "given up");
}

static int open_lower(void *data, const int **ret_fds, size_t *ret_n, struct error *err)
{
	struct work *w = data;
	int r = wait_for_lower(w, err);

	if (r < 0)
		return r;
	w->lower_fds = xcalloc(w->index, sizeof(int));
	for (size_t i = w->index; i-- > 0;) {
		int fd = openat(w->layers->state->pins[i], "fs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		if (fd < 0)
			return error_sys(err, errno, "open layer %s", w->layers->chains->v[i]);
		w->lower_fds[w->n_lower++] = fd;
	}
	*ret_fds = w->lower_fds;
	*ret_n = w->n_lower;
	return 0;
}

static int mark_opaque(void *data, int dir_fd)
{
	return opaque_mark(((struct work *)data)->layers->opaque_fd, dir_fd);
}

static void work_done(struct work *w)
{
	for (size_t i = 0; i < w->n_lower; i++)
		close(w->lower_fds[i]);
	free(w->lower_fds);
}

int layers_feed(struct layers *l, struct layer *layer, const void *p, size_t n, struct error *err)
{
	__atomic_add_fetch(&l->state->bytes_done, n, __ATOMIC_RELAXED);
	return layer_feed(layer, p, n, err);
}

/* There, and as it was when it was made? Then it is pinned. -ENOENT when it must be made (anew). */
static int take_present(struct layers *l, size_t i, int *ret_fd)
{
	_cleanup_fd_ int fd = -1;
	struct error why = ERROR_INIT;
	int r = layout_layer_pin(&l->pull->layout, l->chains->v[i], &fd);

	if (r < 0)
		return r;
	if (layout_layer_verify(&l->pull->layout, l->chains->v[i], &why) < 0)
		return -ENOENT;
	*ret_fd = steal_fd(&fd);
	return 0;
}

/* Empty directories <i>/fs in staging. */
static int make_staging(size_t i, char *name, size_t size, int *ret_fs_fd, struct error *err)
{
	char fs[64];

	snprintf(name, size, "%zu", i);
	snprintf(fs, sizeof(fs), "%zu/fs", i);
	if (mkdirat(STAGING_FD, name, 0700) < 0 || mkdirat(STAGING_FD, fs, 0755) < 0)
		return error_sys(err, errno, "create a directory in staging");
	int fd = openat(STAGING_FD, fs, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return error_sys(err, errno, "open a directory in staging");
	*ret_fs_fd = fd;
	return 0;
}

static int build(struct layers *l, size_t i, struct http_client *client, int *ret_fd, struct error *err)
{
	_cleanup_(work_done) struct work w = { .layers = l, .index = i };
	_cleanup_(layer_free_p) struct layer *layer = NULL;
	_cleanup_fd_ int fs_fd = -1;
	struct layer_meta meta = { 0 };
	char name[32];
	int r = make_staging(i, name, sizeof(name), &fs_fd, err);

	if (r < 0)
		return r;
	struct layer_limits limits = { .max_bytes = l->pull->max_layer_bytes, .max_ratio = l->pull->max_ratio };
	struct unpack_options unpack = { .root_fd = fs_fd, .lower = open_lower, .set_opaque = mark_opaque, .data = &w };
	layer = layer_new(&l->wants[i], &limits, &unpack);
	r = l->bring(l->data, client, i, layer, err);
	if (r == 0)
		r = layer_finish(layer, &meta.survey, err);
	if (r < 0)
		return r;
	snprintf(meta.diff_id, sizeof(meta.diff_id), "%s", l->wants[i].diff_id);
	/* Lower ones first: a layer in place whose attributes came from one that is not would be odd after a crash. */
	r = wait_for_lower(&w, err);
	return r == 0 ? layout_layer_publish(&l->pull->layout, STAGING_FD, name, l->chains->v[i], &meta, ret_fd, err) : r;
}

static int make_one(struct layers *l, size_t i, struct http_client *client, int *ret_fd, struct error *err)
{
	int lock = -1;
	int r = take_present(l, i, ret_fd);

	if (r == 0) {
		if (l->wants[i].size != UINT64_MAX)
			__atomic_add_fetch(&l->state->bytes_done, l->wants[i].size, __ATOMIC_RELAXED);
		return 0;
	}
	r = layout_layer_lock(&l->pull->layout, l->chains->v[i], &lock, err);
	if (r < 0)
		return r;
	/* Somebody else may have made it while we waited for the lock. */
	r = take_present(l, i, ret_fd);
	if (r < 0)
		r = build(l, i, client, ret_fd, err);
	layout_layer_unlock(&l->pull->layout, l->chains->v[i], lock);
	return r;
}

static bool next_layer(struct layers *l, size_t *ret)
{
	struct layers_state *s = l->state;

	pthread_mutex_lock(&s->mutex);
	bool more = !s->failed && s->next < l->n;
	if (more)
		*ret = s->next++;
	pthread_mutex_unlock(&s->mutex);
	return more;
}

static void finished(struct layers *l, size_t i, int r, int fd, const struct error *err)
{
	struct layers_state *s = l->state;

	pthread_mutex_lock(&s->mutex);
	if (r == 0) {
		s->pins[i] = fd;
		s->done[i] = true;
		s->n_done++;
	} else if (!s->failed || s->error.code == ERROR_CANCELLED) {
		s->error = *err;
		error_prefix(&s->error, "layer %s", l->wants[i].digest ? l->wants[i].digest : l->wants[i].diff_id);
	}
	if (r < 0)
		__atomic_store_n(&s->failed, true, __ATOMIC_RELAXED);
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->mutex);
}

static void *worker(void *data)
{
	struct layers *l = data;
	_cleanup_(http_client_free_p) struct http_client *client =
		l->http_clients ? http_client_new(l->pull->stall_timeout_ms, &l->state->failed) : NULL;
	size_t i;

	while (next_layer(l, &i)) {
		struct error err = ERROR_INIT;
		int fd = -1;
		int r = make_one(l, i, client, &fd, &err);

		finished(l, i, r, fd, &err);
	}
	pthread_mutex_lock(&l->state->mutex);
	l->state->running--;
	pthread_cond_broadcast(&l->state->changed);
	pthread_mutex_unlock(&l->state->mutex);
	return NULL;
}

static void report(struct layers *l)
{
	struct layers_state *s = l->state;

	if (!l->pull->want_progress)
		return;
	json_t *progress = json_pack("{s:{s:s, s:I, s:I, s:I, s:I}}", "progress", "what", "layers", "done",
		(json_int_t)__atomic_load_n(&s->bytes_done, __ATOMIC_RELAXED), "total", (json_int_t)s->bytes_total, "layersDone",
		(json_int_t)s->n_done, "layers", (json_int_t)l->n);
	(void)!channel_send(&l->pull->channel, progress, NULL);
}

/* Until all threads have ended; the mutex is held. */
static void watch(struct layers *l)
{
	struct layers_state *s = l->state;

	while (s->running > 0) {
		struct timespec until;

		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += PROGRESS_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		if (pthread_cond_timedwait(&s->changed, &s->mutex, &until) == ETIMEDOUT)
			report(l);
	}
}

int layers_make(struct layers *l, int *pins, struct error *err)
{
	struct layers_state s = { .mutex = PTHREAD_MUTEX_INITIALIZER, .pins = pins };
	pthread_t threads[THREADS_MAX];
	pthread_condattr_t attr;
	size_t n_threads = MIN(MIN((size_t)l->threads, (size_t)THREADS_MAX), l->n);

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s.changed, &attr);
	_cleanup_free_ bool *done = xcalloc(l->n, sizeof(bool));
	s.done = done;
	l->state = &s;
	for (size_t i = 0; i < l->n; i++)
		if (l->wants[i].size != UINT64_MAX)
			s.bytes_total += l->wants[i].size;
	pthread_mutex_lock(&s.mutex);
	for (size_t i = 0; i < n_threads; i++) {
		int r = pthread_create(&threads[i], NULL, worker, l);

		if (r != 0) {
			n_threads = i;
			if (i == 0) {
				s.failed = true;
				error_sys(&s.error, r, "start a thread");
			}
			break;
		}
		s.running++;
	}
	watch(l);
	report(l);
	pthread_mutex_unlock(&s.mutex);
	for (size_t i = 0; i < n_threads; i++)
		pthread_join(threads[i], NULL);
	if (s.failed && err)
		*err = s.error;
	return s.failed ? error_code_errno(s.error.code) : 0;
}

/* store_change.c - purpose: what changes the image store: record, remove, prune, collect, and what containers hold. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/base/log.h"
#include "common/sys/file.h"
#include "runtime-lite/image/manifest.h"
#include "runtime-lite/image/record.h"
#include "runtime-lite/image/reference.h"
#include "runtime-lite/image/store_internal.h"

enum { OVERLAY_LAYERS_MAX = 500, CONTAINER_ID_MAX = 128 };

static int string_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void copy_list(const struct strv *from, struct strv *to)
{
	for (size_t i = 0; i < from->n; i++)
		if (!strv_has(to, from->v[i]))
			strv_add(to, from->v[i]);
	if (to->n)
		qsort(to->v, to->n, sizeof(*to->v), string_compare);
}

static void config_copy(const struct image_config *from, struct image_config *to)
{
	to->user = xstrdup(from->user);
	to->working_dir = xstrdup(from->working_dir);
	to->stop_signal = xstrdup(from->stop_signal);
	for (size_t i = 0; i < from->entrypoint.n; i++)
		strv_add(&to->entrypoint, from->entrypoint.v[i]);
	for (size_t i = 0; i < from->cmd.n; i++)
		strv_add(&to->cmd, from->cmd.v[i]);
	for (size_t i = 0; i < from->env.n; i++)
		strv_add(&to->env, from->env.v[i]);
	for (size_t i = 0; i < from->volumes.n; i++)
		strv_add(&to->volumes, from->volumes.v[i]);
	for (size_t i = 0; i < from->exposed_ports.n; i++)
		strv_add(&to->exposed_ports, from->exposed_ports.v[i]);
}

/* A copy with `without` taken out of its tags (NULL: nothing). */
static struct image *image_copy(const struct image *from, const struct strv *without)
{
	struct image *image = image_new();

	image->id = xstrdup(from->id);
	image->manifest_digest = xstrdup(from->manifest_digest);
	image->size_bytes = from->size_bytes;
	image->created_ns = from->created_ns;
	for (size_t i = 0; i < from->repo_tags.n; i++)
		if (!without || !strv_has(without, from->repo_tags.v[i]))
			strv_add(&image->repo_tags, from->repo_tags.v[i]);
	copy_list(&from->repo_digests, &image->repo_digests);
	for (size_t i = 0; i < from->chain_ids.n; i++)
		strv_add(&image->chain_ids, from->chain_ids.v[i]);
	config_copy(&from->config, &image->config);
	return image;
}

static int layers_complete(const struct image_store *s, const struct strv *chains, struct error *err)
{
	for (size_t i = 0; i < chains->n; i++) {
		struct layer_meta meta;
		int r = layout_layer_meta(&s->layout, chains->v[i], &meta, err);

		if (r < 0)
			return r;
	}
	return 0;
}

/* Everything comes out of the configuration, whose digest is checked: the pull program is not believed more than it must be. */
static int image_from_blob(struct image_store *s, const struct store_record *record, struct image **ret, struct error *err)
{
	_cleanup_(image_spec_done) struct image_spec spec = { 0 };
	_cleanup_free_ char *text = NULL;
	_cleanup_image_ struct image *image = image_new();
	size_t len;

	if (!digest_valid(record->config_digest) || (*record->manifest_digest && !digest_valid(record->manifest_digest)))
		return error_set(err, ERROR_INTERNAL, "the pull program named an invalid digest");
	int r = layout_blob_read(&s->layout, record->config_digest, CONFIG_SIZE_MAX, &text, &len, err);
	if (r == 0)
		r = image_spec_parse(text, len, &spec, err);
	if (r < 0)
		return r;
	chain_ids(&spec.diff_ids, &image->chain_ids);
	r = layers_complete(s, &image->chain_ids, err);
	if (r < 0)
		return r;
	image->id = xstrdup(record->config_digest);
	image->manifest_digest = xstrdup(record->manifest_digest);
	image->size_bytes = record->size_bytes;
	image->created_ns = clock_realtime_ns();
	image->config = spec.config;
	spec.config = (struct image_config){ 0 };
	copy_list(&record->tags, &image->repo_tags);
	copy_list(&record->digests, &image->repo_digests);
	*ret = steal(image);
	return 0;
}

static int check_names(const struct strv *names, struct error *err)
{
	for (size_t i = 0; i < names->n; i++) {
		_cleanup_(reference_done) struct reference ref = { 0 };
		int r = reference_parse(names->v[i], &ref, err);

		if (r < 0)
			return r;
	}
	return 0;
}

static int record_locked(struct image_store *s, const struct store_record *record, struct error *err)
{
	_cleanup_fd_ int lock = -1;
	_cleanup_image_ struct image *image = NULL;
	int r = layout_lock_store(&s->layout, &lock, err);

	if (r == 0)
		r = store_reload(s, err);
	if (r == 0)
		r = image_from_blob(s, record, &image, err);
	if (r < 0)
		return r;
	struct image **list = xcalloc(s->n_images + 1, sizeof(*list));
	size_t n = 0;
	for (size_t i = 0; i < s->n_images; i++) {
		struct image *old = s->images[i];

		if (strcmp(old->id, image->id) == 0) {
			copy_list(&old->repo_tags, &image->repo_tags);
			copy_list(&old->repo_digests, &image->repo_digests);
			image->created_ns = old->created_ns;
			if (!*image->manifest_digest) {
				free(image->manifest_digest);
				image->manifest_digest = xstrdup(old->manifest_digest);
				image->size_bytes = old->size_bytes;
			}
			continue;
		}
		list[n++] = image_copy(old, &record->tags);
	}
	list[n++] = steal(image);
	return store_replace(s, list, n, err);
}

int store_record(struct image_store *s, const struct store_record *record, struct error *err)
{
	int r = check_names(&record->tags, err);

	if (r == 0)
		r = check_names(&record->digests, err);
	if (r < 0)
		return r;
	pthread_mutex_lock(&s->mutex);
	r = record_locked(s, record, err);
	pthread_mutex_unlock(&s->mutex);
	return r;
}

/* What must stay: chain ids of images and of what containers hold, blobs of images. */
static void mark(const struct image_store *s, struct map *layers, struct map *blobs)
{
	static char yes;
	struct map_iter it = MAP_ITER_INIT;

	for (size_t i = 0; i < s->n_images; i++) {
		const struct image *image = s->images[i];

		for (size_t k = 0; k < image->chain_ids.n; k++)
			map_put(layers, image->chain_ids.v[k], &yes);
		map_put(blobs, digest_hex(image->id), &yes);
		if (*image->manifest_digest)
			map_put(blobs, digest_hex(image->manifest_digest), &yes);
		/* What a tag stood for, perhaps an index: the next pull of that tag need not fetch it again. */
		for (size_t k = 0; k < image->repo_digests.n; k++) {
			const char *at = strchr(image->repo_digests.v[k], '@');

			if (at && digest_valid(at + 1))
				map_put(blobs, digest_hex(at + 1), &yes);
		}
	}
	while (map_next(&s->refs, &it)) {
		const struct strv *chains = it.value;

		for (size_t k = 0; k < chains->n; k++)
			map_put(layers, chains->v[k], &yes);
	}
}

/* Takes the unmarked away; their names in staging/ go to `gone`. */
static int sweep(struct image_store *s, struct strv *gone, struct error *err)
{
	_cleanup_(strv_done) struct strv layers = STRV_INIT, blobs = STRV_INIT;
	_cleanup_(map_done) struct map keep_layers = MAP_INIT;
	_cleanup_(map_done) struct map keep_blobs = MAP_INIT;
	int r = layout_names(s->layout.layers_fd, &layers, err);

	if (r == 0)
		r = layout_names(s->layout.blobs_fd, &blobs, err);
	if (r < 0)
		return r;
	mark(s, &keep_layers, &keep_blobs);
	for (size_t i = 0; i < layers.n; i++) {
		char *name = NULL;

		if (!map_get(&keep_layers, layers.v[i]) && layout_layer_discard(&s->layout, layers.v[i], &name) == 0)
			strv_add_take(gone, name);
	}
	for (size_t i = 0; i < blobs.n; i++)
		if (!map_get(&keep_blobs, blobs.v[i]))
			(void)!layout_blob_discard(&s->layout, blobs.v[i]);
	store_count_layers(s);
	return 0;
}

int image_store_collect(struct image_store *s, struct error *err)
{
	_cleanup_(strv_done) struct strv gone = STRV_INIT;
	int lock = -1;

	if (s->shared)
		return error_set(err, ERROR_PRECONDITION, "only the daemon knows what containers hold");
	pthread_mutex_lock(&s->mutex);
	int r = layout_lock_store(&s->layout, &lock, err);
	if (r == 0)
		r = store_reload(s, err);
	if (r == 0)
		r = sweep(s, &gone, err);
	if (lock >= 0)
		close(lock);
	pthread_mutex_unlock(&s->mutex);
	/* The slow part needs no lock: nobody can reach these any more. */
	for (size_t i = 0; r == 0 && i < gone.n; i++)
		r = layout_staging_remove(&s->layout, gone.v[i], err);
	return r == 0 ? layout_staging_clean(&s->layout, err) : r;
}

/* Removes those for which `doomed` holds; their ids go to `ret`. */
static int remove_images(struct image_store *s, const bool *doomed, struct strv *ret, struct error *err)
{
	struct image **list = xcalloc(s->n_images, sizeof(*list));
	size_t n = 0;

	for (size_t i = 0; i < s->n_images; i++) {
		if (doomed[i])
			strv_add(ret, s->images[i]->id);
		else
			list[n++] = image_copy(s->images[i], NULL);
	}
	return store_replace(s, list, n, err);
}

static int remove_locked(struct image_store *s, const char *reference, bool *ret_removed, struct error *err)
{
	_cleanup_fd_ int lock = -1;
	_cleanup_free_ bool *doomed = NULL;
	_cleanup_(strv_done) struct strv ids = STRV_INIT;
	struct error ignored = ERROR_INIT;
	int r = layout_lock_store(&s->layout, &lock, err);

	if (r == 0)
		r = store_reload(s, err);
	if (r < 0)
		return r;
	const struct image *image = store_lookup(s, reference, &ignored);
	if (!image)
		return 0;
	doomed = xcalloc(s->n_images, sizeof(*doomed));
	for (size_t i = 0; i < s->n_images; i++)
		doomed[i] = s->images[i] == image;
	*ret_removed = true;
	return remove_images(s, doomed, &ids, err);
}

int store_drop_incomplete(struct image_store *s, struct error *err)
{
	_cleanup_fd_ int lock = -1;
	_cleanup_free_ bool *doomed = NULL;
	_cleanup_(strv_done) struct strv ids = STRV_INIT;
	bool any = false;
	int r = layout_lock_store(&s->layout, &lock, err);

	if (r == 0)
		r = store_reload(s, err);
	if (r < 0)
		return r;
	doomed = xcalloc(s->n_images, sizeof(*doomed));
	for (size_t i = 0; i < s->n_images; i++) {
		const struct strv *chains = &s->images[i]->chain_ids;

		for (size_t k = 0; k < chains->n && !doomed[i]; k++) {
			doomed[i] = !map_get(&s->layers, chains->v[k]);
			if (doomed[i])
				log_warning("image %s is forgotten: its layer %s is missing or damaged", s->images[i]->id, chains->v[k]);
		}
		any = any || doomed[i];
	}
	return any ? remove_images(s, doomed, &ids, err) : 0;
}

int image_store_remove(struct image_store *s, const char *reference, struct error *err)
{
	bool removed = false;

	pthread_mutex_lock(&s->mutex);
	int r = remove_locked(s, reference, &removed, err);
	pthread_mutex_unlock(&s->mutex);
	if (r < 0)
		return error_prefix(err, "remove image %.200s", reference);
	return removed && !s->shared ? image_store_collect(s, err) : 0;
}

static bool held(const struct image_store *s, const struct image *image)
{
	struct map_iter it = MAP_ITER_INIT;

	/* A container that holds the top layer holds the image, or one that is built of the same. */
	while (image->chain_ids.n && map_next(&s->refs, &it)) {
		const struct strv *chains = it.value;

		if (chains->n && str_eq(chains->v[0], image->chain_ids.v[image->chain_ids.n - 1]))
			return true;
	}
	return false;
}

static int prune_locked(struct image_store *s, bool all, const struct strv *in_use, struct strv *ret, struct error *err)
{
	_cleanup_fd_ int lock = -1;
	_cleanup_free_ bool *doomed = NULL;
	bool any = false;
	int r = layout_lock_store(&s->layout, &lock, err);

	if (r == 0)
		r = store_reload(s, err);
	if (r < 0)
		return r;
	doomed = xcalloc(s->n_images, sizeof(*doomed));
	for (size_t i = 0; i < s->n_images; i++) {
		const struct image *image = s->images[i];

		doomed[i] = (all || image->repo_tags.n == 0) && !image->pinned && !held(s, image) &&
			!(in_use && strv_has(in_use, image->id));
		any = any || doomed[i];
	}
	return any ? remove_images(s, doomed, ret, err) : 0;
}

int image_store_prune(struct image_store *s, bool all, const struct strv *in_use, struct strv *ret_removed, struct error *err)
{
	_cleanup_(strv_done) struct strv ids = STRV_INIT;

	if (s->shared)
		return error_set(err, ERROR_PRECONDITION, "only the daemon knows what containers hold");
	pthread_mutex_lock(&s->mutex);
	int r = prune_locked(s, all, in_use, &ids, err);
	pthread_mutex_unlock(&s->mutex);
	if (r == 0)
		r = image_store_collect(s, err);
	if (r == 0 && ret_removed) {
		*ret_removed = ids;
		ids = STRV_INIT;
	}
	return r < 0 ? error_prefix(err, "prune images") : 0;
}

/* Container ids become file names. */
static bool container_id_valid(const char *id)
{
	size_t n = strspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-");

	return n > 0 && n <= CONTAINER_ID_MAX && !id[n] && id[0] != '.';
}

static int lower_dirs(const struct image_store *s, const struct strv *chains, struct strv *ret, struct error *err)
{
	_cleanup_(strv_done) struct strv dirs = STRV_INIT;

	for (size_t i = 0; i < chains->n; i++) {
		_cleanup_free_ char *inside = xasprintf("%s/fs", chains->v[i]);
		struct stat st;

		if (fstatat(s->layout.layers_fd, inside, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return error_set(err, ERROR_PRECONDITION, "layer %s is missing; pull the image again", chains->v[i]);
		strv_add_take(&dirs, xasprintf("%s/layers/%s", s->layout.root, inside));
	}
	*ret = dirs;
	dirs = STRV_INIT;
	return 0;
}

/* No fsync: after a power cut there are no containers. */
static int write_ref(const struct image_store *s, const char *container_id, const struct strv *chains, struct error *err)
{
	_cleanup_(str_done) struct str text = STR_INIT;
	_cleanup_free_ char *beside = xasprintf(".%s", container_id);
	int r;

	for (size_t i = 0; i < chains->n; i++)
		str_addf(&text, "%s\n", chains->v[i]);
	_cleanup_fd_ int fd = openat(s->layout.refs_fd, beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	r = fd < 0 ? -errno : fd_write_full(fd, str_get(&text), text.len);
	if (r == 0 && renameat(s->layout.refs_fd, beside, s->layout.refs_fd, container_id) < 0)
		r = -errno;
	if (r < 0) {
		unlinkat(s->layout.refs_fd, beside, 0);
		return error_sys(err, r, "write %s/refs/%s", s->layout.root, container_id);
	}
	return 0;
}

static int acquire_locked(struct image_store *s, const char *image_id, const char *container_id, struct strv *ret,
	struct error *err)
{
	struct error invalid = ERROR_INIT;
	_cleanup_(strv_done) struct strv chains = STRV_INIT, dirs = STRV_INIT;
	int r = store_refresh(s, err);

	if (r < 0)
		return r;
	const struct image *image = store_lookup(s, image_id, &invalid);
	if (!image)
		return error_set(err, ERROR_NOT_FOUND, "image %.200s is not present", image_id);
	if (image->chain_ids.n > OVERLAY_LAYERS_MAX)
		return error_set(err, ERROR_PRECONDITION, "image %.200s has %zu layers, more than the %d that overlayfs can stack",
			image_id, image->chain_ids.n, OVERLAY_LAYERS_MAX);
	for (size_t i = image->chain_ids.n; i-- > 0;)
		strv_add(&chains, image->chain_ids.v[i]);
	r = lower_dirs(s, &chains, &dirs, err);
	if (r == 0)
		r = write_ref(s, container_id, &chains, err);
	if (r < 0)
		return r;
	struct strv *kept = xnew(struct strv);
	*kept = chains;
	chains = STRV_INIT;
	struct strv *before = map_put(&s->refs, container_id, kept);
	if (before) {
		strv_done(before);
		free(before);
	}
	if (ret) {
		*ret = dirs;
		dirs = STRV_INIT;
	}
	return 0;
}

int image_layers_acquire(struct image_store *s, const char *image_id, const char *container_id, struct strv *ret_lower_dirs,
	struct error *err)
{
	if (!container_id_valid(container_id))
		return error_set(err, ERROR_INVALID, "container id \"%.100s\" is not a name", container_id);
	if (s->shared)
		return error_set(err, ERROR_PRECONDITION, "only the daemon runs containers");
	pthread_mutex_lock(&s->mutex);
	int r = acquire_locked(s, image_id, container_id, ret_lower_dirs, err);
	pthread_mutex_unlock(&s->mutex);
	return r;
}

int image_layers_held(struct image_store *s, const char *container_id, struct strv *ret_lower_dirs, struct error *err)
{
	pthread_mutex_lock(&s->mutex);
	const struct strv *chains = map_get(&s->refs, container_id);
	int r = chains ? lower_dirs(s, chains, ret_lower_dirs, err) :
			 error_set(err, ERROR_NOT_FOUND, "container %.100s holds no layers", container_id);
	pthread_mutex_unlock(&s->mutex);
	return r;
}

/* Mutex held. Was the image of these layers removed while the container ran? Only then there can be something to collect. */
static bool orphaned(const struct image_store *s, const struct strv *chains)
{
	for (size_t i = 0; chains->n && i < s->n_images; i++) {
		const struct strv *image = &s->images[i]->chain_ids;

		if (image->n && str_eq(image->v[image->n - 1], chains->v[0]))
			return false;
	}
	return chains->n > 0;
}

static bool drop_ref(struct image_store *s, const char *container_id)
{
	struct strv *chains = map_remove(&s->refs, container_id);

	if (!chains)
		return false;
	unlinkat(s->layout.refs_fd, container_id, 0);
	bool collect = orphaned(s, chains);
	strv_done(chains);
	free(chains);
	return collect;
}

int image_layers_release(struct image_store *s, const char *container_id, struct error *err)
{
	pthread_mutex_lock(&s->mutex);
	bool collect = drop_ref(s, container_id);
	pthread_mutex_unlock(&s->mutex);
	return collect ? image_store_collect(s, err) : 0;
}

int image_layers_retain_only(struct image_store *s, const struct strv *container_ids, struct error *err)
{
	_cleanup_(strv_done) struct strv drop = STRV_INIT;
	struct map_iter it = MAP_ITER_INIT;

	pthread_mutex_lock(&s->mutex);
	while (map_next(&s->refs, &it))
		if (!strv_has(container_ids, it.key))
			strv_add(&drop, it.key);
	for (size_t i = 0; i < drop.n; i++)
		drop_ref(s, drop.v[i]);
	pthread_mutex_unlock(&s->mutex);
	return drop.n ? image_store_collect(s, err) : 0;
}

/* store.c - purpose: open the image store, keep images.json in memory, find images. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "common/base/log.h"
#include "common/sys/file.h"
#include "runtime-lite/image/manifest.h"
#include "runtime-lite/image/record.h"
#include "runtime-lite/image/reference.h"
#include "runtime-lite/image/store_internal.h"

#define IMAGES_FILE "images.json"

static void layer_usage_free(void *usage)
{
	free(usage);
}

static void chain_list_free(void *list)
{
	strv_done(list);
	free(list);
}

/* Sums up what the layers' meta.json say; each is read once. */
void store_count_layers(struct image_store *s)
{
	_cleanup_(strv_done) struct strv names = STRV_INIT;
	struct map now = MAP_INIT;
	uint64_t bytes = 0, inodes = 0;

	if (layout_names(s->layout.layers_fd, &names, NULL) < 0)
		return;
	for (size_t i = 0; i < names.n; i++) {
		struct layer_usage *u = map_remove(&s->layers, names.v[i]);
		struct layer_meta meta;

		if (!u && digest_hex_valid(names.v[i]) && layout_layer_meta(&s->layout, names.v[i], &meta, NULL) == 0) {
			u = xnew(struct layer_usage);
			*u = (struct layer_usage){ meta.survey.bytes, meta.survey.inodes };
		}
		if (!u)
			continue;
		bytes += u->bytes;
		inodes += u->inodes;
		map_put(&now, names.v[i], u);
	}
	map_done_values(&s->layers, layer_usage_free);
	s->layers = now;
	__atomic_store_n(&s->bytes, bytes, __ATOMIC_RELAXED);
	__atomic_store_n(&s->inodes, inodes, __ATOMIC_RELAXED);
}

static void take_images(struct image_store *s, struct image **images, size_t n, int fd)
{
	image_list_free(s->images, s->n_images);
	s->images = images;
	s->n_images = n;
	if (s->images_fd >= 0)
		close(s->images_fd);
	s->images_fd = fd;
	store_count_layers(s);
}

int store_reload(struct image_store *s, struct error *err)
{
	_cleanup_fd_ int fd = openat(s->layout.root_fd, IMAGES_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	_cleanup_free_ char *text = NULL;
	struct image **images;
	struct stat st;
	size_t n;

	if (fd < 0 && errno == ENOENT) {
		take_images(s, NULL, 0, -1);
		return 0;
	}
	if (fd < 0 || fstat(fd, &st) < 0)
		return error_sys(err, errno, "open %s/" IMAGES_FILE, s->layout.root);
	if (st.st_size > IMAGES_FILE_MAX)
		return error_set(err, ERROR_DATA_LOSS, "%s/" IMAGES_FILE " is larger than 16 MiB", s->layout.root);
	/* By this descriptor, not by name: what is read must be what is compared later. */
	text = xmalloc((size_t)st.st_size + 1);
	ssize_t len = fd_read_full(fd, text, (size_t)st.st_size);
	if (len < 0)
		return error_sys(err, (int)len, "read %s/" IMAGES_FILE, s->layout.root);
	int r = images_read(text, (size_t)len, &images, &n, err);
	if (r < 0)
		return error_prefix(err, "%s", s->layout.root);
	for (size_t i = 0; i < n; i++)
		images[i]->pinned = store_is_pinned(s, images[i]);
	take_images(s, images, n, steal_fd(&fd));
	return 0;
}

int store_refresh(struct image_store *s, struct error *err)
{
	struct stat now, read;

	if (fstatat(s->layout.root_fd, IMAGES_FILE, &now, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno != ENOENT)
			return error_sys(err, errno, "look at %s/" IMAGES_FILE, s->layout.root);
		return s->images_fd < 0 ? 0 : store_reload(s, err);
	}
	if (s->images_fd >= 0 && fstat(s->images_fd, &read) == 0 && read.st_ino == now.st_ino && read.st_dev == now.st_dev)
		return 0;
	return store_reload(s, err);
}

static int image_compare(const void *a, const void *b)
{
	return strcmp((*(struct image *const *)a)->id, (*(struct image *const *)b)->id);
}

int store_replace(struct image_store *s, struct image **images, size_t n, struct error *err)
{
	if (n)
		qsort(images, n, sizeof(*images), image_compare);
	_cleanup_free_ char *text = images_write(images, n);
	int r = file_replace(s->layout.root_fd, IMAGES_FILE, text, strlen(text), 0600, err);

	image_list_free(images, n);
	return r < 0 ? r : store_reload(s, err);
}

bool store_is_pinned(const struct image_store *s, const struct image *image)
{
	for (size_t i = 0; i < s->pinned.n; i++)
		if (strv_has(&image->repo_tags, s->pinned.v[i]) || strv_has(&image->repo_digests, s->pinned.v[i]) ||
			str_eq(image->id, s->pinned.v[i]))
			return true;
	return false;
}

static struct image *lookup_id(struct image_store *s, const char *text)
{
	struct image *found = NULL;

	for (size_t i = 0; i < s->n_images; i++) {
		if (!image_id_matches(s->images[i], text))
			continue;
		if (found)
			return NULL; /* not unique */
		found = s->images[i];
	}
	return found;
}

static bool is_hex(const char *text)
{
	return *text && strspn(text, "0123456789abcdef") == strlen(text);
}

struct image *store_lookup(struct image_store *s, const char *reference, struct error *ret_invalid)
{
	_cleanup_(reference_done) struct reference ref = { 0 };
	bool explicit_id = str_starts(reference, "sha256:") && is_hex(reference + 7);

	if (!explicit_id && !digest_hex_valid(reference)) {
		int r = reference_parse(reference, &ref, ret_invalid);

		if (r < 0)
			return NULL;
		_cleanup_free_ char *name = *ref.digest ? reference_with_digest(&ref, ref.digest) : reference_tagged(&ref);
		for (size_t i = 0; i < s->n_images; i++)
			if (strv_has(*ref.digest ? &s->images[i]->repo_digests : &s->images[i]->repo_tags, name))
				return s->images[i];
	}
	return explicit_id || is_hex(reference) ? lookup_id(s, reference) : NULL;
}

int image_store_find(struct image_store *s, const char *reference, struct image **ret, struct error *err)
{
	struct error invalid = ERROR_INIT;

	pthread_mutex_lock(&s->mutex);
	int r = store_refresh(s, err);
	struct image *image = r == 0 ? store_lookup(s, reference, &invalid) : NULL;
	if (image)
		*ret = image_ref(image);
	pthread_mutex_unlock(&s->mutex);
	if (r < 0 || image)
		return r;
	if (invalid.code != ERROR_OK)
		return error_set(err, invalid.code, "%s", invalid.text);
	return error_set(err, ERROR_NOT_FOUND, "image %.200s is not present", reference);
}

int image_store_list(struct image_store *s, const char *reference, struct image ***ret, size_t *ret_n, struct error *err)
{
	struct error invalid = ERROR_INIT;
	size_t n = 0;

	pthread_mutex_lock(&s->mutex);
	int r = store_refresh(s, err);
	struct image **list = xcalloc(s->n_images, sizeof(*list));
	if (r == 0 && str_empty(reference)) {
		for (; n < s->n_images; n++)
			list[n] = image_ref(s->images[n]);
	} else if (r == 0) {
		struct image *image = store_lookup(s, reference, &invalid);

		if (image)
			list[n++] = image_ref(image);
	}
	pthread_mutex_unlock(&s->mutex);
	if (r < 0) {
		free(list);
		return r;
	}
	*ret = list;
	*ret_n = n;
	return 0;
}

void image_store_usage(struct image_store *s, uint64_t *ret_bytes, uint64_t *ret_inodes)
{
	/* Another thread may be writing: then its sums are the old ones, which is as good. */
	if (pthread_mutex_trylock(&s->mutex) == 0) {
		struct error ignored;

		(void)!store_refresh(s, &ignored);
		pthread_mutex_unlock(&s->mutex);
	}
	*ret_bytes = __atomic_load_n(&s->bytes, __ATOMIC_RELAXED);
	*ret_inodes = __atomic_load_n(&s->inodes, __ATOMIC_RELAXED);
}

const char *image_store_root(const struct image_store *s)
{
	return s->layout.root;
}

static void take_options(struct image_store *s, const struct image_store_options *o)
{
	static const char own[] = "/etc/runtime-lite/certs.d", theirs[] = "/etc/containerd/certs.d";

	s->libexec_dir = xstrdup(o->libexec_dir ? o->libexec_dir : "/usr/libexec/runtime-lite");
	s->registry_config_dir = xstrdup(o->registry_config_dir ? o->registry_config_dir :
			access(own, F_OK) < 0 && access(theirs, F_OK) == 0 ? theirs : own);
	s->limits = o->limits;
	if (!s->limits.stall_timeout_ns)
		s->limits.stall_timeout_ns = 60000000000u;
	if (!s->limits.max_layer_bytes)
		s->limits.max_layer_bytes = 64ull << 30;
	if (!s->limits.max_layer_ratio)
		s->limits.max_layer_ratio = 200;
	s->shared = o->shared;
	for (size_t i = 0; o->insecure_registries && i < o->insecure_registries->n; i++)
		strv_add(&s->insecure, o->insecure_registries->v[i]);
	for (size_t i = 0; o->pinned && i < o->pinned->n; i++) {
		_cleanup_(reference_done) struct reference ref = { 0 };
		struct error err = ERROR_INIT;

		if (digest_valid(o->pinned->v[i]))
			strv_add(&s->pinned, o->pinned->v[i]);
		else if (reference_parse(o->pinned->v[i], &ref, &err) < 0)
			log_warning("pinned image left out: %s", err.text);
		else
			strv_add_take(&s->pinned, *ref.digest ? reference_with_digest(&ref, ref.digest) : reference_tagged(&ref));
	}
}

static int read_refs(struct image_store *s, struct error *err)
{
	_cleanup_(strv_done) struct strv names = STRV_INIT;
	int r = layout_names(s->layout.refs_fd, &names, err);

	for (size_t i = 0; r == 0 && i < names.n; i++) {
		_cleanup_free_ char *text = NULL;
		struct strv *list;

		r = file_read(s->layout.refs_fd, names.v[i], 64 * 1024, &text, NULL, err);
		if (r < 0)
			break;
		list = xnew(struct strv);
		_cleanup_(strv_done) struct strv lines = STRV_INIT;
		strv_split(&lines, text, '\n');
		for (size_t k = 0; k < lines.n; k++)
			if (digest_hex_valid(lines.v[k]))
				strv_add(list, lines.v[k]);
		map_put(&s->refs, names.v[i], list);
	}
	return r < 0 ? error_prefix(err, "image store %s", s->layout.root) : 0;
}

int image_store_open(const struct image_store_options *options, struct image_store **ret, struct error *err)
{
	struct image_store *s = xnew(struct image_store);

	s->layout = LAYOUT_INIT;
	s->daemon_lock_fd = s->images_fd = -1;
	pthread_mutex_init(&s->mutex, NULL);
	take_options(s, options);
	int r = layout_open(options->root, &s->layout, err);
	if (r == 0 && !s->shared)
		r = layout_lock_daemon(&s->layout, &s->daemon_lock_fd, err);
	if (r == 0)
		r = read_refs(s, err);
	if (r == 0)
		r = store_reload(s, err);
	/* Half-done work of a killed daemon; trouble with it is no reason not to start. */
	struct error trouble = ERROR_INIT;
	if (r == 0 && !s->shared && (store_drop_incomplete(s, &trouble) < 0 || image_store_collect(s, &trouble) < 0))
		log_warning("clean up the image store: %s", trouble.text);
	if (r < 0) {
		image_store_close(s);
		return r;
	}
	*ret = s;
	return 0;
}

struct image_store *image_store_close(struct image_store *s)
{
	if (!s)
		return NULL;
	image_list_free(s->images, s->n_images);
	map_done_values(&s->refs, chain_list_free);
	map_done_values(&s->layers, layer_usage_free);
	if (s->images_fd >= 0)
		close(s->images_fd);
	if (s->daemon_lock_fd >= 0)
		close(s->daemon_lock_fd);
	layout_done(&s->layout);
	strv_done(&s->pinned);
	strv_done(&s->insecure);
	free(s->libexec_dir);
	free(s->registry_config_dir);
	pthread_mutex_destroy(&s->mutex);
	free(s);
	return NULL;
}

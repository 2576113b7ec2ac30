/* layout.c - purpose: the store's directories and locks (store.h has the rules), for daemon and pull program alike. */
#include "runtime-lite/image/layout.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "common/base/sha256.h"
#include "common/sys/file.h"
#include "common/wire/json.h"
#include "runtime-lite/image/reference.h"

enum { META_MAX = 64 * 1024, META_VERSION = 1 };

static int sub_dir(int parent, const char *name, int *ret_fd, struct error *err)
{
	if (mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
		return error_sys(err, errno, "create directory %s", name);
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return error_sys(err, errno, "open directory %s", name);
	*ret_fd = fd;
	return 0;
}

int layout_open(const char *root, struct layout *ret, struct error *err)
{
	_cleanup_(layout_done) struct layout l = LAYOUT_INIT;
	_cleanup_fd_ int blobs_fd = -1;
	int r = dir_make(root, 0711, err);

	if (r < 0)
		return r;
	l.root = xstrdup(root);
	l.root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (l.root_fd < 0)
		return error_sys(err, errno, "open %s", root);
	/* Only root gets in: the images' set-user-ID programs are not for the node's users (CVE-2021-41103). */
	r = sub_dir(l.root_fd, "layers", &l.layers_fd, err);
	if (r == 0)
		r = sub_dir(l.root_fd, "blobs", &blobs_fd, err);
	if (r == 0)
		r = sub_dir(blobs_fd, "sha256", &l.blobs_fd, err);
	if (r == 0)
		r = sub_dir(l.root_fd, "staging", &l.staging_fd, err);
	if (r == 0)
		r = sub_dir(l.root_fd, "locks", &l.locks_fd, err);
	if (r == 0)
		r = sub_dir(l.root_fd, "refs", &l.refs_fd, err);
	if (r < 0)
		return error_prefix(err, "image store %s", root);
	*ret = l;
	l = LAYOUT_INIT;
	return 0;
}

void layout_done(struct layout *l)
{
	int *fds[] = { &l->root_fd, &l->layers_fd, &l->blobs_fd, &l->staging_fd, &l->locks_fd, &l->refs_fd };

	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		if (*fds[i] >= 0)
			close(*fds[i]);
	free(l->root);
	*l = LAYOUT_INIT;
}

static int lock_blocking(int fd, int how)
{
	while (flock(fd, how) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

/* Is `name` still the file that fd stands for? */
static bool same_file(int dir_fd, const char *name, int fd)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && fstatat(dir_fd, name, &b, AT_SYMLINK_NOFOLLOW) == 0 && a.st_ino == b.st_ino &&
		a.st_dev == b.st_dev;
}

int layout_lock_store(const struct layout *l, int *ret_fd, struct error *err)
{
	_cleanup_fd_ int fd = openat(l->root_fd, "store.lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	int r = fd < 0 ? -errno : lock_blocking(fd, LOCK_EX);

	if (r < 0)
		return error_sys(err, r, "lock %s/store.lock", l->root);
	*ret_fd = steal_fd(&fd);
	return 0;
}

int layout_lock_daemon(const struct layout *l, int *ret_fd, struct error *err)
{
	_cleanup_fd_ int fd = openat(l->root_fd, "daemon.lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return error_sys(err, errno, "open %s/daemon.lock", l->root);
	int r = fd_lock(fd);
	if (r == -EWOULDBLOCK)
		return error_set(err, ERROR_PRECONDITION, "%s is in use by another runtime-lite", l->root);
	if (r < 0)
		return error_sys(err, r, "lock %s/daemon.lock", l->root);
	*ret_fd = steal_fd(&fd);
	return 0;
}

int layout_staging_make(const struct layout *l, char **ret_name, int *ret_fd, struct error *err)
{
	for (int i = 0; i < 16; i++) {
		_cleanup_free_ char *name = NULL;
		char random[17];

		random_hex(random, 16);
		name = xasprintf("%d-%s", (int)getpid(), random);
		if (mkdirat(l->staging_fd, name, 0700) < 0)
			return error_sys(err, errno, "create %s/staging/%s", l->root, name);
		_cleanup_fd_ int fd = openat(l->staging_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		/* Somebody who cleans up may have been faster than our lock. */
		if (fd < 0 || lock_blocking(fd, LOCK_EX) < 0 || !same_file(l->staging_fd, name, fd))
			continue;
		*ret_fd = steal_fd(&fd);
		*ret_name = steal(name);
		return 0;
	}
	return error_set(err, ERROR_INTERNAL, "cannot make a directory in %s/staging", l->root);
}

int layout_staging_remove(const struct layout *l, const char *name, struct error *err)
{
	return dir_remove(l->staging_fd, name, err);
}

static int name_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int layout_names(int dir_fd, struct strv *ret, struct error *err)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d) {
		int r = error_sys(err, errno, "list a directory of the image store");

		if (fd >= 0)
			close(fd);
		return r;
	}
	for (struct dirent *e = readdir(d); e; e = readdir(d))
		if (e->d_name[0] != '.')
			strv_add(ret, e->d_name);
	closedir(d);
	if (ret->n)
		qsort(ret->v, ret->n, sizeof(*ret->v), name_compare);
	return 0;
}

/* Lock files: whoever gets the lock without waiting may remove the file, as its maker does. */
static void clean_locks(const struct layout *l)
{
	_cleanup_(strv_done) struct strv names = STRV_INIT;

	if (layout_names(l->locks_fd, &names, NULL) < 0)
		return;
	for (size_t i = 0; i < names.n; i++) {
		_cleanup_fd_ int fd = openat(l->locks_fd, names.v[i], O_RDWR | O_CLOEXEC | O_NOFOLLOW);

		if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && same_file(l->locks_fd, names.v[i], fd))
			unlinkat(l->locks_fd, names.v[i], 0);
	}
}

int layout_staging_clean(const struct layout *l, struct error *err)
{
	_cleanup_(strv_done) struct strv names = STRV_INIT;
	int r = layout_names(l->staging_fd, &names, err);

	for (size_t i = 0; r == 0 && i < names.n; i++) {
		_cleanup_fd_ int fd = openat(l->staging_fd, names.v[i], O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

		if (fd < 0 && errno == ENOENT)
			continue;
		if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0)
			continue;
		r = dir_remove(l->staging_fd, names.v[i], err);
	}
	clean_locks(l);
	return r;
}

int layout_blob_read(const struct layout *l, const char *digest, size_t max, char **ret, size_t *ret_len, struct error *err)
{
	char hex[SHA256_HEX_LEN + 1];
	_cleanup_free_ char *text = NULL;
	size_t len;
	int r = file_read(l->blobs_fd, digest_hex(digest), max, &text, &len, err);

	if (r < 0)
		return error_prefix(err, "blob");
	sha256_hex(text, len, hex);
	if (strcmp(hex, digest_hex(digest)) != 0)
		return error_set(err, ERROR_DATA_LOSS, "blob %s is damaged on disk", digest);
	*ret = steal(text);
	*ret_len = len;
	return 0;
}

int layout_blob_write(const struct layout *l, const char *digest, const void *p, size_t n, struct error *err)
{
	return file_replace(l->blobs_fd, digest_hex(digest), p, n, 0600, err);
}

static int pin(int dir_fd, const char *name, int flags, int *ret_fd)
{
	_cleanup_fd_ int fd = openat(dir_fd, name, flags | O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	int r = fd < 0 ? -errno : lock_blocking(fd, LOCK_SH);

	if (r < 0)
		return r;
	if (!same_file(dir_fd, name, fd))
		return -ENOENT;
	*ret_fd = steal_fd(&fd);
	return 0;
}

int layout_blob_pin(const struct layout *l, const char *digest, int *ret_fd)
{
	return pin(l->blobs_fd, digest_hex(digest), 0, ret_fd);
}

int layout_layer_pin(const struct layout *l, const char *chain, int *ret_fd)
{
	assert(digest_hex_valid(chain));
	return pin(l->layers_fd, chain, O_DIRECTORY, ret_fd);
}

int layout_layer_lock(const struct layout *l, const char *chain, int *ret_fd, struct error *err)
{
	assert(digest_hex_valid(chain));
	for (;;) {
		_cleanup_fd_ int fd = openat(l->locks_fd, chain, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		int r = fd < 0 ? -errno : lock_blocking(fd, LOCK_EX);

		if (r < 0)
			return error_sys(err, r, "lock layer %s", chain);
		/* The previous holder removed the file when it was done: then this lock means nothing. */
		if (!same_file(l->locks_fd, chain, fd))
			continue;
		*ret_fd = steal_fd(&fd);
		return 0;
	}
}

void layout_layer_unlock(const struct layout *l, const char *chain, int fd)
{
	unlinkat(l->locks_fd, chain, 0);
	close(fd);
}

int layout_layer_meta(const struct layout *l, const char *chain, struct layer_meta *ret, struct error *err)
{
	_cleanup_free_ char *path = xasprintf("%s/meta.json", chain);
	_cleanup_free_ char *text = NULL;
	_cleanup_json_ json_t *root = NULL;
	struct layer_meta meta = { 0 };
	size_t len;
	int r = file_read(l->layers_fd, path, META_MAX, &text, &len, err);

	if (r == 0)
		r = json_read(text, len, true, &root, err);
	if (r < 0)
		return error_prefix(err, "layer %s", chain);
	if (json_int_at(root, "version", 0) != META_VERSION)
		return error_set(err, ERROR_UNIMPLEMENTED, "layer %s: meta.json is of version %lld, this program knows 1", chain,
			(long long)json_int_at(root, "version", 0));
	const char *checksum = json_str_at(root, "checksum", "");
	char *end;
	snprintf(meta.diff_id, sizeof(meta.diff_id), "%s", json_str_at(root, "diffId", ""));
	meta.survey.bytes = (uint64_t)json_int_at(root, "bytes", 0);
	meta.survey.inodes = (uint64_t)json_int_at(root, "inodes", 0);
	meta.survey.checksum = strtoull(checksum, &end, 16);
	if (!digest_valid(meta.diff_id) || !*checksum || *end)
		return error_set(err, ERROR_DATA_LOSS, "layer %s: meta.json is damaged", chain);
	*ret = meta;
	return 0;
}

int layout_layer_verify(const struct layout *l, const char *chain, struct error *err)
{
	_cleanup_free_ char *path = xasprintf("%s/fs", chain);
	_cleanup_fd_ int fd = -1;
	struct layer_meta meta;
	struct survey now;
	int r = layout_layer_meta(l, chain, &meta, err);

	if (r < 0)
		return r;
	fd = openat(l->layers_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return error_sys(err, errno, "layer %s", chain);
	r = survey_tree(fd, &now, err);
	if (r < 0)
		return error_prefix(err, "layer %s", chain);
	if (now.checksum != meta.survey.checksum || now.inodes != meta.survey.inodes)
		return error_set(err, ERROR_DATA_LOSS, "layer %s is damaged on disk", chain);
	return 0;
}

static int write_meta(int dir_fd, const struct layer_meta *meta, struct error *err)
{
	_cleanup_(str_done) struct str text = STR_INIT;

	str_addf(&text,
		"{\"version\":%d,\"diffId\":\"%s\",\"bytes\":%" PRIu64 ",\"inodes\":%" PRIu64 ",\"checksum\":\"%016" PRIx64 "\"}\n",
		META_VERSION, meta->diff_id, meta->survey.bytes, meta->survey.inodes, meta->survey.checksum);
	_cleanup_fd_ int fd = openat(dir_fd, "meta.json", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	int r = fd < 0 ? -errno : fd_write_full(fd, text.buf, text.len);

	return r < 0 ? error_sys(err, r, "write meta.json") : 0;
}

int layout_layer_publish(const struct layout *l, int staging_fd, const char *name, const char *chain,
	const struct layer_meta *meta, int *ret_fd, struct error *err)
{
	_cleanup_fd_ int dir_fd = openat(staging_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r = dir_fd < 0 ? -errno : lock_blocking(dir_fd, LOCK_SH);

	if (r < 0)
		return error_sys(err, r, "open staging/%s", name);
	r = write_meta(dir_fd, meta, err);
	if (r < 0)
		return r;
	/* Everything below must be on disk before the name says so; one call does all files of the layer. */
	if (syncfs(dir_fd) < 0)
		return error_sys(err, errno, "write the layer to disk");
	if (renameat(staging_fd, name, l->layers_fd, chain) < 0) {
		if (errno != EEXIST && errno != ENOTEMPTY)
			return error_sys(err, errno, "put the layer in place");
		/* A damaged one: the new one takes its place in one step, the old one ends in staging. */
		if (renameat2(staging_fd, name, l->layers_fd, chain, RENAME_EXCHANGE) < 0)
			return error_sys(err, errno, "replace the damaged layer");
	}
	if (fsync(l->layers_fd) < 0)
		return error_sys(err, errno, "write the layer's name to disk");
	*ret_fd = steal_fd(&dir_fd);
	return 0;
}

/* The flock without waiting says that nobody counts on it; and nobody can begin to, since pin() looks at the name again. */
int layout_layer_discard(const struct layout *l, const char *chain, char **ret_name)
{
	_cleanup_fd_ int fd = openat(l->layers_fd, chain, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char random[17];

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	random_hex(random, 16);
	_cleanup_free_ char *name = xasprintf("removed-%s", random);
	if (renameat(l->layers_fd, chain, l->staging_fd, name) < 0)
		return -errno;
	*ret_name = steal(name);
	return 0;
}

int layout_blob_discard(const struct layout *l, const char *hex)
{
	_cleanup_fd_ int fd = openat(l->blobs_fd, hex, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	return unlinkat(l->blobs_fd, hex, 0) < 0 ? -errno : 0;
}

/* archive.c - purpose: members of an image archive by name: a tar file (plain, gzip or zstd) or an unpacked directory. */
#include "runtime-lite/pull/archive.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/base/map.h"
#include "common/sys/file.h"
#include "runtime-lite/image/decompress.h"
#include "runtime-lite/image/inroot.h"
#include "runtime-lite/image/tar.h"

enum { MEMBERS_MAX = 100000, LINKS_MAX = 8, PIECE = 256 * 1024, DEPTH_MAX = 32 };

struct member {
	uint64_t offset, size;
	char *link; /* clean name of another member, or NULL */
};

struct archive {
	int dir_fd;  /* a directory, or -1 */
	int file_fd; /* a seekable plain tar file, or -1 */
	struct map members; /* clean name -> struct member */
	struct tar *tar;    /* while it is scanned */
};

static void member_free(void *member)
{
	free(((struct member *)member)->link);
	free(member);
}

struct archive *archive_free(struct archive *a)
{
	if (!a)
		return NULL;
	if (a->dir_fd >= 0)
		close(a->dir_fd);
	if (a->file_fd >= 0)
		close(a->file_fd);
	map_done_values(&a->members, member_free);
	tar_free(a->tar);
	free(a);
	return NULL;
}

/* Links in old docker-archives are relative to where they stand ("../<id>/layer.tar"), hard links to the root. */
static int link_name(const struct tar_entry *e, const char *name, char **ret, struct error *err)
{
	const char *base;
	_cleanup_free_ char *parent = inroot_parent(name, &base);
	_cleanup_free_ char *full = e->type == TAR_SYMLINK ? xasprintf("%s/%s", parent, e->link) : xstrdup(e->link);

	return inroot_clean(full, DEPTH_MAX, ret, err);
}

static int on_entry(void *data, const struct tar_entry *e, struct error *err)
{
	struct archive *a = data;
	_cleanup_free_ char *name = NULL, *link = NULL;

	if (e->type != TAR_FILE && e->type != TAR_SYMLINK && e->type != TAR_HARDLINK)
		return 0;
	int r = inroot_clean(e->name, DEPTH_MAX, &name, err);
	if (r == 0 && e->type != TAR_FILE)
		r = link_name(e, name, &link, err);
	if (r < 0)
		return error_prefix(err, "\"%.200s\"", e->name);
	if (a->members.count >= MEMBERS_MAX)
		return error_set(err, ERROR_INVALID, "the archive has more than %d files", MEMBERS_MAX);
	struct member *m = xnew(struct member);
	*m = (struct member){ tar_content_offset(a->tar), e->size, steal(link) };
	struct member *before = map_put(&a->members, name, m);
	if (before)
		member_free(before);
	return 0;
}

static int on_content(void *data, const void *p, size_t n, struct error *err)
{
	(void)data, (void)p, (void)n, (void)err;
	return 0;
}

static int on_end(void *data, struct error *err)
{
	(void)data, (void)err;
	return 0;
}

/* Notes where each member is. The content need not be read for that, but skipping would only be faster on cold disks. */
static int scan(struct archive *a, struct error *err)
{
	static const struct tar_handler handler = { on_entry, on_content, on_end };
	_cleanup_free_ char *buf = xmalloc(PIECE);
	off_t at = 0;
	int r = 0;

	a->tar = tar_new(&handler, a);
	for (;;) {
		ssize_t n = pread(a->file_fd, buf, PIECE, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_sys(err, errno, "read");
		if (n == 0)
			break;
		at += n;
		r = tar_feed(a->tar, buf, (size_t)n, err);
		if (r < 0)
			return r;
	}
	r = tar_finish(a->tar, err);
	a->tar = tar_free(a->tar);
	if (r == 0 && a->members.count == 0)
		r = error_set(err, ERROR_INVALID, "it is empty, or no tar archive");
	return r;
}

static int on_plain(void *data, const void *p, size_t n, struct error *err)
{
	int r = fd_write_full(*(int *)data, p, n);

	return r < 0 ? error_sys(err, r, "write the unpacked archive") : 0;
}

/* Writes the decompressed archive to an unnamed place in staging. */
static int spool(struct pull *p, int fd, int *ret_fd, struct error *err)
{
	_cleanup_fd_ int out = openat(STAGING_FD, "archive.tar", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	_cleanup_free_ char *buf = xmalloc(PIECE);

	if (out < 0)
		return error_sys(err, errno, "create a file in staging");
	unlinkat(STAGING_FD, "archive.tar", 0);
	_cleanup_(decompress_free_p) struct decompress *d = decompress_new(&(struct decompress_options){ .output = on_plain,
		.data = &out, .max_bytes = p->max_layer_bytes, .max_ratio = p->max_ratio });
	for (;;) {
		ssize_t n = read(fd, buf, PIECE);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_sys(err, errno, "read");
		if (n == 0)
			break;
		int r = decompress_feed(d, buf, (size_t)n, err);
		if (r < 0)
			return r;
	}
	int r = decompress_finish(d, err);
	if (r == 0)
		*ret_fd = steal_fd(&out);
	return r;
}

/* A plain tar file has "ustar" in its first header; a v7 one is left to the decompressor, which finds out too. */
static bool is_plain_tar(int fd)
{
	char magic[5];

	return pread(fd, magic, sizeof(magic), 257) == (ssize_t)sizeof(magic) && memcmp(magic, "ustar", 5) == 0;
}

int archive_open(struct pull *p, int fd, struct archive **ret, struct error *err)
{
	_cleanup_(archive_free_p) struct archive *a = xnew(struct archive);
	struct stat st;
	int r = 0;

	a->dir_fd = a->file_fd = -1;
	if (fstat(fd, &st) < 0)
		return error_sys(err, errno, "look at it");
	if (S_ISDIR(st.st_mode)) {
		a->dir_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		if (a->dir_fd < 0)
			return error_sys(err, errno, "open it");
	} else if (S_ISREG(st.st_mode) && is_plain_tar(fd)) {
		a->file_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		if (a->file_fd < 0)
			return error_sys(err, errno, "open it");
		r = scan(a, err);
	} else {
		r = spool(p, fd, &a->file_fd, err);
		if (r == 0)
			r = scan(a, err);
	}
	if (r == 0)
		*ret = steal(a);
	return r;
}

static int missing(const char *name, struct error *err)
{
	return error_set(err, ERROR_NOT_FOUND, "there is no file \"%.200s\" in it", name);
}

static const struct member *find(struct archive *a, const char *name)
{
	_cleanup_free_ char *clean = NULL;
	const struct member *m;

	if (inroot_clean(name, DEPTH_MAX, &clean, NULL) < 0)
		return NULL;
	m = map_get(&a->members, clean);
	for (int i = 0; m && m->link; i++)
		m = i < LINKS_MAX ? map_get(&a->members, m->link) : NULL;
	return m;
}

/* Opens a member: *ret_offset and *ret_size say where it is in *ret_fd, which is the caller's to close. */
static int open_member(struct archive *a, const char *name, int *ret_fd, uint64_t *ret_offset, uint64_t *ret_size,
	struct error *err)
{
	if (a->dir_fd < 0) {
		const struct member *m = find(a, name);

		if (!m)
			return missing(name, err);
		*ret_fd = fcntl(a->file_fd, F_DUPFD_CLOEXEC, 0);
		if (*ret_fd < 0)
			return error_sys(err, errno, "open \"%.200s\"", name);
		*ret_offset = m->offset;
		*ret_size = m->size;
		return 0;
	}
	_cleanup_fd_ int fd = inroot_open(a->dir_fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	if (fd == -ENOENT)
		return missing(name, err);
	if (fd < 0 || fstat(fd, &st) < 0)
		return error_sys(err, fd < 0 ? fd : errno, "open \"%.200s\"", name);
	if (!S_ISREG(st.st_mode))
		return error_set(err, ERROR_INVALID, "\"%.200s\" is not a regular file", name);
	*ret_fd = steal_fd(&fd);
	*ret_offset = 0;
	*ret_size = (uint64_t)st.st_size;
	return 0;
}

bool archive_has(struct archive *a, const char *name)
{
	_cleanup_fd_ int fd = -1;
	uint64_t offset, size;

	return open_member(a, name, &fd, &offset, &size, NULL) == 0;
}

int archive_size(struct archive *a, const char *name, uint64_t *ret, struct error *err)
{
	_cleanup_fd_ int fd = -1;
	uint64_t offset;

	return open_member(a, name, &fd, &offset, ret, err);
}

struct whole {
	struct str text;
};

static int on_piece(void *data, const void *p, size_t n, struct error *err)
{
	(void)err;
	str_add_bytes(&((struct whole *)data)->text, p, n);
	return 0;
}

int archive_read(struct archive *a, const char *name, size_t max, char **ret, size_t *ret_len, struct error *err)
{
	struct whole whole = { STR_INIT };
	uint64_t size;
	int r = archive_size(a, name, &size, err);

	if (r == 0 && size > max)
		r = error_set(err, ERROR_INVALID, "\"%.200s\" has more than the %zu bytes allowed", name, max);
	if (r == 0)
		r = archive_stream(a, name, on_piece, &whole, err);
	if (r == 0) {
		*ret_len = whole.text.len;
		*ret = str_take(&whole.text);
	}
	str_done(&whole.text);
	return r;
}

int archive_stream(struct archive *a, const char *name, int (*sink)(void *data, const void *p, size_t n, struct error *err),
	void *data, struct error *err)
{
	_cleanup_free_ char *buf = xmalloc(PIECE);
	_cleanup_fd_ int fd = -1;
	uint64_t at, left;
	int r = open_member(a, name, &fd, &at, &left, err);

	while (r == 0 && left > 0) {
		ssize_t n = pread(fd, buf, (size_t)MIN(left, (uint64_t)PIECE), (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_sys(err, errno, "read \"%.200s\"", name);
		if (n == 0)
			return error_set(err, ERROR_DATA_LOSS, "\"%.200s\" is truncated", name);
		at += (uint64_t)n;
		left -= (uint64_t)n;
		r = sink(data, buf, (size_t)n, err);
	}
	return r;
}

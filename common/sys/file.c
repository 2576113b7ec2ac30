/* file.c - purpose: read and write small files whole, and replace them atomically. */
#include "common/sys/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include "common/base/str.h"

enum { REMOVE_DEPTH_MAX = 512, LOCK_TRIES = 100, LOCK_POLL_US = 10000 };

int fd_lock(int fd)
{
	for (int i = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; i++) {
		if (errno != EWOULDBLOCK || i == LOCK_TRIES)
			return -errno;
		usleep(LOCK_POLL_US);
	}
	return 0;
}

ssize_t fd_read_full(int fd, void *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = read(fd, (char *)buf + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

int fd_write_full(int fd, const void *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = write(fd, (const char *)buf + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		done += (size_t)n;
	}
	return 0;
}

static int read_all(int fd, size_t max, struct str *text)
{
	for (;;) {
		str_reserve(text, 4096);
		ssize_t n = fd_read_full(fd, text->buf + text->len, text->cap - text->len - 1);

		if (n < 0)
			return (int)n;
		if (n == 0)
			return 0;
		text->len += (size_t)n;
		text->buf[text->len] = '\0';
		if (text->len > max)
			return -EFBIG;
	}
}

int file_read(int dir_fd, const char *path, size_t max, char **ret, size_t *ret_len, struct error *err)
{
	_cleanup_(str_done) struct str text = STR_INIT;
	_cleanup_fd_ int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 && errno == ENOENT)
		return error_set(err, ERROR_NOT_FOUND, "read %s: no such file", path);
	if (fd < 0 || fstat(fd, &st) < 0)
		return error_sys(err, errno, "read %s", path);
	if (!S_ISREG(st.st_mode))
		return error_set(err, ERROR_INVALID, "read %s: not a regular file", path);
	int r = read_all(fd, max, &text);
	if (r == -EFBIG) {
		error_set(err, ERROR_INVALID, "read %s: larger than the %zu bytes allowed", path, max);
		return -EFBIG;
	}
	if (r < 0)
		return error_sys(err, r, "read %s", path);
	if (ret_len)
		*ret_len = text.len;
	*ret = str_take(&text);
	return 0;
}

static int sync_parent(int dir_fd, const char *path)
{
	char parent[PATH_MAX];
	const char *slash = strrchr(path, '/');

	if (!slash)
		snprintf(parent, sizeof(parent), ".");
	else
		snprintf(parent, sizeof(parent), "%.*s", (int)MAX(slash - path, 1), path);
	_cleanup_fd_ int fd = openat(dir_fd, parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

static int write_beside(int dir_fd, const char *path, const void *data, size_t len, mode_t mode)
{
	_cleanup_fd_ int fd = openat(dir_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);

	if (fd < 0)
		return -errno;
	if (fchmod(fd, mode) < 0)
		return -errno;
	int r = fd_write_full(fd, data, len);
	if (r < 0)
		return r;
	return fsync(fd) < 0 ? -errno : 0;
}

int file_replace(int dir_fd, const char *path, const void *data, size_t len, mode_t mode, struct error *err)
{
	char suffix[9];

	random_hex(suffix, 8);
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	_cleanup_free_ char *beside = xasprintf("%.*s.%s.%s.tmp", (int)(name - path), path, name, suffix);

	int r = write_beside(dir_fd, beside, data, len, mode);
	if (r == 0 && renameat(dir_fd, beside, dir_fd, path) < 0)
		r = -errno;
	if (r < 0) {
		unlinkat(dir_fd, beside, 0);
		return error_sys(err, r, "write %s", path);
	}
	r = sync_parent(dir_fd, path);
	return r < 0 ? error_sys(err, r, "write %s: sync its directory", path) : 0;
}

int file_write(int dir_fd, const char *path, const char *text, struct error *err)
{
	_cleanup_fd_ int fd = openat(dir_fd, path, O_WRONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return error_sys(err, errno, "open %s", path);
	ssize_t n = write(fd, text, strlen(text));
	if (n < 0)
		return error_sys(err, errno, "write \"%.60s\" to %s", text, path);
	return 0;
}

int dir_make(const char *path, mode_t mode, struct error *err)
{
	_cleanup_free_ char *part = xstrdup(path);

	for (char *p = part + 1;; p++) {
		if (*p && *p != '/')
			continue;
		char end = *p;

		*p = '\0';
		if (mkdir(part, mode) < 0 && errno != EEXIST)
			return error_sys(err, errno, "create directory %s", part);
		if (!end)
			break;
		*p = end;
	}
	struct stat st;

	if (stat(path, &st) < 0)
		return error_sys(err, errno, "create directory %s", path);
	if (!S_ISDIR(st.st_mode))
		return error_sys(err, ENOTDIR, "create directory %s", path);
	return 0;
}

static int remove_tree(int dir_fd, const char *path, dev_t dev, int depth)
{
	if (unlinkat(dir_fd, path, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	if (depth > REMOVE_DEPTH_MAX)
		return -ELOOP;
	int fd = openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || st.st_dev != dev) {
		close(fd);
		return -EBUSY;
	}
	DIR *d = fdopendir(fd);
	int r = 0;

	if (!d) {
		close(fd);
		return -errno;
	}
	for (struct dirent *e = readdir(d); e && r == 0; e = readdir(d))
		if (!str_eq(e->d_name, ".") && !str_eq(e->d_name, ".."))
			r = remove_tree(dirfd(d), e->d_name, dev, depth + 1);
	closedir(d);
	if (r < 0)
		return r;
	return unlinkat(dir_fd, path, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}

int dir_remove(int dir_fd, const char *path, struct error *err)
{
	struct stat st;

	if (fstatat(dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : error_sys(err, errno, "remove %s", path);
	int r = remove_tree(dir_fd, path, st.st_dev, 0);

	return r < 0 ? error_sys(err, r, "remove %s", path) : 0;
}

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t clock_monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t clock_realtime_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

void random_hex(char *buf, size_t n)
{
	for (size_t i = 0; i < n; i += 16) {
		uint64_t v;

		if (getrandom(&v, sizeof(v), 0) != sizeof(v))
			abort();
		for (size_t k = i; k < MIN(n, i + 16); k++, v >>= 4)
			buf[k] = "0123456789abcdef"[v & 15];
	}
	buf[n] = '\0';
}

/* lower.c - purpose: what an entry inherits from the layers below: attributes of directories, files to be linked to. */
#include "runtime-lite/image/lower.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "runtime-lite/image/inroot.h"

enum { NAMES_MAX = 64 * 1024, VALUE_MAX = 64 * 1024 };

bool xattr_allowed(const char *name)
{
	/* "user.overlay." steers overlayfs in a user namespace; "trusted." and labels of security modules are the node's. */
	if (str_starts(name, "user."))
		return !str_starts(name, "user.overlay.");
	return str_eq(name, "security.capability") || str_eq(name, "system.posix_acl_access") ||
		str_eq(name, "system.posix_acl_default");
}

int lower_find(const int *fds, size_t n, const char *path, int *ret_fd, struct stat *ret)
{
	for (size_t i = 0; i < n; i++) {
		int fd = inroot_open_nolinks(fds[i], path, O_PATH | O_NOFOLLOW);

		if (fd == -ENOENT)
			continue;
		/* A file or link where a directory would have to be hides all that is further below. */
		if (fd == -ENOTDIR || fd == -ELOOP)
			return -ENOENT;
		if (fd < 0)
			return fd;
		if (fstat(fd, ret) < 0) {
			int r = -errno;

			close(fd);
			return r;
		}
		if (S_ISCHR(ret->st_mode) && ret->st_rdev == makedev(0, 0)) {
			close(fd);
			return -ENOENT;
		}
		*ret_fd = fd;
		return 0;
	}
	return -ENOENT;
}

/* Opens what an O_PATH descriptor stands for. */
static int reopen(int path_fd, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	int fd = open(path, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static int copy_xattrs(int from_fd, int to_fd)
{
	_cleanup_free_ char *names = xmalloc(NAMES_MAX), *value = xmalloc(VALUE_MAX);
	ssize_t n = flistxattr(from_fd, names, NAMES_MAX);

	if (n < 0)
		return errno == ENOTSUP ? 0 : -errno;
	for (const char *p = names; p < names + n; p += strlen(p) + 1) {
		if (!xattr_allowed(p))
			continue;
		ssize_t len = fgetxattr(from_fd, p, value, VALUE_MAX);

		if (len < 0 || fsetxattr(to_fd, p, value, (size_t)len, 0) < 0)
			return -errno;
	}
	return 0;
}

int lower_copy_attributes(int lower_fd, const struct stat *st, int dir_fd)
{
	_cleanup_fd_ int fd = reopen(lower_fd, O_RDONLY | O_DIRECTORY);

	if (fd < 0)
		return fd;
	if (fchown(dir_fd, st->st_uid, st->st_gid) < 0 || fchmod(dir_fd, st->st_mode & 07777) < 0)
		return -errno;
	return copy_xattrs(fd, dir_fd);
}

static int copy_content(int from, int to, uint64_t left)
{
	while (left > 0) {
		ssize_t n = copy_file_range(from, NULL, to, NULL, (size_t)MIN(left, 1u << 30), 0);

		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO; /* shorter than it says */
		left -= (uint64_t)n;
	}
	return 0;
}

int lower_copy_file(int lower_fd, const struct stat *st, int dir_fd, const char *name, uint64_t max)
{
	struct timespec times[2] = { st->st_mtim, st->st_mtim };
	_cleanup_fd_ int from = -1;
	_cleanup_fd_ int to = -1;

	if (!S_ISREG(st->st_mode))
		return -EINVAL;
	if ((uint64_t)st->st_size > max)
		return -EFBIG;
	from = reopen(lower_fd, O_RDONLY);
	if (from < 0)
		return from;
	to = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0)
		return -errno;
	int r = copy_content(from, to, (uint64_t)st->st_size);
	if (r == 0 && (fchown(to, st->st_uid, st->st_gid) < 0 || fchmod(to, st->st_mode & 07777) < 0))
		r = -errno;
	if (r == 0)
		r = copy_xattrs(from, to);
	if (r == 0 && futimens(to, times) < 0)
		r = -errno;
	return r;
}

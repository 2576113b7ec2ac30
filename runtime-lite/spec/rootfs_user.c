/* rootfs_user.c - purpose: read the user database of an image, bounded and without leaving its root. */
#include "runtime-lite/spec/rootfs_user.h"

#include "common/sys/file.h"
#include "runtime-lite/engine/rootfs.h"

#include <errno.h>
#include <sys/stat.h>

enum { DATABASE_MAX_BYTES = 1 << 20 }; /* CVE-2026-47262: images have sent gigabytes */

/* *ret stays NULL when the image has no such file. */
static int read_database(int root_fd, const char *path, char **ret, struct error *err)
{
	_cleanup_fd_ int fd = -1;
	struct stat st;
	int r = rootfs_open_file(root_fd, path, &fd, err);

	if (r < 0)
		return err->code == ERROR_NOT_FOUND ? 0 : error_prefix(err, "the image's %s", path);
	if (fstat(fd, &st) < 0)
		return error_sys(err, errno, "the image's %s", path);
	if (st.st_size > DATABASE_MAX_BYTES)
		return error_set(err, ERROR_INVALID, "the image's %s has %lld bytes, more than %d", path,
			(long long)st.st_size, DATABASE_MAX_BYTES);
	_cleanup_free_ char *text = xmalloc(DATABASE_MAX_BYTES + 1);
	ssize_t n = fd_read_full(fd, text, DATABASE_MAX_BYTES);
	if (n < 0)
		return error_sys(err, (int)n, "the image's %s", path);
	text[n] = '\0';
	*ret = xstrdup(text);
	return 0;
}

int rootfs_user(const struct strv *lower, const CRI(LinuxContainerSecurityContext) * security, const char *image_user,
	struct user *ret, struct error *err)
{
	_cleanup_free_ char *passwd = NULL, *group = NULL;
	_cleanup_fd_ int root_fd = -1;
	struct error local = ERROR_INIT;
	int r = rootfs_open(lower, &root_fd, &local);

	if (r == 0)
		r = read_database(root_fd, "/etc/passwd", &passwd, &local);
	if (r == 0)
		r = read_database(root_fd, "/etc/group", &group, &local);
	/* Without need of the files a broken one is the image's own business. */
	if (r < 0 && (user_needs_files(security, image_user) || local.code != ERROR_INVALID)) {
		if (err)
			*err = local;
		return r;
	}
	return user_resolve(security, image_user, passwd, group, ret, err);
}

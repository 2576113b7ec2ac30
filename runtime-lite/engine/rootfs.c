/* rootfs.c - purpose: look into a container's root file system before it runs. */
#include "runtime-lite/engine/rootfs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* Linux 6.13 and later. -EINVAL or -EOPNOTSUPP: older. */
static int overlay_by_fd(const struct strv *lower)
{
	_cleanup_fd_ int ctx = fsopen("overlay", FSOPEN_CLOEXEC);

	if (ctx < 0)
		return -errno;
	for (size_t i = 0; i < lower->n; i++) {
		_cleanup_fd_ int dir = open(lower->v[i], O_PATH | O_DIRECTORY | O_CLOEXEC);

		if (dir < 0 || fsconfig(ctx, FSCONFIG_SET_FD, "lowerdir+", NULL, dir) < 0)
			return -errno;
	}
	if (fsconfig(ctx, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	int fd = fsmount(ctx, FSMOUNT_CLOEXEC, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);

	return fd < 0 ? -errno : fd;
}

struct by_options {
	const struct strv *lower;
	int result;
};

static int mount_in_own_namespace(const struct strv *lower)
{
	char options[4096] = "lowerdir=";
	size_t n = strlen(options);

	if (unshare(CLONE_FS | CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -errno;
	_cleanup_free_ int *fds = xcalloc(lower->n, sizeof(int));
	int r = 0;

	for (size_t i = 0; i < lower->n; i++) {
		fds[i] = open(lower->v[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fds[i] < 0)
			r = -errno;
		n += (size_t)snprintf(options + n, sizeof(options) - n, "%s%d", i ? ":" : "", fds[i]);
		if (n >= sizeof(options))
			return -E2BIG;
	}
	if (r == 0 && (chdir("/proc/self/fd") < 0 ||
		mount("overlay", lower->v[0], "overlay", MS_RDONLY | MS_NOSUID | MS_NODEV, options) < 0))
		r = -errno;
	for (size_t i = 0; i < lower->n; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (r < 0)
		return r;
	int fd = open(lower->v[0], O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static void *options_thread(void *arg)
{
	struct by_options *b = arg;

	b->result = mount_in_own_namespace(b->lower);
	return NULL;
}

/* Older kernels take the directories as one page of text, and only a short working directory makes many fit. A thread of
 * its own may change that, and the mount namespace in which it mounts; the mount lives on in the descriptor. */
static int overlay_by_options(const struct strv *lower)
{
	struct by_options b = { .lower = lower };
	pthread_t thread;
	int r = pthread_create(&thread, NULL, options_thread, &b);

	if (r != 0)
		return -r;
	pthread_join(thread, NULL);
	return b.result;
}

int rootfs_open(const struct strv *lower, int *ret_fd, struct error *err)
{
	int fd;

	if (lower->n == 0)
		return error_set(err, ERROR_INVALID, "the root file system has no layers");
	if (lower->n == 1) {
		fd = open(lower->v[0], O_PATH | O_DIRECTORY | O_CLOEXEC);
		fd = fd < 0 ? -errno : fd;
	} else {
		fd = overlay_by_fd(lower);
		if (fd == -EINVAL || fd == -EOPNOTSUPP)
			fd = overlay_by_options(lower);
	}
	if (fd < 0)
		return error_sys(err, fd, "look into the root file system (%zu layers)", lower->n);
	*ret_fd = fd;
	return 0;
}

int rootfs_open_file(int root_fd, const char *path, int *ret_fd, struct error *err)
{
	struct open_how how = { .flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	struct stat st;
	_cleanup_fd_ int fd = -1;

	for (int i = 0; i < 128 && fd < 0; i++) {
		fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
		if (fd < 0 && errno != EAGAIN)
			break;
	}
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return error_set(err, ERROR_NOT_FOUND, "%s: is not in the image", path);
	if (fd < 0 || fstat(fd, &st) < 0)
		return error_sys(err, errno, "%s of the image", path);
	if (!S_ISREG(st.st_mode))
		return error_set(err, ERROR_INVALID, "%s of the image: is not a regular file", path);
	*ret_fd = steal_fd(&fd);
	return 0;
}

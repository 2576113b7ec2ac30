/* volumes.c - purpose: the directories that an image declares as volumes, where the root file system cannot be written. */
#include "runtime-lite/cri/volumes.h"

#include "runtime-lite/engine/rootfs.h"
#include "runtime-lite/spec/container_plan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { VOLUMES_MAX = 64, DEPTH_MAX = 64, COPY_CHUNK = 1 << 30 };

static int copy_dir(int from_fd, int to_fd, int depth, struct error *err);

static int copy_owner(int fd, const struct stat *st, const char *name, struct error *err)
{
	if (fchown(fd, st->st_uid, st->st_gid) < 0 || fchmod(fd, st->st_mode & 07777) < 0)
		return error_sys(err, errno, "%s", name);
	return 0;
}

static int copy_file(int from_dir, int to_dir, const char *name, const struct stat *st, struct error *err)
{
	_cleanup_fd_ int from = openat(from_dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	_cleanup_fd_ int to = openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	ssize_t n;

	if (from < 0 || to < 0)
		return error_sys(err, errno, "%s", name);
	do {
		n = copy_file_range(from, NULL, to, NULL, COPY_CHUNK, 0);
	} while (n > 0);
	if (n < 0)
		return error_sys(err, errno, "%s", name);
	return copy_owner(to, st, name, err);
}

static int copy_link(int from_dir, int to_dir, const char *name, const struct stat *st, struct error *err)
{
	char target[4096];
	ssize_t n = readlinkat(from_dir, name, target, sizeof(target) - 1);

	if (n < 0)
		return error_sys(err, errno, "%s", name);
	target[n] = '\0';
	if (symlinkat(target, to_dir, name) < 0 ||
		fchownat(to_dir, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0)
		return error_sys(err, errno, "%s", name);
	return 0;
}

static int copy_subdir(int from_dir, int to_dir, const char *name, const struct stat *st, int depth, struct error *err)
{
	if (depth >= DEPTH_MAX)
		return error_set(err, ERROR_INVALID, "%s: directories are nested too deep", name);
	if (mkdirat(to_dir, name, 0700) < 0)
		return error_sys(err, errno, "%s", name);
	_cleanup_fd_ int from = openat(from_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_fd_ int to = openat(to_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (from < 0 || to < 0)
		return error_sys(err, errno, "%s", name);
	int r = copy_owner(to, st, name, err);
	return r < 0 ? r : copy_dir(from, to, depth + 1, err);
}

static int copy_entry(int from_dir, int to_dir, const char *name, int depth, struct error *err)
{
	struct stat st;

	if (fstatat(from_dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return error_sys(err, errno, "%s", name);
	if (S_ISDIR(st.st_mode))
		return copy_subdir(from_dir, to_dir, name, &st, depth, err);
	if (S_ISREG(st.st_mode))
		return copy_file(from_dir, to_dir, name, &st, err);
	if (S_ISLNK(st.st_mode))
		return copy_link(from_dir, to_dir, name, &st, err);
	return 0; /* devices, sockets and pipes are nothing to have in a volume */
}

static int copy_dir(int from_fd, int to_fd, int depth, struct error *err)
{
	int fd = openat(from_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	int r = 0;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return error_sys(err, errno, "open directory");
	}
	while (r == 0 && (e = readdir(dir)))
		if (!str_eq(e->d_name, ".") && !str_eq(e->d_name, ".."))
			r = copy_entry(from_fd, to_fd, e->d_name, depth, err);
	closedir(dir);
	return r;
}

/* The image's directory at that path, -ENOENT if there is none. No link leads out of the image. */
static int open_in_image(int root_fd, const char *path)
{
	struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	int fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

static int make_one(struct container *c, int root_fd, const char *path, struct error *err)
{
	_cleanup_free_ char *dir = xasprintf("%s/volumes/%zu", c->layer_dir, c->volumes.n);
	_cleanup_fd_ int from = open_in_image(root_fd, path);
	struct stat st = { .st_mode = 0755 };
	int r = 0;

	if (mkdir(dir, 0755) < 0)
		return error_sys(err, errno, "%s", dir);
	_cleanup_fd_ int to = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (to < 0)
		return error_sys(err, errno, "%s", dir);
	if (from >= 0 && fstat(from, &st) == 0)
		r = copy_owner(to, &st, path, err);
	if (r == 0 && from >= 0)
		r = copy_dir(from, to, 0, err);
	if (r < 0)
		return error_prefix(err, "volume %s of the image", path);
	strv_add(&c->volumes, path);
	return 0;
}

int volumes_make(struct container *c, const struct strv *declared, struct error *err)
{
	const CRI(LinuxContainerConfig) *linux = c->config->linux;
	bool readonly = linux && linux->security_context && linux->security_context->readonly_rootfs;
	_cleanup_free_ char *dir = xasprintf("%s/volumes", c->layer_dir);
	_cleanup_fd_ int root_fd = -1;

	if (!readonly || !declared->n)
		return 0;
	if (declared->n > VOLUMES_MAX)
		return error_set(err, ERROR_INVALID, "the image declares %zu volumes, more than %d", declared->n, VOLUMES_MAX);
	if (mkdir(dir, 0700) < 0)
		return error_sys(err, errno, "%s", dir);
	int r = rootfs_open(&c->lower, &root_fd, err);
	for (size_t i = 0; r == 0 && i < declared->n; i++)
		if (*declared->v[i] == '/' && declared->v[i][1] && !container_mounts_at(c->config, declared->v[i]))
			r = make_one(c, root_fd, declared->v[i], err);
	return r;
}

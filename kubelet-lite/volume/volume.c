/* volume.c - purpose: make a pod's volumes on the node, refresh them, and take them down. */
#include "kubelet-lite/volume/volume.h"

#include "common/sys/file.h"
#include "kubelet-lite/volume/payload_write.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#define TMPFS_MAGIC_NUMBER 0x01021994

void volume_step_done(struct volume_step *s)
{
	free(s->name);
	free(s->path);
	free(s->host_type);
	payload_done(&s->payload);
	*s = (struct volume_step){ 0 };
}

char *volume_path(const char *root_dir, const struct pod *pod, const struct volume *v)
{
	if (v->kind == VOLUME_HOST_PATH)
		return xstrdup(v->host_path);
	return xasprintf("%s/pods/%s/volumes/kubernetes.io~%s/%s", root_dir, pod->uid, v->type_name, v->name);
}

static bool is_tmpfs_root(const char *path)
{
	struct statfs fs;
	struct stat here, above;
	_cleanup_free_ char *parent = xasprintf("%s/..", path);

	return statfs(path, &fs) == 0 && fs.f_type == TMPFS_MAGIC_NUMBER && stat(path, &here) == 0 &&
	       stat(parent, &above) == 0 && here.st_dev != above.st_dev;
}

static int mount_tmpfs(const char *path, int64_t size, const char *mode, struct error *err)
{
	_cleanup_free_ char *options =
		size > 0 ? xasprintf("mode=%s,size=%lld", mode, (long long)size) : xasprintf("mode=%s", mode);
	_cleanup_free_ char *noswap = xasprintf("%s,noswap", options);

	if (is_tmpfs_root(path))
		return 0;
	/* Kernels before 6.4 have no noswap. */
	if (mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, noswap) == 0 ||
		mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, options) == 0)
		return 0;
	return error_sys(err, errno, "mount tmpfs on %s", path);
}

static int own_group(int fd, const struct stat *st, gid_t gid)
{
	mode_t mode = st->st_mode & 07777;

	if (S_ISLNK(st->st_mode))
		return 0;
	mode |= S_ISDIR(st->st_mode) ? 02770 : 0660;
	if (fchown(fd, (uid_t)-1, gid) < 0 || fchmod(fd, mode) < 0)
		return -errno;
	return 0;
}

/* fsGroup: everything below belongs to the group, which may write. */
static int apply_group(int dir_fd, gid_t gid, int depth, struct error *err)
{
	int list = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	DIR *d = list >= 0 ? fdopendir(list) : NULL;
	struct dirent *e;
	struct stat st;

	while (d && r == 0 && depth < 256 && (e = readdir(d))) {
		if (str_eq(e->d_name, ".") || str_eq(e->d_name, ".."))
			continue;
		if (fstatat(dir_fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			(!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)))
			continue;
		_cleanup_fd_ int fd = openat(dir_fd, e->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (S_ISDIR(st.st_mode))
			r = apply_group(fd, gid, depth + 1, err);
		else if (own_group(fd, &st, gid) < 0)
			r = error_sys(err, errno, "set the fsGroup of %s", e->d_name);
	}
	if (d)
		closedir(d);
	else if (list >= 0)
		close(list);
	/* Last, so that a directory which has its group is known to be done. */
	if (r == 0 && (fstat(dir_fd, &st) < 0 || own_group(dir_fd, &st, gid) < 0))
		r = error_sys(err, errno, "set the fsGroup");
	return r;
}

static int set_up_empty_dir(const struct volume_step *s, struct error *err)
{
	int r = dir_make(s->path, 0750, err);

	if (r == 0 && s->on_tmpfs)
		r = mount_tmpfs(s->path, s->size_bytes, "0777", err);
	if (r < 0)
		return r;
	_cleanup_fd_ int fd = open(s->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0)
		return error_sys(err, errno, "open %s", s->path);
	/* As the kubelet: everybody may write, unless an fsGroup says who. Once, not at each start. */
	if ((st.st_mode & 0777) != 0777 && fchmod(fd, 0777) < 0)
		return error_sys(err, errno, "chmod %s", s->path);
	if (s->fs_group < 0 || (st.st_gid == (gid_t)s->fs_group && (st.st_mode & S_ISGID)))
		return 0;
	return apply_group(fd, (gid_t)s->fs_group, 0, err);
}

static int set_up_payload(const struct volume_step *s, struct error *err)
{
	int r = dir_make(s->path, 0755, err);

	if (r == 0 && s->on_tmpfs)
		r = mount_tmpfs(s->path, 0, "0755", err);
	if (r == 0 && chmod(s->path, 0755) < 0)
		r = error_sys(err, errno, "chmod %s", s->path);
	return r < 0 ? r : payload_write(s->path, &s->payload, s->fs_group, err);
}

/* The types that check; the text is the kubelet's. */
static const struct host_type {
	const char *name;
	mode_t format;
	const char *noun;
} host_types[] = {
	{ "DirectoryOrCreate", S_IFDIR, "directory" },
	{ "Directory", S_IFDIR, "directory" },
	{ "FileOrCreate", S_IFREG, "file" },
	{ "File", S_IFREG, "file" },
	{ "Socket", S_IFSOCK, "socket file" },
	{ "CharDevice", S_IFCHR, "character device" },
	{ "BlockDevice", S_IFBLK, "block device" },
};

static int set_up_host_path(const struct volume_step *s, struct error *err)
{
	const struct host_type *type = NULL;
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(host_types); i++)
		if (str_eq(s->host_type, host_types[i].name))
			type = &host_types[i];
	if (!type)
		return 0;
	if (str_eq(type->name, "DirectoryOrCreate")) {
		int r = dir_make(s->path, 0755, err);

		if (r < 0)
			return r;
	}
	if (str_eq(type->name, "FileOrCreate")) {
		int fd = open(s->path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644);

		if (fd >= 0)
			close(fd);
	}
	if (stat(s->path, &st) < 0 || (st.st_mode & S_IFMT) != type->format)
		return error_set(
			err, ERROR_PRECONDITION, "hostPath type check failed: %s is not a %s", s->path, type->noun);
	return 0;
}

int volume_set_up(const struct volume_step *s, struct error *err)
{
	switch (s->kind) {
	case VOLUME_EMPTY_DIR:
		return set_up_empty_dir(s, err);
	case VOLUME_PAYLOAD:
		return set_up_payload(s, err);
	default:
		return set_up_host_path(s, err);
	}
}

/* The fifth field of a mountinfo line, with its octal escapes undone. Owned by the caller; NULL at a malformed line. */
static char *mount_point(const char *line)
{
	for (int i = 0; i < 4; i++) {
		line = strchr(line, ' ');
		if (!line)
			return NULL;
		line++;
	}
	char *out = xstrndup(line, strcspn(line, " \n")), *to = out;

	for (const char *from = out; *from; to++) {
		bool octal = from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] >= '0' && from[2] <= '7' &&
			     from[3] >= '0' && from[3] <= '7';

		*to = octal ? (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0')) : *from;
		from += octal ? 4 : 1;
	}
	*to = '\0';
	return out;
}

static int mounts_below(const char *dir, struct strv *ret, struct error *err)
{
	_cleanup_free_ char *prefix = xasprintf("%s/", dir);
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t size = 0;

	if (!f)
		return error_sys(err, errno, "open /proc/self/mountinfo");
	while (getline(&line, &size, f) >= 0) {
		_cleanup_free_ char *point = mount_point(line);

		if (point && str_starts(point, prefix))
			strv_add(ret, point);
	}
	free(line);
	fclose(f);
	return 0;
}

static int unmount_below(const char *dir, struct error *err)
{
	_cleanup_(strv_done) struct strv mounts = STRV_INIT;
	_cleanup_free_ char *real = realpath(dir, NULL);
	int r = real ? mounts_below(real, &mounts, err) : 0;

	/* The latest mounts come last in the list, and have to go first. */
	for (size_t i = mounts.n; i > 0 && r == 0; i--)
		if (umount2(mounts.v[i - 1], UMOUNT_NOFOLLOW) < 0 && errno != EINVAL && errno != ENOENT)
			r = error_sys(err, errno, "unmount %s", mounts.v[i - 1]);
	return r;
}

int volumes_tear_down(const char *pod_dir, bool everything, struct error *err)
{
	static const char *const parts[] = { "volumes", "volume-subpaths", "plugins", "containers", "etc-hosts" };
	int r = unmount_below(pod_dir, err);

	if (r < 0 || everything)
		return r < 0 ? r : dir_remove(AT_FDCWD, pod_dir, err);
	for (size_t i = 0; i < ARRAY_LEN(parts) && r == 0; i++) {
		_cleanup_free_ char *path = xasprintf("%s/%s", pod_dir, parts[i]);

		r = dir_remove(AT_FDCWD, path, err);
	}
	return r;
}

static int open_beneath(int dir_fd, const char *path, int flags)
{
	struct open_how how = { .flags = (uint64_t)flags | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };

	return (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));
}

/* Makes what is missing of a path, with the permissions of the volume's root; each step resolved beneath it. */
static int make_beneath(int dir_fd, const char *path, struct error *err)
{
	struct stat root;

	if (fstat(dir_fd, &root) < 0)
		return error_sys(err, errno, "stat the volume");
	for (const char *p = path; *p;) {
		size_t n;

		p += strspn(p, "/");
		n = strcspn(p, "/");
		_cleanup_free_ char *parent = p == path ? xstrdup(".") : xstrndup(path, (size_t)(p - path));
		_cleanup_free_ char *name = xstrndup(p, n);
		p += n;
		if (!n)
			break;
		_cleanup_fd_ int fd = open_beneath(dir_fd, parent, O_PATH | O_DIRECTORY);
		if (fd < 0)
			return error_sys(err, errno, "resolve %s", parent);
		if (mkdirat(fd, name, 0700) < 0) {
			if (errno != EEXIST)
				return error_sys(err, errno, "create %s", name);
			continue;
		}
		_cleanup_fd_ int made = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (made < 0 || fchmod(made, root.st_mode & 07777) < 0 || fchown(made, (uid_t)-1, root.st_gid) < 0)
			return error_sys(err, errno, "create %s", name);
	}
	return 0;
}

static int bind_target(const char *target, bool directory, struct error *err)
{
	_cleanup_free_ char *parent = xstrndup(target, (size_t)(strrchr(target, '/') - target));
	int r = dir_make(directory ? target : parent, 0750, err);

	if (r < 0 || directory)
		return r;
	int fd = open(target, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (fd < 0)
		return error_sys(err, errno, "create %s", target);
	close(fd);
	return 0;
}

/* An earlier instance's mount is taken off; the kind (file, directory) may have changed with it. */
static void clear_target(const char *target)
{
	while (umount2(target, UMOUNT_NOFOLLOW | MNT_DETACH) == 0)
		;
	if (rmdir(target) < 0)
		(void)!unlink(target);
}

int volume_sub_path(const char *volume_dir, const char *sub_path, const char *target, struct error *err)
{
	_cleanup_fd_ int root = open(volume_dir, O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -1;
	char source[64];
	struct stat st;
	int r;

	if (root < 0)
		return error_sys(err, errno, "open volume %s", volume_dir);
	fd = open_beneath(root, sub_path, O_PATH);
	if (fd < 0 && errno == ENOENT) {
		r = make_beneath(root, sub_path, err);
		if (r < 0)
			return error_prefix(err, "subPath \"%s\"", sub_path);
		fd = open_beneath(root, sub_path, O_PATH);
	}
	if (fd < 0 && errno == EXDEV)
		return error_set(err, ERROR_INVALID, "subPath \"%s\" leaves the volume", sub_path);
	if (fd < 0 || fstat(fd, &st) < 0)
		return error_sys(err, errno, "subPath \"%s\"", sub_path);
	clear_target(target);
	r = bind_target(target, S_ISDIR(st.st_mode), err);
	if (r < 0)
		return r;
	snprintf(source, sizeof(source), "/proc/self/fd/%d", fd);
	if (mount(source, target, NULL, MS_BIND | MS_REC, NULL) < 0)
		return error_sys(err, errno, "bind subPath \"%s\" on %s", sub_path, target);
	return 0;
}

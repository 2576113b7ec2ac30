/* mounts.c - purpose: the container's file system tree, put together by descriptors before pivot_root. */
#include "runtime-lite/monitor/mounts.h"

#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "runtime-lite/monitor/path.h"
#include "runtime-lite/monitor/sys.h"

enum { OPTION_MAX = 1024, DEPTH_MAX = 64 };

#define SAFE (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)

int mount_new(const char *type, const char *source, const char *options, uint64_t attrs)
{
	_cleanup_fd_ int fs = fsopen(type, FSOPEN_CLOEXEC);

	if (fs < 0)
		return -errno;
	if (source && fsconfig(fs, FSCONFIG_SET_STRING, "source", source, 0) < 0)
		return -errno;
	for (const char *o = options; o && *o;) {
		char option[OPTION_MAX];
		size_t n = strcspn(o, ",");

		if (n >= sizeof(option))
			return -ENAMETOOLONG;
		memcpy(option, o, n);
		option[n] = '\0';
		char *value = strchr(option, '=');
		if (value)
			*value++ = '\0';
		if (n && fsconfig(fs, value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG, option, value, 0) < 0)
			return -errno;
		o += n + (o[n] == ',');
	}
	if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	int fd = fsmount(fs, FSMOUNT_CLOEXEC, (unsigned)attrs);

	return fd < 0 ? -errno : fd;
}

int mount_clone(int fd, const char *path, bool recursive)
{
	unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (recursive ? AT_RECURSIVE : 0);
	int clone = open_tree(fd, path, flags | (*path ? 0 : AT_EMPTY_PATH));

	return clone < 0 ? -errno : clone;
}

int mount_attach(int mount_fd, int target_fd)
{
	return move_mount(mount_fd, "", target_fd, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0 ? -errno : 0;
}

static int set_attrs(int mount_fd, uint64_t set, uint64_t propagation, bool recursive)
{
	struct mount_attr attr = { .attr_set = set, .propagation = propagation };

	return mount_setattr(mount_fd, "", AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0), &attr, sizeof(attr)) < 0 ? -errno : 0;
}

static void *zeroed(size_t bytes)
{
	void *p = mmap(NULL, MAX(bytes, (size_t)1), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static bool has_target(const struct launch *l, const char *target)
{
	for (size_t i = 0; i < l->n_mounts; i++)
		if (strcmp(l->mounts[i].target, target) == 0)
			return true;
	return false;
}

static int make_host_directory(const char *path)
{
	char part[PATH_MAX];

	for (const char *p = path; *p;) {
		p += strspn(p, "/");
		p += strcspn(p, "/");
		if ((size_t)(p - path) >= sizeof(part))
			return -ENAMETOOLONG;
		memcpy(part, path, (size_t)(p - path));
		part[p - path] = '\0';
		if (mkdir(part, 0755) < 0 && errno != EEXIST)
			return -errno;
	}
	return 0;
}

static int collect_bind(const struct launch_mount *b, int *ret, struct error *err)
{
	static const uint64_t propagations[] = { MS_PRIVATE, MS_SLAVE, MS_SHARED };
	int fd = mount_clone(AT_FDCWD, b->source, b->recursive);

	if (fd == -ENOENT && b->create_source) {
		int r = make_host_directory(b->source);

		if (r < 0)
			return error_sys(err, r, "mount %s: make its source %s", b->target, b->source);
		fd = mount_clone(AT_FDCWD, b->source, b->recursive);
	}
	if (fd < 0)
		return error_sys(err, fd, "mount %s: source %s", b->target, b->source);
	uint64_t set = (b->readonly ? MOUNT_ATTR_RDONLY : 0) | (b->nosuid ? MOUNT_ATTR_NOSUID : 0) |
		       (b->nodev ? MOUNT_ATTR_NODEV : 0) | (b->noexec ? MOUNT_ATTR_NOEXEC : 0);
	int r = set_attrs(fd, 0, propagations[b->propagation], true);

	if (r == 0 && set)
		r = set_attrs(fd, set, 0, b->recursive_readonly);
	if (r < 0) {
		close(fd);
		return error_sys(err, r, "mount %s: set its attributes", b->target);
	}
	*ret = fd;
	return 0;
}

static int collect_cgroups(struct mounts *m, struct error *err)
{
	const struct launch *l = m->l;
	uint64_t attrs = SAFE | (l->sys_writable ? 0 : MOUNT_ATTR_RDONLY);

	m->unified = -1;
	if (has_target(l, "/sys/fs/cgroup"))
		return 0;
	for (size_t i = 0; i <= l->cgroup_dirs.n; i++) {
		const char *dir = i < l->cgroup_dirs.n ? l->cgroup_dirs.v[i] : l->cgroup_unified;
		int *fd = i < l->cgroup_dirs.n ? &m->cgroups[i] : &m->unified;

		if (!dir)
			continue;
		*fd = mount_clone(AT_FDCWD, dir, false);
		int r = *fd < 0 ? *fd : set_attrs(*fd, attrs, MS_PRIVATE, false);
		if (r < 0)
			return error_sys(err, r, "mount /sys/fs/cgroup: source %s", dir);
	}
	return 0;
}

int mounts_collect(struct mounts *m, const struct launch *l, struct error *err)
{
	*m = (struct mounts){ .l = l, .root = -1, .dev = -1, .pts = -1, .unified = -1, .empty = -1 };
	m->sources = zeroed(l->n_mounts * sizeof(int));
	m->cgroups = zeroed(l->cgroup_dirs.n * sizeof(int));
	m->proc_host = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (!m->sources || !m->cgroups || m->proc_host < 0)
		return error_sys(err, errno, "prepare mounts");
	for (size_t i = 0; i < l->n_mounts; i++) {
		m->sources[i] = -1;
		if (!str_eq(l->mounts[i].type, "bind"))
			continue;
		int r = collect_bind(&l->mounts[i], &m->sources[i], err);
		if (r < 0)
			return r;
	}
	return collect_cgroups(m, err);
}

static int add_layer(int fs, const char *key, const char *path)
{
	_cleanup_fd_ int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return -errno;
	return fsconfig(fs, FSCONFIG_SET_FD, key, NULL, dir) < 0 ? -errno : 0;
}

/* Linux 6.13 and later: every directory goes in as a descriptor. -EINVAL or -EOPNOTSUPP: older, nothing was done. */
static int overlay_by_fd(const struct launch_rootfs *fs, int target)
{
	_cleanup_fd_ int ctx = fsopen("overlay", FSOPEN_CLOEXEC);
	int r = ctx < 0 ? -errno : 0;

	if (r == 0 && fsconfig(ctx, FSCONFIG_SET_STRING, "source", "overlay", 0) < 0)
		r = -errno;
	for (size_t i = 0; i < fs->lower.n && r == 0; i++)
		r = add_layer(ctx, "lowerdir+", fs->lower.v[i]);
	if (r == 0 && fs->upper)
		r = add_layer(ctx, "upperdir", fs->upper);
	if (r == 0 && fs->work)
		r = add_layer(ctx, "workdir", fs->work);
	if (r == 0 && fsconfig(ctx, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		r = -errno;
	if (r < 0)
		return r;
	_cleanup_fd_ int mnt = fsmount(ctx, FSMOUNT_CLOEXEC, 0);

	return mnt < 0 ? -errno : mount_attach(mnt, target);
}

static int option_fd(char *options, size_t size, const char *key, const char *separator, const char *path)
{
	size_t n = strlen(options);
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if ((size_t)snprintf(options + n, size - n, "%s%s%d", separator, key, fd) >= size - n)
		return -E2BIG;
	return 0;
}

/* Older kernels take one page of options. With /proc/self/fd as the working directory a layer is but a number. The
 * descriptors are left open: the child closes all of them at its end. */
static int overlay_by_options(const struct launch_rootfs *fs)
{
	char options[4096] = "";
	int r = 0;

	for (size_t i = 0; i < fs->lower.n && r == 0; i++)
		r = option_fd(options, sizeof(options), i ? "" : "lowerdir=", i ? ":" : "", fs->lower.v[i]);
	if (r == 0 && fs->upper)
		r = option_fd(options, sizeof(options), "upperdir=", ",", fs->upper);
	if (r == 0 && fs->work)
		r = option_fd(options, sizeof(options), "workdir=", ",", fs->work);
	if (r == 0 && chdir("/proc/self/fd") < 0)
		r = -errno;
	if (r == 0 && mount("overlay", fs->merged, "overlay", 0, options) < 0)
		r = -errno;
	if (chdir("/") < 0 && r == 0)
		r = -errno;
	return r;
}

/* Overlayfs refuses a single layer without an upper one: a read-only bind does the same. */
static int single_layer(const struct launch_rootfs *fs, int target)
{
	_cleanup_fd_ int fd = mount_clone(AT_FDCWD, fs->lower.v[0], false);

	if (fd < 0)
		return fd;
	int r = set_attrs(fd, MOUNT_ATTR_RDONLY, MS_PRIVATE, false);

	return r < 0 ? r : mount_attach(fd, target);
}

/* In a chroot, to the root of the mount namespace: that is where exec will look for the container. Elsewhere a no-op. */
static int leave_chroot(struct mounts *m)
{
	_cleanup_fd_ int own = openat(m->proc_host, "self/ns/mnt", O_RDONLY | O_CLOEXEC);

	return own < 0 || syscall(SYS_setns, own, CLONE_NEWNS) < 0 ? -errno : 0;
}

/* From here on nothing that is mounted here reaches the node; its mounts still come in until the pivot. */
static int make_slave(struct mounts *m)
{
	_cleanup_fd_ int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = root < 0 ? -errno : leave_chroot(m);

	if (r < 0)
		return r;
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0 || fchdir(root) < 0 || syscall(SYS_chroot, ".") < 0)
		return -errno;
	return 0;
}

int mounts_rootfs(struct mounts *m, struct error *err)
{
	const struct launch_rootfs *fs = &m->l->rootfs;
	int r = make_slave(m);

	if (r < 0)
		return error_sys(err, r, "make the mount namespace private");
	_cleanup_fd_ int target = open(fs->merged, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (target < 0)
		return error_sys(err, errno, "mount the root file system on %s", fs->merged);
	if (!fs->upper && fs->lower.n == 1) {
		r = single_layer(fs, target);
	} else {
		r = overlay_by_fd(fs, target);
		if (r == -EINVAL || r == -EOPNOTSUPP)
			r = overlay_by_options(fs);
	}
	if (r < 0)
		return error_sys(err, r, "mount the root file system (overlay of %zu layers) on %s", fs->lower.n, fs->merged);
	m->root = open(fs->merged, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (m->root < 0)
		return error_sys(err, errno, "open the root file system");
	r = set_attrs(m->root, 0, MS_PRIVATE, false);
	return r < 0 ? error_sys(err, r, "make the root file system private") : 0;
}

/* Links in the place of /proc and /sys are refused: what the runtime itself writes there must not go elsewhere. */
static int system_target(struct mounts *m, const char *path, bool links, struct error *err)
{
	int fd = path_make(m->root, path, true);

	if (fd < 0)
		return error_sys(err, fd, "mount %s: its mount point in the image", path);
	if (!links) {
		_cleanup_fd_ int plain = sys_openat2(m->root, path, O_PATH | O_DIRECTORY, 0, RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS);

		if (plain < 0) {
			close(fd);
			return error_set(err, ERROR_INVALID, "mount %s: is a symbolic link in the image", path);
		}
	}
	return fd;
}

static int attach_new(struct mounts *m, const char *path, const char *type, const char *options, uint64_t attrs, bool links,
	int *ret_fd, struct error *err)
{
	_cleanup_fd_ int target = system_target(m, path, links, err);

	if (target < 0)
		return target;
	_cleanup_fd_ int fd = mount_new(type, type, options, attrs);
	int r = fd < 0 ? fd : mount_attach(fd, target);

	if (r < 0)
		return error_sys(err, r, "mount %s (%s)", path, type);
	if (ret_fd)
		*ret_fd = steal_fd(&fd);
	return 0;
}

static int attach_cgroup(int tmpfs, int *fd, const char *name, struct error *err)
{
	if (mkdirat(tmpfs, name, 0755) < 0 && errno != EEXIST)
		return error_sys(err, errno, "mount /sys/fs/cgroup/%s", name);
	_cleanup_fd_ int target = openat(tmpfs, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r = target < 0 ? -errno : mount_attach(*fd, target);

	/* cpu,cpuacct is looked for as cpu and as cpuacct, too. */
	for (const char *p = name; r == 0 && strchr(name, ',') && *p;) {
		char one[NAME_MAX + 1];
		size_t n = MIN(strcspn(p, ","), sizeof(one) - 1);

		memcpy(one, p, n);
		one[n] = '\0';
		if (symlinkat(name, tmpfs, one) < 0 && errno != EEXIST)
			r = -errno;
		p += strcspn(p, ",");
		p += *p == ',';
	}
	return r < 0 ? error_sys(err, r, "mount /sys/fs/cgroup/%s", name) : 0;
}

static int attach_cgroups(struct mounts *m, struct error *err)
{
	const struct launch *l = m->l;
	_cleanup_fd_ int tmpfs = -1;

	if (has_target(l, "/sys/fs/cgroup") || has_target(l, "/sys"))
		return 0;
	if (l->cgroup_dirs.n == 0) {
		_cleanup_fd_ int target = system_target(m, "/sys/fs/cgroup", false, err);
		int r = target < 0 ? target : m->unified < 0 ? 0 : mount_attach(m->unified, target);

		return r < 0 ? error_sys(err, r, "mount /sys/fs/cgroup") : 0;
	}
	int r = attach_new(m, "/sys/fs/cgroup", "tmpfs", "mode=755", SAFE, false, &tmpfs, err);

	for (size_t i = 0; i < l->cgroup_dirs.n && r == 0; i++)
		r = attach_cgroup(tmpfs, &m->cgroups[i], l->cgroup_names.v[i], err);
	if (r == 0 && m->unified >= 0)
		r = attach_cgroup(tmpfs, &m->unified, "unified", err);
	if (r == 0 && set_attrs(tmpfs, MOUNT_ATTR_RDONLY, 0, false) < 0)
		r = error_sys(err, errno, "mount /sys/fs/cgroup read-only");
	return r;
}

static int attach_system(struct mounts *m, struct error *err)
{
	const struct launch *l = m->l;
	uint64_t sys = SAFE | (l->sys_writable ? 0 : MOUNT_ATTR_RDONLY);
	int r = 0;

	if (!has_target(l, "/proc"))
		r = attach_new(m, "/proc", "proc", NULL, SAFE, false, NULL, err);
	if (r == 0 && !has_target(l, "/sys"))
		r = attach_new(m, "/sys", "sysfs", NULL, sys, false, NULL, err);
	if (r == 0)
		r = attach_cgroups(m, err);
	if (r == 0 && !has_target(l, "/dev"))
		r = attach_new(m, "/dev", "tmpfs", "mode=755,size=65536k", MOUNT_ATTR_NOSUID | MOUNT_ATTR_STRICTATIME, true, &m->dev, err);
	if (r == 0 && !has_target(l, "/dev/pts"))
		r = attach_new(m, "/dev/pts", "devpts", "newinstance,ptmxmode=0666,mode=0620,gid=5", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,
			true, &m->pts, err);
	if (r == 0 && !has_target(l, "/dev/mqueue"))
		r = attach_new(m, "/dev/mqueue", "mqueue", NULL, SAFE, true, NULL, err);
	if (r == 0 && !has_target(l, "/dev/shm"))
		r = attach_new(m, "/dev/shm", "tmpfs", "mode=1777,size=65536k", SAFE, true, NULL, err);
	return r;
}

/* Files of /proc that lxcfs and its like replace; nothing else may be mounted there. */
static bool proc_target_allowed(const char *target)
{
	static const char *const files[] = { "cpuinfo", "diskstats", "meminfo", "stat", "swaps", "uptime", "loadavg", "slabinfo",
		"net/dev", "sys/kernel/ns_last_pid", "sys/crypto/fips_enabled" };

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (strncmp(target, "/proc/", 6) == 0 && strcmp(target + 6, files[i]) == 0)
			return true;
	return false;
}

static bool on_proc(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

static int attach_mount(struct mounts *m, size_t i, struct error *err)
{
	const struct launch_mount *b = &m->l->mounts[i];
	bool bind = m->sources[i] >= 0;
	struct stat st = { .st_mode = S_IFDIR };

	if (bind && fstat(m->sources[i], &st) < 0)
		return error_sys(err, errno, "mount %s", b->target);
	_cleanup_fd_ int target = path_make(m->root, b->target, S_ISDIR(st.st_mode));

	if (target < 0)
		return error_sys(err, target, "mount %s: its mount point", b->target);
	bool over_proc = strcmp(b->target, "/proc") == 0 && ((bind && on_proc(m->sources[i])) || strcmp(b->type, "proc") == 0);

	if (on_proc(target) && !proc_target_allowed(b->target) && !over_proc)
		return error_set(err, ERROR_INVALID, "mount %s: mounts inside of /proc are not allowed", b->target);
	if (strcmp(b->target, "/proc") == 0 && !over_proc)
		return error_set(err, ERROR_INVALID, "mount /proc: only a proc file system may be mounted there");
	if (bind) {
		int r = mount_attach(m->sources[i], target);

		return r < 0 ? error_sys(err, r, "mount %s on %s", b->source, b->target) : 0;
	}
	uint64_t attrs = (b->readonly ? MOUNT_ATTR_RDONLY : 0) | (b->nosuid ? MOUNT_ATTR_NOSUID : 0) |
			 (b->nodev ? MOUNT_ATTR_NODEV : 0) | (b->noexec ? MOUNT_ATTR_NOEXEC : 0);
	_cleanup_fd_ int fd = mount_new(b->type, b->source, b->options, attrs);
	int r = fd < 0 ? fd : mount_attach(fd, target);

	return r < 0 ? error_sys(err, r, "mount %s (%s)", b->target, b->type) : 0;
}

static unsigned depth(const char *path)
{
	unsigned n = 0;

	for (const char *p = path; *p;) {
		p += strspn(p, "/");
		n += *p != '\0';
		p += strcspn(p, "/");
	}
	return MIN(n, (unsigned)DEPTH_MAX);
}

int mounts_attach(struct mounts *m, struct error *err)
{
	int r = attach_system(m, err);

	if (r == 0)
		r = devices_make(m, err);
	for (unsigned d = 0; d <= DEPTH_MAX && r == 0; d++)
		for (size_t i = 0; i < m->l->n_mounts && r == 0; i++)
			if (depth(m->l->mounts[i].target) == d)
				r = attach_mount(m, i, err);
	return r;
}

/* A directory is covered by one empty read-only tmpfs shared by all of them, a file by the node's /dev/null. */
static int mask(struct mounts *m, int target)
{
	struct stat st, null;

	if (fstat(target, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode)) {
		_cleanup_fd_ int fd = mount_clone(AT_FDCWD, "/dev/null", false);

		if (fd < 0 || fstat(fd, &null) < 0 || !S_ISCHR(null.st_mode) || null.st_rdev != 0x103)
			return fd < 0 ? fd : -ENODEV;
		return mount_attach(fd, target);
	}
	if (m->empty >= 0) {
		_cleanup_fd_ int fd = mount_clone(m->empty, "", false);

		return fd < 0 ? fd : mount_attach(fd, target);
	}
	m->empty = mount_new("tmpfs", "tmpfs", "size=0,nr_inodes=2,mode=755", SAFE | MOUNT_ATTR_RDONLY);
	return m->empty < 0 ? m->empty : mount_attach(m->empty, target);
}

static int make_readonly(int target)
{
	_cleanup_fd_ int fd = mount_clone(target, "", true);
	int r = fd < 0 ? fd : set_attrs(fd, MOUNT_ATTR_RDONLY, MS_PRIVATE, false);

	return r < 0 ? r : mount_attach(fd, target);
}

int mounts_mask(struct mounts *m, struct error *err)
{
	const struct strv *lists[] = { &m->l->readonly_paths, &m->l->masked_paths };

	for (size_t k = 0; k < 2; k++)
		for (size_t i = 0; i < lists[k]->n; i++) {
			const char *path = lists[k]->v[i];
			_cleanup_fd_ int target = path_open(m->root, path, false);

			if (target == -ENOENT || target == -ENOTDIR || target == -EACCES)
				continue;
			int r = target < 0 ? target : k ? mask(m, target) : make_readonly(target);
			if (r < 0)
				return error_sys(err, r, "%s %s", k ? "mask" : "make read-only", path);
		}
	return 0;
}

int mounts_pivot(struct mounts *m, struct error *err)
{
	int r = m->l->rootfs.readonly ? set_attrs(m->root, MOUNT_ATTR_RDONLY, 0, false) : 0;

	if (r < 0)
		return error_sys(err, r, "make the root file system read-only");
	r = leave_chroot(m);
	if (r < 0)
		return error_sys(err, r, "find the root of the mount namespace");
	/* pivot_root(".", "."): the old root ends up on top of the new one and is lazily taken off. */
	if (fchdir(m->root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
		return error_sys(err, errno, "pivot_root");
	if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return error_sys(err, errno, "detach the node's root");
	return 0;
}

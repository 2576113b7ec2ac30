/* devices.c - purpose: the nodes and links of the container's /dev, and its terminals. */
#include <dirent.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "runtime-lite/monitor/mounts.h"
#include "runtime-lite/monitor/path.h"
#include "runtime-lite/monitor/sys.h"

enum { HOST_DEPTH_MAX = 8 };

static const struct {
	const char *name;
	unsigned minor, major;
} nodes[] = {
	{ "null", 3, 1 }, { "zero", 5, 1 }, { "full", 7, 1 }, { "random", 8, 1 }, { "urandom", 9, 1 }, { "tty", 0, 5 },
};

static const struct {
	const char *name, *target;
} links[] = {
	{ "fd", "/proc/self/fd" },
	{ "stdin", "/proc/self/fd/0" },
	{ "stdout", "/proc/self/fd/1" },
	{ "stderr", "/proc/self/fd/2" },
	{ "core", "/proc/kcore" },
	{ "ptmx", "pts/ptmx" },
};

/* A node that is there already is fine only if it is the same device; nothing that exists is ever removed. */
static int make_node(int dir, const char *name, mode_t mode, dev_t rdev, uid_t uid, gid_t gid)
{
	struct stat st;

	if (mknodat(dir, name, mode, rdev) < 0) {
		if (errno != EEXIST)
			return -errno;
		if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return -errno;
		return st.st_rdev == rdev && (st.st_mode & S_IFMT) == (mode & S_IFMT) ? 0 : -EEXIST;
	}
	return uid || gid ? (fchownat(dir, name, uid, gid, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0) : 0;
}

static int make_requested(struct mounts *m, const struct launch_device *d, struct error *err)
{
	const char *name;
	_cleanup_fd_ int dir = path_make_parent(m->root, d->path, &name);
	mode_t mode = (d->mode & 07777) | (d->type == 'b' ? S_IFBLK : S_IFCHR);
	int r = dir < 0 ? dir : make_node(dir, name, mode, makedev(d->major, d->minor), d->uid, d->gid);

	return r < 0 ? error_sys(err, r, "make device %s", d->path) : 0;
}

static bool host_entry_skipped(const char *name, int depth)
{
	static const char *const skipped[] = { "pts", "shm", "fd", "mqueue", "console", "ptmx", "stdin", "stdout", "stderr",
		".lxc", ".lxd-mounts", ".udev" };

	for (size_t i = 0; depth == 0 && i < ARRAY_LEN(skipped); i++)
		if (strcmp(name, skipped[i]) == 0)
			return true;
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

struct entry {
	uint64_t ino;
	int64_t off;
	uint16_t len;
	uint8_t type;
	char name[];
};

static int copy_host_devices(int from, int to, int depth);

static int copy_host_entry(int from, int to, const struct entry *e, int depth)
{
	struct stat st;

	if (fstatat(from, e->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode))
		return make_node(to, e->name, st.st_mode, st.st_rdev, st.st_uid, st.st_gid);
	if (!S_ISDIR(st.st_mode) || depth >= HOST_DEPTH_MAX)
		return 0;
	if (mkdirat(to, e->name, st.st_mode & 0777) < 0 && errno != EEXIST)
		return -errno;
	_cleanup_fd_ int sub_from = openat(from, e->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_fd_ int sub_to = openat(to, e->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return sub_from < 0 || sub_to < 0 ? 0 : copy_host_devices(sub_from, sub_to, depth + 1);
}

/* Privileged containers get all the devices that the node has now. */
static int copy_host_devices(int from, int to, int depth)
{
	_Alignas(8) char buf[4096];
	long n;

	while ((n = syscall(SYS_getdents64, from, buf, sizeof(buf))) > 0)
		for (long at = 0; at < n;) {
			const struct entry *e = (const struct entry *)(buf + at);

			at += e->len;
			if (host_entry_skipped(e->name, depth))
				continue;
			int r = copy_host_entry(from, to, e, depth);
			if (r < 0)
				return r;
		}
	return n < 0 ? -errno : 0;
}

int devices_make(struct mounts *m, struct error *err)
{
	int r = 0;

	/* A bind of the node's /dev (dev < 0) has all of that, and must not be changed. */
	for (size_t i = 0; m->dev >= 0 && i < ARRAY_LEN(nodes) && r == 0; i++)
		r = make_node(m->dev, nodes[i].name, S_IFCHR | 0666, makedev(nodes[i].major, nodes[i].minor), 0, 0);
	for (size_t i = 0; m->dev >= 0 && i < ARRAY_LEN(links) && r == 0; i++)
		if (symlinkat(links[i].target, m->dev, links[i].name) < 0 && errno != EEXIST)
			r = -errno;
	if (r == 0 && m->dev >= 0 && m->l->all_devices) {
		_cleanup_fd_ int host = open("/dev", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		r = host < 0 ? -errno : copy_host_devices(host, m->dev, 0);
	}
	if (r < 0)
		return error_sys(err, r, "make the nodes of /dev");
	for (size_t i = 0; i < m->l->n_devices && r == 0; i++)
		if (m->dev >= 0 || strncmp(m->l->devices[i].path, "/dev/", 5) != 0)
			r = make_requested(m, &m->l->devices[i], err);
	return r;
}

/* The slave is had from the master, never by its path, which somebody may have replaced. */
static int open_pair(int ptmx, uid_t uid, int *ret_slave)
{
	int unlock = 0;

	if (ioctl(ptmx, TIOCSPTLCK, &unlock) < 0)
		return -errno;
	int slave = ioctl(ptmx, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (slave < 0)
		return -errno;
	if (uid && fchown(slave, uid, (gid_t)-1) < 0) {
		int r = -errno;

		close(slave);
		return r;
	}
	*ret_slave = slave;
	return 0;
}

int devices_console(struct mounts *m, int *ret_master, int *ret_slave, struct error *err)
{
	_cleanup_fd_ int master = m->pts < 0 ? -1 : openat(m->pts, "ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	_cleanup_fd_ int slave = -1;

	if (master < 0)
		return error_sys(err, m->pts < 0 ? ENODEV : errno, "open a terminal");
	int r = open_pair(master, m->l->uid, &slave);

	if (r == 0 && m->dev >= 0) {
		_cleanup_fd_ int made = openat(m->dev, "console", O_CREAT | O_EXCL | O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
		_cleanup_fd_ int target = made < 0 ? -1 : openat(m->dev, "console", O_PATH | O_NOFOLLOW | O_CLOEXEC);

		r = target < 0 ? -errno : mount_clone(slave, "", false);
		if (r >= 0) {
			_cleanup_fd_ int clone = r;

			r = mount_attach(clone, target);
		}
	}
	if (r < 0)
		return error_sys(err, r, "set up the terminal");
	*ret_master = steal_fd(&master);
	*ret_slave = steal_fd(&slave);
	return 0;
}

int devices_exec_terminal(const struct launch *l, int *ret_master, int *ret_slave, struct error *err)
{
	_cleanup_fd_ int master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NOFOLLOW);
	struct statfs fs;
	struct stat st;

	if (master < 0 || fstatfs(master, &fs) < 0 || fstat(master, &st) < 0)
		return error_sys(err, errno, "open a terminal");
	if (fs.f_type != DEVPTS_SUPER_MAGIC || !S_ISCHR(st.st_mode) || st.st_rdev != makedev(5, 2))
		return error_set(err, ERROR_PRECONDITION, "open a terminal: /dev/pts/ptmx is not what it should be");
	int r = open_pair(master, l->uid, ret_slave);

	if (r < 0)
		return error_sys(err, r, "open a terminal");
	*ret_master = steal_fd(&master);
	return 0;
}

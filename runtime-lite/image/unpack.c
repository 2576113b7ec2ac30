/* unpack.c - purpose: the entries of one layer's tar archive into a directory that overlayfs can use as a lower one. */
#include "runtime-lite/image/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "common/sys/file.h"
#include "runtime-lite/image/inroot.h"
#include "runtime-lite/image/lower.h"

#define OPAQUE_XATTR "trusted.overlay.opaque"

enum { LINKS_MAX = 40 };

/* Times of directories are set at the end, since filling a directory changes them. */
struct dir_time {
	char *path;
	struct timespec mtime;
};

struct unpack {
	struct unpack_options options;
	uint64_t entries, bytes;
	bool root_seen; /* an entry named the root itself */

	/* The directory of the previous entry: most entries share it. Dropped whenever a removal could make it wrong. */
	char *cached_path;
	int cached_fd;

	struct dir_time *times;
	size_t n_times, cap_times;

	bool lower_asked;
	const int *lower_fds;
	size_t n_lower;

	/* The regular file that is being written, or -1; what it will get in the end. */
	int file_fd;
	char *file_name; /* as in the archive, for messages */
	uint32_t file_uid, file_gid, file_mode;
	struct timespec file_mtime;
	struct tar_xattr *file_xattrs; /* owned copies */
	size_t n_file_xattrs;
};

struct unpack *unpack_new(const struct unpack_options *options)
{
	struct unpack *u = xnew(struct unpack);

	u->options = *options;
	struct unpack_limits *l = &u->options.limits;
	l->max_bytes = l->max_bytes ? l->max_bytes : 64ull << 30;
	l->max_entries = l->max_entries ? l->max_entries : 2000000;
	l->max_depth = l->max_depth ? l->max_depth : 256;
	u->cached_fd = u->file_fd = -1;
	return u;
}

static void forget_file(struct unpack *u)
{
	if (u->file_fd >= 0)
		close(u->file_fd);
	u->file_fd = -1;
	free(u->file_name);
	u->file_name = NULL;
	for (size_t i = 0; i < u->n_file_xattrs; i++) {
		free(u->file_xattrs[i].name);
		free(u->file_xattrs[i].value);
	}
	free(u->file_xattrs);
	u->file_xattrs = NULL;
	u->n_file_xattrs = 0;
}

static void forget_cache(struct unpack *u)
{
	free(u->cached_path);
	u->cached_path = NULL;
	if (u->cached_fd >= 0)
		close(u->cached_fd);
	u->cached_fd = -1;
}

struct unpack *unpack_free(struct unpack *u)
{
	if (!u)
		return NULL;
	forget_file(u);
	forget_cache(u);
	for (size_t i = 0; i < u->n_times; i++)
		free(u->times[i].path);
	free(u->times);
	free(u);
	return NULL;
}

static void remember_time(struct unpack *u, const char *path, struct timespec mtime)
{
	if (u->n_times == u->cap_times) {
		u->cap_times = u->cap_times ? u->cap_times * 2 : 64;
		u->times = xreallocarray(u->times, u->cap_times, sizeof(*u->times));
	}
	u->times[u->n_times++] = (struct dir_time){ xstrdup(path), mtime };
}

static int ask_lower(struct unpack *u, struct error *err)
{
	if (u->lower_asked || !u->options.lower)
		return 0;
	u->lower_asked = true;
	return u->options.lower(u->options.data, &u->lower_fds, &u->n_lower, err);
}

static bool is_whiteout(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

static int make_opaque(struct unpack *u, int parent_fd, const char *name, struct error *err)
{
	_cleanup_fd_ int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r = fd < 0 ? -errno : 0;

	if (r == 0 && u->options.set_opaque)
		r = u->options.set_opaque(u->options.data, fd);
	else if (r == 0 && fsetxattr(fd, OPAQUE_XATTR, "y", 1, 0) < 0)
		r = -errno;
	return r < 0 ? error_sys(err, r, "mark it as opaque") : 0;
}

/* A directory that the archive does not name takes after the one below, else it is root's, 0755. */
static int inherit(struct unpack *u, int parent_fd, const char *name, const char *path, struct error *err)
{
	_cleanup_fd_ int fd = -1;
	_cleanup_fd_ int lower_fd = -1;
	struct stat st;
	int r = ask_lower(u, err);

	if (r < 0)
		return r;
	r = lower_find(u->lower_fds, u->n_lower, path, &lower_fd, &st);
	if (r == -ENOENT || (r == 0 && !S_ISDIR(st.st_mode)))
		return 0;
	if (r == 0) {
		fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = fd < 0 ? -errno : lower_copy_attributes(lower_fd, &st, fd);
	}
	if (r < 0)
		return error_sys(err, r, "take over %.100s from the layer below", path);
	remember_time(u, path, st.st_mtim);
	return 0;
}

/* Links can stack directories deeper than any one name is long; what we could not remove again is refused. */
static int check_real_depth(struct unpack *u, int dir_fd, struct error *err)
{
	char link[64], path[INROOT_PATH_MAX + 1];
	unsigned depth = 0;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", dir_fd);
	ssize_t n = readlink(link, path, sizeof(path) - 1);
	if (n < 0 || n >= INROOT_PATH_MAX)
		return error_set(err, ERROR_INVALID, "the directory is too deep");
	for (ssize_t i = 0; i < n; i++)
		depth += path[i] == '/';
	/* The path is absolute: what is above our root counts too, which does no harm. */
	if (depth > u->options.limits.max_depth + 40)
		return error_set(err, ERROR_INVALID, "more than %u directories deep", u->options.limits.max_depth);
	return 0;
}

static int ensure_dir(struct unpack *u, const char *path, unsigned links, int *ret_fd, struct error *err);

/* `name` in parent_fd is a link to something that cannot be opened as a directory (yet): make that. */
static int ensure_link_target(struct unpack *u, const char *parent, int parent_fd, const char *name, unsigned links,
	int *ret_fd, struct error *err)
{
	char target[INROOT_PATH_MAX + 1];
	ssize_t n = readlinkat(parent_fd, name, target, sizeof(target) - 1);

	if (n < 0 || n == INROOT_PATH_MAX)
		return error_sys(err, n < 0 ? errno : ENAMETOOLONG, "read link %.100s", name);
	target[n] = '\0';
	if (links == 0)
		return error_set(err, ERROR_INVALID, "too many symbolic links");
	_cleanup_free_ char *path = target[0] == '/' ? xstrdup(target) : xasprintf("%s/%s", parent, target);
	unsigned parts = 1;
	for (const char *p = path; *p; p++)
		parts += *p == '/';
	if (parts > u->options.limits.max_depth)
		return error_set(err, ERROR_INVALID, "more than %u directories deep", u->options.limits.max_depth);
	return ensure_dir(u, path, links - 1, ret_fd, err);
}

static int make_dir(struct unpack *u, const char *parent, int parent_fd, const char *name, const char *path,
	unsigned links, struct error *err)
{
	struct stat st;
	bool opaque = false;

	if (fstatat(parent_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (S_ISLNK(st.st_mode)) {
			_cleanup_fd_ int made = -1;

			return ensure_link_target(u, parent, parent_fd, name, links, &made, err);
		}
		if (!is_whiteout(&st))
			return error_set(err, ERROR_INVALID, "%.200s is not a directory", path);
		/* Removed below, and anew here. */
		if (unlinkat(parent_fd, name, 0) < 0)
			return error_sys(err, errno, "replace the whiteout of %.100s", path);
		opaque = true;
	}
	int r = check_real_depth(u, parent_fd, err);
	if (r < 0)
		return r;
	if (mkdirat(parent_fd, name, 0755) < 0 || fchmodat(parent_fd, name, 0755, 0) < 0)
		return error_sys(err, errno, "create directory %.100s", path);
	return opaque ? make_opaque(u, parent_fd, name, err) : inherit(u, parent_fd, name, path, err);
}

/* Opens a directory inside of the root, making what is missing. `path` can hold ".." (out of a link's target): only the
 * kernel resolves those. */
static int ensure_dir(struct unpack *u, const char *path, unsigned links, int *ret_fd, struct error *err)
{
	int fd = inroot_open(u->options.root_fd, path, O_PATH | O_DIRECTORY);

	if (fd == -ENOENT || fd == -ENOTDIR) {
		const char *name;
		_cleanup_free_ char *parent = inroot_parent(path, &name);
		_cleanup_fd_ int parent_fd = -1;
		int r = strcmp(path, parent) == 0 ? error_sys(err, fd, "open %.200s", path) :
						    ensure_dir(u, parent, links, &parent_fd, err);

		if (r == 0 && *name && strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
			r = make_dir(u, parent, parent_fd, name, path, links, err);
		if (r < 0)
			return r;
		fd = inroot_open(u->options.root_fd, path, O_PATH | O_DIRECTORY);
	}
	if (fd == -ELOOP)
		return error_set(err, ERROR_INVALID, "too many symbolic links");
	if (fd < 0)
		return error_sys(err, fd, "open directory %.200s", path);
	*ret_fd = fd;
	return 0;
}

/* The directory that an entry goes into; borrowed from the cache. */
static int parent_dir(struct unpack *u, const char *path, int *ret_fd, struct error *err)
{
	if (!u->cached_path || strcmp(u->cached_path, path) != 0) {
		int fd;
		int r = ensure_dir(u, path, LINKS_MAX, &fd, err);

		if (r < 0)
			return r;
		forget_cache(u);
		u->cached_path = xstrdup(path);
		u->cached_fd = fd;
	}
	*ret_fd = u->cached_fd;
	return 0;
}

static int set_xattrs(int fd, const struct tar_xattr *xattrs, size_t n, struct error *err)
{
	for (size_t i = 0; i < n; i++) {
		if (!xattr_allowed(xattrs[i].name))
			continue;
		if (fsetxattr(fd, xattrs[i].name, xattrs[i].value, xattrs[i].len, 0) == 0)
			continue;
		/* Not every filesystem has user attributes; programs cope. A lost capability they would not. */
		if (errno == ENOTSUP && str_starts(xattrs[i].name, "user."))
			continue;
		return error_sys(err, errno, "set attribute %.100s", xattrs[i].name);
	}
	return 0;
}

/* Owner first: changing it clears set-id bits and capabilities. */
static int set_attributes(int fd, const struct tar_entry *e, struct error *err)
{
	if (fchown(fd, e->uid, e->gid) < 0)
		return error_sys(err, errno, "set its owner %u:%u", e->uid, e->gid);
	if (fchmod(fd, e->mode) < 0)
		return error_sys(err, errno, "set its mode");
	return set_xattrs(fd, e->xattrs, e->n_xattrs, err);
}

static int apply_root(struct unpack *u, const struct tar_entry *e, struct error *err)
{
	_cleanup_fd_ int fd = inroot_open(u->options.root_fd, "", O_RDONLY | O_DIRECTORY);

	if (e->type != TAR_DIR)
		return error_set(err, ERROR_INVALID, "the root can only be a directory");
	if (fd < 0)
		return error_sys(err, fd, "open the root");
	u->root_seen = true;
	remember_time(u, "", (struct timespec){ e->mtime_s, e->mtime_ns });
	return set_attributes(fd, e, err);
}

/* ".wh.name": nothing of the layers below is seen under that name. */
static int apply_whiteout(struct unpack *u, int dir_fd, const char *name, struct error *err)
{
	const char *hidden = name + strlen(".wh.");
	struct stat st;

	if (str_eq(name, ".wh..wh..opq"))
		return make_opaque(u, dir_fd, ".", err);
	if (str_starts(hidden, ".wh."))
		return 0; /* bookkeeping of aufs */
	if (!*hidden || str_eq(hidden, ".") || str_eq(hidden, ".."))
		return error_set(err, ERROR_INVALID, "a whiteout of nothing that can be removed");
	if (fstatat(dir_fd, hidden, &st, AT_SYMLINK_NOFOLLOW) == 0)
		/* This layer has it anew. A directory must not merge with the one below. */
		return S_ISDIR(st.st_mode) ? make_opaque(u, dir_fd, hidden, err) : 0;
	if (mknodat(dir_fd, hidden, S_IFCHR, makedev(0, 0)) < 0)
		return error_sys(err, errno, "make the whiteout");
	return 0;
}

/* Makes room for an entry. A directory for a directory stays as it is. */
static int make_room(struct unpack *u, int dir_fd, const char *name, bool for_dir, bool *ret_stays, bool *ret_whiteout,
	struct error *err)
{
	struct stat st;

	*ret_stays = *ret_whiteout = false;
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : error_sys(err, errno, "look at it");
	if (S_ISDIR(st.st_mode) && for_dir) {
		*ret_stays = true;
		return 0;
	}
	*ret_whiteout = is_whiteout(&st);
	int r = dir_remove(dir_fd, name, err);
	/* The cached directory may have been reached through what is gone. */
	if (r == 0 && (S_ISDIR(st.st_mode) || S_ISLNK(st.st_mode)) && u->cached_fd >= 0) {
		free(u->cached_path);
		u->cached_path = NULL; /* the descriptor is in use until the next entry */
	}
	return r;
}

static int apply_dir(struct unpack *u, int dir_fd, const char *name, const char *path, const struct tar_entry *e,
	struct error *err)
{
	bool stays, whiteout;
	int r = make_room(u, dir_fd, name, true, &stays, &whiteout, err);

	if (r == 0 && !stays)
		r = check_real_depth(u, dir_fd, err);
	if (r < 0)
		return r;
	if (!stays && mkdirat(dir_fd, name, 0700) < 0)
		return error_sys(err, errno, "create directory");
	_cleanup_fd_ int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return error_sys(err, errno, "open directory");
	remember_time(u, path, (struct timespec){ e->mtime_s, e->mtime_ns });
	r = set_attributes(fd, e, err);
	return r == 0 && whiteout ? make_opaque(u, dir_fd, name, err) : r;
}

static int apply_file(struct unpack *u, int dir_fd, const char *name, const struct tar_entry *e, struct error *err)
{
	if (e->size > u->options.limits.max_bytes - u->bytes)
		return error_set(err, ERROR_EXHAUSTED, "the layer's files have more than the %" PRIu64 " bytes allowed",
			u->options.limits.max_bytes);
	u->bytes += e->size;
	u->file_fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (u->file_fd < 0)
		return error_sys(err, errno, "create file");
	u->file_name = xstrdup(e->name);
	u->file_uid = e->uid;
	u->file_gid = e->gid;
	u->file_mode = e->mode;
	u->file_mtime = (struct timespec){ e->mtime_s, e->mtime_ns };
	u->file_xattrs = xcalloc(e->n_xattrs, sizeof(*u->file_xattrs));
	u->n_file_xattrs = e->n_xattrs;
	for (size_t i = 0; i < e->n_xattrs; i++)
		u->file_xattrs[i] = (struct tar_xattr){ xstrdup(e->xattrs[i].name),
			xmemdup(e->xattrs[i].value, e->xattrs[i].len), e->xattrs[i].len };
	return 0;
}

/* The target is in a layer below only: it is copied up, so that both names share one file as they do in overlayfs. */
static int copy_up(struct unpack *u, const char *path, struct error *err)
{
	const char *name;
	_cleanup_free_ char *parent = inroot_parent(path, &name);
	_cleanup_fd_ int lower_fd = -1;
	_cleanup_fd_ int dir_fd = -1;
	struct stat st;
	int r = ask_lower(u, err);

	if (r < 0)
		return r;
	r = lower_find(u->lower_fds, u->n_lower, path, &lower_fd, &st);
	if (r < 0 || !S_ISREG(st.st_mode))
		return error_set(err, ERROR_INVALID, "hard link to \"%.200s\", which is no file of this layer or one below", path);
	r = ensure_dir(u, parent, LINKS_MAX, &dir_fd, err);
	if (r < 0)
		return r;
	r = lower_copy_file(lower_fd, &st, dir_fd, name, u->options.limits.max_bytes - u->bytes);
	if (r < 0)
		return error_sys(err, r, "copy %.200s from the layer below", path);
	u->bytes += (uint64_t)st.st_size;
	return 0;
}

/* Opens the directory that holds a hard link's target; *ret_there says whether the target exists in this layer. */
static int link_target(struct unpack *u, const char *parent, const char *name, int *ret_fd, bool *ret_there,
	struct error *err)
{
	struct stat st;
	int fd = inroot_open(u->options.root_fd, parent, O_PATH | O_DIRECTORY);

	*ret_there = false;
	if (fd < 0)
		return fd == -ENOENT || fd == -ENOTDIR ? 0 : error_sys(err, fd, "open directory %.200s", parent);
	*ret_fd = fd;
	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : error_sys(err, errno, "look at %.200s", name);
	if (S_ISDIR(st.st_mode))
		return error_set(err, ERROR_INVALID, "hard link to the directory \"%.200s\"", name);
	*ret_there = !is_whiteout(&st);
	return 0;
}

static int apply_hardlink(struct unpack *u, int dir_fd, const char *name, const char *path, const struct tar_entry *e,
	struct error *err)
{
	_cleanup_free_ char *target = NULL, *parent = NULL;
	_cleanup_fd_ int target_fd = -1;
	const char *base;
	bool there, stays, whiteout;

	if (inroot_clean(e->link, u->options.limits.max_depth, &target, err) < 0)
		return error_prefix(err, "hard link to \"%.200s\"", e->link);
	if (!*target)
		return error_set(err, ERROR_INVALID, "hard link to the root");
	if (strcmp(target, path) == 0)
		return error_set(err, ERROR_INVALID, "hard link to itself");
	parent = inroot_parent(target, &base);
	int r = link_target(u, parent, base, &target_fd, &there, err);
	if (r == 0 && !there) {
		r = copy_up(u, target, err);
		if (r == 0 && target_fd < 0)
			r = link_target(u, parent, base, &target_fd, &there, err);
	}
	if (r == 0)
		r = make_room(u, dir_fd, name, false, &stays, &whiteout, err);
	if (r < 0)
		return r;
	if (target_fd < 0 || linkat(target_fd, base, dir_fd, name, 0) < 0)
		return error_sys(err, target_fd < 0 ? ENOENT : errno, "hard link to \"%.200s\"", e->link);
	return 0;
}

static int apply_symlink(int dir_fd, const char *name, const struct tar_entry *e, struct error *err)
{
	if (!*e->link)
		return error_set(err, ERROR_INVALID, "symbolic link without a target");
	if (symlinkat(e->link, dir_fd, name) < 0)
		return error_sys(err, errno, "create symbolic link");
	return 0;
}

static int apply_node(int dir_fd, const char *name, const struct tar_entry *e, struct error *err)
{
	mode_t type = e->type == TAR_FIFO ? S_IFIFO : e->type == TAR_CHAR ? S_IFCHR : S_IFBLK;

	/* The overlay that containers see is mounted nodev: such a node is a file like others until a container with
	 * CAP_MKNOD and a device cgroup that allows it makes its own. */
	if (mknodat(dir_fd, name, type | 0600, e->type == TAR_FIFO ? 0 : makedev(e->major, e->minor)) < 0)
		return error_sys(err, errno, "create device or FIFO");
	return 0;
}

/* Owner, mode and time of what cannot be opened. */
static int finish_by_name(int dir_fd, const char *name, const struct tar_entry *e, struct error *err)
{
	struct timespec times[2] = { { e->mtime_s, e->mtime_ns }, { e->mtime_s, e->mtime_ns } };

	if (fchownat(dir_fd, name, e->uid, e->gid, AT_SYMLINK_NOFOLLOW) < 0)
		return error_sys(err, errno, "set its owner %u:%u", e->uid, e->gid);
	if (e->type != TAR_SYMLINK && fchmodat(dir_fd, name, e->mode, 0) < 0)
		return error_sys(err, errno, "set its mode");
	if (utimensat(dir_fd, name, times, AT_SYMLINK_NOFOLLOW) < 0)
		return error_sys(err, errno, "set its time");
	return 0;
}

static int apply(struct unpack *u, int dir_fd, const char *name, const char *path, const struct tar_entry *e,
	struct error *err)
{
	bool stays, whiteout;
	int r;

	if (e->type == TAR_DIR)
		return apply_dir(u, dir_fd, name, path, e, err);
	if (e->type == TAR_HARDLINK)
		return apply_hardlink(u, dir_fd, name, path, e, err);
	r = make_room(u, dir_fd, name, false, &stays, &whiteout, err);
	if (r < 0)
		return r;
	if (e->type == TAR_FILE)
		return apply_file(u, dir_fd, name, e, err);
	r = e->type == TAR_SYMLINK ? apply_symlink(dir_fd, name, e, err) : apply_node(dir_fd, name, e, err);
	return r < 0 ? r : finish_by_name(dir_fd, name, e, err);
}

static int on_entry_inner(struct unpack *u, const struct tar_entry *e, struct error *err)
{
	_cleanup_free_ char *path = NULL, *parent = NULL;
	const char *name;
	int dir_fd;

	if (++u->entries > u->options.limits.max_entries)
		return error_set(err, ERROR_EXHAUSTED, "the layer has more than the %" PRIu64 " entries allowed",
			u->options.limits.max_entries);
	int r = inroot_clean(e->name, u->options.limits.max_depth, &path, err);
	if (r < 0)
		return r;
	if (!*path)
		return apply_root(u, e, err);
	parent = inroot_parent(path, &name);
	r = parent_dir(u, parent, &dir_fd, err);
	if (r < 0)
		return r;
	return str_starts(name, ".wh.") ? apply_whiteout(u, dir_fd, name, err) : apply(u, dir_fd, name, path, e, err);
}

static int on_entry(void *data, const struct tar_entry *e, struct error *err)
{
	int r = on_entry_inner(data, e, err);

	return r < 0 ? error_prefix(err, "\"%.200s\"", e->name) : 0;
}

static int on_content(void *data, const void *p, size_t n, struct error *err)
{
	struct unpack *u = data;
	int r = u->file_fd >= 0 ? fd_write_full(u->file_fd, p, n) : 0; /* -1: the content of a whiteout */

	return r < 0 ? error_sys(err, r, "\"%.200s\": write", u->file_name) : 0;
}

static int on_end(void *data, struct error *err)
{
	struct unpack *u = data;

	if (u->file_fd < 0)
		return 0;
	struct timespec times[2] = { u->file_mtime, u->file_mtime };
	struct tar_entry e = { .uid = u->file_uid, .gid = u->file_gid, .mode = u->file_mode, .xattrs = u->file_xattrs,
		.n_xattrs = u->n_file_xattrs };
	int r = set_attributes(u->file_fd, &e, err);
	if (r == 0 && futimens(u->file_fd, times) < 0)
		r = error_sys(err, errno, "set its time");
	if (r < 0)
		error_prefix(err, "\"%.200s\"", u->file_name);
	forget_file(u);
	return r;
}

const struct tar_handler unpack_tar_handler = { on_entry, on_content, on_end };

/* The top layer's root is what a container sees as "/". */
static int inherit_root(struct unpack *u, struct error *err)
{
	struct stat st;
	int r = ask_lower(u, err);

	if (r < 0 || u->n_lower == 0)
		return r;
	_cleanup_fd_ int fd = inroot_open(u->options.root_fd, "", O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return error_sys(err, fd, "open the root");
	if (fstat(u->lower_fds[0], &st) < 0)
		return error_sys(err, errno, "look at the layer below");
	r = lower_copy_attributes(u->lower_fds[0], &st, fd);
	if (r < 0)
		return error_sys(err, r, "take over the root of the layer below");
	remember_time(u, "", st.st_mtim);
	return 0;
}

int unpack_finish(struct unpack *u, struct error *err)
{
	int r = u->root_seen ? 0 : inherit_root(u, err);

	if (r < 0)
		return r;
	forget_cache(u);
	for (size_t i = 0; i < u->n_times; i++) {
		struct timespec times[2] = { u->times[i].mtime, u->times[i].mtime };
		_cleanup_fd_ int fd = inroot_open(u->options.root_fd, u->times[i].path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);

		/* It may have been replaced by something else since. */
		if (fd >= 0 && futimens(fd, times) < 0)
			return error_sys(err, errno, "\"%.200s\": set its time", u->times[i].path);
	}
	return 0;
}

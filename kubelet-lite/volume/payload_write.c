/* payload_write.c - purpose: replace the files of a payload volume all at once. */
#include "kubelet-lite/volume/payload_write.h"

#include "common/sys/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#define DATA "..data"
#define DATA_TMP "..data_tmp"

/* Directories of a relative path, below dir_fd. */
static int make_parents(int dir_fd, const char *path, struct error *err)
{
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		_cleanup_free_ char *part = xstrndup(path, (size_t)(slash - path));

		if (mkdirat(dir_fd, part, 0755) < 0 && errno != EEXIST)
			return error_sys(err, errno, "create %s", part);
	}
	return 0;
}

static int write_file(int dir_fd, const struct payload_file *f, int64_t gid, struct error *err)
{
	mode_t mode = gid >= 0 ? f->mode | 0440 : f->mode;
	int r = make_parents(dir_fd, f->path, err);

	if (r < 0)
		return r;
	_cleanup_fd_ int fd = openat(dir_fd, f->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return error_sys(err, errno, "create %s", f->path);
	r = fd_write_full(fd, f->data, f->len);
	if (r < 0)
		return error_sys(err, r, "write %s", f->path);
	if (gid >= 0 && fchown(fd, (uid_t)-1, (gid_t)gid) < 0)
		return error_sys(err, errno, "chown %s", f->path);
	if (fchmod(fd, mode) < 0) /* the umask does not count */
		return error_sys(err, errno, "chmod %s", f->path);
	return 0;
}

/* Is what is there (through ..data) the same? Files that should not be there count as well. */
static bool same_file(int data_fd, const struct payload_file *f)
{
	_cleanup_free_ char *have = NULL;
	size_t len;

	return file_read(data_fd, f->path, f->len + 1, &have, &len, NULL) == 0 && len == f->len &&
	       memcmp(have, f->data, len) == 0;
}

static size_t count_files(int dir_fd, int depth)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 && depth < 64 ? fdopendir(fd) : NULL;
	struct dirent *e;
	size_t n = 0;

	if (!d) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	while ((e = readdir(d))) {
		if (str_eq(e->d_name, ".") || str_eq(e->d_name, ".."))
			continue;
		_cleanup_fd_ int sub = openat(dir_fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		n += sub >= 0 ? count_files(sub, depth + 1) : 1;
	}
	closedir(d);
	return n;
}

static bool is_current(int dir_fd, const struct payload *payload)
{
	_cleanup_fd_ int data = openat(dir_fd, DATA, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (data < 0 || count_files(data, 0) != payload->n)
		return false;
	for (size_t i = 0; i < payload->n; i++)
		if (!same_file(data, &payload->v[i]))
			return false;
	return true;
}

static bool has_top(const struct payload *payload, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < payload->n; i++)
		if (strncmp(payload->v[i].path, name, n) == 0 &&
			(payload->v[i].path[n] == '/' || !payload->v[i].path[n]))
			return true;
	return false;
}

/* Links for what is there, no links for what is not, no directories of earlier versions. */
static int tidy(int dir_fd, const struct payload *payload, const char *keep, struct error *err)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;

	for (size_t i = 0; i < payload->n && r == 0; i++) {
		size_t n = strcspn(payload->v[i].path, "/");
		_cleanup_free_ char *name = xstrndup(payload->v[i].path, n);
		_cleanup_free_ char *target = xasprintf(DATA "/%s", name);

		if (symlinkat(target, dir_fd, name) < 0 && errno != EEXIST)
			r = error_sys(err, errno, "link %s", name);
	}
	while (d && r == 0 && (e = readdir(d))) {
		bool ours = str_starts(e->d_name, "..") && e->d_name[2];

		if (str_eq(e->d_name, ".") || str_eq(e->d_name, "..") || str_eq(e->d_name, DATA) ||
			str_eq(e->d_name, keep))
			continue;
		if (ours)
			r = dir_remove(dir_fd, e->d_name, err);
		else if (!has_top(payload, e->d_name))
			(void)!unlinkat(dir_fd, e->d_name, 0);
	}
	if (d)
		closedir(d);
	else if (fd >= 0)
		close(fd);
	return r;
}

int payload_write(const char *dir, const struct payload *payload, int64_t gid, struct error *err)
{
	_cleanup_fd_ int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), stage = -1;
	char name[80];
	struct timespec now;
	struct tm tm;
	char random[9];
	int r = 0;

	if (dir_fd < 0)
		return error_sys(err, errno, "open %s", dir);
	if (is_current(dir_fd, payload))
		return 0;
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	random_hex(random, 8);
	snprintf(name, sizeof(name), "..%04d_%02d_%02d_%02d_%02d_%02d.%s", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
		tm.tm_hour, tm.tm_min, tm.tm_sec, random);
	if (mkdirat(dir_fd, name, 0755) < 0)
		return error_sys(err, errno, "create %s/%s", dir, name);
	stage = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (stage < 0 || fchmod(stage, 0755) < 0)
		return error_sys(err, errno, "open %s/%s", dir, name);
	for (size_t i = 0; i < payload->n && r == 0; i++)
		r = write_file(stage, &payload->v[i], gid, err);
	if (r < 0) {
		(void)!dir_remove(dir_fd, name, NULL);
		return r;
	}
	(void)!unlinkat(dir_fd, DATA_TMP, 0);
	if (symlinkat(name, dir_fd, DATA_TMP) < 0 || renameat(dir_fd, DATA_TMP, dir_fd, DATA) < 0)
		return error_sys(err, errno, "switch %s/" DATA, dir);
	return tidy(dir_fd, payload, name, err);
}

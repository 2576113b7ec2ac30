/* survey.c - purpose: what an unpacked layer takes on disk, and a checksum that shows whether anything in it was lost. */
#include "runtime-lite/image/survey.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "common/base/str.h"

enum { DEPTH_MAX = 512, LINK_MAX = 4096 };

/* Names of files with several names: device and inode seen already. Open addressing; grows with the number of links. */
struct seen {
	ino_t *slots;
	size_t cap, n;
};

static uint64_t mix(uint64_t h, const void *data, size_t n)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 0x100000001b3u;
	return h ^ h >> 29;
}

static bool seen_put(struct seen *s, ino_t ino)
{
	size_t i = (size_t)(ino * 0x9e3779b97f4a7c15u) & (s->cap - 1);

	for (; s->slots[i]; i = (i + 1) & (s->cap - 1))
		if (s->slots[i] == ino)
			return false;
	s->slots[i] = ino;
	s->n++;
	return true;
}

static bool seen_first(struct seen *s, ino_t ino)
{
	if (s->n * 2 >= s->cap) {
		struct seen bigger = { .cap = s->cap ? s->cap * 2 : 64 };

		bigger.slots = xcalloc(bigger.cap, sizeof(*bigger.slots));
		for (size_t i = 0; i < s->cap; i++)
			if (s->slots[i])
				seen_put(&bigger, s->slots[i]);
		free(s->slots);
		*s = bigger;
	}
	return seen_put(s, ino);
}

static int add(int dir_fd, const char *name, uint64_t above, const struct stat *st, struct survey *sum, struct seen *seen,
	uint64_t *ret_hash)
{
	bool content = S_ISREG(st->st_mode) || S_ISLNK(st->st_mode);
	uint64_t fields[] = { st->st_mode, st->st_uid, st->st_gid, content ? (uint64_t)st->st_size : 0,
		S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode) ? st->st_rdev : 0, (uint64_t)st->st_mtim.tv_sec,
		(uint64_t)st->st_mtim.tv_nsec };
	uint64_t path = mix(above, name, strlen(name) + 1);
	/* Whiteouts keep the time when they were made: no part of the layer. */
	size_t n = S_ISCHR(st->st_mode) && st->st_rdev == 0 ? 5 : ARRAY_LEN(fields);
	uint64_t h = mix(path, fields, n * sizeof(fields[0]));

	if (S_ISLNK(st->st_mode)) {
		char target[LINK_MAX];
		ssize_t len = readlinkat(dir_fd, name, target, sizeof(target));

		if (len < 0)
			return -errno;
		h = mix(h, target, (size_t)len);
	}
	if (S_ISDIR(st->st_mode) || st->st_nlink < 2 || seen_first(seen, st->st_ino)) {
		sum->bytes += (uint64_t)st->st_blocks * 512;
		sum->inodes++;
	}
	sum->checksum += h;
	*ret_hash = path;
	return 0;
}

/* Takes dir_fd over. */
static int walk(int dir_fd, uint64_t above, int depth, struct survey *sum, struct seen *seen)
{
	DIR *d = fdopendir(dir_fd);
	int r = 0;

	if (!d) {
		r = -errno;
		close(dir_fd);
		return r;
	}
	errno = 0;
	for (struct dirent *e = readdir(d); e && r == 0; errno = 0, e = readdir(d)) {
		struct stat st;
		uint64_t hash;

		if (str_eq(e->d_name, ".") || str_eq(e->d_name, ".."))
			continue;
		r = fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
		if (r == 0)
			r = add(dirfd(d), e->d_name, above, &st, sum, seen, &hash);
		if (r < 0 || !S_ISDIR(st.st_mode))
			continue;
		int fd = openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = fd < 0 ? -errno : depth >= DEPTH_MAX ? -ELOOP : 0;
		if (r == 0)
			r = walk(fd, hash, depth + 1, sum, seen);
		else if (fd >= 0)
			close(fd);
	}
	if (r == 0 && errno)
		r = -errno;
	closedir(d);
	return r;
}

int survey_tree(int dir_fd, struct survey *ret, struct error *err)
{
	struct survey sum = { 0 };
	struct seen seen = { 0 };
	struct stat st;
	uint64_t hash;
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = fd < 0 || fstat(fd, &st) < 0 ? -errno : add(fd, ".", 0xcbf29ce484222325u, &st, &sum, &seen, &hash);

	if (r == 0)
		r = walk(fd, hash, 0, &sum, &seen);
	else if (fd >= 0)
		close(fd);
	free(seen.slots);
	if (r < 0)
		return error_sys(err, r, "look through the unpacked layer");
	*ret = sum;
	return 0;
}

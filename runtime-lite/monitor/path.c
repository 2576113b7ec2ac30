/* path.c - purpose: paths inside a root file system that nobody trusts. */
#include "runtime-lite/monitor/path.h"

#include <limits.h>
#include <sys/stat.h>

#include "runtime-lite/monitor/sys.h"

enum { LINKS_MAX = 40, COMPONENTS_MAX = 256 };

#define IN_ROOT (RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS)

int path_open(int root_fd, const char *path, bool nofollow)
{
	int fd = sys_openat2(root_fd, path, O_PATH | (nofollow ? O_NOFOLLOW : 0), 0, IN_ROOT);

	return fd < 0 ? -errno : fd;
}

/* path = front[0..n) + "/" + link target + rest; an absolute target drops the front. -ENAMETOOLONG. */
static int follow(char *path, size_t front, const char *rest, int link_fd)
{
	char target[PATH_MAX], joined[PATH_MAX];
	ssize_t n = readlinkat(link_fd, "", target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	if (n == sizeof(target) - 1)
		return -ENAMETOOLONG;
	target[n] = '\0';
	if (target[0] == '/')
		front = 0;
	size_t rest_len = strlen(rest);

	if (front + 1 + (size_t)n + rest_len >= sizeof(joined))
		return -ENAMETOOLONG;
	memcpy(joined, path, front);
	joined[front] = '/';
	memcpy(joined + front + 1, target, (size_t)n);
	memcpy(joined + front + 1 + n, rest, rest_len + 1);
	memcpy(path, joined, front + 1 + (size_t)n + rest_len + 1);
	return 0;
}

/* Makes the component at path[start..end) in its parent. 1: it is a dangling link, path was rewritten, begin again. */
static int make_component(int root_fd, char *path, size_t start, size_t end, bool directory)
{
	char name[NAME_MAX + 1], front[PATH_MAX];

	if (end - start > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, path + start, end - start);
	name[end - start] = '\0';
	memcpy(front, path, start);
	front[start] = '\0';

	_cleanup_fd_ int parent = path_open(root_fd, start ? front : "/", false);
	if (parent < 0)
		return parent;
	if (directory ? mkdirat(parent, name, 0755) == 0 : mknodat(parent, name, S_IFREG | 0644, 0) == 0)
		return 0;
	if (errno != EEXIST)
		return -errno;
	_cleanup_fd_ int link_fd = openat(parent, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (link_fd < 0 || fstat(link_fd, &st) < 0)
		return -errno;
	if (!S_ISLNK(st.st_mode))
		return 0; /* somebody was faster */
	int r = follow(path, start ? start - 1 : 0, path + end, link_fd);

	return r < 0 ? r : 1;
}

static int make_missing(int root_fd, char *path, bool directory)
{
	size_t components = 0;

	for (size_t start = 0; path[start];) {
		start += strspn(path + start, "/");
		size_t end = start + strcspn(path + start, "/");
		bool last = path[end + strspn(path + end, "/")] == '\0';
		char kept = path[end];

		if (end == start)
			break;
		if (++components > COMPONENTS_MAX)
			return -ELOOP;
		path[end] = '\0';
		int fd = path_open(root_fd, path, false);
		path[end] = kept;
		if (fd >= 0) {
			close(fd);
		} else if (fd != -ENOENT) {
			return fd;
		} else {
			int r = make_component(root_fd, path, start, end, directory || !last);
			if (r != 0)
				return r;
		}
		start = end;
	}
	return 0;
}

int path_make(int root_fd, const char *wanted, bool directory)
{
	char path[PATH_MAX];
	int fd = path_open(root_fd, wanted, false);

	if (fd != -ENOENT)
		return fd;
	if (strlen(wanted) >= sizeof(path))
		return -ENAMETOOLONG;
	strcpy(path, wanted);
	for (int links = 0; links < LINKS_MAX; links++) {
		int r = make_missing(root_fd, path, directory);

		if (r < 0)
			return r;
		if (r == 0)
			return path_open(root_fd, path, false);
	}
	return -ELOOP;
}

int path_make_parent(int root_fd, const char *path, const char **ret_name)
{
	char parent[PATH_MAX];
	const char *slash = strrchr(path, '/');

	if (!slash || !slash[1] || strcmp(slash + 1, "..") == 0 || strcmp(slash + 1, ".") == 0)
		return -EINVAL;
	if ((size_t)(slash - path) >= sizeof(parent))
		return -ENAMETOOLONG;
	memcpy(parent, path, (size_t)(slash - path));
	parent[slash - path] = '\0';
	*ret_name = slash + 1;
	return path_make(root_fd, parent[0] ? parent : "/", true);
}

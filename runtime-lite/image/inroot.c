/* inroot.c - purpose: paths inside a directory that hostile people filled: resolved by the kernel, never outside of it. */
#include "runtime-lite/image/inroot.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

#include "common/base/str.h"

enum { RETRIES_MAX = 128 };

static int open_with(int root_fd, const char *path, int flags, uint64_t resolve)
{
	struct open_how how = { .flags = (uint64_t)(flags | O_CLOEXEC), .resolve = resolve };

	/* EAGAIN: something was renamed on the way, so that the kernel cannot prove that ".." stayed inside. */
	for (int i = 0; i < RETRIES_MAX; i++) {
		long fd = syscall(SYS_openat2, root_fd, *path ? path : ".", &how, sizeof(how));

		if (fd >= 0)
			return (int)fd;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
	}
	return -EAGAIN;
}

int inroot_open(int root_fd, const char *path, int flags)
{
	return open_with(root_fd, path, flags, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV);
}

int inroot_open_nolinks(int root_fd, const char *path, int flags)
{
	return open_with(root_fd, path, flags, RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
}

int inroot_clean(const char *name, unsigned max_depth, char **ret, struct error *err)
{
	_cleanup_(str_done) struct str out = STR_INIT;
	unsigned depth = 0;

	if (strlen(name) > INROOT_PATH_MAX)
		return error_set(err, ERROR_INVALID, "the name is longer than %d bytes", INROOT_PATH_MAX);
	for (const char *p = name; *p;) {
		size_t n = strcspn(p, "/");

		if (n > INROOT_NAME_MAX)
			return error_set(err, ERROR_INVALID, "a part of the name is longer than %d bytes", INROOT_NAME_MAX);
		if (n == 2 && p[0] == '.' && p[1] == '.') {
			if (depth == 0)
				return error_set(err, ERROR_INVALID, "leaves the root filesystem");
			while (out.len && out.buf[--out.len] != '/')
				;
			out.buf[out.len] = '\0';
			depth--;
		} else if (n > 0 && !(n == 1 && p[0] == '.')) {
			if (++depth > max_depth)
				return error_set(err, ERROR_INVALID, "more than %u directories deep", max_depth);
			if (out.len)
				str_add_char(&out, '/');
			str_add_bytes(&out, p, n);
		}
		p += n;
		p += *p == '/';
	}
	*ret = str_take(&out);
	return 0;
}

char *inroot_parent(const char *path, const char **ret_base)
{
	const char *slash = strrchr(path, '/');

	*ret_base = slash ? slash + 1 : path;
	return xstrndup(path, slash ? (size_t)(slash - path) : 0);
}

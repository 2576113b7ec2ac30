/* command.c - purpose: find the program of args[0] as a shell would, and name what is wrong as runc does. */
#include "runtime-lite/monitor/command.h"

#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "runtime-lite/monitor/sys.h"

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static const char *path_of(const struct strv *env)
{
	const char *path = NULL;

	for (size_t i = 0; i < env->n; i++)
		if (strncmp(env->v[i], "PATH=", 5) == 0)
			path = env->v[i] + 5;
	return path ? path : DEFAULT_PATH;
}

/* 0: a file that we may execute. */
static int executable(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EACCES;
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0 ? -errno : 0;
}

int command_find(const struct launch *l, char *path, struct error *err)
{
	const char *name = l->args.v[0];
	bool denied = false;

	if (strchr(name, '/')) {
		int r = strlen(name) < PATH_MAX ? executable(name) : -ENAMETOOLONG;

		if (r == -EACCES)
			return error_set(err, ERROR_DENIED, "exec: \"%s\": permission denied", name);
		if (r == -ENOENT || r == -ENOTDIR)
			return error_set(err, ERROR_NOT_FOUND, "exec: \"%s\": stat %s: no such file or directory", name, name);
		if (r < 0)
			return error_sys(err, r, "exec: \"%s\"", name);
		strcpy(path, name);
		return 0;
	}
	for (const char *p = path_of(&l->env);; p++) {
		size_t n = strcspn(p, ":");

		/* An empty entry means the working directory. */
		if ((size_t)snprintf(path, PATH_MAX, "%.*s/%s", n ? (int)n : 1, n ? p : ".", name) < PATH_MAX) {
			int r = executable(path);

			if (r == 0)
				return 0;
			denied = denied || r == -EACCES;
		}
		p += n;
		if (!*p)
			break;
	}
	if (denied)
		return error_set(err, ERROR_DENIED, "exec: \"%s\": permission denied", name);
	return error_set(err, ERROR_NOT_FOUND, "exec: \"%s\": executable file not found in $PATH", name);
}

int command_failed(const struct launch *l, const char *path, int sys, struct error *err)
{
	const char *name = l->args.v[0];

	switch (sys) {
	case ENOENT:
		return error_set(err, ERROR_NOT_FOUND, "exec: \"%s\": no such file or directory (the interpreter of %s is missing)",
			name, path);
	case EACCES:
	case EPERM:
		return error_set(err, ERROR_DENIED, "exec: \"%s\": permission denied", name);
	case ENOEXEC:
		return error_set(err, ERROR_INVALID, "exec: \"%s\": exec format error", name);
	default:
		return error_sys(err, sys, "exec: \"%s\"", name);
	}
}

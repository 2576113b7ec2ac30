/* devices.c - purpose: look up the device nodes that a container asks for. */
#include "runtime-lite/spec/devices.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

enum { DEPTH_MAX = 8 };

struct device_list {
	struct plan_device *v;
	size_t n;
};

void devices_free(struct plan_device *devices, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(devices[i].path);
	free(devices);
}

static void list_done(struct device_list *list)
{
	devices_free(list->v, list->n);
}

static int check_access(const char *access, struct error *err)
{
	if (strlen(access) > 3 || strspn(access, "rwm") != strlen(access))
		return error_set(err, ERROR_INVALID, "permissions \"%.20s\" must be made of r, w and m", access);
	return 0;
}

static int add_node(struct device_list *list, const struct stat *st, const char *path, const char *access,
	struct error *err)
{
	if (list->n >= DEVICES_MAX)
		return error_set(err, ERROR_INVALID, "more than %d devices", DEVICES_MAX);
	list->v = xreallocarray(list->v, list->n + 1, sizeof(*list->v));
	struct plan_device *d = &list->v[list->n++];
	*d = (struct plan_device){
		.path = xstrdup(path),
		.type = S_ISBLK(st->st_mode) ? 'b' : 'c',
		.major = major(st->st_rdev),
		.minor = minor(st->st_rdev),
		.mode = st->st_mode & 0777,
		.uid = st->st_uid,
		.gid = st->st_gid,
	};
	strcpy(d->access, *access ? access : "rwm");
	return 0;
}

/* Things below /dev that are no devices of the machine. */
static bool is_skipped(const char *name)
{
	static const char *const names[] = { ".", "..", "pts", "shm", "fd", "mqueue", ".lxc", ".lxd-mounts", ".udev",
		"console" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_eq(name, names[i]))
			return true;
	return false;
}

static int add_dir(struct device_list *list, const char *host, const char *path, const char *access, int depth,
	struct error *err)
{
	DIR *dir = opendir(host);
	struct dirent *e;
	int r = 0;

	if (!dir)
		return error_sys(err, errno, "%s", host);
	while (r == 0 && (e = readdir(dir))) {
		_cleanup_free_ char *host_path = xasprintf("%s/%s", host, e->d_name);
		_cleanup_free_ char *inner = xasprintf("%s/%s", path, e->d_name);
		struct stat st;

		if (is_skipped(e->d_name) || fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX)
			r = add_dir(list, host_path, inner, access, depth + 1, err);
		else if (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode))
			r = add_node(list, &st, inner, access, err);
	}
	closedir(dir);
	return r;
}

static int add_device(struct device_list *list, const CRI(Device) * d, struct error *err)
{
	const char *path = *d->container_path ? d->container_path : d->host_path;
	struct stat st;
	int r = check_access(d->permissions, err);

	if (r < 0)
		return r;
	if (*d->host_path != '/' || *path != '/')
		return error_set(err, ERROR_INVALID, "host_path \"%.200s\" and container_path must be absolute paths",
			d->host_path);
	if (stat(d->host_path, &st) < 0)
		return error_sys(err, errno, "%s", d->host_path);
	if (S_ISDIR(st.st_mode))
		return add_dir(list, d->host_path, path, d->permissions, 0, err);
	if (!S_ISCHR(st.st_mode) && !S_ISBLK(st.st_mode))
		return error_set(err, ERROR_INVALID, "%s is not a device", d->host_path);
	return add_node(list, &st, path, d->permissions, err);
}

int devices_resolve(const CRI(ContainerConfig) * config, struct plan_device **ret, size_t *ret_n, struct error *err)
{
	_cleanup_(list_done) struct device_list list = { 0 };

	for (size_t i = 0; i < config->n_devices; i++)
		if (add_device(&list, config->devices[i], err) < 0)
			return error_prefix(err, "devices[%zu]", i);
	*ret_n = list.n;
	*ret = steal(list.v);
	list.n = 0;
	return 0;
}

/* pods.c - purpose: the cgroups of QoS classes and pods: made, given their values, removed. */
#include "kubelet-lite/cgroup/pods.h"

#include "common/base/log.h"
#include "common/sys/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#define CGROUP_DIR "/sys/fs/cgroup"
#define CGROUP2_MAGIC 0x63677270

/* v1 hierarchies in which pods get a cgroup, as far as they are mounted. */
static const char *const hierarchies[] = { "cpu", "cpuacct", "cpuset", "memory", "pids", "hugetlb", "devices",
	"freezer", "blkio", "systemd" };

bool pod_cgroups_v2(void)
{
	struct statfs fs;

	return statfs(CGROUP_DIR, &fs) == 0 && fs.f_type == CGROUP2_MAGIC;
}

static bool is_cgroup_dir(const char *dir)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	return access(path, F_OK) == 0;
}

/* cpuset of v1 needs its parents' values before a process can go in. */
static void inherit_cpuset(const char *dir)
{
	static const char *const files[] = { "cpuset.cpus", "cpuset.mems" };

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		_cleanup_free_ char *own = xasprintf("%s/%s", dir, files[i]);
		_cleanup_free_ char *above = xasprintf("%s/../%s", dir, files[i]);
		_cleanup_free_ char *value = NULL, *parent = NULL;

		if (file_read(AT_FDCWD, own, 4096, &value, NULL, NULL) < 0 || (*value && *value != '\n'))
			continue;
		if (file_read(AT_FDCWD, above, 4096, &parent, NULL, NULL) == 0)
			(void)!file_write(AT_FDCWD, own, parent, NULL);
	}
}

/* Hands controllers of a v2 cgroup down; those that are missing or refused are left out. */
static void enable_controllers(const char *dir)
{
	static const char *const wanted[] = { "+cpu", "+memory", "+pids", "+cpuset", "+io", "+hugetlb" };
	_cleanup_free_ char *path = xasprintf("%s/cgroup.subtree_control", dir);

	for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
		(void)!file_write(AT_FDCWD, path, wanted[i], NULL);
}

/* mkdir -p below one hierarchy's root. */
static int make_once(const char *root, const char *path, bool v2, bool cpuset, struct error *err)
{
	_cleanup_(str_done) struct str dir = STR_INIT;

	str_add(&dir, root);
	for (const char *p = path; *p;) {
		size_t n;

		p += strspn(p, "/");
		n = strcspn(p, "/");
		if (!n)
			break;
		if (v2)
			enable_controllers(str_get(&dir));
		str_add_char(&dir, '/');
		str_add_bytes(&dir, p, n);
		if (mkdir(str_get(&dir), 0755) < 0 && errno != EEXIST)
			return error_sys(err, errno, "create cgroup %s", str_get(&dir));
		if (cpuset)
			inherit_cpuset(str_get(&dir));
		p += n;
	}
	return 0;
}

/* Again if a parent was just removed with the last pod before. */
static int make_below(const char *root, const char *path, bool v2, bool cpuset, struct error *err)
{
	int r = -ENOENT;

	for (int tries = 0; r == -ENOENT && tries < 5; tries++)
		r = make_once(root, path, v2, cpuset, err);
	return r;
}

static int make_everywhere(const char *path, struct error *err)
{
	int r = 0, made = 0;

	if (pod_cgroups_v2())
		return make_below(CGROUP_DIR, path, true, false, err);
	for (size_t i = 0; i < ARRAY_LEN(hierarchies); i++) {
		_cleanup_free_ char *root = xasprintf(CGROUP_DIR "/%s", hierarchies[i]);
		int one;

		if (!is_cgroup_dir(root))
			continue;
		one = make_below(root, path, false, str_eq(hierarchies[i], "cpuset"), err);
		made += one == 0;
		r = one < 0 ? one : r;
	}
	return made ? 0 : r;
}

static int write_value(const char *controller, const char *path, const char *file, const char *value, struct error *err)
{
	_cleanup_free_ char *full = xasprintf(CGROUP_DIR "%s%s%s/%s", *controller ? "/" : "", controller, path, file);
	int r;

	if (access(full, F_OK) < 0)
		return 0; /* no such controller here */
	r = file_write(AT_FDCWD, full, value, err);
	return r < 0 ? error_prefix(err, "cgroup value %s", value) : 0;
}

static int write_number(const char *controller, const char *path, const char *file, int64_t value, struct error *err)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld", (long long)value);
	return write_value(controller, path, file, text, err);
}

int pod_cgroup_set_shares(const char *path, int64_t shares, struct error *err)
{
	int r = make_everywhere(path, err);

	if (r < 0)
		return r;
	if (pod_cgroups_v2())
		return write_number("", path, "cpu.weight", cgroup_weight(shares), err);
	return write_number("cpu", path, "cpu.shares", shares, err);
}

static int set_v2(const char *path, const struct cgroup_values *v, struct error *err)
{
	char quota[64] = "max 100000";
	int r;

	if (v->cpu_quota_us)
		snprintf(quota, sizeof(quota), "%lld %d", (long long)v->cpu_quota_us, CPU_PERIOD_US);
	r = write_value("", path, "cpu.max", quota, err);
	if (r == 0 && v->memory_limit)
		r = write_number("", path, "memory.max", v->memory_limit, err);
	return r;
}

static int set_v1(const char *path, const struct cgroup_values *v, struct error *err)
{
	int r = write_number("cpu", path, "cpu.cfs_period_us", CPU_PERIOD_US, err);

	if (r == 0)
		r = write_number("cpu", path, "cpu.cfs_quota_us", v->cpu_quota_us ? v->cpu_quota_us : -1, err);
	if (r == 0 && v->memory_limit)
		r = write_number("memory", path, "memory.limit_in_bytes", v->memory_limit, err);
	return r;
}

int pod_cgroup_set(const char *path, const struct cgroup_values *v, struct error *err)
{
	int r = pod_cgroup_set_shares(path, v->cpu_shares, err);

	if (r < 0)
		return r;
	return pod_cgroups_v2() ? set_v2(path, v, err) : set_v1(path, v, err);
}

/* Depth first; only directories, as cgroups are. */
static int remove_tree(const char *dir, int depth, struct error *err)
{
	DIR *d = depth < 16 ? opendir(dir) : NULL;
	struct dirent *e;
	int r = 0;

	if (d) {
		while ((e = readdir(d)) && r == 0) {
			if (e->d_type != DT_DIR || str_eq(e->d_name, ".") || str_eq(e->d_name, ".."))
				continue;
			_cleanup_free_ char *sub = xasprintf("%s/%s", dir, e->d_name);
			r = remove_tree(sub, depth + 1, err);
		}
		closedir(d);
	}
	if (r < 0)
		return r;
	if (rmdir(dir) < 0 && errno != ENOENT)
		return error_sys(err, errno, "remove cgroup %s", dir);
	return 0;
}

/* Directories of one cgroup, one for each hierarchy. */
static void directories(const char *path, struct strv *ret)
{
	if (pod_cgroups_v2()) {
		strv_add_take(ret, xasprintf(CGROUP_DIR "%s", path));
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(hierarchies); i++)
		strv_add_take(ret, xasprintf(CGROUP_DIR "/%s%s", hierarchies[i], path));
	strv_add_take(ret, xasprintf(CGROUP_DIR "/unified%s", path));
}

int pod_cgroup_remove(const char *path, struct error *err)
{
	_cleanup_(strv_done) struct strv dirs = STRV_INIT;
	int r = 0;

	directories(path, &dirs);
	for (size_t i = 0; i < dirs.n; i++) {
		int one = remove_tree(dirs.v[i], 0, err);

		r = one < 0 ? one : r;
	}
	return r;
}

void pod_cgroups_leave(const char *root, bool systemd)
{
	static const enum qos_class order[] = { QOS_BURSTABLE, QOS_BEST_EFFORT, QOS_GUARANTEED };

	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		_cleanup_free_ char *path = qos_cgroup_path(root, order[i], systemd);
		_cleanup_(strv_done) struct strv dirs = STRV_INIT;

		directories(path, &dirs);
		for (size_t k = 0; k < dirs.n; k++)
			(void)!rmdir(dirs.v[k]);
	}
}

/* cgroup.c - purpose: create, join, kill and remove a cgroup in all hierarchies. */
#include "runtime-lite/engine/cgroup.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "common/sys/file.h"
#include "runtime-lite/engine/cgroup_internal.h"
#include "runtime-lite/spec/launch.h"

enum { FILE_MAX = 1 << 20, TREE_DEPTH_MAX = 64, REMOVE_TRIES = 12 };

enum cgroup_mode cgroup_mode(void)
{
	return cgroup_system.mode;
}

const char *cgroup_mode_name(void)
{
	static const char *const names[] = { "v1", "hybrid", "v2" };

	return names[cgroup_system.mode];
}

const struct cgroup_hierarchy *cgroup_find(const char *controller)
{
	for (size_t i = 0; i < cgroup_system.n; i++)
		if (strv_has(&cgroup_system.h[i].controllers, controller))
			return &cgroup_system.h[i];
	return NULL;
}

bool cgroup_has(const char *controller)
{
	return cgroup_find(controller) != NULL;
}

char *cgroup_dir(const struct cgroup_hierarchy *h, const char *path)
{
	return xasprintf("%s%s", h->mount, path);
}

int cgroup_need(const char *controller, const char *path, const char *limit, char **ret, struct error *err)
{
	const struct cgroup_hierarchy *h = cgroup_find(controller);

	if (!h)
		return error_set(err, ERROR_PRECONDITION, "%s: this node has no cgroup controller \"%s\" (%s)", limit,
			controller, cgroup_mode_name());
	_cleanup_free_ char *dir = cgroup_dir(h, path);

	if (h->v2) {
		_cleanup_free_ char *file = xasprintf("%s/cgroup.controllers", dir);
		_cleanup_free_ char *text = NULL;
		_cleanup_(strv_done) struct strv on = STRV_INIT;

		if (file_read(AT_FDCWD, file, FILE_MAX, &text, NULL, NULL) == 0) {
			text[strcspn(text, "\n")] = '\0';
			strv_split(&on, text, ' ');
			if (!strv_has(&on, controller))
				return error_set(err, ERROR_PRECONDITION,
					"%s: cgroup controller \"%s\" is not enabled for %s (cgroup.subtree_control of its parents)",
					limit, controller, dir);
		}
	}
	*ret = steal(dir);
	return 0;
}

int cgroup_write(const char *dir, const char *file, const char *value, const char *limit, struct error *err)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", dir, file);
	int r = file_write(AT_FDCWD, path, value, err);

	return r < 0 && limit ? error_prefix(err, "%s", limit) : r;
}

int cgroup_write_number(const char *dir, const char *file, int64_t value, const char *limit, struct error *err)
{
	char text[24];

	snprintf(text, sizeof(text), "%lld", (long long)value);
	return cgroup_write(dir, file, text, limit, err);
}

bool cgroup_file_exists(const char *dir, const char *file)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", dir, file);

	return access(path, F_OK) == 0;
}

static char *read_file(const char *dir, const char *file)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", dir, file);
	char *text = NULL;

	return file_read(AT_FDCWD, path, FILE_MAX, &text, NULL, NULL) < 0 ? NULL : text;
}

bool cgroup_read_number(const char *dir, const char *file, uint64_t *ret)
{
	_cleanup_free_ char *text = read_file(dir, file);

	if (!text)
		return false;
	if (str_starts(text, "max")) {
		*ret = UINT64_MAX;
		return true;
	}
	if (!isdigit((unsigned char)text[0]))
		return false;
	*ret = strtoull(text, NULL, 10);
	return true;
}

bool cgroup_read_key(const char *dir, const char *file, const char *key, uint64_t *ret)
{
	_cleanup_free_ char *text = read_file(dir, file);
	size_t n = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, n) == 0 && line[n] == ' ') {
			*ret = strtoull(line + n + 1, NULL, 10);
			return true;
		}
	}
	return false;
}

int cgroup_path_join(const char *parent, const char *leaf, char **ret, struct error *err)
{
	_cleanup_(strv_done) struct strv parts = STRV_INIT;
	_cleanup_(str_done) struct str path = STR_INIT;

	strv_split(&parts, parent ? parent : "", '/');
	if (leaf)
		strv_add(&parts, leaf);
	for (size_t i = 0; i < parts.n; i++) {
		const char *p = parts.v[i];

		if (*p == '\0' || str_eq(p, "."))
			continue;
		if (str_eq(p, "..") || strlen(p) > 255 || strchr(p, '\n') || strchr(p, '/'))
			return error_set(err, ERROR_INVALID, "cgroup path \"%s\": \"%s\" is not allowed in it", parent, p);
		str_addf(&path, "/%s", p);
	}
	if (path.len == 0)
		return error_set(err, ERROR_INVALID, "cgroup path \"%s\": is empty", parent ? parent : "");
	if (str_ends(str_get(&path), ".slice") && parent && parent[0] != '/')
		return error_set(err, ERROR_INVALID,
			"cgroup parent \"%s\": is a systemd slice; the cgroupfs driver takes paths like /kubepods", parent);
	*ret = str_take(&path);
	return 0;
}

int cgroup_create(const char *path, struct error *err)
{
	for (size_t i = 0; i < cgroup_system.n; i++) {
		const struct cgroup_hierarchy *h = &cgroup_system.h[i];
		int r = h->v2 ? cgroup_v2_create(h, path, err) : cgroup_v1_create(h, path, err);

		if (r < 0)
			return error_prefix(err, "create cgroup %s", path);
	}
	return 0;
}

static const struct cgroup_hierarchy *track_hierarchy(void)
{
	if (cgroup_system.unified)
		return cgroup_system.unified;
	const struct cgroup_hierarchy *freezer = cgroup_find("freezer");

	return freezer ? freezer : &cgroup_system.h[0];
}

bool cgroup_exists(const char *path)
{
	if (cgroup_system.n == 0)
		return false;
	_cleanup_free_ char *dir = cgroup_dir(track_hierarchy(), path);

	return access(dir, F_OK) == 0;
}

int cgroup_apply(const char *path, const struct cgroup_limits *limits, struct error *err)
{
	int r = cgroup_limits_check(limits, err);

	if (r < 0)
		return r;
	r = cgroup_system.mode == CGROUP_V2 ? cgroup_v2_apply(path, limits, err) : cgroup_v1_apply(path, limits, err);
	return r < 0 ? r : cgroup_apply_hugetlb(path, limits, err);
}

/* The file names are alike in v1 and v2 but for the last word. A limit of 0 on a node without the controller is what
 * the kubelet sends for every page size: nothing can be had there anyway. */
int cgroup_apply_hugetlb(const char *path, const struct cgroup_limits *l, struct error *err)
{
	for (size_t i = 0; i < l->n_hugetlb; i++) {
		const struct cgroup_hugetlb *p = &l->hugetlb[i];
		_cleanup_free_ char *limit = xasprintf("hugepages %s limit %llu", p->page_size, (unsigned long long)p->limit_bytes);
		_cleanup_free_ char *dir = NULL;

		if (p->limit_bytes == 0 && !cgroup_has("hugetlb"))
			continue;
		int r = cgroup_need("hugetlb", path, limit, &dir, err);
		if (r < 0)
			return r;
		const char *word = cgroup_find("hugetlb")->v2 ? "max" : "limit_in_bytes";
		_cleanup_free_ char *file = xasprintf("hugetlb.%s.%s", p->page_size, word);
		_cleanup_free_ char *reserved = xasprintf("hugetlb.%s.rsvd.%s", p->page_size, word);

		r = cgroup_write_number(dir, file, (int64_t)p->limit_bytes, limit, err);
		if (r == 0 && cgroup_file_exists(dir, reserved))
			r = cgroup_write_number(dir, reserved, (int64_t)p->limit_bytes, limit, err);
		if (r < 0)
			return r;
	}
	return 0;
}

const struct cgroup_device_rule cgroup_default_devices[] = {
	{ 'c', -1, -1, "m" }, { 'b', -1, -1, "m" },			/* mknod is harmless without open */
	{ 'c', 1, 3, "rwm" }, { 'c', 1, 5, "rwm" }, { 'c', 1, 7, "rwm" }, /* null zero full */
	{ 'c', 1, 8, "rwm" }, { 'c', 1, 9, "rwm" },			/* random urandom */
	{ 'c', 5, 0, "rwm" }, { 'c', 5, 1, "rwm" }, { 'c', 5, 2, "rwm" }, /* tty console ptmx */
	{ 'c', 136, -1, "rwm" },					/* pts */
};
const size_t cgroup_n_default_devices = ARRAY_LEN(cgroup_default_devices);

int cgroup_apply_devices(const char *path, const struct launch *launch, struct error *err)
{
	if (launch->all_devices)
		return 0;
	if (cgroup_has("devices"))
		return cgroup_v1_devices(path, launch, err);
	if (!cgroup_system.unified)
		return error_set(err, ERROR_PRECONDITION,
			"device rules: this node has no cgroup controller \"devices\" and no cgroup v2");
	_cleanup_free_ char *dir = cgroup_dir(cgroup_system.unified, path);

	return cgroup_v2_devices(dir, launch, err);
}

void cgroup_dirs(const char *path, struct strv *ret)
{
	for (size_t i = 0; i < cgroup_system.n; i++)
		strv_add_take(ret, cgroup_dir(&cgroup_system.h[i], path));
}

void cgroup_fill_launch(struct launch *launch)
{
	const struct cgroup_hierarchy *memory = cgroup_find("memory");

	strv_done(&launch->cgroup_dirs);
	strv_done(&launch->cgroup_names);
	free(launch->cgroup_unified);
	free(launch->cgroup_track);
	free(launch->oom_file);
	launch->cgroup_unified = launch->oom_file = NULL;
	for (size_t i = 0; i < cgroup_system.n; i++) {
		const struct cgroup_hierarchy *h = &cgroup_system.h[i];

		if (h->v2)
			continue;
		strv_add_take(&launch->cgroup_dirs, cgroup_dir(h, launch->cgroup));
		strv_add(&launch->cgroup_names, strrchr(h->mount, '/') + 1);
	}
	if (cgroup_system.unified)
		launch->cgroup_unified = cgroup_dir(cgroup_system.unified, launch->cgroup);
	launch->cgroup_track = cgroup_dir(track_hierarchy(), launch->cgroup);
	if (memory)
		launch->oom_file = xasprintf("%s%s/%s", memory->mount, launch->cgroup,
			memory->v2 ? "memory.events" : "memory.oom_control");
}

static void sleep_ms(unsigned ms)
{
	struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };

	nanosleep(&t, NULL);
}

struct pids {
	pid_t *v;
	size_t n;
};

static void read_procs(const char *dir, struct pids *ret)
{
	_cleanup_free_ char *text = read_file(dir, "cgroup.procs");

	for (char *p = text; p && *p;) {
		char *end;
		long pid = strtol(p, &end, 10);

		if (end == p)
			break;
		ret->v = xreallocarray(ret->v, ret->n + 1, sizeof(*ret->v));
		ret->v[ret->n++] = (pid_t)pid;
		p = *end ? end + 1 : end;
	}
}

/* Calls f for the directory and all below it, children first. */
static void walk(const char *dir, unsigned depth, void (*f)(const char *dir, void *arg), void *arg)
{
	DIR *d = depth < TREE_DEPTH_MAX ? opendir(dir) : NULL;
	struct dirent *e;

	while (d && (e = readdir(d))) {
		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		_cleanup_free_ char *child = xasprintf("%s/%s", dir, e->d_name);

		walk(child, depth + 1, f, arg);
	}
	if (d)
		closedir(d);
	f(dir, arg);
}

static void add_pids(const char *dir, void *arg)
{
	read_procs(dir, arg);
}

int cgroup_pids(const char *path, pid_t **ret, size_t *ret_n, struct error *err)
{
	struct pids pids = { 0 };

	if (!cgroup_exists(path))
		return error_set(err, ERROR_NOT_FOUND, "cgroup %s: does not exist", path);
	_cleanup_free_ char *dir = cgroup_dir(track_hierarchy(), path);

	walk(dir, 0, add_pids, &pids);
	*ret = pids.v;
	*ret_n = pids.n;
	return 0;
}

static void kill_dir(const char *dir, void *arg)
{
	struct pids pids = { 0 };
	bool *any = arg;

	read_procs(dir, &pids);
	for (size_t i = 0; i < pids.n; i++)
		if (pids.v[i] > 0) {
			kill(pids.v[i], SIGKILL);
			*any = true;
		}
	free(pids.v);
}

static void move_dir(const char *dir, void *arg)
{
	struct pids pids = { 0 };
	const char *to = arg;

	read_procs(dir, &pids);
	for (size_t i = 0; i < pids.n; i++) {
		char pid[16];

		if (pids.v[i] <= 0)
			continue;
		snprintf(pid, sizeof(pid), "%d", (int)pids.v[i]);
		(void)!cgroup_write(to, "cgroup.procs", pid, NULL, NULL);
	}
	free(pids.v);
}

/* A v1 freezer holds signals back, so it is thawed. Where a cgroup above is frozen, the others in there are left alone: the
 * killed ones move out, which thaws them. */
static void let_die(const struct cgroup_hierarchy *freezer, const char *path)
{
	_cleanup_free_ char *dir = cgroup_dir(freezer, path);
	_cleanup_free_ char *root = cgroup_dir(freezer, "/");

	if (!cgroup_file_exists(dir, "freezer.state"))
		return;
	(void)!cgroup_write(dir, "freezer.state", "THAWED", NULL, NULL);
	_cleanup_free_ char *above = read_file(dir, "freezer.parent_freezing");

	if (above && *above == '1')
		walk(dir, 0, move_dir, root);
}

/* One round over every hierarchy, because a process may sit in the v1 ones alone. True when somebody is left. Freezing
 * first would only matter to fork bombs, which the rounds and cgroup.kill catch. */
static bool kill_round(const char *path)
{
	bool any = false;
	const struct cgroup_hierarchy *freezer = cgroup_find("freezer");

	if (cgroup_system.unified) {
		_cleanup_free_ char *dir = cgroup_dir(cgroup_system.unified, path);

		if (access(dir, F_OK) == 0)
			(void)!cgroup_write(dir, "cgroup.kill", "1", NULL, NULL);
	}
	for (size_t i = 0; i < cgroup_system.n; i++) {
		_cleanup_free_ char *dir = cgroup_dir(&cgroup_system.h[i], path);

		if (access(dir, F_OK) == 0)
			walk(dir, 0, kill_dir, &any);
	}
	if (freezer)
		let_die(freezer, path);
	return any;
}

int cgroup_kill(const char *path, unsigned timeout_ms, struct error *err)
{
	uint64_t deadline = clock_monotonic_ns() + (uint64_t)timeout_ms * 1000000;
	unsigned wait = 1;

	while (kill_round(path)) {
		if (timeout_ms == 0)
			return 0;
		if (clock_monotonic_ns() > deadline)
			return error_set(err, ERROR_DEADLINE, "kill cgroup %s: processes are left after %u ms", path, timeout_ms);
		sleep_ms(wait);
		wait = MIN(wait * 2, 50u);
	}
	return 0;
}

static void remove_dir(const char *dir, void *arg)
{
	int *r = arg;

	if (rmdir(dir) < 0 && errno != ENOENT)
		*r = -errno;
}

int cgroup_remove(const char *path, struct error *err)
{
	unsigned wait = 1;
	int r = 0;

	for (unsigned try = 0; try < REMOVE_TRIES; try++) {
		r = 0;
		for (size_t i = 0; i < cgroup_system.n; i++) {
			_cleanup_free_ char *dir = cgroup_dir(&cgroup_system.h[i], path);

			if (access(dir, F_OK) == 0)
				walk(dir, 0, remove_dir, &r);
		}
		if (r == 0)
			return 0;
		kill_round(path);
		sleep_ms(wait);
		wait = MIN(wait * 2, 400u);
	}
	return error_sys(err, r, "remove cgroup %s", path);
}

int cgroup_stats(const char *path, struct cgroup_stats *ret, struct error *err)
{
	struct cgroup_stats s = { .memory_limit_bytes = UINT64_MAX };

	if (!cgroup_exists(path))
		return error_set(err, ERROR_NOT_FOUND, "cgroup %s: does not exist", path);
	if (cgroup_system.mode == CGROUP_V2)
		cgroup_v2_stats(path, &s);
	else
		cgroup_v1_stats(path, &s);
	s.timestamp_ns = clock_realtime_ns();
	(void)!cgroup_oom_count(path, &s.oom_kills, NULL);
	*ret = s;
	return 0;
}

int cgroup_oom_count(const char *path, uint64_t *ret, struct error *err)
{
	const struct cgroup_hierarchy *memory = cgroup_find("memory");
	_cleanup_free_ char *dir = NULL;

	if (!memory)
		return error_set(err, ERROR_PRECONDITION, "count OOM kills: this node has no cgroup controller \"memory\"");
	dir = cgroup_dir(memory, path);
	if (!cgroup_read_key(dir, memory->v2 ? "memory.events" : "memory.oom_control", "oom_kill", ret))
		return error_set(err, ERROR_NOT_FOUND, "count OOM kills of cgroup %s: does not exist", path);
	return 0;
}

bool cgroup_frozen(const char *path)
{
	const struct cgroup_hierarchy *freezer = cgroup_find("freezer");
	uint64_t frozen = 0;

	if (freezer) {
		_cleanup_free_ char *dir = cgroup_dir(freezer, path);
		_cleanup_free_ char *state = read_file(dir, "freezer.state");

		if (state && !str_starts(state, "THAWED"))
			return true;
	}
	if (cgroup_system.unified) {
		_cleanup_free_ char *dir = cgroup_dir(cgroup_system.unified, path);

		return cgroup_read_key(dir, "cgroup.events", "frozen", &frozen) && frozen;
	}
	return false;
}

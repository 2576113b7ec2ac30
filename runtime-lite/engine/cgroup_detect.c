/* cgroup_detect.c - purpose: find the hierarchies that are mounted, and what they control. */
#include <ctype.h>
#include <fcntl.h>

#include "common/sys/file.h"
#include "runtime-lite/engine/cgroup_internal.h"

enum { MOUNTINFO_MAX = 8 << 20, CONTROLLERS_MAX = 65536 };

struct cgroup_system cgroup_system;

static void system_clear(void)
{
	for (size_t i = 0; i < cgroup_system.n; i++) {
		free(cgroup_system.h[i].mount);
		strv_done(&cgroup_system.h[i].controllers);
	}
	memset(&cgroup_system, 0, sizeof(cgroup_system));
}

/* mountinfo writes blanks and backslashes as \ooo. */
static char *unescape(const char *s)
{
	char *out = xstrdup(s), *to = out;

	for (const char *p = s; *p; to++) {
		if (p[0] == '\\' && p[1] >= '0' && p[1] <= '3' && isdigit((unsigned char)p[2]) && isdigit((unsigned char)p[3])) {
			*to = (char)((p[1] - '0') << 6 | (p[2] - '0') << 3 | (p[3] - '0'));
			p += 4;
		} else {
			*to = *p++;
		}
	}
	*to = '\0';
	return out;
}

static bool is_controller(const char *option)
{
	static const char *const others[] = { "rw", "ro", "xattr", "noprefix", "clone_children", "cpuset_v2_mode", "none",
		"seclabel", "nsdelegate", "memory_recursiveprot", "memory_localevents", "favordynmods", "nofavordynmods" };

	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (str_eq(option, others[i]))
			return false;
	return !str_starts(option, "release_agent=");
}

static bool known(const struct strv *controllers, bool v2)
{
	for (size_t i = 0; i < cgroup_system.n; i++) {
		struct cgroup_hierarchy *h = &cgroup_system.h[i];

		if (v2 && h->v2)
			return true;
		if (!v2 && !h->v2 && controllers->n && strv_has(&h->controllers, controllers->v[0]))
			return true;
	}
	return false;
}

/* A hierarchy may be mounted several times; the first one below /sys/fs/cgroup counts, others only if there is none. */
static void take_mount(const char *mount, const char *options, bool v2, bool *read_only)
{
	_cleanup_(strv_done) struct strv all = STRV_INIT;
	struct strv controllers = STRV_INIT;

	if (!v2) {
		strv_split(&all, options, ',');
		for (size_t i = 0; i < all.n; i++)
			if (is_controller(all.v[i]))
				strv_add(&controllers, all.v[i]);
	}
	if (known(&controllers, v2) || cgroup_system.n == CGROUP_HIERARCHIES_MAX || *read_only) {
		strv_done(&controllers);
		return;
	}
	cgroup_system.h[cgroup_system.n++] = (struct cgroup_hierarchy){ unescape(mount), controllers, v2 };
}

static void parse_line(const char *line, bool below_sys, bool *read_only)
{
	_cleanup_(strv_done) struct strv f = STRV_INIT;
	size_t dash = 6;

	strv_split(&f, line, ' ');
	while (dash < f.n && !str_eq(f.v[dash], "-"))
		dash++;
	if (f.n < dash + 4)
		return;
	const char *type = f.v[dash + 1];
	bool v2 = str_eq(type, "cgroup2");

	if ((!v2 && !str_eq(type, "cgroup")) || str_starts(f.v[4], "/sys/fs/cgroup") != below_sys)
		return;
	bool ro = str_eq(f.v[5], "ro") || str_starts(f.v[5], "ro,");

	take_mount(f.v[4], f.v[dash + 3], v2, &ro);
	*read_only = *read_only || ro;
}

static void unified_controllers(struct cgroup_hierarchy *h)
{
	_cleanup_free_ char *path = xasprintf("%s/cgroup.controllers", h->mount);
	_cleanup_free_ char *text = NULL;

	if (file_read(AT_FDCWD, path, CONTROLLERS_MAX, &text, NULL, NULL) < 0)
		return;
	text[strcspn(text, "\n")] = '\0';
	strv_split(&h->controllers, text, ' ');
}

int cgroup_detect_from(const char *mountinfo, struct error *err)
{
	_cleanup_(strv_done) struct strv lines = STRV_INIT;
	bool read_only = false, v1 = false;

	system_clear();
	strv_split(&lines, mountinfo, '\n');
	for (size_t i = 0; i < lines.n; i++)
		parse_line(lines.v[i], true, &read_only);
	for (size_t i = 0; i < lines.n && cgroup_system.n == 0; i++)
		parse_line(lines.v[i], false, &read_only);
	for (size_t i = 0; i < cgroup_system.n; i++) {
		if (cgroup_system.h[i].v2) {
			unified_controllers(&cgroup_system.h[i]);
			cgroup_system.unified = &cgroup_system.h[i];
		} else {
			v1 = true;
		}
	}
	if (cgroup_system.n == 0)
		return error_set(err, ERROR_PRECONDITION, read_only ?
			"cgroups: the file system is mounted read-only; containers need it writable" :
			"cgroups: no cgroup file system is mounted at /sys/fs/cgroup");
	cgroup_system.mode = !v1 ? CGROUP_V2 : cgroup_system.unified ? CGROUP_HYBRID : CGROUP_V1;
	return 0;
}

int cgroup_detect(struct error *err)
{
	_cleanup_free_ char *text = NULL;
	int r = file_read(AT_FDCWD, "/proc/self/mountinfo", MOUNTINFO_MAX, &text, NULL, err);

	return r < 0 ? r : cgroup_detect_from(text, err);
}

/* launch.c - purpose: build, check, free, write and copy launches. */
#include "runtime-lite/spec/launch.h"

#include <errno.h>

#include "runtime-lite/spec/launch_codec.h"

enum { LAYERS_MAX = 500 }; /* the kernel's OVL_MAX_STACK */

struct launch *launch_new(void)
{
	struct launch *l = xnew(struct launch);

	l->umask = 0022;
	l->pid = LAUNCH_NS_OWN;
	return l;
}

static void mount_done(struct launch_mount *m)
{
	free(m->source);
	free(m->target);
	free(m->type);
	free(m->options);
}

struct launch *launch_free(struct launch *l)
{
	if (!l)
		return NULL;
	free(l->id);
	free(l->sandbox_id);
	free(l->dir);
	strv_done(&l->args);
	strv_done(&l->env);
	free(l->cwd);
	free(l->groups);
	free(l->seccomp);
	free(l->apparmor);
	free(l->rlimits);
	strv_done(&l->rootfs.lower);
	free(l->rootfs.upper);
	free(l->rootfs.work);
	free(l->rootfs.merged);
	for (size_t i = 0; i < l->n_mounts; i++)
		mount_done(&l->mounts[i]);
	free(l->mounts);
	for (size_t i = 0; i < l->n_devices; i++)
		free(l->devices[i].path);
	free(l->devices);
	strv_done(&l->masked_paths);
	strv_done(&l->readonly_paths);
	free(l->pid_target);
	free(l->log_path);
	free(l->cgroup);
	cgroup_limits_done(&l->limits);
	strv_done(&l->cgroup_dirs);
	strv_done(&l->cgroup_names);
	free(l->cgroup_unified);
	free(l->cgroup_track);
	free(l->oom_file);
	free(l);
	return NULL;
}

struct sandbox_launch *sandbox_launch_new(void)
{
	return xnew(struct sandbox_launch);
}

struct sandbox_launch *sandbox_launch_free(struct sandbox_launch *s)
{
	if (!s)
		return NULL;
	free(s->id);
	free(s->dir);
	free(s->hostname);
	for (size_t i = 0; i < s->n_sysctls; i++) {
		free(s->sysctls[i].name);
		free(s->sysctls[i].value);
	}
	free(s->sysctls);
	free(s->cgroup);
	cgroup_limits_done(&s->limits);
	free(s->monitors_cgroup);
	strv_done(&s->monitor_dirs);
	free(s);
	return NULL;
}

struct launch_mount *launch_add_mount(struct launch *l, const char *source, const char *target)
{
	l->mounts = xreallocarray(l->mounts, l->n_mounts + 1, sizeof(*l->mounts));
	struct launch_mount *m = &l->mounts[l->n_mounts++];

	*m = (struct launch_mount){ .source = xstrdup(source), .target = xstrdup(target), .type = xstrdup("bind"), .recursive = true };
	return m;
}

struct launch_device *launch_add_device(struct launch *l, const char *path)
{
	l->devices = xreallocarray(l->devices, l->n_devices + 1, sizeof(*l->devices));
	struct launch_device *d = &l->devices[l->n_devices++];

	*d = (struct launch_device){ .path = xstrdup(path) };
	return d;
}

void launch_add_rlimit(struct launch *l, int resource, uint64_t soft, uint64_t hard)
{
	l->rlimits = xreallocarray(l->rlimits, l->n_rlimits + 1, sizeof(*l->rlimits));
	l->rlimits[l->n_rlimits++] = (struct launch_rlimit){ resource, soft, hard };
}

void launch_add_group(struct launch *l, gid_t gid)
{
	for (size_t i = 0; i < l->n_groups; i++)
		if (l->groups[i] == gid)
			return;
	l->groups = xreallocarray(l->groups, l->n_groups + 1, sizeof(*l->groups));
	l->groups[l->n_groups++] = gid;
}

void sandbox_launch_add_sysctl(struct sandbox_launch *s, const char *name, const char *value)
{
	s->sysctls = xreallocarray(s->sysctls, s->n_sysctls + 1, sizeof(*s->sysctls));
	s->sysctls[s->n_sysctls++] = (struct launch_sysctl){ xstrdup(name), xstrdup(value) };
}

bool launch_id_valid(const char *id)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
	size_t n = id ? strlen(id) : 0;

	return n > 0 && n <= LAUNCH_ID_MAX && strspn(id, allowed) == n && id[0] != '.';
}

static int check_absolute(const char *what, const char *path, struct error *err)
{
	if (path && path[0] == '/')
		return 0;
	return error_set(err, ERROR_INVALID, "%s \"%s\": must be an absolute path", what, path ? path : "");
}

static int check_mount(const struct launch_mount *m, struct error *err)
{
	int r = check_absolute("mount target", m->target, err);

	if (r == 0 && str_eq(m->type, "bind"))
		r = check_absolute("mount source", m->source, err);
	if (r < 0)
		return r;
	if (str_empty(m->type))
		return error_set(err, ERROR_INVALID, "mount %s: has no type", m->target);
	if (m->recursive_readonly && (!m->readonly || m->propagation != LAUNCH_PRIVATE))
		return error_set(err, ERROR_INVALID,
			"mount %s: recursive read-only needs read-only and private propagation", m->target);
	if ((unsigned)m->propagation > LAUNCH_SHARED)
		return error_set(err, ERROR_INVALID, "mount %s: unknown propagation %d", m->target, (int)m->propagation);
	return 0;
}

static int check_rootfs(const struct launch *l, struct error *err)
{
	int r = check_absolute("mount point of the root file system", l->rootfs.merged, err);

	if (r < 0)
		return r;
	if (l->rootfs.lower.n == 0)
		return error_set(err, ERROR_INVALID, "the root file system has no layers");
	if (l->rootfs.lower.n > LAYERS_MAX)
		return error_set(err, ERROR_INVALID, "the root file system has %zu layers, the kernel's overlayfs takes at most %d",
			l->rootfs.lower.n, LAYERS_MAX);
	if (!l->rootfs.upper != !l->rootfs.work)
		return error_set(err, ERROR_INVALID, "the root file system needs both an upper and a work directory, or none");
	return 0;
}

int launch_check(const struct launch *l, struct error *err)
{
	if (!launch_id_valid(l->id))
		return error_set(err, ERROR_INVALID, "container id \"%s\": must be 1 to %d of [a-zA-Z0-9_.-]",
			l->id ? l->id : "", LAUNCH_ID_MAX);
	if (l->args.n == 0 || str_empty(l->args.v[0]))
		return error_set(err, ERROR_INVALID, "no command specified");
	if (!str_empty(l->cwd) && l->cwd[0] != '/')
		return error_set(err, ERROR_INVALID, "working directory \"%s\": must be an absolute path", l->cwd);
	if (l->pid == LAUNCH_NS_TARGET && !launch_id_valid(l->pid_target))
		return error_set(err, ERROR_INVALID, "target container of the PID namespace: not a container id");
	if (l->uid > INT32_MAX || l->gid > INT32_MAX)
		return error_set(err, ERROR_INVALID, "user %u:%u: ids above 2147483647 are not allowed", l->uid, l->gid);
	if (l->n_seccomp > BPF_MAXINSNS)
		return error_set(err, ERROR_INVALID, "seccomp filter: %zu instructions, at most %d are allowed", l->n_seccomp, BPF_MAXINSNS);
	int r = check_rootfs(l, err);

	for (size_t i = 0; i < l->n_mounts && r == 0; i++)
		r = check_mount(&l->mounts[i], err);
	for (size_t i = 0; i < l->n_devices && r == 0; i++)
		r = check_absolute("device", l->devices[i].path, err);
	for (size_t i = 0; i < l->masked_paths.n && r == 0; i++)
		r = check_absolute("masked path", l->masked_paths.v[i], err);
	for (size_t i = 0; i < l->readonly_paths.n && r == 0; i++)
		r = check_absolute("read-only path", l->readonly_paths.v[i], err);
	return r < 0 ? r : cgroup_limits_check(&l->limits, err);
}

/* Only sysctls that live in a namespace of the pod; everything else would change the node. */
static int check_sysctl(const struct sandbox_launch *s, const char *name, const char *value, struct error *err)
{
	static const char *const ipc[] = { "kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.", "kernel/shm", "kernel/msg",
		"kernel/sem", "fs/mqueue/" };
	bool net_name = str_starts(name, "net.") || str_starts(name, "net/");
	bool ipc_name = false;

	if (str_empty(name) || str_empty(value) || strstr(name, "..") || strstr(name, "//") || strstr(name, "./") || strchr(value, '\n'))
		return error_set(err, ERROR_INVALID, "sysctl \"%s\": malformed", name ? name : "");
	for (size_t i = 0; i < ARRAY_LEN(ipc); i++)
		ipc_name = ipc_name || str_starts(name, ipc[i]);
	if (!net_name && !ipc_name)
		return error_set(err, ERROR_INVALID, "sysctl \"%s\": is not namespaced, it would change the whole node", name);
	if (net_name && s->net != LAUNCH_NS_POD)
		return error_set(err, ERROR_INVALID, "sysctl \"%s\": not allowed with the node's network", name);
	if (ipc_name && s->ipc != LAUNCH_NS_POD)
		return error_set(err, ERROR_INVALID, "sysctl \"%s\": not allowed with the node's IPC namespace", name);
	return 0;
}

int sandbox_launch_check(const struct sandbox_launch *s, struct error *err)
{
	if (!launch_id_valid(s->id))
		return error_set(err, ERROR_INVALID, "sandbox id \"%s\": must be 1 to %d of [a-zA-Z0-9_.-]", s->id ? s->id : "",
			LAUNCH_ID_MAX);
	int r = check_absolute("sandbox directory", s->dir, err);

	if (r == 0)
		r = check_absolute("cgroup of the pod", s->cgroup, err);
	if (r == 0)
		r = check_absolute("cgroup of the monitors", s->monitors_cgroup, err);
	if (r < 0)
		return r;
	if (s->hostname && strlen(s->hostname) > 64)
		return error_set(err, ERROR_INVALID, "hostname \"%s\": longer than 64 characters", s->hostname);
	for (size_t i = 0; i < s->n_sysctls && r == 0; i++)
		r = check_sysctl(s, s->sysctls[i].name, s->sysctls[i].value, err);
	return r < 0 ? r : cgroup_limits_check(&s->limits, err);
}

static bool write_raw(struct codec *c, void *p, size_t n)
{
	str_add_bytes(c->out, p, n);
	return true;
}

static bool write_text(struct codec *c, char **s, size_t n)
{
	str_add_bytes(c->out, *s, n);
	return true;
}

/* Writing changes nothing in the launch, though the walker that it shares with reading cannot say so. */
void launch_encode(const struct launch *l, struct str *ret)
{
	struct codec c = { .raw = write_raw, .text = write_text, .out = ret };

	codec_launch(&c, (struct launch *)l);
}

void sandbox_launch_encode(const struct sandbox_launch *s, struct str *ret)
{
	struct codec c = { .raw = write_raw, .text = write_text, .out = ret };

	codec_sandbox(&c, (struct sandbox_launch *)s);
}

static bool own_raw(struct codec *c, void *p, size_t n)
{
	if (n > c->in_len)
		return false;
	memcpy(p, c->in, n);
	c->in += n;
	c->in_len -= n;
	return true;
}

static bool own_text(struct codec *c, char **s, size_t n)
{
	if (n > c->in_len || c->in[n - 1] != '\0' || strlen(c->in) != n - 1)
		return false;
	*s = xstrdup(c->in);
	c->in += n;
	c->in_len -= n;
	return true;
}

static bool own_array(struct codec *c, void **p, size_t n, size_t size)
{
	(void)c;
	*p = xcalloc(n, size);
	return true;
}

static struct codec owner(const void *data, size_t len)
{
	return (struct codec){ .raw = own_raw, .text = own_text, .array = own_array, .reading = true, .in = data, .in_len = len };
}

int launch_parse(const void *data, size_t len, struct launch **ret, struct error *err)
{
	_cleanup_(launch_free_p) struct launch *l = launch_new();
	struct codec c = owner(data, len);

	codec_launch(&c, l);
	if (c.failed || c.in_len)
		return error_set(err, ERROR_DATA_LOSS, "launch plan: damaged, or of another version");
	*ret = steal(l);
	return 0;
}

int sandbox_launch_parse(const void *data, size_t len, struct sandbox_launch **ret, struct error *err)
{
	_cleanup_(sandbox_launch_free_p) struct sandbox_launch *s = sandbox_launch_new();
	struct codec c = owner(data, len);

	codec_sandbox(&c, s);
	if (c.failed || c.in_len)
		return error_set(err, ERROR_DATA_LOSS, "sandbox plan: damaged, or of another version");
	*ret = steal(s);
	return 0;
}

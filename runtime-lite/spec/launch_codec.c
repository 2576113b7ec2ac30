/* launch_codec.c - purpose: the fields of a launch in their order, and reading them without malloc. */
#include "runtime-lite/spec/launch_codec.h"

#include <errno.h>

static void raw(struct codec *c, void *p, size_t n)
{
	if (!c->failed && n && !c->raw(c, p, n))
		c->failed = true;
}

static uint64_t number(struct codec *c, uint64_t v)
{
	raw(c, &v, sizeof(v));
	return c->failed ? 0 : v;
}
#define NUMBER(c, field) ((field) = (__typeof__(field))number(c, (uint64_t)(field)))

static void text(struct codec *c, char **s)
{
	uint64_t n = number(c, !c->reading && *s ? strlen(*s) + 1 : 0);

	if (c->failed)
		return;
	if (n == 0)
		*s = NULL;
	else if (!c->text(c, s, n))
		c->failed = true;
}

/* Returns the count; when reading there is room for it. */
static size_t array(struct codec *c, void **p, size_t n, size_t size)
{
	n = number(c, n);
	if (c->failed)
		return 0;
	if (c->reading) {
		*p = NULL;
		/* Every element takes at least one byte, so a count beyond the rest is damage. */
		if (n > c->in_len || (n && !c->array(c, p, n, size))) {
			c->failed = true;
			return 0;
		}
	}
	return n;
}
#define ARRAY(c, p, count)                                                                                             \
	({                                                                                                             \
		void *array_ = (p);                                                                                    \
		(count) = array(c, &array_, count, sizeof(*(p)));                                                      \
		(p) = array_;                                                                                          \
	})

static void strings(struct codec *c, struct strv *l)
{
	size_t n = number(c, l->n);

	if (c->failed)
		return;
	if (c->reading) {
		void *p = NULL;

		l->v = NULL;
		l->n = 0;
		if (n > c->in_len || (n && !c->array(c, &p, n + 1, sizeof(char *)))) {
			c->failed = true;
			return;
		}
		l->v = p;
		l->n = n;
	}
	for (size_t i = 0; i < n; i++)
		text(c, &l->v[i]);
}

static void limits(struct codec *c, struct cgroup_limits *l)
{
	NUMBER(c, l->memory_bytes);
	NUMBER(c, l->memory_swap_bytes);
	NUMBER(c, l->memory_low_bytes);
	NUMBER(c, l->cpu_shares);
	NUMBER(c, l->cpu_quota_us);
	NUMBER(c, l->cpu_period_us);
	NUMBER(c, l->pids_max);
	text(c, &l->cpuset_cpus);
	text(c, &l->cpuset_mems);
	ARRAY(c, l->hugetlb, l->n_hugetlb);
	for (size_t i = 0; i < l->n_hugetlb; i++) {
		text(c, &l->hugetlb[i].page_size);
		NUMBER(c, l->hugetlb[i].limit_bytes);
	}
	ARRAY(c, l->unified, l->n_unified);
	for (size_t i = 0; i < l->n_unified; i++) {
		text(c, &l->unified[i].key);
		text(c, &l->unified[i].value);
	}
}

static void mounts(struct codec *c, struct launch *l)
{
	ARRAY(c, l->mounts, l->n_mounts);
	for (size_t i = 0; i < l->n_mounts; i++) {
		struct launch_mount *m = &l->mounts[i];

		text(c, &m->source);
		text(c, &m->target);
		text(c, &m->type);
		text(c, &m->options);
		NUMBER(c, m->readonly);
		NUMBER(c, m->recursive_readonly);
		NUMBER(c, m->nosuid);
		NUMBER(c, m->nodev);
		NUMBER(c, m->noexec);
		NUMBER(c, m->recursive);
		NUMBER(c, m->create_source);
		NUMBER(c, m->propagation);
	}
}

static void devices(struct codec *c, struct launch *l)
{
	ARRAY(c, l->devices, l->n_devices);
	for (size_t i = 0; i < l->n_devices; i++) {
		struct launch_device *d = &l->devices[i];

		text(c, &d->path);
		NUMBER(c, d->type);
		NUMBER(c, d->major);
		NUMBER(c, d->minor);
		NUMBER(c, d->mode);
		NUMBER(c, d->uid);
		NUMBER(c, d->gid);
		raw(c, d->access, sizeof(d->access));
		d->access[sizeof(d->access) - 1] = '\0';
	}
}

static void credentials(struct codec *c, struct launch *l)
{
	NUMBER(c, l->uid);
	NUMBER(c, l->gid);
	ARRAY(c, l->groups, l->n_groups);
	for (size_t i = 0; i < l->n_groups; i++)
		NUMBER(c, l->groups[i]);
	NUMBER(c, l->umask);
	NUMBER(c, l->caps.bounding);
	NUMBER(c, l->caps.effective);
	NUMBER(c, l->caps.permitted);
	NUMBER(c, l->caps.inheritable);
	NUMBER(c, l->caps.ambient);
	NUMBER(c, l->no_new_privs);
	ARRAY(c, l->seccomp, l->n_seccomp);
	raw(c, l->seccomp, l->n_seccomp * sizeof(*l->seccomp));
	text(c, &l->apparmor);
	ARRAY(c, l->rlimits, l->n_rlimits);
	for (size_t i = 0; i < l->n_rlimits; i++) {
		NUMBER(c, l->rlimits[i].resource);
		NUMBER(c, l->rlimits[i].soft);
		NUMBER(c, l->rlimits[i].hard);
	}
	NUMBER(c, l->has_oom_score_adj);
	NUMBER(c, l->oom_score_adj);
}

static bool header(struct codec *c, uint64_t kind)
{
	uint64_t want = LAUNCH_MAGIC | LAUNCH_VERSION | kind << 8;

	return number(c, want) == want && !c->failed;
}

void codec_launch(struct codec *c, struct launch *l)
{
	if (!header(c, 1)) {
		c->failed = true;
		return;
	}
	text(c, &l->id);
	text(c, &l->sandbox_id);
	text(c, &l->dir);
	strings(c, &l->args);
	strings(c, &l->env);
	text(c, &l->cwd);
	credentials(c, l);
	strings(c, &l->rootfs.lower);
	text(c, &l->rootfs.upper);
	text(c, &l->rootfs.work);
	text(c, &l->rootfs.merged);
	NUMBER(c, l->rootfs.readonly);
	mounts(c, l);
	devices(c, l);
	NUMBER(c, l->all_devices);
	NUMBER(c, l->sys_writable);
	strings(c, &l->masked_paths);
	strings(c, &l->readonly_paths);
	NUMBER(c, l->pid);
	text(c, &l->pid_target);
	NUMBER(c, l->tty);
	NUMBER(c, l->stdin_open);
	NUMBER(c, l->stdin_once);
	text(c, &l->log_path);
	text(c, &l->cgroup);
	limits(c, &l->limits);
	NUMBER(c, l->stop_signal);
	strings(c, &l->cgroup_dirs);
	text(c, &l->cgroup_unified);
	text(c, &l->cgroup_track);
	text(c, &l->oom_file);
	strings(c, &l->cgroup_names);
	NUMBER(c, l->is_exec);
}

void codec_sandbox(struct codec *c, struct sandbox_launch *s)
{
	if (!header(c, 2)) {
		c->failed = true;
		return;
	}
	text(c, &s->id);
	text(c, &s->dir);
	text(c, &s->hostname);
	NUMBER(c, s->net);
	NUMBER(c, s->ipc);
	NUMBER(c, s->shared_pid);
	ARRAY(c, s->sysctls, s->n_sysctls);
	for (size_t i = 0; i < s->n_sysctls; i++) {
		text(c, &s->sysctls[i].name);
		text(c, &s->sysctls[i].value);
	}
	NUMBER(c, s->shm_bytes);
	text(c, &s->cgroup);
	NUMBER(c, s->cgroup_owned);
	limits(c, &s->limits);
	text(c, &s->monitors_cgroup);
	strings(c, &s->monitor_dirs);
}

static bool read_raw(struct codec *c, void *p, size_t n)
{
	if (n > c->in_len)
		return false;
	memcpy(p, c->in, n);
	c->in += n;
	c->in_len -= n;
	return true;
}

static bool read_text(struct codec *c, char **s, size_t n)
{
	if (n > c->in_len || c->in[n - 1] != '\0' || strlen(c->in) != n - 1)
		return false;
	*s = (char *)c->in; /* the launch is read only by its users; see launch_decode() */
	c->in += n;
	c->in_len -= n;
	return true;
}

static bool read_array(struct codec *c, void **p, size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes) || __builtin_add_overflow(bytes, 15, &bytes))
		return false;
	bytes &= ~(size_t)15;
	if (bytes > c->arena_len)
		return false;
	*p = c->arena;
	memset(*p, 0, bytes);
	c->arena += bytes;
	c->arena_len -= bytes;
	return true;
}

static struct codec reader(const void *data, size_t len, void *arena, size_t arena_len)
{
	size_t skip = -(uintptr_t)arena & 15;

	return (struct codec){
		.raw = read_raw,
		.text = read_text,
		.array = read_array,
		.reading = true,
		.in = data,
		.in_len = len,
		.arena = (char *)arena + MIN(skip, arena_len),
		.arena_len = arena_len - MIN(skip, arena_len),
	};
}

int launch_decode(const void *data, size_t len, void *arena, size_t arena_len, struct launch *ret)
{
	struct codec c = reader(data, len, arena, arena_len);

	memset(ret, 0, sizeof(*ret));
	codec_launch(&c, ret);
	return c.failed || c.in_len ? -EBADMSG : 0;
}

int sandbox_launch_decode(const void *data, size_t len, void *arena, size_t arena_len, struct sandbox_launch *ret)
{
	struct codec c = reader(data, len, arena, arena_len);

	memset(ret, 0, sizeof(*ret));
	codec_sandbox(&c, ret);
	return c.failed || c.in_len ? -EBADMSG : 0;
}

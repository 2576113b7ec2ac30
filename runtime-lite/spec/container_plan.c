/* container_plan.c - purpose: from CRI's ContainerConfig, the pod and the image to what the engine starts. Pure. */
#include "runtime-lite/spec/container_plan.h"

#include "runtime-lite/spec/resources.h"

#include <sys/resource.h>

enum { NAME_MAX_LEN = 253 };

static const CRI(LinuxContainerSecurityContext) * security(const CRI(ContainerConfig) * config)
{
	return config->linux ? config->linux->security_context : NULL;
}

static int check_mount(const CRI(Mount) * m, struct error *err)
{
	if (*m->container_path != '/')
		return error_set(err, ERROR_INVALID, "container_path \"%.200s\" must be an absolute path",
			m->container_path);
	/* It would lie over the root file system without being seen, except as the root's "..". */
	if (!m->container_path[strspn(m->container_path, "/")])
		return error_set(err, ERROR_INVALID, "container_path \"%.200s\" is the root file system itself", m->container_path);
	if (m->image && *m->image->image)
		return error_set(err, ERROR_UNIMPLEMENTED, "ImageVolumeMountFailed: image volumes are not supported yet");
	if (*m->host_path != '/')
		return error_set(err, ERROR_INVALID, "host_path \"%.200s\" must be an absolute path", m->host_path);
	if (m->propagation > RUNTIME__V1__MOUNT_PROPAGATION__PROPAGATION_BIDIRECTIONAL)
		return error_set(err, ERROR_INVALID, "unknown propagation %d", (int)m->propagation);
	if (m->recursive_read_only && !m->readonly)
		return error_set(err, ERROR_INVALID, "recursive_read_only needs readonly");
	if (m->recursive_read_only && m->propagation != RUNTIME__V1__MOUNT_PROPAGATION__PROPAGATION_PRIVATE)
		return error_set(err, ERROR_INVALID, "recursive_read_only needs PROPAGATION_PRIVATE");
	if (m->n_uidmappings || m->n_gidmappings)
		return error_set(err, ERROR_INVALID, "id mappings: user namespaces of pods are not supported");
	return 0;
}

/* A container's log must stay below the pod's log directory. */
static int check_log_path(const char *path, struct error *err)
{
	for (const char *p = path; (p = strstr(p, "..")); p += 2)
		if ((p == path || p[-1] == '/') && (p[2] == '/' || !p[2]))
			return error_set(err, ERROR_INVALID, "log_path \"%.200s\" has a \"..\" in it", path);
	return 0;
}

int container_config_check(const CRI(ContainerConfig) * config, struct error *err)
{
	if (!config)
		return error_set(err, ERROR_INVALID, "config is missing");
	if (!config->metadata || !*config->metadata->name)
		return error_set(err, ERROR_INVALID, "metadata.name is empty");
	if (strlen(config->metadata->name) > NAME_MAX_LEN || strchr(config->metadata->name, '/'))
		return error_set(err, ERROR_INVALID, "metadata.name \"%.80s\" is too long or has a '/'",
			config->metadata->name);
	if (!config->image || !*config->image->image)
		return error_set(err, ERROR_INVALID, "image is empty");
	if (config->n_cdi_devices)
		return error_set(err, ERROR_UNIMPLEMENTED, "unresolvable CDI devices %s: CDI is not supported yet",
			config->cdi_devices[0]->name);
	for (size_t i = 0; i < config->n_mounts; i++)
		if (check_mount(config->mounts[i], err) < 0)
			return error_prefix(err, "mounts[%zu]", i);
	return check_log_path(config->log_path, err);
}

/* Equal but for trailing slashes. */
static bool same_path(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);

	while (n > 1 && a[n - 1] == '/')
		n--;
	while (m > 1 && b[m - 1] == '/')
		m--;
	return n == m && memcmp(a, b, n) == 0;
}

bool container_mounts_at(const CRI(ContainerConfig) * config, const char *path)
{
	for (size_t i = 0; i < config->n_mounts; i++)
		if (same_path(config->mounts[i]->container_path, path))
			return true;
	return false;
}

/* The pod's own files, unless the client brings others. */
static void add_pod_mounts(struct launch *l, const CRI(ContainerConfig) * config, const struct container_place *place)
{
	static const char *const files[][2] = {
		{ "hosts", "/etc/hosts" },
		{ "hostname", "/etc/hostname" },
		{ "resolv.conf", "/etc/resolv.conf" },
	};

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		if (container_mounts_at(config, files[i][1]))
			continue;
		_cleanup_free_ char *source = xasprintf("%s/%s", place->sandbox_dir, files[i][0]);
		launch_add_mount(l, source, files[i][1])->readonly = l->rootfs.readonly;
	}
	if (!container_mounts_at(config, "/dev/shm")) {
		_cleanup_free_ char *shm = xasprintf("%s/shm", place->sandbox_dir);
		struct launch_mount *m = launch_add_mount(l, place->host_ipc ? "/dev/shm" : shm, "/dev/shm");

		m->nosuid = m->nodev = m->noexec = true;
	}
}

static void add_volumes(struct launch *l, const struct container_place *place, const struct strv *volumes)
{
	for (size_t i = 0; volumes && i < volumes->n; i++) {
		_cleanup_free_ char *source = xasprintf("%s/volumes/%zu", place->layer_dir, i);

		launch_add_mount(l, source, volumes->v[i]);
	}
}

static void add_config_mounts(struct launch *l, const CRI(ContainerConfig) * config)
{
	for (size_t i = 0; i < config->n_mounts; i++) {
		const CRI(Mount) *from = config->mounts[i];
		struct launch_mount *m = launch_add_mount(l, from->host_path, from->container_path);

		m->readonly = from->readonly;
		m->recursive_readonly = from->recursive_read_only;
		m->propagation = (enum launch_propagation)from->propagation;
		m->create_source = true;
	}
}

static int set_pid_namespace(struct launch *l, const CRI(LinuxContainerSecurityContext) * sc,
	const struct container_place *place, struct error *err)
{
	const CRI(NamespaceOption) *ns = sc ? sc->namespace_options : NULL;

	switch (ns ? ns->pid : RUNTIME__V1__NAMESPACE_MODE__POD) {
	case RUNTIME__V1__NAMESPACE_MODE__POD:
		/* A client that says nothing of namespaces gets what the pod has. */
		if (!place->shared_pid && ns)
			return error_set(err, ERROR_INVALID,
				"namespace_options.pid is POD, but the pod sandbox was made without a shared one");
		l->pid = place->shared_pid ? LAUNCH_NS_POD : LAUNCH_NS_OWN;
		return 0;
	case RUNTIME__V1__NAMESPACE_MODE__CONTAINER:
		l->pid = LAUNCH_NS_OWN;
		return 0;
	case RUNTIME__V1__NAMESPACE_MODE__NODE:
		l->pid = LAUNCH_NS_NODE;
		return 0;
	case RUNTIME__V1__NAMESPACE_MODE__TARGET:
		if (!launch_id_valid(ns->target_id))
			return error_set(err, ERROR_INVALID, "namespace_options.target_id is missing");
		l->pid = LAUNCH_NS_TARGET;
		l->pid_target = xstrdup(ns->target_id);
		return 0;
	default:
		return error_set(err, ERROR_INVALID, "namespace_options.pid: unknown mode %d", (int)ns->pid);
	}
}

static void set_security(struct launch *l, const CRI(LinuxContainerSecurityContext) * sc,
	const struct container_inputs *in)
{
	bool privileged = sc && sc->privileged;

	l->caps = (struct launch_caps){ in->caps->bounding, in->caps->effective, in->caps->permitted,
		in->caps->inheritable, in->caps->ambient };
	l->no_new_privs = sc && sc->no_new_privs && !privileged;
	if (in->seccomp && !privileged) {
		l->seccomp = xmemdup(in->seccomp, in->n_seccomp * sizeof(*in->seccomp));
		l->n_seccomp = in->n_seccomp;
	}
	l->apparmor = xstrdup(in->apparmor);
	l->all_devices = l->sys_writable = privileged;
	for (size_t i = 0; sc && !privileged && i < sc->n_masked_paths; i++)
		strv_add(&l->masked_paths, sc->masked_paths[i]);
	for (size_t i = 0; sc && !privileged && i < sc->n_readonly_paths; i++)
		strv_add(&l->readonly_paths, sc->readonly_paths[i]);
}

static void set_process(struct launch *l, const CRI(ContainerConfig) * config, const struct container_place *place,
	const struct container_inputs *in)
{
	for (size_t i = 0; i < in->args->n; i++)
		strv_add(&l->args, in->args->v[i]);
	for (size_t i = 0; i < in->env->n; i++)
		strv_add(&l->env, in->env->v[i]);
	l->cwd = xstrdup(in->cwd);
	l->uid = in->user->uid;
	l->gid = in->user->gid;
	for (size_t i = 0; i < in->user->n_groups; i++)
		launch_add_group(l, in->user->groups[i]);
	if (in->nofile)
		launch_add_rlimit(l, RLIMIT_NOFILE, in->nofile, in->nofile);
	l->tty = config->tty;
	l->stdin_open = config->stdin;
	l->stdin_once = config->stdin_once;
	l->log_path = xstrdup(place->log_path);
	l->stop_signal = in->stop_signal;
}

static void set_rootfs(struct launch *l, const struct container_place *place, const struct container_inputs *in,
	bool readonly)
{
	for (size_t i = 0; i < in->lower->n; i++)
		strv_add(&l->rootfs.lower, in->lower->v[i]);
	l->rootfs.upper = xasprintf("%s/upper", place->layer_dir);
	l->rootfs.work = xasprintf("%s/work", place->layer_dir);
	l->rootfs.merged = xasprintf("%s/merged", place->layer_dir);
	l->rootfs.readonly = readonly;
}

static void add_devices(struct launch *l, const struct container_inputs *in)
{
	for (size_t i = 0; i < in->n_devices; i++) {
		const struct plan_device *from = &in->devices[i];
		struct launch_device *d = launch_add_device(l, from->path);

		d->type = from->type;
		d->major = from->major;
		d->minor = from->minor;
		d->mode = from->mode;
		d->uid = from->uid;
		d->gid = from->gid;
		memcpy(d->access, from->access, sizeof(d->access));
	}
}

int container_plan(const CRI(ContainerConfig) * config, const struct container_place *place,
	const struct container_inputs *in, struct launch **ret, struct error *err)
{
	_cleanup_(launch_free_p) struct launch *l = launch_new();
	const CRI(LinuxContainerSecurityContext) *sc = security(config);
	const CRI(LinuxContainerResources) *resources = config->linux ? config->linux->resources : NULL;

	l->id = xstrdup(place->id);
	l->sandbox_id = xstrdup(place->sandbox_id);
	l->dir = xstrdup(place->dir);
	l->cgroup = xstrdup(place->cgroup);
	set_rootfs(l, place, in, sc && sc->readonly_rootfs);
	set_process(l, config, place, in);
	set_security(l, sc, in);
	add_pod_mounts(l, config, place);
	add_volumes(l, place, in->volumes);
	add_config_mounts(l, config);
	add_devices(l, in);
	if (resources) {
		l->has_oom_score_adj = true;
		l->oom_score_adj = (int)MAX(MIN(resources->oom_score_adj, 1000), -1000);
	}
	int r = set_pid_namespace(l, sc, place, err);
	if (r == 0)
		r = resources_to_limits(resources, &l->limits, err);
	if (r == 0)
		r = launch_check(l, err);
	if (r < 0)
		return r;
	*ret = steal(l);
	return 0;
}

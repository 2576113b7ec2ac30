/* cri_config.c - purpose: a pod as CRI wants it. */
#include "kubelet-lite/core/cri_config.h"

#include "kubelet-lite/core/qos.h"

char *pod_log_dir(const char *pod_logs_dir, const char *ns, const char *name, const char *uid)
{
	return xasprintf("%s/%s_%s_%s", pod_logs_dir, ns, name, uid);
}

static CRI(Int64Value) * int64_value(int64_t v)
{
	if (v < 0)
		return NULL;
	CRI(Int64Value) *m = CRI_NEW(Int64Value, int64_value);

	m->value = v;
	return m;
}

static void set_strings(size_t *n, char ***field, const struct str_list *list)
{
	*field = list->n ? xcalloc(list->n, sizeof(char *)) : NULL;
	for (size_t i = 0; i < list->n; i++)
		(*field)[i] = xstrdup(list->v[i]);
	*n = list->n;
}

static void set_strv(size_t *n, char ***field, const struct strv *list)
{
	*field = list->n ? xcalloc(list->n, sizeof(char *)) : NULL;
	for (size_t i = 0; i < list->n; i++)
		(*field)[i] = xstrdup(list->v[i]);
	*n = list->n;
}

static void add_string(size_t *n, char ***field, const char *s)
{
	*field = xreallocarray(*field, *n + 1, sizeof(char *));
	(*field)[(*n)++] = xstrdup(s);
}

static CRI(NamespaceOption) * namespaces(const struct pod *pod)
{
	CRI(NamespaceOption) *o = CRI_NEW(NamespaceOption, namespace_option);

	o->network = pod->host_network ? RUNTIME__V1__NAMESPACE_MODE__NODE : RUNTIME__V1__NAMESPACE_MODE__POD;
	o->ipc = pod->host_ipc ? RUNTIME__V1__NAMESPACE_MODE__NODE : RUNTIME__V1__NAMESPACE_MODE__POD;
	o->pid = pod->host_pid	  ? RUNTIME__V1__NAMESPACE_MODE__NODE
		 : pod->share_pid ? RUNTIME__V1__NAMESPACE_MODE__POD
				  : RUNTIME__V1__NAMESPACE_MODE__CONTAINER;
	return o;
}

/* fsGroup first, then the listed ones, as the kubelet does. */
static void set_groups(const struct pod *pod, size_t *n, int64_t **field)
{
	*field = xcalloc(pod->n_supplemental_groups + 1, sizeof(int64_t));
	if (pod->fs_group >= 0)
		(*field)[(*n)++] = pod->fs_group;
	for (size_t i = 0; i < pod->n_supplemental_groups; i++)
		(*field)[(*n)++] = pod->supplemental_groups[i];
}

static CRI(SELinuxOption) * selinux(const struct kv_list *options)
{
	if (!options->n)
		return NULL;
	CRI(SELinuxOption) *o = CRI_NEW(SELinuxOption, selinux_option);

	message_set(&o->user, kv_get(options, "user"));
	message_set(&o->role, kv_get(options, "role"));
	message_set(&o->type, kv_get(options, "type"));
	message_set(&o->level, kv_get(options, "level"));
	return o;
}

static CRI(SecurityProfile) * profile(const struct profile *p, const char *fallback, const char *localhost_prefix)
{
	const char *type = *p->type ? p->type : fallback;

	if (!*type)
		return NULL;
	CRI(SecurityProfile) *m = CRI_NEW(SecurityProfile, security_profile);

	m->profile_type = str_eq(type, "Unconfined")  ? RUNTIME__V1__SECURITY_PROFILE__PROFILE_TYPE__Unconfined
			  : str_eq(type, "Localhost") ? RUNTIME__V1__SECURITY_PROFILE__PROFILE_TYPE__Localhost
						      : RUNTIME__V1__SECURITY_PROFILE__PROFILE_TYPE__RuntimeDefault;
	if (str_eq(type, "Localhost"))
		message_set_take(&m->localhost_ref, xasprintf("%s%s", localhost_prefix, p->localhost));
	return m;
}

static bool any_privileged(const struct pod *pod)
{
	for (size_t i = 0; i < pod->n_containers; i++)
		if (pod->containers[i].security.privileged == TRI_TRUE)
			return true;
	return false;
}

static CRI(LinuxSandboxSecurityContext) * sandbox_security(const struct pod *pod)
{
	CRI(LinuxSandboxSecurityContext) *s = CRI_NEW(LinuxSandboxSecurityContext, linux_sandbox_security_context);
	static const struct profile runtime_default = { "RuntimeDefault", "" };

	s->namespace_options = namespaces(pod);
	s->selinux_options = selinux(&pod->security.selinux);
	s->run_as_user = int64_value(pod->security.run_as_user);
	s->run_as_group = int64_value(pod->security.run_as_group);
	set_groups(pod, &s->n_supplemental_groups, &s->supplemental_groups);
	s->supplemental_groups_policy = pod->strict_groups ? RUNTIME__V1__SUPPLEMENTAL_GROUPS_POLICY__Strict
							   : RUNTIME__V1__SUPPLEMENTAL_GROUPS_POLICY__Merge;
	s->privileged = any_privileged(pod);
	s->seccomp = profile(&runtime_default, "", "");
	return s;
}

static CRI(LinuxContainerResources) *
	resources(const struct cgroup_values *v, const struct cri_node *node, bool container)
{
	CRI(LinuxContainerResources) *r = CRI_NEW(LinuxContainerResources, linux_container_resources);

	r->cpu_shares = v->cpu_shares;
	r->cpu_period = CPU_PERIOD_US;
	r->cpu_quota = v->cpu_quota_us;
	r->memory_limit_in_bytes = v->memory_limit;
	r->oom_score_adj = v->oom_score_adj;
	if (!container)
		return r;
	/* Swap is not for containers. */
	if (!node->cgroup_v2)
		r->memory_swap_limit_in_bytes = v->memory_limit;
	if (node->cgroup_v2) {
		message_map_add(&r->n_unified, &r->unified,
			&runtime__v1__linux_container_resources__unified_entry__descriptor, "memory.oom.group", "1");
		message_map_add(&r->n_unified, &r->unified,
			&runtime__v1__linux_container_resources__unified_entry__descriptor, "memory.swap.max", "0");
	}
	return r;
}

static void set_ports(const struct pod *pod, CRI(PodSandboxConfig) * config)
{
	for (size_t i = pod->n_init; i < pod->n_containers; i++)
		for (size_t j = 0; j < pod->containers[i].n_ports; j++) {
			const struct container_port *p = &pod->containers[i].ports[j];
			CRI(PortMapping) *m = CRI_NEW(PortMapping, port_mapping);

			m->protocol = str_eq(p->protocol, "UDP")    ? RUNTIME__V1__PROTOCOL__UDP
				      : str_eq(p->protocol, "SCTP") ? RUNTIME__V1__PROTOCOL__SCTP
								    : RUNTIME__V1__PROTOCOL__TCP;
			m->container_port = p->container_port;
			m->host_port = p->host_port;
			message_set(&m->host_ip, p->host_ip);
			message_add(&config->n_port_mappings, &config->port_mappings, m);
		}
}

static void set_sandbox_maps(const struct pod *pod, CRI(PodSandboxConfig) * config)
{
	const ProtobufCMessageDescriptor *label = &runtime__v1__pod_sandbox_config__labels_entry__descriptor;
	const struct kv ours[] = { { LABEL_POD_NAME, pod->name }, { LABEL_POD_NAMESPACE, pod->ns },
		{ LABEL_POD_UID, pod->uid } };

	for (size_t i = 0; i < pod->labels.n; i++)
		if (!str_starts(pod->labels.v[i].key, "io.kubernetes.pod."))
			message_map_add(&config->n_labels, &config->labels, label, pod->labels.v[i].key,
				pod->labels.v[i].value);
	for (size_t i = 0; i < ARRAY_LEN(ours); i++)
		message_map_add(&config->n_labels, &config->labels, label, ours[i].key, ours[i].value);
	for (size_t i = 0; i < pod->annotations.n; i++)
		message_map_add(&config->n_annotations, &config->annotations,
			&runtime__v1__pod_sandbox_config__annotations_entry__descriptor, pod->annotations.v[i].key,
			pod->annotations.v[i].value);
	_cleanup_free_ char *grace = xasprintf("%lld", (long long)pod->grace_seconds);
	message_map_add(&config->n_annotations, &config->annotations,
		&runtime__v1__pod_sandbox_config__annotations_entry__descriptor, ANNOTATION_GRACE, grace);
}

static CRI(LinuxPodSandboxConfig) * sandbox_linux(const struct pod *pod, const struct cri_node *node)
{
	CRI(LinuxPodSandboxConfig) *l = CRI_NEW(LinuxPodSandboxConfig, linux_pod_sandbox_config);
	struct cgroup_values values = pod_cgroup(pod);

	if (node->cgroups_per_qos)
		message_set_take(&l->cgroup_parent, pod_cgroup_parent(node->cgroup_root, pod, node->systemd_cgroups));
	l->security_context = sandbox_security(pod);
	for (size_t i = 0; i < pod->sysctls.n; i++) {
		_cleanup_free_ char *name = xstrdup(pod->sysctls.v[i].key);

		for (char *p = name; *p; p++)
			if (*p == '/')
				*p = '.';
		message_map_add(&l->n_sysctls, &l->sysctls,
			&runtime__v1__linux_pod_sandbox_config__sysctls_entry__descriptor, name,
			pod->sysctls.v[i].value);
	}
	l->overhead = CRI_NEW(LinuxContainerResources, linux_container_resources);
	l->resources = resources(&values, node, false);
	return l;
}

CRI(PodSandboxConfig) * cri_sandbox_config(const struct pod *pod, uint32_t attempt, const char *hostname,
				const struct dns_config *dns, const struct cri_node *node)
{
	CRI(PodSandboxConfig) *c = CRI_NEW(PodSandboxConfig, pod_sandbox_config);

	c->metadata = CRI_NEW(PodSandboxMetadata, pod_sandbox_metadata);
	message_set(&c->metadata->name, pod->name);
	message_set(&c->metadata->namespace_, pod->ns);
	message_set(&c->metadata->uid, pod->uid);
	c->metadata->attempt = attempt;
	message_set(&c->hostname, hostname);
	message_set_take(&c->log_directory, pod_log_dir(node->pod_logs_dir, pod->ns, pod->name, pod->uid));
	c->dns_config = CRI_NEW(DNSConfig, dnsconfig);
	set_strv(&c->dns_config->n_servers, &c->dns_config->servers, &dns->servers);
	set_strv(&c->dns_config->n_searches, &c->dns_config->searches, &dns->searches);
	set_strv(&c->dns_config->n_options, &c->dns_config->options, &dns->options);
	set_ports(pod, c);
	set_sandbox_maps(pod, c);
	c->linux = sandbox_linux(pod, node);
	return c;
}

int64_t cri_run_as_user(const struct pod *pod, const struct container *container)
{
	return container->security.run_as_user >= 0 ? container->security.run_as_user : pod->security.run_as_user;
}

static enum tristate over(enum tristate container, enum tristate pod)
{
	return container != TRI_UNSET ? container : pod;
}

int cri_check_user(
	const struct pod *pod, const struct container *container, const struct cri_container *make, struct error *err)
{
	int64_t user = cri_run_as_user(pod, container);
	_cleanup_free_ char *where =
		xasprintf("(pod: \"%s_%s(%s)\", container: %s)", pod->name, pod->ns, pod->uid, container->name);

	if (over(container->security.run_as_non_root, pod->security.run_as_non_root) != TRI_TRUE)
		return 0;
	if (user == 0)
		return error_set(err, ERROR_INVALID, "container's runAsUser breaks non-root policy %s", where);
	if (user > 0)
		return 0;
	if (make->image_has_uid && make->image_uid == 0)
		return error_set(err, ERROR_INVALID, "container has runAsNonRoot and image will run as root %s", where);
	if (!make->image_has_uid && *make->image_user)
		return error_set(err, ERROR_INVALID,
			"container has runAsNonRoot and image has non-numeric user (%s), cannot verify user is "
			"non-root %s",
			make->image_user, where);
	if (!make->image_has_uid)
		return error_set(err, ERROR_INVALID, "container has runAsNonRoot and image will run as root %s", where);
	return 0;
}

static const char *const masked[] = { "/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys",
	"/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi",
	"/sys/firmware", "/sys/devices/virtual/powercap" };
static const char *const read_only[] = { "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger" };

static void set_paths(CRI(LinuxContainerSecurityContext) * s, const struct container *c, const struct cri_node *node)
{
	if (s->privileged || str_eq(c->security.proc_mount, "Unmasked"))
		return;
	for (size_t i = 0; i < ARRAY_LEN(masked); i++)
		add_string(&s->n_masked_paths, &s->masked_paths, masked[i]);
	for (size_t i = 0; node->masked_paths && i < node->masked_paths->n; i++)
		add_string(&s->n_masked_paths, &s->masked_paths, node->masked_paths->v[i]);
	for (size_t i = 0; i < ARRAY_LEN(read_only); i++)
		add_string(&s->n_readonly_paths, &s->readonly_paths, read_only[i]);
}

static void set_profiles(CRI(LinuxContainerSecurityContext) * s, const struct pod *pod, const struct container *c,
	const struct cri_node *node)
{
	const struct profile *seccomp = *c->security.seccomp.type ? &c->security.seccomp : &pod->security.seccomp;
	const struct profile *apparmor = *c->security.apparmor.type ? &c->security.apparmor : &pod->security.apparmor;
	static const struct profile unconfined = { "Unconfined", "" };
	_cleanup_free_ char *prefix = xasprintf("%s/seccomp/", node->root_dir);

	s->seccomp = profile(
		s->privileged ? &unconfined : seccomp, node->seccomp_default ? "RuntimeDefault" : "Unconfined", prefix);
	s->apparmor = profile(apparmor, "", "");
	if (str_eq(apparmor->type, "RuntimeDefault"))
		message_set(&s->apparmor_profile, "runtime/default");
	else if (str_eq(apparmor->type, "Unconfined"))
		message_set(&s->apparmor_profile, "unconfined");
	else if (str_eq(apparmor->type, "Localhost"))
		message_set_take(&s->apparmor_profile, xasprintf("localhost/%s", apparmor->localhost));
}

static CRI(LinuxContainerSecurityContext) * container_security(const struct pod *pod, const struct container *c,
						    const struct cri_container *make, const struct cri_node *node)
{
	CRI(LinuxContainerSecurityContext) *s =
		CRI_NEW(LinuxContainerSecurityContext, linux_container_security_context);
	int64_t user = cri_run_as_user(pod, c);
	int64_t group = c->security.run_as_group >= 0 ? c->security.run_as_group : pod->security.run_as_group;

	s->capabilities = CRI_NEW(Capability, capability);
	set_strings(&s->capabilities->n_add_capabilities, &s->capabilities->add_capabilities, &c->security.cap_add);
	set_strings(&s->capabilities->n_drop_capabilities, &s->capabilities->drop_capabilities, &c->security.cap_drop);
	s->privileged = c->security.privileged == TRI_TRUE;
	s->namespace_options = namespaces(pod);
	s->selinux_options = selinux(c->security.selinux.n ? &c->security.selinux : &pod->security.selinux);
	if (user >= 0)
		s->run_as_user = int64_value(user);
	else if (make->image_has_uid)
		s->run_as_user = int64_value(make->image_uid);
	else
		message_set(&s->run_as_username, make->image_user);
	s->run_as_group = int64_value(group);
	s->readonly_rootfs = c->security.read_only_root == TRI_TRUE;
	set_groups(pod, &s->n_supplemental_groups, &s->supplemental_groups);
	s->supplemental_groups_policy = pod->strict_groups ? RUNTIME__V1__SUPPLEMENTAL_GROUPS_POLICY__Strict
							   : RUNTIME__V1__SUPPLEMENTAL_GROUPS_POLICY__Merge;
	s->no_new_privs = c->security.allow_escalation == TRI_FALSE;
	set_paths(s, c, node);
	set_profiles(s, pod, c, node);
	return s;
}

static void set_env(CRI(ContainerConfig) * config, const struct env *env)
{
	for (size_t i = 0; i < env->names.n; i++) {
		CRI(KeyValue) *kv = CRI_NEW(KeyValue, key_value);
		size_t len = strlen(env->values.v[i]);

		message_set(&kv->key, env->names.v[i]);
		kv->value.len = len;
		kv->value.data = len ? xmemdup(env->values.v[i], len) : NULL;
		message_add(&config->n_envs, &config->envs, kv);
	}
}

static void set_mounts(CRI(ContainerConfig) * config, const struct cri_container *make)
{
	for (size_t i = 0; i < make->n_mounts; i++) {
		const struct cri_mount *from = &make->mounts[i];
		CRI(Mount) *m = CRI_NEW(Mount, mount);

		message_set_take(&m->container_path, *from->container_path == '/'
							     ? xstrdup(from->container_path)
							     : xasprintf("/%s", from->container_path));
		message_set(&m->host_path, from->host_path);
		m->readonly = from->read_only;
		m->recursive_read_only = from->read_only && from->recursive_read_only;
		m->propagation = str_eq(from->propagation, "HostToContainer")
					 ? RUNTIME__V1__MOUNT_PROPAGATION__PROPAGATION_HOST_TO_CONTAINER
				 : str_eq(from->propagation, "Bidirectional")
					 ? RUNTIME__V1__MOUNT_PROPAGATION__PROPAGATION_BIDIRECTIONAL
					 : RUNTIME__V1__MOUNT_PROPAGATION__PROPAGATION_PRIVATE;
		message_add(&config->n_mounts, &config->mounts, m);
	}
}

/* As the API spells a lifecycle handler. */
static char *handler_json(const struct handler *h)
{
	json_t *o = NULL, *list = json_array();

	if (h->kind == HANDLER_EXEC) {
		for (size_t i = 0; i < h->command.n; i++)
			json_array_append_new(list, json_string(h->command.v[i]));
		o = json_pack("{s:{s:O}}", "exec", "command", list);
	} else if (h->kind == HANDLER_HTTP) {
		for (size_t i = 0; i < h->headers.n; i++)
			json_array_append_new(list,
				json_pack("{s:s,s:s}", "name", h->headers.v[i].key, "value", h->headers.v[i].value));
		o = json_pack("{s:{s:s,s:s,s:o,s:s,s:O}}", "httpGet", "host", h->host, "path", h->path, "port",
			h->port.number ? json_integer(h->port.number) : json_string(h->port.name), "scheme",
			h->https ? "HTTPS" : "HTTP", "httpHeaders", list);
	} else if (h->kind == HANDLER_SLEEP) {
		o = json_pack("{s:{s:I}}", "sleep", "seconds", (json_int_t)h->sleep_seconds);
	}
	char *text = o ? json_text(o) : NULL;
	json_decref(list);
	json_decref(o);
	return text;
}

static char *ports_json(const struct container *c)
{
	json_t *list = json_array();

	for (size_t i = 0; i < c->n_ports; i++)
		json_array_append_new(list,
			json_pack("{s:s,s:i,s:i,s:s}", "name", c->ports[i].name, "hostPort", c->ports[i].host_port,
				"containerPort", c->ports[i].container_port, "protocol", c->ports[i].protocol));
	char *text = json_text(list);
	json_decref(list);
	return text;
}

static void set_container_maps(CRI(ContainerConfig) * config, const struct pod *pod, const struct container *c,
	const struct cri_container *make)
{
	const struct kv labels[] = { { LABEL_POD_NAME, pod->name }, { LABEL_POD_NAMESPACE, pod->ns },
		{ LABEL_POD_UID, pod->uid }, { LABEL_CONTAINER_NAME, c->name } };
	_cleanup_free_ char *hash = xasprintf("%x", c->hash);
	_cleanup_free_ char *restarts = xasprintf("%u", make->restarts);
	_cleanup_free_ char *grace = xasprintf("%lld", (long long)pod->grace_seconds);
	_cleanup_free_ char *backoff = xasprintf("%lld", (long long)make->backoff_ns);
	_cleanup_free_ char *pre_stop = handler_json(&c->pre_stop);
	_cleanup_free_ char *ports = c->n_ports ? ports_json(c) : NULL;
	const struct kv annotations[] = { { ANNOTATION_HASH, hash }, { ANNOTATION_RESTARTS, restarts },
		{ ANNOTATION_MESSAGE_PATH, c->termination_path },
		{ ANNOTATION_MESSAGE_POLICY, c->termination_from_logs ? "FallbackToLogsOnError" : "File" },
		{ ANNOTATION_GRACE, grace }, { ANNOTATION_BACKOFF, backoff },
		{ ANNOTATION_MESSAGE_FILE, make->message_file }, { ANNOTATION_PRE_STOP, pre_stop },
		{ ANNOTATION_PORTS, ports } };

	for (size_t i = 0; i < ARRAY_LEN(labels); i++)
		message_map_add(&config->n_labels, &config->labels,
			&runtime__v1__container_config__labels_entry__descriptor, labels[i].key, labels[i].value);
	for (size_t i = 0; i < ARRAY_LEN(annotations); i++)
		if (annotations[i].value)
			message_map_add(&config->n_annotations, &config->annotations,
				&runtime__v1__container_config__annotations_entry__descriptor, annotations[i].key,
				annotations[i].value);
}

/* command and args with $(VAR) replaced. */
static void set_words(size_t *n, char ***field, const struct str_list *list, const struct env *env)
{
	*field = list->n ? xcalloc(list->n, sizeof(char *)) : NULL;
	for (size_t i = 0; i < list->n; i++)
		(*field)[i] = env_expand(list->v[i], env, NULL);
	*n = list->n;
}

int cri_signal(const char *name)
{
	struct str spelled = STR_INIT;

	for (const char *p = name; *p; p++) {
		if (*p == '+' || *p == '-')
			str_add(&spelled, *p == '+' ? "PLUS" : "MINUS");
		else
			str_add_char(&spelled, *p);
	}
	const ProtobufCEnumValue *v =
		protobuf_c_enum_descriptor_get_value_by_name(&runtime__v1__signal__descriptor, str_get(&spelled));
	str_done(&spelled);
	return v ? v->value : -1;
}

CRI(ContainerConfig) * cri_container_config(const struct pod *pod, const struct container *c,
			       const struct cri_container *make, const struct cri_node *node)
{
	CRI(ContainerConfig) *config = CRI_NEW(ContainerConfig, container_config);
	struct cgroup_values values = container_cgroup(pod, c, node->memory);

	config->metadata = CRI_NEW(ContainerMetadata, container_metadata);
	message_set(&config->metadata->name, c->name);
	config->metadata->attempt = make->restarts;
	config->image = CRI_NEW(ImageSpec, image_spec);
	message_set(&config->image->image, make->image_ref);
	message_set(&config->image->user_specified_image, c->image);
	set_words(&config->n_command, &config->command, &c->command, make->env);
	set_words(&config->n_args, &config->args, &c->args, make->env);
	message_set(&config->working_dir, c->working_dir);
	set_env(config, make->env);
	set_mounts(config, make);
	set_container_maps(config, pod, c, make);
	message_set_take(&config->log_path, xasprintf("%s/%u.log", c->name, make->restarts));
	config->stdin = c->is_stdin;
	config->stdin_once = c->stdin_once;
	config->tty = c->tty;
	config->stop_signal = *c->stop_signal ? (CRI(Signal))MAX(cri_signal(c->stop_signal), 0)
					     : RUNTIME__V1__SIGNAL__RUNTIME_DEFAULT;
	config->linux = CRI_NEW(LinuxContainerConfig, linux_container_config);
	config->linux->resources = resources(&values, node, true);
	config->linux->security_context = container_security(pod, c, make, node);
	return config;
}

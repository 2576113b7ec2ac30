/* convert.c - purpose: from the model to the messages that clients see. */
#include "runtime-lite/cri/convert.h"

CRI(PodSandboxMetadata) * convert_metadata(const struct sandbox *s)
{
	return message_copy(s->config->metadata);
}

static CRI(PodSandboxState) sandbox_state(const struct sandbox *s)
{
	return s->state == SANDBOX_READY ? RUNTIME__V1__POD_SANDBOX_STATE__SANDBOX_READY
					 : RUNTIME__V1__POD_SANDBOX_STATE__SANDBOX_NOTREADY;
}

static CRI(ContainerState) container_state(const struct container *c)
{
	return c->state == CONTAINER_RUNNING  ? RUNTIME__V1__CONTAINER_STATE__CONTAINER_RUNNING
	       : c->state == CONTAINER_EXITED ? RUNTIME__V1__CONTAINER_STATE__CONTAINER_EXITED
					      : RUNTIME__V1__CONTAINER_STATE__CONTAINER_CREATED;
}

CRI(PodSandbox) * convert_sandbox(const struct sandbox *s)
{
	CRI(PodSandbox) *m = CRI_NEW(PodSandbox, pod_sandbox);

	message_set(&m->id, s->id);
	m->metadata = convert_metadata(s);
	m->state = sandbox_state(s);
	m->created_at = (int64_t)s->created_ns;
	m->n_labels = s->config->n_labels;
	m->labels = message_map_copy(m->n_labels, s->config->labels, &runtime__v1__pod_sandbox__labels_entry__descriptor);
	m->n_annotations = s->config->n_annotations;
	m->annotations = message_map_copy(m->n_annotations, s->config->annotations,
		&runtime__v1__pod_sandbox__annotations_entry__descriptor);
	message_set(&m->runtime_handler, s->runtime_handler);
	return m;
}

static CRI(PodSandboxNetworkStatus) * network_status(const struct sandbox *s)
{
	CRI(PodSandboxNetworkStatus) *m = CRI_NEW(PodSandboxNetworkStatus, pod_sandbox_network_status);

	if (s->state == SANDBOX_READY && s->ips.n)
		message_set(&m->ip, s->ips.v[0]);
	for (size_t i = 1; s->state == SANDBOX_READY && i < s->ips.n; i++) {
		CRI(PodIP) *ip = CRI_NEW(PodIP, pod_ip);

		message_set(&ip->ip, s->ips.v[i]);
		message_add(&m->n_additional_ips, &m->additional_ips, ip);
	}
	return m;
}

CRI(PodSandboxStatus) * convert_sandbox_status(const struct sandbox *s)
{
	CRI(PodSandboxStatus) *m = CRI_NEW(PodSandboxStatus, pod_sandbox_status);
	const CRI(NamespaceOption) *ns = sandbox_namespaces(s);

	message_set(&m->id, s->id);
	m->metadata = convert_metadata(s);
	m->state = sandbox_state(s);
	m->created_at = (int64_t)s->created_ns;
	m->network = network_status(s);
	m->linux = CRI_NEW(LinuxPodSandboxStatus, linux_pod_sandbox_status);
	m->linux->namespaces = CRI_NEW(Namespace, namespace);
	m->linux->namespaces->options = ns ? message_copy(ns) : CRI_NEW(NamespaceOption, namespace_option);
	m->n_labels = s->config->n_labels;
	m->labels = message_map_copy(m->n_labels, s->config->labels,
		&runtime__v1__pod_sandbox_status__labels_entry__descriptor);
	m->n_annotations = s->config->n_annotations;
	m->annotations = message_map_copy(m->n_annotations, s->config->annotations,
		&runtime__v1__pod_sandbox_status__annotations_entry__descriptor);
	message_set(&m->runtime_handler, s->runtime_handler);
	return m;
}

/* What people called the image, and what they get told it is called. */
static CRI(ImageSpec) * image_spec(const struct container *c)
{
	CRI(ImageSpec) *m = message_copy(c->config->image);

	message_set(&m->image, c->image_name);
	return m;
}

CRI(Container) * convert_container(const struct container *c)
{
	CRI(Container) *m = CRI_NEW(Container, container);

	message_set(&m->id, c->id);
	message_set(&m->pod_sandbox_id, c->sandbox->id);
	m->metadata = message_copy(c->config->metadata);
	m->image = image_spec(c);
	message_set(&m->image_ref, c->image_ref);
	message_set(&m->image_id, c->image_id);
	m->state = container_state(c);
	m->created_at = (int64_t)c->created_ns;
	m->n_labels = c->config->n_labels;
	m->labels = message_map_copy(m->n_labels, c->config->labels, &runtime__v1__container__labels_entry__descriptor);
	m->n_annotations = c->config->n_annotations;
	m->annotations = message_map_copy(m->n_annotations, c->config->annotations,
		&runtime__v1__container__annotations_entry__descriptor);
	return m;
}

static CRI(ContainerUser) * container_user(const struct container *c)
{
	CRI(ContainerUser) *m = CRI_NEW(ContainerUser, container_user);
	CRI(LinuxContainerUser) *user = CRI_NEW(LinuxContainerUser, linux_container_user);

	user->uid = c->user.uid;
	user->gid = c->user.gid;
	user->n_supplemental_groups = c->user.n_groups;
	user->supplemental_groups = c->user.n_groups ? xcalloc(c->user.n_groups, sizeof(int64_t)) : NULL;
	for (size_t i = 0; i < c->user.n_groups; i++)
		user->supplemental_groups[i] = c->user.groups[i];
	m->linux = user;
	return m;
}

static CRI(ContainerResources) * resources(const struct container *c)
{
	CRI(ContainerResources) *m = CRI_NEW(ContainerResources, container_resources);

	if (c->config->linux && c->config->linux->resources)
		m->linux = message_copy(c->config->linux->resources);
	return m;
}

CRI(ContainerStatus) * convert_container_status(const struct container *c)
{
	CRI(ContainerStatus) *m = CRI_NEW(ContainerStatus, container_status);

	message_set(&m->id, c->id);
	m->metadata = message_copy(c->config->metadata);
	m->state = container_state(c);
	m->created_at = (int64_t)c->created_ns;
	m->started_at = (int64_t)c->started_ns;
	m->finished_at = (int64_t)c->finished_ns;
	m->exit_code = c->state == CONTAINER_EXITED ? c->exit_code : 0;
	m->image = image_spec(c);
	message_set(&m->image_ref, c->image_ref);
	message_set(&m->image_id, c->image_id);
	message_set(&m->reason, container_reason(c));
	message_set(&m->message, c->message);
	m->n_labels = c->config->n_labels;
	m->labels = message_map_copy(m->n_labels, c->config->labels,
		&runtime__v1__container_status__labels_entry__descriptor);
	m->n_annotations = c->config->n_annotations;
	m->annotations = message_map_copy(m->n_annotations, c->config->annotations,
		&runtime__v1__container_status__annotations_entry__descriptor);
	for (size_t i = 0; i < c->config->n_mounts; i++)
		message_add(&m->n_mounts, &m->mounts, message_copy(c->config->mounts[i]));
	message_set(&m->log_path, c->log_path);
	m->resources = resources(c);
	m->user = container_user(c);
	m->stop_signal = c->config->stop_signal;
	return m;
}

void convert_pod_statuses(const struct sandbox *s, size_t *n, CRI(ContainerStatus) * **list)
{
	for (const struct container *c = s->containers; c; c = c->next_in_pod)
		if (c->state != CONTAINER_CREATING)
			message_add(n, list, convert_container_status(c));
}

/* Ids in filters may be shortened, as crictl does it. */
bool sandbox_matches(const struct sandbox *s, const CRI(PodSandboxFilter) * filter)
{
	if (s->state == SANDBOX_CREATING)
		return false;
	if (!filter)
		return true;
	return (!*filter->id || str_starts(s->id, filter->id)) &&
	       (!filter->state || filter->state->state == sandbox_state(s)) &&
	       message_map_matches(filter->n_label_selector, filter->label_selector, s->config->n_labels,
		       s->config->labels);
}

bool container_matches(const struct container *c, const CRI(ContainerFilter) * filter)
{
	if (c->state == CONTAINER_CREATING)
		return false;
	if (!filter)
		return true;
	return (!*filter->id || str_starts(c->id, filter->id)) &&
	       (!*filter->pod_sandbox_id || str_starts(c->sandbox->id, filter->pod_sandbox_id)) &&
	       (!filter->state || filter->state->state == container_state(c)) &&
	       message_map_matches(filter->n_label_selector, filter->label_selector, c->config->n_labels,
		       c->config->labels);
}

/* sandbox.c - purpose: one pod sandbox as the daemon knows it, and its file. */
#include "runtime-lite/model/sandbox.h"

#include "runtime-lite/engine/pod.h"
#include "runtime-lite/model/state_json.h"

#include <errno.h>

enum { SANDBOX_VERSION = 1 };

static const char *const state_names[] = {
	[SANDBOX_CREATING] = "creating",
	[SANDBOX_READY] = "ready",
	[SANDBOX_NOTREADY] = "notready",
};

struct sandbox *sandbox_new(const char *id, CRI(PodSandboxConfig) * config, const char *state_dir)
{
	struct sandbox *s = xnew(struct sandbox);

	s->id = xstrdup(id);
	s->config = config;
	s->name = sandbox_name(config->metadata);
	s->dir = xasprintf("%s/sandboxes/%s", state_dir, id);
	s->refs = 1;
	return s;
}

struct sandbox *sandbox_ref(struct sandbox *s)
{
	s->refs++;
	return s;
}

struct sandbox *sandbox_unref(struct sandbox *s)
{
	if (!s || --s->refs)
		return NULL;
	free(s->id);
	free(s->name);
	message_free(s->config);
	message_free(s->overhead);
	message_free(s->resources);
	free(s->runtime_handler);
	free(s->dir);
	free(s->cgroup);
	free(s->link);
	strv_done(&s->ips);
	pod_monitor_free(s->monitor);
	free(s);
	return NULL;
}

char *sandbox_name(const CRI(PodSandboxMetadata) * m)
{
	return xasprintf("%s_%s_%s_%u", m->name, m->namespace_, m->uid, m->attempt);
}

const CRI(NamespaceOption) * sandbox_namespaces(const struct sandbox *s)
{
	const CRI(LinuxPodSandboxConfig) *linux = s->config->linux;

	return linux && linux->security_context ? linux->security_context->namespace_options : NULL;
}

json_t *sandbox_to_json(const struct sandbox *s)
{
	json_t *json = json_object();

	json_object_set_new(json, "version", json_integer(SANDBOX_VERSION));
	state_put(json, "id", s->id);
	state_put(json, "state", state_names[s->state]);
	state_put(json, "runtime_handler", s->runtime_handler);
	state_put(json, "cgroup", s->cgroup);
	json_object_set_new(json, "cgroup_owned", json_boolean(s->cgroup_owned));
	state_put_time(json, "created_ns", s->created_ns);
	json_object_set_new(json, "network_attached", json_boolean(s->network_attached));
	state_put_list(json, "ips", &s->ips);
	state_put(json, "link", s->link);
	json_object_set_new(json, "config", message_to_json(s->config, MESSAGE_JSON_SHORT));
	if (s->overhead)
		json_object_set_new(json, "overhead", message_to_json(s->overhead, MESSAGE_JSON_SHORT));
	if (s->resources)
		json_object_set_new(json, "resources", message_to_json(s->resources, MESSAGE_JSON_SHORT));
	return json;
}

static int read_messages(const json_t *json, struct sandbox *s, struct error *err)
{
	static const ProtobufCMessageDescriptor *type = &runtime__v1__linux_container_resources__descriptor;
	const json_t *overhead = json_object_get(json, "overhead"), *resources = json_object_get(json, "resources");
	int r = overhead ? message_from_json(type, overhead, &s->overhead, err) : 0;

	if (r == 0 && resources)
		r = message_from_json(type, resources, &s->resources, err);
	return r;
}

int sandbox_from_json(const json_t *json, const char *state_dir, struct sandbox **ret, struct error *err)
{
	_cleanup_sandbox_ struct sandbox *s = NULL;
	_cleanup_message_ CRI(PodSandboxConfig) *config = NULL;
	const char *id = json_str_at(json, "id", "");
	int r = state_check_version(json, SANDBOX_VERSION, err);

	if (r < 0)
		return r;
	r = message_from_json(&runtime__v1__pod_sandbox_config__descriptor, json_object_get(json, "config"), &config, err);
	if (r < 0)
		return error_prefix(err, "config");
	if (!launch_id_valid(id) || !config->metadata)
		return error_set(err, ERROR_DATA_LOSS, "id or metadata is missing");
	s = sandbox_new(id, steal(config), state_dir);
	s->state = SANDBOX_NOTREADY;
	for (size_t i = 0; i < ARRAY_LEN(state_names); i++)
		if (str_eq(json_str_at(json, "state", ""), state_names[i]))
			s->state = (enum sandbox_state)i;
	s->runtime_handler = xstrdup(json_str_at(json, "runtime_handler", ""));
	s->cgroup = xstrdup(json_str_at(json, "cgroup", NULL));
	s->cgroup_owned = json_bool_at(json, "cgroup_owned", false);
	s->created_ns = state_get_time(json, "created_ns");
	s->network_attached = json_bool_at(json, "network_attached", false);
	state_get_list(json, "ips", &s->ips);
	s->link = xstrdup(json_str_at(json, "link", NULL));
	r = read_messages(json, s, err);
	if (r < 0)
		return r;
	*ret = steal(s);
	return 0;
}

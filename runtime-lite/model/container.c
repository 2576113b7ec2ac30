/* container.c - purpose: one container as the daemon knows it, and its file. */
#include "runtime-lite/model/container.h"

#include "runtime-lite/model/state_json.h"

#include <errno.h>

enum { CONTAINER_VERSION = 1, EXIT_START_FAILED = 128, EXIT_LOST = 255 };

struct container *container_new(const char *id, CRI(ContainerConfig) * config, struct sandbox *sandbox,
	const char *root_dir)
{
	struct container *c = xnew(struct container);

	c->id = xstrdup(id);
	c->config = config;
	c->sandbox = sandbox_ref(sandbox);
	c->name = container_name(config->metadata, sandbox->config->metadata);
	c->dir = xasprintf("%s/containers/%s", sandbox->dir, id);
	c->layer_dir = xasprintf("%s/containers/%s", root_dir, id);
	c->cgroup = xasprintf("%s/%s", sandbox->cgroup ? sandbox->cgroup : "", id);
	c->refs = 1;
	return c;
}

struct container *container_ref(struct container *c)
{
	c->refs++;
	return c;
}

struct container *container_unref(struct container *c)
{
	if (!c || --c->refs)
		return NULL;
	free(c->id);
	free(c->name);
	sandbox_unref(c->sandbox);
	message_free(c->config);
	free(c->dir);
	free(c->layer_dir);
	free(c->image_id);
	free(c->image_ref);
	free(c->image_name);
	free(c->log_path);
	free(c->cgroup);
	strv_done(&c->lower);
	strv_done(&c->volumes);
	strv_done(&c->env);
	strv_done(&c->args);
	free(c->cwd);
	user_done(&c->user);
	free(c->reason);
	free(c->message);
	free(c);
	return NULL;
}

char *container_name(const CRI(ContainerMetadata) * metadata, const CRI(PodSandboxMetadata) * pod)
{
	return xasprintf("%s_%s_%s_%s_%u", metadata->name, pod->name, pod->namespace_, pod->uid, metadata->attempt);
}

bool container_set_running(struct container *c, pid_t pid, uint64_t started_ns)
{
	if (c->state != CONTAINER_CREATED)
		return false;
	c->state = CONTAINER_RUNNING;
	c->pid = pid;
	c->started_ns = started_ns;
	return true;
}

static bool end(struct container *c, int exit_code, const char *reason, uint64_t now_ns)
{
	if (c->state == CONTAINER_EXITED)
		return false;
	c->state = CONTAINER_EXITED;
	c->pid = 0;
	c->exit_code = exit_code;
	c->finished_ns = now_ns;
	free(c->reason);
	c->reason = xstrdup(reason);
	return true;
}

bool container_set_exited(struct container *c, const struct exit_record *exit)
{
	if (!end(c, exit->status, NULL, exit->finished_ns))
		return false;
	c->oom = exit->oom;
	return true;
}

bool container_set_start_failed(struct container *c, const char *message, uint64_t now_ns)
{
	if (!end(c, EXIT_START_FAILED, "StartError", now_ns))
		return false;
	free(c->message);
	c->message = xstrdup(message);
	return true;
}

bool container_set_lost(struct container *c, uint64_t now_ns)
{
	return end(c, EXIT_LOST, "Unknown", now_ns);
}

const char *container_reason(const struct container *c)
{
	if (c->state != CONTAINER_EXITED)
		return "";
	if (c->reason)
		return c->reason;
	/* A process beside the first one that was taken does not count when all ended well. */
	if (c->oom && c->exit_code)
		return "OOMKilled";
	return c->exit_code ? "Error" : "Completed";
}

CRI(LinuxContainerResources) * container_resources(struct container *c)
{
	if (!c->config->linux)
		c->config->linux = CRI_NEW(LinuxContainerConfig, linux_container_config);
	if (!c->config->linux->resources)
		c->config->linux->resources = CRI_NEW(LinuxContainerResources, linux_container_resources);
	return c->config->linux->resources;
}

static json_t *user_to_json(const struct user *user)
{
	json_t *groups = json_array();

	for (size_t i = 0; i < user->n_groups; i++)
		json_array_append_new(groups, json_integer(user->groups[i]));
	return json_pack("{s:I, s:I, s:o, s:s*}", "uid", (json_int_t)user->uid, "gid", (json_int_t)user->gid, "groups",
		groups, "home", user->home);
}

static void user_from_json(const json_t *json, struct user *ret)
{
	const json_t *groups = json_object_get(json, "groups");

	ret->uid = (uint32_t)json_int_at(json, "uid", 0);
	ret->gid = (uint32_t)json_int_at(json, "gid", 0);
	ret->home = xstrdup(json_str_at(json, "home", NULL));
	ret->n_groups = MIN(json_array_size(groups), (size_t)USER_GROUPS_MAX);
	ret->groups = xcalloc(ret->n_groups, sizeof(*ret->groups));
	for (size_t i = 0; i < ret->n_groups; i++)
		ret->groups[i] = (uint32_t)json_integer_value(json_array_get(groups, i));
}

/* Words of a command or environment may be any bytes; JSON holds text. Others are kept as a list of numbers. */
static void put_words(json_t *json, const char *key, const struct strv *list)
{
	json_t *array = json_array();

	for (size_t i = 0; i < list->n; i++) {
		json_t *word = json_string(list->v[i]);

		if (!word) {
			word = json_array();
			for (const char *p = list->v[i]; *p; p++)
				json_array_append_new(word, json_integer((unsigned char)*p));
		}
		json_array_append_new(array, word);
	}
	json_object_set_new(json, key, array);
}

static void get_words(const json_t *json, const char *key, struct strv *ret)
{
	json_t *item, *byte;
	size_t i, k;

	json_array_foreach (json_object_get(json, key), i, item) {
		if (json_is_string(item)) {
			strv_add(ret, json_string_value(item));
			continue;
		}
		struct str word = STR_INIT;
		json_array_foreach (item, k, byte)
			if (json_integer_value(byte))
				str_add_char(&word, (char)json_integer_value(byte));
		strv_add_take(ret, str_take(&word));
	}
}

json_t *container_to_json(const struct container *c)
{
	json_t *json = json_object();

	json_object_set_new(json, "version", json_integer(CONTAINER_VERSION));
	state_put(json, "id", c->id);
	state_put(json, "image_id", c->image_id);
	state_put(json, "image_ref", c->image_ref);
	state_put(json, "image_name", c->image_name);
	state_put(json, "log_path", c->log_path);
	state_put(json, "cwd", c->cwd);
	put_words(json, "args", &c->args);
	put_words(json, "env", &c->env);
	state_put_list(json, "layers", &c->lower);
	state_put_list(json, "volumes", &c->volumes);
	json_object_set_new(json, "user", user_to_json(&c->user));
	json_object_set_new(json, "stop_signal", json_integer(c->stop_signal));
	json_object_set_new(json, "stop_signalled", json_boolean(c->stop_signalled));
	state_put_time(json, "kill_at_ns", c->kill_at_ns);
	state_put_time(json, "created_ns", c->created_ns);
	if (c->state == CONTAINER_CREATING)
		json_object_set_new(json, "creating", json_true());
	/* What the monitor's exit file cannot say. */
	if (c->state == CONTAINER_EXITED && c->reason)
		json_object_set_new(json, "end", json_pack("{s:s, s:i, s:s*, s:I}", "reason", c->reason, "exit_code",
			c->exit_code, "message", c->message, "finished_ns", (json_int_t)c->finished_ns));
	json_object_set_new(json, "config", message_to_json(c->config, MESSAGE_JSON_SHORT));
	return json;
}

static void read_end(const json_t *json, struct container *c)
{
	const json_t *ended = json_object_get(json, "end");

	if (!ended)
		return;
	end(c, (int)json_int_at(ended, "exit_code", EXIT_LOST), json_str_at(ended, "reason", "Unknown"),
		state_get_time(ended, "finished_ns"));
	c->message = xstrdup(json_str_at(ended, "message", NULL));
}

int container_from_json(const json_t *json, struct sandbox *sandbox, const char *root_dir, struct container **ret,
	struct error *err)
{
	_cleanup_message_ CRI(ContainerConfig) *config = NULL;
	const char *id = json_str_at(json, "id", "");
	int r = state_check_version(json, CONTAINER_VERSION, err);

	if (r < 0)
		return r;
	r = message_from_json(&runtime__v1__container_config__descriptor, json_object_get(json, "config"), &config, err);
	if (r < 0)
		return error_prefix(err, "config");
	if (!launch_id_valid(id) || !config->metadata || !config->image)
		return error_set(err, ERROR_DATA_LOSS, "id, metadata or image is missing");
	struct container *c = container_new(id, steal(config), sandbox, root_dir);
	c->image_id = xstrdup(json_str_at(json, "image_id", ""));
	c->image_ref = xstrdup(json_str_at(json, "image_ref", ""));
	c->image_name = xstrdup(json_str_at(json, "image_name", ""));
	c->log_path = xstrdup(json_str_at(json, "log_path", NULL));
	c->cwd = xstrdup(json_str_at(json, "cwd", "/"));
	get_words(json, "args", &c->args);
	get_words(json, "env", &c->env);
	state_get_list(json, "layers", &c->lower);
	state_get_list(json, "volumes", &c->volumes);
	user_from_json(json_object_get(json, "user"), &c->user);
	c->stop_signal = (int)json_int_at(json, "stop_signal", 15);
	c->stop_signalled = json_bool_at(json, "stop_signalled", false);
	c->kill_at_ns = state_get_time(json, "kill_at_ns");
	c->created_ns = state_get_time(json, "created_ns");
	c->state = json_bool_at(json, "creating", false) ? CONTAINER_CREATING : CONTAINER_CREATED;
	read_end(json, c);
	*ret = c;
	return 0;
}

/* runtime.c - purpose: Version, Status, RuntimeConfig and UpdateRuntimeConfig. */
#include "runtime-lite/cri/handlers.h"

#include "common/base/log.h"
#include "common/wire/json.h"
#include "runtime-lite/engine/cgroup.h"
#include "runtime-lite/model/state_json.h"

HANDLER(runtime_version)
{
	CRI(VersionResponse) *reply = CRI_NEW(VersionResponse, version_response);

	(void)call, (void)request, (void)err;
	message_set(&reply->version, "0.1.0"); /* of the kubelet's runtime API; anything else makes it exit */
	message_set(&reply->runtime_name, "runtime-lite");
	message_set(&reply->runtime_version, NODE_LITE_VERSION);
	message_set(&reply->runtime_api_version, "v1");
	*ret_reply = &reply->base;
	return 0;
}

static void add_condition(CRI(RuntimeStatus) * status, const char *type, bool ok, const char *reason, const char *message)
{
	CRI(RuntimeCondition) *c = CRI_NEW(RuntimeCondition, runtime_condition);

	message_set(&c->type, type);
	c->status = ok;
	message_set(&c->reason, ok ? "" : reason);
	message_set(&c->message, ok ? "" : message);
	message_add(&status->n_conditions, &status->conditions, c);
}

static char *config_text(const struct service *svc)
{
	_cleanup_json_ json_t *json = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I}", "stateDir",
		svc->options.state_dir, "rootDir", svc->options.root_dir, "libexecDir", svc->options.libexec_dir,
		"cgroupDriver", "cgroupfs", "cgroupMode", cgroup_mode_name(), "cgroupParent", svc->options.cgroup_parent,
		"bridge", svc->options.bridge_name, "podCIDR", svc->pod_cidr, "nofile",
		(json_int_t)svc->options.nofile);

	return json_text(json);
}

HANDLER(runtime_status)
{
	struct service *svc = call->context;
	const CRI(StatusRequest) *req = request;
	CRI(StatusResponse) *reply = CRI_NEW(StatusResponse, status_response);
	char problem[ERROR_TEXT_MAX];

	(void)err;
	bridge_problem(svc->network, problem);
	reply->status = CRI_NEW(RuntimeStatus, runtime_status);
	add_condition(reply->status, "RuntimeReady", true, NULL, NULL);
	add_condition(reply->status, "NetworkReady", !*problem, "NetworkNotReady", problem);

	CRI(RuntimeHandler) *handler = CRI_NEW(RuntimeHandler, runtime_handler);
	handler->features = CRI_NEW(RuntimeHandlerFeatures, runtime_handler_features);
	handler->features->recursive_read_only_mounts = true;
	message_add(&reply->n_runtime_handlers, &reply->runtime_handlers, handler);
	reply->features = CRI_NEW(RuntimeFeatures, runtime_features);
	reply->features->supplemental_groups_policy = true;
	if (req->verbose) {
		store_lock(svc->store);
		_cleanup_free_ char *text = config_text(svc);
		store_unlock(svc->store);

		message_map_add(&reply->n_info, &reply->info, &runtime__v1__status_response__info_entry__descriptor,
			"config", text);
	}
	*ret_reply = &reply->base;
	return 0;
}

HANDLER(runtime_config)
{
	CRI(RuntimeConfigResponse) *reply = CRI_NEW(RuntimeConfigResponse, runtime_config_response);

	(void)call, (void)request, (void)err;
	reply->linux = CRI_NEW(LinuxRuntimeConfiguration, linux_runtime_configuration);
	reply->linux->cgroup_driver = RUNTIME__V1__CGROUP_DRIVER__CGROUPFS;
	*ret_reply = &reply->base;
	return 0;
}

/* The range outlives us: a restart must not hand out addresses of another one until the kubelet speaks again. */
static int remember_cidr(struct service *svc, const char *cidr, struct error *err)
{
	_cleanup_free_ char *dir = xasprintf("%s/network", svc->options.root_dir);
	_cleanup_json_ json_t *json = json_pack("{s:i, s:s}", "version", 1, "pod_cidr", cidr);
	int r = state_write(dir, "config.json", json, err);

	if (r < 0)
		return r;
	store_lock(svc->store);
	free(svc->pod_cidr);
	svc->pod_cidr = xstrdup(cidr);
	store_unlock(svc->store);
	return 0;
}

HANDLER(runtime_update_config)
{
	struct service *svc = call->context;
	const CRI(UpdateRuntimeConfigRequest) *req = request;
	const CRI(RuntimeConfig) *config = req->runtime_config;

	if (config && config->network_config && *config->network_config->pod_cidr) {
		const char *cidr = config->network_config->pod_cidr;
		int r = bridge_set_cidr(svc->network, cidr, err);

		if (r == 0)
			r = remember_cidr(svc, cidr, err);
		if (r < 0)
			return error_prefix(err, "pod_cidr");
		log_info("pods get addresses of %s", cidr);
	}
	*ret_reply = &CRI_NEW(UpdateRuntimeConfigResponse, update_runtime_config_response)->base;
	return 0;
}

/*
 * container_create.c - purpose: CreateContainer.
 *
 * Nothing runs yet: the plan is made and checked, the writable layer and the state are on disk. Whatever fails is undone.
 */
#include "runtime-lite/cri/handlers.h"

#include "common/base/log.h"
#include "common/sys/file.h"
#include "runtime-lite/cri/plan.h"
#include "runtime-lite/cri/volumes.h"
#include "runtime-lite/model/teardown.h"
#include "runtime-lite/spec/command.h"
#include "runtime-lite/spec/container_plan.h"
#include "runtime-lite/spec/rootfs_user.h"
#include "runtime-lite/spec/sandbox_plan.h"

#include <errno.h>
#include <sys/stat.h>

static void set_image(struct container *c, const struct image *image)
{
	const char *asked = c->config->image->image;

	c->image_id = xstrdup(image->id);
	c->image_ref = xstrdup(image->repo_digests.n ? image->repo_digests.v[0] : image->id);
	c->image_name = xstrdup(image->repo_tags.n ? image->repo_tags.v[0] : asked);
}

static int set_log_path(struct container *c, struct error *err)
{
	const char *dir = c->sandbox->config->log_directory;

	if (!*dir || !*c->config->log_path)
		return 0;
	c->log_path = xasprintf("%s/%s", dir, c->config->log_path);
	_cleanup_free_ char *parent = xstrndup(c->log_path, (size_t)(strrchr(c->log_path, '/') - c->log_path));
	int r = dir_make(parent, 0755, err);
	return r < 0 ? error_prefix(err, "log directory") : 0;
}

/* The top directory of the container's root has the mode and owner of the image's, which overlayfs takes from `upper`. */
static int make_upper(struct container *c, struct error *err)
{
	_cleanup_free_ char *upper = xasprintf("%s/upper", c->layer_dir);
	struct stat st = { .st_mode = 0755 };

	if (c->lower.n && stat(c->lower.v[0], &st) < 0)
		return error_sys(err, errno, "layer %s", c->lower.v[0]);
	if (mkdir(upper, 0700) < 0 || chown(upper, st.st_uid, st.st_gid) < 0 || chmod(upper, st.st_mode & 07777) < 0)
		return error_sys(err, errno, "%s", upper);
	return 0;
}

static int make_dirs(struct container *c, struct error *err)
{
	_cleanup_free_ char *work = xasprintf("%s/work", c->layer_dir);
	_cleanup_free_ char *merged = xasprintf("%s/merged", c->layer_dir);

	if (mkdir(c->dir, 0700) < 0)
		return error_sys(err, errno, "%s", c->dir);
	if (mkdir(c->layer_dir, 0700) < 0)
		return error_sys(err, errno, "%s", c->layer_dir);
	if (mkdir(work, 0700) < 0 || mkdir(merged, 0700) < 0)
		return error_sys(err, errno, "%s", work);
	return make_upper(c, err);
}

static int set_process(const struct service *svc, struct container *c, const struct image_config *image,
	struct error *err)
{
	const struct image_process process = {
		.entrypoint = image->entrypoint.v,
		.cmd = image->cmd.v,
		.env = image->env.v,
		.working_dir = image->working_dir,
		.user = image->user,
	};
	const CRI(LinuxContainerSecurityContext) *security = c->config->linux ? c->config->linux->security_context : NULL;
	const char *hostname = sandbox_hostname(c->sandbox->config, svc->node_hostname);
	const char *cwd;
	int r = command_build(c->config, &process, &c->args, err);

	if (r == 0)
		r = rootfs_user(&c->lower, security, image->user, &c->user, err);
	if (r == 0)
		r = command_env(c->config, &process, hostname, c->user.home, &c->env, err);
	if (r == 0)
		r = command_cwd(c->config, &process, &cwd, err);
	if (r == 0)
		r = stop_signal_number(c->config->stop_signal, image->stop_signal, &c->stop_signal, err);
	if (r < 0)
		return r;
	c->cwd = xstrdup(cwd);
	return 0;
}

static int create(struct service *svc, struct container *c, const struct image *image, struct rpc_call *call,
	struct error *err)
{
	_cleanup_(launch_free_p) struct launch *launch = NULL;
	int r = image_layers_acquire(svc->images, image->id, c->id, &c->lower, err);

	if (r == 0)
		r = make_dirs(c, err);
	if (r == 0)
		r = store_save_container(svc->store, c, err); /* so that a restart undoes it */
	if (r == 0)
		r = set_process(svc, c, &image->config, err);
	if (r == 0)
		r = volumes_make(c, &image->config.volumes, err);
	if (r == 0)
		r = set_log_path(c, err);
	if (r == 0)
		r = plan_container(svc, c, &launch, err);
	if (r == 0)
		r = pod_container_create(c->sandbox->monitor, launch, err);
	if (r == 0 && service_cancelled(call))
		r = error_set(err, ERROR_CANCELLED, "the client has gone or its deadline has passed");
	if (r < 0)
		return r;
	store_lock(svc->store);
	c->state = CONTAINER_CREATED;
	store_unlock(svc->store);
	r = store_save_container(svc->store, c, err);
	store_lock(svc->store);
	if (r < 0)
		c->state = CONTAINER_CREATING;
	else
		store_notify(svc->store, CHANGE_CREATED, c->sandbox, c);
	store_unlock(svc->store);
	return r;
}

static void undo(struct service *svc, struct container *c)
{
	const struct teardown t = { svc->store, svc->images, svc->network };
	struct error err = ERROR_INIT;

	if (teardown_container(&t, c, &err) < 0)
		log_error("undo: %s", err.text);
}

/* With the pod's operation. */
static int check_sandbox(struct service *svc, const struct sandbox *s, struct error *err)
{
	store_lock(svc->store);
	bool ready = s->state == SANDBOX_READY && !s->monitor_gone && s->monitor;
	store_unlock(svc->store);
	if (!ready)
		return error_set(err, ERROR_PRECONDITION, "pod sandbox %s is not ready", s->id);
	return 0;
}

HANDLER(container_create)
{
	struct service *svc = call->context;
	const CRI(CreateContainerRequest) *req = request;
	_cleanup_operation_ struct operation op = { 0 };
	_cleanup_sandbox_ struct sandbox *s = NULL;
	_cleanup_image_ struct image *image = NULL;
	char id[65];
	int r = container_config_check(req->config, err);

	if (r == 0)
		r = store_get_sandbox(svc->store, req->pod_sandbox_id, &s, err);
	if (r == 0)
		r = operation_begin(&op, svc->store, s, "CreateContainer", service_cancelled, call, err);
	if (r == 0)
		r = check_sandbox(svc, s, err);
	if (r == 0)
		r = image_store_find(svc->images, req->config->image->image, &image, err);
	if (r < 0)
		return error_prefix(err, "create container %s", req->config && req->config->metadata
									? req->config->metadata->name
									: "");
	random_hex(id, 64);
	_cleanup_container_ struct container *c =
		container_new(id, message_copy(req->config), s, svc->options.root_dir);
	c->created_ns = clock_realtime_ns();
	set_image(c, image);
	r = store_add_container(svc->store, c, err);
	if (r < 0)
		return r;
	r = create(svc, c, image, call, err);
	if (r < 0) {
		undo(svc, c);
		return error_prefix(err, "create container %s", c->config->metadata->name);
	}
	CRI(CreateContainerResponse) *reply = CRI_NEW(CreateContainerResponse, create_container_response);
	message_set(&reply->container_id, c->id);
	*ret_reply = &reply->base;
	return 0;
}

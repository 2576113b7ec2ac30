/* plan.c - purpose: put together what the engine is told to start for a container of the model. */
#include "runtime-lite/cri/plan.h"

#include "runtime-lite/spec/container_plan.h"
#include "runtime-lite/spec/devices.h"
#include "runtime-lite/spec/security.h"

struct lookups {
	struct plan_device *devices;
	size_t n_devices;
	struct sock_filter *seccomp;
	size_t n_seccomp;
	char *apparmor;
	struct cap_sets caps;
};

static void lookups_done(struct lookups *l)
{
	devices_free(l->devices, l->n_devices);
	free(l->seccomp);
	free(l->apparmor);
}

static int look_up(const struct service *svc, const struct container *c, struct lookups *l, struct error *err)
{
	const CRI(LinuxContainerSecurityContext) *security = c->config->linux ? c->config->linux->security_context : NULL;
	int r = caps_build(security, svc->caps, &l->caps, err);

	if (r == 0)
		r = devices_resolve(c->config, &l->devices, &l->n_devices, err);
	if (r == 0)
		r = security_seccomp(security, l->caps.bounding, &l->seccomp, &l->n_seccomp, err);
	if (r == 0)
		r = security_apparmor(security, &l->apparmor, err);
	return r;
}

int plan_container(const struct service *svc, const struct container *c, struct launch **ret, struct error *err)
{
	_cleanup_(lookups_done) struct lookups l = { 0 };
	const CRI(NamespaceOption) *ns = sandbox_namespaces(c->sandbox);
	int r = look_up(svc, c, &l, err);

	if (r < 0)
		return r;
	struct container_place place = {
		.id = c->id,
		.sandbox_id = c->sandbox->id,
		.dir = c->dir,
		.sandbox_dir = c->sandbox->dir,
		.layer_dir = c->layer_dir,
		.cgroup = c->cgroup,
		.log_path = c->log_path,
		.host_ipc = ns && ns->ipc == RUNTIME__V1__NAMESPACE_MODE__NODE,
		.shared_pid = !ns || ns->pid == RUNTIME__V1__NAMESPACE_MODE__POD,
	};
	struct container_inputs in = {
		.args = &c->args,
		.env = &c->env,
		.lower = &c->lower,
		.volumes = &c->volumes,
		.cwd = c->cwd,
		.user = &c->user,
		.caps = &l.caps,
		.seccomp = l.seccomp,
		.n_seccomp = l.n_seccomp,
		.apparmor = l.apparmor,
		.devices = l.devices,
		.n_devices = l.n_devices,
		.nofile = svc->options.nofile,
		.stop_signal = c->stop_signal,
	};
	return container_plan(c->config, &place, &in, ret, err);
}

/*
 * container_plan.h - purpose: from CRI's ContainerConfig, the pod and the image to what the engine starts.
 *
 * container_plan() is pure; what it must know of the node comes in as values: devices.h and security.h look those up.
 */
#pragma once
#include "common/cri/message.h"
#include "runtime-lite/spec/caps.h"
#include "runtime-lite/spec/launch.h"
#include "runtime-lite/spec/user.h"

/* A device node of this machine that a container gets. */
struct plan_device {
	char *path; /* inside the container */
	char type;
	uint32_t major, minor;
	mode_t mode;
	uid_t uid;
	gid_t gid;
	char access[4];
};

struct container_place {
	const char *id, *sandbox_id;
	const char *dir, *sandbox_dir, *layer_dir;
	const char *cgroup;
	const char *log_path; /* NULL: none */
	bool host_ipc, shared_pid; /* of the pod */
};

struct container_inputs {
	const struct strv *args, *env, *lower;
	const struct strv *volumes; /* targets of <layer dir>/volumes/<n>; may be NULL */
	const char *cwd;
	const struct user *user;
	const struct cap_sets *caps;
	const struct sock_filter *seccomp; /* NULL: unconfined */
	size_t n_seccomp;
	const char *apparmor; /* NULL: unconfined */
	const struct plan_device *devices;
	size_t n_devices;
	uint64_t nofile;
	int stop_signal;
};

/* What every CreateContainer must hold. ERROR_INVALID names the field. */
int container_config_check(const CRI(ContainerConfig) * config, struct error *err) MUST_USE;
int container_plan(const CRI(ContainerConfig) * config, const struct container_place *place,
	const struct container_inputs *in, struct launch **ret, struct error *err) MUST_USE;
/* Does the config mount something at this very path? */
bool container_mounts_at(const CRI(ContainerConfig) * config, const char *path);

/*
 * sandbox_plan.h - purpose: from CRI's PodSandboxConfig to what the engine makes. Pure.
 */
#pragma once
#include "common/cri/message.h"
#include "runtime-lite/spec/launch.h"

struct sandbox_place {
	const char *id, *dir;
	const char *cgroup; /* the pod's */
	bool cgroup_owned;
	const char *monitors_cgroup;
	const char *node_hostname; /* for pods that name none */
};

/* What every RunPodSandbox must hold: names, known namespace modes, port numbers. ERROR_INVALID names the field. */
int sandbox_config_check(const CRI(PodSandboxConfig) * config, struct error *err) MUST_USE;
/* The hostname that the pod sees. Borrowed. */
const char *sandbox_hostname(const CRI(PodSandboxConfig) * config, const char *node_hostname);
int sandbox_plan(const CRI(PodSandboxConfig) * config, const struct sandbox_place *place, struct sandbox_launch **ret,
	struct error *err) MUST_USE;

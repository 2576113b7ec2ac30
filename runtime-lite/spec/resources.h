/*
 * resources.h - purpose: CRI's resources and the engine's limits. Pure.
 */
#pragma once
#include "common/cri/message.h"
#include "runtime-lite/spec/limits.h"

/* `resources` may be NULL: nothing is set. Checked: ERROR_INVALID names the field. */
int resources_to_limits(const CRI(LinuxContainerResources) * resources, struct cgroup_limits *ret, struct error *err)
	MUST_USE;
/* Lays an update over what is stored: fields that are 0 or empty leave the old value, lists go key by key. */
void resources_merge(CRI(LinuxContainerResources) * stored, const CRI(LinuxContainerResources) * update);

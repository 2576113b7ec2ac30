/*
 * devices.h - purpose: look up the device nodes that a container asks for.
 */
#pragma once
#include "runtime-lite/spec/container_plan.h"

enum { DEVICES_MAX = 4096 };

/* A host path may be a device, a link to one, or a directory: then all devices below it are taken. `access` "" is
 * "rwm". Free with devices_free(). */
int devices_resolve(const CRI(ContainerConfig) * config, struct plan_device **ret, size_t *ret_n, struct error *err)
	MUST_USE;
void devices_free(struct plan_device *devices, size_t n);

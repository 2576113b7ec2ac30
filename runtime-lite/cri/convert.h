/*
 * convert.h - purpose: from the model to the messages that clients see. With the store's lock held. Pure.
 */
#pragma once
#include "runtime-lite/model/store.h"

CRI(PodSandbox) * convert_sandbox(const struct sandbox *s);
CRI(PodSandboxStatus) * convert_sandbox_status(const struct sandbox *s);
CRI(Container) * convert_container(const struct container *c);
CRI(ContainerStatus) * convert_container_status(const struct container *c);
CRI(PodSandboxMetadata) * convert_metadata(const struct sandbox *s);
/* Statuses of all containers of a pod that clients may see, appended to a repeated field. */
void convert_pod_statuses(const struct sandbox *s, size_t *n, CRI(ContainerStatus) * **list);

bool sandbox_matches(const struct sandbox *s, const CRI(PodSandboxFilter) * filter);
bool container_matches(const struct container *c, const CRI(ContainerFilter) * filter);

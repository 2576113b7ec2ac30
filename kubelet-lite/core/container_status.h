/*
 * container_status.h - purpose: what is seen of one container, as the API's ContainerStatus. Pure.
 */
#pragma once
#include "kubelet-lite/core/pod_status.h"

/* New reference. */
json_t *container_status(const struct pod_want *want, const struct pod_seen *seen, size_t i,
	const struct status_context *context) MUST_USE;
/* Is it held back by the crash back-off at this time? *ret_wait_ns: how long in all. */
bool container_backs_off(
	const struct pod_want *want, const struct pod_seen *seen, size_t i, int64_t now_ns, int64_t *ret_wait_ns);

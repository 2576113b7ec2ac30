/*
 * pods.h - purpose: the cgroups of QoS classes and pods: made, given their values, removed. v1, hybrid and v2.
 *
 * Blocking (cgroupfs): made for jobs. The containers' own cgroups below are the runtime's. A hierarchy that is not
 * writable or lacks a controller is left out with one warning.
 */
#pragma once
#include "kubelet-lite/core/qos.h"
#include "common/base/error.h"

/* Is /sys/fs/cgroup the unified hierarchy? */
bool pod_cgroups_v2(void);
/* Makes `path` ("/kubepods/burstable/pod<uid>") and its parents, and applies the values. */
int pod_cgroup_set(const char *path, const struct cgroup_values *values, struct error *err) MUST_USE;
/* Only the cpu shares of a QoS class's cgroup. */
int pod_cgroup_set_shares(const char *path, int64_t shares, struct error *err) MUST_USE;
/* Removes it with what empty cgroups are below it. One that is not there is fine. */
int pod_cgroup_remove(const char *path, struct error *err) MUST_USE;
/* The last pod has gone: kubepods and its classes go as well, if they are empty. */
void pod_cgroups_leave(const char *root, bool systemd);

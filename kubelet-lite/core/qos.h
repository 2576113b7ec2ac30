/*
 * qos.h - purpose: a pod's QoS class, and the cgroup values and names that follow from requests and limits. Pure.
 */
#pragma once
#include "common/base/str.h"
#include "kubelet-lite/model/pod.h"

enum qos_class { QOS_GUARANTEED, QOS_BURSTABLE, QOS_BEST_EFFORT };

enum { CPU_PERIOD_US = 100000, CPU_SHARES_MIN = 2, CPU_SHARES_MAX = 262144, CPU_QUOTA_MIN_US = 1000 };

enum qos_class pod_qos(const struct pod *pod);
const char *qos_name(enum qos_class qos); /* "Guaranteed", ... */

struct cgroup_values {
	int64_t cpu_shares;
	int64_t cpu_quota_us;  /* 0: no limit */
	int64_t memory_limit;  /* bytes; 0: no limit */
	int64_t oom_score_adj; /* containers only */
};

/* Of one container. node_memory: bytes of the machine. */
struct cgroup_values container_cgroup(const struct pod *pod, const struct container *container, int64_t node_memory);
/* Of the pod's own cgroup: sums, with init containers and sidecars counted as the scheduler does. */
struct cgroup_values pod_cgroup(const struct pod *pod);
/* What the pod asks for of a resource, as the scheduler counts. */
struct quantity pod_request(const struct pod *pod, const char *resource);
/* 1 + (shares-2)*9999/262142, as kubelets do for their own cgroups (v2). */
int64_t cgroup_weight(int64_t shares);

/* "/kubepods/burstable/pod<uid>" below root ("/": none). For the systemd driver the path of slices. Owned by the
 * caller. */
char *qos_cgroup_path(const char *root, enum qos_class qos, bool systemd) MUST_USE;
char *pod_cgroup_path(const char *root, const struct pod *pod, bool systemd) MUST_USE;
/* The cgroup_parent that CRI gets: the path, or the slice's name. */
char *pod_cgroup_parent(const char *root, const struct pod *pod, bool systemd) MUST_USE;
/* Where a pod's cgroup may be when its class is not known: one path for each class. */
void pod_cgroup_candidates(const char *root, const char *uid, bool systemd, struct strv *ret);

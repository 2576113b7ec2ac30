/*
 * cri_config.h - purpose: a pod as CRI wants it: PodSandboxConfig, ContainerConfig. Pure.
 *
 * Labels and annotations are the kubelet's (io.kubernetes.*): they are all that brings a pod's identity, restart counts
 * and back-off back after a restart.
 */
#pragma once
#include "common/cri/message.h"
#include "kubelet-lite/core/env.h"
#include "kubelet-lite/core/names.h"

#define LABEL_POD_NAME "io.kubernetes.pod.name"
#define LABEL_POD_NAMESPACE "io.kubernetes.pod.namespace"
#define LABEL_POD_UID "io.kubernetes.pod.uid"
#define LABEL_CONTAINER_NAME "io.kubernetes.container.name"
#define ANNOTATION_HASH "io.kubernetes.container.hash"
#define ANNOTATION_RESTARTS "io.kubernetes.container.restartCount"
#define ANNOTATION_MESSAGE_PATH "io.kubernetes.container.terminationMessagePath"
#define ANNOTATION_MESSAGE_POLICY "io.kubernetes.container.terminationMessagePolicy"
#define ANNOTATION_PRE_STOP "io.kubernetes.container.preStopHandler"
#define ANNOTATION_PORTS "io.kubernetes.container.ports"
#define ANNOTATION_GRACE "io.kubernetes.pod.terminationGracePeriod"
/* Ours: nanoseconds to wait after this instance has ended; and the file the termination message is in. */
#define ANNOTATION_BACKOFF "io.node-lite.container.backoff"
#define ANNOTATION_MESSAGE_FILE "io.node-lite.container.terminationMessageFile"

struct cri_node {
	const char *pod_logs_dir;
	const char *root_dir;
	const char *cgroup_root;
	bool cgroups_per_qos;
	bool systemd_cgroups;
	bool cgroup_v2;
	bool seccomp_default;
	int64_t memory;			 /* bytes of the machine */
	const struct strv *masked_paths; /* beyond the constant ones */
};

/* A volume mount after volumes and sub-paths are resolved. */
struct cri_mount {
	char *container_path;
	char *host_path;
	bool read_only;
	bool recursive_read_only;
	const char *propagation; /* as in the API; "" private */
};

struct cri_container {
	uint32_t restarts;
	int64_t backoff_ns;
	const char *image_ref;
	bool image_has_uid;
	int64_t image_uid;
	const char *image_user; /* "" */
	const struct env *env;
	const struct cri_mount *mounts;
	size_t n_mounts;
	const char *message_file; /* host path of the termination message, "" */
};

/* <pod_logs_dir>/<ns>_<name>_<uid>, owned by the caller. */
char *pod_log_dir(const char *pod_logs_dir, const char *ns, const char *name, const char *uid) MUST_USE;

CRI(PodSandboxConfig) * cri_sandbox_config(const struct pod *pod, uint32_t attempt, const char *hostname,
				const struct dns_config *dns, const struct cri_node *node) MUST_USE;
CRI(ContainerConfig) * cri_container_config(const struct pod *pod, const struct container *container,
			       const struct cri_container *make, const struct cri_node *node) MUST_USE;
/* The CRI number of a signal ("SIGUSR1", "SIGRTMIN+1"); -1: there is none of that name. */
int cri_signal(const char *name);
/* runAsNonRoot; the kubelet's texts. */
int cri_check_user(const struct pod *pod, const struct container *container, const struct cri_container *make,
	struct error *err) MUST_USE;
/* Effective value: the container's, else the pod's; -1 unset. */
int64_t cri_run_as_user(const struct pod *pod, const struct container *container);

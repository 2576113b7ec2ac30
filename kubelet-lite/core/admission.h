/*
 * admission.h - purpose: may this pod run on this node? The kubelet's checks, reasons and messages. Pure.
 */
#pragma once
#include "common/base/str.h"
#include "kubelet-lite/model/pod.h"

struct admission_node {
	struct quantity cpu, memory, storage; /* allocatable */
	int64_t max_pods;
	struct kv_list labels;
	const struct strv *unsafe_sysctls; /* allowed beyond the safe ones; "net.*" */
};

struct verdict_text {
	const char *reason; /* static: "NodePorts", "OutOfcpu", ... */
	char *message;	    /* owned */
};

/* `others`: the pods that are admitted and not ended. True: admitted. */
bool pod_admit(const struct pod *pod, const struct pod *const *others, size_t n_others,
	const struct admission_node *node, struct verdict_text *ret);

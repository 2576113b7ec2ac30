/*
 * pod_status.h - purpose: what is seen of a pod, as the API's PodStatus: phase, conditions, container statuses. Pure.
 */
#pragma once
#include "kubelet-lite/core/plan.h"

#include <jansson.h>

enum pod_condition {
	CONDITION_READY_TO_START,
	CONDITION_INITIALIZED,
	CONDITION_READY,
	CONDITION_CONTAINERS_READY,
	CONDITION_SCHEDULED,
	CONDITION_COUNT,
};

/* When each condition got its present value; kept by the caller between calls. */
struct condition_times {
	bool known[CONDITION_COUNT];
	bool value[CONDITION_COUNT];
	uint64_t since_at[CONDITION_COUNT];
};

struct status_context {
	int64_t now_ns;	 /* monotonic */
	uint64_t now_at; /* since 1970 */
	uint64_t start_at;
	const char *host_ip; /* "" unknown */
	const struct str_list *host_ips;
	const char *runtime; /* "runtime-lite", before "://<id>" */
	const char *reason;  /* of a failed pod: rejection, DeadlineExceeded, Evicted; NULL: none */
	const char *message;
};

/* "Pending", "Running", "Succeeded", "Failed". */
const char *pod_phase(const struct pod_want *want, const struct pod_seen *seen);
/* New reference. */
json_t *pod_status(const struct pod_want *want, const struct pod_seen *seen, const struct status_context *context,
	struct condition_times *times) MUST_USE;
/* Takes the times (and nothing else) out of a status that was written earlier. */
void condition_times_read(struct condition_times *times, const json_t *status);
/* Is the pod ready? For Services and tests. */
bool pod_ready(const struct pod_want *want, const struct pod_seen *seen);

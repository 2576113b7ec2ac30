/*
 * fold.h - purpose: the runtime's lists and statuses of one pod to struct pod_seen. Pure.
 *
 * Of several containers of one name the newest is the one that counts, the one before it (if it has ended) is kept for
 * lastState, the rest are left over. The same for sandboxes.
 */
#pragma once
#include "common/cri/message.h"
#include "kubelet-lite/core/seen.h"

/* One line of ListPodSandbox or ListContainers. */
struct listed {
	bool is_sandbox;
	char *id;
	char *name;	  /* container's */
	char *sandbox_id; /* container's */
	uint32_t attempt;
	int64_t created_at;
	enum container_state state; /* a sandbox: RUNNING is ready, EXITED is not ready */
};
struct listing {
	struct listed *v;
	size_t n;
};
void listing_done(struct listing *listing);
void listing_add_sandbox(struct listing *listing, const CRI(PodSandbox) * sandbox);
void listing_add_container(struct listing *listing, const CRI(Container) * container);
/* Depends on ids and states only, not on the order. */
uint64_t listed_signature(bool is_sandbox, const char *id, int state);
uint64_t listing_signature(const struct listing *listing);

/* now_*: the two clocks at the same moment; times of the runtime are moved to the monotonic one by them. */
void instance_from_status(const CRI(ContainerStatus) * status, int64_t now_ns, uint64_t now_at, struct instance *ret);

/* Which lines need a ContainerStatus, because what is known of them is older: indices into listing->v. The newest
 * sandbox is in *ret_sandbox (-1: none). */
size_t fold_wanted(const struct pod *pod, const struct pod_seen *seen, const struct listing *listing,
	size_t *ret_indices, int *ret_sandbox);
/* Takes the answers (instances[i] belongs to listing->v[i]; STATE_NONE: not asked, or gone meanwhile) over into seen.
 * changed[i] is set for each container of the pod that is another instance than before. */
void fold_listing(const struct pod *pod, struct pod_seen *seen, struct listing *listing, struct instance *instances,
	bool *changed);

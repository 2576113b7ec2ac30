/*
 * plan.h - purpose: what to do next for one pod, as a pure function of what is wanted, what is seen, and the time.
 *
 *	             volumes up -> run sandbox -> init containers, one by one -> regular containers in order
 *	one start:   image -> create -> start -> postStart         (a later container waits while an earlier one is in
 *it) one stop:    kill (sets a deadline, begins preStop) -> stop, when its turn has come or the deadline has passed the
 *end:     containers down -> stop sandbox -> [forget: remove containers and sandboxes] -> volumes down -> [finish]
 *
 * The plan may be asked for at any time and never doubles an action, since what is under way is part of `seen`.
 */
#pragma once
#include "kubelet-lite/core/seen.h"

struct pod_want {
	const struct pod *pod;
	bool stop;   /* deleted, removed, evicted, past its deadline */
	bool forget; /* and nothing of it is to stay */
	bool fail;   /* stopped for a reason that makes it Failed (its deadline, eviction) */
	bool done;   /* it has reached its end, whatever became of its containers since */
	bool reject; /* refused at admission: nothing is ever started */
};

enum action_kind {
	ACT_VOLUMES_UP,
	ACT_VOLUMES_DOWN,
	ACT_RUN_SANDBOX,
	ACT_STOP_SANDBOX,
	ACT_REMOVE_SANDBOX,
	ACT_IMAGE,
	ACT_CREATE,
	ACT_START,
	ACT_GIVE_UP_START,
	ACT_POST_START,
	ACT_KILL,
	ACT_STOP,
	ACT_REMOVE,
	ACT_LEFTOVER_STOP,
	ACT_LEFTOVER_REMOVE,
	ACT_FINISH,
};

enum kill_reason { KILL_POD, KILL_LIVENESS, KILL_STARTUP, KILL_SANDBOX, KILL_CHANGED };

struct action {
	enum action_kind kind;
	size_t index; /* container or leftover */
	enum kill_reason reason;
};

struct pod_plan {
	struct action *v;
	size_t n;
	int64_t wake_ns; /* look again then; 0: not before something happens */
};

void pod_plan(const struct pod_want *want, const struct pod_seen *seen, int64_t now_ns, struct pod_plan *ret);
void pod_plan_done(struct pod_plan *plan);

/*
 * seen.h - purpose: what is known about one pod: what the runtime reported, and which steps are under way.
 *
 * The worker folds reports and outcomes in; pod_plan() and pod_status() read. A step in flight (`op`) is part of what
 * is seen, so that both can be asked at any moment. Times that decisions depend on are CLOCK_MONOTONIC nanoseconds, so
 * that a clock that is set does not restart or hold up anything; times that people read are nanoseconds since 1970.
 */
#pragma once
#include "kubelet-lite/model/pod.h"

enum container_state { STATE_NONE, STATE_CREATED, STATE_RUNNING, STATE_EXITED, STATE_UNKNOWN };

/* One container of the runtime. */
struct instance {
	enum container_state state;
	char *id;
	char *sandbox_id;
	uint32_t restarts;			      /* its restartCount */
	uint32_t hash;				      /* of the container's spec when it was made */
	int64_t backoff_ns;			      /* wait after its exit before the next one */
	int64_t started_ns, finished_ns;	      /* monotonic */
	uint64_t created_at, started_at, finished_at; /* since 1970 */
	int exit_code;
	char *reason;  /* as the runtime gives it; NULL: none */
	char *message; /* the runtime's, or the termination message once it was read */
	bool message_read;
	char *image;
	char *image_ref;
	bool has_user;
	int64_t uid, gid;
	int64_t *groups;
	size_t n_groups;
};
void instance_done(struct instance *i);

enum container_op { OP_NONE, OP_IMAGE, OP_CREATE, OP_START, OP_POST_START, OP_PRE_STOP, OP_STOP, OP_REMOVE };
enum probe_result { PROBE_UNKNOWN, PROBE_SUCCESS, PROBE_FAILURE };

struct container_seen {
	struct instance now;  /* the newest */
	struct instance last; /* the one before it, for lastState; STATE_NONE or STATE_EXITED */
	enum container_op op;
	bool image_ready;   /* present and allowed, for the start that comes next */
	char *image_ref;    /* what CreateContainer gets */
	bool image_has_uid; /* its USER */
	int64_t image_uid;
	char *image_user;
	int64_t start_asked_ns; /* OP_START: since when */
	int64_t retry_at_ns; /* nothing is tried before; 0: at once */
	char *wait_reason;   /* why the last attempt to start it failed, NULL: it did not */
	char *wait_message;
	bool post_start_done;
	bool killing;
	bool pre_stop_done;
	int64_t kill_deadline_ns;
	enum probe_result probe[PROBE_KINDS];
};

enum sandbox_state { SANDBOX_NONE, SANDBOX_READY, SANDBOX_NOT_READY };
enum sandbox_op { SANDBOX_OP_NONE, SANDBOX_OP_RUN, SANDBOX_OP_STOP, SANDBOX_OP_REMOVE };

struct sandbox_seen {
	enum sandbox_state state;
	enum sandbox_op op;
	char *id;
	uint32_t attempt;
	uint64_t created_at;
	bool stopped; /* StopPodSandbox has been answered */
	int64_t retry_at_ns;
};

/* A sandbox or container that is not the newest any more. */
struct leftover {
	char *id;
	bool is_sandbox;
	bool running;
	bool busy;
	bool kept; /* a sandbox that still holds a container which is shown as lastState */
	int64_t retry_at_ns;
};

enum volumes_state { VOLUMES_NONE, VOLUMES_READY };

struct pod_seen {
	bool observed; /* the runtime has been asked once */
	struct sandbox_seen sandbox;
	char **ips; /* of the newest sandbox that had any */
	size_t n_ips;
	struct container_seen *c; /* as pod->containers */
	size_t n;
	struct leftover *leftovers;
	size_t n_leftovers;
	enum volumes_state volumes;
	bool volumes_stale; /* a ConfigMap, Secret or label changed */
	bool volumes_busy;
	int64_t volumes_retry_at_ns;
	bool finish_busy;
	int64_t finish_retry_at_ns;
};

void pod_seen_init(struct pod_seen *seen, size_t n_containers);
void pod_seen_done(struct pod_seen *seen);

/* State of the newest instance if it is of the sandbox that counts; STATE_NONE for one of an older sandbox. */
enum container_state seen_state(const struct pod_seen *seen, size_t i);
/* Does a process of it live, as far as is known? */
bool seen_alive(const struct container_seen *c);
/* Running, postStart not counted, startup probe (if any) passed. */
bool seen_started(const struct container *spec, const struct container_seen *c);
bool seen_ready(const struct container *spec, const struct container_seen *c);

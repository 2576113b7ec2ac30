/*
 * node_i.h - purpose: what the files of worker/ and observe/ share: struct node and struct pod_worker.
 *
 * Everything here belongs to the loop thread. Jobs get copies. No pointer into worker->pod is kept over a return to the
 * loop, because new labels or annotations bring a new struct pod.
 *
 * A worker is freed when it is `dead` and nothing is in flight (`refs` 0).
 */
#pragma once
#include "common/base/log.h"
#include "common/base/map.h"
#include "common/net/job.h"
#include "common/wire/json.h"
#include "common/sys/file.h"
#include "kubelet-lite/core/backoff.h"
#include "kubelet-lite/core/cri_config.h"
#include "kubelet-lite/core/order.h"
#include "kubelet-lite/core/plan.h"
#include "kubelet-lite/core/pod_status.h"
#include "kubelet-lite/core/probe.h"
#include "kubelet-lite/core/qos.h"
#include "kubelet-lite/cri/client.h"
#include "kubelet-lite/store/events.h"
#include "kubelet-lite/worker/node.h"

struct handler_run;
struct image_pulls;
struct image_request;
struct log_keeper;
struct node_object;
struct observation;
struct pod_worker;
struct probe_task;
struct relist;

struct node {
	uv_loop_t *loop;
	struct objects *objects;
	struct cri_client *cri;
	struct arena arena; /* of the configuration's strings */
	struct cri_node cri_node;
	struct strv masked_paths;
	const char *node_name;
	const char *container_logs_dir;
	const char *cluster_domain;
	const char *resolv_conf;
	const char *boot_id;
	struct strv cluster_dns;
	struct strv unsafe_sysctls;
	struct strv host_ips;
	struct str_list host_list; /* the same */
	struct kv_list labels;
	int64_t max_pods;
	int64_t log_max_bytes;
	unsigned log_max_files;
	struct quantity cpu, memory, storage; /* allocatable */

	struct map workers;	   /* uid -> struct pod_worker */
	struct pod_worker *kicked; /* to be reconciled in this turn of the loop */
	uv_idle_t kick_idle;
	uv_timer_t tick; /* every 10 s: log rotation and the like */
	bool ready;	 /* the runtime's pods are known */
	bool putting;	 /* a change of the store is our own */
	bool stopping;
	unsigned alive; /* handles and workers not yet freed */
	void (*stopped)(void *data);
	void *stopped_data;
	uint64_t started_ns;

	char *runtime_name; /* "runtime-lite" */
	char *runtime_version;
	bool runtime_up;
	bool network_ready;
	char *runtime_problem; /* of the conditions RuntimeReady, NetworkReady; NULL */
	struct image_pulls *pulls;
	struct relist *relist;
	struct map held; /* uids of orphans that are left alone (their manifest is broken); values mean nothing */
	struct node_object *node_object;
	uint64_t count_starts, count_restarts, count_pulls, count_reconciles;
};

/* What the worker keeps for one container beside what is seen. */
struct container_run {
	struct pod_worker *worker; /* back, for callbacks */
	size_t index;
	struct image_request *image;
	unsigned pull_failures;
	int64_t pull_backoff_until_ns;
	unsigned create_failures;
	uint32_t making_restarts; /* of the instance that CreateContainer makes now */
	int64_t making_backoff_ns;
	struct rpc_request *start_rpc, *stop_rpc;
	struct effect *start_effect, *stop_effect;
	struct handler_run *hook; /* postStart or preStop */
	struct probe_task *probes[PROBE_KINDS];
	char *backoff_announced; /* id of the instance whose back-off has its event */
};

struct pod_worker {
	struct node *node;
	struct pod *pod;
	struct pod_want want;
	struct pod_seen seen;
	struct container_run *run; /* as pod->containers */
	bool wait_list;		   /* for a look at the runtime: an earlier version of it may run there */
	bool orphan;		   /* found in the runtime; there is no such object */
	bool admitted;		   /* admission has been passed, or refused (want.reject) */
	bool adopted;		   /* the first observation has been folded in */
	bool dead;
	unsigned refs;
	int64_t grace_ns;   /* for kills of the whole pod */
	int64_t stop_at_ns; /* when the stop was asked for */
	uv_timer_t wake;
	struct pod_worker *next_kicked;
	bool is_kicked;
	bool reconciling;

	struct observation *observation;
	bool observe_again;
	int64_t observe_retry_ns;
	uint64_t epoch;	    /* changes with each finished operation */
	uint64_t signature; /* of the runtime's list of this pod */

	struct condition_times times;
	uint64_t start_at;
	int64_t deadline_ns; /* activeDeadlineSeconds, monotonic; 0: none */
	const char *reason;  /* of a failed pod */
	char *message;
	uint32_t status_hash;
	json_t *last_status; /* as found on disk, until the pod is adopted */
	char *final_status;  /* want.done: what it stays, as text */
	unsigned sandbox_failures;
	unsigned volume_failures;
	char *volume_error; /* the last one reported */
	bool dns_warned;
};

/* ---- node.c */
struct pod_worker *node_worker(struct node *node, const char *uid);
/* A pod of the runtime that no object wants: stop and remove it. Takes `pod`. */
struct pod_worker *node_add_orphan(struct node *node, struct pod *pod);
/* The first list of the runtime's pods is in: admission may begin. `live`: uids that run. */
void node_set_ready(struct node *node, const struct map *live);
/* Somebody is in node->kicked: reconcile in this turn of the loop. */
void node_wake(struct node *node);
/* Removes a finished worker from the node (not yet freed if referenced). */
void node_drop_worker(struct node *node, struct pod_worker *worker);
/* One of node->alive has gone; the last one frees a node that is stopping. */
void node_release(struct node *node);
/* Is there another worker for a pod of the same name, which must go first? */
bool node_name_taken(const struct node *node, const struct pod_worker *worker);
/* keyed_source for a namespace: data is a struct node_source. */
struct node_source {
	struct node *node;
	const char *ns;
};
bool node_keyed(void *data, bool secret, const char *name, struct keyed *ret);
/* The Services' variables for a pod; env_done(). */
void node_service_env(struct node *node, const struct pod *pod, struct env *ret);
/* Fills sources for env and volumes of a pod, pointing into `source`, `ips` and the node. */
void node_env_sources(struct node *node, const struct pod_worker *worker, struct node_source *source,
	struct str_list *ips, const struct env *services, struct env_sources *ret);
int64_t node_now(const struct node *node);

/* node_object.c: runtime conditions may have changed. */
void node_status_changed(struct node *node);

/* ---- pod_worker.c */
struct pod_worker *pod_worker_new(struct node *node, struct pod *pod, bool orphan);
void pod_worker_unref(struct pod_worker *worker);
/* Marks it dead; it is freed when nothing is in flight. */
void pod_worker_kill(struct pod_worker *worker);
/* Think again, in this turn of the loop. May be called at any time, any number of times. */
void pod_kick(struct pod_worker *worker);
void pod_reconcile(struct pod_worker *worker);
/* New labels or annotations, or a deletion. Takes `pod`. */
void pod_update(struct pod_worker *worker, struct pod *pod);
/* Stop it (and forget it) within grace_ns; may only shorten. */
void pod_stop(struct pod_worker *worker, bool forget, int64_t grace_ns);
const struct object *pod_object(const struct pod_worker *worker);
void pod_event(struct pod_worker *worker, const char *type, const char *reason, const char *fmt, ...) PRINTF(4, 5);
void pod_event_container(
	struct pod_worker *worker, size_t i, const char *type, const char *reason, const char *fmt, ...) PRINTF(5, 6);
/* Container i is another instance from now on. */
void pod_new_instance(struct pod_worker *worker, size_t i, bool adopted);
void pod_set_wait(struct pod_worker *worker, size_t i, const char *reason, const char *message);
void pod_clear_wait(struct pod_worker *worker, size_t i);
/* Where probes and hooks find it: its address, or the node's for one on the host's network; "" not yet. */
const char *pod_address(const struct pod_worker *worker);
/* "pods/<uid>" under the root directory. Owned by the caller. */
char *pod_dir(const struct pod_worker *worker) MUST_USE;

/* ---- effects.c, effects_container.c, effects_pod.c */
struct effect {
	struct pod_worker *worker;
	size_t index;
	char *id;
	void (*done)(
		struct pod_worker *worker, size_t index, const char *id, const struct error *status, const void *reply);
};
/* One CRI call for a pod. `done` runs on the loop, then the pod is kicked. NULL id is fine. */
struct rpc_request *effect_call(struct pod_worker *worker, enum cri_method method, const void *request,
	uint64_t extra_ms, size_t index, const char *id,
	void (*done)(struct pod_worker *, size_t, const char *, const struct error *, const void *),
	struct effect **ret);
void effect_cancelled(struct effect *effect); /* after rpc_cancel() */
void effect_run(struct pod_worker *worker, const struct action *action);
void effect_image(struct pod_worker *worker, size_t i);
void effect_create(struct pod_worker *worker, size_t i);
void effect_start(struct pod_worker *worker, size_t i);
/* The call is cancelled, and the runtime asked what came of it. */
void effect_give_up_start(struct pod_worker *worker, size_t i);
void effect_post_start(struct pod_worker *worker, size_t i);
void effect_kill(struct pod_worker *worker, size_t i, enum kill_reason reason);
void effect_stop(struct pod_worker *worker, size_t i);
void effect_remove(struct pod_worker *worker, size_t i);
void effect_leftover(struct pod_worker *worker, size_t i, bool stop);
void effect_run_sandbox(struct pod_worker *worker);
void effect_stop_sandbox(struct pod_worker *worker);
void effect_remove_sandbox(struct pod_worker *worker);
void effect_volumes_up(struct pod_worker *worker);
void effect_volumes_down(struct pod_worker *worker);
void effect_finish(struct pod_worker *worker);
/* A kill under way whose deadline came nearer. */
void effect_hurry(struct pod_worker *worker, size_t i);
/* The pod or the container has ended, or is to: gives up a pull or a hook of container i. */
void effect_give_up(struct pod_worker *worker, size_t i);

/* ---- status.c */
void pod_write_status(struct pod_worker *worker);
void pod_read_checkpoint(struct pod_worker *worker);
/* Notes which manifest the pod is from, for orphan_held(). */
void pod_write_source(struct pod_worker *worker);

/* ---- termination.c: text of a container that has ended; owned by the caller, NULL if there is none. */
char *termination_message(
	const struct pod_worker *worker, size_t i, const struct instance *instance, const char *message_file) MUST_USE;

/* ---- logs.c */
char *container_log_path(const struct pod_worker *worker, size_t i, uint32_t restarts) MUST_USE;
void logs_link(struct pod_worker *worker, size_t i, const char *container_id);
/* Every 10 s: rotates the logs of running containers. */
void logs_rotate(struct node *node);
/* Links in container_logs_dir whose target is gone. */
void logs_sweep(struct node *node);

/* ---- prober.c */
/* Starts, stops or keeps the probes of every container as the pod's state asks for. */
void prober_sync(struct pod_worker *worker);
void prober_stop(struct pod_worker *worker, size_t i);

/*
 * end.h - purpose: take down what a pod leaves on the node (mounts, volumes, cgroup, logs), and sweep at the start what
 * pods that are no more have left.
 */
#pragma once
#include "kubelet-lite/worker/node_i.h"

struct end_job {
	struct job job;
	struct node *node;
	struct pod_worker *worker; /* NULL: of a sweep */
	char *dir;
	char *log_dir;
	struct strv cgroups;
	bool last;			   /* no other pod is there */
	void (*done)(struct end_job *end); /* NULL: of a sweep */
	struct error error;
};

/* log_dir NULL: the pod stays known, only its volumes and cgroup go. `done` runs on the loop. */
void end_pod(struct node *node, const char *uid, const char *log_dir, struct pod_worker *worker,
	void (*done)(struct end_job *end));
/* Directories under pods/ and log directories of pods that have no worker, with what belongs to them. Call when all
 * workers are known. `held`: uids to leave alone. */
void end_sweep(struct node *node, const struct map *held);

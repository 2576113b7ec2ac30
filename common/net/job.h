/*
 * job.h - purpose: run blocking work off the loop thread, and come back to it.
 *
 * `work` runs on a thread of its own and may block; it must not touch loop state. `done` runs on the loop thread
 * exactly once after work has returned. The caller owns the struct and may free it in `done`. At most JOBS_MAX run at
 * once, more wait in a queue in order (unbounded by us: bound what makes jobs). Stacks are small: no large locals.
 */
#pragma once
#include "common/base/base.h"

#include <uv.h>

enum { JOBS_MAX = 256, JOB_STACK_BYTES = 256 * 1024 };

struct job {
	void (*work)(struct job *job); /* worker thread */
	void (*done)(struct job *job); /* loop thread */
	uv_loop_t *loop;	       /* private */
	struct job *next;	       /* private */
};

/* Loop thread only. One loop per process may use jobs. */
void job_start(uv_loop_t *loop, struct job *job);
/* Number of jobs running or queued. Loop thread only. */
size_t job_count(void);
/* Closes the internal handle, so that uv_loop_close() can succeed; only when job_count() is 0. */
void job_shutdown(void);

/*
 * backoff.h - purpose: how long a container that ended waits for its restart.
 *
 * The kubelet's rule: the first restart is immediate, then 10 s, 20 s, ... 300 s; one that ran for ten minutes counts
 * as new. The wait that follows an instance is decided when the instance is made, and travels with it in an annotation,
 * so that a restart of the node agent forgets nothing. Pure.
 */
#pragma once
#include "kubelet-lite/core/seen.h"

#define SECOND_NS ((int64_t)1000000000)
#define BACKOFF_FIRST_NS (10 * SECOND_NS)
#define BACKOFF_MAX_NS (300 * SECOND_NS)
#define BACKOFF_RESET_NS (600 * SECOND_NS)

/* The wait after this exited instance; 0 if it ran long enough to be forgiven. */
int64_t backoff_wait(const struct instance *exited);
/* When its successor may start. */
int64_t backoff_due(const struct instance *exited);
/* What the successor of `exited` gets as its own backoff_ns (`exited` STATE_NONE: the first of all). */
int64_t backoff_next(const struct instance *exited);
/* For operations that failed: 10 s doubled to `max_ns` with each failure in a row (1, 2, ...). */
int64_t backoff_retry(unsigned failures, int64_t first_ns, int64_t max_ns);

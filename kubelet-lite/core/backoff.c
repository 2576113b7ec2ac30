/* backoff.c - purpose: how long a container that ended waits for its restart. */
#include "kubelet-lite/core/backoff.h"

int64_t backoff_wait(const struct instance *exited)
{
	/* One that was never started (its start failed) did not run. */
	int64_t ran = exited->started_at ? exited->finished_ns - exited->started_ns : 0;

	return ran > BACKOFF_RESET_NS ? 0 : exited->backoff_ns;
}

int64_t backoff_due(const struct instance *exited)
{
	return exited->finished_ns + backoff_wait(exited);
}

int64_t backoff_next(const struct instance *exited)
{
	if (exited->state == STATE_NONE)
		return 0;
	int64_t wait = backoff_wait(exited);

	return wait ? MIN(wait * 2, BACKOFF_MAX_NS) : BACKOFF_FIRST_NS;
}

int64_t backoff_retry(unsigned failures, int64_t first_ns, int64_t max_ns)
{
	int64_t wait = first_ns;

	while (failures > 1 && wait < max_ns) {
		wait *= 2;
		failures--;
	}
	return MIN(wait, max_ns);
}

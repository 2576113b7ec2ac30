/* probe.c - purpose: results of single checks to the result that counts: thresholds. */
#include "kubelet-lite/core/probe.h"

enum probe_result probe_initial(enum probe_kind kind)
{
	return kind == PROBE_LIVENESS ? PROBE_SUCCESS : kind == PROBE_READINESS ? PROBE_FAILURE : PROBE_UNKNOWN;
}

enum probe_result probe_fold(const struct probe *probe, enum probe_kind kind, struct probe_run *run,
	enum probe_outcome outcome, enum probe_result present)
{
	if (outcome == PROBE_ERROR || run->on_hold)
		return present;
	if (run->in_a_row && run->last == outcome)
		run->in_a_row++;
	else
		run->in_a_row = 1;
	run->last = outcome;
	if (run->in_a_row < (outcome == PROBE_OK ? probe->success_threshold : probe->failure_threshold))
		return present;
	/* A container is killed once, and started once. */
	if (kind == PROBE_STARTUP || (kind == PROBE_LIVENESS && outcome == PROBE_FAILED)) {
		run->on_hold = true;
		run->in_a_row = 0;
	}
	return outcome == PROBE_OK ? PROBE_SUCCESS : PROBE_FAILURE;
}

const char *probe_kind_name(enum probe_kind kind)
{
	return kind == PROBE_STARTUP ? "Startup" : kind == PROBE_LIVENESS ? "Liveness" : "Readiness";
}

/*
 * probe.h - purpose: results of single checks to the result that counts: thresholds. Pure.
 */
#pragma once
#include "kubelet-lite/core/seen.h"

/* How a single check ended. PROBE_ERROR: it could not be made; it counts as neither. */
enum probe_outcome { PROBE_OK, PROBE_FAILED, PROBE_ERROR };

struct probe_run {
	enum probe_outcome last;
	int in_a_row;
	bool on_hold; /* until there is another instance */
};

/* What counts before the first check. */
enum probe_result probe_initial(enum probe_kind kind);
/* Takes one outcome; the result that counts from now on (`present` if it does not change). */
enum probe_result probe_fold(const struct probe *probe, enum probe_kind kind, struct probe_run *run,
	enum probe_outcome outcome, enum probe_result present);
const char *probe_kind_name(enum probe_kind kind); /* "Liveness" */

/*
 * prom.h - purpose: counters, gauges and histograms, and their text for Prometheus.
 *
 *	static struct prom_metric syncs = PROM_COUNTER("proxy_syncs_total", "Syncs of the ruleset.", "result");
 *	static struct prom_metric took = PROM_HISTOGRAM("proxy_sync_seconds", "Time of a sync.", bounds);
 *
 *	prom_add(&syncs, 1, "ok");
 *	prom_observe(&took, seconds);
 *	prom_write(&out, &syncs);
 *
 * Behind the value stand the label values, as many as the metric has label names. Counters and gauges without labels
 * are written from the start, as 0. A metric keeps at most PROM_SERIES_MAX series; values for further ones are dropped.
 * One thread.
 */
#pragma once
#include "common/base/map.h"
#include "common/base/str.h"

enum prom_type { PROM_TYPE_COUNTER, PROM_TYPE_GAUGE, PROM_TYPE_HISTOGRAM };
enum { PROM_LABELS_MAX = 4, PROM_SERIES_MAX = 10000 };

struct prom_metric {
	const char *name, *help;
	enum prom_type type;
	const double *bounds; /* upper bounds of the buckets, rising; the last one (+Inf) is implied */
	size_t n_bounds;
	const char *labels[PROM_LABELS_MAX + 1]; /* NULL ends them */

	struct map series; /* private */
};

#define PROM_COUNTER(name_, help_, ...)                                                                                \
	{                                                                                                              \
		.name = (name_), .help = (help_), .type = PROM_TYPE_COUNTER, .labels = { __VA_ARGS__ }                 \
	}
#define PROM_GAUGE(name_, help_, ...)                                                                                  \
	{                                                                                                              \
		.name = (name_), .help = (help_), .type = PROM_TYPE_GAUGE, .labels = { __VA_ARGS__ }                   \
	}
#define PROM_HISTOGRAM(name_, help_, bounds_, ...)                                                                     \
	{                                                                                                              \
		.name = (name_), .help = (help_), .type = PROM_TYPE_HISTOGRAM, .bounds = (bounds_),                    \
		.n_bounds = ARRAY_LEN(bounds_), .labels = {                                                            \
			__VA_ARGS__                                                                                    \
		}                                                                                                      \
	}

void prom_add(struct prom_metric *m, double value, ...);
void prom_set(struct prom_metric *m, double value, ...);
void prom_observe(struct prom_metric *m, double value, ...);
/* Forgets all series: for gauges that are set anew before each write. */
void prom_reset(struct prom_metric *m);
/* HELP, TYPE and all series, sorted by label values. */
void prom_write(struct str *out, const struct prom_metric *m);

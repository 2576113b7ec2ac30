/*
 * metrics.h - purpose: the daemon's counters as Prometheus text, under kube-proxy's names. Loop thread only.
 */
#pragma once
#include "common/base/str.h"

struct proxy;

/* One sync ended well. */
void metrics_sync(bool full, double seconds);
/* From the change of an object to the kernel. */
void metrics_programming(double seconds);
/* An answer of /healthz, or of /livez. */
void metrics_health(bool livez, bool healthy);
/* All of it; gauges are taken from the daemon's state. */
void metrics_text(const struct proxy *proxy, struct str *out);

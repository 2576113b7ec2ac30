/*
 * metrics.h - purpose: the daemon's counters as Prometheus text, under kube-proxy's names.
 */
#pragma once
#include "common/base/str.h"
#include "proxy-lite/proxy.h"

void metrics_text(const struct proxy *proxy, struct str *out);

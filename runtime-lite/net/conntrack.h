/*
 * conntrack.h - purpose: make the kernel forget UDP flows that a host port has changed the meaning of.
 *
 * A UDP flow is translated as its first packet was. A client that keeps sending to a host port would go on talking to
 * the pod that had it before, or to nobody. Blocking, thread-safe, in the thread's network namespace.
 */
#pragma once
#include "common/base/error.h"
#include "runtime-lite/net/bridge.h"

/* Deletes the UDP and SCTP flows that were sent to these host ports, except those that reach `ip` already; with `ip`
 * INADDR_ANY those that reach any address but the node's own. Flows that only pass through the node are not touched.
 * Nothing to do for a pod without such ports. */
int conntrack_forget(const struct port_mapping *ports, size_t n_ports, struct in_addr ip, struct error *err) MUST_USE;

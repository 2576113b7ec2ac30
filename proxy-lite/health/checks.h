/*
 * checks.h - purpose: health-check node ports: tell load balancers whether this node has endpoints of a Service.
 *
 * One HTTP server for each Service of type LoadBalancer with externalTrafficPolicy Local; JSON and codes are
 * kube-proxy's. Loop thread only.
 */
#pragma once
#include "proxy-lite/model/services.h"

#include <uv.h>

struct checks;

struct checks *checks_new(uv_loop_t *loop, struct services *services);
/* After each sync. `healthy`: what the answers say of the proxy itself. */
void checks_update(struct checks *checks, bool healthy);
/* Closes all; handles are closed when the loop runs on. */
void checks_free(struct checks *checks);

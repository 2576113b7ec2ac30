/*
 * elements.h - purpose: what a Service with its slices wants: frontends and the endpoints behind each.
 *
 * Pure. This is where the Service API's rules live: ready and terminating endpoints, traffic policies, hints, families.
 */
#pragma once
#include "proxy-lite/compile/frontend.h"
#include "proxy-lite/model/services.h"

/* Appends the frontends of one Service, linked by next_owned, with owner set; none when there is no Service. Endpoints
 * are in no special order, without repetition. */
struct frontend *elements_compile(struct service_entry *entry);
void elements_free(struct frontend *list);

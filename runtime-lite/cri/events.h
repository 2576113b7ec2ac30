/*
 * events.h - purpose: GetContainerEvents: tell every subscriber what changes, with the state right after the change.
 */
#pragma once
#include "runtime-lite/cri/service.h"

/* Becomes the store's observer. */
struct events *events_new(struct service *svc);
void events_free(struct events *events);

/*
 * plan.h - purpose: put together what the engine is told to start for a container of the model.
 */
#pragma once
#include "runtime-lite/cri/service.h"
#include "runtime-lite/spec/launch.h"

/* Looks up what has to be looked up on the node (devices, profiles) and plans. Used at create, to find errors early, and
 * at start, when limits may have been updated meanwhile. */
int plan_container(const struct service *svc, const struct container *c, struct launch **ret, struct error *err) MUST_USE;

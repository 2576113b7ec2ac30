/*
 * container_stop.h - purpose: StopContainer: one schedule for each container that is asked to stop.
 */
#pragma once
#include "runtime-lite/cri/service.h"

struct stops *stops_new(struct service *svc);
/* Loop thread. A container has ended (or everything has changed): answer who waits for it. */
void stops_check(struct service *svc);
/* Loop thread. A stop that was under way before the daemon was restarted. */
void stops_resume(struct service *svc, struct container *c);
void stops_close(struct stops *stops);
void stops_free(struct stops *stops);

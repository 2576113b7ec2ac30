/*
 * watch.h - purpose: hear from the pods' monitors on the loop: what ended, and monitors that died.
 */
#pragma once
#include "runtime-lite/cri/service.h"

struct watches *watches_new(struct service *svc);
/* Any thread. Starts to watch the monitor of a sandbox; ends by itself when the monitor is gone. */
void watch_add(struct service *svc, struct sandbox *s);
/* Loop thread: closes all handles. */
void watches_close(struct watches *w);
void watches_free(struct watches *w);

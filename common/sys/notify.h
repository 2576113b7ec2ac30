/*
 * notify.h - purpose: tell the service manager that the daemon is ready, alive and stopping (sd_notify, no libsystemd).
 *
 * Does nothing where NOTIFY_SOCKET is not set. Loop thread only.
 */
#pragma once
#include "common/base/base.h"

#include <uv.h>

struct notify;

/* Says READY=1. If the manager wants a sign of life (WATCHDOG_USEC), the loop gives one at half of that time; a loop
 * that hangs gives none and is restarted. Takes the variables out of the environment, so that no child inherits them.
 */
struct notify *notify_start(uv_loop_t *loop);
/* One line for `systemctl status`: what the daemon is doing. */
void notify_status(const struct notify *notify, const char *text);
/* Says STOPPING=1 and frees; NULL is fine. The timer's handle is closed when the loop runs on. */
void notify_stop(struct notify *notify);

/* notify.c - purpose: tell the service manager that the daemon is ready, alive and stopping (sd_notify, no libsystemd).
 */
#include "common/sys/notify.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

struct notify {
	uv_timer_t timer;
	bool has_timer;
	struct sockaddr_un address;
	socklen_t address_len; /* 0: nobody listens */
};

/* One datagram; nobody waits for it, and nothing depends on it. */
static void send_text(const struct notify *notify, const char *text)
{
	_cleanup_fd_ int fd = -1;

	if (!notify->address_len)
		return;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	(void)sendto(
		fd, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *)&notify->address, notify->address_len);
}

/* A path, or "@name" in the abstract namespace. */
static void find_manager(struct notify *notify)
{
	const char *path = getenv("NOTIFY_SOCKET");
	size_t n = path ? strlen(path) : 0;

	if (n < 2 || n >= sizeof(notify->address.sun_path) || (*path != '/' && *path != '@'))
		return;
	notify->address.sun_family = AF_UNIX;
	memcpy(notify->address.sun_path, path, n);
	if (*path == '@')
		notify->address.sun_path[0] = '\0';
	notify->address_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
}

/* Microseconds between two signs of life, 0 if none are wanted from this process. */
static uint64_t watchdog_us(void)
{
	const char *us = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");

	if (!us || (pid && strtoll(pid, NULL, 10) != getpid()))
		return 0;
	return strtoull(us, NULL, 10);
}

static void on_timer(uv_timer_t *timer)
{
	send_text(container_of(timer, struct notify, timer), "WATCHDOG=1");
}

struct notify *notify_start(uv_loop_t *loop)
{
	struct notify *notify = xnew(struct notify);
	uint64_t period_ms = watchdog_us() / 2000;

	find_manager(notify);
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	if (notify->address_len && period_ms) {
		notify->has_timer = true;
		uv_timer_init(loop, &notify->timer);
		uv_timer_start(&notify->timer, on_timer, period_ms, period_ms);
		uv_unref((uv_handle_t *)&notify->timer); /* it must not keep a loop alive that has nothing else to do */
	}
	send_text(notify, "READY=1");
	return notify;
}

void notify_status(const struct notify *notify, const char *text)
{
	char line[512];

	if (!notify)
		return;
	snprintf(line, sizeof(line), "STATUS=%s", text);
	line[strcspn(line, "\n")] = '\0';
	send_text(notify, line);
}

static void on_closed(uv_handle_t *handle)
{
	free(container_of((uv_timer_t *)handle, struct notify, timer));
}

void notify_stop(struct notify *notify)
{
	if (!notify)
		return;
	send_text(notify, "STOPPING=1");
	if (notify->has_timer)
		uv_close((uv_handle_t *)&notify->timer, on_closed);
	else
		free(notify);
}

/* tree.c - purpose: all that a process of ours has started: kill it, or hand what is left of an exec to its container. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "runtime-lite/monitor/monitor.h"
#include "runtime-lite/monitor/sys.h"

enum { KILL_ROUNDS = 200 };

static bool kill_members(int track)
{
	_cleanup_fd_ int fd = openat(track, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	char text[4096];
	bool any = false;
	ssize_t n;

	while (fd >= 0 && (n = read(fd, text, sizeof(text) - 1)) > 0) {
		text[n] = '\0';
		for (char *p = text, *end; *p; p = *end ? end + 1 : end) {
			long pid = strtol(p, &end, 10);

			if (end == p)
				break;
			/* A number that was cut at the end of the buffer is a wrong pid: left for the next round. */
			if (pid > 1 && *end == '\n' && kill((pid_t)pid, SIGKILL) == 0)
				any = true;
		}
	}
	return any;
}

/* cgroup.kill does all at once and below, too; v1 has to be asked who is there until nobody is. */
void process_kill_tree(struct process *p)
{
	_cleanup_fd_ int fd = p->track < 0 ? -1 : openat(p->track, "cgroup.kill", O_WRONLY | O_CLOEXEC);

	if (p->pidfd >= 0 && !p->ended)
		(void)!syscall(SYS_pidfd_send_signal, p->pidfd, SIGKILL, NULL, 0);
	if (fd >= 0 && write(fd, "1", 1) == 1)
		return;
	for (int i = 0; p->track >= 0 && i < KILL_ROUNDS && kill_members(p->track); i++)
		usleep(100);
}

/* What the exec left running goes on in the container, which then owns it alone. */
void process_leave_cgroup(struct process *p)
{
	struct process *owner = &processes[p->owner];
	char name[EXEC_NAME_BYTES], text[2048];

	if (owner->kind != PROCESS_CONTAINER || owner->track < 0)
		return;
	snprintf(name, sizeof(name), "exec-%u", p->number);
	for (int round = 0; round < 8 && unlinkat(owner->track, name, AT_REMOVEDIR) < 0 && errno == EBUSY; round++) {
		_cleanup_fd_ int from = openat(p->track, "cgroup.procs", O_RDONLY | O_CLOEXEC);
		_cleanup_fd_ int to = openat(owner->track, "cgroup.procs", O_WRONLY | O_CLOEXEC);
		ssize_t n = from < 0 || to < 0 ? -1 : read(from, text, sizeof(text) - 1);

		if (n < 0)
			return;
		text[n] = '\0';
		for (char *pid = text, *end; (end = strchr(pid, '\n')); pid = end + 1)
			(void)!write(to, pid, (size_t)(end - pid));
		if (n == 0)
			usleep(500); /* the dead are leaving */
	}
}

/* record.c - purpose: <sandbox dir>/containers/<id>/{pid,exit}, written so that they are whole or not there. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "runtime-lite/monitor/monitor.h"
#include "runtime-lite/monitor/sys.h"

static int open_dir(const char *id)
{
	char path[sizeof("containers/") + LAUNCH_ID_MAX];

	snprintf(path, sizeof(path), "containers/%s", id);
	int fd = openat(monitor.dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int replace(int dir, const char *name, const char *temporary, const char *text, size_t len)
{
	_cleanup_fd_ int fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	if (write(fd, text, len) != (ssize_t)len)
		return -EIO;
	if (fsync(fd) < 0 || renameat(dir, temporary, dir, name) < 0 || fsync(dir) < 0)
		return -errno;
	return 0;
}

int record_prepare(const char *id)
{
	char path[sizeof("containers/") + LAUNCH_ID_MAX];

	snprintf(path, sizeof(path), "containers/%s", id);
	if (mkdirat(monitor.dir, "containers", 0700) < 0 && errno != EEXIST)
		return -errno;
	if (mkdirat(monitor.dir, path, 0700) < 0 && errno != EEXIST)
		return -errno;
	_cleanup_fd_ int dir = open_dir(id);

	if (dir < 0)
		return dir;
	unlinkat(dir, "pid", 0);
	unlinkat(dir, "exit", 0);
	return 0;
}

/* Field 22 of /proc/<pid>/stat: together with the pid it names a process for ever. The name, field 2, may hold anything. */
static unsigned long long start_time(pid_t pid)
{
	char path[32], stat[1024];

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, stat, sizeof(stat) - 1);

	if (n <= 0)
		return 0;
	stat[n] = '\0';
	char *p = strrchr(stat, ')');

	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	return p ? strtoull(p + 1, NULL, 10) : 0;
}

int record_pid(const struct process *p)
{
	_cleanup_fd_ int dir = open_dir(p->id);
	char text[96];

	if (dir < 0)
		return dir;
	int n = snprintf(text, sizeof(text), "1 %d %llu %llu\n", (int)p->pid, start_time(p->pid), (unsigned long long)p->started_ns);

	return replace(dir, "pid", ".pid.tmp", text, (size_t)n);
}

int record_exit(const struct process *p, int status, bool oom, uint64_t now_ns)
{
	_cleanup_fd_ int dir = open_dir(p->id);
	char text[96];

	if (dir < 0)
		return dir;
	int n = snprintf(text, sizeof(text), "1 %d %d %llu %llu\n", status, oom, (unsigned long long)now_ns,
		(unsigned long long)p->log_dropped);

	return replace(dir, "exit", ".exit.tmp", text, (size_t)n);
}

/* sys.h - purpose: system calls that glibc 2.36 has no function for. */
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static inline pid_t sys_clone3(uint64_t flags, int *ret_pidfd, int cgroup)
{
	struct clone_args args = {
		.flags = flags | (ret_pidfd ? CLONE_PIDFD : 0) | (cgroup >= 0 ? CLONE_INTO_CGROUP : 0),
		.pidfd = (uintptr_t)ret_pidfd,
		.exit_signal = 17, /* SIGCHLD */
		.cgroup = cgroup >= 0 ? (uint64_t)cgroup : 0,
	};

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

/* A rename somewhere makes the kernel give up with EAGAIN: again, but not for ever. */
static inline int sys_openat2(int dir, const char *path, uint64_t flags, uint64_t mode, uint64_t resolve)
{
	struct open_how how = { .flags = flags | O_CLOEXEC, .mode = mode, .resolve = resolve };
	int fd = -1;

	for (int i = 0; i < 128; i++) {
		fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
		if (fd >= 0 || errno != EAGAIN)
			return fd;
	}
	return fd;
}

/* calls.c - purpose: the system calls that the monitor makes, as C functions. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime-lite/monitor/libc/libc.h"

enum { KERNEL_SIGSET_BYTES = 8 };

_Noreturn void _exit(int status)
{
	for (;;)
		libc_call(SYS_exit_group, status, 0, 0, 0, 0, 0);
}

pid_t getpid(void) { return (pid_t)CALL(SYS_getpid, 0); }
pid_t setsid(void) { return (pid_t)CALL(SYS_setsid, 0); }
pid_t fork(void) { return (pid_t)CALL(SYS_clone, SIGCHLD, 0, 0, 0, 0); }
int kill(pid_t pid, int sig) { return (int)CALL(SYS_kill, pid, sig); }
int chdir(const char *path) { return (int)CALL(SYS_chdir, path); }
int fchdir(int fd) { return (int)CALL(SYS_fchdir, fd); }
int close(int fd) { return (int)CALL(SYS_close, fd); }
int dup2(int from, int to) { return from == to ? to : (int)CALL(SYS_dup3, from, to, 0); }
int pipe2(int fds[2], int flags) { return (int)CALL(SYS_pipe2, fds, flags); }
ssize_t read(int fd, void *buf, size_t n) { return CALL(SYS_read, fd, buf, n); }
ssize_t write(int fd, const void *buf, size_t n) { return CALL(SYS_write, fd, buf, n); }
ssize_t writev(int fd, const struct iovec *v, int n) { return CALL(SYS_writev, fd, v, n); }
ssize_t pread(int fd, void *buf, size_t n, off_t at) { return CALL(SYS_pread64, fd, buf, n, at); }
int fsync(int fd) { return (int)CALL(SYS_fsync, fd); }
int ftruncate(int fd, off_t n) { return (int)CALL(SYS_ftruncate, fd, n); }
mode_t umask(mode_t mask) { return (mode_t)CALL(SYS_umask, mask); }
int sethostname(const char *name, size_t n) { return (int)CALL(SYS_sethostname, name, n); }
int execve(const char *path, char *const argv[], char *const envp[]) { return (int)CALL(SYS_execve, path, argv, envp); }

int mkdirat(int dir, const char *path, mode_t mode) { return (int)CALL(SYS_mkdirat, dir, path, mode); }
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }
int mknodat(int dir, const char *path, mode_t mode, dev_t dev) { return (int)CALL(SYS_mknodat, dir, path, mode, dev); }
int symlinkat(const char *target, int dir, const char *path) { return (int)CALL(SYS_symlinkat, target, dir, path); }
int unlinkat(int dir, const char *path, int flags) { return (int)CALL(SYS_unlinkat, dir, path, flags); }
int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	return (int)CALL(SYS_renameat2, from_dir, from, to_dir, to, 0);
}
ssize_t readlinkat(int dir, const char *path, char *buf, size_t n) { return CALL(SYS_readlinkat, dir, path, buf, n); }
int fchown(int fd, uid_t uid, gid_t gid) { return (int)CALL(SYS_fchown, fd, uid, gid); }
int fchownat(int dir, const char *path, uid_t uid, gid_t gid, int flags)
{
	return (int)CALL(SYS_fchownat, dir, path, uid, gid, flags);
}
/* A container's own filter may not know the newer call; the older one has no flags. */
int faccessat(int dir, const char *path, int mode, int flags)
{
	long r = libc_call(SYS_faccessat2, dir, (long)path, mode, flags, 0, 0);

	return (int)(r == -ENOSYS || r == -EPERM ? CALL(SYS_faccessat, dir, path, mode) : libc_result(r));
}
int fstat(int fd, struct stat *st) { return (int)CALL(SYS_fstat, fd, st); }
int fstatat(int dir, const char *path, struct stat *st, int flags) { return (int)CALL(SYS_newfstatat, dir, path, st, flags); }
int stat(const char *path, struct stat *st) { return fstatat(AT_FDCWD, path, st, 0); }
int fstatfs(int fd, struct statfs *fs) { return (int)CALL(SYS_fstatfs, fd, fs); }

int openat(int dir, const char *path, int flags, ...)
{
	va_list args;

	va_start(args, flags);
	unsigned mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, unsigned) : 0;
	va_end(args);
	return (int)CALL(SYS_openat, dir, path, flags, mode);
}

int open(const char *path, int flags, ...)
{
	va_list args;

	va_start(args, flags);
	unsigned mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, unsigned) : 0;
	va_end(args);
	return (int)CALL(SYS_openat, AT_FDCWD, path, flags, mode);
}

int fcntl(int fd, int cmd, ...)
{
	va_list args;

	va_start(args, cmd);
	long arg = va_arg(args, long);
	va_end(args);
	return (int)CALL(SYS_fcntl, fd, cmd, arg);
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list args;

	va_start(args, request);
	long arg = va_arg(args, long);
	va_end(args);
	return (int)CALL(SYS_ioctl, fd, request, arg);
}

int prctl(int option, ...)
{
	va_list args;
	long a[4];

	va_start(args, option);
	for (int i = 0; i < 4; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	return (int)CALL(SYS_prctl, option, a[0], a[1], a[2], a[3]);
}

void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
	return (void *)CALL(SYS_mmap, at, n, prot, flags, fd, offset);
}
int munmap(void *at, size_t n) { return (int)CALL(SYS_munmap, at, n); }

int mount(const char *source, const char *target, const char *type, unsigned long flags, const void *data)
{
	return (int)CALL(SYS_mount, source, target, type, flags, data);
}
int umount2(const char *target, int flags) { return (int)CALL(SYS_umount2, target, flags); }
int fsopen(const char *type, unsigned flags) { return (int)CALL(SYS_fsopen, type, flags); }
int fsconfig(int fd, unsigned cmd, const char *key, const void *value, int aux) { return (int)CALL(SYS_fsconfig, fd, cmd, key, value, aux); }
int fsmount(int fd, unsigned flags, unsigned attrs) { return (int)CALL(SYS_fsmount, fd, flags, attrs); }
int open_tree(int dir, const char *path, unsigned flags) { return (int)CALL(SYS_open_tree, dir, path, flags); }
int move_mount(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
	return (int)CALL(SYS_move_mount, from_dir, from, to_dir, to, flags);
}
int mount_setattr(int dir, const char *path, unsigned flags, struct mount_attr *attr, size_t size)
{
	return (int)CALL(SYS_mount_setattr, dir, path, flags, attr, size);
}

int socket(int family, int type, int protocol) { return (int)CALL(SYS_socket, family, type, protocol); }
int socketpair(int family, int type, int protocol, int fds[2]) { return (int)CALL(SYS_socketpair, family, type, protocol, fds); }
int listen(int fd, int backlog) { return (int)CALL(SYS_listen, fd, backlog); }
int accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags) { return (int)CALL(SYS_accept4, fd, addr, len, flags); }
int getsockopt(int fd, int level, int name, void *value, socklen_t *len) { return (int)CALL(SYS_getsockopt, fd, level, name, value, len); }
ssize_t sendmsg(int fd, const struct msghdr *msg, int flags) { return CALL(SYS_sendmsg, fd, msg, flags); }
ssize_t recvmsg(int fd, struct msghdr *msg, int flags) { return CALL(SYS_recvmsg, fd, msg, flags); }
ssize_t send(int fd, const void *buf, size_t n, int flags) { return CALL(SYS_sendto, fd, buf, n, flags, 0, 0); }

struct cmsghdr *__cmsg_nxthdr(struct msghdr *msg, struct cmsghdr *h)
{
	uintptr_t next = (uintptr_t)h + CMSG_ALIGN(h->cmsg_len), end = (uintptr_t)msg->msg_control + msg->msg_controllen;

	if (h->cmsg_len < sizeof(*h) || next + sizeof(*h) > end || next + ((struct cmsghdr *)next)->cmsg_len > end)
		return NULL;
	return (struct cmsghdr *)next;
}

int epoll_create1(int flags) { return (int)CALL(SYS_epoll_create1, flags); }
int epoll_ctl(int fd, int op, int target, struct epoll_event *e) { return (int)CALL(SYS_epoll_ctl, fd, op, target, e); }
int epoll_wait(int fd, struct epoll_event *e, int n, int timeout_ms) { return (int)CALL(SYS_epoll_pwait, fd, e, n, timeout_ms, NULL, KERNEL_SIGSET_BYTES); }

int poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	struct timespec t = { timeout_ms / 1000, (long)(timeout_ms % 1000) * 1000000 };

	return (int)CALL(SYS_ppoll, fds, n, timeout_ms < 0 ? NULL : &t, NULL, KERNEL_SIGSET_BYTES);
}

/* The kernel's signal set is the first word of libc's. */
int sigemptyset(sigset_t *set)
{
	*(uint64_t *)set = 0;
	return 0;
}
int sigfillset(sigset_t *set)
{
	*(uint64_t *)set = ~(uint64_t)0;
	return 0;
}
int sigaddset(sigset_t *set, int sig)
{
	*(uint64_t *)set |= (uint64_t)1 << (sig - 1);
	return 0;
}
int sigprocmask(int how, const sigset_t *set, sigset_t *old) { return (int)CALL(SYS_rt_sigprocmask, how, set, old, KERNEL_SIGSET_BYTES); }
int signalfd(int fd, const sigset_t *set, int flags) { return (int)CALL(SYS_signalfd4, fd, set, KERNEL_SIGSET_BYTES, flags); }
int sigwait(const sigset_t *set, int *ret_sig)
{
	long sig = libc_call(SYS_rt_sigtimedwait, (long)set, 0, 0, KERNEL_SIGSET_BYTES, 0, 0);

	if (sig < 0)
		return (int)-sig;
	*ret_sig = (int)sig;
	return 0;
}
/* SIG_DFL and SIG_IGN only: handlers would need a return trampoline. */
__sighandler_t signal(int sig, __sighandler_t handler)
{
	struct {
		__sighandler_t handler;
		unsigned long flags;
		void (*restorer)(void);
		uint64_t mask;
	} action = { .handler = handler };

	return CALL(SYS_rt_sigaction, sig, &action, NULL, KERNEL_SIGSET_BYTES) < 0 ? SIG_ERR : SIG_DFL;
}

int waitid(idtype_t type, id_t id, siginfo_t *info, int options) { return (int)CALL(SYS_waitid, type, id, info, options, NULL); }
pid_t waitpid(pid_t pid, int *status, int options) { return (pid_t)CALL(SYS_wait4, pid, status, options, NULL); }
int clock_gettime(clockid_t clock, struct timespec *t) { return (int)CALL(SYS_clock_gettime, clock, t); }
int usleep(useconds_t us)
{
	struct timespec t = { us / 1000000, (long)(us % 1000000) * 1000 };

	return (int)CALL(SYS_nanosleep, &t, NULL);
}
int getrlimit(__rlimit_resource_t resource, struct rlimit *l) { return (int)CALL(SYS_prlimit64, 0, resource, NULL, l); }
int setrlimit(__rlimit_resource_t resource, const struct rlimit *l) { return (int)CALL(SYS_prlimit64, 0, resource, l, NULL); }
dev_t gnu_dev_makedev(unsigned major, unsigned minor)
{
	return ((dev_t)(major & 0xfffu) << 8) | ((dev_t)(major & 0xfffff000u) << 32) | (minor & 0xffu) | ((dev_t)(minor & 0xffffff00u) << 12);
}

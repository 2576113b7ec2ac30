/* opaque.c - purpose: mark directories as opaque for overlayfs, by a tiny process that alone keeps CAP_SYS_ADMIN. */
#include "runtime-lite/pull/opaque.h"

#include <errno.h>
#include <pthread.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER; /* one question at a time on the socket */

static ssize_t receive_fd(int socket_fd, int *ret_fd)
{
	char byte, control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
	ssize_t n;

	do
		n = recvmsg(socket_fd, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
	*ret_fd = -1;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(ret_fd, CMSG_DATA(c), sizeof(int));
	return n;
}

static ssize_t send_fd(int socket_fd, int fd)
{
	char byte = 0, control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	return sendmsg(socket_fd, &msg, MSG_NOSIGNAL);
}

static int keep_one_capability(void)
{
	const cap_value_t keep[] = { CAP_SYS_ADMIN };
	cap_t caps = cap_init();
	int r = 0;

	if (!caps || cap_set_flag(caps, CAP_PERMITTED, 1, keep, CAP_SET) < 0 ||
		cap_set_flag(caps, CAP_EFFECTIVE, 1, keep, CAP_SET) < 0 || cap_set_proc(caps) < 0)
		r = -errno;
	cap_free(caps);
	return r;
}

static int allow_little(void)
{
	static const int allowed[] = { SCMP_SYS(recvmsg), SCMP_SYS(sendto), SCMP_SYS(fsetxattr), SCMP_SYS(fstat),
		SCMP_SYS(newfstatat), SCMP_SYS(close), SCMP_SYS(exit_group), SCMP_SYS(rt_sigreturn), SCMP_SYS(restart_syscall) };
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
	int r = filter ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(allowed); i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
	if (r == 0)
		r = seccomp_load(filter);
	seccomp_release(filter);
	return r;
}

static _Noreturn void serve(int socket_fd)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "pull-opaque");
	/* Nothing inherited is needed: not the channel, not the store. */
	if (socket_fd != 0)
		dup2(socket_fd, 0);
	if (close_range(3, ~0u, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || keep_one_capability() < 0)
		_exit(1);
#if !defined(__SANITIZE_ADDRESS__)
	if (allow_little() < 0)
		_exit(1);
#else
	(void)allow_little;
#endif
	for (;;) {
		int32_t answer = 0;
		struct stat st;
		int fd;

		if (receive_fd(0, &fd) <= 0)
			_exit(0);
		if (fd < 0 || fstat(fd, &st) < 0 || !S_ISDIR(st.st_mode))
			answer = ENOTDIR;
		else if (fsetxattr(fd, "trusted.overlay.opaque", "y", 1, 0) < 0)
			answer = errno;
		if (fd >= 0)
			close(fd);
		if (send(0, &answer, sizeof(answer), MSG_NOSIGNAL) != sizeof(answer))
			_exit(1);
	}
}

int opaque_start(int *ret_fd, struct error *err)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return error_sys(err, errno, "start the helper for opaque directories");
	pid_t pid = fork();
	if (pid < 0) {
		int r = error_sys(err, errno, "start the helper for opaque directories");

		close(pair[0]);
		close(pair[1]);
		return r;
	}
	if (pid == 0)
		serve(pair[1]);
	close(pair[1]);
	*ret_fd = pair[0];
	return 0;
}

int opaque_mark(int socket_fd, int dir_fd)
{
	int32_t answer = EPIPE;

	pthread_mutex_lock(&turn);
	if (send_fd(socket_fd, dir_fd) != 1 || recv(socket_fd, &answer, sizeof(answer), 0) != sizeof(answer))
		answer = EPIPE;
	pthread_mutex_unlock(&turn);
	return -answer;
}

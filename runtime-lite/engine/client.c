/* client.c - purpose: one request to a pod's monitor. */
#include "runtime-lite/engine/client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/sys/file.h"

int client_connect(int dir_fd, int *ret_fd, struct error *err)
{
	_cleanup_fd_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct timeval timeout = { .tv_sec = CLIENT_TIMEOUT_MS / 1000 };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	if (fd < 0)
		return error_sys(err, errno, "connect to the pod's monitor");
	/* The send time-out bounds connect() too, when the backlog of a hung monitor is full. */
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d/monitor.sock", dir_fd);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
		if (errno == ENOENT || errno == ECONNREFUSED || errno == ENOTDIR)
			return error_set(err, ERROR_NOT_FOUND, "the pod's monitor does not run");
		if (errno == EAGAIN)
			return error_set(err, ERROR_DEADLINE, "connect to the pod's monitor: no answer within %d s",
				CLIENT_TIMEOUT_MS / 1000);
		return error_sys(err, errno, "connect to the pod's monitor");
	}
	*ret_fd = steal_fd(&fd);
	return 0;
}

int client_send(int fd, enum monitor_op op, const char *id, int signal, uint32_t fd_mask, const int *fds, size_t n_fds,
	struct error *err)
{
	struct monitor_request req = { .op = op, .signal = signal, .fd_mask = fd_mask };

	snprintf(req.id, sizeof(req.id), "%s", id ? id : "");
	return client_send_request(fd, &req, fds, n_fds, err);
}

int client_send_request(int fd, const struct monitor_request *request, const int *fds, size_t n_fds, struct error *err)
{
	struct monitor_request req = *request;
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int) * MONITOR_FDS_MAX)];
	} control = { 0 };
	struct iovec iov = { &req, sizeof(req) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	assert(n_fds <= MONITOR_FDS_MAX);
	req.version = MONITOR_VERSION;
	if (n_fds) {
		control.header = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int) * n_fds), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.header), fds, sizeof(int) * n_fds);
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
	}
	while (sendmsg(fd, &msg, MSG_NOSIGNAL) < 0) {
		if (errno == EINTR)
			continue;
		if (errno == EPIPE || errno == ECONNRESET)
			return error_set(err, ERROR_UNAVAILABLE, "the pod's monitor has gone");
		return error_sys(err, errno, "send to the pod's monitor");
	}
	return 0;
}

static int wait_readable(int fd, int timeout_ms, struct error *err)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t deadline = clock_monotonic_ns() + (uint64_t)MAX(timeout_ms, 0) * 1000000;

	for (;;) {
		int left = -1;

		if (timeout_ms >= 0) {
			uint64_t now = clock_monotonic_ns();

			left = now >= deadline ? 0 : (int)((deadline - now + 999999) / 1000000);
		}
		int n = poll(&p, 1, left);

		if (n > 0)
			return 0;
		if (n == 0)
			return error_set(err, ERROR_DEADLINE, "the pod's monitor does not answer within %d ms", timeout_ms);
		if (errno != EINTR)
			return error_sys(err, errno, "wait for the pod's monitor");
	}
}

static void take_fd(struct msghdr *msg, int *ret_fd)
{
	for (struct cmsghdr *h = CMSG_FIRSTHDR(msg); h; h = CMSG_NXTHDR(msg, h)) {
		int fd;

		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS || h->cmsg_len != CMSG_LEN(sizeof(fd)))
			continue;
		memcpy(&fd, CMSG_DATA(h), sizeof(fd));
		if (ret_fd && *ret_fd < 0)
			*ret_fd = fd;
		else
			close(fd);
	}
}

int client_receive(int fd, int timeout_ms, struct monitor_reply *ret, int *ret_fd, struct error *err)
{
	struct monitor_reply reply;
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { &reply, sizeof(reply) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	int r = wait_readable(fd, timeout_ms, err);

	if (ret_fd)
		*ret_fd = -1;
	if (r < 0)
		return r;
	ssize_t n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);

	if (n > 0)
		take_fd(&msg, ret_fd);
	if (n == 0 || (n < 0 && errno == ECONNRESET))
		return error_set(err, ERROR_UNAVAILABLE, "the pod's monitor has gone");
	if (n < 0)
		return error_sys(err, errno, "receive from the pod's monitor");
	if (n != sizeof(reply) || reply.version != MONITOR_VERSION)
		return error_set(err, ERROR_INTERNAL, "the pod's monitor speaks another version of the protocol");
	reply.id[LAUNCH_ID_MAX] = '\0';
	reply.error.text[sizeof(reply.error.text) - 1] = '\0';
	if (reply.kind == MONITOR_FAILED) {
		if (err)
			*err = reply.error;
		return reply.error.sys ? -reply.error.sys : error_code_errno(reply.error.code);
	}
	*ret = reply;
	return 0;
}

int client_call(int dir_fd, enum monitor_op op, const char *id, int signal, const int *fds, size_t n_fds,
	struct monitor_reply *ret, int *ret_fd, struct error *err)
{
	_cleanup_fd_ int fd = -1;
	struct monitor_reply reply;
	int r = client_connect(dir_fd, &fd, err);

	if (r == 0)
		r = client_send(fd, op, id, signal, 0, fds, n_fds, err);
	return r < 0 ? r : client_receive(fd, CLIENT_TIMEOUT_MS, ret ? ret : &reply, ret_fd, err);
}

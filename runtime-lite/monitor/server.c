/* server.c - purpose: connections of the daemon: requests in, replies and events out. */
#include <stdio.h>
#include <sys/socket.h>

#include "runtime-lite/monitor/monitor.h"
#include "runtime-lite/monitor/sys.h"

struct connection {
	int fd; /* 0: free */
	bool subscribed, stopper;
};

static struct connection connections[CONNECTIONS_MAX];

void server_accept(void)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	_cleanup_fd_ int fd = accept4(monitor.listen, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	/* The socket is 0600 in a directory that is 0700; this is the second lock. */
	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || peer.uid != 0)
		return;
	for (uint32_t i = 0; i < CONNECTIONS_MAX; i++)
		if (connections[i].fd == 0) {
			if (watch_add(fd, WATCH_CONNECTION, i) == 0)
				connections[i] = (struct connection){ .fd = steal_fd(&fd) };
			return;
		}
}

/* A start that nobody waits for any more goes on: the daemon will find its pid file. An exec is for its caller alone. */
void server_close(int i)
{
	if (i < 0 || connections[i].fd == 0)
		return;
	watch_remove(connections[i].fd);
	close(connections[i].fd);
	connections[i] = (struct connection){ 0 };
	attach_closed(i);
	for (size_t k = 0; k < PROCESSES_MAX; k++) {
		if (processes[k].kind == PROCESS_FREE || processes[k].connection != i)
			continue;
		processes[k].connection = -1;
		if (processes[k].kind == PROCESS_EXEC)
			process_kill_tree(&processes[k]);
	}
}

void server_reply(int i, const struct monitor_reply *reply, int fd)
{
	struct monitor_reply copy = *reply;
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { .header = { .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
	struct iovec iov = { &copy, sizeof(copy) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (i < 0 || connections[i].fd == 0)
		return;
	copy.version = MONITOR_VERSION;
	if (fd >= 0) {
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control.space);
	}
	if (sendmsg(connections[i].fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(copy))
		return;
	/* A daemon that has left a hundred events unread misses this one, but must not think that we died: it will look at
	 * the exit files at the next. */
	if (errno != EAGAIN || !connections[i].subscribed)
		server_close(i);
}

bool server_crowded(void)
{
	int n = 0;

	for (int i = 0; i < CONNECTIONS_MAX; i++)
		n += connections[i].fd != 0;
	return n > CONNECTIONS_MAX - CONNECTIONS_KEPT;
}

void server_exited(const struct monitor_reply *event)
{
	for (int i = 0; i < CONNECTIONS_MAX; i++)
		if (connections[i].fd && connections[i].subscribed)
			server_reply(i, event, -1);
}

static void reply_done(int i, int status, int fd)
{
	struct monitor_reply reply = { .kind = MONITOR_DONE, .status = status, .pid = getpid() };

	server_reply(i, &reply, fd);
}

static void reply_error(int i, enum error_code code, const char *what)
{
	struct monitor_reply reply = { .kind = MONITOR_FAILED };

	error_set(&reply.error, code, "%s", what);
	server_reply(i, &reply, -1);
}

/* All of the pod is gone and recorded: say so, and end. */
void server_stopped(void)
{
	if (!monitor.stopping && !monitor.leaving)
		return;
	for (int i = 0; i < CONNECTIONS_MAX; i++)
		if (connections[i].fd && connections[i].stopper)
			reply_done(i, 0, -1);
	_exit(0);
}

static void cancel(int i)
{
	for (size_t k = 0; k < PROCESSES_MAX; k++)
		if (processes[k].kind != PROCESS_FREE && processes[k].connection == i)
			process_kill_tree(&processes[k]);
}

static void send_signal(int i, const struct monitor_request *req)
{
	struct process *p = process_find(req->id);

	if (p && !p->ended && syscall(SYS_pidfd_send_signal, p->pidfd, req->signal, NULL, 0) < 0 && errno != ESRCH) {
		reply_error(i, ERROR_INVALID, "no such signal");
		return;
	}
	reply_done(i, 0, -1);
}

static void change_log(int i, const struct monitor_request *req, int *fds, int n_fds)
{
	struct process *p = process_find(req->id);

	if (!p || p->ended || n_fds < 1) {
		reply_error(i, ERROR_PRECONDITION, "the container does not run");
		return;
	}
	if (p->log >= 0)
		close(p->log);
	p->log = steal_fd(&fds[0]);
	reply_done(i, 0, -1);
}

static void send_netns(int i)
{
	_cleanup_fd_ int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	reply_done(i, 0, fd);
}

static void stop(int i)
{
	monitor.stopping = true;
	connections[i].stopper = true;
	process_kill_all();
	if (!process_any())
		server_stopped();
}

static void handle(int i, const struct monitor_request *req, int *fds, int n_fds)
{
	const struct process *p;

	switch (req->op) {
	case MONITOR_SUBSCRIBE:
		connections[i].subscribed = true;
		reply_done(i, 0, -1);
		break;
	case MONITOR_START:
		process_start(i, req, fds, n_fds);
		break;
	case MONITOR_EXEC:
		process_exec(i, req, fds, n_fds);
		break;
	case MONITOR_CANCEL:
		cancel(i);
		break;
	case MONITOR_SIGNAL:
		send_signal(i, req);
		break;
	case MONITOR_LOG:
		change_log(i, req, fds, n_fds);
		break;
	case MONITOR_NETNS:
		send_netns(i);
		break;
	case MONITOR_STATE:
		p = process_find(req->id);
		reply_done(i, !p ? 0 : p->state == PROCESS_RUNNING ? 2 : 1, -1);
		break;
	case MONITOR_STOP:
		stop(i);
		break;
	case MONITOR_ATTACH:
		attach_begin(i, req, fds, n_fds);
		break;
	case MONITOR_CLOSE_STDIN:
		attach_close_stdin(i);
		break;
	default:
		reply_error(i, ERROR_UNIMPLEMENTED, "this monitor does not know the request");
	}
}

void server_readable(uint32_t i)
{
	struct monitor_request req;
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int) * MONITOR_FDS_MAX)];
	} control;
	struct iovec iov = { &req, sizeof(req) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	int fds[MONITOR_FDS_MAX], n_fds = 0;

	if (connections[i].fd == 0)
		return;
	ssize_t n = recvmsg(connections[i].fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	for (struct cmsghdr *h = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL; h; h = CMSG_NXTHDR(&msg, h))
		if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS && n_fds == 0) {
			n_fds = (int)((h->cmsg_len - CMSG_LEN(0)) / sizeof(int));
			memcpy(fds, CMSG_DATA(h), (size_t)n_fds * sizeof(int));
		}
	if (n <= 0) {
		server_close((int)i);
	} else if (n != sizeof(req) || req.version != MONITOR_VERSION) {
		reply_error((int)i, ERROR_UNIMPLEMENTED, "this monitor speaks another version of the protocol");
	} else {
		req.id[LAUNCH_ID_MAX] = '\0';
		handle((int)i, &req, fds, n_fds);
	}
	for (int k = 0; k < n_fds; k++)
		if (fds[k] >= 0)
			close(fds[k]);
}

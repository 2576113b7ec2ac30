/* pod_stream.c - purpose: execs and attachments for callers with a loop. */
#include "runtime-lite/engine/pod_stream.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>

#include "runtime-lite/engine/pod_internal.h"

int pod_stream_exec(struct pod_monitor *m, const char *container_dir, const struct exec_spec *spec,
	struct pod_terminal_size size, const int stdio[3], int *ret_conn, struct error *err)
{
	return pod_exec_request(m, container_dir, spec, stdio, size.rows, size.columns, ret_conn, err);
}

int pod_stream_attach(struct pod_monitor *m, const char *container_id, bool want_input, int stdout_fd, int stderr_fd,
	int *ret_conn, int *ret_input, struct error *err)
{
	struct monitor_request req = { .op = MONITOR_ATTACH, .fd_mask = want_input };
	struct monitor_reply reply;
	_cleanup_fd_ int conn = -1;
	int fds[2];
	size_t n = 0;
	int r = client_connect(m->dir_fd, &conn, err);

	if (r == -ENOENT)
		return error_set(err, ERROR_PRECONDITION, "container %s: does not run", container_id);
	snprintf(req.id, sizeof(req.id), "%s", container_id);
	for (int i = 0; i < 2; i++) {
		int fd = i ? stderr_fd : stdout_fd;

		if (fd < 0)
			continue;
		req.fd_mask |= 1u << (i + 1);
		fds[n++] = fd;
	}
	if (r == 0)
		r = client_send_request(conn, &req, fds, n, err);
	if (r == 0)
		r = client_receive(conn, CLIENT_TIMEOUT_MS, &reply, ret_input, err);
	if (r == 0)
		*ret_conn = steal_fd(&conn);
	return r;
}

void pod_stream_next(int conn, struct pod_stream_event *ret)
{
	struct pollfd p = { .fd = conn, .events = POLLIN };
	struct pod_stream_event ev = { .terminal = -1 };
	struct monitor_reply reply;

	if (poll(&p, 1, 0) > 0) {
		int r = client_receive(conn, 0, &reply, &ev.terminal, &ev.error);

		if (r == -EAGAIN || r == -EINTR)
			ev.kind = POD_STREAM_NONE;
		else if (r < 0)
			ev.kind = ev.error.code == ERROR_UNAVAILABLE ? POD_STREAM_LOST : POD_STREAM_FAILED;
		else if (reply.kind == MONITOR_STARTED)
			ev.kind = POD_STREAM_STARTED;
		else if (reply.kind == MONITOR_EXITED)
			ev.kind = POD_STREAM_EXITED;
		ev.status = r < 0 ? 0 : reply.status;
	}
	*ret = ev;
}

void pod_stream_close_stdin(int conn)
{
	struct error ignored;

	(void)!client_send(conn, MONITOR_CLOSE_STDIN, NULL, 0, 0, NULL, 0, &ignored);
}

/*
 * attach.c - purpose: copies of a container's output for whoever is attached, and its stdin.
 *
 * The log comes first: a client that does not read loses output, it never holds the container up for longer than
 * PATIENCE_MS, and that only once until it has caught up with everything.
 */
#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>

#include "runtime-lite/monitor/monitor.h"
#include "runtime-lite/monitor/sys.h"

enum { ATTACHMENTS_MAX = 128, PATIENCE_MS = 20, PIPE_BYTES = 1 << 20 };

static struct attachment {
	bool used;
	bool lagging[2]; /* its pipe was full, and has not been empty since */
	int16_t connection, process;
	int out[2]; /* -1: not wanted, or its reader has gone */
} attachments[ATTACHMENTS_MAX];

static void release(struct attachment *a)
{
	for (int i = 0; i < 2; i++)
		if (a->out[i] >= 0)
			close(a->out[i]);
	processes[a->process].attached--;
	a->used = false;
}

static struct attachment *new_attachment(int connection, struct process *p)
{
	for (size_t i = 0; i < ATTACHMENTS_MAX; i++) {
		struct attachment *a = &attachments[i];

		if (a->used)
			continue;
		*a = (struct attachment){ .used = true,
			.connection = (int16_t)connection,
			.process = (int16_t)(p - processes),
			.out = { -1, -1 } };
		p->attached++;
		return a;
	}
	return NULL;
}

static void refuse(int connection, enum error_code code, const char *why)
{
	struct monitor_reply reply = { .kind = MONITOR_FAILED };

	error_set(&reply.error, code, "%s", why);
	server_reply(connection, &reply, -1);
}

void attach_begin(int connection, const struct monitor_request *req, int *fds, int n_fds)
{
	struct monitor_reply reply = { .kind = MONITOR_DONE };
	struct process *p = process_find(req->id);
	struct attachment *a;
	int next = 0;

	if (!p || p->state != PROCESS_RUNNING || p->ended) {
		refuse(connection, ERROR_PRECONDITION, "the container does not run");
		return;
	}
	a = server_crowded() ? NULL : new_attachment(connection, p);
	if (!a) {
		refuse(connection, ERROR_EXHAUSTED, "too many are attached to containers of the pod");
		return;
	}
	for (int i = 0; i < 2; i++) {
		if (!(req->fd_mask >> (i + 1) & 1) || next >= n_fds)
			continue;
		a->out[i] = fds[next];
		fds[next++] = -1;
		(void)!fcntl(a->out[i], F_SETFL, O_NONBLOCK);
		(void)!fcntl(a->out[i], F_SETPIPE_SZ, PIPE_BYTES);
	}
	server_reply(connection, &reply, req->fd_mask & 1 ? (p->tty ? p->out[0].fd : p->input) : -1);
}

static struct attachment *find(int connection)
{
	for (size_t i = 0; i < ATTACHMENTS_MAX; i++)
		if (attachments[i].used && attachments[i].connection == connection)
			return &attachments[i];
	return NULL;
}

void attach_close_stdin(int connection)
{
	struct attachment *a = find(connection);
	struct process *p = a ? &processes[a->process] : NULL;

	if (p && p->input >= 0) {
		close(p->input);
		p->input = -1;
	}
}

static bool is_empty(int fd)
{
	int n = 0;

	return ioctl(fd, FIONREAD, &n) == 0 && n == 0;
}

static void copy(struct attachment *a, int which, const char *text, size_t len)
{
	int fd = a->out[which];

	if (a->lagging[which] && is_empty(fd))
		a->lagging[which] = false;
	while (len > 0) {
		struct pollfd p = { .fd = fd, .events = POLLOUT };
		ssize_t n = write(fd, text, len);

		if (n > 0) {
			text += n;
			len -= (size_t)n;
		} else if (n < 0 && errno == EAGAIN) {
			if (!a->lagging[which] && poll(&p, 1, PATIENCE_MS) > 0)
				continue;
			a->lagging[which] = true;
			return;
		} else if (errno != EINTR) {
			close(fd);
			a->out[which] = -1;
			return;
		}
	}
}

void attach_copy(const struct process *p, int which, const char *text, size_t len)
{
	for (size_t i = 0; i < ATTACHMENTS_MAX; i++)
		if (attachments[i].used && &processes[attachments[i].process] == p && attachments[i].out[which] >= 0)
			copy(&attachments[i], which, text, len);
}

void attach_ended(const struct process *p, const struct monitor_reply *reply)
{
	for (size_t i = 0; i < ATTACHMENTS_MAX; i++)
		if (attachments[i].used && &processes[attachments[i].process] == p) {
			int connection = attachments[i].connection;

			release(&attachments[i]);
			server_reply(connection, reply, -1);
		}
}

void attach_closed(int connection)
{
	struct attachment *a = find(connection);

	if (a)
		release(a);
}

/*
 * process.c - purpose: the pod's processes, from the plan to the exit record.
 *
 * The end of a container, in this order: reaped, its left-over processes killed, output drained, OOM counter read, exit
 * file written, then told. Whoever hears of an exit finds the record.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "runtime-lite/monitor/monitor.h"
#include "runtime-lite/monitor/sys.h"

enum { PLAN_MAX = 32 << 20 };

struct process processes[PROCESSES_MAX];
static struct error errors[PROCESSES_MAX]; /* of those that failed to start */
static uint32_t exec_count;

/* A plan in memory; unmapped by the parent as soon as the child has its copy. */
struct plan {
	void *data, *arena;
	size_t len, arena_len;
	struct launch l;
};

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static uint32_t index_of(const struct process *p)
{
	return (uint32_t)(p - processes);
}

struct process *process_find(const char *id)
{
	for (size_t i = 0; i < PROCESSES_MAX; i++)
		if (processes[i].kind == PROCESS_CONTAINER && strcmp(processes[i].id, id) == 0)
			return &processes[i];
	return NULL;
}

bool process_any(void)
{
	for (size_t i = 0; i < PROCESSES_MAX; i++)
		if (processes[i].kind == PROCESS_CONTAINER || processes[i].kind == PROCESS_EXEC)
			return true;
	return false;
}

struct process *process_new(enum process_kind kind, const char *id, int connection)
{
	for (size_t i = 0; i < PROCESSES_MAX; i++) {
		struct process *p = &processes[i];

		if (p->kind != PROCESS_FREE)
			continue;
		*p = (struct process){ .kind = kind, .connection = (int16_t)connection, .owner = -1, .pid = -1, .pidfd = -1, .sync = -1,
			.track = -1, .log = -1, .oom = -1, .input = -1, .pty = -1, .out = { { .fd = -1 }, { .fd = -1 } } };
		snprintf(p->id, sizeof(p->id), "%s", id);
		return p;
	}
	return NULL;
}

static void process_free(struct process *p)
{
	log_close(p);
	if (p->sync >= 0)
		watch_remove(p->sync);
	close_fd(&p->sync);
	close_fd(&p->pidfd);
	close_fd(&p->track);
	close_fd(&p->oom);
	close_fd(&p->input);
	close_fd(&p->pty);
	p->kind = PROCESS_FREE;
}

static void plan_done(struct plan *plan)
{
	if (plan->data)
		munmap(plan->data, plan->len);
	if (plan->arena)
		munmap(plan->arena, plan->arena_len);
	plan->data = plan->arena = NULL;
}

static int plan_read(int fd, struct plan *plan, struct error *err)
{
	struct stat st;

	memset(plan, 0, sizeof(*plan));
	if (fstat(fd, &st) < 0 || st.st_size <= 0 || st.st_size > PLAN_MAX)
		return error_set(err, ERROR_INVALID, "launch plan: of impossible size");
	plan->len = (size_t)st.st_size;
	plan->arena_len = plan->len * 2 + 4096;
	void *data = mmap(NULL, plan->len, PROT_READ, MAP_PRIVATE, fd, 0);
	void *arena = mmap(NULL, plan->arena_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	plan->data = data == MAP_FAILED ? NULL : data;
	plan->arena = arena == MAP_FAILED ? NULL : arena;
	if (!plan->data || !plan->arena)
		return error_sys(err, errno, "launch plan");
	if (launch_decode(plan->data, plan->len, plan->arena, plan->arena_len, &plan->l) < 0)
		return error_set(err, ERROR_INVALID, "launch plan: damaged, or of a version that this monitor does not know");
	return 0;
}

static void reply_failed(int connection, const struct error *err)
{
	struct monitor_reply reply = { .kind = MONITOR_FAILED, .error = *err };

	server_reply(connection, &reply, -1);
}

static uint64_t oom_kills(int fd)
{
	char text[1024];
	ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return 0;
	text[n] = '\0';
	const char *p = strstr(text, "oom_kill ");

	return p ? strtoull(p + 9, NULL, 10) : 0;
}

/* Makes processes of the next clone3 be born into another PID namespace; `undo` goes back to our own. */
static int enter_pidns(const struct launch *l, const struct process *owner, struct error *err)
{
	int fd = -1, r = 0;
	const struct process *target = NULL;

	if (l->is_exec)
		target = owner;
	else if (l->pid == LAUNCH_NS_TARGET)
		target = process_find(l->pid_target);
	else if (l->pid == LAUNCH_NS_POD)
		fd = monitor.pod_pidns;
	else
		return 0;
	if (!target && fd < 0)
		return error_set(err, ERROR_PRECONDITION, l->pid == LAUNCH_NS_POD ? "the pod shares no PID namespace" :
			"the target container of the PID namespace does not run");
	if (monitor.self_pidns < 0)
		monitor.self_pidns = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
	if (monitor.self_pidns < 0)
		return error_sys(err, errno, "open the monitor's PID namespace");
	r = (int)syscall(SYS_setns, target ? target->pidfd : fd, CLONE_NEWPID);
	return r < 0 ? error_sys(err, errno, "join the PID namespace") : 0;
}

static void leave_pidns(void)
{
	if (monitor.self_pidns >= 0)
		(void)!syscall(SYS_setns, monitor.self_pidns, CLONE_NEWPID);
}

static int open_stream(struct process *p, int which, int *child_end)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	p->out[which].fd = ends[0];
	*child_end = ends[1];
	return fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

static int open_stdio(struct process *p, const struct launch *l, int stdio[3])
{
	int ends[2], r = 0;

	if (l->tty)
		return 0;
	r = open_stream(p, 0, &stdio[1]);
	if (r == 0)
		r = open_stream(p, 1, &stdio[2]);
	if (r == 0 && l->stdin_open) {
		if (pipe2(ends, O_CLOEXEC) < 0)
			return -errno;
		stdio[0] = ends[0];
		p->input = ends[1];
		r = fcntl(p->input, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
	}
	return r;
}

/* clone3 itself. The parent's ends of sync and pipes are closed in the child, or it would never see them end. */
static int spawn(struct process *p, struct child *c, const struct process *owner, struct error *err)
{
	const struct launch *l = c->l;
	uint64_t flags = l->is_exec ? 0 : CLONE_NEWNS | (l->pid == LAUNCH_NS_OWN ? CLONE_NEWPID : 0);
	_cleanup_fd_ int unified = -1, leaf = -1;
	int sync[2];

	if (l->cgroup_unified) {
		unified = open(l->cgroup_unified, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (unified >= 0 && c->exec_leaf)
			leaf = openat(unified, c->exec_leaf, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (unified < 0 || (c->exec_leaf && leaf < 0))
			return error_sys(err, errno, "open cgroup %s", l->cgroup_unified);
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sync) < 0)
		return error_sys(err, errno, "make a socket pair");
	int r = enter_pidns(l, owner, err);
	pid_t pid = r < 0 ? -1 : sys_clone3(flags, &p->pidfd, leaf >= 0 ? leaf : unified);

	if (pid == 0) {
		close(sync[0]);
		c->sync = sync[1];
		child_main(c);
	}
	int failed = errno;

	leave_pidns();
	close(sync[1]);
	if (pid < 0) {
		close(sync[0]);
		if (r < 0)
			return r;
		/* A PID namespace whose first process is gone takes no more. */
		return failed == ENOMEM && owner ? error_set(err, ERROR_PRECONDITION, "the container does not run") :
						   error_sys(err, failed, "clone");
	}
	p->pid = pid;
	p->sync = sync[0];
	fcntl(p->sync, F_SETFL, O_NONBLOCK);
	return 0;
}

static int watch_process(struct process *p, struct error *err)
{
	int r = watch_add(p->sync, WATCH_SYNC, index_of(p));

	for (int i = 0; i < 2 && r == 0; i++)
		if (p->out[i].fd >= 0)
			r = watch_add(p->out[i].fd, WATCH_STREAM, index_of(p) * 2 + (uint32_t)i);
	return r < 0 ? error_sys(err, r, "watch the process") : 0;
}

static int start(struct process *p, const struct launch *l, int *fds, int n_fds, struct error *err)
{
	struct child c = { .l = l, .stdio = { -1, -1, -1 }, .target = -1 };
	int r = record_prepare(l->id);

	if (r < 0)
		return error_sys(err, r, "prepare the directory of container %s", l->id);
	p->tty = l->tty;
	p->track = open(l->cgroup_track, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (p->track < 0)
		return error_sys(err, errno, "open cgroup %s", l->cgroup_track);
	if (l->oom_file)
		p->oom = open(l->oom_file, O_RDONLY | O_CLOEXEC);
	p->oom_before = oom_kills(p->oom);
	r = open_stdio(p, l, c.stdio);
	if (r == 0)
		r = spawn(p, &c, NULL, err);
	else
		error_sys(err, r, "make the pipes of the container");
	for (int i = 0; i < 3; i++)
		close_fd(&c.stdio[i]);
	if (r == 0 && n_fds > 1)
		p->log = steal_fd(&fds[1]);
	return r < 0 ? r : watch_process(p, err);
}

/* A start that failed before its child was there. */
static void abandon(struct process *p, int connection, const struct error *err)
{
	if (p && p->pid > 0) { /* goes the way of all failed starts, by process_reap() */
		errors[index_of(p)] = *err;
		p->failed = true;
		process_kill_tree(p);
		return;
	}
	if (p)
		process_free(p);
	reply_failed(connection, err);
}

void process_start(int connection, const struct monitor_request *req, int *fds, int n_fds)
{
	struct error err = ERROR_INIT;
	struct process *p = NULL;
	struct plan plan = { 0 };
	int r;

	if (n_fds < 1)
		r = error_set(&err, ERROR_INVALID, "start: no plan");
	else if (monitor.stopping || monitor.leaving)
		r = error_set(&err, ERROR_PRECONDITION, "the pod is being stopped");
	else if (process_find(req->id))
		r = error_set(&err, ERROR_EXISTS, "container %s runs already", req->id);
	else
		r = plan_read(fds[0], &plan, &err);
	if (r == 0 && !str_eq(plan.l.id, req->id))
		r = error_set(&err, ERROR_INVALID, "start: plan of another container");
	if (r == 0) {
		p = process_new(PROCESS_CONTAINER, req->id, connection);
		r = p ? start(p, &plan.l, fds, n_fds, &err) : error_set(&err, ERROR_EXHAUSTED, "the pod has %d processes", PROCESSES_MAX);
	}
	plan_done(&plan);
	if (r < 0)
		abandon(p, connection, &err);
}

static int exec_start(struct process *p, struct process *owner, struct plan *plan, const struct monitor_request *req, int *fds,
	int n_fds, struct error *err)
{
	char name[EXEC_NAME_BYTES];
	struct child c = { .l = &plan->l, .stdio = { -1, -1, -1 }, .target = owner->pidfd, .exec_leaf = name, .rows = req->rows,
		.columns = req->columns };
	int next = 1;

	p->owner = (int16_t)index_of(owner);
	p->tty = plan->l.tty;
	p->number = ++exec_count;
	snprintf(name, sizeof(name), "exec-%u", p->number);
	for (int i = 0; i < 3; i++)
		if (req->fd_mask >> i & 1 && next < n_fds)
			c.stdio[i] = fds[next++];
	if (mkdirat(owner->track, name, 0755) < 0)
		return error_sys(err, errno, "make a cgroup for the exec");
	p->track = openat(owner->track, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (p->track < 0)
		return error_sys(err, errno, "make a cgroup for the exec");
	int r = spawn(p, &c, owner, err);

	return r < 0 ? r : watch_process(p, err);
}

void process_exec(int connection, const struct monitor_request *req, int *fds, int n_fds)
{
	struct process *owner = process_find(req->id), *p = NULL;
	struct error err = ERROR_INIT;
	struct plan plan = { 0 };
	int r;

	if (n_fds < 1)
		r = error_set(&err, ERROR_INVALID, "exec: no plan");
	else if (!owner || owner->state != PROCESS_RUNNING || owner->ended)
		r = error_set(&err, ERROR_PRECONDITION, "container %s does not run", req->id);
	else if (server_crowded())
		r = error_set(&err, ERROR_EXHAUSTED, "too many execs run in the pod");
	else
		r = plan_read(fds[0], &plan, &err);
	if (r == 0) {
		p = process_new(PROCESS_EXEC, req->id, connection);
		r = p ? exec_start(p, owner, &plan, req, fds, n_fds, &err) :
			error_set(&err, ERROR_EXHAUSTED, "the pod has %d processes", PROCESSES_MAX);
	}
	plan_done(&plan);
	if (r < 0) {
		char name[EXEC_NAME_BYTES];

		if (p && p->pid <= 0 && p->track >= 0) {
			snprintf(name, sizeof(name), "exec-%u", p->number);
			unlinkat(owner->track, name, AT_REMOVEDIR);
		}
		abandon(p, connection, &err);
	}
}

static void started(struct process *p)
{
	struct monitor_reply reply = { .kind = MONITOR_STARTED, .pid = p->pid };

	p->state = PROCESS_RUNNING;
	p->started_ns = now_realtime_ns();
	watch_remove(p->sync);
	close_fd(&p->sync);
	if (p->kind == PROCESS_CONTAINER)
		record_pid(p);
	reply.time_ns = p->started_ns;
	server_reply(p->connection, &reply, p->pty);
	close_fd(&p->pty);
	if (p->kind == PROCESS_CONTAINER)
		p->connection = -1;
}

static void take_terminal(struct process *p, int fd)
{
	if (p->kind == PROCESS_EXEC) {
		close_fd(&p->pty);
		p->pty = fd;
		return;
	}
	close_fd(&p->out[0].fd);
	p->out[0].fd = fd;
	fcntl(fd, F_SETFL, O_NONBLOCK);
	watch_add(fd, WATCH_STREAM, index_of(p) * 2);
}

/* The child's own report. End of file after READY is success: exec closed the socket. */
void process_sync(uint32_t index)
{
	struct process *p = &processes[index];
	struct child_message m;
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { &m, sizeof(m) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	ssize_t n;

	if (p->kind == PROCESS_FREE || p->sync < 0)
		return;
	while ((n = recvmsg(p->sync, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT)) == sizeof(m)) {
		struct cmsghdr *h = CMSG_FIRSTHDR(&msg);

		if (h && h->cmsg_type == SCM_RIGHTS && h->cmsg_len == CMSG_LEN(sizeof(int))) {
			int fd;

			memcpy(&fd, CMSG_DATA(h), sizeof(fd));
			take_terminal(p, fd);
		}
		if (m.kind == CHILD_READY)
			p->state = PROCESS_READY;
		if (m.kind == CHILD_ERROR) {
			p->failed = true;
			errors[index] = m.error;
		}
		msg.msg_controllen = sizeof(control);
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (!p->failed && p->state == PROCESS_READY) {
		started(p);
		return;
	}
	/* It ends by itself, or was killed on the way; process_reap() says so. */
	watch_remove(p->sync);
	close_fd(&p->sync);
}

void process_stream(uint32_t index)
{
	struct process *p = &processes[index / 2];

	if (p->kind != PROCESS_FREE)
		log_drain(p, (int)(index % 2), false);
}

void process_kill_all(void)
{
	for (size_t i = 0; i < PROCESSES_MAX; i++)
		if (processes[i].kind != PROCESS_FREE)
			process_kill_tree(&processes[i]);
}

static int exit_status(const siginfo_t *info)
{
	return info->si_code == CLD_EXITED ? info->si_status & 255 : 128 + info->si_status;
}

static void start_failed(struct process *p, int status)
{
	struct error err = errors[index_of(p)];

	if (!p->failed)
		error_set(&err, ERROR_ABORTED, "died while it was being set up (status %d%s)", status,
			oom_kills(p->oom) > p->oom_before ? ", out of memory" : "");
	process_kill_tree(p);
	if (p->kind == PROCESS_EXEC)
		process_leave_cgroup(p);
	reply_failed(p->connection, &err);
	process_free(p);
}

static void exec_ended(struct process *p, int status)
{
	struct monitor_reply reply = { .kind = MONITOR_EXITED, .status = status, .pid = p->pid, .time_ns = now_realtime_ns() };

	process_leave_cgroup(p);
	snprintf(reply.id, sizeof(reply.id), "%s", p->id);
	server_reply(p->connection, &reply, -1);
	process_free(p);
}

static void container_ended(struct process *p, int status)
{
	struct monitor_reply reply = { .kind = MONITOR_EXITED, .status = status, .pid = p->pid };

	process_kill_tree(p);
	for (size_t i = 0; i < PROCESSES_MAX; i++)
		if (processes[i].kind == PROCESS_EXEC && processes[i].owner == (int16_t)index_of(p))
			process_kill_tree(&processes[i]);
	log_close(p);
	reply.oom = oom_kills(p->oom) > p->oom_before;
	reply.time_ns = now_realtime_ns();
	reply.log_dropped = p->log_dropped;
	snprintf(reply.id, sizeof(reply.id), "%s", p->id);
	record_exit(p, status, reply.oom, reply.time_ns);
	attach_ended(p, &reply);
	process_free(p);
	server_exited(&reply);
}

static void ended(struct process *p, int status)
{
	p->ended = true;
	if (p->kind == PROCESS_INIT) {
		/* The pod's PID namespace is gone, and with it all that lived there. */
		process_free(p);
		monitor.leaving = true;
		return;
	}
	if (p->sync >= 0) /* what it had to say came before its end */
		process_sync(index_of(p));
	if (p->state != PROCESS_RUNNING)
		start_failed(p, status);
	else if (p->kind == PROCESS_EXEC)
		exec_ended(p, status);
	else
		container_ended(p, status);
}

/* Signals coalesce: reap until there is nobody. Orphans of the containers come here, too. */
void process_reap(void)
{
	siginfo_t info;

	for (;;) {
		info.si_pid = 0;
		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) < 0 || info.si_pid == 0)
			break;
		for (size_t i = 0; i < PROCESSES_MAX; i++)
			if (processes[i].kind != PROCESS_FREE && !processes[i].ended && processes[i].pid == info.si_pid) {
				ended(&processes[i], exit_status(&info));
				break;
			}
	}
	if (!process_any())
		server_stopped();
}

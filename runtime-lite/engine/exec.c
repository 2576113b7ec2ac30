/*
 * exec.c - purpose: run a command in a container, gather its output, and end it in time.
 *
 * The process is the monitor's child; here is only its connection and the output. Both are watched in one loop: an exit
 * is followed by a short drain, since a grandchild may hold the pipes for ever.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>

#include "common/sys/file.h"
#include "runtime-lite/engine/cgroup.h"
#include "runtime-lite/engine/pod_internal.h"

enum { PUMPS_MAX = 3, CHUNK = 16384, KILL_WAIT_MS = 5000, CANCEL_POLL_MS = 200 };

/* Moves bytes from a descriptor into a string (at most max, the rest is read and dropped) or another descriptor. */
struct pump {
	int from; /* -1: ended, or not there yet */
	int to;
	struct str *str;
	size_t max;
	bool from_terminal, to_terminal; /* the end that the exec's terminal becomes */
	int typed;			 /* to_terminal: becomes `from` when the terminal is there */
};

static void merge_env(struct launch *l, const struct strv *more)
{
	for (size_t i = 0; i < more->n; i++) {
		size_t key = strcspn(more->v[i], "=") + 1, k = 0;

		while (k < l->env.n && strncmp(l->env.v[k], more->v[i], key) != 0)
			k++;
		if (k == l->env.n) {
			strv_add(&l->env, more->v[i]);
		} else {
			free(l->env.v[k]);
			l->env.v[k] = xstrdup(more->v[i]);
		}
	}
}

static int make_plan(struct pod_monitor *m, const char *container_id, const struct exec_spec *spec, struct str *ret, struct error *err)
{
	_cleanup_(launch_free_p) struct launch *l = NULL;
	int r = pod_launch_read(m->dir_fd, container_id, &l, err);

	if (r == -ENOENT)
		return error_set(err, ERROR_PRECONDITION, "container %s: was never started", container_id);
	if (r < 0)
		return r;
	if (spec->args.n == 0 || str_empty(spec->args.v[0]))
		return error_set(err, ERROR_INVALID, "exec: no command");
	if (cgroup_frozen(l->cgroup))
		return error_set(err, ERROR_PRECONDITION, "exec: container %s is frozen", container_id);
	strv_done(&l->args);
	for (size_t i = 0; i < spec->args.n; i++)
		strv_add(&l->args, spec->args.v[i]);
	merge_env(l, &spec->env);
	if (!str_empty(spec->cwd)) {
		free(l->cwd);
		l->cwd = xstrdup(spec->cwd);
	}
	l->tty = spec->tty;
	l->is_exec = true;
	launch_encode(l, ret);
	return 0;
}

const char *pod_container_id(const char *container_dir)
{
	const char *slash = strrchr(container_dir, '/');

	return slash ? slash + 1 : container_dir;
}

int pod_exec_request(struct pod_monitor *m, const char *container_dir, const struct exec_spec *spec, const int stdio[3],
	uint16_t rows, uint16_t columns, int *ret_conn, struct error *err)
{
	struct monitor_request req = { .op = MONITOR_EXEC, .rows = rows, .columns = columns };
	const char *container_id = pod_container_id(container_dir);
	_cleanup_(str_done) struct str plan = STR_INIT;
	_cleanup_fd_ int conn = -1, plan_fd = -1;
	int fds[MONITOR_FDS_MAX];
	size_t n = 0;
	int r = make_plan(m, container_id, spec, &plan, err);

	if (r == 0)
		r = pod_memfd(&plan, &plan_fd, err);
	if (r == 0)
		r = client_connect(m->dir_fd, &conn, err);
	if (r == -ENOENT)
		return error_set(err, ERROR_PRECONDITION, "container %s: does not run", container_id);
	if (r < 0)
		return r;
	fds[n++] = plan_fd;
	for (int i = 0; i < 3 && !spec->tty; i++)
		if (stdio[i] >= 0) {
			req.fd_mask |= 1u << i;
			fds[n++] = stdio[i];
		}
	snprintf(req.id, sizeof(req.id), "%s", container_id);
	r = client_send_request(conn, &req, fds, n, err);
	if (r == 0)
		*ret_conn = steal_fd(&conn);
	return r;
}

/* One read. The pump ends at the end of file, at an error, and when its reader is gone. */
static void pump_once(struct pump *p)
{
	char buf[CHUNK];
	ssize_t n = read(p->from, buf, sizeof(buf));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n > 0 && p->str)
		str_add_bytes(p->str, buf, MIN((size_t)n, p->max - MIN(p->max, p->str->len)));
	if (n <= 0 || (!p->str && fd_write_full(p->to, buf, (size_t)n) < 0))
		p->from = -1;
}

static bool pumps_open(const struct pump *pumps, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (pumps[i].from >= 0)
			return true;
	return false;
}

static int left_ms(uint64_t deadline_ns)
{
	uint64_t now = clock_monotonic_ns();

	if (!deadline_ns)
		return -1;
	return now >= deadline_ns ? 0 : (int)MIN((deadline_ns - now + 999999) / 1000000, (uint64_t)INT32_MAX);
}

static bool is_cancelled(const struct exec_spec *spec)
{
	return spec->cancelled && spec->cancelled(spec->cancelled_data);
}

/* Until conn (if >= 0) is readable, the deadline passes or spec (if not NULL) is given up, moving output meanwhile. Without
 * conn: until all pumps ended. 1: readable, 0: deadline, given up or all ended. */
static int pump_until(int conn, const struct exec_spec *spec, struct pump *pumps, size_t n, uint64_t deadline_ns)
{
	bool ask = spec && spec->cancelled;

	for (;;) {
		struct pollfd p[PUMPS_MAX + 1] = { { .fd = conn, .events = POLLIN } };

		if (conn < 0 && !pumps_open(pumps, n))
			return 0;
		for (size_t i = 0; i < n; i++)
			p[i + 1] = (struct pollfd){ .fd = pumps[i].from, .events = POLLIN };
		/* Asked each time round: something that prints without end is always readable. */
		int left = left_ms(deadline_ns);
		if (left == 0 || (ask && is_cancelled(spec)))
			return 0;
		bool slice = ask && (left < 0 || left > CANCEL_POLL_MS);
		if (poll(p, n + 1, slice ? CANCEL_POLL_MS : left) <= 0)
			continue;
		for (size_t i = 0; i < n; i++)
			if (p[i + 1].fd >= 0 && p[i + 1].revents)
				pump_once(&pumps[i]);
		if (p[0].revents)
			return 1;
	}
}

static int timed_out(int conn, const struct exec_spec *spec, struct exec_result *ret, struct error *err)
{
	struct monitor_reply reply;

	/* The answer is awaited, so that nothing of it runs when the caller hears of the time-out. */
	if (client_send(conn, MONITOR_CANCEL, NULL, 0, 0, NULL, 0, NULL) == 0)
		for (int i = 0; i < 2; i++)
			if (client_receive(conn, KILL_WAIT_MS, &reply, NULL, NULL) < 0 || reply.kind == MONITOR_EXITED)
				break;
	*ret = (struct exec_result){ .status = 137, .timed_out = true };
	if (is_cancelled(spec))
		return error_set(err, ERROR_CANCELLED, "command \"%s\": nobody waits for it any more", spec->args.v[0]);
	return error_set(err, ERROR_DEADLINE, "command \"%s\" timed out: timeout %gs exceeded", spec->args.v[0],
		(double)spec->timeout_ns / 1e9);
}

static void take_terminal(int terminal, struct pump *pumps, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (pumps[i].from_terminal)
			pumps[i].from = terminal;
		if (pumps[i].to_terminal) {
			pumps[i].to = terminal;
			pumps[i].from = pumps[i].typed;
		}
	}
}

/* From the request to the exit. A monitor that hangs is not waited for, whatever the time-out: closing the connection
 * kills what it may start when it goes on. */
static int wait_exit(int conn, const struct exec_spec *spec, uint64_t deadline_ns, struct pump *pumps, size_t n, int *terminal,
	struct exec_result *ret, struct error *err)
{
	uint64_t start_ns = clock_monotonic_ns() + (uint64_t)CLIENT_TIMEOUT_MS * 1000000;
	bool started = false;

	if (deadline_ns && deadline_ns < start_ns)
		start_ns = deadline_ns;
	for (;;) {
		struct monitor_reply reply;

		if (pump_until(conn, spec, pumps, n, started ? deadline_ns : start_ns) == 0) {
			if (!started && start_ns != deadline_ns && !is_cancelled(spec))
				return error_set(err, ERROR_DEADLINE, "command \"%s\": the pod's monitor has not started it within %d s",
					spec->args.v[0], CLIENT_TIMEOUT_MS / 1000);
			return timed_out(conn, spec, ret, err);
		}
		int r = client_receive(conn, 0, &reply, *terminal < 0 ? terminal : NULL, err);

		if (r < 0)
			return r;
		if (reply.kind == MONITOR_EXITED) {
			*ret = (struct exec_result){ .status = reply.status };
			return 0;
		}
		started = true;
		if (*terminal >= 0)
			take_terminal(*terminal, pumps, n);
	}
}

static int finish(int conn, const struct exec_spec *spec, struct pump *pumps, size_t n, struct exec_result *ret, struct error *err)
{
	uint64_t deadline_ns = spec->timeout_ns ? clock_monotonic_ns() + spec->timeout_ns : 0;
	_cleanup_fd_ int terminal = -1;
	int r = wait_exit(conn, spec, deadline_ns, pumps, n, &terminal, ret, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		if (pumps[i].to_terminal)
			pumps[i].from = -1; /* nobody reads what is typed now */
	pump_until(-1, NULL, pumps, n, clock_monotonic_ns() + (uint64_t)POD_EXEC_DRAIN_MS * 1000000);
	return 0;
}

int pod_exec(struct pod_monitor *m, const char *container_dir, const struct exec_spec *spec, int stdin_fd, int stdout_fd,
	int stderr_fd, struct exec_result *ret, struct error *err)
{
	const int stdio[3] = { stdin_fd, stdout_fd, stderr_fd };
	struct pump pumps[] = { { .from = -1, .to = stdout_fd, .from_terminal = true },
		{ .from = -1, .to = -1, .to_terminal = true, .typed = stdin_fd } };
	_cleanup_fd_ int conn = -1;
	int r = pod_exec_request(m, container_dir, spec, stdio, 0, 0, &conn, err);

	return r < 0 ? r : finish(conn, spec, pumps, spec->tty ? ARRAY_LEN(pumps) : 0, ret, err);
}

static int output_pipe(int *ret_read, int *ret_write, struct error *err)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return error_sys(err, errno, "make a pipe");
	*ret_read = ends[0];
	*ret_write = ends[1];
	return 0;
}

/* Our copies of the pipes' write ends are closed when this returns: they would hide the end of file. */
static int begin_with_pipes(struct pod_monitor *m, const char *container_dir, const struct exec_spec *spec, int *ret_conn,
	int *ret_out, int *ret_err, struct error *err)
{
	_cleanup_fd_ int out_write = -1, err_write = -1;
	int r = output_pipe(ret_out, &out_write, err);

	if (r == 0)
		r = output_pipe(ret_err, &err_write, err);
	if (r < 0)
		return r;
	return pod_exec_request(m, container_dir, spec, (const int[]){ -1, out_write, err_write }, 0, 0, ret_conn, err);
}

int pod_exec_sync(struct pod_monitor *m, const char *container_dir, const struct exec_spec *spec, size_t max,
	struct str *ret_stdout, struct str *ret_stderr, struct exec_result *ret, struct error *err)
{
	_cleanup_(str_done) struct str out = STR_INIT, errors = STR_INIT;
	_cleanup_fd_ int conn = -1, out_read = -1, err_read = -1;
	int r = begin_with_pipes(m, container_dir, spec, &conn, &out_read, &err_read, err);
	struct pump pumps[] = { { .from = out_read, .to = -1, .str = &out, .max = max },
		{ .from = err_read, .to = -1, .str = &errors, .max = max } };

	if (r == 0)
		r = finish(conn, spec, pumps, ARRAY_LEN(pumps), ret, err);
	if (r < 0)
		return r;
	*ret_stdout = out;
	*ret_stderr = errors;
	out = errors = STR_INIT;
	return 0;
}

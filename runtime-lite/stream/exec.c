/*
 * exec.c - purpose: one streaming exec: a command in a container, with a client at its standard streams.
 *
 * The command is started by a job, because that speaks with the pod's monitor; everything else happens on the loop. The
 * command runs as long as its connection to the monitor is open: it is kept when the client has gone, until it has
 * ended.
 */
#include <errno.h>
#include <fcntl.h>

#include "common/base/log.h"
#include "common/net/job.h"
#include "runtime-lite/engine/client.h"
#include "runtime-lite/stream/stdio.h"
#include "runtime-lite/stream/task.h"

struct exec {
	struct task task;
	struct job job;
	uv_loop_t *loop;
	struct store *store;
	struct stream_request *request;
	struct container *container;
	struct stdio *stdio; /* NULL: closed */
	uv_timer_t timer;    /* for a monitor that hangs: until it says that the command runs */
	bool begun;	     /* the command was asked for */
	bool working;
	/* of the job; not looked at while it works (container, too) */
	struct pod_terminal_size size;
	int ours[3], conn;
	struct error error;
	int result;
};

static void on_timer_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static void exec_free(struct exec *e)
{
	if (e->stdio || e->working)
		return;
	task_end(&e->task);
	container_unref(e->container);
	stream_request_free(e->request);
	uv_close((uv_handle_t *)&e->timer, on_timer_closed);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static int make_pipes(struct exec *e, int theirs[3])
{
	const bool wanted[3] = { e->request->in, e->request->out, e->request->err };

	for (int i = 0; i < 3; i++) {
		int ends[2];

		if (!wanted[i])
			continue;
		if (pipe2(ends, O_CLOEXEC) < 0)
			return error_sys(&e->error, errno, "make a pipe");
		e->ours[i] = ends[i == 0];
		theirs[i] = ends[i != 0];
	}
	return 0;
}

static void work(struct job *job)
{
	struct exec *e = container_of(job, struct exec, job);
	struct exec_spec spec = { .args = e->request->args, .tty = e->request->tty };
	int theirs[3] = { -1, -1, -1 };
	int r = task_find_container(e->store, e->request->id, &e->container, &e->error);

	if (spec.tty && r == 0) {
		bool known = false;

		for (size_t i = 0; i < e->container->env.n; i++)
			known |= str_starts(e->container->env.v[i], "TERM=");
		if (!known)
			strv_add(&spec.env, "TERM=xterm");
	}
	if (r == 0 && !spec.tty)
		r = make_pipes(e, theirs);
	if (r == 0)
		r = pod_stream_exec(
			e->container->sandbox->monitor, e->container->dir, &spec, e->size, theirs, &e->conn, &e->error);
	for (int i = 0; i < 3; i++)
		close_fd(&theirs[i]);
	strv_done(&spec.env);
	e->result = r;
}

static void fail(struct exec *e, const struct error *err)
{
	_cleanup_free_ char *text = xasprintf("error executing command in container: %s", err->text);

	stdio_finish(e->stdio, &(struct session_outcome){ .result = SESSION_FAILURE, .message = text });
}

static void on_start_late(uv_timer_t *timer)
{
	struct exec *e = timer->data;
	struct error late = ERROR_INIT;

	error_set(&late, ERROR_DEADLINE, "the pod's monitor has not started it within %d s", CLIENT_TIMEOUT_MS / 1000);
	fail(e, &late);
}

static void done(struct job *job)
{
	struct exec *e = container_of(job, struct exec, job);

	e->working = false;
	if (!e->stdio) { /* aborted meanwhile */
		for (int i = 0; i < 3; i++)
			close_fd(&e->ours[i]);
		close_fd(&e->conn);
		exec_free(e);
		return;
	}
	if (e->result < 0) {
		for (int i = 0; i < 3; i++)
			close_fd(&e->ours[i]);
		fail(e, &e->error);
		return;
	}
	uv_timer_start(&e->timer, on_start_late, CLIENT_TIMEOUT_MS, 0);
	stdio_set_conn(e->stdio, steal_fd(&e->conn));
	if (e->request->tty)
		return; /* its terminal comes when it has started */
	stdio_set_output(e->stdio, false, steal_fd(&e->ours[1]));
	stdio_set_output(e->stdio, true, steal_fd(&e->ours[2]));
	stdio_set_input(e->stdio, steal_fd(&e->ours[0]));
}

static void start(void *data, struct pod_terminal_size size)
{
	struct exec *e = data;

	e->begun = e->working = true;
	e->size = size;
	e->job = (struct job){ .work = work, .done = done };
	job_start(e->loop, &e->job);
}

/* One descriptor for each way, and one to tell its size. */
static void take_terminal(struct exec *e, int fd)
{
	stdio_set_terminal(e->stdio, fcntl(fd, F_DUPFD_CLOEXEC, 3));
	stdio_set_output(e->stdio, false, fcntl(fd, F_DUPFD_CLOEXEC, 3));
	stdio_set_input(e->stdio, fd);
}

static void event(void *data, const struct pod_stream_event *ev)
{
	struct exec *e = data;
	struct error lost = ERROR_INIT;

	uv_timer_stop(&e->timer);
	switch (ev->kind) {
	case POD_STREAM_STARTED:
		if (ev->terminal >= 0)
			take_terminal(e, ev->terminal);
		break;
	case POD_STREAM_EXITED:
		stdio_finish(e->stdio, &(struct session_outcome){ .result = SESSION_EXIT, .exit_code = ev->status });
		break;
	case POD_STREAM_FAILED:
		fail(e, &ev->error);
		break;
	default:
		error_set(&lost, ERROR_UNAVAILABLE, "the pod's monitor has gone");
		fail(e, &lost);
	}
}

static void gone(void *data)
{
	struct exec *e = data;

	if (!e->begun)
		stdio_finish(e->stdio, &(struct session_outcome){ .result = SESSION_SUCCESS });
	else
		log_debug("the client of an exec has gone container=%s", e->request->id);
}

static void input_end(void *data, bool client_gone)
{
	(void)data, (void)client_gone;
}

static void closed(void *data)
{
	struct exec *e = data;

	uv_timer_stop(&e->timer);
	e->stdio = NULL;
	exec_free(e);
}

static void abort_exec(struct task *task)
{
	struct exec *e = container_of(task, struct exec, task);

	if (e->stdio)
		stdio_abort(e->stdio);
}

void exec_start(const struct task_client *client, struct stream_request *request)
{
	static const struct stdio_owner owner = {
		.start = start, .input_end = input_end, .event = event, .gone = gone, .closed = closed
	};
	struct exec *e = xnew(struct exec);

	e->loop = client->loop;
	uv_timer_init(e->loop, &e->timer);
	e->timer.data = e;
	e->store = client->store;
	e->request = request;
	e->ours[0] = e->ours[1] = e->ours[2] = e->conn = -1;
	task_begin(&e->task, client->list, abort_exec);
	e->stdio = task_stdio(client, request, &owner, e);
}

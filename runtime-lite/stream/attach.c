/*
 * attach.c - purpose: one attachment: a client at the standard streams of a container's first process.
 *
 * The pod's monitor copies the output into our pipes; what the client types goes straight into the container's stdin.
 * Its end is the container's only where it was made for one client (stdin_once) and has no terminal; else the next
 * client finds it open.
 */
#include <errno.h>
#include <fcntl.h>

#include "common/net/job.h"
#include "runtime-lite/stream/stdio.h"
#include "runtime-lite/stream/task.h"

struct attach {
	struct task task;
	struct job job;
	uv_loop_t *loop;
	struct store *store;
	struct stream_request *request;
	struct container *container;
	struct stdio *stdio; /* NULL: closed */
	bool begun, working;
	bool input_over; /* the client's input has ended, before we were attached */
	/* of the job; not looked at while it works (container, too) */
	int conn, input, out, err;
	struct error error;
	int result;
};

static void attach_free(struct attach *a)
{
	if (a->stdio || a->working)
		return;
	task_end(&a->task);
	container_unref(a->container);
	stream_request_free(a->request);
	free(a);
}

static void close_fds(struct attach *a)
{
	int *const fds[] = { &a->conn, &a->input, &a->out, &a->err };

	for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
}

static int make_pipe(bool wanted, int *ret_read, int *ret_write, struct error *err)
{
	int ends[2];

	if (!wanted)
		return 0;
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return error_sys(err, errno, "make a pipe");
	*ret_read = ends[0];
	*ret_write = ends[1];
	return 0;
}

static void work(struct job *job)
{
	struct attach *a = container_of(job, struct attach, job);
	_cleanup_fd_ int out = -1, err = -1;
	int r = task_find_container(a->store, a->request->id, &a->container, &a->error);

	if (r == 0)
		r = make_pipe(a->request->out, &a->out, &out, &a->error);
	if (r == 0)
		r = make_pipe(a->request->err && !a->container->config->tty, &a->err, &err, &a->error);
	/* A terminal's size can be told by whoever may not type, too. */
	if (r == 0)
		r = pod_stream_attach(a->container->sandbox->monitor, a->container->id,
			a->request->in || a->container->config->tty, out, err, &a->conn, &a->input, &a->error);
	a->result = r;
}

static void finish(struct attach *a, const struct error *err)
{
	_cleanup_free_ char *text = err ? xasprintf("error attaching to container: %s", err->text) : NULL;

	stdio_finish(a->stdio,
		&(struct session_outcome){ .result = err ? SESSION_FAILURE : SESSION_SUCCESS, .message = text });
}

static void input_end(void *data, bool client_gone)
{
	struct attach *a = data;

	a->input_over = true;
	if (a->working || !a->container)
		return;
	if (a->request->in && a->container->config->stdin_once && !a->container->config->tty &&
		stdio_conn(a->stdio) >= 0)
		pod_stream_close_stdin(stdio_conn(a->stdio));
	if (client_gone)
		finish(a, NULL);
}

static void hand_over(struct attach *a)
{
	bool tty = a->container->config->tty;

	stdio_set_conn(a->stdio, steal_fd(&a->conn));
	stdio_set_output(a->stdio, false, steal_fd(&a->out));
	stdio_set_output(a->stdio, true, steal_fd(&a->err));
	if (tty && a->input >= 0)
		stdio_set_terminal(a->stdio, fcntl(a->input, F_DUPFD_CLOEXEC, 3));
	if (!a->request->in && a->input >= 0) {
		close(a->input);
		a->input = -1;
	}
	stdio_set_input(a->stdio, steal_fd(&a->input));
}

static void done(struct job *job)
{
	struct attach *a = container_of(job, struct attach, job);

	a->working = false;
	if (!a->stdio) { /* aborted meanwhile */
		close_fds(a);
		attach_free(a);
		return;
	}
	if (a->result < 0) {
		close_fds(a);
		finish(a, &a->error);
		return;
	}
	hand_over(a);
	if (a->input_over && a->stdio)
		input_end(a, stdio_gone(a->stdio));
}

static void start(void *data, struct pod_terminal_size size)
{
	struct attach *a = data;

	(void)size; /* told again when the terminal is there */
	a->begun = a->working = true;
	a->job = (struct job){ .work = work, .done = done };
	job_start(a->loop, &a->job);
}

static void event(void *data, const struct pod_stream_event *ev)
{
	struct attach *a = data;
	struct error lost = ERROR_INIT;

	if (ev->terminal >= 0)
		close(ev->terminal);
	if (ev->kind == POD_STREAM_EXITED) {
		finish(a, NULL);
		return;
	}
	if (ev->kind == POD_STREAM_FAILED)
		lost = ev->error;
	else
		error_set(&lost, ERROR_UNAVAILABLE, "the pod's monitor has gone");
	finish(a, &lost);
}

/* Unless what it has sent has still to be taken: then input_end() follows. */
static void gone(void *data)
{
	struct attach *a = data;

	if (!a->begun || (!a->working && !a->request->in))
		finish(a, NULL);
}

static void closed(void *data)
{
	struct attach *a = data;

	a->stdio = NULL;
	attach_free(a);
}

static void abort_attach(struct task *task)
{
	struct attach *a = container_of(task, struct attach, task);

	if (a->stdio)
		stdio_abort(a->stdio);
}

void attach_start(const struct task_client *client, struct stream_request *request)
{
	static const struct stdio_owner owner = {
		.start = start, .input_end = input_end, .event = event, .gone = gone, .closed = closed
	};
	struct attach *a = xnew(struct attach);

	a->loop = client->loop;
	a->store = client->store;
	a->request = request;
	a->conn = a->input = a->out = a->err = -1;
	task_begin(&a->task, client->list, abort_attach);
	a->stdio = task_stdio(client, request, &owner, a);
}

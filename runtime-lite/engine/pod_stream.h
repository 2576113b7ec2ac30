/*
 * pod_stream.h - purpose: execs and attachments whose caller moves the bytes and waits for the end by itself, on a
 * loop.
 *
 * Both are a connection to the pod's monitor. Closing it ends an attachment, and kills what an exec has started. The
 * first two functions block for a moment and belong on a worker thread; the others never block.
 */
#pragma once
#include "runtime-lite/engine/pod.h"

enum pod_stream_kind {
	POD_STREAM_NONE,
	POD_STREAM_STARTED, /* the command runs; `terminal` is its terminal's other end, or -1 */
	POD_STREAM_EXITED,  /* it has ended; for an attachment: the container has */
	POD_STREAM_FAILED,  /* it could not be started: `error` */
	POD_STREAM_LOST,    /* the monitor has gone */
};

struct pod_stream_event {
	enum pod_stream_kind kind;
	int terminal; /* the caller's to close */
	int status;   /* exit code, or 128 + signal */
	struct error error;
};

struct pod_terminal_size {
	uint16_t rows, columns; /* 0: not known */
};

/* As pod_exec(). The descriptors are those of the process and stay the caller's, who closes his copies so that he sees
 * the end of file; with spec->tty they are not used, STARTED brings a terminal of this size. spec->timeout_ns is not
 * obeyed. */
int pod_stream_exec(struct pod_monitor *m, const char *container_dir, const struct exec_spec *spec,
	struct pod_terminal_size size, const int stdio[3], int *ret_conn, struct error *err) MUST_USE;
/* What the container prints from now on is copied into these pipes (their write ends; -1: not wanted), which end with
 * it; a reader that does not keep up loses some. *ret_input: its stdin, or its terminal; -1 if it has none or
 * want_input is false. Non-blocking, shared with everybody who is attached. */
int pod_stream_attach(struct pod_monitor *m, const char *container_id, bool want_input, int stdout_fd, int stderr_fd,
	int *ret_conn, int *ret_input, struct error *err) MUST_USE;
/* When conn is readable. */
void pod_stream_next(int conn, struct pod_stream_event *ret);
/* Of an attachment: the container's stdin ends (when the caller has closed his own, too). */
void pod_stream_close_stdin(int conn);

/*
 * pod.h - purpose: pods and containers as kernel objects: start the pod's monitor, start, signal and watch processes.
 *
 * Every function may be called from any worker thread and blocks; a struct pod_monitor may be used by several threads
 * at once (each call has a connection of its own), except that pod_monitor_next_event() belongs to one thread and
 * pod_monitor_free() comes last. Calls on a monitor that hangs end with ERROR_DEADLINE.
 *
 * Truth is on disk: <sandbox dir>/containers/<id>/pid is there once the process was started, .../exit once it ended.
 * Events only say when to look. After pod_monitor_connect() look at all of them once.
 */
#pragma once
#include "common/base/error.h"
#include "common/base/str.h"
#include "runtime-lite/spec/launch.h"

#include <sys/types.h>

struct pod_monitor;

enum pod_event_kind {
	POD_EVENT_NONE,
	POD_EVENT_EXITED, /* a container; its exit file is there */
	POD_EVENT_GONE,	  /* the monitor died: containers die with it. Call pod_cleanup() */
};

struct exit_record {
	int status; /* exit code, or 128 + signal */
	bool oom;   /* the OOM killer took a process of the container */
	uint64_t finished_ns;	 /* realtime */
	uint64_t log_dropped;	 /* bytes of output that could not be written to the log */
};

struct pod_event {
	enum pod_event_kind kind;
	char container_id[LAUNCH_ID_MAX + 1];
	struct exit_record exit;
};

/* Makes cgroup, namespaces and <dir>/shm; spawns <libexec_dir>/monitor in a session and cgroup of its own. When it
 * returns 0 the pod is ready; on failure nothing is left. */
int pod_monitor_start(const struct sandbox_launch *launch, const char *libexec_dir, struct pod_monitor **ret,
	struct error *err) MUST_USE;
/* Finds a monitor again. ERROR_NOT_FOUND when it is dead. */
int pod_monitor_connect(const char *sandbox_dir, struct pod_monitor **ret, struct error *err) MUST_USE;
/* Closes the connection; the monitor lives on. Returns NULL. */
struct pod_monitor *pod_monitor_free(struct pod_monitor *m);
DEFINE_CLEANUP(struct pod_monitor *, pod_monitor_free)

pid_t pod_monitor_pid(const struct pod_monitor *m);
/* A new descriptor of the pod's network namespace (of the node's for NODE); the caller closes it. -errno. */
int pod_monitor_netns(const struct pod_monitor *m);
/* Readable when there are events; owned by m. */
int pod_monitor_fd(const struct pod_monitor *m);
/* Takes one event without blocking. 1: *ret is filled, 0: none. After GONE it gives GONE each time. */
int pod_monitor_next_event(struct pod_monitor *m, struct pod_event *ret);

/* Checks all that can be known before the start: the plan, layers, sources and their propagation. Makes nothing. */
int pod_container_create(struct pod_monitor *m, const struct launch *launch, struct error *err) MUST_USE;
/* Makes the cgroup with its limits and starts the process. Returns when it was exec'ed. The engine fills the fields of
 * the launch that are its own. Errors of the command itself have codes of their own: ERROR_NOT_FOUND
 * `exec: "x": executable file not found in $PATH`, ERROR_DENIED `exec: "x": permission denied`; whatever fails, the
 * cgroup is removed again. timeout_ms 0: 120 s. */
int pod_container_start(struct pod_monitor *m, struct launch *launch, unsigned timeout_ms, pid_t *ret_pid,
	uint64_t *ret_started_ns, struct error *err) MUST_USE;
/* To the first process. One that has ended already is success. */
int pod_container_signal(struct pod_monitor *m, const char *container_id, int signal, struct error *err) MUST_USE;
/* SIGKILL to everything in the container's cgroup; does not wait. */
int pod_container_kill_all(struct pod_monitor *m, const char *container_id, struct error *err) MUST_USE;
/* Opens log_path anew (kubelet has renamed the old file); nothing goes to the old file once this returned.
 * ERROR_PRECONDITION when the container does not run. */
int pod_container_reopen_log(struct pod_monitor *m, const char *container_id, const char *log_path, struct error *err)
	MUST_USE;
/* For a container that outlives SIGKILL. Either its processes hang in the kernel, which has to be waited for; or the
 * monitor hangs and does not reap them: one that does not answer is killed, which POD_EVENT_GONE tells. True: it was. */
bool pod_monitor_kill_hung(struct pod_monitor *m, const char *container_id);
/* Takes the cgroup of a container that has ended away. Idempotent. */
int pod_container_remove(const char *cgroup, struct error *err) MUST_USE;

/* <container dir>/exit. ERROR_NOT_FOUND: it has not ended (or was never started). */
int pod_container_exit(const char *container_dir, struct exit_record *ret, struct error *err) MUST_USE;
/* <container dir>/pid. ERROR_NOT_FOUND: never started. */
int pod_container_pid(const char *container_dir, pid_t *ret_pid, uint64_t *ret_started_ns, struct error *err) MUST_USE;

struct exec_spec {
	struct strv args;
	struct strv env; /* added to the container's */
	char *cwd;	 /* NULL: the container's */
	bool tty;
	uint64_t timeout_ns; /* 0: none */
	/* Asked now and then, if not NULL: nobody waits for the end any more. Then it is killed as at its deadline, CANCELLED. */
	bool (*cancelled)(const void *data);
	const void *cancelled_data;
};

struct exec_result {
	int status; /* exit code, or 128 + signal */
	bool timed_out;
};

/* Runs a command in the container: its namespaces, cgroup, user, capabilities, filter and environment. The three
 * descriptors become those of the process (-1: /dev/null) and stay the caller's. Blocks until it has ended. At the deadline
 * the whole process tree of the exec is killed: ERROR_DEADLINE, "timeout 1s exceeded". Output is not drained here: the
 * caller reads its pipes meanwhile, and goes on for at most POD_EXEC_DRAIN_MS afterwards. */
enum { POD_EXEC_DRAIN_MS = 1000 };
int pod_exec(struct pod_monitor *m, const char *container_dir, const struct exec_spec *spec, int stdin_fd, int stdout_fd,
	int stderr_fd, struct exec_result *ret, struct error *err) MUST_USE;
/* The same with the output gathered, at most `max` bytes of each stream (the rest is thrown away); strings are the
 * caller's to str_done(). This is ExecSync. */
int pod_exec_sync(struct pod_monitor *m, const char *container_dir, const struct exec_spec *spec, size_t max,
	struct str *ret_stdout, struct str *ret_stderr, struct exec_result *ret, struct error *err) MUST_USE;

/* Kills all of the pod and ends the monitor; unmounts shm, removes the cgroups that are ours. Idempotent; a monitor
 * that does not answer is killed. `m` must still be freed. */
int pod_monitor_stop(struct pod_monitor *m, struct error *err) MUST_USE;
/* The same when the monitor is dead or was never seen: kills what is left by cgroup, writes exit files with status 137
 * for containers that have none, unmounts, removes cgroups. Idempotent. */
int pod_cleanup(const char *sandbox_dir, struct error *err) MUST_USE;

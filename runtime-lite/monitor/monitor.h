/*
 * monitor.h - purpose: what the monitor's few modules share. One thread, no malloc, nothing that can block the loop.
 *
 * Tables are static arrays: pages that were never touched cost nothing.
 */
#pragma once
#include "common/base/error.h"
#include "runtime-lite/monitor/protocol.h"
#include "runtime-lite/spec/launch.h"

enum { PROCESSES_MAX = 512, CONNECTIONS_MAX = 256, CONNECTIONS_KEPT = 48 /* for everything but execs and attachments */ };

enum process_kind { PROCESS_FREE, PROCESS_CONTAINER, PROCESS_EXEC, PROCESS_INIT };
enum process_state { PROCESS_STARTING, PROCESS_READY, PROCESS_RUNNING };

struct stream {
	int fd;	      /* -1: closed */
	uint32_t len; /* bytes in buf: a line without its end so far */
	char *buf;    /* mapped while there are such */
};

/*
 * One child: STARTING -> READY (about to exec) -> RUNNING (it did) -> free, or from the first two with `error` set.
 * Execs have `owner`, the slot of their container; it outlives them because the container's end kills them.
 */
struct process {
	uint8_t kind, state;
	uint8_t attached; /* how many want copies of the output */
	bool tty, failed, ended; /* ended: reaped; the slot goes when all is reported */
	int16_t connection; /* who waits for it, -1: nobody */
	int16_t owner;
	pid_t pid;
	int pidfd;
	int sync;  /* from the child, until it has exec'ed; -1 afterwards */
	int track; /* directory of its tracking cgroup */
	int log;
	int oom; /* memory.events or memory.oom_control */
	int input; /* write end of stdin, or -1 */
	int pty;   /* execs: master on its way to the daemon */
	uint32_t number; /* execs: name of the cgroup */
	uint64_t oom_before;
	uint64_t log_dropped;
	uint64_t started_ns;
	struct stream out[2]; /* stdout (or the terminal), stderr */
	char id[LAUNCH_ID_MAX + 1];
};

/* Who the epoll loop calls: kind << 32 | index. */
enum watch { WATCH_LISTEN, WATCH_SIGNAL, WATCH_CONNECTION, WATCH_SYNC, WATCH_STREAM };

extern struct monitor {
	int epoll, listen, signals, dir;
	int self_pidns; /* -1 until needed */
	int pod_pidns;	/* -1: none is shared */
	bool stopping;	/* a STOP is being served */
	bool leaving;	/* ends with the last process */
} monitor;

extern struct process processes[PROCESSES_MAX];

/* main.c */
int watch_add(int fd, enum watch kind, uint32_t index);
void watch_remove(int fd);
uint64_t now_realtime_ns(void);

/* server.c */
void server_accept(void);
void server_readable(uint32_t connection);
/* Sends and, if it cannot, drops the connection. fd may be -1. */
void server_reply(int connection, const struct monitor_reply *reply, int fd);
void server_close(int connection);
/* Are there so many that a further exec or attachment might lock the daemon out? */
bool server_crowded(void);
void server_exited(const struct monitor_reply *event); /* to all subscribers */
void server_stopped(void);

/* process.c */
void process_start(int connection, const struct monitor_request *req, int *fds, int n_fds);
void process_exec(int connection, const struct monitor_request *req, int *fds, int n_fds);
struct process *process_new(enum process_kind kind, const char *id, int connection);
struct process *process_find(const char *id);
void process_sync(uint32_t index);
void process_stream(uint32_t index);
void process_reap(void);
void process_kill_all(void);
bool process_any(void);

/* tree.c */
enum { EXEC_NAME_BYTES = 24 }; /* "exec-<number>", its cgroup below that of the container */
void process_kill_tree(struct process *p);
/* An exec has ended: what it left running goes on as the container's, its cgroup goes away. */
void process_leave_cgroup(struct process *p);

/* init.c */
int process_spawn_init(struct error *err);

/* record.c */
int record_pid(const struct process *p);
int record_exit(const struct process *p, int status, bool oom, uint64_t now_ns);
int record_prepare(const char *id);

/* log.c */
/* Reads what is there and writes records. False: end of file, the stream is closed. */
bool log_drain(struct process *p, int which, bool last);
void log_close(struct process *p);

/* attach.c */
void attach_begin(int connection, const struct monitor_request *req, int *fds, int n_fds);
void attach_close_stdin(int connection);
/* A copy of what the container has printed. */
void attach_copy(const struct process *p, int which, const char *text, size_t len);
/* The container has ended, the connection has been closed. */
void attach_ended(const struct process *p, const struct monitor_reply *reply);
void attach_closed(int connection);

/* child.c */
struct child {
	const struct launch *l;
	int sync;
	int stdio[3]; /* -1: /dev/null */
	int target;   /* execs: pidfd of the container's first process */
	uint16_t rows, columns; /* execs: size of the terminal */
	const char *exec_leaf; /* execs: name of the tracking cgroup below that of the container */
};
/* Messages on the sync socket. */
enum child_kind { CHILD_READY = 1, CHILD_ERROR, CHILD_PTY };
struct child_message {
	int kind;
	struct error error;
};
_Noreturn void child_main(const struct child *c);

/*
 * protocol.h - purpose: what the daemon and a pod's monitor say to each other.
 *
 * <sandbox dir>/monitor.sock is a SOCK_SEQPACKET socket for root only. Every request has a connection of its own: one packet
 * of struct monitor_request (with descriptors), answered by packets of struct monitor_reply. Plans do not travel in
 * packets but as a memfd. A daemon may be newer than a monitor: fields are only ever added in `reserved`, and a monitor
 * answers a version that it does not know with an error.
 */
#pragma once
#include "common/base/error.h"
#include "runtime-lite/spec/launch.h"

enum { MONITOR_VERSION = 1, MONITOR_FDS_MAX = 4 };

/* Descriptors that a spawned monitor finds open. */
enum { MONITOR_FD_PLAN = 3, MONITOR_FD_LISTEN, MONITOR_FD_READY, MONITOR_FD_DIR, MONITOR_FD_FIRST_FREE };

enum monitor_op {
	MONITOR_SUBSCRIBE = 1, /* DONE, then an EXITED for each container that ends, until the connection closes */
	MONITOR_START,	       /* fds: plan, [log]; STARTED or FAILED */
	MONITOR_EXEC,	       /* fds: plan, then those of `fd_mask`; STARTED (with the pty) or FAILED, then EXITED */
	MONITOR_CANCEL,	       /* on the connection of a START or EXEC: kills it and all of its processes */
	MONITOR_SIGNAL,	       /* DONE (also for containers that ended) */
	MONITOR_LOG,	       /* fds: the new log file; DONE */
	MONITOR_NETNS,	       /* DONE with the network namespace */
	MONITOR_STATE,	       /* DONE; status 1: starting, 2: running, 0: unknown here */
	MONITOR_STOP,	       /* kills everything; DONE when all exits are recorded, then the monitor ends */
	MONITOR_ATTACH,	       /* fds: pipes for copies of stdout, stderr (bits 1 and 2 of fd_mask); DONE, with bit 0 with the
				* container's stdin or terminal if it has one; EXITED when it has ended. As long as the connection */
	MONITOR_CLOSE_STDIN,   /* on the connection of an ATTACH: the container's stdin ends; no answer */
};

struct monitor_request {
	uint32_t version;
	uint32_t op;
	int32_t signal;
	uint32_t fd_mask; /* EXEC: bits 0 to 2, which of stdin, stdout, stderr are sent */
	char id[LAUNCH_ID_MAX + 1];
	uint16_t rows, columns; /* EXEC: size of the terminal, 0: not known */
	char reserved[58];
};
_Static_assert(sizeof(struct monitor_request) == 144, "monitors that run speak this");

enum monitor_reply_kind { MONITOR_DONE = 1, MONITOR_FAILED, MONITOR_STARTED, MONITOR_EXITED };

struct monitor_reply {
	uint32_t version;
	uint32_t kind;
	int32_t pid;
	int32_t status;
	uint64_t time_ns; /* STARTED: when it was exec'ed, EXITED: when it ended; realtime */
	uint64_t log_dropped;
	uint32_t oom;
	char id[LAUNCH_ID_MAX + 1];
	char reserved[63];
	struct error error; /* FAILED */
};

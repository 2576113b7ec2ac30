/*
 * client.h - purpose: one request to a pod's monitor; for the engine's other modules.
 *
 * Blocking, with a time-out in each step, because a monitor may be stopped or hung.
 */
#pragma once
#include "runtime-lite/monitor/protocol.h"

enum { CLIENT_TIMEOUT_MS = 10000 };

/* ERROR_NOT_FOUND: nobody listens, the monitor is dead. */
int client_connect(int dir_fd, int *ret_fd, struct error *err) MUST_USE;
int client_send(int fd, enum monitor_op op, const char *id, int signal, uint32_t fd_mask, const int *fds, size_t n_fds,
	struct error *err) MUST_USE;
/* The same with everything that a request holds; its version is filled in here. */
int client_send_request(int fd, const struct monitor_request *request, const int *fds, size_t n_fds, struct error *err) MUST_USE;
/* One packet. A FAILED one becomes the error. *ret_fd (may be NULL) takes a descriptor that came along, else -1.
 * ERROR_DEADLINE after timeout_ms (-1: never); ERROR_UNAVAILABLE when the monitor closed the connection. */
int client_receive(int fd, int timeout_ms, struct monitor_reply *ret, int *ret_fd, struct error *err) MUST_USE;
/* All three, for a request that is answered by one DONE. */
int client_call(int dir_fd, enum monitor_op op, const char *id, int signal, const int *fds, size_t n_fds,
	struct monitor_reply *ret, int *ret_fd, struct error *err) MUST_USE;

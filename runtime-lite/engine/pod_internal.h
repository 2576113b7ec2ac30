/* pod_internal.h - purpose: what pod.c, container.c and exec.c share; for nobody else. */
#pragma once
#include "runtime-lite/engine/client.h"
#include "runtime-lite/engine/pod.h"

struct pod_monitor {
	char *dir; /* of the sandbox */
	int dir_fd;
	pid_t pid;
	int events; /* the subscription */
	bool gone;
};

/* <container dir>/launch as it was started with. ERROR_NOT_FOUND. */
int pod_launch_read(int dir_fd, const char *container_id, struct launch **ret, struct error *err) MUST_USE;
/* A sealed memory file with this content, to be sent. */
int pod_memfd(const struct str *content, int *ret_fd, struct error *err) MUST_USE;
/* Asks for an exec, as pod_exec(). The connection is its life: closing it kills it. rows, columns: of its terminal, 0: unknown. */
int pod_exec_request(struct pod_monitor *m, const char *container_dir, const struct exec_spec *spec, const int stdio[3],
	uint16_t rows, uint16_t columns, int *ret_conn, struct error *err) MUST_USE;
const char *pod_container_id(const char *container_dir);
/* Opens a container's log for appending, making missing directories. */
int pod_log_open(const char *path, int *ret_fd, struct error *err) MUST_USE;
int pod_exit_write(const char *container_dir, const struct exit_record *record, struct error *err) MUST_USE;

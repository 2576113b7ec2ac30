/* record.c - purpose: the files in a container's directory: launch, pid, exit; and its log. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/sys/file.h"
#include "runtime-lite/engine/pod_internal.h"

enum { LAUNCH_MAX = 32 << 20, RECORD_MAX = 4096 };

int pod_launch_read(int dir_fd, const char *container_id, struct launch **ret, struct error *err)
{
	_cleanup_free_ char *path = xasprintf("containers/%s/launch", container_id);
	_cleanup_free_ char *data = NULL;
	size_t len;

	if (!launch_id_valid(container_id))
		return error_set(err, ERROR_NOT_FOUND, "container \"%s\": not an id", container_id);
	int r = file_read(dir_fd, path, LAUNCH_MAX, &data, &len, err);

	return r < 0 ? r : launch_parse(data, len, ret, err);
}

static int read_record(const char *dir, const char *name, char **ret, struct error *err)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", dir, name);

	return file_read(AT_FDCWD, path, RECORD_MAX, ret, NULL, err);
}

int pod_container_exit(const char *container_dir, struct exit_record *ret, struct error *err)
{
	_cleanup_free_ char *text = NULL;
	unsigned long long finished, dropped;
	int version, status, oom;
	int r = read_record(container_dir, "exit", &text, err);

	if (r < 0)
		return r;
	if (sscanf(text, "%d %d %d %llu %llu", &version, &status, &oom, &finished, &dropped) != 5 || version != 1)
		return error_set(err, ERROR_DATA_LOSS, "%s/exit: damaged, or of another version", container_dir);
	*ret = (struct exit_record){ .status = status, .oom = oom != 0, .finished_ns = finished, .log_dropped = dropped };
	return 0;
}

int pod_exit_write(const char *container_dir, const struct exit_record *e, struct error *err)
{
	_cleanup_free_ char *path = xasprintf("%s/exit", container_dir);
	_cleanup_free_ char *text = xasprintf("1 %d %d %llu %llu\n", e->status, e->oom, (unsigned long long)e->finished_ns,
		(unsigned long long)e->log_dropped);

	return file_replace(AT_FDCWD, path, text, strlen(text), 0600, err);
}

int pod_container_pid(const char *container_dir, pid_t *ret_pid, uint64_t *ret_started_ns, struct error *err)
{
	_cleanup_free_ char *text = NULL;
	unsigned long long start_time, started;
	int version, pid;
	int r = read_record(container_dir, "pid", &text, err);

	if (r < 0)
		return r;
	if (sscanf(text, "%d %d %llu %llu", &version, &pid, &start_time, &started) != 4 || version != 1)
		return error_set(err, ERROR_DATA_LOSS, "%s/pid: damaged, or of another version", container_dir);
	*ret_pid = pid;
	*ret_started_ns = started;
	return 0;
}

int pod_log_open(const char *path, int *ret_fd, struct error *err)
{
	_cleanup_free_ char *parent = xstrndup(path, (size_t)(strrchr(path, '/') - path));
	int r = *parent ? dir_make(parent, 0755, err) : 0;

	if (r < 0)
		return r;
	_cleanup_fd_ int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0640);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return error_sys(err, errno, "open log %s", path);
	if (!S_ISREG(st.st_mode))
		return error_set(err, ERROR_INVALID, "open log %s: not a regular file", path);
	*ret_fd = steal_fd(&fd);
	return 0;
}

/* container.c - purpose: start, signal and remove the containers of a pod, as seen by the daemon. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "common/base/log.h"
#include "common/sys/file.h"
#include "runtime-lite/engine/cgroup.h"
#include "runtime-lite/engine/pod_internal.h"

enum { START_TIMEOUT_MS = 120000, CANCEL_TIMEOUT_MS = 5000, KILL_TIMEOUT_MS = 10000, MOUNTINFO_MAX = 8 << 20 };

/* The optional fields of the mount with this id: "shared:1", "master:2"; NULL when it is not there. Points into text. */
static char *mount_fields(char *mountinfo, uint64_t id, char **ret_mount_point)
{
	for (char *line = mountinfo; line && *line;) {
		char *next = strchr(line, '\n');

		if (next)
			*next++ = '\0';
		if (strtoull(line, NULL, 10) == id) {
			char *p = line;

			for (int field = 0; p && field < 4; field++)
				p = strchr(p, ' ') ? strchr(p, ' ') + 1 : NULL;
			*ret_mount_point = p;
			for (int field = 4; p && field < 6; field++)
				p = strchr(p, ' ') ? strchr(p, ' ') + 1 : NULL;
			return p;
		}
		line = next;
	}
	return NULL;
}

/* HOST_TO_CONTAINER needs a source that receives mounts, BIDIRECTIONAL one that passes them on. */
static int check_propagation(const struct launch_mount *m, struct error *err)
{
	_cleanup_free_ char *text = NULL;
	struct statx st;
	char *mount_point = NULL;

	if (m->propagation == LAUNCH_PRIVATE)
		return 0;
	if (statx(AT_FDCWD, m->source, AT_NO_AUTOMOUNT, STATX_MNT_ID, &st) < 0)
		return errno == ENOENT && m->create_source ? 0 : error_sys(err, errno, "mount %s: source %s", m->target, m->source);
	int r = file_read(AT_FDCWD, "/proc/self/mountinfo", MOUNTINFO_MAX, &text, NULL, err);

	if (r < 0)
		return r;
	const char *fields = mount_fields(text, st.stx_mnt_id, &mount_point);
	const char *end = fields ? strstr(fields, "- ") : NULL;

	if (!end)
		return 0; /* mounted a moment ago: the mount itself will tell */
	const char *shared = strstr(fields, "shared:"), *master = strstr(fields, "master:");
	bool is_shared = shared && shared < end, is_slave = master && master < end;

	if (mount_point)
		mount_point[strcspn(mount_point, " ")] = '\0';
	if (m->propagation == LAUNCH_SHARED && !is_shared)
		return error_set(err, ERROR_INVALID, "mount %s: path \"%s\" is mounted on \"%s\" but it is not a shared mount",
			m->target, m->source, mount_point);
	if (m->propagation == LAUNCH_SLAVE && !is_shared && !is_slave)
		return error_set(err, ERROR_INVALID, "mount %s: path \"%s\" is mounted on \"%s\" but it is not a shared or slave mount",
			m->target, m->source, mount_point);
	return 0;
}

int pod_container_create(struct pod_monitor *m, const struct launch *l, struct error *err)
{
	(void)m;
	int r = launch_check(l, err);

	for (size_t i = 0; i < l->rootfs.lower.n && r == 0; i++)
		if (access(l->rootfs.lower.v[i], F_OK) < 0)
			r = error_sys(err, errno, "layer %s", l->rootfs.lower.v[i]);
	for (size_t i = 0; i < l->n_mounts && r == 0; i++) {
		const struct launch_mount *b = &l->mounts[i];

		if (!str_eq(b->type, "bind"))
			continue;
		if (!b->create_source && access(b->source, F_OK) < 0)
			r = error_sys(err, errno, "mount %s: source %s", b->target, b->source);
		else
			r = check_propagation(b, err);
	}
	return r;
}

/* What the monitor's children cannot have is left as it is there; said once, not for each container. */
static void warn_of_limits(const struct launch *l)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	if (l->has_oom_score_adj && l->oom_score_adj < 0 && prctl(PR_CAPBSET_READ, CAP_SYS_RESOURCE, 0, 0, 0) == 0 &&
		!atomic_flag_test_and_set(&said))
		log_warning("oom_score_adj of containers cannot be lowered without CAP_SYS_RESOURCE wanted=%d", l->oom_score_adj);
}

static int make_cgroup(struct launch *l, struct error *err)
{
	_cleanup_free_ char *parent = xstrndup(l->cgroup, (size_t)(strrchr(l->cgroup, '/') - l->cgroup));

	if (*parent && cgroup_frozen(parent))
		return error_set(err, ERROR_PRECONDITION, "cgroup %s is frozen", parent);
	int r = cgroup_create(l->cgroup, err);

	if (r == 0)
		r = cgroup_apply(l->cgroup, &l->limits, err);
	if (r == 0)
		r = cgroup_apply_devices(l->cgroup, l, err);
	return r;
}

/* The plan stays beside the container: execs need it, and whoever cleans up. It is there whole or not at all: half of one,
 * after a kill -9, would keep the pod from being removed. */
static int write_launch(int dir_fd, const struct launch *l, int *ret_fd, struct error *err)
{
	_cleanup_free_ char *dir = xasprintf("containers/%s", l->id);
	_cleanup_free_ char *path = xasprintf("containers/%s/launch.new", l->id);
	_cleanup_free_ char *final = xasprintf("containers/%s/launch", l->id);
	_cleanup_(str_done) struct str plan = STR_INIT;

	if ((mkdirat(dir_fd, "containers", 0700) < 0 && errno != EEXIST) || (mkdirat(dir_fd, dir, 0700) < 0 && errno != EEXIST))
		return error_sys(err, errno, "make %s", dir);
	_cleanup_fd_ int fd = openat(dir_fd, path, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return error_sys(err, errno, "make %s", path);
	launch_encode(l, &plan);
	int r = fd_write_full(fd, plan.buf, plan.len);

	if (r == 0 && renameat(dir_fd, path, dir_fd, final) < 0)
		r = -errno;
	if (r < 0)
		return error_sys(err, r, "write %s", final);
	*ret_fd = steal_fd(&fd);
	return 0;
}

static int start_in_monitor(struct pod_monitor *m, const struct launch *l, int plan, unsigned timeout_ms,
	struct monitor_reply *ret, struct error *err)
{
	_cleanup_fd_ int conn = -1, log = -1;
	int r = str_empty(l->log_path) ? 0 : pod_log_open(l->log_path, &log, err);

	if (r == 0)
		r = client_connect(m->dir_fd, &conn, err);
	if (r == 0)
		r = client_send(conn, MONITOR_START, l->id, 0, 0, (const int[]){ plan, log }, log < 0 ? 1 : 2, err);
	if (r < 0)
		return r;
	r = client_receive(conn, (int)timeout_ms, ret, NULL, err);
	if (r == -ETIMEDOUT) {
		struct monitor_reply late;

		if (client_send(conn, MONITOR_CANCEL, l->id, 0, 0, NULL, 0, NULL) == 0)
			(void)!client_receive(conn, CANCEL_TIMEOUT_MS, &late, NULL, NULL);
		return error_set(err, ERROR_DEADLINE, "start container %s: not done within %u ms; a mount hangs?", l->id, timeout_ms);
	}
	return r;
}

int pod_container_start(struct pod_monitor *m, struct launch *l, unsigned timeout_ms, pid_t *ret_pid, uint64_t *ret_started_ns,
	struct error *err)
{
	struct monitor_reply reply;
	_cleanup_fd_ int plan = -1;
	int r = pod_container_create(m, l, err);

	if (r < 0)
		return r;
	if (!l->cgroup || l->cgroup[0] != '/')
		return error_set(err, ERROR_INVALID, "container %s: has no cgroup", l->id);
	warn_of_limits(l);
	cgroup_fill_launch(l);
	r = write_launch(m->dir_fd, l, &plan, err); /* first, so that pod_cleanup() knows the cgroup */
	if (r < 0)
		return r;
	r = make_cgroup(l, err);
	if (r == 0)
		r = start_in_monitor(m, l, plan, timeout_ms ? timeout_ms : START_TIMEOUT_MS, &reply, err);
	if (r < 0) {
		struct error later = ERROR_INIT;

		if (cgroup_kill(l->cgroup, KILL_TIMEOUT_MS, &later) < 0 || cgroup_remove(l->cgroup, &later) < 0)
			log_warning("undo the start of a container container=%s: %s", l->id, later.text);
		return r;
	}
	*ret_pid = reply.pid;
	*ret_started_ns = reply.time_ns;
	return 0;
}

int pod_container_signal(struct pod_monitor *m, const char *container_id, int signal, struct error *err)
{
	int r;

	if (signal < 1 || signal >= _NSIG)
		return error_set(err, ERROR_INVALID, "signal %d: there is none", signal);
	r = client_call(m->dir_fd, MONITOR_SIGNAL, container_id, signal, NULL, 0, NULL, NULL, err);
	/* A dead monitor has taken its containers along. */
	return r == -ENOENT ? 0 : r;
}

int pod_container_kill_all(struct pod_monitor *m, const char *container_id, struct error *err)
{
	_cleanup_(launch_free_p) struct launch *l = NULL;
	int r = pod_launch_read(m->dir_fd, container_id, &l, err);

	return r == -ENOENT ? 0 : r < 0 ? r : cgroup_kill(l->cgroup, 0, err);
}

int pod_container_reopen_log(struct pod_monitor *m, const char *container_id, const char *log_path, struct error *err)
{
	_cleanup_fd_ int log = -1;
	int r = str_empty(log_path) ? error_set(err, ERROR_PRECONDITION, "container %s: has no log", container_id) :
				      pod_log_open(log_path, &log, err);

	if (r == 0)
		r = client_call(m->dir_fd, MONITOR_LOG, container_id, 0, &log, 1, NULL, NULL, err);
	if (r == -ENOENT)
		return error_set(err, ERROR_PRECONDITION, "container %s: does not run", container_id);
	return r;
}

int pod_container_remove(const char *cgroup, struct error *err)
{
	int r = cgroup_kill(cgroup, KILL_TIMEOUT_MS, err);

	return r < 0 ? r : cgroup_remove(cgroup, err);
}

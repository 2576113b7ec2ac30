/*
 * pod.c - purpose: a pod's monitor: start it, find it again, hear from it, end it and clean up after it.
 *
 * What a start makes, in this order, and what pod_cleanup() takes away in the reverse one: the plan in <dir>/sandbox,
 * cgroups, the tmpfs on <dir>/shm, <dir>/monitor.sock, the process.
 */
#include "runtime-lite/engine/pod.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "common/base/log.h"
#include "common/sys/file.h"
#include "runtime-lite/engine/cgroup.h"
#include "runtime-lite/engine/pod_internal.h"

enum { PLAN_MAX = 1 << 20, SAFE_FD = 32, KILL_TIMEOUT_MS = 10000 };

int pod_memfd(const struct str *content, int *ret_fd, struct error *err)
{
	_cleanup_fd_ int fd = memfd_create("plan", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r = fd < 0 ? -errno : fd_write_full(fd, content->buf, content->len);

	if (r == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		r = -errno;
	if (r < 0)
		return error_sys(err, r, "make a memory file");
	*ret_fd = steal_fd(&fd);
	return 0;
}

static int open_dir(const char *dir, int *ret_fd, struct error *err)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? error_set(err, ERROR_NOT_FOUND, "%s: does not exist", dir) : error_sys(err, errno, "open %s", dir);
	*ret_fd = fd;
	return 0;
}

static int mount_shm(const char *dir, uint64_t bytes, struct error *err)
{
	_cleanup_free_ char *path = xasprintf("%s/shm", dir);
	char options[64];

	if (!bytes)
		return 0;
	snprintf(options, sizeof(options), "mode=1777,size=%llu", (unsigned long long)bytes);
	if (mkdir(path, 01777) < 0 && errno != EEXIST)
		return error_sys(err, errno, "make %s", path);
	if (mount("shm", path, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, options) < 0)
		return error_sys(err, errno, "mount %s", path);
	if (mount(NULL, path, NULL, MS_PRIVATE, NULL) < 0)
		log_warning("shm of a pod stays shared path=%s", path);
	return 0;
}

static int make_cgroups(struct sandbox_launch *s, struct error *err)
{
	int r = cgroup_create(s->monitors_cgroup, err);

	if (r == 0)
		r = cgroup_create(s->cgroup, err);
	if (r == 0 && s->cgroup_owned)
		r = cgroup_apply(s->cgroup, &s->limits, err);
	if (r < 0)
		return r;
	strv_done(&s->monitor_dirs);
	cgroup_dirs(s->monitors_cgroup, &s->monitor_dirs);
	return 0;
}

/* Bound here, but listened to by the monitor. fchmod() before bind() sets the mode without a moment of another one. */
static int bind_socket(int dir_fd, int *ret_fd, struct error *err)
{
	_cleanup_fd_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d/monitor.sock", dir_fd);
	if (fd < 0 || fchmod(fd, 0600) < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		return error_sys(err, errno, "bind the monitor's socket");
	*ret_fd = steal_fd(&fd);
	return 0;
}

/* `fds` become MONITOR_FD_PLAN and the following. They are moved out of the way first, because a dup2() onto a number
 * that is still to be read would lose it. */
static int spawn(const char *libexec_dir, const char *id, const int fds[4], struct error *err)
{
	_cleanup_free_ char *path = xasprintf("%s/monitor", libexec_dir);
	char *argv[] = { (char *)"monitor", (char *)id, NULL }, *envp[] = { NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none, all;
	int moved[4] = { -1, -1, -1, -1 }, r = 0;
	pid_t pid;

	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attr);
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	for (int i = 0; i < 3; i++)
		posix_spawn_file_actions_addopen(&actions, i, "/dev/null", O_RDWR, 0);
	for (int i = 0; i < 4; i++) {
		moved[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, SAFE_FD);
		if (moved[i] < 0)
			r = errno;
		posix_spawn_file_actions_adddup2(&actions, moved[i], MONITOR_FD_PLAN + i);
	}
	if (r == 0)
		r = posix_spawn(&pid, path, &actions, &attr, argv, envp);
	for (int i = 0; i < 4; i++)
		if (moved[i] >= 0)
			close(moved[i]);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	if (r != 0)
		return error_sys(err, r, "run %s", path);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}

static int subscribe(struct pod_monitor *m, struct error *err)
{
	struct monitor_reply reply;
	int r = client_connect(m->dir_fd, &m->events, err);

	if (r == 0)
		r = client_send(m->events, MONITOR_SUBSCRIBE, NULL, 0, 0, NULL, 0, err);
	if (r == 0)
		r = client_receive(m->events, CLIENT_TIMEOUT_MS, &reply, NULL, err);
	if (r == 0)
		m->pid = reply.pid;
	return r;
}

static struct pod_monitor *monitor_new(const char *dir)
{
	struct pod_monitor *m = xnew(struct pod_monitor);

	m->dir = xstrdup(dir);
	m->dir_fd = m->events = -1;
	return m;
}

static int start_process(struct pod_monitor *m, const struct sandbox_launch *s, const struct str *plan, const char *libexec_dir,
	struct error *err)
{
	_cleanup_fd_ int plan_fd = -1, listen_fd = -1, ours = -1, theirs = -1;
	struct monitor_reply ready;
	int pair[2];
	int r = pod_memfd(plan, &plan_fd, err);

	if (r == 0)
		r = bind_socket(m->dir_fd, &listen_fd, err);
	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return error_sys(err, errno, "make a socket pair");
	ours = pair[0];
	theirs = pair[1];
	r = spawn(libexec_dir, s->id, (const int[]){ plan_fd, listen_fd, theirs, m->dir_fd }, err);
	close(steal_fd(&theirs));
	if (r == 0)
		r = client_receive(ours, CLIENT_TIMEOUT_MS * 3, &ready, NULL, err);
	return r < 0 ? error_prefix(err, "start the pod's monitor") : subscribe(m, err);
}

static int start_steps(struct pod_monitor *m, struct sandbox_launch *s, const char *libexec_dir, struct error *err)
{
	_cleanup_(str_done) struct str plan = STR_INIT;
	int r = open_dir(s->dir, &m->dir_fd, err);

	if (r < 0)
		return r;
	sandbox_launch_encode(s, &plan);
	r = file_replace(m->dir_fd, "sandbox", plan.buf, plan.len, 0600, err); /* the intent, for pod_cleanup() */
	if (r == 0)
		r = make_cgroups(s, err);
	if (r == 0)
		r = mount_shm(s->dir, s->shm_bytes, err);
	if (r < 0)
		return r;
	str_reset(&plan);
	sandbox_launch_encode(s, &plan); /* now with the monitor's cgroup directories */
	return start_process(m, s, &plan, libexec_dir, err);
}

int pod_monitor_start(const struct sandbox_launch *launch, const char *libexec_dir, struct pod_monitor **ret, struct error *err)
{
	_cleanup_(pod_monitor_free_p) struct pod_monitor *m = NULL;
	_cleanup_(sandbox_launch_free_p) struct sandbox_launch *s = NULL;
	_cleanup_(str_done) struct str copy = STR_INIT;
	int r = sandbox_launch_check(launch, err);

	if (r < 0)
		return r;
	sandbox_launch_encode(launch, &copy);
	r = sandbox_launch_parse(copy.buf, copy.len, &s, err);
	if (r < 0)
		return r;
	m = monitor_new(s->dir);
	r = start_steps(m, s, libexec_dir, err);
	if (r < 0) {
		struct error later = ERROR_INIT;

		if (pod_cleanup(s->dir, &later) < 0)
			log_warning("undo the start of a pod sandbox=%s: %s", s->id, later.text);
		return r;
	}
	*ret = steal(m);
	return 0;
}

int pod_monitor_connect(const char *sandbox_dir, struct pod_monitor **ret, struct error *err)
{
	_cleanup_(pod_monitor_free_p) struct pod_monitor *m = monitor_new(sandbox_dir);
	int r = open_dir(sandbox_dir, &m->dir_fd, err);

	if (r == 0)
		r = subscribe(m, err);
	if (r < 0)
		return r;
	*ret = steal(m);
	return 0;
}

struct pod_monitor *pod_monitor_free(struct pod_monitor *m)
{
	if (!m)
		return NULL;
	if (m->events >= 0)
		close(m->events);
	if (m->dir_fd >= 0)
		close(m->dir_fd);
	free(m->dir);
	free(m);
	return NULL;
}

pid_t pod_monitor_pid(const struct pod_monitor *m)
{
	return m->pid;
}

int pod_monitor_netns(const struct pod_monitor *m)
{
	int fd = -1;
	int r = client_call(m->dir_fd, MONITOR_NETNS, NULL, 0, NULL, 0, NULL, &fd, NULL);

	return r < 0 ? r : fd < 0 ? -EIO : fd;
}

int pod_monitor_fd(const struct pod_monitor *m)
{
	return m->events;
}

int pod_monitor_next_event(struct pod_monitor *m, struct pod_event *ret)
{
	struct pollfd p = { .fd = m->events, .events = POLLIN };
	struct monitor_reply reply;

	while (!m->gone && poll(&p, 1, 0) > 0) {
		if (client_receive(m->events, 0, &reply, NULL, NULL) < 0) {
			m->gone = true;
		} else if (reply.kind == MONITOR_EXITED) {
			*ret = (struct pod_event){ .kind = POD_EVENT_EXITED, .exit = { .status = reply.status, .oom = reply.oom,
				.finished_ns = reply.time_ns, .log_dropped = reply.log_dropped } };
			snprintf(ret->container_id, sizeof(ret->container_id), "%s", reply.id);
			return 1;
		}
	}
	if (!m->gone)
		return 0;
	*ret = (struct pod_event){ .kind = POD_EVENT_GONE };
	return 1;
}

/* Its pid is safe to use: as long as the connection is up, the process is there. */
static bool kill_peer(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || peer.pid <= 1)
		return false;
	log_warning("kill the monitor of a pod, it does not answer pid=%d", (int)peer.pid);
	return kill(peer.pid, SIGKILL) == 0;
}

bool pod_monitor_kill_hung(struct pod_monitor *m, const char *container_id)
{
	struct error err = ERROR_INIT;

	if (client_call(m->dir_fd, MONITOR_STATE, container_id, 0, NULL, 0, NULL, NULL, &err) == 0 || err.code != ERROR_DEADLINE)
		return false;
	return kill_peer(m->events);
}

/* Asks the monitor to end all; one that does not answer is killed. */
static int end_monitor(int dir_fd, struct error *err)
{
	_cleanup_fd_ int fd = -1;
	struct monitor_reply reply;
	int r = client_connect(dir_fd, &fd, err);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	r = client_send(fd, MONITOR_STOP, NULL, 0, 0, NULL, 0, err);
	if (r == 0)
		r = client_receive(fd, CLIENT_TIMEOUT_MS, &reply, NULL, err);
	if (r < 0 && r != -ECONNREFUSED)
		kill_peer(fd);
	/* Its end closes the connection; the cgroups may be removed only then. */
	struct pollfd p = { .fd = fd };

	poll(&p, 1, CLIENT_TIMEOUT_MS);
	return 0;
}

static int clean_container(int dir_fd, const char *sandbox_dir, const char *id, struct error *err)
{
	_cleanup_(launch_free_p) struct launch *l = NULL;
	_cleanup_free_ char *dir = xasprintf("%s/containers/%s", sandbox_dir, id);
	struct exit_record record;
	pid_t pid;
	uint64_t started;
	int r = pod_launch_read(dir_fd, id, &l, err);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = cgroup_kill(l->cgroup, KILL_TIMEOUT_MS, err);
	if (r == 0 && pod_container_pid(dir, &pid, &started, NULL) == 0 && pod_container_exit(dir, &record, NULL) == -ENOENT) {
		struct error why = ERROR_INIT;

		record = (struct exit_record){ .status = 128 + SIGKILL, .finished_ns = clock_realtime_ns() };
		/* On a full disk the exit code is lost rather than the way out: removal is what makes space. */
		if (pod_exit_write(dir, &record, &why) < 0)
			log_warning("container %s: its exit is not recorded: %s", id, why.text);
	}
	return r < 0 ? r : cgroup_remove(l->cgroup, err);
}

static int clean_containers(int dir_fd, const char *sandbox_dir, struct error *err)
{
	_cleanup_free_ char *path = xasprintf("%s/containers", sandbox_dir);
	DIR *d = opendir(path);
	struct dirent *e;
	int r = 0;

	while (d && (e = readdir(d))) {
		struct error one = ERROR_INIT;

		if (launch_id_valid(e->d_name) && clean_container(dir_fd, sandbox_dir, e->d_name, &one) < 0 && r == 0) {
			if (err)
				*err = one;
			r = error_prefix(err, "clean up container %s", e->d_name);
		}
	}
	if (d)
		closedir(d);
	return r;
}

static int read_sandbox(int dir_fd, struct sandbox_launch **ret, struct error *err)
{
	_cleanup_free_ char *data = NULL;
	size_t len;
	int r = file_read(dir_fd, "sandbox", PLAN_MAX, &data, &len, err);

	return r < 0 ? r : sandbox_launch_parse(data, len, ret, err);
}

static void unmount_shm(const char *dir)
{
	_cleanup_free_ char *path = xasprintf("%s/shm", dir);

	while (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
		;
}

int pod_cleanup(const char *sandbox_dir, struct error *err)
{
	_cleanup_(sandbox_launch_free_p) struct sandbox_launch *s = NULL;
	_cleanup_fd_ int dir_fd = -1;
	int r = open_dir(sandbox_dir, &dir_fd, err);

	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = end_monitor(dir_fd, err);
	if (r < 0)
		return r;
	r = clean_containers(dir_fd, sandbox_dir, err);
	unmount_shm(sandbox_dir);
	unlinkat(dir_fd, "monitor.sock", 0);
	if (r < 0)
		return r;
	r = read_sandbox(dir_fd, &s, err);
	if (r == -ENOENT || (r == 0 && !s->cgroup_owned))
		return 0;
	if (r == 0)
		r = cgroup_kill(s->cgroup, KILL_TIMEOUT_MS, err);
	return r < 0 ? r : cgroup_remove(s->cgroup, err);
}

int pod_monitor_stop(struct pod_monitor *m, struct error *err)
{
	return pod_cleanup(m->dir, err);
}

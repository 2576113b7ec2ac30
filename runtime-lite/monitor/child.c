/*
 * child.c - purpose: from clone to exec: everything that turns a copy of the monitor into the container's process.
 *
 * Runs in the new process, blocking as it likes; the monitor goes on with its loop. The order is that of privileges:
 * first what needs the node's view (cgroups, mount sources, /proc of the node), then the tree, the user, and last what
 * cannot be taken back. Whatever fails is sent to the monitor as a struct error.
 */
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "runtime-lite/monitor/command.h"
#include "runtime-lite/monitor/credentials.h"
#include "runtime-lite/monitor/monitor.h"
#include "runtime-lite/monitor/mounts.h"
#include "runtime-lite/monitor/path.h"
#include "runtime-lite/monitor/sys.h"

static void send_message(int sync, int kind, const struct error *error, int fd)
{
	struct child_message m = { .kind = kind };
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { .header = { .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
	struct iovec iov = { &m, sizeof(m) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (error)
		m.error = *error;
	if (fd >= 0) {
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control.space);
	}
	(void)!sendmsg(sync, &msg, MSG_NOSIGNAL);
}

/* The monitor ignores a few signals and blocks all of them; both would be inherited through exec. */
static void reset_signals(void)
{
	sigset_t none;

	for (int s = 1; s < _NSIG; s++)
		signal(s, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The container dies with its monitor, which alone can reap it. The check closes the gap before the prctl. */
static int die_with_monitor(int sync)
{
	struct pollfd p = { .fd = sync };

	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	return poll(&p, 1, 0) > 0 && p.revents & (POLLHUP | POLLERR) ? -ECHILD : 0;
}

static int write_file(int dir, const char *path, const char *text)
{
	_cleanup_fd_ int fd = openat(dir, path, O_WRONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return -errno;
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

/* "0" means the writer: no handshake with the parent is needed. CLONE_INTO_CGROUP has done the unified hierarchy. */
static int join_cgroups(const struct child *c, struct error *err)
{
	for (size_t i = 0; i < c->l->cgroup_dirs.n; i++) {
		const char *dir = c->l->cgroup_dirs.v[i];
		_cleanup_fd_ int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
		int r = fd < 0 ? -errno : 0;

		if (r == 0 && c->exec_leaf && str_eq(dir, c->l->cgroup_track)) {
			_cleanup_fd_ int leaf = openat(fd, c->exec_leaf, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

			r = leaf < 0 ? -errno : write_file(leaf, "cgroup.procs", "0");
		} else if (r == 0) {
			r = write_file(fd, "cgroup.procs", "0");
		}
		if (r < 0)
			return error_sys(err, r, "join cgroup %s", dir);
	}
	return 0;
}

/* Lower than what we have is refused without CAP_SYS_RESOURCE; then it stays. */
static int set_oom_score(const struct launch *l, struct error *err)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", l->has_oom_score_adj ? l->oom_score_adj : 0);
	int r = write_file(AT_FDCWD, "/proc/self/oom_score_adj", text);

	return r < 0 && r != -EACCES && r != -EPERM ? error_sys(err, r, "set oom_score_adj %s", text) : 0;
}

/* Opened while /proc is the node's; written just before exec. */
static int open_apparmor(const struct launch *l, int *ret, struct error *err)
{
	static const char *const files[] = { "/proc/thread-self/attr/apparmor/exec", "/proc/thread-self/attr/exec" };

	for (size_t i = 0; i < ARRAY_LEN(files) && !str_empty(l->apparmor); i++) {
		*ret = open(files[i], O_WRONLY | O_CLOEXEC);
		if (*ret >= 0)
			return 0;
	}
	return str_empty(l->apparmor) ? 0 : error_sys(err, errno, "AppArmor profile %s", l->apparmor);
}

static int set_apparmor(const struct launch *l, int fd, struct error *err)
{
	char text[300];

	if (fd < 0)
		return 0;
	int n = snprintf(text, sizeof(text), "exec %s", l->apparmor);

	if (n >= (int)sizeof(text) || write(fd, text, (size_t)n) < 0)
		return error_sys(err, n >= (int)sizeof(text) ? ENAMETOOLONG : errno, "AppArmor profile %s", l->apparmor);
	return 0;
}

static int make_tree(const struct child *c, int *ret_terminal, struct error *err)
{
	struct mounts m;
	int master = -1;
	int r = mounts_collect(&m, c->l, err);

	if (r == 0)
		r = mounts_rootfs(&m, err);
	if (r == 0)
		r = mounts_attach(&m, err);
	if (r == 0 && c->l->tty)
		r = devices_console(&m, &master, ret_terminal, err);
	if (r == 0)
		r = mounts_mask(&m, err);
	if (r == 0)
		r = mounts_pivot(&m, err);
	if (r == 0 && master >= 0)
		send_message(c->sync, CHILD_PTY, NULL, master);
	if (master >= 0)
		close(master);
	return r;
}

static int enter_container(const struct child *c, int *ret_terminal, struct error *err)
{
	int master = -1;

	if (syscall(SYS_setns, c->target, CLONE_NEWNS | CLONE_NEWCGROUP) < 0)
		return error_sys(err, errno, "join the container's namespaces");
	if (!c->l->tty)
		return 0;
	int r = devices_exec_terminal(c->l, &master, ret_terminal, err);

	if (r == 0) {
		struct winsize size = { .ws_row = c->rows, .ws_col = c->columns };

		if (size.ws_row || size.ws_col)
			(void)ioctl(master, TIOCSWINSZ, &size);
		send_message(c->sync, CHILD_PTY, NULL, master);
		close(master);
	}
	return r;
}

/* Before an exec enters the container: whoever there may look into this process finds nothing of the node. */
static int close_others(const struct child *c, int apparmor)
{
	const int keep[] = { c->sync, c->target, apparmor, c->stdio[0], c->stdio[1], c->stdio[2] };
	unsigned from = 3;

	for (;;) {
		unsigned next = ~0u;

		for (size_t i = 0; i < ARRAY_LEN(keep); i++)
			if (keep[i] >= 0 && (unsigned)keep[i] >= from && (unsigned)keep[i] < next)
				next = (unsigned)keep[i];
		if (next > from && syscall(SYS_close_range, from, next - 1, 0) < 0)
			return -errno;
		if (next == ~0u)
			return 0;
		from = next + 1;
	}
}

/* The container's own /dev/null where it is real, so that no file of the node's mounts stays open. */
static int open_null(void)
{
	int fd = open("/dev/null", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3))
		return fd;
	if (fd >= 0)
		close(fd);
	return -ENODEV;
}

static int set_stdio(const struct child *c, int host_null, int terminal, struct error *err)
{
	int null = open_null();

	if (null < 0)
		null = host_null;
	if (terminal >= 0 && ioctl(terminal, TIOCSCTTY, 0) < 0)
		return error_sys(err, errno, "set the controlling terminal");
	for (int i = 0; i < 3; i++) {
		int from = terminal >= 0 ? terminal : c->stdio[i] >= 0 ? c->stdio[i] : null;

		if (dup2(from, i) < 0)
			return error_sys(err, errno, "set standard stream %d", i);
	}
	/* A program that reopens /dev/stdout must be able to, whoever it runs as. */
	for (int i = 1; i < 3 && terminal < 0 && c->l->uid; i++) {
		struct stat st;

		if (fstat(i, &st) == 0 && S_ISFIFO(st.st_mode))
			(void)!fchown(i, c->l->uid, (gid_t)-1);
	}
	return 0;
}

/* As the user; as root before for directories that only root may make. getcwd() outside of the root means that a
 * descriptor of the node leaked into cwd. */
static int check_cwd(const char *cwd, struct error *err)
{
	char now[PATH_MAX];

	if (syscall(SYS_getcwd, now, sizeof(now)) < 0)
		return error_sys(err, errno, "working directory %s", cwd);
	return now[0] == '/' ? 0 : error_set(err, ERROR_DENIED, "working directory %s: is outside of the container", cwd);
}

static int enter_cwd(const char *cwd, bool *entered)
{
	*entered = chdir(cwd) == 0;
	return *entered ? 0 : -errno;
}

static const char *cwd_of(const struct launch *l)
{
	return str_empty(l->cwd) ? "/" : l->cwd;
}

static int make_cwd(const struct launch *l, bool *entered, struct error *err)
{
	_cleanup_fd_ int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = root < 0 ? -errno : path_make(root, cwd_of(l), true);

	if (r >= 0)
		close(r);
	/* A read-only root, or a directory that only the user may enter: the chdir decides. */
	int r2 = enter_cwd(cwd_of(l), entered);

	if (r2 == -ENOENT || r2 == -ENOTDIR)
		return error_sys(err, r < 0 ? r : r2, "working directory %s", cwd_of(l));
	return 0;
}

static int execute(const struct child *c, int apparmor, bool in_cwd, struct error *err)
{
	const struct launch *l = c->l;
	char path[PATH_MAX];
	int r = 0;

	/* Once more as the user: that is who must be allowed in, unless only root is (a directory on NFS is the opposite). */
	if (chdir(cwd_of(l)) < 0 && !in_cwd)
		return error_sys(err, errno, "working directory %s", cwd_of(l));
	r = check_cwd(cwd_of(l), err);
	if (r == 0)
		r = command_find(l, path, err);
	if (r == 0)
		r = set_apparmor(l, apparmor, err);
	if (r == 0 && die_with_monitor(c->sync) < 0)
		r = error_set(err, ERROR_ABORTED, "the pod's monitor has died");
	if (r < 0)
		return r;
	umask(l->umask);
	if (syscall(SYS_close_range, 3, ~0u, 4 /* CLOSE_RANGE_CLOEXEC */) < 0)
		return error_sys(err, errno, "close descriptors");
	static char *const no_env[] = { NULL };

	send_message(c->sync, CHILD_READY, NULL, -1);
	r = credentials_seal(l, err);
	if (r < 0)
		return r;
	execve(path, l->args.v, l->env.n ? l->env.v : no_env);
	return command_failed(l, path, errno, err);
}

static int run(const struct child *c, struct error *err)
{
	const struct launch *l = c->l;
	int terminal = -1, apparmor = -1;
	bool in_cwd = false;
	int r = die_with_monitor(c->sync);

	reset_signals();
	umask(0);
	setsid();
	if (r < 0)
		return error_set(err, ERROR_ABORTED, "the pod's monitor has died");
	r = join_cgroups(c, err);
	if (r == 0)
		r = set_oom_score(l, err);
	if (r == 0)
		r = open_apparmor(l, &apparmor, err);
	if (r == 0 && l->is_exec && close_others(c, apparmor) < 0)
		r = error_sys(err, errno, "close the monitor's descriptors");
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (r == 0 && !l->is_exec && syscall(SYS_unshare, CLONE_NEWCGROUP) < 0)
		r = error_sys(err, errno, "make a cgroup namespace");
	if (r == 0)
		r = l->is_exec ? enter_container(c, &terminal, err) : make_tree(c, &terminal, err);
	if (r == 0)
		r = set_stdio(c, null, terminal, err);
	if (r == 0)
		r = make_cwd(l, &in_cwd, err);
	if (r == 0)
		r = credentials_limits(l, err);
	if (r == 0)
		r = credentials_switch(l, err);
	return r < 0 ? r : execute(c, apparmor, in_cwd, err);
}

_Noreturn void child_main(const struct child *c)
{
	struct error err = ERROR_INIT;

	run(c, &err);
	send_message(c->sync, CHILD_ERROR, &err, -1);
	_exit(127);
}

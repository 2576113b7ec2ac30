/*
 * main.c - purpose: the monitor of one pod: makes its namespaces, then waits.
 *
 *	monitor <sandbox id>
 *
 * Spawned by runtime-lite with the descriptors of protocol.h. It leaves the daemon's session, cgroup and parenthood, so
 * that stopping, restarting or killing the daemon does not touch it. It lives in the pod's net, ipc and uts namespaces:
 * its children are in them from birth. SIGTERM (as a shutting-down node sends it) makes it end with its last container;
 * when its sandbox directory is gone it kills what is left and ends.
 */
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include "runtime-lite/monitor/monitor.h"
#include "runtime-lite/monitor/sys.h"

enum { PLAN_MAX = 1 << 20 };

struct monitor monitor = { .epoll = -1, .self_pidns = -1, .pod_pidns = -1 };

uint64_t now_realtime_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int watch_add(int fd, enum watch kind, uint32_t index)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u64 = (uint64_t)kind << 32 | index };

	return epoll_ctl(monitor.epoll, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

void watch_remove(int fd)
{
	epoll_ctl(monitor.epoll, EPOLL_CTL_DEL, fd, NULL);
}

static int write_file(const char *path, const char *text)
{
	_cleanup_fd_ int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

/* No path is put together here: pages of the stack that are touched once stay for the life of the pod. */
static int join_cgroups(const struct sandbox_launch *s, struct error *err)
{
	for (size_t i = 0; i < s->monitor_dirs.n; i++) {
		_cleanup_fd_ int dir = open(s->monitor_dirs.v[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
		_cleanup_fd_ int fd = dir < 0 ? -1 : openat(dir, "cgroup.procs", O_WRONLY | O_CLOEXEC);

		if (fd < 0 || write(fd, "0", 1) < 0)
			return error_sys(err, errno, "join cgroup %s", s->monitor_dirs.v[i]);
	}
	return 0;
}

static int loopback_up(void)
{
	_cleanup_fd_ int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq ifr = { .ifr_name = "lo" };

	if (s < 0 || ioctl(s, SIOCGIFFLAGS, &ifr) < 0)
		return -errno;
	ifr.ifr_flags |= IFF_UP;
	return ioctl(s, SIOCSIFFLAGS, &ifr) < 0 ? -errno : 0;
}

/* "net.ipv4.conf.eth0/1.x": the first separator decides which of the two stands for '/'. */
static int set_sysctl(const struct launch_sysctl *c)
{
	char path[512];
	int n = snprintf(path, sizeof(path), "/proc/sys/%s", c->name);
	const char *first = strpbrk(c->name, "./");

	if (n >= (int)sizeof(path))
		return -ENAMETOOLONG;
	if (first && *first == '.')
		for (char *p = path + strlen("/proc/sys/"); *p; p++)
			*p = *p == '.' ? '/' : *p == '/' ? '.' : *p;
	return write_file(path, c->value);
}

static int make_namespaces(const struct sandbox_launch *s, struct error *err)
{
	bool uts = !str_empty(s->hostname);
	uint64_t flags = (s->net == LAUNCH_NS_POD ? CLONE_NEWNET : 0) | (s->ipc == LAUNCH_NS_POD ? CLONE_NEWIPC : 0) |
			 (uts ? CLONE_NEWUTS : 0);

	if (flags && syscall(SYS_unshare, flags) < 0)
		return error_sys(err, errno, "make the pod's namespaces");
	if (uts && sethostname(s->hostname, strlen(s->hostname)) < 0)
		return error_sys(err, errno, "set hostname %s", s->hostname);
	int r = s->net == LAUNCH_NS_POD ? loopback_up() : 0;

	if (r < 0)
		return error_sys(err, r, "bring the pod's loopback up");
	for (size_t i = 0; i < s->n_sysctls; i++) {
		r = set_sysctl(&s->sysctls[i]);
		if (r < 0)
			return error_sys(err, r, "set sysctl %s = %s", s->sysctls[i].name, s->sysctls[i].value);
	}
	return s->shared_pid ? process_spawn_init(err) : 0;
}

/* Many descriptors are used for a moment while a container is put together. */
static void raise_files(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) == 0) {
		l.rlim_cur = l.rlim_max;
		setrlimit(RLIMIT_NOFILE, &l);
	}
}

/* Joins, makes and sets what the plan says, and forgets the plan. */
static int follow_plan(const void *data, size_t len, void *arena, size_t arena_len, struct error *err)
{
	struct sandbox_launch s;

	if (sandbox_launch_decode(data, len, arena, arena_len, &s) < 0)
		return error_set(err, ERROR_INVALID, "sandbox plan: damaged, or of another version");
	int r = join_cgroups(&s, err);

	if (r < 0)
		return r;
	(void)!write_file("/proc/self/oom_score_adj", "-999"); /* refused without CAP_SYS_RESOURCE; then it stays */
	return make_namespaces(&s, err);
}

static int execute_plan(struct error *err)
{
	struct stat st;

	if (fstat(MONITOR_FD_PLAN, &st) < 0 || st.st_size <= 0 || st.st_size > PLAN_MAX)
		return error_set(err, ERROR_INVALID, "sandbox plan: of impossible size");
	size_t len = (size_t)st.st_size, arena_len = len * 2 + 4096;
	void *data = mmap(NULL, len, PROT_READ, MAP_PRIVATE, MONITOR_FD_PLAN, 0);
	void *arena = mmap(NULL, arena_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (data == MAP_FAILED || arena == MAP_FAILED)
		return error_sys(err, errno, "sandbox plan");
	int r = follow_plan(data, len, arena, arena_len, err);

	munmap(data, len);
	munmap(arena, arena_len);
	close(MONITOR_FD_PLAN);
	return r;
}

static int watch_all(struct error *err)
{
	sigset_t set;

	monitor.listen = MONITOR_FD_LISTEN;
	monitor.dir = MONITOR_FD_DIR;
	monitor.epoll = epoll_create1(EPOLL_CLOEXEC);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGIO);
	monitor.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (monitor.epoll < 0 || monitor.signals < 0)
		return error_sys(err, errno, "watch");
	/* listen() here makes us the peer that SO_PEERCRED names. */
	if (listen(monitor.listen, 64) < 0 || watch_add(monitor.listen, WATCH_LISTEN, 0) < 0 ||
		watch_add(monitor.signals, WATCH_SIGNAL, 0) < 0)
		return error_sys(err, errno, "listen");
	for (int fd = MONITOR_FD_LISTEN; fd < MONITOR_FD_FIRST_FREE; fd++)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	/* SIGIO when something in the directory is removed: no inotify instance, of which a node has but 128. */
	(void)!fcntl(monitor.dir, F_NOTIFY, DN_DELETE | DN_RENAME | DN_MULTISHOT);
	return 0;
}

static void check_directory(void)
{
	struct stat st;

	if (fstatat(monitor.dir, "monitor.sock", &st, AT_SYMLINK_NOFOLLOW) == 0)
		return;
	monitor.leaving = true;
	process_kill_all();
}

static void read_signals(void)
{
	struct signalfd_siginfo info;

	while (read(monitor.signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGTERM)
			monitor.leaving = true;
		else if (info.ssi_signo == SIGIO)
			check_directory();
	}
	process_reap();
}

/* One event at a time: what it closes cannot be in a batch that is still to come. */
static _Noreturn void loop(void)
{
	for (;;) {
		struct epoll_event e;

		if (epoll_wait(monitor.epoll, &e, 1, -1) != 1)
			continue;
		uint32_t index = (uint32_t)e.data.u64;

		switch ((enum watch)(e.data.u64 >> 32)) {
		case WATCH_LISTEN:
			server_accept();
			break;
		case WATCH_SIGNAL:
			read_signals();
			break;
		case WATCH_CONNECTION:
			server_readable(index);
			break;
		case WATCH_SYNC:
			process_sync(index);
			break;
		case WATCH_STREAM:
			process_stream(index);
			break;
		}
	}
}

static int set_up(struct error *err)
{
	int r = execute_plan(err);

	return r < 0 ? r : watch_all(err);
}

int main(int argc, char **argv)
{
	struct monitor_reply ready = { .version = MONITOR_VERSION, .kind = MONITOR_DONE };
	sigset_t all;

	if (argc != 2 || fcntl(MONITOR_FD_READY, F_GETFD) < 0) {
		static const char usage[] = "monitor: is started by runtime-lite, one for each pod\n";

		return write(STDERR_FILENO, usage, sizeof(usage) - 1) < 0 ? 2 : 1;
	}
	(void)argv;
	setsid();
	/* The parent ends at once, so that the daemon has no child; whoever adopts us is not in its unit. */
	if (fork() != 0)
		_exit(0);
	syscall(SYS_close_range, MONITOR_FD_FIRST_FREE, ~0u, 0);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	umask(0022);
	raise_files();
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	/* Nobody in a container may look into its children before they exec. Writing to this program's file by way of
	 * /proc/<pid>/exe fails as long as it runs, and containers do not outlive their monitor. */
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (chdir("/") < 0 || set_up(&ready.error) < 0)
		ready.kind = MONITOR_FAILED;
	ready.pid = getpid();
	(void)!send(MONITOR_FD_READY, &ready, sizeof(ready), MSG_NOSIGNAL);
	if (ready.kind == MONITOR_FAILED)
		_exit(1);
	close(MONITOR_FD_READY);
	loop();
}

/* sandbox.c - purpose: give up what fetching and unpacking an image does not need, before the first foreign byte. */
#include "runtime-lite/pull/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "common/sys/file.h"

#ifndef LANDLOCK_ACCESS_FS_REFER
#define LANDLOCK_ACCESS_FS_REFER (1ULL << 13)
#endif
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif

/* Files of any owner and mode, device nodes (as files: containers cannot open them), file capabilities. */
static const cap_value_t kept[] = { CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, CAP_MKNOD, CAP_SETFCAP };

static int drop_capabilities(struct error *err)
{
	cap_t now = cap_get_proc(), caps = cap_init();
	int r = now && caps ? 0 : -errno;

	/* What we do not have (a restricted service) cannot be kept: unpacking says then what it could not do. */
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(kept); i++) {
		cap_flag_value_t have = CAP_CLEAR;

		cap_get_flag(now, kept[i], CAP_PERMITTED, &have);
		if (have == CAP_SET && (cap_set_flag(caps, CAP_PERMITTED, 1, &kept[i], CAP_SET) < 0 ||
					       cap_set_flag(caps, CAP_EFFECTIVE, 1, &kept[i], CAP_SET) < 0))
			r = -errno;
	}
	for (cap_value_t c = 0; r == 0 && c <= CAP_LAST_CAP; c++)
		(void)cap_drop_bound(c); /* fails without CAP_SETPCAP; no_new_privs does as much */
	if (r == 0 && cap_set_proc(caps) < 0)
		r = -errno;
	cap_free(now);
	cap_free(caps);
	return r < 0 ? error_sys(err, r, "drop capabilities") : 0;
}

enum {
	READ_RIGHTS = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR,
	WRITE_RIGHTS = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
		LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
		LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		LANDLOCK_ACCESS_FS_MAKE_SYM,
};

/* Rights that make no sense for a file are refused for it. */
static int allow_fd(int ruleset, int fd, uint64_t rights)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		rights &= LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE;
	struct landlock_path_beneath_attr rule = { .allowed_access = rights, .parent_fd = fd };
	return syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0 ? -errno : 0;
}

/* What is not there, or cannot be named to Landlock, just stays forbidden. */
static void allow_path(int ruleset, const char *path, uint64_t rights)
{
	_cleanup_fd_ int fd = open(path, O_PATH | O_CLOEXEC);

	if (fd >= 0)
		(void)!allow_fd(ruleset, fd, rights);
}

/* Name resolution, TLS, shared libraries that glibc loads late (NSS), and our own view of directory descriptors. */
static const char *const readable[] = { "/usr", "/lib", "/lib64", "/etc/ssl", "/etc/pki", "/etc/ca-certificates",
	"/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/nsswitch.conf", "/etc/gai.conf", "/etc/services",
	"/etc/ld.so.cache", "/etc/ld.so.preload", "/etc/localtime", "/run/systemd/resolve", "/run/resolvconf",
	"/run/NetworkManager", "/proc", "/sys/devices/system/cpu", "/dev/urandom", "/dev/null" };

static int lock_files(const struct sandbox *s, bool *ret_landlock, struct error *err)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	uint64_t all = READ_RIGHTS | WRITE_RIGHTS | LANDLOCK_ACCESS_FS_EXECUTE;

	*ret_landlock = false;
	/* Not in this kernel, or switched off at boot; or its first version, which forbids to move a layer into place. */
	if (abi < 2)
		return 0;
	all |= LANDLOCK_ACCESS_FS_REFER;
	if (abi >= 3)
		all |= LANDLOCK_ACCESS_FS_TRUNCATE;
	struct landlock_ruleset_attr attr = { .handled_access_fs = all };
	_cleanup_fd_ int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	int r = ruleset < 0 ? -errno : allow_fd(ruleset, s->root_fd, all & ~(uint64_t)LANDLOCK_ACCESS_FS_EXECUTE);
	/* A pipe has no place in the file system, so there is nothing to allow. */
	if (r == 0 && s->input_fd >= 0) {
		r = allow_fd(ruleset, s->input_fd, READ_RIGHTS);
		r = r == -EBADFD ? 0 : r;
	}
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(readable); i++)
		allow_path(ruleset, readable[i], READ_RIGHTS);
	for (size_t i = 0; r == 0 && i < s->readable->n; i++)
		allow_path(ruleset, s->readable->v[i], READ_RIGHTS);
	if (r == 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
		r = -errno;
	if (r < 0)
		return error_sys(err, r, "Landlock");
	*ret_landlock = true;
	return 0;
}

/* Answered with EPERM. What nobody who downloads files calls, and what escapes are made of. */
static const int denied[] = {
#if !defined(__SANITIZE_ADDRESS__) /* its search for leaks traces the process */
	SCMP_SYS(ptrace),
#endif
	SCMP_SYS(execve), SCMP_SYS(execveat), SCMP_SYS(process_vm_readv),
	SCMP_SYS(process_vm_writev), SCMP_SYS(kcmp), SCMP_SYS(pidfd_getfd), SCMP_SYS(mount), SCMP_SYS(umount2),
	SCMP_SYS(pivot_root), SCMP_SYS(chroot), SCMP_SYS(move_mount), SCMP_SYS(open_tree), SCMP_SYS(fsopen), SCMP_SYS(fsconfig),
	SCMP_SYS(fsmount), SCMP_SYS(fspick), SCMP_SYS(mount_setattr), SCMP_SYS(unshare), SCMP_SYS(setns), SCMP_SYS(bpf),
	SCMP_SYS(perf_event_open), SCMP_SYS(userfaultfd), SCMP_SYS(io_uring_setup), SCMP_SYS(io_uring_enter),
	SCMP_SYS(io_uring_register), SCMP_SYS(keyctl), SCMP_SYS(add_key), SCMP_SYS(request_key), SCMP_SYS(init_module),
	SCMP_SYS(finit_module), SCMP_SYS(delete_module), SCMP_SYS(kexec_load), SCMP_SYS(kexec_file_load), SCMP_SYS(reboot),
	SCMP_SYS(swapon), SCMP_SYS(swapoff), SCMP_SYS(quotactl), SCMP_SYS(acct), SCMP_SYS(settimeofday),
	SCMP_SYS(clock_settime), SCMP_SYS(adjtimex), SCMP_SYS(clock_adjtime), SCMP_SYS(sethostname), SCMP_SYS(setdomainname),
	SCMP_SYS(syslog), SCMP_SYS(iopl), SCMP_SYS(ioperm), SCMP_SYS(open_by_handle_at), SCMP_SYS(name_to_handle_at),
	SCMP_SYS(fanotify_init), SCMP_SYS(lookup_dcookie), SCMP_SYS(personality), SCMP_SYS(modify_ldt), SCMP_SYS(vhangup),
	SCMP_SYS(nfsservctl), SCMP_SYS(mbind), SCMP_SYS(migrate_pages), SCMP_SYS(move_pages), SCMP_SYS(set_mempolicy),
	SCMP_SYS(setuid), SCMP_SYS(setgid), SCMP_SYS(setgroups), SCMP_SYS(setresuid), SCMP_SYS(setresgid),
	SCMP_SYS(setreuid), SCMP_SYS(setregid), SCMP_SYS(kill), SCMP_SYS(tkill), SCMP_SYS(rt_sigqueueinfo),
	SCMP_SYS(rt_tgsigqueueinfo), SCMP_SYS(pidfd_send_signal) };

static int filter_calls(struct error *err)
{
	/* Not AF_UNIX: root's sockets, ours among them, would open for us. Netlink is what getaddrinfo() asks for addresses. */
	static const int families[] = { AF_INET, AF_INET6, AF_NETLINK };
	const uint64_t namespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |
		CLONE_NEWNET;
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int r = filter ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(denied); i++) {
		r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), denied[i], 0);
		if (r == -EDOM || r == -EOPNOTSUPP)
			r = 0; /* not on this architecture */
	}
	/* abort() signals itself; nobody else. */
	if (r == 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(tgkill), 1, SCMP_A0(SCMP_CMP_NE, (scmp_datum_t)getpid()));
	/* Its flags are behind a pointer; without it glibc takes clone(), whose flags can be looked at. */
	if (r == 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	for (unsigned bit = 0; r == 0 && bit < 32; bit++)
		if (namespaces & 1ull << bit)
			r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
				SCMP_A0(SCMP_CMP_MASKED_EQ, 1ull << bit, 1ull << bit));
	/* Socket families between and beyond those allowed. */
	for (int family = 0; r == 0 && family < AF_MAX; family++) {
		bool allowed = false;

		for (size_t i = 0; i < ARRAY_LEN(families); i++)
			allowed = allowed || families[i] == family;
		if (!allowed)
			r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socket), 1,
				SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)family));
	}
	if (r == 0)
		r = seccomp_load(filter);
	seccomp_release(filter);
	return r < 0 ? error_sys(err, r, "seccomp") : 0;
}

static void lower_limit(int resource, rlim_t value)
{
	struct rlimit limit;

	if (getrlimit((__rlimit_resource_t)resource, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max = MIN(limit.rlim_max, value);
	setrlimit((__rlimit_resource_t)resource, &limit);
}

int sandbox_enter(const struct sandbox *s, bool *ret_landlock, struct error *err)
{
	lower_limit(RLIMIT_CORE, 0);
	lower_limit(RLIMIT_NOFILE, 4096);
	lower_limit(RLIMIT_FSIZE, s->max_file_bytes);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they reserve terabytes */
	lower_limit(RLIMIT_AS, 3ull << 30); /* three threads with a zstd window of 128 MiB each, and room */
#endif
	/* The daemon is the last that the kernel kills when memory is short; its children that read strangers' bytes are not. */
	(void)!file_write(AT_FDCWD, "/proc/self/oom_score_adj", "500", NULL);
	signal(SIGXFSZ, SIG_IGN); /* write() says EFBIG */
	signal(SIGPIPE, SIG_IGN);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return error_sys(err, errno, "set no_new_privs");
	int r = lock_files(s, ret_landlock, err);
	if (r == 0)
		r = drop_capabilities(err);
	if (r == 0)
		r = filter_calls(err);
	return r < 0 ? error_prefix(err, "sandbox of the pull program") : 0;
}

/* seccomp_test.c - purpose: the filters, tried by the kernel: a child loads one and makes a system call. */
#include <check.h>
#include <errno.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/base.h"
#include "runtime-lite/engine/seccomp.h"

#define DEFAULT_CAPS 0xa80425fbull

/* What the call answers under the filter: 0, an errno, or 1000 + signal. */
static int try(const struct sock_filter *filter, size_t n, long nr, long a, long b, long c)
{
	struct sock_fprog prog = { (unsigned short)n, (struct sock_filter *)filter };
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0)
			_exit(255);
		syscall(SYS_exit_group, syscall(nr, a, b, c) < 0 ? errno : 0); /* past any sanitizer */
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static const struct {
	const char *name;
	uint64_t caps;
	long nr, a, b, c;
	int result;
} cases[] = {
	{ "getpid", DEFAULT_CAPS, SYS_getpid, 0, 0, 0, 0 },
	{ "unshare", DEFAULT_CAPS, SYS_unshare, CLONE_FS, 0, 0, EPERM },
	{ "unshare with SYS_ADMIN", DEFAULT_CAPS | 1ull << CAP_SYS_ADMIN, SYS_unshare, CLONE_FS, 0, 0, 0 },
	{ "clone for a user namespace", DEFAULT_CAPS, SYS_clone, CLONE_NEWUSER, 0, 0, EPERM },
	{ "clone3", DEFAULT_CAPS, SYS_clone3, 0, 0, 0, ENOSYS },
	{ "clone3 with SYS_ADMIN", DEFAULT_CAPS | 1ull << CAP_SYS_ADMIN, SYS_clone3, 0, 0, 0, EINVAL },
	{ "personality", DEFAULT_CAPS, SYS_personality, 0xffffffff, 0, 0, 0 },
	{ "odd personality", DEFAULT_CAPS, SYS_personality, 0x40000, 0, 0, EPERM },
	{ "socket", DEFAULT_CAPS, SYS_socket, AF_UNIX, SOCK_STREAM, 0, 0 },
	{ "AF_ALG", DEFAULT_CAPS, SYS_socket, 38, SOCK_SEQPACKET, 0, EPERM },
	{ "AF_VSOCK", DEFAULT_CAPS, SYS_socket, 40, SOCK_STREAM, 0, EPERM },
	{ "reboot", DEFAULT_CAPS, SYS_reboot, 0, 0, 0, EPERM },
	{ "keyctl", DEFAULT_CAPS, SYS_keyctl, 0, 0, 0, EPERM },
	{ "bpf", DEFAULT_CAPS, SYS_bpf, 0, 0, 0, EPERM },
	{ "io_uring_setup", DEFAULT_CAPS, 425, 0, 0, 0, EPERM },
	{ "one of the future", DEFAULT_CAPS, 1000, 0, 0, 0, ENOSYS },
};

START_TEST(default_profile)
{
	struct sock_filter *filter;
	size_t n;
	struct error err = ERROR_INIT;

	ck_assert_msg(seccomp_default_filter(cases[_i].caps, &filter, &n, &err) == 0, "%s", err.text);
	ck_assert_int_eq(try(filter, n, cases[_i].nr, cases[_i].a, cases[_i].b, cases[_i].c), cases[_i].result);
	free(filter);
	seccomp_cache_clear();
}
END_TEST

START_TEST(cached)
{
	struct sock_filter *one, *two;
	size_t n, m;

	ck_assert_int_eq(seccomp_default_filter(DEFAULT_CAPS, &one, &n, NULL), 0);
	ck_assert_int_eq(seccomp_default_filter(DEFAULT_CAPS & ~1ull, &two, &m, NULL), 0); /* CHOWN does not matter */
	ck_assert_int_eq((int)n, (int)m);
	ck_assert_int_eq(memcmp(one, two, n * sizeof(*one)), 0);
	free(one);
	free(two);
	seccomp_cache_clear();
}
END_TEST

static const struct {
	const char *text;
	long nr, a;
	int result;
	const char *error;
} profiles[] = {
	{ "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":[{\"names\":[\"chroot\",\"nosuchcall\"],\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":42}]}", SYS_chroot, 0, 42, NULL },
	{ "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":[{\"name\":\"chroot\",\"action\":\"SCMP_ACT_ERRNO\"}]}", SYS_chroot, 0, EPERM, NULL },
	{ "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":[{\"names\":[\"chroot\"],\"action\":\"SCMP_ACT_KILL_PROCESS\"}]}", SYS_chroot, 0, 1031, NULL },
	{ "{\"defaultAction\":\"SCMP_ACT_ALLOW\"}", 1000, 0, ENOSYS, NULL },
	{ "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"defaultErrnoRet\":7,\"syscalls\":[{\"names\":[\"exit_group\",\"exit\"],\"action\":\"SCMP_ACT_ALLOW\"}]}", SYS_getpid, 0, 7, NULL },
	{ "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":[{\"names\":[\"personality\"],\"action\":\"SCMP_ACT_ERRNO\",\"args\":["
	  "{\"index\":0,\"value\":5,\"op\":\"SCMP_CMP_EQ\"},{\"index\":0,\"value\":6,\"op\":\"SCMP_CMP_EQ\"}]}]}", SYS_personality, 6, EPERM, NULL },
	{ "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":[{\"names\":[\"chroot\"],\"action\":\"SCMP_ACT_ERRNO\",\"excludes\":{\"caps\":[\"CAP_CHOWN\"]}}]}", SYS_chroot, 0, EFAULT, NULL },
	{ "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":[{\"names\":[\"chroot\"],\"action\":\"SCMP_ACT_ERRNO\",\"includes\":{\"caps\":[\"CAP_SYS_ADMIN\"]}}]}", SYS_chroot, 0, EFAULT, NULL },
	{ "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":[{\"names\":[\"chroot\"],\"action\":\"SCMP_ACT_ERRNO\",\"includes\":{\"minKernel\":\"4.8\"}}]}", SYS_chroot, 0, EPERM, NULL },
	{ "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"architectures\":[\"SCMP_ARCH_X86_64\",\"SCMP_ARCH_X86\",\"SCMP_ARCH_X32\"]}", SYS_getpid, 0, 0, NULL },
	{ "{\"defaultAction\":\"SCMP_ACT_MAYBE\"}", 0, 0, 0, "seccomp profile: defaultAction: action \"SCMP_ACT_MAYBE\": unknown" },
	{ "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"architectures\":[\"vax\"]}", 0, 0, 0, "architecture \"vax\": unknown" },
	{ "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":[{\"names\":[\"chroot\"],\"action\":\"SCMP_ACT_ERRNO\",\"args\":[{\"index\":9,\"op\":\"SCMP_CMP_EQ\"}]}]}", 0, 0, 0,
		"syscalls[0]: args: index 9" },
	{ "[]", 0, 0, 0, "must be an object" },
	{ "{", 0, 0, 0, "seccomp profile: " },
};

START_TEST(json_profile)
{
	struct sock_filter *filter;
	size_t n;
	struct error err = ERROR_INIT;
	int r = seccomp_json_filter(profiles[_i].text, strlen(profiles[_i].text), DEFAULT_CAPS, &filter, &n, &err);

	if (profiles[_i].error) {
		ck_assert_int_lt(r, 0);
		ck_assert_msg(strstr(err.text, profiles[_i].error), "%s", err.text);
		return;
	}
	ck_assert_msg(r == 0, "%s", err.text);
	ck_assert_int_eq(try(filter, n, profiles[_i].nr, profiles[_i].a, 0, 0), profiles[_i].result);
	free(filter);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("seccomp");
	TCase *c = tcase_create("seccomp");

	if (seccomp_supported()) {
		tcase_add_loop_test(c, default_profile, 0, ARRAY_LEN(cases));
		tcase_add_test(c, cached);
		tcase_add_loop_test(c, json_profile, 0, ARRAY_LEN(profiles));
	}
	tcase_set_timeout(c, 60);
	suite_add_tcase(s, c);
	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}

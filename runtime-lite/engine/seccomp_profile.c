/* seccomp_profile.c - purpose: build one filter with libseccomp. */
#include "runtime-lite/engine/seccomp_profile.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sys/mman.h>

#include "common/sys/file.h"

enum { X32_BIT = 0x40000000, STUB_INSNS = 6 };

static void add_known(struct seccomp_profile *p, uint32_t arch)
{
	for (size_t i = 0; i < p->n_arches; i++)
		if (p->arches[i].arch == arch)
			return;
	if (p->n_arches == SECCOMP_ARCHES_MAX)
		return;
	p->arches[p->n_arches].arch = arch;
	p->arches[p->n_arches++].largest = -1;
}

int seccomp_profile_begin(struct seccomp_profile *p, uint32_t default_action, struct error *err)
{
	*p = SECCOMP_PROFILE_INIT;
	p->ctx = seccomp_init(default_action);
	int r = p->ctx ? 0 : -ENOMEM;

	/* A binary tree of comparisons instead of a list: 3 times faster to load, and far faster to run. */
	if (r == 0)
		r = seccomp_attr_set(p->ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (r < 0) {
		seccomp_profile_done(p);
		return error_sys(err, r, "begin the seccomp profile");
	}
	add_known(p, seccomp_arch_native());
	return 0;
}

void seccomp_profile_done(struct seccomp_profile *p)
{
	if (p->ctx)
		seccomp_release(p->ctx);
	*p = SECCOMP_PROFILE_INIT;
}

int seccomp_profile_add_arch(struct seccomp_profile *p, uint32_t arch)
{
	int r = seccomp_arch_add(p->ctx, arch);

	if (r == -EEXIST)
		r = 0;
	if (r == 0)
		add_known(p, arch);
	return r;
}

static void note(struct seccomp_profile *p, const char *name)
{
	for (size_t i = 0; i < p->n_arches; i++) {
		int number = seccomp_syscall_resolve_name_arch(p->arches[i].arch, name);

		if (number >= 0)
			p->arches[i].largest = MAX(p->arches[i].largest, number & ~X32_BIT);
	}
}

int seccomp_profile_rule(struct seccomp_profile *p, const char *name, uint32_t action, unsigned n, const struct scmp_arg_cmp *args)
{
	int number = seccomp_syscall_resolve_name(name);

	if (number == __NR_SCMP_ERROR)
		return 0;
	note(p, name);
	int r = seccomp_rule_add_array(p->ctx, action, number, n, args);

	/* EDOM: not on this architecture; EEXIST: said before; EACCES: the same as the default action. */
	return r == -EDOM || r == -EEXIST || r == -EACCES ? 0 : r;
}

/* For each architecture: "if it is this one: if the number is beyond the largest: ENOSYS". x32 has numbers of its own in
 * amd64's name and is left to the filter. All jumps of "go on" lead behind the stub. */
static size_t make_stub(const struct seccomp_profile *p, struct sock_filter *stub)
{
	static const struct sock_filter load_arch = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
	static const struct sock_filter load_nr = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	size_t n = 0;

	if (p->no_stub)
		return 0;
	stub[n++] = load_arch;
	for (size_t i = 0; i < p->n_arches; i++) {
		if (p->arches[i].largest < 0 || p->arches[i].arch == SCMP_ARCH_X32)
			continue;
		stub[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, p->arches[i].arch, 0, STUB_INSNS - 1);
		stub[n++] = load_nr;
		stub[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, X32_BIT, 2, 0);
		stub[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, (uint32_t)p->arches[i].largest, 0, 1);
		stub[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
		stub[n++] = (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, 0);
	}
	for (size_t i = 0; i < n; i++)
		if (stub[i].code == (BPF_JMP | BPF_JA))
			stub[i].k = (uint32_t)(n - i - 1);
	return n;
}

int seccomp_profile_export(struct seccomp_profile *p, struct sock_filter **ret, size_t *ret_n, struct error *err)
{
	/* Through a memory file, because libseccomp 2.5 exports to descriptors only. */
	_cleanup_fd_ int fd = memfd_create("bpf", MFD_CLOEXEC);
	struct sock_filter stub[1 + STUB_INSNS * SECCOMP_ARCHES_MAX];
	int r = fd < 0 ? -errno : seccomp_export_bpf(p->ctx, fd);

	if (r < 0)
		return error_sys(err, r, "compile the seccomp profile");
	size_t n_stub = make_stub(p, stub);
	off_t size = lseek(fd, 0, SEEK_END);
	size_t n = size > 0 ? (size_t)size / sizeof(*stub) : 0;

	if (n == 0 || (size_t)size % sizeof(*stub) || n + n_stub > BPF_MAXINSNS)
		return error_set(err, ERROR_INVALID, "compile the seccomp profile: %zu instructions, at most %d are allowed",
			n + n_stub, BPF_MAXINSNS);
	struct sock_filter *filter = xreallocarray(NULL, n + n_stub, sizeof(*stub));

	memcpy(filter, stub, n_stub * sizeof(*stub));
	if (lseek(fd, 0, SEEK_SET) < 0 || fd_read_full(fd, filter + n_stub, (size_t)size) != size) {
		free(filter);
		return error_sys(err, EIO, "compile the seccomp profile");
	}
	*ret = filter;
	*ret_n = n + n_stub;
	return 0;
}

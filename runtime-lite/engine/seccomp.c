/* seccomp.c - purpose: the default profile and profiles in Docker's JSON, compiled to BPF; a cache of the results. */
#include "runtime-lite/engine/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <malloc.h>
#include <pthread.h>
#include <seccomp.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "common/sys/file.h"
#include "runtime-lite/engine/seccomp_tables.h"

enum { CACHE_MAX = 32 };

struct cached {
	uint64_t caps;
	struct sock_filter *filter;
	size_t n;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct cached cache[CACHE_MAX];
static size_t n_cached;

static void release_p(scmp_filter_ctx *ctx)
{
	if (*ctx)
		seccomp_release(*ctx);
}

bool seccomp_supported(void)
{
	return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0;
}

/* Through a memory file, because libseccomp 2.5 exports to descriptors only. */
int seccomp_export(void *ctx, struct sock_filter **ret, size_t *ret_n, struct error *err)
{
	_cleanup_fd_ int fd = memfd_create("bpf", MFD_CLOEXEC);
	int r = fd < 0 ? -errno : seccomp_export_bpf(ctx, fd);

	if (r < 0)
		return error_sys(err, r, "compile the seccomp profile");
	off_t size = lseek(fd, 0, SEEK_END);

	if (size <= 0 || size % (off_t)sizeof(struct sock_filter) || size / (off_t)sizeof(struct sock_filter) > BPF_MAXINSNS)
		return error_set(err, ERROR_INVALID, "compile the seccomp profile: %lld bytes, at most %d instructions are allowed",
			(long long)size, BPF_MAXINSNS);
	struct sock_filter *filter = xmalloc((size_t)size);

	if (lseek(fd, 0, SEEK_SET) < 0 || fd_read_full(fd, filter, (size_t)size) != size) {
		free(filter);
		return error_sys(err, EIO, "compile the seccomp profile");
	}
	*ret = filter;
	*ret_n = (size_t)size / sizeof(struct sock_filter);
	return 0;
}

int seccomp_begin(uint32_t default_action, void **ret_ctx, struct error *err)
{
	scmp_filter_ctx ctx = seccomp_init(default_action);
	int r = ctx ? 0 : -ENOMEM;

	/* A binary tree of comparisons instead of a list: 3 times faster to load, and far faster to run. */
	if (r == 0)
		r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	/* no_new_privs is the launch's business. */
	if (r == 0)
		r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_NNP, 0);
	if (r < 0) {
		if (ctx)
			seccomp_release(ctx);
		return error_sys(err, r, "begin the seccomp profile");
	}
	*ret_ctx = ctx;
	return 0;
}

/* The native architecture is in it from the start; 32-bit programs and x32 run on an amd64 kernel, too. */
static int add_architectures(scmp_filter_ctx ctx)
{
	static const struct {
		uint32_t native, more[2];
	} sets[] = {
		{ SCMP_ARCH_X86_64, { SCMP_ARCH_X86, SCMP_ARCH_X32 } },
		{ SCMP_ARCH_AARCH64, { SCMP_ARCH_ARM, 0 } },
		{ SCMP_ARCH_S390X, { SCMP_ARCH_S390, 0 } },
	};

	for (size_t i = 0; i < ARRAY_LEN(sets); i++)
		for (size_t k = 0; k < ARRAY_LEN(sets[i].more) && sets[i].native == seccomp_arch_native(); k++) {
			int r = sets[i].more[k] ? seccomp_arch_add(ctx, sets[i].more[k]) : 0;

			if (r < 0 && r != -EEXIST)
				return r;
		}
	return 0;
}

/* Names that this libseccomp does not know, or that the architecture has not, do not matter: they stay forbidden. */
static int allow(scmp_filter_ctx ctx, const char *name, unsigned n, const struct scmp_arg_cmp *args)
{
	int number = seccomp_syscall_resolve_name(name);
	int r = number == __NR_SCMP_ERROR ? 0 : seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, number, n, args);

	return r == -EDOM || r == -EEXIST ? 0 : r;
}

static int allow_list(scmp_filter_ctx ctx, const char *const *names)
{
	int r = 0;

	for (; *names && r == 0; names++)
		r = allow(ctx, *names, 0, NULL);
	return r;
}

static int allow_conditional(scmp_filter_ctx ctx)
{
	static const uint64_t personalities[] = { 0x0, 0x8, 0x20000, 0x20008, 0xffffffff };
	/* Address families beside AF_ALG (38: page cache writes through it) and AF_VSOCK (40: out of the machine). */
	const struct scmp_arg_cmp families[] = { SCMP_A0(SCMP_CMP_LT, 38), SCMP_A0(SCMP_CMP_EQ, 39), SCMP_A0(SCMP_CMP_GT, 40) };
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(personalities) && r == 0; i++)
		r = allow(ctx, "personality", 1, &SCMP_A0(SCMP_CMP_EQ, personalities[i]));
	for (size_t i = 0; i < ARRAY_LEN(families) && r == 0; i++)
		r = allow(ctx, "socket", 1, &families[i]);
	return r;
}

/* clone() makes namespaces only with CAP_SYS_ADMIN. clone3() hides its flags in memory: "not there" sends libc back to
 * clone(). */
static int restrict_clone(scmp_filter_ctx ctx)
{
	enum { NAMESPACES = 0x7e020000 };
	uint32_t native = seccomp_arch_native();
	bool second = native == SCMP_ARCH_S390X || native == SCMP_ARCH_S390;
	struct scmp_arg_cmp none = { .arg = second ? 1 : 0, .op = SCMP_CMP_MASKED_EQ, .datum_a = NAMESPACES, .datum_b = 0 };
	int r = allow(ctx, "clone", 1, &none);
	int clone3 = seccomp_syscall_resolve_name("clone3");

	if (r == 0 && clone3 != __NR_SCMP_ERROR)
		r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), clone3, 0);
	return r == -EDOM || r == -EEXIST ? 0 : r;
}

static int add_default_rules(scmp_filter_ctx ctx, uint64_t caps)
{
	int r = add_architectures(ctx);

	if (r == 0)
		r = allow_list(ctx, seccomp_allowed);
	if (r == 0)
		r = allow_conditional(ctx);
	for (size_t i = 0; i < seccomp_n_by_cap && r == 0; i++)
		if (caps >> seccomp_by_cap[i].cap & 1)
			r = allow_list(ctx, seccomp_by_cap[i].names);
	if (r == 0 && !(caps >> CAP_SYS_ADMIN & 1))
		r = restrict_clone(ctx);
	return r;
}

static int compile_default(uint64_t caps, struct sock_filter **ret, size_t *ret_n, struct error *err)
{
	_cleanup_(release_p) scmp_filter_ctx ctx = NULL;
	int r = seccomp_begin(SCMP_ACT_ERRNO(EPERM), &ctx, err);

	if (r < 0)
		return r;
	r = add_default_rules(ctx, caps);
	return r < 0 ? error_sys(err, r, "build the default seccomp profile") : seccomp_export(ctx, ret, ret_n, err);
}

static uint64_t caps_that_matter(uint64_t caps)
{
	uint64_t mask = 1ull << CAP_SYS_ADMIN;

	for (size_t i = 0; i < seccomp_n_by_cap; i++)
		mask |= 1ull << seccomp_by_cap[i].cap;
	return caps & mask;
}

/* The lock is held while compiling, so that fifty pods that start at once compile once. */
static int find_or_compile(uint64_t caps, const struct cached **ret, struct error *err)
{
	struct cached new = { .caps = caps };

	for (size_t i = 0; i < n_cached; i++)
		if (cache[i].caps == caps) {
			*ret = &cache[i];
			return 0;
		}
	int r = compile_default(caps, &new.filter, &new.n, err);

	malloc_trim(0); /* libseccomp took some MB for a moment */
	if (r < 0)
		return r;
	if (n_cached == CACHE_MAX) {
		free(cache[0].filter);
		memmove(cache, cache + 1, sizeof(cache) - sizeof(cache[0]));
		n_cached--;
	}
	cache[n_cached] = new;
	*ret = &cache[n_cached++];
	return 0;
}

int seccomp_default_filter(uint64_t caps, struct sock_filter **ret, size_t *ret_n, struct error *err)
{
	const struct cached *c;

	pthread_mutex_lock(&lock);
	int r = find_or_compile(caps_that_matter(caps), &c, err);

	if (r == 0) {
		*ret = xmemdup(c->filter, c->n * sizeof(*c->filter));
		*ret_n = c->n;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

void seccomp_cache_clear(void)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < n_cached; i++)
		free(cache[i].filter);
	n_cached = 0;
	pthread_mutex_unlock(&lock);
}

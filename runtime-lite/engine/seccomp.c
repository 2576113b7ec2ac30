/* seccomp.c - purpose: the default profile, compiled to BPF once for each set of capabilities. */
#include "runtime-lite/engine/seccomp.h"

#include <errno.h>
#include <linux/capability.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/prctl.h>

#include "runtime-lite/engine/seccomp_profile.h"
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

bool seccomp_supported(void)
{
	return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0;
}

/* 32-bit programs and x32 run on an amd64 kernel, too. */
static int add_architectures(struct seccomp_profile *p)
{
	static const struct {
		uint32_t native, more[2];
	} sets[] = {
		{ SCMP_ARCH_X86_64, { SCMP_ARCH_X86, SCMP_ARCH_X32 } },
		{ SCMP_ARCH_AARCH64, { SCMP_ARCH_ARM, 0 } },
		{ SCMP_ARCH_S390X, { SCMP_ARCH_S390, 0 } },
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(sets); i++)
		for (size_t k = 0; k < ARRAY_LEN(sets[i].more) && sets[i].native == seccomp_arch_native() && r == 0; k++)
			r = sets[i].more[k] ? seccomp_profile_add_arch(p, sets[i].more[k]) : 0;
	return r;
}

static int allow_list(struct seccomp_profile *p, const char *const *names)
{
	int r = 0;

	for (; *names && r == 0; names++)
		r = seccomp_profile_rule(p, *names, SCMP_ACT_ALLOW, 0, NULL);
	return r;
}

static int allow_conditional(struct seccomp_profile *p)
{
	static const uint64_t personalities[] = { 0x0, 0x8, 0x20000, 0x20008, 0xffffffff };
	/* Address families beside AF_ALG (38: page cache writes through it) and AF_VSOCK (40: out of the machine). */
	const struct scmp_arg_cmp families[] = { SCMP_A0(SCMP_CMP_LT, 38), SCMP_A0(SCMP_CMP_EQ, 39), SCMP_A0(SCMP_CMP_GT, 40) };
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(personalities) && r == 0; i++)
		r = seccomp_profile_rule(p, "personality", SCMP_ACT_ALLOW, 1, &SCMP_A0(SCMP_CMP_EQ, personalities[i]));
	for (size_t i = 0; i < ARRAY_LEN(families) && r == 0; i++)
		r = seccomp_profile_rule(p, "socket", SCMP_ACT_ALLOW, 1, &families[i]);
	return r;
}

/* clone() makes namespaces only with CAP_SYS_ADMIN. clone3() hides its flags in memory: "not there" sends libc back to
 * clone(). */
static int restrict_clone(struct seccomp_profile *p)
{
	enum { NAMESPACES = 0x7e020000 };
	uint32_t native = seccomp_arch_native();
	bool second = native == SCMP_ARCH_S390X || native == SCMP_ARCH_S390;
	struct scmp_arg_cmp none = { .arg = second ? 1 : 0, .op = SCMP_CMP_MASKED_EQ, .datum_a = NAMESPACES, .datum_b = 0 };
	int r = seccomp_profile_rule(p, "clone", SCMP_ACT_ALLOW, 1, &none);

	return r < 0 ? r : seccomp_profile_rule(p, "clone3", SCMP_ACT_ERRNO(ENOSYS), 0, NULL);
}

static int add_rules(struct seccomp_profile *p, uint64_t caps)
{
	int r = add_architectures(p);

	if (r == 0)
		r = allow_list(p, seccomp_allowed);
	if (r == 0)
		r = allow_conditional(p);
	for (size_t i = 0; i < seccomp_n_by_cap && r == 0; i++)
		if (caps >> seccomp_by_cap[i].cap & 1)
			r = allow_list(p, seccomp_by_cap[i].names);
	if (r == 0 && !(caps >> CAP_SYS_ADMIN & 1))
		r = restrict_clone(p);
	return r;
}

static int compile(uint64_t caps, struct sock_filter **ret, size_t *ret_n, struct error *err)
{
	_cleanup_(seccomp_profile_done) struct seccomp_profile p = SECCOMP_PROFILE_INIT;
	int r = seccomp_profile_begin(&p, SCMP_ACT_ERRNO(EPERM), err);

	if (r < 0)
		return r;
	r = add_rules(&p, caps);
	return r < 0 ? error_sys(err, r, "build the default seccomp profile") : seccomp_profile_export(&p, ret, ret_n, err);
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
	int r = compile(caps, &new.filter, &new.n, err);

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

/* credentials.c - purpose: give privileges up, step by step, in the only order that works. */
#include "runtime-lite/monitor/credentials.h"

#include <grp.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "runtime-lite/monitor/sys.h"

/* A hard limit above ours needs CAP_SYS_RESOURCE: without it the container gets what we have. */
static int set_limit(const struct launch_rlimit *limit)
{
	struct rlimit want = { limit->soft, limit->hard }, have;

	if (setrlimit(limit->resource, &want) == 0)
		return 0;
	if (errno != EPERM || getrlimit(limit->resource, &have) < 0)
		return -errno;
	want.rlim_max = MIN(want.rlim_max, have.rlim_max);
	want.rlim_cur = MIN(want.rlim_cur, want.rlim_max);
	return setrlimit(limit->resource, &want) < 0 ? -errno : 0;
}

int credentials_limits(const struct launch *l, struct error *err)
{
	for (size_t i = 0; i < l->n_rlimits; i++) {
		int r = set_limit(&l->rlimits[i]);

		if (r < 0)
			return error_sys(err, r, "set rlimit %d", l->rlimits[i].resource);
	}
	/* Keys of the node must not be shared; a kernel without keyrings has none to share. */
	(void)!syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
	return 0;
}

static int load_filter(const struct launch *l, struct error *err)
{
	struct sock_fprog prog = { .len = (unsigned short)l->n_seccomp, .filter = l->seccomp };

	if (!l->n_seccomp)
		return 0;
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0)
		return error_sys(err, errno, "load the seccomp filter");
	return 0;
}

static int drop_bounding(uint64_t keep)
{
	for (int cap = 0; cap < 64; cap++) {
		if (keep >> cap & 1)
			continue;
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return errno == EINVAL ? 0 : -errno; /* beyond the last one that the kernel knows */
	}
	return 0;
}

static int set_capabilities(const struct launch_caps *caps)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	for (int i = 0; i < 2; i++)
		data[i] = (struct __user_cap_data_struct){
			.effective = (uint32_t)(caps->effective >> 32 * i),
			.permitted = (uint32_t)(caps->permitted >> 32 * i),
			.inheritable = (uint32_t)(caps->inheritable >> 32 * i),
		};
	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

static int raise_ambient(uint64_t caps)
{
	for (int cap = 0; cap < 64; cap++)
		if (caps >> cap & 1 && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0) < 0)
			return -errno;
	return 0;
}

int credentials_switch(const struct launch *l, struct error *err)
{
	int r = drop_bounding(l->caps.bounding);

	if (r < 0)
		return error_sys(err, r, "drop the bounding capabilities");
	if (!l->no_new_privs) {
		r = load_filter(l, err);
		if (r < 0)
			return r;
	}
	/* Raw system calls: this process has one thread, glibc's wrappers would look for others. */
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
		return error_sys(err, errno, "keep capabilities");
	if (syscall(SYS_setgroups, l->n_groups, l->groups) < 0)
		return error_sys(err, errno, "set %zu supplementary groups", l->n_groups);
	if (syscall(SYS_setresgid, l->gid, l->gid, l->gid) < 0)
		return error_sys(err, errno, "set group %u", l->gid);
	if (syscall(SYS_setresuid, l->uid, l->uid, l->uid) < 0)
		return error_sys(err, errno, "set user %u", l->uid);
	r = set_capabilities(&l->caps);
	if (r < 0)
		return error_sys(err, r, "set capabilities");
	if (prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) < 0)
		return error_sys(err, errno, "unkeep capabilities");
	r = raise_ambient(l->caps.ambient);
	return r < 0 ? error_sys(err, r, "raise ambient capabilities") : 0;
}

int credentials_seal(const struct launch *l, struct error *err)
{
	if (!l->no_new_privs)
		return 0;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return error_sys(err, errno, "set no_new_privs");
	return load_filter(l, err);
}

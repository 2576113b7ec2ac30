/*
 * seccomp_profile.h - purpose: build one filter with libseccomp; for the two modules that make profiles.
 *
 * The result begins with a few instructions of our own: a system call newer than every one that the profile names fails
 * with ENOSYS instead of the default action, so that libraries fall back instead of giving up.
 */
#pragma once
#include "common/base/error.h"

#include <linux/filter.h>
#include <seccomp.h>

enum { SECCOMP_ARCHES_MAX = 8 };

struct seccomp_profile {
	scmp_filter_ctx ctx;
	struct {
		uint32_t arch;
		int largest; /* number named by a rule; -1: none */
	} arches[SECCOMP_ARCHES_MAX];
	size_t n_arches;
	bool no_stub; /* the default action lets calls through, or was chosen with an errno of its own */
};

#define SECCOMP_PROFILE_INIT ((struct seccomp_profile){ 0 })

/* With the native architecture. */
int seccomp_profile_begin(struct seccomp_profile *p, uint32_t default_action, struct error *err) MUST_USE;
void seccomp_profile_done(struct seccomp_profile *p);
/* -errno; one that is there already is fine. */
int seccomp_profile_add_arch(struct seccomp_profile *p, uint32_t arch) MUST_USE;
/* Names that this libseccomp does not know, or that an architecture has not, are left out: they stay at the default. */
int seccomp_profile_rule(struct seccomp_profile *p, const char *name, uint32_t action, unsigned n,
	const struct scmp_arg_cmp *args) MUST_USE;
int seccomp_profile_export(struct seccomp_profile *p, struct sock_filter **ret, size_t *ret_n, struct error *err) MUST_USE;

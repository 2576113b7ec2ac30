/* seccomp_tables.h - purpose: what the default profile allows, as tables; and what both profile modules use. */
#pragma once
#include "common/base/error.h"

#include <linux/filter.h>

/* Allowed to everybody; NULL ends the list. */
extern const char *const seccomp_allowed[];

/* Allowed to those who have the capability. */
struct seccomp_by_cap {
	int cap;
	const char *const *names;
};
extern const struct seccomp_by_cap seccomp_by_cap[];
extern const size_t seccomp_n_by_cap;

/* A libseccomp context, to be released with seccomp_release(). */
int seccomp_begin(uint32_t default_action, void **ret_ctx, struct error *err) MUST_USE;
int seccomp_export(void *ctx, struct sock_filter **ret, size_t *ret_n, struct error *err) MUST_USE;

/* seccomp_tables.h - purpose: what the default profile allows, as tables. */
#pragma once
#include "common/base/base.h"

/* Allowed to everybody; NULL ends the list. */
extern const char *const seccomp_allowed[];

/* Allowed to those who have the capability. */
struct seccomp_by_cap {
	int cap;
	const char *const *names;
};
extern const struct seccomp_by_cap seccomp_by_cap[];
extern const size_t seccomp_n_by_cap;

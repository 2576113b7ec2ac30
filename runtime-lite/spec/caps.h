/*
 * caps.h - purpose: the capability sets of a container. Pure.
 */
#pragma once
#include "common/cri/message.h"

struct cap_sets {
	uint64_t bounding, effective, permitted, inheritable, ambient;
};

/* The 14 that container runtimes give by default. */
uint64_t caps_default(void);
/* Bit number of "CAP_CHOWN" or "chown", -1 if unknown. */
int caps_number(const char *name);
/* result = (ALL added ? all : ALL dropped ? none : default) + added - dropped; privileged: all. `all` is what this
 * kernel knows and the daemon itself may pass on. Unknown names are errors. */
int caps_build(const CRI(LinuxContainerSecurityContext) * security, uint64_t all, struct cap_sets *ret,
	struct error *err) MUST_USE;
/* What may be passed on: /proc/self/status CapBnd. */
uint64_t caps_of_daemon(void);

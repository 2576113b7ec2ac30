/*
 * security.h - purpose: choose a container's seccomp filter and AppArmor profile.
 */
#pragma once
#include "common/cri/message.h"

#include <linux/filter.h>

/* RuntimeDefault, Unconfined or Localhost by the new field, else by the deprecated path; nothing said or privileged:
 * unconfined. *ret is the caller's, NULL: unconfined. `caps` are the bounding ones. */
int security_seccomp(const CRI(LinuxContainerSecurityContext) * security, uint64_t caps, struct sock_filter **ret,
	size_t *ret_n, struct error *err) MUST_USE;
/* *ret is the caller's, NULL: unconfined. A localhost profile that is not loaded is an error. */
int security_apparmor(const CRI(LinuxContainerSecurityContext) * security, char **ret, struct error *err) MUST_USE;

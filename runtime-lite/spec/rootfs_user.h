/*
 * rootfs_user.h - purpose: read the user database of an image, bounded and without leaving its root.
 */
#pragma once
#include "common/base/str.h"
#include "runtime-lite/spec/user.h"

/* user_resolve() with /etc/passwd and /etc/group out of the layers. */
int rootfs_user(const struct strv *lower, const CRI(LinuxContainerSecurityContext) * security, const char *image_user,
	struct user *ret, struct error *err) MUST_USE;

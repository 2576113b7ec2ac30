/*
 * inroot.h - purpose: paths inside a directory that hostile people filled: resolved by the kernel, never outside of it.
 *
 * Absolute links and ".." count from the root (RESOLVE_IN_ROOT), magic links and other mounts are refused.
 */
#pragma once
#include "common/base/error.h"

/* openat2() below root_fd; "" is the root itself. Returns a descriptor or -errno. */
int inroot_open(int root_fd, const char *path, int flags) MUST_USE;
/* The same, but refuses to follow any symbolic link (-ELOOP). */
int inroot_open_nolinks(int root_fd, const char *path, int flags) MUST_USE;

enum { INROOT_PATH_MAX = 4096, INROOT_NAME_MAX = 255 };
/* Cleans a name by its text: leading and double slashes, "." and "a/.." go away; "" is the root. INVALID when ".." climbs
 * above the root ("leaves the root filesystem"), for components over 255 bytes, and for more than max_depth components.
 * *ret is owned by the caller. */
int inroot_clean(const char *name, unsigned max_depth, char **ret, struct error *err) MUST_USE;
/* Splits a clean path: *ret_base points into path; the parent ("" at the top) is owned by the caller. */
char *inroot_parent(const char *path, const char **ret_base) MUST_USE;

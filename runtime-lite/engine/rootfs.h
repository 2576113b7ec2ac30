/*
 * rootfs.h - purpose: look into a container's root file system before it runs.
 *
 * For reading /etc/passwd and the like: never follow image paths on the node, open them with rootfs_open_file().
 */
#pragma once
#include "runtime-lite/spec/launch.h"

/* A directory descriptor of the layers put together, read-only, mounted nowhere. The caller closes it. */
int rootfs_open(const struct strv *lower, int *ret_fd, struct error *err) MUST_USE;
/* Opens a regular file for reading; symlinks are resolved inside of the root. ERROR_NOT_FOUND when it is missing;
 * ERROR_INVALID for anything but a regular file. The caller closes it. */
int rootfs_open_file(int root_fd, const char *path, int *ret_fd, struct error *err) MUST_USE;

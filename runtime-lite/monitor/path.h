/*
 * path.h - purpose: paths inside a root file system that nobody trusts.
 *
 * All are resolved by the kernel inside of root_fd, however the image's symlinks point; all give O_PATH descriptors, which
 * are then used instead of the path.
 */
#pragma once
#include "common/base/error.h"

/* -errno. With nofollow the last component itself. */
int path_open(int root_fd, const char *path, bool nofollow);
/* Opens; when missing, makes it and its parents (0755): a directory, or an empty file (0644). Dangling symlinks are
 * followed inside of the root. -errno. */
int path_make(int root_fd, const char *path, bool directory);
/* The directory of the path's last component, made if missing; *ret_name points into path. -errno. */
int path_make_parent(int root_fd, const char *path, const char **ret_name);

/*
 * lower.h - purpose: what an entry inherits from the layers below: attributes of directories, files to be linked to.
 */
#pragma once
#include "common/base/error.h"

#include <sys/stat.h>

/* Finds a path in the layers below (top first), as overlayfs would show it: *ret_fd is an O_PATH descriptor. -ENOENT if there
 * is nothing, or a whiteout. Links are not followed. */
int lower_find(const int *fds, size_t n, const char *path, int *ret_fd, struct stat *ret) MUST_USE;
/* Owner, mode, and attributes of a directory below onto dir_fd (readable); its times are in `st`. Returns 0 or -errno. */
int lower_copy_attributes(int lower_fd, const struct stat *st, int dir_fd) MUST_USE;
/* A regular file of at most max bytes with all its attributes, as a new file `name` in dir_fd. Returns 0 or -errno. */
int lower_copy_file(int lower_fd, const struct stat *st, int dir_fd, const char *name, uint64_t max) MUST_USE;
/* May an image set this extended attribute? */
bool xattr_allowed(const char *name);

/*
 * opaque.h - purpose: mark directories as opaque for overlayfs, by a tiny process that alone keeps CAP_SYS_ADMIN.
 *
 * Setting trusted.* attributes needs that capability, which is root's whole power; the program that reads strangers' bytes
 * must not have it. The helper takes directory descriptors over a socket, sets this one attribute on them, and can do
 * nothing else (seccomp). It ends when the socket closes.
 */
#pragma once
#include "common/base/error.h"

/* Forks the helper; before threads. *ret_fd is the socket to it. */
int opaque_start(int *ret_fd, struct error *err) MUST_USE;
/* Marks dir_fd. Thread-safe. Returns 0 or -errno. */
int opaque_mark(int socket_fd, int dir_fd) MUST_USE;

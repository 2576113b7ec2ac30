/*
 * file.h - purpose: read and write small files whole, and replace them atomically.
 *
 * Thread-safe; blocking. File descriptors are O_CLOEXEC. dir_fd may be AT_FDCWD.
 */
#pragma once
#include "common/base/error.h"

#include <sys/types.h>

/* Reads a whole file of at most max bytes; *ret is NUL-terminated and owned by the caller, *ret_len may be NULL.
 * Longer files: -EFBIG. A missing file: ERROR_NOT_FOUND, -ENOENT. Refuses anything that is not a regular file or
 * (procfs, sysfs) one that says size 0. */
int file_read(int dir_fd, const char *path, size_t max, char **ret, size_t *ret_len, struct error *err) MUST_USE;
/* Writes beside, fsyncs, renames over `path`, fsyncs the directory: after a power cut there is the old or the new. */
int file_replace(int dir_fd, const char *path, const void *data, size_t len, mode_t mode, struct error *err) MUST_USE;
/* Writes to an existing file in one write(): for procfs, sysfs, cgroupfs. */
int file_write(int dir_fd, const char *path, const char *text, struct error *err) MUST_USE;
/* mkdir -p; existing directories keep their mode. */
int dir_make(const char *path, mode_t mode, struct error *err) MUST_USE;
/* Removes a tree below dir_fd without following links or crossing mounts (EBUSY then). Missing is fine. */
int dir_remove(int dir_fd, const char *path, struct error *err) MUST_USE;
/* The lock of the one daemon that uses a directory: an exclusive flock. -EWOULDBLOCK if another still has it after a
 * second; for a moment the child of a daemon that was killed may have it, until it executes its program. */
int fd_lock(int fd) MUST_USE;
/* Reads or writes until done or a real error; -errno. A short read at the end of file gives the bytes read. */
ssize_t fd_read_full(int fd, void *buf, size_t len) MUST_USE;
int fd_write_full(int fd, const void *buf, size_t len) MUST_USE;
/* Milliseconds and nanoseconds; the only clock readers besides log.c. */
uint64_t clock_monotonic_ns(void);
uint64_t clock_realtime_ns(void);
/* Fills buf with random lower-case hex, n characters and NUL. */
void random_hex(char *buf, size_t n);

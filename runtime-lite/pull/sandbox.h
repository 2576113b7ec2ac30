/*
 * sandbox.h - purpose: give up what fetching and unpacking an image does not need, before the first foreign byte.
 *
 * no_new_privs; all capabilities but those that make files of any owner and mode; Landlock (where the kernel has it): only
 * the store can be written, only what name resolution and TLS need can be read; seccomp: no execution of programs, mounts,
 * namespaces, tracing, kernel modules, BPF, keys and the like; limits on memory, file size, open files, core dumps.
 */
#pragma once
#include "common/base/error.h"
#include "common/base/str.h"

struct sandbox {
	int root_fd;  /* the store: read and write */
	int input_fd; /* an archive or a directory to load: read; -1: none */
	const struct strv *readable; /* further directories and files, e.g. certs.d; missing ones are skipped */
	uint64_t max_file_bytes;
};

/* Before threads. *ret_landlock says whether the kernel had it. */
int sandbox_enter(const struct sandbox *s, bool *ret_landlock, struct error *err) MUST_USE;

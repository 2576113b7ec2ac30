/*
 * libc.h - purpose: the monitor's own C library: what it calls, and no more.
 *
 * There is one monitor for each pod, so what counts is how many pages each makes dirty: a static glibc costs some 40 kB
 * for its own tables, locale and TLS before main(). The functions have their usual prototypes (the system's headers are
 * used) and semantics, as far as a single thread without stdio needs them. Whoever needs another one in the monitor adds it
 * here; the link fails otherwise. Architectures other than amd64 and arm64 are linked with glibc (daemon.mk).
 */
#pragma once
#include <stddef.h>

/* A raw system call: the result, or -errno. */
long libc_call(long nr, long a, long b, long c, long d, long e, long f);
/* The same as a C function answers: -1 and errno. */
long libc_result(long r);

#define CALL(nr, ...) CALL_(nr, __VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define CALL_(nr, a, b, c, d, e, f, ...) \
	libc_result(libc_call(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f)))

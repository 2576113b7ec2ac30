/*
 * seccomp.h - purpose: seccomp filters as bytes, compiled once and cached.
 *
 * The default profile allows the system calls that containerd and Docker allow, more of them with certain
 * capabilities; everything else fails with EPERM. Compiling takes some 10 ms, so that the result is kept for each
 * distinct set of the capabilities that matter. Thread-safe.
 */
#pragma once
#include "common/base/error.h"

#include <linux/filter.h>

/* Is seccomp filtering there (kernel)? */
bool seccomp_supported(void);
/* The default profile for a container with these bounding capabilities (1 << CAP_...); *ret is a copy that the caller
 * owns (launch->seccomp, launch->n_seccomp). */
int seccomp_default_filter(uint64_t caps, struct sock_filter **ret, size_t *ret_n, struct error *err) MUST_USE;
/* A profile in Docker's JSON format, for localhost profiles. `caps` decides its includes and excludes. */
int seccomp_json_filter(const char *text, size_t len, uint64_t caps, struct sock_filter **ret, size_t *ret_n,
	struct error *err) MUST_USE;
/* Frees the cache (tests). */
void seccomp_cache_clear(void);

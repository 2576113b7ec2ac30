/*
 * base.h - purpose: the few macros and allocators that every module uses.
 *
 * This is the whole macro dialect of node-lite; adding to it needs a good reason. The x-allocators abort when memory
 * is out: the daemons are restarted by their service manager, state is on disk, containers are not their children,
 * and every size that outsiders choose is limited long before.
 */
#pragma once
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#define MUST_USE __attribute__((warn_unused_result))
#define UNUSED __attribute__((unused))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* Runs `f(&local)` when the local leaves its scope. */
#define _cleanup_(f) __attribute__((cleanup(f)))
/* Makes `f##_p`, to be named in _cleanup_, out of a destructor `f(T)`. */
#define DEFINE_CLEANUP(type, f)                                                                                        \
	static inline UNUSED void f##_p(type *p)                                                                       \
	{                                                                                                              \
		if (*p)                                                                                                \
			f(*p);                                                                                         \
	}

static inline void cleanup_free_p(void *p)
{
	free(*(void **)p);
}
static inline void cleanup_fd_p(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}
#define _cleanup_free_ _cleanup_(cleanup_free_p)
#define _cleanup_fd_ _cleanup_(cleanup_fd_p)

/* Hands a pointer over: its value, and the variable becomes NULL. */
#define steal(p)                                                                                                       \
	({                                                                                                             \
		__typeof__(p) stolen_ = (p);                                                                           \
		(p) = NULL;                                                                                            \
		stolen_;                                                                                               \
	})
/* The same for a file descriptor, which becomes -1. */
static inline int steal_fd(int *fd)
{
	int stolen = *fd;

	*fd = -1;
	return stolen;
}

/* A string from outside: not NUL-terminated, not checked, not owned. */
struct bytes {
	const char *ptr;
	size_t len;
};

/* Allocators that abort instead of returning NULL. The caller frees with free(). */
void *xmalloc(size_t size) MUST_USE;
void *xcalloc(size_t n, size_t size) MUST_USE;
void *xrealloc(void *p, size_t size) MUST_USE;
/* Grows an array of n elements; aborts when n * size overflows. */
void *xreallocarray(void *p, size_t n, size_t size) MUST_USE;
/* Copies; NULL gives NULL. */
char *xstrdup(const char *s) MUST_USE;
char *xstrndup(const char *s, size_t n) MUST_USE;
void *xmemdup(const void *p, size_t n) MUST_USE;
char *xasprintf(const char *fmt, ...) PRINTF(1, 2) MUST_USE;
#define xnew(type) ((type *)xcalloc(1, sizeof(type)))

static inline bool str_eq(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}
/* NULL and "" are the same to most of Kubernetes. */
static inline bool str_empty(const char *s)
{
	return !s || !*s;
}
bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);

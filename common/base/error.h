/*
 * error.h - purpose: the error value, which gathers context on its way up.
 *
 * A function that can fail returns 0 or a negative errno and takes `struct error *err` last (NULL is allowed). Each
 * level puts in front what it was doing, so that the text reads from the outside in:
 * "unpack layer sha256:ab12: link ../../etc: leaves the root filesystem".
 *
 * `code` is the gRPC status number, because the callers of our daemons are RPC clients. Codes are promises (a kubelet
 * takes NOT_FOUND from StopContainer as "already gone"), so errno is never translated into one, except that a node
 * which is out of space, memory or files says EXHAUSTED. Everything else set by error_sys() is INTERNAL.
 *
 * struct error holds no pointers and needs no freeing; it may be copied and sent through a pipe.
 */
#pragma once
#include "common/base/base.h"

enum error_code {
	ERROR_OK = 0,
	ERROR_CANCELLED = 1,
	ERROR_UNKNOWN = 2,
	ERROR_INVALID = 3,
	ERROR_DEADLINE = 4,
	ERROR_NOT_FOUND = 5,
	ERROR_EXISTS = 6,
	ERROR_DENIED = 7,
	ERROR_EXHAUSTED = 8,
	ERROR_PRECONDITION = 9,
	ERROR_ABORTED = 10,
	ERROR_OUT_OF_RANGE = 11,
	ERROR_UNIMPLEMENTED = 12,
	ERROR_INTERNAL = 13,
	ERROR_UNAVAILABLE = 14,
	ERROR_DATA_LOSS = 15,
	ERROR_UNAUTHENTICATED = 16,
};

enum { ERROR_TEXT_MAX = 504 };

struct error {
	enum error_code code;
	int sys; /* errno behind it, or 0 */
	char text[ERROR_TEXT_MAX];
};

#define ERROR_INIT ((struct error){ .code = ERROR_OK })

/* Sets code and text; returns a negative errno that stands for the code (NOT_FOUND: -ENOENT, ...). */
int error_set(struct error *err, enum error_code code, const char *fmt, ...) PRINTF(3, 4);
/* Sets the text "fmt: <errno text>"; `sys` may be positive or negative. Returns -abs(sys). */
int error_sys(struct error *err, int sys, const char *fmt, ...) PRINTF(3, 4);
/* Puts "fmt: " in front. When the text is full its front is cut, never the cause. Returns the errno of the error. */
int error_prefix(struct error *err, const char *fmt, ...) PRINTF(2, 3);
/* The negative errno that stands for a code; what error_set() returns. */
int error_code_errno(enum error_code code);
/* "NotFound", as grpc-go spells it. Static string. */
const char *error_code_name(enum error_code code);

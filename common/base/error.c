/* error.c - purpose: make, extend and name error values. */
#include "common/base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static const struct {
	const char *name;
	int sys;
} codes[] = {
	[ERROR_OK] = { "OK", 0 },
	[ERROR_CANCELLED] = { "Canceled", ECANCELED },
	[ERROR_UNKNOWN] = { "Unknown", EIO },
	[ERROR_INVALID] = { "InvalidArgument", EINVAL },
	[ERROR_DEADLINE] = { "DeadlineExceeded", ETIMEDOUT },
	[ERROR_NOT_FOUND] = { "NotFound", ENOENT },
	[ERROR_EXISTS] = { "AlreadyExists", EEXIST },
	[ERROR_DENIED] = { "PermissionDenied", EACCES },
	[ERROR_EXHAUSTED] = { "ResourceExhausted", ENOSPC },
	[ERROR_PRECONDITION] = { "FailedPrecondition", EBUSY },
	[ERROR_ABORTED] = { "Aborted", EAGAIN },
	[ERROR_OUT_OF_RANGE] = { "OutOfRange", ERANGE },
	[ERROR_UNIMPLEMENTED] = { "Unimplemented", ENOSYS },
	[ERROR_INTERNAL] = { "Internal", EIO },
	[ERROR_UNAVAILABLE] = { "Unavailable", ECONNREFUSED },
	[ERROR_DATA_LOSS] = { "DataLoss", EBADMSG },
	[ERROR_UNAUTHENTICATED] = { "Unauthenticated", EPERM },
};

int error_code_errno(enum error_code code)
{
	return (size_t)code < ARRAY_LEN(codes) ? -codes[code].sys : -EIO;
}

const char *error_code_name(enum error_code code)
{
	return (size_t)code < ARRAY_LEN(codes) ? codes[code].name : "Unknown";
}

int error_set(struct error *err, enum error_code code, const char *fmt, ...)
{
	if (err) {
		va_list args;

		va_start(args, fmt);
		vsnprintf(err->text, sizeof(err->text), fmt, args);
		va_end(args);
		err->code = code;
		err->sys = -error_code_errno(code);
	}
	return error_code_errno(code);
}

/* Only "the node is out of something" is derived from errno; see error.h. */
static enum error_code code_of(int sys)
{
	switch (sys) {
	case ENOSPC:
	case EDQUOT:
	case ENOMEM:
	case EMFILE:
	case ENFILE:
		return ERROR_EXHAUSTED;
	default:
		return ERROR_INTERNAL;
	}
}

/* strerror() is not thread-safe, strerrordesc_np() is, and knows no unknown numbers. */
static const char *sys_text(int sys)
{
	const char *text = strerrordesc_np(sys);

	return text ? text : "unknown error";
}

int error_sys(struct error *err, int sys, const char *fmt, ...)
{
	if (sys < 0)
		sys = -sys;
	if (err) {
		va_list args;

		va_start(args, fmt);
		int n = vsnprintf(err->text, sizeof(err->text), fmt, args);
		va_end(args);
		if (n >= 0 && (size_t)n < sizeof(err->text))
			snprintf(err->text + n, sizeof(err->text) - n, ": %s", sys_text(sys));
		err->code = code_of(sys);
		err->sys = sys;
	}
	return sys ? -sys : -EIO;
}

int error_prefix(struct error *err, const char *fmt, ...)
{
	char front[ERROR_TEXT_MAX + 2];
	va_list args;

	if (!err)
		return -EIO;
	va_start(args, fmt);
	vsnprintf(front, sizeof(front) - 2, fmt, args);
	va_end(args);

	size_t have = strlen(err->text);
	size_t room = sizeof(err->text) - 1 - have;
	size_t want = strlen(front) + 2;
	size_t cut = want > room ? want - room : 0;

	if (cut < want) {
		memmove(err->text + want - cut, err->text, have + 1);
		strcat(front, ": ");
		memcpy(err->text, front + cut, want - cut);
	}
	return err->sys ? -err->sys : error_code_errno(err->code);
}

/* text.c - purpose: memory, strings, numbers as text, and the words for errno, for the monitor. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((char *)to)[i] = ((const char *)from)[i];
	return to;
}

void *memmove(void *to, const void *from, size_t n)
{
	char *t = to;
	const char *f = from;

	if (t < f)
		for (size_t i = 0; i < n; i++)
			t[i] = f[i];
	else
		while (n--)
			t[n] = f[n];
	return to;
}

void *memset(void *to, int c, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((char *)to)[i] = (char)c;
	return to;
}

int memcmp(const void *a, const void *b, size_t n)
{
	const unsigned char *x = a, *y = b;

	for (size_t i = 0; i < n; i++)
		if (x[i] != y[i])
			return x[i] - y[i];
	return 0;
}

void *memchr(const void *s, int c, size_t n)
{
	const unsigned char *p = s;

	for (size_t i = 0; i < n; i++)
		if (p[i] == (unsigned char)c)
			return (void *)(p + i);
	return NULL;
}

size_t strlen(const char *s)
{
	size_t n = 0;

	while (s[n])
		n++;
	return n;
}

int strncmp(const char *a, const char *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (a[i] != b[i] || !a[i])
			return (unsigned char)a[i] - (unsigned char)b[i];
	return 0;
}

int strcmp(const char *a, const char *b)
{
	return strncmp(a, b, SIZE_MAX);
}

char *strcpy(char *restrict to, const char *restrict from)
{
	memcpy(to, from, strlen(from) + 1);
	return to;
}

char *strcat(char *restrict to, const char *restrict from)
{
	strcpy(to + strlen(to), from);
	return to;
}

char *strchr(const char *s, int c)
{
	for (; *s != (char)c; s++)
		if (!*s)
			return NULL;
	return (char *)s;
}

char *strrchr(const char *s, int c)
{
	const char *last = NULL;

	for (;; s++) {
		if (*s == (char)c)
			last = s;
		if (!*s)
			return (char *)last;
	}
}

static size_t span(const char *s, const char *set, bool in)
{
	size_t n = 0;

	while (s[n] && (strchr(set, s[n]) != NULL) == in)
		n++;
	return n;
}

size_t strspn(const char *s, const char *set)
{
	return span(s, set, true);
}

size_t strcspn(const char *s, const char *set)
{
	return span(s, set, false);
}

char *strpbrk(const char *s, const char *set)
{
	s += strcspn(s, set);
	return *s ? (char *)s : NULL;
}

char *strstr(const char *s, const char *what)
{
	size_t n = strlen(what);

	for (; strncmp(s, what, n) != 0; s++)
		if (!*s)
			return NULL;
	return (char *)s;
}

/* Decimal only; the callers read what the kernel wrote. */
unsigned long long strtoull(const char *restrict s, char **restrict ret_end, int base)
{
	const char *p = s + strspn(s, " \t\n"), *digits;
	unsigned long long v = 0;

	(void)base;
	for (digits = p; *p >= '0' && *p <= '9'; p++)
		v = v > (ULLONG_MAX - 9) / 10 ? ULLONG_MAX : v * 10 + (unsigned long long)(*p - '0');
	if (ret_end)
		*ret_end = (char *)(p == digits ? s : p);
	return v;
}

long strtol(const char *restrict s, char **restrict ret_end, int base)
{
	const char *p = s + strspn(s, " \t\n");
	bool negative = *p == '-';
	char *end;
	unsigned long long v = strtoull(p + negative, &end, base);

	if (ret_end)
		*ret_end = end == p + negative ? (char *)s : end;
	v = v > INT64_MAX ? INT64_MAX : v;
	return negative ? -(long)v : (long)v;
}

struct sink {
	char *buf;
	size_t size, n; /* n counts what would have been written, too */
};

static void put(struct sink *s, char c)
{
	if (s->n + 1 < s->size)
		s->buf[s->n] = c;
	s->n++;
}

static void put_padded(struct sink *s, const char *text, size_t len, size_t width, char fill)
{
	for (size_t i = len; i < width; i++)
		put(s, fill);
	for (size_t i = 0; i < len; i++)
		put(s, text[i]);
}

static void put_number(struct sink *s, uint64_t v, bool negative, unsigned base, size_t width, char fill)
{
	char digits[24];
	size_t n = sizeof(digits);

	do
		digits[--n] = "0123456789abcdef"[v % base];
	while (v /= base);
	if (negative && fill == '0') {
		put(s, '-');
		width -= width > 0;
	} else if (negative) {
		digits[--n] = '-';
	}
	put_padded(s, digits + n, sizeof(digits) - n, width, fill);
}

/* A size argument: digits, or '*' for one that is passed; `none` if there is neither. */
static size_t take_size(const char **f, va_list *args, size_t none)
{
	if (**f == '*') {
		int v = va_arg(*args, int);

		(*f)++;
		return v < 0 ? none : (size_t)v;
	}
	if (**f < '0' || **f > '9')
		return none;
	char *end;
	size_t v = strtoull(*f, &end, 10);

	*f = end;
	return v;
}

static uint64_t take_unsigned(va_list *args, bool wide)
{
	return wide ? va_arg(*args, unsigned long) : va_arg(*args, unsigned);
}

static int64_t take_signed(va_list *args, bool wide)
{
	return wide ? va_arg(*args, long) : va_arg(*args, int);
}

/* One conversion behind its '%': flags 0, width, precision (of strings), l ll z, d i u x o c s p %. */
static const char *convert(struct sink *s, const char *f, va_list *args)
{
	char fill = ' ';
	bool wide = false;

	for (; *f == '0' || *f == '-'; f++)
		fill = *f == '0' ? '0' : fill;
	size_t width = take_size(&f, args, 0), precision = SIZE_MAX;

	if (*f == '.') {
		f++;
		precision = take_size(&f, args, *f == '*' ? SIZE_MAX : 0);
	}
	for (; *f == 'l' || *f == 'z' || *f == 'h'; f++)
		wide = wide || *f != 'h';
	if (*f == 's') {
		const char *text = va_arg(*args, const char *);

		text = text ? text : "(null)";
		const char *end = memchr(text, '\0', precision);
		put_padded(s, text, end ? (size_t)(end - text) : precision, width, ' ');
	} else if (*f == 'd' || *f == 'i') {
		int64_t v = take_signed(args, wide);

		put_number(s, v < 0 ? -(uint64_t)v : (uint64_t)v, v < 0, 10, width, fill);
	} else if (*f == 'u' || *f == 'x' || *f == 'o') {
		put_number(s, take_unsigned(args, wide), false, *f == 'u' ? 10 : *f == 'x' ? 16 : 8, width, fill);
	} else if (*f == 'p') {
		put_number(s, (uintptr_t)va_arg(*args, void *), false, 16, width, fill);
	} else if (*f == 'c') {
		put(s, (char)va_arg(*args, int));
	} else if (*f) {
		put(s, *f);
	}
	return *f ? f + 1 : f;
}

int vsnprintf(char *restrict buf, size_t size, const char *restrict format, va_list args)
{
	struct sink s = { buf, size, 0 };
	va_list copy;

	va_copy(copy, args);
	for (const char *f = format; *f;) {
		if (*f == '%')
			f = convert(&s, f + 1, &copy);
		else
			put(&s, *f++);
	}
	va_end(copy);
	if (size)
		buf[s.n < size ? s.n : size - 1] = '\0';
	return (int)s.n;
}

int snprintf(char *restrict buf, size_t size, const char *restrict format, ...)
{
	va_list args;

	va_start(args, format);
	int n = vsnprintf(buf, size, format, args);
	va_end(args);
	return n;
}

/* What the calls of this program answer; anything else has its number only ("error 123"). */
const char *strerrordesc_np(int sys)
{
	static const struct {
		int sys;
		const char *text;
	} words[] = {
		{ EPERM, "Operation not permitted" }, { ENOENT, "No such file or directory" }, { ESRCH, "No such process" },
		{ EINTR, "Interrupted system call" }, { EIO, "Input/output error" }, { ENXIO, "No such device or address" },
		{ E2BIG, "Argument list too long" }, { ENOEXEC, "Exec format error" }, { EBADF, "Bad file descriptor" },
		{ ECHILD, "No child processes" }, { EAGAIN, "Resource temporarily unavailable" }, { ENOMEM, "Cannot allocate memory" },
		{ EACCES, "Permission denied" }, { EFAULT, "Bad address" }, { ENOTBLK, "Block device required" },
		{ EBUSY, "Device or resource busy" }, { EEXIST, "File exists" }, { EXDEV, "Invalid cross-device link" },
		{ ENODEV, "No such device" }, { ENOTDIR, "Not a directory" }, { EISDIR, "Is a directory" }, { EINVAL, "Invalid argument" },
		{ ENFILE, "Too many open files in system" }, { EMFILE, "Too many open files" }, { ENOTTY, "Inappropriate ioctl for device" },
		{ ETXTBSY, "Text file busy" }, { EFBIG, "File too large" }, { ENOSPC, "No space left on device" }, { ESPIPE, "Illegal seek" },
		{ EROFS, "Read-only file system" }, { EMLINK, "Too many links" }, { EPIPE, "Broken pipe" },
		{ ENAMETOOLONG, "File name too long" }, { ENOSYS, "Function not implemented" }, { ENOTEMPTY, "Directory not empty" },
		{ ELOOP, "Too many levels of symbolic links" }, { EOVERFLOW, "Value too large for defined data type" },
		{ EUSERS, "Too many users" }, { EOPNOTSUPP, "Operation not supported" }, { ESTALE, "Stale file handle" },
		{ EDQUOT, "Disk quota exceeded" }, { ECANCELED, "Operation canceled" }, { ETIMEDOUT, "Connection timed out" },
		{ ECONNREFUSED, "Connection refused" }, { ECONNRESET, "Connection reset by peer" }, { EHOSTDOWN, "Host is down" },
		{ ENOTCONN, "Transport endpoint is not connected" }, { ENOBUFS, "No buffer space available" },
	};
	static char other[24];

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (words[i].sys == sys)
			return words[i].text;
	snprintf(other, sizeof(other), "error %d", sys);
	return other;
}

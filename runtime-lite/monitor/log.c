/*
 * log.c - purpose: the containers' output as CRI log records.
 *
 * "<time> <stdout|stderr> <P|F> <text>\n", one write per record, at most 16 KiB of text in each (longer lines go on in
 * the next one: P). A full disk must never stop the container: what cannot be written is dropped and counted.
 */
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>

#include "runtime-lite/monitor/monitor.h"
#include "runtime-lite/monitor/sys.h"

enum { LINE_MAX_BYTES = 16384, BUFFER_BYTES = 20480, ROUNDS = 8, ROUNDS_LAST = 4096, HEADER_MAX = 48 };

/* Days since 1970 to year, month, day (proleptic Gregorian; eras of 400 years that begin in March). */
static void civil(int64_t days, int *year, int *month, int *day)
{
	days += 719468;
	int64_t era = days / 146097;
	int64_t of_era = days - era * 146097;
	int64_t y = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	int64_t of_year = of_era - (365 * y + y / 4 - y / 100);
	int64_t m = (5 * of_year + 2) / 153;

	*day = (int)(of_year - (153 * m + 2) / 5 + 1);
	*month = (int)(m < 10 ? m + 3 : m - 9);
	*year = (int)(y + era * 400 + (*month <= 2));
}

static size_t make_header(char *buf, int which)
{
	struct timespec t;
	int year, month, day;

	clock_gettime(CLOCK_REALTIME, &t);
	int64_t s = t.tv_sec % 86400;

	civil(t.tv_sec / 86400, &year, &month, &day);
	return (size_t)snprintf(buf, HEADER_MAX, "%04d-%02d-%02dT%02d:%02d:%02d.%09ldZ %s ? ", year, month, day, (int)(s / 3600),
		(int)(s / 60 % 60), (int)(s % 60), t.tv_nsec, which ? "stderr" : "stdout");
}

/* A record that went out in part (full disk) is taken back: readers take up to the last newline only. */
static void write_record(struct process *p, char *header, size_t header_len, bool full, const char *text, size_t len)
{
	header[header_len - 2] = full ? 'F' : 'P';
	struct iovec parts[3] = { { header, header_len }, { (char *)text, len }, { "\n", 1 } };
	size_t total = header_len + len + 1;

	if (p->log < 0)
		return;
	ssize_t n = writev(p->log, parts, 3);

	if (n == (ssize_t)total)
		return;
	p->log_dropped += len;
	if (n > 0) {
		struct stat st;

		if (fstat(p->log, &st) == 0 && st.st_size >= n)
			(void)!ftruncate(p->log, st.st_size - n);
	}
}

/* Writes all records that are whole, keeps the rest. */
static void write_lines(struct process *p, int which)
{
	struct stream *s = &p->out[which];
	char header[HEADER_MAX];
	size_t header_len = make_header(header, which), at = 0;

	while (at < s->len) {
		const char *text = s->buf + at;
		size_t left = s->len - at;
		const char *end = memchr(text, '\n', MIN(left, (size_t)LINE_MAX_BYTES + 1));

		if (end) {
			size_t n = (size_t)(end - text);

			write_record(p, header, header_len, true, text, n && text[n - 1] == '\r' ? n - 1 : n);
			at += n + 1;
		} else if (left > LINE_MAX_BYTES) {
			write_record(p, header, header_len, false, text, LINE_MAX_BYTES);
			at += LINE_MAX_BYTES;
		} else {
			break;
		}
	}
	memmove(s->buf, s->buf + at, s->len - at);
	s->len -= (uint32_t)at;
}

static void drop_buffer(struct stream *s)
{
	if (s->buf)
		munmap(s->buf, BUFFER_BYTES);
	s->buf = NULL;
	s->len = 0;
}

static void close_stream(struct process *p, int which)
{
	struct stream *s = &p->out[which];
	char header[HEADER_MAX];

	if (s->len) /* a last line without its end */
		write_record(p, header, make_header(header, which), false, s->buf, s->len);
	drop_buffer(s);
	if (s->fd >= 0) {
		watch_remove(s->fd);
		close(s->fd);
	}
	s->fd = -1;
}

bool log_drain(struct process *p, int which, bool last)
{
	struct stream *s = &p->out[which];

	for (int round = 0; s->fd >= 0 && round < (last ? ROUNDS_LAST : ROUNDS); round++) {
		if (!s->buf) {
			void *m = mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

			if (m == MAP_FAILED)
				return true; /* again at the next event */
			s->buf = m;
		}
		ssize_t n = read(s->fd, s->buf + s->len, BUFFER_BYTES - s->len);

		if (n > 0) {
			if (p->attached)
				attach_copy(p, which, s->buf + s->len, (size_t)n);
			s->len += (uint32_t)n;
			write_lines(p, which);
		} else if (n < 0 && errno == EINTR) {
			continue;
		} else if (n < 0 && errno == EAGAIN) {
			if (s->len == 0)
				drop_buffer(s);
			return true;
		} else { /* end; a terminal says EIO */
			close_stream(p, which);
			return false;
		}
	}
	return s->fd >= 0;
}

void log_close(struct process *p)
{
	for (int i = 0; i < 2; i++) {
		if (p->out[i].fd >= 0)
			log_drain(p, i, true);
		close_stream(p, i);
	}
	if (p->log >= 0)
		close(p->log);
	p->log = -1;
}

/* log.c - purpose: one line for each thing an administrator should know. */
#include "common/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

enum { LINE_MAX_BYTES = 2048 };

static const struct {
	const char *name;
	int priority; /* syslog(3) */
} levels[] = {
	[LOG_LEVEL_ERROR] = { "error", 3 },
	[LOG_LEVEL_WARNING] = { "warning", 4 },
	[LOG_LEVEL_INFO] = { "info", 6 },
	[LOG_LEVEL_DEBUG] = { "debug", 7 },
};

static const char *program_name = "node-lite";
static enum log_level max_level = LOG_LEVEL_INFO;
static bool to_journal;

/* systemd.exec(5): JOURNAL_STREAM is "device:inode" of the stream that the journal reads. */
static bool stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long dev, ino;
	struct stat st;

	return stream && sscanf(stream, "%lu:%lu", &dev, &ino) == 2 && fstat(STDERR_FILENO, &st) == 0 &&
	       st.st_dev == dev && st.st_ino == ino;
}

void log_init(const char *program, enum log_level level)
{
	program_name = program;
	max_level = level;
	to_journal = stderr_is_journal();
}

int log_level_parse(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(levels); i++)
		if (str_eq(name, levels[i].name))
			return (int)i;
	return -1;
}

static size_t put_prefix(char *line, size_t size, enum log_level level)
{
	struct timespec now;
	struct tm tm;
	char day[32];

	if (to_journal)
		return (size_t)snprintf(line, size, "<%d>", levels[level].priority);
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm);
	return (size_t)snprintf(line, size, "%s.%03ldZ %s %s: ", day, now.tv_nsec / 1000000, program_name,
		levels[level].name);
}

void log_line(enum log_level level, const char *fmt, ...)
{
	char line[LINE_MAX_BYTES];
	va_list args;

	if (level > max_level)
		return;
	size_t start = put_prefix(line, sizeof(line), level);

	va_start(args, fmt);
	int n = vsnprintf(line + start, sizeof(line) - start - 1, fmt, args);
	va_end(args);
	size_t end = start + MIN((size_t)MAX(n, 0), sizeof(line) - start - 2);

	for (size_t i = start; i < end; i++)
		if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
			line[i] = line[i] == '\n' || line[i] == '\t' ? ' ' : '?';
	line[end++] = '\n';
	if (write(STDERR_FILENO, line, end) < 0)
		return; /* nowhere left to say it */
}

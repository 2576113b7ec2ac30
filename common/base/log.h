/*
 * log.h - purpose: one line for each thing an administrator should know.
 *
 * Lines go to stderr: with a "<N>" priority prefix when the journal reads them (JOURNAL_STREAM names our stderr), else
 * with an RFC 3339 timestamp and the level. Text is "what happened key=value ...", pods as pod=ns/name. Control
 * characters are replaced, so that no text from outside can forge a line. Thread-safe: a line is one write().
 * Logging happens where an error stops travelling; nothing is both logged and returned.
 */
#pragma once
#include "common/base/base.h"

enum log_level {
	LOG_LEVEL_ERROR,
	LOG_LEVEL_WARNING,
	LOG_LEVEL_INFO,
	LOG_LEVEL_DEBUG,
};

/* `program` is a static string. Call once, before threads. */
void log_init(const char *program, enum log_level level);
/* "error", "warning", "info", "debug"; -1 if it is none of them. */
int log_level_parse(const char *name);
void log_line(enum log_level level, const char *fmt, ...) PRINTF(2, 3);

#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)

/*
 * log_line.h - purpose: lines of a CRI log file to what `kubectl logs` shows. Pure but for log_tail_offset().
 */
#pragma once
#include "common/base/str.h"

struct log_filter {
	bool timestamps;
	const char *only;   /* "stdout", "stderr" or NULL */
	int64_t since_ns;   /* 0: all */
	int64_t left;       /* bytes that may still be written; -1: no limit */
	bool inside;        /* the line before was a part of one that goes on */
};
#define LOG_FILTER_INIT ((struct log_filter){ .left = -1 })

/* One line of the file ("2026-01-01T00:00:00.1Z stdout F text"), without its newline. True: the limit is reached. A line
 * that is not of that form is shown as it is. */
bool log_filter_line(struct log_filter *filter, struct bytes line, struct str *out);
/* Where the last n lines of a file of that size begin. *ret_missing: how many of them it does not have. */
int64_t log_tail_offset(int fd, int64_t size, int64_t n, int64_t *ret_missing);

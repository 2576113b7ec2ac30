/*
 * codec.h - purpose: base64, hex, RFC 3339 times, Go durations and kubectl's ages, as text and back.
 *
 * Pure. Parsers return 0, or -EINVAL (-ERANGE when the value does not fit) and leave their outputs alone.
 */
#pragma once
#include "common/base/base.h"

/* Standard alphabet, padded. Owned by the caller. */
char *base64_encode(const void *p, size_t len) MUST_USE;
/* Strict: standard alphabet, padding required, no stray bits; '\n' and '\r' are skipped as Go does. *ret is heap
 * memory, with a NUL behind its *ret_len bytes. */
int base64_decode(const char *text, size_t len, void **ret, size_t *ret_len) MUST_USE;

/* Writes 2 * len lower-case digits and a NUL. */
void hex_encode(const void *p, size_t len, char *ret);
/* `text` must be exactly 2 * len digits. */
int hex_decode(const char *text, size_t len, void *ret) MUST_USE;

enum { TIME_TEXT_MAX = 40, DURATION_TEXT_MAX = 40 };

enum time_format {
	TIME_SECONDS, /* 2026-01-01T00:00:00Z            metav1.Time */
	TIME_MICROS,  /* 2026-01-01T00:00:00.000000Z     metav1.MicroTime */
	TIME_NANOS,   /* 2026-01-01T00:00:00.000000000Z  kubelet's log times */
	TIME_GO,      /* nine digits without their trailing zeros (Go's RFC3339Nano) */
};

/* UTC. Times are nanoseconds since 1970 (1677 to 2262). */
void time_text(int64_t unix_ns, enum time_format format, char ret[TIME_TEXT_MAX]);
/* Any RFC 3339 time: up to nine digits of fraction (more are cut), "Z" or an offset. */
int time_parse(const char *text, int64_t *ret_ns) MUST_USE;

/* Go's time.ParseDuration: "1m30s", "-1.5h", "100us", "0". */
int duration_parse(const char *text, int64_t *ret_ns) MUST_USE;
/* Go's Duration.String: "1m30s", "1.5s", "100µs", "0s". */
void duration_text(int64_t ns, char ret[DURATION_TEXT_MAX]);
/* kubectl's AGE column: "45s", "3m20s", "5d". */
void age_text(int64_t ns, char ret[DURATION_TEXT_MAX]);

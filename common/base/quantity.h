/*
 * quantity.h - purpose: Kubernetes quantities ("250m", "1.5Gi", "1e3") to exact numbers.
 *
 * A quantity is kept in billionths (nano) in 128 bits: every value the API can hold fits, and nothing is rounded but
 * digits below one nano, which round up (away from zero) as Kubernetes does. Pure.
 */
#pragma once
#include "common/base/error.h"

struct quantity {
	__int128 nano;
};
#define QUANTITY_ZERO ((struct quantity){ 0 })

enum quantity_format { QUANTITY_DECIMAL, QUANTITY_BINARY, QUANTITY_EXPONENT };
enum { QUANTITY_TEXT_MAX = 64 };

/* Digits with sign and fraction, then one of n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or e/E and an exponent. As in
 * Kubernetes, binary ones beyond 2^63 - 1 mean 2^63 - 1; decimal ones are refused beyond some 10^27. */
int quantity_parse(const char *text, struct quantity *ret, struct error *err) MUST_USE;
/* Whole units and thousandths, rounded up (away from zero); INT64_MAX / INT64_MIN where they do not fit. */
int64_t quantity_value(struct quantity q);
int64_t quantity_milli(struct quantity q);
struct quantity quantity_of(int64_t units);
/* ceil(q / divisor), as a downward API value; divisor 0 counts as 1. */
int64_t quantity_divide(struct quantity q, struct quantity divisor);
static inline struct quantity quantity_add(struct quantity a, struct quantity b)
{
	return (struct quantity){ a.nano + b.nano };
}
static inline int quantity_cmp(struct quantity a, struct quantity b)
{
	return a.nano < b.nano ? -1 : a.nano > b.nano;
}
/* The way in which a valid text is written, and a number in that way: the canonical form of the API server ("1500m",
 * "1536Mi", "12e6"), which loses nothing: a binary one below 1024 or with a fraction is written as a decimal one. */
enum quantity_format quantity_format_of(const char *text);
void quantity_text(struct quantity q, enum quantity_format format, char ret[QUANTITY_TEXT_MAX]);

/*
 * backoff.h - purpose: how long to wait before the next attempt: doubling, with jitter, between two bounds. Pure.
 */
#pragma once
#include "common/base/base.h"

struct backoff {
	uint64_t first_ms;
	uint64_t max_ms;
	unsigned failures; /* since the last success */
};

/* The next delay: first, 2 * first, 4 * first ... up to max, stretched by up to a half of itself by `random` (any
 * 32-bit random number). Counts one failure. */
uint64_t backoff_next_ms(struct backoff *b, uint32_t random);
static inline void backoff_reset(struct backoff *b)
{
	b->failures = 0;
}

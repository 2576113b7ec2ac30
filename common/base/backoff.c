/* backoff.c - purpose: how long to wait before the next attempt: doubling, with jitter, between two bounds. */
#include "common/base/backoff.h"

uint64_t backoff_next_ms(struct backoff *b, uint32_t random)
{
	uint64_t delay = b->first_ms;

	for (unsigned i = 0; i < b->failures && delay < b->max_ms; i++)
		delay *= 2;
	delay = MIN(delay, b->max_ms);
	if (b->failures < 64)
		b->failures++;
	return delay + (uint64_t)((unsigned __int128)(delay / 2) * random >> 32);
}

/*
 * arena.h - purpose: memory of many small parts that live and die together (a decoded object).
 *
 * What an arena gives is zeroed and never freed singly. No threads.
 */
#pragma once
#include "common/base/base.h"

struct arena_block;

struct arena {
	struct arena_block *last;
	size_t used; /* of the last block */
};
#define ARENA_INIT ((struct arena){ 0 })

void arena_done(struct arena *arena);
void *arena_alloc(struct arena *arena, size_t size) MUST_USE;
/* n elements; aborts when n * size overflows. */
void *arena_array(struct arena *arena, size_t n, size_t size) MUST_USE;
/* NULL gives NULL. */
char *arena_strdup(struct arena *arena, const char *s) MUST_USE;
char *arena_printf(struct arena *arena, const char *fmt, ...) PRINTF(2, 3) MUST_USE;

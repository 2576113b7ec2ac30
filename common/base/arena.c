/* arena.c - purpose: memory of many small parts that live and die together. */
#include "common/base/arena.h"

#include <stdarg.h>
#include <stdio.h>

enum { FIRST_BYTES = 1024, BLOCK_BYTES = 8192 };

struct arena_block {
	struct arena_block *previous;
	size_t size;
	_Alignas(max_align_t) char bytes[];
};

void arena_done(struct arena *arena)
{
	while (arena->last) {
		struct arena_block *b = arena->last;

		arena->last = b->previous;
		free(b);
	}
	arena->used = 0;
}

static void grow(struct arena *arena, size_t size)
{
	size_t bytes = MAX(size, arena->last ? (size_t)BLOCK_BYTES : (size_t)FIRST_BYTES);
	struct arena_block *b = xcalloc(1, sizeof(*b) + bytes);

	b->size = bytes;
	b->previous = arena->last;
	arena->last = b;
	arena->used = 0;
}

void *arena_alloc(struct arena *arena, size_t size)
{
	size_t aligned = (size + _Alignof(max_align_t) - 1) & ~(_Alignof(max_align_t) - 1);

	assert(aligned >= size);
	if (!arena->last || arena->last->size - arena->used < aligned)
		grow(arena, aligned);
	void *p = arena->last->bytes + arena->used;
	arena->used += aligned;
	return p;
}

void *arena_array(struct arena *arena, size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes))
		abort();
	return arena_alloc(arena, bytes);
}

char *arena_strdup(struct arena *arena, const char *s)
{
	if (!s)
		return NULL;
	size_t len = strlen(s) + 1;

	return memcpy(arena_alloc(arena, len), s, len);
}

char *arena_printf(struct arena *arena, const char *fmt, ...)
{
	va_list args, again;

	va_start(args, fmt);
	va_copy(again, args);
	int len = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	assert(len >= 0);
	char *p = arena_alloc(arena, (size_t)len + 1);
	vsnprintf(p, (size_t)len + 1, fmt, again);
	va_end(again);
	return p;
}

/*
 * launch_codec.h - purpose: one description of the flat form of launches, walked for writing and for reading.
 *
 * Integers are 8 bytes of the machine's own order (the form never leaves the machine), strings have a length (0: NULL,
 * else with the NUL) in front, arrays their count. The walker of a struct names each field once; what happens to it
 * is decided by three operations.
 */
#pragma once
#include "runtime-lite/spec/launch.h"

enum { LAUNCH_VERSION = 1 };
#define LAUNCH_MAGIC 0x6e6c706c616e0000ull /* "nlplan", low bits: version */

struct codec {
	/* Moves n bytes at p; false: no more. */
	bool (*raw)(struct codec *c, void *p, size_t n);
	/* Moves n bytes (n > 0, the last is NUL) of a string. */
	bool (*text)(struct codec *c, char **s, size_t n);
	/* Makes room for n elements when reading. */
	bool (*array)(struct codec *c, void **p, size_t n, size_t size);
	bool failed;
	bool reading;

	const char *in; /* reading */
	size_t in_len;
	char *arena;
	size_t arena_len;
	struct str *out; /* writing */
};

void codec_launch(struct codec *c, struct launch *l);
void codec_sandbox(struct codec *c, struct sandbox_launch *s);

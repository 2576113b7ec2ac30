/* sha1.c - purpose: SHA-1 (FIPS 180-4, 6.1). */
#include "common/base/sha1.h"

enum { BLOCK = 64 };

static uint32_t rotate(uint32_t v, int n)
{
	return v << n | v >> (32 - n);
}

static void mix(uint32_t h[5], const unsigned char *block)
{
	uint32_t w[80], v[5];

	for (int i = 0; i < 16; i++, block += 4)
		w[i] = (uint32_t)block[0] << 24 | (uint32_t)block[1] << 16 | (uint32_t)block[2] << 8 | block[3];
	for (int i = 16; i < 80; i++)
		w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
	memcpy(v, h, sizeof(v));
	for (int i = 0; i < 80; i++) {
		uint32_t b = v[1], c = v[2], d = v[3];
		uint32_t f = i < 20 ? (b & c) | (~b & d) : i < 40 || i >= 60 ? b ^ c ^ d : (b & c) | (b & d) | (c & d);
		uint32_t k = i < 20 ? 0x5a827999 : i < 40 ? 0x6ed9eba1 : i < 60 ? 0x8f1bbcdc : 0xca62c1d6;
		uint32_t next = rotate(v[0], 5) + f + v[4] + k + w[i];

		v[4] = v[3];
		v[3] = v[2];
		v[2] = rotate(v[1], 30);
		v[1] = v[0];
		v[0] = next;
	}
	for (int i = 0; i < 5; i++)
		h[i] += v[i];
}

void sha1(const void *p, size_t len, unsigned char ret[SHA1_BYTES])
{
	uint32_t h[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 };
	const unsigned char *in = p;
	unsigned char last[2 * BLOCK] = { 0 };
	size_t whole = len / BLOCK * BLOCK, rest = len - whole, n = rest < BLOCK - 8 ? BLOCK : 2 * BLOCK;

	for (size_t at = 0; at < whole; at += BLOCK)
		mix(h, in + at);
	if (rest)
		memcpy(last, in + whole, rest);
	last[rest] = 0x80;
	for (int i = 0; i < 8; i++)
		last[n - 1 - (size_t)i] = (unsigned char)((uint64_t)len * 8 >> (8 * i));
	for (size_t at = 0; at < n; at += BLOCK)
		mix(h, last + at);
	for (int i = 0; i < SHA1_BYTES; i++)
		ret[i] = (unsigned char)(h[i / 4] >> (24 - 8 * (i % 4)));
}

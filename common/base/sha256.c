/* sha256.c - purpose: SHA-256, streaming and at once (FIPS 180-4). */
#include "common/base/sha256.h"

#include "common/base/codec.h"

static const uint32_t K[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01,
	0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
	0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
	0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08,
	0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
	0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotr(uint32_t x, unsigned n)
{
	return x >> n | x << (32 - n);
}

static void blocks_plain(uint32_t s[8], const uint8_t *p, size_t n)
{
	for (; n; n--, p += 64) {
		uint32_t w[64], a = s[0], b = s[1], c = s[2], d = s[3], e = s[4], f = s[5], g = s[6], h = s[7];

		for (int i = 0; i < 16; i++)
			w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
		for (int i = 16; i < 64; i++) {
			uint32_t x = w[i - 15], y = w[i - 2];

			w[i] = w[i - 16] + w[i - 7] + (rotr(x, 7) ^ rotr(x, 18) ^ x >> 3) + (rotr(y, 17) ^ rotr(y, 19) ^ y >> 10);
		}
		for (int i = 0; i < 64; i++) {
			uint32_t t = h + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) + ((e & f) ^ (~e & g)) + K[i] + w[i];
			uint32_t u = (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));

			h = g, g = f, f = e, e = d + t, d = c, c = b, b = a, a = t + u;
		}
		s[0] += a, s[1] += b, s[2] += c, s[3] += d, s[4] += e, s[5] += f, s[6] += g, s[7] += h;
	}
}

#if defined(__x86_64__)
#include <immintrin.h>

/* The SHA instructions keep the state as ABEF and CDGH and do two rounds each. */
__attribute__((target("sha,sse4.1"))) static void blocks_x86(uint32_t s[8], const uint8_t *p, size_t n)
{
	const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
	__m128i low = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)&s[0]), 0xb1);
	__m128i high = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)&s[4]), 0x1b);
	__m128i abef = _mm_alignr_epi8(low, high, 8), cdgh = _mm_blend_epi16(high, low, 0xf0);

	for (; n; n--, p += 64) {
		__m128i abef_before = abef, cdgh_before = cdgh, m[4];

		for (int i = 0; i < 4; i++)
			m[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(p + 16 * i)), swap);
#pragma GCC unroll 16
		for (int i = 0; i < 16; i++) {
			__m128i w = m[i & 3];
			__m128i k = _mm_add_epi32(w, _mm_loadu_si128((const __m128i *)&K[4 * i]));

			cdgh = _mm_sha256rnds2_epu32(cdgh, abef, k);
			abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(k, 0x0e));
			if (i < 12) {
				/* W[t] for t = 4i + 16 .. 4i + 19 takes the place of W[4i .. 4i + 3]. */
				__m128i last = m[(i + 3) & 3];
				__m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(w, m[(i + 1) & 3]),
					_mm_alignr_epi8(last, m[(i + 2) & 3], 4));

				m[i & 3] = _mm_sha256msg2_epu32(sum, last);
			}
		}
		abef = _mm_add_epi32(abef, abef_before);
		cdgh = _mm_add_epi32(cdgh, cdgh_before);
	}
	low = _mm_shuffle_epi32(abef, 0x1b);
	high = _mm_shuffle_epi32(cdgh, 0xb1);
	_mm_storeu_si128((__m128i *)&s[0], _mm_blend_epi16(low, high, 0xf0));
	_mm_storeu_si128((__m128i *)&s[4], _mm_alignr_epi8(high, low, 8));
}

/* CPUID leaf 7, EBX bit 29: SHA; leaf 1, ECX bit 19: SSE4.1. */
#include <cpuid.h>
static bool have_x86(void)
{
	unsigned a, b, c, d, sse;

	if (!__get_cpuid(1, &a, &b, &sse, &d) || !__get_cpuid_count(7, 0, &a, &b, &c, &d))
		return false;
	return (b & 1u << 29) && (sse & 1u << 19);
}
#endif

static void blocks(uint32_t s[8], const uint8_t *p, size_t n)
{
#if defined(__x86_64__)
	static int have = -1; /* a race sets the same value twice */

	if (__atomic_load_n(&have, __ATOMIC_RELAXED) < 0)
		__atomic_store_n(&have, have_x86(), __ATOMIC_RELAXED);
	if (__atomic_load_n(&have, __ATOMIC_RELAXED)) {
		blocks_x86(s, p, n);
		return;
	}
#endif
	blocks_plain(s, p, n);
}

void sha256_add(struct sha256 *h, const void *data, size_t n)
{
	const uint8_t *p = data;
	size_t have = h->total % 64;

	h->total += n;
	if (have) {
		size_t take = MIN(n, 64 - have);

		memcpy(h->block + have, p, take);
		p += take, n -= take;
		if (have + take < 64)
			return;
		blocks(h->state, h->block, 1);
	}
	blocks(h->state, p, n / 64);
	if (n % 64)
		memcpy(h->block, p + n / 64 * 64, n % 64);
}

void sha256_end(struct sha256 *h, uint8_t ret[SHA256_BYTES])
{
	static const uint8_t pad[64] = { 0x80 };
	uint64_t bits = h->total * 8;
	uint8_t length[8];

	for (int i = 0; i < 8; i++)
		length[i] = (uint8_t)(bits >> (56 - 8 * i));
	sha256_add(h, pad, 1 + (119 - h->total % 64) % 64);
	sha256_add(h, length, 8);
	for (int i = 0; i < SHA256_BYTES; i++)
		ret[i] = (uint8_t)(h->state[i / 4] >> (24 - 8 * (i % 4)));
}

void sha256_end_hex(struct sha256 *h, char ret[SHA256_HEX_LEN + 1])
{
	uint8_t digest[SHA256_BYTES];

	sha256_end(h, digest);
	hex_encode(digest, sizeof(digest), ret);
}

void sha256_hex(const void *p, size_t n, char ret[SHA256_HEX_LEN + 1])
{
	struct sha256 h = SHA256_INIT;

	sha256_add(&h, p, n);
	sha256_end_hex(&h, ret);
}

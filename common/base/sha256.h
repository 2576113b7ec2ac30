/*
 * sha256.h - purpose: SHA-256, streaming and at once. Pure.
 *
 * Uses the CPU's SHA instructions where it has them (about 2 GB/s), else plain C (about 300 MB/s).
 *
 *	struct sha256 h = SHA256_INIT;
 *	sha256_add(&h, p, n);
 *	sha256_end_hex(&h, hex);
 */
#pragma once
#include "common/base/base.h"

enum { SHA256_BYTES = 32, SHA256_HEX_LEN = 64 };

struct sha256 {
	uint32_t state[8];
	uint64_t total;
	uint8_t block[64];
};

#define SHA256_INIT                                                                                                    \
	((struct sha256){ .state = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,          \
				  0x1f83d9ab, 0x5be0cd19 } })

void sha256_add(struct sha256 *h, const void *p, size_t n);
/* Ends the hash; h must be set to SHA256_INIT before it is used again. */
void sha256_end(struct sha256 *h, uint8_t ret[SHA256_BYTES]);
/* The same as 64 lower-case digits and a NUL. */
void sha256_end_hex(struct sha256 *h, char ret[SHA256_HEX_LEN + 1]);
void sha256_hex(const void *p, size_t n, char ret[SHA256_HEX_LEN + 1]);

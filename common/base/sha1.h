/* sha1.h - purpose: SHA-1, which WebSocket's handshake is made with. Not for anything that must resist an attacker.
 * Pure. */
#pragma once
#include "common/base/base.h"

enum { SHA1_BYTES = 20 };

void sha1(const void *p, size_t len, unsigned char ret[SHA1_BYTES]);

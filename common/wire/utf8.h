/*
 * utf8.h - purpose: decode, check and write UTF-8, one character at a time. Pure.
 */
#pragma once
#include "common/base/str.h"

/* Length of the character at the front of p and its code; 0 if these bytes are not valid UTF-8 (overlong forms,
 * surrogates and codes beyond U+10FFFF are not). */
size_t utf8_decode(const char *p, size_t len, uint32_t *ret);
void utf8_add(struct str *out, uint32_t code);
bool utf8_valid(const char *p, size_t len);

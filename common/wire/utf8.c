/* utf8.c - purpose: decode, check and write UTF-8, one character at a time. */
#include "common/wire/utf8.h"

size_t utf8_decode(const char *p, size_t len, uint32_t *ret)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *in = (const unsigned char *)p;

	if (!len)
		return 0;
	size_t n = in[0] < 0x80			   ? 1
		   : in[0] >= 0xc2 && in[0] < 0xe0 ? 2
		   : (in[0] & 0xf0) == 0xe0	   ? 3
		   : (in[0] & 0xf8) == 0xf0	   ? 4
						   : 0;
	if (!n || n > len)
		return 0;
	uint32_t code = n == 1 ? in[0] : in[0] & (0x7fU >> n);
	for (size_t i = 1; i < n; i++) {
		if ((in[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (in[i] & 0x3f);
	}
	if (code < least[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return 0;
	*ret = code;
	return n;
}

void utf8_add(struct str *out, uint32_t code)
{
	if (code < 0x80) {
		str_add_char(out, (char)code);
		return;
	}
	if (code >= 0x10000) {
		str_add_char(out, (char)(0xf0 | code >> 18));
		str_add_char(out, (char)(0x80 | (code >> 12 & 0x3f)));
	} else if (code >= 0x800) {
		str_add_char(out, (char)(0xe0 | code >> 12));
	}
	str_add_char(out, (char)(code >= 0x800 ? 0x80 | (code >> 6 & 0x3f) : 0xc0 | code >> 6));
	str_add_char(out, (char)(0x80 | (code & 0x3f)));
}

bool utf8_valid(const char *p, size_t len)
{
	uint32_t code;

	for (size_t n; len; p += n, len -= n) {
		n = utf8_decode(p, len, &code);
		if (!n)
			return false;
	}
	return true;
}

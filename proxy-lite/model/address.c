/* address.c - purpose: IP addresses and prefixes as plain values. */
#include "proxy-lite/model/address.h"

#include <arpa/inet.h>
#include <stdio.h>

bool ip_parse(const char *text, struct ip *ret)
{
	struct ip ip = { 0 };

	ip.v6 = strchr(text, ':') != NULL;
	if (inet_pton(ip.v6 ? AF_INET6 : AF_INET, text, ip.bytes) != 1)
		return false;
	*ret = ip;
	return true;
}

const char *ip_format(const struct ip *ip, char *buf)
{
	inet_ntop(ip->v6 ? AF_INET6 : AF_INET, ip->bytes, buf, IP_TEXT_MAX);
	return buf;
}

bool ip_equal(const struct ip *a, const struct ip *b)
{
	return a->v6 == b->v6 && memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

bool ip_is_destination(const struct ip *ip)
{
	static const uint8_t zero[16], loopback6[16] = { [15] = 1 };
	const uint8_t *b = ip->bytes;

	if (ip->v6)
		return memcmp(b, zero, 16) != 0 && memcmp(b, loopback6, 16) != 0 && b[0] != 0xff;
	return b[0] != 0 && b[0] != 127 && b[0] < 224;
}

bool ip_is_link_local(const struct ip *ip)
{
	const uint8_t *b = ip->bytes;

	return ip->v6 ? b[0] == 0xfe && (b[1] & 0xc0) == 0x80 : b[0] == 169 && b[1] == 254;
}

void cidr_mask(const struct cidr *cidr, uint8_t mask[16])
{
	for (unsigned i = 0; i < 16; i++) {
		unsigned bits = cidr->prefix > 8 * i ? MIN(8U, cidr->prefix - 8 * i) : 0;

		mask[i] = (uint8_t)(0xff00 >> bits);
	}
}

bool cidr_parse(const char *text, struct cidr *ret)
{
	char copy[IP_TEXT_MAX + 4];
	struct cidr cidr;
	uint8_t mask[16];
	char *slash, *end;
	long prefix;

	if (strlen(text) >= sizeof(copy))
		return false;
	strcpy(copy, text);
	slash = strchr(copy, '/');
	if (!slash || slash[1] < '0' || slash[1] > '9')
		return false;
	*slash = '\0';
	prefix = strtol(slash + 1, &end, 10);
	if (*end || end - slash > 4 || !ip_parse(copy, &cidr.ip) || prefix > (cidr.ip.v6 ? 128 : 32))
		return false;
	cidr.prefix = (uint8_t)prefix;
	cidr_mask(&cidr, mask);
	for (unsigned i = 0; i < 16; i++)
		cidr.ip.bytes[i] &= mask[i];
	*ret = cidr;
	return true;
}

bool cidr_contains(const struct cidr *cidr, const struct ip *ip)
{
	uint8_t mask[16];

	if (cidr->ip.v6 != ip->v6)
		return false;
	cidr_mask(cidr, mask);
	for (unsigned i = 0; i < ip_len(ip->v6); i++)
		if ((ip->bytes[i] & mask[i]) != cidr->ip.bytes[i])
			return false;
	return true;
}

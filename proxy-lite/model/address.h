/*
 * address.h - purpose: IP addresses and prefixes as plain values.
 *
 * Pure; no names are resolved. An IPv4 address keeps its 4 bytes at the front, the other 12 are zero, so that values
 * may be compared and hashed as bytes.
 */
#pragma once
#include "common/base/base.h"

enum { IP_TEXT_MAX = 46 };

struct ip {
	uint8_t bytes[16];
	bool v6;
};

struct cidr {
	struct ip ip;
	uint8_t prefix;
};

/* Strict: no leading zeros, no zone, no white space around. False leaves *ret alone. */
bool ip_parse(const char *text, struct ip *ret) MUST_USE;
/* Writes into buf (IP_TEXT_MAX bytes at least) and returns it. */
const char *ip_format(const struct ip *ip, char *buf);
bool ip_equal(const struct ip *a, const struct ip *b);
/* Length of the address in bytes: 4 or 16. */
static inline size_t ip_len(bool v6)
{
	return v6 ? 16 : 4;
}
/* Can a packet be sent there by DNAT? Not for unspecified, loopback, multicast and broadcast addresses. */
bool ip_is_destination(const struct ip *ip);
/* IPv6 fe80::/10, IPv4 169.254/16. */
bool ip_is_link_local(const struct ip *ip);

/* "10.0.0.0/8"; host bits are allowed and cleared. White space around is not allowed. */
bool cidr_parse(const char *text, struct cidr *ret) MUST_USE;
bool cidr_contains(const struct cidr *cidr, const struct ip *ip);
/* The netmask as bytes. */
void cidr_mask(const struct cidr *cidr, uint8_t mask[16]);

/* addresses.c - purpose: who has which ClusterIP and which nodePort. */
#include "kubelet-lite/store/addresses.h"

#include <arpa/inet.h>
#include <stdio.h>

static uint32_t hash_text(const char *a, const char *b)
{
	uint32_t h = 2166136261u;

	for (const char *p = a; *p; p++)
		h = (h ^ (unsigned char)*p) * 16777619u;
	for (const char *p = b; *p; p++)
		h = (h ^ (unsigned char)*p) * 16777619u;
	return h ^ (h >> 16);
}

int ip_range_parse(const char *text, struct ip_range *ret, struct error *err)
{
	static const char ALLOWED[] = "an address range like 10.96.0.0/16 or fd00:10:96::/112, host part zero";
	struct ip_range range = { .v6 = strchr(text, ':') != NULL };
	const char *slash = strchr(text, '/');
	_cleanup_free_ char *address = slash ? xstrndup(text, (size_t)(slash - text)) : NULL;
	unsigned width = range.v6 ? 128 : 32;
	char *end = NULL;
	unsigned long bits = slash ? strtoul(slash + 1, &end, 10) : 0;

	if (!slash || end == slash + 1 || *end || bits < 1 || bits > width - 2 ||
		inet_pton(range.v6 ? AF_INET6 : AF_INET, address, range.base) != 1)
		return error_set(err, ERROR_INVALID, "\"%s\" must be %s", text, ALLOWED);
	for (unsigned bit = (unsigned)bits; bit < width; bit++)
		if (range.base[bit / 8] & (0x80u >> bit % 8))
			return error_set(err, ERROR_INVALID, "\"%s\" must be %s", text, ALLOWED);
	range.host_bits = width - (unsigned)bits;
	*ret = range;
	return 0;
}

static void add_offset(const struct ip_range *range, uint32_t n, unsigned char out[16])
{
	unsigned last = range->v6 ? 15 : 3;

	memcpy(out, range->base, 16);
	for (unsigned i = 0; i < 4; i++)
		out[last - i] |= (unsigned char)(n >> (8 * i));
}

void ip_range_text(const struct ip_range *range, uint32_t n, char ret[ADDRESS_TEXT_MAX])
{
	unsigned char address[16];

	add_offset(range, n, address);
	inet_ntop(range->v6 ? AF_INET6 : AF_INET, address, ret, ADDRESS_TEXT_MAX);
}

uint32_t ip_range_count(const struct ip_range *range)
{
	uint64_t size = range->host_bits >= 24 ? 1u << 24 : 1u << range->host_bits;

	return size > 3 ? (uint32_t)size - 3 : 0;
}

bool ip_range_has(const struct ip_range *range, const char *ip)
{
	unsigned char address[16] = { 0 };
	unsigned width = range->v6 ? 128 : 32;

	if (inet_pton(range->v6 ? AF_INET6 : AF_INET, ip, address) != 1)
		return false;
	for (unsigned bit = 0; bit < width - range->host_bits; bit++)
		if ((address[bit / 8] ^ range->base[bit / 8]) & (0x80u >> bit % 8))
			return false;
	return true;
}

void addresses_done(struct addresses *a)
{
	map_done_values(&a->ips, free);
	map_done_values(&a->ports, free);
}

static int take_wanted_ip(struct addresses *a, const char *owner, const char *want, struct error *err)
{
	const char *has = map_get(&a->ips, want);

	if (has && !str_eq(has, owner))
		return error_set(err, ERROR_EXISTS, "the address %s is already allocated to Service %s", want, has);
	if (!ip_range_has(&a->range, want)) {
		char first[ADDRESS_TEXT_MAX];

		ip_range_text(&a->range, 0, first);
		return error_set(err, ERROR_OUT_OF_RANGE, "the address %s is not in the valid range %s/%u", want, first,
			(a->range.v6 ? 128 : 32) - a->range.host_bits);
	}
	if (!has)
		map_put(&a->ips, want, xstrdup(owner));
	return 0;
}

int addresses_take_ip(struct addresses *a, const char *owner, const char *want, char ret[ADDRESS_TEXT_MAX],
	struct error *err)
{
	uint32_t count = ip_range_count(&a->range), start = count ? hash_text(owner, "") % count : 0;

	if (want) {
		/* One spelling for each address: "fd00::0:1" is "fd00::1". */
		unsigned char binary[16];
		int family = strchr(want, ':') ? AF_INET6 : AF_INET;

		if (inet_pton(family, want, binary) != 1)
			return error_set(err, ERROR_INVALID, "\"%s\" is not an IP address", want);
		inet_ntop(family, binary, ret, ADDRESS_TEXT_MAX);
		return take_wanted_ip(a, owner, ret, err);
	}
	for (uint32_t i = 0; i < count && i <= a->ips.count; i++) {
		char text[ADDRESS_TEXT_MAX];

		ip_range_text(&a->range, 2 + (start + i) % count, text);
		if (map_get(&a->ips, text))
			continue;
		map_put(&a->ips, text, xstrdup(owner));
		memcpy(ret, text, sizeof(text));
		return 0;
	}
	return error_set(err, ERROR_EXHAUSTED, "no ClusterIP is left in the range (%u addresses)", count);
}

static const char *port_owner(const struct addresses *a, const char *protocol, unsigned port)
{
	char key[32];

	snprintf(key, sizeof(key), "%.8s/%u", protocol, port);
	return map_get(&a->ports, key);
}

static void port_put(struct addresses *a, const char *protocol, unsigned port, const char *owner)
{
	char key[32];

	snprintf(key, sizeof(key), "%.8s/%u", protocol, port);
	if (!map_get(&a->ports, key))
		map_put(&a->ports, key, xstrdup(owner));
}

int addresses_take_port(struct addresses *a, const char *owner, const char *protocol, const char *purpose, unsigned want,
	unsigned *ret, struct error *err)
{
	unsigned count = a->port_max - a->port_min + 1, start = hash_text(owner, purpose) % count;

	if (want) {
		const char *has = port_owner(a, protocol, want);

		if (has && !str_eq(has, owner))
			return error_set(err, ERROR_EXISTS, "the nodePort %u is already allocated to Service %s", want, has);
		if (want < a->port_min || want > a->port_max)
			return error_set(err, ERROR_OUT_OF_RANGE, "the nodePort %u is not in the valid range %u-%u", want,
				a->port_min, a->port_max);
		port_put(a, protocol, want, owner);
		*ret = want;
		return 0;
	}
	for (unsigned i = 0; i < count; i++) {
		unsigned port = a->port_min + (start + i) % count;

		if (port_owner(a, "TCP", port) || port_owner(a, "UDP", port) || port_owner(a, "SCTP", port))
			continue;
		port_put(a, protocol, port, owner);
		*ret = port;
		return 0;
	}
	return error_set(err, ERROR_EXHAUSTED, "no nodePort is left in the range %u-%u", a->port_min, a->port_max);
}

void addresses_release_ip(struct addresses *a, const char *ip, const char *owner)
{
	if (str_eq(map_get(&a->ips, ip), owner))
		free(map_remove(&a->ips, ip));
}

static void release_owner(struct map *m, const char *owner)
{
	struct map_iter it = MAP_ITER_INIT;

	while (map_next(m, &it))
		if (str_eq(it.value, owner))
			free(map_remove(m, it.key));
}

void addresses_release(struct addresses *a, const char *owner)
{
	release_owner(&a->ips, owner);
	release_owner(&a->ports, owner);
}

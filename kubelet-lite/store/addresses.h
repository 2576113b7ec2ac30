/*
 * addresses.h - purpose: who has which ClusterIP and which nodePort. Pure.
 *
 * A free address is searched from a place that the owner's name decides, so that a Service gets the same one again even
 * when the state file is lost.
 */
#pragma once
#include "common/base/error.h"
#include "common/base/map.h"

enum { ADDRESS_TEXT_MAX = 46 };

struct ip_range {
	bool v6;
	unsigned char base[16]; /* 4 bytes are used for IPv4 */
	unsigned host_bits;     /* at most 32 count */
};

/* "10.96.0.0/16"; the host part must be zero; /1 to /30 (IPv4), /1 to /126. */
int ip_range_parse(const char *text, struct ip_range *ret, struct error *err) MUST_USE;
bool ip_range_has(const struct ip_range *range, const char *ip);
/* The n-th address of the range. */
void ip_range_text(const struct ip_range *range, uint32_t n, char ret[ADDRESS_TEXT_MAX]);
/* How many addresses can be given out, from 2 (.1 is left for the API server by custom) to the last but one. */
uint32_t ip_range_count(const struct ip_range *range);

struct addresses {
	struct ip_range range;
	unsigned port_min, port_max;
	struct map ips;   /* text -> owner */
	struct map ports; /* "TCP/30080" -> owner */
};

void addresses_done(struct addresses *a);
/* Takes what was asked for, or (want NULL) a free one. ERROR_EXISTS names the owner, ERROR_OUT_OF_RANGE the range,
 * ERROR_EXHAUSTED when nothing is left. */
int addresses_take_ip(struct addresses *a, const char *owner, const char *want, char ret[ADDRESS_TEXT_MAX],
	struct error *err) MUST_USE;
/* want 0: a port that is free for every protocol. `purpose` (port name) tells several ports of one owner apart. */
int addresses_take_port(struct addresses *a, const char *owner, const char *protocol, const char *purpose, unsigned want,
	unsigned *ret, struct error *err) MUST_USE;
void addresses_release_ip(struct addresses *a, const char *ip, const char *owner);
/* All that the owner has. */
void addresses_release(struct addresses *a, const char *owner);

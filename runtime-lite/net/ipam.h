/*
 * ipam.h - purpose: which pod has which address and host ports: a pool and its leases, one small file each.
 *
 * A file is named after the address and written beside and renamed, but not synced: a power cut ends the pods too, and
 * reconciling at the next start throws away leases of pods that are gone. What must survive is kill -9 of the daemon.
 * Not thread-safe; the owner locks.
 */
#pragma once
#include "runtime-lite/net/bridge.h"

struct ipam;

struct ip_range {
	struct in_addr network;
	struct in_addr gateway; /* the first host address */
	uint8_t prefix;
};

struct lease {
	char *sandbox_id;
	struct in_addr ip;
	struct ip_range range; /* that it came from; the pool may have moved since */
	struct port_mapping *ports;
	size_t n_ports;
};

/* "10.85.0.0/16". Host bits must be zero; prefix 8 to 29. */
int ip_range_parse(const char *cidr, struct ip_range *ret, struct error *err) MUST_USE;
void ip_range_text(const struct ip_range *range, char ret[INET6_ADDRSTRLEN + 4]);
bool ip_range_overlaps(const struct ip_range *range, struct in_addr ip, uint8_t prefix);

/* Reads the leases in `dir` (made when missing). What is unreadable there is removed with a warning. */
int ipam_open(const char *dir, const struct ip_range *range, struct ipam **ret, struct error *err) MUST_USE;
struct ipam *ipam_close(struct ipam *ipam);
const struct ip_range *ipam_range(const struct ipam *ipam);
void ipam_set_range(struct ipam *ipam, const struct ip_range *range);

size_t ipam_count(const struct ipam *ipam);
/* i below ipam_count(); order is of no meaning and changes with every reserve and release. */
const struct lease *ipam_at(const struct ipam *ipam, size_t i);
const struct lease *ipam_find(const struct ipam *ipam, const char *sandbox_id);
/* The next free address, round robin. The sandbox must not have a lease. A host port that another has: ERROR_EXISTS.
 * The lease is owned by ipam. */
int ipam_reserve(struct ipam *ipam, const char *sandbox_id, const struct port_mapping *ports, size_t n_ports,
	const struct lease **ret, struct error *err) MUST_USE;
/* Without a lease: success. */
int ipam_release(struct ipam *ipam, const char *sandbox_id, struct error *err) MUST_USE;

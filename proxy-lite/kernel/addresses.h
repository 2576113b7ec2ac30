/*
 * addresses.h - purpose: the node's own addresses that node ports are served on, and hearing when they change.
 */
#pragma once
#include "common/base/str.h"
#include "proxy-lite/kernel/netlink.h"
#include "proxy-lite/model/address.h"

/* Which addresses: of `cidrs`, or when `primary` the main one of each family. Loopback and link-local never count. */
struct address_choice {
	bool primary;
	struct cidr *cidrs; /* owned */
	size_t n_cidrs;
};

/* From --nodeport-addresses: "primary" alone, or CIDRs. */
int address_choice_parse(const struct strv *list, struct address_choice *ret, struct error *err) MUST_USE;
void address_choice_done(struct address_choice *choice);

/* Sorted; owned by the caller. The main address is the one that packets to the outside leave with; without a default
 * route the first one of an interface that is up. Blocking, but short. */
int addresses_read(const struct address_choice *choice, struct ip **ret, size_t *ret_n, struct error *err) MUST_USE;

/* A socket that becomes readable when addresses or routes change. */
int addresses_watch(struct netlink *nl, struct error *err) MUST_USE;
/* Empties it. */
void addresses_drain(const struct netlink *nl);

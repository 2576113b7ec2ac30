/*
 * rtnl.h - purpose: the route netlink messages that the pod network needs: links, addresses, routes.
 *
 * A struct rtnl is one socket in one network namespace; not thread-safe. Errors name the link. "Exists already" is
 * success for addresses and routes, "is not there" for deletions.
 */
#pragma once
#include "common/base/error.h"

#include <net/if.h>
#include <netinet/in.h>

struct rtnl;

struct rtnl_link {
	int index;
	int master; /* 0: none */
	int peer;   /* veth: index in its own namespace, 0: unknown */
	uint32_t mtu;
	bool up;
	char name[IFNAMSIZ];
	char kind[16];
	uint8_t mac[6];
	uint64_t rx_bytes, rx_errors, rx_packets, rx_dropped;
	uint64_t tx_bytes, tx_errors, tx_packets, tx_dropped;
};

struct rtnl_address {
	int index;
	struct in_addr ip;
	uint8_t prefix;
};

/* In the calling thread's namespace, or in another, which the thread enters for a moment. */
int rtnl_open(struct rtnl **ret, struct error *err) MUST_USE;
int rtnl_open_in(int netns_fd, struct rtnl **ret, struct error *err) MUST_USE;
struct rtnl *rtnl_close(struct rtnl *nl);
DEFINE_CLEANUP(struct rtnl *, rtnl_close)

/* ERROR_NOT_FOUND without such a link. */
int rtnl_link_find(struct rtnl *nl, const char *name, struct rtnl_link *ret, struct error *err) MUST_USE;
/* Every link. `each` returns false to stop. */
int rtnl_links(struct rtnl *nl, bool (*each)(const struct rtnl_link *link, void *data), void *data,
	struct error *err) MUST_USE;
int rtnl_addresses4(struct rtnl *nl, bool (*each)(const struct rtnl_address *address, void *data), void *data,
	struct error *err) MUST_USE;
/* MTU of the link of the IPv4 default route; 1500 without one. */
uint32_t rtnl_default_mtu(struct rtnl *nl);

int rtnl_bridge_add(struct rtnl *nl, const char *name, const uint8_t mac[6], uint32_t mtu, struct error *err) MUST_USE;
/* The pair, down; the peer named peer_name is made straight in peer_netns. */
struct rtnl_veth {
	const char *name;
	const char *peer_name;
	int peer_netns;
	uint8_t mac[6], peer_mac[6];
	uint32_t mtu;
};
int rtnl_veth_add(struct rtnl *nl, const struct rtnl_veth *veth, struct error *err) MUST_USE;
/* Makes it a hairpin port of a bridge (br_netfilter turns packets around on their port), without IPv6 addresses of its
 * own, up. */
int rtnl_port_set(struct rtnl *nl, const char *name, int bridge, const char *alias, struct error *err) MUST_USE;
int rtnl_link_up(struct rtnl *nl, const char *name, struct error *err) MUST_USE;
/* No generated IPv6 addresses; fails silently on kernels without IPv6. */
void rtnl_link_no_ipv6_address(struct rtnl *nl, const char *name);
int rtnl_link_delete(struct rtnl *nl, const char *name, struct error *err) MUST_USE;
int rtnl_address_add4(struct rtnl *nl, int index, struct in_addr ip, uint8_t prefix, struct error *err) MUST_USE;
/* Default route by a gateway that need not be on a connected network. */
int rtnl_default_route_add4(struct rtnl *nl, int index, struct in_addr gateway, struct error *err) MUST_USE;

/*
 * bridge.h - purpose: the built-in pod network: a bridge, addresses, masquerade and host ports, by netlink alone.
 *
 * Each pod gets eth0 (a veth pair whose other end is a port of the bridge), an IPv4 address of the pool as a /32, and a
 * default route through the bridge. So pod-to-pod traffic is routed by the node: then conntrack sees it, and a Service
 * that sends a pod to its neighbour works without br_netfilter and without hiding the client's address (with
 * br_netfilter too). Masquerade and host ports are elements of constant nftables rules in one table of our own.
 *
 * Everything may be repeated after a kill -9 at any instant: leases are files (one each) in state_dir, names of links
 * follow from the sandbox id, and the table is written whole in one transaction. Foreign tables and links are not
 * touched. Only one process can use a bridge in a network namespace; others get ERROR_PRECONDITION.
 *
 * Thread-safe, blocking (some milliseconds); made for worker threads. Acts in the network namespace in which
 * bridge_network_new() was called.
 */
#pragma once
#include "common/base/error.h"

#include <netinet/in.h>

enum { BRIDGE_PORTS_MAX = 512 }; /* host ports of one pod */

struct bridge_network;

struct bridge_config {
	const char *bridge;    /* at most 15 bytes: "node0" */
	const char *cidr;      /* IPv4, prefix length 8 to 29: "10.85.0.0/16" */
	const char *state_dir; /* for the leases; made when missing */
	const char *table;     /* nftables table of family inet; NULL: "runtime_lite_" and the bridge's name */
};

struct port_mapping {
	uint8_t protocol; /* IPPROTO_TCP, IPPROTO_UDP, IPPROTO_SCTP */
	uint16_t host_port;
	uint16_t container_port;
	char host_ip[INET6_ADDRSTRLEN]; /* "", "0.0.0.0" and "::": every address of the node */
};

/* Reads the leases. Bridge and table are made when the first pod needs them (or again now, when leases exist and they
 * are gone). */
int bridge_network_new(const struct bridge_config *config, struct bridge_network **ret, struct error *err) MUST_USE;
struct bridge_network *bridge_network_free(struct bridge_network *network);

/* Gives the pod in netns_fd its eth0, lo and host ports; the address goes to ret_ip. For a sandbox that is attached
 * already the result is the same. A host port that another pod has: ERROR_EXISTS naming port and pod. No address left:
 * ERROR_EXHAUSTED. On failure nothing is left of it. Mappings with host_port 0 are skipped. */
int bridge_attach(struct bridge_network *network, const char *sandbox_id, int netns_fd,
	const struct port_mapping *ports, size_t n_ports, char ret_ip[INET6_ADDRSTRLEN], struct error *err) MUST_USE;
/* Takes address, veth and host ports back; the netns may have gone. Unknown sandboxes are fine. */
int bridge_detach(struct bridge_network *network, const char *sandbox_id, struct error *err) MUST_USE;
/* Releases what belongs to none of the live sandboxes (leases, veths, elements), and puts bridge and table right for
 * those that live. For the start of the daemon, after it has found its pods. */
int bridge_reconcile(struct bridge_network *network, const char *const *live_ids, size_t n, struct error *err) MUST_USE;

/* The pool from now on (UpdateRuntimeConfig); leases of another range live on. Of a list "a,b" the first IPv4 one
 * counts;
 * "" leaves all as it is. A range that another link of the node uses is refused with ERROR_PRECONDITION. */
int bridge_set_cidr(struct bridge_network *network, const char *cidr, struct error *err) MUST_USE;
/* Takes the bridge and the table down. Refused with ERROR_PRECONDITION while a lease exists. */
int bridge_remove(struct bridge_network *network, struct error *err) MUST_USE;

/* Why pods cannot be networked, for the NetworkReady condition; "" when they can. Repairs a bridge or table that
 * somebody has deleted. One or two netlink round trips. */
void bridge_problem(struct bridge_network *network, char ret[ERROR_TEXT_MAX]);

struct netns_stats {
	uint64_t rx_bytes, rx_errors, rx_packets, rx_dropped;
	uint64_t tx_bytes, tx_errors, tx_packets, tx_dropped;
};
/* Counters of a link ("eth0") in a netns, whoever made it. ERROR_NOT_FOUND without such a link. */
int netns_link_stats(int netns_fd, const char *link, struct netns_stats *ret, struct error *err) MUST_USE;
/* Brings lo up in a netns (for pods that a CNI plugin networks). */
int netns_loopback_up(int netns_fd, struct error *err) MUST_USE;

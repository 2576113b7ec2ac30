/*
 * nft.h - purpose: the pod network's nftables table: constant rules, and per pod some set and map elements.
 *
 * One table of family inet:
 *
 *	map hostport     protocol . port -> pod . port              (host ports on every address)
 *	map hostport_on  address . protocol . port -> pod . port    (host ports on one address)
 *	set pod          addresses of pods
 *	set hairpin      pod . pod, to recognise a pod that talks to itself
 *
 * Every function is one transaction, thread-safe, in the thread's network namespace.
 */
#pragma once
#include "runtime-lite/net/bridge.h"

struct nft_table {
	const char *name;
	const char *bridge;
};

struct nft_pod {
	const char *sandbox_id; /* becomes the comment of its host ports */
	struct in_addr ip;
	const struct port_mapping *ports;
	size_t n_ports;
};

/* Replaces the whole table. Connections live on, since conntrack keeps their translation. */
int nft_table_write(const struct nft_table *table, const struct nft_pod *pods, size_t n, struct error *err) MUST_USE;
/* Also succeeds when there is none. */
int nft_table_delete(const struct nft_table *table, struct error *err) MUST_USE;
/* 1: it is there, 0: it is not. */
int nft_table_exists(const struct nft_table *table, struct error *err) MUST_USE;
/* These fail when the table is not as expected: write it anew. */
int nft_pod_add(const struct nft_table *table, const struct nft_pod *pod, struct error *err) MUST_USE;
int nft_pod_remove(const struct nft_table *table, const struct nft_pod *pod, struct error *err) MUST_USE;
/* Does a chain (none of ours does) drop forwarded packets by its policy? Names it in ret. Best effort. */
bool nft_forward_dropped(char *ret, size_t size);

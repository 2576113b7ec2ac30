/*
 * base.h - purpose: the constant part of our table: sets, chains and rules, and the chains for numbers of endpoints.
 *
 * Pure (libnftnl objects are plain data). What is here never changes with Services, only with the configuration. How a
 * packet of a new flow goes:
 *
 *	guard (before NAT)            drop what loadBalancerSourceRanges keeps out
 *	prerouting, output (nat)      -> services: look up frontend, or for one of the node's addresses nodeport; the
 *	                                 result is a plan id, which `plan` turns into a chain
 *	cluster4_3, external4_3, ...  mark for masquerade if need be, draw a number below 3
 *	dnat4                         look up (number, frontend) in endpoint, DNAT. No chain of a number uses a big
 *	                                 map itself, because the kernel walks a map when a new chain first uses it.
 *	cluster4_sticky_10800         session affinity: look the client up in sticky; if it is new, draw and remember
 *	divert4                       externalTrafficPolicy Local: pods and this node go to `inside`, others to `local`
 *	input, forward, output_filter -> unserved: frontends without endpoints refuse, or keep silent
 *	postrouting (nat)             masquerade endpoints that reach themselves, and what was marked
 *
 * The plan id and the number travel in skb->priority, which is put back to 0 on the way out (forwarding sets it
 *anyway).
 */
#pragma once
#include "proxy-lite/compile/frontend.h"

#include <stdio.h>

#include <libnftnl/chain.h>
#include <libnftnl/rule.h>
#include <libnftnl/set.h>

struct base_config {
	const char *table;	  /* name, family inet; borrowed */
	uint32_t masquerade_mark; /* one bit */
	bool masquerade_all;
	bool has_pods[2]; /* by family: is `pods` known? */
	struct cidr pods[2];
	const char *pods_interface; /* NULL: by address; "veth*" for a prefix; borrowed */
};

enum { BASE_TABLE_NAME_MAX = 32, BASE_RULES_MAX = 8, BASE_CHAINS_MAX = 24 };

struct base_chain {
	char name[PLAN_NAME_MAX];
	const char *type; /* NULL: not a base chain */
	uint32_t hook;
	int32_t priority;
	struct nftnl_rule *rules[BASE_RULES_MAX];
	size_t n_rules;
};

/* All constant chains; *ret_n of them, at most BASE_CHAINS_MAX. Free with base_chains_free(). */
struct base_chain *base_chains(const struct base_config *config, size_t *ret_n);
void base_chains_free(struct base_chain *chains, size_t n);
/* The chain of a plan. base_chain_done() frees its rules. */
void base_plan_chain(const struct base_config *config, uint32_t plan_id, struct base_chain *ret);
void base_chain_done(struct base_chain *chain);
/* New objects, to be freed with their own destructors. */
struct nftnl_set *base_set(const struct base_config *config, enum set_id id);
struct nftnl_chain *base_nftnl_chain(const struct base_config *config, const struct base_chain *chain);
/* The rule as text that is equal for equal rules; owned by the caller. */
char *base_rule_text(const struct nftnl_rule *rule);

/*
 * nft.c - purpose: the pod network's nftables table: constant rules, and per pod some set and map elements.
 *
 * In nft's language (Debian 12's nft prints and loads it so):
 *
 *	chain hostports {
 *		dnat ip to ip daddr . meta l4proto . th dport map @hostport_on
 *		dnat ip to meta l4proto . th dport map @hostport
 *	}
 *	chain guard {		# route_localnet is for our own replies, not a way into the node's loopback
 *		type filter hook prerouting priority raw
 *		iifname BRIDGE ip daddr 127.0.0.0/8 drop
 *	}
 *	chain prerouting {	# "local": traffic that only passes through the node is none of our business
 *		type nat hook prerouting priority dstnat
 *		fib daddr type local jump hostports
 *	}
 *	chain output {
 *		type nat hook output priority -100
 *		fib daddr type local jump hostports
 *	}
 *	chain postrouting {
 *		type nat hook postrouting priority srcnat
 *		ip saddr . ip daddr @hairpin masquerade
 *		oifname BRIDGE ip saddr 127.0.0.0/8 masquerade
 *		oifname != BRIDGE ip saddr @pod ip daddr != 224.0.0.0/4 masquerade
 *	}
 *	chain quiet {		# between pods a packet leaves by the link it came from, on purpose
 *		type filter hook output priority filter
 *		oifname BRIDGE icmp type redirect drop
 *	}
 */
#include "runtime-lite/net/nft.h"
#include "runtime-lite/net/nft_batch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <libnftnl/chain.h>
#include <libnftnl/common.h>
#include <libnftnl/expr.h>
#include <libnftnl/rule.h>
#include <libnftnl/set.h>
#include <libnftnl/table.h>
#include <libnftnl/udata.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter_ipv4.h>
#include <net/if.h>
#include <stdio.h>
#include <sys/socket.h>

enum {
	ELEMENTS_PER_MESSAGE = 200,
	/* nft's numbers for data types, put together by 6 bits each; only for its listing. */
	TYPE_IPV4 = 7,
	TYPE_PROTOCOL = 12,
	TYPE_SERVICE = 13,
	TYPE_BITS = 6,
	BYTEORDER_NETWORK = 2, /* nft's number, in set userdata */
	IP_SADDR = 12,
	IP_DADDR = 16,
	ICMP_REDIRECT_TYPE = 5,
};

/* ---- table, chains, sets ---- */

static void put_table(struct nft_batch *b, uint16_t type)
{
	struct nftnl_table *t = nftnl_table_alloc();
	struct nlmsghdr *nlh = nft_batch_message(b, type, type == NFT_MSG_NEWTABLE ? NLM_F_CREATE : 0);

	nftnl_table_set_u32(t, NFTNL_TABLE_FAMILY, NFPROTO_INET);
	nftnl_table_set_str(t, NFTNL_TABLE_NAME, b->table->name);
	nftnl_table_nlmsg_build_payload(nlh, t);
	nft_batch_put(b, nlh);
	nftnl_table_free(t);
}

/* `type` NULL: a chain without hook. */
static void put_chain(struct nft_batch *b, const char *name, const char *type, uint32_t hook, int32_t priority)
{
	struct nftnl_chain *c = nftnl_chain_alloc();
	struct nlmsghdr *nlh = nft_batch_message(b, NFT_MSG_NEWCHAIN, NLM_F_CREATE);

	nftnl_chain_set_str(c, NFTNL_CHAIN_TABLE, b->table->name);
	nftnl_chain_set_str(c, NFTNL_CHAIN_NAME, name);
	if (type) {
		nftnl_chain_set_str(c, NFTNL_CHAIN_TYPE, type);
		nftnl_chain_set_u32(c, NFTNL_CHAIN_HOOKNUM, hook);
		nftnl_chain_set_s32(c, NFTNL_CHAIN_PRIO, priority);
		nftnl_chain_set_u32(c, NFTNL_CHAIN_POLICY, NF_ACCEPT);
	}
	nftnl_chain_nlmsg_build_payload(nlh, c);
	nft_batch_put(b, nlh);
	nftnl_chain_free(c);
}

static uint32_t type_join(const uint32_t *types, size_t n)
{
	uint32_t joined = 0;
	size_t i;

	for (i = 0; i < n; i++)
		joined = joined << TYPE_BITS | types[i];
	return joined;
}

/* A set, or with n_data a map. Each part of key and data is 4 bytes. The userdata says to nft's listing how to read
 * them. */
static void put_set(struct nft_batch *b, uint32_t id, const char *name, const uint32_t *key, size_t n_key,
	const uint32_t *data, size_t n_data)
{
	struct nftnl_set *s = nftnl_set_alloc();
	struct nftnl_udata_buf *u = nftnl_udata_buf_alloc(NFT_USERDATA_MAXLEN);
	struct nlmsghdr *nlh = nft_batch_message(b, NFT_MSG_NEWSET, NLM_F_CREATE);

	nftnl_set_set_str(s, NFTNL_SET_TABLE, b->table->name);
	nftnl_set_set_str(s, NFTNL_SET_NAME, name);
	nftnl_set_set_u32(s, NFTNL_SET_ID, id);
	nftnl_set_set_u32(s, NFTNL_SET_FLAGS, n_data ? NFT_SET_MAP : 0);
	nftnl_set_set_u32(s, NFTNL_SET_KEY_TYPE, type_join(key, n_key));
	nftnl_set_set_u32(s, NFTNL_SET_KEY_LEN, (uint32_t)n_key * 4);
	nftnl_udata_put_u32(u, NFTNL_UDATA_SET_KEYBYTEORDER, n_key == 1 ? BYTEORDER_NETWORK : 0);
	if (n_data) {
		nftnl_set_set_u32(s, NFTNL_SET_DATA_TYPE, type_join(data, n_data));
		nftnl_set_set_u32(s, NFTNL_SET_DATA_LEN, (uint32_t)n_data * 4);
		nftnl_udata_put_u32(u, NFTNL_UDATA_SET_DATABYTEORDER, 0);
	}
	nftnl_set_set_data(s, NFTNL_SET_USERDATA, nftnl_udata_buf_data(u), nftnl_udata_buf_len(u));
	nftnl_set_nlmsg_build_payload(nlh, s);
	nft_batch_put(b, nlh);
	nftnl_udata_buf_free(u);
	nftnl_set_free(s);
}

/* ---- expressions ---- */

static struct nftnl_expr *add_expr(struct nftnl_rule *rule, const char *name)
{
	struct nftnl_expr *e = nftnl_expr_alloc(name);

	if (!e)
		abort();
	nftnl_rule_add_expr(rule, e);
	return e;
}

static void meta(struct nftnl_rule *rule, uint32_t key, uint32_t reg)
{
	struct nftnl_expr *e = add_expr(rule, "meta");

	nftnl_expr_set_u32(e, NFTNL_EXPR_META_KEY, key);
	nftnl_expr_set_u32(e, NFTNL_EXPR_META_DREG, reg);
}

static void payload(struct nftnl_rule *rule, uint32_t base, uint32_t offset, uint32_t len, uint32_t reg)
{
	struct nftnl_expr *e = add_expr(rule, "payload");

	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_BASE, base);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_OFFSET, offset);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_LEN, len);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_DREG, reg);
}

static void compare(struct nftnl_rule *rule, uint32_t op, const void *data, uint32_t len)
{
	struct nftnl_expr *e = add_expr(rule, "cmp");

	nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_SREG, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_OP, op);
	nftnl_expr_set(e, NFTNL_EXPR_CMP_DATA, data, len);
}

static void compare_u8(struct nftnl_rule *rule, uint8_t value)
{
	compare(rule, NFT_CMP_EQ, &value, sizeof(value));
}

static void is_ipv4(struct nftnl_rule *rule)
{
	meta(rule, NFT_META_NFPROTO, NFT_REG_1);
	compare_u8(rule, NFPROTO_IPV4);
}

static void interface_is(struct nftnl_rule *rule, uint32_t key, uint32_t op, const char *name)
{
	char padded[IFNAMSIZ] = "";

	memcpy(padded, name, strnlen(name, sizeof(padded) - 1));
	meta(rule, key, NFT_REG_1);
	compare(rule, op, padded, sizeof(padded));
}

/* The address at `offset` of the IPv4 header is in 127.0.0.0/8. */
static void is_loopback(struct nftnl_rule *rule, uint32_t offset)
{
	is_ipv4(rule);
	payload(rule, NFT_PAYLOAD_NETWORK_HEADER, offset, 1, NFT_REG_1);
	compare_u8(rule, 127);
}

static void lookup(struct nftnl_rule *rule, const char *set, bool map)
{
	struct nftnl_expr *e = add_expr(rule, "lookup");

	nftnl_expr_set_u32(e, NFTNL_EXPR_LOOKUP_SREG, NFT_REG_1);
	nftnl_expr_set_str(e, NFTNL_EXPR_LOOKUP_SET, set);
	if (map)
		nftnl_expr_set_u32(e, NFTNL_EXPR_LOOKUP_DREG, NFT_REG_1);
}

static void verdict(struct nftnl_rule *rule, int code, const char *chain)
{
	struct nftnl_expr *e = add_expr(rule, "immediate");

	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, NFT_REG_VERDICT);
	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_VERDICT, (uint32_t)code);
	if (chain)
		nftnl_expr_set_str(e, NFTNL_EXPR_IMM_CHAIN, chain);
}

static void dnat_from_map(struct nftnl_rule *rule)
{
	struct nftnl_expr *e = add_expr(rule, "nat");

	nftnl_expr_set_u32(e, NFTNL_EXPR_NAT_TYPE, NFT_NAT_DNAT);
	nftnl_expr_set_u32(e, NFTNL_EXPR_NAT_FAMILY, NFPROTO_IPV4);
	nftnl_expr_set_u32(e, NFTNL_EXPR_NAT_REG_ADDR_MIN, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_NAT_REG_PROTO_MIN, NFT_REG32_01); /* the second 4 bytes of register 1 */
}

static struct nftnl_rule *rule_new(struct nft_batch *b, const char *chain)
{
	struct nftnl_rule *rule = nftnl_rule_alloc();

	nftnl_rule_set_str(rule, NFTNL_RULE_TABLE, b->table->name);
	nftnl_rule_set_str(rule, NFTNL_RULE_CHAIN, chain);
	return rule;
}

static void put_rule(struct nft_batch *b, struct nftnl_rule *rule)
{
	struct nlmsghdr *nlh = nft_batch_message(b, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);

	nftnl_rule_nlmsg_build_payload(nlh, rule);
	nft_batch_put(b, nlh);
	nftnl_rule_free(rule);
}

/* ---- the rules ---- */

static void put_hostports(struct nft_batch *b)
{
	struct nftnl_rule *rule = rule_new(b, "hostports");

	is_ipv4(rule);
	payload(rule, NFT_PAYLOAD_NETWORK_HEADER, IP_DADDR, 4, NFT_REG_1);
	meta(rule, NFT_META_L4PROTO, NFT_REG32_01);
	payload(rule, NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2, NFT_REG32_02);
	lookup(rule, "hostport_on", true);
	dnat_from_map(rule);
	put_rule(b, rule);

	rule = rule_new(b, "hostports");
	meta(rule, NFT_META_L4PROTO, NFT_REG_1);
	payload(rule, NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2, NFT_REG32_01);
	lookup(rule, "hostport", true);
	dnat_from_map(rule);
	put_rule(b, rule);
}

static void put_jump_if_local(struct nft_batch *b, const char *chain)
{
	struct nftnl_rule *rule = rule_new(b, chain);
	struct nftnl_expr *e = add_expr(rule, "fib");
	uint32_t local = 2; /* RTN_LOCAL */

	nftnl_expr_set_u32(e, NFTNL_EXPR_FIB_FLAGS, NFTA_FIB_F_DADDR);
	nftnl_expr_set_u32(e, NFTNL_EXPR_FIB_RESULT, NFT_FIB_RESULT_ADDRTYPE);
	nftnl_expr_set_u32(e, NFTNL_EXPR_FIB_DREG, NFT_REG_1);
	compare(rule, NFT_CMP_EQ, &local, sizeof(local));
	verdict(rule, NFT_JUMP, "hostports");
	put_rule(b, rule);
}

static void put_postrouting(struct nft_batch *b)
{
	static const uint8_t multicast_mask[] = { 0xf0, 0, 0, 0 }, multicast[] = { 224, 0, 0, 0 }, none[4];
	struct nftnl_rule *rule = rule_new(b, "postrouting");
	struct nftnl_expr *e;

	is_ipv4(rule);
	payload(rule, NFT_PAYLOAD_NETWORK_HEADER, IP_SADDR, 4, NFT_REG_1);
	payload(rule, NFT_PAYLOAD_NETWORK_HEADER, IP_DADDR, 4, NFT_REG32_01);
	lookup(rule, "hairpin", false);
	add_expr(rule, "masq");
	put_rule(b, rule);

	rule = rule_new(b, "postrouting");
	interface_is(rule, NFT_META_OIFNAME, NFT_CMP_EQ, b->table->bridge);
	is_loopback(rule, IP_SADDR);
	add_expr(rule, "masq");
	put_rule(b, rule);

	rule = rule_new(b, "postrouting");
	interface_is(rule, NFT_META_OIFNAME, NFT_CMP_NEQ, b->table->bridge);
	is_ipv4(rule);
	payload(rule, NFT_PAYLOAD_NETWORK_HEADER, IP_SADDR, 4, NFT_REG_1);
	lookup(rule, "pod", false);
	payload(rule, NFT_PAYLOAD_NETWORK_HEADER, IP_DADDR, 4, NFT_REG_1);
	e = add_expr(rule, "bitwise");
	nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_SREG, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_DREG, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_LEN, sizeof(multicast_mask));
	nftnl_expr_set(e, NFTNL_EXPR_BITWISE_MASK, multicast_mask, sizeof(multicast_mask));
	nftnl_expr_set(e, NFTNL_EXPR_BITWISE_XOR, none, sizeof(none));
	compare(rule, NFT_CMP_NEQ, multicast, sizeof(multicast));
	add_expr(rule, "masq");
	put_rule(b, rule);
}

static void put_guard_and_quiet(struct nft_batch *b)
{
	struct nftnl_rule *rule = rule_new(b, "guard");

	interface_is(rule, NFT_META_IIFNAME, NFT_CMP_EQ, b->table->bridge);
	is_loopback(rule, IP_DADDR);
	verdict(rule, NF_DROP, NULL);
	put_rule(b, rule);

	rule = rule_new(b, "quiet");
	interface_is(rule, NFT_META_OIFNAME, NFT_CMP_EQ, b->table->bridge);
	is_ipv4(rule);
	meta(rule, NFT_META_L4PROTO, NFT_REG_1);
	compare_u8(rule, IPPROTO_ICMP);
	payload(rule, NFT_PAYLOAD_TRANSPORT_HEADER, 0, 1, NFT_REG_1);
	compare_u8(rule, ICMP_REDIRECT_TYPE);
	verdict(rule, NF_DROP, NULL);
	put_rule(b, rule);
}

static void put_skeleton(struct nft_batch *b)
{
	static const uint32_t key[] = { TYPE_IPV4, TYPE_PROTOCOL, TYPE_SERVICE },
			      target[] = { TYPE_IPV4, TYPE_SERVICE };
	static const uint32_t pair[] = { TYPE_IPV4, TYPE_IPV4 };

	/* A chain of type nat must not come before conntrack's own hooks; these are nft's names for the places. */
	put_table(b, NFT_MSG_NEWTABLE);
	put_set(b, 1, "hostport", key + 1, 2, target, 2);
	put_set(b, 2, "hostport_on", key, 3, target, 2);
	put_set(b, 3, "pod", pair, 1, NULL, 0);
	put_set(b, 4, "hairpin", pair, 2, NULL, 0);
	put_chain(b, "hostports", NULL, 0, 0);
	put_chain(b, "guard", "filter", NF_INET_PRE_ROUTING, NF_IP_PRI_RAW);
	put_chain(b, "prerouting", "nat", NF_INET_PRE_ROUTING, NF_IP_PRI_NAT_DST);
	put_chain(b, "output", "nat", NF_INET_LOCAL_OUT, NF_IP_PRI_NAT_DST);
	put_chain(b, "postrouting", "nat", NF_INET_POST_ROUTING, NF_IP_PRI_NAT_SRC);
	put_chain(b, "quiet", "filter", NF_INET_LOCAL_OUT, NF_IP_PRI_FILTER);
	put_hostports(b);
	put_jump_if_local(b, "prerouting");
	put_jump_if_local(b, "output");
	put_postrouting(b);
	put_guard_and_quiet(b);
}

/* ---- elements ---- */

/* Elements of one set, which go out in messages of limited size. */
struct elements {
	struct nft_batch *batch;
	const char *set;
	uint16_t type; /* NFT_MSG_NEWSETELEM, NFT_MSG_DELSETELEM */
	struct nftnl_set *pending;
	size_t n;
};

static void elements_flush(struct elements *el)
{
	struct nlmsghdr *nlh;

	if (!el->pending)
		return;
	nlh = nft_batch_message(el->batch, el->type, el->type == NFT_MSG_NEWSETELEM ? NLM_F_CREATE : 0);
	nftnl_set_elems_nlmsg_build_payload(nlh, el->pending);
	nft_batch_put(el->batch, nlh);
	nftnl_set_free(el->pending);
	el->pending = NULL;
	el->n = 0;
}

static void element_add(
	struct elements *el, const void *key, size_t key_len, const void *data, size_t data_len, const char *comment)
{
	struct nftnl_set_elem *e = nftnl_set_elem_alloc();

	if (!el->pending) {
		el->pending = nftnl_set_alloc();
		nftnl_set_set_str(el->pending, NFTNL_SET_TABLE, el->batch->table->name);
		nftnl_set_set_str(el->pending, NFTNL_SET_NAME, el->set);
	}
	nftnl_set_elem_set(e, NFTNL_SET_ELEM_KEY, key, (uint32_t)key_len);
	if (data)
		nftnl_set_elem_set(e, NFTNL_SET_ELEM_DATA, data, (uint32_t)data_len);
	if (comment && el->type == NFT_MSG_NEWSETELEM) {
		struct nftnl_udata_buf *u = nftnl_udata_buf_alloc(NFT_USERDATA_MAXLEN);

		if (nftnl_udata_put_strz(u, NFTNL_UDATA_SET_ELEM_COMMENT, comment))
			nftnl_set_elem_set(e, NFTNL_SET_ELEM_USERDATA, nftnl_udata_buf_data(u), nftnl_udata_buf_len(u));
		nftnl_udata_buf_free(u);
	}
	nftnl_set_elem_add(el->pending, e);
	if (++el->n == ELEMENTS_PER_MESSAGE)
		elements_flush(el);
}

/* Parts of a key stand in 4 bytes each, left-aligned. */
struct port_key {
	struct in_addr ip;
	uint8_t protocol, pad1[3];
	uint16_t port, pad2;
};

static bool any_address(const char *host_ip, struct in_addr *ret)
{
	return inet_pton(AF_INET, host_ip, ret) != 1 || ret->s_addr == INADDR_ANY;
}

static void put_pod_ports(struct nft_batch *b, uint16_t type, const struct nft_pod *pod, bool any)
{
	struct elements el = { .batch = b, .set = any ? "hostport" : "hostport_on", .type = type };
	char comment[NFTNL_UDATA_COMMENT_MAXLEN];
	size_t i;

	snprintf(comment, sizeof(comment), "pod %.100s", pod->sandbox_id);
	for (i = 0; i < pod->n_ports; i++) {
		const struct port_mapping *p = &pod->ports[i];
		struct port_key key = { .protocol = p->protocol, .port = htons(p->host_port) };
		struct {
			struct in_addr ip;
			uint16_t port, pad;
		} data = { pod->ip, htons(p->container_port), 0 };

		if (any_address(p->host_ip, &key.ip) != any)
			continue;
		if (any)
			element_add(&el, &key.protocol, sizeof(key) - sizeof(key.ip), &data, sizeof(data), comment);
		else
			element_add(&el, &key, sizeof(key), &data, sizeof(data), comment);
	}
	elements_flush(&el);
}

static void put_pod(struct nft_batch *b, uint16_t type, const struct nft_pod *pod)
{
	const struct in_addr pair[2] = { pod->ip, pod->ip };
	struct elements addresses = { .batch = b, .set = "pod", .type = type };
	struct elements hairpin = { .batch = b, .set = "hairpin", .type = type };

	element_add(&addresses, &pod->ip, sizeof(pod->ip), NULL, 0, NULL);
	elements_flush(&addresses);
	element_add(&hairpin, pair, sizeof(pair), NULL, 0, NULL);
	elements_flush(&hairpin);
	put_pod_ports(b, type, pod, true);
	put_pod_ports(b, type, pod, false);
}

/* ---- what others see ---- */

int nft_table_write(const struct nft_table *table, const struct nft_pod *pods, size_t n, struct error *err)
{
	_cleanup_(nft_batch_done) struct nft_batch b;
	size_t i;
	int r;

	nft_batch_init(&b, table);
	/* Deleting what is not there would fail the batch: so make it first. */
	put_table(&b, NFT_MSG_NEWTABLE);
	put_table(&b, NFT_MSG_DELTABLE);
	put_skeleton(&b);
	for (i = 0; i < n; i++)
		put_pod(&b, NFT_MSG_NEWSETELEM, &pods[i]);
	r = nft_batch_send(&b);
	return r < 0 ? error_sys(err, r, "write nftables table inet %s", table->name) : 0;
}

int nft_table_delete(const struct nft_table *table, struct error *err)
{
	_cleanup_(nft_batch_done) struct nft_batch b;
	int r;

	nft_batch_init(&b, table);
	put_table(&b, NFT_MSG_NEWTABLE);
	put_table(&b, NFT_MSG_DELTABLE);
	r = nft_batch_send(&b);
	return r < 0 ? error_sys(err, r, "delete nftables table inet %s", table->name) : 0;
}

int nft_pod_add(const struct nft_table *table, const struct nft_pod *pod, struct error *err)
{
	_cleanup_(nft_batch_done) struct nft_batch b;
	int r;

	nft_batch_init(&b, table);
	put_pod(&b, NFT_MSG_NEWSETELEM, pod);
	r = nft_batch_send(&b);
	return r < 0 ? error_sys(err, r, "add pod to nftables table inet %s", table->name) : 0;
}

int nft_pod_remove(const struct nft_table *table, const struct nft_pod *pod, struct error *err)
{
	_cleanup_(nft_batch_done) struct nft_batch b;
	int r;

	nft_batch_init(&b, table);
	put_pod(&b, NFT_MSG_DELSETELEM, pod);
	r = nft_batch_send(&b);
	return r < 0 ? error_sys(err, r, "remove pod from nftables table inet %s", table->name) : 0;
}

int nft_table_exists(const struct nft_table *table, struct error *err)
{
	_cleanup_(nft_batch_done) struct nft_batch b;
	int r;

	nft_batch_init(&b, table);
	put_table(&b, NFT_MSG_GETTABLE);
	r = nft_batch_ask(&b);
	if (r == -ENOENT)
		return 0;
	return r < 0 ? error_sys(err, r, "look for nftables table inet %s", table->name) : 1;
}

/* ---- other people's chains ---- */

struct forward_search {
	char *ret;
	size_t size;
	bool found;
};

static int on_chain(const struct nlmsghdr *nlh, void *data)
{
	struct forward_search *search = data;
	struct nftnl_chain *c = nftnl_chain_alloc();

	if (nftnl_chain_nlmsg_parse(nlh, c) == 0 && nftnl_chain_is_set(c, NFTNL_CHAIN_HOOKNUM) &&
		nftnl_chain_is_set(c, NFTNL_CHAIN_POLICY) &&
		nftnl_chain_get_u32(c, NFTNL_CHAIN_HOOKNUM) == NF_INET_FORWARD &&
		nftnl_chain_get_u32(c, NFTNL_CHAIN_POLICY) == NF_DROP) {
		uint32_t family = nftnl_chain_get_u32(c, NFTNL_CHAIN_FAMILY);

		if (family == NFPROTO_INET || family == NFPROTO_IPV4) {
			snprintf(search->ret, search->size, "nftables chain %s of table %s %s",
				nftnl_chain_get_str(c, NFTNL_CHAIN_NAME), family == NFPROTO_INET ? "inet" : "ip",
				nftnl_chain_get_str(c, NFTNL_CHAIN_TABLE));
			search->found = true;
		}
	}
	nftnl_chain_free(c);
	return MNL_CB_OK;
}

bool nft_forward_dropped(char *ret, size_t size)
{
	struct forward_search search = { .ret = ret, .size = size };
	struct mnl_socket *socket = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC);
	_cleanup_free_ char *buf = xmalloc(NFT_MESSAGE_ROOM);
	struct nlmsghdr *nlh = nftnl_nlmsg_build_hdr(buf, NFT_MSG_GETCHAIN, NFPROTO_UNSPEC, NLM_F_DUMP, 1);
	ssize_t n;

	if (!socket)
		return false;
	if (mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) == 0 && mnl_socket_sendto(socket, nlh, nlh->nlmsg_len) > 0)
		while ((n = mnl_socket_recvfrom(socket, buf, NFT_MESSAGE_ROOM)) > 0 &&
			mnl_cb_run(buf, (size_t)n, 1, mnl_socket_get_portid(socket), on_chain, &search) > MNL_CB_STOP) {
		}
	mnl_socket_close(socket);
	return search.found;
}

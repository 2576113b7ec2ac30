/* expr.c - purpose: append nftables expressions to a rule. */
#include "proxy-lite/compile/expr.h"

#include <linux/netfilter.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/nf_tables.h>
#include <net/if.h>

static struct nftnl_expr *add(struct nftnl_rule *rule, const char *name)
{
	struct nftnl_expr *expr = nftnl_expr_alloc(name);

	assert(expr);
	nftnl_rule_add_expr(rule, expr);
	return expr;
}

/* The kernel names every fourth word by its 16-byte register, and lists it so. */
static uint32_t reg_number(unsigned word)
{
	return word % 4 == 0 ? NFT_REG_1 + word / 4 : NFT_REG32_00 + word;
}

void expr_meta_load(struct nftnl_rule *rule, uint32_t key, unsigned reg)
{
	struct nftnl_expr *e = add(rule, "meta");

	nftnl_expr_set_u32(e, NFTNL_EXPR_META_KEY, key);
	nftnl_expr_set_u32(e, NFTNL_EXPR_META_DREG, reg_number(reg));
}

void expr_meta_set(struct nftnl_rule *rule, uint32_t key, unsigned reg)
{
	struct nftnl_expr *e = add(rule, "meta");

	nftnl_expr_set_u32(e, NFTNL_EXPR_META_KEY, key);
	nftnl_expr_set_u32(e, NFTNL_EXPR_META_SREG, reg_number(reg));
}

void expr_immediate_u32(struct nftnl_rule *rule, unsigned reg, uint32_t value)
{
	struct nftnl_expr *e = add(rule, "immediate");

	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, reg_number(reg));
	nftnl_expr_set_data(e, NFTNL_EXPR_IMM_DATA, &value, sizeof(value));
}

void expr_verdict(struct nftnl_rule *rule, int verdict, const char *chain)
{
	struct nftnl_expr *e = add(rule, "immediate");

	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, NFT_REG_VERDICT);
	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_VERDICT, (uint32_t)verdict);
	if (chain)
		nftnl_expr_set_str(e, NFTNL_EXPR_IMM_CHAIN, chain);
}

void expr_cmp(struct nftnl_rule *rule, bool not, unsigned reg, const void *data, size_t len)
{
	struct nftnl_expr *e = add(rule, "cmp");

	nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_SREG, reg_number(reg));
	nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_OP, not ? NFT_CMP_NEQ : NFT_CMP_EQ);
	nftnl_expr_set_data(e, NFTNL_EXPR_CMP_DATA, data, (uint32_t)len);
}

static void bitwise(struct nftnl_rule *rule, unsigned reg, const void *mask, const void * xor, size_t len)
{
	struct nftnl_expr *e = add(rule, "bitwise");

	nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_SREG, reg_number(reg));
	nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_DREG, reg_number(reg));
	nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_OP, NFT_BITWISE_BOOL);
	nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_LEN, (uint32_t)len);
	nftnl_expr_set_data(e, NFTNL_EXPR_BITWISE_MASK, mask, (uint32_t)len);
	nftnl_expr_set_data(e, NFTNL_EXPR_BITWISE_XOR, xor, (uint32_t)len);
}

void expr_bitwise(struct nftnl_rule *rule, unsigned reg, uint32_t mask, uint32_t xor)
{
	bitwise(rule, reg, &mask, &xor, sizeof(mask));
}

void expr_mask_bytes(struct nftnl_rule *rule, unsigned reg, const uint8_t *mask, size_t len)
{
	static const uint8_t zero[16];

	bitwise(rule, reg, mask, zero, len);
}

void expr_family(struct nftnl_rule *rule, bool v6)
{
	uint8_t family = v6 ? NFPROTO_IPV6 : NFPROTO_IPV4;

	expr_meta_load(rule, NFT_META_NFPROTO, 0);
	expr_cmp(rule, false, 0, &family, sizeof(family));
}

void expr_interface(struct nftnl_rule *rule, uint32_t key, const char *name, bool not )
{
	char buf[IFNAMSIZ] = { 0 };
	size_t len = strlen(name);

	/* A prefix is compared by its bytes alone, a whole name with its padding. */
	memcpy(buf, name, MIN(len, sizeof(buf) - 1));
	expr_meta_load(rule, key, 0);
	if (len && name[len - 1] == '*')
		expr_cmp(rule, not, 0, buf, MIN(len - 1, sizeof(buf) - 1));
	else
		expr_cmp(rule, not, 0, buf, sizeof(buf));
}

static void payload(struct nftnl_rule *rule, uint32_t base, uint32_t offset, enum field field, unsigned reg)
{
	struct nftnl_expr *e = add(rule, "payload");

	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_DREG, reg_number(reg));
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_BASE, base);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_OFFSET, offset);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_LEN, (uint32_t)field_len(field));
}

/* Of the IPv6 addresses, loaded behind the four words of the key that it is part of. */
static void hash6(struct nftnl_rule *rule, enum field field, unsigned reg)
{
	bool both = field == FIELD_HASH || field == FIELD_HASH_AGAIN;
	bool again = field == FIELD_HASH_AGAIN || field == FIELD_SOURCE_HASH_AGAIN;
	struct nftnl_expr *e;

	expr_field(rule, FIELD_SADDR6, 4);
	if (both)
		expr_field(rule, FIELD_DADDR6, 8);
	e = add(rule, "hash");
	nftnl_expr_set_u32(e, NFTNL_EXPR_HASH_TYPE, NFT_HASH_JENKINS);
	nftnl_expr_set_u32(e, NFTNL_EXPR_HASH_SREG, reg_number(4));
	nftnl_expr_set_u32(e, NFTNL_EXPR_HASH_DREG, reg_number(reg));
	nftnl_expr_set_u32(e, NFTNL_EXPR_HASH_LEN, both ? 32 : 16);
	nftnl_expr_set_u32(e, NFTNL_EXPR_HASH_MODULUS, UINT32_MAX);
	nftnl_expr_set_u32(e, NFTNL_EXPR_HASH_SEED, again ? 2 : 1);
}

void expr_field(struct nftnl_rule *rule, enum field field, unsigned reg)
{
	switch (field) {
	case FIELD_SADDR4:
		payload(rule, NFT_PAYLOAD_NETWORK_HEADER, 12, field, reg);
		break;
	case FIELD_DADDR4:
		payload(rule, NFT_PAYLOAD_NETWORK_HEADER, 16, field, reg);
		break;
	case FIELD_SADDR6:
		payload(rule, NFT_PAYLOAD_NETWORK_HEADER, 8, field, reg);
		break;
	case FIELD_DADDR6:
		payload(rule, NFT_PAYLOAD_NETWORK_HEADER, 24, field, reg);
		break;
	case FIELD_PORT:
		payload(rule, NFT_PAYLOAD_TRANSPORT_HEADER, 2, field, reg);
		break;
	case FIELD_PROTOCOL:
		expr_meta_load(rule, NFT_META_L4PROTO, reg);
		break;
	case FIELD_PRIORITY:
		expr_meta_load(rule, NFT_META_PRIORITY, reg);
		break;
	case FIELD_HASH:
	case FIELD_HASH_AGAIN:
	case FIELD_SOURCE_HASH:
	case FIELD_SOURCE_HASH_AGAIN:
		hash6(rule, field, reg);
		break;
	case FIELD_END:
		assert(!"not a field of a packet");
	}
}

/* Returns the first register after them. */
static unsigned load_fields(struct nftnl_rule *rule, const enum field *fields)
{
	unsigned reg = 0;

	for (unsigned i = 0; fields[i] != FIELD_END; i++) {
		expr_field(rule, fields[i], reg);
		reg += (unsigned)(field_len(fields[i]) + 3) / 4;
	}
	return reg;
}

static struct nftnl_expr *lookup(struct nftnl_rule *rule, enum set_id set)
{
	struct nftnl_expr *e = add(rule, "lookup");

	nftnl_expr_set_u32(e, NFTNL_EXPR_LOOKUP_SREG, reg_number(0));
	nftnl_expr_set_str(e, NFTNL_EXPR_LOOKUP_SET, set_spec(set)->name);
	nftnl_expr_set_u32(e, NFTNL_EXPR_LOOKUP_FLAGS, 0);
	return e;
}

void expr_lookup_fields(struct nftnl_rule *rule, enum set_id set)
{
	load_fields(rule, set_spec(set)->key);
	nftnl_expr_set_u32(lookup(rule, set), NFTNL_EXPR_LOOKUP_DREG, reg_number(0));
}

void expr_lookup_verdict(struct nftnl_rule *rule, enum set_id set, unsigned reg)
{
	struct nftnl_expr *e = lookup(rule, set);

	nftnl_expr_set_u32(e, NFTNL_EXPR_LOOKUP_SREG, reg_number(reg));
	nftnl_expr_set_u32(e, NFTNL_EXPR_LOOKUP_DREG, NFT_REG_VERDICT);
}

void expr_member(struct nftnl_rule *rule, enum set_id set)
{
	load_fields(rule, set_spec(set)->key);
	lookup(rule, set);
}

void expr_source_member(struct nftnl_rule *rule, enum set_id set, bool v6)
{
	enum field source = v6 ? FIELD_SADDR6 : FIELD_SADDR4;

	load_fields(rule, (const enum field[]){ source, source, FIELD_END });
	lookup(rule, set);
}

void expr_no_member(struct nftnl_rule *rule, enum set_id set)
{
	load_fields(rule, set_spec(set)->key);
	nftnl_expr_set_u32(lookup(rule, set), NFTNL_EXPR_LOOKUP_FLAGS, NFT_LOOKUP_F_INV);
}

void expr_numgen(struct nftnl_rule *rule, unsigned reg, uint32_t modulus, uint32_t offset)
{
	struct nftnl_expr *e = add(rule, "numgen");

	nftnl_expr_set_u32(e, NFTNL_EXPR_NG_DREG, reg_number(reg));
	nftnl_expr_set_u32(e, NFTNL_EXPR_NG_MODULUS, modulus);
	nftnl_expr_set_u32(e, NFTNL_EXPR_NG_TYPE, NFT_NG_RANDOM);
	nftnl_expr_set_u32(e, NFTNL_EXPR_NG_OFFSET, offset);
}

void expr_dnat(struct nftnl_rule *rule, bool v6)
{
	struct nftnl_expr *e = add(rule, "nat");
	uint32_t port = reg_number(v6 ? 4 : 1);

	nftnl_expr_set_u32(e, NFTNL_EXPR_NAT_TYPE, NFT_NAT_DNAT);
	nftnl_expr_set_u32(e, NFTNL_EXPR_NAT_FAMILY, v6 ? NFPROTO_IPV6 : NFPROTO_IPV4);
	nftnl_expr_set_u32(e, NFTNL_EXPR_NAT_REG_ADDR_MIN, reg_number(0));
	nftnl_expr_set_u32(e, NFTNL_EXPR_NAT_REG_ADDR_MAX, reg_number(0));
	nftnl_expr_set_u32(e, NFTNL_EXPR_NAT_REG_PROTO_MIN, port);
	nftnl_expr_set_u32(e, NFTNL_EXPR_NAT_REG_PROTO_MAX, port);
	nftnl_expr_set_u32(e, NFTNL_EXPR_NAT_FLAGS, NF_NAT_RANGE_MAP_IPS | NF_NAT_RANGE_PROTO_SPECIFIED);
}

void expr_masquerade(struct nftnl_rule *rule, uint32_t flags)
{
	nftnl_expr_set_u32(add(rule, "masq"), NFTNL_EXPR_MASQ_FLAGS, flags);
}

void expr_reject(struct nftnl_rule *rule, uint32_t type, uint8_t code)
{
	struct nftnl_expr *e = add(rule, "reject");

	nftnl_expr_set_u32(e, NFTNL_EXPR_REJECT_TYPE, type);
	nftnl_expr_set_u8(e, NFTNL_EXPR_REJECT_CODE, code);
}

void expr_ct_bits(struct nftnl_rule *rule, uint32_t key, uint32_t bits)
{
	struct nftnl_expr *e = add(rule, "ct");
	uint32_t zero = 0;

	nftnl_expr_set_u32(e, NFTNL_EXPR_CT_KEY, key);
	nftnl_expr_set_u32(e, NFTNL_EXPR_CT_DREG, reg_number(0));
	expr_bitwise(rule, 0, bits, 0);
	expr_cmp(rule, true, 0, &zero, sizeof(zero));
}

void expr_sticky(struct nftnl_rule *rule, enum set_id set, bool put, uint32_t timeout_s)
{
	unsigned reg = load_fields(rule, set_spec(set)->key);
	struct nftnl_expr *e;

	reg = (reg + 3) & ~3U;
	expr_meta_load(rule, NFT_META_PRIORITY, reg);
	e = add(rule, "dynset");
	nftnl_expr_set_str(e, NFTNL_EXPR_DYNSET_SET_NAME, set_spec(set)->name);
	nftnl_expr_set_u32(e, NFTNL_EXPR_DYNSET_OP, put ? NFT_DYNSET_OP_UPDATE : NFT_DYNSET_OP_DELETE);
	nftnl_expr_set_u32(e, NFTNL_EXPR_DYNSET_SREG_KEY, reg_number(0));
	nftnl_expr_set_u32(e, NFTNL_EXPR_DYNSET_SREG_DATA, reg_number(reg));
	nftnl_expr_set_u64(e, NFTNL_EXPR_DYNSET_TIMEOUT, (uint64_t)timeout_s * 1000);
}

void expr_fib_saddr_type(struct nftnl_rule *rule, uint32_t type)
{
	struct nftnl_expr *e = add(rule, "fib");

	nftnl_expr_set_u32(e, NFTNL_EXPR_FIB_DREG, reg_number(0));
	nftnl_expr_set_u32(e, NFTNL_EXPR_FIB_RESULT, NFT_FIB_RESULT_ADDRTYPE);
	nftnl_expr_set_u32(e, NFTNL_EXPR_FIB_FLAGS, NFTA_FIB_F_SADDR);
	expr_cmp(rule, false, 0, &type, sizeof(type));
}

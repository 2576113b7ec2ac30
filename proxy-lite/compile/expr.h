/*
 * expr.h - purpose: append nftables expressions to a rule. Pure.
 *
 * Registers are numbered by their 4 bytes: 0 is the first word. nft's own spelling of each construct is kept, so that
 * its listing reads as if it had been typed in.
 */
#pragma once
#include "proxy-lite/compile/sets.h"

#include <stdio.h>

#include <libnftnl/expr.h>
#include <libnftnl/rule.h>

void expr_meta_load(struct nftnl_rule *rule, uint32_t key, unsigned reg);
void expr_meta_set(struct nftnl_rule *rule, uint32_t key, unsigned reg);
void expr_immediate_u32(struct nftnl_rule *rule, unsigned reg, uint32_t value);
/* `chain` for jump and goto. */
void expr_verdict(struct nftnl_rule *rule, int verdict, const char *chain);
void expr_cmp(struct nftnl_rule *rule, bool not, unsigned reg, const void *data, size_t len);
/* reg = (reg & mask) ^ xor */
void expr_bitwise(struct nftnl_rule *rule, unsigned reg, uint32_t mask, uint32_t xor);
void expr_mask_bytes(struct nftnl_rule *rule, unsigned reg, const uint8_t *mask, size_t len);
/* Only packets of the family go on. */
void expr_family(struct nftnl_rule *rule, bool v6);
/* "eth0" or "veth*"; META_IIFNAME or META_OIFNAME. */
void expr_interface(struct nftnl_rule *rule, uint32_t key, const char *name, bool not );
/* Loads a field of the packet. */
void expr_field(struct nftnl_rule *rule, enum field field, unsigned reg);
/* Loads the set's key fields side by side, looks them up, and leaves the value in register 0. */
void expr_lookup_fields(struct nftnl_rule *rule, enum set_id set);
/* Looks register `reg` up in a verdict map and goes there. */
void expr_lookup_verdict(struct nftnl_rule *rule, enum set_id set, unsigned reg);
/* Only packets whose fields are in the set go on. */
void expr_member(struct nftnl_rule *rule, enum set_id set);
/* Only packets whose source is in the set of (address, the same address) go on. */
void expr_source_member(struct nftnl_rule *rule, enum set_id set, bool v6);
/* Only those whose fields are not in it go on. */
void expr_no_member(struct nftnl_rule *rule, enum set_id set);
void expr_numgen(struct nftnl_rule *rule, unsigned reg, uint32_t modulus, uint32_t offset);
/* Address and port side by side in register 0. */
void expr_dnat(struct nftnl_rule *rule, bool v6);
void expr_masquerade(struct nftnl_rule *rule, uint32_t flags);
void expr_reject(struct nftnl_rule *rule, uint32_t type, uint8_t code);
/* Only packets with one of the bits set in the conntrack word go on. */
void expr_ct_bits(struct nftnl_rule *rule, uint32_t key, uint32_t bits);
/* Puts or deletes the packet in a set that packets fill: the set's key fields, with the priority as value. */
void expr_sticky(struct nftnl_rule *rule, enum set_id set, bool put, uint32_t timeout_s);
void expr_fib_saddr_type(struct nftnl_rule *rule, uint32_t type);

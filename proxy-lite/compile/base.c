/* base.c - purpose: the constant part of our table: sets, chains and rules, and the chains for numbers of endpoints. */
#include "proxy-lite/compile/base.h"

#include "common/base/str.h"
#include "proxy-lite/compile/expr.h"

#include <linux/netfilter.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/nf_tables.h>

enum { CT_INVALID = 1 << 0, CT_NEW = 1 << 3, CT_STATUS_DNAT = 1 << 5, TYPE_LOCAL = 2 };

/* The rule that is being written, appended to a chain. */
static struct nftnl_rule *rule_add(const struct base_config *config, struct base_chain *chain)
{
	struct nftnl_rule *rule = nftnl_rule_alloc();

	assert(rule && chain->n_rules < BASE_RULES_MAX);
	nftnl_rule_set_u32(rule, NFTNL_RULE_FAMILY, NFPROTO_INET);
	nftnl_rule_set_str(rule, NFTNL_RULE_TABLE, config->table);
	nftnl_rule_set_str(rule, NFTNL_RULE_CHAIN, chain->name);
	chain->rules[chain->n_rules++] = rule;
	return rule;
}

static void rule_goto(const struct base_config *config, struct base_chain *chain, int verdict, const char *to)
{
	expr_verdict(rule_add(config, chain), verdict, to);
}

static void mark(struct nftnl_rule *rule, const struct base_config *config)
{
	expr_meta_load(rule, NFT_META_MARK, 0);
	expr_bitwise(rule, 0, ~config->masquerade_mark, config->masquerade_mark);
	expr_meta_set(rule, NFT_META_MARK, 0);
}

/* Goes on only for packets from pods (or, `not`, only for others). */
static void match_pods(struct nftnl_rule *rule, const struct base_config *config, bool v6, bool not )
{
	const struct cidr *pods = &config->pods[v6];
	uint8_t mask[16];

	if (config->pods_interface) {
		expr_interface(rule, NFT_META_IIFNAME, config->pods_interface, not );
		return;
	}
	expr_family(rule, v6);
	expr_field(rule, v6 ? FIELD_SADDR6 : FIELD_SADDR4, 0);
	cidr_mask(pods, mask);
	expr_mask_bytes(rule, 0, mask, ip_len(v6));
	expr_cmp(rule, not, 0, pods->ip.bytes, ip_len(v6));
}

static bool knows_pods(const struct base_config *config, bool v6)
{
	return config->pods_interface || config->has_pods[v6];
}

/* meta priority set <key> map @set meta priority vmap @plans: the next stage of the way. */
static void dispatch(struct nftnl_rule *rule, enum set_id set, enum set_id plans)
{
	expr_lookup_fields(rule, set);
	expr_meta_set(rule, NFT_META_PRIORITY, 0);
	expr_meta_load(rule, NFT_META_PRIORITY, 0);
	expr_lookup_verdict(rule, plans, 0);
}

static enum set_id port_set(enum set_id base, bool node_port, bool v6)
{
	return set_of((enum set_id)(base + (node_port ? SET_PORT_DISTANCE : 0)), v6);
}

/* ---- chains of plans ---- */

static const char *const dnat_names[2][2] = { { "dnat4", "dnat6" }, { "portdnat4", "portdnat6" } };

static void rule_masquerade_mark(const struct base_config *config, struct base_chain *chain, const struct plan *plan)
{
	struct nftnl_rule *rule;

	switch (plan->flavour) {
	case FLAVOUR_CLUSTER:
		if (config->masquerade_all) {
			mark(rule_add(config, chain), config);
		} else if (knows_pods(config, plan->v6)) {
			rule = rule_add(config, chain);
			match_pods(rule, config, plan->v6, true);
			mark(rule, config);
		}
		break;
	case FLAVOUR_EXTERNAL:
		mark(rule_add(config, chain), config);
		break;
	case FLAVOUR_INSIDE: /* the node itself: its address may not be one that the endpoint can answer to */
		rule = rule_add(config, chain);
		expr_fib_saddr_type(rule, TYPE_LOCAL);
		mark(rule, config);
		break;
	default:
		break;
	}
}

static void fill_divert(const struct base_config *config, struct base_chain *chain, const struct plan *plan)
{
	enum set_id inside = port_set(SET_INSIDE, plan->node_port, plan->v6);
	struct nftnl_rule *rule;

	if (knows_pods(config, plan->v6)) {
		rule = rule_add(config, chain);
		match_pods(rule, config, plan->v6, false);
		if (config->pods_interface && !plan->node_port)
			expr_family(rule, plan->v6);
		dispatch(rule, inside, SET_LOCAL_PLAN);
	}
	rule = rule_add(config, chain);
	expr_fib_saddr_type(rule, TYPE_LOCAL);
	if (!plan->node_port)
		expr_family(rule, plan->v6);
	dispatch(rule, inside, SET_LOCAL_PLAN);
	rule = rule_add(config, chain);
	if (!plan->node_port)
		expr_family(rule, plan->v6);
	dispatch(rule, port_set(SET_LOCAL, plan->node_port, plan->v6), SET_LOCAL_PLAN);
}

static void rule_dnat(const struct base_config *config, struct base_chain *chain, bool node_port, bool v6)
{
	struct nftnl_rule *rule = rule_add(config, chain);

	if (!node_port)
		expr_family(rule, v6);
	expr_lookup_fields(rule, port_set(SET_ENDPOINT, node_port, v6));
	expr_dnat(rule, v6);
}

/* The client comes again: renew, and go where it went before. If that endpoint has gone, forget and come back. */
static void fill_hit(const struct base_config *config, struct base_chain *chain, const struct plan *plan)
{
	enum set_id sticky = port_set(SET_STICKY, plan->node_port, plan->v6);
	struct nftnl_rule *rule = rule_add(config, chain);

	expr_family(rule, plan->v6);
	expr_sticky(rule, sticky, true, plan->affinity_s);
	rule_dnat(config, chain, plan->node_port, plan->v6);
	rule = rule_add(config, chain);
	expr_family(rule, plan->v6);
	expr_sticky(rule, sticky, false, 0);
}

/* Look the client up; else draw a number, turn it into an id, and remember that. */
static void fill_sticky(const struct base_config *config, struct base_chain *chain, const struct plan *plan)
{
	enum set_id sticky = port_set(SET_STICKY, plan->node_port, plan->v6);
	enum set_id slot = port_set(SET_SLOT, plan->node_port, plan->v6);
	struct nftnl_rule *rule = rule_add(config, chain);
	char hit[PLAN_NAME_MAX];

	expr_family(rule, plan->v6);
	expr_lookup_fields(rule, sticky);
	expr_meta_set(rule, NFT_META_PRIORITY, 0);
	plan_chain_name(plan_sticky_id(FLAVOUR_HIT, plan->node_port, plan->v6, plan->affinity_s), hit);
	expr_verdict(rule, NFT_JUMP, hit);
	rule = rule_add(config, chain);
	expr_immediate_u32(rule, 0, plan->flavour == FLAVOUR_INSIDE ? INSIDE_COUNT_KEY : COUNT_KEY);
	expr_meta_set(rule, NFT_META_PRIORITY, 0);
	rule = rule_add(config, chain);
	if (!plan->node_port)
		expr_family(rule, plan->v6);
	dispatch(rule, slot, SET_DRAW);
	rule = rule_add(config, chain);
	if (!plan->node_port)
		expr_family(rule, plan->v6);
	expr_lookup_fields(rule, slot);
	expr_meta_set(rule, NFT_META_PRIORITY, 0);
	rule = rule_add(config, chain);
	expr_family(rule, plan->v6);
	expr_sticky(rule, sticky, true, plan->affinity_s);
	rule_goto(config, chain, NFT_GOTO, dnat_names[plan->node_port][plan->v6]);
}

static void rule_draw(const struct base_config *config, struct base_chain *chain, uint32_t n, bool inside)
{
	struct nftnl_rule *rule = rule_add(config, chain);

	expr_numgen(rule, 0, n, inside ? INSIDE_BASE : 0);
	expr_meta_set(rule, NFT_META_PRIORITY, 0);
}

void base_plan_chain(const struct base_config *config, uint32_t id, struct base_chain *ret)
{
	struct plan plan;

	memset(ret, 0, sizeof(*ret));
	if (!plan_parse(id, &plan))
		return;
	plan_chain_name(id, ret->name);
	if (plan.flavour == FLAVOUR_DIVERT) {
		fill_divert(config, ret, &plan);
	} else if (plan.flavour == FLAVOUR_HIT) {
		fill_hit(config, ret, &plan);
	} else if (plan.flavour == FLAVOUR_DRAW) {
		rule_draw(config, ret, plan.n, plan.v6);
	} else {
		rule_masquerade_mark(config, ret, &plan);
		if (plan.affinity_s) {
			fill_sticky(config, ret, &plan);
			return;
		}
		rule_draw(config, ret, plan.n, plan.flavour == FLAVOUR_INSIDE);
		rule_goto(config, ret, NFT_GOTO, dnat_names[plan.node_port][plan.v6]);
	}
}

/* ---- constant chains ---- */

/* The look-up may miss in the instant of a commit: the number was drawn below the old count. Number 0 is there as long
 * as any is; else the sender tries again. */
static void fill_dnat(const struct base_config *config, struct base_chain *chain, bool node_port, bool v6)
{
	struct nftnl_rule *rule;

	rule_dnat(config, chain, node_port, v6);
	rule = rule_add(config, chain);
	expr_immediate_u32(rule, 0, 0);
	expr_meta_set(rule, NFT_META_PRIORITY, 0);
	rule_dnat(config, chain, node_port, v6);
	rule_goto(config, chain, NF_DROP, NULL);
}

static void fill_services(const struct base_config *config, struct base_chain *chain)
{
	for (unsigned v6 = 0; v6 < 2; v6++) {
		struct nftnl_rule *rule = rule_add(config, chain);

		expr_family(rule, v6);
		dispatch(rule, set_of(SET_FRONTEND, v6), SET_PLAN);
	}
	for (unsigned v6 = 0; v6 < 2; v6++) {
		struct nftnl_rule *rule = rule_add(config, chain);

		expr_family(rule, v6);
		expr_member(rule, set_of(SET_NODEIP, v6));
		dispatch(rule, set_of(SET_PORT_FRONTEND, v6), SET_PLAN);
	}
}

static void unserved(const struct base_config *config, struct base_chain *chain, enum set_id base, bool v6)
{
	struct nftnl_rule *rule = rule_add(config, chain);
	bool refuse = base == SET_REFUSE;

	expr_family(rule, v6);
	expr_member(rule, set_of(base, v6));
	expr_verdict(rule, refuse ? NFT_GOTO : NF_DROP, refuse ? "refuse" : NULL);
}

static void unserved_port(const struct base_config *config, struct base_chain *chain, enum set_id base, bool v6)
{
	struct nftnl_rule *rule = rule_add(config, chain);
	bool refuse = base == SET_REFUSE;

	expr_family(rule, v6);
	expr_member(rule, set_of(SET_NODEIP, v6));
	expr_member(rule, port_set(base, true, v6));
	expr_verdict(rule, refuse ? NFT_GOTO : NF_DROP, refuse ? "refuse" : NULL);
}

static void fill_unserved(const struct base_config *config, struct base_chain *chain)
{
	for (unsigned v6 = 0; v6 < 2; v6++) {
		unserved(config, chain, SET_REFUSE, v6);
		unserved(config, chain, SET_DROP, v6);
		unserved_port(config, chain, SET_REFUSE, v6);
		unserved_port(config, chain, SET_DROP, v6);
	}
}

static void fill_refuse(const struct base_config *config, struct base_chain *chain)
{
	static const uint8_t tcp = IPPROTO_TCP;
	struct nftnl_rule *rule = rule_add(config, chain);

	expr_meta_load(rule, NFT_META_L4PROTO, 0);
	expr_cmp(rule, false, 0, &tcp, sizeof(tcp));
	expr_reject(rule, NFT_REJECT_TCP_RST, 0);
	expr_reject(rule_add(config, chain), NFT_REJECT_ICMPX_UNREACH, NFT_REJECT_ICMPX_PORT_UNREACH);
}

static void fill_filter(const struct base_config *config, struct base_chain *chain, bool not_loopback)
{
	struct nftnl_rule *rule = rule_add(config, chain);

	/* What a local client sends through lo comes by again in input; refused here, it would never hear of it. */
	if (not_loopback)
		expr_interface(rule, NFT_META_OIFNAME, "lo", true);
	expr_ct_bits(rule, NFT_CT_STATE, CT_NEW);
	expr_verdict(rule, NFT_JUMP, "unserved");
}

/* Sources that a load balancer's address is not open to; whoever they are, pods and the node too. */
static void fill_guard(const struct base_config *config, struct base_chain *chain)
{
	for (unsigned v6 = 0; v6 < 2; v6++) {
		struct nftnl_rule *rule = rule_add(config, chain);

		expr_ct_bits(rule, NFT_CT_STATE, CT_NEW);
		expr_family(rule, v6);
		expr_member(rule, set_of(SET_GUARDED, v6));
		expr_no_member(rule, set_of(SET_RANGE, v6));
		expr_verdict(rule, NF_DROP, NULL);
	}
}

/* What conntrack calls invalid would leave with the endpoint's own address, and the client would reset the connection.
 */
static void fill_forward(const struct base_config *config, struct base_chain *chain)
{
	for (unsigned v6 = 0; v6 < 2; v6++) {
		struct nftnl_rule *rule = rule_add(config, chain);

		expr_ct_bits(rule, NFT_CT_STATE, CT_INVALID);
		expr_family(rule, v6);
		expr_source_member(rule, set_of(SET_HAIRPIN, v6), v6);
		expr_verdict(rule, NF_DROP, NULL);
	}
	fill_filter(config, chain, false);
}

static void fill_postrouting(const struct base_config *config, struct base_chain *chain)
{
	struct nftnl_rule *rule;
	uint32_t zero = 0;

	rule = rule_add(config, chain);
	expr_ct_bits(rule, NFT_CT_STATUS, CT_STATUS_DNAT);
	expr_immediate_u32(rule, 0, 0);
	expr_meta_set(rule, NFT_META_PRIORITY, 0);
	for (unsigned v6 = 0; v6 < 2; v6++) {
		rule = rule_add(config, chain);
		expr_ct_bits(rule, NFT_CT_STATUS, CT_STATUS_DNAT);
		expr_family(rule, v6);
		expr_member(rule, set_of(SET_HAIRPIN, v6));
		expr_masquerade(rule, NF_NAT_RANGE_PROTO_RANDOM_FULLY);
	}
	rule = rule_add(config, chain);
	expr_meta_load(rule, NFT_META_MARK, 0);
	expr_bitwise(rule, 0, config->masquerade_mark, 0);
	expr_cmp(rule, false, 0, &zero, sizeof(zero));
	expr_verdict(rule, NFT_RETURN, NULL);
	rule = rule_add(config, chain);
	expr_meta_load(rule, NFT_META_MARK, 0);
	expr_bitwise(rule, 0, 0xffffffff, config->masquerade_mark);
	expr_meta_set(rule, NFT_META_MARK, 0);
	expr_masquerade(rule_add(config, chain), NF_NAT_RANGE_PROTO_RANDOM_FULLY);
}

static struct base_chain *chain_add(struct base_chain *chains, size_t *n, const char *name)
{
	struct base_chain *chain = &chains[(*n)++];

	assert(*n <= BASE_CHAINS_MAX);
	strncpy(chain->name, name, sizeof(chain->name) - 1);
	return chain;
}

static struct base_chain *hook_add(
	struct base_chain *chains, size_t *n, const char *name, const char *type, uint32_t hook, int32_t priority)
{
	struct base_chain *chain = chain_add(chains, n, name);

	chain->type = type;
	chain->hook = hook;
	chain->priority = priority;
	return chain;
}

struct base_chain *base_chains(const struct base_config *config, size_t *ret_n)
{
	struct base_chain *chains = xcalloc(BASE_CHAINS_MAX, sizeof(*chains));
	size_t n = 0;

	fill_services(config, chain_add(chains, &n, "services"));
	for (unsigned i = 0; i < 4; i++)
		fill_dnat(config, chain_add(chains, &n, dnat_names[i / 2][i % 2]), i / 2, i % 2);
	fill_refuse(config, chain_add(chains, &n, "refuse"));
	fill_unserved(config, chain_add(chains, &n, "unserved"));
	rule_goto(config, hook_add(chains, &n, "prerouting", "nat", NF_INET_PRE_ROUTING, -100), NFT_JUMP, "services");
	rule_goto(config, hook_add(chains, &n, "output", "nat", NF_INET_LOCAL_OUT, -100), NFT_JUMP, "services");
	fill_guard(config, hook_add(chains, &n, "guard", "filter", NF_INET_PRE_ROUTING, -110));
	fill_guard(config, hook_add(chains, &n, "guard_output", "filter", NF_INET_LOCAL_OUT, -110));
	fill_filter(config, hook_add(chains, &n, "input", "filter", NF_INET_LOCAL_IN, 0), false);
	fill_forward(config, hook_add(chains, &n, "forward", "filter", NF_INET_FORWARD, 0));
	fill_filter(config, hook_add(chains, &n, "output_filter", "filter", NF_INET_LOCAL_OUT, 0), true);
	fill_postrouting(config, hook_add(chains, &n, "postrouting", "nat", NF_INET_POST_ROUTING, 100));
	*ret_n = n;
	return chains;
}

void base_chain_done(struct base_chain *chain)
{
	for (size_t i = 0; i < chain->n_rules; i++)
		nftnl_rule_free(chain->rules[i]);
	chain->n_rules = 0;
}

void base_chains_free(struct base_chain *chains, size_t n)
{
	for (size_t i = 0; i < n; i++)
		base_chain_done(&chains[i]);
	free(chains);
}

struct nftnl_set *base_set(const struct base_config *config, enum set_id id)
{
	const struct set_spec *spec = set_spec(id);
	struct nftnl_set *set = nftnl_set_alloc();
	uint8_t userdata[SET_USERDATA_MAX];

	assert(set);
	nftnl_set_set_u32(set, NFTNL_SET_FAMILY, NFPROTO_INET);
	nftnl_set_set_str(set, NFTNL_SET_TABLE, config->table);
	nftnl_set_set_str(set, NFTNL_SET_NAME, spec->name);
	nftnl_set_set_u32(set, NFTNL_SET_ID, (uint32_t)id + 1);
	nftnl_set_set_u32(set, NFTNL_SET_FLAGS,
		(spec->map ? NFT_SET_MAP : 0) | (spec->dynamic ? NFT_SET_TIMEOUT | NFT_SET_EVAL : 0) |
			(spec->interval ? NFT_SET_INTERVAL | NFT_SET_CONCAT : 0));
	if (spec->interval) {
		uint8_t lens[SET_FIELDS_MAX];
		uint32_t n = 0;

		for (; spec->key[n] != FIELD_END; n++)
			lens[n] = (uint8_t)field_len(spec->key[n]);
		nftnl_set_set_data(set, NFTNL_SET_DESC_CONCAT, lens, n);
	}
	if (spec->dynamic)
		nftnl_set_set_u32(set, NFTNL_SET_DESC_SIZE, STICKY_MAX);
	nftnl_set_set_u32(set, NFTNL_SET_KEY_TYPE, set_key_type(id));
	nftnl_set_set_u32(set, NFTNL_SET_KEY_LEN, (uint32_t)set_key_len(id));
	if (spec->map) {
		nftnl_set_set_u32(set, NFTNL_SET_DATA_TYPE, set_value_type(id));
		nftnl_set_set_u32(set, NFTNL_SET_DATA_LEN, set_is_verdict(id) ? 16 : (uint32_t)set_value_len(id));
	}
	nftnl_set_set_data(set, NFTNL_SET_USERDATA, userdata, (uint32_t)set_userdata(id, userdata));
	return set;
}

struct nftnl_chain *base_nftnl_chain(const struct base_config *config, const struct base_chain *chain)
{
	struct nftnl_chain *c = nftnl_chain_alloc();

	assert(c);
	nftnl_chain_set_u32(c, NFTNL_CHAIN_FAMILY, NFPROTO_INET);
	nftnl_chain_set_str(c, NFTNL_CHAIN_TABLE, config->table);
	nftnl_chain_set_str(c, NFTNL_CHAIN_NAME, chain->name);
	if (chain->type) {
		nftnl_chain_set_str(c, NFTNL_CHAIN_TYPE, chain->type);
		nftnl_chain_set_u32(c, NFTNL_CHAIN_HOOKNUM, chain->hook);
		nftnl_chain_set_s32(c, NFTNL_CHAIN_PRIO, chain->priority);
		nftnl_chain_set_u32(c, NFTNL_CHAIN_POLICY, NF_ACCEPT);
	}
	return c;
}

static int append_expr(struct nftnl_expr *expr, void *data)
{
	char buf[512];

	nftnl_expr_snprintf(buf, sizeof(buf), expr, 0, 0);
	str_addf(data, "[ %s %s ]\n", nftnl_expr_get_str(expr, NFTNL_EXPR_NAME), buf);
	return 0;
}

char *base_rule_text(const struct nftnl_rule *rule)
{
	struct str text = STR_INIT;

	nftnl_expr_foreach((struct nftnl_rule *)rule, append_expr, &text);
	return str_take(&text);
}

/* dump.c - purpose: read back what the kernel holds of our table. */
#include "proxy-lite/kernel/dump.h"

#include "common/sys/file.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libnftnl/common.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <time.h>

enum { DUMP_TRIES = 20, REQUEST_MAX = 512 };

static struct nlmsghdr *request(char *buf, uint16_t type, uint16_t flags, uint8_t family)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct nfgenmsg *nfg;

	nlh->nlmsg_type = (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type);
	nlh->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
	nfg = mnl_nlmsg_put_extra_header(nlh, sizeof(*nfg));
	nfg->nfgen_family = family;
	nfg->version = NFNETLINK_V0;
	nfg->res_id = 0;
	return nlh;
}

static int read_generation(const struct nlmsghdr *nlh, void *data)
{
	struct nlattr *a;

	mnl_attr_for_each(a, nlh,
		sizeof(struct nfgenmsg)) if (mnl_attr_get_type(a) == NFTA_GEN_ID && mnl_attr_get_payload_len(a) == 4) *
		(uint32_t *)data = ntohl(mnl_attr_get_u32(a));
	return MNL_CB_OK;
}

int dump_generation(struct netlink *nl, uint32_t *ret, struct error *err)
{
	char buf[REQUEST_MAX] = { 0 };

	return netlink_request(nl, request(buf, NFT_MSG_GETGEN, 0, AF_UNSPEC), read_generation, ret, err);
}

/* Hashes of the keys of the set that is being read. */
struct seen {
	uint64_t *slots; /* open addressing; 0: free */
	size_t cap, n;
	uint64_t seed; /* another one for each try, lest two keys that clash do so for ever */
};

struct dumping {
	const struct base_config *config;
	struct structure *structure;
	struct table *table;
	struct strays *strays;
	const struct loader_step *step;
	struct seen seen;
	bool repeated; /* an element came twice */
};

static int read_table(const struct nlmsghdr *nlh, void *data)
{
	struct dumping *d = data;
	struct nlattr *a;

	d->structure->exists = true;
	mnl_attr_for_each(a, nlh, sizeof(struct nfgenmsg)) if (mnl_attr_get_type(a) == NFTA_TABLE_FLAGS &&
							       mnl_attr_get_payload_len(a) == 4) d->structure->flags =
		ntohl(mnl_attr_get_u32(a));
	return MNL_CB_OK;
}

static int read_set(const struct nlmsghdr *nlh, void *data)
{
	struct dumping *d = data;
	struct nftnl_set *set = nftnl_set_alloc();

	if (set && nftnl_set_nlmsg_parse(nlh, set) == 0 &&
		str_eq(nftnl_set_get_str(set, NFTNL_SET_TABLE), d->config->table))
		structure_add_set(d->structure, d->config, set);
	nftnl_set_free(set);
	return MNL_CB_OK;
}

static int read_chain(const struct nlmsghdr *nlh, void *data)
{
	struct dumping *d = data;
	struct nftnl_chain *c = nftnl_chain_alloc();

	if (c && nftnl_chain_nlmsg_parse(nlh, c) == 0 &&
		str_eq(nftnl_chain_get_str(c, NFTNL_CHAIN_TABLE), d->config->table)) {
		struct held_chain *chain =
			structure_add_chain(d->structure, xstrdup(nftnl_chain_get_str(c, NFTNL_CHAIN_NAME)));

		if (nftnl_chain_is_set(c, NFTNL_CHAIN_HOOKNUM)) {
			chain->type = xstrdup(nftnl_chain_get_str(c, NFTNL_CHAIN_TYPE));
			chain->hook = nftnl_chain_get_u32(c, NFTNL_CHAIN_HOOKNUM);
			chain->priority = nftnl_chain_get_s32(c, NFTNL_CHAIN_PRIO);
			chain->policy = nftnl_chain_get_u32(c, NFTNL_CHAIN_POLICY);
		}
	}
	nftnl_chain_free(c);
	return MNL_CB_OK;
}

static int read_rule(const struct nlmsghdr *nlh, void *data)
{
	struct dumping *d = data;
	struct nftnl_rule *rule = nftnl_rule_alloc();

	if (rule && nftnl_rule_nlmsg_parse(nlh, rule) == 0 &&
		str_eq(nftnl_rule_get_str(rule, NFTNL_RULE_TABLE), d->config->table)) {
		struct held_chain *chain =
			structure_find_chain(d->structure, nftnl_rule_get_str(rule, NFTNL_RULE_CHAIN));

		if (chain)
			strv_add_take(&chain->rules, base_rule_text(rule));
	}
	nftnl_rule_free(rule);
	return MNL_CB_OK;
}

/* The bytes inside KEY or DATA; NULL when they are no plain value of that length. */
static const uint8_t *plain_value(const struct nlattr *nest, size_t len)
{
	const struct nlattr *a;

	mnl_attr_for_each_nested(a, nest) if (mnl_attr_get_type(a) == NFTA_DATA_VALUE &&
					      mnl_attr_get_payload_len(a) == len) return mnl_attr_get_payload(a);
	return NULL;
}

/* The id, if the verdict is to go to the chain of that plan. */
static uint32_t verdict_plan(const struct nlattr *nest, uint32_t id, int wanted)
{
	const struct nlattr *verdict = NULL, *a;
	const char *chain = NULL;
	uint32_t code = 0;
	char name[PLAN_NAME_MAX];

	mnl_attr_for_each_nested(a, nest) if (mnl_attr_get_type(a) == NFTA_DATA_VERDICT) verdict = a;
	if (!verdict)
		return 0;
	mnl_attr_for_each_nested(a, verdict)
	{
		if (mnl_attr_get_type(a) == NFTA_VERDICT_CODE && mnl_attr_get_payload_len(a) == 4)
			code = ntohl(mnl_attr_get_u32(a));
		if (mnl_attr_get_type(a) == NFTA_VERDICT_CHAIN && mnl_attr_validate(a, MNL_TYPE_NUL_STRING) == 0)
			chain = mnl_attr_get_str(a);
	}
	return (int32_t)code == wanted && str_eq(chain, plan_chain_name(id, name)) ? id : 0;
}

static void seen_put(struct seen *seen, uint64_t hash)
{
	size_t i = hash & (seen->cap - 1);

	while (seen->slots[i])
		i = (i + 1) & (seen->cap - 1);
	seen->slots[i] = hash;
}

static bool seen_before(struct seen *seen, const uint8_t *key, size_t len)
{
	uint64_t hash = seen->seed;

	for (size_t i = 0; i < len; i += 4) {
		uint32_t word;

		memcpy(&word, key + i, sizeof(word)); /* keys are whole words */
		hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
		hash ^= hash >> 29;
	}
	hash |= 1;
	if ((seen->n + 1) * 2 > seen->cap) {
		struct seen old = *seen;

		seen->cap = old.cap ? old.cap * 2 : 256;
		seen->slots = xcalloc(seen->cap, sizeof(*seen->slots));
		for (size_t i = 0; i < old.cap; i++)
			if (old.slots[i])
				seen_put(seen, old.slots[i]);
		free(old.slots);
	}
	for (size_t i = hash & (seen->cap - 1); seen->slots[i]; i = (i + 1) & (seen->cap - 1))
		if (seen->slots[i] == hash)
			return true;
	seen_put(seen, hash);
	seen->n++;
	return false;
}

static void read_element(struct dumping *d, const struct nlattr *element)
{
	const struct nlattr *a, *key_nest = NULL, *data_nest = NULL;
	const uint8_t *key, *value = NULL;
	enum set_id set = d->step->set;
	uint32_t id, plan = 0;

	mnl_attr_for_each_nested(a, element)
	{
		if (mnl_attr_get_type(a) == NFTA_SET_ELEM_KEY)
			key_nest = a;
		if (mnl_attr_get_type(a) == (set_spec(set)->interval ? NFTA_SET_ELEM_KEY_END : NFTA_SET_ELEM_DATA))
			data_nest = a;
	}
	key = key_nest ? plain_value(key_nest, set_key_len(set)) : NULL;
	if (!key)
		return;
	if (!set_spec(set)->interval && seen_before(&d->seen, key, set_key_len(set))) {
		d->repeated = true;
		return;
	}
	if (set_is_verdict(set)) {
		memcpy(&id, key, sizeof(id));
		plan = data_nest ? verdict_plan(data_nest, id, set == SET_DRAW ? NFT_JUMP : NFT_GOTO) : 0;
	} else if (set_value_len(set)) {
		value = data_nest ? plain_value(data_nest, set_value_len(set)) : NULL;
		if (!value)
			return;
	}
	loader_element(d->table, d->strays, d->step, key, value, plan);
}

static int read_elements(const struct nlmsghdr *nlh, void *data)
{
	const struct nlattr *a, *element;

	mnl_attr_for_each(a, nlh, sizeof(struct nfgenmsg))
	{
		if (mnl_attr_get_type(a) != NFTA_SET_ELEM_LIST_ELEMENTS)
			continue;
		mnl_attr_for_each_nested(element, a) if (mnl_attr_get_type(element) == NFTA_LIST_ELEM)
			read_element(data, element);
	}
	return MNL_CB_OK;
}

static int dump_list(
	struct netlink *nl, struct dumping *d, uint16_t type, uint16_t table_attr, mnl_cb_t each, struct error *err)
{
	char buf[REQUEST_MAX] = { 0 };
	struct nlmsghdr *nlh = request(buf, type, NLM_F_DUMP, NFPROTO_INET);

	mnl_attr_put_strz(nlh, table_attr, d->config->table);
	return netlink_request(nl, nlh, each, d, err);
}

static int dump_set_elements(struct netlink *nl, struct dumping *d, struct error *err)
{
	char buf[REQUEST_MAX] = { 0 };
	struct nlmsghdr *nlh = request(buf, NFT_MSG_GETSETELEM, NLM_F_DUMP, NFPROTO_INET);

	mnl_attr_put_strz(nlh, NFTA_SET_ELEM_LIST_TABLE, d->config->table);
	mnl_attr_put_strz(nlh, NFTA_SET_ELEM_LIST_SET, set_spec(d->step->set)->name);
	free(d->seen.slots);
	d->seen = (struct seen){ .seed = d->seen.seed };
	return netlink_request(nl, nlh, read_elements, d, err);
}

static int dump_once(struct netlink *nl, struct dumping *d, struct error *err)
{
	char buf[REQUEST_MAX] = { 0 };
	struct nlmsghdr *nlh = request(buf, NFT_MSG_GETTABLE, NLM_F_ACK, NFPROTO_INET);
	int r;

	mnl_attr_put_strz(nlh, NFTA_TABLE_NAME, d->config->table);
	r = netlink_request(nl, nlh, read_table, d, err);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return error_prefix(err, "list table %s", d->config->table);
	if ((r = dump_list(nl, d, NFT_MSG_GETSET, NFTA_SET_TABLE, read_set, err)) < 0 ||
		(r = dump_list(nl, d, NFT_MSG_GETCHAIN, NFTA_CHAIN_TABLE, read_chain, err)) < 0 ||
		(r = dump_list(nl, d, NFT_MSG_GETRULE, NFTA_RULE_TABLE, read_rule, err)) < 0)
		return r;
	for (d->step = loader_steps(); d->step->set != SET_COUNT; d->step++)
		if (d->structure->has_set[d->step->set] && !d->repeated && (r = dump_set_elements(nl, d, err)) < 0)
			return r;
	loader_finish(d->table, d->strays);
	return 0;
}

/* Empties what a try has filled. */
static void start_again(struct dumping *d, int try)
{
	const struct timespec pause = { .tv_nsec = MIN(try + 1, 10) * 10000000L };

	structure_done(d->structure);
	strays_done(d->strays);
	table_done(d->table);
	table_init(d->table);
	if (d->repeated) /* the kernel needs a moment */
		nanosleep(&pause, NULL);
	d->repeated = false;
}

int dump_table(struct netlink *nl, const struct base_config *config, struct structure *structure, struct table *table,
	struct strays *strays, uint32_t *ret_gen, struct error *err)
{
	struct dumping d = { config, structure, table, strays };
	uint32_t before = 0, after = 0;
	int r = 0;

	for (int i = 0; i < DUMP_TRIES; i++) {
		d.seen.seed = clock_monotonic_ns();
		r = dump_generation(nl, &before, err);
		if (r == 0)
			r = dump_once(nl, &d, err);
		if (r == 0)
			r = dump_generation(nl, &after, err);
		if (r == 0 && before == after && !d.repeated) {
			*ret_gen = after;
			break;
		}
		if (r < 0 && r != -EINTR && r != -ENOENT)
			break;
		start_again(&d, i);
		r = -EAGAIN;
	}
	free(d.seen.slots);
	if (r == -EAGAIN)
		return error_set(err, ERROR_UNAVAILABLE, "list table %s: it changed %d times while it was read",
			config->table, DUMP_TRIES);
	return r;
}

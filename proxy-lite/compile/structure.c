/* structure.c - purpose: what the kernel lists of our table besides elements, and what must be repaired in it. */
#include "proxy-lite/compile/structure.h"

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>

void structure_done(struct structure *s)
{
	for (size_t i = 0; i < s->n_chains; i++) {
		free(s->chains[i].name);
		free(s->chains[i].type);
		strv_done(&s->chains[i].rules);
	}
	free(s->chains);
	strv_done(&s->foreign_sets);
	*s = (struct structure){ 0 };
}

struct held_chain *structure_add_chain(struct structure *s, char *name)
{
	if (s->n_chains == s->cap_chains) {
		s->cap_chains = MAX((size_t)32, s->cap_chains * 2);
		s->chains = xreallocarray(s->chains, s->cap_chains, sizeof(*s->chains));
	}
	s->chains[s->n_chains] = (struct held_chain){ .name = name };
	return &s->chains[s->n_chains++];
}

struct held_chain *structure_find_chain(const struct structure *s, const char *name)
{
	for (size_t i = 0; i < s->n_chains; i++)
		if (strcmp(s->chains[i].name, name) == 0)
			return &s->chains[i];
	return NULL;
}

static bool set_equal(const struct nftnl_set *a, const struct nftnl_set *b)
{
	static const uint16_t numbers[] = { NFTNL_SET_FLAGS, NFTNL_SET_KEY_TYPE, NFTNL_SET_KEY_LEN, NFTNL_SET_DATA_TYPE,
		NFTNL_SET_DATA_LEN };
	uint32_t na = 0, nb = 0;
	const void *ua, *ub;

	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		uint32_t x = nftnl_set_is_set(a, numbers[i]) ? nftnl_set_get_u32(a, numbers[i]) : 0;
		uint32_t y = nftnl_set_is_set(b, numbers[i]) ? nftnl_set_get_u32(b, numbers[i]) : 0;

		if (x != y)
			return false;
	}
	ua = nftnl_set_get_data(a, NFTNL_SET_USERDATA, &na);
	ub = nftnl_set_get_data(b, NFTNL_SET_USERDATA, &nb);
	return ua && ub && na == nb && memcmp(ua, ub, na) == 0;
}

void structure_add_set(struct structure *s, const struct base_config *config, const struct nftnl_set *set)
{
	const char *name = nftnl_set_get_str(set, NFTNL_SET_NAME);
	enum set_id id = set_find(name);
	struct nftnl_set *want;

	if (id == SET_COUNT) {
		strv_add(&s->foreign_sets, name);
		return;
	}
	want = base_set(config, id);
	if (set_equal(set, want))
		s->has_set[id] = true;
	else
		strv_add(&s->foreign_sets, name);
	nftnl_set_free(want);
}

void repair_done(struct repair *r)
{
	strv_done(&r->foreign_chains);
	str_done(&r->reason);
	*r = (struct repair){ 0 };
}

static void because(struct repair *r, const char *what, const char *name)
{
	if (r->reason.len < 300)
		str_addf(&r->reason, "%s%s%s", r->reason.len ? ", " : "", what, name);
}

static bool rules_equal(const struct held_chain *held, const struct base_chain *want)
{
	if (held->rules.n != want->n_rules)
		return false;
	for (size_t i = 0; i < want->n_rules; i++) {
		_cleanup_free_ char *text = base_rule_text(want->rules[i]);

		if (strcmp(text, held->rules.v[i]) != 0)
			return false;
	}
	return true;
}

static void compare_chain(const struct structure *s, const struct base_chain *want, struct repair *ret, size_t position)
{
	const struct held_chain *held = structure_find_chain(s, want->name);

	if (!held) {
		because(ret, "no chain ", want->name);
		ret->refill[position] = true;
	} else if (!str_eq(held->type, want->type) ||
		   (want->type && (held->hook != want->hook || held->priority != want->priority))) {
		because(ret, "another hook of chain ", want->name);
		ret->rebuild = true;
	} else if (want->type && held->policy != NF_ACCEPT) {
		because(ret, "another policy of chain ", want->name);
		ret->refill[position] = true;
	} else if (!rules_equal(held, want)) {
		because(ret, "other rules in chain ", want->name);
		ret->refill[position] = true;
	}
}

static void compare_sets(const struct structure *s, struct repair *ret)
{
	for (int id = 0; id < SET_COUNT; id++)
		if (!s->has_set[id]) {
			because(ret, "no or another set ", set_spec((enum set_id)id)->name);
			ret->rebuild = true;
		}
	for (size_t i = 0; i < s->foreign_sets.n; i++) {
		because(ret, "a foreign set ", s->foreign_sets.v[i]);
		ret->rebuild = true;
	}
}

/* Could a plan want a chain of this name? */
static bool plan_name(const char *name)
{
	static const char *const starts[] = { "cluster", "external", "divert", "inside", "local", "draw", "hit" };

	if (str_starts(name, "port"))
		name += strlen("port");
	for (size_t i = 0; i < ARRAY_LEN(starts); i++)
		if (str_starts(name, starts[i]))
			return true;
	return false;
}

/* Chains that no verdict element leads to are known by their names. */
static void note_hit_chains(const struct structure *s, struct refs *plans)
{
	for (size_t i = 0; i < s->n_chains; i++) {
		const char *name = s->chains[i].name;
		bool port = str_starts(name, "port");
		char again[PLAN_NAME_MAX], family;
		unsigned seconds;

		if (sscanf(name + (port ? strlen("port") : 0), "hit%c_%u", &family, &seconds) != 2)
			continue;
		uint32_t id = plan_sticky_id(FLAVOUR_HIT, port, family == '6', seconds & 0x1ffff);

		if (strcmp(plan_chain_name(id, again), name) == 0) {
			struct ref_key key = ref_plan_key(id);

			refs_set_held(plans, &key, true);
		}
	}
}

/* A plan counts as held only if its chain is right; chains that are no held plan's are foreign. */
static void compare_plans(const struct structure *s, const struct base_config *config, struct refs *plans,
	struct strv *known, struct repair *ret)
{
	for (size_t i = 0; i < plans->cap; i++) {
		struct ref *ref = &plans->slots[i];
		struct base_chain want;
		const struct held_chain *held;

		if (!ref->used || !ref->held || ref->key.kind != REF_PLAN)
			continue;
		base_plan_chain(config, ref_plan_id(&ref->key), &want);
		held = structure_find_chain(s, want.name);
		strv_add(known, want.name);
		ret->rebuild |= held && held->type;
		if (!held || held->type || !rules_equal(held, &want)) {
			because(ret, "other rules in chain ", want.name);
			ref->held = false;
		}
		base_chain_done(&want);
	}
}

void structure_compare(
	const struct structure *s, const struct base_config *config, struct refs *plans, struct repair *ret)
{
	struct strv known = STRV_INIT;
	struct base_chain *chains;
	size_t n;

	if (!s->exists || s->flags) {
		because(ret, s->exists ? "other flags of the table" : "no table", "");
		ret->rebuild = true;
		return;
	}
	chains = base_chains(config, &n);
	compare_sets(s, ret);
	for (size_t i = 0; i < n; i++) {
		compare_chain(s, &chains[i], ret, i);
		strv_add(&known, chains[i].name);
	}
	base_chains_free(chains, n);
	note_hit_chains(s, plans);
	compare_plans(s, config, plans, &known, ret);
	for (size_t i = 0; i < s->n_chains; i++)
		if (!strv_has(&known, s->chains[i].name)) {
			because(ret, "a foreign chain ", s->chains[i].name);
			/* Our rules would not fit under its hook, and it cannot lose the hook. */
			ret->rebuild |= s->chains[i].type && plan_name(s->chains[i].name);
			strv_add(&ret->foreign_chains, s->chains[i].name);
		}
	strv_done(&known);
}

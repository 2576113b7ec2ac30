/*
 * structure.h - purpose: what the kernel lists of our table besides elements, and what must be repaired in it.
 *
 * Pure.
 */
#pragma once
#include "common/base/str.h"
#include "proxy-lite/compile/base.h"
#include "proxy-lite/compile/table.h"

struct held_chain {
	char *name;
	char *type; /* NULL: not a base chain */
	uint32_t hook, policy;
	int32_t priority;
	struct strv rules; /* base_rule_text() of each */
};

struct structure {
	bool exists;
	uint32_t flags;		  /* of the table: dormant, owner */
	bool has_set[SET_COUNT];  /* as base_set() makes it */
	struct strv foreign_sets; /* of another name, or of ours with another shape */
	struct held_chain *chains;
	size_t n_chains, cap_chains;
};

void structure_done(struct structure *s);
/* Returns the new chain, to be filled. Takes the name. */
struct held_chain *structure_add_chain(struct structure *s, char *name);
struct held_chain *structure_find_chain(const struct structure *s, const char *name);
/* Sorts a set of the kernel into has_set or foreign_sets. */
void structure_add_set(struct structure *s, const struct base_config *config, const struct nftnl_set *set);

struct repair {
	bool rebuild;		      /* the table is to be made anew */
	bool exists;		      /* the table does, and must be deleted for that */
	bool refill[BASE_CHAINS_MAX]; /* constant chains, by position in base_chains() */
	struct strv foreign_chains;   /* to be deleted */
	struct str reason;	      /* for the log; "" when nothing is wrong */
};

void repair_done(struct repair *r);
/* What is wrong in the constant part. Also takes back `held` from plans whose chain is not as it should be. */
void structure_compare(
	const struct structure *s, const struct base_config *config, struct refs *plans, struct repair *ret);

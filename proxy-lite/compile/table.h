/*
 * table.h - purpose: what the kernel's table holds, by frontend, and how often endpoints and plans are in use.
 *
 * Pure. References count what elements outside the frontends depend on: a hairpin element for each endpoint of this
 * node, a chain and a plan element for each number of endpoints that occurs.
 */
#pragma once
#include "proxy-lite/compile/frontend.h"

enum ref_kind { REF_PLAN, REF_HAIRPIN, REF_HAIRPIN6 };

struct ref_key {
	uint8_t bytes[16]; /* address, or plan id in the first 4 bytes (host order) */
	uint8_t kind;
};

struct ref {
	struct ref_key key;
	bool used;    /* the slot is taken */
	bool held;    /* its element is in the kernel */
	bool touched; /* is in the list of touched ones */
	int32_t count;
	int32_t delta; /* of the transaction that is being planned */
};

struct refs {
	struct ref *slots; /* open addressing; entries that are unused in every sense are dropped when it grows */
	size_t cap, used;
	struct ref_key *touched; /* keys with a delta or a changed need */
	size_t n_touched, cap_touched;
	uint32_t seed;
};

struct table {
	struct frontend **buckets;
	size_t cap, count;
	size_t n_loaded; /* endpoint numbers that the loader made room for */
	uint32_t seed;
	struct refs plans;    /* few: one for each number of endpoints that occurs */
	struct refs hairpins; /* many: one for each endpoint of this node */
	/* Addresses in the nodeip sets. */
	struct ip *node_ips;
	size_t n_node_ips;
};

void table_init(struct table *t);
void table_done(struct table *t);
struct frontend *table_find(const struct table *t, const struct frontend_key *key);
/* Takes the frontend; its key must not be there yet. Links it to its owner, if it has one. */
void table_insert(struct table *t, struct frontend *frontend);
/* Unlinks it from the hash and from its owner; it is the caller's then. */
void table_remove(struct table *t, struct frontend *frontend);
/* For each frontend in no special order; `each` may not insert or remove. */
void table_each(const struct table *t, void (*each)(void *data, struct frontend *frontend), void *data);

struct ref_key ref_plan_key(uint32_t plan_id);
uint32_t ref_plan_id(const struct ref_key *key);
/* Adds `delta` to the transaction's delta. */
void refs_add(struct refs *refs, const struct ref_key *key, int32_t delta);
/* Tells that the kernel holds the element. */
void refs_set_held(struct refs *refs, const struct ref_key *key, bool held);
struct ref *refs_find(const struct refs *refs, const struct ref_key *key);
/* Counts one frontend's endpoints and plans by sign (+1 or -1) into the deltas. */
void table_count(struct table *table, const struct frontend *frontend, int32_t sign);
/* The transaction was committed (deltas are added; what was needed is held) or dropped. */
void refs_commit(struct refs *refs);
void refs_rollback(struct refs *refs);

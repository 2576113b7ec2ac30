/*
 * batch.h - purpose: one transaction on our table: taken by the kernel whole or not at all.
 *
 * Messages are kept in sections that are sent in this order: objects (table, sets, chains, rules), deletions of
 * elements, additions of elements, removals of chains. Elements go many to a message; each remembers the cause that was
 * set when it was added, so that a refusal names who is at fault: by the kernel's pointer to the attribute where it
 * gives one, else after the batch was built again with `singles`.
 */
#pragma once
#include "proxy-lite/compile/base.h"
#include "proxy-lite/compile/diff.h"
#include "proxy-lite/kernel/netlink.h"

struct batch;

enum { BATCH_NO_CAUSE = UINT32_MAX };

struct batch_fault {
	uint32_t cause; /* BATCH_NO_CAUSE: an object, or the batch as a whole */
	bool exact;	/* false: one of several elements of a message; build again with singles */
};

/* `config` is borrowed. singles: each element in a message of its own. */
struct batch *batch_new(const struct base_config *config, bool singles);
struct batch *batch_free(struct batch *batch); /* returns NULL */
DEFINE_CLEANUP(struct batch *, batch_free)

void batch_table_delete(struct batch *batch); /* it must exist */
/* Table, all sets, all constant chains with their rules. */
void batch_base(struct batch *batch);
/* Makes the chain or fills it anew. */
void batch_chain(struct batch *batch, const struct base_chain *chain);
/* Rules away at once, the chain itself at the end of the batch. */
void batch_chain_delete(struct batch *batch, const char *name);
void batch_cause(struct batch *batch, uint32_t cause);
/* As of struct element_sink; the verdict maps' value is the chain of the plan. */
void batch_element(struct batch *batch, enum set_id set, bool add, const uint8_t *key, const uint8_t *value);
bool batch_is_empty(const struct batch *batch);
/* How much it is, for logs and metrics. */
size_t batch_elements(const struct batch *batch);
size_t batch_bytes(const struct batch *batch);

/* Sends it; blocks until it is committed or refused. gen: refused with -ERESTART when the ruleset's generation is
 * another one; 0: any. When the kernel refused an object or element, *ret_fault tells which and the error why. */
int batch_commit(struct batch *batch, struct netlink *nl, uint32_t gen, struct batch_fault *ret_fault,
	struct error *err) MUST_USE;

/*
 * dump.h - purpose: read back what the kernel holds of our table.
 *
 * Blocking, read-only. All of one dump is of one generation: when somebody commits meanwhile, it starts again. So it
 * does when an element comes twice: the kernel may be resizing a set then (it does that some time after many additions),
 * and what comes twice stands for others that do not come at all.
 */
#pragma once
#include "proxy-lite/compile/loader.h"
#include "proxy-lite/compile/structure.h"
#include "proxy-lite/kernel/netlink.h"

/* The number of the last commit to nftables in this network namespace. */
int dump_generation(struct netlink *nl, uint32_t *ret, struct error *err) MUST_USE;
/* Fills all three, which must be empty (zero, table_init()); elements of sets that are not ours are not read. *ret_gen
 * is the generation that all of it is of. */
int dump_table(struct netlink *nl, const struct base_config *config, struct structure *structure, struct table *table,
	struct strays *strays, uint32_t *ret_gen, struct error *err) MUST_USE;

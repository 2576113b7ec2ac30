/*
 * conntrack.h - purpose: delete recorded UDP and SCTP flows that go where new ones would not.
 *
 * Blocking: one dump for each protocol and family, filtered in the kernel where it can. Deletes single flows by their
 * tuple and id, never anything in bulk.
 */
#pragma once
#include "proxy-lite/compile/flows.h"
#include "proxy-lite/kernel/netlink.h"

/* *ret_deleted: how many were deleted. */
int conntrack_sweep(const struct table *table, const struct frontend_key *gone, size_t n_gone, size_t *ret_deleted,
	struct error *err) MUST_USE;

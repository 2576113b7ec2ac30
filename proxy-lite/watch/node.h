/*
 * node.h - purpose: what of our own Node object matters: zone, pod ranges, and whether it is about to go.
 *
 * Pure.
 */
#pragma once
#include "common/base/error.h"
#include "proxy-lite/model/address.h"

#include <jansson.h>

struct node_state {
	char zone[64];	  /* "" when unknown */
	bool has_pods[2]; /* by family */
	struct cidr pods[2];
	bool going; /* being deleted, or tainted for deletion: load balancers shall look elsewhere */
};

/* NULL: the node is not there. Never fails: what makes no sense counts as not given. */
void node_state_parse(const json_t *object, struct node_state *ret);
bool node_state_equal(const struct node_state *a, const struct node_state *b);

/*
 * flows.h - purpose: which recorded flows go where new ones would not.
 *
 * Pure. UDP and SCTP flows outlive the rules that made them. Judged by state alone: what the table holds now, not by
 * which event may have led there. Flows that were never ours are never stale.
 */
#pragma once
#include "proxy-lite/compile/table.h"

struct flow {
	struct ip destination; /* as the client sent it */
	struct ip source;      /* who answers */
	uint16_t destination_port, source_port;
	uint8_t protocol;
	bool dnat;
};

/* `gone`: frontends that were just removed. */
bool flow_is_stale(const struct table *table, const struct frontend_key *gone, size_t n_gone, const struct flow *flow);

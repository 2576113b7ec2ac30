/* flows.c - purpose: which recorded flows go where new ones would not. */
#include "proxy-lite/compile/flows.h"

static bool serves(const struct frontend *f, const struct flow *flow)
{
	for (uint32_t i = 0; i < f->n + f->n_inside; i++)
		if (f->backends[i].port == flow->source_port &&
			memcmp(f->backends[i].address, flow->source.bytes, sizeof(flow->source.bytes)) == 0)
			return true;
	return false;
}

static bool is_node_ip(const struct table *table, const struct ip *ip)
{
	for (size_t i = 0; i < table->n_node_ips; i++)
		if (ip_equal(&table->node_ips[i], ip))
			return true;
	return false;
}

static bool is_gone(const struct frontend_key *gone, size_t n_gone, const struct frontend_key *key)
{
	for (size_t i = 0; i < n_gone; i++)
		if (frontend_key_equal(&gone[i], key))
			return true;
	return false;
}

bool flow_is_stale(const struct table *table, const struct frontend_key *gone, size_t n_gone, const struct flow *flow)
{
	struct frontend_key address, port;
	const struct frontend *f;
	bool to_node = is_node_ip(table, &flow->destination);

	memset(&address, 0, sizeof(address));
	address.port = flow->destination_port;
	address.protocol = flow->protocol;
	address.v6 = flow->destination.v6;
	port = address;
	memcpy(address.address, flow->destination.bytes, sizeof(address.address));
	port.node_port = true;
	f = table_find(table, &address);
	if (!f && to_node)
		f = table_find(table, &port);
	if (!f)
		return flow->dnat && (is_gone(gone, n_gone, &address) || (to_node && is_gone(gone, n_gone, &port)));
	/* Recorded while there was no endpoint, it would pass by all those that have come since. */
	if (!flow->dnat)
		return f->n + f->n_inside > 0;
	return !serves(f, flow);
}

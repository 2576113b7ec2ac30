/* explain.c - purpose: the answer to "where does this address go, and why". */
#include "proxy-lite/admin/report_lines.h"

#include <netinet/in.h>
#include <stdio.h>

int report_address_parse(const char *text, struct report_address *ret, struct error *err)
{
	char copy[80], *slash, *colon, *end, *host;
	struct report_address at = { .protocol = IPPROTO_TCP };
	long port;

	if (strlen(text) >= sizeof(copy))
		return error_set(err, ERROR_INVALID, "\"%.80s...\" is too long for ADDRESS:PORT", text);
	host = strcpy(copy, text);
	slash = strchr(copy, '/');
	if (slash) {
		*slash++ = '\0';
		if (strcasecmp(slash, "udp") == 0)
			at.protocol = IPPROTO_UDP;
		else if (strcasecmp(slash, "sctp") == 0)
			at.protocol = IPPROTO_SCTP;
		else if (strcasecmp(slash, "tcp") != 0)
			return error_set(err, ERROR_INVALID, "\"%s\": the protocol is not TCP, UDP or SCTP", text);
	}
	colon = strrchr(copy, ':');
	if (!colon)
		return error_set(err, ERROR_INVALID, "\"%s\" is not ADDRESS:PORT or [ADDRESS]:PORT", text);
	*colon++ = '\0';
	port = strtol(colon, &end, 10);
	if (*host == '[' && colon - 2 > host && colon[-2] == ']') {
		colon[-2] = '\0';
		host++;
	}
	if (!*colon || *end || port < 1 || port > 65535 || !ip_parse(host, &at.ip))
		return error_set(err, ERROR_INVALID, "\"%s\" is not ADDRESS:PORT or [ADDRESS]:PORT", text);
	at.port = (uint16_t)port;
	*ret = at;
	return 0;
}

static const struct frontend *find(const struct sync *sync, const struct report_address *at)
{
	struct frontend_key key;
	const struct frontend *f;

	memset(&key, 0, sizeof(key));
	key.port = at->port;
	key.protocol = at->protocol;
	key.v6 = at->ip.v6;
	memcpy(key.address, at->ip.bytes, sizeof(key.address));
	f = table_find(&sync->table, &key);
	if (f)
		return f;
	memset(key.address, 0, sizeof(key.address));
	key.node_port = true;
	for (size_t i = 0; i < sync->table.n_node_ips; i++)
		if (ip_equal(&sync->table.node_ips[i], &at->ip))
			return table_find(&sync->table, &key);
	return NULL;
}

static void client_line(const struct sync *sync, const struct frontend *f, struct str *out)
{
	const struct base_config *c = &sync->config;
	bool pods = c->pods_interface || c->has_pods[f->key.v6];

	str_add(out, "client's address: ");
	if (f->flavour == FLAVOUR_EXTERNAL || (f->flavour == FLAVOUR_CLUSTER && c->masquerade_all))
		str_add(out, "replaced by the node's (masquerade)\n");
	else if (f->flavour == FLAVOUR_DIVERT)
		str_add(out, "kept (externalTrafficPolicy: Local)\n");
	else if (pods)
		str_add(out, "kept for pods, replaced by the node's for all others\n");
	else
		str_add(out, "kept (--cluster-cidr is not given)\n");
}

static bool in_use(const struct frontend *f, const struct endpoint *e, uint16_t port)
{
	for (uint32_t i = 0; i < f->n + f->n_inside; i++)
		if (f->backends[i].port == port && memcmp(f->backends[i].address, e->address, sizeof(e->address)) == 0)
			return true;
	return false;
}

static const char *why_not(const struct frontend *f, const struct service *s, const struct endpoint *e)
{
	bool local_only = f->flavour == FLAVOUR_DIVERT || (f->flavour == FLAVOUR_CLUSTER && s->internal_local);

	if (!(e->flags & (ENDPOINT_READY | ENDPOINT_SERVING)))
		return e->flags & ENDPOINT_TERMINATING ? "not used: it terminates and serves no more"
						       : "not used: it is not ready";
	if (!(e->flags & ENDPOINT_READY))
		return e->flags & ENDPOINT_TERMINATING ? "not used: it terminates, and others are ready"
						       : "not used: it is not ready";
	if (local_only && !(e->flags & ENDPOINT_LOCAL))
		return "not used: it is on another node, and the traffic policy is Local";
	if (e->flags & (ENDPOINT_ZONE_HINT | ENDPOINT_NODE_HINT))
		return "not used: its hints name another zone or node";
	return "not used yet";
}

static void slice_lines(
	const struct frontend *f, const struct service_port *port, const struct slice *slice, struct str *out)
{
	const struct service *s = f->owner->service;

	for (size_t p = 0; p < slice->n_ports; p++) {
		const struct slice_port *sp = &slice->ports[p];

		if (sp->protocol != port->protocol || !str_eq(sp->name, port->name))
			continue;
		for (size_t i = 0; i < slice->n_endpoints; i++) {
			const struct endpoint *e = &slice->endpoints[i];
			struct ip ip = { .v6 = slice->v6 };
			char text[IP_TEXT_MAX];

			memcpy(ip.bytes, e->address, sizeof(ip.bytes));
			str_addf(out, slice->v6 ? "  [%s]:%u %s%s\n" : "  %s:%u %s%s\n", ip_format(&ip, text), sp->port,
				in_use(f, e, sp->port) ? "used" : why_not(f, s, e),
				e->flags & ENDPOINT_LOCAL ? " (on this node)" : "");
		}
	}
}

static void model_lines(const struct frontend *f, struct str *out)
{
	const struct service_entry *entry = f->owner;
	bool any = false;

	for (size_t i = 0; entry->service && i < entry->service->n_ports; i++) {
		const struct service_port *port = &entry->service->ports[i];

		if (port->protocol != f->key.protocol ||
			(f->key.node_port ? port->node_port : port->port) != f->key.port)
			continue;
		str_addf(out, "port %s%s%u/%s of Service %s\n", port->name ? port->name : "", port->name ? " " : "",
			port->port, protocol_name(port->protocol), entry->key);
		for (uint32_t s = 0; s < entry->n_slices; s++) {
			if (entry->slices[s]->v6 != f->key.v6)
				continue;
			any = true;
			str_addf(out, "EndpointSlice %s:\n", entry->slices[s]->key);
			slice_lines(f, port, entry->slices[s], out);
		}
	}
	if (!any)
		str_add(out, "no EndpointSlice of this family belongs to the Service\n");
}

static void note_plan(void *data, uint32_t id)
{
	char name[PLAN_NAME_MAX];

	str_addf(data, " %s", plan_chain_name(id, name));
}

void report_explain(const struct sync *sync, bool has_model, const struct report_address *at, struct str *out)
{
	const struct frontend *f = find(sync, at);
	char text[FRONTEND_TEXT_MAX];

	if (!f) {
		char ip[IP_TEXT_MAX];

		str_addf(out, "%s port %u/%s is not the address of any Service served here\n", ip_format(&at->ip, ip),
			at->port, protocol_name(at->protocol));
		return;
	}
	str_addf(out, "%s: %s", frontend_key_format(&f->key, text), f->owner ? f->owner->key : "held by the kernel");
	if (f->owner && f->owner->dirty)
		str_add(out, " (a change waits)");
	str_add(out, "\ngoes at random to:");
	report_endpoints(f, out);
	if (f->affinity_s)
		str_addf(out, "\nsession affinity: a client stays with its endpoint for %u s after its last connection",
			f->affinity_s);
	str_add(out, "\nchains:");
	frontend_plans(f, note_plan, out);
	str_add_char(out, '\n');
	client_line(sync, f, out);
	if (has_model && f->owner)
		model_lines(f, out);
}

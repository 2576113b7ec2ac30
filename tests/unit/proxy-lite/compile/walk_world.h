/* walk_world.h - purpose: the random world of change_test.c: Services and slices as plain structs, and as JSON. */
#pragma once
#include "common/base/str.h"

#include <check.h>
#include <jansson.h>
#include <stdio.h>

enum { SERVICES = 8, SLICES = 12, PORTS = 2, ENDPOINTS = 5, ADDRESSES = 6 };

/* Some contain others. */
static const char *const range_texts[] = { "10.0.0.0/8", "10.1.0.0/16", "192.0.2.0/24", "fd00::/16" };
enum { RANGES = ARRAY_LEN(range_texts) };

struct world_service {
	bool exists, v6, dual, node_port, internal_local, external_local, external_ip, sticky, balancer;
	unsigned ranges; /* bits: which source ranges; 0: not guarded */
	int ip, created, ports;
	struct {
		int port, node_port;
		bool udp;
	} port[PORTS];
};

struct world_endpoint {
	int address;
	bool ready, serving, terminating, local, placed;
};

struct world_slice {
	bool exists, v6;
	int service, n, ports;
	struct world_endpoint endpoints[ENDPOINTS];
};

static struct {
	struct world_service services[SERVICES];
	struct world_slice slices[SLICES];
} world;

static unsigned pick_number(unsigned n)
{
	return (unsigned)random() % n;
}

static bool chance(unsigned percent)
{
	return pick_number(100) < percent;
}

static void random_service(struct world_service *s)
{
	*s = (struct world_service){ .exists = chance(80),
		.v6 = chance(30),
		.dual = chance(30),
		.node_port = chance(50),
		.internal_local = chance(20),
		.external_local = chance(40),
		.external_ip = chance(20),
		.sticky = chance(35) };
	s->balancer = s->node_port && chance(40);
	s->ranges = s->balancer ? pick_number(1 << RANGES) : 0;
	s->ip = (int)pick_number(6);
	s->created = (int)pick_number(3);
	s->ports = 1 + (int)pick_number(PORTS);
	for (int i = 0; i < s->ports; i++) {
		s->port[i].port = 80 + i;
		s->port[i].node_port = 30000 + (int)pick_number(4) * 2 + i;
		s->port[i].udp = chance(40);
	}
}

static void random_slice(struct world_slice *s)
{
	*s = (struct world_slice){ .exists = chance(85), .v6 = chance(35) };
	s->service = (int)pick_number(SERVICES);
	s->n = (int)pick_number(ENDPOINTS + 1);
	s->ports = 1 + (int)pick_number(PORTS);
	for (int i = 0; i < s->n; i++) {
		struct world_endpoint *e = &s->endpoints[i];

		e->address = (int)pick_number(ADDRESSES);
		e->ready = chance(70);
		e->serving = e->ready || chance(50);
		e->terminating = !e->ready && chance(60);
		e->placed = chance(80);
		e->local = e->placed && chance(50);
	}
}

static json_t *service_json(int i)
{
	const struct world_service *s = &world.services[i];
	_cleanup_(str_done) struct str t = STR_INIT;
	json_error_t error;
	json_t *json;

	str_addf(&t,
		"{\"metadata\":{\"namespace\":\"n\",\"name\":\"s%d\",\"creationTimestamp\":\"2026-01-0%dT00:00:00Z\"},"
		"\"spec\":{",
		i, 1 + s->created);
	str_addf(&t, "\"type\":\"%s\",\"clusterIPs\":[",
		s->balancer    ? "LoadBalancer"
		: s->node_port ? "NodePort"
			       : "ClusterIP");
	if (!s->v6 || s->dual)
		str_addf(&t, "\"10.0.0.%d\"%s", s->ip + 1, s->dual ? "," : "");
	if (s->v6 || s->dual)
		str_addf(&t, "\"fd00::%d\"", s->ip + 1);
	str_addf(&t, "],\"internalTrafficPolicy\":\"%s\",\"externalTrafficPolicy\":\"%s\"",
		s->internal_local ? "Local" : "Cluster", s->external_local ? "Local" : "Cluster");
	if (s->sticky)
		str_addf(&t,
			",\"sessionAffinity\":\"ClientIP\",\"sessionAffinityConfig\":{\"clientIP\":{\"timeoutSeconds\":"
			"%d}}",
			100 + s->created);
	if (s->external_ip)
		str_addf(&t, ",\"externalIPs\":[\"192.0.2.%d\"]", s->ip + 1);
	str_add(&t, ",\"ports\":[");
	for (int p = 0; p < s->ports; p++)
		str_addf(&t, "%s{\"name\":\"p%d\",\"protocol\":\"%s\",\"port\":%d,\"nodePort\":%d}", p ? "," : "", p,
			s->port[p].udp ? "UDP" : "TCP", s->port[p].port, s->port[p].node_port);
	str_add(&t, "]");
	for (unsigned r = 0, first = 1; r < RANGES; r++)
		if (s->ranges >> r & 1) {
			str_addf(&t, "%s\"%s\"", first ? ",\"loadBalancerSourceRanges\":[" : ",", range_texts[r]);
			first = 0;
		}
	str_addf(&t, "%s},\"status\":{\"loadBalancer\":{\"ingress\":[{\"ip\":\"198.51.100.%d\"}]}}}",
		s->ranges ? "]" : "", s->ip + 1);
	json = json_loads(t.buf, 0, &error);
	ck_assert_msg(json != NULL, "%s: %s", error.text, t.buf);
	return json;
}

static json_t *slice_json(int i)
{
	const struct world_slice *s = &world.slices[i];
	_cleanup_(str_done) struct str t = STR_INIT;
	json_error_t error;
	json_t *json;

	str_addf(&t,
		"{\"metadata\":{\"namespace\":\"n\",\"name\":\"e%d\",\"labels\":{\"kubernetes.io/"
		"service-name\":\"s%d\"}},"
		"\"addressType\":\"%s\",\"ports\":[",
		i, s->service, s->v6 ? "IPv6" : "IPv4");
	for (int p = 0; p < s->ports; p++)
		str_addf(&t,
			"%s{\"name\":\"p%d\",\"protocol\":\"TCP\",\"port\":%d},{\"name\":\"p%d\",\"protocol\":\"UDP\","
			"\"port\":%d}",
			p ? "," : "", p, 8000 + p, p, 8000 + p);
	str_add(&t, "],\"endpoints\":[");
	for (int e = 0; e < s->n; e++) {
		const struct world_endpoint *w = &s->endpoints[e];

		str_addf(&t,
			"%s{\"addresses\":[\"%s%d\"],\"conditions\":{\"ready\":%s,\"serving\":%s,\"terminating\":%s}",
			e ? "," : "", s->v6 ? "fd01::" : "10.1.0.", w->address + 1, w->ready ? "true" : "false",
			w->serving ? "true" : "false", w->terminating ? "true" : "false");
		if (w->placed)
			str_addf(&t, ",\"nodeName\":\"%s\"", w->local ? "we" : "they");
		str_add(&t, "}");
	}
	str_add(&t, "]}");
	json = json_loads(t.buf, 0, &error);
	ck_assert_msg(json != NULL, "%s: %s", error.text, t.buf);
	return json;
}

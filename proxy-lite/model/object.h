/*
 * object.h - purpose: what of a Service and of an EndpointSlice a packet can notice, read from JSON into compact
 * structs.
 *
 * Pure. The JSON can be dropped right after parsing. What is malformed in a part (one port, one address) is left out
 * and named in `left_out`; what makes the whole object useless is the error.
 */
#pragma once
#include "common/base/error.h"
#include "common/base/str.h"
#include "proxy-lite/model/address.h"

#include <jansson.h>

/* Who we are; part of what parsing looks at. Strings are borrowed, NULL when unknown. */
struct node_identity {
	const char *name;	/* metadata.name of our Node */
	const char *zone;	/* topology.kubernetes.io/zone */
	const char *proxy_name; /* which service.kubernetes.io/service-proxy-name is ours */
};

struct service_port {
	char *name;    /* NULL: unnamed */
	uint16_t port; /* never 0 */
	uint16_t node_port;
	uint8_t protocol; /* IPPROTO_TCP, IPPROTO_UDP, IPPROTO_SCTP */
};

/* What only Services reachable from outside have. */
struct service_outside {
	struct ip *external_ips; /* externalIPs and load-balancer IPs that we handle */
	size_t n_external_ips;
	size_t n_balancer_ips; /* the last so many of external_ips come from status.loadBalancer */
	struct cidr *source_ranges;
	size_t n_source_ranges;
	bool guarded; /* loadBalancerSourceRanges was given, even if none of it is usable */
	uint16_t health_port;
};

struct service {
	char *key;		  /* "namespace/name" */
	uint64_t created;	  /* YYYYMMDDhhmmss as a number: the older Service wins a contested address */
	struct ip cluster_ips[2]; /* at most one of each family */
	uint8_t n_cluster_ips;
	bool internal_local;
	bool external_local;
	uint32_t affinity_s; /* 0: none */
	size_t n_ports;
	struct service_port *ports;
	struct service_outside *outside; /* NULL for most */
};

enum endpoint_flag {
	ENDPOINT_READY = 1,
	ENDPOINT_SERVING = 2,
	ENDPOINT_TERMINATING = 4,
	ENDPOINT_LOCAL = 8,	  /* on our node */
	ENDPOINT_PLACED = 16,	  /* has a nodeName */
	ENDPOINT_ZONE_HINT = 32,  /* has hints.forZones */
	ENDPOINT_OUR_ZONE = 64,	  /* ... with our zone */
	ENDPOINT_NODE_HINT = 128, /* has hints.forNodes */
	ENDPOINT_OUR_NODE = 256,  /* ... with our node */
};

struct endpoint {
	uint8_t address[16];
	uint16_t flags;
};

struct slice_port {
	char *name; /* NULL: unnamed */
	uint16_t port;
	uint8_t protocol;
};

struct slice {
	char *key;	   /* "namespace/name" */
	char *service_key; /* the Service it belongs to */
	bool seen;	   /* in the running list (services.c) */
	bool v6;
	size_t n_ports;
	struct slice_port *ports;
	size_t n_endpoints;
	struct endpoint *endpoints;
	uint64_t trigger_ms; /* last-change-trigger-time, ms since the epoch; 0: not given */
};

enum { SLICE_ENDPOINTS_MAX = 10000, OBJECT_PORTS_MAX = 20000 };

/* "namespace/name" of any object, owned by the caller; NULL and an error when metadata is not what the API gives. */
char *object_key(const json_t *object, struct error *err) MUST_USE;

/* *ret is NULL when the object is none of our business (headless, ExternalName, another proxy's, FQDN). */
int service_parse(const json_t *object, const struct node_identity *node, struct service **ret, struct str *left_out,
	struct error *err) MUST_USE;
struct service *service_free(struct service *service); /* returns NULL */
bool service_equal(const struct service *a, const struct service *b);

int slice_parse(const json_t *object, const struct node_identity *node, struct slice **ret, struct str *left_out,
	struct error *err) MUST_USE;
struct slice *slice_free(struct slice *slice); /* returns NULL */
bool slice_equal(const struct slice *a, const struct slice *b);

DEFINE_CLEANUP(struct service *, service_free)
DEFINE_CLEANUP(struct slice *, slice_free)

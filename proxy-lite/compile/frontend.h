/*
 * frontend.h - purpose: one address and port that we serve, and the endpoints behind it in the order of their numbers.
 *
 * Pure values. A frontend is one allocation; the same struct says what is wanted and what the kernel holds.
 */
#pragma once
#include "proxy-lite/compile/sets.h"
#include "proxy-lite/model/address.h"

struct service_entry;

/* All bytes count: make it zero first. */
struct frontend_key {
	uint8_t address[16]; /* zero for a node port */
	uint16_t port;	     /* host order */
	uint8_t protocol;
	bool v6;
	bool node_port;
	uint8_t zero;
};

struct backend {
	uint8_t address[16];
	uint16_t port; /* host order; 0: a hole (only read from the kernel, never wanted) */
	uint32_t id;   /* with affinity: what clients are pinned to, unique in the frontend; 0: none */
	bool local;    /* on this node, so that it may be its own client */
};

/* How the chain treats the client's address; part of the plan id. */
enum flavour {
	FLAVOUR_NONE,
	FLAVOUR_CLUSTER,  /* masquerade what comes from outside the pods, if we know the pods */
	FLAVOUR_EXTERNAL, /* masquerade always */
	FLAVOUR_DIVERT,	  /* externalTrafficPolicy Local: look again in `inside` or `local` */
	FLAVOUR_INSIDE,	  /* ... for pods and the node itself: all endpoints */
	FLAVOUR_LOCAL,	  /* ... for all others: endpoints of this node, client's address kept */
	FLAVOUR_DRAW,	  /* affinity: draws among so many */
	FLAVOUR_HIT,	  /* affinity: the client was here before */
};

enum unserved {
	UNSERVED_REFUSE,
	UNSERVED_DROP,
	UNSERVED_ABSENT, /* only read from the kernel: neither element is there */
};

struct frontend {
	struct frontend_key key;
	uint8_t flavour;		    /* CLUSTER, EXTERNAL or DIVERT */
	uint8_t unserved;		    /* what happens when n is 0 */
	bool counted;			    /* its endpoints are in the reference counts of the table */
	bool local_missing, inside_missing; /* read from the kernel: there are endpoints, but nothing leads to them */
	bool guarded;			    /* only clients in `ranges` may come */
	uint32_t n_ranges;
	struct cidr *ranges; /* owned; of the frontend's family, sorted, none inside another */
	uint32_t affinity_s; /* time-out of session affinity; 0: none */
	uint32_t n;	     /* endpoints, numbered from 0 */
	uint32_t n_inside;   /* for DIVERT: endpoints for clients inside, numbered from INSIDE_BASE */
	struct service_entry *owner;
	struct frontend *next;	     /* of the same hash */
	struct frontend *next_owned; /* of the same owner */
	struct backend backends[];   /* n, then n_inside */
};

/* Numbers are below 65536, those of clients inside begin at INSIDE_BASE; ids are higher than both. */
enum {
	FRONTEND_ENDPOINTS_MAX = 65535,
	INSIDE_BASE = 65536,
	COUNT_KEY = 2 * 65536,
	INSIDE_COUNT_KEY,
	FIRST_ID = 1 << 30
};

/* Room for n + n_inside endpoints, all zero. */
struct frontend *frontend_new(const struct frontend_key *key, uint32_t n, uint32_t n_inside);
struct frontend *frontend_free(struct frontend *frontend); /* returns NULL */
DEFINE_CLEANUP(struct frontend *, frontend_free)

uint32_t frontend_key_hash(const struct frontend_key *key, uint32_t seed);
bool frontend_key_equal(const struct frontend_key *a, const struct frontend_key *b);
/* "10.96.0.1:80/TCP", "[fd00::1]:53/UDP", "node port 30080/TCP IPv4". buf has FRONTEND_TEXT_MAX bytes. */
enum { FRONTEND_TEXT_MAX = 80 };
const char *frontend_key_format(const struct frontend_key *key, char *buf);
const char *protocol_name(uint8_t protocol);

/* Puts the endpoints of `wanted` (and, with affinity, gives them ids) in the order that changes least against `held`
 * (may be NULL): who stays keeps its number, newcomers fill the holes, then the last ones move down. Sets of each group
 * stay the same. */
void frontend_renumber(struct frontend *wanted, const struct frontend *held);
/* Copies those of the frontend's family, without those that others contain. */
void frontend_guard(struct frontend *frontend, const struct cidr *ranges, size_t n);
/* Would nothing need to be written, and no count change? */
bool frontend_same(const struct frontend *a, const struct frontend *b);

/* A chain that is made when it is first needed, as the kernel sees it: an id in the frontend maps, a key of the verdict
 * maps. Either for a flavour and a number of endpoints, or for a flavour and a time-out of session affinity. */
struct plan {
	enum flavour flavour;
	bool node_port, v6;
	uint32_t n;	     /* without affinity, and to draw */
	uint32_t affinity_s; /* with affinity; 0: without */
};
uint32_t plan_id(enum flavour flavour, bool node_port, bool v6, uint32_t n);
uint32_t plan_sticky_id(enum flavour flavour, bool node_port, bool v6, uint32_t affinity_s);
bool plan_parse(uint32_t id, struct plan *ret);
/* "cluster4_3", "cluster4_sticky_10800", "draw_3"; buf has PLAN_NAME_MAX bytes. */
enum { PLAN_NAME_MAX = 40 };
const char *plan_chain_name(uint32_t id, char *buf);
/* The plan to draw among n; those inside have their own numbers. */
uint32_t plan_draw_id(bool inside, uint32_t n);
/* The plan that the clients inside, or all others, are sent to. */
uint32_t frontend_group_plan(const struct frontend *frontend, bool inside);
/* Which map the element that points to the chain is in; SET_COUNT: none, rules jump to it. */
enum set_id plan_set(uint32_t id);
/* Calls `use` for each plan that a frontend needs, those that others jump to first. */
void frontend_plans(const struct frontend *frontend, void (*use)(void *data, uint32_t plan_id), void *data);

/*
 * sets.h - purpose: the named sets and maps of our table, as data: fields, types, and the typeof text for nft.
 *
 * Pure. Keys and values are byte strings as the kernel takes them: each field padded to 4 bytes, addresses and ports in
 * network order, numbers and plan ids in host order. The rules that use them are in base.c.
 *
 *	plan          plan id : verdict       one element for each chain that draws an endpoint
 *	frontend      daddr.proto.port : plan id         what to do with a flow to this address
 *	endpoint      number.daddr.proto.port : address.port   endpoints of it, numbered without holes; nft calls
 *	              the number a priority, because it travels in that field, and prints 3 as 0:3
 *	refuse, drop  daddr.proto.port        has no endpoint: answer so, or (local traffic policies) keep silent
 *	port*         the same for node ports: no address in the key; valid for the addresses in nodeip
 *	inside, local daddr.proto.port : plan id   second look-up of frontends whose clients get different endpoints
 *	hairpin       saddr.daddr             endpoints of this node that may reach themselves
 *	sticky        saddr.daddr.proto.port : endpoint id   session affinity: who was sent where; the kernel fills it.
 *	              For IPv6 two hashes stand for the addresses.
 *	slot          number.daddr.proto.port : endpoint id  for those with affinity; their endpoint map has ids, not
 *	              numbers, so that a client stays where it was when numbers move. Two numbers beyond all others
 *	              say how many there are.
 *	guarded       daddr.proto.port        load-balancer addresses that only some sources may reach
 *	range         daddr.proto.port.saddr  ... these
 *	draw          draw id : verdict       the chain that draws among so many
 */
#pragma once
#include "common/base/base.h"

/* IPv4 and IPv6 twins stand side by side: `set_of(SET_FRONTEND, v6)`. Port sets likewise keep their distance. */
enum set_id {
	SET_PLAN,
	SET_LOCAL_PLAN,
	SET_DRAW,
	SET_FRONTEND,
	SET_FRONTEND6,
	SET_ENDPOINT,
	SET_ENDPOINT6,
	SET_REFUSE,
	SET_REFUSE6,
	SET_DROP,
	SET_DROP6,
	SET_INSIDE,
	SET_INSIDE6,
	SET_LOCAL,
	SET_LOCAL6,
	SET_SLOT,
	SET_SLOT6,
	SET_STICKY,
	SET_STICKY6,
	SET_PORT_FRONTEND,
	SET_PORT_FRONTEND6,
	SET_PORT_ENDPOINT,
	SET_PORT_ENDPOINT6,
	SET_PORT_REFUSE,
	SET_PORT_REFUSE6,
	SET_PORT_DROP,
	SET_PORT_DROP6,
	SET_PORT_INSIDE,
	SET_PORT_INSIDE6,
	SET_PORT_LOCAL,
	SET_PORT_LOCAL6,
	SET_PORT_SLOT,
	SET_PORT_SLOT6,
	SET_PORT_STICKY,
	SET_PORT_STICKY6,
	SET_HAIRPIN,
	SET_HAIRPIN6,
	SET_NODEIP,
	SET_NODEIP6,
	SET_GUARDED,
	SET_GUARDED6,
	SET_RANGE,
	SET_RANGE6,
	SET_COUNT,
	SET_PORT_DISTANCE = SET_PORT_FRONTEND - SET_FRONTEND,
};

enum field {
	FIELD_SADDR4,
	FIELD_DADDR4,
	FIELD_SADDR6,
	FIELD_DADDR6,
	FIELD_PROTOCOL,
	FIELD_PORT,
	FIELD_PRIORITY,
	/* Two hashes of source and destination, or of the source alone: nft 1.0.6 cannot load a rule that puts more
	 * than 16 bytes of key into a map. Should two clients ever share both, they share an endpoint, nothing worse.
	 */
	FIELD_HASH,
	FIELD_HASH_AGAIN,
	FIELD_SOURCE_HASH,
	FIELD_SOURCE_HASH_AGAIN,
	FIELD_END,
};

enum { STICKY_MAX = 262144, SET_FIELDS_MAX = 5, SET_KEY_MAX = 40, SET_VALUE_MAX = 40, SET_USERDATA_MAX = 256 };

struct set_spec {
	const char *name;
	enum field key[SET_FIELDS_MAX];
	enum field value[SET_FIELDS_MAX]; /* of a map; FIELD_END first: a verdict map if `map` */
	bool map;
	bool dynamic;  /* filled by packets, with time-outs */
	bool interval; /* keys are ranges: each element has a first and a last key; the last is given as its value */
};

const struct set_spec *set_spec(enum set_id id);
/* SET_COUNT when there is none of that name. */
enum set_id set_find(const char *name);
static inline enum set_id set_of(enum set_id base, bool v6)
{
	return (enum set_id)(base + v6);
}
static inline bool set_is_verdict(enum set_id id)
{
	return id <= SET_DRAW;
}
size_t set_key_len(enum set_id id);
size_t set_value_len(enum set_id id); /* 0: neither a map with values nor ranges */
/* nft's numbers for the types. */
uint32_t set_key_type(enum set_id id);
uint32_t set_value_type(enum set_id id);
/* What nft 1.0.6 writes as userdata for `typeof`; returns the length. */
size_t set_userdata(enum set_id id, uint8_t buf[SET_USERDATA_MAX]);
/* Properties of a field: bytes without padding; where the packet has it. */
size_t field_len(enum field field);

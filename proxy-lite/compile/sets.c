/* sets.c - purpose: the named sets and maps of our table, as data: fields, types, and the typeof text for nft. */
#include "proxy-lite/compile/sets.h"

#include <linux/netfilter/nf_tables.h>

#define ADDRESS(a) FIELD_DADDR##a, FIELD_PROTOCOL, FIELD_PORT, FIELD_END
#define NODE_PORT FIELD_PROTOCOL, FIELD_PORT, FIELD_END
#define TARGET(a)                                                                                                      \
	{                                                                                                              \
		FIELD_DADDR##a, FIELD_PORT, FIELD_END                                                                  \
	}
#define KEY(...)                                                                                                       \
	{                                                                                                              \
		__VA_ARGS__                                                                                            \
	}
#define PLAN_ID                                                                                                        \
	{                                                                                                              \
		FIELD_PRIORITY, FIELD_END                                                                              \
	}
#define NONE                                                                                                           \
	{                                                                                                              \
		FIELD_END                                                                                              \
	}
#define TWINS(id, text, k4, k6, v4, v6, is_map)                                                                        \
	[SET_##id] = { text "4", k4, v4, is_map }, [SET_##id##6] = { text "6", k6, v6, is_map }
#define STICKY_TWINS(id, text, k4, k6)                                                                                 \
	[SET_##id] = { text "4", k4, PLAN_ID, true, true }, [SET_##id##6] = { text "6", k6, PLAN_ID, true, true }

static const struct set_spec specs[SET_COUNT] = {
	[SET_PLAN] = { "plan", PLAN_ID, NONE, true },
	[SET_LOCAL_PLAN] = { "localplan", PLAN_ID, NONE, true },
	[SET_DRAW] = { "draw", PLAN_ID, NONE, true },
	TWINS(FRONTEND, "frontend", KEY(ADDRESS(4)), KEY(ADDRESS(6)), PLAN_ID, PLAN_ID, true),
	TWINS(ENDPOINT, "endpoint", KEY(FIELD_PRIORITY, ADDRESS(4)), KEY(FIELD_PRIORITY, ADDRESS(6)), TARGET(4),
		TARGET(6), true),
	TWINS(REFUSE, "refuse", KEY(ADDRESS(4)), KEY(ADDRESS(6)), NONE, NONE, false),
	TWINS(DROP, "drop", KEY(ADDRESS(4)), KEY(ADDRESS(6)), NONE, NONE, false),
	TWINS(INSIDE, "inside", KEY(ADDRESS(4)), KEY(ADDRESS(6)), PLAN_ID, PLAN_ID, true),
	TWINS(LOCAL, "local", KEY(ADDRESS(4)), KEY(ADDRESS(6)), PLAN_ID, PLAN_ID, true),
	TWINS(SLOT, "slot", KEY(FIELD_PRIORITY, ADDRESS(4)), KEY(FIELD_PRIORITY, ADDRESS(6)), PLAN_ID, PLAN_ID, true),
	STICKY_TWINS(STICKY, "sticky", KEY(FIELD_SADDR4, ADDRESS(4)), KEY(FIELD_HASH, FIELD_HASH_AGAIN, NODE_PORT)),
	TWINS(PORT_FRONTEND, "nodeport", KEY(NODE_PORT), KEY(NODE_PORT), PLAN_ID, PLAN_ID, true),
	TWINS(PORT_ENDPOINT, "portendpoint", KEY(FIELD_PRIORITY, NODE_PORT), KEY(FIELD_PRIORITY, NODE_PORT), TARGET(4),
		TARGET(6), true),
	TWINS(PORT_REFUSE, "portrefuse", KEY(NODE_PORT), KEY(NODE_PORT), NONE, NONE, false),
	TWINS(PORT_DROP, "portdrop", KEY(NODE_PORT), KEY(NODE_PORT), NONE, NONE, false),
	TWINS(PORT_INSIDE, "portinside", KEY(NODE_PORT), KEY(NODE_PORT), PLAN_ID, PLAN_ID, true),
	TWINS(PORT_LOCAL, "portlocal", KEY(NODE_PORT), KEY(NODE_PORT), PLAN_ID, PLAN_ID, true),
	TWINS(PORT_SLOT, "portslot", KEY(FIELD_PRIORITY, NODE_PORT), KEY(FIELD_PRIORITY, NODE_PORT), PLAN_ID, PLAN_ID,
		true),
	STICKY_TWINS(PORT_STICKY, "portsticky", KEY(FIELD_SADDR4, NODE_PORT),
		KEY(FIELD_SOURCE_HASH, FIELD_SOURCE_HASH_AGAIN, NODE_PORT)),
	TWINS(HAIRPIN, "hairpin", KEY(FIELD_SADDR4, FIELD_DADDR4, FIELD_END),
		KEY(FIELD_SADDR6, FIELD_DADDR6, FIELD_END), NONE, NONE, false),
	TWINS(GUARDED, "guarded", KEY(ADDRESS(4)), KEY(ADDRESS(6)), NONE, NONE, false),
	[SET_RANGE] = { "range4", KEY(FIELD_DADDR4, FIELD_PROTOCOL, FIELD_PORT, FIELD_SADDR4, FIELD_END), NONE,
		.interval = true },
	[SET_RANGE6] = { "range6", KEY(FIELD_DADDR6, FIELD_PROTOCOL, FIELD_PORT, FIELD_SADDR6, FIELD_END), NONE,
		.interval = true },
	TWINS(NODEIP, "nodeip", KEY(FIELD_DADDR4, FIELD_END), KEY(FIELD_DADDR6, FIELD_END), NONE, NONE, false),
};

/* Numbers of nft's own making (its enum datatypes, its expression ids, its protocol descriptions), as 1.0.6 writes
 * them and later ones read them. */
enum {
	TYPE_INTEGER = 4,
	TYPE_IPADDR = 7,
	TYPE_IP6ADDR = 8,
	TYPE_INET_PROTOCOL = 12,
	TYPE_INET_SERVICE = 13,
	TYPE_CLASSID = 23
};
enum { EXPR_VERDICT = 1, EXPR_PAYLOAD = 7, EXPR_META = 9, EXPR_CONCAT = 13, EXPR_NUMGEN = 23 };
enum { PROTO_TH = 11, PROTO_IP = 12, PROTO_IP6 = 13 };
enum { ORDER_INVALID, ORDER_HOST, ORDER_BIG };
enum { UDATA_KEY_ORDER, UDATA_DATA_ORDER, UDATA_KEY_TYPEOF = 3, UDATA_DATA_TYPEOF, UDATA_DATA_INTERVAL = 6 };

static const struct {
	uint8_t len, type, order, expr, argument[2];
} fields[] = {
	[FIELD_SADDR4] = { 4, TYPE_IPADDR, ORDER_BIG, EXPR_PAYLOAD, { PROTO_IP, 11 } },
	[FIELD_DADDR4] = { 4, TYPE_IPADDR, ORDER_BIG, EXPR_PAYLOAD, { PROTO_IP, 12 } },
	[FIELD_SADDR6] = { 16, TYPE_IP6ADDR, ORDER_BIG, EXPR_PAYLOAD, { PROTO_IP6, 8 } },
	[FIELD_DADDR6] = { 16, TYPE_IP6ADDR, ORDER_BIG, EXPR_PAYLOAD, { PROTO_IP6, 9 } },
	[FIELD_PROTOCOL] = { 1, TYPE_INET_PROTOCOL, ORDER_HOST, EXPR_META, { NFT_META_L4PROTO, 0 } },
	[FIELD_PORT] = { 2, TYPE_INET_SERVICE, ORDER_BIG, EXPR_PAYLOAD, { PROTO_TH, 2 } },
	/* There is no typeof for a hash; a random number has the same type. */
	[FIELD_HASH] = { 4, TYPE_INTEGER, ORDER_HOST, EXPR_NUMGEN, { 0, 0 } },
	[FIELD_HASH_AGAIN] = { 4, TYPE_INTEGER, ORDER_HOST, EXPR_NUMGEN, { 0, 0 } },
	[FIELD_SOURCE_HASH] = { 4, TYPE_INTEGER, ORDER_HOST, EXPR_NUMGEN, { 0, 0 } },
	[FIELD_SOURCE_HASH_AGAIN] = { 4, TYPE_INTEGER, ORDER_HOST, EXPR_NUMGEN, { 0, 0 } },
	[FIELD_PRIORITY] = { 4, TYPE_CLASSID, ORDER_HOST, EXPR_META, { NFT_META_PRIORITY, 0 } },
};

const struct set_spec *set_spec(enum set_id id)
{
	return &specs[id];
}

enum set_id set_find(const char *name)
{
	int id = 0;

	while (id < SET_COUNT && strcmp(specs[id].name, name) != 0)
		id++;
	return (enum set_id)id;
}

size_t field_len(enum field field)
{
	return fields[field].len;
}

static size_t padded_len(const enum field *list)
{
	size_t n = 0;

	for (; *list != FIELD_END; list++)
		n += (fields[*list].len + 3U) & ~3U;
	return n;
}

size_t set_key_len(enum set_id id)
{
	return padded_len(specs[id].key);
}

size_t set_value_len(enum set_id id)
{
	return specs[id].interval ? set_key_len(id) : padded_len(specs[id].value);
}

static uint32_t type_of(const enum field *list)
{
	uint32_t type = 0;

	for (; *list != FIELD_END; list++)
		type = type << 6 | fields[*list].type;
	return type;
}

uint32_t set_key_type(enum set_id id)
{
	return type_of(specs[id].key);
}

uint32_t set_value_type(enum set_id id)
{
	if (!specs[id].map)
		return 0;
	return set_is_verdict(id) ? NFT_DATA_VERDICT : type_of(specs[id].value);
}

/* Type, length, value; lengths stay below 256 by construction. */
static uint8_t *put(uint8_t *p, uint8_t type, const void *data, size_t len)
{
	*p++ = type;
	*p++ = (uint8_t)len;
	memcpy(p, data, len);
	return p + len;
}

static uint8_t *put_u32(uint8_t *p, uint8_t type, uint32_t value)
{
	return put(p, type, &value, sizeof(value));
}

/* An expression: its id, then what identifies it among its kind. */
static size_t field_typeof(enum field field, uint8_t *buf)
{
	uint8_t inner[32], *q = inner, *p = buf;

	switch (fields[field].expr) {
	case EXPR_PAYLOAD:
		q = put_u32(q, 0, fields[field].argument[0]);
		q = put_u32(q, 1, fields[field].argument[1]);
		break;
	case EXPR_NUMGEN:
		q = put_u32(q, 0, NFT_NG_RANDOM);
		q = put_u32(q, 1, 65536);
		q = put_u32(q, 2, 0);
		break;
	case EXPR_META:
		q = put_u32(q, 0, fields[field].argument[0]);
		break;
	}
	p = put_u32(p, 0, fields[field].expr);
	p = put(p, 1, inner, (size_t)(q - inner));
	return (size_t)(p - buf);
}

static size_t list_typeof(const enum field *list, uint8_t *buf)
{
	uint8_t parts[SET_USERDATA_MAX], one[48], *q = parts, *p = buf;

	if (list[0] == FIELD_END) {
		p = put_u32(p, 0, EXPR_VERDICT);
		return (size_t)(put(p, 1, "", 0) - buf);
	}
	if (list[1] == FIELD_END)
		return field_typeof(list[0], buf);
	for (uint8_t i = 0; list[i] != FIELD_END; i++)
		q = put(q, i, one, field_typeof(list[i], one));
	p = put_u32(p, 0, EXPR_CONCAT);
	p = put(p, 1, parts, (size_t)(q - parts));
	return (size_t)(p - buf);
}

/* A concatenation has no byte order. */
static uint32_t order_of(const enum field *list)
{
	return list[0] != FIELD_END && list[1] == FIELD_END ? fields[list[0]].order : ORDER_INVALID;
}

size_t set_userdata(enum set_id id, uint8_t buf[SET_USERDATA_MAX])
{
	const struct set_spec *spec = &specs[id];
	uint8_t text[SET_USERDATA_MAX], *p = buf;

	p = put_u32(p, UDATA_KEY_ORDER, order_of(spec->key));
	if (spec->map)
		p = put_u32(p, UDATA_DATA_ORDER, order_of(spec->value));
	p = put(p, UDATA_KEY_TYPEOF, text, list_typeof(spec->key, text));
	if (spec->map) {
		p = put(p, UDATA_DATA_TYPEOF, text, list_typeof(spec->value, text));
		p = put_u32(p, UDATA_DATA_INTERVAL, 0);
	}
	return (size_t)(p - buf);
}

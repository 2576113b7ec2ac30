/*
 * protocols.h - purpose: the versions of the streaming protocols, and which one a client and we have in common. Pure.
 *
 * The client's order counts: the first of its offers that we know.
 */
#pragma once
#include "common/base/str.h"

struct protocol {
	const char *name; /* NULL ends a table */
	int version;
	bool base64;
	bool tunnel; /* the bytes of SPDY in WebSocket messages */
};

extern const struct protocol protocols_spdy[]; /* exec, attach: X-Stream-Protocol-Version */
extern const struct protocol
	protocols_websocket[]; /* exec, attach: Sec-WebSocket-Protocol; "" when the client names none */
extern const struct protocol protocols_forward_spdy[]; /* port-forward */
extern const struct protocol protocols_forward_websocket[];

/* One header's value: names, separated by commas. */
void protocols_add_offers(struct strv *offers, const char *value);
/* No offer at all stands for ""; NULL: nothing in common. */
const struct protocol *protocols_pick(const struct protocol *known, const struct strv *offers);

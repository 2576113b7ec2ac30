/*
 * channels.h - purpose: several channels in one WebSocket, as Kubernetes does it: each message begins with the number
 * of its channel. Pure.
 *
 * In the base64 variant messages are texts: a digit, then base64. Numbers are then 0 to 9.
 */
#pragma once
#include "common/wire/websocket.h"

enum {
	CHANNEL_DATA_MAX = 32 * 1024 /* what is written is cut into such */,
	CHANNEL_CLOSE = 255 /* v5: which one ends */
};

enum channels_event_kind { CHANNELS_MORE, CHANNELS_DATA, CHANNELS_CLOSE };

struct channels_event {
	enum channels_event_kind kind;
	uint8_t channel;
	struct bytes data; /* until the next read; may be empty */
};

struct channels {
	struct websocket *ws;
	bool base64;

	/* private */
	bool begun; /* the number of the message that is being read has been seen */
	uint8_t channel;
	char rest[4]; /* base64 that is no whole group yet */
	size_t n_rest;
	struct str text, decoded;
};

void channels_init(struct channels *c, bool base64);
void channels_done(struct channels *c);
int channels_read(struct channels *c, struct bytes *in, struct channels_event *ret, struct error *err) MUST_USE;
/* len 0: an empty message. */
void channels_write(struct channels *c, uint8_t channel, const void *p, size_t len);

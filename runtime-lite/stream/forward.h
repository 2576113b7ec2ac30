/*
 * forward.h - purpose: port-forwarding as its client sees it: many connections to ports of a pod over one. Pure: bytes
 * in, events out.
 *
 * Each forwarded connection is a pair of streams, one for its bytes and one for the text of an error; what happens to
 * one pair does not touch the others. Three carriers: SPDY streams that the client opens, with headers that say to
 * which pair they belong; the same tunnelled in WebSocket messages; and WebSocket channels, two for each port that the
 * request named.
 */
#pragma once
#include "common/base/error.h"
#include "common/base/str.h"

struct forward;

enum { FORWARD_PORTS_MAX = 100 /* of a request, for channels */ };

enum forward_event_kind {
	FORWARD_MORE,
	FORWARD_OPEN,	/* a new pair, to `port`. Answer with data, end or fail */
	FORWARD_DATA,	/* from the client */
	FORWARD_END,	/* the client sends no more, but reads on */
	FORWARD_GONE,	/* the client has given the pair up; it may not be used any more */
	FORWARD_CLOSED, /* the client is about to go */
};

struct forward_event {
	enum forward_event_kind kind;
	uint32_t pair;
	uint16_t port;
	struct bytes data; /* until the next read */
};

struct forward *forward_spdy(bool tunnel);
struct forward *forward_channels(bool base64, const uint16_t *ports, size_t n);
struct forward *forward_free(struct forward *f); /* NULL is fine; returns NULL */
DEFINE_CLEANUP(struct forward *, forward_free)

int forward_read(struct forward *f, struct bytes *in, struct forward_event *ret, struct error *err) MUST_USE;
/* All of these do nothing for a pair that has gone. */
void forward_data(struct forward *f, uint32_t pair, const void *p, size_t len);
/* The port sends no more. */
void forward_end(struct forward *f, uint32_t pair);
/* The pair is over; text NULL: just so (a connection that was reset), else why it never worked. */
void forward_fail(struct forward *f, uint32_t pair, const char *text);
/* To be sent; the owner sends and resets it. */
struct str *forward_out(struct forward *f);
/* Streams whose other half has not come: call forward_tick() every 15 seconds while there are such; at the second call
 * they are refused. */
bool forward_waits(const struct forward *f);
void forward_tick(struct forward *f);

/*
 * channel.h - purpose: JSON objects, one a line, over the socket between whoever wants an image and the pull program.
 *
 * Requester to program: the request; then one answer, {"ok":true} or an error, to each "image". Program to requester:
 *	{"progress":{"what":...,"done":...,"total":...,"layersDone":...,"layers":...}}
 *	{"image":{"config":digest,"manifest":digest or "","size":...,"tags":[...],"digests":[...]}}   is complete: record it
 *	{"error":{"code":...,"text":...}}   failed, or
 *	{"done":true}                       all is done; the program ends
 * Lines are at most CHANNEL_LINE_MAX bytes.
 */
#pragma once
#include "common/base/str.h"
#include "common/wire/json.h"

enum { CHANNEL_LINE_MAX = 1024 * 1024 };

struct channel {
	int fd; /* a stream socket; not owned */
	struct str in;
};

/* Takes the reference over. Never raises SIGPIPE. */
int channel_send(struct channel *c, json_t *message, struct error *err) MUST_USE;
/* The next complete line that was received already; NULL in *ret if there is none. */
int channel_next(struct channel *c, json_t **ret, struct error *err) MUST_USE;
/* Reads what there is (waits if the socket blocks); 0 at the end of the stream. */
int channel_fill(struct channel *c, struct error *err) MUST_USE;
/* Waits for the next message. UNAVAILABLE when the other side went away. */
int channel_receive(struct channel *c, json_t **ret, struct error *err) MUST_USE;
void channel_done(struct channel *c);

json_t *channel_error(const struct error *err);
/* Is it an error message? Then *ret is filled. */
bool channel_is_error(const json_t *message, struct error *ret);

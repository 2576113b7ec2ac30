/* session_i.h - purpose: what the two carriers of sessions share; for nobody else. */
#pragma once
#include "runtime-lite/stream/session.h"

enum { SESSION_RESIZE_MAX = 512 /* bytes of one size */ };

struct session_carrier {
	int (*read)(struct session *s, struct bytes *in, struct session_event *ret, struct error *err);
	void (*output)(struct session *s, bool error, const void *p, size_t len);
	void (*end)(struct session *s, const struct str *status);
	void (*alive)(struct session *s);
	struct str *(*out)(struct session *s);
	void (*free)(struct session *s);
};

/* At the front of a carrier's own struct. */
struct session {
	const struct session_carrier *carrier;
	struct session_wants wants;
	int version;
	bool input_ended;
	bool ended;
	struct str resize; /* of JSON that is not whole yet */
};

/* Some bytes of the resize stream. True: *ret is filled with the last size that they hold. */
bool session_take_resize(struct session *s, struct bytes data, struct session_event *ret);

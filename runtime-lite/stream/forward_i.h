/* forward_i.h - purpose: what the carriers of port-forwarding share; for nobody else. */
#pragma once
#include "runtime-lite/stream/forward.h"

struct forward_carrier {
	int (*read)(struct forward *f, struct bytes *in, struct forward_event *ret, struct error *err);
	void (*data)(struct forward *f, uint32_t pair, const void *p, size_t len);
	void (*end)(struct forward *f, uint32_t pair);
	void (*fail)(struct forward *f, uint32_t pair, const char *text);
	struct str *(*out)(struct forward *f);
	bool (*waits)(const struct forward *f);
	void (*tick)(struct forward *f);
	void (*free)(struct forward *f);
};

/* At the front of a carrier's own struct. */
struct forward {
	const struct forward_carrier *carrier;
};

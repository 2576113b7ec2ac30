/* forward.c - purpose: port-forwarding over whatever carries it. */
#include "runtime-lite/stream/forward_i.h"

struct forward *forward_free(struct forward *f)
{
	if (f)
		f->carrier->free(f);
	return NULL;
}

int forward_read(struct forward *f, struct bytes *in, struct forward_event *ret, struct error *err)
{
	return f->carrier->read(f, in, ret, err);
}

void forward_data(struct forward *f, uint32_t pair, const void *p, size_t len)
{
	if (len)
		f->carrier->data(f, pair, p, len);
}

void forward_end(struct forward *f, uint32_t pair)
{
	f->carrier->end(f, pair);
}

void forward_fail(struct forward *f, uint32_t pair, const char *text)
{
	f->carrier->fail(f, pair, text);
}

struct str *forward_out(struct forward *f)
{
	return f->carrier->out(f);
}

bool forward_waits(const struct forward *f)
{
	return f->carrier->waits && f->carrier->waits(f);
}

void forward_tick(struct forward *f)
{
	if (f->carrier->tick)
		f->carrier->tick(f);
}

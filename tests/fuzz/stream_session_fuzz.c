/*
 * stream_session_fuzz.c - purpose: arbitrary bytes to sessions and port-forwarding over each carrier, with output going
 * the other way meanwhile. The first byte says which.
 */
#include "common/wire/spdy.h"
#include "common/wire/websocket.h"
#include "runtime-lite/stream/forward.h"
#include "runtime-lite/stream/session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What a client opens first. */
static void add_streams(struct str *out, bool forward)
{
	static const char *const types[] = { "error", "stdin", "stdout", "resize" };
	_cleanup_(spdy_free_p) struct spdy *client = spdy_new(SPDY_CLIENT);

	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		const struct spdy_field session[] = { { "streamtype", types[i] } };
		const struct spdy_field pair[] = { { "streamtype", i % 2 ? "data" : "error" }, { "port", "80" },
			{ "requestid", i < 2 ? "0" : "1" } };

		(void)!spdy_open(client, forward ? pair : session, forward ? ARRAY_LEN(pair) : ARRAY_LEN(session));
	}
	str_add_bytes(out, client->out.buf, client->out.len);
}

static void run_session(struct session *s, struct bytes in)
{
	struct session_event ev;
	size_t input = 0;
	bool ended = false;
	struct error err = ERROR_INIT;

	do {
		if (session_read(s, &in, &ev, &err) < 0)
			break;
		assert(!(ended && ev.kind == SESSION_INPUT));
		ended |= ev.kind == SESSION_INPUT_END;
		if (ev.kind == SESSION_INPUT) {
			input += ev.data.len;
			session_output(s, input % 2, ev.data.ptr, ev.data.len);
		}
		session_alive(s);
	} while (ev.kind != SESSION_MORE && ev.kind != SESSION_CLOSED);
	session_end(s, &(struct session_outcome){ .result = SESSION_EXIT, .exit_code = (int)(input % 3) });
	str_reset(session_out(s));
	session_free(s);
}

static void run_forward(struct forward *f, struct bytes in)
{
	struct forward_event ev;
	struct error err = ERROR_INIT;

	do {
		if (forward_read(f, &in, &ev, &err) < 0)
			break;
		if (ev.kind == FORWARD_DATA && ev.data.len % 7 == 0)
			forward_fail(f, ev.pair, ev.data.len % 2 ? "because" : NULL);
		else if (ev.kind == FORWARD_DATA)
			forward_data(f, ev.pair, ev.data.ptr, ev.data.len);
		else if (ev.kind == FORWARD_END)
			forward_end(f, ev.pair);
		str_reset(forward_out(f));
		if (forward_waits(f) && ev.kind == FORWARD_OPEN)
			forward_tick(f);
	} while (ev.kind != FORWARD_MORE && ev.kind != FORWARD_CLOSED);
	forward_tick(f);
	forward_tick(f);
	assert(!forward_waits(f));
	forward_free(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct session_wants wants = { .in = true, .out = true, .err = size % 2, .tty = size % 3 == 0 };
	static const uint16_t ports[] = { 80, 443 };
	_cleanup_(str_done) struct str bytes = STR_INIT;

	if (size < 1)
		return 0;
	unsigned which = data[0] % 7;

	if (which == 0 || which == 3)
		add_streams(&bytes, which == 3);
	str_add_bytes(&bytes, data + 1, size - 1);
	struct bytes in = { str_get(&bytes), bytes.len };

	switch (which) {
	case 0:
		run_session(session_spdy(data[0] % 6, &wants), in);
		break;
	case 1:
		run_session(session_websocket(data[0] % 6, false, &wants), in);
		break;
	case 2:
		run_session(session_websocket(4, true, &wants), in);
		break;
	case 3:
		run_forward(forward_spdy(false), in);
		break;
	case 4:
		run_forward(forward_spdy(true), in);
		break;
	default:
		run_forward(forward_channels(which == 6, ports, 2), in);
	}
	return 0;
}

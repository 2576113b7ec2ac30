/* websocket_fuzz.c - purpose: arbitrary frames to both sides of a WebSocket; the events may not depend on how they are
 * cut. */
#include "common/wire/websocket.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t no_chance(void)
{
	return 0x12345678;
}

static char *trace(const char *text, size_t size, enum websocket_role role, size_t step)
{
	_cleanup_(websocket_free_p) struct websocket *ws =
		websocket_new(role, role == WEBSOCKET_CLIENT ? no_chance : NULL);
	struct str out = STR_INIT;
	struct error err = ERROR_INIT;
	size_t message = 0;

	ws->message_max = 1000;
	for (size_t at = 0; at < size; at += step) {
		size_t n = MIN(step, size - at);
		_cleanup_free_ char *piece = xmemdup(text + at, n);
		struct bytes in = { piece, n };
		struct websocket_event ev;

		do {
			if (websocket_read(ws, &in, &ev, &err) < 0) {
				assert(err.text[0] && ws->out.len);
				str_add(&out, "error");
				goto end;
			}
			if (ev.kind == WEBSOCKET_DATA) {
				message = ev.first ? 0 : message;
				message += ev.data.len;
				assert(message <= 1000);
				if (ev.first)
					str_addf(&out, "%d<", ev.text);
				str_add_bytes(&out, ev.data.ptr, ev.data.len);
				if (ev.last)
					str_add(&out, ">");
			} else if (ev.kind != WEBSOCKET_MORE) {
				str_addf(&out, "%d %d;", ev.kind, ev.code);
			}
		} while (ev.kind != WEBSOCKET_MORE);
		assert(in.len == 0);
	}
end:
	str_addf(&out, "|%zu", ws->out.len);
	return str_take(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	char accept[WEBSOCKET_ACCEPT_MAX];

	for (int role = WEBSOCKET_SERVER; role <= WEBSOCKET_CLIENT; role++) {
		_cleanup_free_ char *a = trace(text, size, (enum websocket_role)role, 1);
		_cleanup_free_ char *b = trace(text, size, (enum websocket_role)role, 11);
		_cleanup_free_ char *c = trace(text, size, (enum websocket_role)role, MAX(size, (size_t)1));

		if (!str_eq(a, b) || !str_eq(a, c))
			abort();
	}
	_cleanup_free_ char *key = xstrndup(text, size);

	if (websocket_accept(key, accept))
		assert(strlen(accept) == WEBSOCKET_ACCEPT_MAX - 1);
	return 0;
}

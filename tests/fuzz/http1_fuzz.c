/* http1_fuzz.c - purpose: requests and responses of arbitrary bytes; the events may not depend on how they are cut. */
#include "common/wire/http1.h"
#include "common/wire/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void add_head(struct str *out, const struct http1 *h)
{
	str_addf(out, "H%s %s %d %d%d;", h->method ? h->method : "", h->target ? h->target : "", h->status, h->minor, h->keep_alive);
	for (size_t i = 0; i < h->n_fields; i++)
		str_addf(out, "%s=%s;", h->fields[i].name, h->fields[i].value);
}

static char *trace(const char *text, size_t size, enum http1_role role, size_t step)
{
	_cleanup_(http1_done) struct http1 h;
	struct str out = STR_INIT;

	http1_init(&h, role);
	h.body_max = 500;
	h.head_max = 400;
	for (size_t at = 0; at < size; at += step) {
		size_t n = MIN(step, size - at);
		_cleanup_free_ char *piece = xmemdup(text + at, n);
		struct bytes in = { piece, n };
		struct http1_event ev;

		do {
			struct error err = ERROR_INIT;

			if (http1_read(&h, &in, &ev, &err) < 0) {
				assert(h.answer >= 400 && err.text[0]);
				str_addf(&out, "error %d", h.answer);
				return str_take(&out);
			}
			if (ev.kind == HTTP1_HEAD)
				add_head(&out, &h);
			if (ev.kind == HTTP1_BODY)
				str_add_bytes(&out, ev.body.ptr, ev.body.len);
			if (ev.kind == HTTP1_END) {
				str_add(&out, "E;");
				http1_next(&h);
			}
		} while (ev.kind != HTTP1_MORE);
		assert(in.len == 0);
	}
	return str_take(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;

	for (int role = HTTP1_REQUEST; role <= HTTP1_RESPONSE; role++) {
		_cleanup_free_ char *a = trace(text, size, (enum http1_role)role, 1);
		_cleanup_free_ char *b = trace(text, size, (enum http1_role)role, 11);
		_cleanup_free_ char *c = trace(text, size, (enum http1_role)role, MAX(size, (size_t)1));

		if (!str_eq(a, b) || !str_eq(a, c))
			abort();
	}
	_cleanup_free_ char *decoded = NULL, *query = xstrndup(text, size);
	if (url_decode(text, size, true, &decoded) == 0)
		assert(strlen(decoded) <= size);
	free(url_query_get(query, "a"));
	return 0;
}

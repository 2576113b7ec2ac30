/* json_fuzz.c - purpose: JSON reader, writer and scanner over arbitrary bytes; what was written is read back the same. */
#include "common/wire/json.h"
#include "common/wire/json_scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_and_write(const char *text, size_t size, bool strict)
{
	_cleanup_json_ json_t *tree = NULL, *back = NULL;
	struct error err = ERROR_INIT;

	if (json_read(text, size, strict, &tree, &err) < 0) {
		assert(err.code && err.text[0]);
		return;
	}
	_cleanup_free_ char *a = json_text(tree);
	if (json_read(a, strlen(a), strict, &back, &err) < 0)
		abort();
	_cleanup_free_ char *b = json_text(back), *c = json_canonical(tree), *d = json_canonical(back);
	if (!str_eq(a, b) || !str_eq(c, d))
		abort();
}

/* The items may not depend on how the bytes are cut. */
static char *scan(const char *text, size_t size, enum json_scan_mode mode, size_t step)
{
	_cleanup_(json_scan_done) struct json_scan s;
	struct str out = STR_INIT;

	json_scan_init(&s, mode);
	s.item_max = 200;
	for (size_t at = 0; at < size; at += step) {
		struct bytes in = { text + at, MIN(step, size - at) };
		enum json_scan_event event;

		do {
			if (json_scan_read(&s, &in, &event, NULL) < 0) {
				str_add(&out, "error");
				return str_take(&out);
			}
			str_addf(&out, "%d", event == JSON_SCAN_MORE ? 9 : event);
			if (event == JSON_SCAN_MORE)
				out.buf[--out.len] = '\0';
			if (event == JSON_SCAN_ITEM)
				str_add_bytes(&out, s.item.buf, s.item.len);
		} while (event != JSON_SCAN_MORE);
		assert(in.len == 0);
	}
	str_add_bytes(&out, str_get(&s.rest), s.rest.len);
	return str_take(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = xmemdup(data, size);

	read_and_write(text, size, true);
	read_and_write(text, size, false);
	for (int mode = JSON_SCAN_STREAM; mode <= JSON_SCAN_LIST; mode++) {
		_cleanup_free_ char *a = scan(text, size, (enum json_scan_mode)mode, 1);
		_cleanup_free_ char *b = scan(text, size, (enum json_scan_mode)mode, 7);
		_cleanup_free_ char *c = scan(text, size, (enum json_scan_mode)mode, MAX(size, (size_t)1));

		if (!str_eq(a, b) || !str_eq(a, c))
			abort();
	}
	return 0;
}

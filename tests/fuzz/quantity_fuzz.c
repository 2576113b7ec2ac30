/* quantity_fuzz.c - purpose: quantities, durations, times, base64 and selectors of arbitrary text. */
#include "common/base/codec.h"
#include "common/base/labels.h"
#include "common/base/quantity.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void quantities(const char *text)
{
	struct quantity q, back;
	char out[QUANTITY_TEXT_MAX];

	if (quantity_parse(text, &q, NULL) < 0)
		return;
	(void)quantity_value(q);
	(void)quantity_milli(q);
	for (int format = QUANTITY_DECIMAL; format <= QUANTITY_EXPONENT; format++) {
		quantity_text(q, (enum quantity_format)format, out);
		if (quantity_parse(out, &back, NULL) < 0)
			abort();
		/* a binary form of what does not fit 64 bits is capped when it is read back */
		if (back.nano != q.nano && format != QUANTITY_BINARY)
			abort();
	}
}

static void times(const char *text)
{
	char out[TIME_TEXT_MAX];
	int64_t ns, back;

	if (duration_parse(text, &ns) == 0) {
		duration_text(ns, out);
		if (duration_parse(out, &back) < 0 || back != ns)
			abort();
		age_text(ns, out);
	}
	if (time_parse(text, &ns) == 0) {
		time_text(ns, TIME_GO, out);
		if (time_parse(out, &back) < 0 || back != ns)
			abort();
	}
}

static void base64(const char *text, size_t size)
{
	_cleanup_free_ char *encoded = base64_encode(text, size);
	_cleanup_free_ void *decoded = NULL, *other = NULL;
	size_t len;

	if (base64_decode(encoded, strlen(encoded), &decoded, &len) < 0 || len != size || memcmp(decoded, text, size) != 0)
		abort();
	(void)!base64_decode(text, size, &other, &len);
}

static void selectors(const char *text)
{
	_cleanup_(selector_done) struct selector labels = SELECTOR_INIT, fields = SELECTOR_INIT;
	json_t *object = json_pack("{s:s,s:{s:s}}", "app", "web", "metadata", "name", "x");

	if (label_selector_parse(text, &labels, NULL) == 0)
		(void)selector_match_labels(&labels, object);
	if (field_selector_parse(text, &fields, NULL) == 0)
		(void)selector_match_fields(&fields, object);
	json_decref(object);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = xstrndup((const char *)data, size);

	quantities(text);
	times(text);
	base64((const char *)data, size);
	selectors(text);
	return 0;
}

/* yaml_fuzz.c - purpose: YAML reader over arbitrary bytes; what was written is read back the same. */
#include "common/wire/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = xmemdup(data, size);
	_cleanup_json_ json_t *documents = NULL;
	struct error err = ERROR_INIT;

	if (yaml_read(text, size, &documents, &err) < 0) {
		assert(err.code && err.text[0]);
		return 0;
	}
	for (size_t i = 0; i < json_array_size(documents); i++) {
		const json_t *tree = json_array_get(documents, i);
		_cleanup_json_ json_t *back = NULL;
		_cleanup_free_ char *written = yaml_text(tree), *a = json_canonical(tree);

		if (yaml_read(written, strlen(written), &back, &err) < 0)
			abort();
		_cleanup_free_ char *b = json_canonical(json_array_get(back, 0));
		if (json_array_size(back) != 1 || !str_eq(a, b))
			abort();
	}
	return 0;
}

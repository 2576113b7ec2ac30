/* patch_fuzz.c - purpose: the three patches with arbitrary targets and patches; the first line is the target. */
#include "common/kube/patch.h"
#include "common/wire/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const kinds[] = { "Pod", "Service", "Node", "ConfigMap" };
	const char *text = (const char *)data, *line = size ? memchr(text, '\n', size) : NULL;
	_cleanup_json_ json_t *target = NULL, *patch = NULL;
	struct error err = ERROR_INIT;

	if (!line || json_read(text, (size_t)(line - text), false, &target, &err) < 0 ||
		json_read(line + 1, size - (size_t)(line + 1 - text), false, &patch, &err) < 0)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		_cleanup_json_ json_t *copy = json_deep_copy(target);
		struct schema schema = schema_of(kinds[i]);

		if (patch_strategic(&schema, copy, patch, &err) < 0)
			assert(err.text[0]);
		schema_prune(&schema, copy);
		struct schema_problems problems = { 0 };

		schema_check(&schema, copy, &problems);
	}
	_cleanup_json_ json_t *a = json_deep_copy(target), *b = json_deep_copy(target);

	if (patch_merge(a, patch, &err) < 0)
		assert(err.text[0]);
	if (patch_json(&b, patch, &err) < 0)
		assert(err.text[0]);
	return 0;
}

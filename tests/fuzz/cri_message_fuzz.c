/* cri_message_fuzz.c - purpose: CRI messages from JSON of people's files: no crash, and what was read reads the same again. */
#include "common/cri/message.h"
#include "common/wire/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_type(const ProtobufCMessageDescriptor *type, const json_t *json)
{
	_cleanup_message_ void *message = NULL, *again = NULL;
	struct error err = ERROR_INIT;

	if (message_from_json(type, json, &message, &err) < 0)
		return;
	_cleanup_json_ json_t *text = message_to_json(message, MESSAGE_JSON_SHORT);
	_cleanup_json_ json_t *proto = message_to_json(message, MESSAGE_JSON_PROTO);
	if (message_from_json(type, text, &again, &err) < 0)
		abort();
	_cleanup_json_ json_t *same = message_to_json(again, MESSAGE_JSON_SHORT);
	if (!json_equal(text, same))
		abort();
	(void)proto;
	_cleanup_message_ void *copy = message_copy(message);
	(void)copy;
}

/* The first byte chooses: JSON text, or bytes as they come over the wire. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const ProtobufCMessageDescriptor *const types[] = {
		&runtime__v1__pod_sandbox_config__descriptor,
		&runtime__v1__container_config__descriptor,
		&runtime__v1__linux_container_resources__descriptor,
	};
	_cleanup_json_ json_t *json = NULL;

	if (!size)
		return 0;
	if (*data & 1) {
		_cleanup_message_ void *message = message_unpack(types[*data / 2 % ARRAY_LEN(types)], data + 1, size - 1);

		if (message) {
			_cleanup_json_ json_t *any = message_to_json(message, MESSAGE_JSON_PROTO);
			(void)any;
		}
		return 0;
	}
	if (json_read((const char *)data + 1, size - 1, false, &json, NULL) < 0)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		try_type(types[i], json);
	return 0;
}

/* message.c - purpose: make, copy and free CRI messages, and their maps. */
#include "common/cri/message.h"

void message_free(void *message)
{
	if (message)
		protobuf_c_message_free_unpacked(message, NULL);
}

void *message_pack(const void *message, size_t *ret_len)
{
	size_t len = protobuf_c_message_get_packed_size(message);
	uint8_t *buf = xmalloc(len);

	*ret_len = protobuf_c_message_pack(message, buf);
	return buf;
}

void *message_unpack(const ProtobufCMessageDescriptor *type, const void *bytes, size_t len)
{
	return protobuf_c_message_unpack(type, NULL, len, bytes);
}

void *message_copy(const void *message)
{
	const ProtobufCMessage *m = message;
	size_t len;

	if (!m)
		return NULL;
	_cleanup_free_ void *buf = message_pack(m, &len);
	void *copy = message_unpack(m->descriptor, buf, len);
	if (!copy) /* what was packed from a message always unpacks: only memory can be the reason */
		abort();
	return copy;
}

void message_set_take(char **field, char *value)
{
	if (*field && *field != protobuf_c_empty_string)
		free(*field);
	*field = value ? value : xstrdup("");
}

void message_set(char **field, const char *value)
{
	message_set_take(field, xstrdup(value ? value : ""));
}

const char *message_map_get_(size_t n, const void *entries, const char *key)
{
	struct message_entry *const *list = entries;

	for (size_t i = 0; i < n; i++)
		if (str_eq(list[i]->key, key))
			return list[i]->value;
	return NULL;
}

static struct message_entry *entry_new(const ProtobufCMessageDescriptor *type, const char *key, const char *value)
{
	struct message_entry *entry = xcalloc(1, type->sizeof_message);

	assert(type->sizeof_message == sizeof(struct message_entry));
	protobuf_c_message_init(type, entry);
	entry->key = xstrdup(key);
	entry->value = xstrdup(value);
	return entry;
}

void *message_map_copy(size_t n, const void *entries, const ProtobufCMessageDescriptor *type)
{
	struct message_entry *const *list = entries;

	if (!n)
		return NULL;
	struct message_entry **copy = xcalloc(n, sizeof(*copy));
	for (size_t i = 0; i < n; i++)
		copy[i] = entry_new(type, list[i]->key, list[i]->value);
	return copy;
}

void message_map_add_(size_t *n, void *entries_field, const ProtobufCMessageDescriptor *type, const char *key,
	const char *value)
{
	struct message_entry **list;

	memcpy(&list, entries_field, sizeof(list));
	list = xreallocarray(list, *n + 1, sizeof(*list));
	list[(*n)++] = entry_new(type, key, value);
	memcpy(entries_field, &list, sizeof(list));
}

bool message_map_matches(size_t n_selector, const void *selector, size_t n, const void *entries)
{
	struct message_entry *const *want = selector;

	for (size_t i = 0; i < n_selector; i++)
		if (!str_eq(message_map_get_(n, entries, want[i]->key), want[i]->value))
			return false;
	return true;
}

const char *message_enum_name(const ProtobufCEnumDescriptor *type, int value)
{
	const ProtobufCEnumValue *v = protobuf_c_enum_descriptor_get_value(type, value);

	return v ? v->name : "?";
}

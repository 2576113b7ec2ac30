/* message_json.c - purpose: JSON for any CRI message, both ways, by the descriptors that protoc-c makes. */
#include "common/cri/message.h"

#include "common/base/codec.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

typedef ProtobufCFieldDescriptor field_t;

static bool is_map(const ProtobufCMessageDescriptor *type)
{
	return type->n_fields == 2 && str_ends(type->name, "Entry") && str_eq(type->fields[0].name, "key") &&
	       str_eq(type->fields[1].name, "value");
}

static size_t element_size(const field_t *field)
{
	switch (field->type) {
	case PROTOBUF_C_TYPE_BOOL:
		return sizeof(protobuf_c_boolean);
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_UINT64:
		return 8;
	case PROTOBUF_C_TYPE_DOUBLE:
		return sizeof(double);
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_MESSAGE:
		return sizeof(void *);
	case PROTOBUF_C_TYPE_BYTES:
		return sizeof(ProtobufCBinaryData);
	default:
		return 4; /* int32, uint32, enum: all that cri.proto has besides */
	}
}

/* "log_directory" -> "logDirectory", as protojson names fields. */
static void camel(const char *name, char *ret, size_t size)
{
	size_t n = 0;

	for (; *name && n + 1 < size; name++) {
		if (*name == '_' && name[1]) {
			name++;
			ret[n++] = *name >= 'a' && *name <= 'z' ? (char)(*name - 32) : *name;
		} else {
			ret[n++] = *name;
		}
	}
	ret[n] = '\0';
}

static json_t *bytes_to_json(const ProtobufCBinaryData *data, enum message_json style)
{
	json_t *text = NULL;

	if (style == MESSAGE_JSON_SHORT && !memchr(data->data ? data->data : (void *)"", 0, data->len))
		text = json_stringn((const char *)data->data, data->len);
	if (!data->len)
		return text ? text : json_string("");
	if (text)
		return text;
	_cleanup_free_ char *base64 = base64_encode(data->data, data->len);
	return style == MESSAGE_JSON_SHORT ? json_pack("{s:s}", "base64", base64) : json_string(base64);
}

static json_t *number_to_json(int64_t v, bool is_signed, enum message_json style)
{
	char text[24];

	/* jansson has no unsigned 64-bit numbers: those above INT64_MAX travel as text. */
	if (style == MESSAGE_JSON_SHORT && (is_signed || v >= 0))
		return json_integer(v);
	if (is_signed)
		snprintf(text, sizeof(text), "%" PRId64, v);
	else
		snprintf(text, sizeof(text), "%" PRIu64, (uint64_t)v);
	return json_string(text);
}

static json_t *value_to_json(const field_t *field, const void *p, enum message_json style)
{
	switch (field->type) {
	case PROTOBUF_C_TYPE_BOOL:
		return json_boolean(*(const protobuf_c_boolean *)p);
	case PROTOBUF_C_TYPE_INT64:
		return number_to_json(*(const int64_t *)p, true, style);
	case PROTOBUF_C_TYPE_UINT64:
		return number_to_json(*(const int64_t *)p, false, style);
	case PROTOBUF_C_TYPE_UINT32:
		return json_integer(*(const uint32_t *)p);
	case PROTOBUF_C_TYPE_DOUBLE:
		return json_real(*(const double *)p);
	case PROTOBUF_C_TYPE_STRING: {
		const char *s = *(char *const *)p;
		json_t *j = json_string(s ? s : "");

		return j ? j : json_string("?"); /* not UTF-8: protobuf-c does not check strings */
	}
	case PROTOBUF_C_TYPE_MESSAGE:
		return message_to_json(*(void *const *)p, style);
	case PROTOBUF_C_TYPE_BYTES:
		return bytes_to_json(p, style);
	case PROTOBUF_C_TYPE_ENUM: {
		const ProtobufCEnumValue *v = protobuf_c_enum_descriptor_get_value(field->descriptor, *(const int *)p);

		return v ? json_string(v->name) : json_integer(*(const int *)p);
	}
	default:
		return json_integer(*(const int32_t *)p);
	}
}

static json_t *repeated_to_json(const field_t *field, const char *base, enum message_json style)
{
	size_t n = *(const size_t *)(base + field->quantifier_offset);
	const char *list = *(char *const *)(base + field->offset);

	if (field->type == PROTOBUF_C_TYPE_MESSAGE && is_map(field->descriptor)) {
		json_t *object = json_object();

		for (size_t i = 0; i < n; i++) {
			const struct message_entry *e = ((struct message_entry *const *)(const void *)list)[i];

			json_object_set_new(object, e->key, json_string(e->value));
		}
		return object;
	}
	json_t *array = json_array();
	for (size_t i = 0; i < n; i++)
		json_array_append_new(array, value_to_json(field, list + i * element_size(field), style));
	return array;
}

static bool is_default(const field_t *field, const char *base)
{
	static const char zero[sizeof(ProtobufCBinaryData)];
	const char *p = base + field->offset;

	if (field->label == PROTOBUF_C_LABEL_REPEATED)
		return *(const size_t *)(base + field->quantifier_offset) == 0;
	if (field->type == PROTOBUF_C_TYPE_STRING)
		return str_empty(*(char *const *)(const void *)p);
	if (field->type == PROTOBUF_C_TYPE_BYTES)
		return ((const ProtobufCBinaryData *)(const void *)p)->len == 0;
	return memcmp(p, zero, element_size(field)) == 0;
}

json_t *message_to_json(const void *message, enum message_json style)
{
	const ProtobufCMessage *m = message;
	json_t *object;
	char name[80];

	if (!m)
		return json_null();
	object = json_object();
	for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
		const field_t *field = &m->descriptor->fields[i];

		if (style == MESSAGE_JSON_SHORT && is_default(field, message))
			continue;
		if (style == MESSAGE_JSON_PROTO)
			camel(field->name, name, sizeof(name));
		json_object_set_new(object, style == MESSAGE_JSON_PROTO ? name : field->name,
			field->label == PROTOBUF_C_LABEL_REPEATED
				? repeated_to_json(field, message, style)
				: value_to_json(field, (const char *)message + field->offset, style));
	}
	return object;
}

/* --- reading --- */

static int wrong(const field_t *field, const json_t *json, const char *want, struct error *err)
{
	static const char *const names[] = { "an object", "a list", "a string", "a number", "a number", "true", "false",
		"null" };

	return error_set(err, ERROR_INVALID, "%s: is %s, must be %s", field->name, names[json_typeof(json)], want);
}

static int number_from_json(const field_t *field, const json_t *json, int64_t *ret, struct error *err)
{
	bool is_unsigned = field->type == PROTOBUF_C_TYPE_UINT64 || field->type == PROTOBUF_C_TYPE_UINT32;
	bool is_64 = field->type == PROTOBUF_C_TYPE_INT64 || field->type == PROTOBUF_C_TYPE_UINT64;
	int64_t v;

	if (json_is_integer(json)) {
		v = json_integer_value(json);
		if (is_unsigned && v < 0)
			return error_set(err, ERROR_INVALID, "%s: %" PRId64 " is negative", field->name, v);
	} else if (json_is_string(json)) {
		const char *text = json_string_value(json);
		char *end;

		errno = 0;
		v = is_unsigned ? (int64_t)strtoull(text, &end, 10) : strtoll(text, &end, 10);
		if (errno || !*text || *end || *text == ' ' || (is_unsigned && *text == '-'))
			return error_set(err, ERROR_INVALID, "%s: \"%.40s\" is not a number", field->name, text);
	} else {
		return wrong(field, json, "a whole number", err);
	}
	if (!is_64 && (v > (is_unsigned ? (int64_t)UINT32_MAX : INT32_MAX) || v < INT32_MIN))
		return error_set(err, ERROR_OUT_OF_RANGE, "%s: %" PRId64 " is out of range", field->name, v);
	*ret = v;
	return 0;
}

static int enum_from_json(const field_t *field, const json_t *json, int *ret, struct error *err)
{
	const ProtobufCEnumDescriptor *type = field->descriptor;
	int64_t number;

	if (json_is_string(json)) {
		const ProtobufCEnumValue *v =
			protobuf_c_enum_descriptor_get_value_by_name(type, json_string_value(json));

		if (!v)
			return error_set(err, ERROR_INVALID, "%s: \"%.40s\" is not one of its values (%s, ...)",
				field->name, json_string_value(json), type->values[0].name);
		*ret = v->value;
		return 0;
	}
	int r = number_from_json(field, json, &number, err);
	if (r < 0)
		return r;
	*ret = (int)number;
	return 0;
}

static int bytes_from_json(const field_t *field, const json_t *json, ProtobufCBinaryData *ret, struct error *err)
{
	const json_t *base64 = json_object_get(json, "base64");

	if (json_is_string(json)) {
		ret->len = json_string_length(json);
		ret->data = xmemdup(json_string_value(json), ret->len);
		return 0;
	}
	if (!json_is_string(base64))
		return wrong(field, json, "a string or {\"base64\": ...}", err);
	if (base64_decode(json_string_value(base64), json_string_length(base64), (void **)&ret->data, &ret->len) < 0)
		return error_set(err, ERROR_INVALID, "%s: not base64", field->name);
	return 0;
}

static int string_from_json(const field_t *field, const json_t *json, char **ret, struct error *err)
{
	if (!json_is_string(json))
		return wrong(field, json, "a string", err);
	if (strlen(json_string_value(json)) != json_string_length(json))
		return error_set(err, ERROR_INVALID, "%s: has a NUL byte", field->name);
	*ret = xstrdup(json_string_value(json));
	return 0;
}

static int value_from_json(const field_t *field, const json_t *json, void *p, struct error *err)
{
	int64_t number;
	int r;

	switch (field->type) {
	case PROTOBUF_C_TYPE_BOOL:
		if (!json_is_boolean(json))
			return wrong(field, json, "true or false", err);
		*(protobuf_c_boolean *)p = json_is_true(json);
		return 0;
	case PROTOBUF_C_TYPE_DOUBLE:
		if (!json_is_number(json))
			return wrong(field, json, "a number", err);
		*(double *)p = json_number_value(json);
		return 0;
	case PROTOBUF_C_TYPE_STRING:
		return string_from_json(field, json, p, err);
	case PROTOBUF_C_TYPE_BYTES:
		return bytes_from_json(field, json, p, err);
	case PROTOBUF_C_TYPE_ENUM:
		return enum_from_json(field, json, p, err);
	case PROTOBUF_C_TYPE_MESSAGE:
		r = message_from_json(field->descriptor, json, p, err);
		return r < 0 ? error_prefix(err, "%s", field->name) : 0;
	default:
		r = number_from_json(field, json, &number, err);
		if (r < 0)
			return r;
		memcpy(p, &number, element_size(field)); /* little endian and range checked */
		return 0;
	}
}

static int map_from_json(const field_t *field, const json_t *json, char *base, struct error *err)
{
	const char *key;
	json_t *value;

	if (!json_is_object(json))
		return wrong(field, json, "an object", err);
	json_object_foreach ((json_t *)json, key, value) {
		if (!json_is_string(value))
			return error_set(err, ERROR_INVALID, "%s: \"%.60s\" must be a string", field->name, key);
		message_map_add_((size_t *)(void *)(base + field->quantifier_offset), base + field->offset,
			field->descriptor, key, json_string_value(value));
	}
	return 0;
}

static int repeated_from_json(const field_t *field, const json_t *json, char *base, struct error *err)
{
	size_t *n = (size_t *)(void *)(base + field->quantifier_offset);
	char **list = (char **)(void *)(base + field->offset);
	size_t i;
	json_t *item;

	if (field->type == PROTOBUF_C_TYPE_MESSAGE && is_map(field->descriptor))
		return map_from_json(field, json, base, err);
	if (!json_is_array(json))
		return wrong(field, json, "a list", err);
	if (!json_array_size(json))
		return 0;
	*list = xcalloc(json_array_size(json), element_size(field));
	json_array_foreach ((json_t *)json, i, item) {
		int r = value_from_json(field, item, *list + i * element_size(field), err);

		if (r < 0)
			return r;
		(*n)++;
	}
	return 0;
}

static const field_t *field_find(const ProtobufCMessageDescriptor *type, const char *key)
{
	char name[80];

	for (unsigned i = 0; i < type->n_fields; i++) {
		camel(type->fields[i].name, name, sizeof(name));
		if (str_eq(type->fields[i].name, key) || str_eq(name, key))
			return &type->fields[i];
	}
	return NULL;
}

int message_from_json(const ProtobufCMessageDescriptor *type, const json_t *json, void *ret_message, struct error *err)
{
	uint64_t seen = 0;
	const char *key;
	json_t *value;

	if (!json_is_object(json))
		return error_set(err, ERROR_INVALID, "must be an object");
	assert(type->n_fields <= 64);
	_cleanup_message_ char *message = xcalloc(1, type->sizeof_message);
	protobuf_c_message_init(type, message);
	json_object_foreach ((json_t *)json, key, value) {
		const field_t *field = field_find(type, key);

		if (!field)
			return error_set(err, ERROR_INVALID, "unknown field \"%.60s\"", key);
		uint64_t bit = UINT64_C(1) << (field - type->fields);
		if (seen & bit)
			return error_set(err, ERROR_INVALID, "%s: given twice", field->name);
		seen |= bit;
		if (json_is_null(value))
			continue;
		int r = field->label == PROTOBUF_C_LABEL_REPEATED
				? repeated_from_json(field, value, message, err)
				: value_from_json(field, value, message + field->offset, err);
		if (r < 0)
			return r;
	}
	*(void **)ret_message = steal(message);
	return 0;
}

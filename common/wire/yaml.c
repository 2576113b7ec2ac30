/* yaml.c - purpose: read YAML into jansson trees: libyaml's events, Kubernetes' meaning of them, our limits. */
#include "common/base/codec.h"
#include "common/base/map.h"
#include "common/wire/json.h"
#include "common/wire/utf8.h"
#include "common/wire/yaml_scalar.h"

#include <errno.h>
#include <stdio.h>
#include <yaml.h>

/* What an alias stands for. `value` is NULL while the node is still open: an alias to it would be endless. */
struct anchor {
	json_t *value;
	size_t nodes;
	size_t bytes;
	size_t id;
};

struct builder {
	yaml_parser_t parser;
	struct map anchors;
	size_t nodes; /* of all documents, aliases expanded */
	size_t bytes; /* of scalars, aliases expanded */
	size_t documents;
	struct error *err;
};

static void anchor_free(void *p)
{
	struct anchor *anchor = p;

	json_decref(anchor->value);
	free(anchor);
}

/* Returns NULL, so that a builder can say `return fail(...)`. */
static json_t *fail(struct builder *b, yaml_mark_t mark, const char *fmt, ...) PRINTF(3, 4);
static json_t *fail(struct builder *b, yaml_mark_t mark, const char *fmt, ...)
{
	char text[ERROR_TEXT_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	error_set(b->err, ERROR_INVALID, "line %zu, column %zu: %s", mark.line + 1, mark.column + 1, text);
	return NULL;
}

/* The next event; false on a syntax error. */
static bool next(struct builder *b, yaml_event_t *ret)
{
	if (yaml_parser_parse(&b->parser, ret))
		return true;
	yaml_parser_t *p = &b->parser;
	const char *problem = p->problem ? p->problem : "syntax error";

	memset(ret, 0, sizeof(*ret));
	if (p->error == YAML_READER_ERROR) {
		error_set(b->err, ERROR_INVALID, "byte %zu: %s", p->problem_offset, problem);
		return false;
	}
	bool tab = str_eq(problem, "found character that cannot start any token") &&
		   p->buffer.pointer < p->buffer.last && *p->buffer.pointer == '\t';
	fail(b, p->problem_mark, "%s%s%s%s%s", problem, p->context ? " (" : "", p->context ? p->context : "",
		p->context ? ")" : "", tab ? "; a tab cannot be used for indentation" : "");
	return false;
}

static bool count(struct builder *b, yaml_mark_t mark, size_t nodes, size_t bytes)
{
	b->nodes += nodes;
	b->bytes += bytes;
	if (b->nodes > YAML_NODES_MAX || b->bytes > 2 * (size_t)JSON_TEXT_MAX)
		return fail(
			b, mark, "more than %d nodes or %d bytes, aliases included", YAML_NODES_MAX, 2 * JSON_TEXT_MAX);
	return true;
}

static json_t *build(struct builder *b, const yaml_event_t *event, unsigned depth);

/* The part of a tag that counts: "str" of "tag:yaml.org,2002:str"; NULL for none or others. */
static const char *tag_of(const yaml_char_t *tag)
{
	static const char prefix[] = "tag:yaml.org,2002:";

	return tag && str_starts((const char *)tag, prefix) ? (const char *)tag + sizeof(prefix) - 1 : NULL;
}

static json_t *string_node(struct builder *b, const yaml_event_t *event)
{
	const char *text = (const char *)event->data.scalar.value;
	size_t len = event->data.scalar.length;

	if (memchr(text, 0, len))
		return fail(b, event->start_mark, "NUL character in a string");
	return json_stringn_nocheck(text, len);
}

static json_t *binary_node(struct builder *b, const yaml_event_t *event)
{
	_cleanup_free_ void *data = NULL;
	size_t len;

	if (base64_decode((const char *)event->data.scalar.value, event->data.scalar.length, &data, &len) < 0)
		return fail(b, event->start_mark, "!!binary value is not base64");
	if (memchr(data, 0, len) || !utf8_valid(data, len))
		return fail(b, event->start_mark, "!!binary value is not text");
	return json_stringn_nocheck(data, len);
}

static json_t *plain_node(struct builder *b, const yaml_event_t *event, struct yaml_scalar value)
{
	switch (value.kind) {
	case YAML_NULL:
		return json_null();
	case YAML_BOOL:
		return json_boolean(value.boolean);
	case YAML_INT:
		return json_integer(value.integer);
	case YAML_REAL:
		return json_real(value.real);
	case YAML_NOT_FINITE:
		return fail(b, event->start_mark, "%s has no form in JSON", event->data.scalar.value);
	case YAML_STRING:
		break;
	}
	return string_node(b, event);
}

static json_t *scalar_node(struct builder *b, const yaml_event_t *event)
{
	static const struct {
		const char *tag;
		unsigned kinds;
	} wanted[] = {
		{ "null", 1 << YAML_NULL },
		{ "bool", 1 << YAML_BOOL },
		{ "int", 1 << YAML_INT | 1 << YAML_REAL },
		{ "float", 1 << YAML_INT | 1 << YAML_REAL },
	};
	const char *text = (const char *)event->data.scalar.value;
	const char *tag = tag_of(event->data.scalar.tag);
	bool plain = event->data.scalar.plain_implicit && !event->data.scalar.tag;

	if (plain && strlen(text) == event->data.scalar.length)
		return plain_node(b, event, yaml_resolve(text));
	if (tag && str_eq(tag, "binary"))
		return binary_node(b, event);
	for (size_t i = 0; tag && i < ARRAY_LEN(wanted); i++) {
		if (!str_eq(tag, wanted[i].tag))
			continue;
		struct yaml_scalar value = yaml_resolve(text);
		if (!(wanted[i].kinds & 1U << value.kind))
			return fail(b, event->start_mark, "\"%.100s\" is not of type !!%s", text, tag);
		return plain_node(b, event, value);
	}
	return string_node(b, event);
}

static json_t *alias_node(struct builder *b, const yaml_event_t *event)
{
	const char *name = (const char *)event->data.alias.anchor;
	const struct anchor *anchor = map_get(&b->anchors, name);

	if (!anchor)
		return fail(b, event->start_mark, "unknown anchor \"%.100s\"", name);
	if (!anchor->value)
		return fail(b, event->start_mark, "the value of anchor \"%.100s\" contains itself", name);
	if (!count(b, event->start_mark, anchor->nodes, anchor->bytes))
		return NULL;
	return json_deep_copy(anchor->value);
}

static json_t *sequence_node(struct builder *b, unsigned depth)
{
	_cleanup_json_ json_t *array = json_array();

	for (;;) {
		_cleanup_(yaml_event_delete) yaml_event_t event;

		if (!next(b, &event))
			return NULL;
		if (event.type == YAML_SEQUENCE_END_EVENT)
			return steal(array);
		json_t *value = build(b, &event, depth + 1);
		if (!value)
			return NULL;
		json_array_append_new(array, value);
	}
}

static bool is_merge(const yaml_event_t *event)
{
	if (event->type != YAML_SCALAR_EVENT || !str_eq((const char *)event->data.scalar.value, "<<"))
		return false;
	const char *tag = tag_of(event->data.scalar.tag);
	return event->data.scalar.plain_implicit || (tag && str_eq(tag, "merge"));
}

/* A key as text: numbers and booleans have one, the rest is refused. Owned by the caller. */
static char *key_text(struct builder *b, const json_t *key, yaml_mark_t mark)
{
	struct str s = STR_INIT;

	if (json_is_string(key))
		return xstrdup(json_string_value(key));
	if (json_is_number(key) || json_is_boolean(key)) {
		json_add(&s, key);
		return str_take(&s);
	}
	fail(b, mark, "a map key must be text, not %s",
		json_is_null(key)    ? "null"
		: json_is_array(key) ? "a list"
				     : "a map");
	return NULL;
}

/* Adds a map, or a list of maps, to what the "<<" of this map stand for; earlier ones win. */
static bool add_merge(struct builder *b, json_t *merged, json_t *value, yaml_mark_t mark)
{
	bool list = json_is_array(value);
	size_t n = list ? json_array_size(value) : 1;

	for (size_t i = 0; i < n; i++) {
		json_t *map = list ? json_array_get(value, i) : value;

		if (!json_is_object(map))
			return fail(b, mark, "what is merged by \"<<\" must be a map or a list of maps");
		json_object_update_missing(merged, map);
	}
	return true;
}

/* The value of a key whose event has been read. False on error. */
static bool member_node(
	struct builder *b, json_t *object, json_t *merged, const yaml_event_t *key_event, unsigned depth)
{
	_cleanup_(yaml_event_delete) yaml_event_t event = { 0 };
	_cleanup_json_ json_t *key = NULL, *value = NULL;
	_cleanup_free_ char *text = NULL;
	bool merge = is_merge(key_event);

	if (!merge) {
		key = build(b, key_event, depth + 1);
		text = key ? key_text(b, key, key_event->start_mark) : NULL;
		if (!text)
			return false;
		if (json_object_get(object, text))
			return fail(b, key_event->start_mark, "key \"%.200s\" stands here twice", text);
	}
	if (!next(b, &event))
		return false;
	value = build(b, &event, depth + 1);
	if (!value)
		return false;
	if (merge)
		return add_merge(b, merged, value, event.start_mark);
	json_object_set_new_nocheck(object, text, steal(value));
	return true;
}

static json_t *mapping_node(struct builder *b, unsigned depth)
{
	_cleanup_json_ json_t *object = json_object(), *merged = json_object();

	for (;;) {
		_cleanup_(yaml_event_delete) yaml_event_t event;

		if (!next(b, &event))
			return NULL;
		if (event.type == YAML_MAPPING_END_EVENT)
			break;
		if (!member_node(b, object, merged, &event, depth))
			return NULL;
	}
	json_object_update_missing(object, merged);
	return steal(object);
}

static json_t *node_of(struct builder *b, const yaml_event_t *event, unsigned depth)
{
	switch (event->type) {
	case YAML_SCALAR_EVENT:
		return scalar_node(b, event);
	case YAML_SEQUENCE_START_EVENT:
		return sequence_node(b, depth);
	case YAML_MAPPING_START_EVENT:
		return mapping_node(b, depth);
	default:
		return fail(b, event->start_mark, "unexpected end");
	}
}

static const char *anchor_of(const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_SCALAR_EVENT:
		return (const char *)event->data.scalar.anchor;
	case YAML_SEQUENCE_START_EVENT:
		return (const char *)event->data.sequence_start.anchor;
	case YAML_MAPPING_START_EVENT:
		return (const char *)event->data.mapping_start.anchor;
	default:
		return NULL;
	}
}

/* The node that begins with this event, up to its end. */
static json_t *build(struct builder *b, const yaml_event_t *event, unsigned depth)
{
	const char *name = anchor_of(event);
	size_t nodes = b->nodes, bytes = b->bytes;
	struct anchor *anchor;

	if (depth > JSON_DEPTH_MAX)
		return fail(b, event->start_mark, "more than %d levels deep", JSON_DEPTH_MAX);
	if (event->type == YAML_ALIAS_EVENT)
		return alias_node(b, event);
	if (!count(b, event->start_mark, 1, event->type == YAML_SCALAR_EVENT ? event->data.scalar.length : 0))
		return NULL;
	if (name) {
		anchor = xnew(struct anchor);
		anchor->id = nodes;
		void *old = map_put(&b->anchors, name, anchor);
		if (old)
			anchor_free(old);
	}
	json_t *value = node_of(b, event, depth);
	/* An anchor of the same name inside the node takes its place. */
	anchor = value && name ? map_get(&b->anchors, name) : NULL;
	if (anchor && anchor->id == nodes) {
		anchor->value = json_incref(value);
		anchor->nodes = b->nodes - nodes;
		anchor->bytes = b->bytes - bytes;
	}
	return value;
}

/* Takes the document; null is an empty one. */
static int add_document(json_t *documents, json_t *value, struct error *err)
{
	if (json_is_null(value))
		json_decref(value);
	else
		json_array_append_new(documents, value);
	if (json_array_size(documents) > YAML_DOCUMENTS_MAX)
		return error_set(err, ERROR_EXHAUSTED, "more than %d documents", YAML_DOCUMENTS_MAX);
	return 0;
}

/* The documents up to the end of the stream. */
static int build_stream(struct builder *b, json_t *documents)
{
	for (;;) {
		_cleanup_(yaml_event_delete) yaml_event_t event;

		if (!next(b, &event))
			return -EINVAL;
		if (event.type == YAML_STREAM_END_EVENT)
			return 0;
		if (event.type == YAML_STREAM_START_EVENT || event.type == YAML_DOCUMENT_END_EVENT)
			continue;
		if (event.type == YAML_DOCUMENT_START_EVENT) {
			map_done_values(&b->anchors, anchor_free);
			b->anchors = MAP_INIT;
			if (++b->documents > YAML_DOCUMENTS_MAX)
				return error_set(b->err, ERROR_EXHAUSTED, "more than %d documents", YAML_DOCUMENTS_MAX);
			continue;
		}
		json_t *value = build(b, &event, 0);
		int r = value ? add_document(documents, value, b->err) : -EINVAL;
		if (r < 0)
			return r;
	}
}

/* JSON documents one behind the other. What YAML takes in flow style but JSON does not is left to YAML: -ENOENT. */
static int read_json_stream(const char *text, size_t len, json_t *documents, struct error *err)
{
	size_t start = strspn(text, " \t\r\n"), at = start;

	if (text[start] != '{' && text[start] != '[')
		return -ENOENT;
	while (at < len) {
		json_t *value;

		if (json_read_next(text, len, &at, true, &value, err) < 0) {
			size_t second = start + 1 + strspn(text + start + 1, " \t\r\n");

			return text[start] == '{' && (text[second] == '"' || text[second] == '}') &&
					       !json_array_size(documents)
				       ? -EINVAL
				       : -ENOENT;
		}
		int r = add_document(documents, value, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_yaml_stream(const char *text, size_t len, json_t *documents, struct error *err)
{
	struct builder b = { .err = err };

	if (!yaml_parser_initialize(&b.parser))
		abort(); /* out of memory */
	yaml_parser_set_input_string(&b.parser, (const unsigned char *)text, len);
	int r = build_stream(&b, documents);
	map_done_values(&b.anchors, anchor_free);
	yaml_parser_delete(&b.parser);
	return r;
}

int yaml_read(const char *text, size_t len, json_t **ret, struct error *err)
{
	_cleanup_json_ json_t *documents = json_array();
	struct error json_err = ERROR_INIT;

	if (len > JSON_TEXT_MAX)
		return error_set(err, ERROR_EXHAUSTED, "text of %zu bytes is larger than %d", len, JSON_TEXT_MAX);
	_cleanup_free_ char *copy = xstrndup(text, len); /* ends in a NUL, which the look-ahead wants */
	int r = read_json_stream(copy, strlen(copy), documents, &json_err);
	if (r == 0) {
		*ret = steal(documents);
		return 0;
	}
	json_array_clear(documents);
	int json = r;
	r = read_yaml_stream(text, len, documents, err);
	if (r < 0) {
		/* Of what is JSON by its looks, JSON's complaint is the better one. */
		if (json == -EINVAL && err)
			*err = json_err;
		return r;
	}
	*ret = steal(documents);
	return 0;
}

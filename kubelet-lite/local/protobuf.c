/* protobuf.c - purpose: the protobuf form of those objects that kubectl sends in it, as trees. */
#include "kubelet-lite/local/protobuf.h"

#include <errno.h>

#include "common/base/codec.h"
#include "common/base/str.h"

enum { DEPTH_MAX = 20 };

/*
 * Name, then number:type:field.  s string  y bytes (base64 in JSON)  i integer  b boolean  M another message
 * x IntOrString  t Time  - skipped (what a client cannot set).  + behind it: a list;  % a map with values of that type.
 */
static const char MESSAGES[] =
	"Meta 1:s:name 2:s:generateName 3:s:namespace 4:-:selfLink 5:s:uid 6:s:resourceVersion 7:-:generation"
	" 8:-:creationTimestamp 9:-:deletionTimestamp 10:-:deletionGracePeriodSeconds 11:s%:labels 12:s%:annotations"
	" 13:-:ownerReferences 14:s+:finalizers 17:-:managedFields\n"
	"ConfigMap 1:Meta:metadata 2:s%:data 3:y%:binaryData 4:b:immutable\n"
	"Secret 1:Meta:metadata 2:y%:data 3:s:type 4:s%:stringData 5:b:immutable\n"
	"Namespace 1:Meta:metadata 2:-:spec 3:-:status\n"
	"Service 1:Meta:metadata 2:ServiceSpec:spec 3:-:status\n"
	"ServiceSpec 1:ServicePort+:ports 2:s%:selector 3:s:clusterIP 4:s:type 5:s+:externalIPs 7:s:sessionAffinity"
	" 8:s:loadBalancerIP 9:s+:loadBalancerSourceRanges 10:s:externalName 11:s:externalTrafficPolicy"
	" 12:i:healthCheckNodePort 13:b:publishNotReadyAddresses 14:AffinityConfig:sessionAffinityConfig 17:s:ipFamilyPolicy"
	" 18:s+:clusterIPs 19:s+:ipFamilies 20:b:allocateLoadBalancerNodePorts 21:s:loadBalancerClass"
	" 22:s:internalTrafficPolicy 23:s:trafficDistribution\n"
	"ServicePort 1:s:name 2:s:protocol 3:i:port 4:x:targetPort 5:i:nodePort 6:s:appProtocol\n"
	"AffinityConfig 1:ClientIP:clientIP\n"
	"ClientIP 1:i:timeoutSeconds\n"
	"DeleteOptions 1:i:gracePeriodSeconds 2:Preconditions:preconditions 3:b:orphanDependents 4:s:propagationPolicy"
	" 5:s+:dryRun\n"
	"Preconditions 1:s:uid 2:s:resourceVersion\n"
	"Eviction 1:Meta:metadata 2:DeleteOptions:deleteOptions\n";

struct input {
	const unsigned char *p, *end;
};

struct field {
	uint64_t number;
	unsigned wire;
	uint64_t value;     /* wire 0 */
	struct input bytes; /* wire 2 */
};

static int broken(struct error *err)
{
	return error_set(err, ERROR_INVALID, "the protobuf body is broken");
}

static bool take_varint(struct input *in, uint64_t *ret)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64 && in->p < in->end; shift += 7) {
		unsigned char c = *in->p++;

		value |= (uint64_t)(c & 0x7f) << shift;
		if (!(c & 0x80)) {
			*ret = value;
			return true;
		}
	}
	return false;
}

static bool take_field(struct input *in, struct field *ret)
{
	uint64_t tag, len;

	if (!take_varint(in, &tag))
		return false;
	*ret = (struct field){ .number = tag >> 3, .wire = tag & 7 };
	if (ret->wire == 0)
		return take_varint(in, &ret->value);
	if (ret->wire == 2) {
		if (!take_varint(in, &len) || len > (uint64_t)(in->end - in->p))
			return false;
	} else if (ret->wire == 1 || ret->wire == 5) {
		len = ret->wire == 1 ? 8 : 4;
		if (len > (uint64_t)(in->end - in->p))
			return false;
	} else {
		return false;
	}
	ret->bytes = (struct input){ in->p, in->p + len };
	in->p += len;
	return true;
}

/* The fields of a message in the table, NULL: none such. */
static const char *message_line(struct bytes name)
{
	for (const char *line = MESSAGES; *line; line = strchr(line, '\n') + 1)
		if (strncmp(line, name.ptr, name.len) == 0 && line[name.len] == ' ')
			return line + name.len;
	return NULL;
}

/* What the table says about a field: its type ("s", "Meta+") and JSON name. */
static bool field_line(const char *line, uint64_t number, struct bytes *ret_type, struct bytes *ret_name)
{
	while (*line == ' ') {
		char *colon;
		unsigned long n = strtoul(line + 1, &colon, 10);
		const char *type = colon + 1, *name = strchr(type, ':') + 1;
		size_t len = strcspn(name, " \n");

		if (n == number) {
			*ret_type = (struct bytes){ type, (size_t)(name - 1 - type) };
			*ret_name = (struct bytes){ name, len };
			return true;
		}
		line = name + len;
	}
	return false;
}

static json_t *read_message(struct bytes name, struct input in, int depth, struct error *err);

static json_t *int_or_string(struct input in)
{
	struct field f;
	uint64_t type = 0, number = 0;
	struct input text = { 0 };

	while (in.p < in.end && take_field(&in, &f)) {
		if (f.number == 1)
			type = f.value;
		else if (f.number == 2)
			number = f.value;
		else if (f.number == 3)
			text = f.bytes;
	}
	if (type == 0)
		return json_integer((int32_t)number);
	return text.p ? json_stringn((const char *)text.p, (size_t)(text.end - text.p)) : json_string("");
}

/* One value; NULL: broken. */
static json_t *read_value(struct bytes type, const struct field *f, int depth, struct error *err)
{
	size_t len = (size_t)(f->bytes.end - f->bytes.p);
	char kind = *type.ptr;
	bool scalar = type.len == 1 || type.ptr[1] == '+' || type.ptr[1] == '%';

	if (scalar && kind == 'i')
		return f->wire == 0 ? json_integer((json_int_t)f->value) : NULL;
	if (scalar && kind == 'b')
		return f->wire == 0 ? json_boolean(f->value != 0) : NULL;
	if (f->wire != 2)
		return NULL;
	if (scalar && kind == 's')
		return json_stringn((const char *)f->bytes.p, len);
	if (scalar && kind == 'x')
		return int_or_string(f->bytes);
	if (scalar && kind == 'y') {
		_cleanup_free_ char *text = base64_encode(f->bytes.p, len);

		return json_string(text);
	}
	struct bytes name = { type.ptr, type.ptr[type.len - 1] == '+' ? type.len - 1 : type.len };

	return read_message(name, f->bytes, depth + 1, err);
}

static bool map_entry(json_t *map, struct bytes type, struct input in, struct error *err)
{
	struct field f;
	_cleanup_free_ char *key = xstrdup("");
	json_t *value = NULL;

	while (in.p < in.end) {
		if (!take_field(&in, &f) || f.wire != 2) {
			json_decref(value);
			return false;
		}
		if (f.number == 1) {
			free(key);
			key = xstrndup((const char *)f.bytes.p, (size_t)(f.bytes.end - f.bytes.p));
		} else if (f.number == 2) {
			json_decref(value);
			value = read_value(type, &f, 0, err);
		}
	}
	return json_object_set_new(map, key, value ? value : json_string("")) == 0;
}

static bool add_field(json_t *out, struct bytes type, const char *name, const struct field *f, int depth, struct error *err)
{
	char last = type.ptr[type.len - 1];
	json_t *have = json_object_get(out, name);

	if (last == '+' || last == '%') {
		if (!have) {
			have = last == '+' ? json_array() : json_object();
			json_object_set_new(out, name, have);
		}
		if (last == '%')
			return f->wire == 2 && map_entry(have, type, f->bytes, err);
		return json_array_append_new(have, read_value(type, f, depth, err)) == 0;
	}
	/* The encoder writes empty strings and zeros that mean "not set". */
	if ((f->wire == 2 && f->bytes.p == f->bytes.end && *type.ptr == 's') || (f->wire == 0 && f->value == 0 && *type.ptr == 'i' && !str_eq(name, "gracePeriodSeconds")))
		return true;
	return json_object_set_new(out, name, read_value(type, f, depth, err)) == 0;
}

static json_t *read_message(struct bytes name, struct input in, int depth, struct error *err)
{
	const char *line = message_line(name);
	json_t *out = json_object();

	while (line && depth < DEPTH_MAX && in.p < in.end) {
		struct field f;
		struct bytes type, field;
		bool ok = take_field(&in, &f);

		if (ok && !field_line(line, f.number, &type, &field)) {
			error_set(err, ERROR_INVALID, "field %llu of %.*s is not known; send the object as JSON",
				(unsigned long long)f.number, (int)name.len, name.ptr);
			json_decref(out);
			return NULL;
		}
		if (ok && *type.ptr == '-')
			continue;
		_cleanup_free_ char *key = ok ? xstrndup(field.ptr, field.len) : NULL;

		if (!ok || !add_field(out, type, key, &f, depth, err)) {
			json_decref(out);
			return NULL;
		}
	}
	return out;
}

static char *text_of(struct input in)
{
	return in.p ? xstrndup((const char *)in.p, (size_t)(in.end - in.p)) : xstrdup("");
}

int protobuf_read(const void *p, size_t len, json_t **ret, struct error *err)
{
	struct input in = { (const unsigned char *)p + 4, (const unsigned char *)p + len }, type = { 0 }, raw = { 0 };
	struct input api_version = { 0 }, kind = { 0 };
	struct field f;

	if (len < 4 || memcmp(p, "k8s\0", 4) != 0)
		return broken(err);
	while (in.p < in.end) {
		if (!take_field(&in, &f))
			return broken(err);
		if (f.number == 1 && f.wire == 2)
			type = f.bytes;
		else if (f.number == 2 && f.wire == 2)
			raw = f.bytes;
	}
	while (type.p < type.end) {
		if (!take_field(&type, &f))
			return broken(err);
		if (f.number == 1 && f.wire == 2)
			api_version = f.bytes;
		else if (f.number == 2 && f.wire == 2)
			kind = f.bytes;
	}
	_cleanup_free_ char *kind_text = text_of(kind), *version_text = text_of(api_version);

	if (!*kind_text || !message_line((struct bytes){ kind_text, strlen(kind_text) }))
		return error_set(err, ERROR_INVALID, "kind \"%.60s\" is not understood in protobuf; send it as JSON", kind_text);
	struct error inner = ERROR_INIT;
	json_t *tree = read_message((struct bytes){ kind_text, strlen(kind_text) }, raw, 0, &inner);

	if (!tree) {
		if (inner.code == ERROR_OK)
			return broken(err);
		if (err)
			*err = inner;
		return -EINVAL;
	}
	json_object_set_new(tree, "kind", json_string(kind_text));
	json_object_set_new(tree, "apiVersion", json_string(version_text));
	*ret = tree;
	return 0;
}

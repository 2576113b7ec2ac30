/* object.c - purpose: what Services and EndpointSlices have in common when they are read from JSON. */
#include "proxy-lite/model/object_fields.h"

#include <netinet/in.h>
#include <stdarg.h>

/* What the API server accepts in names; keeps everything else out of logs, dumps and keys. */
static bool name_valid(const char *name)
{
	size_t n = strlen(name);

	if (n == 0 || n > 253)
		return false;
	for (size_t i = 0; i < n; i++) {
		char c = name[i];

		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.'))
			return false;
	}
	return true;
}

char *object_key(const json_t *object, struct error *err)
{
	const json_t *metadata = json_object_get(object, "metadata");
	const char *ns = json_string_value(json_object_get(metadata, "namespace"));
	const char *name = json_string_value(json_object_get(metadata, "name"));

	if (!ns || !name || !name_valid(ns) || !name_valid(name)) {
		error_set(err, ERROR_INVALID, "metadata: namespace \"%.80s\" and name \"%.80s\" do not name an object",
			ns ? ns : "", name ? name : "");
		return NULL;
	}
	return xasprintf("%s/%s", ns, name);
}

void field_left_out(struct str *left_out, const char *fmt, ...)
{
	va_list args;

	if (left_out->len > 400) /* enough to find the fault; an object may have thousands */
		return;
	if (left_out->len)
		str_add(left_out, "; ");
	va_start(args, fmt);
	str_vaddf(left_out, fmt, args);
	va_end(args);
}

int field_array(const json_t *parent, const char *name, const json_t **ret, struct error *err)
{
	const json_t *field = json_object_get(parent, name);

	if (field && !json_is_array(field) && !json_is_null(field))
		return error_set(err, ERROR_INVALID, "%s: is not an array", name);
	*ret = json_is_array(field) ? field : NULL;
	return 0;
}

const char *field_string(const json_t *parent, const char *name)
{
	return json_string_value(json_object_get(parent, name));
}

bool field_port(const json_t *parent, const char *name, uint16_t *ret)
{
	const json_t *field = json_object_get(parent, name);

	if (!json_is_integer(field) || json_integer_value(field) < 1 || json_integer_value(field) > 65535)
		return false;
	*ret = (uint16_t)json_integer_value(field);
	return true;
}

bool field_protocol(const json_t *parent, uint8_t *ret)
{
	const char *text = field_string(parent, "protocol");

	if (str_empty(text) || strcmp(text, "TCP") == 0)
		*ret = IPPROTO_TCP;
	else if (strcmp(text, "UDP") == 0)
		*ret = IPPROTO_UDP;
	else if (strcmp(text, "SCTP") == 0)
		*ret = IPPROTO_SCTP;
	else
		return false;
	return true;
}

char *field_port_name(const json_t *parent)
{
	const char *name = field_string(parent, "name");

	return str_empty(name) ? NULL : xstrdup(name);
}

bool object_is_ours(const json_t *object, const struct node_identity *node)
{
	const json_t *labels = json_object_get(json_object_get(object, "metadata"), "labels");
	const char *proxy = field_string(labels, "service.kubernetes.io/service-proxy-name");

	if (json_object_get(labels, "service.kubernetes.io/headless"))
		return false;
	return str_eq(proxy, node->proxy_name);
}

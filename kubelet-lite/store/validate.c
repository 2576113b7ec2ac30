/* validate.c - purpose: say what is wrong with an object: names, metadata, and every kind but Pod. */
#include "kubelet-lite/store/validate_i.h"

#include "common/base/codec.h"
#include "common/base/quantity.h"
#include "common/kube/schema.h"
#include "kubelet-lite/store/kinds.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>

enum { CONFIG_BYTES_MAX = 1024 * 1024, ANNOTATION_BYTES_MAX = 256 * 1024, PATHS = 32 };

void causes_done(struct causes *causes)
{
	for (size_t i = 0; i < causes->n; i++) {
		free(causes->v[i].field);
		free(causes->v[i].message);
	}
	free(causes->v);
	*causes = CAUSES_INIT;
}

char *causes_text(const struct causes *causes)
{
	_cleanup_(str_done) struct str s = STR_INIT;

	if (causes->n > 1)
		str_add_char(&s, '[');
	for (size_t i = 0; i < causes->n; i++)
		str_addf(&s, "%s%s: %s", i ? ", " : "", causes->v[i].field, causes->v[i].message);
	if (causes->n > 1)
		str_add_char(&s, ']');
	return str_take(&s);
}

void cause_add(struct causes *c, const char *reason, const char *field, const char *fmt, ...)
{
	_cleanup_(str_done) struct str text = STR_INIT;
	va_list args;

	if (c->n >= CAUSES_MAX)
		return;
	va_start(args, fmt);
	str_vaddf(&text, fmt, args);
	va_end(args);
	c->v = xreallocarray(c->v, c->n + 1, sizeof(*c->v));
	c->v[c->n++] = (struct cause){ reason, xstrdup(field), str_take(&text) };
}

void cause_required(struct causes *c, const char *field, const char *why)
{
	cause_add(c, "FieldValueRequired", field, why ? "Required value: %s" : "Required value%s", why ? why : "");
}

void cause_invalid(struct causes *c, const char *field, const char *value, const char *why)
{
	if (value)
		cause_add(c, "FieldValueInvalid", field, "Invalid value: \"%.120s\": %s", value, why);
	else
		cause_add(c, "FieldValueInvalid", field, "Invalid value: %s", why);
}

void cause_duplicate(struct causes *c, const char *field, const char *value)
{
	cause_add(c, "FieldValueDuplicate", field, "Duplicate value: \"%.120s\"", value);
}

const char *path_of(const char *fmt, ...)
{
	static char ring[PATHS][256];
	static unsigned next;
	char *buf = ring[next++ % PATHS];
	va_list args;

	va_start(args, fmt);
	vsnprintf(buf, sizeof(ring[0]), fmt, args);
	va_end(args);
	return buf;
}

void check_enum(struct causes *c, const json_t *object, const char *base, const char *key, const char *const *allowed)
{
	const json_t *value = json_object_get(object, key);
	_cleanup_(str_done) struct str list = STR_INIT;

	if (!json_is_string(value))
		return;
	for (size_t i = 0; allowed[i]; i++) {
		if (str_eq(allowed[i], json_string_value(value)))
			return;
		str_addf(&list, "%s\"%s\"", i ? ", " : "", allowed[i]);
	}
	cause_add(c, "FieldValueNotSupported", path_of("%s.%s", base, key),
		"Unsupported value: \"%.120s\": supported values: %s", json_string_value(value), str_get(&list));
}

void check_range(struct causes *c, const json_t *object, const char *base, const char *key, int64_t min, int64_t max)
{
	const json_t *value = json_object_get(object, key);
	int64_t n = json_integer_value(value);

	if (!json_is_integer(value) || (n >= min && n <= max))
		return;
	if (max == INT64_MAX)
		cause_add(c, "FieldValueInvalid", path_of("%s.%s", base, key),
			"Invalid value: %lld: must be greater than or equal to %lld", (long long)n, (long long)min);
	else
		cause_add(c, "FieldValueInvalid", path_of("%s.%s", base, key),
			"Invalid value: %lld: must be between %lld and %lld, inclusive", (long long)n, (long long)min,
			(long long)max);
}

void check_quantities(struct causes *c, const json_t *map, const char *base)
{
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)map, key, value) {
		_cleanup_free_ char *text = json_is_string(value) ? xstrdup(json_string_value(value))
								  : json_dumps(value, JSON_ENCODE_ANY);
		struct error err = ERROR_INIT;
		struct quantity q;

		if (quantity_parse(text ? text : "", &q, &err) < 0)
			cause_invalid(c, path_of("%s[%s]", base, key), text,
				"must be a quantity: a number and one of the suffixes n u m k M G T P E Ki Mi Gi Ti Pi Ei");
		else if (q.nano < 0)
			cause_invalid(c, path_of("%s[%s]", base, key), text, "must be greater than or equal to 0");
	}
}

static const char *port_name_problem(const char *s)
{
	size_t len = strlen(s);
	bool letter = false;

	if (len == 0 || len > 15)
		return "must be no more than 15 characters";
	for (size_t i = 0; i < len; i++) {
		if (!islower((unsigned char)s[i]) && !isdigit((unsigned char)s[i]) && s[i] != '-')
			return "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)";
		if (s[i] == '-' && (i == 0 || i == len - 1 || s[i + 1] == '-'))
			return "must not start or end with a hyphen or have two in a row";
		letter |= islower((unsigned char)s[i]) != 0;
	}
	return letter ? NULL : "must contain at least one letter (a-z)";
}

void check_port_ref(struct causes *c, const json_t *value, const char *field)
{
	if (json_is_integer(value)) {
		if (json_integer_value(value) < 1 || json_integer_value(value) > 65535)
			cause_add(c, "FieldValueInvalid", field,
				"Invalid value: %lld: must be between 1 and 65535, inclusive",
				(long long)json_integer_value(value));
	} else if (json_is_string(value)) {
		const char *why = port_name_problem(json_string_value(value));

		if (why)
			cause_invalid(c, field, json_string_value(value), why);
	} else {
		cause_required(c, field, NULL);
	}
}

bool is_ip(const char *s)
{
	unsigned char buf[16];

	return inet_pton(AF_INET, s, buf) == 1 || inet_pton(AF_INET6, s, buf) == 1;
}

const char *validate_dns_label(const char *s)
{
	size_t len = strlen(s);

	if (len > 63)
		return "must be no more than 63 characters";
	if (strchr(s, '.'))
		return "must not contain dots";
	return validate_dns_subdomain(s)
		? "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and "
		  "end with an alphanumeric character"
		: NULL;
}

const char *validate_dns_subdomain(const char *s)
{
	static const char WHY[] = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
				  "'.', and must start and end with an alphanumeric character";
	size_t len = strlen(s);

	if (len > 253)
		return "must be no more than 253 characters";
	if (len == 0)
		return WHY;
	for (size_t i = 0; i < len; i++) {
		bool alnum = islower((unsigned char)s[i]) || isdigit((unsigned char)s[i]);
		bool edge = i == 0 || i == len - 1 || s[i - 1] == '.' || s[i + 1] == '.';

		if (!alnum && (edge || (s[i] != '-' && s[i] != '.')))
			return WHY;
	}
	return NULL;
}

static const char *qualified_part_problem(const char *s, size_t len)
{
	if (len > 63)
		return "must be no more than 63 characters";
	for (size_t i = 0; i < len; i++) {
		bool alnum = isalnum((unsigned char)s[i]) != 0;

		if (!alnum && (i == 0 || i == len - 1 || !strchr("-_.", s[i])))
			return "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
			       "alphanumeric character";
	}
	return NULL;
}

const char *validate_label_key(const char *s)
{
	const char *slash = strchr(s, '/');

	if (slash) {
		_cleanup_free_ char *prefix = xstrndup(s, (size_t)(slash - s));
		const char *why = validate_dns_subdomain(prefix);

		if (why)
			return why;
		s = slash + 1;
	}
	return *s ? qualified_part_problem(s, strlen(s)) : "name part must be non-empty";
}

const char *validate_label_value(const char *s)
{
	return qualified_part_problem(s, strlen(s));
}

static void metadata_maps(const json_t *meta, struct causes *c)
{
	json_t *value;
	const char *key, *why;
	size_t total = 0;

	json_object_foreach (json_object_get(meta, "labels"), key, value) {
		why = validate_label_key(key);
		if (why)
			cause_invalid(c, "metadata.labels", key, why);
		why = json_is_string(value) ? validate_label_value(json_string_value(value)) : NULL;
		if (why)
			cause_invalid(c, path_of("metadata.labels[%s]", key), json_string_value(value), why);
	}
	json_object_foreach (json_object_get(meta, "annotations"), key, value) {
		_cleanup_free_ char *lower = xstrdup(key);

		for (char *p = lower; *p; p++)
			*p = (char)tolower((unsigned char)*p);
		why = validate_label_key(lower);
		if (why)
			cause_invalid(c, "metadata.annotations", key, why);
		total += strlen(key) + json_string_length(value);
	}
	if (total > ANNOTATION_BYTES_MAX)
		cause_add(c, "FieldValueTooLong", "metadata.annotations", "Too long: may not be more than %d bytes",
			ANNOTATION_BYTES_MAX);
}

static void metadata(enum object_kind kind, const json_t *tree, struct causes *c)
{
	const json_t *meta = json_object_get(tree, "metadata");
	const char *name = json_str_at(meta, "name", ""), *ns = json_str_at(meta, "namespace", "");
	const char *why;

	if (!*name) {
		cause_required(c, "metadata.name", "name or generateName is required");
	} else {
		why = kind == KIND_NAMESPACE || kind == KIND_SERVICE ? validate_dns_label(name) : validate_dns_subdomain(name);
		if (kind == KIND_SERVICE && !why && isdigit((unsigned char)*name))
			why = "a DNS-1035 label must start with an alphabetic character";
		if (why)
			cause_invalid(c, "metadata.name", name, why);
	}
	why = kind_info(kind)->namespaced ? validate_dns_label(ns) : NULL;
	if (kind_info(kind)->namespaced && (!*ns || why))
		cause_invalid(c, "metadata.namespace", ns, why ? why : "must not be empty");
	if (!kind_info(kind)->namespaced && *ns)
		cause_add(c, "FieldValueForbidden", "metadata.namespace", "Forbidden: not allowed on this type");
	metadata_maps(meta, c);
}

static void service_port(const json_t *port, size_t i, size_t n, const json_t *ports, struct causes *c)
{
	static const char *const protocols[] = { "SCTP", "TCP", "UDP", NULL };
	const char *base = path_of("spec.ports[%zu]", i), *name = json_str_at(port, "name", "");
	json_t *other;
	size_t j;

	if (n > 1 && !*name)
		cause_required(c, path_of("%s.name", base), NULL);
	if (*name && validate_dns_label(name))
		cause_invalid(c, path_of("%s.name", base), name, validate_dns_label(name));
	if (!json_object_get(port, "port"))
		cause_required(c, path_of("%s.port", base), NULL);
	check_range(c, port, base, "port", 1, 65535);
	check_range(c, port, base, "nodePort", 0, 65535);
	check_enum(c, port, base, "protocol", protocols);
	if (json_object_get(port, "targetPort"))
		check_port_ref(c, json_object_get(port, "targetPort"), path_of("%s.targetPort", base));
	json_array_foreach ((json_t *)ports, j, other) {
		if (j >= i)
			break;
		if (*name && str_eq(json_str_at(other, "name", ""), name))
			cause_duplicate(c, path_of("%s.name", base), name);
		if (json_int_at(other, "port", -1) == json_int_at(port, "port", -2) &&
			str_eq(json_str_at(other, "protocol", ""), json_str_at(port, "protocol", "")))
			cause_duplicate(c, base, path_of("%lld/%s", (long long)json_int_at(port, "port", 0),
				json_str_at(port, "protocol", "")));
	}
}

static void service_addresses(const json_t *spec, struct causes *c)
{
	const char *ip = json_str_at(spec, "clusterIP", ""), *type = json_str_at(spec, "type", "");
	json_t *value;
	size_t i;

	if (*ip && !str_eq(ip, "None") && !is_ip(ip))
		cause_invalid(c, "spec.clusterIP", ip, "must be an IP address, \"None\" or empty");
	if (str_eq(ip, "None") && !str_eq(type, "ClusterIP") && !str_eq(type, "ExternalName"))
		cause_invalid(c, "spec.clusterIP", ip, "may not be set to 'None' for NodePort and LoadBalancer services");
	json_array_foreach (json_object_get(spec, "externalIPs"), i, value)
		if (!json_is_string(value) || !is_ip(json_string_value(value)))
			cause_invalid(c, path_of("spec.externalIPs[%zu]", i), json_string_value(value), "must be an IP address");
	json_array_foreach (json_object_get(spec, "loadBalancerSourceRanges"), i, value) {
		_cleanup_free_ char *text = xstrdup(json_is_string(value) ? json_string_value(value) : "");
		char *slash = strchr(text, '/');
		char *end = NULL;
		long bits = slash ? strtol(slash + 1, &end, 10) : -1;

		if (slash)
			*slash = '\0';
		if (!slash || !is_ip(text) || end == slash + 1 || *end || bits < 0 || bits > (strchr(text, ':') ? 128 : 32))
			cause_invalid(c, path_of("spec.loadBalancerSourceRanges[%zu]", i), json_string_value(value),
				"must be an address range like 10.0.0.0/8");
	}
}

static void service(const json_t *tree, struct causes *c)
{
	static const char *const types[] = { "ClusterIP", "ExternalName", "LoadBalancer", "NodePort", NULL };
	static const char *const affinities[] = { "ClientIP", "None", NULL };
	static const char *const policies[] = { "Cluster", "Local", NULL };
	const json_t *spec = json_object_get(tree, "spec"), *ports = json_object_get(spec, "ports");
	const char *type = json_str_at(spec, "type", "");
	const json_t *timeout = json_at(spec, "sessionAffinityConfig.clientIP");
	json_t *value;
	const char *key;
	size_t i;

	if (!json_is_object(spec)) {
		cause_required(c, "spec", NULL);
		return;
	}
	check_enum(c, spec, "spec", "type", types);
	check_enum(c, spec, "spec", "sessionAffinity", affinities);
	check_enum(c, spec, "spec", "externalTrafficPolicy", policies);
	check_enum(c, spec, "spec", "internalTrafficPolicy", policies);
	check_range(c, timeout, "spec.sessionAffinityConfig.clientIP", "timeoutSeconds", 1, 86400);
	if (str_eq(type, "ExternalName")) {
		const char *name = json_str_at(spec, "externalName", "");

		if (!*name || validate_dns_subdomain(name))
			cause_invalid(c, "spec.externalName", name, validate_dns_subdomain(name));
	} else if (json_array_size(ports) == 0 && !str_eq(json_str_at(spec, "clusterIP", ""), "None")) {
		cause_required(c, "spec.ports", NULL);
	}
	json_array_foreach ((json_t *)ports, i, value)
		service_port(value, i, json_array_size(ports), ports, c);
	json_object_foreach (json_object_get(spec, "selector"), key, value)
		if (validate_label_key(key) || !json_is_string(value) || validate_label_value(json_string_value(value)))
			cause_invalid(c, path_of("spec.selector[%s]", key), json_string_value(value), "must be a label key and value");
	service_addresses(spec, c);
}

/* Keys of ConfigMaps and Secrets become file names. */
static const char *data_key_problem(const char *key)
{
	if (strlen(key) > 253)
		return "must be no more than 253 characters";
	if (!*key || strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != strlen(key))
		return "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
	return str_eq(key, ".") || str_starts(key, "..") ? "must not be '.' or start with '..'" : NULL;
}

static void data_map(const json_t *map, const char *base, bool coded, size_t *total, struct causes *c)
{
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)map, key, value) {
		_cleanup_free_ void *bytes = NULL;
		size_t len = json_string_length(value);

		if (data_key_problem(key))
			cause_invalid(c, path_of("%s[%s]", base, key), key, data_key_problem(key));
		if (coded && json_is_string(value) && base64_decode(json_string_value(value), len, &bytes, &len) < 0)
			cause_invalid(c, path_of("%s[%s]", base, key), NULL, "must be base64 (use stringData for plain text)");
		*total += len;
	}
}

static void config(enum object_kind kind, const json_t *tree, struct causes *c)
{
	size_t total = 0;
	const json_t *data = json_object_get(tree, "data"), *binary = json_object_get(tree, "binaryData");
	const char *key;
	json_t *value;

	data_map(data, "data", kind == KIND_SECRET, &total, c);
	data_map(binary, "binaryData", true, &total, c);
	json_object_foreach ((json_t *)binary, key, value)
		if (json_object_get(data, key))
			cause_invalid(c, path_of("binaryData[%s]", key), key, "duplicate of key present in data");
	if (total > CONFIG_BYTES_MAX)
		cause_add(c, "FieldValueTooLong", "data", "Too long: may not be more than %d bytes", CONFIG_BYTES_MAX);
}

static void endpoint_slice(const json_t *tree, struct causes *c)
{
	static const char *const types[] = { "IPv4", "IPv6", "FQDN", NULL };
	const char *type = json_str_at(tree, "addressType", "");
	json_t *endpoint, *address, *port;
	size_t i, j;

	if (!*type)
		cause_required(c, "addressType", "IPv4, IPv6 or FQDN");
	check_enum(c, tree, "", "addressType", types);
	json_array_foreach (json_object_get(tree, "endpoints"), i, endpoint) {
		if (json_array_size(json_object_get(endpoint, "addresses")) == 0)
			cause_required(c, path_of("endpoints[%zu].addresses", i), NULL);
		json_array_foreach (json_object_get(endpoint, "addresses"), j, address) {
			const char *text = json_is_string(address) ? json_string_value(address) : "";
			bool fits = str_eq(type, "FQDN") ? !validate_dns_subdomain(text)
				: is_ip(text) && (strchr(text, ':') != NULL) == str_eq(type, "IPv6");

			if (!fits)
				cause_invalid(c, path_of("endpoints[%zu].addresses[%zu]", i, j), text,
					"must be an address of the slice's addressType");
		}
	}
	json_array_foreach (json_object_get(tree, "ports"), i, port)
		check_range(c, port, path_of("ports[%zu]", i), "port", 1, 65535);
}

static void type_problem(void *data, const char *path, const char *expected, const char *got)
{
	cause_add(data, "FieldValueTypeInvalid", path, "Invalid type: expected %s, got %s", expected, got);
}

void validate_object(enum object_kind kind, const json_t *tree, struct causes *causes)
{
	struct schema schema = schema_of(kind_info(kind)->kind);
	struct schema_problems problems = { .data = causes, .wrong_type = type_problem };

	schema_check(&schema, tree, &problems);
	if (causes->n > 0)
		return; /* further checks would only repeat it */
	metadata(kind, tree, causes);
	if (kind == KIND_POD)
		validate_pod(tree, causes);
	else if (kind == KIND_SERVICE)
		service(tree, causes);
	else if (kind == KIND_CONFIG_MAP || kind == KIND_SECRET)
		config(kind, tree, causes);
	else if (kind == KIND_ENDPOINT_SLICE)
		endpoint_slice(tree, causes);
}

static void unknown_path(void *data, const char *path)
{
	strv_add(data, path);
}

void validate_unknown(enum object_kind kind, const json_t *tree, struct strv *ret_paths)
{
	struct schema schema = schema_of(kind_info(kind)->kind);
	struct schema_problems problems = { .data = ret_paths, .unknown = unknown_path };

	schema_check(&schema, tree, &problems);
}

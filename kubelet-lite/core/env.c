/* env.c - purpose: the environment of a container, and $(VAR) references. */
#include "kubelet-lite/core/env.h"

#include <ctype.h>

void env_done(struct env *env)
{
	strv_done(&env->names);
	strv_done(&env->values);
	map_done(&env->index);
}

static size_t position(const struct env *env, const char *name)
{
	return (size_t)(uintptr_t)map_get(&env->index, name);
}

const char *env_get(const struct env *env, const char *name)
{
	size_t at = position(env, name);

	return at ? env->values.v[at - 1] : NULL;
}

/* Takes `value`. */
static void env_set(struct env *env, const char *name, char *value)
{
	size_t at = position(env, name);

	if (at) {
		free(env->values.v[at - 1]);
		env->values.v[at - 1] = value;
		return;
	}
	strv_add(&env->names, name);
	strv_add_take(&env->values, value);
	map_put(&env->index, name, (void *)(uintptr_t)env->names.n);
}

/* `env` first, then `fallback` (may be NULL). */
static char *expand(const char *text, const struct env *env, const struct env *fallback, bool *ret_missing)
{
	struct str out = STR_INIT;

	for (const char *p = text; *p;) {
		const char *end = p[0] == '$' && p[1] == '(' ? strchr(p, ')') : NULL;

		if (p[0] == '$' && p[1] == '$') {
			str_add_char(&out, '$');
			p += 2;
		} else if (!end) {
			str_add_char(&out, *p++);
		} else {
			_cleanup_free_ char *name = xstrndup(p + 2, (size_t)(end - p - 2));
			const char *value = env_get(env, name);

			if (!value && fallback)
				value = env_get(fallback, name);
			if (value)
				str_add(&out, value);
			else
				str_addf(&out, "$(%s)", name);
			if (!value && ret_missing)
				*ret_missing = true;
			p = end + 1;
		}
	}
	return str_take(&out);
}

char *env_expand(const char *text, const struct env *env, bool *ret_missing)
{
	return expand(text, env, NULL, ret_missing);
}

static char *joined(const struct str_list *list)
{
	struct str s = STR_INIT;

	for (size_t i = 0; list && i < list->n; i++)
		str_addf(&s, "%s%s", i ? "," : "", list->v[i]);
	return str_take(&s);
}

/* The quoted key of metadata.labels['key']. */
static char *subscript(const char *path, const char *prefix)
{
	size_t n = strlen(prefix), len = strlen(path);

	if (!str_starts(path, prefix) || len < n + 4 || path[n] != '[' || path[n + 1] != '\'' || !str_ends(path, "']"))
		return NULL;
	return xstrndup(path + n + 2, len - n - 4);
}

/* As Go's %q: what labels and annotations files have. */
static void add_quoted(struct str *out, const char *text)
{
	str_add_char(out, '"');
	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		if (*p == '"' || *p == '\\')
			str_addf(out, "\\%c", *p);
		else if (*p == '\n')
			str_add(out, "\\n");
		else if (*p == '\t')
			str_add(out, "\\t");
		else if (*p == '\r')
			str_add(out, "\\r");
		else if (*p < 0x20 || *p == 0x7f)
			str_addf(out, "\\x%02x", *p);
		else
			str_add_char(out, (char)*p);
	}
	str_add_char(out, '"');
}

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct kv *)a)->key, ((const struct kv *)b)->key);
}

static char *map_text(const struct kv_list *map)
{
	_cleanup_free_ struct kv *sorted = xmemdup(map->v, map->n * sizeof(*map->v));
	struct str s = STR_INIT;

	if (map->n)
		qsort(sorted, map->n, sizeof(*sorted), by_key);
	for (size_t i = 0; i < map->n; i++) {
		str_addf(&s, "%s%s=", i ? "\n" : "", sorted[i].key);
		add_quoted(&s, sorted[i].value);
	}
	return str_take(&s);
}

char *env_field(const struct pod *pod, const char *path, const struct env_sources *src)
{
	const struct {
		const char *path;
		const char *value;
	} plain[] = {
		{ "metadata.name", pod->name },
		{ "metadata.namespace", pod->ns },
		{ "metadata.uid", pod->uid },
		{ "spec.nodeName", src->node_name },
		{ "spec.serviceAccountName", pod->service_account },
		{ "status.hostIP", src->host_ip },
		{ "status.podIP", src->pod_ips && src->pod_ips->n ? src->pod_ips->v[0] : "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(plain); i++)
		if (str_eq(path, plain[i].path))
			return xstrdup(plain[i].value ? plain[i].value : "");
	if (str_eq(path, "status.hostIPs"))
		return joined(src->host_ips);
	if (str_eq(path, "status.podIPs"))
		return joined(src->pod_ips);
	if (str_eq(path, "metadata.labels"))
		return map_text(&pod->labels);
	if (str_eq(path, "metadata.annotations"))
		return map_text(&pod->annotations);
	_cleanup_free_ char *label = subscript(path, "metadata.labels");
	_cleanup_free_ char *annotation = subscript(path, "metadata.annotations");
	if (!label && !annotation)
		return NULL;
	const char *value = label ? kv_get(&pod->labels, label) : kv_get(&pod->annotations, annotation);
	return xstrdup(value ? value : "");
}

char *env_resource(const struct container *container, const struct resource_ref *ref, const struct env_sources *src)
{
	bool limit = str_starts(ref->resource, "limits.");
	const char *name = strchr(ref->resource, '.') + 1;
	struct quantity amount = QUANTITY_ZERO;

	if (!resource_get(limit ? &container->limits : &container->requests, name, &amount) && limit) {
		if (str_eq(name, "cpu"))
			amount = src->node_cpu;
		else if (str_eq(name, "memory"))
			amount = src->node_memory;
		else if (str_eq(name, "ephemeral-storage"))
			amount = src->node_storage;
	}
	return xasprintf("%lld", (long long)quantity_divide(amount, ref->divisor));
}

static const char *kind_word(bool secret)
{
	return secret ? "secret" : "configmap";
}

static int add_from(const struct env_from *from, const struct env_sources *src, struct env *env, struct error *err)
{
	_cleanup_(keyed_done) struct keyed data = { 0 };

	if (!src->data_of(src->data, from->secret, from->object, &data))
		return from->optional ? 0
				      : error_set(err, ERROR_NOT_FOUND, "%s \"%s\" not found", kind_word(from->secret),
						from->object);
	for (size_t i = 0; i < data.n; i++) {
		_cleanup_free_ char *name = xasprintf("%s%s", from->prefix, data.v[i].key);

		if (!data.v[i].binary && !strchr(name, '='))
			env_set(env, name, xstrdup(data.v[i].data));
	}
	return 0;
}

/* NULL in *ret: an optional value that is not there. */
static int referenced(
	const struct pod *pod, const struct env_var *v, const struct env_sources *src, char **ret, struct error *err)
{
	_cleanup_(keyed_done) struct keyed data = { 0 };
	bool secret = v->kind == ENV_SECRET, found = src->data_of(src->data, secret, v->object, &data);
	const struct keyed_item *item = keyed_get(&data, v->key);

	if (item && !item->binary)
		*ret = xstrdup(item->data);
	if (*ret || v->optional)
		return 0;
	if (!found)
		return error_set(err, ERROR_NOT_FOUND, "%s \"%s\" not found", kind_word(secret), v->object);
	return error_set(err, ERROR_NOT_FOUND, "couldn't find key %s in %s %s/%s", v->key,
		secret ? "Secret" : "ConfigMap", pod->ns, v->object);
}

static int value_of(const struct pod *pod, const struct container *container, const struct env_var *v,
	const struct env_sources *src, const struct env *env, char **ret, struct error *err)
{
	int other;

	switch (v->kind) {
	case ENV_VALUE:
		*ret = expand(v->value, env, src->services, NULL);
		return 0;
	case ENV_FIELD:
		*ret = env_field(pod, v->field.path, src);
		return *ret ? 0 : error_set(err, ERROR_INVALID, "unsupported fieldPath: %s", v->field.path);
	case ENV_RESOURCE:
		other = *v->resource.container ? pod_container(pod, v->resource.container) : -1;
		if (*v->resource.container && other < 0)
			return error_set(err, ERROR_INVALID, "container %s not found", v->resource.container);
		*ret = env_resource(other < 0 ? container : &pod->containers[other], &v->resource, src);
		return 0;
	default:
		return referenced(pod, v, src, ret, err);
	}
}

int env_build(const struct pod *pod, const struct container *container, const struct env_sources *src, struct env *ret,
	struct error *err)
{
	_cleanup_(env_done) struct env env = { 0 };
	int r = 0;

	for (size_t i = 0; i < container->n_env_from && r == 0; i++)
		r = add_from(&container->env_from[i], src, &env, err);
	for (size_t i = 0; i < container->n_env && r == 0; i++) {
		char *value = NULL;

		r = value_of(pod, container, &container->env[i], src, &env, &value, err);
		if (value)
			env_set(&env, container->env[i].name, value);
	}
	if (r < 0)
		return r;
	for (size_t i = 0; i < src->services->names.n; i++)
		if (!env_get(&env, src->services->names.v[i]))
			env_set(&env, src->services->names.v[i], xstrdup(src->services->values.v[i]));
	*ret = env;
	env = (struct env){ 0 };
	return 0;
}

void env_static(const struct container *container, struct env *ret)
{
	for (size_t i = 0; i < container->n_env; i++)
		if (container->env[i].kind == ENV_VALUE)
			env_set(ret, container->env[i].name, env_expand(container->env[i].value, ret, NULL));
}

static char *variable_name(const char *service)
{
	char *name = xstrdup(service);

	for (char *p = name; *p; p++)
		*p = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
	return name;
}

static void add_port(struct env *env, const char *name, const char *ip, const char *host, const json_t *port)
{
	const char *protocol = json_str_at(port, "protocol", "TCP");
	_cleanup_free_ char *lower = xstrdup(protocol);
	long long number = json_int_at(port, "port", 0);
	_cleanup_free_ char *prefix = xasprintf("%s_PORT_%lld_%s", name, number, protocol);
	const char *suffixes[] = { "", "_PROTO", "_PORT", "_ADDR" };

	for (char *p = lower; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
		_cleanup_free_ char *key = xasprintf("%s%s", prefix, suffixes[i]);

		env_set(env, key,
			i == 0	 ? xasprintf("%s://%s:%lld", lower, host, number)
			: i == 1 ? xstrdup(lower)
			: i == 2 ? xasprintf("%lld", number)
				 : xstrdup(ip));
	}
}

void env_add_service(struct env *env, const json_t *service)
{
	const char *ip = json_str_at(service, "spec.clusterIP", "");
	const json_t *ports = json_at(service, "spec.ports");
	_cleanup_free_ char *name = variable_name(json_str_at(service, "metadata.name", ""));
	_cleanup_free_ char *host = strchr(ip, ':') ? xasprintf("[%s]", ip) : xstrdup(ip);

	if (!*ip || str_eq(ip, "None") || !*name || !json_array_size(ports))
		return;
	for (size_t i = 0; i < json_array_size(ports); i++) {
		const json_t *port = json_array_get(ports, i);
		const char *port_name = json_str_at(port, "name", "");
		long long number = json_int_at(port, "port", 0);

		if (i == 0) {
			_cleanup_free_ char *key_host = xasprintf("%s_SERVICE_HOST", name);
			_cleanup_free_ char *key_port = xasprintf("%s_SERVICE_PORT", name);

			env_set(env, key_host, xstrdup(ip));
			env_set(env, key_port, xasprintf("%lld", number));
		}
		if (*port_name) {
			_cleanup_free_ char *upper = variable_name(port_name);
			_cleanup_free_ char *key = xasprintf("%s_SERVICE_PORT_%s", name, upper);

			env_set(env, key, xasprintf("%lld", number));
		}
	}
	for (size_t i = 0; i < json_array_size(ports); i++) {
		const json_t *port = json_array_get(ports, i);

		if (i == 0) {
			const char *protocol = json_str_at(port, "protocol", "TCP");
			_cleanup_free_ char *key = xasprintf("%s_PORT", name);
			_cleanup_free_ char *lower = xstrdup(protocol);

			for (char *p = lower; *p; p++)
				*p = (char)tolower((unsigned char)*p);
			env_set(env, key,
				xasprintf("%s://%s:%lld", lower, host, (long long)json_int_at(port, "port", 0)));
		}
		add_port(env, name, ip, host, port);
	}
}

/* hosts.c - purpose: where to fetch a registry's images from: mirrors and TLS by certs.d/<host>/hosts.toml. */
#include "runtime-lite/image/hosts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "common/sys/file.h"
#include "runtime-lite/image/toml.h"

enum { ENDPOINTS_MAX = 32 };

static void endpoint_done(struct endpoint *e)
{
	free(e->url);
	free(e->host);
	free(e->client_cert);
	free(e->client_key);
	strv_done(&e->ca);
	strv_done(&e->headers);
	*e = (struct endpoint){ 0 };
}

void endpoints_done(struct endpoints *e)
{
	for (size_t i = 0; i < e->n; i++)
		endpoint_done(&e->v[i]);
	free(e->v);
	*e = (struct endpoints){ 0 };
}

bool registry_is_local(const char *registry)
{
	size_t n = registry[0] == '[' ? strcspn(registry, "]") + 1 : strcspn(registry, ":/");

	return (n == 9 && memcmp(registry, "localhost", 9) == 0) || (n == 5 && memcmp(registry, "[::1]", 5) == 0) ||
		(str_starts(registry, "127.") && strspn(registry, "0123456789.") == n);
}

/* The address behind a registry's name. */
static const char *server_of(const char *registry)
{
	return str_eq(registry, "docker.io") ? "registry-1.docker.io" : registry;
}

/* Scheme, host and "/v2" of an URL as people write it. */
static int set_url(struct endpoint *e, const char *text, bool override_path, const char *key, struct error *err)
{
	_cleanup_free_ char *url = strstr(text, "://") ? xstrdup(text) : xasprintf("https://%s", text);
	size_t n = strlen(url);

	if (!str_starts(url, "http://") && !str_starts(url, "https://"))
		return error_set(err, ERROR_INVALID, "%s \"%.200s\" is not an http or https URL", key, text);
	for (const char *p = url; *p; p++)
		if (*p <= ' ' || *p == 0x7f || *p == '"' || *p == '@' || *p == '?' || *p == '#')
			return error_set(err, ERROR_INVALID, "%s \"%.200s\" has a character that an endpoint's URL cannot have", key, text);
	const char *host = strstr(url, "://") + 3;
	while (url + n > host && url[n - 1] == '/')
		url[--n] = '\0';
	size_t host_len = strcspn(host, "/");
	if (host_len == 0)
		return error_set(err, ERROR_INVALID, "%s \"%.200s\" names no host", key, text);
	e->host = xstrndup(host, host_len);
	e->url = override_path || str_ends(url, "/v2") ? xstrdup(url) : xasprintf("%s/v2", url);
	return 0;
}

static char *file_path(const char *dir, const char *name)
{
	return name[0] == '/' ? xstrdup(name) : xasprintf("%s/%s", dir, name);
}

static int take_ca(struct endpoint *e, const json_t *ca, const char *dir, struct error *err)
{
	if (json_is_string(ca)) {
		strv_add_take(&e->ca, file_path(dir, json_string_value(ca)));
		return 0;
	}
	if (ca && !json_is_array(ca))
		return error_set(err, ERROR_INVALID, "ca is not a file or a list of files");
	for (size_t i = 0; i < json_array_size(ca); i++) {
		int r = json_is_array(json_array_get(ca, i)) ? -EINVAL : take_ca(e, json_array_get(ca, i), dir, err);

		if (r < 0)
			return error_set(err, ERROR_INVALID, "ca is not a file or a list of files");
	}
	return 0;
}

/* "both.pem", ["a.pem", ...] or [["cert.pem", "key.pem"], ...]: the first counts, libcurl takes one. */
static int take_client(struct endpoint *e, const json_t *client, const char *dir, struct error *err)
{
	const json_t *first = json_is_array(client) ? json_array_get(client, 0) : client;
	const char *cert = json_string_value(json_is_array(first) ? json_array_get(first, 0) : first);
	const char *key = json_is_array(first) ? json_string_value(json_array_get(first, 1)) : cert;

	if (!client || (json_is_array(client) && json_array_size(client) == 0))
		return 0;
	if (!cert)
		return error_set(err, ERROR_INVALID, "client is not a file, or a list of pairs of certificate and key");
	e->client_cert = file_path(dir, cert);
	e->client_key = file_path(dir, str_empty(key) ? cert : key);
	return 0;
}

static int take_capabilities(struct endpoint *e, const json_t *list, struct error *err)
{
	if (!list) {
		e->pull = e->resolve = true;
		return 0;
	}
	if (!json_is_array(list))
		return error_set(err, ERROR_INVALID, "capabilities is not a list");
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *name = json_string_value(json_array_get(list, i));

		if (str_eq(name, "pull"))
			e->pull = true;
		else if (str_eq(name, "resolve"))
			e->resolve = true;
		else if (!str_eq(name, "push"))
			return error_set(err, ERROR_INVALID, "capability \"%.50s\" is not pull, resolve or push", name ? name : "");
	}
	return 0;
}

static int take_headers(struct endpoint *e, json_t *headers, struct error *err)
{
	const char *name;
	json_t *v;

	if (headers && !json_is_object(headers))
		return error_set(err, ERROR_INVALID, "header is not a table");
	json_object_foreach(headers, name, v) {
		for (size_t i = 0; i < (json_is_array(v) ? json_array_size(v) : 1); i++) {
			const char *text = json_string_value(json_is_array(v) ? json_array_get(v, i) : v);

			if (!text || strpbrk(text, "\r\n") || !*name || strpbrk(name, "\r\n: "))
				return error_set(err, ERROR_INVALID, "header \"%.100s\" is not a header with a value of one line", name);
			strv_add_take(&e->headers, xasprintf("%s: %s", name, text));
		}
	}
	return 0;
}

static int take_endpoint(struct endpoint *e, const char *url, const json_t *table, const char *dir, const char *key,
	struct error *err)
{
	int r = set_url(e, url, json_is_true(json_object_get(table, "override_path")), key, err);

	if (r == 0)
		r = take_capabilities(e, json_object_get(table, "capabilities"), err);
	if (r == 0)
		r = take_ca(e, json_object_get(table, "ca"), dir, err);
	if (r == 0)
		r = take_client(e, json_object_get(table, "client"), dir, err);
	if (r == 0)
		r = take_headers(e, json_object_get(table, "header"), err);
	e->skip_verify = json_is_true(json_object_get(table, "skip_verify"));
	return r;
}

static struct endpoint *grow(struct endpoints *e)
{
	e->v = xreallocarray(e->v, e->n + 1, sizeof(*e->v));
	e->v[e->n] = (struct endpoint){ 0 };
	return &e->v[e->n++];
}

static int add_mirrors(struct endpoints *list, const char *registry, json_t *hosts, const char *dir, struct error *err)
{
	const char *url;
	json_t *table;

	if (hosts && (!json_is_object(hosts) || json_object_size(hosts) > ENDPOINTS_MAX))
		return error_set(err, ERROR_INVALID, "host is not a table of at most %d hosts", ENDPOINTS_MAX);
	json_object_foreach(hosts, url, table) {
		struct endpoint *e = grow(list);

		if (!json_is_object(table))
			return error_set(err, ERROR_INVALID, "host.\"%.200s\" is not a table", url);
		int r = take_endpoint(e, url, table, dir, "host", err);
		if (r < 0)
			return error_prefix(err, "host.\"%.200s\"", url);
		e->mirror = strcmp(e->host, server_of(registry)) != 0;
	}
	return 0;
}

int hosts_parse(const char *registry, const char *text, size_t len, const char *dir, bool plain_http, struct endpoints *ret,
	struct error *err)
{
	_cleanup_json_ json_t *root = NULL;
	_cleanup_(endpoints_done) struct endpoints list = { 0 };
	int r = text ? toml_read(text, len, &root, err) : 0;

	if (r == 0)
		r = add_mirrors(&list, registry, json_object_get(root, "host"), dir, err);
	if (r < 0)
		return r;
	const json_t *server = json_object_get(root, "server");
	_cleanup_free_ char *own = xasprintf("%s://%s", plain_http ? "http" : "https", server_of(registry));
	if (server && !json_is_string(server))
		return error_set(err, ERROR_INVALID, "server is not a string");
	/* The top of the file has the server's own settings. */
	struct endpoint *e = grow(&list);
	r = take_endpoint(e, server && *json_string_value(server) ? json_string_value(server) : own, root, dir, "server", err);
	if (r < 0)
		return r;
	/* A server that is named as a host as well was tried with those settings. */
	for (size_t i = 0; i + 1 < list.n; i++) {
		if (strcmp(list.v[i].url, e->url) == 0) {
			endpoint_done(e);
			list.n--;
			break;
		}
	}
	*ret = list;
	list = (struct endpoints){ 0 };
	return 0;
}

/* Docker's layout: every *.crt beside is a CA for the server itself. */
static void add_docker_cas(const char *dir, struct endpoints *list)
{
	DIR *d = opendir(dir);
	struct endpoint *server = &list->v[list->n - 1];

	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
		if (!str_ends(e->d_name, ".crt"))
			continue;
		_cleanup_free_ char *path = file_path(dir, e->d_name);

		if (!strv_has(&server->ca, path))
			strv_add_take(&server->ca, steal(path));
	}
	if (d)
		closedir(d);
}

/* Any *.crt there? Then even a local registry speaks TLS. */
static bool has_cas(const char *dir)
{
	DIR *d = opendir(dir);
	bool found = false;

	for (struct dirent *e = d ? readdir(d) : NULL; e && !found; e = readdir(d))
		found = str_ends(e->d_name, ".crt");
	if (d)
		closedir(d);
	return found;
}

int hosts_load(const char *config_dir, const char *registry, bool plain_http, struct endpoints *ret, struct error *err)
{
	const char *colon = strrchr(registry, ':');
	size_t host_len = colon && !strchr(colon, ']') ? (size_t)(colon - registry) : strlen(registry);
	_cleanup_free_ char *exact = xasprintf("%s/%s", config_dir, registry);
	_cleanup_free_ char *escaped = registry[host_len] ?
		xasprintf("%s/%.*s_%s_", config_dir, (int)host_len, registry, registry + host_len + 1) : xstrdup(exact);
	_cleanup_free_ char *fallback = xasprintf("%s/_default", config_dir);
	const char *dirs[] = { exact, escaped, fallback };

	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		_cleanup_free_ char *path = xasprintf("%s/hosts.toml", dirs[i]);
		_cleanup_free_ char *text = NULL;
		struct error local = ERROR_INIT;
		size_t len = 0;
		bool cas = i < 2 && has_cas(dirs[i]);
		int r = file_read(AT_FDCWD, path, TOML_SIZE_MAX, &text, &len, &local);

		if (r < 0 && local.code != ERROR_NOT_FOUND)
			return error_set(err, local.code, "%s", local.text);
		if (r < 0 && !cas)
			continue;
		r = hosts_parse(registry, text, len, dirs[i], plain_http && !cas, ret, err);
		if (r < 0)
			return error_prefix(err, "%s", path);
		if (cas)
			add_docker_cas(dirs[i], ret);
		return 0;
	}
	return hosts_parse(registry, NULL, 0, config_dir, plain_http, ret, err);
}

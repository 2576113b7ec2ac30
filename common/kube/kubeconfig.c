/* kubeconfig.c - purpose: how to reach a Kubernetes API server, read from a kubeconfig file. */
#include "common/kube/kubeconfig.h"

#include "common/base/codec.h"
#include "common/sys/file.h"
#include "common/wire/json.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>

enum { FILE_MAX = 1024 * 1024 };

void kubeconfig_done(struct kubeconfig *c)
{
	free(c->host);
	free(c->server_name);
	free(c->ca_pem);
	free(c->cert_pem);
	if (c->key_pem)
		explicit_bzero(c->key_pem, strlen(c->key_pem));
	free(c->key_pem);
	free(c->token);
	strv_done(&c->files);
	*c = (struct kubeconfig){ 0 };
}

/* Entry of that name in a list of {name: ..., <key>: {...}}; NULL when there is none. */
static const json_t *named(const json_t *root, const char *list, const char *name, const char *key)
{
	const json_t *array = json_object_get(root, list), *item;
	size_t i;

	json_array_foreach(array, i, item)
	{
		if (str_eq(json_str_at(item, "name", NULL), name))
			return json_object_get(item, key);
	}
	return NULL;
}

static int read_beside(struct kubeconfig *c, const char *path, const char *file, char **ret, struct error *err)
{
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *full =
		*file == '/' || !slash ? xstrdup(file) : xasprintf("%.*s/%s", (int)(slash - path), path, file);
	int r = file_read(AT_FDCWD, full, FILE_MAX, ret, NULL, err);

	strv_add(&c->files, full);
	return r < 0 ? error_prefix(err, "%s", full) : 0;
}

/* "<name>-data" (base64) goes before "<name>" (a file), as in client-go. */
static int read_part(
	struct kubeconfig *c, const char *path, const json_t *object, const char *name, char **ret, struct error *err)
{
	char data_name[64];
	const char *data, *file = json_string_value(json_object_get(object, name));
	void *bytes;
	size_t len;
	int r;

	snprintf(data_name, sizeof(data_name), "%s-data", name);
	data = json_string_value(json_object_get(object, data_name));
	if (str_empty(data))
		return str_empty(file) ? 0 : read_beside(c, path, file, ret, err);
	r = base64_decode(data, strlen(data), &bytes, &len);
	if (r < 0)
		return error_set(err, ERROR_INVALID, "%s: is not base64", data_name);
	*ret = xstrndup(bytes, len);
	free(bytes);
	return 0;
}

static int refuse(const json_t *object, const char *const *names, const char *what, struct error *err)
{
	for (; *names; names++) {
		const json_t *value = json_object_get(object, *names);

		if (value && !json_is_null(value) && !json_is_false(value) &&
			!(json_is_string(value) && !*json_string_value(value)))
			return error_set(err, ERROR_UNIMPLEMENTED, "%s: %s is not supported", what, *names);
	}
	return 0;
}

static int resolve(const char *host, const char *port, struct kubeconfig *c, struct error *err)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG }, *found;
	int r = getaddrinfo(host, port, &hints, &found);

	if (r == EAI_ADDRFAMILY ||
		r == EAI_NONAME) { /* AI_ADDRCONFIG leaves loopback out where there is nothing else */
		hints.ai_flags = 0;
		r = getaddrinfo(host, port, &hints, &found);
	}
	if (r != 0)
		return error_set(err, ERROR_UNAVAILABLE, "server %s: %s", host, gai_strerror(r));
	memcpy(&c->address.storage, found->ai_addr, found->ai_addrlen);
	c->address.len = found->ai_addrlen;
	freeaddrinfo(found);
	return 0;
}

/* "https://example.org:6443", "http://[::1]:8080/"; a path other than / is refused. */
static int parse_server(const char *url, struct kubeconfig *c, struct error *err)
{
	_cleanup_free_ char *copy = NULL;
	char *host, *port, *rest;

	if (str_starts(url, "https://"))
		c->tls = true;
	else if (!str_starts(url, "http://"))
		return error_set(err, ERROR_INVALID, "server: \"%.200s\" is not https://HOST:PORT", url);
	copy = xstrdup(strstr(url, "://") + 3);
	rest = copy + strcspn(copy, "/?#");
	if (*rest && strcmp(rest, "/") != 0)
		return error_set(err, ERROR_UNIMPLEMENTED, "server: \"%.200s\": a path is not supported", url);
	*rest = '\0';
	c->host = xstrdup(copy);
	host = copy;
	if (*host == '[') {
		host++;
		rest = strchr(host, ']');
		if (!rest || (rest[1] && rest[1] != ':'))
			return error_set(err, ERROR_INVALID, "server: \"%.200s\" is not https://HOST:PORT", url);
		port = rest[1] ? rest + 2 : NULL;
		*rest = '\0';
	} else {
		port = strchr(host, ':');
		if (port)
			*port++ = '\0';
	}
	if (!*host || (port && !*port))
		return error_set(err, ERROR_INVALID, "server: \"%.200s\" is not https://HOST:PORT", url);
	c->server_name = xstrdup(host);
	return resolve(host, port ? port : c->tls ? "443" : "80", c, err);
}

static int read_cluster(const char *path, const json_t *cluster, struct kubeconfig *c, struct error *err)
{
	static const char *const refused[] = { "insecure-skip-tls-verify", "proxy-url", NULL };
	const char *name = json_str_at(cluster, "tls-server-name", NULL);
	int r = refuse(cluster, refused, "cluster", err);

	if (r < 0)
		return r;
	r = parse_server(json_str_at(cluster, "server", ""), c, err);
	if (r < 0)
		return error_prefix(err, "cluster");
	if (!str_empty(name)) {
		free(c->server_name);
		c->server_name = xstrdup(name);
	}
	r = read_part(c, path, cluster, "certificate-authority", &c->ca_pem, err);
	return r < 0 ? error_prefix(err, "cluster") : 0;
}

static int read_token(const char *path, const json_t *user, struct kubeconfig *c, struct error *err)
{
	const char *file = json_string_value(json_object_get(user, "tokenFile"));
	const char *token = json_string_value(json_object_get(user, "token"));
	int r = 0;

	if (!str_empty(file))
		r = read_beside(c, path, file, &c->token, err);
	else if (!str_empty(token))
		c->token = xstrdup(token);
	if (r < 0)
		return r;
	if (c->token)
		c->token[strcspn(c->token, "\r\n")] = '\0';
	return 0;
}

static int read_user(const char *path, const json_t *user, struct kubeconfig *c, struct error *err)
{
	static const char *const refused[] = { "exec", "auth-provider", "username", "password", "as", "as-groups",
		"as-uid", "as-user-extra", NULL };
	int r = refuse(user, refused, "user", err);

	if (r < 0)
		return r;
	if ((r = read_part(c, path, user, "client-certificate", &c->cert_pem, err)) < 0 ||
		(r = read_part(c, path, user, "client-key", &c->key_pem, err)) < 0 ||
		(r = read_token(path, user, c, err)) < 0)
		return error_prefix(err, "user");
	if (!c->cert_pem != !c->key_pem)
		return error_set(err, ERROR_INVALID, "user: client-certificate and client-key belong together");
	return 0;
}

static int read_all(const char *path, struct kubeconfig *c, struct error *err)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_json_ json_t *documents = NULL;
	const json_t *root, *context, *cluster, *user = NULL;
	const char *current, *user_name;
	size_t len;
	int r = file_read(AT_FDCWD, path, FILE_MAX, &text, &len, err);

	if (r < 0 || (r = yaml_read(text, len, &documents, err)) < 0)
		return r;
	strv_add(&c->files, path);
	root = json_array_get(documents, 0);
	current = json_str_at(root, "current-context", NULL);
	if (str_empty(current))
		return error_set(err, ERROR_INVALID, "current-context: is not given");
	context = named(root, "contexts", current, "context");
	if (!context)
		return error_set(err, ERROR_INVALID, "current-context: there is no context \"%.100s\"", current);
	cluster = named(root, "clusters", json_str_at(context, "cluster", ""), "cluster");
	if (!cluster)
		return error_set(err, ERROR_INVALID, "context %.100s: there is no cluster \"%.100s\"", current,
			json_str_at(context, "cluster", ""));
	user_name = json_str_at(context, "user", "");
	if (*user_name && !(user = named(root, "users", user_name, "user")))
		return error_set(err, ERROR_INVALID, "context %.100s: there is no user \"%.100s\"", current, user_name);
	if ((r = read_cluster(path, cluster, c, err)) < 0)
		return r;
	return user ? read_user(path, user, c, err) : 0;
}

int kubeconfig_load(const char *path, struct kubeconfig *ret, struct error *err)
{
	struct kubeconfig c = { 0 };
	int r = read_all(path, &c, err);

	if (r < 0) {
		kubeconfig_done(&c);
		return error_prefix(err, "kubeconfig %s", path);
	}
	*ret = c;
	return 0;
}

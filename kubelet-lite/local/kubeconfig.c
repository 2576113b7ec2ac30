/*
 * kubeconfig.c - purpose: keys of the API's TLS side, and the kubeconfig for root.
 *
 * Under <root_dir>/api: a CA of this node (made once), the server's key (made at each start), a client key and a token.
 * Everything is of mode 0600 in a directory of mode 0700.
 */
#include "kubelet-lite/local/api_i.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "common/base/codec.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/net/tls.h"
#include "common/sys/file.h"

enum { CA_DAYS = 3650, CERT_DAYS = 3650, PEM_MAX = 64 * 1024 };

/* A pair of files. */
struct pair {
	char *cert, *key;
};

static void pair_done(struct pair *p)
{
	free(p->cert);
	free(p->key);
}

static int write_file(const char *dir, const char *name, const char *text, struct error *err)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", dir, name);

	return file_replace(AT_FDCWD, path, text, strlen(text), 0600, err);
}

static int read_file(const char *dir, const char *name, char **ret, struct error *err)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", dir, name);

	return file_read(AT_FDCWD, path, PEM_MAX, ret, NULL, err);
}

/* The CA that is there, or a new one. */
static int load_ca(const char *dir, const char *node, struct pair *ret, struct error *err)
{
	_cleanup_(pair_done) struct pair ca = { 0 };
	_cleanup_free_ char *name = xasprintf("kubelet-lite CA of %s", node);
	int r = read_file(dir, "ca.crt", &ca.cert, err);

	if (r == 0)
		r = read_file(dir, "ca.key", &ca.key, err);
	if (r == -ENOENT) {
		free(steal(ca.cert));
		r = tls_make_cert(NULL, NULL, name, NULL, NULL, false, CA_DAYS, &ca.cert, &ca.key, err);
		if (r == 0)
			r = write_file(dir, "ca.key", ca.key, err);
		if (r == 0)
			r = write_file(dir, "ca.crt", ca.cert, err);
	}
	if (r < 0)
		return r;
	*ret = ca;
	ca = (struct pair){ 0 };
	return 0;
}

static int load_token(const char *dir, char **ret, struct error *err)
{
	char token[65];
	int r = read_file(dir, "token", ret, err);

	if (r == 0 && strlen(*ret) == 64)
		return 0;
	if (r < 0 && r != -ENOENT)
		return r;
	if (r == 0)
		free(steal(*ret));
	random_hex(token, 64);
	r = write_file(dir, "token", token, err);
	if (r == 0)
		*ret = xstrdup(token);
	return r;
}

/* "127.0.0.1:6443" -> "127.0.0.1"; "" for all addresses. */
static char *host_of(const char *address)
{
	const char *colon = strrchr(address, ':');

	if (*address == '[') {
		const char *close = strchr(address, ']');

		return close ? xstrndup(address + 1, (size_t)(close - address - 1)) : xstrdup("");
	}
	return colon ? xstrndup(address, (size_t)(colon - address)) : xstrdup("");
}

static char *server_names(const char *host, const char *node)
{
	_cleanup_(str_done) struct str s = STR_INIT;

	str_add(&s, "localhost,kubernetes,kubernetes.default,kubernetes.default.svc,127.0.0.1,::1");
	if (*host && !str_eq(host, "127.0.0.1") && !str_eq(host, "::1"))
		str_addf(&s, ",%s", host);
	if (*node)
		str_addf(&s, ",%s", node);
	return str_take(&s);
}

static void add_data(struct str *s, const char *key, const char *pem)
{
	_cleanup_free_ char *coded = base64_encode(pem, strlen(pem));

	str_addf(s, "    %s: %s\n", key, coded);
}

static int write_kubeconfig(const struct local_api_options *o, const char *path, const char *host, const struct pair *ca,
	const struct pair *client, struct error *err)
{
	const char *port = strrchr(o->tls_address, ':');
	bool any = !*host || str_eq(host, "0.0.0.0") || str_eq(host, "::");
	const char *reach = any ? "127.0.0.1" : host;
	bool v6 = strchr(reach, ':') != NULL;
	_cleanup_(str_done) struct str s = STR_INIT;

	str_addf(&s,
		"apiVersion: v1\nkind: Config\nclusters:\n- name: kubelet-lite\n  cluster:\n    server: https://%s%s%s%s\n", v6 ? "[" : "",
		reach, v6 ? "]" : "", port ? port : "");
	add_data(&s, "certificate-authority-data", ca->cert);
	str_add(&s, "users:\n- name: root\n  user:\n");
	add_data(&s, "client-certificate-data", client->cert);
	add_data(&s, "client-key-data", client->key);
	str_add(&s, "contexts:\n- name: kubelet-lite\n  context:\n    cluster: kubelet-lite\n    user: root\n"
		    "current-context: kubelet-lite\n");
	return file_replace(AT_FDCWD, path, s.buf, s.len, 0600, err);
}

int kubeconfig_prepare(const struct local_api_options *o, struct tls_server **ret, char **ret_token, struct error *err)
{
	_cleanup_free_ char *dir = xasprintf("%s/api", o->root_dir);
	_cleanup_free_ char *path = o->kubeconfig ? xstrdup(o->kubeconfig) : xasprintf("%s/admin.kubeconfig", dir);
	const char *node = objects_node_name(o->objects);
	_cleanup_free_ char *host = host_of(o->tls_address), *names = server_names(host, node), *token = NULL;
	_cleanup_(pair_done) struct pair ca = { 0 }, server = { 0 }, client = { 0 };
	int r = dir_make(dir, 0700, err);

	if (r == 0 && chmod(dir, 0700) < 0)
		r = error_sys(err, errno, "chmod %s", dir);
	if (r == 0)
		r = load_ca(dir, node, &ca, err);
	if (r == 0)
		r = load_token(dir, &token, err);
	if (r == 0)
		r = tls_make_cert(ca.cert, ca.key, "kubelet-lite", NULL, names, false, CERT_DAYS, &server.cert, &server.key, err);
	if (r == 0)
		r = tls_make_cert(ca.cert, ca.key, "root", "system:masters", NULL, true, CERT_DAYS, &client.cert, &client.key, err);
	if (r == 0)
		r = write_kubeconfig(o, path, host, &ca, &client, err);
	if (r == 0)
		r = tls_server_new(server.cert, server.key, ca.cert, ret, err);
	if (r < 0)
		return error_prefix(err, "API on %s", o->tls_address);
	*ret_token = steal(token);
	log_info("kubeconfig is written path=%s", path);
	return 0;
}

/*
 * api.c - purpose: the standalone Kubernetes API: listeners, who may do what, which handler a request goes to.
 *
 * On the Unix socket root may do everything; other users (proxy-lite runs as one) may read what is no Secret and write
 * Events. On TLS a client certificate of our CA or the token is needed.
 */
#include "kubelet-lite/local/api_i.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/base/log.h"
#include "common/base/str.h"
#include "common/net/tls.h"
#include "common/sys/file.h"
#include "common/wire/json.h"
#include "kubelet-lite/local/discovery.h"
#include "kubelet-lite/store/kinds.h"

static const char GROUP[] = "kubelet-lite";

static bool token_is(const struct local_api *api, const char *header)
{
	size_t len = api->token ? strlen(api->token) : 0;
	unsigned char differ = 0;

	if (!header || !len || !str_starts(header, "Bearer ") || strlen(header) != len + 7)
		return false;
	/* The same time for every wrong one. */
	for (size_t i = 0; i < len; i++)
		differ |= (unsigned char)(header[7 + i] ^ api->token[i]);
	return differ == 0;
}

/* Who is it? Negative: answered. */
static int authenticate(const struct api_call *call, bool *ret_admin)
{
	const struct http_request *request = call->request;

	*ret_admin = true;
	if (request->peer_uid >= 0) {
		*ret_admin = request->peer_uid == 0 || request->peer_uid == (int64_t)getuid();
		return 0;
	}
	if (request->peer_user || token_is(call->api, http_header(call->exchange, "Authorization")))
		return 0;
	http_add_header(call->exchange, "WWW-Authenticate", "Bearer");
	reply_failure(call->exchange, 401, "Unauthorized", NULL, "Unauthorized");
	return -EACCES;
}

static bool allowed(const struct api_call *call)
{
	bool reads = str_eq(call->request->method, "GET");

	if (call->route.kind == KIND_EVENT)
		return reads || str_eq(call->request->method, "POST") || str_eq(call->request->method, "PATCH");
	return reads && call->route.kind != KIND_SECRET && (!*call->route.sub || str_eq(call->route.sub, "status"));
}

static void not_allowed(const struct api_call *call)
{
	reply_failure(call->exchange, 405, "MethodNotAllowed", &call->route,
		"%s is not allowed on this path: the server does not allow this method on the requested resource",
		call->request->method);
}

static bool is_stream(const char *sub)
{
	return str_eq(sub, "exec") || str_eq(sub, "attach") || str_eq(sub, "portforward");
}

static bool sub_known(const struct route *r)
{
	if (!*r->sub)
		return true;
	if (r->kind == KIND_POD && (str_eq(r->sub, "log") || str_eq(r->sub, "eviction") || is_stream(r->sub)))
		return true;
	return kind_info(r->kind)->status && str_eq(r->sub, "status");
}

static void collection(const struct api_call *call)
{
	const char *method = call->request->method;

	if (str_eq(method, "GET") && (api_query_bool(call->exchange, "watch")))
		api_watch(call);
	else if (str_eq(method, "GET"))
		api_list(call);
	else if (str_eq(method, "POST"))
		api_create(call);
	else if (str_eq(method, "DELETE"))
		api_delete_collection(call);
	else
		not_allowed(call);
}

static void item(const struct api_call *call)
{
	const char *method = call->request->method, *sub = call->route.sub;
	bool get = str_eq(method, "GET");

	if (str_eq(sub, "log") && get)
		api_logs(call);
	else if (str_eq(sub, "eviction") && str_eq(method, "POST"))
		api_create(call);
	else if (is_stream(sub) && (get || str_eq(method, "POST")))
		api_stream(call);
	else if (str_eq(sub, "log") || str_eq(sub, "eviction") || is_stream(sub))
		not_allowed(call);
	else if (get && api_query_bool(call->exchange, "watch"))
		api_watch(call);
	else if (get)
		api_get(call);
	else if (str_eq(method, "PUT"))
		api_update(call);
	else if (str_eq(method, "PATCH"))
		api_patch(call);
	else if (str_eq(method, "DELETE") && !*sub)
		api_delete(call);
	else
		not_allowed(call);
}

static bool is_health(const char *path)
{
	return str_eq(path, "/healthz") || str_eq(path, "/livez") || str_eq(path, "/readyz");
}

static void no_such_path(const struct api_call *call)
{
	reply_failure(call->exchange, 404, "NotFound", NULL, "the server could not find the requested resource");
}

static void other_path(const struct api_call *call)
{
	const char *type;
	json_t *tree;

	if (!str_eq(call->request->method, "GET")) {
		no_such_path(call);
		return;
	}
	if (is_health(call->request->path)) {
		http_respond(call->exchange, 200, "text/plain", "ok", 2);
		return;
	}
	tree = discovery_document(call->request->path, http_header(call->exchange, "Accept"), &type);
	if (!tree) {
		no_such_path(call);
		return;
	}
	_cleanup_free_ char *text = json_text(tree);

	json_decref(tree);
	http_respond(call->exchange, 200, type, text, strlen(text));
}

static void handle(void *context, struct http_exchange *exchange, const struct http_request *request)
{
	struct api_call call = { context, exchange, request, { 0 } };
	bool admin;

	if (authenticate(&call, &admin) < 0)
		return;
	if (!route_parse(request->path, &call.route)) {
		other_path(&call);
		return;
	}
	if (!admin && !allowed(&call)) {
		reply_failure(exchange, 403, "Forbidden", &call.route, "%s is forbidden: only root may do this on the socket",
			kind_info(call.route.kind)->plural);
		return;
	}
	if (!sub_known(&call.route))
		no_such_path(&call);
	else if (*call.route.name)
		item(&call);
	else
		collection(&call);
}

/* Members of the group may connect (proxy-lite's user is one), if there is such a group. */
static int listen_unix(const char *path, int *ret_fd, struct error *err)
{
	_cleanup_free_ char *dir = xstrndup(path, strrchr(path, '/') ? (size_t)(strrchr(path, '/') - path) : 0);
	const struct group *group = getgrnam(GROUP);
	struct sock_address address;
	int r = *dir ? dir_make(dir, 0755, err) : 0;

	if (r == 0)
		r = sock_address_parse(path, &address, err);
	if (r == 0)
		r = sock_listen(&address, 0600, ret_fd, err);
	if (r < 0)
		return error_prefix(err, "--api-socket");
	const char *plain = address.un.sun_path;

	if (group && (chown(plain, (uid_t)-1, group->gr_gid) < 0 || chmod(plain, 0660) < 0))
		log_warning("cannot open the API socket to group %s error=%s", GROUP, strerror(errno));
	return 0;
}

static bool is_loopback(const struct sock_address *address)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)&address->sa;

	return address->sa.sa_family == AF_INET6 ?
		       IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)&address->sa)->sin6_addr) :
		       ntohl(in->sin_addr.s_addr) >> 24 == 127;
}

/* Who writes Pods is root on this machine: the API is not for others. */
static int listen_tls(struct local_api *api, const struct local_api_options *options, int *ret_fd, struct error *err)
{
	struct sock_address address;
	int r = sock_address_parse(options->tls_address, &address, err);

	if (r == 0 && (address.is_unix || !is_loopback(&address)))
		r = error_set(err, ERROR_INVALID, "address \"%s\" must be a loopback address and a port, such as 127.0.0.1:6443",
			options->tls_address);
	if (r == 0)
		r = sock_listen(&address, 0, ret_fd, err);
	return r < 0 ? error_prefix(err, "--api-address") : kubeconfig_prepare(options, &api->tls, &api->token, err);
}

static void make_default_namespace(struct objects *objects)
{
	_cleanup_json_ json_t *tree = json_pack("{s{ss}}", "metadata", "name", "default");
	struct error err = ERROR_INIT;

	if (!objects_get(objects, KIND_NAMESPACE, "", "default") &&
		objects_put(objects, KIND_NAMESPACE, tree, NULL, NULL, &err) < 0)
		log_warning("cannot make the namespace default error=%s", err.text);
}

int local_api_start(const struct local_api_options *options, struct local_api **ret, struct error *err)
{
	_cleanup_fd_ int unix_fd = -1, tls_fd = -1;
	struct local_api *api = xnew(struct local_api);
	int r = options->socket_path ? listen_unix(options->socket_path, &unix_fd, err) : 0;

	if (r == 0 && options->tls_address)
		r = listen_tls(api, options, &tls_fd, err);
	if (r < 0) {
		if (unix_fd >= 0)
			unlink(options->socket_path);
		free(api);
		return r;
	}
	api->loop = options->loop;
	api->objects = options->objects;
	api->files = options->files;
	api->log_path = options->log_path;
	api->stream_url = options->stream_url;
	api->data = options->data;
	make_default_namespace(api->objects);
	api->endpoints = endpoints_start(api->loop, api->objects);
	watch_subscribe(api);
	if (unix_fd >= 0)
		api->servers[api->open++] = http_server_new(api->loop, steal_fd(&unix_fd), NULL, API_BODY_MAX, handle, api);
	if (tls_fd >= 0)
		api->servers[api->open++] = http_server_new(api->loop, steal_fd(&tls_fd), api->tls, API_BODY_MAX, handle, api);
	*ret = api;
	return 0;
}

static void server_closed(void *data)
{
	struct local_api *api = data;

	if (--api->open > 0)
		return;
	tls_server_free(api->tls);
	free(api->token);
	if (api->stopped)
		api->stopped(api->stopped_data);
	free(api);
}

void local_api_stop(struct local_api *api, void (*stopped)(void *data), void *data)
{
	unsigned n = api->open;

	api->stopped = stopped;
	api->stopped_data = data;
	objects_unsubscribe(api->objects, api);
	watch_stop(api);
	logs_stop(api);
	tunnels_stop(api);
	endpoints_stop(api->endpoints);
	api->open = MAX(n, 1u);
	for (unsigned i = 0; i < n; i++)
		http_server_close(api->servers[i], server_closed, api);
	if (n == 0)
		server_closed(api);
}

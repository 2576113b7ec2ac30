/* server.c - purpose: the streaming server: tokens, and which protocol a client gets. */
#include "runtime-lite/stream/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>

#include "common/net/http_server.h"
#include "common/sys/file.h"
#include "common/wire/http1.h"
#include "common/wire/websocket.h"
#include "runtime-lite/stream/task.h"

enum { BODY_MAX = 64 * 1024 /* of requests, which need none */ };

struct stream_server {
	uv_loop_t *loop;
	struct store *store;
	struct http_server *http; /* NULL: closed */
	struct tokens *tokens;
	struct task *tasks;
	char *base; /* "http://127.0.0.1:34567" */
};

static const char *const prefixes[] = {
	[STREAM_EXEC] = "/exec/",
	[STREAM_ATTACH] = "/attach/",
	[STREAM_PORT_FORWARD] = "/portforward/",
};

static void refuse(struct http_exchange *e, int status, const char *text)
{
	http_respond(e, status, "text/plain; charset=utf-8", text, strlen(text));
}

/* NULL: answered. */
static const struct protocol *pick(
	struct http_exchange *e, const char *header, const struct protocol *known, const char *accepted_header)
{
	_cleanup_(strv_done) struct strv offers = STRV_INIT;
	_cleanup_(str_done) struct str text = STR_INIT;
	const char *value;

	for (size_t i = 0; (value = http_header_at(e, header, i)); i++)
		protocols_add_offers(&offers, value);
	const struct protocol *found = protocols_pick(known, &offers);

	if (found && *found->name)
		http_add_header(e, header, found->name);
	if (found)
		return found;
	str_add(&text, "unable to upgrade: no version of the protocol in common; known here:");
	for (const struct protocol *p = known; p->name; p++) {
		if (!*p->name)
			continue;
		str_addf(&text, " %s", p->name);
		if (accepted_header)
			http_add_header(e, accepted_header, p->name);
	}
	str_add_char(&text, '\n');
	refuse(e, 403, text.buf);
	return NULL;
}

static const struct protocol *pick_websocket(struct http_exchange *e, const char *method, bool forward)
{
	const char *version = http_header(e, "Sec-WebSocket-Version");
	char accept[WEBSOCKET_ACCEPT_MAX];

	if (!str_eq(method, "GET")) {
		refuse(e, 405, "a WebSocket begins with a GET\n");
		return NULL;
	}
	if (!str_eq(version, "13")) {
		http_add_header(e, "Sec-WebSocket-Version", "13");
		refuse(e, 426, "unable to upgrade: only version 13 of WebSocket is known here\n");
		return NULL;
	}
	if (!websocket_accept(http_header(e, "Sec-WebSocket-Key"), accept)) {
		refuse(e, 400, "unable to upgrade: Sec-WebSocket-Key is missing or malformed\n");
		return NULL;
	}
	http_add_header(e, "Sec-WebSocket-Accept", accept);
	return pick(e, "Sec-WebSocket-Protocol", forward ? protocols_forward_websocket : protocols_websocket, NULL);
}

/* Protocol and headers of the answer. False: answered. */
static bool negotiate(struct http_exchange *e, const char *method, bool forward, struct task_client *client)
{
	const char *upgrade = http_wants_upgrade(e);

	client->websocket = upgrade && http1_has_token(upgrade, "websocket");
	if (client->websocket) {
		client->protocol = pick_websocket(e, method, forward);
	} else if (upgrade && http1_has_token(upgrade, "SPDY/3.1")) {
		client->protocol = pick(e, "X-Stream-Protocol-Version",
			forward ? protocols_forward_spdy : protocols_spdy, "X-Accepted-Stream-Protocol-Versions");
	} else {
		refuse(e, 400, "unable to upgrade: the request asks for neither SPDY/3.1 nor a WebSocket\n");
	}
	return client->protocol != NULL;
}

/* The token is used up whatever comes of it. NULL: answered. */
static struct stream_request *take_request(
	struct stream_server *s, struct http_exchange *e, const struct http_request *request)
{
	struct stream_request *r = NULL;

	if (!str_eq(request->method, "GET") && !str_eq(request->method, "POST")) {
		http_add_header(e, "Allow", "GET, POST");
		refuse(e, 405, "only GET and POST\n");
		return NULL;
	}
	for (size_t i = 0; i < ARRAY_LEN(prefixes) && !r; i++)
		if (str_starts(request->path, prefixes[i]))
			r = tokens_take(s->tokens, (enum stream_kind)i, request->path + strlen(prefixes[i]),
				clock_monotonic_ns());
	if (!r)
		refuse(e, 404, "404 page not found\n");
	return r;
}

static void handle(void *context, struct http_exchange *e, const struct http_request *request)
{
	struct stream_server *s = context;
	_cleanup_(stream_request_free_p) struct stream_request *r = take_request(s, e, request);
	struct task_client client = { .loop = s->loop, .store = s->store, .list = &s->tasks, .exchange = e };

	if (!r || !negotiate(e, request->method, r->kind == STREAM_PORT_FORWARD, &client))
		return;
	if (r->kind == STREAM_PORT_FORWARD && client.websocket && !client.protocol->tunnel && !r->n_ports) {
		refuse(e, 400, "the request names no port\n");
		return;
	}
	if (r->kind == STREAM_EXEC)
		exec_start(&client, steal(r));
	else if (r->kind == STREAM_ATTACH)
		attach_start(&client, steal(r));
	else
		portforward_start(&client, steal(r));
}

/* What was bound; whoever asks is on this node, so that "all addresses" can be called loopback. */
static int base_url(int fd, char **ret, struct error *err)
{
	struct sock_address address = { .len = sizeof(address.storage) };
	const struct sockaddr_in *in = (struct sockaddr_in *)&address.storage;
	const struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&address.storage;
	char text[64];

	if (getsockname(fd, &address.sa, &address.len) < 0)
		return error_sys(err, errno, "the address that was bound");
	sock_address_text(&address, text, sizeof(text));
	if (address.sa.sa_family == AF_INET && in->sin_addr.s_addr == htonl(INADDR_ANY))
		*ret = xasprintf("http://127.0.0.1:%u", ntohs(in->sin_port));
	else if (address.sa.sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr))
		*ret = xasprintf("http://[::1]:%u", ntohs(in6->sin6_port));
	else
		*ret = xasprintf("http://%s", text);
	return 0;
}

int stream_server_new(
	uv_loop_t *loop, const char *address, struct store *store, struct stream_server **ret, struct error *err)
{
	struct sock_address parsed;
	_cleanup_fd_ int fd = -1;
	_cleanup_free_ char *base = NULL;
	int r = sock_address_parse(address, &parsed, err);

	if (r == 0 && parsed.is_unix)
		r = error_set(err, ERROR_INVALID, "address \"%s\" must be an IP address and a port", address);
	if (r == 0)
		r = sock_listen(&parsed, 0, &fd, err);
	if (r == 0)
		r = base_url(fd, &base, err);
	if (r < 0)
		return error_prefix(err, "--streaming-address");
	struct stream_server *s = xnew(struct stream_server);

	s->loop = loop;
	s->store = store;
	s->base = steal(base);
	s->tokens = tokens_new();
	s->http = http_server_new(loop, steal_fd(&fd), NULL, BODY_MAX, handle, s);
	*ret = s;
	return 0;
}

void stream_server_close(struct stream_server *s)
{
	/* They leave the list by themselves, later in the loop. */
	for (struct task *t = s->tasks, *next; t; t = next) {
		next = t->next;
		t->abort(t);
	}
	if (s->http)
		http_server_close(s->http, NULL, NULL);
	s->http = NULL;
}

struct stream_server *stream_server_free(struct stream_server *s)
{
	if (!s)
		return NULL;
	tokens_free(s->tokens);
	free(s->base);
	free(s);
	return NULL;
}

int stream_server_url(struct stream_server *s, struct stream_request *request, char **ret_url, struct error *err)
{
	char token[TOKEN_LEN + 1];
	const char *prefix = prefixes[request->kind];

	random_hex(token, TOKEN_LEN);
	int r = tokens_add(s->tokens, request, token, clock_monotonic_ns(), err);

	if (r == 0)
		*ret_url = xasprintf("%s%s%s", s->base, prefix, token);
	return r;
}

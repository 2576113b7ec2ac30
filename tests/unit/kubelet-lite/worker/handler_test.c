/* handler_test.c - purpose: checks of probes and hooks against servers on loopback. */
#include "tests/unit/quotes.h"

#include "common/net/http_server.h"
#include "common/net/rpc_server.h"
#include "common/net/tls.h"
#include "kubelet-lite/worker/handler.h"

#include <stdio.h>

static uv_loop_t loop;
static char seen_headers[512]; /* what the server was asked last */

/* ---- servers */

static void on_http(void *context, struct http_exchange *exchange, const struct http_request *request)
{
	const char *names[] = { "Host", "User-Agent", "Accept", "X-One" };
	int status = atoi(request->path + 1);

	(void)context;
	seen_headers[0] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const char *v = http_header(exchange, names[i]);

		strcat(strcat(seen_headers, v ? v : "-"), "|");
	}
	if (str_eq(request->path, "/hang"))
		return;
	http_respond(exchange, status ? status : 404, "text/plain", "body", 4);
}

/* Requests are answered by a script of its own where our server cannot say it: redirects. */
struct raw {
	uv_tcp_t listener;
	int port;
};

static void on_raw_closed(uv_handle_t *handle)
{
	free(handle);
}

static void on_raw_alloc(uv_handle_t *handle, size_t n, uv_buf_t *buf)
{
	(void)handle;
	(void)n;
	static char bytes[4096];
	*buf = uv_buf_init(bytes, sizeof(bytes) - 1);
}

static void on_raw_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct raw *raw = stream->data;
	char text[512], path[128] = "";

	if (n > 0) {
		buf->base[n] = '\0';
		sscanf(buf->base, "GET %127s", path);
		if (str_eq(path, "/same"))
			snprintf(text, sizeof(text), "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:%d/good\r\nContent-Length: 0\r\n\r\n", raw->port);
		else if (str_eq(path, "/relative"))
			snprintf(text, sizeof(text), "HTTP/1.1 301 Moved\r\nLocation: /bad\r\nContent-Length: 0\r\n\r\n");
		else if (str_eq(path, "/other"))
			snprintf(text, sizeof(text), "HTTP/1.1 302 Found\r\nLocation: http://example.org/bad\r\nContent-Length: 0\r\n\r\n");
		else if (str_eq(path, "/loop"))
			snprintf(text, sizeof(text), "HTTP/1.1 302 Found\r\nLocation: /loop\r\nContent-Length: 0\r\n\r\n");
		else if (str_eq(path, "/garbage"))
			snprintf(text, sizeof(text), "SSH-2.0-x\r\n\r\n");
		else
			snprintf(text, sizeof(text), "HTTP/1.1 %d X\r\nContent-Length: 0\r\n\r\n", str_eq(path, "/good") ? 200 : 500);
		uv_buf_t out = uv_buf_init(text, (unsigned)strlen(text));
		ck_assert_int_ge(uv_try_write(stream, &out, 1), 0);
	}
	if (n != 0)
		uv_close((uv_handle_t *)stream, on_raw_closed);
}

static void on_raw_connection(uv_stream_t *server, int status)
{
	uv_tcp_t *client = xnew(uv_tcp_t);

	ck_assert_int_eq(status, 0);
	uv_tcp_init(&loop, client);
	client->data = server->data;
	ck_assert_int_eq(uv_accept(server, (uv_stream_t *)client), 0);
	uv_read_start((uv_stream_t *)client, on_raw_alloc, on_raw_read);
}

static int listen_on_loopback(int *ret_port)
{
	struct sock_address address;
	struct sockaddr_storage own;
	socklen_t len = sizeof(own);
	int fd;

	ck_assert_int_eq(sock_address_parse("127.0.0.1:0", &address, NULL), 0);
	ck_assert_int_eq(sock_listen(&address, 0, &fd, NULL), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&own, &len), 0);
	*ret_port = ntohs(((struct sockaddr_in *)&own)->sin_port);
	return fd;
}

/* gRPC health: HealthCheckRequest and -Response have the wire format of these two. */
static int on_check(struct rpc_call *call, const void *request, ProtobufCMessage **ret, struct error *err)
{
	const char *service = ((const CRI(RemoveContainerRequest) *)request)->container_id;
	CRI(ContainerStateValue) *reply;

	(void)call;
	if (str_eq(service, "unknown"))
		return error_set(err, ERROR_NOT_FOUND, "unknown service");
	reply = CRI_NEW(ContainerStateValue, container_state_value);
	reply->state = str_eq(service, "down") ? (CRI(ContainerState))2 : (CRI(ContainerState))1;
	*ret = &reply->base;
	return 0;
}

static int on_exec(struct rpc_call *call, const void *request, ProtobufCMessage **ret, struct error *err)
{
	const CRI(ExecSyncRequest) *r = request;
	CRI(ExecSyncResponse) *reply;

	(void)call;
	if (str_eq(r->cmd[0], "slow"))
		return error_set(err, ERROR_DEADLINE, "timed out after %lld s", (long long)r->timeout);
	if (str_eq(r->cmd[0], "gone"))
		return error_set(err, ERROR_NOT_FOUND, "no such container");
	reply = CRI_NEW(ExecSyncResponse, exec_sync_response);
	reply->exit_code = atoi(r->cmd[0]);
	reply->stderr.data = xmemdup("words", 5);
	reply->stderr.len = 5;
	*ret = &reply->base;
	return 0;
}

static const struct rpc_method methods[] = {
	{ "/grpc.health.v1.Health/Check", RPC_INLINE, &runtime__v1__remove_container_request__descriptor, on_check, NULL },
	{ "/runtime.v1.RuntimeService/ExecSync", RPC_INLINE, &runtime__v1__exec_sync_request__descriptor, on_exec, NULL },
	{ 0 },
};

/* ---- one run */

struct outcome {
	bool done;
	enum probe_outcome outcome;
	char text[256];
};

static void on_done(void *data, enum probe_outcome outcome, const char *text)
{
	struct outcome *o = data;

	ck_assert(!o->done);
	o->done = true;
	o->outcome = outcome;
	snprintf(o->text, sizeof(o->text), "%s", text);
}

static const struct {
	const char *name;
	const char *handler; /* JSON; port 1: http, 2: raw, 3: rpc, 4: nobody */
	enum probe_outcome outcome;
	const char *text;
	bool any_status;
} cases[] = {
	{ "200", "{'httpGet':{'path':'/200','port':1}}", PROBE_OK, "" },
	{ "399", "{'httpGet':{'path':'/399','port':1}}", PROBE_OK, "" },
	{ "404", "{'httpGet':{'path':'/404','port':1}}", PROBE_FAILED, "HTTP probe failed with statuscode: 404" },
	{ "a path without a slash", "{'httpGet':{'path':'200','port':1}}", PROBE_OK, "" },
	{ "500 is enough for a hook", "{'httpGet':{'path':'/500','port':1}}", PROBE_OK, "", .any_status = true },
	{ "nobody there", "{'httpGet':{'path':'/','port':4}}", PROBE_FAILED, "connection refused" },
	{ "nobody there, hook", "{'httpGet':{'path':'/','port':4}}", PROBE_FAILED, "connection refused", .any_status = true },
	{ "no answer in time", "{'httpGet':{'path':'/hang','port':1}}", PROBE_FAILED, "context deadline exceeded" },
	{ "redirect to the same host", "{'httpGet':{'path':'/same','port':2}}", PROBE_OK, "" },
	{ "relative redirect to an error", "{'httpGet':{'path':'/relative','port':2}}", PROBE_FAILED, "statuscode: 500" },
	{ "redirect to another host is fine", "{'httpGet':{'path':'/other','port':2}}", PROBE_OK, "" },
	{ "redirect for ever", "{'httpGet':{'path':'/loop','port':2}}", PROBE_FAILED, "stopped after 10 redirects" },
	{ "not HTTP", "{'httpGet':{'path':'/garbage','port':2}}", PROBE_FAILED, "" },
	{ "HTTPS to a server without it", "{'httpGet':{'path':'/good','port':2,'scheme':'HTTPS'}}", PROBE_FAILED, "" },
	{ "tcp", "{'tcpSocket':{'port':1}}", PROBE_OK, "" },
	{ "tcp, nobody there", "{'tcpSocket':{'port':4}}", PROBE_FAILED, "connection refused" },
	{ "grpc", "{'grpc':{'port':3}}", PROBE_OK, "" },
	{ "grpc, named service", "{'grpc':{'port':3,'service':'up'}}", PROBE_OK, "" },
	{ "grpc, not serving", "{'grpc':{'port':3,'service':'down'}}", PROBE_FAILED, "service unhealthy (responded with \"NOT_SERVING\")" },
	{ "grpc, unknown service", "{'grpc':{'port':3,'service':'unknown'}}", PROBE_FAILED, "NotFound unknown service" },
	{ "grpc, nobody there", "{'grpc':{'port':4}}", PROBE_FAILED, "connection refused" },
	{ "grpc to HTTP/1", "{'grpc':{'port':2}}", PROBE_FAILED, "" },
	{ "exec", "{'exec':{'command':['0']}}", PROBE_OK, "words" },
	{ "exec fails", "{'exec':{'command':['3']}}", PROBE_FAILED, "words" },
	{ "exec takes too long", "{'exec':{'command':['slow']}}", PROBE_FAILED, "command timed out" },
	{ "exec without a container", "{'exec':{'command':['gone']}}", PROBE_ERROR, "no such container" },
	{ "sleep", "{'sleep':{'seconds':0}}", PROBE_OK, "" },
};

static int ports[5];
static struct raw raw;
static struct cri_client *cri;
static char socket_path[64];

static struct handler_run *run(const struct handler *handler, struct outcome *o, bool any_status, uint64_t timeout_ms)
{
	return handler_start(handler,
		&(struct handler_target){ .loop = &loop, .cri = cri, .container_id = "c", .address = "127.0.0.1",
			.port = handler->port.number ? ports[handler->port.number] : 0, .user_agent = "kube-probe/1.36",
			.timeout_ms = timeout_ms, .any_status = any_status },
		on_done, o);
}

static void start_servers(void)
{
	struct sock_address address;
	int fd;

	uv_loop_init(&loop);
	ck_assert_ptr_nonnull(http_server_new(&loop, listen_on_loopback(&ports[1]), NULL, 1024, on_http, NULL));
	uv_tcp_init(&loop, &raw.listener);
	raw.listener.data = &raw;
	fd = listen_on_loopback(&raw.port);
	ports[2] = raw.port;
	ck_assert_int_eq(uv_tcp_open(&raw.listener, fd), 0);
	ck_assert_int_eq(uv_listen((uv_stream_t *)&raw.listener, 8, on_raw_connection), 0);
	ck_assert_ptr_nonnull(rpc_server_new(&loop, listen_on_loopback(&ports[3]), methods, NULL));
	fd = listen_on_loopback(&ports[4]);
	close(fd);
	snprintf(socket_path, sizeof(socket_path), "/tmp/handler_test.%d.sock", getpid());
	ck_assert_int_eq(sock_address_parse(socket_path, &address, NULL), 0);
	ck_assert_int_eq(sock_listen(&address, 0600, &fd, NULL), 0);
	ck_assert_ptr_nonnull(rpc_server_new(&loop, fd, methods, NULL));
	ck_assert_int_eq(cri_client_new(&loop, socket_path, 5000, &cri, NULL), 0);
}

static void wait_for(const struct outcome *o)
{
	for (int i = 0; i < 100000 && !o->done; i++)
		uv_run(&loop, UV_RUN_ONCE);
	ck_assert(o->done);
}

START_TEST(handler_case)
{
	_cleanup_json_ json_t *tree = quoted(cases[_i].handler);
	struct arena arena = ARENA_INIT;
	struct handler handler = handler_decode(&arena, tree);
	struct outcome o = { 0 };

	start_servers();
	run(&handler, &o, cases[_i].any_status, 700);
	ck_assert(!o.done); /* never from inside */
	wait_for(&o);
	ck_assert_msg(o.outcome == cases[_i].outcome && strstr(o.text, cases[_i].text), "%s: %d \"%s\"", cases[_i].name, o.outcome,
		o.text);
	for (int i = 0; i < 20; i++)
		uv_run(&loop, UV_RUN_NOWAIT);
	arena_done(&arena);
	unlink(socket_path);
}
END_TEST

/* Whatever the kind and however far it is: cancelled, nothing is reported and all is freed. */
START_TEST(cancel_case)
{
	_cleanup_json_ json_t *tree = quoted(cases[_i].handler);
	struct arena arena = ARENA_INIT;
	struct handler handler = handler_decode(&arena, tree);

	start_servers();
	for (int turns = 0; turns < 12; turns++) {
		struct outcome o = { 0 };
		struct handler_run *r = run(&handler, &o, false, 5000);

		for (int i = 0; i < turns && !o.done; i++)
			uv_run(&loop, UV_RUN_NOWAIT);
		if (!o.done) {
			handler_cancel(r);
			for (int i = 0; i < 20; i++)
				uv_run(&loop, UV_RUN_NOWAIT);
			ck_assert_msg(!o.done, "%s after %d turns", cases[_i].name, turns);
		}
	}
	arena_done(&arena);
	unlink(socket_path);
}
END_TEST

START_TEST(headers)
{
	static const struct {
		const char *headers, *expect;
	} rows[] = {
		{ "", "127.0.0.1:PORT|kube-probe/1.36|*/*|-|" },
		{ "{'name':'X-One','value':'1'}", "127.0.0.1:PORT|kube-probe/1.36|*/*|1|" },
		{ "{'name':'Host','value':'example.org'},{'name':'User-Agent','value':'mine'}", "example.org|mine|*/*|-|" },
		{ "{'name':'User-Agent','value':''},{'name':'accept','value':''}", "127.0.0.1:PORT|-|-|-|" },
	};

	start_servers();
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_free_ char *json = xasprintf("{'httpGet':{'path':'/200','port':1,'httpHeaders':[%s]}}", rows[i].headers);
		_cleanup_json_ json_t *tree = quoted(json);
		struct arena arena = ARENA_INIT;
		struct handler handler = handler_decode(&arena, tree);
		struct outcome o = { 0 };
		char port[16], *at;

		run(&handler, &o, false, 2000);
		wait_for(&o);
		ck_assert_int_eq(o.outcome, PROBE_OK);
		snprintf(port, sizeof(port), "%d", ports[1]);
		at = strstr(seen_headers, port);
		if (at) {
			memmove(at + 4, at + strlen(port), strlen(at + strlen(port)) + 1);
			memcpy(at, "PORT", 4);
		}
		ck_assert_str_eq(seen_headers, rows[i].expect);
		arena_done(&arena);
	}
	unlink(socket_path);
}
END_TEST

/* HTTPS: any certificate will do. */
START_TEST(https)
{
	_cleanup_free_ char *cert = NULL, *key = NULL;
	struct tls_server *tls;
	struct error err = ERROR_INIT;
	struct handler handler = { .kind = HANDLER_HTTP, .path = "/200", .https = true, .host = "", .port = { 1, "" } };
	struct outcome o = { 0 };

	if (tls_make_cert(NULL, NULL, "other.example", NULL, "other.example", false, 1, &cert, &key, &err) < 0 ||
		tls_server_new(cert, key, NULL, &tls, &err) < 0)
		return; /* no OpenSSL here */
	start_servers();
	ck_assert_ptr_nonnull(http_server_new(&loop, listen_on_loopback(&ports[1]), tls, 1024, on_http, NULL));
	run(&handler, &o, false, 5000);
	wait_for(&o);
	ck_assert_msg(o.outcome == PROBE_OK, "%s", o.text);
	unlink(socket_path);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("handler");

	tcase_set_timeout(t, 20);
	tcase_add_loop_test(t, handler_case, 0, ARRAY_LEN(cases));
	tcase_add_loop_test(t, cancel_case, 0, ARRAY_LEN(cases));
	tcase_add_test(t, headers);
	tcase_add_test(t, https);
	return run_case(t);
}

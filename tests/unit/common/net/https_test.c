/* https_test.c - purpose: our HTTP client and our HTTP server with each other, over TLS and without, on real sockets. */
#include "common/net/http_client.h"
#include "common/net/http_server.h"

#include "common/base/str.h"
#include "common/net/tls.h"

#include <check.h>
#include <netinet/in.h>
#include <signal.h>

enum { BIG = 300000 };

static struct {
	char *ca, *ca_key, *cert, *key, *client_cert, *client_key, *other_ca, *other_key;
} pem;

struct result {
	bool ended;
	int status;
	struct error err;
	struct str body;
};

static void handle(void *context UNUSED, struct http_exchange *exchange, const struct http_request *request)
{
	if (str_eq(request->path, "/big")) {
		_cleanup_free_ char *big = xmalloc(BIG);

		memset(big, 'b', BIG);
		http_respond(exchange, 200, "text/plain", big, BIG);
	} else if (str_eq(request->path, "/echo")) {
		http_respond(exchange, 200, "text/plain", request->body, request->body_len);
	} else if (str_eq(request->path, "/who")) {
		const char *who = request->peer_user ? request->peer_user : "nobody";

		http_respond(exchange, 200, "text/plain", who, strlen(who));
	} else {
		http_stream_begin(exchange, 200, "text/plain", NULL, NULL);
		for (int i = 0; i < 5; i++)
			ck_assert_int_eq(http_stream_write(exchange, "chunk ", 6), 0);
		http_stream_end(exchange);
	}
}

static void on_body(void *data, const char *p, size_t len)
{
	str_add_bytes(&((struct result *)data)->body, p, len);
}

static void on_end(void *data, int status, const struct error *err)
{
	struct result *r = data;

	r->ended = true;
	r->status = status;
	r->err = *err;
}

struct world {
	uv_loop_t loop;
	struct http_server *server;
	struct http_client *client;
	struct tls_server *tls_server;
	struct tls_client *tls_client;
};

static void set_up(struct world *w, bool tls, const char *ca, bool with_cert)
{
	struct http_client_options options = { .host = "localhost" };
	struct sock_address address;
	int fd;

	uv_loop_init(&w->loop);
	ck_assert_int_eq(sock_address_parse("127.0.0.1:0", &address, NULL), 0);
	ck_assert_int_eq(sock_listen(&address, 0, &fd, NULL), 0);
	options.address = address;
	options.address.len = sizeof(options.address.storage);
	ck_assert_int_eq(getsockname(fd, &options.address.sa, &options.address.len), 0);
	if (tls) {
		ck_assert_int_eq(tls_server_new(pem.cert, pem.key, pem.ca, &w->tls_server, NULL), 0);
		ck_assert_int_eq(tls_client_new(ca, with_cert ? pem.client_cert : NULL, with_cert ? pem.client_key : NULL, "localhost",
			&w->tls_client, NULL), 0);
	}
	w->server = http_server_new(&w->loop, fd, w->tls_server, 1024 * 1024, handle, NULL);
	options.tls = w->tls_client;
	w->client = http_client_new(&w->loop, &options);
}

static void tear_down(struct world *w)
{
	http_client_free(w->client);
	http_server_close(w->server, NULL, NULL);
	uv_run(&w->loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(uv_loop_close(&w->loop), 0);
	tls_client_free(w->tls_client);
	tls_server_free(w->tls_server);
}

static void ask(struct world *w, const char *method, const char *target, const char *body, size_t len, struct result *r)
{
	struct http_call call = { .method = method, .target = target, .body = body, .body_len = len, .timeout_ms = 10000, .on_body = on_body,
		.on_end = on_end, .data = r };

	*r = (struct result){ 0 };
	http_request_start(w->client, &call);
	while (!r->ended)
		uv_run(&w->loop, UV_RUN_ONCE);
}

/* 0: cleartext, 1: TLS, 2: TLS with a client certificate */
START_TEST(talks)
{
	struct world w = { 0 };
	struct result r;
	_cleanup_free_ char *big = xmalloc(BIG);

	set_up(&w, _i > 0, pem.ca, _i == 2);
	ask(&w, "GET", "/who", NULL, 0, &r);
	ck_assert_msg(r.status == 200, "%s", r.err.text);
	ck_assert_str_eq(str_get(&r.body), _i == 2 ? "alice" : "nobody");
	str_done(&r.body);
	ask(&w, "GET", "/big", NULL, 0, &r);
	ck_assert_int_eq(r.status, 200);
	ck_assert_uint_eq(r.body.len, BIG);
	str_done(&r.body);
	memset(big, 'e', BIG);
	ask(&w, "POST", "/echo", big, BIG, &r);
	ck_assert_uint_eq(r.body.len, BIG);
	ck_assert_int_eq(memcmp(r.body.buf, big, BIG), 0);
	str_done(&r.body);
	ask(&w, "GET", "/stream", NULL, 0, &r);
	ck_assert_str_eq(str_get(&r.body), "chunk chunk chunk chunk chunk ");
	str_done(&r.body);
	tear_down(&w);
}
END_TEST

START_TEST(wrong_authority)
{
	struct world w = { 0 };
	struct result r;

	set_up(&w, true, pem.other_ca, false);
	ask(&w, "GET", "/who", NULL, 0, &r);
	ck_assert_int_eq(r.status, 0);
	ck_assert_int_eq(r.err.code, ERROR_UNAVAILABLE);
	ck_assert_msg(strstr(r.err.text, "certificate"), "%s", r.err.text);
	tear_down(&w);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("https");
	TCase *t = tcase_create("https");

	signal(SIGPIPE, SIG_IGN);
	if (tls_make_cert(NULL, NULL, "ca", NULL, NULL, false, 1, &pem.ca, &pem.ca_key, NULL) < 0 ||
		tls_make_cert(NULL, NULL, "other", NULL, NULL, false, 1, &pem.other_ca, &pem.other_key, NULL) < 0 ||
		tls_make_cert(pem.ca, pem.ca_key, "server", NULL, "localhost,127.0.0.1", false, 1, &pem.cert, &pem.key, NULL) < 0 ||
		tls_make_cert(pem.ca, pem.ca_key, "alice", NULL, NULL, true, 1, &pem.client_cert, &pem.client_key, NULL) < 0)
		return 1;
	tcase_set_timeout(t, 30);
	tcase_add_loop_test(t, talks, 0, 3);
	tcase_add_test(t, wrong_authority);
	suite_add_tcase(s, t);
	SRunner *runner = srunner_create(s);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	free(pem.ca), free(pem.ca_key), free(pem.cert), free(pem.key);
	free(pem.client_cert), free(pem.client_key), free(pem.other_ca), free(pem.other_key);
	return failed != 0;
}

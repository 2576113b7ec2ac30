/* tls_test.c - purpose: certificates, handshakes and data over memory; who is refused. */
#include "common/net/tls.h"

#include "common/base/str.h"
#include "tests/unit/quotes.h"

#include <stdio.h>

struct keys {
	char *ca, *ca_key, *cert, *key, *client, *client_key, *other_ca, *other_ca_key;
};

static struct keys keys;

static bool is_mapped(const char *library)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	bool found = false;

	while (f && fgets(line, sizeof(line), f))
		found |= strstr(line, library) != NULL;
	if (f)
		fclose(f);
	return found;
}

static void make_keys(void)
{
	struct error err = ERROR_INIT;
	int r = tls_make_cert(NULL, NULL, "test CA", NULL, NULL, false, 10, &keys.ca, &keys.ca_key, &err);

	ck_assert_msg(r == 0, "%s", err.text);
	r = tls_make_cert(keys.ca, keys.ca_key, "server", NULL, "localhost,127.0.0.1,::1", false, 10, &keys.cert, &keys.key, &err);
	ck_assert_msg(r == 0, "%s", err.text);
	r = tls_make_cert(keys.ca, keys.ca_key, "root", "system:masters", NULL, true, 10, &keys.client, &keys.client_key, &err);
	ck_assert_msg(r == 0, "%s", err.text);
	r = tls_make_cert(NULL, NULL, "other CA", NULL, NULL, false, 10, &keys.other_ca, &keys.other_ca_key, &err);
	ck_assert_msg(r == 0, "%s", err.text);
}

static void drop_keys(void)
{
	free(keys.ca);
	free(keys.ca_key);
	free(keys.cert);
	free(keys.key);
	free(keys.client);
	free(keys.client_key);
	free(keys.other_ca);
	free(keys.other_ca_key);
	keys = (struct keys){ 0 };
}

/* Both ends. */
struct wire {
	struct tls_server *server;
	struct tls_client *client;
	struct tls_conn *a, *b; /* server's, client's */
	struct str to_a, to_b, plain_a, plain_b;
	struct error err_a, err_b;
	int r_a, r_b;
};

static void wire_done(struct wire *w)
{
	tls_conn_free(w->a);
	tls_conn_free(w->b);
	tls_server_free(w->server);
	tls_client_free(w->client);
	str_done(&w->to_a);
	str_done(&w->to_b);
	str_done(&w->plain_a);
	str_done(&w->plain_b);
}

/* Carries bytes in pieces of `piece` until nobody says anything. */
static void carry(struct wire *w, size_t piece)
{
	while (w->to_a.len || w->to_b.len) {
		size_t n = MIN(piece, w->to_a.len), m = MIN(piece, w->to_b.len);

		if (n && w->r_a == 0)
			w->r_a = tls_conn_feed(w->a, w->to_a.buf, n, &w->plain_a, &w->to_b, &w->err_a);
		str_consume(&w->to_a, n);
		if (m && w->r_b == 0)
			w->r_b = tls_conn_feed(w->b, w->to_b.buf, m, &w->plain_b, &w->to_a, &w->err_b);
		str_consume(&w->to_b, m);
	}
}

static const struct {
	const char *name, *server_name;
	bool other_ca, with_client, ask_client, server_ok, client_ok;
} cases[] = {
	{ "by name", "localhost", false, false, false, true, true },
	{ "by address", "127.0.0.1", false, false, false, true, true },
	{ "by IPv6 address", "::1", false, false, false, true, true },
	{ "wrong name", "example.org", false, false, false, false, false },
	{ "wrong address", "127.0.0.2", false, false, false, false, false },
	{ "unknown CA", "localhost", true, false, false, false, false },
	{ "client certificate", "localhost", false, true, true, true, true },
	{ "none though asked: fine, without a name", "localhost", false, false, true, true, true },
};

START_TEST(handshake_case)
{
	_cleanup_(wire_done) struct wire w = { 0 };
	bool with = cases[_i].with_client;

	make_keys();
	ck_assert_int_eq(tls_server_new(keys.cert, keys.key, cases[_i].ask_client ? keys.ca : NULL, &w.server, NULL), 0);
	ck_assert_int_eq(tls_client_new(cases[_i].other_ca ? keys.other_ca : keys.ca, with ? keys.client : NULL,
				 with ? keys.client_key : NULL, cases[_i].server_name, &w.client, NULL), 0);
	w.a = tls_accept(w.server);
	w.b = tls_connect(w.client);
	/* Written before the handshake: kept. */
	ck_assert_int_eq(tls_conn_write(w.b, "hello", 5, &w.to_a, NULL), 0);
	carry(&w, _i % 2 ? 1 : 100000);
	ck_assert_msg((w.r_b == 0) == cases[_i].client_ok, "%s: client: %s", cases[_i].name, w.err_b.text);
	ck_assert_msg((w.r_a == 0) == cases[_i].server_ok, "%s: server: %s", cases[_i].name, w.err_a.text);
	ck_assert_str_eq(str_get(&w.plain_a), cases[_i].client_ok ? "hello" : "");
	if (with)
		ck_assert_str_eq(tls_conn_peer(w.a), "root");
	else
		ck_assert_ptr_null(tls_conn_peer(w.a));
	drop_keys();
}
END_TEST

START_TEST(much_data)
{
	_cleanup_(wire_done) struct wire w = { 0 };
	size_t len = 1000000;
	_cleanup_free_ char *data = xmalloc(len);

	for (size_t i = 0; i < len; i++)
		data[i] = (char)(i * 7);
	make_keys();
	ck_assert_int_eq(tls_server_new(keys.cert, keys.key, NULL, &w.server, NULL), 0);
	ck_assert_int_eq(tls_client_new(keys.ca, NULL, NULL, "localhost", &w.client, NULL), 0);
	w.a = tls_accept(w.server);
	w.b = tls_connect(w.client);
	ck_assert_int_eq(tls_conn_write(w.b, data, len, &w.to_a, NULL), 0);
	carry(&w, 5000);
	ck_assert_int_eq(tls_conn_write(w.a, data, len, &w.to_b, NULL), 0);
	carry(&w, 70000);
	ck_assert_uint_eq(w.plain_a.len, len);
	ck_assert_uint_eq(w.plain_b.len, len);
	ck_assert_int_eq(memcmp(w.plain_b.buf, data, len), 0);
	tls_conn_shutdown(w.b, &w.to_a);
	carry(&w, 100);
	ck_assert_int_ne(w.r_a, 0); /* says that the peer has closed */
	drop_keys();
}
END_TEST

START_TEST(garbage)
{
	_cleanup_(wire_done) struct wire w = { 0 };

	make_keys();
	ck_assert_int_eq(tls_server_new(keys.cert, keys.key, NULL, &w.server, NULL), 0);
	w.a = tls_accept(w.server);
	ck_assert_int_lt(tls_conn_feed(w.a, "GET / HTTP/1.1\r\n\r\n", 18, &w.plain_a, &w.to_b, &w.err_a), 0);
	ck_assert_uint_eq(w.plain_a.len, 0);
	drop_keys();
}
END_TEST

START_TEST(bad_pem)
{
	struct error err = ERROR_INIT;
	struct tls_server *server = NULL;

	make_keys();
	ck_assert_int_lt(tls_server_new("nonsense", keys.key, NULL, &server, &err), 0);
	ck_assert_int_lt(tls_server_new(keys.cert, "nonsense", NULL, &server, &err), 0);
	ck_assert_int_lt(tls_server_new(keys.cert, keys.ca_key, NULL, &server, &err), 0);
	ck_assert_int_lt(tls_server_new(keys.cert, keys.key, "nonsense", &server, &err), 0);
	ck_assert_ptr_null(server);
	drop_keys();
}
END_TEST

START_TEST(loaded_only_when_used)
{
	ck_assert(!is_mapped("libssl"));
	make_keys();
	ck_assert(is_mapped("libssl"));
	drop_keys();
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("tls");

	tcase_add_test(t, loaded_only_when_used);
	tcase_add_loop_test(t, handshake_case, 0, ARRAY_LEN(cases));
	tcase_add_test(t, much_data);
	tcase_add_test(t, garbage);
	tcase_add_test(t, bad_pem);
	return run_case(t);
}

/* tls.c - purpose: TLS over memory buffers, by an OpenSSL that is loaded (dlopen) when first needed. */
#include "common/net/tls.h"

#include "common/net/tls_lib.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>

struct tls_server {
	SSL_CTX *ctx;
};

struct tls_client {
	SSL_CTX *ctx;
	char *server_name;
};

struct tls_conn {
	SSL *ssl;
	struct str waiting; /* written before the handshake was done */
	char *peer;
	bool peer_known;
};

static X509 *cert_of(const char *pem, struct error *err)
{
	BIO *bio = lib.BIO_new_mem_buf(pem, -1);
	X509 *cert = bio ? lib.PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;

	lib.BIO_free(bio);
	if (!cert)
		tls_lib_error(err, "certificate");
	return cert;
}

static EVP_PKEY *key_of(const char *pem, struct error *err)
{
	BIO *bio = lib.BIO_new_mem_buf(pem, -1);
	EVP_PKEY *key = bio ? lib.PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL) : NULL;

	lib.BIO_free(bio);
	if (!key)
		tls_lib_error(err, "private key");
	return key;
}

/* Certificate (the first of the text; others of it as its chain) and key. */
static int use_cert(SSL_CTX *ctx, const char *cert_pem, const char *key_pem, struct error *err)
{
	X509 *cert = cert_of(cert_pem, err);
	EVP_PKEY *key = cert ? key_of(key_pem, err) : NULL;
	int r = 0;

	if (!key)
		r = -EINVAL;
	else if (lib.SSL_CTX_use_certificate(ctx, cert) != 1 || lib.SSL_CTX_use_PrivateKey(ctx, key) != 1 ||
		lib.SSL_CTX_check_private_key(ctx) != 1)
		r = tls_lib_error(err, "certificate and key");
	lib.X509_free(cert);
	lib.EVP_PKEY_free(key);
	return r;
}

/* Every certificate of the text is trusted. */
static int trust(SSL_CTX *ctx, const char *pem, struct error *err)
{
	BIO *bio = lib.BIO_new_mem_buf(pem, -1);
	X509 *cert;
	int n = 0;

	while (bio && (cert = lib.PEM_read_bio_X509(bio, NULL, NULL, NULL))) {
		lib.X509_STORE_add_cert(lib.SSL_CTX_get_cert_store(ctx), cert);
		lib.X509_free(cert);
		n++;
	}
	lib.BIO_free(bio);
	if (n == 0)
		return tls_lib_error(err, "CA certificates");
	lib.ERR_clear_error(); /* the end of the text */
	return 0;
}

static SSL_CTX *context_new(bool server, struct error *err)
{
	SSL_CTX *ctx;

	if (tls_lib_load(err) < 0)
		return NULL;
	ctx = lib.SSL_CTX_new(server ? lib.TLS_server_method() : lib.TLS_client_method());
	if (!ctx) {
		tls_lib_error(err, "TLS context");
		return NULL;
	}
	lib.SSL_CTX_ctrl(ctx, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, NULL);
	lib.SSL_CTX_ctrl(ctx, SSL_CTRL_MODE, SSL_MODE_RELEASE_BUFFERS, NULL);
	lib.SSL_CTX_ctrl(ctx, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, NULL);
	return ctx;
}

/* We speak HTTP/1.1 only; a client that offers it must not think that h2 was chosen. */
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len, const unsigned char *in,
	unsigned in_len, void *data)
{
	static const char http1[] = "http/1.1";

	(void)ssl, (void)data;
	for (unsigned i = 0; i < in_len && i + 1 + in[i] <= in_len; i += 1 + in[i])
		if (in[i] == sizeof(http1) - 1 && memcmp(in + i + 1, http1, in[i]) == 0) {
			*out = in + i + 1;
			*out_len = in[i];
			return SSL_TLSEXT_ERR_OK;
		}
	return SSL_TLSEXT_ERR_NOACK;
}

int tls_server_new(const char *cert_pem, const char *key_pem, const char *client_ca_pem, struct tls_server **ret,
	struct error *err)
{
	struct error inner = ERROR_INIT;
	SSL_CTX *ctx = context_new(true, &inner);
	int r = ctx ? use_cert(ctx, cert_pem, key_pem, &inner) : -EIO;

	if (r == 0 && client_ca_pem) {
		r = trust(ctx, client_ca_pem, &inner);
		lib.SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	}
	if (r < 0) {
		if (ctx)
			lib.SSL_CTX_free(ctx);
		if (err)
			*err = inner;
		return r;
	}
	lib.SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
	/* Sessions that a client resumes must not lose the client's certificate: no tickets. */
	lib.SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
	lib.SSL_CTX_set_num_tickets(ctx, 0);
	*ret = xnew(struct tls_server);
	(*ret)->ctx = ctx;
	return 0;
}

void tls_server_free(struct tls_server *server)
{
	if (!server)
		return;
	lib.SSL_CTX_free(server->ctx);
	free(server);
}

int tls_client_new(const char *ca_pem, const char *cert_pem, const char *key_pem, const char *server_name,
	struct tls_client **ret, struct error *err)
{
	static const unsigned char protocols[] = "\x08http/1.1";
	struct error inner = ERROR_INIT;
	SSL_CTX *ctx = context_new(false, &inner);
	int r = ctx ? 0 : -EIO;

	if (r == 0)
		r = ca_pem ? trust(ctx, ca_pem, &inner)
			   : lib.SSL_CTX_set_default_verify_paths(ctx) == 1 ? 0 : tls_lib_error(&inner, "system CA certificates");
	if (r == 0 && cert_pem && key_pem)
		r = use_cert(ctx, cert_pem, key_pem, &inner);
	if (r < 0) {
		if (ctx)
			lib.SSL_CTX_free(ctx);
		if (err)
			*err = inner;
		return r;
	}
	lib.SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	lib.SSL_CTX_set_alpn_protos(ctx, protocols, sizeof(protocols) - 1);
	*ret = xnew(struct tls_client);
	(*ret)->ctx = ctx;
	(*ret)->server_name = xstrdup(server_name);
	return 0;
}

void tls_client_free(struct tls_client *client)
{
	if (!client)
		return;
	lib.SSL_CTX_free(client->ctx);
	free(client->server_name);
	free(client);
}

void tls_client_trust_all(struct tls_client *client)
{
	lib.SSL_CTX_set_verify(client->ctx, SSL_VERIFY_NONE, NULL);
	free(steal(client->server_name));
}

static struct tls_conn *conn_new(SSL_CTX *ctx)
{
	struct tls_conn *conn = xnew(struct tls_conn);
	BIO *in = lib.BIO_new(lib.BIO_s_mem()), *out = lib.BIO_new(lib.BIO_s_mem());

	conn->ssl = lib.SSL_new(ctx);
	if (!conn->ssl || !in || !out)
		abort(); /* out of memory */
	/* An empty buffer means "later", not the end. */
	lib.BIO_ctrl(in, BIO_C_SET_BUF_MEM_EOF_RETURN, -1, NULL);
	lib.BIO_ctrl(out, BIO_C_SET_BUF_MEM_EOF_RETURN, -1, NULL);
	lib.SSL_set_bio(conn->ssl, in, out);
	return conn;
}

struct tls_conn *tls_accept(struct tls_server *server)
{
	struct tls_conn *conn = conn_new(server->ctx);

	lib.SSL_set_accept_state(conn->ssl);
	return conn;
}

struct tls_conn *tls_connect(struct tls_client *client)
{
	struct tls_conn *conn = conn_new(client->ctx);
	unsigned char ip[16];
	const char *name = client->server_name;

	lib.SSL_set_connect_state(conn->ssl);
	if (!name)
		return conn;
	if (inet_pton(AF_INET, name, ip) == 1 || inet_pton(AF_INET6, name, ip) == 1) {
		lib.X509_VERIFY_PARAM_set1_ip_asc(lib.SSL_get0_param(conn->ssl), name);
	} else {
		lib.SSL_set1_host(conn->ssl, name);
		lib.SSL_ctrl(conn->ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, (void *)name);
	}
	return conn;
}

void tls_conn_free(struct tls_conn *conn)
{
	if (!conn)
		return;
	lib.SSL_free(conn->ssl);
	str_done(&conn->waiting);
	free(conn->peer);
	free(conn);
}

/* What OpenSSL wants to send. */
static void drain(struct tls_conn *conn, struct str *out)
{
	BIO *bio = lib.SSL_get_wbio(conn->ssl);
	char buf[4096];
	int n;

	while ((n = lib.BIO_read(bio, buf, sizeof(buf))) > 0)
		str_add_bytes(out, buf, (size_t)n);
}

static int failed(struct tls_conn *conn, int result, struct str *out, struct error *err)
{
	int why = lib.SSL_get_error(conn->ssl, result);

	if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)
		return 0;
	drain(conn, out); /* the alert */
	if (why == SSL_ERROR_ZERO_RETURN) {
		error_set(err, ERROR_UNAVAILABLE, "TLS: closed by the peer");
		return -ECONNRESET;
	}
	long verify = lib.SSL_get_verify_result(conn->ssl);

	if (verify != X509_V_OK) {
		lib.ERR_clear_error();
		return error_set(err, ERROR_UNAUTHENTICATED, "TLS: certificate of the peer: %s",
			lib.X509_verify_cert_error_string(verify));
	}
	tls_lib_error(err, "TLS");
	return -EPROTO;
}

static int write_waiting(struct tls_conn *conn, struct str *out, struct error *err)
{
	if (!lib.SSL_is_init_finished(conn->ssl) || !conn->waiting.len)
		return 0;
	_cleanup_(str_done) struct str text = conn->waiting;

	conn->waiting = STR_INIT;
	return tls_conn_write(conn, text.buf, text.len, out, err);
}

int tls_conn_feed(struct tls_conn *conn, const void *p, size_t len, struct str *plain, struct str *out, struct error *err)
{
	char buf[8192];
	int n = 0, r = 0;

	lib.ERR_clear_error();
	/* A memory BIO takes everything. */
	if (len > INT_MAX || (len && lib.BIO_write(lib.SSL_get_rbio(conn->ssl), p, (int)len) != (int)len))
		return tls_lib_error(err, "TLS");
	while ((n = lib.SSL_read(conn->ssl, buf, sizeof(buf))) > 0)
		str_add_bytes(plain, buf, (size_t)n);
	r = failed(conn, n, out, err);
	if (r == 0)
		r = write_waiting(conn, out, err);
	drain(conn, out);
	return r;
}

int tls_conn_write(struct tls_conn *conn, const void *p, size_t len, struct str *out, struct error *err)
{
	const char *at = p;

	lib.ERR_clear_error();
	if (!lib.SSL_is_init_finished(conn->ssl)) {
		int n = lib.SSL_do_handshake(conn->ssl);

		str_add_bytes(&conn->waiting, p, len);
		drain(conn, out);
		return n == 1 ? write_waiting(conn, out, err) : failed(conn, n, out, err);
	}
	while (len > 0) {
		int n = lib.SSL_write(conn->ssl, at, (int)MIN(len, (size_t)16384));

		if (n <= 0) {
			int r = failed(conn, n, out, err);

			return r < 0 ? r : error_set(err, ERROR_INTERNAL, "TLS: renegotiation is not supported");
		}
		at += n;
		len -= (size_t)n;
	}
	drain(conn, out);
	return 0;
}

void tls_conn_shutdown(struct tls_conn *conn, struct str *out)
{
	if (lib.SSL_is_init_finished(conn->ssl))
		lib.SSL_shutdown(conn->ssl);
	lib.ERR_clear_error();
	drain(conn, out);
}

const char *tls_conn_peer(const struct tls_conn *conn)
{
	struct tls_conn *c = (struct tls_conn *)conn;
	char name[256];

	if (conn->peer_known || !lib.SSL_is_init_finished(conn->ssl))
		return conn->peer;
	c->peer_known = true;
	X509 *cert = lib.SSL_get1_peer_certificate(conn->ssl);

	if (cert && lib.SSL_get_verify_result(conn->ssl) == X509_V_OK &&
		lib.X509_NAME_get_text_by_NID(lib.X509_get_subject_name(cert), NID_commonName, name, sizeof(name)) > 0)
		c->peer = xstrdup(name);
	lib.X509_free(cert);
	return c->peer;
}

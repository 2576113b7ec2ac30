/*
 * tls.h - purpose: TLS over memory buffers, by an OpenSSL that is loaded (dlopen) when first needed.
 *
 * A daemon that never uses TLS never maps libssl (4.7 MB; see docs/architecture.md). Sans I/O: bytes in, bytes out.
 * Loop thread only.
 */
#pragma once
#include "common/base/error.h"
#include "common/base/str.h"

struct tls_server; /* certificate, key, client CA */
struct tls_client; /* CA, client certificate */
struct tls_conn;

/* PEM texts. client_ca NULL: no client certificate is asked for; else it is asked for and, if given, must verify. */
int tls_server_new(const char *cert_pem, const char *key_pem, const char *client_ca_pem, struct tls_server **ret,
	struct error *err) MUST_USE;
void tls_server_free(struct tls_server *server);
/* cert/key may be NULL. server_name is checked against the certificate (DNS name or IP). */
int tls_client_new(const char *ca_pem, const char *cert_pem, const char *key_pem, const char *server_name,
	struct tls_client **ret, struct error *err) MUST_USE;
void tls_client_free(struct tls_client *client);
/* Takes any certificate: for probes of containers, which prove nothing to anybody. */
void tls_client_trust_all(struct tls_client *client);

struct tls_conn *tls_accept(struct tls_server *server);
struct tls_conn *tls_connect(struct tls_client *client);
void tls_conn_free(struct tls_conn *conn);
/* Feeds bytes from the network; decrypted bytes are appended to `plain`, bytes to send to `out`. */
int tls_conn_feed(struct tls_conn *conn, const void *p, size_t len, struct str *plain, struct str *out,
	struct error *err) MUST_USE;
/* Encrypts; appends what must be sent to `out`. Before the handshake is done the bytes are kept. */
int tls_conn_write(struct tls_conn *conn, const void *p, size_t len, struct str *out, struct error *err) MUST_USE;
/* Close-notify. */
void tls_conn_shutdown(struct tls_conn *conn, struct str *out);
/* Common name of the verified peer certificate, NULL if there is none. Owned by conn. */
const char *tls_conn_peer(const struct tls_conn *conn);

/* A new P-256 key and a certificate for it, PEM, owned by the caller: self-signed when ca_* are NULL (a CA).
 * `names`: comma-separated DNS names and IP addresses. client: for client authentication. */
int tls_make_cert(const char *ca_cert_pem, const char *ca_key_pem, const char *common_name, const char *organization,
	const char *names, bool client, int days, char **ret_cert_pem, char **ret_key_pem, struct error *err) MUST_USE;

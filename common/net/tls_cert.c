/* tls_cert.c - purpose: make a key and a certificate for it: a CA of our own, servers and clients under it. */
#include "common/net/tls.h"
#include "common/net/tls_lib.h"

#include <arpa/inet.h>

#include "common/sys/file.h"

static int add_extension(X509 *cert, X509 *issuer, int nid, const char *value, struct error *err)
{
	X509V3_CTX ctx = { 0 };

	lib.X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	X509_EXTENSION *ext = lib.X509V3_EXT_conf_nid(NULL, &ctx, nid, value);

	if (!ext || lib.X509_add_ext(cert, ext, -1) != 1) {
		lib.X509_EXTENSION_free(ext);
		return tls_lib_error(err, value);
	}
	lib.X509_EXTENSION_free(ext);
	return 0;
}

/* "a,10.0.0.1" -> "DNS:a,IP:10.0.0.1" */
static char *alternative_names(const char *names)
{
	_cleanup_(strv_done) struct strv list = STRV_INIT;
	_cleanup_(str_done) struct str s = STR_INIT;
	unsigned char ip[16];

	strv_split(&list, names, ',');
	for (size_t i = 0; i < list.n; i++) {
		bool is_ip = inet_pton(AF_INET, list.v[i], ip) == 1 || inet_pton(AF_INET6, list.v[i], ip) == 1;

		str_addf(&s, "%s%s:%s", i ? "," : "", is_ip ? "IP" : "DNS", list.v[i]);
	}
	return str_take(&s);
}

static int extensions(X509 *cert, X509 *issuer, bool ca, const char *names, bool client, struct error *err)
{
	int r = add_extension(cert, issuer, NID_basic_constraints, ca ? "critical,CA:TRUE" : "critical,CA:FALSE", err);

	if (r == 0)
		r = add_extension(cert, issuer, NID_key_usage,
			ca ? "critical,digitalSignature,keyCertSign,cRLSign" : "critical,digitalSignature", err);
	if (r == 0)
		r = add_extension(cert, issuer, NID_subject_key_identifier, "hash", err);
	if (r == 0 && !ca)
		r = add_extension(cert, issuer, NID_authority_key_identifier, "keyid", err);
	if (r == 0 && !ca)
		r = add_extension(cert, issuer, NID_ext_key_usage, client ? "clientAuth" : "serverAuth", err);
	if (r == 0 && names && *names) {
		_cleanup_free_ char *text = alternative_names(names);

		r = add_extension(cert, issuer, NID_subject_alt_name, text, err);
	}
	return r;
}

static int subject(X509 *cert, const char *common_name, const char *organization, struct error *err)
{
	X509_NAME *name = lib.X509_get_subject_name(cert);

	if (organization && lib.X509_NAME_add_entry_by_txt(name, "O", MBSTRING_UTF8, (const unsigned char *)organization, -1,
				    -1, 0) != 1)
		return tls_lib_error(err, "organization");
	if (lib.X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)common_name, -1, -1, 0) != 1)
		return tls_lib_error(err, "common name");
	return 0;
}

static int validity(X509 *cert, int days, struct error *err)
{
	char hex[16];

	random_hex(hex, 15); /* 60 bits: never negative */
	bool ok = lib.X509_set_version(cert, 2) == 1 &&
		lib.ASN1_INTEGER_set_uint64(lib.X509_get_serialNumber(cert), strtoull(hex, NULL, 16)) == 1 &&
		/* An hour back: clocks differ. */
		lib.X509_gmtime_adj(lib.X509_getm_notBefore(cert), -3600) &&
		lib.X509_gmtime_adj(lib.X509_getm_notAfter(cert), 86400L * days);

	return ok ? 0 : tls_lib_error(err, "validity");
}

static char *bio_text(BIO *bio)
{
	_cleanup_(str_done) struct str s = STR_INIT;
	char buf[1024];
	int n;

	while ((n = lib.BIO_read(bio, buf, sizeof(buf))) > 0)
		str_add_bytes(&s, buf, (size_t)n);
	return str_take(&s);
}

static int to_pem(X509 *cert, EVP_PKEY *key, char **ret_cert_pem, char **ret_key_pem, struct error *err)
{
	BIO *cert_bio = lib.BIO_new(lib.BIO_s_mem()), *key_bio = lib.BIO_new(lib.BIO_s_mem());
	int r = 0;

	if (lib.PEM_write_bio_X509(cert_bio, cert) == 1 &&
		lib.PEM_write_bio_PrivateKey(key_bio, key, NULL, NULL, 0, NULL, NULL) == 1) {
		*ret_cert_pem = bio_text(cert_bio);
		*ret_key_pem = bio_text(key_bio);
	} else {
		r = tls_lib_error(err, "PEM");
	}
	lib.BIO_free(cert_bio);
	lib.BIO_free(key_bio);
	return r;
}

struct maker {
	X509 *cert, *ca;
	EVP_PKEY *key, *ca_key;
};

static void maker_done(struct maker *m)
{
	lib.X509_free(m->cert);
	lib.X509_free(m->ca);
	lib.EVP_PKEY_free(m->key);
	lib.EVP_PKEY_free(m->ca_key);
}

static int load_ca(struct maker *m, const char *cert_pem, const char *key_pem, struct error *err)
{
	BIO *cert = lib.BIO_new_mem_buf(cert_pem, -1), *key = lib.BIO_new_mem_buf(key_pem, -1);

	m->ca = lib.PEM_read_bio_X509(cert, NULL, NULL, NULL);
	m->ca_key = lib.PEM_read_bio_PrivateKey(key, NULL, NULL, NULL);
	lib.BIO_free(cert);
	lib.BIO_free(key);
	return m->ca && m->ca_key ? 0 : tls_lib_error(err, "CA");
}

int tls_make_cert(const char *ca_cert_pem, const char *ca_key_pem, const char *common_name, const char *organization,
	const char *names, bool client, int days, char **ret_cert_pem, char **ret_key_pem, struct error *err)
{
	int r = tls_lib_load(err);

	if (r < 0)
		return r;
	_cleanup_(maker_done) struct maker m = { .cert = lib.X509_new(),
		.key = lib.EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256") };

	if (!m.cert || !m.key)
		return tls_lib_error(err, "key");
	if (ca_cert_pem)
		r = load_ca(&m, ca_cert_pem, ca_key_pem, err);
	if (r == 0)
		r = validity(m.cert, days, err);
	if (r == 0)
		r = subject(m.cert, common_name, organization, err);
	if (r < 0)
		return r;
	X509 *issuer = m.ca ? m.ca : m.cert;

	if (lib.X509_set_issuer_name(m.cert, lib.X509_get_subject_name(issuer)) != 1 ||
		lib.X509_set_pubkey(m.cert, m.key) != 1)
		return tls_lib_error(err, "certificate");
	r = extensions(m.cert, issuer, !m.ca, names, client, err);
	if (r < 0)
		return error_prefix(err, "certificate for %s", common_name);
	if (lib.X509_sign(m.cert, m.ca ? m.ca_key : m.key, lib.EVP_sha256()) == 0)
		return tls_lib_error(err, "sign");
	return to_pem(m.cert, m.key, ret_cert_pem, ret_key_pem, err);
}

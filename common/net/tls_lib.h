/*
 * tls_lib.h - purpose: OpenSSL's functions as pointers, filled by dlopen() when TLS is first used.
 *
 * Only tls.c and tls_cert.c use it. Headers are OpenSSL 3's; nothing is linked.
 */
#pragma once
#include "common/base/error.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#define TLS_SSL_FUNCTIONS(X)                                                                                           \
	X(SSL_CTX_check_private_key)                                                                                   \
	X(SSL_CTX_ctrl)                                                                                                \
	X(SSL_CTX_free)                                                                                                \
	X(SSL_CTX_get_cert_store)                                                                                      \
	X(SSL_CTX_new)                                                                                                 \
	X(SSL_CTX_set_alpn_protos)                                                                                     \
	X(SSL_CTX_set_alpn_select_cb)                                                                                  \
	X(SSL_CTX_set_default_verify_paths)                                                                            \
	X(SSL_CTX_set_num_tickets)                                                                                     \
	X(SSL_CTX_set_options)                                                                                         \
	X(SSL_CTX_set_verify)                                                                                          \
	X(SSL_CTX_use_PrivateKey)                                                                                      \
	X(SSL_CTX_use_certificate)                                                                                     \
	X(SSL_ctrl)                                                                                                    \
	X(SSL_do_handshake)                                                                                            \
	X(SSL_free)                                                                                                    \
	X(SSL_get0_param)                                                                                              \
	X(SSL_get1_peer_certificate)                                                                                   \
	X(SSL_get_error)                                                                                               \
	X(SSL_get_rbio)                                                                                                \
	X(SSL_get_verify_result)                                                                                       \
	X(SSL_get_wbio)                                                                                                \
	X(SSL_is_init_finished)                                                                                        \
	X(SSL_new)                                                                                                     \
	X(SSL_read)                                                                                                    \
	X(SSL_set1_host)                                                                                               \
	X(SSL_set_accept_state)                                                                                        \
	X(SSL_set_bio)                                                                                                 \
	X(SSL_set_connect_state)                                                                                       \
	X(SSL_shutdown)                                                                                                \
	X(SSL_write)                                                                                                   \
	X(TLS_client_method)                                                                                           \
	X(TLS_server_method)

#define TLS_CRYPTO_FUNCTIONS(X)                                                                                        \
	X(ASN1_INTEGER_set_uint64)                                                                                     \
	X(BIO_ctrl)                                                                                                    \
	X(BIO_free)                                                                                                    \
	X(BIO_new)                                                                                                     \
	X(BIO_new_mem_buf)                                                                                             \
	X(BIO_read)                                                                                                    \
	X(BIO_s_mem)                                                                                                   \
	X(BIO_write)                                                                                                   \
	X(ERR_clear_error)                                                                                             \
	X(ERR_error_string_n)                                                                                          \
	X(ERR_get_error)                                                                                               \
	X(EVP_PKEY_Q_keygen)                                                                                           \
	X(EVP_PKEY_free)                                                                                               \
	X(EVP_sha256)                                                                                                  \
	X(PEM_read_bio_PrivateKey)                                                                                     \
	X(PEM_read_bio_X509)                                                                                           \
	X(PEM_write_bio_PrivateKey)                                                                                    \
	X(PEM_write_bio_X509)                                                                                          \
	X(X509V3_EXT_conf_nid)                                                                                         \
	X(X509V3_set_ctx)                                                                                              \
	X(X509_EXTENSION_free)                                                                                         \
	X(X509_NAME_add_entry_by_txt)                                                                                  \
	X(X509_NAME_get_text_by_NID)                                                                                   \
	X(X509_STORE_add_cert)                                                                                         \
	X(X509_VERIFY_PARAM_set1_ip_asc)                                                                               \
	X(X509_add_ext)                                                                                                \
	X(X509_free)                                                                                                   \
	X(X509_get_serialNumber)                                                                                       \
	X(X509_get_subject_name)                                                                                       \
	X(X509_getm_notAfter)                                                                                          \
	X(X509_getm_notBefore)                                                                                         \
	X(X509_gmtime_adj)                                                                                             \
	X(X509_new)                                                                                                    \
	X(X509_set_issuer_name)                                                                                        \
	X(X509_set_pubkey)                                                                                             \
	X(X509_set_version)                                                                                            \
	X(X509_sign)                                                                                                   \
	X(X509_verify_cert_error_string)

struct tls_lib {
#define X(f) __typeof__(&f) f;
	TLS_SSL_FUNCTIONS(X)
	TLS_CRYPTO_FUNCTIONS(X)
#undef X
};

extern struct tls_lib lib;

/* Once; later calls do nothing. UNAVAILABLE when the library is not installed or too old. */
int tls_lib_load(struct error *err) MUST_USE;
/* Takes OpenSSL's newest error as text: "what: text". Returns a negative errno. */
int tls_lib_error(struct error *err, const char *what);

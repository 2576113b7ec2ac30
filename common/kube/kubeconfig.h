/*
 * kubeconfig.h - purpose: how to reach a Kubernetes API server, read from a kubeconfig file.
 *
 * The current context's cluster and user. Certificates and keys by file or inline; tokens by file or inline. What we do
 * not do is refused by name, never skipped: exec and auth-provider plugins, passwords, impersonation, HTTP proxies,
 * unverified TLS. Blocking: files are read, and a host name is resolved.
 */
#pragma once
#include "common/base/error.h"
#include "common/base/str.h"
#include "common/net/sock.h"

struct kubeconfig {
	struct sock_address address;
	char *host; /* of the Host header: "example.org:6443" */
	bool tls;
	char *server_name;		   /* whom the certificate must name */
	char *ca_pem, *cert_pem, *key_pem; /* NULL: not given */
	char *token;			   /* NULL: none; read from token_file if there is one */
	struct strv files;		   /* all that was read: when one of them changes, load again */
};

void kubeconfig_done(struct kubeconfig *config);
/* *ret must be empty; it stays so on failure. */
int kubeconfig_load(const char *path, struct kubeconfig *ret, struct error *err) MUST_USE;

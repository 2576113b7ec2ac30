/*
 * hosts.h - purpose: where to fetch a registry's images from: mirrors and TLS by certs.d/<host>/hosts.toml. Pure but for
 * hosts_load().
 *
 * The format is containerd's. <dir>/<host[:port]>/hosts.toml, else <dir>/<host>_<port>_/hosts.toml, else
 * <dir>/_default/hosts.toml:
 *
 *	server = "https://registry.example"
 *	[host."https://mirror.example"]
 *	  capabilities = ["pull", "resolve"]     what it may be asked for
 *	  ca = "mirror.pem"                      one or several; relative to the file's directory
 *	  client = [["cert.pem", "key.pem"]]     or "both.pem"
 *	  skip_verify = false
 *	  override_path = false                  the URL's path is complete: no "/v2" behind it
 *	  [host."https://mirror.example".header]
 *	    x-team = "a"
 */
#pragma once
#include "common/base/error.h"
#include "common/base/str.h"

struct endpoint {
	char *url;  /* "https://host[:port]/v2", without a slash at the end */
	char *host; /* "host[:port]", for messages and credentials */
	bool pull, resolve;
	bool mirror; /* not the registry itself: gets "?ns=<registry>", no credentials of the registry */
	bool skip_verify;
	struct strv ca;                  /* files */
	char *client_cert, *client_key; /* NULL: none */
	struct strv headers;             /* "name: value" */
};

struct endpoints {
	struct endpoint *v; /* in the order to try */
	size_t n;
};
void endpoints_done(struct endpoints *e);

/* `registry` as in a reference. `text` NULL: no hosts.toml. `dir` is where its files are relative to. `plain_http`: the
 * registry itself is spoken to by HTTP unless hosts.toml says otherwise. INVALID naming key and value. */
int hosts_parse(const char *registry, const char *text, size_t len, const char *dir, bool plain_http, struct endpoints *ret,
	struct error *err) MUST_USE;
/* Reads the file that applies; also <dir>/<host>/<name>.crt as CAs, as Docker lays them out. */
int hosts_load(const char *config_dir, const char *registry, bool plain_http, struct endpoints *ret, struct error *err) MUST_USE;
/* localhost, 127.0.0.0/8 and [::1] are spoken to by plain HTTP, as containerd does it. */
bool registry_is_local(const char *registry);

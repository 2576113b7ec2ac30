/* tls_lib.c - purpose: OpenSSL's functions as pointers, filled by dlopen() when TLS is first used. */
#include "common/net/tls_lib.h"

#include <dlfcn.h>

struct tls_lib lib;

static int load(void *handle, const char *name, void *ret, struct error *err)
{
	void *symbol = dlsym(handle, name);

	if (!symbol)
		return error_set(err, ERROR_UNAVAILABLE, "TLS needs OpenSSL 3: function %s is missing", name);
	/* POSIX: a function pointer fits into a void pointer. */
	memcpy(ret, &symbol, sizeof(symbol));
	return 0;
}

int tls_lib_load(struct error *err)
{
	static bool loaded;
	int r;

	if (loaded)
		return 0;
	void *crypto = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL);
	void *ssl = crypto ? dlopen("libssl.so.3", RTLD_NOW | RTLD_LOCAL) : NULL;

	if (!ssl)
		return error_set(err, ERROR_UNAVAILABLE, "TLS needs OpenSSL 3 (package libssl3): %s", dlerror());
#define X(f)                                                                                                           \
	r = load(ssl, #f, &lib.f, err);                                                                                \
	if (r < 0)                                                                                                     \
		return r;
	TLS_SSL_FUNCTIONS(X)
#undef X
#define X(f)                                                                                                           \
	r = load(crypto, #f, &lib.f, err);                                                                             \
	if (r < 0)                                                                                                     \
		return r;
	TLS_CRYPTO_FUNCTIONS(X)
#undef X
	loaded = true;
	return 0;
}

int tls_lib_error(struct error *err, const char *what)
{
	char text[200] = "no reason given";
	unsigned long code = lib.ERR_get_error();

	if (code)
		lib.ERR_error_string_n(code, text, sizeof(text));
	lib.ERR_clear_error();
	return error_set(err, ERROR_INVALID, "%s: %s", what, text);
}

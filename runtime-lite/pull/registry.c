/* registry.c - purpose: fetch manifests and blobs of one repository: endpoints in order, redirects, retries, resuming. */
#include "runtime-lite/pull/registry.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "common/base/sha256.h"
#include "common/wire/json.h"
#include "common/wire/url.h"
#include "runtime-lite/image/manifest.h"
#include "runtime-lite/pull/token.h"

#define MANIFEST_TYPES                                                                                                 \
	"application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.list.v2+json, "         \
	"application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json, */*;q=0.1"

enum { REDIRECTS_MAX = 10, TRIES_MAX = 4, RESUMES_MAX = 64, RETRY_AFTER_MAX = 10 };

struct registry {
	const struct reference *ref;
	struct endpoints endpoints;
	struct token_cache *tokens;
};

int registry_new(const struct registry_options *o, struct registry **ret, struct error *err)
{
	struct registry *r = xnew(struct registry);
	bool plain = registry_is_local(o->ref->registry) || strv_has(o->insecure, o->ref->registry);
	int result = hosts_load(o->config_dir, o->ref->registry, plain, &r->endpoints, err);

	r->ref = o->ref;
	r->tokens = token_cache_new(o);
	if (result < 0) {
		registry_free(r);
		return result;
	}
	*ret = r;
	return 0;
}

struct registry *registry_free(struct registry *r)
{
	if (!r)
		return NULL;
	endpoints_done(&r->endpoints);
	token_cache_free(r->tokens);
	free(r);
	return NULL;
}

/* What the registry says about an error: {"errors":[{"code":..., "message":...}]}; else nothing. Owned by the caller. */
static char *explanation(const struct http_reply *reply)
{
	_cleanup_json_ json_t *root = NULL;

	if (reply->body.len == 0 || json_read(reply->body.buf, reply->body.len, false, &root, NULL) < 0)
		return xstrdup("");
	const json_t *first = json_array_get(json_object_get(root, "errors"), 0);
	const char *text = json_str_at(first, "message", json_str_at(first, "code", ""));
	char *out = *text ? xasprintf(": %.200s", text) : xstrdup("");
	for (char *p = out; *p; p++)
		if ((unsigned char)*p < ' ')
			*p = ' ';
	return out;
}

static const struct {
	long status;
	const char *text;
} reasons[] = { { 400, "Bad Request" }, { 401, "Unauthorized" }, { 403, "Forbidden" }, { 404, "Not Found" },
	{ 406, "Not Acceptable" }, { 408, "Request Timeout" }, { 410, "Gone" }, { 416, "Range Not Satisfiable" },
	{ 429, "Too Many Requests" }, { 451, "Unavailable For Legal Reasons" }, { 500, "Internal Server Error" },
	{ 502, "Bad Gateway" }, { 503, "Service Unavailable" }, { 504, "Gateway Timeout" } };

static const char *reason(long status)
{
	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (reasons[i].status == status)
			return reasons[i].text;
	return "unexpected";
}

static int status_error(const struct endpoint *e, const struct http_reply *reply, struct error *err)
{
	_cleanup_free_ char *why = explanation(reply);
	const char *name = reason(reply->status);
	long s = reply->status;

	if (s == 404)
		return error_set(err, ERROR_NOT_FOUND, "%s does not have it (404 Not Found%s)", e->host, why);
	if (s == 401)
		return error_set(err, ERROR_UNAUTHENTICATED,
			"%s wants (other) credentials, or has no such repository (401 Unauthorized%s)", e->host, why);
	if (s == 403)
		return error_set(err, ERROR_DENIED, "%s denies access (403 Forbidden%s)", e->host, why);
	if (s == 429)
		return error_set(err, ERROR_UNAVAILABLE, "RegistryUnavailable: %s was asked too often (429 Too Many Requests%s)",
			e->host, why);
	if (s >= 500 || s == 408)
		return error_set(err, ERROR_UNAVAILABLE, "RegistryUnavailable: %s answered %ld %s%s", e->host, s, name, why);
	return error_set(err, ERROR_UNKNOWN, "%s answered %ld %s%s", e->host, s, name, why);
}

/* "RegistryUnavailable: host: what", for what the HTTP client could not do. */
static int transport_error(const struct endpoint *e, const struct http_reply *reply, struct error *err)
{
	switch (reply->failure) {
	case HTTP_SINK:
	case HTTP_ABORTED:
		return error_prefix(err, "%s", e->host);
	default:
		error_prefix(err, "%s", e->host);
		return error_prefix(err, "RegistryUnavailable");
	}
}

static bool is_redirect(long status)
{
	return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* Where a redirect goes; NULL with *err set when it may not be followed. */
static char *redirect_target(const char *from, const struct http_reply *reply, struct error *err)
{
	char *to = reply->location ? http_resolve(from, reply->location) : NULL;

	if (!to) {
		error_set(err, ERROR_UNKNOWN, "redirect to \"%.200s\", which is no http or https URL",
			reply->location ? reply->location : "");
		return NULL;
	}
	if (str_starts(from, "https:") && str_starts(to, "http:")) {
		error_set(err, ERROR_UNKNOWN, "redirect from https to http refused: %.200s", to);
		free(to);
		return NULL;
	}
	return to;
}

/* One request with its redirects. Tokens and headers of the endpoint go to the endpoint's own origin only. */
static int follow(const struct endpoint *e, struct http_client *c, struct http_request *q, const char *authorization,
	struct http_reply *reply, struct error *err)
{
	_cleanup_free_ char *origin = http_origin(q->url), *url = xstrdup(q->url);

	for (int hop = 0; hop <= REDIRECTS_MAX; hop++) {
		_cleanup_free_ char *here = http_origin(url);
		bool own = str_eq(here, origin);

		q->url = url;
		q->endpoint = e;
		q->own_headers = own;
		q->authorization = own ? authorization : NULL;
		int r = http_perform(c, q, reply, err);
		if (r < 0)
			return transport_error(e, reply, err);
		if (!is_redirect(reply->status))
			return 0;
		char *next = redirect_target(url, reply, err);
		if (!next)
			return error_prefix(err, "%s", e->host);
		free(url);
		url = next;
		http_reply_done(reply);
	}
	reply->failure = HTTP_OTHER;
	return error_set(err, ERROR_UNKNOWN, "%s: more than %d redirects", e->host, REDIRECTS_MAX);
}

/* With a token: a cached one, or after a 401 the one that the answer asks for. */
static int authorized(struct registry *r, const struct endpoint *e, struct http_client *c, struct http_request *q,
	struct http_reply *reply, struct error *err)
{
	_cleanup_free_ char *url = xstrdup(q->url);
	_cleanup_free_ char *token = token_cached(r->tokens, e);
	int result = follow(e, c, q, token, reply, err);

	if (result < 0 || reply->status != 401 || !reply->authenticate)
		return result;
	_cleanup_free_ char *fresh = NULL;
	result = token_fetch(r->tokens, e, c, reply->authenticate, token, &fresh, err);
	if (result < 0)
		return error_prefix(err, "%s", e->host);
	if (!fresh)
		return 0; /* nothing that we could offer: the 401 stands */
	http_reply_done(reply);
	q->url = url;
	return follow(e, c, q, fresh, reply, err);
}

static void pause_ms(unsigned ms)
{
	struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };

	nanosleep(&t, NULL);
}

/* Worth another try? How long to wait first: 0.3, 1, 3 s; or what the registry says, if that is short. */
static bool again(const struct http_reply *reply, int result, int tries, unsigned *ret_ms)
{
	static const unsigned waits[TRIES_MAX] = { 300, 1000, 3000, 3000 };
	bool passing = result < 0 ? reply->failure == HTTP_CUT || reply->failure == HTTP_CONNECT :
				    reply->status == 429 || reply->status >= 500 || reply->status == 408;
	/* A name that does not resolve, a port that nobody listens on: the next try in a second is the caller's matter. */
	int max = result < 0 && reply->failure == HTTP_CONNECT ? 2 : TRIES_MAX;

	if (!passing || tries >= max)
		return false;
	*ret_ms = waits[tries - 1];
	if (result == 0 && reply->retry_after) {
		char *end;
		unsigned long seconds = strtoul(reply->retry_after, &end, 10);

		if (*end || seconds > RETRY_AFTER_MAX)
			return false;
		*ret_ms = (unsigned)seconds * 1000;
	}
	return true;
}

static char *make_url(const struct registry *r, const struct endpoint *e, const char *what, const char *name)
{
	return xasprintf("%s/%s/%s/%s%s%s", e->url, r->ref->path, what, name, e->mirror ? "?ns=" : "",
		e->mirror ? r->ref->registry : "");
}

/* A small answer of one endpoint, with tries. *reply is filled when 0 is returned (any status). */
static int ask(struct registry *r, const struct endpoint *e, struct http_client *c, const char *what, const char *name,
	bool head, size_t body_max, struct http_reply *reply, struct error *err)
{
	_cleanup_free_ char *url = make_url(r, e, what, name);
	unsigned wait_ms;

	for (int tries = 1;; tries++) {
		struct http_request q = { .url = url, .head = head, .body_max = body_max,
			.accept = str_eq(what, "manifests") ? MANIFEST_TYPES : NULL };
		int result = authorized(r, e, c, &q, reply, err);

		if (!again(reply, result, tries, &wait_ms))
			return result;
		http_reply_done(reply);
		pause_ms(wait_ms);
	}
}

/* Keeps the error that says most: that of the registry itself comes last and wins, unless a mirror was reached at all. */
static bool usable(const struct endpoint *e, bool by_digest)
{
	return e->pull && (by_digest || e->resolve);
}

int registry_resolve(struct registry *r, struct http_client *c, const char *target, char **ret, struct error *err)
{
	int result = error_set(err, ERROR_PRECONDITION, "no host in hosts.toml may resolve %.100s", target);

	for (size_t i = 0; i < r->endpoints.n; i++) {
		struct endpoint *e = &r->endpoints.v[i];
		struct http_reply reply = { 0 };

		if (!usable(e, digest_valid(target)))
			continue;
		result = ask(r, e, c, "manifests", target, true, 0, &reply, err);
		long status = reply.status;
		char *digest = result == 0 && status == 200 && digest_valid(reply.docker_digest) ? xstrdup(reply.docker_digest) : NULL;
		if (result == 0 && (status >= 500 || status == 429))
			result = status_error(e, &reply, err);
		http_reply_done(&reply);
		if (result < 0)
			continue;
		/* No HEAD there, or an error that the answer to GET explains in its body. */
		*ret = digest;
		return 0;
	}
	return result;
}

static int check_manifest(const struct http_reply *reply, const char *digest, struct error *err)
{
	char hex[SHA256_HEX_LEN + 1];

	sha256_hex(str_get(&reply->body), reply->body.len, hex);
	if (!digest || strcmp(hex, digest_hex(digest)) == 0)
		return 0;
	return error_set(err, ERROR_DATA_LOSS, "the manifest has the wrong digest: sha256:%s instead of %s", hex, digest);
}

int registry_manifest(struct registry *r, struct http_client *c, const char *target, const char *digest, char **ret,
	size_t *ret_len, char **ret_media_type, struct error *err)
{
	int result = error_set(err, ERROR_PRECONDITION, "no host in hosts.toml may be asked for %.100s", target);

	for (size_t i = 0; i < r->endpoints.n; i++) {
		struct endpoint *e = &r->endpoints.v[i];
		struct http_reply reply = { 0 };

		if (!usable(e, digest_valid(target)))
			continue;
		result = ask(r, e, c, "manifests", target, false, MANIFEST_SIZE_MAX, &reply, err);
		if (result == 0 && reply.status != 200)
			result = status_error(e, &reply, err);
		if (result == 0) {
			result = check_manifest(&reply, digest, err);
			if (result < 0)
				error_prefix(err, "%s", e->host);
		}
		if (result == 0) {
			*ret_len = reply.body.len;
			*ret = str_take(&reply.body);
			*ret_media_type = xstrdup(reply.content_type ? reply.content_type : "");
		}
		http_reply_done(&reply);
		if (result == 0)
			return 0;
	}
	return result;
}

struct download {
	int (*sink)(void *data, const void *p, size_t n, struct error *err);
	void *data;
	uint64_t position; /* bytes that the sink has got */
	uint64_t skip;     /* bytes of this answer to drop: the server began at the start again */
	bool began;        /* of this answer */
};

/* Content-Range: "bytes 100-199/200". */
static bool range_starts_at(const char *range, uint64_t position)
{
	char *end;

	if (!range || !str_starts(range, "bytes "))
		return false;
	return strtoull(range + 6, &end, 10) == position && *end == '-';
}

static int on_blob(void *data, const struct http_request *q, const void *p, size_t n, struct error *err)
{
	struct download *d = data;

	if (!d->began) {
		d->began = true;
		if (q->reply->status == 206 && !range_starts_at(q->reply->content_range, q->range_from))
			return error_set(err, ERROR_UNKNOWN, "the registry continued at another place than it was asked to");
		d->skip = q->reply->status == 206 ? 0 : d->position;
	}
	size_t dropped = (size_t)MIN((uint64_t)n, d->skip);
	d->skip -= dropped;
	n -= dropped;
	if (n == 0)
		return 0;
	int r = d->sink(d->data, (const char *)p + dropped, n, err);
	d->position += n;
	return r;
}

/* One endpoint: a try that brought progress does not count, within reason. */
static int download(struct registry *r, const struct endpoint *e, struct http_client *c, const char *digest, uint64_t size,
	struct download *d, bool *ret_final, struct error *err)
{
	_cleanup_free_ char *url = make_url(r, e, "blobs", digest);

	for (int tries = 1, resumes = 0;; tries++) {
		struct http_reply reply = { 0 };
		uint64_t before = d->position;
		unsigned wait_ms = 0;
		struct http_request q = { .url = url, .sink = on_blob, .data = d, .range_from = d->position };

		d->began = false;
		int result = authorized(r, e, c, &q, &reply, err);
		if (d->position > before && ++resumes <= RESUMES_MAX)
			tries = 1;
		bool retry = again(&reply, result, tries, &wait_ms);
		if (result == 0 && reply.status / 100 != 2)
			result = status_error(e, &reply, err);
		else if (result == 0 && d->position < size)
			/* A server that ends early without a Content-Length looks complete. */
			result = error_set(err, ERROR_DATA_LOSS, "%s: it is truncated: %" PRIu64 " of %" PRIu64 " bytes", e->host,
				d->position, size);
		*ret_final = reply.failure == HTTP_SINK || reply.failure == HTTP_ABORTED;
		http_reply_done(&reply);
		if (result == 0 || !retry)
			return result;
		pause_ms(wait_ms);
	}
}

int registry_blob(struct registry *r, struct http_client *c, const char *digest, uint64_t size,
	int (*sink)(void *data, const void *p, size_t n, struct error *err), void *data, struct error *err)
{
	struct download d = { .sink = sink, .data = data };
	int result = error_set(err, ERROR_PRECONDITION, "no host in hosts.toml may be asked for blobs");

	for (size_t i = 0; i < r->endpoints.n; i++) {
		bool final = false;

		if (!usable(&r->endpoints.v[i], true))
			continue;
		/* Another endpoint goes on where this one stopped: content is the same by its digest. */
		result = download(r, &r->endpoints.v[i], c, digest, size, &d, &final, err);
		if (result == 0 || final)
			return result;
	}
	return result;
}

/* token.c - purpose: what to put into the Authorization header: Bearer tokens (anonymous or with credentials), Basic. */
#include "runtime-lite/pull/token.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include "common/base/codec.h"
#include "common/base/map.h"
#include "common/sys/file.h"
#include "common/wire/json.h"
#include "common/wire/url.h"
#include "runtime-lite/image/challenge.h"

enum { TOKEN_ANSWER_MAX = 256 * 1024, TOKEN_MAX = 64 * 1024, EXPIRES_DEFAULT = 60 };

struct token {
	char *value; /* "Bearer ..." or "Basic ..." */
	uint64_t expires_ns;
};

struct token_cache {
	pthread_mutex_t mutex;
	struct map tokens; /* endpoint URL -> struct token */
	char *scope;       /* "repository:library/busybox:pull" */
	char *username, *password, *identity_token, *registry_token, *server_host;
};

static void token_free(void *token)
{
	free(((struct token *)token)->value);
	free(token);
}

/* "https://host/v1/" -> "host"; NULL stays NULL. */
static char *host_of(const char *address)
{
	if (str_empty(address))
		return NULL;
	const char *p = strstr(address, "://");

	p = p ? p + 3 : address;
	return xstrndup(p, strcspn(p, "/"));
}

struct token_cache *token_cache_new(const struct registry_options *o)
{
	struct token_cache *t = xnew(struct token_cache);

	pthread_mutex_init(&t->mutex, NULL);
	t->scope = xasprintf("repository:%s:pull", o->ref->path);
	t->username = str_empty(o->username) ? NULL : xstrdup(o->username);
	t->password = xstrdup(o->password);
	t->identity_token = str_empty(o->identity_token) ? NULL : xstrdup(o->identity_token);
	t->registry_token = str_empty(o->registry_token) ? NULL : xstrdup(o->registry_token);
	t->server_host = host_of(o->server_address);
	return t;
}

static void wipe(char *secret)
{
	if (secret)
		explicit_bzero(secret, strlen(secret));
	free(secret);
}

struct token_cache *token_cache_free(struct token_cache *t)
{
	if (!t)
		return NULL;
	map_done_values(&t->tokens, token_free);
	free(t->scope);
	free(t->username);
	wipe(t->password);
	wipe(t->identity_token);
	wipe(t->registry_token);
	free(t->server_host);
	pthread_mutex_destroy(&t->mutex);
	free(t);
	return NULL;
}

/* May this endpoint see the credentials? */
static bool trusted(const struct token_cache *t, const struct endpoint *e)
{
	return !e->mirror || (t->server_host && str_eq(t->server_host, e->host));
}

char *token_cached(struct token_cache *t, const struct endpoint *e)
{
	char *value = NULL;

	pthread_mutex_lock(&t->mutex);
	const struct token *token = map_get(&t->tokens, e->url);
	if (token && clock_monotonic_ns() < token->expires_ns)
		value = xstrdup(token->value);
	pthread_mutex_unlock(&t->mutex);
	if (!value && t->registry_token && trusted(t, e))
		value = xasprintf("Bearer %s", t->registry_token);
	return value;
}

static void keep(struct token_cache *t, const struct endpoint *e, const char *value, uint64_t seconds)
{
	struct token *token = xnew(struct token);

	token->value = xstrdup(value);
	/* Not up to the last second: the request has a way to go. */
	token->expires_ns = clock_monotonic_ns() + MIN(seconds, 86400u) * 900000000u;
	pthread_mutex_lock(&t->mutex);
	struct token *old = map_put(&t->tokens, e->url, token);
	pthread_mutex_unlock(&t->mutex);
	if (old)
		token_free(old);
}

static void add_parameter(struct str *url, const char *name, const char *value)
{
	if (str_empty(value))
		return;
	str_add_char(url, strchr(str_get(url), '?') ? '&' : '?');
	str_addf(url, "%s=", name);
	url_encode(url, value);
}

/* The registry's own scope if it named one, else ours. */
static const char *scope_of(const struct token_cache *t, const struct challenge *ch)
{
	return *ch->scope ? ch->scope : t->scope;
}

/* OAuth2 for identity tokens: POST. 404 and 405 mean that the server only knows GET. */
static int ask_by_post(struct token_cache *t, const struct endpoint *e, struct http_client *c, const struct challenge *ch,
	struct http_reply *reply, struct error *err)
{
	_cleanup_(str_done) struct str form = STR_INIT;

	str_add(&form, "grant_type=refresh_token&client_id=runtime-lite&refresh_token=");
	url_encode(&form, t->identity_token);
	str_add(&form, "&service=");
	url_encode(&form, ch->service);
	str_add(&form, "&scope=");
	url_encode(&form, scope_of(t, ch));
	struct http_request q = { .url = ch->realm, .post = str_get(&form), .body_max = TOKEN_ANSWER_MAX, .endpoint = e };
	return http_perform(c, &q, reply, err);
}

static int ask_by_get(struct token_cache *t, const struct endpoint *e, struct http_client *c, const struct challenge *ch,
	struct http_reply *reply, struct error *err)
{
	_cleanup_(str_done) struct str url = STR_INIT;
	bool with = trusted(t, e) && t->username;

	str_add(&url, ch->realm);
	add_parameter(&url, "service", ch->service);
	add_parameter(&url, "scope", scope_of(t, ch));
	if (with)
		add_parameter(&url, "account", t->username);
	struct http_request q = { .url = str_get(&url), .body_max = TOKEN_ANSWER_MAX, .endpoint = e,
		.basic_user = with ? t->username : NULL, .basic_password = with ? t->password : NULL };
	return http_perform(c, &q, reply, err);
}

static int read_answer(const struct http_reply *reply, char **ret, uint64_t *ret_seconds, struct error *err)
{
	_cleanup_json_ json_t *root = NULL;
	int r = json_read(str_get(&reply->body), reply->body.len, false, &root, err);

	if (r < 0)
		return r;
	const char *token = json_str_at(root, "token", json_str_at(root, "access_token", ""));
	int64_t seconds = json_int_at(root, "expires_in", EXPIRES_DEFAULT);
	if (!*token || strlen(token) > TOKEN_MAX || strpbrk(token, "\r\n"))
		return error_set(err, ERROR_UNAUTHENTICATED, "the answer holds no token");
	*ret = xasprintf("Bearer %s", token);
	*ret_seconds = seconds > 0 ? (uint64_t)seconds : EXPIRES_DEFAULT;
	return 0;
}

static int bearer(struct token_cache *t, const struct endpoint *e, struct http_client *c, const struct challenge *ch,
	char **ret, struct error *err)
{
	struct http_reply reply = { 0 };
	uint64_t seconds = EXPIRES_DEFAULT;
	int r = -ENOENT;

	if (!str_starts(ch->realm, "https://") && !(str_starts(ch->realm, "http://") && str_starts(e->url, "http://")))
		return error_set(err, ERROR_UNAUTHENTICATED, "it sends us to the token server \"%.200s\", which is not https",
			ch->realm);
	if (t->identity_token && trusted(t, e)) {
		r = ask_by_post(t, e, c, ch, &reply, err);
		if (r == 0 && (reply.status == 404 || reply.status == 405)) {
			http_reply_done(&reply);
			r = -ENOENT;
		}
	}
	if (r == -ENOENT)
		r = ask_by_get(t, e, c, ch, &reply, err);
	if (r == 0 && reply.status == 200)
		r = read_answer(&reply, ret, &seconds, err);
	else if (r == 0)
		r = error_set(err, reply.status == 401 || reply.status == 403 ? ERROR_UNAUTHENTICATED : ERROR_UNAVAILABLE,
			"%sit answered %ld", reply.status == 401 || reply.status == 403 ? "credentials refused: " : "", reply.status);
	http_reply_done(&reply);
	if (r < 0)
		return error_prefix(err, "token server %.200s", ch->realm);
	keep(t, e, *ret, seconds);
	return 0;
}

static char *basic(const struct token_cache *t)
{
	_cleanup_free_ char *both = xasprintf("%s:%s", t->username, t->password ? t->password : "");
	_cleanup_free_ char *encoded = base64_encode(both, strlen(both));

	return xasprintf("Basic %s", encoded);
}

int token_fetch(struct token_cache *t, const struct endpoint *e, struct http_client *c, const char *authenticate,
	const char *refused, char **ret, struct error *err)
{
	struct challenge ch;
	int r = 0;

	*ret = NULL;
	/* Another thread may have got a new one meanwhile. */
	_cleanup_free_ char *now = token_cached(t, e);
	if (now && !str_eq(now, refused)) {
		*ret = steal(now);
		return 0;
	}
	challenge_parse(authenticate, &ch);
	if (ch.scheme == CHALLENGE_BEARER && !(t->registry_token && trusted(t, e))) {
		r = bearer(t, e, c, &ch, ret, err);
	} else if (ch.scheme == CHALLENGE_BASIC && t->username && trusted(t, e)) {
		_cleanup_free_ char *value = basic(t);

		if (!str_eq(value, refused)) {
			keep(t, e, value, 3600);
			*ret = steal(value);
		}
	}
	challenge_done(&ch);
	return r;
}

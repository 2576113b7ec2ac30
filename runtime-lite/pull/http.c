/* http.c - purpose: one HTTP request at a time by libcurl, blocking. */
#include "runtime-lite/pull/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <strings.h>

#include "common/sys/file.h"

enum { CA_MAX = 4 * 1024 * 1024, HEADER_MAX = 16 * 1024, CONNECT_SECONDS = 30 };

struct http_client {
	CURL *curl;
	uint64_t stall_ms;
	const bool *abort_flag; /* another thread sets it: give up */
	char text[CURL_ERROR_SIZE];
	struct http_request *request;
	struct http_reply *reply;
	struct error *err;
	bool sink_failed;
	int sink_result;
};

struct http_client *http_client_new(uint64_t stall_timeout_ms, const bool *abort_flag)
{
	struct http_client *c = xnew(struct http_client);

	c->curl = curl_easy_init();
	if (!c->curl)
		abort();
	c->stall_ms = stall_timeout_ms;
	c->abort_flag = abort_flag;
	return c;
}

struct http_client *http_client_free(struct http_client *c)
{
	if (!c)
		return NULL;
	curl_easy_cleanup(c->curl);
	free(c);
	return NULL;
}

void http_reply_done(struct http_reply *r)
{
	str_done(&r->body);
	free(r->content_type);
	free(r->docker_digest);
	free(r->authenticate);
	free(r->location);
	free(r->retry_after);
	free(r->content_range);
	*r = (struct http_reply){ 0 };
}

static size_t on_body(char *p, size_t size, size_t n, void *data)
{
	struct http_client *c = data;
	bool good;

	n *= size;
	curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &c->reply->status);
	good = c->reply->status >= 200 && c->reply->status < 300;
	if (good && c->request->sink) {
		c->sink_result = c->request->sink(c->request->data, c->request, p, n, c->err);
		c->sink_failed = c->sink_result < 0;
		return c->sink_failed ? 0 : n;
	}
	size_t max = good ? c->request->body_max : HTTP_ERROR_BODY_MAX;
	if (n > max - MIN(max, c->reply->body.len)) {
		if (!good)
			return n; /* enough of an error page */
		c->sink_failed = true;
		c->sink_result = error_set(c->err, ERROR_INVALID, "the answer is larger than the %zu bytes allowed", max);
		return 0;
	}
	str_add_bytes(&c->reply->body, p, n);
	return n;
}

static void take_header(char **field, const char *value, size_t n, bool join)
{
	char *text = join && *field ? xasprintf("%s, %.*s", *field, (int)n, value) : xstrndup(value, n);

	free(*field);
	*field = text;
}

static size_t on_header(char *line, size_t size, size_t n, void *data)
{
	struct http_client *c = data;
	struct http_reply *r = c->reply;
	const struct {
		const char *name;
		char **field;
	} wanted[] = { { "content-type", &r->content_type }, { "docker-content-digest", &r->docker_digest },
		{ "www-authenticate", &r->authenticate }, { "location", &r->location }, { "retry-after", &r->retry_after },
		{ "content-range", &r->content_range } };
	size_t len = n * size;
	const char *colon = memchr(line, ':', len);

	if (!colon || len > HEADER_MAX || (r->authenticate && strlen(r->authenticate) > HEADER_MAX))
		return n * size;
	const char *value = colon + 1, *end = line + len;
	while (value < end && (*value == ' ' || *value == '\t'))
		value++;
	while (end > value && (end[-1] == '\r' || end[-1] == '\n' || end[-1] == ' '))
		end--;
	if (memchr(value, '\0', (size_t)(end - value)))
		return n * size;
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
		if (strlen(wanted[i].name) == (size_t)(colon - line) &&
			strncasecmp(wanted[i].name, line, (size_t)(colon - line)) == 0)
			take_header(wanted[i].field, value, (size_t)(end - value), wanted[i].field == &r->authenticate);
	return n * size;
}

static int on_tick(void *data, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	const struct http_client *client = data;

	(void)a, (void)b, (void)c, (void)d;
	return client->abort_flag && __atomic_load_n(client->abort_flag, __ATOMIC_RELAXED);
}

/* CAs of hosts.toml are trusted besides the system's, whose directory libcurl goes on to use. */
static int set_cas(struct http_client *c, const struct endpoint *e, struct error *err)
{
	_cleanup_(str_done) struct str all = STR_INIT;

	for (size_t i = 0; i < e->ca.n; i++) {
		_cleanup_free_ char *text = NULL;
		size_t len;
		int r = file_read(AT_FDCWD, e->ca.v[i], CA_MAX, &text, &len, err);

		if (r < 0)
			return error_prefix(err, "CA of %s", e->host);
		str_add_bytes(&all, text, len);
		str_add_char(&all, '\n');
	}
	if (all.len) {
		struct curl_blob blob = { all.buf, all.len, CURL_BLOB_COPY };

		curl_easy_setopt(c->curl, CURLOPT_CAINFO_BLOB, &blob);
	}
	return 0;
}

static int set_endpoint(struct http_client *c, const struct endpoint *e, struct error *err)
{
	if (!e)
		return 0;
	if (e->skip_verify) {
		curl_easy_setopt(c->curl, CURLOPT_SSL_VERIFYPEER, 0L);
		curl_easy_setopt(c->curl, CURLOPT_SSL_VERIFYHOST, 0L);
	}
	if (e->client_cert) {
		curl_easy_setopt(c->curl, CURLOPT_SSLCERT, e->client_cert);
		curl_easy_setopt(c->curl, CURLOPT_SSLKEY, e->client_key);
	}
	return set_cas(c, e, err);
}

static void set_common(struct http_client *c)
{
	CURL *curl = c->curl;

	curl_easy_reset(curl); /* connections and the DNS cache stay */
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, c->text);
	curl_easy_setopt(curl, CURLOPT_USERAGENT, "runtime-lite/" NODE_LITE_VERSION);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)MIN(c->stall_ms, CONNECT_SECONDS * 1000u));
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)MAX(c->stall_ms / 1000, 1u));
	curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, 256L * 1024);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, c);
	curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(curl, CURLOPT_HEADERDATA, c);
	curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_tick);
	curl_easy_setopt(curl, CURLOPT_XFERINFODATA, c);
	curl_easy_setopt(curl, CURLOPT_HTTP_CONTENT_DECODING, 0L);
	curl_easy_setopt(curl, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
}

static struct curl_slist *headers_of(const struct http_request *q)
{
	struct curl_slist *list = NULL;

	if (q->accept) {
		_cleanup_free_ char *line = xasprintf("Accept: %s", q->accept);

		list = curl_slist_append(list, line);
	}
	if (q->authorization) {
		_cleanup_free_ char *line = xasprintf("Authorization: %s", q->authorization);

		list = curl_slist_append(list, line);
	}
	for (size_t i = 0; q->own_headers && q->endpoint && i < q->endpoint->headers.n; i++)
		list = curl_slist_append(list, q->endpoint->headers.v[i]);
	return list;
}

static int failure(struct http_client *c, CURLcode code, struct error *err)
{
	struct http_reply *r = c->reply;
	const char *text = *c->text ? c->text : curl_easy_strerror(code);

	if (c->sink_failed) {
		r->failure = HTTP_SINK;
		return c->sink_result;
	}
	switch (code) {
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
	case CURLE_COULDNT_CONNECT:
		r->failure = HTTP_CONNECT;
		return error_set(err, ERROR_UNAVAILABLE, "%s", text);
	case CURLE_OPERATION_TIMEDOUT:
		r->failure = HTTP_STALL;
		return error_set(err, ERROR_UNAVAILABLE, "no progress for %llu s",
			(unsigned long long)MAX(c->stall_ms / 1000, 1u));
	case CURLE_PARTIAL_FILE:
	case CURLE_RECV_ERROR:
	case CURLE_SEND_ERROR:
	case CURLE_GOT_NOTHING:
	case CURLE_HTTP2:
	case CURLE_HTTP2_STREAM:
		r->failure = HTTP_CUT;
		return error_set(err, ERROR_UNAVAILABLE, "the connection was cut off (%s)", text);
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CACERT_BADFILE:
		r->failure = HTTP_TLS;
		return error_set(err, ERROR_UNAVAILABLE, "TLS: %s", text);
	case CURLE_ABORTED_BY_CALLBACK:
		r->failure = HTTP_ABORTED;
		return error_set(err, ERROR_CANCELLED, "given up");
	default:
		r->failure = HTTP_OTHER;
		return error_set(err, ERROR_UNAVAILABLE, "%s", text);
	}
}

int http_perform(struct http_client *c, struct http_request *q, struct http_reply *ret, struct error *err)
{
	struct curl_slist *headers = headers_of(q);
	_cleanup_free_ char *range = q->range_from ? xasprintf("%llu-", (unsigned long long)q->range_from) : NULL;

	set_common(c);
	*ret = (struct http_reply){ .content_length = -1 };
	c->request = q;
	c->reply = q->reply = ret;
	c->err = err;
	c->sink_failed = false;
	c->text[0] = '\0';
	int r = set_endpoint(c, q->endpoint, err);
	if (r < 0) {
		ret->failure = HTTP_OTHER;
		curl_slist_free_all(headers);
		return r;
	}
	curl_easy_setopt(c->curl, CURLOPT_URL, q->url);
	/* As in Go programs, a proxy of the environment is not asked for what is on this machine. */
	if (registry_is_local(strstr(q->url, "://") ? strstr(q->url, "://") + 3 : q->url))
		curl_easy_setopt(c->curl, CURLOPT_PROXY, "");
	curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, headers);
	if (q->head)
		curl_easy_setopt(c->curl, CURLOPT_NOBODY, 1L);
	if (q->post)
		curl_easy_setopt(c->curl, CURLOPT_COPYPOSTFIELDS, q->post);
	if (range)
		curl_easy_setopt(c->curl, CURLOPT_RANGE, range);
	if (q->basic_user) {
		curl_easy_setopt(c->curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
		curl_easy_setopt(c->curl, CURLOPT_USERNAME, q->basic_user);
		curl_easy_setopt(c->curl, CURLOPT_PASSWORD, q->basic_password ? q->basic_password : "");
	}
	CURLcode code = curl_easy_perform(c->curl);
	curl_off_t length = -1;
	curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &ret->status);
	curl_easy_getinfo(c->curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
	ret->content_length = length;
	curl_slist_free_all(headers);
	return code == CURLE_OK ? 0 : failure(c, code, err);
}

static char *part_of(CURLU *u, CURLUPart part, unsigned flags)
{
	char *text = NULL;

	if (curl_url_get(u, part, &text, flags) != CURLUE_OK)
		return NULL;
	char *copy = xstrdup(text);
	curl_free(text);
	return copy;
}

char *http_resolve(const char *base, const char *location)
{
	CURLU *u = curl_url();
	char *url = NULL;

	/* The second call resolves against the first. */
	if (u && curl_url_set(u, CURLUPART_URL, base, 0) == CURLUE_OK &&
		curl_url_set(u, CURLUPART_URL, location, CURLU_URLENCODE) == CURLUE_OK)
		url = part_of(u, CURLUPART_URL, 0);
	curl_url_cleanup(u);
	if (url && !str_starts(url, "http://") && !str_starts(url, "https://")) {
		free(url);
		url = NULL;
	}
	return url;
}

char *http_origin(const char *url)
{
	CURLU *u = curl_url();
	char *origin = NULL;

	if (u && curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK) {
		_cleanup_free_ char *scheme = part_of(u, CURLUPART_SCHEME, 0), *host = part_of(u, CURLUPART_HOST, 0),
				    *port = part_of(u, CURLUPART_PORT, CURLU_DEFAULT_PORT);

		if (scheme && host && port)
			origin = xasprintf("%s://%s:%s", scheme, host, port);
	}
	curl_url_cleanup(u);
	return origin;
}

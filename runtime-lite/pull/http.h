/*
 * http.h - purpose: one HTTP request at a time by libcurl, blocking: no redirects, no retries, no authentication of its own.
 *
 * Plain values in, plain values out; registry.c decides what to do with them. A client belongs to one thread.
 */
#pragma once
#include "common/base/error.h"
#include "common/base/str.h"
#include "runtime-lite/image/hosts.h"

enum { HTTP_ERROR_BODY_MAX = 64 * 1024 };

struct http_client;
struct http_client *http_client_new(uint64_t stall_timeout_ms, const bool *abort_flag);
struct http_client *http_client_free(struct http_client *c);
DEFINE_CLEANUP(struct http_client *, http_client_free)

struct http_request {
	const char *url;
	bool head;
	const char *post;          /* form body; NULL: GET or HEAD */
	const char *accept;        /* NULL: anything */
	const char *authorization; /* "Bearer ...", NULL: none */
	const char *basic_user, *basic_password; /* NULL: none */
	uint64_t range_from;       /* 0: all */
	const struct endpoint *endpoint; /* TLS settings; its headers are sent when own_headers. May be NULL */
	bool own_headers;
	/* Body of a 2xx answer; a negative return aborts with *err as it set it. NULL: collected in reply->body, at most body_max
	 * bytes. Bodies of other answers always go to reply->body. */
	int (*sink)(void *data, const struct http_request *request, const void *p, size_t n, struct error *err);
	void *data;
	size_t body_max;
	struct http_reply *reply; /* set by http_perform(), for the sink: status and headers are there */
};

enum http_failure { HTTP_OK, HTTP_CONNECT, HTTP_TLS, HTTP_STALL, HTTP_CUT, HTTP_SINK, HTTP_ABORTED, HTTP_OTHER };

struct http_reply {
	long status;
	enum http_failure failure; /* why http_perform() failed */
	struct str body;
	/* Headers; NULL if absent. */
	char *content_type, *docker_digest, *authenticate, *location, *retry_after, *content_range;
	int64_t content_length; /* -1: not said */
};
void http_reply_done(struct http_reply *r);

/* 0 when there was a complete answer of any status. Errors name what failed in people's words. */
int http_perform(struct http_client *c, struct http_request *request, struct http_reply *ret, struct error *err) MUST_USE;
/* Resolves a Location against the URL that it came from. NULL if it is no http(s) URL. Owned by the caller. */
char *http_resolve(const char *base, const char *location) MUST_USE;
/* "https://host:port" with the port spelled out; for comparisons. NULL for no URL. Owned by the caller. */
char *http_origin(const char *url) MUST_USE;

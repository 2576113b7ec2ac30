/* serve.c - purpose: the daemon's HTTP: health, metrics, and the administrator's socket. */
#include "proxy-lite/health/serve.h"

#include "common/net/http_server.h"
#include "common/sys/file.h"
#include "proxy-lite/admin/report.h"
#include "proxy-lite/health/metrics.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

enum { BODY_MAX = 4096, SERVERS = 3 };

struct serve {
	struct http_server *servers[SERVERS];
	unsigned open;
	char *admin_socket;
	struct proxy *proxy; /* borrowed, as is the next */
	const char *configz;
};

static const char text_plain[] = "text/plain; charset=utf-8";

static void respond_text(struct http_exchange *x, int status, const char *text)
{
	http_respond(x, status, text_plain, text, strlen(text));
}

static void rfc3339(uint64_t ms, char *buf, size_t len)
{
	time_t t = (time_t)(ms / 1000);
	struct tm tm;

	gmtime_r(&t, &tm);
	strftime(buf, len, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static void respond_health(const struct proxy *p, struct http_exchange *x, bool live)
{
	/* A node that is about to go is well (/livez), but no place for new traffic (/healthz). */
	bool healthy = proxy_healthy(p) && (live || proxy_eligible(p));
	char updated[40], now[40], body[200];

	rfc3339(p->last_sync_ms, updated, sizeof(updated));
	rfc3339(clock_realtime_ns() / 1000000, now, sizeof(now));
	snprintf(body, sizeof(body), "{\"lastUpdated\": \"%s\",\"currentTime\": \"%s\", \"nodeEligible\": %s}", updated,
		now, proxy_eligible(p) ? "true" : "false");
	metrics_health(live, healthy);
	http_add_header(x, "X-Content-Type-Options", "nosniff");
	http_respond(x, healthy ? 200 : 503, "application/json", body, strlen(body));
}

static bool only_get(struct http_exchange *x, const struct http_request *request)
{
	if (strcmp(request->method, "GET") == 0 || strcmp(request->method, "HEAD") == 0)
		return true;
	respond_text(x, 405, "only GET is served\n");
	return false;
}

static void handle_health(void *context, struct http_exchange *x, const struct http_request *request)
{
	const struct proxy *p = ((const struct serve *)context)->proxy;

	if (!only_get(x, request))
		return;
	if (strcmp(request->path, "/healthz") == 0)
		respond_health(p, x, false);
	else if (strcmp(request->path, "/livez") == 0)
		respond_health(p, x, true);
	else
		respond_text(x, 404, "not found: /healthz and /livez are served\n");
}

static void respond_metrics(const struct proxy *p, struct http_exchange *x)
{
	_cleanup_(str_done) struct str out = STR_INIT;

	metrics_text(p, &out);
	http_respond(x, 200, "text/plain; version=0.0.4; charset=utf-8", str_get(&out), out.len);
}

static void handle_metrics(void *context, struct http_exchange *x, const struct http_request *request)
{
	const struct serve *s = context;
	const struct proxy *p = s->proxy;

	if (!only_get(x, request))
		return;
	if (strcmp(request->path, "/metrics") == 0)
		respond_metrics(p, x);
	else if (strcmp(request->path, "/configz") == 0)
		http_respond(x, 200, "application/json", s->configz, strlen(s->configz));
	else if (strcmp(request->path, "/proxyMode") == 0)
		respond_text(x, 200, "nftables");
	else if (strcmp(request->path, "/healthz") == 0)
		respond_text(x, 200, "ok");
	else
		respond_text(x, 404, "not found: /metrics, /configz and /proxyMode are served\n");
}

static void respond_explain(const struct proxy *p, struct http_exchange *x)
{
	_cleanup_(str_done) struct str out = STR_INIT;
	_cleanup_free_ char *at = http_query(x, "at");
	struct error err = ERROR_INIT;
	struct report_address address;

	if (!at || report_address_parse(at, &address, &err) < 0) {
		respond_text(x, 400, at ? err.text : "at=ADDRESS:PORT is missing");
		return;
	}
	report_explain(&p->sync, true, &address, &out);
	http_respond(x, 200, text_plain, str_get(&out), out.len);
}

static void handle_admin(void *context, struct http_exchange *x, const struct http_request *request)
{
	const struct proxy *p = ((const struct serve *)context)->proxy;

	if (!only_get(x, request))
		return;
	if (strcmp(request->path, "/dump") == 0) {
		_cleanup_(str_done) struct str out = STR_INIT;
		const char *trouble = watch_trouble(p->watch);

		if (!watch_synced(p->watch))
			str_add(&out, "The lists of the API were not read yet: the kernel's table is left as it is.\n");
		if (trouble)
			str_addf(&out, "API: %s\n", trouble);
		if (p->last_error[0])
			str_addf(&out, "last sync failed: %s\n", p->last_error);
		report_dump(&p->sync, &out);
		http_respond(x, 200, text_plain, str_get(&out), out.len);
	} else if (strcmp(request->path, "/explain") == 0) {
		respond_explain(p, x);
	} else if (strcmp(request->path, "/metrics") == 0) {
		respond_metrics(p, x);
	} else {
		respond_text(x, 404, "not found\n");
	}
}

static int listen_one(
	uv_loop_t *loop, struct serve *s, int slot, const char *text, http_handler handle, struct error *err)
{
	struct sock_address address;
	int fd, r;

	if (str_empty(text))
		return 0;
	r = sock_address_parse(text, &address, err);
	if (r == 0)
		r = sock_listen(&address, 0600, &fd, err);
	if (r < 0)
		return r;
	s->servers[slot] = http_server_new(loop, fd, NULL, BODY_MAX, handle, s);
	s->open++;
	return 0;
}

/* The directory of the socket is ours to make where the service manager did not. */
static void make_parent(const char *path)
{
	_cleanup_free_ char *dir = xstrdup(path);
	char *slash = strrchr(dir, '/');
	struct error err = ERROR_INIT;

	if (!slash || slash == dir)
		return;
	*slash = '\0';
	if (dir_make(dir, 0755, &err) < 0)
		return; /* sock_listen() says what is wrong */
}

int serve_start(uv_loop_t *loop, const struct serve_options *options, struct serve **ret, struct error *err)
{
	struct serve *s = xnew(struct serve);
	const char *admin = options->admin_socket;
	int r;

	s->proxy = options->proxy;
	s->configz = options->configz;
	if (admin && str_starts(admin, "unix://"))
		admin += strlen("unix://");
	if (!str_empty(admin))
		make_parent(admin);
	r = listen_one(loop, s, 0, admin, handle_admin, err);
	if (r < 0)
		error_prefix(err, "--admin-socket");
	else if (!str_empty(admin))
		s->admin_socket = xstrdup(admin);
	if (r == 0 && (r = listen_one(loop, s, 1, options->healthz_address, handle_health, err)) < 0)
		error_prefix(err, "--healthz-bind-address");
	if (r == 0 && (r = listen_one(loop, s, 2, options->metrics_address, handle_metrics, err)) < 0)
		error_prefix(err, "--metrics-bind-address");
	if (r < 0) {
		serve_stop(s);
		return r;
	}
	*ret = s;
	return 0;
}

static void on_closed(void *data)
{
	struct serve *s = data;

	if (--s->open == 0)
		free(s);
}

void serve_stop(struct serve *s)
{
	unsigned open;

	if (!s)
		return;
	if (s->admin_socket)
		unlink(s->admin_socket);
	free(s->admin_socket);
	s->admin_socket = NULL;
	open = s->open;
	if (open == 0)
		free(s);
	for (int i = 0; open && i < SERVERS; i++)
		if (s->servers[i]) {
			struct http_server *server = s->servers[i];

			s->servers[i] = NULL;
			open--;
			http_server_close(server, on_closed, s);
		}
}

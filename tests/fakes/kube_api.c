/*
 * kube_api.c - purpose: a Kubernetes API server for tests: lists and watches of objects that lie in files.
 *
 *	kube_api ADDRESS DIRECTORY [tls]
 *
 * With "tls" it makes itself a CA and certificates, and leaves DIRECTORY/kubeconfig, client.pem and client.key for its
 * clients; they must show the certificate. If there is a file DIRECTORY/token, requests must bear its first line.
 *
 * The .json files in DIRECTORY/{services,endpointslices,nodes,servicecidrs} hold one object each; files may come,
 *change and go (write beside and rename). Events that are posted are appended to DIRECTORY/events. A file
 *DIRECTORY/fault makes the server misbehave, by its first word: down       every request answers 503 gone       watches
 *end with 410 Gone garbage    watches send bytes that are no JSON, then end half       watches send half an event, then
 *end cut        all watches are cut off once
 */
#include "common/base/log.h"
#include "common/base/map.h"
#include "common/base/str.h"
#include "common/net/http_server.h"
#include "common/net/tls.h"
#include "common/sys/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/inotify.h>

enum { KINDS = 4, EVENTS_MAX = 200000 };

static const struct {
	const char *directory, *path, *list, *item;
} kinds[KINDS] = {
	{ "services", "/api/v1/services", "ServiceList", "v1" },
	{ "endpointslices", "/apis/discovery.k8s.io/v1/endpointslices", "EndpointSliceList", "discovery.k8s.io/v1" },
	{ "nodes", "/api/v1/nodes", "NodeList", "v1" },
	{ "servicecidrs", "/apis/networking.k8s.io/v1/servicecidrs", "ServiceCIDRList", "networking.k8s.io/v1" },
};

struct event {
	uint64_t version;
	char *line;
};

struct watcher {
	struct http_exchange *exchange;
	int kind;
	struct watcher *next;
};

static struct {
	uv_loop_t loop;
	const char *directory;
	int watches[KINDS + 1];	   /* the last one: of the directory itself */
	struct map objects[KINDS]; /* file name -> text */
	struct event *events[KINDS];
	size_t n_events[KINDS];
	uint64_t version;
	struct watcher *watchers;
} api = { .version = 100 };

static char *read_fault(void)
{
	_cleanup_free_ char *path = xasprintf("%s/fault", api.directory);
	char *text = NULL;

	if (file_read(AT_FDCWD, path, 1000, &text, NULL, NULL) < 0)
		return xstrdup("");
	text[strcspn(text, " \n")] = '\0';
	return text;
}

static void drop_watcher(void *data)
{
	struct watcher **p = &api.watchers;

	while (*p != data)
		p = &(*p)->next;
	*p = ((struct watcher *)data)->next;
	free(data);
}

static void end_watchers(void)
{
	while (api.watchers) {
		http_stream_end(api.watchers->exchange);
		drop_watcher(api.watchers);
	}
}

static void emit(int kind, const char *type, const char *object)
{
	struct event *e;
	_cleanup_(str_done) struct str line = STR_INIT;

	str_addf(&line, "{\"type\":\"%s\",\"object\":%s}\n", type, object);
	if (api.n_events[kind] == EVENTS_MAX)
		exit(3);
	api.events[kind] = xreallocarray(api.events[kind], api.n_events[kind] + 1, sizeof(struct event));
	e = &api.events[kind][api.n_events[kind]++];
	*e = (struct event){ api.version, str_take(&line) };
	for (struct watcher *w = api.watchers; w; w = w->next)
		if (w->kind == kind && http_stream_write(w->exchange, e->line, strlen(e->line)) < 0)
			exit(4);
}

/* Compact, on one line, with a resourceVersion of our own in front of the other metadata. */
static char *prepare(const char *text)
{
	_cleanup_(str_done) struct str out = STR_INIT;
	const char *metadata = strstr(text, "\"metadata\"");
	const char *brace = metadata ? strchr(metadata, '{') : NULL;

	for (const char *c = text; *c; c++) {
		str_add_char(&out, *c == '\n' ? ' ' : *c);
		if (c == brace)
			str_addf(&out, "\"resourceVersion\":\"%llu\",", (unsigned long long)api.version);
	}
	return str_take(&out);
}

static void load_file(int kind, const char *name, bool tell)
{
	_cleanup_free_ char *path = xasprintf("%s/%s/%s", api.directory, kinds[kind].directory, name);
	char *text = NULL, *object, *before;

	if (!str_ends(name, ".json") || name[0] == '.')
		return;
	api.version++;
	if (file_read(AT_FDCWD, path, 16 * 1024 * 1024, &text, NULL, NULL) < 0) {
		before = map_remove(&api.objects[kind], name);
		if (before && tell)
			emit(kind, "DELETED", before);
		free(before);
		return;
	}
	object = prepare(text);
	free(text);
	before = map_put(&api.objects[kind], name, object);
	if (tell)
		emit(kind, before ? "MODIFIED" : "ADDED", object);
	free(before);
}

static void load_all(int kind)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", api.directory, kinds[kind].directory);
	DIR *dir = opendir(path);
	struct dirent *e;

	while (dir && (e = readdir(dir)))
		load_file(kind, e->d_name, false);
	if (dir)
		closedir(dir);
}

static void respond_list(struct http_exchange *x, int kind)
{
	_cleanup_(str_done) struct str out = STR_INIT;
	struct map_iter it = MAP_ITER_INIT;
	const char *comma = "";

	str_addf(&out, "{\"kind\":\"%s\",\"apiVersion\":\"%s\",\"metadata\":{\"resourceVersion\":\"%llu\"},\"items\":[",
		kinds[kind].list, kinds[kind].item, (unsigned long long)api.version);
	while (map_next(&api.objects[kind], &it)) {
		str_addf(&out, "%s%s", comma, (const char *)it.value);
		comma = ",";
	}
	str_add(&out, "]}");
	http_respond(x, 200, "application/json", out.buf, out.len);
}

static void send_text(struct http_exchange *x, const char *text)
{
	if (http_stream_write(x, text, strlen(text)) < 0)
		exit(4);
}

static void respond_watch(struct http_exchange *x, int kind, const char *fault)
{
	_cleanup_free_ char *from = http_query(x, "resourceVersion");
	uint64_t version = from ? strtoull(from, NULL, 10) : 0;
	struct watcher *w = xnew(struct watcher);

	w->exchange = x;
	w->kind = kind;
	w->next = api.watchers;
	api.watchers = w;
	http_stream_begin(x, 200, "application/json", drop_watcher, w);
	for (size_t i = 0; i < api.n_events[kind]; i++)
		if (api.events[kind][i].version > version)
			send_text(x, api.events[kind][i].line);
	/* Versions of an earlier life of this server mean nothing now. */
	if (strcmp(fault, "gone") == 0 || version > api.version)
		send_text(x, "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":"
			     "\"Expired\",\"code\":410}}\n");
	else if (strcmp(fault, "garbage") == 0)
		send_text(x, "\x01\x02{{{ this is no JSON ]\n");
	else if (strcmp(fault, "half") == 0)
		send_text(x, "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"ha");
	else
		return;
	http_stream_end(x);
	drop_watcher(w);
}

/* One object, NAME.json. */
static bool respond_get(struct http_exchange *x, const char *path)
{
	for (int kind = 0; kind < KINDS; kind++) {
		_cleanup_free_ char *file = NULL;
		const char *object;

		if (!str_starts(path, kinds[kind].path) || path[strlen(kinds[kind].path)] != '/')
			continue;
		file = xasprintf("%s.json", path + strlen(kinds[kind].path) + 1);
		object = map_get(&api.objects[kind], file);
		if (object)
			http_respond(x, 200, "application/json", object, strlen(object));
		return object != NULL;
	}
	return false;
}

static void keep_event(struct http_exchange *x, const struct http_request *request)
{
	_cleanup_free_ char *path = xasprintf("%s/events", api.directory);
	FILE *f = fopen(path, "ae");

	if (f) {
		fprintf(f, "%s\n", request->body);
		fclose(f);
	}
	http_respond(x, 201, "application/json", request->body, request->body_len);
}

static bool authorized(const struct http_exchange *x)
{
	_cleanup_free_ char *path = xasprintf("%s/token", api.directory), *token = NULL, *want = NULL;
	const char *got = http_header(x, "Authorization");

	if (file_read(AT_FDCWD, path, 4096, &token, NULL, NULL) < 0)
		return true;
	token[strcspn(token, "\n")] = '\0';
	want = xasprintf("Bearer %s", token);
	return str_eq(got, want);
}

static void write_file(const char *name, const char *text)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", api.directory, name);
	struct error err = ERROR_INIT;

	if (file_replace(AT_FDCWD, path, text, strlen(text), 0600, &err) < 0)
		log_error("%s", err.text);
}

/* Certificates for ADDRESS, which is 127.0.0.1:PORT. */
static struct tls_server *make_tls(const char *address)
{
	char *ca = NULL, *ca_key = NULL, *cert = NULL, *key = NULL, *client = NULL, *client_key = NULL;
	_cleanup_(str_done) struct str config = STR_INIT;
	struct tls_server *server = NULL;
	struct error err = ERROR_INIT;

	if (tls_make_cert(NULL, NULL, "fake CA", NULL, NULL, false, 1, &ca, &ca_key, &err) < 0 ||
		tls_make_cert(ca, ca_key, "kubernetes", NULL, "127.0.0.1,localhost", false, 1, &cert, &key, &err) < 0 ||
		tls_make_cert(ca, ca_key, "system:kube-proxy", NULL, NULL, true, 1, &client, &client_key, &err) < 0 ||
		tls_server_new(cert, key, ca, &server, &err) < 0) {
		log_error("%s", err.text);
		exit(1);
	}
	write_file("ca.pem", ca);
	write_file("client.pem", client);
	write_file("client.key", client_key);
	str_addf(&config,
		"apiVersion: v1\nkind: Config\nclusters:\n- name: c\n  cluster:\n    server: https://%s\n"
		"    certificate-authority: ca.pem\nusers:\n- name: u\n  user:\n    client-certificate: client.pem\n"
		"    client-key: client.key\n    tokenFile: token\ncontexts:\n- name: x\n  context: {cluster: c, user: "
		"u}\n"
		"current-context: x\n",
		address);
	write_file("kubeconfig", config.buf);
	return server;
}

static void handle(void *context, struct http_exchange *x, const struct http_request *request)
{
	_cleanup_free_ char *fault = read_fault(), *watch = http_query(x, "watch");
	bool watching = watch && (strcmp(watch, "1") == 0 || strcmp(watch, "true") == 0);

	(void)context;
	if (!authorized(x)) {
		http_respond(x, 401, "application/json", "{\"kind\":\"Status\",\"code\":401}", 28);
		return;
	}
	if (strcmp(fault, "down") == 0) {
		http_respond(x, 503, "text/plain", "down", 4);
		return;
	}
	if (strcmp(request->method, "POST") == 0 && str_ends(request->path, "/events")) {
		keep_event(x, request);
		return;
	}
	if (respond_get(x, request->path))
		return;
	for (int kind = 0; kind < KINDS; kind++) {
		if (strcmp(request->path, kinds[kind].path) != 0)
			continue;
		if (watching)
			respond_watch(x, kind, fault);
		else
			respond_list(x, kind);
		return;
	}
	http_respond(x, 404, "application/json", "{\"kind\":\"Status\",\"code\":404}", 28);
}

static void on_inotify(uv_poll_t *poll, int status, int events)
{
	char buf[65536] __attribute__((aligned(8)));
	int fd = *(int *)poll->data;
	ssize_t n = read(fd, buf, sizeof(buf));

	(void)status;
	(void)events;
	for (char *p = buf; p < buf + n;) {
		const struct inotify_event *e = (const struct inotify_event *)(const void *)p;

		for (int kind = 0; kind < KINDS; kind++)
			if (e->wd == api.watches[kind] && e->len)
				load_file(kind, e->name, true);
		if (e->wd == api.watches[KINDS] && e->len && strcmp(e->name, "fault") == 0)
			end_watchers();
		p += sizeof(*e) + e->len;
	}
}

int main(int argc, char **argv)
{
	struct sock_address address;
	struct error err = ERROR_INIT;
	uv_poll_t poll;
	int fd, notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	const uint32_t mask = IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE;

	if (argc < 3 || argc > 4)
		return 2;
	log_init("kube_api", LOG_LEVEL_INFO);
	api.directory = argv[2];
	api.watches[KINDS] = inotify_add_watch(notify, argv[2], mask);
	for (int kind = 0; kind < KINDS; kind++) {
		_cleanup_free_ char *path = xasprintf("%s/%s", argv[2], kinds[kind].directory);

		if (dir_make(path, 0755, &err) < 0)
			return 1;
		api.watches[kind] = inotify_add_watch(notify, path, mask);
		load_all(kind);
	}
	if (sock_address_parse(argv[1], &address, &err) < 0 || sock_listen(&address, 0600, &fd, &err) < 0) {
		log_error("%s", err.text);
		return 1;
	}
	uv_loop_init(&api.loop);
	http_server_new(&api.loop, fd, argc == 4 ? make_tls(argv[1]) : NULL, 65536, handle, NULL);
	uv_poll_init(&api.loop, &poll, notify);
	poll.data = &notify;
	uv_poll_start(&poll, UV_READABLE, on_inotify);
	uv_run(&api.loop, UV_RUN_DEFAULT);
	return 0;
}

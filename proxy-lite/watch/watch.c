/* watch.c - purpose: follow Services and EndpointSlices of an API server into the model. */
#include "proxy-lite/watch/watch.h"

#include "common/base/log.h"
#include "common/kube/kubeconfig.h"
#include "common/kube/list_watch.h"
#include "common/net/tls.h"
#include "proxy-lite/watch/events.h"

#include <stdio.h>
#include <sys/stat.h>

struct source {
	struct watch *watch;
	enum object_kind kind;
	const char *name;
	struct list_watch *lw;
	bool synced;
	bool listing;
	bool troubled;
};

struct watch {
	struct watch_options options;
	uv_loop_t *loop;
	struct kubeconfig config; /* empty without one */
	uint64_t stamp;		  /* of its files when they were read */
	struct tls_client *tls;
	struct http_client *client;
	struct events *events;
	struct source sources[2];
	struct list_watch *node_lw;
	struct node_state node;
	bool node_known;
	bool node_listed; /* in the running list */
	char trouble[ERROR_TEXT_MAX + 40];
};

static const char selector[] = "!service.kubernetes.io/headless,!service.kubernetes.io/service-proxy-name";
static const char selector_of_name[] = "!service.kubernetes.io/headless,service.kubernetes.io/service-proxy-name";

static void list_begin(void *data)
{
	struct source *s = data;

	services_list_begin(s->watch->options.services, s->kind);
	s->listing = true;
}

static void object(void *data, enum watch_event event, const json_t *json)
{
	struct source *s = data;
	struct watch *w = s->watch;
	bool changed = event == WATCH_DELETED ? services_delete(w->options.services, s->kind, json)
					      : services_put(w->options.services, s->kind, json);

	if (changed && !s->listing)
		w->options.changed(w->options.data);
}

static void list_end(void *data)
{
	struct source *s = data;

	services_list_end(s->watch->options.services, s->kind);
	s->listing = false;
	if (!s->synced)
		log_info("%s are listed", s->name);
	s->synced = true;
	s->watch->options.changed(s->watch->options.data);
}

static void bad(void *data, const struct error *err)
{
	const struct source *s = data;

	problems_set(&s->watch->options.services->problems, s->name, "from the API server", err->text);
}

static void state(void *data, bool connected, const struct error *err)
{
	struct source *s = data;

	if (!connected && !s->troubled && err && err->code)
		log_warning("%s: %s; what is known goes on being served", s->name, err->text);
	if (connected && s->troubled)
		log_info("%s: connected again", s->name);
	s->troubled = !connected && err && err->code;
	if (s->troubled)
		snprintf(s->watch->trouble, sizeof(s->watch->trouble), "%s: %s", s->name, err->text);
}

/* ---- our Node ---- */

static void set_node(struct watch *w, const json_t *object)
{
	struct node_state state;

	node_state_parse(object, &state);
	if (w->node_known && node_state_equal(&state, &w->node))
		return;
	w->node = state;
	w->node_known = true;
	w->options.node_changed(w->options.data, &w->node);
}

static void node_list_begin(void *data)
{
	((struct watch *)data)->node_listed = false;
}

static void node_object(void *data, enum watch_event event, const json_t *json)
{
	struct watch *w = data;
	const char *name = json_string_value(json_object_get(json_object_get(json, "metadata"), "name"));

	if (!str_eq(name, w->options.services->node.name))
		return;
	w->node_listed = true;
	set_node(w, event == WATCH_DELETED ? NULL : json);
}

static void node_list_end(void *data)
{
	struct watch *w = data;

	if (!w->node_listed)
		set_node(w, NULL);
}

/* Without the Node we know less, that is all. */
static void node_state_ignored(void *data, bool connected, const struct error *err)
{
	(void)data;
	if (!connected && err && err->code)
		log_debug("our Node: %s", err->text);
}

static void start_node(struct watch *w, uv_loop_t *loop)
{
	_cleanup_free_ char *field = xasprintf("metadata.name=%s", w->options.services->node.name);

	w->node_lw = list_watch_start(loop, &(struct list_watch_options){ .client = w->client,
						    .path = "/api/v1/nodes",
						    .field_selector = field,
						    .data = w,
						    .on_list_begin = node_list_begin,
						    .on_object = node_object,
						    .on_list_end = node_list_end,
						    .on_state = node_state_ignored });
}

/* ---- life ---- */

static void start_source(struct watch *w, enum object_kind kind)
{
	static const char *const paths[] = {
		[OBJECT_SERVICE] = "/api/v1/services",
		[OBJECT_SLICE] = "/apis/discovery.k8s.io/v1/endpointslices",
	};
	struct source *s = &w->sources[kind];

	s->lw = list_watch_start(
		w->loop, &(struct list_watch_options){ .client = w->client,
				 .path = paths[kind],
				 .label_selector = w->options.services->node.proxy_name ? selector_of_name : selector,
				 .data = s,
				 .on_list_begin = list_begin,
				 .on_object = object,
				 .on_list_end = list_end,
				 .on_bad = bad,
				 .on_state = state });
}

/* ---- the API server ---- */

/* Changes when one of the files does. */
static uint64_t files_stamp(const struct strv *files)
{
	uint64_t stamp = files->n;

	for (size_t i = 0; i < files->n; i++) {
		struct stat st;

		if (stat(files->v[i], &st) < 0)
			continue;
		stamp = stamp * 31 + (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec +
			(uint64_t)st.st_size + st.st_ino;
	}
	return stamp;
}

static int make_client(struct watch *w, const struct kubeconfig *config, struct tls_client **ret_tls,
	struct http_client **ret_client, struct error *err)
{
	struct http_client_options options = {
		.address = config->address, .host = config->host, .bearer = config->token
	};
	int r;

	*ret_tls = NULL;
	if (config->tls) {
		r = tls_client_new(
			config->ca_pem, config->cert_pem, config->key_pem, config->server_name, ret_tls, err);
		if (r < 0)
			return error_prefix(err, "kubeconfig %s", w->options.kubeconfig);
		options.tls = *ret_tls;
	}
	*ret_client = http_client_new(w->loop, &options);
	return 0;
}

static int open_client(struct watch *w, struct error *err)
{
	int r;

	if (!w->options.kubeconfig) {
		w->client = http_client_new(
			w->loop, &(struct http_client_options){ .address = w->options.address, .host = "kubernetes" });
		return 0;
	}
	r = kubeconfig_load(w->options.kubeconfig, &w->config, err);
	if (r < 0)
		return r;
	w->stamp = files_stamp(&w->config.files);
	return make_client(w, &w->config, &w->tls, &w->client, err);
}

static void start_all(struct watch *w)
{
	w->events = events_new(w->client, w->options.services->node.name);
	for (int kind = 0; kind < 2; kind++)
		start_source(w, (enum object_kind)kind);
	start_node(w, w->loop);
}

static void stop_all(struct watch *w)
{
	for (int kind = 0; kind < 2; kind++) {
		list_watch_stop(w->sources[kind].lw);
		w->sources[kind].listing = false;
	}
	list_watch_stop(w->node_lw);
	http_client_free(w->client);
	tls_client_free(w->tls);
	events_free(w->events);
}

static bool config_equal(const struct kubeconfig *a, const struct kubeconfig *b)
{
	return a->address.len == b->address.len &&
	       memcmp(&a->address.storage, &b->address.storage, a->address.len) == 0 && a->tls == b->tls &&
	       str_eq(a->host, b->host) && str_eq(a->server_name, b->server_name) && str_eq(a->ca_pem, b->ca_pem) &&
	       str_eq(a->cert_pem, b->cert_pem) && str_eq(a->key_pem, b->key_pem) && str_eq(a->token, b->token);
}

void watch_refresh(struct watch *w)
{
	struct kubeconfig config = { 0 };
	struct error err = ERROR_INIT;
	struct tls_client *tls;
	struct http_client *client;
	uint64_t stamp;

	if (!w->options.kubeconfig)
		return;
	stamp = files_stamp(&w->config.files);
	if (stamp == w->stamp && !watch_trouble(w))
		return;
	w->stamp = stamp;
	if (kubeconfig_load(w->options.kubeconfig, &config, &err) < 0) {
		log_warning("%s; the old one stays in use", err.text);
		return;
	}
	if (config_equal(&config, &w->config)) {
		kubeconfig_done(&config);
		return;
	}
	if (make_client(w, &config, &tls, &client, &err) < 0) {
		log_warning("%s; the old one stays in use", err.text);
		kubeconfig_done(&config);
		return;
	}
	log_info("kubeconfig %s has changed: connecting anew", w->options.kubeconfig);
	stop_all(w);
	kubeconfig_done(&w->config);
	w->config = config;
	w->tls = tls;
	w->client = client;
	start_all(w);
}

int watch_start(uv_loop_t *loop, const struct watch_options *options, struct watch **ret, struct error *err)
{
	static const char *const names[] = { [OBJECT_SERVICE] = "Services", [OBJECT_SLICE] = "EndpointSlices" };
	struct watch *w = xnew(struct watch);
	int r;

	w->options = *options;
	w->loop = loop;
	for (int kind = 0; kind < 2; kind++)
		w->sources[kind] = (struct source){ .watch = w, .kind = (enum object_kind)kind, .name = names[kind] };
	r = open_client(w, err);
	if (r < 0) {
		tls_client_free(w->tls);
		kubeconfig_done(&w->config);
		free(w);
		return r;
	}
	start_all(w);
	*ret = w;
	return 0;
}

void watch_relist_slices(struct watch *w)
{
	list_watch_stop(w->sources[OBJECT_SLICE].lw);
	w->sources[OBJECT_SLICE].listing = false;
	start_source(w, OBJECT_SLICE);
}

void watch_stop(struct watch *w)
{
	if (!w)
		return;
	stop_all(w);
	kubeconfig_done(&w->config);
	free(w);
}

void watch_warn(struct watch *w, const char *object, const char *text)
{
	events_warn(w->events, object, text);
}

bool watch_synced(const struct watch *w)
{
	return w->sources[0].synced && w->sources[1].synced;
}

const char *watch_trouble(const struct watch *w)
{
	return w->sources[0].troubled || w->sources[1].troubled ? w->trouble : NULL;
}

/* api_i.h - purpose: what the modules of the standalone API share. */
#pragma once
#include "common/net/http_server.h"
#include "kubelet-lite/local/api.h"
#include "kubelet-lite/local/endpoints.h"
#include "kubelet-lite/local/reply.h"
#include "kubelet-lite/local/route.h"
#include "kubelet-lite/local/select.h"
#include "kubelet-lite/local/table.h"

enum {
	API_BODY_MAX = 3 * 1024 * 1024, /* as the API server */
	API_PAUSE_BYTES = 64 * 1024,    /* producers stop here until the client has read */
	API_WATCHERS_MAX = 200,
};

struct watcher;
struct log_stream;
struct tunnel;

struct local_api {
	uv_loop_t *loop;
	struct objects *objects;
	struct file_source *files;
	int (*log_path)(void *data, const char *ns, const char *pod, const char *container, bool previous, char **ret_path,
		struct error *err);
	int (*stream_url)(void *data, const struct stream_wanted *wanted, stream_url_cb cb, void *cb_data, struct error *err);
	void *data;
	struct http_server *servers[2];
	struct tls_server *tls;
	char *token; /* bearer token of the kubeconfig */
	struct watcher *watchers;
	size_t n_watchers;
	uint64_t told[32]; /* resourceVersions that watchers were told of last */
	unsigned next_told;
	struct log_stream *logs;
	struct tunnel *tunnels;
	struct endpoints *endpoints;
	unsigned open; /* servers not yet closed */
	void (*stopped)(void *data);
	void *stopped_data;
};

/* One request. */
struct api_call {
	struct local_api *api;
	struct http_exchange *exchange;
	const struct http_request *request;
	struct route route;
};

enum api_form { FORM_PLAIN, FORM_TABLE, FORM_PARTIAL };

/* What a reader wants to see of objects, out of Accept and includeObject. */
struct api_view {
	enum api_form form;
	enum table_include include;
};
struct api_view api_view_of(const struct api_call *call);
/* The object in that form, for a list's items or a watch; owned by the caller. */
char *api_view_text(const struct api_view *view, const struct object *object) MUST_USE;
bool api_query_bool(const struct http_exchange *exchange, const char *name);
/* fallback when absent; malformed: -EINVAL and the call is answered. */
int api_query_int(const struct api_call *call, const char *name, int64_t fallback, int64_t *ret) MUST_USE;
/* Selectors of the request; answers 400 and returns negative when they are malformed. */
int api_selectors(const struct api_call *call, struct selector *ret_labels, struct selector *ret_fields) MUST_USE;

void api_get(const struct api_call *call);    /* list.c */
void api_list(const struct api_call *call);   /* list.c */
void api_watch(const struct api_call *call);  /* watch.c */
void api_logs(const struct api_call *call);   /* logs.c */
void api_stream(const struct api_call *call); /* stream.c: exec, attach, portforward */
void api_create(const struct api_call *call); /* write.c */
void api_update(const struct api_call *call);
void api_patch(const struct api_call *call);
void api_delete(const struct api_call *call);
void api_delete_collection(const struct api_call *call);

/* The store tells watchers; called once at start. */
void watch_subscribe(struct local_api *api);
/* Ends all watches (their connections are being closed). */
void watch_stop(struct local_api *api);

/* logs.c: something about a pod has changed; streams of its containers may be at their end. */
void logs_pod_changed(struct local_api *api, const struct object *pod);
void logs_stop(struct local_api *api);
/* The container that is meant: of the query, by annotation, or the only one; NULL: answered. */
char *api_choose_container(const struct api_call *call, const json_t *tree) MUST_USE;

/* tunnel.c: ends all of them. */
void tunnels_stop(struct local_api *api);

/* kubeconfig.c: keys under <root_dir>/api, made when missing or about to expire; *ret_token. */
int kubeconfig_prepare(const struct local_api_options *options, struct tls_server **ret, char **ret_token,
	struct error *err) MUST_USE;

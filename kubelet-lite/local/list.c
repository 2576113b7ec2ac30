/*
 * list.c - purpose: get one object; list a collection, in pages, as pieces that follow the client's reading.
 *
 * The walk goes by (namespace, name), so that it can be interrupted while objects come and go. resourceVersion is that
 * of the walk's begin: what changed meanwhile is in a watch from there.
 */
#include "kubelet-lite/local/api_i.h"

#include <errno.h>
#include <stdio.h>

#include "common/base/codec.h"
#include "common/base/str.h"
#include "common/sys/file.h"
#include "common/wire/json.h"
#include "kubelet-lite/store/kinds.h"

struct list {
	struct local_api *api;
	struct http_exchange *exchange;
	enum object_kind kind;
	char *ns; /* "": all */
	struct selector labels, fields;
	struct api_view view;
	int64_t limit; /* 0: none */
	int64_t given;
	uint64_t version;
	char *last_ns, *last_name; /* where the walk is */
	struct str text;           /* to be written */
};

static void list_free(void *data)
{
	struct list *l = data;

	selector_done(&l->labels);
	selector_done(&l->fields);
	free(l->ns);
	free(l->last_ns);
	free(l->last_name);
	str_done(&l->text);
	free(l);
}

struct api_view api_view_of(const struct api_call *call)
{
	const char *accept = http_header(call->exchange, "Accept");
	_cleanup_free_ char *include = http_query(call->exchange, "includeObject");
	struct api_view view = { FORM_PLAIN, TABLE_METADATA };

	if (accept && strstr(accept, "as=Table"))
		view.form = FORM_TABLE;
	else if (accept && strstr(accept, "as=PartialObjectMetadata"))
		view.form = FORM_PARTIAL;
	if (str_eq(include, "Object"))
		view.include = TABLE_OBJECT;
	else if (str_eq(include, "None"))
		view.include = TABLE_NONE;
	return view;
}

char *api_view_text(const struct api_view *view, const struct object *object)
{
	if (view->form == FORM_PLAIN)
		return xstrndup(object->json, object->json_len);
	_cleanup_json_ json_t *tree = object_tree(object);
	_cleanup_json_ json_t *seen = view->form == FORM_PARTIAL
		? table_partial(tree)
		: table_row(object->kind, tree, (int64_t)clock_realtime_ns(), view->include);

	return json_text(seen);
}

bool api_query_bool(const struct http_exchange *exchange, const char *name)
{
	_cleanup_free_ char *value = http_query(exchange, name);

	return str_eq(value, "true") || str_eq(value, "1");
}

int api_query_int(const struct api_call *call, const char *name, int64_t fallback, int64_t *ret)
{
	_cleanup_free_ char *value = http_query(call->exchange, name);
	char *end = NULL;

	*ret = fallback;
	if (str_empty(value))
		return 0;
	errno = 0;
	long long n = strtoll(value, &end, 10);

	if (*end || errno || n < 0) {
		reply_failure(call->exchange, 400, "BadRequest", NULL, "parameter %s: \"%.60s\" must be a number, 0 or more", name,
			value);
		return -EINVAL;
	}
	*ret = n;
	return 0;
}

int api_selectors(const struct api_call *call, struct selector *ret_labels, struct selector *ret_fields)
{
	_cleanup_free_ char *labels = http_query(call->exchange, "labelSelector");
	_cleanup_free_ char *fields = http_query(call->exchange, "fieldSelector");
	struct error err = ERROR_INIT;
	int r = label_selector_parse(labels ? labels : "", ret_labels, &err);

	if (r == 0)
		r = select_parse_fields(call->route.kind, fields, ret_fields, &err);
	if (r < 0)
		reply_failure(call->exchange, 400, "BadRequest", NULL, "%s", err.text);
	return r;
}

void api_get(const struct api_call *call)
{
	const struct route *route = &call->route;
	const struct object *o = objects_get(call->api->objects, route->kind, route->ns, route->name);
	struct api_view view = api_view_of(call);

	if (!o) {
		reply_not_found(call->exchange, route);
		return;
	}
	if (view.form == FORM_PLAIN) {
		reply_text(call->exchange, 200, o->json, o->json_len);
		return;
	}
	_cleanup_free_ char *text = api_view_text(&view, o);

	if (view.form == FORM_PARTIAL) {
		reply_text(call->exchange, 200, text, strlen(text));
		return;
	}
	_cleanup_json_ json_t *columns = table_columns(route->kind);
	_cleanup_free_ char *columns_text = json_text(columns);
	_cleanup_free_ char *table = xasprintf("{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":"
					       "{\"resourceVersion\":\"%llu\"},\"columnDefinitions\":%s,\"rows\":[%s]}",
		(unsigned long long)o->resource_version, columns_text, text);

	reply_text(call->exchange, 200, table, strlen(table));
}

/* "version\nns\nname" in base64: where the next page begins. */
static char *continue_token(const struct list *l)
{
	_cleanup_free_ char *text = xasprintf("%llu\n%s\n%s", (unsigned long long)l->version, l->last_ns, l->last_name);

	return base64_encode(text, strlen(text));
}

static int continue_from(struct list *l, const char *token)
{
	_cleanup_free_ void *text = NULL;
	_cleanup_(strv_done) struct strv parts = STRV_INIT;
	size_t len;

	if (base64_decode(token, strlen(token), &text, &len) < 0 || strlen(text) != len)
		return -EINVAL;
	strv_split(&parts, text, '\n');
	char *end = NULL;
	unsigned long long version = parts.n == 3 ? strtoull(parts.v[0], &end, 10) : 0;

	if (!end || *end || end == parts.v[0])
		return -EINVAL;
	l->version = version;
	free(l->last_ns);
	free(l->last_name);
	l->last_ns = xstrdup(parts.v[1]);
	l->last_name = xstrdup(parts.v[2]);
	return 0;
}

static const struct object *next_match(struct list *l)
{
	const struct object *o;

	while ((o = objects_after(l->api->objects, l->kind, l->last_ns, l->last_name))) {
		bool wanted = !*l->ns || str_eq(o->ns, l->ns);

		if (!wanted && strcmp(o->ns, l->ns) > 0)
			return NULL;
		if (wanted && select_labels(&l->labels, o) && select_fields(&l->fields, o))
			return o;
		free(l->last_ns);
		free(l->last_name);
		/* Not before the namespace that is looked for. */
		l->last_ns = xstrdup(wanted ? o->ns : l->ns);
		l->last_name = xstrdup(wanted ? o->name : "");
	}
	return NULL;
}

static void add_one(struct list *l, const struct object *o)
{
	if (l->given++)
		str_add_char(&l->text, ',');
	if (l->view.form == FORM_PLAIN) {
		str_add_bytes(&l->text, o->json, o->json_len);
	} else {
		_cleanup_free_ char *text = api_view_text(&l->view, o);

		str_add(&l->text, text);
	}
	free(l->last_ns);
	free(l->last_name);
	l->last_ns = xstrdup(o->ns);
	l->last_name = xstrdup(o->name);
}

static void finish(struct list *l, bool more)
{
	str_addf(&l->text, "],\"metadata\":{\"resourceVersion\":\"%llu\"", (unsigned long long)l->version);
	if (more) {
		_cleanup_free_ char *token = continue_token(l);

		str_addf(&l->text, ",\"continue\":\"%s\"", token);
	}
	str_add(&l->text, "}}\n");
	http_stream_on_drain(l->exchange, NULL, NULL);
	if (http_stream_write(l->exchange, l->text.buf, l->text.len) == 0)
		str_reset(&l->text);
	http_stream_end(l->exchange);
	list_free(l);
}

static void go_on(void *data)
{
	struct list *l = data;

	while (http_stream_pending(l->exchange) < API_PAUSE_BYTES) {
		const struct object *o = next_match(l);

		if (!o || (l->limit && l->given >= l->limit)) {
			finish(l, o != NULL);
			return;
		}
		add_one(l, o);
		if (l->text.len < API_PAUSE_BYTES / 4)
			continue;
		if (http_stream_write(l->exchange, l->text.buf, l->text.len) < 0) /* cannot be: we wait for the client */
			return;
		str_reset(&l->text);
	}
	http_stream_on_drain(l->exchange, go_on, l);
}

static void begin(struct list *l)
{
	const struct kind_info *info = kind_info(l->kind);

	http_stream_begin(l->exchange, 200, "application/json", list_free, l);
	if (l->view.form == FORM_TABLE) {
		_cleanup_json_ json_t *columns = table_columns(l->kind);
		_cleanup_free_ char *text = json_text(columns);

		str_addf(&l->text, "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"columnDefinitions\":%s,\"rows\":[",
			text);
	} else if (l->view.form == FORM_PARTIAL) {
		str_add(&l->text, "{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/v1\",\"items\":[");
	} else {
		str_addf(&l->text, "{\"kind\":\"%sList\",\"apiVersion\":\"%s\",\"items\":[", info->kind, info->api_version);
	}
	go_on(l);
}

void api_list(const struct api_call *call)
{
	_cleanup_free_ char *token = http_query(call->exchange, "continue");
	struct list *l = xnew(struct list);

	l->api = call->api;
	l->exchange = call->exchange;
	l->kind = call->route.kind;
	l->ns = xstrdup(call->route.ns);
	l->view = api_view_of(call);
	l->version = objects_version(call->api->objects);
	l->last_ns = xstrdup("");
	l->last_name = xstrdup("");
	if (api_selectors(call, &l->labels, &l->fields) < 0 || api_query_int(call, "limit", 0, &l->limit) < 0) {
		list_free(l);
		return;
	}
	if (!str_empty(token) && continue_from(l, token) < 0) {
		reply_failure(call->exchange, 400, "BadRequest", NULL, "continue key is not valid");
		list_free(l);
		return;
	}
	begin(l);
}

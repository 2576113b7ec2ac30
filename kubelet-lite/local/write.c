/*
 * write.c - purpose: create, replace, patch and delete objects through the API.
 *
 * The manifests directory is the source of truth: what is written here goes to a file, then into the store. Events and
 * Leases live in memory; so do labels of the Node.
 */
#include "kubelet-lite/local/api_i.h"

#include <errno.h>
#include <stdio.h>

#include "common/base/str.h"
#include "common/kube/patch.h"
#include "common/sys/file.h"
#include "common/wire/json.h"
#include "kubelet-lite/local/body.h"
#include "kubelet-lite/source/manifest.h"
#include "kubelet-lite/store/events.h"
#include "kubelet-lite/store/kinds.h"

static bool is_dry_run(const struct api_call *call)
{
	_cleanup_free_ char *value = http_query(call->exchange, "dryRun");

	return !str_empty(value);
}

static void reply_object(const struct api_call *call, int status, const struct object *o)
{
	struct api_view view = api_view_of(call);

	if (!o) {
		reply_not_found(call->exchange, &call->route);
		return;
	}
	if (view.form == FORM_PLAIN) {
		reply_text(call->exchange, status, o->json, o->json_len);
		return;
	}
	/* kubectl prints what it created as a table with -o wide and the like. */
	_cleanup_free_ char *text = api_view_text(&view, o);
	json_t *row = NULL;

	if (json_read(text, strlen(text), false, &row, NULL) < 0)
		abort(); /* our own text */
	if (view.form == FORM_PARTIAL)
		reply_json(call->exchange, status, row);
	else
		reply_json(call->exchange, status, json_pack("{ss ss s{} so s[o]}", "kind", "Table", "apiVersion",
						       "meta.k8s.io/v1", "metadata", "columnDefinitions",
						       table_columns(o->kind), "rows", row));
}

static const struct object *current(const struct api_call *call)
{
	return objects_get(call->api->objects, call->route.kind, call->route.ns, call->route.name);
}

/* Unknown fields: an error, a Warning header or nothing, as the request wants it. Negative: answered. */
static int check_fields(const struct api_call *call, const json_t *tree)
{
	_cleanup_free_ char *mode = http_query(call->exchange, "fieldValidation");
	_cleanup_(strv_done) struct strv paths = STRV_INIT;
	_cleanup_(str_done) struct str list = STR_INIT;

	if (str_eq(mode, "Ignore"))
		return 0;
	validate_unknown(call->route.kind, tree, &paths);
	for (size_t i = 0; i < paths.n && i < 20; i++) {
		if (str_eq(mode, "Strict")) {
			str_addf(&list, "%sunknown field \"%s\"", i ? ", " : "", paths.v[i]);
			continue;
		}
		_cleanup_free_ char *warning = xasprintf("299 - \"unknown field \\\"%.200s\\\"\"", paths.v[i]);

		http_add_header(call->exchange, "Warning", warning);
	}
	if (!list.len)
		return 0;
	reply_failure(call->exchange, 400, "BadRequest", NULL, "strict decoding error: %s", list.buf);
	return -EINVAL;
}

/* Kind, version and namespace must be those of the path; absent ones are filled in. Negative: answered. */
static int check_identity(const struct api_call *call, json_t *tree)
{
	const struct kind_info *info = kind_info(call->route.kind);
	const char *kind = json_str_at(tree, "kind", info->kind), *version = json_str_at(tree, "apiVersion", info->api_version);
	json_t *meta = json_object_get(tree, "metadata");
	const char *ns = json_str_at(meta, "namespace", ""), *name = json_str_at(meta, "name", "");

	if (!str_eq(kind, info->kind) || !str_eq(version, info->api_version)) {
		reply_failure(call->exchange, 400, "BadRequest", NULL,
			"%.60s in version \"%.60s\" cannot be handled as a %s (%s)", kind, version, info->kind, info->api_version);
		return -EINVAL;
	}
	if (*ns && !str_eq(ns, call->route.ns)) {
		reply_failure(call->exchange, 400, "BadRequest", NULL,
			"the namespace of the provided object does not match the namespace sent on the request");
		return -EINVAL;
	}
	if (*call->route.name && *name && !str_eq(name, call->route.name)) {
		reply_failure(call->exchange, 400, "BadRequest", NULL,
			"the name of the object (%.100s) does not match the name on the URL (%s)", name, call->route.name);
		return -EINVAL;
	}
	json_object_set_new(tree, "kind", json_string(info->kind));
	json_object_set_new(tree, "apiVersion", json_string(info->api_version));
	if (!json_is_object(meta) && (!meta || json_is_null(meta))) {
		json_object_set_new(tree, "metadata", json_object());
		meta = json_object_get(tree, "metadata");
	}
	if (info->namespaced)
		json_object_set_new(meta, "namespace", json_string(call->route.ns));
	if (*call->route.name)
		json_object_set_new(meta, "name", json_string(call->route.name));
	return 0;
}

/* 422 if anything is wrong with it; the completed object in *ret otherwise. */
static int check_content(const struct api_call *call, const json_t *tree, json_t **ret)
{
	_cleanup_(causes_done) struct causes causes = CAUSES_INIT;
	_cleanup_json_ json_t *copy = json_deep_copy(tree);

	objects_check(call->api->objects, call->route.kind, copy, &causes);
	if (causes.n == 0) {
		*ret = steal(copy);
		return 0;
	}
	reply_invalid(call->exchange, &call->route, json_str_at(tree, "metadata.name", ""), &causes);
	return -EINVAL;
}

/* Negative: answered. */
static int check_owner(const struct api_call *call, const struct object *o)
{
	if (call->route.kind == KIND_ENDPOINT_SLICE && o && !o->source) {
		reply_failure(call->exchange, 403, "Forbidden", &call->route,
			"endpointslices \"%s\" is forbidden: it is managed by kubelet-lite (from the Service's selector)", o->name);
		return -EPERM;
	}
	if (kind_info(call->route.kind)->writable && !call->api->files) {
		reply_failure(call->exchange, 405, "MethodNotAllowed", &call->route, "this node has no manifests directory to write to");
		return -EPERM;
	}
	return 0;
}

static int store(const struct api_call *call, json_t *tree, struct error *err)
{
	if (kind_info(call->route.kind)->writable)
		return file_source_write(call->api->files, call->route.kind, tree, err);
	if (call->route.kind == KIND_EVENT)
		return events_put(call->api->objects, tree, err);
	return objects_put(call->api->objects, call->route.kind, tree, NULL, NULL, err);
}

static void generate_name(json_t *tree)
{
	json_t *meta = json_object_get(tree, "metadata");
	const char *prefix = json_str_at(meta, "generateName", "");
	char random[6];

	if (!*prefix || *json_str_at(meta, "name", ""))
		return;
	random_hex(random, 5);
	_cleanup_free_ char *name = xasprintf("%.58s%s", prefix, random);

	json_object_set_new(meta, "name", json_string(name));
}

static void create_tree(const struct api_call *call, json_t *tree)
{
	_cleanup_json_ json_t *complete = NULL;
	struct api_call named = *call;
	struct error err = ERROR_INIT;

	if (check_identity(call, tree) < 0 || check_fields(call, tree) < 0)
		return;
	generate_name(tree);
	snprintf(named.route.name, sizeof(named.route.name), "%s", json_str_at(tree, "metadata.name", ""));
	const struct object *o = current(&named);

	if (o) {
		reply_failure(call->exchange, 409, "AlreadyExists", &named.route, "%s%s \"%s\" already exists",
			o->deleting ? "object is being deleted: " : "", kind_info(o->kind)->plural, o->name);
		return;
	}
	if (check_owner(&named, NULL) < 0 || check_content(&named, tree, &complete) < 0)
		return;
	if (is_dry_run(call)) {
		reply_json(call->exchange, 201, steal(complete));
		return;
	}
	if (store(&named, tree, &err) < 0)
		reply_error(call->exchange, &named.route, &err);
	else
		reply_object(&named, 201, current(&named));
}

static void delete_object(const struct api_call *call, const json_t *options);

void api_create(const struct api_call *call)
{
	_cleanup_json_ json_t *tree = NULL;

	if (call->route.kind == KIND_NODE) {
		reply_failure(call->exchange, 405, "MethodNotAllowed", &call->route, "nodes are registered by the node itself");
		return;
	}
	if (body_read(call, &tree) < 0)
		return;
	if (str_eq(call->route.sub, "eviction")) {
		delete_object(call, json_object_get(tree, "deleteOptions"));
		return;
	}
	if (kind_info(call->route.kind)->namespaced && !*call->route.ns) {
		reply_failure(call->exchange, 405, "MethodNotAllowed", &call->route, "a namespace is needed in the path");
		return;
	}
	create_tree(call, tree);
}

static bool is_conflict(const struct api_call *call, const json_t *tree, const struct object *o)
{
	const char *version = json_str_at(tree, "metadata.resourceVersion", "");
	const char *uid = json_str_at(tree, "metadata.uid", "");
	char now[24];

	snprintf(now, sizeof(now), "%llu", (unsigned long long)o->resource_version);
	if ((!*version || str_eq(version, now)) && (!*uid || str_eq(uid, o->uid)))
		return false;
	reply_failure(call->exchange, 409, "Conflict", &call->route,
		"Operation cannot be fulfilled on %s \"%s\": the object has been modified; please apply your changes to the latest "
		"version and try again",
		kind_info(o->kind)->plural, o->name);
	return true;
}

static void store_status(const struct api_call *call, const json_t *tree)
{
	_cleanup_json_ json_t *empty = json_object();
	const json_t *status = json_object_get(tree, "status");
	struct error err = ERROR_INIT;

	if (objects_put_status(call->api->objects, call->route.kind, call->route.ns, call->route.name,
		    json_is_object(status) ? status : empty, &err) < 0)
		reply_error(call->exchange, &call->route, &err);
	else
		reply_object(call, 200, current(call));
}

/* Is there anything in it that a manifest would say otherwise? */
static bool differs(const struct api_call *call, const json_t *tree, const struct object *o)
{
	_cleanup_json_ json_t *old = object_tree(o);
	const char *node = objects_node_name(call->api->objects);
	_cleanup_json_ json_t *a = manifest_strip(o->kind, old, node), *b = manifest_strip(o->kind, tree, node);

	return !json_equal(a, b);
}

/* A pod is what its manifest says, so a change there is a new pod; clients are held to what a cluster lets them change.
 * Negative: answered. */
static int check_change(const struct api_call *call, const json_t *complete, const struct object *o)
{
	_cleanup_(causes_done) struct causes causes = CAUSES_INIT;
	_cleanup_json_ json_t *old = object_tree(o);

	if (o->kind == KIND_POD)
		validate_pod_update(complete, old, &causes);
	if (causes.n == 0)
		return 0;
	reply_invalid(call->exchange, &call->route, o->name, &causes);
	return -EINVAL;
}

/* What a dry run shows: the new content as a later version of the object that is there. */
static void keep_identity(json_t *tree, const struct object *o)
{
	static const char *const kept[] = { "uid", "resourceVersion", "creationTimestamp", "generation", "deletionTimestamp",
		"deletionGracePeriodSeconds" };
	_cleanup_json_ json_t *old = object_tree(o);
	json_t *meta = json_object_get(tree, "metadata"), *old_meta = json_object_get(old, "metadata"), *value;
	json_t *notes = json_object_get(meta, "annotations");
	const char *key;

	for (size_t i = 0; i < ARRAY_LEN(kept); i++)
		if (json_object_get(old_meta, kept[i]))
			json_object_set(meta, kept[i], json_object_get(old_meta, kept[i]));
	json_object_foreach (json_object_get(old_meta, "annotations"), key, value) {
		if (!str_starts(key, "kubernetes.io/config."))
			continue;
		if (!notes) {
			notes = json_object();
			json_object_set_new(meta, "annotations", notes);
		}
		json_object_set(notes, key, value);
	}
	if (json_object_get(old, "status"))
		json_object_set(tree, "status", json_object_get(old, "status"));
}

/* The whole new object in place of the old one. */
static void replace(const struct api_call *call, json_t *tree, const struct object *o)
{
	_cleanup_json_ json_t *complete = NULL;
	struct error err = ERROR_INIT;

	if (is_conflict(call, tree, o) || check_identity(call, tree) < 0 || check_fields(call, tree) < 0)
		return;
	if (str_eq(call->route.sub, "status")) {
		store_status(call, tree);
		return;
	}
	if (check_owner(call, o) < 0 || check_content(call, tree, &complete) < 0 || check_change(call, complete, o) < 0)
		return;
	if (is_dry_run(call)) {
		keep_identity(complete, o);
		reply_json(call->exchange, 200, steal(complete));
		return;
	}
	/* stringData is folded into data here, for good. */
	if (o->kind == KIND_SECRET) {
		json_object_update(tree, complete);
		json_object_del(tree, "stringData");
	}
	/* A status or a version that came along is no change. */
	if (differs(call, complete, o) && store(call, tree, &err) < 0)
		reply_error(call->exchange, &call->route, &err);
	else
		reply_object(call, 200, current(call));
}

void api_update(const struct api_call *call)
{
	_cleanup_json_ json_t *tree = NULL;
	const struct object *o = current(call);

	if (!o)
		reply_not_found(call->exchange, &call->route);
	else if (body_read(call, &tree) == 0)
		replace(call, tree, o);
}

static int apply_patch(const struct api_call *call, json_t **tree, const json_t *patch)
{
	const char *type = http_header(call->exchange, "Content-Type");
	struct schema schema = schema_of(kind_info(call->route.kind)->kind);
	struct error err = ERROR_INIT;
	int r;

	if (str_starts(type, "application/json-patch+json"))
		r = patch_json(tree, patch, &err);
	else if (str_starts(type, "application/merge-patch+json"))
		r = patch_merge(*tree, patch, &err);
	else
		r = patch_strategic(&schema, *tree, patch, &err);
	if (r == 0 && !json_is_object(*tree))
		r = error_set(&err, ERROR_INVALID, "the result is not an object");
	if (r < 0)
		reply_failure(call->exchange, 422, "Invalid", &call->route, "the patch cannot be applied: %s", err.text);
	return r;
}

static bool is_patch_type(const char *type)
{
	static const char *const types[] = { "application/json-patch+json", "application/merge-patch+json",
		"application/strategic-merge-patch+json", "application/apply-patch+yaml" };

	for (size_t i = 0; type && i < ARRAY_LEN(types); i++)
		if (str_starts(type, types[i]))
			return true;
	return false;
}

void api_patch(const struct api_call *call)
{
	const char *type = http_header(call->exchange, "Content-Type");
	const struct object *o = current(call);
	_cleanup_json_ json_t *patch = NULL, *tree = NULL;

	if (!is_patch_type(type)) {
		reply_failure(call->exchange, 415, "UnsupportedMediaType", NULL,
			"a patch must be one of application/json-patch+json, application/merge-patch+json, "
			"application/strategic-merge-patch+json, application/apply-patch+yaml");
		return;
	}
	if (body_read(call, &patch) < 0)
		return;
	bool apply = str_starts(type, "application/apply-patch+yaml");

	if (!o && apply && !*call->route.sub) {
		create_tree(call, patch);
		return;
	}
	if (!o) {
		reply_not_found(call->exchange, &call->route);
		return;
	}
	if (apply)
		json_object_del(json_object_get(patch, "metadata"), "managedFields");
	tree = object_tree(o);
	if (apply_patch(call, &tree, patch) == 0)
		replace(call, tree, o);
}

/* DeleteOptions of body and query. Negative: answered. */
static int delete_options(const struct api_call *call, json_t **ret)
{
	_cleanup_free_ char *grace = http_query(call->exchange, "gracePeriodSeconds");
	_cleanup_json_ json_t *options = NULL;
	int64_t seconds;

	if (call->request->body_len > 0) {
		if (body_read(call, &options) < 0)
			return -EINVAL;
	} else {
		options = json_object();
	}
	if (!str_empty(grace)) {
		if (api_query_int(call, "gracePeriodSeconds", 0, &seconds) < 0)
			return -EINVAL;
		json_object_set_new(options, "gracePeriodSeconds", json_integer(seconds));
	}
	*ret = steal(options);
	return 0;
}

static void reply_deleted(const struct api_call *call, const char *uid)
{
	const struct kind_info *info = kind_info(call->route.kind);

	reply_json(call->exchange, str_eq(call->route.sub, "eviction") ? 201 : 200,
		json_pack("{ss ss s{} ss s{ss ss ss ss}}", "kind", "Status", "apiVersion", "v1", "metadata", "status", "Success",
			"details", "name", call->route.name, "group", info->group, "kind", info->plural, "uid", uid));
}

static int remove_one(struct local_api *api, const struct object *o, int64_t grace, struct error *err)
{
	if (kind_info(o->kind)->writable && api->files)
		return file_source_delete(api->files, o, grace, err);
	return objects_delete(api->objects, o->kind, o->ns, o->name, grace, err);
}

/* Everything in it goes first. Pods end in their own time. */
static int empty_namespace(struct local_api *api, const char *name, struct error *err)
{
	for (int kind = 0; kind < KIND_COUNT; kind++) {
		const struct object *o;
		_cleanup_free_ char *last = xstrdup("");

		if (!kind_info((enum object_kind)kind)->namespaced)
			continue;
		while ((o = objects_after(api->objects, (enum object_kind)kind, name, last)) && str_eq(o->ns, name)) {
			free(last);
			last = xstrdup(o->name);
			if (kind == KIND_ENDPOINT_SLICE && !o->source)
				continue; /* goes with its Service */
			int r = remove_one(api, o, -1, err);

			if (r < 0)
				return r;
		}
	}
	return 0;
}

static bool precondition_fails(const struct api_call *call, const struct object *o, const json_t *options)
{
	_cleanup_json_ json_t *tree = json_pack("{s{ss* ss*}}", "metadata", "uid",
		json_str_at(options, "preconditions.uid", NULL), "resourceVersion",
		json_str_at(options, "preconditions.resourceVersion", NULL));

	return tree && is_conflict(call, tree, o);
}

static void delete_object(const struct api_call *call, const json_t *options)
{
	const struct object *o = current(call);
	int64_t grace = json_int_at(options, "gracePeriodSeconds", -1);
	bool dry = is_dry_run(call) || json_array_size(json_object_get(options, "dryRun")) > 0;
	struct error err = ERROR_INIT;
	int r = 0;

	if (!o) {
		reply_not_found(call->exchange, &call->route);
		return;
	}
	if (precondition_fails(call, o, options) || check_owner(call, o) < 0)
		return;
	if (o->kind == KIND_NODE || (o->kind == KIND_NAMESPACE && str_eq(o->name, "default"))) {
		reply_failure(call->exchange, 403, "Forbidden", &call->route, "%s \"%s\" is forbidden: it may not be deleted",
			kind_info(o->kind)->plural, o->name);
		return;
	}
	_cleanup_free_ char *uid = xstrdup(o->uid);

	if (!dry && o->kind == KIND_NAMESPACE)
		r = empty_namespace(call->api, call->route.name, &err);
	if (!dry && r == 0)
		r = remove_one(call->api, o, grace, &err);
	if (r < 0) {
		reply_error(call->exchange, &call->route, &err);
		return;
	}
	o = current(call);
	if (call->route.kind == KIND_POD && o && str_eq(o->uid, uid) && !str_eq(call->route.sub, "eviction"))
		reply_object(call, 200, o);
	else
		reply_deleted(call, uid);
}

void api_delete(const struct api_call *call)
{
	_cleanup_json_ json_t *options = NULL;

	if (delete_options(call, &options) == 0)
		delete_object(call, options);
}

void api_delete_collection(const struct api_call *call)
{
	_cleanup_(selector_done) struct selector labels = SELECTOR_INIT, fields = SELECTOR_INIT;
	_cleanup_json_ json_t *options = NULL;
	_cleanup_free_ char *ns = xstrdup(""), *name = xstrdup("");
	const struct object *o;
	struct error err = ERROR_INIT;

	if (call->route.kind == KIND_NODE || call->route.kind == KIND_NAMESPACE) {
		reply_failure(call->exchange, 405, "MethodNotAllowed", &call->route, "deletecollection is not allowed for %s",
			kind_info(call->route.kind)->plural);
		return;
	}
	if (delete_options(call, &options) < 0 || api_selectors(call, &labels, &fields) < 0)
		return;
	bool dry = is_dry_run(call);

	while ((o = objects_after(call->api->objects, call->route.kind, ns, name))) {
		free(ns);
		free(name);
		ns = xstrdup(o->ns);
		name = xstrdup(o->name);
		if (dry || (*call->route.ns && !str_eq(ns, call->route.ns)) || !select_labels(&labels, o) ||
			!select_fields(&fields, o) || (o->kind == KIND_ENDPOINT_SLICE && !o->source))
			continue;
		if (remove_one(call->api, o, json_int_at(options, "gracePeriodSeconds", -1), &err) < 0) {
			reply_error(call->exchange, &call->route, &err);
			return;
		}
	}
	reply_json(call->exchange, 200,
		json_pack("{ss ss s{} ss}", "kind", "Status", "apiVersion", "v1", "metadata", "status", "Success"));
}

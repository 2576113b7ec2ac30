/* reply.c - purpose: answers of the API: objects, and Status objects for what went wrong. */
#include "kubelet-lite/local/reply.h"

#include "common/base/str.h"
#include "common/wire/json.h"
#include "kubelet-lite/store/kinds.h"

void reply_text(struct http_exchange *exchange, int status, const char *json, size_t len)
{
	http_respond(exchange, status, "application/json", json, len);
}

void reply_json(struct http_exchange *exchange, int status, json_t *tree)
{
	_cleanup_free_ char *text = json_text(tree);

	json_decref(tree);
	reply_text(exchange, status, text, strlen(text));
}

json_t *reply_status_tree(int status, const char *reason, const char *message)
{
	/* json_pack() refuses what is not UTF-8; a message may quote it. */
	json_t *text = json_string(message);

	return json_pack("{ss ss s{} ss so ss si}", "kind", "Status", "apiVersion", "v1", "metadata", "status", "Failure",
		"message", text ? text : json_string("(message is not UTF-8)"), "reason", reason, "code", status);
}

static json_t *details(const struct route *route, const char *name)
{
	const struct kind_info *info = kind_info(route->kind);
	json_t *d = json_object();

	if (!str_empty(name))
		json_object_set_new(d, "name", json_string(name));
	if (*info->group)
		json_object_set_new(d, "group", json_string(info->group));
	json_object_set_new(d, "kind", json_string(info->plural));
	return d;
}

static void vreply(struct http_exchange *exchange, int status, const char *reason, const struct route *route,
	const char *message)
{
	json_t *tree = reply_status_tree(status, reason, message);

	/* Always there: `kubectl debug` looks into it without asking whether it is. */
	json_object_set_new(tree, "details", route ? details(route, route->name) : json_object());
	reply_json(exchange, status, tree);
}

void reply_failure(struct http_exchange *exchange, int status, const char *reason, const struct route *route,
	const char *fmt, ...)
{
	_cleanup_(str_done) struct str text = STR_INIT;
	va_list args;

	va_start(args, fmt);
	str_vaddf(&text, fmt, args);
	va_end(args);
	vreply(exchange, status, reason, route, str_get(&text));
}

void reply_invalid(struct http_exchange *exchange, const struct route *route, const char *name,
	const struct causes *causes)
{
	_cleanup_free_ char *text = causes_text(causes);
	_cleanup_free_ char *message = xasprintf("%s \"%s\" is invalid: %s", kind_info(route->kind)->kind, name, text);
	json_t *tree = reply_status_tree(422, "Invalid", message), *d = details(route, name), *list = json_array();

	json_object_set_new(d, "kind", json_string(kind_info(route->kind)->kind));
	for (size_t i = 0; i < causes->n; i++) {
		const struct cause *c = &causes->v[i];

		json_array_append_new(list,
			json_pack("{ss ss* ss}", "reason", c->reason, "message", c->message, "field", c->field));
	}
	json_object_set_new(d, "causes", list);
	json_object_set_new(tree, "details", d);
	reply_json(exchange, 422, tree);
}

void reply_error(struct http_exchange *exchange, const struct route *route, const struct error *err)
{
	switch (err->code) {
	case ERROR_NOT_FOUND:
		vreply(exchange, 404, "NotFound", route, err->text);
		break;
	case ERROR_INVALID:
		vreply(exchange, 422, "Invalid", route, err->text);
		break;
	case ERROR_EXISTS:
		vreply(exchange, 409, "AlreadyExists", route, err->text);
		break;
	case ERROR_ABORTED:
		vreply(exchange, 409, "Conflict", route, err->text);
		break;
	case ERROR_DENIED:
		vreply(exchange, 403, "Forbidden", route, err->text);
		break;
	default:
		vreply(exchange, 500, "InternalError", route, err->text);
	}
}

void reply_not_found(struct http_exchange *exchange, const struct route *route)
{
	const struct kind_info *info = kind_info(route->kind);

	reply_failure(exchange, 404, "NotFound", route, "%s%s%s \"%s\" not found", info->plural, *info->group ? "." : "",
		info->group, route->name);
}

/* body.c - purpose: the body of a request as a tree: JSON, YAML, or the API's protobuf form. */
#include "kubelet-lite/local/body.h"

#include <errno.h>

#include "common/base/str.h"
#include "common/wire/json.h"
#include "kubelet-lite/local/protobuf.h"

static int refuse(const struct api_call *call, const char *why)
{
	reply_failure(call->exchange, 400, "BadRequest", NULL, "%s", why);
	return -EINVAL;
}

static int read_yaml(const struct api_call *call, json_t **ret)
{
	_cleanup_json_ json_t *documents = NULL;
	struct error err = ERROR_INIT;

	if (yaml_read(call->request->body, call->request->body_len, &documents, &err) < 0)
		return refuse(call, err.text);
	if (json_array_size(documents) != 1)
		return refuse(call, "the body must be one document");
	*ret = json_incref(json_array_get(documents, 0));
	return 0;
}

static int read_json(const struct api_call *call, json_t **ret)
{
	_cleanup_free_ char *mode = http_query(call->exchange, "fieldValidation");
	struct error err = ERROR_INIT;

	if (json_read(call->request->body, call->request->body_len, str_eq(mode, "Strict"), ret, &err) < 0)
		return refuse(call, err.text);
	return 0;
}

int body_read(const struct api_call *call, json_t **ret)
{
	const char *type = http_header(call->exchange, "Content-Type");
	_cleanup_json_ json_t *tree = NULL;
	struct error err = ERROR_INIT;
	int r;

	if (call->request->body_len == 0)
		return refuse(call, "the request has no body");
	if (type && str_starts(type, "application/vnd.kubernetes.protobuf")) {
		r = protobuf_read(call->request->body, call->request->body_len, &tree, &err);
		if (r < 0)
			return refuse(call, err.text);
	} else if (type && (str_starts(type, "application/yaml") || str_starts(type, "application/apply-patch+yaml"))) {
		r = read_yaml(call, &tree);
	} else if (!type || strstr(type, "json") || str_starts(type, "application/x-www-form-urlencoded")) {
		/* The last is what curl says when nothing is said. */
		r = read_json(call, &tree);
	} else {
		reply_failure(call->exchange, 415, "UnsupportedMediaType", NULL,
			"the body must be application/json, application/yaml or application/vnd.kubernetes.protobuf");
		return -EINVAL;
	}
	if (r < 0)
		return r;
	if (!json_is_object(tree) && !json_is_array(tree))
		return refuse(call, "the body must be an object");
	if (json_is_array(tree) && !(type && str_starts(type, "application/json-patch+json")))
		return refuse(call, "the body must be an object");
	*ret = steal(tree);
	return 0;
}

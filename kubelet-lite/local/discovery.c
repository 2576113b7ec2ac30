/* discovery.c - purpose: tell clients which kinds are served; version; a stub of OpenAPI. */
#include "kubelet-lite/local/discovery.h"

#include <stdio.h>

#include "common/base/str.h"
#include "kubelet-lite/store/kinds.h"

static const char AGGREGATED[] = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/* Groups beside the core one, in the order of the kinds. */
static const char *const GROUPS[] = { "discovery.k8s.io", "coordination.k8s.io" };

static bool writable(enum object_kind kind)
{
	return kind_info(kind)->writable || kind == KIND_NODE || kind == KIND_EVENT || kind == KIND_LEASE;
}

static json_t *verbs(enum object_kind kind)
{
	if (!writable(kind))
		return json_pack("[sss]", "get", "list", "watch");
	if (kind == KIND_NODE)
		return json_pack("[sssss]", "get", "list", "patch", "update", "watch");
	return json_pack("[ssssssss]", "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch");
}

static json_t *words(const char *list)
{
	_cleanup_(strv_done) struct strv parts = STRV_INIT;
	json_t *array = json_array();

	strv_split(&parts, list, ',');
	for (size_t i = 0; i < parts.n; i++)
		json_array_append_new(array, json_string(parts.v[i]));
	return array;
}

/* Sub-resources: name, verb. */
static const char *const POD_SUBS[][2] = { { "pods/log", "get" }, { "pods/status", "get,patch,update" },
	{ "pods/eviction", "create" }, { "pods/exec", "create,get" }, { "pods/attach", "create,get" }, { "pods/portforward", "create,get" } };

static json_t *resource_list(const char *group, const char *version)
{
	json_t *list = json_array();
	_cleanup_free_ char *group_version = *group ? xasprintf("%s/%s", group, version) : xstrdup(version);

	for (int i = 0; i < KIND_COUNT; i++) {
		const struct kind_info *info = kind_info((enum object_kind)i);

		if (!str_eq(info->group, group) || !str_eq(info->version, version))
			continue;
		json_t *r = json_pack("{ss ss sb ss so}", "name", info->plural, "singularName", info->singular, "namespaced",
			info->namespaced, "kind", info->kind, "verbs", verbs((enum object_kind)i));

		if (*info->short_names)
			json_object_set_new(r, "shortNames", words(info->short_names));
		if (info->category_all)
			json_object_set_new(r, "categories", words("all"));
		json_array_append_new(list, r);
	}
	for (size_t i = 0; !*group && i < ARRAY_LEN(POD_SUBS); i++)
		json_array_append_new(list, json_pack("{ss ss sb ss so}", "name", POD_SUBS[i][0], "singularName", "",
						    "namespaced", 1, "kind", "Pod", "verbs", words(POD_SUBS[i][1])));
	return json_pack("{ss ss ss so}", "kind", "APIResourceList", "apiVersion", "v1", "groupVersion", group_version,
		"resources", list);
}

static json_t *group_tree(const char *group)
{
	_cleanup_free_ char *version = xasprintf("%s/v1", group);

	return json_pack("{ss s[{ssss}] s{ssss}}", "name", group, "versions", "groupVersion", version, "version", "v1",
		"preferredVersion", "groupVersion", version, "version", "v1");
}

static json_t *group_list(void)
{
	json_t *groups = json_array();

	for (size_t i = 0; i < ARRAY_LEN(GROUPS); i++)
		json_array_append_new(groups, group_tree(GROUPS[i]));
	return json_pack("{ss ss so}", "kind", "APIGroupList", "apiVersion", "v1", "groups", groups);
}

static json_t *pod_subresources(void)
{
	json_t *subs = json_array();

	for (size_t i = 0; i < ARRAY_LEN(POD_SUBS); i++)
		json_array_append_new(subs, json_pack("{ss s{ssssss} so}", "subresource", strchr(POD_SUBS[i][0], '/') + 1,
						    "responseKind", "group", "", "version", "v1", "kind", "Pod", "verbs",
						    words(POD_SUBS[i][1])));
	return subs;
}

static json_t *aggregated_group(const char *group)
{
	json_t *resources = json_array();

	for (int i = 0; i < KIND_COUNT; i++) {
		const struct kind_info *info = kind_info((enum object_kind)i);

		if (!str_eq(info->group, group))
			continue;
		json_t *r = json_pack("{ss s{ssssss} ss ss so}", "resource", info->plural, "responseKind", "group",
			info->group, "version", info->version, "kind", info->kind, "scope",
			info->namespaced ? "Namespaced" : "Cluster", "singularResource", info->singular, "verbs",
			verbs((enum object_kind)i));

		if (*info->short_names)
			json_object_set_new(r, "shortNames", words(info->short_names));
		if (info->category_all)
			json_object_set_new(r, "categories", words("all"));
		if (i == KIND_POD)
			json_object_set_new(r, "subresources", pod_subresources());
		json_array_append_new(resources, r);
	}
	json_t *meta = *group ? json_pack("{ss}", "name", group) : json_object();

	return json_pack("{so s[{ss ss so}]}", "metadata", meta, "versions", "version", "v1", "freshness", "Current",
		"resources", resources);
}

static json_t *aggregated(bool core)
{
	json_t *items = json_array();

	if (core)
		json_array_append_new(items, aggregated_group(""));
	for (size_t i = 0; !core && i < ARRAY_LEN(GROUPS); i++)
		json_array_append_new(items, aggregated_group(GROUPS[i]));
	return json_pack("{ss ss s{} so}", "kind", "APIGroupDiscoveryList", "apiVersion", "apidiscovery.k8s.io/v2", "metadata",
		"items", items);
}

static json_t *version(void)
{
	char text[64];

	snprintf(text, sizeof(text), "v1.36.3-lite.%s", NODE_LITE_VERSION);
	for (char *p = text; *p; p++)
		if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789.+-", *p))
			*p = '-';
	return json_pack("{ss ss ss ss ss ss ss ss ss}", "major", "1", "minor", "36", "gitVersion", text, "gitCommit", "",
		"gitTreeState", "clean", "buildDate", "1970-01-01T00:00:00Z", "goVersion", "none", "compiler", "cc", "platform",
#if defined(__aarch64__)
		"linux/arm64"
#elif defined(__x86_64__)
		"linux/amd64"
#else
		"linux/unknown"
#endif
	);
}

/* kubectl validates manifests itself unless the server says here that it does: by a parameter fieldValidation. */
static json_t *openapi(const char *group)
{
	json_t *paths = json_object();

	for (int i = 0; i < KIND_COUNT; i++) {
		const struct kind_info *info = kind_info((enum object_kind)i);

		if (!str_eq(info->group, group))
			continue;
		_cleanup_free_ char *prefix = *group ? xasprintf("/apis/%s/v1", group) : xstrdup("/api/v1");
		_cleanup_free_ char *path = xasprintf("%s/%s%s/{name}", prefix, info->namespaced ? "namespaces/{namespace}/" : "",
			info->plural);

		json_object_set_new(paths, path,
			json_pack("{s{s[{ssss}] ss s{ssssss}}}", "patch", "parameters", "name", "fieldValidation", "in", "query",
				"x-kubernetes-action", "patch", "x-kubernetes-group-version-kind", "group", info->group,
				"version", "v1", "kind", info->kind));
	}
	return json_pack("{ss s{ssss} so}", "openapi", "3.0.0", "info", "title", "Kubernetes", "version", "v1.36.0", "paths",
		paths);
}

static json_t *openapi_index(void)
{
	json_t *paths = json_pack("{s{ss}}", "api/v1", "serverRelativeURL", "/openapi/v3/api/v1?hash=1");

	for (size_t i = 0; i < ARRAY_LEN(GROUPS); i++) {
		_cleanup_free_ char *key = xasprintf("apis/%s/v1", GROUPS[i]);
		_cleanup_free_ char *url = xasprintf("/openapi/v3/%s?hash=1", key);

		json_object_set_new(paths, key, json_pack("{ss}", "serverRelativeURL", url));
	}
	return json_pack("{so}", "paths", paths);
}

static json_t *of_group(const char *path)
{
	for (size_t i = 0; i < ARRAY_LEN(GROUPS); i++) {
		const char *group = GROUPS[i];
		size_t len = strlen(group);

		if (strncmp(path, "/apis/", 6) == 0 && strncmp(path + 6, group, len) == 0) {
			const char *rest = path + 6 + len;

			if (!*rest) {
				json_t *tree = group_tree(group);

				json_object_set_new(tree, "kind", json_string("APIGroup"));
				json_object_set_new(tree, "apiVersion", json_string("v1"));
				return tree;
			}
			if (str_eq(rest, "/v1"))
				return resource_list(group, "v1");
		}
		if (strncmp(path, "/openapi/v3/apis/", 17) == 0 && strncmp(path + 17, group, len) == 0 &&
			str_eq(path + 17 + len, "/v1"))
			return openapi(group);
	}
	return NULL;
}

json_t *discovery_document(const char *path, const char *accept, const char **ret_type)
{
	bool whole = accept && strstr(accept, "g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");

	*ret_type = "application/json";
	if ((str_eq(path, "/api") || str_eq(path, "/apis")) && whole) {
		*ret_type = AGGREGATED;
		return aggregated(str_eq(path, "/api"));
	}
	if (str_eq(path, "/api"))
		return json_pack("{ss s[s] s[]}", "kind", "APIVersions", "versions", "v1", "serverAddressByClientCIDRs");
	if (str_eq(path, "/apis"))
		return group_list();
	if (str_eq(path, "/api/v1"))
		return resource_list("", "v1");
	if (str_eq(path, "/version"))
		return version();
	if (str_eq(path, "/openapi/v3"))
		return openapi_index();
	if (str_eq(path, "/openapi/v3/api/v1"))
		return openapi("");
	return of_group(path);
}

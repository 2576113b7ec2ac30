/* route.c - purpose: what a request path of the Kubernetes API names. */
#include "kubelet-lite/local/route.h"

#include <stdio.h>

#include "common/base/str.h"
#include "kubelet-lite/store/kinds.h"

static bool set(char *to, size_t size, const char *from)
{
	return snprintf(to, size, "%s", from) < (int)size;
}

/* parts: behind group and version. */
static bool resource(const char *group, const char *version, char **parts, size_t n, struct route *r)
{
	bool in_namespace = n >= 3 && str_eq(parts[0], "namespaces") && !str_eq(parts[2], "status") &&
		!str_eq(parts[2], "finalize");

	if (in_namespace) {
		if (!set(r->ns, sizeof(r->ns), parts[1]))
			return false;
		parts += 2;
		n -= 2;
	}
	if (n < 1 || n > 3 || !kind_by_plural(group, version, parts[0], &r->kind))
		return false;
	if (in_namespace && !kind_info(r->kind)->namespaced)
		return false;
	/* An object with a namespace is never named without it. */
	if (n > 1 && kind_info(r->kind)->namespaced != in_namespace)
		return false;
	if (n > 1 && !set(r->name, sizeof(r->name), parts[1]))
		return false;
	return n < 3 || set(r->sub, sizeof(r->sub), parts[2]);
}

bool route_parse(const char *path, struct route *ret)
{
	_cleanup_(strv_done) struct strv parts = STRV_INIT;
	struct route r = { 0 };
	bool ok = false;

	if (*path != '/')
		return false;
	strv_split(&parts, path + 1, '/');
	if (parts.n && !*parts.v[parts.n - 1])
		free(parts.v[--parts.n]); /* one slash at the end is fine */
	for (size_t i = 0; i < parts.n; i++)
		if (!*parts.v[i])
			return false;
	if (parts.n > 2 && str_eq(parts.v[0], "api"))
		ok = resource("", parts.v[1], parts.v + 2, parts.n - 2, &r);
	else if (parts.n > 3 && str_eq(parts.v[0], "apis"))
		ok = resource(parts.v[1], parts.v[2], parts.v + 3, parts.n - 3, &r);
	if (ok)
		*ret = r;
	return ok;
}

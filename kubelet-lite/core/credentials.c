/* credentials.c - purpose: the user and password that a pull secret has for an image's registry. */
#include "kubelet-lite/core/credentials.h"

#include "common/base/codec.h"
#include "common/wire/json.h"

#include <fnmatch.h>

void credential_done(struct image_credential *c)
{
	free(c->username);
	free(c->password);
	free(c->registry_token);
	*c = (struct image_credential){ 0 };
}

/* Host and path of an image, without tag and digest: "host:port/a/b". Names without a registry are Docker Hub's. */
static char *repository(const char *image)
{
	size_t len = strcspn(image, "@");
	const char *slash = memchr(image, '/', len), *last = NULL;
	bool has_host =
		slash && (memchr(image, '.', (size_t)(slash - image)) || memchr(image, ':', (size_t)(slash - image)) ||
				 strncmp(image, "localhost/", 10) == 0);

	for (size_t i = 0; i < len; i++)
		last = image[i] == '/' ? image + i : last;
	const char *tag = memchr(last ? last : image, ':', len - (size_t)((last ? last : image) - image));
	if (tag && (last || !slash))
		len = (size_t)(tag - image);
	return has_host ? xstrndup(image, len) : xasprintf("docker.io/%.*s", (int)len, image);
}

/* Does an entry's key ("https://host:port/path") stand for the repository? */
static bool matches(const char *key, const char *repo)
{
	const char *p = strstr(key, "://") ? strstr(key, "://") + 3 : key;
	size_t host = strcspn(p, "/"), repo_host = strcspn(repo, "/");
	_cleanup_free_ char *pattern = xstrndup(p, host), *name = xstrndup(repo, repo_host);
	const char *path = p + host;

	if (str_eq(pattern, "index.docker.io")) {
		free(pattern);
		pattern = xstrdup("docker.io");
		path = ""; /* the old index's /v1/ */
	}
	if (fnmatch(pattern, name, 0) != 0)
		return false;
	size_t n = strlen(path);
	while (n && path[n - 1] == '/')
		n--;
	return n == 0 ||
	       (strncmp(repo + repo_host, path, n) == 0 && (repo[repo_host + n] == '/' || !repo[repo_host + n]));
}

static bool fill(const json_t *entry, struct image_credential *ret)
{
	const char *auth = json_str_at(entry, "auth", ""), *user = json_str_at(entry, "username", ""),
		   *password = json_str_at(entry, "password", ""), *token = json_str_at(entry, "registrytoken", "");
	void *bytes = NULL;
	size_t len;

	if (*user) {
		ret->username = xstrdup(user);
		ret->password = xstrdup(password);
	} else if (*auth && base64_decode(auth, strlen(auth), &bytes, &len) == 0) {
		char *colon = strchr(bytes, ':');

		if (colon) {
			ret->username = xstrndup(bytes, (size_t)(colon - (char *)bytes));
			ret->password = xstrdup(colon + 1);
		}
	}
	free(bytes);
	if (*token)
		ret->registry_token = xstrdup(token);
	return ret->username || ret->registry_token;
}

bool credential_find(const struct keyed *secret, const char *image, struct image_credential *ret)
{
	const struct keyed_item *item = keyed_get(secret, ".dockerconfigjson");
	bool old_style = !item;
	_cleanup_json_ json_t *config = NULL;
	_cleanup_free_ char *repo = repository(image);
	const json_t *best = NULL;
	size_t best_len = 0;
	const char *key;
	json_t *entry;

	if (!item)
		item = keyed_get(secret, ".dockercfg");
	if (!item || json_read(item->data, item->len, false, &config, NULL) < 0)
		return false;
	json_object_foreach(old_style ? config : json_object_get(config, "auths"), key,
		entry) if (strlen(key) >= best_len && matches(key, repo))
	{
		best = entry;
		best_len = strlen(key);
	}
	return best && fill(best, ret);
}

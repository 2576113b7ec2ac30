/* reference.c - purpose: image references: parse, check, normalise as Docker and containerd do. */
#include "runtime-lite/image/reference.h"

#include <ctype.h>

static bool is_lower_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_alnum(char c)
{
	return is_lower_alnum(c) || (c >= 'A' && c <= 'Z');
}

bool digest_hex_valid(const char *hex)
{
	for (size_t i = 0; i < 64; i++)
		if (!((hex[i] >= '0' && hex[i] <= '9') || (hex[i] >= 'a' && hex[i] <= 'f')))
			return false;
	return hex[64] == '\0';
}

bool digest_valid(const char *digest)
{
	return digest && str_starts(digest, "sha256:") && digest_hex_valid(digest + 7);
}

const char *digest_hex(const char *digest)
{
	assert(digest_valid(digest));
	return digest + 7;
}

/* One component: runs of [a-z0-9] joined by ".", "_", "__" or any number of "-". */
static bool component_valid(const char *p, size_t n)
{
	size_t i = 0;

	if (n == 0 || !is_lower_alnum(p[0]) || !is_lower_alnum(p[n - 1]))
		return false;
	while (i < n) {
		size_t run = i;

		while (i < n && is_lower_alnum(p[i]))
			i++;
		if (i == n)
			return true;
		for (run = i; i < n && !is_lower_alnum(p[i]); i++)
			if (p[i] != p[run] || !strchr("._-", p[i]))
				return false;
		size_t len = i - run;
		if ((p[run] == '.' && len > 1) || (p[run] == '_' && len > 2))
			return false;
	}
	return true;
}

static bool path_valid(const char *path)
{
	for (;;) {
		size_t n = strcspn(path, "/");

		if (!component_valid(path, n))
			return false;
		if (!path[n])
			return true;
		path += n + 1;
	}
}

static bool port_valid(const char *p)
{
	size_t n = strspn(p, "0123456789");

	return n > 0 && n <= 5 && p[n] == '\0' && atoi(p) <= 65535;
}

/* Host names of letters, digits, "-" and "." (labels not empty, no "-" at their ends), or [IPv6]; then ":port". */
static bool registry_valid(const char *host)
{
	const char *p = host;

	if (*p == '[') {
		size_t n = strspn(p + 1, "0123456789abcdefABCDEF:.");

		if (n < 2 || p[1 + n] != ']')
			return false;
		p += n + 2;
	} else {
		for (;;) {
			size_t n = 0;

			while (is_alnum(p[n]) || p[n] == '-')
				n++;
			if (n == 0 || p[0] == '-' || p[n - 1] == '-')
				return false;
			p += n;
			if (*p != '.')
				break;
			p++;
		}
	}
	return *p == '\0' || (*p == ':' && port_valid(p + 1));
}

static bool tag_valid(const char *tag)
{
	size_t n = 0;

	if (!is_alnum(tag[0]) && tag[0] != '_')
		return false;
	while (is_alnum(tag[n]) || strchr("_.-", tag[n] ? tag[n] : '/'))
		n++;
	return tag[n] == '\0' && n <= REFERENCE_TAG_MAX;
}

/* Is the first of several components a registry? */
static bool looks_like_registry(const char *p, size_t n)
{
	if ((n == 9 && memcmp(p, "localhost", 9) == 0) || memchr(p, '.', n) || memchr(p, ':', n) || p[0] == '[')
		return true;
	for (size_t i = 0; i < n; i++)
		if (p[i] >= 'A' && p[i] <= 'Z')
			return true; /* a name would be lower-case */
	return false;
}

static int invalid(struct error *err, const char *text, const char *why)
{
	return error_set(err, ERROR_INVALID, "invalid image reference \"%.200s\": %s", text, why);
}

static void split_registry(const char *name, struct reference *ref)
{
	const char *slash = strchr(name, '/');

	if (slash && looks_like_registry(name, (size_t)(slash - name))) {
		ref->registry = xstrndup(name, (size_t)(slash - name));
		ref->path = xstrdup(slash + 1);
	} else {
		ref->registry = xstrdup("docker.io");
		ref->path = xstrdup(name);
	}
	if (strcmp(ref->registry, "index.docker.io") == 0) {
		free(ref->registry);
		ref->registry = xstrdup("docker.io");
	}
	if (strcmp(ref->registry, "docker.io") == 0 && !strchr(ref->path, '/')) {
		char *full = xasprintf("library/%s", ref->path);

		free(ref->path);
		ref->path = full;
	}
}

static int check(const char *text, const struct reference *ref, struct error *err)
{
	for (const char *p = ref->path; *p; p++)
		if (*p >= 'A' && *p <= 'Z')
			return invalid(err, text, "the repository name must be lower-case");
	if (!registry_valid(ref->registry))
		return invalid(err, text, "the registry is not a host name or address with an optional port");
	if (!path_valid(ref->path))
		return invalid(err, text,
			"the repository name must be parts of a-z 0-9, joined by \".\", \"_\", \"__\" or \"-\", with \"/\" between them");
	if (strlen(ref->registry) + 1 + strlen(ref->path) > REFERENCE_NAME_MAX)
		return invalid(err, text, "the name is longer than 255 characters");
	if (*ref->tag && !tag_valid(ref->tag))
		return invalid(err, text, "the tag must be 1 to 128 of A-Z a-z 0-9 \"_\" \".\" \"-\", and not begin with \".\" or \"-\"");
	if (*ref->digest && !digest_valid(ref->digest))
		return invalid(err, text, "the digest must be sha256: and 64 lower-case hex digits");
	return 0;
}

int reference_parse(const char *text, struct reference *ret, struct error *err)
{
	_cleanup_(reference_done) struct reference ref = { 0 };

	if (str_empty(text))
		return error_set(err, ERROR_INVALID, "the image reference is empty");
	if (strlen(text) > REFERENCE_TEXT_MAX)
		return invalid(err, text, "it is longer than 1024 characters");
	if (digest_hex_valid(text))
		return invalid(err, text, "64 hex digits are an image id, not a name");

	_cleanup_free_ char *name = xstrdup(text);
	char *at = strchr(name, '@');
	if (at) {
		*at = '\0';
		ref.digest = xstrdup(at + 1);
		if (!*ref.digest)
			return invalid(err, text, "there is nothing behind the \"@\"");
	}
	char *slash = strrchr(name, '/');
	char *colon = strrchr(slash ? slash : name, ':');
	if (colon) {
		*colon = '\0';
		ref.tag = xstrdup(colon + 1);
		if (!*ref.tag)
			return invalid(err, text, "there is nothing behind the \":\"");
	}
	if (!*name)
		return invalid(err, text, "there is no name");
	if (!ref.digest)
		ref.digest = xstrdup("");
	if (!ref.tag)
		ref.tag = xstrdup(*ref.digest ? "" : "latest");
	split_registry(name, &ref);
	int r = check(text, &ref, err);
	if (r < 0)
		return r;
	*ret = ref;
	ref = (struct reference){ 0 };
	return 0;
}

void reference_done(struct reference *ref)
{
	free(ref->registry);
	free(ref->path);
	free(ref->tag);
	free(ref->digest);
	*ref = (struct reference){ 0 };
}

char *reference_tagged(const struct reference *ref)
{
	return *ref->tag ? xasprintf("%s/%s:%s", ref->registry, ref->path, ref->tag) : NULL;
}

char *reference_with_digest(const struct reference *ref, const char *digest)
{
	return xasprintf("%s/%s@%s", ref->registry, ref->path, digest);
}

const char *reference_target(const struct reference *ref)
{
	return *ref->digest ? ref->digest : ref->tag;
}

/* payload.c - purpose: which files a configMap, secret, downwardAPI or projected volume has. */
#include "kubelet-lite/core/payload.h"

void payload_done(struct payload *payload)
{
	for (size_t i = 0; i < payload->n; i++) {
		free(payload->v[i].path);
		free(payload->v[i].data);
	}
	free(payload->v);
	*payload = (struct payload){ 0 };
}

/* Keys become file names; the API allows only safe ones, but what writes below a directory checks for itself. */
static bool path_safe(const char *path)
{
	if (!*path || *path == '/' || strlen(path) > 4096)
		return false;
	for (const char *p = path; *p;) {
		size_t n = strcspn(p, "/");

		if (n == 0 || n > 255 || (n == 1 && *p == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
			return false;
		if (p == path && n >= 2 && p[0] == '.' && p[1] == '.')
			return false;
		p += n;
		if (*p == '/' && !p[1])
			return false;
		p += *p == '/';
	}
	return true;
}

/* Takes `data`. A path that is there already is replaced (a later source wins). */
static int add(struct payload *out, const char *path, char *data, size_t len, int mode, struct error *err)
{
	if (!path_safe(path)) {
		free(data);
		return error_set(err, ERROR_INVALID, "invalid path \"%.100s\"", path);
	}
	for (size_t i = 0; i < out->n; i++)
		if (strcmp(out->v[i].path, path) == 0) {
			free(out->v[i].data);
			out->v[i].data = data;
			out->v[i].len = len;
			out->v[i].mode = (mode_t)mode;
			return 0;
		}
	out->v = xreallocarray(out->v, out->n + 1, sizeof(*out->v));
	out->v[out->n++] = (struct payload_file){ xstrdup(path), data, len, (mode_t)mode };
	return 0;
}

static int add_copy(struct payload *out, const char *path, const struct keyed_item *item, int mode, struct error *err)
{
	char *copy = xmalloc(item->len + 1);

	memcpy(copy, item->data, item->len + 1);
	return add(out, path, copy, item->len, mode, err);
}

static int add_object(const struct volume *volume, const struct payload_source *s, const struct env_sources *src,
	struct payload *out, struct error *err)
{
	_cleanup_(keyed_done) struct keyed data = { 0 };
	bool secret = s->kind == PAYLOAD_SECRET;
	int r = 0;

	if (!src->data_of(src->data, secret, s->object, &data)) {
		if (s->optional)
			return 0;
		return error_set(
			err, ERROR_NOT_FOUND, "%s \"%s\" not found", secret ? "secret" : "configmap", s->object);
	}
	if (!s->n_items)
		for (size_t i = 0; i < data.n && r == 0; i++)
			r = add_copy(out, data.v[i].key, &data.v[i], volume->default_mode, err);
	for (size_t i = 0; i < s->n_items && r == 0; i++) {
		const struct payload_item *item = &s->items[i];
		const struct keyed_item *found = keyed_get(&data, item->key);

		if (found)
			r = add_copy(out, item->path, found, item->mode < 0 ? volume->default_mode : item->mode, err);
		else if (!s->optional)
			r = error_set(err, ERROR_NOT_FOUND, "references non-existent %s key: %s",
				secret ? "secret" : "config", item->key);
	}
	return r;
}

static int add_downward(const struct pod *pod, const struct volume *volume, const struct payload_source *s,
	const struct env_sources *src, struct payload *out, struct error *err)
{
	int r = 0;

	for (size_t i = 0; i < s->n_items && r == 0; i++) {
		const struct payload_item *item = &s->items[i];
		char *text = NULL;

		if (*item->field.path) {
			text = env_field(pod, item->field.path, src);
		} else {
			int c = pod_container(pod, item->resource.container);

			if (c >= 0)
				text = env_resource(&pod->containers[c], &item->resource, src);
		}
		if (!text)
			return error_set(
				err, ERROR_INVALID, "downwardAPI item %s: no such field or container", item->path);
		r = add(out, item->path, text, strlen(text), item->mode < 0 ? volume->default_mode : item->mode, err);
	}
	return r;
}

int payload_build(const struct pod *pod, const struct volume *volume, const struct env_sources *src,
	struct payload *ret, struct error *err)
{
	_cleanup_(payload_done) struct payload out = { 0 };
	int r = 0;

	for (size_t i = 0; i < volume->n_sources && r == 0; i++) {
		const struct payload_source *s = &volume->sources[i];

		r = s->kind == PAYLOAD_DOWNWARD ? add_downward(pod, volume, s, src, &out, err)
						: add_object(volume, s, src, &out, err);
	}
	if (r < 0)
		return r;
	*ret = out;
	out = (struct payload){ 0 };
	return 0;
}

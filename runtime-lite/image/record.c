/* record.c - purpose: struct image to and from its JSON in images.json. */
#include "runtime-lite/image/record.h"

#include "common/wire/json.h"
#include "runtime-lite/image/manifest.h"
#include "runtime-lite/image/reference.h"

enum { PREFIX_MIN = 4 };

struct image *image_new(void)
{
	struct image *image = xnew(struct image);

	image->refs = 1;
	return image;
}

struct image *image_ref(struct image *image)
{
	__atomic_add_fetch(&image->refs, 1, __ATOMIC_RELAXED);
	return image;
}

struct image *image_unref(struct image *image)
{
	if (!image || __atomic_sub_fetch(&image->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return NULL;
	free(image->id);
	free(image->manifest_digest);
	strv_done(&image->repo_tags);
	strv_done(&image->repo_digests);
	strv_done(&image->chain_ids);
	image_config_done(&image->config);
	free(image);
	return NULL;
}

void image_list_free(struct image **list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		image_unref(list[i]);
	free(list);
}

static json_t *list_json(const struct strv *list)
{
	json_t *j = json_array();

	for (size_t i = 0; i < list->n; i++)
		json_array_append_new(j, json_string(list->v[i]));
	return j;
}

static json_t *image_json(const struct image *image)
{
	const struct image_config *c = &image->config;

	return json_pack("{s:s, s:s, s:I, s:I, s:o, s:o, s:o, s:{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o}}", "id", image->id,
		"manifest", image->manifest_digest, "size", (json_int_t)image->size_bytes, "created",
		(json_int_t)image->created_ns, "tags", list_json(&image->repo_tags), "digests", list_json(&image->repo_digests),
		"chains", list_json(&image->chain_ids), "config", "user", c->user, "workingDir", c->working_dir, "stopSignal",
		c->stop_signal, "entrypoint", list_json(&c->entrypoint), "cmd", list_json(&c->cmd), "env", list_json(&c->env),
		"volumes", list_json(&c->volumes), "ports", list_json(&c->exposed_ports));
}

char *images_write(struct image *const *images, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, image_json(images[i]));
	_cleanup_json_ json_t *root = json_pack("{s:i, s:o}", "version", IMAGES_VERSION, "images", list);

	return json_text(root);
}

static void list_read(const json_t *j, const char *path, struct strv *ret)
{
	const json_t *list = json_at(j, path);

	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *text = json_string_value(json_array_get(list, i));

		if (text)
			strv_add(ret, text);
	}
}

static struct image *image_read(const json_t *j)
{
	struct image *image = image_new();
	struct image_config *c = &image->config;

	image->id = xstrdup(json_str_at(j, "id", ""));
	image->manifest_digest = xstrdup(json_str_at(j, "manifest", ""));
	image->size_bytes = (uint64_t)json_int_at(j, "size", 0);
	image->created_ns = (uint64_t)json_int_at(j, "created", 0);
	list_read(j, "tags", &image->repo_tags);
	list_read(j, "digests", &image->repo_digests);
	list_read(j, "chains", &image->chain_ids);
	c->user = xstrdup(json_str_at(j, "config.user", ""));
	c->working_dir = xstrdup(json_str_at(j, "config.workingDir", ""));
	c->stop_signal = xstrdup(json_str_at(j, "config.stopSignal", ""));
	list_read(j, "config.entrypoint", &c->entrypoint);
	list_read(j, "config.cmd", &c->cmd);
	list_read(j, "config.env", &c->env);
	list_read(j, "config.volumes", &c->volumes);
	list_read(j, "config.ports", &c->exposed_ports);
	bool good = digest_valid(image->id) && (!*image->manifest_digest || digest_valid(image->manifest_digest));
	for (size_t i = 0; i < image->chain_ids.n; i++)
		good = good && digest_hex_valid(image->chain_ids.v[i]);
	return good ? image : image_unref(image);
}

int images_read(const char *text, size_t len, struct image ***ret, size_t *ret_n, struct error *err)
{
	_cleanup_json_ json_t *root = NULL;
	int r = json_read(text, len, false, &root, err);

	if (r < 0) {
		error_prefix(err, "images.json");
		return r;
	}
	if (json_int_at(root, "version", 0) != IMAGES_VERSION)
		return error_set(err, ERROR_UNIMPLEMENTED, "images.json is of version %lld, this program knows %d",
			(long long)json_int_at(root, "version", 0), IMAGES_VERSION);
	const json_t *list = json_object_get(root, "images");
	size_t n = json_array_size(list);
	struct image **images = xcalloc(n, sizeof(*images));
	for (size_t i = 0; i < n; i++) {
		images[i] = image_read(json_array_get(list, i));
		if (!images[i]) {
			image_list_free(images, i);
			return error_set(err, ERROR_DATA_LOSS, "images.json: image %zu is damaged", i);
		}
	}
	*ret = images;
	*ret_n = n;
	return 0;
}

bool image_id_matches(const struct image *image, const char *text)
{
	const char *hex = str_starts(text, "sha256:") ? text + 7 : text;
	size_t n = strlen(hex);

	return n >= PREFIX_MIN && n <= 64 && strncmp(image->id + 7, hex, n) == 0;
}

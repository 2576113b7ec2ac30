/* manifest.c - purpose: image manifests and indexes (OCI and Docker schema 2), and a docker-archive's manifest.json. */
#include "runtime-lite/image/manifest.h"

#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

#include "common/wire/json.h"
#include "runtime-lite/image/reference.h"

#define OCI "application/vnd.oci.image."
#define DOCKER "application/vnd.docker."

static const struct {
	const char *type;
	enum manifest_kind kind;
} kinds[] = {
	{ OCI "manifest.v1+json", MANIFEST_IMAGE },
	{ DOCKER "distribution.manifest.v2+json", MANIFEST_IMAGE },
	{ OCI "index.v1+json", MANIFEST_INDEX },
	{ DOCKER "distribution.manifest.list.v2+json", MANIFEST_INDEX },
};

/* 0 for a type that says nothing, -1 for one that is another thing. */
static int kind_of(const char *type, enum manifest_kind *ret)
{
	size_t n = type ? strcspn(type, "; ") : 0; /* "...; charset=utf-8" */

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (strlen(kinds[i].type) == n && strncasecmp(kinds[i].type, type, n) == 0) {
			*ret = kinds[i].kind;
			return 1;
		}
	}
	return n == 0 || str_starts(type, "application/json") || str_starts(type, "text/plain") ||
			str_starts(type, "application/octet-stream") ?
		0 : -1;
}

static void descriptor_done(struct descriptor *d)
{
	free(d->media_type);
	free(d->digest);
	free(d->name);
	platform_done(&d->platform);
	*d = (struct descriptor){ 0 };
}

void manifest_done(struct manifest *m)
{
	descriptor_done(&m->config);
	for (size_t i = 0; i < m->n_entries; i++)
		descriptor_done(&m->entries[i]);
	free(m->entries);
	*m = (struct manifest){ 0 };
}

static const char *text_of(const json_t *object, const char *key)
{
	const json_t *v = json_object_get(object, key);

	return json_is_string(v) ? json_string_value(v) : "";
}

static int descriptor_parse(const json_t *j, const char *what, struct descriptor *ret, struct error *err)
{
	const char *digest = text_of(j, "digest"), *name;
	const json_t *size = json_object_get(j, "size");
	const json_t *platform = json_object_get(j, "platform"), *notes = json_object_get(j, "annotations");

	if (!json_is_object(j))
		return error_set(err, ERROR_INVALID, "%s is not an object", what);
	if (!digest_valid(digest))
		return error_set(err, ERROR_INVALID, "%s: digest \"%.100s\" is not sha256: and 64 lower-case hex digits", what,
			digest);
	if (!json_is_integer(size) || json_integer_value(size) < 0)
		return error_set(err, ERROR_INVALID, "%s: size is not a number of bytes", what);
	ret->media_type = xstrndup(text_of(j, "mediaType"), 255);
	ret->digest = xstrdup(digest);
	ret->size = (uint64_t)json_integer_value(size);
	platform_set(&ret->platform, text_of(platform, "os"), text_of(platform, "architecture"), text_of(platform, "variant"));
	name = text_of(notes, "io.containerd.image.name");
	ret->name = xstrndup(*name ? name : text_of(notes, "org.opencontainers.image.ref.name"), REFERENCE_TEXT_MAX);
	ret->attestation = json_object_get(notes, "vnd.docker.reference.type") ||
		(str_eq(ret->platform.os, "unknown") && str_eq(ret->platform.architecture, "unknown"));
	return 0;
}

static int entries_parse(const json_t *list, const char *what, size_t max, struct manifest *m, struct error *err)
{
	if (!json_is_array(list))
		return error_set(err, ERROR_INVALID, "%s is not a list", what);
	if (json_array_size(list) > max)
		return error_set(err, ERROR_INVALID, "%zu %s, more than the %zu allowed", json_array_size(list), what, max);
	m->entries = xcalloc(json_array_size(list), sizeof(*m->entries));
	m->n_entries = json_array_size(list);
	for (size_t i = 0; i < m->n_entries; i++) {
		char where[64];

		snprintf(where, sizeof(where), "%s[%zu]", what, i);
		int r = descriptor_parse(json_array_get(list, i), where, &m->entries[i], err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Only types that are known to be tar archives with a compression that is then found by its magic number. */
static int layer_type_check(const struct descriptor *d, size_t i, struct error *err)
{
	const char *type = d->media_type;

	if (str_ends(type, "+encrypted"))
		return error_set(err, ERROR_UNIMPLEMENTED, "layers[%zu] is encrypted, which is not supported", i);
	if (!*type || str_starts(type, OCI "layer.v1.tar") || str_starts(type, OCI "layer.nondistributable.v1.tar") ||
		str_starts(type, DOCKER "image.rootfs.diff.tar") || str_starts(type, DOCKER "image.rootfs.foreign.diff.tar"))
		return 0;
	return error_set(err, ERROR_UNIMPLEMENTED, "not a container image: layers[%zu] is of type \"%.150s\"", i, type);
}

static int image_parse(const json_t *root, struct manifest *m, struct error *err)
{
	int r = descriptor_parse(json_object_get(root, "config"), "config", &m->config, err);

	if (r < 0)
		return r;
	const char *type = m->config.media_type;
	if (*type && !str_eq(type, OCI "config.v1+json") && !str_eq(type, DOCKER "container.image.v1+json"))
		return error_set(err, ERROR_UNIMPLEMENTED, "not a container image: its configuration is of type \"%.150s\"", type);
	if (m->config.size > CONFIG_SIZE_MAX)
		return error_set(err, ERROR_INVALID, "the configuration has %" PRIu64 " bytes, more than the 8 MiB allowed",
			m->config.size);
	r = entries_parse(json_object_get(root, "layers"), "layers", LAYERS_MAX, m, err);
	for (size_t i = 0; r == 0 && i < m->n_entries; i++)
		r = layer_type_check(&m->entries[i], i, err);
	return r;
}

static int find_kind(const json_t *root, const char *media_type, enum manifest_kind *ret, struct error *err)
{
	const char *own = text_of(root, "mediaType");
	bool index = json_object_get(root, "manifests");
	bool image = json_object_get(root, "config") || json_object_get(root, "layers");
	enum manifest_kind by_type = MANIFEST_IMAGE, by_own = MANIFEST_IMAGE;
	int typed = kind_of(media_type, &by_type), owned = kind_of(own, &by_own);

	if (json_object_get(root, "fsLayers") || json_integer_value(json_object_get(root, "schemaVersion")) == 1)
		return error_set(err, ERROR_UNIMPLEMENTED, "the image has a manifest of schema 1, which is not supported any more");
	if (index && image)
		return error_set(err, ERROR_INVALID, "the manifest is an index and an image at once");
	if (!index && !image)
		return error_set(err, ERROR_INVALID, "the manifest has neither \"manifests\" nor \"config\"");
	*ret = index ? MANIFEST_INDEX : MANIFEST_IMAGE;
	if (owned < 0 || (typed < 0 && owned == 0))
		return error_set(err, ERROR_INVALID, "the manifest is of the unknown type \"%.150s\"", owned < 0 ? own : media_type);
	if ((typed > 0 && by_type != *ret) || (owned > 0 && by_own != *ret))
		return error_set(err, ERROR_INVALID, "the manifest's type \"%.150s\" does not fit what is in it",
			owned > 0 && by_own != *ret ? own : media_type);
	return 0;
}

int manifest_parse(const char *text, size_t len, const char *media_type, struct manifest *ret, struct error *err)
{
	_cleanup_json_ json_t *root = NULL;
	_cleanup_(manifest_done) struct manifest m = { 0 };

	if (len > MANIFEST_SIZE_MAX)
		return error_set(err, ERROR_INVALID, "the manifest has %zu bytes, more than the 4 MiB allowed", len);
	int r = json_read(text, len, false, &root, err);
	if (r < 0)
		return error_prefix(err, "manifest");
	if (!json_is_object(root))
		return error_set(err, ERROR_INVALID, "the manifest is not a JSON object");
	r = find_kind(root, media_type, &m.kind, err);
	if (r == 0 && m.kind == MANIFEST_IMAGE)
		r = image_parse(root, &m, err);
	else if (r == 0)
		r = entries_parse(json_object_get(root, "manifests"), "manifests", INDEX_ENTRIES_MAX, &m, err);
	if (r < 0)
		return r;
	*ret = m;
	m = (struct manifest){ 0 };
	return 0;
}

int manifest_choose(const struct manifest *index, const struct platform *node, const struct descriptor **ret,
	struct error *err)
{
	_cleanup_(str_done) struct str there = STR_INIT;
	const struct descriptor *best = NULL;
	unsigned best_score = 0;

	for (size_t i = 0; i < index->n_entries; i++) {
		const struct descriptor *d = &index->entries[i];
		unsigned score = platform_score(node, &d->platform);

		if (d->attestation)
			continue;
		if (score > best_score) {
			best = d;
			best_score = score;
		}
		_cleanup_free_ char *text = platform_text(&d->platform);
		if (there.len < 250)
			str_addf(&there, "%s%s", there.len ? ", " : "", text);
	}
	if (!best) {
		_cleanup_free_ char *text = platform_text(node);

		return error_set(err, ERROR_NOT_FOUND, "there is no image for %s; there is: %s", text,
			there.len ? str_get(&there) : "nothing");
	}
	*ret = best;
	return 0;
}

static int strings(const json_t *list, const char *what, size_t max, struct strv *ret, struct error *err)
{
	if (!list || json_is_null(list))
		return 0;
	if (!json_is_array(list) || json_array_size(list) > max)
		return error_set(err, ERROR_INVALID, "%s is not a list of at most %zu strings", what, max);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *v = json_array_get(list, i);

		if (!json_is_string(v) || json_string_length(v) > REFERENCE_TEXT_MAX)
			return error_set(err, ERROR_INVALID, "%s[%zu] is not a string of at most 1024 bytes", what, i);
		strv_add(ret, json_string_value(v));
	}
	return 0;
}

static int archive_image_parse(const json_t *j, struct archive_image *ret, struct error *err)
{
	const json_t *config = json_object_get(j, "Config");

	if (!json_is_string(config) || json_string_length(config) > REFERENCE_TEXT_MAX)
		return error_set(err, ERROR_INVALID, "Config is not a name");
	ret->config = xstrdup(json_string_value(config));
	int r = strings(json_object_get(j, "Layers"), "Layers", LAYERS_MAX, &ret->layers, err);

	return r < 0 ? r : strings(json_object_get(j, "RepoTags"), "RepoTags", 1000, &ret->repo_tags, err);
}

int archive_manifest_parse(const char *text, size_t len, struct archive_image **ret, size_t *ret_n, struct error *err)
{
	_cleanup_json_ json_t *root = NULL;
	int r = len > MANIFEST_SIZE_MAX ?
		error_set(err, ERROR_INVALID, "it has %zu bytes, more than the 4 MiB allowed", len) :
		json_read(text, len, false, &root, err);

	if (r < 0)
		return error_prefix(err, "manifest.json");
	size_t n = json_array_size(root);
	if (!json_is_array(root) || n == 0 || n > ARCHIVE_IMAGES_MAX)
		return error_set(err, ERROR_INVALID, "manifest.json is not a list of 1 to %d images", ARCHIVE_IMAGES_MAX);
	struct archive_image *images = xcalloc(n, sizeof(*images));
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = archive_image_parse(json_array_get(root, i), &images[i], err);
		if (r < 0)
			error_prefix(err, "manifest.json: image %zu", i);
	}
	if (r < 0) {
		archive_images_free(images, n);
		return r;
	}
	*ret = images;
	*ret_n = n;
	return 0;
}

void archive_images_free(struct archive_image *images, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(images[i].config);
		strv_done(&images[i].layers);
		strv_done(&images[i].repo_tags);
	}
	free(images);
}

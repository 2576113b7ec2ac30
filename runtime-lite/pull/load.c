/* load.c - purpose: the images of an OCI layout or a docker-archive into the store. */
#include "runtime-lite/pull/load.h"

#include <errno.h>
#include <stdio.h>

#include "common/base/sha256.h"
#include "runtime-lite/image/reference.h"
#include "runtime-lite/pull/archive.h"
#include "runtime-lite/pull/layers.h"

enum { PINS_MAX = INDEX_DEPTH_MAX + 3 };

/* One image on its way in. */
struct load {
	struct pull *pull;
	struct archive *archive;
	int opaque_fd;
	struct layers layers;
	struct strv members; /* the layers' names in the archive, bottom first */
	struct layer_want *wants;
	struct strv chains;
	struct image_spec spec;
	char config_digest[72], manifest_digest[72]; /* the latter may be "" */
	uint64_t size;
	int pins[PINS_MAX]; /* of blobs */
	size_t n_pins;
	struct strv tags, digests;
};

static void load_done(struct load *l)
{
	for (size_t i = 0; i < l->n_pins; i++)
		close(l->pins[i]);
	image_spec_done(&l->spec);
	strv_done(&l->members);
	strv_done(&l->chains);
	strv_done(&l->tags);
	strv_done(&l->digests);
	free(l->wants);
}

static int keep_blob(struct load *l, const char *digest, const char *text, size_t len, struct error *err)
{
	if (l->n_pins == PINS_MAX)
		return error_set(err, ERROR_INVALID, "too many indexes inside of each other");
	int r = pull_store_blob(l->pull, digest, text, len, &l->pins[l->n_pins], err);

	l->n_pins += r == 0;
	return r;
}

struct bring {
	struct load *load;
	struct layer *layer;
};

static int on_piece(void *data, const void *p, size_t n, struct error *err)
{
	struct bring *b = data;

	return layers_feed(&b->load->layers, b->layer, p, n, err);
}

static int bring_layer(void *data, struct http_client *client, size_t i, struct layer *layer, struct error *err)
{
	struct load *l = data;
	struct bring b = { l, layer };

	(void)client;
	return archive_stream(l->archive, l->members.v[i], on_piece, &b, err);
}

/* A name of its own, or the one that was given for those that have none. */
static int take_name(struct load *l, const char *text, struct error *err)
{
	_cleanup_(reference_done) struct reference ref = { 0 };
	int r = reference_parse(text, &ref, err);

	if (r < 0)
		return r;
	_cleanup_free_ char *tagged = reference_tagged(&ref);
	if (tagged && !strv_has(&l->tags, tagged))
		strv_add(&l->tags, tagged);
	if (*l->manifest_digest) {
		char *with = reference_with_digest(&ref, l->manifest_digest);

		if (!strv_has(&l->digests, with))
			strv_add(&l->digests, with);
		free(with);
	}
	return 0;
}

/* Configuration and layers are known: the rest is the same for all formats. */
static int finish(struct load *l, struct error *err)
{
	size_t n = l->members.n;
	int r = image_spec_check_platform(&l->spec, &l->pull->node, l->tags.n ? l->tags.v[0] : l->config_digest, err);

	if (r == 0 && l->spec.diff_ids.n != n)
		r = error_set(err, ERROR_INVALID, "there are %zu layers, the configuration has %zu", n, l->spec.diff_ids.n);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		l->wants[i].diff_id = l->spec.diff_ids.v[i];
		if (__builtin_add_overflow(l->size, l->wants[i].size, &l->size))
			return error_set(err, ERROR_INVALID, "the layers' sizes overflow");
	}
	chain_ids(&l->spec.diff_ids, &l->chains);
	l->layers = (struct layers){ .pull = l->pull, .n = n, .wants = l->wants, .chains = &l->chains, .threads = 1,
		.opaque_fd = l->opaque_fd, .bring = bring_layer, .data = l };
	_cleanup_free_ int *pins = xcalloc(n, sizeof(int));
	for (size_t i = 0; i < n; i++)
		pins[i] = -1;
	r = layers_make(&l->layers, pins, err);
	struct found_image image = { .config_digest = l->config_digest, .manifest_digest = l->manifest_digest,
		.size_bytes = l->size, .tags = &l->tags, .digests = &l->digests };
	if (r == 0)
		r = pull_report_image(l->pull, &image, err);
	for (size_t i = 0; i < n; i++)
		if (pins[i] >= 0)
			close(pins[i]);
	return r;
}

static int take_config(struct load *l, const char *text, size_t len, const char *digest, struct error *err)
{
	strcpy(l->config_digest, "sha256:");
	sha256_hex(text, len, l->config_digest + 7);
	if (digest && strcmp(digest, l->config_digest) != 0)
		return error_set(err, ERROR_DATA_LOSS, "configuration: wrong digest: %s instead of %s", l->config_digest, digest);
	l->size += len;
	int r = image_spec_parse(text, len, &l->spec, err);
	return r == 0 ? keep_blob(l, l->config_digest, text, len, err) : r;
}

/* docker-archive: one element of manifest.json. */
static int load_docker_image(struct load *l, const struct archive_image *image, struct error *err)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	int r = archive_read(l->archive, image->config, CONFIG_SIZE_MAX, &text, &len, err);

	if (r == 0)
		r = take_config(l, text, len, NULL, err);
	for (size_t i = 0; r == 0 && i < image->repo_tags.n; i++)
		r = take_name(l, image->repo_tags.v[i], err);
	if (r == 0 && l->tags.n == 0 && l->pull->name)
		r = take_name(l, l->pull->name, err);
	l->wants = xcalloc(image->layers.n, sizeof(*l->wants));
	for (size_t i = 0; r == 0 && i < image->layers.n; i++) {
		strv_add(&l->members, image->layers.v[i]);
		r = archive_size(l->archive, image->layers.v[i], &l->wants[i].size, err);
	}
	return r == 0 ? finish(l, err) : r;
}

static int load_docker(struct pull *p, struct archive *a, int opaque_fd, struct error *err)
{
	_cleanup_free_ char *text = NULL;
	struct archive_image *images;
	size_t len, n;
	int r = archive_read(a, "manifest.json", MANIFEST_SIZE_MAX, &text, &len, err);

	if (r == 0)
		r = archive_manifest_parse(text, len, &images, &n, err);
	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && i < n; i++) {
		_cleanup_(load_done) struct load l = { .pull = p, .archive = a, .opaque_fd = opaque_fd };

		r = load_docker_image(&l, &images[i], err);
		if (r < 0)
			error_prefix(err, "image %s", images[i].repo_tags.n ? images[i].repo_tags.v[0] : images[i].config);
	}
	archive_images_free(images, n);
	return r;
}

static char *blob_name(const char *digest)
{
	return xasprintf("blobs/sha256/%s", digest_hex(digest));
}

static int read_blob(struct load *l, const struct descriptor *d, size_t max, char **ret, size_t *ret_len, struct error *err)
{
	_cleanup_free_ char *name = blob_name(d->digest);
	_cleanup_free_ char *text = NULL;
	char hex[SHA256_HEX_LEN + 1];
	int r = archive_read(l->archive, name, max, &text, ret_len, err);

	if (r < 0)
		return r;
	sha256_hex(text, *ret_len, hex);
	if (*ret_len != d->size || strcmp(hex, digest_hex(d->digest)) != 0)
		return error_set(err, ERROR_DATA_LOSS, "%s is not what its name says: sha256:%s, %zu of %llu bytes", name, hex,
			*ret_len, (unsigned long long)d->size);
	*ret = steal(text);
	return 0;
}

static int load_oci_manifest(struct load *l, const struct manifest *m, struct error *err)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	int r = read_blob(l, &m->config, CONFIG_SIZE_MAX, &text, &len, err);

	if (r == 0)
		r = take_config(l, text, len, m->config.digest, err);
	l->wants = xcalloc(m->n_entries, sizeof(*l->wants));
	for (size_t i = 0; r == 0 && i < m->n_entries; i++) {
		strv_add_take(&l->members, blob_name(m->entries[i].digest));
		l->wants[i] = (struct layer_want){ m->entries[i].digest, m->entries[i].size, NULL };
	}
	return r == 0 ? finish(l, err) : r;
}

/* A descriptor of index.json: an image, or an index that has one for us. */
static int load_oci_image(struct load *l, const struct descriptor *d, unsigned depth, struct error *err)
{
	_cleanup_(manifest_done) struct manifest m = { 0 };
	_cleanup_free_ char *text = NULL;
	const struct descriptor *choice;
	size_t len;
	int r = read_blob(l, d, MANIFEST_SIZE_MAX, &text, &len, err);

	if (r == 0)
		r = manifest_parse(text, len, d->media_type, &m, err);
	if (r == 0)
		r = keep_blob(l, d->digest, text, len, err);
	if (r < 0)
		return r;
	l->size += len;
	if (m.kind == MANIFEST_IMAGE) {
		snprintf(l->manifest_digest, sizeof(l->manifest_digest), "%s", d->digest);
		return load_oci_manifest(l, &m, err);
	}
	if (depth == INDEX_DEPTH_MAX)
		return error_set(err, ERROR_INVALID, "more than %d indexes inside of each other", INDEX_DEPTH_MAX);
	r = manifest_choose(&m, &l->pull->node, &choice, err);
	return r == 0 ? load_oci_image(l, choice, depth + 1, err) : r;
}

/* "org.opencontainers.image.ref.name" is a whole name with some tools, only a tag with others. */
static int name_of(const struct pull *p, const struct descriptor *d, char **ret, struct error *err)
{
	*ret = NULL;
	if (strpbrk(d->name, "/:@")) {
		*ret = xstrdup(d->name);
	} else if (p->name && *d->name && !strpbrk(strrchr(p->name, '/') ? strrchr(p->name, '/') : p->name, ":@")) {
		*ret = xasprintf("%s:%s", p->name, d->name);
	} else if (p->name) {
		*ret = xstrdup(p->name);
	} else if (*d->name) {
		/* Only a tag: the image can be used by its id. */
		_cleanup_(reference_done) struct reference ref = { 0 };
		int r = reference_parse(d->name, &ref, err);

		return r < 0 ? error_prefix(err, "name of an image in index.json") : 0;
	}
	return 0;
}

/* The entries of one name are one image for several platforms: those of [from, ...) that share its name, in `group`. */
static void group_by_name(const struct manifest *index, size_t from, bool *taken, struct manifest *group)
{
	group->kind = MANIFEST_INDEX;
	group->entries = xcalloc(index->n_entries, sizeof(*group->entries));
	for (size_t i = from; i < index->n_entries; i++) {
		const struct descriptor *d = &index->entries[i];
		bool same = i == from || (*d->name && str_eq(d->name, index->entries[from].name));

		if (taken[i] || !same)
			continue;
		taken[i] = true;
		group->entries[group->n_entries++] = *d; /* borrowed: only the array is freed */
	}
}

static int load_group(struct pull *p, struct archive *a, int opaque_fd, const struct manifest *group, struct error *err)
{
	_cleanup_(load_done) struct load l = { .pull = p, .archive = a, .opaque_fd = opaque_fd };
	const struct descriptor *d = &group->entries[0];
	_cleanup_free_ char *name = NULL;
	int r = group->n_entries > 1 ? manifest_choose(group, &p->node, &d, err) : 0;

	if (r == 0)
		r = name_of(p, d, &name, err);
	if (r < 0)
		return r;
	if (name) {
		/* The digest that the name stands for: of an index, if it names one. */
		snprintf(l.manifest_digest, sizeof(l.manifest_digest), "%s", d->digest);
		r = take_name(&l, name, err);
	}
	return r == 0 ? load_oci_image(&l, d, 0, err) : r;
}

static int load_oci(struct pull *p, struct archive *a, int opaque_fd, struct error *err)
{
	_cleanup_(manifest_done) struct manifest index = { 0 };
	_cleanup_free_ char *text = NULL;
	size_t len;
	int r = archive_read(a, "index.json", MANIFEST_SIZE_MAX, &text, &len, err);

	if (r == 0)
		r = manifest_parse(text, len, NULL, &index, err);
	if (r == 0 && index.kind != MANIFEST_INDEX)
		r = error_set(err, ERROR_INVALID, "it is not an index");
	if (r < 0)
		return error_prefix(err, "index.json");
	if (index.n_entries == 0)
		return error_set(err, ERROR_INVALID, "index.json names no image");
	_cleanup_free_ bool *taken = xcalloc(index.n_entries, sizeof(bool));
	for (size_t i = 0; r == 0 && i < index.n_entries; i++) {
		struct manifest group = { 0 };

		if (taken[i] || index.entries[i].attestation)
			continue;
		group_by_name(&index, i, taken, &group);
		r = load_group(p, a, opaque_fd, &group, err);
		if (r < 0)
			error_prefix(err, "image %s", *index.entries[i].name ? index.entries[i].name : index.entries[i].digest);
		free(group.entries);
	}
	return r;
}

int load_images(struct pull *p, int opaque_fd, struct error *err)
{
	_cleanup_(archive_free_p) struct archive *a = NULL;
	int r = archive_open(p, INPUT_FD, &a, err);

	if (r < 0)
		return r;
	/* Docker writes both since version 25; the OCI part has the digests. */
	if (archive_has(a, "index.json") && archive_has(a, "oci-layout"))
		return load_oci(p, a, opaque_fd, err);
	if (archive_has(a, "manifest.json"))
		return load_docker(p, a, opaque_fd, err);
	return error_set(err, ERROR_INVALID,
		"it is neither an OCI layout (no oci-layout and index.json) nor a docker-archive (no manifest.json)");
}

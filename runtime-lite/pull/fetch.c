/* fetch.c - purpose: one image from its registry into the store: manifest, configuration, layers. */
#include "runtime-lite/pull/fetch.h"

#include <errno.h>
#include <stdio.h>

#include "common/base/sha256.h"
#include "runtime-lite/pull/layers.h"
#include "runtime-lite/pull/registry.h"

enum { THREADS = 3, PINNED_BLOBS_MAX = INDEX_DEPTH_MAX + 2 };

struct fetch {
	struct pull *pull;
	struct reference ref;
	struct registry *registry;
	struct http_client *client;
	struct layers layers;
	char top_digest[72];      /* what the reference stands for: an index or a manifest */
	char manifest_digest[72]; /* of the image for this platform */
	struct manifest manifest;
	uint64_t manifest_size;
	struct image_spec spec;
	int blob_pins[PINNED_BLOBS_MAX];
	size_t n_blob_pins;
};

static int keep_blob(struct fetch *f, const char *digest, const char *text, size_t len, struct error *err)
{
	int r = pull_store_blob(f->pull, digest, text, len, &f->blob_pins[f->n_blob_pins], err);

	if (r == 0)
		f->n_blob_pins++;
	return r;
}

/* A manifest by digest: from the store if it is there, else from the registry. */
static int get_by_digest(struct fetch *f, const char *digest, const char *media_type, char **ret, size_t *ret_len,
	char **ret_type, struct error *err)
{
	if (layout_blob_read(&f->pull->layout, digest, MANIFEST_SIZE_MAX, ret, ret_len, NULL) == 0) {
		*ret_type = xstrdup(media_type);
		return 0;
	}
	return registry_manifest(f->registry, f->client, digest, digest, ret, ret_len, ret_type, err);
}

/* The manifest that the reference names. By tag: HEAD says the digest, so that a manifest that we have need not be fetched
 * (which docker.io counts). */
static int get_top(struct fetch *f, char **ret, size_t *ret_len, char **ret_type, struct error *err)
{
	const char *target = reference_target(&f->ref);
	_cleanup_free_ char *resolved = *f->ref.digest ? xstrdup(f->ref.digest) : NULL;
	int r = resolved ? 0 : registry_resolve(f->registry, f->client, target, &resolved, err);

	if (r < 0)
		return r;
	if (resolved)
		r = get_by_digest(f, resolved, "", ret, ret_len, ret_type, err);
	else
		r = registry_manifest(f->registry, f->client, target, NULL, ret, ret_len, ret_type, err);
	if (r < 0)
		return r;
	strcpy(f->top_digest, "sha256:");
	sha256_hex(*ret, *ret_len, f->top_digest + 7);
	return 0;
}

/* Down from an index to the manifest for this node. */
static int get_manifest(struct fetch *f, struct error *err)
{
	_cleanup_free_ char *text = NULL, *type = NULL;
	char digest[72];
	size_t len;
	int r = get_top(f, &text, &len, &type, err);

	snprintf(digest, sizeof(digest), "%s", f->top_digest);
	for (int depth = 0; r == 0; depth++) {
		_cleanup_(manifest_done) struct manifest m = { 0 };
		const struct descriptor *choice;

		r = manifest_parse(text, len, type, &m, err);
		if (r == 0)
			r = keep_blob(f, digest, text, len, err);
		if (r < 0)
			break;
		if (m.kind == MANIFEST_IMAGE) {
			f->manifest = m;
			m = (struct manifest){ 0 };
			f->manifest_size = len;
			strcpy(f->manifest_digest, digest);
			return 0;
		}
		if (depth == INDEX_DEPTH_MAX)
			return error_set(err, ERROR_INVALID, "more than %d indexes inside of each other", INDEX_DEPTH_MAX);
		r = manifest_choose(&m, &f->pull->node, &choice, err);
		if (r < 0)
			break;
		free(text);
		free(type);
		text = type = NULL;
		snprintf(digest, sizeof(digest), "%s", choice->digest);
		r = get_by_digest(f, digest, choice->media_type, &text, &len, &type, err);
		if (r == 0 && len != choice->size)
			r = error_set(err, ERROR_DATA_LOSS, "the manifest has %zu bytes instead of %llu", len,
				(unsigned long long)choice->size);
	}
	return r;
}

struct text_sink {
	struct str text;
	size_t max;
};

static int on_text(void *data, const void *p, size_t n, struct error *err)
{
	struct text_sink *s = data;

	if (n > s->max - s->text.len)
		return error_set(err, ERROR_DATA_LOSS, "it is longer than the %zu bytes that its manifest says", s->max);
	str_add_bytes(&s->text, p, n);
	return 0;
}

static int get_config(struct fetch *f, struct error *err)
{
	const struct descriptor *d = &f->manifest.config;
	struct text_sink sink = { .max = (size_t)d->size };
	_cleanup_free_ char *text = NULL;
	char hex[SHA256_HEX_LEN + 1];
	size_t len;

	if (layout_blob_read(&f->pull->layout, d->digest, CONFIG_SIZE_MAX, &text, &len, NULL) < 0) {
		int r = registry_blob(f->registry, f->client, d->digest, d->size, on_text, &sink, err);

		len = sink.text.len;
		text = str_take(&sink.text);
		if (r < 0)
			return error_prefix(err, "configuration %s", d->digest);
		sha256_hex(text, len, hex);
		if (strcmp(hex, digest_hex(d->digest)) != 0)
			return error_set(err, ERROR_DATA_LOSS, "configuration: wrong digest: sha256:%s instead of %s", hex, d->digest);
	}
	int r = image_spec_parse(text, len, &f->spec, err);
	if (r == 0)
		r = image_spec_check_platform(&f->spec, &f->pull->node, f->pull->reference, err);
	if (r == 0 && f->spec.diff_ids.n != f->manifest.n_entries)
		r = error_set(err, ERROR_INVALID, "the manifest has %zu layers, the configuration %zu", f->manifest.n_entries,
			f->spec.diff_ids.n);
	return r == 0 ? keep_blob(f, d->digest, text, len, err) : r;
}

struct bring {
	struct fetch *fetch;
	struct layer *layer;
};

static int on_layer(void *data, const void *p, size_t n, struct error *err)
{
	struct bring *b = data;

	return layers_feed(&b->fetch->layers, b->layer, p, n, err);
}

static int bring_layer(void *data, struct http_client *client, size_t i, struct layer *layer, struct error *err)
{
	struct fetch *f = data;
	const struct descriptor *d = &f->manifest.entries[i];
	struct bring b = { f, layer };

	return registry_blob(f->registry, client, d->digest, d->size, on_layer, &b, err);
}

static int get_layers(struct fetch *f, int opaque_fd, int *pins, struct error *err)
{
	size_t n = f->manifest.n_entries;
	_cleanup_free_ struct layer_want *wants = xcalloc(n, sizeof(*wants));
	_cleanup_(strv_done) struct strv chains = STRV_INIT;

	chain_ids(&f->spec.diff_ids, &chains);
	for (size_t i = 0; i < n; i++)
		wants[i] = (struct layer_want){ f->manifest.entries[i].digest, f->manifest.entries[i].size, f->spec.diff_ids.v[i] };
	f->layers = (struct layers){ .pull = f->pull, .n = n, .wants = wants, .chains = &chains, .threads = THREADS,
		.opaque_fd = opaque_fd, .bring = bring_layer, .data = f, .http_clients = true };
	return layers_make(&f->layers, pins, err);
}

static int report(struct fetch *f, struct error *err)
{
	_cleanup_(strv_done) struct strv tags = STRV_INIT, digests = STRV_INIT;
	uint64_t size = f->manifest_size + f->manifest.config.size;

	for (size_t i = 0; i < f->manifest.n_entries; i++)
		if (__builtin_add_overflow(size, f->manifest.entries[i].size, &size))
			return error_set(err, ERROR_INVALID, "the layers' sizes overflow");
	/* With name:tag@digest nobody asked the registry what the tag is. */
	if (!*f->ref.digest)
		strv_add_take(&tags, reference_tagged(&f->ref));
	strv_add_take(&digests, reference_with_digest(&f->ref, f->top_digest));
	struct found_image image = { .config_digest = f->manifest.config.digest, .manifest_digest = f->manifest_digest,
		.size_bytes = size, .tags = &tags, .digests = &digests };
	return pull_report_image(f->pull, &image, err);
}

static int run(struct fetch *f, int opaque_fd, struct error *err)
{
	const json_t *auth = json_object_get(f->pull->request, "auth");
	struct registry_options options = { .ref = &f->ref, .config_dir = f->pull->registry_config_dir,
		.insecure = &f->pull->insecure_registries, .username = json_str_at(auth, "username", NULL),
		.password = json_str_at(auth, "password", NULL), .identity_token = json_str_at(auth, "identityToken", NULL),
		.registry_token = json_str_at(auth, "registryToken", NULL), .server_address = json_str_at(auth, "serverAddress", NULL) };
	int r = registry_new(&options, &f->registry, err);

	if (r == 0)
		r = get_manifest(f, err);
	if (r == 0)
		r = get_config(f, err);
	if (r < 0)
		return r;
	_cleanup_free_ int *pins = xcalloc(f->manifest.n_entries, sizeof(int));
	for (size_t i = 0; i < f->manifest.n_entries; i++)
		pins[i] = -1;
	r = get_layers(f, opaque_fd, pins, err);
	if (r == 0)
		r = report(f, err);
	for (size_t i = 0; i < f->manifest.n_entries; i++)
		if (pins[i] >= 0)
			close(pins[i]);
	return r;
}

int fetch_image(struct pull *p, int opaque_fd, struct error *err)
{
	struct fetch f = { .pull = p };
	int r = reference_parse(p->reference, &f.ref, err);

	if (r < 0)
		return r;
	f.client = http_client_new(p->stall_timeout_ms, NULL);
	r = run(&f, opaque_fd, err);
	for (size_t i = 0; i < f.n_blob_pins; i++)
		close(f.blob_pins[i]);
	registry_free(f.registry);
	http_client_free(f.client);
	manifest_done(&f.manifest);
	image_spec_done(&f.spec);
	reference_done(&f.ref);
	return r;
}

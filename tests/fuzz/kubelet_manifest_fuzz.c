/* kubelet_manifest_fuzz.c - purpose: arbitrary manifests through reading, editing, defaults, validation, store and
 * tables; what is taken once is taken again without a change. */
#include "kubelet-lite/local/protobuf.h"
#include "kubelet-lite/local/slices.h"
#include "kubelet-lite/local/table.h"
#include "kubelet-lite/source/manifest.h"
#include "kubelet-lite/store/kinds.h"
#include "kubelet-lite/store/objects.h"
#include "kubelet-lite/store/validate.h"

#include "common/wire/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct objects *store;

/* One for each run: what it keeps would look like a leak. */
static void store_open(uv_loop_t *loop)
{
	uv_loop_init(loop);
	if (objects_new(loop, &(struct objects_options){ .node_name = "n" }, &store, NULL) < 0)
		abort();
}

static void store_close(uv_loop_t *loop)
{
	objects_free(store);
	uv_run(loop, UV_RUN_DEFAULT);
	if (uv_loop_close(loop) < 0)
		abort();
}

static void show(const struct object *o)
{
	_cleanup_json_ json_t *tree = object_tree(o);
	_cleanup_json_ json_t *row = table_row(o->kind, tree, 0, TABLE_METADATA);
	struct slice_pod *pod = slice_pod_new(tree, o->labels);
	const struct slice_pod *pods[] = { pod };
	_cleanup_json_ json_t *slices = slices_of_service(tree, pods, 1);

	slice_pod_free(pod);
}

static void put(struct manifest_object *m)
{
	const struct object *o = NULL;
	_cleanup_json_ json_t *copy = json_deep_copy(m->tree), *again = json_deep_copy(m->tree);
	_cleanup_(strv_done) struct strv unknown = STRV_INIT;
	struct error err = ERROR_INIT;

	validate_unknown(m->kind, m->tree, &unknown);
	if (objects_put(store, m->kind, copy, "/f.yaml", &o, &err) < 0) {
		assert(err.text[0]);
		return;
	}
	uint64_t version = o->resource_version;

	show(o);
	if (objects_put(store, m->kind, again, "/f.yaml", &o, &err) < 0)
		abort();
	if (o->resource_version != version)
		abort();
	_cleanup_free_ char *ns = xstrdup(o->ns), *name = xstrdup(o->name);

	if (objects_delete(store, m->kind, ns, name, 0, &err) < 0)
		abort();
	objects_remove(store, m->kind, ns, name, NULL);
}

static void edit(const char *text, size_t size, const char *key)
{
	_cleanup_free_ char *out = NULL;
	size_t left;

	if (manifest_replace(text, size, false, key, NULL, &out, &left, NULL) < 0)
		abort(); /* it has just been read from there */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = xstrndup((const char *)data, size);
	_cleanup_json_ json_t *tree = NULL;
	size_t len = strlen(text); /* files with NUL bytes are refused before */

	uv_loop_t loop;

	store_open(&loop);
	for (int is_json = 0; is_json < 2; is_json++) {
		_cleanup_(manifest_done) struct manifest m = MANIFEST_INIT;

		manifest_read(text, len, is_json, &m);
		for (size_t i = 0; i < m.n && i < 20; i++) {
			put(&m.objects[i]);
			if (!is_json)
				edit(text, len, m.objects[i].key);
		}
	}
	if (protobuf_read(data, size, &tree, NULL) == 0)
		assert(json_is_object(tree));
	store_close(&loop);
	return 0;
}

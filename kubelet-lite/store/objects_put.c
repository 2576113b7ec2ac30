/*
 * objects_put.c - purpose: take an object that someone wrote: complete it, check it, compare it, keep it.
 *
 * A pod's uid is made from its spec as it was written, so that the same manifest means the same pod after a restart
 * even without the state file. A spec that is equal once defaults are filled in is no change.
 */
#include "kubelet-lite/store/objects_i.h"

#include <stdio.h>

#include "common/base/codec.h"
#include "common/base/log.h"
#include "common/kube/schema.h"
#include "common/sys/file.h"
#include "common/wire/json.h"
#include "kubelet-lite/store/defaults.h"
#include "kubelet-lite/store/kinds.h"
#include "kubelet-lite/store/validate.h"

/* One put on its way. */
struct put {
	struct objects *store;
	enum object_kind kind;
	json_t *tree;
	const char *source;
	const char *ns, *name; /* in tree */
	char *hash;            /* pod: of the spec as written */
	char *raw;             /* pod: the tree as written */
	struct object *have;
	json_t *have_tree;
};

/* FNV-1a, 128 bits, as 32 hex digits. */
static void hash_add(unsigned __int128 *h, const char *text)
{
	const unsigned __int128 prime = ((unsigned __int128)1 << 88) + 0x13b;

	for (const char *p = text; *p; p++)
		*h = (*h ^ (unsigned char)*p) * prime;
	*h = (*h ^ 0x0a) * prime;
}

static char *hash_hex(const char *const *parts)
{
	unsigned __int128 h = ((unsigned __int128)0x6c62272e07bb0142ull << 64) | 0x62b821756295c58dull;
	unsigned char bytes[16];
	char hex[33];

	for (; *parts; parts++)
		hash_add(&h, *parts);
	for (int i = 0; i < 16; i++)
		bytes[i] = (unsigned char)(h >> (120 - 8 * i));
	hex_encode(bytes, sizeof(bytes), hex);
	return xstrdup(hex);
}

static char *random_uid(void)
{
	char h[33];

	random_hex(h, 32);
	return xasprintf("%.8s-%.4s-4%.3s-a%.3s-%.12s", h, h + 8, h + 13, h + 17, h + 20);
}

/* Only what belongs to users stays in metadata; the rest is ours to say. */
static void clean_metadata(enum object_kind kind, json_t *tree)
{
	static const char *const ours[] = { "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
		"deletionGracePeriodSeconds", "selfLink", "managedFields", "generateName" };
	json_t *meta = json_object_get(tree, "metadata");
	const struct kind_info *info = kind_info(kind);

	if (!meta || json_is_null(meta)) {
		json_object_set_new(tree, "metadata", json_object());
		meta = json_object_get(tree, "metadata");
	}
	if (!json_is_object(meta))
		return; /* validation says so */
	for (size_t i = 0; i < ARRAY_LEN(ours); i++)
		json_object_del(meta, ours[i]);
	if (info->namespaced && !*json_str_at(meta, "namespace", ""))
		json_object_set_new(meta, "namespace", json_string("default"));
	json_object_set_new(tree, "apiVersion", json_string(info->api_version));
	json_object_set_new(tree, "kind", json_string(info->kind));
}

/* Members without a value are as good as absent; without them equal objects have equal texts. */
static void drop_nulls(json_t *tree, int depth)
{
	const char *key;
	json_t *value;
	void *tmp;
	size_t i;

	if (depth > JSON_DEPTH_MAX)
		return;
	json_object_foreach_safe (tree, tmp, key, value) {
		if (json_is_null(value))
			json_object_del(tree, key);
		else
			drop_nulls(value, depth + 1);
	}
	json_array_foreach (tree, i, value)
		drop_nulls(value, depth + 1);
}

/* Annotations that say where a pod comes from; the kubelet's names. */
static void pod_config_annotations(json_t *tree, const char *key, const char *value)
{
	json_t *meta = json_object_get(tree, "metadata"), *notes = json_object_get(meta, "annotations");

	if (!json_is_object(notes)) {
		json_object_set_new(meta, "annotations", json_object());
		notes = json_object_get(meta, "annotations");
	}
	_cleanup_free_ char *full = xasprintf("kubernetes.io/config.%s", key);

	json_object_set_new(notes, full, json_string(value));
}

static void pod_drop_config_annotations(json_t *tree)
{
	json_t *notes = (json_t *)json_at(tree, "metadata.annotations");

	json_object_del(notes, "kubernetes.io/config.source");
	json_object_del(notes, "kubernetes.io/config.hash");
	json_object_del(notes, "kubernetes.io/config.seen");
	if (json_is_object(notes) && json_object_size(notes) == 0)
		json_object_del(json_object_get(tree, "metadata"), "annotations");
}

static void pod_before(struct put *p)
{
	json_t *spec = json_object_get(p->tree, "spec");

	pod_drop_config_annotations(p->tree);
	if (json_is_object(spec) && str_eq(json_str_at(spec, "nodeName", ""), p->store->node_name))
		json_object_del(spec, "nodeName");
	p->hash = json_is_object(spec) ? json_canonical(spec) : xstrdup("");
	p->raw = json_text(p->tree);
	if (json_is_object(spec) && p->store->node_name && !json_object_get(spec, "nodeName"))
		json_object_set_new(spec, "nodeName", json_string(p->store->node_name));
}

/* Pods of a file stay on a node whatever its taints, as the kubelet's static pods. */
static void pod_after(struct put *p)
{
	json_t *spec = json_object_get(p->tree, "spec"), *list = json_object_get(spec, "tolerations"), *item;
	_cleanup_json_ json_t *all = json_pack("{ssss}", "effect", "NoExecute", "operator", "Exists");
	size_t i;

	if (!p->source || !json_is_object(spec) || (list && !json_is_array(list)))
		return;
	if (!list) {
		list = json_array();
		json_object_set_new(spec, "tolerations", list);
	}
	json_array_foreach (list, i, item)
		if (json_equal(item, all))
			return;
	json_array_append(list, all);
}

static int check(struct put *p, struct error *err)
{
	_cleanup_(causes_done) struct causes causes = CAUSES_INIT;

	validate_object(p->kind, p->tree, &causes);
	if (causes.n == 0)
		return 0;
	_cleanup_free_ char *text = causes_text(&causes);

	return error_set(err, ERROR_INVALID, "%s \"%s\" is invalid: %s", kind_info(p->kind)->kind,
		json_str_at(p->tree, "metadata.name", ""), text);
}

static bool uid_taken(const struct put *p, const char *uid)
{
	const struct object_list *list = &p->store->lists[p->kind];

	if (p->have && str_eq(p->have->uid, uid))
		return true;
	for (size_t i = 0; i < list->n_tombs; i++)
		if (str_eq(list->tombs[i]->uid, uid))
			return true;
	return false;
}

static char *choose_uid(struct put *p, struct saved *saved, const char *given)
{
	if (p->kind != KIND_POD)
		return saved->uid ? xstrdup(saved->uid) : random_uid();
	if (*given)
		return xstrdup(given);
	if (saved->uid && str_eq(saved->hash, p->hash) && !uid_taken(p, saved->uid))
		return xstrdup(saved->uid);
	const char *parts[] = { p->ns, p->name, p->hash, objects_node_name(p->store), NULL, NULL };
	char *uid = hash_hex(parts);

	/* The same pod once more, after the first one was deleted: another instance. */
	if (uid_taken(p, uid)) {
		_cleanup_free_ char *salt = xasprintf("%llu", (unsigned long long)p->store->version);

		parts[4] = salt;
		free(uid);
		uid = hash_hex(parts);
	}
	return uid;
}

static void set_time(json_t *meta, const char *key, int64_t seconds)
{
	char text[TIME_TEXT_MAX];

	time_text(seconds * 1000000000, TIME_SECONDS, text);
	json_object_set_new(meta, key, json_string(text));
}

/* kind and apiVersion first, status last: as people expect to read it. */
static void order_members(json_t *tree)
{
	static const char *const first[] = { "kind", "apiVersion", "metadata", "spec" };
	_cleanup_json_ json_t *old = json_copy(tree);
	const char *key;
	json_t *value;

	json_object_clear(tree);
	for (size_t i = 0; i < ARRAY_LEN(first); i++)
		if (json_object_get(old, first[i]))
			json_object_set(tree, first[i], json_object_get(old, first[i]));
	json_object_foreach (old, key, value)
		if (!json_object_get(tree, key) && strcmp(key, "status") != 0)
			json_object_set(tree, key, value);
	if (json_object_get(old, "status"))
		json_object_set(tree, "status", json_object_get(old, "status"));
}

static bool kept_over_restarts(const struct put *p)
{
	return p->source || p->kind == KIND_NODE || p->kind == KIND_NAMESPACE;
}

/* A new object: identity from the state file or made. */
static void create(struct put *p)
{
	_cleanup_free_ char *key = store_key(p->kind, p->ns, p->name);
	_cleanup_free_ char *given = xstrdup(json_str_at(p->tree, "metadata.uid", ""));
	struct saved once = { 0 };
	struct saved *saved = kept_over_restarts(p) ? state_entry(&p->store->state, key) : &once;
	char *uid = choose_uid(p, saved, given);
	json_t *meta = json_object_get(p->tree, "metadata");

	if (!str_eq(saved->uid, uid) || !saved->created)
		saved->created = (int64_t)(clock_realtime_ns() / 1000000000);
	free(saved->uid);
	saved->uid = xstrdup(uid);
	saved->unseen = 0;
	if (p->hash && saved != &once) {
		free(saved->hash);
		saved->hash = xstrdup(p->hash);
	}
	json_object_set_new(meta, "uid", json_string(uid));
	set_time(meta, "creationTimestamp", saved->created);
	if (json_object_get(p->tree, "spec") && p->kind != KIND_NAMESPACE)
		json_object_set_new(meta, "generation", json_integer(1));
	if (p->kind == KIND_POD && p->source) {
		char seen[TIME_TEXT_MAX];

		time_text((int64_t)clock_realtime_ns(), TIME_GO, seen);
		pod_config_annotations(p->tree, "source", "file");
		pod_config_annotations(p->tree, "hash", uid);
		pod_config_annotations(p->tree, "seen", seen);
	}
	if (p->kind == KIND_POD && !json_object_get(p->tree, "status"))
		json_object_set_new(p->tree, "status", json_pack("{ss}", "phase", "Pending"));
	struct object *o = store_insert(p->store, p->kind, p->ns, p->name);

	o->uid = uid;
	o->source = xstrdup(p->source);
	if (saved != &once)
		store_state_changed(p->store);
	else
		free(once.uid);
	order_members(p->tree);
	p->have = o;
	store_commit(p->store, o, p->tree, OBJECT_ADDED);
}

/* The pod that is there must go first; the new one waits. */
static void replace_pod(struct put *p)
{
	struct object *o = p->have;

	if (o->deleting && str_eq(o->replacement, p->raw) && str_eq(o->replacement_source, p->source))
		return;
	if (!o->deleting) {
		struct error err = ERROR_INIT;

		if (objects_delete(p->store, KIND_POD, o->ns, o->name, -1, &err) < 0)
			return;
		/* A subscriber may have removed it on the spot. */
		p->have = store_find(p->store, KIND_POD, p->ns, p->name);
		if (!p->have) {
			create(p);
			return;
		}
		o = p->have;
	}
	free(o->replacement);
	free(o->replacement_source);
	o->replacement = xstrdup(p->raw);
	o->replacement_source = xstrdup(p->source);
}

/* The same object with other content. */
static void update(struct put *p)
{
	json_t *meta = json_object_get(p->tree, "metadata"), *old_meta = json_object_get(p->have_tree, "metadata");
	const json_t *spec = json_object_get(p->tree, "spec");
	static const char *const kept[] = { "uid", "creationTimestamp", "generation", "resourceVersion", "deletionTimestamp",
		"deletionGracePeriodSeconds" };
	struct object *o = p->have;

	for (size_t i = 0; i < ARRAY_LEN(kept); i++)
		if (json_object_get(old_meta, kept[i]))
			json_object_set(meta, kept[i], json_object_get(old_meta, kept[i]));
	if (p->kind == KIND_POD && p->source) {
		static const char *const notes[] = { "source", "hash", "seen" };

		for (size_t i = 0; i < ARRAY_LEN(notes); i++) {
			_cleanup_free_ char *full = xasprintf("kubernetes.io/config.%s", notes[i]);
			const char *value = json_string_value(
				json_object_get(json_object_get(old_meta, "annotations"), full));

			if (value)
				pod_config_annotations(p->tree, notes[i], value);
		}
	}
	if (json_object_get(p->have_tree, "status"))
		json_object_set(p->tree, "status", json_object_get(p->have_tree, "status"));
	if (!str_eq(o->source, p->source)) {
		free(o->source);
		o->source = xstrdup(p->source);
	}
	order_members(p->tree);
	if (json_equal(p->tree, p->have_tree))
		return;
	if (spec && !json_equal(spec, json_object_get(p->have_tree, "spec")) && json_object_get(meta, "generation"))
		json_object_set_new(meta, "generation", json_integer(json_int_at(meta, "generation", 0) + 1));
	store_commit(p->store, o, p->tree, OBJECT_MODIFIED);
}

static void remember_hash(struct put *p)
{
	_cleanup_free_ char *key = store_key(p->kind, p->ns, p->name);
	struct saved *saved = p->source ? state_entry(&p->store->state, key) : NULL;

	if (!saved || str_eq(saved->hash, p->hash))
		return;
	free(saved->hash);
	saved->hash = xstrdup(p->hash);
	store_state_changed(p->store);
}

static void put_pod_again(struct put *p)
{
	const char *uid = json_str_at(p->tree, "metadata.uid", "");
	bool same = json_equal(json_object_get(p->tree, "spec"), json_object_get(p->have_tree, "spec")) &&
		(!*uid || str_eq(uid, p->have->uid));

	if (p->have->deleting || !same) {
		replace_pod(p);
		return;
	}
	remember_hash(p);
	update(p);
}

static void make_namespace(struct objects *store, const char *name)
{
	if (store_find(store, KIND_NAMESPACE, "", name))
		return;
	_cleanup_json_ json_t *tree = json_pack("{s{ss}}", "metadata", "name", name);
	struct error err = ERROR_INIT;

	if (objects_put(store, KIND_NAMESPACE, tree, NULL, NULL, &err) < 0)
		log_warning("cannot make a namespace name=%s error=%s", name, err.text);
}

static void put_done(struct put *p)
{
	free(p->hash);
	free(p->raw);
	json_decref(p->have_tree);
}

static void prepare(struct put *p)
{
	struct schema schema = schema_of(kind_info(p->kind)->kind);

	clean_metadata(p->kind, p->tree);
	drop_nulls(p->tree, 0);
	schema_prune(&schema, p->tree);
	if (p->kind == KIND_POD)
		pod_before(p);
	if (p->kind == KIND_NAMESPACE) {
		json_t *meta = json_object_get(p->tree, "metadata");

		if (!json_is_object(json_object_get(meta, "labels")))
			json_object_set_new(meta, "labels", json_object());
		json_object_set_new(json_object_get(meta, "labels"), "kubernetes.io/metadata.name",
			json_string(json_str_at(meta, "name", "")));
	}
	defaults_apply(p->kind, p->tree);
	if (p->kind == KIND_POD)
		pod_after(p);
}

void objects_check(const struct objects *store, enum object_kind kind, json_t *tree, struct causes *causes)
{
	_cleanup_(put_done) struct put p = { .store = (struct objects *)store, .kind = kind, .tree = tree, .source = "" };

	prepare(&p);
	validate_object(kind, tree, causes);
}

int objects_put(struct objects *store, enum object_kind kind, json_t *tree, const char *source, const struct object **ret,
	struct error *err)
{
	_cleanup_(put_done) struct put p = { .store = store, .kind = kind, .tree = tree, .source = source };

	if (!json_is_object(tree))
		return error_set(err, ERROR_INVALID, "%s: must be an object", kind_info(kind)->kind);
	/* What the node makes itself is right by construction, and there may be much of it. */
	bool trusted = !source && (kind == KIND_EVENT || kind == KIND_NODE || kind == KIND_ENDPOINT_SLICE);

	prepare(&p);
	int r = trusted ? 0 : check(&p, err);

	if (r < 0)
		return r;
	p.ns = json_str_at(tree, "metadata.namespace", "");
	p.name = json_str_at(tree, "metadata.name", "");
	_cleanup_free_ char *ns = xstrdup(p.ns), *name = xstrdup(p.name);

	p.ns = ns; /* the tree is rearranged below */
	p.name = name;
	p.have = store_find(store, kind, ns, name);
	p.have_tree = p.have ? object_tree(p.have) : NULL;
	if (kind == KIND_SERVICE) {
		r = service_allocate(store, tree, err);
		if (r < 0)
			return r;
	}
	if (*ns)
		make_namespace(store, ns);
	if (!p.have)
		create(&p);
	else if (kind == KIND_POD)
		put_pod_again(&p);
	else
		update(&p);
	if (ret)
		*ret = p.have;
	return 0;
}

/* volume.c - purpose: decode the volumes of a Pod. */
#include "kubelet-lite/model/decode.h"

/* A path inside a volume that must not leave it. */
static const char *decode_inner_path(struct decode *d, const json_t *o)
{
	const char *path = decode_str(d, o, "path", "");
	const char *p = path;

	if (!*path || *path == '/' || strlen(path) > 4096)
		decode_fail(d, "path", "a relative path");
	while (*p) {
		size_t n = strcspn(p, "/");

		if (n == 2 && strncmp(p, "..", 2) == 0)
			decode_fail(d, "path", "free of \"..\"");
		if (p == path && n >= 2 && strncmp(p, "..", 2) == 0)
			decode_fail(d, "path", "a name that does not begin with \"..\"");
		p += n;
		p += strspn(p, "/");
	}
	return path;
}

static void decode_items(struct decode *d, const json_t *o, struct payload_source *s)
{
	const json_t *a = decode_array(d, o, "items");

	s->n_items = json_array_size(a);
	s->items = arena_array(d->arena, s->n_items, sizeof(*s->items));
	for (size_t i = 0; i < s->n_items; i++) {
		const json_t *item = json_array_get(a, i), *field = decode_object(d, item, "fieldRef"),
			     *resource = decode_object(d, item, "resourceFieldRef");
		size_t mark = decode_enter(d, "items[%zu]", i);

		s->items[i] = (struct payload_item){
			.key = decode_str(d, item, "key", ""),
			.path = decode_inner_path(d, item),
			.mode = (int)decode_int(d, item, "mode", -1, 0, 0777),
			.field = { "" },
			.resource = { "", "", QUANTITY_ZERO },
		};
		if (s->kind == PAYLOAD_DOWNWARD && field)
			s->items[i].field = decode_field_ref(d, field, true);
		else if (s->kind == PAYLOAD_DOWNWARD)
			s->items[i].resource = decode_resource_ref(d, resource);
		decode_leave(d, mark);
	}
}

static void decode_source(
	struct decode *d, const json_t *o, enum payload_kind kind, const char *name_key, struct payload_source *s)
{
	s->kind = kind;
	s->object = decode_str(d, o, name_key, "");
	s->optional = decode_bool(d, o, "optional", false);
	decode_items(d, o, s);
}

static void one_source(
	struct decode *d, const json_t *o, enum payload_kind kind, const char *name_key, struct volume *v)
{
	v->kind = VOLUME_PAYLOAD;
	v->n_sources = 1;
	v->sources = arena_array(d->arena, 1, sizeof(*v->sources));
	v->default_mode = (int)decode_int(d, o, "defaultMode", 0644, 0, 0777);
	decode_source(d, o, kind, name_key, v->sources);
}

static void decode_config_map(struct decode *d, const json_t *o, struct volume *v)
{
	v->type_name = "configmap";
	one_source(d, o, PAYLOAD_CONFIG_MAP, "name", v);
}

static void decode_secret(struct decode *d, const json_t *o, struct volume *v)
{
	v->type_name = "secret";
	v->on_tmpfs = true;
	one_source(d, o, PAYLOAD_SECRET, "secretName", v);
}

static void decode_downward(struct decode *d, const json_t *o, struct volume *v)
{
	v->type_name = "downward-api";
	v->on_tmpfs = true;
	one_source(d, o, PAYLOAD_DOWNWARD, "-", v);
}

static void decode_projected(struct decode *d, const json_t *o, struct volume *v)
{
	static const struct {
		const char *key;
		enum payload_kind kind;
	} kinds[] = { { "configMap", PAYLOAD_CONFIG_MAP }, { "secret", PAYLOAD_SECRET },
		{ "downwardAPI", PAYLOAD_DOWNWARD } };
	const json_t *a = decode_array(d, o, "sources");

	v->kind = VOLUME_PAYLOAD;
	v->type_name = "projected";
	v->on_tmpfs = true;
	v->default_mode = (int)decode_int(d, o, "defaultMode", 0644, 0, 0777);
	v->sources = arena_array(d->arena, json_array_size(a), sizeof(*v->sources));
	for (size_t i = 0; i < json_array_size(a); i++) {
		size_t mark = decode_enter(d, "sources[%zu]", i), k = 0;
		const json_t *source = json_array_get(a, i);

		while (k < ARRAY_LEN(kinds) && !decode_object(d, source, kinds[k].key))
			k++;
		if (k < ARRAY_LEN(kinds))
			decode_source(d, json_object_get(source, kinds[k].key), kinds[k].kind, "name",
				&v->sources[v->n_sources++]);
		else
			decode_unsupported(d, "",
				"one of configMap, secret, downwardAPI is supported by kubelet-lite (there is no "
				"service account here)");
		decode_leave(d, mark);
	}
}

static void decode_empty_dir(struct decode *d, const json_t *o, struct volume *v)
{
	v->kind = VOLUME_EMPTY_DIR;
	v->type_name = "empty-dir";
	v->medium = decode_str(d, o, "medium", "");
	if (*v->medium && !str_eq(v->medium, "Memory"))
		decode_unsupported(d, "medium", "only \"\" and Memory are supported by kubelet-lite");
	v->has_size_limit = decode_quantity(d, o, "sizeLimit", &v->size_limit);
}

static void decode_host_path(struct decode *d, const json_t *o, struct volume *v)
{
	static const char *const types[] = { "", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket",
		"CharDevice", "BlockDevice", NULL };

	v->kind = VOLUME_HOST_PATH;
	v->type_name = "host-path";
	v->host_path = decode_str(d, o, "path", "");
	v->host_type = types[decode_enum(d, o, "type", types, 0)];
	if (*v->host_path != '/')
		decode_fail(d, "path", "an absolute path");
	if (strstr(v->host_path, "/../") || str_ends(v->host_path, "/.."))
		decode_fail(d, "path", "free of \"..\"");
}

static void decode_volume(struct decode *d, const json_t *o, struct volume *v)
{
	static const struct {
		const char *key;
		void (*decode)(struct decode *, const json_t *, struct volume *);
	} kinds[] = {
		{ "emptyDir", decode_empty_dir },
		{ "hostPath", decode_host_path },
		{ "configMap", decode_config_map },
		{ "secret", decode_secret },
		{ "downwardAPI", decode_downward },
		{ "projected", decode_projected },
	};
	const char *key;
	json_t *member;

	*v = (struct volume){
		.name = decode_str(d, o, "name", ""), .type_name = "", .medium = "", .host_path = "", .host_type = ""
	};
	if (!*v->name || strchr(v->name, '/') || *v->name == '.')
		decode_fail(d, "name", "a name without slashes");
	json_object_foreach((json_t *)o, key, member)
	{
		size_t k = 0;

		if (str_eq(key, "name") || json_is_null(member))
			continue;
		while (k < ARRAY_LEN(kinds) && !str_eq(kinds[k].key, key))
			k++;
		if (k == ARRAY_LEN(kinds)) {
			decode_unsupported(d, key, "this kind of volume is not supported by kubelet-lite");
			continue;
		}
		size_t mark = decode_enter(d, "%s", key);
		kinds[k].decode(d, decode_object(d, o, key), v);
		decode_leave(d, mark);
	}
	/* A volume without a source is an emptyDir to the API. */
	if (!*v->type_name)
		v->type_name = "empty-dir";
}

void decode_volumes(struct decode *d, const json_t *spec)
{
	const json_t *a = decode_array(d, spec, "volumes");
	struct pod *pod = d->pod;

	pod->n_volumes = json_array_size(a);
	pod->volumes = arena_array(d->arena, pod->n_volumes, sizeof(*pod->volumes));
	for (size_t i = 0; i < pod->n_volumes; i++) {
		size_t mark = decode_enter(d, "volumes[%zu]", i);

		decode_volume(d, json_array_get(a, i), &pod->volumes[i]);
		decode_leave(d, mark);
	}
	for (size_t i = 0; i < pod->n_volumes; i++)
		if (pod_volume(pod, pod->volumes[i].name) != &pod->volumes[i])
			decode_fail(d, "volumes", "names that differ from each other");
}

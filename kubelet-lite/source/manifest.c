/* manifest.c - purpose: the text of a manifest file to objects, document by document; and objects back into the text. */
#include "kubelet-lite/source/manifest.h"

#include "common/wire/json.h"
#include "kubelet-lite/store/kinds.h"

/* One document of a stream. */
struct slice {
	size_t start, len;
	unsigned line;
};

void manifest_done(struct manifest *m)
{
	for (size_t i = 0; i < m->n; i++) {
		free(m->objects[i].key);
		json_decref(m->objects[i].tree);
	}
	for (size_t i = 0; i < m->n_problems; i++)
		free(m->problems[i].text);
	free(m->objects);
	free(m->problems);
	*m = MANIFEST_INIT;
}

static void problem(struct manifest *m, unsigned line, bool broken, const char *fmt, ...) PRINTF(4, 5);
static void problem(struct manifest *m, unsigned line, bool broken, const char *fmt, ...)
{
	_cleanup_(str_done) struct str s = STR_INIT;
	va_list args;

	va_start(args, fmt);
	str_vaddf(&s, fmt, args);
	va_end(args);
	m->broken |= broken;
	if (m->n_problems >= 20)
		return;
	m->problems = xreallocarray(m->problems, m->n_problems + 1, sizeof(*m->problems));
	m->problems[m->n_problems++] = (struct manifest_problem){ line, str_take(&s), broken };
}

static bool is_separator(const char *p, const char *end)
{
	return end - p >= 3 && memcmp(p, "---", 3) == 0 && (end - p == 3 || strchr(" \t\r\n", p[3]));
}

/* Nothing but blank lines, comments and directives? */
static bool is_preamble(const char *p, const char *end)
{
	while (p < end) {
		const char *line_end = memchr(p, '\n', (size_t)(end - p));

		while (p < end && (*p == ' ' || *p == '\t' || *p == '\r'))
			p++;
		if (p < end && *p != '\n' && *p != '#' && *p != '%')
			return false;
		p = line_end ? line_end + 1 : end;
	}
	return true;
}

/* The next document behind *at; false at the end. */
static bool next_slice(const char *text, size_t len, size_t *at, unsigned *line, struct slice *ret)
{
	const char *start = text + *at, *end = text + len, *p = start;
	bool content = false; /* a separator ends the document once there is something in it */

	if (*at >= len)
		return false;
	ret->start = *at;
	ret->line = *line;
	while (p < end) {
		const char *line_end = memchr(p, '\n', (size_t)(end - p));
		const char *next = line_end ? line_end + 1 : end;

		if (is_separator(p, end)) {
			if (content)
				break;
			content = true;
		} else if (!content && !is_preamble(p, next)) {
			content = true;
		}
		p = next;
		*line += line_end != NULL;
	}
	ret->len = (size_t)(p - start);
	*at = (size_t)(p - text);
	return true;
}

static void add_object(struct manifest *m, json_t *tree, const struct slice *slice, bool in_list, size_t item)
{
	const char *api_version = json_str_at(tree, "apiVersion", ""), *kind_name = json_str_at(tree, "kind", "");
	const char *name = json_str_at(tree, "metadata.name", ""), *ns = json_str_at(tree, "metadata.namespace", "");
	_cleanup_free_ char *where = in_list ? xasprintf("items[%zu]: ", item) : xstrdup("");
	enum object_kind kind;

	if (!json_is_object(tree)) {
		problem(m, slice->line, true, "%s%s must be an object with apiVersion, kind and metadata", where,
			in_list ? "an item" : "a document");
	} else if (!*api_version || !*kind_name) {
		problem(m, slice->line, true, "%s%s is missing", where, *kind_name ? "apiVersion" : "kind");
	} else if (!kind_of(api_version, kind_name, &kind) || !kind_info(kind)->writable) {
		bool foreign = !str_eq(api_version, "v1") && !str_starts(api_version, "discovery.k8s.io/");

		problem(m, slice->line, !foreign, "%skind \"%.60s\" of apiVersion \"%.60s\" is not served here; allowed are %s",
			where, kind_name, api_version, kinds_writable());
	} else if (!*name) {
		problem(m, slice->line, true, "%s%s: metadata.name is missing", where, kind_name);
	} else if (m->n >= MANIFEST_OBJECTS_MAX) {
		problem(m, slice->line, true, "more than %d objects in one file", MANIFEST_OBJECTS_MAX);
	} else {
		if (kind_info(kind)->namespaced && !*ns)
			ns = "default";
		if ((m->n & (m->n - 1)) == 0)
			m->objects = xreallocarray(m->objects, m->n ? m->n * 2 : 1, sizeof(*m->objects));
		m->objects[m->n++] = (struct manifest_object){ kind,
			xasprintf("%s/%s/%s", kind_name, kind_info(kind)->namespaced ? ns : "", name), json_incref(tree),
			slice->line, slice->start, slice->len, in_list, item };
	}
}

/* A List, a PodList, ... Items of a typed list may go without apiVersion and kind. */
static bool add_list(struct manifest *m, json_t *tree, const struct slice *slice)
{
	const char *kind = json_str_at(tree, "kind", "");
	json_t *items = json_object_get(tree, "items"), *item;
	size_t i;

	if (!str_ends(kind, "List") || !json_is_array(items))
		return false;
	json_array_foreach (items, i, item) {
		if (json_is_object(item) && !str_eq(kind, "List") && !json_object_get(item, "kind")) {
			json_object_set_new(item, "kind", json_stringn(kind, strlen(kind) - strlen("List")));
			json_object_set(item, "apiVersion", json_object_get(tree, "apiVersion"));
		}
		add_object(m, item, slice, true, i);
	}
	return true;
}

static int parse_slice(const char *text, const struct slice *slice, bool is_json, json_t **ret, struct error *err)
{
	if (is_json) {
		_cleanup_json_ json_t *tree = NULL;
		int r = json_read(text + slice->start, slice->len, true, &tree, err);

		if (r == 0)
			*ret = json_pack("[O]", tree);
		return r;
	}
	/* Lines before it, so that errors name the line of the file. */
	_cleanup_(str_done) struct str padded = STR_INIT;

	str_reserve(&padded, slice->line + slice->len);
	for (unsigned i = 1; i < slice->line; i++)
		str_add_char(&padded, '\n');
	str_add_bytes(&padded, text + slice->start, slice->len);
	return yaml_read(padded.buf, padded.len, ret, err);
}

static bool next_document(const char *text, size_t len, bool is_json, size_t *at, unsigned *line, struct slice *ret)
{
	if (!is_json)
		return next_slice(text, len, at, line, ret);
	*ret = (struct slice){ 0, len, 1 };
	bool first = *at == 0 && len > 0;

	*at = len;
	/* An empty file is no document, as in YAML. */
	return first && strspn(text, " \t\r\n") < len;
}

void manifest_read(const char *text, size_t len, bool is_json, struct manifest *ret)
{
	struct manifest m = MANIFEST_INIT;
	struct slice slice;
	size_t at = 0;
	unsigned line = 1;

	while (next_document(text, len, is_json, &at, &line, &slice)) {
		_cleanup_json_ json_t *docs = NULL;
		struct error err = ERROR_INIT;
		json_t *tree;
		size_t i;

		if (parse_slice(text, &slice, is_json, &docs, &err) < 0) {
			problem(&m, slice.line, true, "%s", err.text);
			continue;
		}
		json_array_foreach (docs, i, tree)
			if (!json_is_null(tree) && !add_list(&m, tree, &slice))
				add_object(&m, tree, &slice, false, 0);
	}
	*ret = m;
}

char *manifest_text(const json_t *tree, bool is_json)
{
	if (!is_json)
		return yaml_text(tree);
	char *plain = json_dumps(tree, JSON_INDENT(2));
	char *text = xasprintf("%s\n", plain ? plain : "{}");

	free(plain);
	return text;
}

/* Text for the document that held the object; NULL: nothing is left of it. */
static char *new_document(const char *text, const struct manifest_object *o, bool is_json, const json_t *tree)
{
	if (!o->in_list)
		return tree ? manifest_text(tree, is_json) : NULL;
	struct slice slice = { o->start, o->len, 1 };
	_cleanup_json_ json_t *docs = NULL;

	if (parse_slice(text, &slice, is_json, &docs, NULL) < 0)
		return NULL;
	json_t *items = json_object_get(json_array_get(docs, 0), "items");

	if (tree)
		json_array_set(items, o->item, (json_t *)tree);
	else
		json_array_remove(items, o->item);
	return json_array_size(items) ? manifest_text(json_array_get(docs, 0), is_json) : NULL;
}

int manifest_replace(const char *text, size_t len, bool is_json, const char *key, const json_t *tree, char **ret,
	size_t *ret_left, struct error *err)
{
	_cleanup_(manifest_done) struct manifest m = MANIFEST_INIT;
	_cleanup_(str_done) struct str out = STR_INIT;
	const struct manifest_object *o = NULL;

	manifest_read(text, len, is_json, &m);
	for (size_t i = 0; i < m.n && !o; i++)
		if (str_eq(m.objects[i].key, key))
			o = &m.objects[i];
	if (!o)
		return error_set(err, ERROR_NOT_FOUND, "%s is not in the file", key);
	_cleanup_free_ char *fresh = new_document(text, o, is_json, tree);
	bool alone = o->start == 0 && o->len == len;

	str_add_bytes(&out, text, o->start);
	if (fresh) {
		if (!is_json && !alone)
			str_add(&out, "---\n");
		str_add(&out, fresh);
	}
	str_add_bytes(&out, text + o->start + o->len, len - o->start - o->len);
	*ret_left = m.n + m.n_problems - (tree ? 0 : 1);
	*ret = str_take(&out);
	return 0;
}

json_t *manifest_strip(enum object_kind kind, const json_t *tree, const char *node_name)
{
	static const char *const ours[] = { "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
		"deletionGracePeriodSeconds", "selfLink", "managedFields", "generateName" };
	static const char *const notes[] = { "kubernetes.io/config.source", "kubernetes.io/config.hash",
		"kubernetes.io/config.seen" };
	json_t *copy = json_object(), *deep = json_deep_copy(tree);
	json_t *meta = json_object_get(deep, "metadata"), *spec = json_object_get(deep, "spec");
	json_t *annotations = json_object_get(meta, "annotations");
	const char *key;
	json_t *value;

	json_object_set_new(copy, "apiVersion", json_string(kind_info(kind)->api_version));
	json_object_set_new(copy, "kind", json_string(kind_info(kind)->kind));
	for (size_t i = 0; i < ARRAY_LEN(ours); i++)
		json_object_del(meta, ours[i]);
	for (size_t i = 0; i < ARRAY_LEN(notes); i++)
		json_object_del(annotations, notes[i]);
	if (json_is_object(annotations) && json_object_size(annotations) == 0)
		json_object_del(meta, "annotations");
	if (kind == KIND_POD && str_eq(json_str_at(spec, "nodeName", ""), node_name))
		json_object_del(spec, "nodeName");
	json_object_foreach (deep, key, value)
		if (!json_object_get(copy, key) && strcmp(key, "status") != 0)
			json_object_set(copy, key, value);
	json_decref(deep);
	return copy;
}

/* select.c - purpose: label and field selectors of list and watch requests on objects of the store. */
#include "kubelet-lite/local/select.h"

#include "common/wire/json.h"

static bool field_known(enum object_kind kind, const char *field)
{
	static const char *const pod[] = { "spec.nodeName", "spec.restartPolicy", "spec.schedulerName",
		"spec.serviceAccountName", "spec.hostNetwork", "status.phase", "status.podIP", "status.nominatedNodeName", NULL };
	static const char *const event[] = { "involvedObject.kind", "involvedObject.namespace", "involvedObject.name",
		"involvedObject.uid", "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath",
		"reason", "reportingComponent", "source", "type", NULL };
	static const char *const service[] = { "spec.clusterIP", "spec.type", NULL };
	static const char *const node[] = { "spec.unschedulable", NULL };
	static const char *const namespace[] = { "status.phase", NULL };
	static const char *const secret[] = { "type", NULL };
	static const char *const *const by_kind[KIND_COUNT] = { [KIND_POD] = pod, [KIND_EVENT] = event,
		[KIND_SERVICE] = service, [KIND_NODE] = node, [KIND_NAMESPACE] = namespace, [KIND_SECRET] = secret };

	if (str_eq(field, "metadata.name") || str_eq(field, "metadata.namespace"))
		return true;
	for (const char *const *f = by_kind[kind]; f && *f; f++)
		if (str_eq(*f, field))
			return true;
	return false;
}

int select_parse_fields(enum object_kind kind, const char *text, struct selector *ret, struct error *err)
{
	_cleanup_(selector_done) struct selector s = SELECTOR_INIT;
	int r = field_selector_parse(text ? text : "", &s, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < s.n; i++)
		if (!field_known(kind, s.terms[i].key))
			return error_set(err, ERROR_INVALID, "field label not supported: %.100s", s.terms[i].key);
	*ret = s;
	s = SELECTOR_INIT;
	return 0;
}

static const char *label_of(void *data, const char *key)
{
	return object_label(data, key);
}

bool select_labels(const struct selector *selector, const struct object *object)
{
	return selector->n == 0 || selector_match(selector, label_of, (void *)object);
}

static bool is_name(const struct selector_term *t)
{
	return str_eq(t->key, "metadata.name") || str_eq(t->key, "metadata.namespace");
}

bool select_is_mutable(const struct selector *fields)
{
	for (size_t i = 0; i < fields->n; i++)
		if (!is_name(&fields->terms[i]))
			return true;
	return false;
}

struct fields_of {
	const struct object *object;
	json_t *tree; /* made when needed */
};

static const char *field_of(void *data, const char *key)
{
	struct fields_of *f = data;

	if (str_eq(key, "metadata.name"))
		return f->object->name;
	if (str_eq(key, "metadata.namespace"))
		return f->object->ns;
	if (!f->tree)
		f->tree = object_tree(f->object);
	const json_t *value = json_at(f->tree, str_eq(key, "source") ? "source.component" : key);

	if (json_is_boolean(value) || (!value && (str_eq(key, "spec.unschedulable") || str_eq(key, "spec.hostNetwork"))))
		return json_is_true(value) ? "true" : "false";
	return json_is_string(value) ? json_string_value(value) : "";
}

bool select_fields(const struct selector *selector, const struct object *object)
{
	struct fields_of f = { .object = object };
	bool match = selector->n == 0 || selector_match(selector, field_of, &f);

	json_decref(f.tree);
	return match;
}

void select_add_name(struct selector *fields, const char *name)
{
	struct selector_term term = { .key = xstrdup("metadata.name"), .op = SELECTOR_IN };

	strv_add(&term.values, name);
	fields->terms = xreallocarray(fields->terms, fields->n + 1, sizeof(*fields->terms));
	fields->terms[fields->n++] = term;
}

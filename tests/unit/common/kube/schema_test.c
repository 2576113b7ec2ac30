/* schema_test.c - purpose: unknown fields and wrong types, by table; the table itself. */
#include "common/kube/schema.h"

#include "common/base/str.h"
#include "tests/unit/quotes.h"

static const struct {
	const char *kind, *tree, *want; /* problems, one a line */
} cases[] = {
	{ "Pod", "{'spec':{'containers':[{'name':'a','ports':[{'containerPort':80}]}]}}", "" },
	{ "Pod", "{'spec':{'contaners':[]}}", "? spec.contaners\n" },
	{ "Pod", "{'metadata':{'restartPolicy':'Never'}}", "? metadata.restartPolicy\n" },
	{ "Pod", "{'spec':{'containers':[{'name':'a'},{'image':1,'env':[{'nam':'x'}]}]}}",
		"spec.containers[1].image: string not integer\n? spec.containers[1].env[0].nam\n" },
	{ "Pod", "{'spec':{'containers':{}}}", "spec.containers: list not object\n" },
	{ "Pod", "{'metadata':{'labels':{'a':true}}}", "metadata.labels.a: string not boolean\n" },
	{ "Pod", "{'metadata':{'labels':{'any.thing/x':'y'}}}", "" },
	{ "Pod", "{'spec':{'containers':[{'resources':{'limits':{'cpu':1,'memory':'1Gi','x':true}}}]}}",
		"spec.containers[0].resources.limits.x: quantity not boolean\n" },
	{ "Pod", "{'spec':{'containers':null,'hostNetwork':null}}", "" },
	{ "Pod", "{'status':{'whatever':{'deep':[1]}}}", "" },
	{ "Service", "{'spec':{'ports':[{'port':80,'targetPort':'http'},{'targetPort':8080},{'targetPort':1.5}]}}",
		"spec.ports[2].targetPort: integer or string not number\n" },
	{ "ConfigMap", "{'data':{'a':1}}", "data.a: string not integer\n" },
	{ "ConfigMap", "{'spec':{}}", "? spec\n" },
	{ "NoSuchKind", "{'spec':{}}", "" },
};

static void unknown(void *data, const char *path)
{
	str_addf(data, "? %s\n", path);
}

static void wrong(void *data, const char *path, const char *expected, const char *got)
{
	str_addf(data, "%s: %s not %s\n", path, expected, got);
}

START_TEST(check_case)
{
	_cleanup_json_ json_t *tree = quoted(cases[_i].tree);
	_cleanup_(str_done) struct str out = STR_INIT;
	struct schema schema = schema_of(cases[_i].kind);
	struct schema_problems problems = { &out, unknown, wrong };

	schema_check(&schema, tree, &problems);
	ck_assert_str_eq(str_get(&out), cases[_i].want);
}
END_TEST

START_TEST(prunes)
{
	_cleanup_json_ json_t *tree =
		quoted("{'x':1,'metadata':{'name':'a','y':2},'spec':{'containers':[{'name':'a','z':3}]},'status':{'k':1}}");
	struct schema schema = schema_of("Pod");

	schema_prune(&schema, tree);
	assert_json_eq(tree, "{'metadata':{'name':'a'},'spec':{'containers':[{'name':'a'}]},'status':{'k':1}}");
}
END_TEST

/* Every type that a line of the table names has a line. Walks all of it from the kinds down. */
static void walk(const struct schema *s, int depth)
{
	struct schema element = schema_element(s);

	ck_assert_int_lt(depth, 30);
	if (s->kind == SCHEMA_LIST || s->kind == SCHEMA_MAP)
		walk(&element, depth + 1);
	if (s->kind != SCHEMA_OBJECT)
		return;
	_cleanup_free_ char *name = xstrndup(s->type.ptr, s->type.len);

	ck_assert_msg(schema_of(name).kind == SCHEMA_OBJECT, "type %s", name);
	const char *p = schema_of(name).type.ptr + s->type.len;

	while (*p == ' ') {
		size_t len = strcspn(++p, " \n"), field_len = strcspn(p, ": \n");
		_cleanup_free_ char *field = xstrndup(p, field_len);
		struct schema next;

		p += len;
		if (str_eq(field, "..."))
			continue;
		ck_assert(schema_field(s, field, &next));
		walk(&next, depth + 1);
	}
}

START_TEST(table_is_whole)
{
	static const char *const kinds[] = { "Pod", "Node", "Namespace", "Service", "ConfigMap", "Secret", "EndpointSlice",
		"Event", "Lease" };
	struct schema s = schema_of(kinds[_i]);

	ck_assert_int_eq(s.kind, SCHEMA_OBJECT);
	walk(&s, 0);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("schema");

	tcase_add_loop_test(t, check_case, 0, ARRAY_LEN(cases));
	tcase_add_test(t, prunes);
	tcase_add_loop_test(t, table_is_whole, 0, 9);
	return run_case(t);
}

/* manifest_test.c - purpose: documents of a manifest file: found, numbered, reported; replaced in the text. */
#include "kubelet-lite/source/manifest.h"

#include "tests/unit/quotes.h"

#define CM(name) "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " name "}\n"

static const struct {
	const char *name, *text, *objects, *problems; /* "key@line " and "line:text" (a part of it) */
	bool is_json, broken;
} cases[] = {
	{ "one", CM("a"), "ConfigMap/default/a@1 ", NULL, false, false },
	{ "several", CM("a") "---\n" CM("b") "---\n" CM("c"), "ConfigMap/default/a@1 ConfigMap/default/b@4 ConfigMap/default/c@8 ", NULL,
		false, false },
	{ "leading separator and comments", "# hello\n---\n# more\n" CM("a") "---\n# nothing\n---\n", "ConfigMap/default/a@1 ", NULL,
		false, false },
	{ "empty", "", "", NULL, false, false },
	{ "comments only", "# a\n---\n# b\n", "", NULL, false, false },
	{ "a broken one between", CM("a") "---\n{x: [\n---\n" CM("b"), "ConfigMap/default/a@1 ConfigMap/default/b@6 ", "4:line ", false,
		true },
	{ "separator in a block scalar's column is none", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  x: |\n    ---\n    y\n",
		"ConfigMap/default/a@1 ", NULL, false, false },
	{ "a list", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n- {apiVersion: v1, kind: Secret, "
		    "metadata: {name: b, namespace: n1}}\n",
		"ConfigMap/default/a@1 Secret/n1/b@1 ", NULL, false, false },
	{ "a typed list", "apiVersion: v1\nkind: PodList\nitems:\n- metadata: {name: a}\n", "Pod/default/a@1 ", NULL, false, false },
	{ "items that are wrong say where they are", "kind: List\napiVersion: v1\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n- 1\n",
		"ConfigMap/default/a@1 ", "1:items[1]: an item must be an object", false, true },
	{ "an item without a name", "kind: List\napiVersion: v1\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {}}\n", "",
		"1:items[0]: Pod: metadata.name is missing", false, true },
	{ "kind of another world", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n", "", "1:kind \"Deployment\" of apiVersion", false,
		false },
	{ "mistyped kind may have been a pod", "apiVersion: v1\nkind: Podd\nmetadata: {name: a}\n", "", "1:kind \"Podd\"", false, true },
	{ "node is ours", "apiVersion: v1\nkind: Node\nmetadata: {name: a}\n", "", "1:kind \"Node\"", false, true },
	{ "no kind", "apiVersion: v1\nmetadata: {name: a}\n", "", "1:kind is missing", false, true },
	{ "no name", "apiVersion: v1\nkind: Pod\nmetadata: {}\n", "", "1:Pod: metadata.name is missing", false, true },
	{ "a scalar", "hello\n", "", "1:a document must be an object", false, true },
	{ "json", "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"a\"}}", "Namespace//a@1 ", NULL, true, false },
	{ "json cut off", "{\"apiVersion\":\"v1\",", "", "1:line 1", true, true },
	{ "json empty", "  \n", "", NULL, true, false },
	{ "crlf", "apiVersion: v1\r\nkind: ConfigMap\r\nmetadata:\r\n  name: a\r\n---\r\n" CM("b"), "ConfigMap/default/a@1 ConfigMap/default/b@5 ",
		NULL, false, false },
	{ "tab", "apiVersion: v1\n\tkind: Pod\n", "", "1:line 2", false, true },
};

START_TEST(read_case)
{
	_cleanup_(manifest_done) struct manifest m = MANIFEST_INIT;
	_cleanup_(str_done) struct str objects = STR_INIT, problems = STR_INIT;

	manifest_read(cases[_i].text, strlen(cases[_i].text), cases[_i].is_json, &m);
	for (size_t i = 0; i < m.n; i++)
		str_addf(&objects, "%s@%u ", m.objects[i].key, m.objects[i].line);
	for (size_t i = 0; i < m.n_problems; i++)
		str_addf(&problems, "%u:%s\n", m.problems[i].line, m.problems[i].text);
	ck_assert_msg(str_eq(str_get(&objects), cases[_i].objects), "%s: %s", cases[_i].name, str_get(&objects));
	ck_assert_msg(m.broken == cases[_i].broken, "%s", cases[_i].name);
	if (cases[_i].problems)
		ck_assert_msg(strstr(str_get(&problems), cases[_i].problems), "%s: %s", cases[_i].name, str_get(&problems));
	else
		ck_assert_msg(m.n_problems == 0, "%s: %s", cases[_i].name, str_get(&problems));
}
END_TEST

static const struct {
	const char *name, *text, *key, *tree, *want; /* tree NULL: removed */
	size_t left;
} edits[] = {
	{ "the only one", CM("a"), "ConfigMap/default/a", "{'kind':'X'}", "kind: X\n", 1 },
	{ "the only one goes", CM("a"), "ConfigMap/default/a", NULL, "", 0 },
	{ "the first", "# c\n" CM("a") "---\n" CM("b"), "ConfigMap/default/a", "{'kind':'X'}", "---\nkind: X\n---\n" CM("b"), 2 },
	{ "the last", CM("a") "# c\n---\n" CM("b"), "ConfigMap/default/b", "{'kind':'X'}", CM("a") "# c\n---\nkind: X\n", 2 },
	{ "the middle goes", CM("a") "---\n" CM("b") "---\n" CM("c"), "ConfigMap/default/b", NULL, CM("a") "---\n" CM("c"), 2 },
	{ "a broken neighbour stays", CM("a") "---\n{x: [\n", "ConfigMap/default/a", NULL, "---\n{x: [\n", 1 },
	{ "of a list", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: a}}\n- {apiVersion: v1, kind: Pod, metadata: "
		       "{name: b}}\n",
		"Pod/default/a", NULL, NULL, 1 },
};

START_TEST(edit_case)
{
	_cleanup_json_ json_t *tree = edits[_i].tree ? quoted(edits[_i].tree) : NULL;
	_cleanup_free_ char *text = NULL;
	size_t left;

	ck_assert_int_eq(manifest_replace(edits[_i].text, strlen(edits[_i].text), false, edits[_i].key, tree, &text, &left, NULL), 0);
	ck_assert_msg(left == edits[_i].left, "%s: %zu left", edits[_i].name, left);
	if (edits[_i].want)
		ck_assert_str_eq(text, edits[_i].want);
	ck_assert_int_lt(manifest_replace(text, strlen(text), false, "Pod/default/none", tree, &text, &left, NULL), 0);
}
END_TEST

START_TEST(strips)
{
	_cleanup_json_ json_t *tree =
		quoted("{'kind':'Pod','apiVersion':'v1','metadata':{'name':'a','uid':'u','resourceVersion':'1','generation':1,"
		       "'creationTimestamp':'t','annotations':{'kubernetes.io/config.hash':'x','mine':'y'}},'spec':{'nodeName':'n1'},'status':{}}");
	_cleanup_json_ json_t *here = manifest_strip(KIND_POD, tree, "n1"), *there = manifest_strip(KIND_POD, tree, "n2");

	assert_json_eq(here, "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'a','annotations':{'mine':'y'}},'spec':{}}");
	assert_json_eq(there, "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'a','annotations':{'mine':'y'}},'spec':{'nodeName':'n1'}}");
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("manifest");

	tcase_add_loop_test(t, read_case, 0, ARRAY_LEN(cases));
	tcase_add_loop_test(t, edit_case, 0, ARRAY_LEN(edits));
	tcase_add_test(t, strips);
	return run_case(t);
}

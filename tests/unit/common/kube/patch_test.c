/* patch_test.c - purpose: the three kinds of patch, by table. */
#include "common/kube/patch.h"

#include "tests/unit/quotes.h"

static const struct {
	const char *name, *target, *patch, *want; /* want NULL: an error */
} merges[] = {
	{ "sets", "{'a':1}", "{'b':2}", "{'a':1,'b':2}" },
	{ "null removes", "{'a':1,'b':2}", "{'a':null}", "{'b':2}" },
	{ "goes down", "{'a':{'b':1,'c':2}}", "{'a':{'b':null,'d':{'e':null,'f':1}}}", "{'a':{'c':2,'d':{'f':1}}}" },
	{ "lists are replaced", "{'a':[1,2]}", "{'a':[3]}", "{'a':[3]}" },
	{ "a scalar becomes an object", "{'a':1}", "{'a':{'b':2}}", "{'a':{'b':2}}" },
	{ "no object", "{'a':1}", "[1]", NULL },
};

START_TEST(merge_case)
{
	_cleanup_json_ json_t *target = quoted(merges[_i].target), *patch = quoted(merges[_i].patch);
	int r = patch_merge(target, patch, NULL);

	ck_assert_msg((r == 0) == (merges[_i].want != NULL), "%s", merges[_i].name);
	if (merges[_i].want)
		assert_json_eq(target, merges[_i].want);
}
END_TEST

static const struct {
	const char *target, *patch, *want;
} operations[] = {
	{ "{'a':1}", "[{'op':'add','path':'/b','value':[1]}]", "{'a':1,'b':[1]}" },
	{ "{'a':[1,2]}", "[{'op':'add','path':'/a/-','value':3},{'op':'add','path':'/a/0','value':0}]", "{'a':[0,1,2,3]}" },
	{ "{'a':[1,2]}", "[{'op':'remove','path':'/a/0'}]", "{'a':[2]}" },
	{ "{'a':1}", "[{'op':'replace','path':'/a','value':{'x':1}}]", "{'a':{'x':1}}" },
	{ "{'a':1}", "[{'op':'replace','path':'','value':{'x':1}}]", "{'x':1}" },
	{ "{'a/b':1,'c~d':2}", "[{'op':'remove','path':'/a~1b'},{'op':'remove','path':'/c~0d'}]", "{}" },
	{ "{'a':1}", "[{'op':'move','from':'/a','path':'/b'}]", "{'b':1}" },
	{ "{'a':{'x':1}}", "[{'op':'copy','from':'/a','path':'/b'},{'op':'replace','path':'/b/x','value':2}]",
		"{'a':{'x':1},'b':{'x':2}}" },
	{ "{'a':1}", "[{'op':'test','path':'/a','value':1}]", "{'a':1}" },
	{ "{'a':1}", "[{'op':'test','path':'/a','value':2}]", NULL },
	{ "{'a':1}", "[{'op':'remove','path':'/b'}]", NULL },
	{ "{'a':1}", "[{'op':'replace','path':'/b','value':1}]", NULL },
	{ "{'a':1}", "[{'op':'add','path':'/b/c','value':1}]", NULL },
	{ "{'a':1}", "[{'op':'add','path':'/a/c','value':1}]", NULL },
	{ "{'a':[1]}", "[{'op':'add','path':'/a/5','value':1}]", NULL },
	{ "{'a':[1]}", "[{'op':'add','path':'/a/01','value':1}]", NULL },
	{ "{'a':[1]}", "[{'op':'add','path':'/a/-1','value':1}]", NULL },
	{ "{'a':[1]}", "[{'op':'add','path':'a','value':1}]", NULL },
	{ "{'a':1}", "[{'op':'remove','path':''}]", NULL },
	{ "{'a':1}", "[{'op':'add','path':'/b'}]", NULL },
	{ "{'a':1}", "[{'op':'frob','path':'/b'}]", NULL },
	{ "{'a':{'b':1}}", "[{'op':'move','from':'/a','path':'/a/b'}]", NULL },
	{ "{'a':1}", "{'op':'add'}", NULL },
};

START_TEST(operation_case)
{
	_cleanup_json_ json_t *target = quoted(operations[_i].target), *patch = quoted(operations[_i].patch);
	int r = patch_json(&target, patch, NULL);

	ck_assert_msg((r == 0) == (operations[_i].want != NULL), "%s", operations[_i].patch);
	if (operations[_i].want)
		assert_json_eq(target, operations[_i].want);
}
END_TEST

#define C "{'spec':{'containers':[{'name':'a','image':'1','env':[{'name':'X','value':'1'}]},{'name':'b','image':'2'}]}}"

static const struct {
	const char *name, *kind, *target, *patch, *want;
} strategic[] = {
	{ "a container merges by name", "Pod", C, "{'spec':{'containers':[{'name':'b','image':'3'}]}}",
		"{'spec':{'containers':[{'name':'a','image':'1','env':[{'name':'X','value':'1'}]},{'name':'b','image':'3'}]}}" },
	{ "a new one is appended", "Pod", "{'spec':{'containers':[{'name':'a'}]}}",
		"{'spec':{'containers':[{'name':'c','image':'x','tty':null}]}}",
		"{'spec':{'containers':[{'name':'a'},{'name':'c','image':'x'}]}}" },
	{ "one is deleted", "Pod", C, "{'spec':{'containers':[{'name':'a','$patch':'delete'}]}}",
		"{'spec':{'containers':[{'name':'b','image':'2'}]}}" },
	{ "one is replaced", "Pod", C, "{'spec':{'containers':[{'name':'a','image':'9','$patch':'replace'}]}}",
		"{'spec':{'containers':[{'name':'a','image':'9'},{'name':'b','image':'2'}]}}" },
	{ "the list is replaced", "Pod", C, "{'spec':{'containers':[{'name':'z'},{'$patch':'replace'}]}}",
		"{'spec':{'containers':[{'name':'z'}]}}" },
	{ "env within a container", "Pod", C, "{'spec':{'containers':[{'name':'a','env':[{'name':'Y','value':'2'}]}]}}",
		"{'spec':{'containers':[{'name':'a','image':'1','env':[{'name':'X','value':'1'},{'name':'Y','value':'2'}]},{'name':"
		"'b','image':'2'}]}}" },
	{ "order", "Pod", C,
		"{'spec':{'$setElementOrder/containers':[{'name':'b'},{'name':'c'},{'name':'a'}],'containers':[{'name':'c'}]}}",
		"{'spec':{'containers':[{'name':'b','image':'2'},{'name':'c'},{'name':'a','image':'1','env':[{'name':'X','value':'1'}"
		"]}]}}" },
	{ "order keeps strangers behind their neighbour", "Pod",
		"{'spec':{'containers':[{'name':'x'},{'name':'a'},{'name':'y'},{'name':'b'}]}}",
		"{'spec':{'$setElementOrder/containers':[{'name':'b'},{'name':'a'}]}}",
		"{'spec':{'containers':[{'name':'x'},{'name':'b'},{'name':'a'},{'name':'y'}]}}" },
	{ "atomic lists are replaced", "Pod", "{'spec':{'tolerations':[{'key':'a'},{'key':'b'}]}}",
		"{'spec':{'tolerations':[{'key':'c'}]}}", "{'spec':{'tolerations':[{'key':'c'}]}}" },
	{ "finalizers are a set", "Pod", "{'metadata':{'finalizers':['a','b']}}", "{'metadata':{'finalizers':['b','c']}}",
		"{'metadata':{'finalizers':['a','b','c']}}" },
	{ "delete from a set", "Pod", "{'metadata':{'finalizers':['a','b','b']}}",
		"{'metadata':{'$deleteFromPrimitiveList/finalizers':['b','z']}}", "{'metadata':{'finalizers':['a']}}" },
	{ "retain keys", "Pod", "{'spec':{'volumes':[{'name':'v','emptyDir':{}}]}}",
		"{'spec':{'volumes':[{'$retainKeys':['name','hostPath'],'name':'v','hostPath':{'path':'/x'}}]}}",
		"{'spec':{'volumes':[{'name':'v','hostPath':{'path':'/x'}}]}}" },
	{ "an object is replaced", "Pod", "{'metadata':{'labels':{'a':'1'}}}", "{'metadata':{'labels':{'$patch':'replace','b':'2'}}}",
		"{'metadata':{'labels':{'b':'2'}}}" },
	{ "an object is deleted", "Pod", "{'spec':{'affinity':{'podAffinity':{}}}}", "{'spec':{'affinity':{'$patch':'delete'}}}",
		"{'spec':{}}" },
	{ "nulls", "ConfigMap", "{'data':{'a':'1','b':'2'}}", "{'data':{'a':null,'c':'3'}}", "{'data':{'b':'2','c':'3'}}" },
	{ "service ports by port", "Service", "{'spec':{'ports':[{'port':80,'nodePort':30080}]}}",
		"{'spec':{'ports':[{'port':80,'targetPort':8080},{'port':443}]}}",
		"{'spec':{'ports':[{'port':80,'nodePort':30080,'targetPort':8080},{'port':443}]}}" },
	{ "no merge key", "Pod", C, "{'spec':{'containers':[{'image':'3'}]}}", NULL },
	{ "no object in the list", "Pod", C, "{'spec':{'containers':[1]}}", NULL },
	{ "no object", "Pod", C, "[]", NULL },
	{ "unknown fields merge as objects", "Pod", "{'spec':{'x':{'a':1}}}", "{'spec':{'x':{'b':2}}}",
		"{'spec':{'x':{'a':1,'b':2}}}" },
};

START_TEST(strategic_case)
{
	_cleanup_json_ json_t *target = quoted(strategic[_i].target), *patch = quoted(strategic[_i].patch);
	struct schema schema = schema_of(strategic[_i].kind);
	int r = patch_strategic(&schema, target, patch, NULL);

	ck_assert_msg((r == 0) == (strategic[_i].want != NULL), "%s", strategic[_i].name);
	if (strategic[_i].want)
		assert_json_eq(target, strategic[_i].want);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("patch");

	tcase_add_loop_test(t, merge_case, 0, ARRAY_LEN(merges));
	tcase_add_loop_test(t, operation_case, 0, ARRAY_LEN(operations));
	tcase_add_loop_test(t, strategic_case, 0, ARRAY_LEN(strategic));
	return run_case(t);
}

/* table_test.c - purpose: cells of kubectl's tables, by table. */
#include "kubelet-lite/local/table.h"

#include "common/base/codec.h"
#include "tests/unit/quotes.h"

#define CREATED "'metadata':{'name':'x','creationTimestamp':'2026-01-01T00:00:00Z'}"
#define TWO "'containers':[{'name':'a'},{'name':'b'}]"
#define RUN(ready) "{'name':'a','ready':" ready ",'restartCount':0,'state':{'running':{}}}"

static const struct {
	const char *name;
	enum object_kind kind;
	const char *tree, *cells;
} cases[] = {
	{ "pending", KIND_POD, "{" CREATED ",'spec':{" TWO "},'status':{'phase':'Pending'}}",
		"['x','0/2','Pending','0','5m','<none>','<none>','<none>','<none>']" },
	{ "running", KIND_POD,
		"{" CREATED ",'spec':{" TWO ",'nodeName':'n'},'status':{'phase':'Running','podIP':'10.0.0.1','podIPs':[{'ip':'10.0.0.1'}],"
		"'containerStatuses':[" RUN("true") "," RUN("false") "]}}",
		"['x','1/2','Running','0','5m','10.0.0.1','n','<none>','<none>']" },
	{ "waiting", KIND_POD,
		"{" CREATED ",'spec':{" TWO "},'status':{'phase':'Running','containerStatuses':[{'restartCount':4,'state':{'waiting':{'reason':"
		"'CrashLoopBackOff'}},'lastState':{'terminated':{'finishedAt':'2026-01-01T00:04:00Z'}}}," RUN("true") "]}}",
		"['x','1/2','CrashLoopBackOff','4 (60s ago)','5m','<none>','<none>','<none>','<none>']" },
	{ "exit code", KIND_POD,
		"{" CREATED ",'spec':{" TWO "},'status':{'phase':'Failed','containerStatuses':[{'state':{'terminated':{'exitCode':3}}}]}}",
		"['x','0/2','ExitCode:3','0','5m','<none>','<none>','<none>','<none>']" },
	{ "signal", KIND_POD,
		"{" CREATED ",'spec':{" TWO "},'status':{'phase':'Failed','containerStatuses':[{'state':{'terminated':{'signal':9}}}]}}",
		"['x','0/2','Signal:9','0','5m','<none>','<none>','<none>','<none>']" },
	{ "completed", KIND_POD,
		"{" CREATED ",'spec':{'containers':[{}]},'status':{'phase':'Succeeded','containerStatuses':[{'state':{'terminated':{'reason':"
		"'Completed','exitCode':0}}}]}}",
		"['x','0/1','Completed','0','5m','<none>','<none>','<none>','<none>']" },
	{ "one completed, one runs, not ready", KIND_POD,
		"{" CREATED ",'spec':{" TWO "},'status':{'phase':'Running','containerStatuses':[{'state':{'terminated':{'reason':'Completed'}}},"
		RUN("true") "]}}",
		"['x','1/2','NotReady','0','5m','<none>','<none>','<none>','<none>']" },
	{ "init running", KIND_POD,
		"{" CREATED ",'spec':{'initContainers':[{'name':'i'},{'name':'j'}]," TWO "},'status':{'phase':'Pending','initContainerStatuses':[{"
		"'name':'i','state':{'terminated':{'exitCode':0}}},{'name':'j','state':{'running':{}}}]}}",
		"['x','0/2','Init:1/2','0','5m','<none>','<none>','<none>','<none>']" },
	{ "init fails", KIND_POD,
		"{" CREATED ",'spec':{'initContainers':[{'name':'i'}]," TWO "},'status':{'phase':'Pending','initContainerStatuses':[{'name':'i',"
		"'restartCount':2,'state':{'waiting':{'reason':'CrashLoopBackOff'}}}]}}",
		"['x','0/2','Init:CrashLoopBackOff','2','5m','<none>','<none>','<none>','<none>']" },
	{ "init exit code", KIND_POD,
		"{" CREATED ",'spec':{'initContainers':[{'name':'i'}]," TWO "},'status':{'phase':'Pending','initContainerStatuses':[{'name':'i',"
		"'state':{'terminated':{'exitCode':1}}}]}}",
		"['x','0/2','Init:ExitCode:1','0','5m','<none>','<none>','<none>','<none>']" },
	{ "sidecar counts", KIND_POD,
		"{" CREATED ",'spec':{'initContainers':[{'name':'s','restartPolicy':'Always'}],'containers':[{'name':'a'}]},'status':{'phase':"
		"'Running','initContainerStatuses':[{'name':'s','started':true,'ready':true,'state':{'running':{}}}],'containerStatuses':[" RUN(
			"true") "]}}",
		"['x','2/2','Running','0','5m','<none>','<none>','<none>','<none>']" },
	{ "terminating", KIND_POD,
		"{'metadata':{'name':'x','creationTimestamp':'2026-01-01T00:00:00Z','deletionTimestamp':'2026-01-01T00:06:00Z'},'spec':{" TWO
		"},'status':{'phase':'Running'}}",
		"['x','0/2','Terminating','0','5m','<none>','<none>','<none>','<none>']" },
	{ "evicted", KIND_POD, "{" CREATED ",'spec':{" TWO "},'status':{'phase':'Failed','reason':'Evicted'}}",
		"['x','0/2','Evicted','0','5m','<none>','<none>','<none>','<none>']" },
	{ "service", KIND_SERVICE,
		"{" CREATED ",'spec':{'type':'NodePort','clusterIP':'10.96.0.2','ports':[{'port':80,'nodePort':30080,'protocol':'TCP'},{'port':53,"
		"'protocol':'UDP'}],'selector':{'a':'b','c':'d'}}}",
		"['x','NodePort','10.96.0.2','<none>','80:30080/TCP,53/UDP','5m','a=b,c=d']" },
	{ "external name", KIND_SERVICE, "{" CREATED ",'spec':{'type':'ExternalName','externalName':'example.org'}}",
		"['x','ExternalName','<none>','example.org','<none>','5m','<none>']" },
	{ "load balancer", KIND_SERVICE, "{" CREATED ",'spec':{'type':'LoadBalancer','clusterIP':'10.96.0.2','ports':[{'port':1}]}}",
		"['x','LoadBalancer','10.96.0.2','<pending>','1/TCP','5m','<none>']" },
	{ "node", KIND_NODE,
		"{'metadata':{'name':'n','creationTimestamp':'2026-01-01T00:00:00Z','labels':{'node-role.kubernetes.io/edge':''}},'spec':{"
		"'unschedulable':true},'status':{'conditions':[{'type':'Ready','status':'True'}],'addresses':[{'type':'InternalIP','address':"
		"'10.0.0.9'}],'nodeInfo':{'kubeletVersion':'v1','osImage':'Debian','kernelVersion':'6','containerRuntimeVersion':'r://1'}}}",
		"['n','Ready,SchedulingDisabled','edge','5m','v1','10.0.0.9','<none>','Debian','6','r://1']" },
	{ "config map", KIND_CONFIG_MAP, "{" CREATED ",'data':{'a':'1'},'binaryData':{'b':'AA=='}}", "['x',2,'5m']" },
	{ "secret", KIND_SECRET, "{" CREATED ",'type':'Opaque','data':{'a':''}}", "['x','Opaque',1,'5m']" },
	{ "namespace", KIND_NAMESPACE, "{" CREATED ",'status':{'phase':'Active'}}", "['x','Active','5m']" },
	{ "slice", KIND_ENDPOINT_SLICE,
		"{" CREATED ",'addressType':'IPv4','ports':[{'port':80}],'endpoints':[{'addresses':['1.1.1.1']},{'addresses':['1.1.1.2']},{"
		"'addresses':['1.1.1.3']},{'addresses':['1.1.1.4']}]}",
		"['x','IPv4','80','1.1.1.1,1.1.1.2,1.1.1.3 + 1 more...','5m']" },
	{ "empty slice", KIND_ENDPOINT_SLICE, "{" CREATED ",'addressType':'IPv4'}", "['x','IPv4','<unset>','<unset>','5m']" },
	{ "event", KIND_EVENT,
		"{'metadata':{'name':'e'},'type':'Normal','reason':'Pulled','message':'done\\n','count':3,'firstTimestamp':'2026-01-01T00:00:00Z',"
		"'lastTimestamp':'2026-01-01T00:04:00Z','involvedObject':{'kind':'Pod','name':'x','fieldPath':'f'},'source':{'component':'kubelet',"
		"'host':'n'}}",
		"['60s','Normal','Pulled','pod/x','f','kubelet, n','done','5m',3,'e']" },
	{ "no times", KIND_CONFIG_MAP, "{'metadata':{'name':'x'}}", "['x',0,'<unknown>']" },
	{ "odd", KIND_POD, "{'metadata':{'name':'x'},'spec':[],'status':{'containerStatuses':[1,[]],'initContainerStatuses':{}}}",
		"['x','0/0','Unknown','0','<unknown>','<none>','<none>','<none>','<none>']" },
};

START_TEST(cells_case)
{
	_cleanup_json_ json_t *tree = quoted(cases[_i].tree);
	int64_t now;

	ck_assert_int_eq(time_parse("2026-01-01T00:05:00Z", &now), 0);
	_cleanup_json_ json_t *row = table_row(cases[_i].kind, tree, now, TABLE_METADATA);
	_cleanup_json_ json_t *columns = table_columns(cases[_i].kind);

	assert_json_eq(json_object_get(row, "cells"), cases[_i].cells);
	ck_assert_msg(json_array_size(columns) == json_array_size(json_object_get(row, "cells")), "%s", cases[_i].name);
	ck_assert_str_eq(json_str_at(row, "object.kind", ""), "PartialObjectMetadata");
}
END_TEST

START_TEST(includes)
{
	_cleanup_json_ json_t *tree = quoted("{'kind':'ConfigMap','metadata':{'name':'x'},'data':{}}");
	_cleanup_json_ json_t *whole = table_row(KIND_CONFIG_MAP, tree, 0, TABLE_OBJECT);
	_cleanup_json_ json_t *none = table_row(KIND_CONFIG_MAP, tree, 0, TABLE_NONE);

	ck_assert_str_eq(json_str_at(whole, "object.kind", ""), "ConfigMap");
	ck_assert(json_is_null(json_object_get(none, "object")));
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("table");

	tcase_add_loop_test(t, cells_case, 0, ARRAY_LEN(cases));
	tcase_add_test(t, includes);
	return run_case(t);
}

/* validate_test.c - purpose: defaults and validation of objects, by table. */
#include "kubelet-lite/store/defaults.h"
#include "kubelet-lite/store/validate.h"

#include "tests/unit/quotes.h"

#define META "'metadata':{'name':'x','namespace':'default'}"
#define POD(spec) "{" META ",'spec':{" spec "}}"
#define ONE(container) POD("'containers':[{'name':'c','image':'i'" container "}]")

static const struct {
	enum object_kind kind;
	const char *tree;
	const char *want; /* one of the causes; NULL: valid */
} cases[] = {
	{ KIND_POD, ONE(""), NULL },
	{ KIND_POD, "{" META "}", "spec: Required value" },
	{ KIND_POD, POD("'containers':[]"), "spec.containers: Required value" },
	{ KIND_POD, "{'metadata':{'namespace':'default'},'spec':{'containers':[{'name':'c','image':'i'}]}}",
		"metadata.name: Required value: name or generateName is required" },
	{ KIND_POD, "{'metadata':{'name':'A','namespace':'default'},'spec':{'containers':[{'name':'c','image':'i'}]}}",
		"metadata.name: Invalid value: \"A\": a lowercase RFC 1123 subdomain must" },
	{ KIND_POD, "{'metadata':{'name':'a.b-c','namespace':'de.f'},'spec':{'containers':[{'name':'c','image':'i'}]}}",
		"metadata.namespace: Invalid value: \"de.f\": must not contain dots" },
	{ KIND_POD, "{'metadata':{'name':'x','namespace':'d','labels':{'a b':'c'}},'spec':{'containers':[{'name':'c','image':'i'}]}}",
		"metadata.labels: Invalid value: \"a b\"" },
	{ KIND_POD, "{'metadata':{'name':'x','namespace':'d','labels':{'a':'-c'}},'spec':{'containers':[{'name':'c','image':'i'}]}}",
		"metadata.labels[a]: Invalid value: \"-c\"" },
	{ KIND_POD, POD("'containers':[{'name':'c'}]"), "spec.containers[0].image: Required value" },
	{ KIND_POD, POD("'containers':[{'image':'c'}]"), "spec.containers[0].name: Required value" },
	{ KIND_POD, POD("'containers':[{'name':'a_b','image':'i'}]"), "spec.containers[0].name: Invalid value: \"a_b\"" },
	{ KIND_POD, POD("'containers':[{'name':'c','image':'i'},{'name':'c','image':'i'}]"),
		"spec.containers[1].name: Duplicate value: \"c\"" },
	{ KIND_POD, POD("'initContainers':[{'name':'c','image':'i'}],'containers':[{'name':'c','image':'i'}]"),
		"spec.containers[0].name: Duplicate value: \"c\"" },
	{ KIND_POD, ONE(",'imagePullPolicy':'Sometimes'"),
		"spec.containers[0].imagePullPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"IfNotPresent\", "
		"\"Never\"" },
	{ KIND_POD, POD("'restartPolicy':'Maybe','containers':[{'name':'c','image':'i'}]"), "spec.restartPolicy: Unsupported value" },
	{ KIND_POD, ONE(",'ports':[{'containerPort':70000}]"),
		"spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive" },
	{ KIND_POD, ONE(",'ports':[{'containerPort':80,'protocol':'tcp'}]"), "spec.containers[0].ports[0].protocol: Unsupported value" },
	{ KIND_POD, ONE(",'ports':[{'containerPort':80,'name':'a'},{'containerPort':81,'name':'a'}]"),
		"spec.containers[0].ports[1].name: Duplicate value: \"a\"" },
	{ KIND_POD, ONE(",'ports':[{'containerPort':80,'name':'UPPER'}]"), "spec.containers[0].ports[0].name: Invalid value" },
	{ KIND_POD, ONE(",'ports':[{'containerPort':'80'}]"),
		"spec.containers[0].ports[0].containerPort: Invalid type: expected integer, got string" },
	{ KIND_POD, ONE(",'resources':{'limits':{'cpu':'1x'}}"), "spec.containers[0].resources.limits[cpu]: Invalid value: \"1x\": must be a quantity" },
	{ KIND_POD, ONE(",'resources':{'limits':{'cpu':'-1'}}"),
		"spec.containers[0].resources.limits[cpu]: Invalid value: \"-1\": must be greater than or equal to 0" },
	{ KIND_POD, ONE(",'resources':{'limits':{'cpu':2,'memory':'64Mi'}}"), NULL },
	{ KIND_POD, ONE(",'env':[{'name':'A=B'}]"), "spec.containers[0].env[0].name: Invalid value: \"A=B\"" },
	{ KIND_POD, ONE(",'env':[{'name':'A','valueFrom':{}}]"), "spec.containers[0].env[0].valueFrom: Invalid value: must specify one of" },
	{ KIND_POD, ONE(",'env':[{'name':'A','valueFrom':{'configMapKeyRef':{'name':'m'}}}]"),
		"spec.containers[0].env[0].valueFrom.configMapKeyRef.key: Required value" },
	{ KIND_POD, ONE(",'envFrom':[{}]"), "spec.containers[0].envFrom[0]: Invalid value: must specify one of" },
	{ KIND_POD, ONE(",'volumeMounts':[{'name':'v','mountPath':'/v'}]"), "spec.containers[0].volumeMounts[0].name: Not found: \"v\"" },
	{ KIND_POD, POD("'volumes':[{'name':'v'}],'containers':[{'name':'c','image':'i','volumeMounts':[{'name':'v','mountPath':'/"
			"v','subPath':'../x'}]}]"),
		"spec.containers[0].volumeMounts[0].subPath: Invalid value: \"../x\"" },
	{ KIND_POD, POD("'volumes':[{'name':'v','hostPath':{'path':'/a'},'emptyDir':{}}],'containers':[{'name':'c','image':'i'}]"),
		"spec.volumes[0]: Forbidden: may not specify more than 1 volume type" },
	{ KIND_POD, POD("'volumes':[{'name':'v','hostPath':{'path':''}}],'containers':[{'name':'c','image':'i'}]"),
		"spec.volumes[0].hostPath.path: Required value" },
	{ KIND_POD, POD("'volumes':[{'name':'v'},{'name':'v'}],'containers':[{'name':'c','image':'i'}]"),
		"spec.volumes[1].name: Duplicate value: \"v\"" },
	{ KIND_POD, ONE(",'livenessProbe':{}"), "spec.containers[0].livenessProbe: Required value: must specify a handler type" },
	{ KIND_POD, ONE(",'livenessProbe':{'exec':{'command':['a']},'tcpSocket':{'port':1}}"),
		"spec.containers[0].livenessProbe: Forbidden: may not specify more than 1 handler type" },
	{ KIND_POD, ONE(",'livenessProbe':{'tcpSocket':{'port':1},'successThreshold':2}"),
		"spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be between 1 and 1" },
	{ KIND_POD, ONE(",'readinessProbe':{'httpGet':{'port':'web'},'successThreshold':2}"), NULL },
	{ KIND_POD, ONE(",'lifecycle':{'preStop':{'exec':{'command':[]}}}"),
		"spec.containers[0].lifecycle.preStop.exec.command: Required value" },
	{ KIND_POD, POD("'initContainers':[{'name':'i','image':'i','readinessProbe':{'tcpSocket':{'port':1}}}],'containers':[{'name':"
			"'c','image':'i'}]"),
		"spec.initContainers[0].readinessProbe: Forbidden" },
	{ KIND_POD, POD("'terminationGracePeriodSeconds':-1,'containers':[{'name':'c','image':'i'}]"),
		"spec.terminationGracePeriodSeconds: Invalid value: -1: must be greater than or equal to 0" },
	{ KIND_POD, POD("'dnsPolicy':'None','containers':[{'name':'c','image':'i'}]"), "spec.dnsConfig.nameservers: Required value" },
	{ KIND_SERVICE, "{" META ",'spec':{'ports':[{'port':80}]}}", NULL },
	{ KIND_SERVICE, "{" META ",'spec':{}}", "spec.ports: Required value" },
	{ KIND_SERVICE, "{" META ",'spec':{'clusterIP':'None'}}", NULL },
	{ KIND_SERVICE, "{" META ",'spec':{'ports':[{'port':80},{'port':81}]}}", "spec.ports[0].name: Required value" },
	{ KIND_SERVICE, "{" META ",'spec':{'ports':[{'name':'a','port':80},{'name':'b','port':80}]}}", "spec.ports[1]: Duplicate value" },
	{ KIND_SERVICE, "{" META ",'spec':{'ports':[{'port':0}]}}", "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535" },
	{ KIND_SERVICE, "{" META ",'spec':{'type':'Node','ports':[{'port':1}]}}", "spec.type: Unsupported value: \"Node\"" },
	{ KIND_SERVICE, "{" META ",'spec':{'clusterIP':'1.2.3','ports':[{'port':1}]}}", "spec.clusterIP: Invalid value: \"1.2.3\"" },
	{ KIND_SERVICE, "{" META ",'spec':{'type':'NodePort','clusterIP':'None','ports':[{'port':1}]}}", "spec.clusterIP: Invalid value" },
	{ KIND_SERVICE, "{" META ",'spec':{'type':'ExternalName'}}", "spec.externalName: Invalid value" },
	{ KIND_SERVICE, "{" META ",'spec':{'ports':[{'port':1}],'loadBalancerSourceRanges':['10.0.0.0/33']}}",
		"spec.loadBalancerSourceRanges[0]: Invalid value" },
	{ KIND_SERVICE, "{'metadata':{'name':'1x','namespace':'default'},'spec':{'ports':[{'port':1}]}}", "metadata.name: Invalid value: \"1x\"" },
	{ KIND_CONFIG_MAP, "{" META ",'data':{'a':'b'},'binaryData':{'c':'AAA='}}", NULL },
	{ KIND_CONFIG_MAP, "{" META ",'data':{'a/b':'b'}}", "data[a/b]: Invalid value" },
	{ KIND_CONFIG_MAP, "{" META ",'data':{'..':'b'}}", "data[..]: Invalid value" },
	{ KIND_CONFIG_MAP, "{" META ",'data':{'a':'b'},'binaryData':{'a':'AAA='}}", "binaryData[a]: Invalid value" },
	{ KIND_SECRET, "{" META ",'data':{'a':'not base64!'}}", "data[a]: Invalid value: must be base64" },
	{ KIND_SECRET, "{" META ",'stringData':{'a':'plain'}}", NULL },
	{ KIND_NAMESPACE, "{'metadata':{'name':'x'}}", NULL },
	{ KIND_NAMESPACE, "{'metadata':{'name':'x','namespace':'y'}}", "metadata.namespace: Forbidden" },
	{ KIND_ENDPOINT_SLICE, "{" META ",'addressType':'IPv4','endpoints':[{'addresses':['10.0.0.1']}],'ports':[{'port':80}]}", NULL },
	{ KIND_ENDPOINT_SLICE, "{" META ",'endpoints':[]}", "addressType: Required value" },
	{ KIND_ENDPOINT_SLICE, "{" META ",'addressType':'IPv4','endpoints':[{'addresses':['fd00::1']}]}",
		"endpoints[0].addresses[0]: Invalid value: \"fd00::1\"" },
};

START_TEST(validate_case)
{
	_cleanup_json_ json_t *tree = quoted(cases[_i].tree);
	_cleanup_(causes_done) struct causes causes = CAUSES_INIT;

	defaults_apply(cases[_i].kind, tree);
	validate_object(cases[_i].kind, tree, &causes);
	_cleanup_free_ char *text = causes_text(&causes);

	if (!cases[_i].want)
		ck_assert_msg(causes.n == 0, "%s: %s", cases[_i].tree, text);
	else
		ck_assert_msg(strstr(text, cases[_i].want), "%s:\nwant %s\ngot  %s", cases[_i].tree, cases[_i].want, text);
}
END_TEST

static const struct {
	const char *image, *policy;
} pulls[] = {
	{ "a", "Always" }, { "a:latest", "Always" }, { "a:1", "IfNotPresent" }, { "h:5000/a", "Always" },
	{ "h:5000/a:1", "IfNotPresent" }, { "a@sha256:00", "IfNotPresent" }, { "h:5000/a@sha256:00", "IfNotPresent" },
};

START_TEST(pull_policy_case)
{
	ck_assert_str_eq(defaults_pull_policy(pulls[_i].image), pulls[_i].policy);
}
END_TEST

START_TEST(pod_defaults)
{
	_cleanup_json_ json_t *tree = quoted(
		"{'spec':{'hostNetwork':true,'containers':[{'name':'c','image':'i:1','ports':[{'containerPort':80}],'resources':{'limits':"
		"{'cpu':1}},'livenessProbe':{'httpGet':{'port':80}}}],'volumes':[{'name':'a'},{'name':'b','secret':{'secretName':'s'}}]}}");

	defaults_apply(KIND_POD, tree);
	assert_json_eq(tree,
		"{'spec':{'hostNetwork':true,'restartPolicy':'Always','terminationGracePeriodSeconds':30,'dnsPolicy':'ClusterFirst',"
		"'securityContext':{},'schedulerName':'default-scheduler','enableServiceLinks':true,'priority':0,'containers':[{'name':'c',"
		"'image':'i:1','imagePullPolicy':'IfNotPresent','terminationMessagePath':'/dev/termination-log',"
		"'terminationMessagePolicy':'File','ports':[{'containerPort':80,'hostPort':80,'protocol':'TCP'}],'resources':{'limits':{"
		"'cpu':1},'requests':{'cpu':1}},'livenessProbe':{'httpGet':{'port':80,'path':'/','scheme':'HTTP'},'timeoutSeconds':1,"
		"'periodSeconds':10,'successThreshold':1,'failureThreshold':3}}],'volumes':[{'name':'a','emptyDir':{}},{'name':'b','secret':"
		"{'secretName':'s','defaultMode':420}}]}}");
}
END_TEST

START_TEST(secret_defaults)
{
	_cleanup_json_ json_t *tree = quoted("{'data':{'a':'MQ=='},'stringData':{'b':'2'}}");

	defaults_apply(KIND_SECRET, tree);
	assert_json_eq(tree, "{'type':'Opaque','data':{'a':'MQ==','b':'Mg=='}}");
}
END_TEST

#define SPEC(more) "{'spec':{'containers':[{'name':'c','image':'a:1'}]" more "}}"
#define FIELDS "spec: Forbidden: pod updates may not change fields other than"

static const struct {
	const char *old, *tree, *want; /* NULL: allowed */
} updates[] = {
	{ SPEC(""), SPEC(""), NULL },
	{ SPEC(""), "{'spec':{'containers':[{'name':'c','image':'b:2'}]}}", NULL },
	{ SPEC(",'initContainers':[{'name':'i','image':'a:1'}]"), SPEC(",'initContainers':[{'name':'i','image':'b:1'}]"), NULL },
	{ SPEC(",'hostNetwork':false"), SPEC(""), NULL },
	{ SPEC(""), SPEC(",'hostNetwork':true"), FIELDS },
	{ SPEC(""), "{'spec':{'containers':[{'name':'c','image':'a:1','command':['x']}]}}", FIELDS },
	{ SPEC(""), "{'spec':{'containers':[{'name':'c','image':'a:1'},{'name':'d','image':'a:1'}]}}",
		"spec.containers: Forbidden: pod updates may not add or remove containers" },
	{ SPEC(",'initContainers':[{'name':'i','image':'a:1'}]"), SPEC(""), "spec.initContainers: Forbidden" },
	{ SPEC(""), SPEC(",'activeDeadlineSeconds':9"), NULL },
	{ SPEC(",'activeDeadlineSeconds':9"), SPEC(",'activeDeadlineSeconds':8"), NULL },
	{ SPEC(",'activeDeadlineSeconds':9"), SPEC(",'activeDeadlineSeconds':10"), FIELDS },
	{ SPEC(",'activeDeadlineSeconds':9"), SPEC(""), FIELDS },
	{ SPEC(",'tolerations':[{'key':'a','operator':'Exists'}]"),
		SPEC(",'tolerations':[{'key':'b','operator':'Exists'},{'key':'a','operator':'Exists','tolerationSeconds':5}]"), NULL },
	{ SPEC(",'tolerations':[{'key':'a','operator':'Exists'}]"), SPEC(",'tolerations':[{'key':'b','operator':'Exists'}]"), FIELDS },
	{ SPEC(",'terminationGracePeriodSeconds':-1"), SPEC(",'terminationGracePeriodSeconds':1"), NULL },
	{ SPEC(",'terminationGracePeriodSeconds':30"), SPEC(",'terminationGracePeriodSeconds':1"), FIELDS },
};

START_TEST(update_case)
{
	_cleanup_json_ json_t *old = quoted(updates[_i].old), *tree = quoted(updates[_i].tree);
	_cleanup_(causes_done) struct causes causes = CAUSES_INIT;

	defaults_apply(KIND_POD, old);
	defaults_apply(KIND_POD, tree);
	validate_pod_update(tree, old, &causes);
	_cleanup_free_ char *text = causes_text(&causes);

	if (!updates[_i].want)
		ck_assert_msg(causes.n == 0, "%s: %s", updates[_i].tree, text);
	else
		ck_assert_msg(strstr(text, updates[_i].want), "%s:\nwant %s\ngot  %s", updates[_i].tree, updates[_i].want, text);
}
END_TEST

/* Whatever is thrown at them: no crash. */
static const char *const odd[] = { "{}", "{'spec':1}", "{'spec':[]}", "{'spec':{'containers':[1,[],null,'x']}}",
	"{'spec':{'containers':[{'ports':{},'env':[1],'resources':[],'livenessProbe':'x','lifecycle':3}],'volumes':[1,{}]}}",
	"{'spec':{'ports':[1,null],'selector':[]},'data':[],'stringData':'x','endpoints':[1],'ports':[[]]}", "{'metadata':[]}",
	"{'metadata':{'name':1,'labels':[],'annotations':'x'}}" };

START_TEST(odd_case)
{
	for (int kind = 0; kind < KIND_COUNT; kind++) {
		_cleanup_json_ json_t *tree = quoted(odd[_i]);
		_cleanup_(causes_done) struct causes causes = CAUSES_INIT;

		defaults_apply((enum object_kind)kind, tree);
		validate_object((enum object_kind)kind, tree, &causes);
		ck_assert_uint_gt(causes.n, 0);
	}
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("validate");

	tcase_add_loop_test(t, validate_case, 0, ARRAY_LEN(cases));
	tcase_add_loop_test(t, update_case, 0, ARRAY_LEN(updates));
	tcase_add_loop_test(t, pull_policy_case, 0, ARRAY_LEN(pulls));
	tcase_add_test(t, pod_defaults);
	tcase_add_test(t, secret_defaults);
	tcase_add_loop_test(t, odd_case, 0, ARRAY_LEN(odd));
	return run_case(t);
}

/* pod_test.c - purpose: decoding pods: defaults, and errors that name the field. */
#include "kubelet-lite/model/pod.h"
#include "tests/unit/quotes.h"

#define C "'containers':[{'name':'c','image':'i'}]"

static const struct {
	const char *name, *spec, *error;
} bad[] = {
	{ "no container", "{}", "spec.containers: must be a list of at least one container" },
	{ "wrong type", "{'containers':{}}", "spec.containers: must be a list" },
	{ "a container without a name", "{'containers':[{'image':'i'}]}", "spec.containers[0].name" },
	{ "names that would leave a directory", "{'containers':[{'name':'a/b'}]}", "spec.containers[0].name" },
	{ "two of one name", "{'containers':[{'name':'c'},{'name':'c'}]}", "names that differ" },
	{ "an init container of the same name", "{'initContainers':[{'name':'c'}]," C "}", "names that differ" },
	{ "restart policy", "{'restartPolicy':'Sometimes'," C "}", "spec.restartPolicy: must be one of Always OnFailure Never, not \"Sometimes\"" },
	{ "a quantity", "{'containers':[{'name':'c','resources':{'limits':{'memory':'64MB'}}}]}", "spec.containers[0].resources.memory: must be a quantity" },
	{ "a port", "{'containers':[{'name':'c','ports':[{'containerPort':70000}]}]}", "spec.containers[0].ports[0].containerPort: must be an integer from 1 to 65535" },
	{ "a boolean", "{'hostNetwork':'yes'," C "}", "spec.hostNetwork: must be true or false" },
	{ "a probe without a check", "{'containers':[{'name':'c','livenessProbe':{'periodSeconds':1}}]}", "spec.containers[0].livenessProbe: must be an exec" },
	{ "a mount without its volume", "{'containers':[{'name':'c','volumeMounts':[{'name':'v','mountPath':'/v'}]}]}", "c: must be mounting volumes" },
	{ "an item that leaves the volume", "{'volumes':[{'name':'v','configMap':{'name':'m','items':[{'key':'k','path':'../x'}]}}]," C "}",
		"spec.volumes[0].configMap.items[0].path" },
	{ "a relative hostPath", "{'volumes':[{'name':'v','hostPath':{'path':'x'}}]," C "}", "spec.volumes[0].hostPath.path: must be an absolute path" },
};

START_TEST(bad_case)
{
	_cleanup_free_ char *text = xasprintf("{'metadata':{'name':'p','uid':'u'},'spec':%s}", bad[_i].spec);
	_cleanup_json_ json_t *tree = quoted(text);
	struct error err = ERROR_INIT;
	struct pod *pod = NULL;
	int r = pod_decode(tree, &pod, &err);

	ck_assert_msg(r < 0 && strstr(err.text, bad[_i].error), "%s: %d %s", bad[_i].name, r, err.text);
	ck_assert_ptr_null(pod);
}
END_TEST

START_TEST(defaults)
{
	_cleanup_json_ json_t *tree = quoted("{'metadata':{'name':'p','uid':'u'},'spec':{'containers':[{'name':'c','image':'r.io:5/i','livenessProbe':{'tcpSocket':{'port':'web'}},"
					     "'ports':[{'name':'web','containerPort':80}]},{'name':'d','image':'i:1','imagePullPolicy':'Never'},{'name':'e','image':'i@sha256:00'}],"
					     "'volumes':[{'name':'v'}]}}");
	struct pod *pod;

	ck_assert_int_eq(pod_decode(tree, &pod, NULL), 0);
	ck_assert_str_eq(pod->ns, "default");
	ck_assert_int_eq(pod->restart, RESTART_ALWAYS);
	ck_assert_int_eq(pod->grace_seconds, 30);
	ck_assert(pod->service_links);
	ck_assert_int_eq(pod->containers[0].pull, PULL_ALWAYS);
	ck_assert_int_eq(pod->containers[1].pull, PULL_NEVER);
	ck_assert_int_eq(pod->containers[2].pull, PULL_IF_NOT_PRESENT);
	ck_assert_int_eq(pod->containers[0].probes[PROBE_LIVENESS].period_seconds, 10);
	ck_assert_int_eq(container_port_number(&pod->containers[0], &pod->containers[0].probes[PROBE_LIVENESS].handler.port), 80);
	ck_assert_int_eq(pod->volumes[0].kind, VOLUME_EMPTY_DIR);
	ck_assert_ptr_null(pod->unsupported);
	pod_free(pod);
}
END_TEST

START_TEST(uses)
{
	_cleanup_json_ json_t *tree = quoted("{'metadata':{'name':'p','uid':'u'},'spec':{'imagePullSecrets':[{'name':'pull'}],'containers':[{'name':'c','image':'i','env':[{'name':'A','valueFrom':{'secretKeyRef':{'name':'s1','key':'k'}}}],"
					     "'envFrom':[{'configMapRef':{'name':'m1'}}]}],'volumes':[{'name':'v','projected':{'sources':[{'secret':{'name':'s2'}}]}},{'name':'w','configMap':{'name':'m2'}}]}}");
	struct pod *pod;

	ck_assert_int_eq(pod_decode(tree, &pod, NULL), 0);
	ck_assert(pod_uses(pod, true, "s1") && pod_uses(pod, true, "s2") && pod_uses(pod, true, "pull"));
	ck_assert(pod_uses(pod, false, "m1") && pod_uses(pod, false, "m2"));
	ck_assert(!pod_uses(pod, false, "s1") && !pod_uses(pod, true, "m1") && !pod_uses(pod, true, "x"));
	pod_free(pod);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("pod");

	tcase_add_loop_test(t, bad_case, 0, ARRAY_LEN(bad));
	tcase_add_test(t, defaults);
	tcase_add_test(t, uses);
	return run_case(t);
}

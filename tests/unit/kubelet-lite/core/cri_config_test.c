/* cri_config_test.c - purpose: what CRI gets for a pod. */
#include "pods.h"

#include "kubelet-lite/core/cri_config.h"

static const struct cri_node node = { .pod_logs_dir = "/logs", .root_dir = "/root", .cgroup_root = "/", .cgroups_per_qos = true,
	.memory = (int64_t)1 << 34 };

#define SPEC                                                                                                           \
	"{'hostname':'web','shareProcessNamespace':true,'securityContext':{'fsGroup':7,'supplementalGroups':[8,9],'runAsUser':5,'sysctls':[{'name':'net/x','value':'1'}]}," \
	"'initContainers':[{'name':'i','image':'i','ports':[{'containerPort':1,'hostPort':1}]}],"                          \
	"'containers':[{'name':'c','image':'img:1','command':['run','$(A)'],'args':['$(NO)'],'workingDir':'/w','tty':true," \
	"'ports':[{'containerPort':80,'hostPort':8080,'protocol':'UDP','hostIP':'1.2.3.4'}],"                               \
	"'resources':{'limits':{'cpu':'500m','memory':'64Mi'}},"                                                           \
	"'lifecycle':{'preStop':{'exec':{'command':['bye']}},'stopSignal':'SIGUSR1'},"                                      \
	"'securityContext':{'capabilities':{'add':['NET_ADMIN'],'drop':['ALL']},'readOnlyRootFilesystem':true,'allowPrivilegeEscalation':false,'runAsGroup':6,'seccompProfile':{'type':'Localhost','localhostProfile':'p.json'}}}]}"

START_TEST(sandbox)
{
	struct pod *pod = pod_make(SPEC);
	struct dns_config dns = { 0 };
	strv_add(&dns.servers, "10.96.0.10");
	CRI(PodSandboxConfig) *c = cri_sandbox_config(pod, 3, "web", &dns, &node);
	_cleanup_json_ json_t *json = message_to_json(c, MESSAGE_JSON_SHORT);

	assert_json_eq(json,
		"{'metadata':{'name':'p','uid':'u1','namespace':'ns','attempt':3},'hostname':'web','log_directory':'/logs/ns_p_u1',"
		"'dns_config':{'servers':['10.96.0.10']},'port_mappings':[{'protocol':'UDP','container_port':80,'host_port':8080,'host_ip':'1.2.3.4'}],"
		"'labels':{'app':'web','io.kubernetes.pod.name':'p','io.kubernetes.pod.namespace':'ns','io.kubernetes.pod.uid':'u1'},"
		"'annotations':{'note':'a \\\\ b','io.kubernetes.pod.terminationGracePeriod':'30'},"
		"'linux':{'cgroup_parent':'/kubepods/burstable/podu1','security_context':{'namespace_options':{},'run_as_user':{'value':5},"
		"'supplemental_groups':[7,8,9],'seccomp':{}},'sysctls':{'net.x':'1'},'overhead':{},"
		"'resources':{'cpu_period':100000,'cpu_shares':512}}}");
	message_free(c);
	dns_config_done(&dns);
	pod_free(pod);
}
END_TEST

START_TEST(container)
{
	struct pod *pod = pod_make(SPEC);
	struct env env = { 0 };
	struct cri_mount mount = { (char *)"data", (char *)"/host/data", true, true, "HostToContainer" };
	const struct container *spec = &pod->containers[1];

	strv_add(&env.names, "A");
	strv_add(&env.values, "x");
	map_put(&env.index, "A", (void *)1);
	struct cri_container make = { .restarts = 2, .backoff_ns = 20 * S_NS, .image_ref = "sha256:1", .image_user = "", .env = &env,
		.mounts = &mount, .n_mounts = 1, .message_file = "/root/m" };
	CRI(ContainerConfig) *c = cri_container_config(pod, spec, &make, &node);
	_cleanup_json_ json_t *json = message_to_json(c, MESSAGE_JSON_SHORT);
	_cleanup_free_ char *hash = xasprintf("%x", spec->hash);

	ck_assert_str_eq(json_string_value(json_object_get(json_object_get(json, "annotations"), ANNOTATION_HASH)), hash);
	json_object_del(json_object_get(json, "annotations"), ANNOTATION_HASH);
	json_t *security = json_object_get(json_object_get(json, "linux"), "security_context");
	ck_assert_uint_eq(json_array_size(json_object_get(security, "masked_paths")), 12);
	ck_assert_uint_eq(json_array_size(json_object_get(security, "readonly_paths")), 5);
	json_object_del(security, "masked_paths");
	json_object_del(security, "readonly_paths");
	assert_json_eq(json,
		"{'metadata':{'name':'c','attempt':2},'image':{'image':'sha256:1','user_specified_image':'img:1'},'command':['run','x'],'args':['$(NO)'],"
		"'working_dir':'/w','envs':[{'key':'A','value':'x'}],"
		"'mounts':[{'container_path':'/data','host_path':'/host/data','readonly':true,'propagation':'PROPAGATION_HOST_TO_CONTAINER','recursive_read_only':true}],"
		"'labels':{'io.kubernetes.pod.name':'p','io.kubernetes.pod.namespace':'ns','io.kubernetes.pod.uid':'u1','io.kubernetes.container.name':'c'},"
		"'annotations':{'io.kubernetes.container.restartCount':'2','io.kubernetes.container.terminationMessagePath':'/dev/termination-log',"
		"'io.kubernetes.container.terminationMessagePolicy':'File','io.kubernetes.pod.terminationGracePeriod':'30','io.node-lite.container.backoff':'20000000000',"
		"'io.node-lite.container.terminationMessageFile':'/root/m','io.kubernetes.container.preStopHandler':'{\\\"exec\\\":{\\\"command\\\":[\\\"bye\\\"]}}',"
		"'io.kubernetes.container.ports':'[{\\\"name\\\":\\\"\\\",\\\"hostPort\\\":8080,\\\"containerPort\\\":80,\\\"protocol\\\":\\\"UDP\\\"}]'},"
		"'log_path':'c/2.log','tty':true,'stop_signal':'SIGUSR1',"
		"'linux':{'resources':{'cpu_period':100000,'cpu_quota':50000,'cpu_shares':512,'memory_limit_in_bytes':67108864,'oom_score_adj':997,'memory_swap_limit_in_bytes':67108864},"
		"'security_context':{'capabilities':{'add_capabilities':['NET_ADMIN'],'drop_capabilities':['ALL']},'namespace_options':{},'run_as_user':{'value':5},"
		"'readonly_rootfs':true,'supplemental_groups':[7,8,9],'no_new_privs':true,'run_as_group':{'value':6},'seccomp':{'profile_type':'Localhost','localhost_ref':'/root/seccomp/p.json'}}}}");
	/* The hook in the annotation is read back when the pod has become an orphan. */
	_cleanup_json_ json_t *hook = quoted("{'exec':{'command':['bye']}}");
	struct arena arena = ARENA_INIT;
	struct handler h = handler_decode(&arena, hook);
	ck_assert_int_eq(h.kind, HANDLER_EXEC);
	ck_assert_str_eq(h.command.v[0], "bye");
	arena_done(&arena);
	message_free(c);
	env_done(&env);
	pod_free(pod);
}
END_TEST

static const struct {
	const char *name, *security;
	struct cri_container make;
	const char *error;
} user_cases[] = {
	{ "nothing asked", "", { .image_has_uid = true, .image_user = "" }, NULL },
	{ "root image", "'runAsNonRoot':true", { .image_has_uid = true, .image_user = "" }, "image will run as root" },
	{ "no USER is root", "'runAsNonRoot':true", { .image_user = "" }, "image will run as root" },
	{ "numeric USER", "'runAsNonRoot':true", { .image_has_uid = true, .image_uid = 5, .image_user = "" }, NULL },
	{ "named USER", "'runAsNonRoot':true", { .image_user = "www" }, "image has non-numeric user (www), cannot verify user is non-root" },
	{ "runAsUser 0", "'runAsNonRoot':true,'runAsUser':0", { .image_user = "www" }, "runAsUser breaks non-root policy" },
	{ "runAsUser 1", "'runAsNonRoot':true,'runAsUser':1", { .image_user = "www" }, NULL },
};

START_TEST(user_case)
{
	_cleanup_free_ char *spec =
		xasprintf("{'containers':[{'name':'c','image':'i','securityContext':{%s}}]}", user_cases[_i].security);
	struct pod *pod = pod_make(spec);
	struct error err = ERROR_INIT;
	int r = cri_check_user(pod, &pod->containers[0], &user_cases[_i].make, &err);

	ck_assert_msg((r < 0) == (user_cases[_i].error != NULL), "%s: %s", user_cases[_i].name, err.text);
	if (r < 0)
		ck_assert_msg(strstr(err.text, user_cases[_i].error), "%s: %s", user_cases[_i].name, err.text);
	pod_free(pod);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("cri_config");

	tcase_add_test(t, sandbox);
	tcase_add_test(t, container);
	tcase_add_loop_test(t, user_case, 0, ARRAY_LEN(user_cases));
	return run_case(t);
}

/* plan_test.c - purpose: from CRI configs to launch plans, resources, pod files: by table of JSON texts. */
#include "common/wire/json.h"
#include "runtime-lite/spec/container_plan.h"
#include "runtime-lite/spec/etc_files.h"
#include "runtime-lite/spec/resources.h"
#include "runtime-lite/spec/sandbox_plan.h"

#include <check.h>

static void *parse(const ProtobufCMessageDescriptor *type, const char *text)
{
	_cleanup_json_ json_t *json = NULL;
	struct error err = ERROR_INIT;
	void *message = NULL;

	ck_assert_msg(json_read(text, strlen(text), false, &json, &err) == 0, "%s: %s", text, err.text);
	ck_assert_msg(message_from_json(type, json, &message, &err) == 0, "%s: %s", text, err.text);
	return message;
}

#define POD "{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"uid\":\"u\"}"
#define NS(text) POD ",\"linux\":{\"security_context\":{\"namespace_options\":{" text "}}}}"

static const struct {
	const char *text, *want; /* want NULL: fine */
} pods[] = {
	{ POD "}", NULL },
	{ "{}", "metadata is missing" },
	{ "{\"metadata\":{\"name\":\"\"}}", "metadata.name is empty" },
	{ "{\"metadata\":{\"name\":\"a/b\"}}", "metadata.name \"a/b\" has a '/', space or control character" },
	{ "{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\"}}", "metadata.uid is empty" },
	{ POD ",\"hostname\":\"a b\"}", "hostname \"a b\" may have letters, digits, '-', '.' and '_' only" },
	{ POD ",\"log_directory\":\"logs\"}", "log_directory \"logs\" must be an absolute path" },
	{ POD ",\"port_mappings\":[{\"host_port\":80}]}",
		"port_mappings[0]: host_port 80, container_port 0: must be 1 to 65535" },
	{ POD ",\"port_mappings\":[{\"host_port\":65536,\"container_port\":1}]}",
		"port_mappings[0]: host_port 65536, container_port 1: must be 1 to 65535" },
	{ POD ",\"port_mappings\":[{\"container_port\":80}]}", NULL },
	{ POD ",\"port_mappings\":[{\"protocol\":7,\"container_port\":80}]}", "port_mappings[0]: unknown protocol 7" },
	{ NS("\"network\":\"CONTAINER\""), "namespace_options.network must be POD or NODE" },
	{ NS("\"ipc\":\"TARGET\""), "namespace_options.ipc must be POD or NODE" },
	{ NS("\"pid\":9"), "namespace_options.pid: unknown mode 9" },
	{ NS("\"userns_options\":{\"mode\":\"POD\"}"),
		"namespace_options.userns_options: user namespaces of pods are not supported" },
	{ NS("\"userns_options\":{\"mode\":\"NODE\"}"), NULL },
};

START_TEST(pod_check)
{
	_cleanup_message_ CRI(PodSandboxConfig) *config = parse(&runtime__v1__pod_sandbox_config__descriptor, pods[_i].text);
	struct error err = ERROR_INIT;
	int r = sandbox_config_check(config, &err);

	ck_assert_msg(pods[_i].want ? r < 0 && str_eq(err.text, pods[_i].want) : r == 0, "%s: %s", pods[_i].text, err.text);
}
END_TEST

static struct sandbox_launch *plan_pod(const char *text)
{
	_cleanup_message_ CRI(PodSandboxConfig) *config = parse(&runtime__v1__pod_sandbox_config__descriptor, text);
	struct sandbox_place place = { "id", "/state/id", "/cg/id", true, "/cg/monitors", "node" };
	struct sandbox_launch *launch = NULL;
	struct error err = ERROR_INIT;

	ck_assert_msg(sandbox_plan(config, &place, &launch, &err) == 0, "%s: %s", text, err.text);
	return launch;
}

START_TEST(pod_defaults)
{
	_cleanup_(sandbox_launch_free_p) struct sandbox_launch *s = plan_pod(POD "}");

	ck_assert_int_eq(s->net, LAUNCH_NS_POD);
	ck_assert_int_eq(s->ipc, LAUNCH_NS_POD);
	ck_assert(s->shared_pid && s->shm_bytes == 64 << 20);
	ck_assert_str_eq(s->hostname, "node");
	ck_assert_uint_eq(s->n_sysctls, 2);
}
END_TEST

START_TEST(pod_host_namespaces)
{
	_cleanup_(sandbox_launch_free_p) struct sandbox_launch *s =
		plan_pod(NS("\"network\":\"NODE\",\"ipc\":\"NODE\",\"pid\":\"CONTAINER\""));

	ck_assert_int_eq(s->net, LAUNCH_NS_NODE);
	ck_assert_int_eq(s->ipc, LAUNCH_NS_NODE);
	ck_assert(!s->shared_pid && s->shm_bytes == 0);
	ck_assert_str_eq(s->hostname, "");
	ck_assert_uint_eq(s->n_sysctls, 0);
}
END_TEST

START_TEST(pod_sysctls)
{
	_cleanup_(sandbox_launch_free_p) struct sandbox_launch *s =
		plan_pod(POD ",\"linux\":{\"sysctls\":{\"net/ipv4/ip_unprivileged_port_start\":\"1000\"}}}");

	ck_assert_uint_eq(s->n_sysctls, 2);
	ck_assert_str_eq(s->sysctls[0].name, "net.ipv4.ping_group_range");
	ck_assert_str_eq(s->sysctls[1].value, "1000");
}
END_TEST

#define CON "{\"metadata\":{\"name\":\"c\"},\"image\":{\"image\":\"i\"}"
#define MOUNT(text) CON ",\"mounts\":[{\"container_path\":\"/m\",\"host_path\":\"/h\"}," text "]}"
#define SEC(text) CON ",\"linux\":{\"security_context\":{" text "}}}"

static const struct {
	const char *text, *want;
} containers[] = {
	{ CON "}", NULL },
	{ "{}", "metadata.name is empty" },
	{ "{\"metadata\":{\"name\":\"c\"}}", "image is empty" },
	{ CON ",\"log_path\":\"a/../../b\"}", "log_path \"a/../../b\" has a \"..\" in it" },
	{ CON ",\"log_path\":\"a..b/..c\"}", NULL },
	{ CON ",\"CDI_devices\":[{\"name\":\"v/c=d\"}]}", "unresolvable CDI devices v/c=d: CDI is not supported yet" },
	{ MOUNT("{\"container_path\":\"m\",\"host_path\":\"/h\"}"), "mounts[1]: container_path \"m\" must be an absolute path" },
	{ MOUNT("{\"container_path\":\"//\",\"host_path\":\"/h\"}"), "mounts[1]: container_path \"//\" is the root file system itself" },
	{ MOUNT("{\"container_path\":\"/m\",\"host_path\":\"\"}"), "mounts[1]: host_path \"\" must be an absolute path" },
	{ MOUNT("{\"container_path\":\"/m\",\"host_path\":\"/h\",\"recursive_read_only\":true}"),
		"mounts[1]: recursive_read_only needs readonly" },
	{ MOUNT("{\"container_path\":\"/m\",\"host_path\":\"/h\",\"readonly\":true,\"recursive_read_only\":true,"
		"\"propagation\":\"PROPAGATION_BIDIRECTIONAL\"}"), "mounts[1]: recursive_read_only needs PROPAGATION_PRIVATE" },
	{ MOUNT("{\"container_path\":\"/m\",\"host_path\":\"/h\",\"readonly\":true,\"recursive_read_only\":true}"), NULL },
	{ MOUNT("{\"container_path\":\"/m\",\"host_path\":\"/h\",\"uidMappings\":[{\"length\":1}]}"),
		"mounts[1]: id mappings: user namespaces of pods are not supported" },
};

START_TEST(container_check)
{
	_cleanup_message_ CRI(ContainerConfig) *config =
		parse(&runtime__v1__container_config__descriptor, containers[_i].text);
	struct error err = ERROR_INIT;
	int r = container_config_check(config, &err);

	ck_assert_msg(containers[_i].want ? r < 0 && str_eq(err.text, containers[_i].want) : r == 0, "%s: %s",
		containers[_i].text, err.text);
}
END_TEST

static int plan(const char *text, bool shared_pid, struct launch **ret, struct error *err)
{
	_cleanup_message_ CRI(ContainerConfig) *config = parse(&runtime__v1__container_config__descriptor, text);
	_cleanup_(strv_done) struct strv args = STRV_INIT, env = STRV_INIT, lower = STRV_INIT;
	struct container_place place = { "cid", "pid", "/s/pid/containers/cid", "/s/pid", "/r/containers/cid", "/cg/pid/cid",
		"/l/c.log", false, shared_pid };
	static const struct sock_filter filter[] = { { 0x06, 0, 0, 0x7fff0000 } };
	struct cap_sets caps = { 1, 1, 1, 0, 0 };
	uint32_t groups[] = { 7, 8 };
	struct user user = { .uid = 5, .gid = 7, .groups = groups, .n_groups = 2 };

	strv_add(&args, "sh");
	strv_add(&env, "A=b");
	strv_add(&lower, "/layers/1");
	struct container_inputs in = { .args = &args, .env = &env, .lower = &lower, .cwd = "/w", .user = &user, .caps = &caps,
		.seccomp = filter, .n_seccomp = 1, .nofile = 1024, .stop_signal = 15 };
	return container_plan(config, &place, &in, ret, err);
}

static const struct launch_mount *mount_at(const struct launch *l, const char *target)
{
	const struct launch_mount *found = NULL;

	for (size_t i = 0; i < l->n_mounts; i++)
		if (str_eq(l->mounts[i].target, target)) {
			ck_assert_msg(!found, "%s is mounted twice", target);
			found = &l->mounts[i];
		}
	return found;
}

START_TEST(container_defaults)
{
	_cleanup_(launch_free_p) struct launch *l = NULL;
	struct error err = ERROR_INIT;

	ck_assert_msg(plan(CON "}", true, &l, &err) == 0, "%s", err.text);
	ck_assert_int_eq(l->pid, LAUNCH_NS_POD);
	ck_assert_uint_eq(l->uid, 5);
	ck_assert_uint_eq(l->n_groups, 2);
	ck_assert_uint_eq(l->umask, 022);
	ck_assert_str_eq(l->rootfs.upper, "/r/containers/cid/upper");
	ck_assert_str_eq(mount_at(l, "/etc/hosts")->source, "/s/pid/hosts");
	ck_assert_str_eq(mount_at(l, "/dev/shm")->source, "/s/pid/shm");
	ck_assert(!mount_at(l, "/etc/resolv.conf")->readonly);
	ck_assert(!l->has_oom_score_adj && !l->no_new_privs && !l->all_devices && l->n_seccomp == 1);
	ck_assert_uint_eq(l->n_rlimits, 1);
}
END_TEST

START_TEST(own_mounts_win)
{
	_cleanup_(launch_free_p) struct launch *l = NULL;
	struct error err = ERROR_INIT;

	ck_assert_msg(plan(CON ",\"mounts\":[{\"container_path\":\"/etc/hosts/\",\"host_path\":\"/kubelet/hosts\"},"
			       "{\"container_path\":\"/dev/shm\",\"host_path\":\"/x\",\"readonly\":true,"
			       "\"propagation\":\"PROPAGATION_HOST_TO_CONTAINER\"}],"
			       "\"linux\":{\"security_context\":{\"readonly_rootfs\":true}}}", true, &l, &err) == 0, "%s", err.text);
	ck_assert_ptr_null(mount_at(l, "/etc/hosts"));
	ck_assert_str_eq(mount_at(l, "/etc/hosts/")->source, "/kubelet/hosts");
	ck_assert_str_eq(mount_at(l, "/dev/shm")->source, "/x");
	ck_assert(mount_at(l, "/dev/shm")->readonly && mount_at(l, "/dev/shm")->propagation == LAUNCH_SLAVE);
	ck_assert(mount_at(l, "/etc/hostname")->readonly && l->rootfs.readonly);
}
END_TEST

START_TEST(privileged)
{
	_cleanup_(launch_free_p) struct launch *l = NULL;
	struct error err = ERROR_INIT;

	ck_assert_msg(plan(SEC("\"privileged\":true,\"no_new_privs\":true,\"masked_paths\":[\"/proc/kcore\"],"
			       "\"readonly_paths\":[\"/proc/sys\"]"), true, &l, &err) == 0, "%s", err.text);
	ck_assert(l->all_devices && l->sys_writable && !l->no_new_privs && !l->seccomp);
	ck_assert(l->masked_paths.n == 0 && l->readonly_paths.n == 0);
	_cleanup_(launch_free_p) struct launch *plain = NULL;
	ck_assert_int_eq(plan(SEC("\"no_new_privs\":true,\"masked_paths\":[\"/proc/kcore\"],\"readonly_paths\":[\"/proc/sys\"]"),
				 true, &plain, &err), 0);
	ck_assert(plain->no_new_privs && plain->masked_paths.n == 1 && plain->readonly_paths.n == 1);
}
END_TEST

static const struct {
	const char *options;
	bool shared;
	int want; /* -1: error */
} pid_modes[] = {
	{ "\"namespace_options\":{\"pid\":\"CONTAINER\"}", false, LAUNCH_NS_OWN },
	{ "\"namespace_options\":{\"pid\":\"NODE\"}", false, LAUNCH_NS_NODE },
	{ "\"namespace_options\":{\"pid\":\"POD\"}", true, LAUNCH_NS_POD },
	{ "\"namespace_options\":{\"pid\":\"POD\"}", false, -1 },
	{ "\"namespace_options\":{\"pid\":\"TARGET\",\"target_id\":\"abc\"}", false, LAUNCH_NS_TARGET },
	{ "\"namespace_options\":{\"pid\":\"TARGET\"}", false, -1 },
	{ "\"namespace_options\":{\"pid\":\"TARGET\",\"target_id\":\"../x\"}", false, -1 },
	{ "\"namespace_options\":{\"pid\":17}", false, -1 },
	{ "\"privileged\":false", false, LAUNCH_NS_OWN },
	{ "\"privileged\":false", true, LAUNCH_NS_POD },
};

START_TEST(pid_mode)
{
	_cleanup_free_ char *text = xasprintf(SEC("%s"), pid_modes[_i].options);
	_cleanup_(launch_free_p) struct launch *l = NULL;
	struct error err = ERROR_INIT;
	int r = plan(text, pid_modes[_i].shared, &l, &err);

	ck_assert_int_eq(r < 0 ? -1 : (int)l->pid, pid_modes[_i].want);
}
END_TEST

START_TEST(limits)
{
	_cleanup_(launch_free_p) struct launch *l = NULL;
	struct error err = ERROR_INIT;

	ck_assert_msg(plan(CON ",\"linux\":{\"resources\":{\"memory_limit_in_bytes\":1048576,\"cpu_shares\":512,\"cpu_quota\":-1,"
			       "\"oom_score_adj\":5000,\"unified\":{\"memory.oom.group\":\"1\"},"
			       "\"hugepage_limits\":[{\"page_size\":\"2MB\",\"limit\":7}]}}}", true, &l, &err) == 0, "%s", err.text);
	ck_assert(l->limits.memory_bytes == 1048576 && l->limits.cpu_shares == 512 && l->limits.cpu_quota_us == -1);
	ck_assert(l->has_oom_score_adj && l->oom_score_adj == 1000);
	ck_assert_str_eq(l->limits.unified[0].value, "1");
	ck_assert(l->limits.hugetlb[0].limit_bytes == 7);
	struct launch *bad = NULL;
	ck_assert_int_lt(plan(CON ",\"linux\":{\"resources\":{\"cpu_shares\":-1}}}", true, &bad, &err), 0);
	ck_assert_str_eq(err.text, "cpu_shares -1 is negative");
}
END_TEST

START_TEST(merge)
{
	static const ProtobufCMessageDescriptor *type = &runtime__v1__linux_container_resources__descriptor;
	_cleanup_message_ CRI(LinuxContainerResources) *stored = parse(type,
		"{\"cpu_shares\":1,\"memory_limit_in_bytes\":2,\"cpuset_cpus\":\"0\",\"unified\":{\"a\":\"1\",\"b\":\"2\"},"
		"\"hugepage_limits\":[{\"page_size\":\"2MB\",\"limit\":1}]}");
	_cleanup_message_ CRI(LinuxContainerResources) *update = parse(type,
		"{\"cpu_quota\":5,\"cpuset_cpus\":\"1-2\",\"unified\":{\"b\":\"3\",\"c\":\"4\"},"
		"\"hugepage_limits\":[{\"page_size\":\"2MB\",\"limit\":9},{\"page_size\":\"1GB\",\"limit\":8}]}");
	_cleanup_message_ CRI(LinuxContainerResources) *want = parse(type,
		"{\"cpu_shares\":1,\"memory_limit_in_bytes\":2,\"cpu_quota\":5,\"cpuset_cpus\":\"1-2\","
		"\"unified\":{\"a\":\"1\",\"b\":\"3\",\"c\":\"4\"},"
		"\"hugepage_limits\":[{\"page_size\":\"2MB\",\"limit\":9},{\"page_size\":\"1GB\",\"limit\":8}]}");

	resources_merge(stored, update);
	_cleanup_json_ json_t *a = message_to_json(stored, MESSAGE_JSON_SHORT), *b = message_to_json(want, MESSAGE_JSON_SHORT);
	ck_assert(json_equal(a, b));
}
END_TEST

static const struct {
	const char *text, *want; /* want NULL: the node's file */
} dns[] = {
	{ "{}", NULL },
	{ "{\"servers\":[\"10.10.10.10\"],\"searches\":[\"google.com\"],\"options\":[\"ndots:8\"]}",
		"search google.com\nnameserver 10.10.10.10\noptions ndots:8\n" },
	{ "{\"servers\":[\"1.1.1.1\",\"2.2.2.2\"],\"searches\":[\"a\",\"b\"]}",
		"search a b\nnameserver 1.1.1.1\nnameserver 2.2.2.2\n" },
	{ "{\"servers\":[\"1.1.1.1\\nnameserver 6.6.6.6\"]}", "!" },
	{ "{\"searches\":[\"a b\"]}", "!" },
};

START_TEST(resolv_conf)
{
	_cleanup_message_ CRI(DNSConfig) *config = parse(&runtime__v1__dnsconfig__descriptor, dns[_i].text);
	_cleanup_free_ char *got = NULL;
	int r = etc_resolv_conf(config, &got, NULL);

	if (dns[_i].want && *dns[_i].want == '!')
		ck_assert(r < 0 && !got);
	else
		ck_assert_msg(r == 0 && str_eq(got, dns[_i].want), "%s", got ? got : "(null)");
}
END_TEST

START_TEST(hosts)
{
	_cleanup_(strv_done) struct strv ips = STRV_INIT;

	strv_add(&ips, "10.0.0.1");
	strv_add(&ips, "fd00::1");
	_cleanup_free_ char *text = etc_hosts("web", &ips);
	ck_assert(str_starts(text, "127.0.0.1\tlocalhost\n"));
	ck_assert(str_ends(text, "10.0.0.1\tweb\nfd00::1\tweb\n"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("plan");
	TCase *tcase = tcase_create("all");

	tcase_add_loop_test(tcase, pod_check, 0, ARRAY_LEN(pods));
	tcase_add_test(tcase, pod_defaults);
	tcase_add_test(tcase, pod_host_namespaces);
	tcase_add_test(tcase, pod_sysctls);
	tcase_add_loop_test(tcase, container_check, 0, ARRAY_LEN(containers));
	tcase_add_test(tcase, container_defaults);
	tcase_add_test(tcase, own_mounts_win);
	tcase_add_test(tcase, privileged);
	tcase_add_loop_test(tcase, pid_mode, 0, ARRAY_LEN(pid_modes));
	tcase_add_test(tcase, limits);
	tcase_add_test(tcase, merge);
	tcase_add_loop_test(tcase, resolv_conf, 0, ARRAY_LEN(dns));
	tcase_add_test(tcase, hosts);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}

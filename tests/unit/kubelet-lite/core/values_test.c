/* values_test.c - purpose: QoS classes and cgroup values, back-off, probe thresholds, credentials, admission. */
#include "pods.h"

#include "kubelet-lite/core/admission.h"
#include "kubelet-lite/core/backoff.h"
#include "kubelet-lite/core/credentials.h"
#include "kubelet-lite/core/probe.h"
#include "kubelet-lite/core/qos.h"

#define RES(requests, limits) "{'name':'c','image':'i','resources':{'requests':{" requests "},'limits':{" limits "}}}"
#define GIB ((int64_t)1 << 30)

static const struct {
	const char *name, *containers, *init;
	enum qos_class qos;
	struct cgroup_values pod, first;
} qos_cases[] = {
	{ "nothing", RES("", ""), "", QOS_BEST_EFFORT, { 2, 0, 0, 0 }, { 2, 0, 0, 1000 } },
	{ "limits alone are requests too", RES("", "'cpu':'500m','memory':'64Mi'"), "", QOS_GUARANTEED,
		{ 512, 50000, 64 << 20, 0 }, { 512, 50000, 64 << 20, -997 } },
	{ "cpu request alone", RES("'cpu':'250m'", ""), "", QOS_BURSTABLE, { 256, 0, 0, 0 }, { 256, 0, 0, 999 } },
	{ "half of the node's memory", RES("'memory':'8Gi'", ""), "", QOS_BURSTABLE, { 2, 0, 0, 0 }, { 2, 0, 0, 500 } },
	{ "all of the node's memory", RES("'memory':'16Gi'", ""), "", QOS_BURSTABLE, { 2, 0, 0, 0 }, { 2, 0, 0, 3 } },
	{ "one limit of two is no pod limit", RES("", "'memory':'1Gi'") ",{'name':'d','image':'i'}", "", QOS_BURSTABLE,
		{ 2, 0, 0, 0 }, { 2, 0, GIB, 938 } },
	{ "tiny quota", RES("", "'cpu':'1m','memory':'1Mi'"), "", QOS_GUARANTEED, { 2, 1000, 1 << 20, 0 },
		{ 2, 1000, 1 << 20, -997 } },
	{ "an init container's peak counts", RES("'cpu':'100m'", ""),
		"{'name':'i','image':'i','resources':{'requests':{'cpu':'1'}}}", QOS_BURSTABLE, { 1024, 0, 0, 0 },
		{ 1024, 0, 0, 999 } },
	{ "sidecars add to the regular ones", RES("'cpu':'100m'", ""),
		"{'name':'s','image':'i','restartPolicy':'Always','resources':{'requests':{'cpu':'400m'}}}", QOS_BURSTABLE,
		{ 512, 0, 0, 0 }, { 409, 0, 0, 999 } },
};

START_TEST(qos_case)
{
	_cleanup_free_ char *spec =
		xasprintf("{'containers':[%s],'initContainers':[%s]}", qos_cases[_i].containers, qos_cases[_i].init);
	struct pod *pod = pod_make(spec);
	struct cgroup_values p = pod_cgroup(pod), c = container_cgroup(pod, &pod->containers[0], 16 * GIB);
	const struct cgroup_values *wp = &qos_cases[_i].pod, *wc = &qos_cases[_i].first;

	ck_assert_msg(pod_qos(pod) == qos_cases[_i].qos, "%s: class %s", qos_cases[_i].name, qos_name(pod_qos(pod)));
	ck_assert_msg(p.cpu_shares == wp->cpu_shares && p.cpu_quota_us == wp->cpu_quota_us &&
			      p.memory_limit == wp->memory_limit,
		"%s: pod %lld %lld %lld", qos_cases[_i].name, (long long)p.cpu_shares, (long long)p.cpu_quota_us,
		(long long)p.memory_limit);
	ck_assert_msg(c.cpu_shares == wc->cpu_shares && c.cpu_quota_us == wc->cpu_quota_us &&
			      c.memory_limit == wc->memory_limit && c.oom_score_adj == wc->oom_score_adj,
		"%s: container %lld %lld %lld %lld", qos_cases[_i].name, (long long)c.cpu_shares, (long long)c.cpu_quota_us,
		(long long)c.memory_limit, (long long)c.oom_score_adj);
	pod_free(pod);
}
END_TEST

START_TEST(cgroup_names)
{
	struct pod *pod = pod_make("{'containers':[" RES("'cpu':'1'", "") "]}");
	_cleanup_free_ char *plain = pod_cgroup_path("/", pod, false), *rooted = pod_cgroup_path("/r", pod, false),
			    *parent = pod_cgroup_parent("/", pod, true), *slice = pod_cgroup_path("/", pod, true);

	ck_assert_str_eq(plain, "/kubepods/burstable/podu1");
	ck_assert_str_eq(rooted, "/r/kubepods/burstable/podu1");
	ck_assert_str_eq(parent, "kubepods-burstable-podu1.slice");
	ck_assert_str_eq(slice, "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podu1.slice");
	ck_assert_int_eq(cgroup_weight(1024), 39);
	ck_assert_int_eq(cgroup_weight(2), 1);
	ck_assert_int_eq(cgroup_weight(262144), 10000);
	pod_free(pod);
}
END_TEST

/* One crash after another: 0, 10, 20, ... 300, 300; and a long run in between. */
START_TEST(backoff_series)
{
	static const int expect[] = { 0, 10, 20, 40, 80, 160, 300, 300 };
	struct instance none = { 0 };
	int64_t backoff = backoff_next(&none);

	for (size_t i = 0; i < ARRAY_LEN(expect); i++) {
		struct instance x = { .state = STATE_EXITED, .backoff_ns = backoff, .started_at = 1, .started_ns = 0,
			.finished_ns = 5 * S_NS };

		ck_assert_int_eq(backoff_wait(&x) / S_NS, expect[i]);
		ck_assert_int_eq(backoff_due(&x), 5 * S_NS + expect[i] * S_NS);
		backoff = backoff_next(&x);
	}
	struct instance longer = { .state = STATE_EXITED, .backoff_ns = 300 * S_NS, .started_at = 1,
		.finished_ns = 601 * S_NS };
	ck_assert_int_eq(backoff_wait(&longer), 0);
	ck_assert_int_eq(backoff_next(&longer), 10 * S_NS);
	/* One whose start failed has not run, however old it is. */
	longer.started_at = 0;
	ck_assert_int_eq(backoff_wait(&longer), 300 * S_NS);
	ck_assert_int_eq(backoff_retry(1, S_NS, 60 * S_NS), S_NS);
	ck_assert_int_eq(backoff_retry(5, S_NS, 60 * S_NS), 16 * S_NS);
	ck_assert_int_eq(backoff_retry(4000000000u, S_NS, 60 * S_NS), 60 * S_NS);
}
END_TEST

/* outcomes: + good, - bad, ? could not be made. expect: the result after each, S F U. */
static const struct {
	const char *name;
	enum probe_kind kind;
	int success, failure;
	const char *outcomes, *expect;
} probe_cases[] = {
	{ "readiness from the first success", PROBE_READINESS, 1, 3, "+--+---+", "SSSSSSFS" },
	{ "success threshold", PROBE_READINESS, 2, 1, "+-++-", "FFFSF" },
	{ "liveness fails after three in a row", PROBE_LIVENESS, 1, 3, "--+---", "SSSSSF" },
	{ "and is then on hold", PROBE_LIVENESS, 1, 1, "-++", "FFF" },
	{ "errors count as neither", PROBE_LIVENESS, 1, 2, "-?-", "SSF" },
	{ "startup succeeds once", PROBE_STARTUP, 1, 3, "--+---", "UUSSSS" },
	{ "startup fails", PROBE_STARTUP, 1, 2, "--+", "UFF" },
};

START_TEST(probe_case)
{
	struct probe probe = { .success_threshold = probe_cases[_i].success, .failure_threshold = probe_cases[_i].failure };
	struct probe_run run = { 0 };
	enum probe_result result = probe_initial(probe_cases[_i].kind);

	for (const char *o = probe_cases[_i].outcomes, *e = probe_cases[_i].expect; *o; o++, e++) {
		result = probe_fold(&probe, probe_cases[_i].kind, &run,
			*o == '+' ? PROBE_OK : *o == '-' ? PROBE_FAILED : PROBE_ERROR, result);
		char got = result == PROBE_SUCCESS ? 'S' : result == PROBE_FAILURE ? 'F' : 'U';
		ck_assert_msg(got == *e, "%s: after %ld: %c, want %c", probe_cases[_i].name,
			(long)(o - probe_cases[_i].outcomes) + 1, got, *e);
	}
}
END_TEST

static const struct {
	const char *name, *auths, *image, *user; /* user NULL: none found */
} credential_cases[] = {
	{ "host", "'r.io':{'username':'a','password':'p'}", "r.io/x:1", "a" },
	{ "host with a port", "'r.io:5000':{'username':'a','password':'p'}", "r.io:5000/x", "a" },
	{ "port differs", "'r.io:5000':{'username':'a','password':'p'}", "r.io/x", NULL },
	{ "URL", "'https://r.io/v2/':{'username':'a','password':'p'}", "r.io/v2/x", "a" },
	{ "path prefix", "'r.io/team':{'username':'a','password':'p'}", "r.io/team/x@sha256:00", "a" },
	{ "path is no string prefix", "'r.io/tea':{'username':'a','password':'p'}", "r.io/team/x", NULL },
	{ "the more specific wins", "'r.io':{'username':'a','password':'p'},'r.io/team':{'username':'b','password':'p'}",
		"r.io/team/x", "b" },
	{ "star", "'*.r.io':{'username':'a','password':'p'}", "eu.r.io/x", "a" },
	{ "auth as user:password", "'r.io':{'auth':'dXNlcjpwdw=='}", "r.io/x", "user" },
	{ "Docker Hub by its old name", "'https://index.docker.io/v1/':{'username':'a','password':'p'}", "library/x:1", "a" },
	{ "Docker Hub, one word", "'docker.io':{'username':'a','password':'p'}", "busybox:1.36", "a" },
	{ "empty entry", "'r.io':{}", "r.io/x", NULL },
};

START_TEST(credential_case)
{
	_cleanup_free_ char *config = xasprintf("{'auths':{%s}}", credential_cases[_i].auths);
	_cleanup_json_ json_t *tree = quoted(config);
	_cleanup_free_ char *text = json_text(tree);
	struct keyed_item item = { (char *)".dockerconfigjson", text, strlen(text), false };
	struct keyed secret = { &item, 1 };
	struct image_credential got = { 0 };
	bool found = credential_find(&secret, credential_cases[_i].image, &got);

	ck_assert_msg(found == (credential_cases[_i].user != NULL), "%s: found %d", credential_cases[_i].name, found);
	ck_assert_msg(str_eq(got.username, credential_cases[_i].user), "%s: user %s", credential_cases[_i].name,
		got.username ? got.username : "-");
	credential_done(&got);
}
END_TEST

#define PLAIN "{'name':'c','image':'i'}"
#define PORT(p) "{'name':'c','image':'i','ports':[{'containerPort':80," p "}]}"
static const struct {
	const char *name, *spec, *other, *reason, *text;
} admission_cases[] = {
	{ "plain", "{'containers':[" PLAIN "]}", NULL, NULL, NULL },
	{ "host port free", "{'containers':[" PORT("'hostPort':8080") "]}", "{'containers':[" PORT("'hostPort':8081") "]}", NULL, NULL },
	{ "host port taken", "{'containers':[" PORT("'hostPort':8080") "]}", "{'containers':[" PORT("'hostPort':8080") "]}",
		"NodePorts", "free ports" },
	{ "of another protocol", "{'containers':[" PORT("'hostPort':53,'protocol':'UDP'") "]}",
		"{'containers':[" PORT("'hostPort':53") "]}", NULL, NULL },
	{ "of another address", "{'containers':[" PORT("'hostPort':53,'hostIP':'10.0.0.1'") "]}",
		"{'containers':[" PORT("'hostPort':53,'hostIP':'10.0.0.2'") "]}", NULL, NULL },
	{ "of all addresses", "{'containers':[" PORT("'hostPort':53,'hostIP':'10.0.0.1'") "]}",
		"{'containers':[" PORT("'hostPort':53") "]}", "NodePorts", "53" },
	{ "too much cpu", "{'containers':[" RES("'cpu':'3'", "") "]}", "{'containers':[" RES("'cpu':'1500m'", "") "]}",
		"OutOfcpu", "Node didn't have enough resource: cpu, requested: 3000, used: 1500, capacity: 4000" },
	{ "too much memory", "{'containers':[" RES("'memory':'2Gi'", "") "]}", NULL, "OutOfmemory", "requested: 2147483648" },
	{ "too many pods", "{'containers':[" PLAIN "]}", "twice", "OutOfpods", "used: 2, capacity: 2" },
	{ "other OS", "{'os':{'name':'windows'},'containers':[" PLAIN "]}", NULL, "PodOSNotSupported", "" },
	{ "node selector", "{'nodeSelector':{'disk':'ssd'},'containers':[" PLAIN "]}", NULL, "NodeAffinity", "" },
	{ "node selector that fits", "{'nodeSelector':{'zone':'a'},'containers':[" PLAIN "]}", NULL, NULL, NULL },
	{ "safe sysctl", "{'securityContext':{'sysctls':[{'name':'net.ipv4.tcp_syncookies','value':'1'}]},'containers':[" PLAIN "]}",
		NULL, NULL, NULL },
	{ "unsafe sysctl", "{'securityContext':{'sysctls':[{'name':'kernel.msgmax','value':'1'}]},'containers':[" PLAIN "]}", NULL,
		"SysctlForbidden", "forbidden sysctl: \"kernel.msgmax\" not allowlisted" },
	{ "allowed unsafe sysctl", "{'securityContext':{'sysctls':[{'name':'net.core.somaxconn','value':'1'}]},'containers':[" PLAIN "]}",
		NULL, NULL, NULL },
	{ "net sysctl on the host's network",
		"{'hostNetwork':true,'securityContext':{'sysctls':[{'name':'net/ipv4/tcp_syncookies','value':'1'}]},'containers':[" PLAIN "]}",
		NULL, "SysctlForbidden", "" },
	{ "unsupported volume", "{'volumes':[{'name':'v','nfs':{'server':'x','path':'/'}}],'containers':[" PLAIN "]}", NULL,
		"PodFeatureUnsupported", "spec.volumes[0].nfs: this kind of volume is not supported by kubelet-lite" },
	{ "unsupported source", "{'volumes':[{'name':'v','projected':{'sources':[{'serviceAccountToken':{'path':'t'}}]}}],'containers':[" PLAIN "]}",
		NULL, "PodFeatureUnsupported", "spec.volumes[0].projected.sources[0]" },
	{ "hugepages", "{'containers':[" RES("'hugepages-2Mi':'2Mi'", "'hugepages-2Mi':'2Mi'") "]}", NULL, "PodFeatureUnsupported",
		"spec.containers[0].resources.requests[hugepages-2Mi]: this node has no such resource" },
	{ "stop signal", "{'containers':[{'name':'c','image':'i','lifecycle':{'stopSignal':'SIGRTMIN+1'}}]}", NULL, NULL, NULL },
	{ "no such signal", "{'containers':[{'name':'c','image':'i','lifecycle':{'stopSignal':'SIGNOPE'}}]}", NULL,
		"PodFeatureUnsupported", "lifecycle.stopSignal: there is no signal \"SIGNOPE\"" },
	{ "runtime class", "{'runtimeClassName':'kata','containers':[" PLAIN "]}", NULL, "PodFeatureUnsupported",
		"spec.runtimeClassName" },
	{ "user namespace", "{'hostUsers':false,'containers':[" PLAIN "]}", NULL, "PodFeatureUnsupported", "spec.hostUsers" },
};

START_TEST(admission_case)
{
	struct pod *pod = pod_make(admission_cases[_i].spec), *others[2] = { NULL, NULL };
	const char *other = admission_cases[_i].other;
	bool twice = str_eq(other, "twice");
	struct strv unsafe = STRV_INIT;
	struct kv zone = { "zone", "a" };
	struct admission_node node = { .cpu = quantity_of(4), .memory = quantity_of(GIB), .storage = quantity_of(GIB),
		.max_pods = 2, .labels = { &zone, 1 }, .unsafe_sysctls = &unsafe };
	struct verdict_text verdict = { 0 };

	strv_add(&unsafe, "net.core.*");
	if (other) {
		others[0] = pod_make(twice ? "{'containers':[" PLAIN "]}" : other);
		others[1] = twice ? pod_make("{'containers':[" PLAIN "]}") : NULL;
	}
	bool ok = pod_admit(pod, (const struct pod *const *)others, other ? 1 + twice : 0, &node, &verdict);
	ck_assert_msg(ok == !admission_cases[_i].reason && str_eq(verdict.reason, admission_cases[_i].reason), "%s: %s %s",
		admission_cases[_i].name, verdict.reason ? verdict.reason : "-", verdict.message ? verdict.message : "");
	if (!ok)
		ck_assert_msg(strstr(verdict.message, admission_cases[_i].text), "%s: %s", admission_cases[_i].name,
			verdict.message);
	free(verdict.message);
	strv_done(&unsafe);
	pod_free(pod);
	pod_free(others[0]);
	pod_free(others[1]);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("values");

	tcase_add_loop_test(t, qos_case, 0, ARRAY_LEN(qos_cases));
	tcase_add_test(t, cgroup_names);
	tcase_add_test(t, backoff_series);
	tcase_add_loop_test(t, probe_case, 0, ARRAY_LEN(probe_cases));
	tcase_add_loop_test(t, credential_case, 0, ARRAY_LEN(credential_cases));
	tcase_add_loop_test(t, admission_case, 0, ARRAY_LEN(admission_cases));
	return run_case(t);
}

/* pod_status_test.c - purpose: phase, conditions and container states, by table. */
#include "pods.h"

#include "kubelet-lite/core/pod_status.h"

#define ONE "{'containers':[{'name':'c','image':'img'}]}"
#define PROBED "{'containers':[{'name':'c','image':'img','readinessProbe':{'exec':{'command':['x']}}}]}"
#define STARTUP "{'containers':[{'name':'c','image':'img','startupProbe':{'exec':{'command':['x']}}}]}"
#define NEVER "{'restartPolicy':'Never','containers':[{'name':'c','image':'img'},{'name':'b','image':'img'}]}"
#define INIT "{'initContainers':[{'name':'i','image':'img'},{'name':'j','image':'img'}],'containers':[{'name':'c','image':'img'}]}"
#define INIT_NEVER "{'restartPolicy':'Never','initContainers':[{'name':'i','image':'img'}],'containers':[{'name':'c','image':'img'}]}"
#define GATE "{'readinessGates':[{'conditionType':'x/y'}],'containers':[{'name':'c','image':'img'}]}"

/* phase; then one letter for each true condition: s(andbox) i(nitialized) r(eady) c(ontainers ready); then state of each
 * container of each list: R, W:reason, T:reason, and /L:reason for lastState. */
static const struct {
	const char *name, *spec, *seen, *expect;
	bool stop, reject, fail;
} cases[] = {
	{ "nothing yet", ONE, "", "Pending i W:ContainerCreating" },
	{ "pulling", ONE, "vol sb 0oI", "Pending si W:ContainerCreating" },
	{ "running", ONE, "vol sb 0R", "Running sirc R" },
	{ "not ready before its probe", PROBED, "vol sb 0R", "Running si R" },
	{ "ready by its probe", PROBED, "vol sb 0R 0r", "Running sirc R" },
	{ "not started before its probe", STARTUP, "vol sb 0R", "Running si R" },
	{ "started", STARTUP, "vol sb 0R 0Y", "Running sirc R" },
	{ "a readiness gate that nobody has set", GATE, "vol sb 0R", "Running sic R" },
	{ "init containers to do", INIT, "vol sb", "Pending s W:PodInitializing W:PodInitializing W:PodInitializing" },
	{ "one init container done", INIT, "vol sb 0E0 1R", "Pending s T:Completed R W:PodInitializing" },
	{ "init container failed, in back-off", INIT, "vol sb 0E1 0b10",
		"Pending s W:CrashLoopBackOff/L:Error W:PodInitializing W:PodInitializing" },
	{ "all init containers done", INIT, "vol sb 0E0 1E0", "Pending si T:Completed T:Completed W:PodInitializing" },
	{ "init containers done, running", INIT, "vol sb 0E0 1E0 2R", "Running sirc T:Completed T:Completed R" },
	{ "crash loop", ONE, "vol sb 0E1 0b20", "Running si W:CrashLoopBackOff/L:Error" },
	{ "restarting at once", ONE, "vol sb 0E1", "Running si T:Error" },
	{ "after a restart", ONE, "vol sb 0R 0l1", "Running sirc R/L:Error" },
	{ "one of two ended (sorted by name)", NEVER, "vol sb 0E0 1R", "Running si R T:Completed" },
	{ "succeeded", NEVER, "vol sb!! 0E0 1E0", "Succeeded i T:Completed T:Completed" },
	{ "failed", NEVER, "vol sb!! 0E0 1E3", "Failed i T:Error T:Completed" },
	{ "failed init container", INIT_NEVER, "vol sb!! 0E2", "Failed  T:Error W:PodInitializing" },
	{ "deleted, still running", ONE, "vol sb 0R 0k5", "Running sirc R", .stop = true },
	{ "deleted, down", ONE, "vol sb!! 0E137", "Failed i T:Error", .stop = true },
	{ "deleted, ended well", ONE, "vol sb!! 0E0", "Succeeded i T:Completed", .stop = true },
	{ "past its deadline, still running", ONE, "vol sb 0R 0k5", "Running sirc R", .stop = true, .fail = true },
	{ "past its deadline, ended well", ONE, "vol sb!! 0E0", "Failed i T:Completed", .stop = true, .fail = true },
	{ "refused", ONE, "", "Failed", .reject = true },
};

static void add_state(struct str *out, const json_t *status)
{
	const json_t *state = json_object_get(status, "state"), *last = json_object_get(status, "lastState");

	if (json_object_get(state, "running"))
		str_add(out, " R");
	if (json_object_get(state, "waiting"))
		str_addf(out, " W:%s", json_str_at(state, "waiting.reason", "?"));
	if (json_object_get(state, "terminated"))
		str_addf(out, " T:%s", json_str_at(state, "terminated.reason", "?"));
	if (json_object_get(last, "terminated"))
		str_addf(out, "/L:%s", json_str_at(last, "terminated.reason", "?"));
}

static void render(const json_t *status, struct str *out)
{
	static const char *const lists[] = { "initContainerStatuses", "containerStatuses" };
	const json_t *conditions = json_object_get(status, "conditions");

	str_add(out, json_str_at(status, "phase", "?"));
	if (json_array_size(conditions))
		str_add_char(out, ' ');
	for (size_t i = 0; i < json_array_size(conditions); i++) {
		const json_t *c = json_array_get(conditions, i);
		const char *type = json_str_at(c, "type", "?");

		if (!str_eq(json_str_at(c, "status", ""), "True"))
			continue;
		if (str_eq(type, "PodReadyToStartContainers"))
			str_add_char(out, 's');
		else if (!str_eq(type, "PodScheduled"))
			str_add_char(out, str_eq(type, "Initialized") ? 'i' : str_eq(type, "Ready") ? 'r' : 'c');
	}
	for (size_t k = 0; k < ARRAY_LEN(lists); k++)
		for (size_t i = 0; i < json_array_size(json_object_get(status, lists[k])); i++)
			add_state(out, json_array_get(json_object_get(status, lists[k]), i));
}

static const char *host_ips[] = { "192.0.2.1" };
static const struct str_list host_list = { host_ips, 1 };

static bool fail; /* of the pod that make() makes */

static json_t *make(const char *spec, const char *script, bool stop, bool reject, struct condition_times *times,
	uint64_t now_at)
{
	struct pod *pod = pod_make(spec);
	struct pod_want want = { .pod = pod, .stop = stop, .reject = reject, .fail = fail };
	struct status_context context = { .now_ns = NOW_NS, .now_at = now_at, .start_at = 1000000000, .host_ip = "192.0.2.1",
		.host_ips = &host_list, .runtime = "rt", .reason = reject ? "NodePorts" : NULL, .message = "taken" };
	struct pod_seen seen;

	seen_make(&seen, pod, script);
	seen.ips = xcalloc(1, sizeof(char *));
	seen.ips[0] = xstrdup("10.0.0.5");
	seen.n_ips = 1;
	json_t *status = pod_status(&want, &seen, &context, times);
	pod_seen_done(&seen);
	pod_free(pod);
	return status;
}

START_TEST(status_case)
{
	struct condition_times times = { 0 };
	fail = cases[_i].fail;
	_cleanup_json_ json_t *status =
		make(cases[_i].spec, cases[_i].seen, cases[_i].stop, cases[_i].reject, &times, 5 * 1000000000ull);
	struct str got = STR_INIT;

	render(status, &got);
	ck_assert_msg(str_eq(str_get(&got), cases[_i].expect), "%s: got \"%s\", want \"%s\"", cases[_i].name, str_get(&got),
		cases[_i].expect);
	str_done(&got);
}
END_TEST

START_TEST(transition_times)
{
	struct condition_times times = { 0 };
	json_t *a = make(PROBED, "vol sb 0R", false, false, &times, 100 * 1000000000ull);
	json_t *b = make(PROBED, "vol sb 0R", false, false, &times, 200 * 1000000000ull);
	json_t *c = make(PROBED, "vol sb 0R 0r", false, false, &times, 300 * 1000000000ull);

	ck_assert(json_equal(a, b));
	ck_assert_str_eq(json_str_at(json_array_get(json_object_get(c, "conditions"), 2), "lastTransitionTime", ""),
		"1970-01-01T00:05:00Z");
	ck_assert_str_eq(json_str_at(json_array_get(json_object_get(c, "conditions"), 1), "lastTransitionTime", ""),
		"1970-01-01T00:01:40Z");
	/* What was written is what is read back. */
	struct condition_times again = { 0 };
	condition_times_read(&again, c);
	json_t *d = make(PROBED, "vol sb 0R 0r", false, false, &again, 400 * 1000000000ull);
	ck_assert(json_equal(c, d));
	json_decref(a);
	json_decref(b);
	json_decref(c);
	json_decref(d);
}
END_TEST

START_TEST(whole_status)
{
	struct condition_times times = { 0 };
	_cleanup_json_ json_t *status = make("{'restartPolicy':'Always','containers':[{'name':'c','image':'img','resources':{'limits':{'memory':'64Mi'}}}]}",
		"vol sb 0E1 0b40 0l2", false, false, &times, 1000000000);

	assert_json_eq(json_object_get(status, "containerStatuses"),
		"[{'name':'c','ready':false,'started':false,'restartCount':0,'image':'img','imageID':'','containerID':'rt://c0',"
		"'allocatedResources':{'memory':'64Mi'},'resources':{'limits':{'memory':'64Mi'},'requests':{'memory':'64Mi'}},"
		"'state':{'waiting':{'reason':'CrashLoopBackOff','message':'back-off 40s restarting failed container=c pod=p_ns(u1)'}},"
		"'lastState':{'terminated':{'exitCode':1,'reason':'Error','startedAt':'1970-01-01T00:00:00Z','finishedAt':null,'containerID':'rt://c0'}}}]");
	ck_assert_str_eq(json_str_at(status, "qosClass", ""), "Burstable");
	ck_assert_str_eq(json_str_at(status, "podIP", ""), "10.0.0.5");
	ck_assert_str_eq(json_str_at(status, "hostIP", ""), "192.0.2.1");
	ck_assert_str_eq(json_str_at(status, "startTime", ""), "1970-01-01T00:00:01Z");
	ck_assert_int_eq(json_int_at(status, "observedGeneration", 0), 1);
	_cleanup_json_ json_t *refused = make(ONE, "", false, true, &times, 1);
	assert_json_eq(refused, "{'phase':'Failed','reason':'NodePorts','message':'taken','qosClass':'BestEffort','observedGeneration':1,'startTime':'1970-01-01T00:00:01Z'}");
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("pod_status");

	tcase_add_loop_test(t, status_case, 0, ARRAY_LEN(cases));
	tcase_add_test(t, transition_times);
	tcase_add_test(t, whole_status);
	return run_case(t);
}

/* plan_test.c - purpose: the plan of a pod's life, by table. */
#include "pods.h"

#include "common/base/str.h"

#define C(extra) "{'name':'c','image':'i'" extra "}"
#define ONE "{'containers':[" C("") "]}"
#define TWO "{'containers':[" C("") ",{'name':'d','image':'i'}]}"
#define NEVER "{'restartPolicy':'Never','containers':[" C("") "]}"
#define ON_FAILURE "{'restartPolicy':'OnFailure','containers':[" C("") "]}"
#define INIT "{'initContainers':[{'name':'i','image':'i'},{'name':'j','image':'i'}],'containers':[" C("") "]}"
#define INIT_NEVER "{'restartPolicy':'Never','initContainers':[{'name':'i','image':'i'}],'containers':[" C("") "]}"
#define SIDECAR                                                                                                        \
	"{'initContainers':[{'name':'s','image':'i','restartPolicy':'Always'},{'name':'t','image':'i','restartPolicy':'Always','startupProbe':{'exec':{'command':['x']}}}],'containers':[" C( \
		"") "]}"
#define SIDECAR_NEVER                                                                                                  \
	"{'restartPolicy':'Never','initContainers':[{'name':'s','image':'i','restartPolicy':'Always'}],'containers':[" C("") "]}"
#define HOOKS                                                                                                          \
	"{'containers':[" C(",'lifecycle':{'postStart':{'exec':{'command':['x']}},'preStop':{'exec':{'command':['x']}}}")  \
	",{'name':'d','image':'i'}]}"

enum want { RUN, STOP, FORGET, REJECT, REJECT_FORGET, DONE };

static const struct {
	const char *name;
	const char *spec;
	enum want want;
	const char *seen;
	const char *expect;
} cases[] = {
	/* the beginning */
	{ "nothing before the runtime was asked", ONE, RUN, "unseen", "" },
	{ "volumes first", ONE, RUN, "", "V+" },
	{ "then the sandbox", ONE, RUN, "vol", "S+" },
	{ "then the image", ONE, RUN, "vol sb", "i0" },
	{ "then the container", ONE, RUN, "vol sb 0i", "c0" },
	{ "then its start", ONE, RUN, "vol sb 0C", "s0" },
	{ "a running pod needs nothing", ONE, RUN, "vol sb 0R", "" },
	{ "a failed attempt waits", ONE, RUN, "vol sb 0w5", "@5" },
	{ "stale volumes are refreshed beside", ONE, RUN, "stale sb 0R", "V+" },
	{ "after a restart of ours volumes come up again for a running pod", ONE, RUN, "sb 0R", "V+" },
	/* order */
	{ "the second waits for the first's pull", TWO, RUN, "vol sb 0oI", "" },
	{ "the second waits for the first's start", TWO, RUN, "vol sb 0oS", "" },
	{ "the second follows", TWO, RUN, "vol sb 0R", "i1" },
	{ "one in back-off does not hold up the next", TWO, RUN, "vol sb 0E1 0b20", "@20 i1" },
	{ "a restart of the first goes on while the second is pulled", TWO, RUN, "vol sb 0E1 1oI", "i0" },
	{ "postStart before the next", HOOKS, RUN, "vol sb 0R", "h0" },
	{ "the next waits for postStart", HOOKS, RUN, "vol sb 0R 0oH", "" },
	{ "the next after postStart", HOOKS, RUN, "vol sb 0R 0h", "i1" },
	/* init containers */
	{ "the first init container alone", INIT, RUN, "vol sb", "i0" },
	{ "nothing while it runs", INIT, RUN, "vol sb 0R", "" },
	{ "the second after success", INIT, RUN, "vol sb 0E0", "i1" },
	{ "a failed one again, after its back-off", INIT, RUN, "vol sb 0E1 0b10 0f-3", "@7" },
	{ "a failed one again", INIT, RUN, "vol sb 0E1", "i0" },
	{ "the regular one when all are done", INIT, RUN, "vol sb 0E0 1E0", "i2" },
	{ "init containers are not run again when the regular one restarts", INIT, RUN, "vol sb 0E0 1E0 2E1", "i2" },
	{ "nor when they have been cleaned away", INIT, RUN, "vol sb 2R", "" },
	{ "all again in a new sandbox", INIT, RUN, "vol sb 0E0 0x 1E0 1x 2E137 2x", "i0" },
	{ "Never: a failed init container ends the pod", INIT_NEVER, RUN, "vol sb 0E1", "S-" },
	/* sidecars */
	{ "a sidecar starts first", SIDECAR, RUN, "vol sb", "i0" },
	{ "the next one when it runs", SIDECAR, RUN, "vol sb 0R", "i1" },
	{ "its startup probe is waited for", SIDECAR, RUN, "vol sb 0R 1R", "" },
	{ "then the regular one", SIDECAR, RUN, "vol sb 0R 1R 1Y", "i2" },
	{ "a sidecar that ends is started again", SIDECAR, RUN, "vol sb 0E0 1R 1Y 2R", "i0" },
	{ "sidecars end when the pod is done", SIDECAR_NEVER, RUN, "vol sb 0R 1E0", "k0P" },
	/* restarts */
	{ "Always: after success", ONE, RUN, "vol sb 0E0", "i0" },
	{ "Always: back-off counts from the end", ONE, RUN, "vol sb 0E0 0b40 0f-30", "@10" },
	{ "Always: forgiven after ten minutes", ONE, RUN, "vol sb 0E1 0b40 0t-700", "i0" },
	{ "OnFailure: a failure", ON_FAILURE, RUN, "vol sb 0E3", "i0" },
	{ "OnFailure: success is the end", ON_FAILURE, RUN, "vol sb 0E0", "S-" },
	{ "Never: a failure is the end", NEVER, RUN, "vol sb 0E3", "S-" },
	{ "the end: volumes down", NEVER, RUN, "vol sb!! 0E3", "V-" },
	{ "the end is reached", NEVER, RUN, "sb!! 0E3", "" },
	/* probes */
	{ "liveness failed", ONE, RUN, "vol sb 0R 0L", "k0L" },
	{ "startup failed", ONE, RUN, "vol sb 0R 0S", "k0S" },
	{ "the kill goes on: stop", ONE, RUN, "vol sb 0R 0L 0k5 0p", "x0" },
	{ "the kill waits for preStop", ONE, RUN, "vol sb 0R 0L 0k5 0oP", "@5" },
	{ "but not for ever", ONE, RUN, "vol sb 0R 0L 0k-1 0oP", "x0" },
	{ "a stop under way", ONE, RUN, "vol sb 0R 0L 0k5 0p 0oT", "" },
	{ "killed and ended: started again", ONE, RUN, "vol sb 0E137 0L 0k-1 0p", "i0" },
	{ "an unknown one is killed", ONE, RUN, "vol sb 0U", "k0C" },
	/* sandbox lost */
	{ "a dead sandbox is stopped first", ONE, RUN, "vol sb! 0E137", "S-" },
	{ "then made again", ONE, RUN, "vol sb!! 0E137", "S+" },
	{ "what still runs in it is killed first", ONE, RUN, "vol sb! 0R", "k0B" },
	{ "Never: not made again", NEVER, RUN, "vol sb! 0E137", "S-" },
	/* deletion */
	{ "containers are killed together", TWO, STOP, "vol sb 0R 1R", "k0P k1P" },
	{ "preStop at work", HOOKS, STOP, "vol sb 0R 0k9 0oP 1R 1k9 1p", "@9 x1" },
	{ "the deadline ends preStop", HOOKS, STOP, "vol sb 0R 0k0 0oP 1E0", "x0" },
	{ "a sidecar waits for the regular ones", SIDECAR_NEVER, STOP, "vol sb 0R 0k9 0p 1R 1k9 1p", "@9 x1" },
	{ "sidecars end in reverse", SIDECAR, STOP, "vol sb 0R 0k9 0p 1R 1k9 1p 2E0", "@9 x1" },
	{ "the last sidecar", SIDECAR, STOP, "vol sb 0R 0k9 0p 1E0 2E0", "x0" },
	{ "a container in the making is waited for", ONE, FORGET, "vol sb 0oC", "" },
	{ "a start in flight, for a time", ONE, FORGET, "vol sb 0C 0oS 0g-2", "@3" },
	{ "one that hangs is given up", ONE, FORGET, "vol sb 0C 0oS 0g-5", "g0" },
	{ "a pod that runs on is patient", ONE, RUN, "vol sb 0C 0oS 0g-50", "" },
	{ "all down: stop the sandbox", ONE, FORGET, "vol sb 0E0", "S-" },
	{ "then remove the containers", ONE, FORGET, "vol sb!! 0E0", "r0" },
	{ "one made but not started too", ONE, FORGET, "vol sb!! 0C", "r0" },
	{ "then the sandbox", ONE, FORGET, "vol sb!!", "S0" },
	{ "then volumes", ONE, FORGET, "vol", "V-" },
	{ "then it is finished", ONE, FORGET, "", "F" },
	{ "stopped but not forgotten keeps its containers", ONE, STOP, "vol sb!! 0E0", "V-" },
	{ "a failed stop is tried again later", ONE, FORGET, "vol sb 0R 0k-5 0p 0w2", "@2" },
	/* leftovers */
	{ "left over running things are stopped, dead ones removed", ONE, RUN, "vol sb 0R Lc+ Lc Ls+ Ls Lsk", "l0 d1 l2 d3" },
	{ "at the end all of them go", ONE, FORGET, "Lsk", "d0" },
	{ "the sandbox waits for running left overs", ONE, STOP, "vol sb 0E0 Lc+", "l0" },
	{ "one that has ended does not run again when its containers are cleaned away", NEVER, DONE, "", "" },
	/* refused */
	{ "refused: nothing", ONE, REJECT, "", "" },
	{ "refused and deleted", ONE, REJECT_FORGET, "", "F" },
};

static const char reason_letters[] = { [KILL_POD] = 'P', [KILL_LIVENESS] = 'L', [KILL_STARTUP] = 'S', [KILL_SANDBOX] = 'B',
	[KILL_CHANGED] = 'C' };

static void render(const struct pod_plan *plan, struct str *out)
{
	static const char *const words[] = { [ACT_VOLUMES_UP] = "V+", [ACT_VOLUMES_DOWN] = "V-", [ACT_RUN_SANDBOX] = "S+",
		[ACT_STOP_SANDBOX] = "S-", [ACT_REMOVE_SANDBOX] = "S0", [ACT_FINISH] = "F" };
	static const char letters[] = { [ACT_IMAGE] = 'i', [ACT_CREATE] = 'c', [ACT_START] = 's', [ACT_GIVE_UP_START] = 'g', [ACT_POST_START] = 'h',
		[ACT_KILL] = 'k', [ACT_STOP] = 'x', [ACT_REMOVE] = 'r', [ACT_LEFTOVER_STOP] = 'l', [ACT_LEFTOVER_REMOVE] = 'd',
		[ACT_FINISH] = 0 };

	if (plan->wake_ns)
		str_addf(out, "@%lld", (long long)((plan->wake_ns - NOW_NS) / S_NS));
	for (size_t i = 0; i < plan->n; i++) {
		const struct action *a = &plan->v[i];

		if (out->len)
			str_add_char(out, ' ');
		if ((size_t)a->kind < ARRAY_LEN(words) && words[a->kind])
			str_add(out, words[a->kind]);
		else
			str_addf(out, "%c%zu", letters[a->kind], a->index);
		if (a->kind == ACT_KILL)
			str_add_char(out, reason_letters[a->reason]);
	}
}

START_TEST(plan_case)
{
	struct pod *pod = pod_make(cases[_i].spec);
	struct pod_want want = { .pod = pod,
		.stop = cases[_i].want == STOP || cases[_i].want == FORGET || cases[_i].want == REJECT_FORGET,
		.forget = cases[_i].want == FORGET || cases[_i].want == REJECT_FORGET,
		.done = cases[_i].want == DONE,
		.reject = cases[_i].want == REJECT || cases[_i].want == REJECT_FORGET };
	struct pod_seen seen;
	struct pod_plan plan;
	struct str got = STR_INIT;

	seen_make(&seen, pod, cases[_i].seen);
	pod_plan(&want, &seen, NOW_NS, &plan);
	render(&plan, &got);
	ck_assert_msg(str_eq(str_get(&got), cases[_i].expect), "%s: got \"%s\", want \"%s\"", cases[_i].name, str_get(&got),
		cases[_i].expect);
	str_done(&got);
	pod_plan_done(&plan);
	pod_seen_done(&seen);
	pod_free(pod);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("plan");

	tcase_add_loop_test(t, plan_case, 0, ARRAY_LEN(cases));
	return run_case(t);
}

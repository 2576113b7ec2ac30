/* config_test.c - purpose: tests of config.c: KubeProxyConfiguration to options. */
#include "proxy-lite/config.h"

#include "common/base/log.h"
#include "proxy-lite.opts.h"

#include <check.h>

#define HEAD "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"

static const struct {
	const char *name, *text, *want, *error; /* options, space-separated; error: part of the message */
} cases[] = {
	{ "nothing", HEAD, "", NULL },
	{ "names", HEAD "hostnameOverride: node-1\nclusterCIDR: 10.0.0.0/8,fd00::/64\n",
		"--hostname-override=node-1 --cluster-cidr=10.0.0.0/8,fd00::/64", NULL },
	{ "lists", HEAD "nodePortAddresses: [192.0.2.0/24, 10.0.0.0/8]\n",
		"--nodeport-addresses=192.0.2.0/24,10.0.0.0/8", NULL },
	{ "nested",
		HEAD "nftables: {masqueradeAll: true, masqueradeBit: 7, minSyncPeriod: 1s}\nclientConnection: "
		     "{kubeconfig: k}\n",
		"--masquerade-all=true --masquerade-bit=7 --nftables-min-sync-period=1s --kubeconfig=k", NULL },
	{ "what kube-proxy writes for its defaults",
		HEAD "clusterCIDR: \"\"\nnodePortAddresses: null\nnftables: {masqueradeAll: false, masqueradeBit: "
		     "null, minSyncPeriod: 0s, "
		     "syncPeriod: 0s}\nmode: \"\"\nconntrack: {maxPerCore: null, min: null, tcpCloseWaitTimeout: "
		     "null}\niptables: {}\n",
		"--masquerade-all=false", NULL },
	{ "detect-local",
		HEAD "detectLocalMode: BridgeInterface\ndetectLocal: {bridgeInterface: b, interfaceNamePrefix: \"\"}\n",
		"--detect-local-mode=BridgeInterface --pod-bridge-interface=b", NULL },
	{ "unknown keys are no error", HEAD "colour: blue\nnftables: {shape: round}\n", "", NULL },
	{ "given on the command line", HEAD "healthzBindAddress: 1.2.3.4:5\n", "", NULL },
	{ "another kind", "apiVersion: v1\nkind: Pod\n", NULL, "kind \"Pod\"" },
	{ "two documents", HEAD "---\n" HEAD, NULL, "2 documents" },
	{ "no document", "", NULL, "0 documents" },
	{ "wrong type", HEAD "hostnameOverride: {a: b}\n", NULL, "hostnameOverride: is of the wrong type" },
	{ "a list of numbers", HEAD "nodePortAddresses: [1]\n", NULL, "nodePortAddresses: is of the wrong type" },
	{ "broken", HEAD "a: [\n", NULL, "line" },
};

START_TEST(parses)
{
	char program[] = "x", given[] = "--healthz-bind-address=0.0.0.0:1";
	char *argv[] = { program, given, NULL };
	struct option_values *values;
	struct strv options = STRV_INIT;
	struct error err = ERROR_INIT;
	_cleanup_(str_done) struct str got = STR_INIT;
	int rest, r;

	ck_assert(options_parse(proxy_lite_options, "x", "", 2, argv, &rest, &values, &err) == 0);
	r = config_parse(cases[_i].text, strlen(cases[_i].text), values, &options, &err);
	ck_assert_msg((r < 0) == (cases[_i].error != NULL), "%s: %s", cases[_i].name, err.text);
	if (cases[_i].error)
		ck_assert_msg(strstr(err.text, cases[_i].error) != NULL, "%s: %s", cases[_i].name, err.text);
	for (size_t i = 0; i < options.n; i++)
		str_addf(&got, "%s%s", i ? " " : "", options.v[i]);
	if (cases[_i].want)
		ck_assert_str_eq(str_get(&got), cases[_i].want);
	strv_done(&options);
	option_values_free(values);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("config");
	TCase *t = tcase_create("config");
	SRunner *runner;
	int failed;

	log_init("config_test", LOG_LEVEL_ERROR);
	tcase_add_loop_test(t, parses, 0, ARRAY_LEN(cases));
	suite_add_tcase(suite, t);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

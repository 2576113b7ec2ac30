/* env_test.c - purpose: environment, $(VAR), downward API, payload files, host names, DNS and hosts files, by table. */
#include "pods.h"

#include "kubelet-lite/core/env.h"
#include "kubelet-lite/core/names.h"
#include "kubelet-lite/core/payload.h"

/* Two ConfigMaps and a Secret. */
static bool objects(void *data, bool secret, const char *name, struct keyed *ret)
{
	const char *text = !secret && str_eq(name, "cm")    ? "{'data':{'A':'1','B':'two words','bad=key':'x'},'binaryData':{'bin':'AAH/'}}"
			   : !secret && str_eq(name, "cm2") ? "{'data':{'A':'other'}}"
			   : secret && str_eq(name, "s")    ? "{'data':{'pw':'c2VjcmV0'},'stringData':{'plain':'text'}}"
							    : NULL;

	(void)data;
	if (!text)
		return false;
	_cleanup_json_ json_t *tree = quoted(text);
	ck_assert_int_eq(keyed_read(tree, secret, ret, NULL), 0);
	return true;
}

static const char *ips[] = { "10.0.0.5", "fd00::5" };
static const struct str_list pod_ips = { ips, 2 };

static void sources(struct env_sources *ret, struct env *services)
{
	static const char *const texts[] = {
		"{'metadata':{'name':'my-db'},'spec':{'clusterIP':'10.96.0.7','ports':[{'name':'sql-x','port':5432},{'name':'adm','port':81,'protocol':'UDP'}]}}",
		"{'metadata':{'name':'headless'},'spec':{'clusterIP':'None','ports':[{'port':1}]}}",
		"{'metadata':{'name':'six'},'spec':{'clusterIP':'fd00::9','ports':[{'port':1}]}}",
	};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		_cleanup_json_ json_t *service = quoted(texts[i]);

		env_add_service(services, service);
	}
	*ret = (struct env_sources){ .data_of = objects, .services = services, .host_ip = "192.0.2.1", .host_ips = &pod_ips,
		.pod_ips = &pod_ips, .node_name = "n1", .node_cpu = quantity_of(4), .node_memory = quantity_of(1 << 20) };
}

static const struct {
	const char *name, *env; /* members of the container */
	const char *expect;     /* NAME=value;... without the Services' */
	const char *error;
} env_cases[] = {
	{ "values in order", "'env':[{'name':'A','value':'1'},{'name':'B','value':'2'}]", "A=1;B=2;", NULL },
	{ "the later one wins in the earlier place", "'env':[{'name':'A','value':'1'},{'name':'B','value':'2'},{'name':'A','value':'3'}]",
		"A=3;B=2;", NULL },
	{ "references to earlier ones", "'env':[{'name':'A','value':'1'},{'name':'B','value':'$(A)/$(A)'}]", "A=1;B=1/1;", NULL },
	{ "later ones are invisible", "'env':[{'name':'B','value':'$(A)'},{'name':'A','value':'1'}]", "B=$(A);A=1;", NULL },
	{ "Services are visible", "'env':[{'name':'B','value':'$(MY_DB_SERVICE_HOST)'}]", "B=10.96.0.7;", NULL },
	{ "escapes", "'env':[{'name':'A','value':'$$(A) $$ $(A $x $'}]", "A=$(A) $ $(A $x $;", NULL },
	{ "no second expansion", "'env':[{'name':'A','value':'$$(B)'},{'name':'B','value':'b'},{'name':'C','value':'$(A)'}]",
		"A=$(B);B=b;C=$(B);", NULL },
	{ "ConfigMap key", "'env':[{'name':'A','valueFrom':{'configMapKeyRef':{'name':'cm','key':'B'}}}]", "A=two words;", NULL },
	{ "Secret key", "'env':[{'name':'A','valueFrom':{'secretKeyRef':{'name':'s','key':'pw'}}}]", "A=secret;", NULL },
	{ "missing ConfigMap", "'env':[{'name':'A','valueFrom':{'configMapKeyRef':{'name':'no','key':'B'}}}]", NULL,
		"configmap \"no\" not found" },
	{ "missing key", "'env':[{'name':'A','valueFrom':{'configMapKeyRef':{'name':'cm','key':'no'}}}]", NULL,
		"couldn't find key no in ConfigMap ns/cm" },
	{ "missing key of a Secret", "'env':[{'name':'A','valueFrom':{'secretKeyRef':{'name':'s','key':'no'}}}]", NULL,
		"couldn't find key no in Secret ns/s" },
	{ "optional ones are left out",
		"'env':[{'name':'A','valueFrom':{'configMapKeyRef':{'name':'no','key':'B','optional':true}}},{'name':'B','valueFrom':{'secretKeyRef':{'name':'s','key':'no','optional':true}}}]",
		"", NULL },
	{ "binary data is not for the environment", "'env':[{'name':'A','valueFrom':{'configMapKeyRef':{'name':'cm','key':'bin'}}}]", NULL,
		"couldn't find key bin" },
	{ "envFrom with a prefix, then overwritten",
		"'envFrom':[{'prefix':'P_','configMapRef':{'name':'cm'}},{'prefix':'P_','configMapRef':{'name':'cm2'}}],'env':[{'name':'P_B','value':'$(P_A)'}]",
		"P_A=other;P_B=other;", NULL },
	{ "envFrom a Secret", "'envFrom':[{'secretRef':{'name':'s'}}]", "pw=secret;plain=text;", NULL },
	{ "envFrom nothing", "'envFrom':[{'secretRef':{'name':'no'}}]", NULL, "secret \"no\" not found" },
	{ "envFrom nothing, optional", "'envFrom':[{'secretRef':{'name':'no','optional':true}}]", "", NULL },
	{ "fields",
		"'env':[{'name':'A','valueFrom':{'fieldRef':{'fieldPath':'metadata.name'}}},{'name':'B','valueFrom':{'fieldRef':{'fieldPath':'status.podIPs'}}},{'name':'C','valueFrom':{'fieldRef':{'fieldPath':'spec.nodeName'}}},{'name':'D','valueFrom':{'fieldRef':{'fieldPath':'metadata.labels[\\u0027app\\u0027]'}}},{'name':'E','valueFrom':{'fieldRef':{'fieldPath':'status.hostIP'}}}]",
		"A=p;B=10.0.0.5,fd00::5;C=n1;D=web;E=192.0.2.1;", NULL },
	{ "resources",
		"'resources':{'limits':{'cpu':'250m','memory':'1Mi'}},'env':[{'name':'A','valueFrom':{'resourceFieldRef':{'resource':'limits.cpu'}}},{'name':'B','valueFrom':{'resourceFieldRef':{'resource':'limits.cpu','divisor':'1m'}}},{'name':'C','valueFrom':{'resourceFieldRef':{'resource':'requests.memory','divisor':'1Ki'}}}]",
		"A=1;B=250;C=1024;", NULL },
	{ "no limit is the node's",
		"'env':[{'name':'A','valueFrom':{'resourceFieldRef':{'resource':'limits.cpu'}}},{'name':'B','valueFrom':{'resourceFieldRef':{'resource':'requests.cpu'}}}]",
		"A=4;B=0;", NULL },
};

static struct pod *env_pod(const char *members)
{
	_cleanup_free_ char *spec = xasprintf("{'containers':[{'name':'c','image':'i',%s}]}", members);

	return pod_make(spec);
}

START_TEST(env_case)
{
	struct pod *pod = env_pod(env_cases[_i].env);
	struct env services = { 0 }, got = { 0 };
	struct env_sources s;
	struct error err = ERROR_INIT;
	struct str text = STR_INIT;

	sources(&s, &services);
	int r = env_build(pod, &pod->containers[0], &s, &got, &err);
	if (env_cases[_i].error) {
		ck_assert_msg(r < 0 && strstr(err.text, env_cases[_i].error), "%s: %s", env_cases[_i].name, err.text);
	} else {
		ck_assert_msg(r == 0, "%s: %s", env_cases[_i].name, err.text);
		for (size_t i = 0; i < got.names.n; i++)
			if (!env_get(&services, got.names.v[i]))
				str_addf(&text, "%s=%s;", got.names.v[i], got.values.v[i]);
		ck_assert_msg(str_eq(str_get(&text), env_cases[_i].expect), "%s: %s", env_cases[_i].name, str_get(&text));
	}
	str_done(&text);
	env_done(&got);
	env_done(&services);
	pod_free(pod);
}
END_TEST

START_TEST(service_variables)
{
	struct env e = { 0 };
	struct env_sources s;
	static const char *const expect[][2] = { { "MY_DB_SERVICE_HOST", "10.96.0.7" }, { "MY_DB_SERVICE_PORT", "5432" },
		{ "MY_DB_SERVICE_PORT_SQL_X", "5432" }, { "MY_DB_SERVICE_PORT_ADM", "81" },
		{ "MY_DB_PORT", "tcp://10.96.0.7:5432" }, { "MY_DB_PORT_5432_TCP", "tcp://10.96.0.7:5432" },
		{ "MY_DB_PORT_5432_TCP_PROTO", "tcp" }, { "MY_DB_PORT_5432_TCP_PORT", "5432" },
		{ "MY_DB_PORT_5432_TCP_ADDR", "10.96.0.7" }, { "MY_DB_PORT_81_UDP", "udp://10.96.0.7:81" },
		{ "SIX_PORT", "tcp://[fd00::9]:1" }, { "SIX_SERVICE_HOST", "fd00::9" } };

	sources(&s, &e);
	for (size_t i = 0; i < ARRAY_LEN(expect); i++)
		ck_assert_msg(str_eq(env_get(&e, expect[i][0]), expect[i][1]), "%s=%s", expect[i][0], env_get(&e, expect[i][0]));
	ck_assert_ptr_null(env_get(&e, "HEADLESS_SERVICE_HOST"));
	env_done(&e);
}
END_TEST

static const struct {
	const char *name, *volume, *expect, *error; /* path:mode:text; */
} payload_cases[] = {
	{ "all keys", "'configMap':{'name':'cm2'}", "A:644:other;", NULL },
	{ "items and modes", "'configMap':{'name':'cm','defaultMode':256,'items':[{'key':'A','path':'x/y'},{'key':'B','path':'z','mode':511}]}",
		"x/y:400:1;z:777:two words;", NULL },
	{ "missing key", "'configMap':{'name':'cm','items':[{'key':'no','path':'x'}]}", NULL, "references non-existent config key: no" },
	{ "missing key, optional", "'configMap':{'name':'cm','optional':true,'items':[{'key':'no','path':'x'}]}", "", NULL },
	{ "missing object", "'secret':{'secretName':'no'}", NULL, "secret \"no\" not found" },
	{ "missing object, optional", "'secret':{'secretName':'no','optional':true}", "", NULL },
	{ "secret", "'secret':{'secretName':'s','items':[{'key':'pw','path':'p'}]}", "p:644:secret;", NULL },
	{ "labels", "'downwardAPI':{'items':[{'path':'l','fieldRef':{'fieldPath':'metadata.labels'}},{'path':'a','fieldRef':{'fieldPath':'metadata.annotations'}}]}",
		"l:644:app=\"web\";a:644:note=\"a \\\\ b\";", NULL },
	{ "projected: later sources win", "'projected':{'sources':[{'configMap':{'name':'cm2'}},{'secret':{'name':'s','items':[{'key':'pw','path':'A'}]}},{'downwardAPI':{'items':[{'path':'n','fieldRef':{'fieldPath':'metadata.namespace'}}]}}]}",
		"A:644:secret;n:644:ns;", NULL },
	{ "a key that is no file name is refused", "'configMap':{'name':'cm','items':[{'key':'A','path':'x//y'}]}", NULL, "invalid path" },
};

START_TEST(payload_case)
{
	_cleanup_free_ char *spec = xasprintf("{'containers':[{'name':'c','image':'i'}],'volumes':[{'name':'v',%s}]}", payload_cases[_i].volume);
	struct pod *pod = pod_make(spec);
	struct env services = { 0 };
	struct env_sources s;
	struct payload got = { 0 };
	struct error err = ERROR_INIT;
	struct str text = STR_INIT;

	sources(&s, &services);
	int r = payload_build(pod, &pod->volumes[0], &s, &got, &err);
	if (payload_cases[_i].error)
		ck_assert_msg(r < 0 && strstr(err.text, payload_cases[_i].error), "%s: %d %s", payload_cases[_i].name, r, err.text);
	else
		ck_assert_msg(r == 0, "%s: %s", payload_cases[_i].name, err.text);
	for (size_t i = 0; i < got.n; i++)
		str_addf(&text, "%s:%o:%s;", got.v[i].path, got.v[i].mode, got.v[i].data);
	if (r == 0)
		ck_assert_msg(str_eq(str_get(&text), payload_cases[_i].expect), "%s: %s", payload_cases[_i].name, str_get(&text));
	str_done(&text);
	payload_done(&got);
	env_done(&services);
	pod_free(pod);
}
END_TEST

#define RESOLV                                                                                                         \
	"# comment\nnameserver 192.0.2.53\nnameserver 192.0.2.54\nsearch old.example\nsearch lan.example. .\noptions rotate ndots:1 ndots:2\n"
static const struct {
	const char *name, *spec, *cluster, *expect, *reason; /* servers|searches|options */
} dns_cases[] = {
	{ "ClusterFirst", "", "10.96.0.10", "10.96.0.10|ns.svc.cl svc.cl cl lan.example|ndots:5", "" },
	{ "no cluster DNS", "", "", "192.0.2.53 192.0.2.54|lan.example|rotate ndots:2", "MissingClusterDNS" },
	{ "Default", "'dnsPolicy':'Default',", "10.96.0.10", "192.0.2.53 192.0.2.54|lan.example|rotate ndots:2", "" },
	{ "host network", "'hostNetwork':true,", "10.96.0.10", "192.0.2.53 192.0.2.54|lan.example|rotate ndots:2", "" },
	{ "host network with cluster DNS", "'hostNetwork':true,'dnsPolicy':'ClusterFirstWithHostNet',", "10.96.0.10",
		"10.96.0.10|ns.svc.cl svc.cl cl lan.example|ndots:5", "" },
	{ "None", "'dnsPolicy':'None','dnsConfig':{'nameservers':['1.1.1.1'],'searches':['a.b'],'options':[{'name':'ndots','value':'3'},{'name':'edns0'}]},",
		"10.96.0.10", "1.1.1.1|a.b|ndots:3 edns0", "" },
	{ "merged", "'dnsConfig':{'nameservers':['10.96.0.10','1.1.1.1'],'searches':['cl','x'],'options':[{'name':'ndots','value':'2'}]},",
		"10.96.0.10", "10.96.0.10 1.1.1.1|ns.svc.cl svc.cl cl lan.example x|ndots:2", "" },
	{ "too many servers", "'dnsPolicy':'None','dnsConfig':{'nameservers':['1','2','3','4']},", "", "1 2 3||", "DNSConfigForming" },
};

static void add_list(struct str *out, const struct strv *list)
{
	for (size_t i = 0; i < list->n; i++)
		str_addf(out, "%s%s", i ? " " : "", list->v[i]);
}

START_TEST(dns_case)
{
	_cleanup_free_ char *spec = xasprintf("{%s'containers':[{'name':'c','image':'i'}]}", dns_cases[_i].spec);
	struct pod *pod = pod_make(spec);
	struct dns_config host = { 0 }, got = { 0 };
	struct strv cluster = STRV_INIT;
	struct str text = STR_INIT, warning = STR_INIT;
	const char *reason;

	dns_parse(RESOLV, &host);
	strv_split(&cluster, dns_cases[_i].cluster, ',');
	dns_for_pod(pod, &host, &cluster, "cl", &got, &reason, &warning);
	add_list(&text, &got.servers);
	str_add_char(&text, '|');
	add_list(&text, &got.searches);
	str_add_char(&text, '|');
	add_list(&text, &got.options);
	ck_assert_msg(str_eq(str_get(&text), dns_cases[_i].expect), "%s: %s", dns_cases[_i].name, str_get(&text));
	ck_assert_str_eq(reason, dns_cases[_i].reason);
	ck_assert_int_eq(warning.len > 0, *reason != '\0');
	str_done(&text);
	str_done(&warning);
	strv_done(&cluster);
	dns_config_done(&host);
	dns_config_done(&got);
	pod_free(pod);
}
END_TEST

START_TEST(host_names)
{
	static const struct {
		const char *spec, *name, *fqdn;
	} names[] = {
		{ "", "p", "" },
		{ "'hostname':'web',", "web", "" },
		{ "'hostname':'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.-xyz',",
			"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.-x", "" },
		{ "'hostname':'web','subdomain':'db',", "web", "web.db.ns.svc.cl" },
		{ "'subdomain':'db','setHostnameAsFQDN':true,", "p.db.ns.svc.cl", "p.db.ns.svc.cl" },
		{ "'hostNetwork':true,", "", "" },
		{ "'hostnameOverride':'other','hostname':'web','subdomain':'db',", "other", "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		_cleanup_free_ char *spec = xasprintf("{%s'containers':[{'name':'c','image':'i'}]}", names[i].spec);
		struct pod *pod = pod_make(spec);
		_cleanup_free_ char *name = NULL, *fqdn = pod_fqdn(pod, "cl");

		ck_assert_int_eq(pod_hostname(pod, "cl", &name, NULL), 0);
		ck_assert_str_eq(name, names[i].name);
		ck_assert_str_eq(fqdn, names[i].fqdn);
		pod_free(pod);
	}
	struct pod *pod = pod_make(
		"{'subdomain':'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','setHostnameAsFQDN':true,'containers':[{'name':'c','image':'i'}]}");
	struct error err = ERROR_INIT;
	char *name = NULL;
	ck_assert_int_lt(pod_hostname(pod, "cl", &name, &err), 0);
	ck_assert_ptr_nonnull(strstr(err.text, "64 characters is the max"));
	pod_free(pod);
}
END_TEST

START_TEST(hosts_file)
{
	struct pod *pod = pod_make(
		"{'subdomain':'db','hostAliases':[{'ip':'1.2.3.4','hostnames':['a','b']}],'containers':[{'name':'c','image':'i'}]}");
	char *addresses[] = { (char *)"10.0.0.5" };
	_cleanup_free_ char *text = pod_hosts_file(pod, addresses, 1, "cl", NULL);

	ck_assert_str_eq(text, "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"
			       "fe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n"
			       "10.0.0.5\tp.db.ns.svc.cl\tp\n\n# Entries added by HostAliases.\n1.2.3.4\ta\tb\n");
	pod_free(pod);
	pod = pod_make("{'hostNetwork':true,'containers':[{'name':'c','image':'i'}]}");
	_cleanup_free_ char *host = pod_hosts_file(pod, NULL, 0, "cl", "127.0.0.1 localhost\n");
	ck_assert_str_eq(host, "# Kubernetes-managed hosts file (host network).\n127.0.0.1 localhost\n");
	pod_free(pod);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("env");

	tcase_add_loop_test(t, env_case, 0, ARRAY_LEN(env_cases));
	tcase_add_test(t, service_variables);
	tcase_add_loop_test(t, payload_case, 0, ARRAY_LEN(payload_cases));
	tcase_add_loop_test(t, dns_case, 0, ARRAY_LEN(dns_cases));
	tcase_add_test(t, host_names);
	tcase_add_test(t, hosts_file);
	return run_case(t);
}

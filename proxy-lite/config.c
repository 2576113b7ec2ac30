/* config.c - purpose: KubeProxyConfiguration files, as command-line options. */
#include "proxy-lite/config.h"

#include "common/base/log.h"
#include "common/sys/file.h"
#include "common/wire/json.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

enum { FILE_MAX = 1024 * 1024 };

static const struct {
	const char *path, *option; /* NULL: known, and of no consequence here */
} keys[] = {
	{ "apiVersion", NULL }, { "kind", NULL }, { "clientConnection.kubeconfig", "kubeconfig" },
	{ "clientConnection.acceptContentTypes", NULL }, { "clientConnection.contentType", NULL },
	{ "clientConnection.qps", NULL }, { "clientConnection.burst", NULL }, { "clusterCIDR", "cluster-cidr" },
	{ "detectLocalMode", "detect-local-mode" }, { "detectLocal.bridgeInterface", "pod-bridge-interface" },
	{ "detectLocal.interfaceNamePrefix", "pod-interface-name-prefix" },
	{ "detectLocal.clusterCIDRs", "cluster-cidr" }, { "hostnameOverride", "hostname-override" },
	{ "nodePortAddresses", "nodeport-addresses" }, { "healthzBindAddress", "healthz-bind-address" },
	{ "metricsBindAddress", "metrics-bind-address" }, { "nftables.masqueradeAll", "masquerade-all" },
	{ "nftables.masqueradeBit", "masquerade-bit" }, { "nftables.minSyncPeriod", "nftables-min-sync-period" },
	{ "nftables.syncPeriod", "nftables-sync-period" }, { "mode", NULL }, /* looked at below */
	{ "bindAddress", NULL }, { "bindAddressHardFail", NULL }, { "configSyncPeriod", NULL },
	{ "enableProfiling", NULL }, { "featureGates", NULL }, { "iptables", NULL }, { "ipvs", NULL },
	{ "logging", NULL }, { "oomScoreAdj", NULL }, { "portRange", NULL }, { "showHiddenMetricsForVersion", NULL },
	{ "winkernel", NULL }, { "windowsRunAsService", NULL }, { "conntrack", NULL }, /* looked at below */
};

/* Sections whose keys are looked up one by one. */
static const char *const sections[] = { "clientConnection", "detectLocal", "nftables" };

static char *value_text(const json_t *value)
{
	struct str out = STR_INIT;
	const json_t *item;
	size_t i;

	switch (json_typeof(value)) {
	case JSON_STRING:
		return xstrdup(json_string_value(value));
	case JSON_INTEGER:
		return xasprintf("%" PRId64, (int64_t)json_integer_value(value));
	case JSON_TRUE:
		return xstrdup("true");
	case JSON_FALSE:
		return xstrdup("false");
	case JSON_ARRAY:
		json_array_foreach(value, i, item)
		{
			if (!json_is_string(item)) {
				str_done(&out);
				return NULL;
			}
			str_addf(&out, "%s%s", i ? "," : "", json_string_value(item));
		}
		return str_take(&out);
	default:
		return NULL;
	}
}

static int take(const char *path, const json_t *value, const struct option_values *given, struct strv *options,
	struct error *err)
{
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		_cleanup_free_ char *text = NULL;

		if (strcmp(keys[i].path, path) != 0)
			continue;
		if (!keys[i].option || json_is_null(value))
			return 0;
		text = value_text(value);
		if (!text)
			return error_set(err, ERROR_INVALID, "%s: is of the wrong type", path);
		/* kube-proxy writes out its defaults: "" and 0s mean "not given". */
		if (!*text || strcmp(text, "0s") == 0 || option_given(given, keys[i].option))
			return 0;
		strv_add_take(options, xasprintf("--%s=%s", keys[i].option, text));
		return 0;
	}
	log_warning("configuration: %s is not known here", path);
	return 0;
}

static bool is_section(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(sections); i++)
		if (strcmp(sections[i], name) == 0)
			return true;
	return false;
}

static void warn_unmet(const json_t *root)
{
	static const char *const limits[] = { "maxPerCore", "min", "tcpEstablishedTimeout", "tcpCloseWaitTimeout",
		"udpTimeout", "udpStreamTimeout", "tcpBeLiberal" };
	const char *mode = json_str_at(root, "mode", "");
	const json_t *conntrack = json_object_get(root, "conntrack");

	if (*mode && strcmp(mode, "nftables") != 0)
		log_warning("configuration: mode %.20s is not offered; Services are served by nftables", mode);
	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		const json_t *value = json_object_get(conntrack, limits[i]);
		const char *text = json_string_value(value);

		if (value && !json_is_null(value) && !json_is_false(value) && json_integer_value(value) == 0 &&
			(!text || !*text || strcmp(text, "0s") == 0))
			continue;
		if (value && !json_is_null(value) && !json_is_false(value))
			log_warning("configuration: conntrack.%s is left to sysctl.d: the proxy sets no sysctls",
				limits[i]);
	}
}

static int read_root(json_t *root, const struct option_values *given, struct strv *options, struct error *err)
{
	const char *version = json_str_at(root, "apiVersion", ""), *kind = json_str_at(root, "kind", ""), *name, *key;
	json_t *value, *inner;
	char path[200];
	int r;

	if (strcmp(version, "kubeproxy.config.k8s.io/v1alpha1") != 0 || strcmp(kind, "KubeProxyConfiguration") != 0)
		return error_set(err, ERROR_INVALID,
			"apiVersion \"%.60s\", kind \"%.60s\": is not kubeproxy.config.k8s.io/v1alpha1, "
			"KubeProxyConfiguration",
			version, kind);
	json_object_foreach(root, name, value)
	{
		if (!is_section(name)) {
			if ((r = take(name, value, given, options, err)) < 0)
				return r;
			continue;
		}
		json_object_foreach(value, key, inner)
		{
			snprintf(path, sizeof(path), "%s.%.100s", name, key);
			if ((r = take(path, inner, given, options, err)) < 0)
				return r;
		}
	}
	warn_unmet(root);
	return 0;
}

int config_parse(
	const char *text, size_t len, const struct option_values *given, struct strv *ret_options, struct error *err)
{
	_cleanup_json_ json_t *documents = NULL;
	int r = yaml_read(text, len, &documents, err);

	if (r < 0)
		return r;
	if (json_array_size(documents) != 1)
		return error_set(err, ERROR_INVALID, "%zu documents instead of one", json_array_size(documents));
	return read_root(json_array_get(documents, 0), given, ret_options, err);
}

int config_read(const char *path, const struct option_values *given, struct strv *ret_options, struct error *err)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	int r = file_read(AT_FDCWD, path, FILE_MAX, &text, &len, err);

	if (r == 0)
		r = config_parse(text, len, given, ret_options, err);
	return r < 0 ? error_prefix(err, "configuration %s", path) : 0;
}

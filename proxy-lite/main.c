/* main.c - purpose: proxy-lite's options, its commands, and the wiring of the daemon. */
#include "common/base/codec.h"
#include "common/base/log.h"
#include "common/base/options.h"
#include "common/sys/notify.h"
#include "proxy-lite.opts.h"
#include "proxy-lite/admin/report.h"
#include "proxy-lite/config.h"
#include "proxy-lite/health/serve.h"
#include "proxy-lite/proxy.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

DEFINE_CLEANUP(struct option_values *, option_values_free)

static const char synopsis[] = "[--name=value ...] [dump | explain ADDRESS:PORT[/PROTOCOL]]";

enum { ANSWER_MAX = 256 * 1024 * 1024 };

/* ---- options ---- */

static int parse_pods(const struct strv *list, struct base_config *config, struct error *err)
{
	for (size_t i = 0; list && i < list->n; i++) {
		struct cidr cidr;

		if (!cidr_parse(list->v[i], &cidr))
			return error_set(err, ERROR_INVALID, "--cluster-cidr: \"%s\" is not a CIDR like 10.244.0.0/16",
				list->v[i]);
		if (config->has_pods[cidr.ip.v6])
			return error_set(
				err, ERROR_INVALID, "--cluster-cidr: %s is a second range of its family", list->v[i]);
		config->has_pods[cidr.ip.v6] = true;
		config->pods[cidr.ip.v6] = cidr;
	}
	return 0;
}

/* Which packets come from pods; see match_pods() in base.c. */
static int parse_local_mode(const struct option_values *values, struct proxy_options *ret, struct error *err)
{
	const char *mode = option_string(values, "detect-local-mode");
	const char *bridge = option_string(values, "pod-bridge-interface");
	const char *prefix = option_string(values, "pod-interface-name-prefix");
	const char *name = NULL;

	if (strcmp(mode, "ClusterCIDR") == 0)
		return 0;
	if (strcmp(mode, "NodeCIDR") == 0)
		ret->pods_of_node = true;
	else if (strcmp(mode, "BridgeInterface") == 0)
		name = bridge ? bridge : "";
	else if (strcmp(mode, "InterfaceNamePrefix") == 0)
		name = prefix ? prefix : "";
	else
		return error_set(err, ERROR_INVALID,
			"--detect-local-mode: \"%s\" is not ClusterCIDR, NodeCIDR, BridgeInterface or "
			"InterfaceNamePrefix",
			mode);
	memset(ret->base.has_pods, 0, sizeof(ret->base.has_pods));
	if (!name)
		return 0;
	if (!*name || strlen(name) > 15 || strpbrk(name, " /*"))
		return error_set(err, ERROR_INVALID, "--%s: \"%s\" is not the name of an interface, 1 to 15 characters",
			name == prefix ? "pod-interface-name-prefix" : "pod-bridge-interface", name);
	snprintf(ret->pods_interface, sizeof(ret->pods_interface), "%s%s", name, name == prefix ? "*" : "");
	ret->base.pods_interface = ret->pods_interface;
	return 0;
}

static bool table_name_valid(const char *name)
{
	size_t n = strlen(name);

	if (n == 0 || n >= BASE_TABLE_NAME_MAX || !((name[0] | 32) >= 'a' && (name[0] | 32) <= 'z'))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!((name[i] | 32) >= 'a' && (name[i] | 32) <= 'z') && !(name[i] >= '0' && name[i] <= '9') &&
			name[i] != '_' && name[i] != '-')
			return false;
	return true;
}

static int parse_base(const struct option_values *values, struct base_config *config, struct error *err)
{
	int64_t bit = option_int(values, "masquerade-bit");

	config->table = option_string(values, "table");
	config->masquerade_all = option_bool(values, "masquerade-all");
	if (!table_name_valid(config->table))
		return error_set(err, ERROR_INVALID,
			"--table: \"%s\" is not a letter followed by letters, digits, _ and -, %d characters at most",
			config->table, BASE_TABLE_NAME_MAX - 1);
	if (bit < 0 || bit > 31)
		return error_set(err, ERROR_INVALID, "--masquerade-bit: %lld is not 0 to 31", (long long)bit);
	config->masquerade_mark = (uint32_t)1 << bit;
	return parse_pods(option_list(values, "cluster-cidr"), config, err);
}

/* Lower case, as the kubelet registers it. */
static char *node_name(const struct option_values *values)
{
	const char *given = option_string(values, "hostname-override");
	char host[256] = "";
	char *name;

	if (!given)
		gethostname(host, sizeof(host) - 1);
	name = xstrdup(given ? given : host);
	for (char *c = name; *c; c++)
		if (*c >= 'A' && *c <= 'Z')
			*c |= 32;
	return name;
}

static int parse_options(const struct option_values *values, struct proxy_options *ret, struct error *err)
{
	int r = parse_base(values, &ret->base, err);

	if (r < 0 || (r = parse_local_mode(values, ret, err)) < 0)
		return r;
	ret->config = option_string(values, "config");
	ret->kubeconfig = option_string(values, "kubeconfig");
	if (str_empty(ret->kubeconfig))
		ret->kubeconfig = NULL;
	if (ret->kubeconfig && option_given(values, "api-socket"))
		return error_set(err, ERROR_INVALID, "--kubeconfig and --api-socket exclude each other");
	if ((r = sock_address_parse(option_string(values, "api-socket"), &ret->api, err)) < 0)
		return error_prefix(err, "--api-socket");
	if (!ret->api.is_unix)
		return error_set(err, ERROR_INVALID, "--api-socket: \"%s\" is not a Unix socket",
			option_string(values, "api-socket"));
	ret->node.proxy_name = option_string(values, "proxy-name");
	ret->min_sync_ms = option_duration_ns(values, "nftables-min-sync-period") / 1000000;
	ret->check_ms = MAX((uint64_t)1000, option_duration_ns(values, "nftables-sync-period") / 1000000);
	r = address_choice_parse(option_list(values, "nodeport-addresses"), &ret->node_addresses, err);
	return r < 0 ? error_prefix(err, "--nodeport-addresses") : 0;
}

/* ---- one daemon for each table and network namespace ---- */

/* Abstract socket names belong to the network namespace, as tables do. The socket is never closed. */
static int lock_table(const char *table, struct error *err)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int len = snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1, "proxy-lite/table/%s", table);
	_cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return error_sys(err, errno, "socket");
	if (bind(fd, (struct sockaddr *)&un, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)) < 0)
		return errno == EADDRINUSE
			       ? error_set(err, ERROR_EXISTS,
					 "table %s is in use by another proxy-lite in this network namespace", table)
			       : error_sys(err, errno, "lock of table %s", table);
	steal_fd(&fd);
	return 0;
}

/* ---- commands ---- */

/* Asks the daemon; 1 when none listens. */
static int ask(const char *socket_path, const char *target, struct str *body, struct error *err)
{
	struct sock_address address;
	_cleanup_(str_done) struct str answer = STR_INIT, request = STR_INIT;
	_cleanup_fd_ int fd = -1;
	char buf[16384];
	const char *start;
	ssize_t n;
	int r;

	if (str_empty(socket_path))
		return 1;
	if ((r = sock_address_parse(socket_path, &address, err)) < 0)
		return error_prefix(err, "--admin-socket");
	if (sock_connect(&address, &fd, NULL) < 0)
		return 1;
	str_addf(&request, "GET %s HTTP/1.0\r\nHost: proxy-lite\r\n\r\n", target);
	if (send(fd, request.buf, request.len, MSG_NOSIGNAL) != (ssize_t)request.len)
		return error_sys(err, errno, "ask the daemon at %s", socket_path);
	while ((n = read(fd, buf, sizeof(buf))) > 0 && answer.len < ANSWER_MAX)
		str_add_bytes(&answer, buf, (size_t)n);
	start = answer.len ? strstr(answer.buf, "\r\n\r\n") : NULL;
	if (n < 0 || !start)
		return error_set(err, ERROR_UNAVAILABLE, "the daemon at %s gave no answer", socket_path);
	str_add(body, start + 4);
	if (answer.len < 12 || strncmp(answer.buf + 9, "200", 3) != 0)
		return error_set(err, ERROR_INVALID, "%s", str_get(body));
	return 0;
}

static int held_report(
	const struct base_config *config, const struct report_address *at, struct str *out, struct error *err)
{
	struct services services;
	struct sync sync;
	struct node_identity nobody = { 0 };
	int r;

	services_init(&services, &nobody);
	r = sync_init(&sync, config, &services, err);
	if (r == 0 && (r = sync_load(&sync, err)) == 0) {
		str_add(out, "The daemon is not running. What the kernel holds:\n");
		if (at)
			report_explain(&sync, false, at, out);
		else
			report_held(&sync, out);
	}
	sync_done(&sync);
	services_done(&services);
	return r;
}

static int run_command(
	const struct option_values *values, const struct base_config *config, int argc, char **argv, struct error *err)
{
	_cleanup_(str_done) struct str out = STR_INIT;
	_cleanup_free_ char *target = NULL;
	struct report_address at;
	bool explain = strcmp(argv[0], "explain") == 0;
	int r;

	if (!explain && strcmp(argv[0], "dump") != 0)
		return error_set(err, ERROR_INVALID, "\"%s\" is not a command: dump, or explain ADDRESS:PORT", argv[0]);
	if (argc != 1 + explain)
		return error_set(
			err, ERROR_INVALID, explain ? "explain needs one ADDRESS:PORT" : "dump takes no argument");
	if (explain && (r = report_address_parse(argv[1], &at, err)) < 0)
		return r;
	/* The parsed text holds nothing that a query would have to escape, but brackets. */
	target = explain ? xasprintf("/explain?at=%s", argv[1]) : xstrdup("/dump");
	r = ask(option_string(values, "admin-socket"), target, &out, err);
	if (r == 1)
		r = held_report(config, explain ? &at : NULL, &out, err);
	if (r == 0)
		fputs(str_get(&out), stdout);
	return r;
}

static int cleanup(const struct base_config *config, struct error *err)
{
	struct services services = { 0 };
	struct sync sync;
	int r = lock_table(config->table, err);

	if (r < 0)
		return error_prefix(err, "--cleanup");
	r = sync_init(&sync, config, &services, err);
	if (r == 0)
		r = sync_cleanup(&sync, err);
	sync_done(&sync);
	return r < 0 ? error_prefix(err, "--cleanup") : 0;
}

/* ---- the daemon ---- */

/* Under kube-proxy's names. */
static char *configz(const struct option_values *values)
{
	const struct strv *cidrs = option_list(values, "cluster-cidr"),
			  *ports = option_list(values, "nodeport-addresses");
	_cleanup_(str_done) struct str joined = STR_INIT;
	json_t *addresses = json_array(), *json;
	char *text, least[DURATION_TEXT_MAX], check[DURATION_TEXT_MAX];

	duration_text((int64_t)option_duration_ns(values, "nftables-min-sync-period"), least);
	duration_text((int64_t)option_duration_ns(values, "nftables-sync-period"), check);
	for (size_t i = 0; cidrs && i < cidrs->n; i++)
		str_addf(&joined, "%s%s", i ? "," : "", cidrs->v[i]);
	for (size_t i = 0; ports && i < ports->n; i++)
		json_array_append_new(addresses, json_string(ports->v[i]));
	json = json_pack("{s:{s:s,s:s,s:s,s:{s:s*},s:{s:s*,s:s*},s:s*,s:o,s:s,s:s,s:{s:b,s:I,s:s,s:s}}}",
		"kubeproxy.config.k8s.io", "mode", "nftables", "clusterCIDR", str_get(&joined), "detectLocalMode",
		option_string(values, "detect-local-mode"), "clientConnection", "kubeconfig",
		option_string(values, "kubeconfig"), "detectLocal", "bridgeInterface",
		option_string(values, "pod-bridge-interface"), "interfaceNamePrefix",
		option_string(values, "pod-interface-name-prefix"), "hostnameOverride",
		option_string(values, "hostname-override"), "nodePortAddresses", addresses, "healthzBindAddress",
		option_string(values, "healthz-bind-address"), "metricsBindAddress",
		option_string(values, "metrics-bind-address"), "nftables", "masqueradeAll",
		option_bool(values, "masquerade-all"), "masqueradeBit",
		(json_int_t)option_int(values, "masquerade-bit"), "minSyncPeriod", least, "syncPeriod", check);
	text = json ? json_dumps(json, JSON_COMPACT) : NULL;
	json_decref(json);
	return text ? text : xstrdup("{}");
}

struct daemon {
	uv_loop_t loop;
	uv_signal_t signals[2];
	struct proxy proxy;
	struct serve *serve;
	struct notify *notify;
	bool stopping;
};

static void on_proxy_closed(void *data)
{
	(void)data; /* the loop ends when nothing is open any more */
}

static void on_signal(uv_signal_t *handle, int number)
{
	struct daemon *d = handle->data;

	if (d->stopping)
		return;
	d->stopping = true;
	log_info("stopping on signal %d; the table stays", number);
	notify_stop(d->notify);
	serve_stop(d->serve);
	proxy_stop(&d->proxy, on_proxy_closed, d);
	for (size_t i = 0; i < ARRAY_LEN(d->signals); i++)
		uv_close((uv_handle_t *)&d->signals[i], NULL);
}

static int run_daemon(const struct option_values *values, struct proxy_options *options, struct error *err)
{
	static const int numbers[] = { SIGTERM, SIGINT };
	struct daemon *d = xnew(struct daemon);
	_cleanup_free_ char *config = configz(values);
	struct serve_options serve = { option_string(values, "healthz-bind-address"),
		option_string(values, "metrics-bind-address"), option_string(values, "admin-socket"), config,
		&d->proxy };
	int r = lock_table(options->base.table, err);

	signal(SIGPIPE, SIG_IGN);
	uv_loop_init(&d->loop);
	if (r == 0)
		r = proxy_start(&d->proxy, &d->loop, options, err);
	if (r == 0)
		r = serve_start(&d->loop, &serve, &d->serve, err);
	if (r < 0)
		return r; /* the process ends: nothing is left to take down */
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		uv_signal_init(&d->loop, &d->signals[i]);
		d->signals[i].data = d;
		uv_signal_start(&d->signals[i], on_signal, numbers[i]);
	}
	d->notify = notify_start(&d->loop);
	log_info("serving table %s as node %s", options->base.table, options->node.name);
	uv_run(&d->loop, UV_RUN_DEFAULT);
	proxy_done(&d->proxy);
	uv_loop_close(&d->loop);
	free(d);
	return 0;
}

/* Puts what the configuration file says in front of the command line, which goes before it, and parses again. */
static int apply_config(
	int argc, char **argv, int *rest, struct option_values **values, struct strv *merged, struct error *err)
{
	struct option_values *again;
	int r;

	strv_add(merged, argv[0]);
	r = config_read(option_string(*values, "config"), *values, merged, err);
	if (r < 0)
		return r;
	for (int i = 1; i < argc; i++)
		strv_add(merged, argv[i]);
	r = options_parse(proxy_lite_options, "proxy-lite", synopsis, (int)merged->n, merged->v, rest, &again, err);
	if (r < 0)
		return error_prefix(err, "with configuration %s", option_string(*values, "config"));
	*rest -= (int)merged->n - argc;
	option_values_free(*values);
	*values = again;
	return 0;
}

/* Flags may stand behind the command, too: the words that are none are moved from args to words. */
static int parse_words(
	int *n_args, char **args, int *n_words, char **words, int *rest, struct option_values **ret, struct error *err)
{
	for (;;) {
		_cleanup_(option_values_free_p) struct option_values *values = NULL;
		int r = options_parse(proxy_lite_options, "proxy-lite", synopsis, *n_args, args, rest, &values, err);

		if (r < 0)
			return r;
		if (*rest >= *n_args) {
			*ret = steal(values);
			return 0;
		}
		words[(*n_words)++] = args[*rest];
		(*n_args)--;
		memmove(args + *rest, args + *rest + 1, (size_t)(*n_args - *rest) * sizeof(*args));
	}
}

int main(int argc, char **argv)
{
	_cleanup_(strv_done) struct strv merged = STRV_INIT;
	_cleanup_(option_values_free_p) struct option_values *values = NULL;
	_cleanup_free_ char *name = NULL;
	struct proxy_options options = { 0 };
	struct error err = ERROR_INIT;
	_cleanup_free_ char **args = xcalloc((size_t)argc + 1, sizeof(*args));
	_cleanup_free_ char **words = xcalloc((size_t)argc + 1, sizeof(*words));
	int n_args = argc, n_words = 0, rest, level, r;

	log_init("proxy-lite", LOG_LEVEL_INFO);
	memcpy(args, argv, (size_t)argc * sizeof(*args));
	r = parse_words(&n_args, args, &n_words, words, &rest, &values, &err);
	if (r == 0 && !str_empty(option_string(values, "config")))
		r = apply_config(n_args, args, &rest, &values, &merged, &err);
	if (r == 0) {
		level = log_level_parse(option_string(values, "log-level"));
		if (level < 0)
			r = error_set(&err, ERROR_INVALID, "--log-level: \"%s\" is not error, warning, info or debug",
				option_string(values, "log-level"));
		else
			log_init("proxy-lite", (enum log_level)level);
	}
	if (r == 0)
		r = parse_options(values, &options, &err);
	bool typed = r < 0 || n_words > 0; /* somebody waits at the command line */
	if (r == 0) {
		name = node_name(values);
		options.node.name = name;
		if (option_bool(values, "cleanup"))
			r = cleanup(&options.base, &err);
		else if (n_words > 0)
			r = run_command(values, &options.base, n_words, words, &err);
		else
			r = run_daemon(values, &options, &err);
	}
	address_choice_done(&options.node_addresses);
	if (r < 0 && typed)
		return options_refuse("proxy-lite", &err);
	if (r < 0)
		log_error("%s", err.text);
	return r < 0 ? 1 : 0;
}

/* main.c - purpose: kubelet-lite: options, and the wiring of its parts. */
#include "common/base/log.h"
#include "common/base/quantity.h"
#include "common/net/http_server.h"
#include "common/net/job.h"
#include "common/sys/file.h"
#include "common/sys/notify.h"
#include "kubelet-lite/local/api.h"
#include "kubelet-lite/worker/node.h"

#include "kubelet-lite.opts.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <malloc.h>
#include <stdio.h>
#include <uv.h>

enum { HEALTH_BODY_MAX = 4096 };

struct daemon {
	uv_loop_t loop;
	uv_signal_t term, interrupt;
	struct option_values *options;
	struct strv node_ips;
	struct quantity log_size;
	unsigned node_port_min, node_port_max;
	char *node_name;
	struct objects *objects;
	struct file_source *files;
	struct local_api *api;
	struct node *node;
	struct http_server *health;
	struct notify *notify;
	bool stopping;
};

static char *node_name(const struct option_values *o)
{
	char host[256] = "node";
	const char *given = option_string(o, "hostname-override");
	char *name;

	if (!given && gethostname(host, sizeof(host) - 1) == 0)
		given = host;
	name = xstrdup(given);
	for (char *p = name; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	return name;
}

static int parse_ports(const char *text, struct daemon *ret, struct error *err)
{
	char rest;

	if (sscanf(text, "%u-%u%c", &ret->node_port_min, &ret->node_port_max, &rest) != 2 || ret->node_port_min < 1 ||
		ret->node_port_max > 65535 || ret->node_port_min > ret->node_port_max)
		return error_set(
			err, ERROR_INVALID, "--service-node-port-range \"%s\": must be min-max within 1-65535", text);
	return 0;
}

static int start_objects(struct daemon *d, struct error *err)
{
	const struct option_values *o = d->options;
	struct objects_options options = { .root_dir = option_string(o, "root-dir"),
		.node_name = d->node_name,
		.service_cidr = option_string(o, "service-cluster-ip-range"),
		.node_port_min = d->node_port_min,
		.node_port_max = d->node_port_max };
	int r = dir_make(options.root_dir, 0755, err);

	if (r == 0)
		r = objects_new(&d->loop, &options, &d->objects, err);
	return r;
}

static int check_range(const struct option_values *o, const char *name, int64_t min, int64_t max, struct error *err)
{
	int64_t v = option_int(o, name);

	if (v >= min && v <= max)
		return 0;
	return error_set(err, ERROR_INVALID, "--%s=%lld: must be from %lld to %lld", name, (long long)v, (long long)min,
		(long long)max);
}

/* One address, or one of each family. */
static int parse_node_ips(const char *text, struct strv *ret, struct error *err)
{
	unsigned char binary[16];
	bool v6[2];

	strv_split(ret, text, ',');
	if (ret->n > ARRAY_LEN(v6))
		return error_set(err, ERROR_INVALID, "--node-ip: \"%s\" has more than two addresses", text);
	for (size_t i = 0; i < ret->n; i++) {
		v6[i] = strchr(ret->v[i], ':') != NULL;
		if (inet_pton(v6[i] ? AF_INET6 : AF_INET, ret->v[i], binary) != 1)
			return error_set(err, ERROR_INVALID, "--node-ip: \"%s\" is not an IP address", ret->v[i]);
	}
	if (ret->n == 2 && v6[0] == v6[1])
		return error_set(err, ERROR_INVALID, "--node-ip: \"%s\" has two addresses of one family", text);
	return 0;
}

/* What is wrong with the command line is told before anything is touched. */
static int check_options(struct daemon *d, struct error *err)
{
	const struct option_values *o = d->options;
	int r = check_range(o, "max-pods", 1, 100000, err);

	if (r == 0)
		r = check_range(o, "max-parallel-image-pulls", 1, 1000, err);
	if (r == 0)
		r = check_range(o, "container-log-max-files", 2, 1000, err);
	if (r == 0)
		r = check_range(o, "healthz-port", 0, 65535, err);
	if (r == 0 && quantity_parse(option_string(o, "container-log-max-size"), &d->log_size, err) < 0)
		r = error_prefix(err, "--container-log-max-size");
	if (r == 0)
		r = parse_ports(option_string(o, "service-node-port-range"), d, err);
	if (r == 0 && option_string(o, "node-ip"))
		r = parse_node_ips(option_string(o, "node-ip"), &d->node_ips, err);
	return r;
}

static int start_node(struct daemon *d, struct error *err)
{
	const struct option_values *o = d->options;

	return node_start(
		&(struct node_options){
			.loop = &d->loop,
			.objects = d->objects,
			.endpoint = option_string(o, "container-runtime-endpoint"),
			.root_dir = option_string(o, "root-dir"),
			.pod_logs_dir = option_string(o, "pod-logs-dir"),
			.container_logs_dir = option_string(o, "container-logs-dir"),
			.node_name = d->node_name,
			.node_ips = &d->node_ips,
			.node_labels = option_list(o, "node-labels"),
			.cgroup_root = option_string(o, "cgroup-root"),
			.cgroups_per_qos = option_bool(o, "cgroups-per-qos"),
			.max_pods = option_int(o, "max-pods"),
			.cluster_dns = option_list(o, "cluster-dns"),
			.cluster_domain = option_string(o, "cluster-domain"),
			.resolv_conf = option_string(o, "resolv-conf"),
			.request_timeout_ms = option_duration_ns(o, "runtime-request-timeout") / 1000000,
			.relist_ms = MAX(option_duration_ns(o, "relist-period") / 1000000, (uint64_t)1000),
			.max_pulls = (unsigned)option_int(o, "max-parallel-image-pulls"),
			.log_max_bytes = quantity_value(d->log_size),
			.log_max_files = (unsigned)option_int(o, "container-log-max-files"),
			.unsafe_sysctls = option_list(o, "allowed-unsafe-sysctls"),
			.seccomp_default = option_bool(o, "seccomp-default"),
		},
		&d->node, err);
}

static int log_path(void *data, const char *ns, const char *pod, const char *container, bool previous, char **ret_path,
	struct error *err)
{
	struct daemon *d = data;

	return node_container_log_path(d->node, ns, pod, container, previous, ret_path, err);
}

static int stream_url(
	void *data, const struct stream_wanted *wanted, stream_url_cb cb, void *cb_data, struct error *err)
{
	struct daemon *d = data;

	return node_stream_url(d->node, wanted, cb, cb_data, err);
}

static int start_api(struct daemon *d, struct error *err)
{
	const struct option_values *o = d->options;

	return local_api_start(
		&(struct local_api_options){
			.loop = &d->loop,
			.objects = d->objects,
			.files = d->files,
			.socket_path = option_string(o, "api-socket"),
			.tls_address = option_string(o, "api-address"),
			.root_dir = option_string(o, "root-dir"),
			.kubeconfig = option_string(o, "api-kubeconfig"),
			.log_path = log_path,
			.stream_url = stream_url,
			.data = d,
		},
		&d->api, err);
}

static void on_health(void *context, struct http_exchange *exchange, const struct http_request *request)
{
	struct daemon *d = context;
	_cleanup_(str_done) struct str out = STR_INIT;

	if (str_eq(request->path, "/healthz") || str_eq(request->path, "/livez") || str_eq(request->path, "/readyz")) {
		bool ready = !str_eq(request->path, "/readyz") || node_healthy(d->node);

		str_add(&out, ready ? "ok" : "the container runtime does not answer\n");
		http_respond(exchange, ready ? 200 : 503, "text/plain; charset=utf-8", out.buf, out.len);
	} else if (str_eq(request->path, "/metrics")) {
		node_metrics(d->node, &out);
		http_respond(exchange, 200, "text/plain; version=0.0.4; charset=utf-8", out.buf, out.len);
	} else {
		http_respond(exchange, 404, "text/plain; charset=utf-8", "404 page not found\n", 19);
	}
}

static int start_health(struct daemon *d, struct error *err)
{
	const char *bind = option_string(d->options, "healthz-bind-address");
	int64_t port = option_int(d->options, "healthz-port");
	struct sock_address address;
	int fd, r;

	if (port == 0)
		return 0;
	_cleanup_free_ char *text =
		strchr(bind, ':') ? xasprintf("[%s]:%d", bind, (int)port) : xasprintf("%s:%d", bind, (int)port);
	r = sock_address_parse(text, &address, err);
	if (r == 0)
		r = sock_listen(&address, 0, &fd, err);
	if (r < 0)
		return error_prefix(err, "--healthz-bind-address, --healthz-port");
	d->health = http_server_new(&d->loop, fd, NULL, HEALTH_BODY_MAX, on_health, d);
	return 0;
}

/* ---- stop: API and health first, so that nobody asks; then the pods' workers; the store last. */

static void on_node_stopped(void *data)
{
	struct daemon *d = data;

	d->node = NULL;
	if (d->files)
		file_source_stop(d->files);
	d->files = NULL;
	objects_free(d->objects);
	d->objects = NULL;
	job_shutdown();
}

static void on_api_stopped(void *data)
{
	struct daemon *d = data;

	d->api = NULL;
	node_stop(d->node, on_node_stopped, d);
}

static void on_health_closed(void *data)
{
	struct daemon *d = data;

	d->health = NULL;
	local_api_stop(d->api, on_api_stopped, d);
}

static void on_signal(uv_signal_t *handle, int number)
{
	struct daemon *d = handle->data;

	if (d->stopping)
		return;
	d->stopping = true;
	log_info("stopping on signal %d; pods go on running", number);
	notify_stop(d->notify);
	uv_close((uv_handle_t *)&d->term, NULL);
	uv_close((uv_handle_t *)&d->interrupt, NULL);
	if (d->health)
		http_server_close(d->health, on_health_closed, d);
	else
		on_health_closed(d);
}

static void start_signals(struct daemon *d)
{
	uv_signal_init(&d->loop, &d->term);
	uv_signal_init(&d->loop, &d->interrupt);
	d->term.data = d->interrupt.data = d;
	uv_signal_start(&d->term, on_signal, SIGTERM);
	uv_signal_start(&d->interrupt, on_signal, SIGINT);
	signal(SIGPIPE, SIG_IGN);
}

static int start(struct daemon *d, struct error *err)
{
	int r = start_objects(d, err);

	/* The manifests are read before anything is compared with the runtime. */
	if (r == 0)
		r = file_source_start(
			&d->loop, d->objects, option_string(d->options, "pod-manifest-path"), &d->files, err);
	if (r == 0)
		r = start_node(d, err);
	if (r == 0)
		r = start_health(d, err);
	/* Last: its socket is a file, which a start that fails must not leave behind. */
	if (r == 0)
		r = start_api(d, err);
	return r;
}

/* Many threads' arenas would cost more memory than they save time. */
static void tune_memory(void)
{
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_TRIM_THRESHOLD, 64 * 1024);
}

int main(int argc, char **argv)
{
	static struct daemon d;
	struct error err = ERROR_INIT;
	int rest;

	tune_memory();
	log_init("kubelet-lite", LOG_LEVEL_INFO);
	if (options_parse(kubelet_lite_options, "kubelet-lite", "[--name=value ...]", argc, argv, &rest, &d.options,
		    &err) < 0)
		return options_refuse("kubelet-lite", &err);
	int level = log_level_parse(option_string(d.options, "log-level"));
	if (level < 0)
		error_set(&err, ERROR_INVALID, "--log-level=%s: must be one of error, warning, info, debug",
			option_string(d.options, "log-level"));
	else if (rest < argc)
		error_set(&err, ERROR_INVALID, "unexpected argument \"%s\"", argv[rest]);
	if (err.code != ERROR_OK || check_options(&d, &err) < 0)
		return options_refuse("kubelet-lite", &err);
	log_init("kubelet-lite", (enum log_level)level);
	d.node_name = node_name(d.options);
	uv_loop_init(&d.loop);
	if (start(&d, &err) < 0) {
		log_error("%s", err.text);
		return 1;
	}
	start_signals(&d);
	d.notify = notify_start(&d.loop);
	log_info("node %s: manifests in %s, runtime at %s", d.node_name, option_string(d.options, "pod-manifest-path"),
		option_string(d.options, "container-runtime-endpoint"));
	uv_run(&d.loop, UV_RUN_DEFAULT);
	uv_loop_close(&d.loop);
	strv_done(&d.node_ips);
	free(d.node_name);
	option_values_free(d.options);
	return 0;
}

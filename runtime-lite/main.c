/*
 * main.c - purpose: runtime-lite: the daemon, or with a command its administrator's tool.
 *
 * Start: directories and locks, everything on disk is read and matched with what runs, and only then is the socket
 * there. Stop (SIGTERM, SIGINT): no new calls, the running ones end, and all containers stay.
 */
#include "common/base/log.h"
#include "common/net/job.h"
#include "common/net/sock.h"
#include "common/sys/notify.h"
#include "runtime-lite/admin/admin.h"
#include "runtime-lite/cri/service.h"

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <runtime-lite.opts.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { STOP_PATIENCE_MS = 5000, OPEN_FILES = 65536 };

struct daemon {
	uv_loop_t loop;
	uv_signal_t sigterm, sigint;
	uv_timer_t patience;
	struct service *service;
	struct rpc_server *server;
	struct notify *notify;
	char *socket_path;
	bool stopping;
};

/* Beside build/bin/runtime-lite, or where packages put it. */
static char *find_libexec(const char *given)
{
	char exe[PATH_MAX];

	if (given)
		return xstrdup(given);
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	if (n > 0) {
		exe[n] = '\0';
		for (int up = 0; up < 2 && strrchr(exe, '/'); up++)
			*strrchr(exe, '/') = '\0';
		_cleanup_free_ char *dir = xasprintf("%s/libexec/runtime-lite", exe);
		_cleanup_free_ char *monitor = xasprintf("%s/monitor", dir);
		if (access(monitor, X_OK) == 0)
			return steal(dir);
	}
	return xstrdup("/usr/libexec/runtime-lite");
}

/* Paths go into other processes and into state files. */
static char *absolute(const char *path)
{
	_cleanup_free_ char *cwd = *path == '/' ? NULL : getcwd(NULL, 0);
	char *result = cwd ? xasprintf("%s/%s", cwd, path) : xstrdup(path);

	for (size_t n = strlen(result); n > 1 && result[n - 1] == '/'; n--)
		result[n - 1] = '\0';
	return result;
}

static const char *socket_of(const char *listen)
{
	return str_starts(listen, "unix://") ? listen + strlen("unix://") : listen;
}

static void on_server_stopped(void *data)
{
	struct daemon *d = data;

	rpc_server_free(d->server);
	d->server = NULL;
	uv_close((uv_handle_t *)&d->sigterm, NULL);
	uv_close((uv_handle_t *)&d->sigint, NULL);
	uv_close((uv_handle_t *)&d->patience, NULL);
	service_close(d->service);
}

/* A long pull or exec keeps its client waiting, not the service manager: what is cut off here is undone at the next
 * start, as after a SIGKILL. */
static void on_patience_over(uv_timer_t *timer)
{
	(void)timer;
	log_warning("calls are still at work: leaving without their answers");
	_exit(0);
}

static void on_signal(uv_signal_t *handle, int number)
{
	struct daemon *d = handle->data;

	if (d->stopping)
		return;
	d->stopping = true;
	uv_timer_start(&d->patience, on_patience_over, STOP_PATIENCE_MS, 0);
	log_info("%s: stopping; containers run on", number == SIGTERM ? "SIGTERM" : "SIGINT");
	notify_stop(d->notify);
	d->notify = NULL;
	unlink(d->socket_path);
	rpc_server_stop(d->server, on_server_stopped, d);
}

static int listen_on(const char *text, const char *path, int *ret_fd, struct error *err)
{
	struct sock_address address;
	int r = sock_address_parse(text, &address, err);

	if (r == 0 && !address.is_unix)
		r = error_set(err, ERROR_INVALID, "must be a Unix socket, such as unix:///run/runtime-lite/runtime-lite.sock");
	if (r == 0)
		r = sock_listen(&address, 0600, ret_fd, err);
	return r < 0 ? error_prefix(err, "--listen %s", path) : 0;
}

static void start_signals(struct daemon *d)
{
	uv_signal_init(&d->loop, &d->sigterm);
	uv_signal_init(&d->loop, &d->sigint);
	uv_timer_init(&d->loop, &d->patience);
	d->sigterm.data = d->sigint.data = d;
	uv_signal_start(&d->sigterm, on_signal, SIGTERM);
	uv_signal_start(&d->sigint, on_signal, SIGINT);
}

static int serve(struct daemon *d, const struct service_options *options, const char *listen, struct error *err)
{
	int fd = -1;
	int r = service_new(&d->loop, options, &d->service, err);

	if (r < 0)
		return r;
	r = listen_on(listen, d->socket_path, &fd, err);
	if (r < 0) {
		service_close(d->service);
		uv_run(&d->loop, UV_RUN_DEFAULT);
		d->service = service_free(d->service);
		return r;
	}
	d->server = rpc_server_new(&d->loop, fd, service_methods(), d->service);
	start_signals(d);
	malloc_trim(0);
	log_info("serving CRI on %s", d->socket_path);
	d->notify = notify_start(&d->loop);
	uv_run(&d->loop, UV_RUN_DEFAULT);
	job_shutdown();
	uv_run(&d->loop, UV_RUN_DEFAULT);
	d->service = service_free(d->service);
	return 0;
}

/* Each pod holds some descriptors here. Containers do not inherit the limit. */
static void raise_open_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= OPEN_FILES)
		return;
	limit.rlim_cur = MIN(limit.rlim_max, (rlim_t)OPEN_FILES);
	setrlimit(RLIMIT_NOFILE, &limit);
}

static struct image_limits image_limits_of(const struct option_values *values)
{
	return (struct image_limits){
		.stall_timeout_ns = option_duration_ns(values, "pull-progress-timeout"),
		.max_layer_bytes = (uint64_t)option_int(values, "max-layer-bytes"),
		.max_layer_ratio = (uint64_t)option_int(values, "max-layer-ratio"),
	};
}

static int run_daemon(const struct option_values *values)
{
	struct daemon d = { 0 };
	struct error err = ERROR_INIT;
	_cleanup_free_ char *state = absolute(option_string(values, "state"));
	_cleanup_free_ char *root = absolute(option_string(values, "root"));
	_cleanup_free_ char *libexec = find_libexec(option_string(values, "libexec-dir"));
	struct service_options options = {
		.state_dir = state,
		.root_dir = root,
		.libexec_dir = libexec,
		.cgroup_parent = option_string(values, "cgroup-parent"),
		.bridge_name = option_string(values, "bridge"),
		.pod_cidr = option_string(values, "pod-cidr"),
		.nofile = (uint64_t)option_int(values, "nofile"),
		.streaming_address = option_string(values, "streaming-address"),
		.insecure_registries = option_list(values, "insecure-registries"),
		.registry_config_dir = option_string(values, "registry-config-dir"),
		.pinned_images = option_list(values, "pinned-images"),
		.image_limits = image_limits_of(values),
	};

	umask(022);
	raise_open_files();
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	/* Worker threads come and go: an arena for each would be most of our memory. */
	mallopt(M_ARENA_MAX, 2);
	mallopt(M_TRIM_THRESHOLD, 128 * 1024);
	uv_loop_init(&d.loop);
	d.socket_path = xstrdup(socket_of(option_string(values, "listen")));
	int r = serve(&d, &options, option_string(values, "listen"), &err);
	if (r < 0)
		log_error("%s", err.text);
	uv_loop_close(&d.loop);
	free(d.socket_path);
	return r < 0 ? 1 : 0;
}

static int check_values(const struct option_values *values, struct error *err)
{
	if (log_level_parse(option_string(values, "log-level")) < 0)
		return error_set(err, ERROR_INVALID, "flag --log-level: value \"%s\" is not allowed; allowed: error, warning, "
						     "info, debug",
			option_string(values, "log-level"));
	if (option_int(values, "nofile") < 0 || option_int(values, "nofile") > INT_MAX)
		return error_set(err, ERROR_INVALID, "flag --nofile: value %lld is not allowed; allowed: 0 to %d",
			(long long)option_int(values, "nofile"), INT_MAX);
	if (option_int(values, "max-layer-bytes") <= 0)
		return error_set(err, ERROR_INVALID, "flag --max-layer-bytes: value %lld is not allowed; allowed: 1 or more",
			(long long)option_int(values, "max-layer-bytes"));
	if (option_int(values, "max-layer-ratio") <= 0)
		return error_set(err, ERROR_INVALID, "flag --max-layer-ratio: value %lld is not allowed; allowed: 1 or more",
			(long long)option_int(values, "max-layer-ratio"));
	if (*option_string(values, "cgroup-parent") != '/')
		return error_set(err, ERROR_INVALID, "flag --cgroup-parent: value \"%s\" is not allowed; allowed: an absolute "
						     "path below the root of the cgroups",
			option_string(values, "cgroup-parent"));
	return 0;
}

static int run_command(const struct option_values *values, int argc, char **argv)
{
	struct error err = ERROR_INIT;
	_cleanup_free_ char *root = absolute(option_string(values, "root"));
	_cleanup_free_ char *libexec = find_libexec(option_string(values, "libexec-dir"));
	struct admin admin = {
		.socket_path = socket_of(option_string(values, "listen")),
		.root = root,
		.libexec_dir = libexec,
		.registry_config_dir = option_string(values, "registry-config-dir"),
		.image_limits = image_limits_of(values),
		.root_given = option_given(values, "root"),
		.bridge = option_string(values, "bridge"),
		.pod_cidr = option_string(values, "pod-cidr"),
		.cgroup_parent = option_string(values, "cgroup-parent"),
	};

	if (!admin_known(argv[0])) {
		error_set(&err, ERROR_INVALID, "unknown command \"%s\"; --help lists all commands", argv[0]);
		return options_refuse("runtime-lite", &err);
	}
	return admin_run(argc, argv, &admin);
}

int main(int argc, char **argv)
{
	struct option_values *values = NULL;
	struct error err = ERROR_INIT;
	int rest = 0;
	_cleanup_free_ char *synopsis = admin_synopsis();

	if (options_parse(runtime_lite_options, "runtime-lite", synopsis, argc, argv, &rest, &values, &err) < 0)
		return options_refuse("runtime-lite", &err);
	int code;
	if (check_values(values, &err) < 0) {
		code = options_refuse("runtime-lite", &err);
	} else {
		log_init("runtime-lite", (enum log_level)log_level_parse(option_string(values, "log-level")));
		code = rest < argc ? run_command(values, argc - rest, argv + rest) : run_daemon(values);
	}
	option_values_free(values);
	return code;
}

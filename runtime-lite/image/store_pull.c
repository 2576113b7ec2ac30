/* store_pull.c - purpose: pull and load: run the pull program, record what it completed, clean up after it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "common/base/log.h"
#include "common/sys/file.h"
#include "runtime-lite/image/channel.h"
#include "runtime-lite/image/reference.h"
#include "runtime-lite/image/store_internal.h"

extern char **environ;

/* Descriptors of the pull program: 0 the channel, 3 the archive to load, 4 its staging directory. */
enum { PULL_INPUT_FD = 3, PULL_STAGING_FD = 4, ABOVE_ALL_FD = 10 };

struct pull {
	struct image_store *store;
	const struct image_pull_options *options;
	struct channel channel;
	int socket_fd;
	pid_t pid; /* 0: not running */
	char *staging_name;
	int staging_fd;
	struct strv loaded; /* a name or the id of each recorded image */
	char *last_id;
	bool finished;
};

static json_t *list_json(const struct strv *list)
{
	json_t *j = json_array();

	for (size_t i = 0; i < list->n; i++)
		json_array_append_new(j, json_string(list->v[i]));
	return j;
}

static void set_text(json_t *object, const char *key, const char *text)
{
	if (text)
		json_object_set_new(object, key, json_string(text));
}

static json_t *make_request(const struct image_store *s, const char *op, const struct image_pull_options *o)
{
	json_t *j = json_pack("{s:s, s:s, s:s, s:i, s:I, s:I, s:I, s:b, s:o}", "op", op, "root", s->layout.root,
		"registryConfigDir", s->registry_config_dir, "parent", (int)getpid(), "stallTimeoutMs",
		(json_int_t)(s->limits.stall_timeout_ns / 1000000), "maxLayerBytes", (json_int_t)s->limits.max_layer_bytes, "maxRatio",
		(json_int_t)s->limits.max_layer_ratio, "progress", o->progress != NULL, "insecureRegistries", list_json(&s->insecure));

	set_text(j, "platform", o->platform);
	if (o->auth) {
		json_t *auth = json_object();

		set_text(auth, "username", o->auth->username);
		set_text(auth, "password", o->auth->password);
		set_text(auth, "auth", o->auth->auth);
		set_text(auth, "serverAddress", o->auth->server_address);
		set_text(auth, "identityToken", o->auth->identity_token);
		set_text(auth, "registryToken", o->auth->registry_token);
		json_object_set_new(j, "auth", auth);
	}
	return j;
}

static int spawn_with(struct pull *p, int child_fd, int input_fd, const char *what, struct error *err)
{
	_cleanup_free_ char *path = xasprintf("%s/pull", p->store->libexec_dir);
	char *argv[] = { "pull", (char *)what, NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none, standard;
	/* Out of the way of the numbers that they will have. */
	_cleanup_fd_ int channel = fcntl(child_fd, F_DUPFD_CLOEXEC, ABOVE_ALL_FD);
	_cleanup_fd_ int staging = fcntl(p->staging_fd, F_DUPFD_CLOEXEC, ABOVE_ALL_FD);
	_cleanup_fd_ int input = input_fd >= 0 ? fcntl(input_fd, F_DUPFD_CLOEXEC, ABOVE_ALL_FD) :
						 open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (channel < 0 || staging < 0 || input < 0)
		return error_sys(err, errno, "start the pull program");
	sigemptyset(&none);
	sigfillset(&standard);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attr);
	posix_spawn_file_actions_adddup2(&actions, channel, 0);
	posix_spawn_file_actions_adddup2(&actions, 2, 1);
	posix_spawn_file_actions_adddup2(&actions, input, PULL_INPUT_FD);
	posix_spawn_file_actions_adddup2(&actions, staging, PULL_STAGING_FD);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &standard);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	int r = posix_spawn(&p->pid, path, &actions, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	if (r != 0) {
		p->pid = 0;
		return error_sys(err, r, "start %s", path);
	}
	return 0;
}

static int start(struct pull *p, json_t *request, int input_fd, const char *what, struct error *err)
{
	int pair[2];
	int r = layout_staging_make(&p->store->layout, &p->staging_name, &p->staging_fd, err);

	if (r < 0) {
		json_decref(request);
		return r;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		json_decref(request);
		return error_sys(err, errno, "start the pull program");
	}
	p->socket_fd = p->channel.fd = pair[0];
	r = spawn_with(p, pair[1], input_fd, what, err);
	close(pair[1]);
	if (r < 0) {
		json_decref(request);
		return r;
	}
	return channel_send(&p->channel, request, err);
}

static void take_list(const json_t *list, struct strv *ret)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *text = json_string_value(json_array_get(list, i));

		if (text)
			strv_add(ret, text);
	}
}

static int on_image(struct pull *p, const json_t *j, struct error *err)
{
	struct store_record record = { .config_digest = json_str_at(j, "config", ""),
		.manifest_digest = json_str_at(j, "manifest", ""), .size_bytes = (uint64_t)json_int_at(j, "size", 0) };

	take_list(json_object_get(j, "tags"), &record.tags);
	take_list(json_object_get(j, "digests"), &record.digests);
	int r = store_record(p->store, &record, err);
	if (r == 0) {
		free(p->last_id);
		p->last_id = xstrdup(record.config_digest);
		if (record.tags.n == 0)
			strv_add(&p->loaded, record.config_digest);
		for (size_t i = 0; i < record.tags.n; i++)
			strv_add(&p->loaded, record.tags.v[i]);
	}
	strv_done(&record.tags);
	strv_done(&record.digests);
	return r;
}

static void on_progress(struct pull *p, const json_t *j)
{
	struct image_progress progress = { .what = json_str_at(j, "what", ""), .done_bytes = (uint64_t)json_int_at(j, "done", 0),
		.total_bytes = (uint64_t)json_int_at(j, "total", 0), .layers_done = (unsigned)json_int_at(j, "layersDone", 0),
		.layers = (unsigned)json_int_at(j, "layers", 0) };

	if (p->options->progress)
		p->options->progress(p->options->data, &progress);
}

static int on_message(struct pull *p, const json_t *message, struct error *err)
{
	const json_t *j;

	if (channel_is_error(message, err))
		return error_code_errno(err ? err->code : ERROR_INTERNAL);
	if ((j = json_object_get(message, "progress"))) {
		on_progress(p, j);
	} else if ((j = json_object_get(message, "image"))) {
		int r = on_image(p, j, err);

		/* It keeps its hold on layers and blobs until it gets this. */
		if (r < 0)
			return r;
		return channel_send(&p->channel, json_pack("{s:b}", "ok", 1), err);
	} else if (json_object_get(message, "done")) {
		p->finished = true;
	} else {
		return error_set(err, ERROR_INTERNAL, "unknown message of the pull program");
	}
	return 0;
}

/* Waits for the channel; 1 when there is something. */
static int wait_for_message(struct pull *p, struct error *err)
{
	struct pollfd fds[2] = { { p->socket_fd, POLLIN, 0 }, { p->options->cancel_fd, POLLIN, 0 } };
	int timeout = -1;

	if (p->options->deadline_ns) {
		uint64_t now = clock_monotonic_ns();

		if (now >= p->options->deadline_ns)
			return error_set(err, ERROR_DEADLINE, "the deadline has passed");
		timeout = (int)MIN((p->options->deadline_ns - now) / 1000000 + 1, (uint64_t)3600000);
	}
	int n = poll(fds, p->options->cancel_fd >= 0 ? 2 : 1, timeout);
	if (n < 0 && errno != EINTR)
		return error_sys(err, errno, "wait for the pull program");
	if (n > 0 && p->options->cancel_fd >= 0 && fds[1].revents)
		return error_set(err, ERROR_CANCELLED, "cancelled");
	return n > 0 && fds[0].revents;
}

/* Waits until it is gone. What it died of is an error only if it had not finished. */
static int reap(struct pull *p, struct error *err)
{
	int status = 0;
	pid_t pid;

	do
		pid = waitpid(p->pid, &status, 0);
	while (pid < 0 && errno == EINTR);
	p->pid = 0;
	if (p->finished)
		return 0;
	if (pid < 0)
		return error_sys(err, errno, "wait for the pull program");
	if (WIFSIGNALED(status))
		return error_set(err, ERROR_INTERNAL, "the pull program was killed by signal %d", WTERMSIG(status));
	return error_set(err, ERROR_INTERNAL, "the pull program ended with code %d", WEXITSTATUS(status));
}

static int converse(struct pull *p, struct error *err)
{
	for (;;) {
		_cleanup_json_ json_t *message = NULL;
		int r = channel_next(&p->channel, &message, err);

		if (r == 0 && message) {
			r = on_message(p, message, err);
			if (r < 0 || p->finished)
				return r < 0 ? r : reap(p, err);
			continue;
		}
		if (r == 0)
			r = wait_for_message(p, err);
		if (r == 1) {
			r = channel_fill(&p->channel, err);
			if (r == 0)
				return reap(p, err);
		}
		if (r < 0)
			return r;
	}
}

static void stop(struct pull *p)
{
	struct error trouble = ERROR_INIT;

	if (p->pid > 0) {
		kill(p->pid, SIGKILL);
		(void)!reap(p, NULL);
	}
	if (p->socket_fd >= 0)
		close(p->socket_fd);
	if (p->staging_name && layout_staging_remove(&p->store->layout, p->staging_name, &trouble) < 0)
		log_warning("clean up after a pull: %s", trouble.text);
	if (p->staging_fd >= 0)
		close(p->staging_fd);
	free(p->staging_name);
	free(p->last_id);
	strv_done(&p->loaded);
	channel_done(&p->channel);
}

int image_pull(struct image_store *s, const char *reference, const struct image_pull_options *options, char **ret_id,
	struct error *err)
{
	static const struct image_pull_options nothing = IMAGE_PULL_OPTIONS_INIT;
	struct pull p = { .store = s, .options = options ? options : &nothing, .socket_fd = -1, .staging_fd = -1 };
	_cleanup_(reference_done) struct reference ref = { 0 };
	int r = reference_parse(reference, &ref, err);

	if (r < 0)
		return r;
	json_t *request = make_request(s, "pull", p.options);
	set_text(request, "reference", reference);
	r = start(&p, request, -1, reference, err);
	if (r == 0)
		r = converse(&p, err);
	if (r == 0 && !p.last_id)
		r = error_set(err, ERROR_INTERNAL, "the pull program brought no image");
	if (r == 0)
		*ret_id = steal(p.last_id);
	stop(&p);
	return r;
}

int image_load(struct image_store *s, const char *path, const char *name, const struct image_pull_options *options,
	struct strv *ret_loaded, struct error *err)
{
	static const struct image_pull_options nothing = IMAGE_PULL_OPTIONS_INIT;
	struct pull p = { .store = s, .options = options ? options : &nothing, .socket_fd = -1, .staging_fd = -1 };
	bool standard_input = str_eq(path, "-");
	_cleanup_fd_ int fd = standard_input ? fcntl(0, F_DUPFD_CLOEXEC, 0) : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return error_set(err, errno == ENOENT ? ERROR_NOT_FOUND : ERROR_INTERNAL, "open %.200s: %s", path,
			strerrordesc_np(errno));
	json_t *request = make_request(s, "load", p.options);
	set_text(request, "name", name);
	int r = start(&p, request, fd, standard_input ? "standard input" : path, err);
	if (r == 0)
		r = converse(&p, err);
	if (r == 0) {
		*ret_loaded = p.loaded;
		p.loaded = STRV_INIT;
	}
	stop(&p);
	return r < 0 ? error_prefix(err, "load %.200s", path) : 0;
}

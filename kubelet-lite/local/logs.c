/*
 * logs.c - purpose: a container's log over HTTP: the file that the runtime writes (CRI format), followed by inotify.
 *
 * Rotation renames the file and makes a new one of its name. A stream that follows reads what it has open to the end,
 * then every file that came between (there may have been several rotations), then the new one.
 *
 *	READING --end of file--> WAITING --inotify--> READING ...
 *	                           |  container ended, or not followed: END
 */
#include "kubelet-lite/local/api_i.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "common/base/codec.h"
#include "common/base/str.h"
#include "common/sys/file.h"
#include "common/wire/json.h"
#include "kubelet-lite/local/log_line.h"

enum { LOG_READ_BYTES = 32 * 1024, LOG_LINE_MAX = 512 * 1024, LOG_LAST_MS = 100, LOG_POLL_MS = 1000, LOGS_MAX = 100 };

struct log_stream {
	struct local_api *api;
	struct http_exchange *exchange;
	struct log_stream *prev, *next;
	char *ns, *pod, *container;
	char *container_id; /* of the instance that is shown; "" if not known */
	char *dir, *name;   /* of the file */
	int fd;
	uint64_t inode;
	int64_t left;       /* bytes of a file that is not followed */
	struct log_filter filter;
	struct str line;    /* the unfinished line */
	struct str out;
	bool follow;
	bool chain;  /* goes on in the next file */
	bool ending; /* the container is over: what is there now is all */
	int inotify_fd;
	uv_poll_t poll;
	uv_timer_t timer;
	unsigned open_handles;
};

static void go_on(void *data);

static void handle_closed(uv_handle_t *handle)
{
	struct log_stream *l = handle->data;

	if (--l->open_handles > 0)
		return;
	if (l->fd >= 0)
		close(l->fd);
	if (l->inotify_fd >= 0)
		close(l->inotify_fd);
	free(l->ns);
	free(l->pod);
	free(l->container);
	free(l->container_id);
	free(l->dir);
	free(l->name);
	str_done(&l->line);
	str_done(&l->out);
	free(l);
}

static void forget(void *data)
{
	struct log_stream *l = data;

	*(l->prev ? &l->prev->next : &l->api->logs) = l->next;
	if (l->next)
		l->next->prev = l->prev;
	l->exchange = NULL;
	uv_close((uv_handle_t *)&l->timer, handle_closed);
	if (l->inotify_fd >= 0)
		uv_close((uv_handle_t *)&l->poll, handle_closed);
}

static void end(struct log_stream *l)
{
	struct http_exchange *exchange = l->exchange;

	http_stream_on_drain(exchange, NULL, NULL);
	forget(l);
	http_stream_end(exchange);
}

/* Rotated files ("0.log.20260101-000000", not compressed) in the order of their names, which is that of time. */
static int is_rotated(const struct log_stream *l, const char *name)
{
	size_t len = strlen(l->name);

	return strncmp(name, l->name, len) == 0 && name[len] == '.' && !str_ends(name, ".gz") && !str_ends(name, ".tmp");
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void list_rotated(const struct log_stream *l, struct strv *ret)
{
	DIR *dir = opendir(l->dir);

	for (struct dirent *d; dir && (d = readdir(dir));)
		if (is_rotated(l, d->d_name))
			strv_add(ret, d->d_name);
	if (dir)
		closedir(dir);
	if (ret->n > 1)
		qsort(ret->v, ret->n, sizeof(*ret->v), by_text);
}

static int open_file(struct log_stream *l, const char *name)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", l->dir, name);
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (l->fd >= 0)
		close(l->fd);
	l->fd = steal_fd(&fd);
	l->inode = st.st_ino;
	l->left = st.st_size;
	return 0;
}

/* True: a file that comes after the one we have read has been opened. */
static bool next_file(struct log_stream *l)
{
	_cleanup_(strv_done) struct strv rotated = STRV_INIT;
	_cleanup_free_ char *path = xasprintf("%s/%s", l->dir, l->name);
	struct stat st;
	bool seen = false;

	if (stat(path, &st) < 0 || st.st_ino == l->inode)
		return false;
	list_rotated(l, &rotated);
	for (size_t i = 0; i < rotated.n; i++) {
		_cleanup_free_ char *other = xasprintf("%s/%s", l->dir, rotated.v[i]);

		if (seen)
			return open_file(l, rotated.v[i]) == 0;
		seen = stat(other, &st) == 0 && st.st_ino == l->inode;
	}
	return open_file(l, l->name) == 0;
}

/* Lines of `buf` to l->out. True: the limit of bytes is reached. */
static bool take(struct log_stream *l, const char *buf, size_t len)
{
	while (len > 0) {
		const char *end_of_line = memchr(buf, '\n', len);
		size_t n = end_of_line ? (size_t)(end_of_line - buf) : len;

		str_add_bytes(&l->line, buf, n);
		buf += n;
		len -= n;
		if (end_of_line) {
			buf++;
			len--;
		}
		if (!end_of_line && l->line.len < LOG_LINE_MAX)
			return false;
		bool full = log_filter_line(&l->filter, (struct bytes){ str_get(&l->line), l->line.len }, &l->out);

		str_reset(&l->line);
		if (full)
			return true;
	}
	return false;
}

static ssize_t read_piece(struct log_stream *l, bool *ret_full)
{
	static char buf[LOG_READ_BYTES]; /* loop thread only */
	size_t want = l->follow ? sizeof(buf) : (size_t)MIN((int64_t)sizeof(buf), l->left);
	ssize_t n = want ? read(l->fd, buf, want) : 0;

	if (n > 0) {
		l->left -= n;
		*ret_full = take(l, buf, (size_t)n);
	}
	return n;
}

/* Negative: the stream was ended. */
static int send_out(struct log_stream *l)
{
	int r = l->out.len ? http_stream_write(l->exchange, l->out.buf, l->out.len) : 0;

	str_reset(&l->out);
	if (r < 0)
		end(l);
	return r;
}

static void go_on(void *data)
{
	struct log_stream *l = data;

	while (http_stream_pending(l->exchange) < API_PAUSE_BYTES) {
		bool full = false;
		ssize_t n = read_piece(l, &full);

		if (send_out(l) < 0)
			return;
		if (full || n < 0) {
			end(l);
			return;
		}
		if (n > 0 || ((l->follow || l->chain) && next_file(l)))
			continue;
		if (l->follow && !l->ending) {
			http_stream_on_drain(l->exchange, NULL, NULL); /* wait for inotify */
			return;
		}
		if (l->line.len) /* a last line without its end */
			take(l, "\n", 1);
		if (send_out(l) == 0)
			end(l);
		return;
	}
	http_stream_on_drain(l->exchange, go_on, l);
}

static void on_poll_timer(uv_timer_t *timer)
{
	go_on(timer->data);
}

static void on_end_timer(uv_timer_t *timer)
{
	struct log_stream *l = timer->data;

	l->ending = true;
	go_on(l);
}

static void on_inotify(uv_poll_t *poll, int status, int events)
{
	struct log_stream *l = poll->data;
	char buf[4096];
	ssize_t n;

	(void)status, (void)events;
	do
		n = read(l->inotify_fd, buf, sizeof(buf));
	while (n > 0);
	go_on(l);
}

static void start_follow(struct log_stream *l)
{
	l->inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (l->inotify_fd >= 0 && inotify_add_watch(l->inotify_fd, l->dir, IN_MODIFY | IN_CREATE | IN_MOVED_TO) < 0) {
		close(l->inotify_fd);
		l->inotify_fd = -1;
	}
	if (l->inotify_fd < 0) { /* none left: look every second */
		uv_timer_start(&l->timer, on_poll_timer, LOG_POLL_MS, LOG_POLL_MS);
		return;
	}
	uv_poll_init(l->api->loop, &l->poll, l->inotify_fd);
	l->poll.data = l;
	l->open_handles++;
	uv_poll_start(&l->poll, UV_READABLE, on_inotify);
}

/* The container's status in a pod's tree, NULL if there is none. */
static const json_t *status_of(const json_t *tree, const char *container)
{
	static const char *const lists[] = { "status.containerStatuses", "status.initContainerStatuses",
		"status.ephemeralContainerStatuses" };
	json_t *s;
	size_t i;

	for (size_t l = 0; l < ARRAY_LEN(lists); l++)
		json_array_foreach ((json_t *)json_at(tree, lists[l]), i, s)
			if (str_eq(json_str_at(s, "name", ""), container))
				return s;
	return NULL;
}

static bool instance_over(const json_t *tree, const char *container, const char *id)
{
	const json_t *status = status_of(tree, container);

	if (!*id || !status)
		return false;
	return !str_eq(json_str_at(status, "containerID", id), id) || json_at(status, "state.terminated") ||
		str_eq(json_str_at(status, "lastState.terminated.containerID", ""), id);
}

void logs_pod_changed(struct local_api *api, const struct object *pod)
{
	_cleanup_json_ json_t *tree = NULL;

	for (struct log_stream *l = api->logs; l; l = l->next) {
		if (!l->follow || l->ending || !str_eq(l->pod, pod->name) || !str_eq(l->ns, pod->ns))
			continue;
		if (!tree)
			tree = object_tree(pod);
		/* The last lines may be on their way. */
		if (pod->removed || instance_over(tree, l->container, l->container_id))
			uv_timer_start(&l->timer, on_end_timer, LOG_LAST_MS, 0);
	}
}

void logs_stop(struct local_api *api)
{
	while (api->logs)
		end(api->logs);
}

static bool has_container(const json_t *tree, const char *name, struct str *ret_names)
{
	static const char *const lists[] = { "spec.initContainers", "spec.containers", "spec.ephemeralContainers" };
	bool found = false;
	json_t *c;
	size_t i;

	for (size_t l = 0; l < ARRAY_LEN(lists); l++)
		json_array_foreach ((json_t *)json_at(tree, lists[l]), i, c) {
			str_addf(ret_names, "%s%s", ret_names->len ? " " : "", json_str_at(c, "name", ""));
			found |= str_eq(json_str_at(c, "name", ""), name);
		}
	return found;
}

char *api_choose_container(const struct api_call *call, const json_t *tree)
{
	_cleanup_free_ char *given = http_query(call->exchange, "container");
	_cleanup_(str_done) struct str names = STR_INIT;
	const json_t *containers = json_at(tree, "spec.containers");
	const char *preferred = json_string_value(
		json_object_get(json_at(tree, "metadata.annotations"), "kubectl.kubernetes.io/default-container"));

	if (str_empty(given) && preferred)
		return xstrdup(preferred);
	if (str_empty(given) && json_array_size(containers) == 1)
		return xstrdup(json_str_at(json_array_get(containers, 0), "name", ""));
	bool found = has_container(tree, given ? given : "", &names);

	if (found)
		return steal(given);
	if (str_empty(given))
		reply_failure(call->exchange, 400, "BadRequest", NULL,
			"a container name must be specified for pod %s, choose one of: [%s]", call->route.name, str_get(&names));
	else
		reply_failure(call->exchange, 400, "BadRequest", NULL, "container %.100s is not valid for pod %s", given,
			call->route.name);
	return NULL;
}

static void refuse_absent(const struct api_call *call, const json_t *tree, const char *container, bool previous)
{
	const char *why = json_str_at(status_of(tree, container), "state.waiting.reason", "ContainerCreating");

	if (previous)
		reply_failure(call->exchange, 400, "BadRequest", NULL,
			"previous terminated container \"%s\" in pod \"%s\" not found", container, call->route.name);
	else
		reply_failure(call->exchange, 400, "BadRequest", NULL,
			"container \"%s\" in pod \"%s\" is waiting to start: %s", container, call->route.name, why);
}

/* Negative: answered. */
static int read_options(const struct api_call *call, struct log_filter *f, int64_t *ret_tail)
{
	_cleanup_free_ char *since_time = http_query(call->exchange, "sinceTime");
	_cleanup_free_ char *stream = http_query(call->exchange, "stream");
	int64_t seconds = 0;

	if (api_query_int(call, "tailLines", -1, ret_tail) < 0 || api_query_int(call, "sinceSeconds", 0, &seconds) < 0 ||
		api_query_int(call, "limitBytes", -1, &f->left) < 0)
		return -EINVAL;
	if (seconds)
		f->since_ns = (int64_t)clock_realtime_ns() - seconds * 1000000000;
	if (!str_empty(since_time) && time_parse(since_time, &f->since_ns) < 0) {
		reply_failure(call->exchange, 400, "BadRequest", NULL, "sinceTime: \"%.60s\" must be a time like 2026-01-01T00:00:00Z",
			since_time);
		return -EINVAL;
	}
	f->timestamps = api_query_bool(call->exchange, "timestamps");
	f->only = str_eq(stream, "Stdout") ? "stdout" : str_eq(stream, "Stderr") ? "stderr" : NULL;
	return 0;
}

static struct log_stream *stream_new(const struct api_call *call, const char *path, const char *container, const char *id)
{
	struct log_stream *l = xnew(struct log_stream);
	const char *slash = strrchr(path, '/');

	l->api = call->api;
	l->exchange = call->exchange;
	l->ns = xstrdup(call->route.ns);
	l->pod = xstrdup(call->route.name);
	l->container = xstrdup(container);
	l->container_id = xstrdup(id);
	l->dir = slash ? xstrndup(path, (size_t)(slash - path)) : xstrdup(".");
	l->name = xstrdup(slash ? slash + 1 : path);
	l->fd = l->inotify_fd = -1;
	l->open_handles = 1;
	uv_timer_init(call->api->loop, &l->timer);
	l->timer.data = l;
	l->next = call->api->logs;
	if (l->next)
		l->next->prev = l;
	call->api->logs = l;
	return l;
}

static size_t stream_count(const struct local_api *api)
{
	size_t n = 0;

	for (const struct log_stream *l = api->logs; l; l = l->next)
		n++;
	return n;
}

/* To the last lines; where the file has just been rotated, in the ones before it. */
static void seek_tail(struct log_stream *l, int64_t lines)
{
	_cleanup_(strv_done) struct strv rotated = STRV_INIT;
	int64_t at = log_tail_offset(l->fd, l->left, lines, &lines);

	if (lines > 0)
		list_rotated(l, &rotated);
	for (size_t i = rotated.n; lines > 0 && i-- > 0;) {
		if (open_file(l, rotated.v[i]) < 0)
			break;
		at = log_tail_offset(l->fd, l->left, lines, &lines);
		l->chain = true;
	}
	l->left -= at;
	if (lseek(l->fd, at, SEEK_SET) < 0)
		l->left = 0;
}

static void start(const struct api_call *call, const json_t *tree, const char *container, const char *path)
{
	const char *id = json_str_at(status_of(tree, container), "containerID", "");
	bool previous = api_query_bool(call->exchange, "previous");
	struct log_filter filter = LOG_FILTER_INIT;
	int64_t tail;

	if (read_options(call, &filter, &tail) < 0)
		return;
	struct log_stream *l = stream_new(call, path, container, id);

	l->filter = filter;
	if (open_file(l, l->name) < 0) {
		forget(l);
		refuse_absent(call, tree, container, previous);
		return;
	}
	l->follow = api_query_bool(call->exchange, "follow") && !previous;
	if (tail >= 0)
		seek_tail(l, tail);
	http_stream_begin(call->exchange, 200, "text/plain", forget, l);
	l->ending = instance_over(tree, container, l->container_id);
	if (l->follow && !l->ending)
		start_follow(l);
	go_on(l);
}

void api_logs(const struct api_call *call)
{
	const struct route *route = &call->route;
	const struct object *o = objects_get(call->api->objects, KIND_POD, route->ns, route->name);
	bool previous = api_query_bool(call->exchange, "previous");
	_cleanup_free_ char *path = NULL;
	struct error err = ERROR_INIT;

	if (!o) {
		reply_not_found(call->exchange, route);
		return;
	}
	if (stream_count(call->api) >= LOGS_MAX) {
		reply_failure(call->exchange, 429, "TooManyRequests", NULL, "more than %d log streams", LOGS_MAX);
		return;
	}
	_cleanup_json_ json_t *tree = object_tree(o);
	_cleanup_free_ char *container = api_choose_container(call, tree);

	if (!container)
		return;
	int r = call->api->log_path ? call->api->log_path(call->api->data, route->ns, route->name, container, previous, &path,
					      &err)
				    : -ENOENT;

	if (r == 0)
		start(call, tree, container, path);
	else if (err.code == ERROR_INVALID)
		reply_failure(call->exchange, 400, "BadRequest", NULL, "%s", err.text);
	else
		refuse_absent(call, tree, container, previous);
}

/* tool.c - purpose: what the commands share: calls, names, files, tables and JSON. */
#include "runtime-lite/admin/tool.h"

#include "common/base/codec.h"
#include "common/net/rpc_client.h"
#include "common/sys/file.h"
#include "common/wire/json.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

int tool_call(const struct admin *admin, const char *method, const void *request,
	const ProtobufCMessageDescriptor *reply, uint64_t timeout_ms, void *ret_reply, struct error *err)
{
	_cleanup_free_ char *path = xasprintf("/runtime.v1.%s", method);
	ProtobufCMessage *message = NULL;
	int r = rpc_call_blocking(admin->socket_path, path, request, reply, timeout_ms, &message, err);

	if (r < 0)
		return r;
	*(void **)ret_reply = message;
	return 0;
}

int tool_do(const struct admin *admin, const char *method, const void *request,
	const ProtobufCMessageDescriptor *reply, uint64_t timeout_ms, struct error *err)
{
	_cleanup_message_ void *message = NULL;

	return tool_call(admin, method, request, reply, timeout_ms, &message, err);
}

/* How well something fits a name: 4 its id, 3 its name and alive, 2 its name, 1 prefix of the id. Several that fit
 * equally well are an error, but attempts of one container are not several. */
struct choice {
	const char *id;
	int score;
	unsigned n;
};

static void consider(struct choice *choice, const char *id, int score)
{
	if (score > choice->score)
		*choice = (struct choice){ id, score, 1 };
	else if (score && score == choice->score)
		choice->n++;
}

static int score_of(const char *wanted, const char *id, bool name_fits, bool alive)
{
	if (str_eq(wanted, id))
		return 4;
	if (name_fits)
		return alive ? 3 : 2;
	return str_starts(id, wanted) ? 1 : 0;
}

/* A whole id is taken as it is: what does not exist is for the daemon to say. */
static bool is_whole_id(const char *name)
{
	return strlen(name) == 64 && strspn(name, "0123456789abcdef") == 64;
}

static int chosen(const struct choice *choice, const char *what, const char *name, char **ret, struct error *err)
{
	if (!choice->n)
		return error_set(err, ERROR_NOT_FOUND, "no %s \"%s\"", what, name);
	if (choice->n > 1)
		return error_set(err, ERROR_INVALID, "\"%s\" fits %u %ss: use an id", name, choice->n, what);
	*ret = xstrdup(choice->id);
	return 0;
}

static bool pod_name_fits(const CRI(PodSandboxMetadata) * m, const char *name)
{
	size_t n = m ? strlen(m->namespace_) : 0;

	return m && (str_eq(m->name, name) ||
			    (strncmp(name, m->namespace_, n) == 0 && name[n] == '/' && str_eq(name + n + 1, m->name)));
}

int tool_pod(const struct admin *admin, const char *name, char **ret_id, struct error *err)
{
	CRI(ListPodSandboxRequest) request = RUNTIME__V1__LIST_POD_SANDBOX_REQUEST__INIT;
	_cleanup_message_ CRI(ListPodSandboxResponse) *reply = NULL;
	struct choice choice = { 0 };

	if (is_whole_id(name)) {
		*ret_id = xstrdup(name);
		return 0;
	}
	int r = tool_call(admin, "RuntimeService/ListPodSandbox", &request,
		&runtime__v1__list_pod_sandbox_response__descriptor, TOOL_TIMEOUT_MS, &reply, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < reply->n_items; i++) {
		const CRI(PodSandbox) *s = reply->items[i];

		consider(&choice, s->id, score_of(name, s->id, pod_name_fits(s->metadata, name),
			s->state == RUNTIME__V1__POD_SANDBOX_STATE__SANDBOX_READY));
	}
	return chosen(&choice, "pod", name, ret_id, err);
}

/* The container that a pod's name stands for: its oldest one that runs, else its oldest one. */
static int container_of_pod(const struct admin *admin, const CRI(ListContainersResponse) * all, const char *name,
	char **ret_id, struct error *err)
{
	_cleanup_free_ char *pod_id = NULL;
	const CRI(Container) *best = NULL;
	struct error no_pod = ERROR_INIT;
	size_t n = 0;

	if (tool_pod(admin, name, &pod_id, &no_pod) < 0)
		return error_set(err, ERROR_NOT_FOUND, "no container \"%s\"", name);
	for (size_t i = 0; i < all->n_containers; i++) {
		const CRI(Container) *c = all->containers[i];
		bool runs = c->state == RUNTIME__V1__CONTAINER_STATE__CONTAINER_RUNNING;
		bool best_runs = best && best->state == RUNTIME__V1__CONTAINER_STATE__CONTAINER_RUNNING;

		if (!str_eq(c->pod_sandbox_id, pod_id))
			continue;
		n++;
		if (!best || (runs && !best_runs) || (runs == best_runs && c->created_at < best->created_at))
			best = c;
	}
	if (!best)
		return error_set(err, ERROR_NOT_FOUND, "pod \"%s\" has no containers", name);
	if (n > 1)
		fprintf(stderr, "pod %s has %zu containers: taking %s\n", name, n,
			best->metadata ? best->metadata->name : best->id);
	*ret_id = xstrdup(best->id);
	return 0;
}

static bool same_container(const CRI(Container) * a, const CRI(Container) * b)
{
	return str_eq(a->pod_sandbox_id, b->pod_sandbox_id) && a->metadata && b->metadata &&
	       str_eq(a->metadata->name, b->metadata->name);
}

/* Of the attempts of a container that have its name, and all run or have all ended, the newest stands for them. */
static void consider_container(struct choice *choice, const CRI(Container) * c, const char *name,
	const CRI(Container) * *best)
{
	bool name_fits = c->metadata && str_eq(c->metadata->name, name);
	int score = score_of(name, c->id, name_fits, c->state == RUNTIME__V1__CONTAINER_STATE__CONTAINER_RUNNING);

	if (name_fits && score == choice->score && same_container(c, *best)) {
		if (c->created_at > (*best)->created_at) {
			*best = c;
			choice->id = c->id;
		}
		return;
	}
	consider(choice, c->id, score);
	if (choice->id == c->id)
		*best = c;
}

int tool_container(const struct admin *admin, const char *name, char **ret_id, struct error *err)
{
	CRI(ListContainersRequest) request = RUNTIME__V1__LIST_CONTAINERS_REQUEST__INIT;
	_cleanup_message_ CRI(ListContainersResponse) *reply = NULL;
	struct choice choice = { 0 };
	const CRI(Container) *best = NULL;

	if (is_whole_id(name)) {
		*ret_id = xstrdup(name);
		return 0;
	}
	int r = tool_call(admin, "RuntimeService/ListContainers", &request,
		&runtime__v1__list_containers_response__descriptor, TOOL_TIMEOUT_MS, &reply, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < reply->n_containers; i++)
		consider_container(&choice, reply->containers[i], name, &best);
	if (!choice.n)
		return container_of_pod(admin, reply, name, ret_id, err);
	return chosen(&choice, "container", name, ret_id, err);
}

int tool_previous(const struct admin *admin, const char *id, char **ret_id, struct error *err)
{
	CRI(ListContainersRequest) request = RUNTIME__V1__LIST_CONTAINERS_REQUEST__INIT;
	_cleanup_message_ CRI(ListContainersResponse) *reply = NULL;
	const CRI(Container) *now = NULL, *best = NULL;
	int r = tool_call(admin, "RuntimeService/ListContainers", &request,
		&runtime__v1__list_containers_response__descriptor, TOOL_TIMEOUT_MS, &reply, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < reply->n_containers; i++)
		if (str_eq(reply->containers[i]->id, id))
			now = reply->containers[i];
	for (size_t i = 0; now && i < reply->n_containers; i++) {
		const CRI(Container) *c = reply->containers[i];

		if (same_container(c, now) && c->created_at < now->created_at && (!best || c->created_at > best->created_at))
			best = c;
	}
	if (!best)
		return error_set(err, ERROR_NOT_FOUND, "no attempt before this one is kept");
	*ret_id = xstrdup(best->id);
	return 0;
}

char *tool_daemon_root(const struct admin *admin)
{
	CRI(StatusRequest) request = RUNTIME__V1__STATUS_REQUEST__INIT;
	_cleanup_message_ CRI(StatusResponse) *reply = NULL;
	_cleanup_json_ json_t *config = NULL;
	struct error ignored;

	request.verbose = true;
	if (tool_call(admin, "RuntimeService/Status", &request, &runtime__v1__status_response__descriptor, TOOL_TIMEOUT_MS,
		    &reply, &ignored) < 0)
		return NULL;
	const char *text = message_map_get(reply->n_info, reply->info, "config");
	if (!text || json_read(text, strlen(text), false, &config, &ignored) < 0)
		return NULL;
	return xstrdup(json_str_at(config, "rootDir", NULL));
}

int tool_read_file(const char *path, const ProtobufCMessageDescriptor *type, void *ret_message, struct error *err)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_json_ json_t *documents = NULL;
	size_t len = 0;
	int r;

	if (str_eq(path, "-")) {
		text = xmalloc(JSON_TEXT_MAX);
		ssize_t n = fd_read_full(STDIN_FILENO, text, JSON_TEXT_MAX);
		r = n < 0 ? error_sys(err, (int)n, "standard input") : 0;
		len = (size_t)MAX(n, 0);
	} else {
		r = file_read(AT_FDCWD, path, JSON_TEXT_MAX, &text, &len, err);
	}
	if (r < 0)
		return r;
	r = yaml_read(text, len, &documents, err);
	if (r == 0 && json_array_size(documents) != 1)
		r = error_set(err, ERROR_INVALID, "has %zu documents, must have one", json_array_size(documents));
	if (r == 0)
		r = message_from_json(type, json_array_get(documents, 0), ret_message, err);
	return r < 0 ? error_prefix(err, "%s", path) : 0;
}

void tool_print_json(const json_t *json)
{
	json_dumpf(json, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY);
	putchar('\n');
}

void tool_print_message(const void *message)
{
	_cleanup_json_ json_t *json = message_to_json(message, MESSAGE_JSON_PROTO);

	tool_print_json(json);
}

int tool_output(const struct invocation *in, bool with_id, enum tool_output *ret, struct error *err)
{
	const char *text = option_string(in->options, "output");

	if (str_eq(text, "table"))
		*ret = OUTPUT_TABLE;
	else if (str_eq(text, "json"))
		*ret = OUTPUT_JSON;
	else if (with_id && str_eq(text, "id"))
		*ret = OUTPUT_ID;
	else
		return error_set(err, ERROR_INVALID, "--output \"%s\" must be table%s", text,
			with_id ? ", json or id" : " or json");
	return 0;
}

void table_add(struct table *t, ...)
{
	va_list args;

	va_start(args, t);
	for (size_t i = 0; i < t->columns; i++)
		strv_add(&t->cells, va_arg(args, const char *));
	va_end(args);
}

void table_print(const struct table *t)
{
	size_t width[16] = { 0 };

	assert(t->columns <= ARRAY_LEN(width));
	for (size_t i = 0; i < t->cells.n; i++)
		width[i % t->columns] = MAX(width[i % t->columns], strlen(t->cells.v[i]));
	for (size_t i = 0; i < t->cells.n; i++) {
		bool last = (i + 1) % t->columns == 0;

		if (last)
			puts(t->cells.v[i]);
		else
			printf("%-*s", (int)width[i % t->columns] + 3, t->cells.v[i]);
	}
}

void table_done(struct table *t)
{
	strv_done(&t->cells);
}

void tool_age(int64_t unix_ns, char ret[64])
{
	char age[DURATION_TEXT_MAX];

	age_text((int64_t)clock_realtime_ns() - unix_ns, age);
	snprintf(ret, 64, "%s ago", age);
}

void tool_size(uint64_t bytes, char ret[32])
{
	static const char *const units[] = { "B", "kB", "MB", "GB", "TB" };
	double v = (double)bytes;
	size_t i = 0;

	for (; v >= 1000 && i + 1 < ARRAY_LEN(units); i++)
		v /= 1000;
	snprintf(ret, 32, i && v < 100 ? "%.3g%s" : "%.0f%s", v, units[i]);
}

void tool_short_id(const char *id, char ret[14])
{
	snprintf(ret, 14, "%s", id);
}

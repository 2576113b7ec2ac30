/* list_watch.c - purpose: follow one collection of a Kubernetes API: list in pages, then watch, for ever. */
#include "common/kube/list_watch.h"

#include "common/base/backoff.h"
#include "common/base/str.h"
#include "common/wire/json.h"
#include "common/wire/json_scan.h"
#include "common/wire/url.h"

#include <errno.h>
#include <stdio.h>
#include <sys/random.h>

/*
 *	          pages                 last page
 *	LISTING ---------> LISTING ------------------> WATCHING <--+
 *	   ^  |fail: back-off, begin again                 |       | stream ended: from the last resourceVersion;
 *	   |  +--+                                         |       | failed: the same after a back-off
 *	   +-----+---- 410, ERROR event, refused watch ----+-------+
 */
enum state { LISTING, WATCHING };

enum {
	BACKOFF_FIRST_MS = 800,
	BACKOFF_MAX_MS = 30000,
	LIST_TIMEOUT_MS = 60000,
	WATCH_SECONDS_MIN = 300, /* the server ends each watch after 5 to 10 minutes, so that it can balance */
	WATCH_SECONDS_SPREAD = 300,
	WATCH_HEALTHY_MS = 5000, /* a watch that lived so long ends a series of failures */
	WATCH_TOO_SHORT_MS = 1000,
	ERROR_BODY_MAX = 4096,
};

struct list_watch {
	struct list_watch_options options;
	char *path, *label_selector, *field_selector;
	uv_loop_t *loop;
	uv_timer_t timer;
	struct http_request_handle *request;
	struct backoff backoff;
	enum state state;
	bool stopped;
	bool connected;
	bool announced;	     /* on_state was called once */
	bool in_list;	     /* between on_list_begin and on_list_end */
	bool expired;	     /* the watch said 410: list again without waiting */
	bool failed_already; /* this answer: what follows in it does not matter */
	char *version;	     /* resourceVersion to watch from */
	char *page_token;    /* "continue" of the last page */
	uint64_t watch_started_ms;
	uint64_t n_events; /* in this watch */
	int status;
	struct json_scan scan;
	struct str error_body; /* of an answer other than 200 */
	struct error failure;  /* found while reading the body */
};

static void start_request(struct list_watch *lw);
static void on_end(void *data, int status, const struct error *err);

static uint32_t random_number(void)
{
	uint32_t n;

	return getrandom(&n, sizeof(n), GRND_NONBLOCK) == sizeof(n) ? n : 0x80000000;
}

static void set_connected(struct list_watch *lw, bool connected, const struct error *err)
{
	if (lw->announced && lw->connected == connected)
		return;
	lw->announced = true;
	lw->connected = connected;
	if (lw->options.on_state)
		lw->options.on_state(lw->options.data, connected, err);
}

static void bad_object(struct list_watch *lw, struct error *err)
{
	error_prefix(err, "%s", lw->path);
	if (lw->options.on_bad)
		lw->options.on_bad(lw->options.data, err);
}

static void keep_version(struct list_watch *lw, const json_t *object)
{
	const char *version = json_str_at(object, "metadata.resourceVersion", NULL);

	if (str_empty(version))
		return;
	free(lw->version);
	lw->version = xstrdup(version);
}

static void list_item(struct list_watch *lw)
{
	struct error err = ERROR_INIT;
	json_t *object = NULL;

	if (json_read(lw->scan.item.buf, lw->scan.item.len, false, &object, &err) < 0) {
		error_prefix(&err, "item of a list");
		bad_object(lw, &err);
		return;
	}
	if (!json_is_object(object)) {
		error_set(&err, ERROR_INVALID, "item of a list is not an object");
		bad_object(lw, &err);
	} else {
		lw->options.on_object(lw->options.data, WATCH_ADDED, object);
	}
	json_decref(object);
}

/* The text of a Status object, or of whatever a server says when it refuses. */
static void describe_refusal(const struct list_watch *lw, struct error *err)
{
	_cleanup_json_ json_t *status = NULL;
	const char *message = NULL;

	if (json_read(str_get(&lw->error_body), lw->error_body.len, false, &status, NULL) == 0)
		message = json_str_at(status, "message", NULL);
	error_set(err,
		lw->status == 404   ? ERROR_NOT_FOUND
		: lw->status == 403 ? ERROR_DENIED
		: lw->status == 401 ? ERROR_UNAUTHENTICATED
				    : ERROR_UNAVAILABLE,
		"the server answered %d%s%.300s", lw->status, message ? ": " : "", message ? message : "");
}

/* {"type":"ERROR","object":Status} */
static void watch_error(struct list_watch *lw, const json_t *status)
{
	lw->failed_already = true;
	lw->expired = json_int_at(status, "code", 0) == 410;
	lw->state = LISTING;
	error_set(&lw->failure, ERROR_UNAVAILABLE, "watch: %.300s",
		json_str_at(status, "message", "error without a message"));
}

static void watch_event(struct list_watch *lw, const json_t *event)
{
	static const char *const types[] = { "ADDED", "MODIFIED", "DELETED" };
	const char *type = json_str_at(event, "type", "");
	const json_t *object = json_object_get(event, "object");
	struct error err = ERROR_INIT;

	if (!json_is_object(object)) {
		error_set(&err, ERROR_INVALID, "watch event of type \"%.40s\" without an object", type);
		bad_object(lw, &err);
		return;
	}
	if (str_eq(type, "ERROR")) {
		watch_error(lw, object);
		return;
	}
	lw->n_events++;
	backoff_reset(&lw->backoff);
	keep_version(lw, object);
	if (str_eq(type, "BOOKMARK"))
		return;
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (str_eq(type, types[i])) {
			lw->options.on_object(lw->options.data, (enum watch_event)i, object);
			return;
		}
	error_set(&err, ERROR_INVALID, "watch event of unknown type \"%.40s\"", type);
	bad_object(lw, &err);
}

static void watch_item(struct list_watch *lw)
{
	struct error err = ERROR_INIT;
	_cleanup_json_ json_t *event = NULL;

	if (json_read(lw->scan.item.buf, lw->scan.item.len, false, &event, &err) < 0) {
		error_prefix(&err, "watch event");
		bad_object(lw, &err);
		return;
	}
	watch_event(lw, event);
}

static void item_too_large(struct list_watch *lw)
{
	struct error err = ERROR_INIT;

	error_set(&err, ERROR_EXHAUSTED, "object of more than %d bytes", JSON_SCAN_ITEM_MAX);
	bad_object(lw, &err);
}

static void on_head(void *data, int status, const char *content_type UNUSED)
{
	struct list_watch *lw = data;

	lw->status = status;
	if (status != 200)
		return;
	if (lw->state == WATCHING) {
		set_connected(lw, true, NULL);
	} else if (!lw->in_list) {
		lw->in_list = true;
		lw->options.on_list_begin(lw->options.data);
	}
}

/* Hands out what is complete in these bytes. */
static void read_items(struct list_watch *lw, struct bytes in)
{
	while (!lw->failed_already && !lw->stopped) {
		enum json_scan_event event;

		if (json_scan_read(&lw->scan, &in, &event, &lw->failure) < 0)
			lw->failed_already = true;
		else if (event == JSON_SCAN_MORE)
			return;
		else if (event == JSON_SCAN_TOO_LARGE)
			item_too_large(lw);
		else if (event == JSON_SCAN_ITEM && lw->watch_started_ms)
			watch_item(lw);
		else if (event == JSON_SCAN_ITEM)
			list_item(lw);
	}
}

static void on_body(void *data, const char *p, size_t len)
{
	static const struct error ok = { .code = ERROR_OK };
	struct list_watch *lw = data;

	if (lw->status != 200) {
		str_add_bytes(&lw->error_body, p, MIN(len, ERROR_BODY_MAX - lw->error_body.len));
		return;
	}
	read_items(lw, (struct bytes){ p, len });
	if (!lw->failed_already || lw->stopped)
		return;
	http_request_cancel(lw->request);
	on_end(lw, lw->status, &ok);
}

static void on_timer(uv_timer_t *timer)
{
	start_request(container_of(timer, struct list_watch, timer));
}

static void again_after(struct list_watch *lw, uint64_t delay_ms)
{
	uv_timer_start(&lw->timer, on_timer, delay_ms, 0);
}

/* A list that did not come to its end begins again from its first page: pages belong together. */
static void failed(struct list_watch *lw, const struct error *err)
{
	if (lw->state == LISTING) {
		free(lw->page_token);
		lw->page_token = NULL;
		lw->in_list = false;
	}
	set_connected(lw, false, err);
	if (!lw->stopped)
		again_after(lw, backoff_next_ms(&lw->backoff, random_number()));
}

/* The page is complete: the next one, or the watch. */
static int list_page_done(struct list_watch *lw, struct error *err)
{
	_cleanup_json_ json_t *rest = NULL;

	if (json_scan_inside(&lw->scan) || !lw->scan.rest.len)
		return error_set(err, ERROR_UNAVAILABLE, "list ended before its end");
	int r = json_read(lw->scan.rest.buf, lw->scan.rest.len, false, &rest, err);
	if (r < 0)
		return error_prefix(err, "list");
	const char *version = json_str_at(rest, "metadata.resourceVersion", NULL);
	const char *token = json_str_at(rest, "metadata.continue", "");
	if (str_empty(version))
		return error_set(err, ERROR_INVALID, "list without metadata.resourceVersion");
	free(lw->page_token);
	lw->page_token = *token ? xstrdup(token) : NULL;
	if (!lw->page_token) {
		keep_version(lw, rest);
		lw->state = WATCHING;
	}
	return 0;
}

static void list_ended(struct list_watch *lw)
{
	struct error err = ERROR_INIT;
	int r = 0;

	if (lw->failure.code)
		err = lw->failure;
	else if (lw->status != 200)
		describe_refusal(lw, &err);
	else
		r = list_page_done(lw, &err);
	if (r < 0 || err.code) {
		error_prefix(&err, "list %s", lw->path);
		failed(lw, &err);
		return;
	}
	if (lw->state == WATCHING) {
		lw->in_list = false;
		lw->options.on_list_end(lw->options.data);
		if (!lw->stopped)
			set_connected(lw, true, NULL);
	}
	if (!lw->stopped)
		again_after(lw, 0);
}

/* Back to LISTING. At once if only our version was too old, unless that is what always happens. */
static void relist(struct list_watch *lw, const struct error *err)
{
	bool at_once = lw->expired && lw->backoff.failures == 0;

	lw->state = LISTING;
	lw->in_list = false;
	lw->expired = false;
	free(lw->version);
	lw->version = NULL;
	if (!at_once) {
		failed(lw, err);
		return;
	}
	(void)backoff_next_ms(&lw->backoff, 0); /* a second one in a row has to wait */
	again_after(lw, 0);
}

static void watch_ended(struct list_watch *lw, const struct error *end)
{
	uint64_t lived_ms = uv_now(lw->loop) - lw->watch_started_ms;
	struct error err = lw->failure;

	if (lw->status == 200 && lived_ms >= WATCH_HEALTHY_MS)
		backoff_reset(&lw->backoff);
	if (!err.code && end->code)
		err = *end;
	if (!err.code && lw->status != 200)
		describe_refusal(lw, &err);
	bool refused = lw->status == 400 || lw->status == 410;
	if (lw->state == LISTING || refused) {
		lw->expired |= lw->status == 410;
		error_prefix(&err, "watch %s", lw->path);
		relist(lw, &err);
		return;
	}
	if (!err.code && json_scan_inside(&lw->scan))
		error_set(&err, ERROR_UNAVAILABLE, "stream ended in the middle of an event");
	if (!err.code && !lw->n_events && lived_ms < WATCH_TOO_SHORT_MS)
		error_set(&err, ERROR_UNAVAILABLE, "stream ended at once");
	if (!err.code) {
		again_after(lw, 0);
		return;
	}
	error_prefix(&err, "watch %s", lw->path);
	failed(lw, &err);
}

static void on_end(void *data, int status UNUSED, const struct error *err)
{
	struct list_watch *lw = data;
	bool watching = lw->watch_started_ms != 0;

	lw->request = NULL;
	if (err->code == ERROR_CANCELLED)
		return; /* the client is going away */
	if (watching) {
		watch_ended(lw, err);
		return;
	}
	if (err->code && !lw->failure.code)
		lw->failure = *err;
	list_ended(lw);
}

static void add_query(struct str *target, const char *name, const char *value)
{
	if (str_empty(value))
		return;
	str_addf(target, "%c%s=", strchr(target->buf, '?') ? '&' : '?', name);
	url_encode(target, value);
}

static char *target_of(const struct list_watch *lw, unsigned watch_seconds)
{
	struct str target = STR_INIT;
	char number[16];

	str_add(&target, lw->path);
	if (lw->state == LISTING) {
		snprintf(number, sizeof(number), "%u", lw->options.page_size ? lw->options.page_size : 500);
		add_query(&target, "limit", number);
		add_query(&target, "continue", lw->page_token);
	} else {
		snprintf(number, sizeof(number), "%u", watch_seconds);
		add_query(&target, "watch", "1");
		add_query(&target, "allowWatchBookmarks", "true");
		add_query(&target, "resourceVersion", lw->version);
		add_query(&target, "timeoutSeconds", number);
	}
	add_query(&target, "labelSelector", lw->label_selector);
	add_query(&target, "fieldSelector", lw->field_selector);
	return str_take(&target);
}

static void start_request(struct list_watch *lw)
{
	unsigned seconds = WATCH_SECONDS_MIN + random_number() % WATCH_SECONDS_SPREAD;
	_cleanup_free_ char *target = target_of(lw, seconds);
	bool watching = lw->state == WATCHING;
	struct http_call call = {
		.method = "GET",
		.target = target,
		.timeout_ms = watching ? 0 : LIST_TIMEOUT_MS,
		/* Should the server forget to end the watch, or the network to tell us. */
		.idle_timeout_ms = watching ? (seconds + 30) * 1000ULL : 0,
		.on_head = on_head,
		.on_body = on_body,
		.on_end = on_end,
		.data = lw,
	};

	json_scan_done(&lw->scan);
	json_scan_init(&lw->scan, watching ? JSON_SCAN_STREAM : JSON_SCAN_LIST);
	str_reset(&lw->error_body);
	lw->failure = ERROR_INIT;
	lw->status = 0;
	lw->failed_already = false;
	lw->n_events = 0;
	lw->watch_started_ms = watching ? MAX(uv_now(lw->loop), (uint64_t)1) : 0;
	lw->request = http_request_start(lw->options.client, &call);
}

struct list_watch *list_watch_start(uv_loop_t *loop, const struct list_watch_options *options)
{
	struct list_watch *lw = xnew(struct list_watch);

	lw->options = *options;
	lw->path = xstrdup(options->path);
	lw->label_selector = xstrdup(options->label_selector);
	lw->field_selector = xstrdup(options->field_selector);
	lw->loop = loop;
	lw->backoff.first_ms = options->backoff_first_ms ? options->backoff_first_ms : BACKOFF_FIRST_MS;
	lw->backoff.max_ms = BACKOFF_MAX_MS;
	uv_timer_init(loop, &lw->timer);
	start_request(lw);
	return lw;
}

static void on_closed(uv_handle_t *handle)
{
	struct list_watch *lw = container_of((uv_timer_t *)handle, struct list_watch, timer);

	json_scan_done(&lw->scan);
	str_done(&lw->error_body);
	free(lw->path);
	free(lw->label_selector);
	free(lw->field_selector);
	free(lw->version);
	free(lw->page_token);
	free(lw);
}

void list_watch_stop(struct list_watch *lw)
{
	if (!lw || lw->stopped)
		return;
	lw->stopped = true;
	http_request_cancel(lw->request);
	lw->request = NULL;
	uv_close((uv_handle_t *)&lw->timer, on_closed);
}

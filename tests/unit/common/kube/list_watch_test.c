/* list_watch_test.c - purpose: a scripted API server, good and bad; what the consumer is told, as one line. */
#include "common/kube/list_watch.h"

#include "common/base/str.h"
#include "common/wire/json.h"
#include "tests/unit/common/net/fake_http.h"

#include <signal.h>

#define LIST(body) "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" body
#define WATCH(body) LIST(body)
#define OBJ(name, version) "{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"" version "\"}}"
#define EVENT(type, name, version) "{\"type\":\"" type "\",\"object\":" OBJ(name, version) "}\n"
#define PAGE(version, token, items) "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"" version "\",\"continue\":\"" token "\"},\"items\":[" items "]}\n"
#define STATUS(code, message) "{\"kind\":\"Status\",\"code\":" #code ",\"message\":\"" message "\"}"
#define EMPTY_LIST { "/api/v1/pods?limit=", LIST(PAGE("5", "", "")), FAKE_CLOSE, 0, 0 }
#define HANG { "watch=1", WATCH(""), FAKE_HANG, 0, 0 }

struct seen {
	struct str trace;
	struct list_watch *lw;
	const char *stop_at; /* object name */
};

static void on_list_begin(void *data)
{
	str_add(&((struct seen *)data)->trace, "begin ");
}

static void on_list_end(void *data)
{
	str_add(&((struct seen *)data)->trace, "end ");
}

static void on_object(void *data, enum watch_event event, const json_t *object)
{
	struct seen *seen = data;
	const char *name = json_str_at(object, "metadata.name", "?");

	str_addf(&seen->trace, "%c%s ", "+~-"[event], name);
	if (str_eq(name, seen->stop_at)) {
		list_watch_stop(seen->lw);
		str_add(&seen->trace, "stopped ");
	}
}

static void on_bad(void *data, const struct error *err)
{
	ck_assert(str_starts(err->text, "/api/v1/pods: "));
	str_addf(&((struct seen *)data)->trace, "bad(%s) ", err->text + strlen("/api/v1/pods: "));
}

static void on_state(void *data, bool connected, const struct error *err)
{
	struct seen *seen = data;

	if (connected)
		str_add(&seen->trace, "up ");
	else
		str_addf(&seen->trace, "down(%s) ", strchr(err->text, ' ') + 1);
}

enum { STEPS_MAX = 10 };
static const struct {
	const char *name;
	struct fake_step steps[STEPS_MAX];
	const char *want; /* up to here */
	const char *stop_at;
} cases[] = {
	{ "list and watch",
		{ { "GET /api/v1/pods?limit=500 HTTP", LIST(PAGE("7", "", OBJ("a", "1") "," OBJ("b", "2"))), FAKE_CLOSE, 0, 0 },
			{ "watch=1&allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=",
				WATCH(EVENT("ADDED", "c", "8") EVENT("MODIFIED", "a", "9") EVENT("DELETED", "b", "10")), FAKE_HANG, 0, 0 } },
		"begin +a +b end up +c ~a -b ", NULL },
	{ "byte by byte",
		{ { NULL, LIST(PAGE("7", "", OBJ("a", "1"))), FAKE_CLOSE, 1, 0 }, { "resourceVersion=7", WATCH(EVENT("ADDED", "c", "8")), FAKE_HANG, 1, 1 } },
		"begin +a end up +c ", NULL },
	{ "pages",
		{ { NULL, LIST(PAGE("7", "t1/+=", OBJ("a", "1"))), FAKE_CLOSE, 0, 0 }, { "limit=500&continue=t1%2F%2B%3D ", LIST(PAGE("7", "t2", OBJ("b", "2"))), FAKE_CLOSE, 0, 0 },
			{ "continue=t2", LIST(PAGE("7", "", "")), FAKE_CLOSE, 0, 0 }, HANG },
		"begin +a +b end up ", NULL },
	{ "items before metadata, foreign fields",
		{ { NULL, LIST("{\"items\" : [ " OBJ("a", "1") " ], \"x\":{\"items\":[{}]}, \"metadata\":{\"resourceVersion\":\"9\"}}"), FAKE_CLOSE, 0, 0 },
			{ "resourceVersion=9", WATCH(""), FAKE_HANG, 0, 0 } },
		"begin +a end up ", NULL },
	{ "stream ends, goes on from the last version",
		{ EMPTY_LIST, { "resourceVersion=5&", WATCH(EVENT("ADDED", "a", "6")), FAKE_CLOSE, 0, 0 },
			{ "resourceVersion=6&", WATCH(EVENT("ADDED", "b", "7")), FAKE_CLOSE, 0, 0 }, { "resourceVersion=7&", WATCH(""), FAKE_HANG, 0, 0 } },
		"begin end up +a +b ", NULL },
	{ "bookmark moves the version",
		{ EMPTY_LIST, { NULL, WATCH(EVENT("BOOKMARK", "", "99")), FAKE_CLOSE, 0, 0 },
			{ "resourceVersion=99&", WATCH(EVENT("ADDED", "b", "100")), FAKE_HANG, 0, 0 } },
		"begin end up +b ", NULL },
	{ "410 as an event: lists again",
		{ EMPTY_LIST, { NULL, WATCH("{\"type\":\"ERROR\",\"object\":" STATUS(410, "too old") "}\n"), FAKE_HANG, 0, 0 },
			{ "limit=", LIST(PAGE("20", "", OBJ("a", "1"))), FAKE_CLOSE, 0, 0 }, { "resourceVersion=20&", WATCH(""), FAKE_HANG, 0, 0 } },
		"begin end up begin +a end ", NULL },
	{ "410 as a status: lists again",
		{ EMPTY_LIST, { NULL, "HTTP/1.1 410 Gone\r\nConnection: close\r\n\r\n" STATUS(410, "too old"), FAKE_CLOSE, 0, 0 },
			{ "limit=", LIST(PAGE("20", "", OBJ("a", "1"))), FAKE_CLOSE, 0, 0 }, HANG },
		"begin end up begin +a end ", NULL },
	{ "410 in the middle of pages",
		{ { NULL, LIST(PAGE("7", "t1", OBJ("a", "1"))), FAKE_CLOSE, 0, 0 },
			{ "continue=t1", "HTTP/1.1 410 Gone\r\nConnection: close\r\n\r\n" STATUS(410, "token expired"), FAKE_CLOSE, 0, 0 },
			{ "?limit=500 HTTP", LIST(PAGE("8", "", OBJ("b", "1"))), FAKE_CLOSE, 0, 0 }, HANG },
		"begin +a down(/api/v1/pods: the server answered 410: token expired) begin +b end up ", NULL },
	{ "other ERROR event",
		{ EMPTY_LIST, { NULL, WATCH("{\"type\":\"ERROR\",\"object\":" STATUS(500, "etcd") "}\n"), FAKE_CLOSE, 0, 0 },
			{ "limit=", LIST(PAGE("20", "", "")), FAKE_CLOSE, 0, 0 }, HANG },
		"begin end up down(/api/v1/pods: watch: etcd) begin end up ", NULL },
	{ "one bad object in a list",
		{ { NULL, LIST("{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[" OBJ("a", "1") ",{\"metadata\":nope},5," OBJ("b", "2") "]}"), FAKE_CLOSE, 0, 0 }, HANG },
		"begin +a bad(item of a list: line 1, column 13: 'n' where a value should be) bad(item of a list is not an object) +b end up ", NULL },
	{ "bad events",
		{ EMPTY_LIST, { NULL, WATCH("{\"type\":nope}\n{\"type\":\"ADDED\"}\n" EVENT("RENAMED", "x", "6") EVENT("ADDED", "a", "7")), FAKE_HANG, 0, 0 } },
		"begin end up bad(watch event: line 1, column 9: 'n' where a value should be) bad(watch event of type \"ADDED\" without an object) "
		"bad(watch event of unknown type \"RENAMED\") +a ", NULL },
	{ "half an event, then the end",
		{ EMPTY_LIST, { NULL, WATCH(EVENT("ADDED", "a", "6") "{\"type\":\"ADDED\",\"obj"), FAKE_CLOSE, 0, 0 },
			{ "resourceVersion=6&", WATCH(EVENT("ADDED", "b", "7")), FAKE_HANG, 0, 0 } },
		"begin end up +a down(/api/v1/pods: stream ended in the middle of an event) up +b ", NULL },
	{ "chunked stream cut off",
		{ EMPTY_LIST, { NULL, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n", FAKE_CLOSE, 0, 0 }, { "resourceVersion=5&", WATCH(EVENT("ADDED", "b", "7")), FAKE_HANG, 0, 0 } },
		"begin end up down(", NULL },
	{ "garbage in the stream",
		{ EMPTY_LIST, { NULL, WATCH("<html>oops"), FAKE_HANG, 0, 0 }, { "resourceVersion=5&", WATCH(EVENT("ADDED", "b", "7")), FAKE_HANG, 0, 0 } },
		"begin end up down(/api/v1/pods: answer is not JSON: it begins with byte 0x3c) up +b ", NULL },
	{ "list cut off in the middle of an object",
		{ { NULL, LIST("{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[" OBJ("a", "1") ",{\"meta"), FAKE_CLOSE, 0, 0 }, EMPTY_LIST, HANG },
		"begin +a down(/api/v1/pods: list ended before its end) begin end up ", NULL },
	{ "list that is none",
		{ { NULL, LIST("hello"), FAKE_CLOSE, 0, 0 }, { NULL, LIST("{}"), FAKE_CLOSE, 0, 0 }, { NULL, LIST(""), FAKE_CLOSE, 0, 0 },
			{ NULL, LIST("{\"metadata\":{\"resourceVersion\":7},\"items\":[]}"), FAKE_CLOSE, 0, 0 }, EMPTY_LIST, HANG },
		"begin down(/api/v1/pods: answer is not JSON: it begins with byte 0x68) begin begin begin begin end up ", NULL },
	{ "refused, then allowed",
		{ { NULL, "HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n" STATUS(403, "pods is forbidden"), FAKE_CLOSE, 0, 0 },
			{ NULL, "HTTP/1.1 503 x\r\nContent-Length: 0\r\n\r\n", FAKE_CLOSE, 0, 0 }, EMPTY_LIST, HANG },
		"down(/api/v1/pods: the server answered 403: pods is forbidden) begin end up ", NULL },
	{ "watch refused: tried again",
		{ EMPTY_LIST, { "watch=1", "HTTP/1.1 429 x\r\nContent-Length: 0\r\n\r\n", FAKE_CLOSE, 0, 0 }, { "watch=1", WATCH(EVENT("ADDED", "a", "6")), FAKE_HANG, 0, 0 } },
		"begin end up down(", NULL },
	{ "no answer at all", { { NULL, "", FAKE_CLOSE, 0, 0 }, EMPTY_LIST, HANG }, "down(", NULL },
	{ "stop from inside a list", { { NULL, LIST(PAGE("7", "", OBJ("a", "1") "," OBJ("b", "2"))), FAKE_CLOSE, 0, 0 } }, "begin +a stopped ", "a" },
	{ "stop from inside a watch", { EMPTY_LIST, { NULL, WATCH(EVENT("ADDED", "a", "6") EVENT("ADDED", "b", "7")), FAKE_HANG, 0, 0 } }, "begin end up +a stopped ", "a" },
};

static struct list_watch_options options_of(struct seen *seen, struct http_client *client)
{
	return (struct list_watch_options){ .client = client, .path = "/api/v1/pods", .backoff_first_ms = 10, .data = seen, .on_list_begin = on_list_begin,
		.on_object = on_object, .on_list_end = on_list_end, .on_bad = on_bad, .on_state = on_state };
}

static struct http_client *client_of(uv_loop_t *loop, const char *path)
{
	struct http_client_options options = { .host = "node-lite" };

	ck_assert_int_eq(sock_address_parse(path, &options.address, NULL), 0);
	return http_client_new(loop, &options);
}

START_TEST(script_case)
{
	struct seen seen = { .stop_at = cases[_i].stop_at };
	struct fake_http fake;
	uv_loop_t loop;
	size_t n = 0, want = strlen(cases[_i].want);

	while (n < STEPS_MAX && cases[_i].steps[n].answer)
		n++;
	uv_loop_init(&loop);
	fake_http_start(&fake, cases[_i].steps, n);
	struct http_client *client = client_of(&loop, fake.path);
	struct list_watch_options options = options_of(&seen, client);
	seen.lw = list_watch_start(&loop, &options);
	while (seen.trace.len < want)
		ck_assert_msg(uv_run(&loop, UV_RUN_ONCE) || seen.trace.len >= want, "%s: ended with %s", cases[_i].name, str_get(&seen.trace));
	/* what came with the same bytes may stand behind it */
	ck_assert_msg(str_starts(seen.trace.buf, cases[_i].want), "%s\n got: %s\nwant: %s", cases[_i].name, seen.trace.buf, cases[_i].want);
	/* The fake counts a step after its answer: no event of the loop may follow. */
	while (__atomic_load_n(&fake.done, __ATOMIC_SEQ_CST) < n && !cases[_i].stop_at) {
		uv_run(&loop, UV_RUN_NOWAIT);
		usleep(1000);
	}
	if (!cases[_i].stop_at)
		list_watch_stop(seen.lw);
	http_client_free(client);
	uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
	fake_http_stop(&fake);
	str_done(&seen.trace);
}
END_TEST

START_TEST(selectors_are_encoded)
{
	static const struct fake_step step = { "GET /api/v1/pods?limit=7&labelSelector=a%20in%20%28b%2Cc%29&fieldSelector=spec.nodeName%3Dn1 HTTP", LIST(PAGE("5", "", "")),
		FAKE_CLOSE, 0, 0 };
	struct seen seen = { 0 };
	struct fake_http fake;
	uv_loop_t loop;

	uv_loop_init(&loop);
	fake_http_start(&fake, &step, 1);
	struct http_client *client = client_of(&loop, fake.path);
	struct list_watch_options options = options_of(&seen, client);
	options.label_selector = "a in (b,c)";
	options.field_selector = "spec.nodeName=n1";
	options.page_size = 7;
	seen.lw = list_watch_start(&loop, &options);
	while (!seen.trace.len)
		uv_run(&loop, UV_RUN_ONCE);
	list_watch_stop(seen.lw);
	http_client_free(client);
	uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
	fake_http_stop(&fake);
	str_done(&seen.trace);
}
END_TEST

/* Hours of idleness: the server ends watch after watch with nothing but bookmarks; not one object is given, no list is made. */
START_TEST(idle_for_hours)
{
	enum { WATCHES = 60 };
	struct fake_step steps[WATCHES + 2] = { EMPTY_LIST };
	char *texts[WATCHES];
	struct seen seen = { 0 };
	struct fake_http fake;
	uv_loop_t loop;

	for (int i = 0; i < WATCHES; i++) {
		texts[i] = xasprintf(WATCH("{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"%d\"}}}\n"), 100 + i);
		steps[i + 1] = (struct fake_step){ "watch=1", texts[i], FAKE_CLOSE, 0, 0 };
	}
	steps[WATCHES + 1] = (struct fake_step){ "resourceVersion=159&", WATCH(EVENT("ADDED", "a", "200")), FAKE_HANG, 0, 0 };
	uv_loop_init(&loop);
	fake_http_start(&fake, steps, ARRAY_LEN(steps));
	struct http_client *client = client_of(&loop, fake.path);
	struct list_watch_options options = options_of(&seen, client);
	seen.lw = list_watch_start(&loop, &options);
	while (!strstr(str_get(&seen.trace), "+a"))
		uv_run(&loop, UV_RUN_ONCE);
	ck_assert_str_eq(seen.trace.buf, "begin end up +a ");
	list_watch_stop(seen.lw);
	http_client_free(client);
	uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
	fake_http_stop(&fake);
	str_done(&seen.trace);
	for (int i = 0; i < WATCHES; i++)
		free(texts[i]);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("list_watch");
	TCase *t = tcase_create("list_watch");

	signal(SIGPIPE, SIG_IGN);
	tcase_set_timeout(t, 30);
	tcase_add_loop_test(t, script_case, 0, ARRAY_LEN(cases));
	tcase_add_test(t, selectors_are_encoded);
	tcase_add_test(t, idle_for_hours);
	suite_add_tcase(s, t);
	SRunner *runner = srunner_create(s);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}

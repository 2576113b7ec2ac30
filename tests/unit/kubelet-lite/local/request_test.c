/* request_test.c - purpose: request paths, log lines and protobuf bodies, by table. */
#include "kubelet-lite/local/log_line.h"
#include "kubelet-lite/local/protobuf.h"
#include "kubelet-lite/local/route.h"
#include "kubelet-lite/store/kinds.h"

#include "tests/unit/quotes.h"

#include <stdio.h>

static const struct {
	const char *path, *want; /* "Kind ns name sub", NULL: none */
} routes[] = {
	{ "/api/v1/pods", "Pod   " }, { "/api/v1/pods/", "Pod   " }, { "/api/v1/namespaces/d/pods", "Pod d  " },
	{ "/api/v1/namespaces/d/pods/web", "Pod d web " }, { "/api/v1/namespaces/d/pods/web/log", "Pod d web log" },
	{ "/api/v1/namespaces", "Namespace   " }, { "/api/v1/namespaces/d", "Namespace  d " },
	{ "/api/v1/namespaces/d/status", "Namespace  d status" }, { "/api/v1/nodes/n", "Node  n " },
	{ "/apis/discovery.k8s.io/v1/endpointslices", "EndpointSlice   " },
	{ "/apis/discovery.k8s.io/v1/namespaces/d/endpointslices/x", "EndpointSlice d x " }, { "/api/v1/endpointslices", NULL },
	{ "/api/v1/pods/web", NULL }, { "/api/v1/namespaces/d/nodes", NULL }, { "/api/v1/namespaces/d/pods/w/log/x", NULL },
	{ "/api/v2/pods", NULL }, { "/api//v1/pods", NULL }, { "/api/v1", NULL }, { "/apis/apps/v1/deployments", NULL }, { "/", NULL },
	{ "", NULL }, { "api/v1/pods", NULL },
};

START_TEST(route_case)
{
	struct route r;
	bool ok = route_parse(routes[_i].path, &r);

	ck_assert_msg(ok == (routes[_i].want != NULL), "%s", routes[_i].path);
	if (!ok)
		return;
	_cleanup_free_ char *got = xasprintf("%s %s %s %s", kind_info(r.kind)->kind, r.ns, r.name, r.sub);

	ck_assert_str_eq(got, routes[_i].want);
}
END_TEST

START_TEST(long_names_are_no_route)
{
	char path[700];
	struct route r;

	snprintf(path, sizeof(path), "/api/v1/namespaces/%0300d", 0);
	ck_assert(!route_parse(path, &r));
	snprintf(path, sizeof(path), "/api/v1/namespaces/d/pods/x/%0300d", 0);
	ck_assert(!route_parse(path, &r));
}
END_TEST

#define T1 "2026-01-01T00:00:01.5Z"
#define T2 "2026-01-01T00:00:02.5Z"

static const struct {
	const char *lines[4];
	struct log_filter filter;
	const char *want;
	bool full;
} logs[] = {
	{ { T1 " stdout F one", T2 " stderr F two" }, { .left = -1 }, "one\ntwo\n", false },
	{ { T1 " stdout F one" }, { .left = -1, .timestamps = true }, T1 " one\n", false },
	{ { T1 " stdout P on", T2 " stdout P e ", T2 " stdout F more" }, { .left = -1, .timestamps = true }, T1 " one more\n", false },
	{ { T1 " stdout F one", T2 " stderr F two" }, { .left = -1, .only = "stderr" }, "two\n", false },
	{ { T1 " stdout F one", T2 " stdout F two" }, { .left = -1, .since_ns = 1767225602000000000 }, "two\n", false },
	{ { T1 " stdout F one", T2 " stdout F two" }, { .left = 6 }, "one\ntw", true },
	{ { T1 " stdout F one" }, { .left = 4 }, "one\n", true },
	{ { "not of that form", T1 " stdout F " }, { .left = -1 }, "not of that form\n\n", false },
	{ { T1 " stdin F x" }, { .left = -1 }, T1 " stdin F x\n", false },
};

START_TEST(log_case)
{
	struct log_filter filter = logs[_i].filter;
	_cleanup_(str_done) struct str out = STR_INIT;
	bool full = false;

	for (size_t i = 0; i < 4 && logs[_i].lines[i] && !full; i++)
		full = log_filter_line(&filter, (struct bytes){ logs[_i].lines[i], strlen(logs[_i].lines[i]) }, &out);
	ck_assert_str_eq(str_get(&out), logs[_i].want);
	ck_assert(full == logs[_i].full);
}
END_TEST

START_TEST(tail)
{
	char path[] = "/tmp/tail-test.XXXXXX";
	_cleanup_fd_ int fd = mkstemp(path);
	_cleanup_(str_done) struct str text = STR_INIT;
	int64_t starts[3001];

	unlink(path);
	for (int i = 0; i < 3000; i++) {
		starts[i] = (int64_t)text.len;
		str_addf(&text, "line %d %*s\n", i, i % 40, "");
	}
	ck_assert_int_eq(write(fd, text.buf, text.len), (ssize_t)text.len);
	starts[3000] = (int64_t)text.len;
	int64_t missing;

	for (int n = 0; n <= 3000; n += n < 10 ? 1 : 299) {
		ck_assert_int_eq(log_tail_offset(fd, (int64_t)text.len, n, &missing), starts[3000 - n]);
		ck_assert_int_eq(missing, 0);
	}
	ck_assert_int_eq(log_tail_offset(fd, (int64_t)text.len, 5000, &missing), 0);
	ck_assert_int_eq(missing, 2000);
	/* A last line that is not finished is a line. */
	ck_assert_int_eq(log_tail_offset(fd, (int64_t)text.len - 1, 1, &missing), starts[2999]);
	ck_assert_int_eq(log_tail_offset(fd, 0, 3, &missing), 0);
	ck_assert_int_eq(missing, 3);
}
END_TEST

#define K8S "k8s\0"
#define META "\x0a\x03\x0a\x01" "a" /* metadata{name: a} */

static const struct {
	const char *name, *bytes;
	size_t len;
	const char *want; /* NULL: refused */
} bodies[] = {
#define B(s) s, sizeof(s) - 1
	{ "config map", B(K8S "\x0a\x0f\x0a\x02v1\x12\x09" "ConfigMap" "\x12\x0d" META "\x12\x06\x0a\x01k\x12\x01v"),
		"{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'a'},'data':{'k':'v'}}" },
	{ "secret", B(K8S "\x0a\x0c\x0a\x02v1\x12\x06" "Secret" "\x12\x15" META "\x12\x06\x0a\x01k\x12\x01v\x1a\x06Opaque"),
		"{'apiVersion':'v1','kind':'Secret','metadata':{'name':'a'},'data':{'k':'dg=='},'type':'Opaque'}" },
	{ "service", B(K8S "\x0a\x0d\x0a\x02v1\x12\x07" "Service" "\x12\x13" META "\x12\x0c\x0a\x0a\x18\x50\x22\x06\x08\x01\x1a\x02hi"),
		"{'apiVersion':'v1','kind':'Service','metadata':{'name':'a'},'spec':{'ports':[{'port':80,'targetPort':'hi'}]}}" },
	{ "delete options", B(K8S "\x0a\x13\x0a\x02v1\x12\x0d" "DeleteOptions" "\x12\x02\x08\x00"),
		"{'apiVersion':'v1','kind':'DeleteOptions','gracePeriodSeconds':0}" },
	{ "unknown kind", B(K8S "\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x05" META), NULL },
	{ "unknown field", B(K8S "\x0a\x0f\x0a\x02v1\x12\x09" "ConfigMap" "\x12\x03\x7a\x01x"), NULL },
	{ "cut off", B(K8S "\x0a\x0f\x0a\x02v1\x12\x09" "ConfigMap" "\x12\x50" META), NULL },
	{ "no magic", B("k8x\0"), NULL },
	{ "empty", B(""), NULL },
	{ "length beyond everything", B(K8S "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), NULL },
};

START_TEST(body_case)
{
	_cleanup_json_ json_t *tree = NULL;
	int r = protobuf_read(bodies[_i].bytes, bodies[_i].len, &tree, NULL);

	ck_assert_msg((r == 0) == (bodies[_i].want != NULL), "%s", bodies[_i].name);
	if (bodies[_i].want)
		assert_json_eq(tree, bodies[_i].want);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("request");

	tcase_add_loop_test(t, route_case, 0, ARRAY_LEN(routes));
	tcase_add_test(t, long_names_are_no_route);
	tcase_add_loop_test(t, log_case, 0, ARRAY_LEN(logs));
	tcase_add_test(t, tail);
	tcase_add_loop_test(t, body_case, 0, ARRAY_LEN(bodies));
	return run_case(t);
}

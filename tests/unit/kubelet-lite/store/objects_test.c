/* objects_test.c - purpose: the object store: versions, uids, replacement, status, addresses, restarts, notifications. */
#include "kubelet-lite/store/events.h"
#include "kubelet-lite/store/objects.h"

#include "common/base/str.h"
#include "common/sys/file.h"
#include "tests/unit/quotes.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

static char root[64];
static uv_loop_t loop;
static struct objects *store;
static struct str seen; /* what the subscriber was told */
static bool remove_at_once;

static void told(void *data, enum object_event event, const struct object *o)
{
	(void)data;
	str_addf(&seen, "%c%s%s ", "AMD"[event], o->name, o->deleting ? "!" : "");
	if (remove_at_once && o->kind == KIND_POD && o->deleting && event == OBJECT_MODIFIED)
		objects_remove(store, KIND_POD, o->ns, o->name, o->uid);
}

static void open_store(void)
{
	struct error err = ERROR_INIT;
	int r = objects_new(&loop, &(struct objects_options){ .root_dir = root, .node_name = "node1" }, &store, &err);

	ck_assert_msg(r == 0, "%s", err.text);
}

static void close_store(void)
{
	objects_free(store);
	store = NULL;
	uv_run(&loop, UV_RUN_DEFAULT);
}

static void set_up(void)
{
	snprintf(root, sizeof(root), "/tmp/objects-test.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(root));
	uv_loop_init(&loop);
	str_reset(&seen);
	remove_at_once = false;
	open_store();
}

static void tear_down(void)
{
	close_store();
	ck_assert_int_eq(uv_loop_close(&loop), 0);
	ck_assert_int_eq(dir_remove(AT_FDCWD, root, NULL), 0);
	str_done(&seen);
}

static const struct object *put(enum object_kind kind, const char *text)
{
	_cleanup_json_ json_t *tree = quoted(text);
	const struct object *o = NULL;
	struct error err = ERROR_INIT;
	int r = objects_put(store, kind, tree, "/m/a.yaml", &o, &err);

	ck_assert_msg(r == 0, "%s", err.text);
	return o;
}

static void refuse(enum object_kind kind, const char *text, const char *why)
{
	_cleanup_json_ json_t *tree = quoted(text);
	struct error err = ERROR_INIT;

	ck_assert_int_lt(objects_put(store, kind, tree, "/m/a.yaml", NULL, &err), 0);
	ck_assert_msg(strstr(err.text, why), "want %s\ngot  %s", why, err.text);
}

static char *field(const struct object *o, const char *path)
{
	_cleanup_json_ json_t *tree = object_tree(o);

	return xstrdup(json_str_at(tree, path, ""));
}

#define WEB(image, label) "{'metadata':{'name':'web','labels':{'a':'" label "'}},'spec':{'containers':[{'name':'c','image':'" image "'}]}}"

START_TEST(pod_identity)
{
	const struct object *o = put(KIND_POD, WEB("i:1", "x"));
	_cleanup_free_ char *uid = xstrdup(o->uid);
	uint64_t version = o->resource_version;

	ck_assert_uint_eq(strlen(uid), 32);
	/* The same, with other order and a default spelled out: nothing happens. */
	put(KIND_POD, "{'spec':{'restartPolicy':'Always','containers':[{'image':'i:1','name':'c'}]},'metadata':{'labels':{'a':'x'},'name':"
		      "'web'}}");
	ck_assert_uint_eq(o->resource_version, version);
	/* A label changes in place. */
	put(KIND_POD, WEB("i:1", "y"));
	ck_assert_str_eq(o->uid, uid);
	ck_assert_uint_gt(o->resource_version, version);
	ck_assert_str_eq(object_label(o, "a"), "y");
	ck_assert_ptr_null(object_label(o, "b"));
	ck_assert(!o->deleting);
	_cleanup_free_ char *node = field(o, "spec.nodeName");

	ck_assert_str_eq(node, "node1");
}
END_TEST

START_TEST(pod_replacement)
{
	objects_subscribe(store, KIND_POD, told, NULL);
	const struct object *o = put(KIND_POD, WEB("i:1", "x"));
	_cleanup_free_ char *uid = xstrdup(o->uid);

	put(KIND_POD, WEB("i:2", "x"));
	put(KIND_POD, WEB("i:3", "x"));
	ck_assert(o->deleting);
	ck_assert_str_eq(str_get(&seen), "Aweb Mweb! ");
	objects_remove(store, KIND_POD, "default", "web", "another uid");
	ck_assert_str_eq(str_get(&seen), "Aweb Mweb! ");
	objects_remove(store, KIND_POD, "default", "web", uid);
	ck_assert_str_eq(str_get(&seen), "Aweb Mweb! Dweb! Aweb ");
	o = objects_get(store, KIND_POD, "default", "web");
	ck_assert_str_ne(o->uid, uid);
	ck_assert_ptr_nonnull(strstr(o->json, "\"i:3\""));
	ck_assert_uint_eq(objects_count(store, KIND_POD), 1);
}
END_TEST

START_TEST(pod_removed_in_callback)
{
	remove_at_once = true;
	objects_subscribe(store, KIND_POD, told, NULL);
	put(KIND_POD, WEB("i:1", "x"));
	put(KIND_POD, WEB("i:2", "x"));
	put(KIND_POD, WEB("i:1", "x"));
	const struct object *o = objects_get(store, KIND_POD, "default", "web");

	ck_assert_ptr_nonnull(strstr(o->json, "\"i:1\""));
	ck_assert_str_eq(str_get(&seen), "Aweb Mweb! Dweb! Aweb Mweb! Dweb! Aweb ");
}
END_TEST

START_TEST(pod_back_within_grace)
{
	const struct object *o = put(KIND_POD, WEB("i:1", "x"));
	_cleanup_free_ char *uid = xstrdup(o->uid);

	ck_assert_int_eq(objects_delete(store, KIND_POD, "default", "web", -1, NULL), 0);
	put(KIND_POD, WEB("i:1", "x"));
	ck_assert_ptr_eq(objects_get(store, KIND_POD, "default", "web"), o);
	objects_remove(store, KIND_POD, "default", "web", uid);
	o = objects_get(store, KIND_POD, "default", "web");
	ck_assert_ptr_nonnull(o);
	ck_assert_str_ne(o->uid, uid); /* another instance */
	/* Deleted while one waits: nobody is left. */
	put(KIND_POD, WEB("i:2", "x"));
	ck_assert_int_eq(objects_delete(store, KIND_POD, "default", "web", -1, NULL), 0);
	objects_remove(store, KIND_POD, "default", "web", NULL);
	ck_assert_ptr_null(objects_get(store, KIND_POD, "default", "web"));
	ck_assert_int_lt(objects_delete(store, KIND_POD, "default", "web", -1, NULL), 0);
}
END_TEST

START_TEST(grace_only_shrinks)
{
	const struct object *o = put(KIND_POD, WEB("i:1", "x"));
	static const struct {
		int64_t grace, want;
	} steps[] = { { -1, 30 }, { 60, 30 }, { 5, 5 }, { 10, 5 }, { 0, 0 } };

	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		ck_assert_int_eq(objects_delete(store, KIND_POD, "default", "web", steps[i].grace, NULL), 0);
		_cleanup_json_ json_t *tree = object_tree(o);

		ck_assert_int_eq(json_int_at(tree, "metadata.deletionGracePeriodSeconds", -1), steps[i].want);
	}
}
END_TEST

START_TEST(status)
{
	const struct object *o = put(KIND_POD, WEB("i:1", "x"));
	uint64_t version = o->resource_version;
	_cleanup_json_ json_t *running = quoted("{'phase':'Running'}");

	ck_assert_int_eq(objects_put_status(store, KIND_POD, "default", "web", running, NULL), 0);
	ck_assert_uint_gt(o->resource_version, version);
	version = o->resource_version;
	ck_assert_int_eq(objects_put_status(store, KIND_POD, "default", "web", running, NULL), 0);
	ck_assert_uint_eq(o->resource_version, version);
	put(KIND_POD, WEB("i:1", "z"));
	_cleanup_free_ char *phase = field(o, "status.phase");

	ck_assert_str_eq(phase, "Running");
	ck_assert_int_lt(objects_put_status(store, KIND_POD, "default", "none", running, NULL), 0);
}
END_TEST

#define SVC(name, more) "{'metadata':{'name':'" name "'},'spec':{'type':'NodePort','selector':{'a':'b'}," more "'ports':[{'port':80}]}}"

START_TEST(restart_keeps)
{
	const struct object *o = put(KIND_SERVICE, SVC("web", ""));
	_cleanup_free_ char *ip = field(o, "spec.clusterIP"), *uid = xstrdup(o->uid), *json = xstrdup(o->json);
	const struct object *pod = put(KIND_POD, WEB("i:1", "x"));
	_cleanup_free_ char *pod_uid = xstrdup(pod->uid), *created = field(pod, "metadata.creationTimestamp");
	uint64_t version = objects_version(store);

	for (int i = 0; i < 3; i++) {
		close_store();
		open_store();
		ck_assert_uint_gt(objects_version(store), version);
		version = objects_version(store);
		/* One that was not there before comes first, and wants any address. */
		_cleanup_free_ char *other = xasprintf("{'metadata':{'name':'other%d'},'spec':{'ports':[{'port':1}]}}", i);

		put(KIND_SERVICE, other);
		o = put(KIND_SERVICE, SVC("web", ""));
		pod = put(KIND_POD, WEB("i:1", "x"));
		_cleanup_free_ char *ip_now = field(o, "spec.clusterIP"), *created_now = field(pod, "metadata.creationTimestamp");
		const char *port = strstr(json, "\"nodePort\":");

		ck_assert_str_eq(ip_now, ip);
		ck_assert_str_eq(o->uid, uid);
		ck_assert_str_eq(pod->uid, pod_uid);
		ck_assert_str_eq(created_now, created);
		ck_assert_ptr_nonnull(strstr(o->json, "\"nodePort\":"));
		ck_assert_int_eq(strncmp(strstr(o->json, "\"nodePort\":"), port, 16), 0);
	}
}
END_TEST

START_TEST(service_addresses)
{
	const struct object *o = put(KIND_SERVICE, SVC("a", "'clusterIP':'10.96.0.10',"));
	_cleanup_free_ char *ip = field(o, "spec.clusterIP");

	ck_assert_str_eq(ip, "10.96.0.10");
	refuse(KIND_SERVICE, SVC("b", "'clusterIP':'10.96.0.10',"),
		"spec.clusterIP: the address 10.96.0.10 is already allocated to Service default/a");
	refuse(KIND_SERVICE, SVC("b", "'clusterIP':'10.1.0.10',"), "not in the valid range 10.96.0.0/16");
	refuse(KIND_SERVICE, "{'metadata':{'name':'b'},'spec':{'type':'NodePort','ports':[{'port':80,'nodePort':80}]}}",
		"the nodePort 80 is not in the valid range 30000-32767");
	put(KIND_SERVICE, "{'metadata':{'name':'n'},'spec':{'type':'NodePort','ports':[{'port':80,'nodePort':30080}]}}");
	refuse(KIND_SERVICE, "{'metadata':{'name':'b'},'spec':{'type':'NodePort','ports':[{'port':80,'nodePort':30080}]}}",
		"the nodePort 30080 is already allocated to Service default/n");
	ck_assert_ptr_null(objects_get(store, KIND_SERVICE, "default", "b"));
	/* A refused change leaves what there is. */
	refuse(KIND_SERVICE, SVC("n", "'clusterIP':'10.96.0.10',"), "already allocated");
	refuse(KIND_SERVICE, SVC("b", "'clusterIP':'10.96.0.10',"), "already allocated");
	ck_assert_int_eq(objects_delete(store, KIND_SERVICE, "default", "a", -1, NULL), 0);
	put(KIND_SERVICE, SVC("b", "'clusterIP':'10.96.0.10',"));
	/* Headless and external ones have none. */
	o = put(KIND_SERVICE, "{'metadata':{'name':'h'},'spec':{'clusterIP':'None','ports':[{'port':80}]}}");
	_cleanup_free_ char *none = field(o, "spec.clusterIP");

	ck_assert_str_eq(none, "None");
	o = put(KIND_SERVICE, "{'metadata':{'name':'e'},'spec':{'type':'ExternalName','externalName':'example.org'}}");
	_cleanup_free_ char *external = field(o, "spec.clusterIP");

	ck_assert_str_eq(external, "");
	/* From NodePort to ClusterIP: the port is free again. */
	put(KIND_SERVICE, "{'metadata':{'name':'n'},'spec':{'ports':[{'port':80}]}}");
	put(KIND_SERVICE, "{'metadata':{'name':'n2'},'spec':{'type':'NodePort','ports':[{'port':80,'nodePort':30080}]}}");
}
END_TEST

START_TEST(second_process)
{
	struct objects *other = NULL;
	struct error err = ERROR_INIT;

	ck_assert_int_lt(objects_new(&loop, &(struct objects_options){ .root_dir = root, .node_name = "n" }, &other, &err), 0);
	ck_assert_int_eq(err.code, ERROR_EXISTS);
	ck_assert_ptr_nonnull(strstr(err.text, "in use by another kubelet-lite"));
}
END_TEST

static const struct {
	const char *text;
	bool starts;
} states[] = {
	{ "", true }, { "{", true }, { "[]", true }, { "{\"version\":1}", true },
	{ "{\"version\":1,\"objects\":{\"x\":1,\"Service/default/a\":{\"clusterIP\":5,\"nodePorts\":\"junk=,=,/=9\"}}}", true },
	{ "{\"version\":2}", false },
};

START_TEST(broken_state_case)
{
	_cleanup_free_ char *path = xasprintf("%s/objects.json", root);
	struct error err = ERROR_INIT;

	close_store();
	ck_assert_int_eq(file_replace(AT_FDCWD, path, states[_i].text, strlen(states[_i].text), 0600, NULL), 0);
	int r = objects_new(&loop, &(struct objects_options){ .root_dir = root, .node_name = "n" }, &store, &err);

	ck_assert_msg((r == 0) == states[_i].starts, "%s: %s", states[_i].text, err.text);
	if (r < 0) {
		unlink(path);
		open_store();
	}
}
END_TEST

START_TEST(deleted_since)
{
	put(KIND_CONFIG_MAP, "{'metadata':{'name':'a'}}");
	uint64_t since = objects_version(store);

	str_reset(&seen);
	ck_assert_int_eq(objects_delete(store, KIND_CONFIG_MAP, "default", "a", -1, NULL), 0);
	ck_assert(objects_deleted_since(store, KIND_CONFIG_MAP, since, told, NULL));
	ck_assert_str_eq(str_get(&seen), "Da ");
	for (int i = 0; i < 600; i++) {
		put(KIND_CONFIG_MAP, "{'metadata':{'name':'b'}}");
		ck_assert_int_eq(objects_delete(store, KIND_CONFIG_MAP, "default", "b", -1, NULL), 0);
	}
	ck_assert(!objects_deleted_since(store, KIND_CONFIG_MAP, since, told, NULL));
	ck_assert(!objects_deleted_since(store, KIND_CONFIG_MAP, 1, NULL, NULL));
	ck_assert(objects_deleted_since(store, KIND_CONFIG_MAP, objects_version(store), NULL, NULL));
	ck_assert(objects_deleted_since(store, KIND_SECRET, since, NULL, NULL)); /* of a kind of its own */
}
END_TEST

START_TEST(many_sorted)
{
	size_t i = 0;
	const struct object *o, *last = NULL;

	for (int n = 0; n < 500; n++) {
		_cleanup_free_ char *text = xasprintf("{'metadata':{'name':'c%d','namespace':'n%d'}}", n * 7919 % 500, n % 3);

		put(KIND_CONFIG_MAP, text);
	}
	ck_assert_uint_eq(objects_count(store, KIND_CONFIG_MAP), 500);
	while ((o = objects_next(store, KIND_CONFIG_MAP, &i))) {
		int c = last ? strcmp(last->ns, o->ns) : -1;

		ck_assert(c < 0 || (c == 0 && strcmp(last->name, o->name) < 0));
		ck_assert_ptr_eq(objects_after(store, KIND_CONFIG_MAP, last ? last->ns : "", last ? last->name : ""), o);
		last = o;
	}
	ck_assert_uint_eq(objects_count(store, KIND_NAMESPACE), 3);
}
END_TEST

START_TEST(events)
{
	const struct object *o = put(KIND_POD, WEB("i:1", "x"));
	size_t i = 0;

	for (int n = 0; n < 5; n++)
		events_record(store, o, "Normal", "Pulled", "kubelet", "image %s", "x");
	events_record_at(store, o, "spec.containers{c}", "Normal", "Pulled", "kubelet", "bad \xff byte");
	ck_assert_uint_eq(objects_count(store, KIND_EVENT), 2);
	const struct object *e = objects_next(store, KIND_EVENT, &i);
	_cleanup_json_ json_t *tree = object_tree(e);

	ck_assert_int_eq(json_int_at(tree, "count", 0), 5);
	ck_assert_str_eq(json_str_at(tree, "involvedObject.uid", ""), o->uid);
	ck_assert_str_eq(json_str_at(tree, "message", ""), "image x");
	for (int n = 0; n < EVENTS_MAX + 50; n++)
		events_record(store, o, "Normal", "Many", "kubelet", "number %d", n);
	ck_assert_uint_eq(objects_count(store, KIND_EVENT), EVENTS_MAX);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("objects");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, pod_identity);
	tcase_add_test(t, pod_replacement);
	tcase_add_test(t, pod_removed_in_callback);
	tcase_add_test(t, pod_back_within_grace);
	tcase_add_test(t, grace_only_shrinks);
	tcase_add_test(t, status);
	tcase_add_test(t, restart_keeps);
	tcase_add_test(t, service_addresses);
	tcase_add_test(t, second_process);
	tcase_add_loop_test(t, broken_state_case, 0, ARRAY_LEN(states));
	tcase_add_test(t, deleted_since);
	tcase_add_test(t, many_sorted);
	tcase_add_test(t, events);
	return run_case(t);
}

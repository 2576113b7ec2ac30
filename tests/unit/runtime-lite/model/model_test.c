/* model_test.c - purpose: pods and containers: transitions, their files and back, the store's names and operations. */
#include "common/sys/file.h"
#include "common/wire/json.h"
#include "runtime-lite/model/store.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>

static char dir[] = "/tmp/model_test.XXXXXX";

static CRI(PodSandboxConfig) * pod_config(const char *name)
{
	CRI(PodSandboxConfig) *config = CRI_NEW(PodSandboxConfig, pod_sandbox_config);

	config->metadata = CRI_NEW(PodSandboxMetadata, pod_sandbox_metadata);
	message_set(&config->metadata->name, name);
	message_set(&config->metadata->namespace_, "ns");
	message_set(&config->metadata->uid, "uid");
	return config;
}

static CRI(ContainerConfig) * container_config(const char *name)
{
	CRI(ContainerConfig) *config = CRI_NEW(ContainerConfig, container_config);

	config->metadata = CRI_NEW(ContainerMetadata, container_metadata);
	message_set(&config->metadata->name, name);
	config->image = CRI_NEW(ImageSpec, image_spec);
	message_set(&config->image->image, "busybox");
	return config;
}

START_TEST(sandbox_round_trip)
{
	_cleanup_sandbox_ struct sandbox *s = sandbox_new("abc", pod_config("p"), "/state");
	_cleanup_sandbox_ struct sandbox *back = NULL;
	struct error err = ERROR_INIT;

	ck_assert_str_eq(s->name, "p_ns_uid_0");
	ck_assert_str_eq(s->dir, "/state/sandboxes/abc");
	s->state = SANDBOX_READY;
	s->runtime_handler = xstrdup("");
	s->cgroup = xstrdup("/x/abc");
	s->cgroup_owned = true;
	s->created_ns = UINT64_C(1796161126724327645);
	s->network_attached = true;
	strv_add(&s->ips, "10.0.0.1");
	s->resources = CRI_NEW(LinuxContainerResources, linux_container_resources);
	s->resources->cpu_shares = 7;
	_cleanup_json_ json_t *json = sandbox_to_json(s);
	ck_assert_msg(sandbox_from_json(json, "/state", &back, &err) == 0, "%s", err.text);
	_cleanup_json_ json_t *again = sandbox_to_json(back);
	_cleanup_free_ char *a = json_text(json), *b = json_text(again);
	ck_assert_str_eq(a, b);
	ck_assert(back->created_ns == s->created_ns && back->state == SANDBOX_READY);
}
END_TEST

static const struct {
	const char *text, *want;
} bad_files[] = {
	{ "{}", "has no format version" },
	{ "{\"version\":2}", "written by a newer version (format 2, this program knows 1)" },
	{ "{\"version\":1}", "config: must be an object" },
	{ "{\"version\":1,\"id\":\"a/b\",\"config\":{\"metadata\":{\"name\":\"x\"}}}", "id or metadata is missing" },
	{ "{\"version\":1,\"id\":\"ab\",\"config\":{}}", "id or metadata is missing" },
	{ "{\"version\":1,\"id\":\"ab\",\"config\":{\"nosuch\":{}}}", "config: unknown field \"nosuch\"" },
};

START_TEST(bad_file)
{
	_cleanup_json_ json_t *json = NULL;
	struct sandbox *s = NULL;
	struct error err = ERROR_INIT;

	ck_assert_int_eq(json_read(bad_files[_i].text, strlen(bad_files[_i].text), false, &json, NULL), 0);
	ck_assert_int_lt(sandbox_from_json(json, "/state", &s, &err), 0);
	ck_assert_str_eq(err.text, bad_files[_i].want);
	ck_assert_ptr_null(s);
}
END_TEST

START_TEST(container_round_trip)
{
	_cleanup_sandbox_ struct sandbox *s = sandbox_new("pod", pod_config("p"), "/state");
	_cleanup_container_ struct container *c = container_new("abc", container_config("c"), s, "/root");
	_cleanup_container_ struct container *back = NULL;
	struct error err = ERROR_INIT;

	ck_assert_str_eq(c->name, "c_p_ns_uid_0");
	c->image_id = xstrdup("sha256:1");
	c->image_ref = xstrdup("x@sha256:1");
	c->image_name = xstrdup("x:1");
	c->log_path = xstrdup("/l/c.log");
	c->cwd = xstrdup("/w");
	strv_add(&c->args, "sh");
	strv_add(&c->args, "not utf-8: \xff\xfe");
	strv_add(&c->env, "A=\xe2\x82\xac");
	strv_add(&c->lower, "/layers/1/fs");
	c->user = (struct user){ .uid = 5, .gid = 6, .home = xstrdup("/h") };
	c->stop_signal = 3;
	c->created_ns = 17;
	c->state = CONTAINER_CREATED;
	ck_assert(container_set_start_failed(c, "exec: no", 99));
	_cleanup_json_ json_t *json = container_to_json(c);
	ck_assert_msg(container_from_json(json, s, "/root", &back, &err) == 0, "%s", err.text);
	_cleanup_json_ json_t *again = container_to_json(back);
	_cleanup_free_ char *a = json_text(json), *b = json_text(again);
	ck_assert_str_eq(a, b);
	ck_assert_str_eq(back->args.v[1], "not utf-8: \xff\xfe");
	ck_assert_str_eq(container_reason(back), "StartError");
	ck_assert_int_eq(back->exit_code, 128);
	ck_assert(back->finished_ns == 99);
}
END_TEST

static const struct {
	const char *name;
	int status;
	bool oom;
	const char *reason;
} ends[] = {
	{ "all well", 0, false, "Completed" },
	{ "failed", 3, false, "Error" },
	{ "killed", 137, false, "Error" },
	{ "out of memory", 137, true, "OOMKilled" },
	{ "a helper was taken, the first process ended well", 0, true, "Completed" },
};

START_TEST(reasons)
{
	_cleanup_sandbox_ struct sandbox *s = sandbox_new("pod", pod_config("p"), "/state");
	_cleanup_container_ struct container *c = container_new("abc", container_config("c"), s, "/root");
	struct exit_record first = { .status = ends[_i].status, .oom = ends[_i].oom, .finished_ns = 5 };
	struct exit_record second = { .status = 99, .finished_ns = 6 };

	c->state = CONTAINER_CREATED;
	ck_assert_str_eq(container_reason(c), "");
	ck_assert(container_set_running(c, 1, 4));
	ck_assert(!container_set_running(c, 2, 5));
	ck_assert(container_set_exited(c, &first));
	/* The first word counts: event, exit file and recovery may all speak. */
	ck_assert(!container_set_exited(c, &second));
	ck_assert(!container_set_lost(c, 7));
	ck_assert(!container_set_running(c, 3, 8));
	ck_assert_str_eq(container_reason(c), ends[_i].reason);
	ck_assert_int_eq(c->exit_code, ends[_i].status);
	ck_assert(c->finished_ns == 5 && c->started_ns == 4 && c->pid == 0);
}
END_TEST

START_TEST(lost)
{
	_cleanup_sandbox_ struct sandbox *s = sandbox_new("pod", pod_config("p"), "/state");
	_cleanup_container_ struct container *c = container_new("abc", container_config("c"), s, "/root");

	c->state = CONTAINER_RUNNING;
	ck_assert(container_set_lost(c, 7));
	ck_assert_int_eq(c->exit_code, 255);
	ck_assert_str_eq(container_reason(c), "Unknown");
}
END_TEST

static struct store *open_store(void)
{
	struct store *store = NULL;
	struct error err = ERROR_INIT;
	_cleanup_free_ char *state = xasprintf("%s/state", dir), *root = xasprintf("%s/root", dir);

	ck_assert_msg(store_open(state, root, &store, &err) == 0, "%s", err.text);
	return store;
}

START_TEST(one_daemon_only)
{
	struct store *store = open_store(), *other = NULL;
	_cleanup_free_ char *state = xasprintf("%s/state", dir), *root = xasprintf("%s/root", dir);
	struct error err = ERROR_INIT;

	ck_assert_int_lt(store_open(state, root, &other, &err), 0);
	ck_assert_int_eq(err.code, ERROR_PRECONDITION);
	ck_assert_ptr_nonnull(strstr(err.text, "is in use by another runtime-lite"));
	ck_assert_ptr_nonnull(strstr(err.text, state));
	store_close(store);
}
END_TEST

START_TEST(names_and_prefixes)
{
	struct store *store = open_store();
	struct sandbox *a = sandbox_new("aaa1", pod_config("p"), store->state_dir);
	struct sandbox *b = sandbox_new("aab2", pod_config("q"), store->state_dir);
	struct sandbox *twin = sandbox_new("ccc3", pod_config("p"), store->state_dir);
	struct sandbox *found = NULL;
	struct error err = ERROR_INIT;

	ck_assert_int_eq(store_add_sandbox(store, a, NULL), 0);
	ck_assert_int_eq(store_add_sandbox(store, b, NULL), 0);
	ck_assert_int_lt(store_add_sandbox(store, twin, &err), 0);
	ck_assert_int_eq(err.code, ERROR_EXISTS);
	ck_assert_str_eq(err.text,
		"pod sandbox name \"p_ns_uid_0\" is reserved for aaa1, which is still being created or undone");
	ck_assert_int_lt(store_get_sandbox(store, "aaa1", &found, &err), 0); /* CREATING: invisible */
	ck_assert_int_eq(err.code, ERROR_NOT_FOUND);
	a->state = b->state = SANDBOX_READY;
	ck_assert_int_eq(store_get_sandbox(store, "aaa", &found, &err), 0);
	ck_assert_ptr_eq(found, a);
	sandbox_unref(found);
	ck_assert_int_lt(store_get_sandbox(store, "aa", &found, &err), 0);
	ck_assert_int_eq(err.code, ERROR_INVALID);
	ck_assert_int_lt(store_get_sandbox(store, "", &found, &err), 0);
	ck_assert_int_eq(err.code, ERROR_INVALID);
	ck_assert_int_lt(store_get_sandbox(store, "zz", &found, &err), 0);
	ck_assert_int_eq(err.code, ERROR_NOT_FOUND);
	store_drop_sandbox(store, a);
	store_drop_sandbox(store, a); /* twice is fine */
	ck_assert_int_eq(store_add_sandbox(store, twin, &err), 0);
	sandbox_unref(a);
	sandbox_unref(b);
	sandbox_unref(twin);
	store_close(store);
}
END_TEST

START_TEST(containers_of_a_pod)
{
	struct store *store = open_store();
	struct sandbox *s = sandbox_new("pod", pod_config("p"), store->state_dir);
	struct container *c[3];

	for (int i = 0; i < 3; i++) {
		char id[8], name[8];

		snprintf(id, sizeof(id), "id%d", i);
		snprintf(name, sizeof(name), "c%d", i);
		c[i] = container_new(id, container_config(name), s, store->root_dir);
		ck_assert_int_eq(store_add_container(store, c[i], NULL), 0);
	}
	store_drop_container(store, c[1]);
	size_t n = 0;
	for (struct container *p = s->containers; p; p = p->next_in_pod, n++)
		ck_assert_ptr_ne(p, c[1]);
	ck_assert_uint_eq(n, 2);
	for (int i = 0; i < 3; i++)
		container_unref(c[i]);
	sandbox_unref(s);
	store_close(store);
}
END_TEST

static bool always(const void *data)
{
	(void)data;
	return true;
}

START_TEST(operations)
{
	struct store *store = open_store();
	struct sandbox *s = sandbox_new("pod", pod_config("p"), store->state_dir);
	struct operation op = { 0 }, second = { 0 };
	struct error err = ERROR_INIT;

	ck_assert_int_eq(operation_begin(&op, store, s, "One", NULL, NULL, &err), 0);
	ck_assert_int_lt(operation_begin(&second, store, s, "Two", always, NULL, &err), 0);
	ck_assert_int_eq(err.code, ERROR_CANCELLED);
	ck_assert_str_eq(err.text, "pod sandbox pod: cancelled while One was at work");
	ck_assert_ptr_null(second.sandbox);
	s->waiting = OPERATIONS_WAITING_MAX;
	ck_assert_int_lt(operation_begin(&second, store, s, "Two", NULL, NULL, &err), 0);
	ck_assert_int_eq(err.code, ERROR_EXHAUSTED);
	s->waiting = 0;
	operation_end(&op);
	ck_assert_int_eq(operation_begin(&second, store, s, "Two", always, NULL, &err), 0);
	operation_end(&second);
	operation_end(&second); /* nothing */
	sandbox_unref(s);
	store_close(store);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("model");
	TCase *tcase = tcase_create("all");

	if (!mkdtemp(dir))
		return 1;
	tcase_add_test(tcase, sandbox_round_trip);
	tcase_add_loop_test(tcase, bad_file, 0, ARRAY_LEN(bad_files));
	tcase_add_test(tcase, container_round_trip);
	tcase_add_loop_test(tcase, reasons, 0, ARRAY_LEN(ends));
	tcase_add_test(tcase, lost);
	tcase_add_test(tcase, one_daemon_only);
	tcase_add_test(tcase, names_and_prefixes);
	tcase_add_test(tcase, containers_of_a_pod);
	tcase_add_test(tcase, operations);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	if (dir_remove(AT_FDCWD, dir, NULL) < 0)
		failed++;
	return failed ? 1 : 0;
}

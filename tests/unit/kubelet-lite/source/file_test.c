/* file_test.c - purpose: the manifests directory as people and editors treat it: swaps, half-written files, backups,
 * duplicates; what the API writes. */
#include "kubelet-lite/source/file.h"

#include "common/base/str.h"
#include "common/sys/file.h"
#include "kubelet-lite/store/events.h"
#include "tests/unit/quotes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

static char dir[64];
static uv_loop_t loop;
static struct objects *store;
static struct file_source *source;
static struct str seen;

/* The pod's worker: a deleted pod is gone at once. */
static void worker(void *data, enum object_event event, const struct object *o)
{
	(void)data;
	if (event != OBJECT_MODIFIED)
		str_addf(&seen, "%c%s ", event == OBJECT_ADDED ? 'A' : 'D', o->name);
	if (event == OBJECT_MODIFIED && o->deleting)
		objects_remove(store, KIND_POD, o->ns, o->name, o->uid);
}

static void start(void)
{
	struct error err = ERROR_INIT;
	int r = objects_new(&loop, &(struct objects_options){ .node_name = "node1" }, &store, &err);

	ck_assert_msg(r == 0, "%s", err.text);
	objects_subscribe(store, KIND_POD, worker, NULL);
	r = file_source_start(&loop, store, dir, &source, &err);
	ck_assert_msg(r == 0, "%s", err.text);
}

static void set_up(void)
{
	snprintf(dir, sizeof(dir), "/tmp/file-test.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	uv_loop_init(&loop);
	start();
}

static void tear_down(void)
{
	file_source_stop(source);
	objects_free(store);
	uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
	ck_assert_int_eq(dir_remove(AT_FDCWD, dir, NULL), 0);
	str_done(&seen);
}

static void times_up(uv_timer_t *timer)
{
	*(bool *)timer->data = true;
}

/* Lets the loop run for so long. */
static void pass(unsigned ms)
{
	uv_timer_t timer;
	bool over = false;

	uv_timer_init(&loop, &timer);
	timer.data = &over;
	uv_timer_start(&timer, times_up, ms, 0);
	while (!over)
		uv_run(&loop, UV_RUN_ONCE);
	uv_close((uv_handle_t *)&timer, NULL);
	uv_run(&loop, UV_RUN_NOWAIT);
}

static char *path_in(const char *name)
{
	return xasprintf("%s/%s", dir, name);
}

/* In place: truncate, write, close. */
static void save(const char *name, const char *text)
{
	_cleanup_free_ char *path = path_in(name);
	_cleanup_fd_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fd_write_full(fd, text, strlen(text)), 0);
}

static void swap_in(const char *name, const char *text)
{
	_cleanup_free_ char *path = path_in(name);

	ck_assert_int_eq(file_replace(AT_FDCWD, path, text, strlen(text), 0644, NULL), 0);
}

static void drop(const char *name)
{
	_cleanup_free_ char *path = path_in(name);

	ck_assert_int_eq(unlink(path), 0);
}

static bool has_image(const char *pod, const char *image)
{
	const struct object *o = objects_get(store, KIND_POD, "default", pod);
	_cleanup_free_ char *want = xasprintf("\"image\":\"%s\"", image);

	return o && strstr(o->json, want);
}

#define POD(name, image) "apiVersion: v1\nkind: Pod\nmetadata: {name: " name "}\nspec: {containers: [{name: c, image: " image "}]}\n"
#define CM(name) "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " name "}\n"

START_TEST(add_change_remove)
{
	swap_in("a.yaml", POD("web", "i:1"));
	pass(100);
	ck_assert(has_image("web", "i:1"));
	swap_in("a.yaml", POD("web", "i:2"));
	pass(100);
	ck_assert(has_image("web", "i:2"));
	drop("a.yaml");
	pass(400);
	ck_assert_ptr_null(objects_get(store, KIND_POD, "default", "web"));
	ck_assert_str_eq(str_get(&seen), "Aweb Dweb Aweb Dweb ");
}
END_TEST

START_TEST(same_content_is_nothing)
{
	save("a.yaml", POD("web", "i:1"));
	pass(100);
	save("a.yaml", "# a comment\nkind: Pod\napiVersion: v1\nspec:\n  containers:\n  - image: \"i:1\"\n    name: c\nmetadata:\n  name: web\n");
	pass(100);
	save("a.yaml", POD("web", "i:1"));
	pass(300);
	ck_assert_str_eq(str_get(&seen), "Aweb ");
}
END_TEST

START_TEST(editors_files_are_none)
{
	save(".a.yaml.swp", POD("a", "i"));
	save(".a.yaml", POD("a", "i"));
	save("a.yaml~", POD("a", "i"));
	save("a.yaml.bak", POD("a", "i"));
	save("4913", POD("a", "i"));
	save("README", "hello");
	_cleanup_free_ char *folder = path_in("dir.yaml");

	ck_assert_int_eq(mkdir(folder, 0755), 0);
	pass(300);
	ck_assert_uint_eq(objects_count(store, KIND_POD), 0);
	save("b.yml", POD("b", "i"));
	save("c.json", "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c\"}}");
	pass(300);
	ck_assert_uint_eq(objects_count(store, KIND_POD), 1);
	ck_assert_uint_eq(objects_count(store, KIND_CONFIG_MAP), 1);
}
END_TEST

START_TEST(vim_rename_dance)
{
	save("a.yaml", POD("web", "i:1"));
	pass(100);
	_cleanup_free_ char *path = path_in("a.yaml"), *backup = path_in("a.yaml~");

	ck_assert_int_eq(rename(path, backup), 0);
	pass(50);
	save("a.yaml", POD("web", "i:2"));
	pass(20);
	unlink(backup);
	pass(400);
	ck_assert_str_eq(str_get(&seen), "Aweb Dweb Aweb ");
	ck_assert(has_image("web", "i:2"));
}
END_TEST

START_TEST(slow_writer)
{
	save("a.yaml", POD("web", "i:1"));
	pass(100);
	_cleanup_free_ char *path = path_in("a.yaml");
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	static const char text[] = POD("web", "i:2") "---\n" POD("two", "i:1");

	pass(300);
	for (size_t i = 0; i < sizeof(text) - 1; i += 20) {
		ck_assert_int_eq(fd_write_full(fd, text + i, MIN(sizeof(text) - 1 - i, (size_t)20)), 0);
		pass(60);
	}
	ck_assert_str_eq(str_get(&seen), "Aweb ");
	close(fd);
	pass(200);
	ck_assert_str_eq(str_get(&seen), "Aweb Dweb Aweb Atwo ");
}
END_TEST

START_TEST(truncate_then_write)
{
	save("a.yaml", POD("web", "i:1"));
	pass(100);
	save("a.yaml", "");
	pass(600);
	save("a.yaml", POD("web", "i:1"));
	pass(200);
	ck_assert_str_eq(str_get(&seen), "Aweb ");
}
END_TEST

START_TEST(emptied_for_good)
{
	save("a.yaml", POD("web", "i:1"));
	pass(100);
	save("a.yaml", "# nothing any more\n");
	pass(FILE_EMPTY_MS + 500);
	ck_assert_str_eq(str_get(&seen), "Aweb Dweb ");
}
END_TEST

START_TEST(broken_keeps_last_good)
{
	save("a.yaml", POD("web", "i:1") "---\n" POD("two", "i:1"));
	pass(100);
	save("a.yaml", POD("web", "i:2") "---\nkind: [\n");
	pass(300);
	/* The good document counts, the broken one may be the second pod. */
	ck_assert_str_eq(str_get(&seen), "Aweb Atwo Dweb Aweb ");
	save("a.yaml", POD("web", "i:2") "---\napiVersion: v1\nkind: Pod\nmetadata: {name: two}\nspec: {}\n");
	pass(300);
	ck_assert(has_image("two", "i:1"));
	ck_assert_uint_ge(objects_count(store, KIND_EVENT), 2);
	save("a.yaml", POD("web", "i:2"));
	pass(300);
	ck_assert_ptr_null(objects_get(store, KIND_POD, "default", "two"));
}
END_TEST

START_TEST(duplicates)
{
	save("b.yaml", POD("web", "i:b"));
	pass(100);
	/* A copy that comes later by name does not count. */
	save("web.backup.yaml", POD("web", "i:copy"));
	pass(100);
	ck_assert(has_image("web", "i:b"));
	/* One that comes before does. */
	save("a.yaml", POD("web", "i:a"));
	pass(100);
	ck_assert(has_image("web", "i:a"));
	drop("a.yaml");
	pass(400);
	ck_assert(has_image("web", "i:b"));
	drop("b.yaml");
	pass(400);
	ck_assert(has_image("web", "i:copy"));
	ck_assert_uint_gt(objects_count(store, KIND_EVENT), 0);
}
END_TEST

START_TEST(three_times_in_a_second)
{
	for (int i = 1; i <= 3; i++) {
		_cleanup_free_ char *text = xasprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: c, image: 'i:%d'}]}\n", i);

		save("a.yaml", text);
		pass(100);
	}
	ck_assert(has_image("web", "i:3"));
	ck_assert_uint_eq(objects_count(store, KIND_POD), 1);
}
END_TEST

START_TEST(directory_is_swapped)
{
	_cleanup_free_ char *old = xasprintf("%s.old", dir), *fresh = xasprintf("%s.new", dir), *file = xasprintf("%s.new/a.yaml", dir);

	save("a.yaml", POD("web", "i:1"));
	pass(100);
	mkdir(fresh, 0755);
	ck_assert_int_eq(file_replace(AT_FDCWD, file, POD("web", "i:2"), strlen(POD("web", "i:2")), 0644, NULL), 0);
	ck_assert_int_eq(rename(dir, old), 0);
	pass(50);
	ck_assert_int_eq(rename(fresh, dir), 0);
	pass(500);
	ck_assert(has_image("web", "i:2"));
	/* The new directory is followed too. */
	save("b.yaml", CM("later"));
	pass(300);
	ck_assert_uint_eq(objects_count(store, KIND_CONFIG_MAP), 1);
	ck_assert_int_eq(dir_remove(AT_FDCWD, old, NULL), 0);
}
END_TEST

static char *text_of(const char *name)
{
	_cleanup_free_ char *path = path_in(name);
	char *text = NULL;

	return file_read(AT_FDCWD, path, 100000, &text, NULL, NULL) == 0 ? text : xstrdup("(absent)");
}

START_TEST(api_writes)
{
	_cleanup_json_ json_t *tree = quoted("{'metadata':{'name':'web','namespace':'default','uid':'x'},'spec':{'containers':[{'name':'c','image':'i'}]},"
					     "'status':{}}");
	_cleanup_json_ json_t *bad = quoted("{'metadata':{'name':'s'},'spec':{'clusterIP':'1.2.3.4','ports':[{'port':1}]}}");
	struct error err = ERROR_INIT;
	struct stat st;

	ck_assert_int_eq(file_source_write(source, KIND_POD, tree, &err), 0);
	ck_assert_str_eq(str_get(&seen), "Aweb ");
	_cleanup_free_ char *text = text_of("default_pod_web.yaml"), *path = path_in("default_pod_web.yaml");

	ck_assert_ptr_nonnull(strstr(text, "name: web"));
	ck_assert_ptr_null(strstr(text, "uid"));
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0600);
	pass(300);
	ck_assert_str_eq(str_get(&seen), "Aweb ");
	/* What the store refuses is not left in a file. */
	ck_assert_int_lt(file_source_write(source, KIND_SERVICE, bad, &err), 0);
	_cleanup_free_ char *none = text_of("default_service_s.yaml");

	ck_assert_str_eq(none, "(absent)");
	ck_assert_int_eq(file_source_delete(source, objects_get(store, KIND_POD, "default", "web"), 0, &err), 0);
	pass(300);
	ck_assert_str_eq(str_get(&seen), "Aweb Dweb ");
	_cleanup_free_ char *gone = text_of("default_pod_web.yaml");

	ck_assert_str_eq(gone, "(absent)");
}
END_TEST

START_TEST(api_edits_the_users_file)
{
	_cleanup_json_ json_t *tree = quoted("{'metadata':{'name':'b'},'data':{'x':'y'}}");
	struct error err = ERROR_INIT;

	save("mine.yaml", "# keep me\n" CM("a") "---\n" CM("b"));
	pass(100);
	ck_assert_int_eq(file_source_write(source, KIND_CONFIG_MAP, tree, &err), 0);
	_cleanup_free_ char *text = text_of("mine.yaml");

	ck_assert(str_starts(text, "# keep me\n" CM("a") "---\n"));
	ck_assert_ptr_nonnull(strstr(text, "x: \"y\""));
	ck_assert_int_eq(file_source_delete(source, objects_get(store, KIND_CONFIG_MAP, "default", "b"), 0, &err), 0);
	_cleanup_free_ char *rest = text_of("mine.yaml");

	ck_assert_str_eq(rest, "# keep me\n" CM("a"));
	ck_assert_uint_eq(objects_count(store, KIND_CONFIG_MAP), 1);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("file");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, add_change_remove);
	tcase_add_test(t, same_content_is_nothing);
	tcase_add_test(t, editors_files_are_none);
	tcase_add_test(t, vim_rename_dance);
	tcase_add_test(t, slow_writer);
	tcase_add_test(t, truncate_then_write);
	tcase_add_test(t, emptied_for_good);
	tcase_add_test(t, broken_keeps_last_good);
	tcase_add_test(t, duplicates);
	tcase_add_test(t, three_times_in_a_second);
	tcase_add_test(t, directory_is_swapped);
	tcase_add_test(t, api_writes);
	tcase_add_test(t, api_edits_the_users_file);
	return run_case(t);
}

/* store_test.c - purpose: the store's locks and records without a pull program: who may remove what while others work. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "common/base/sha256.h"
#include "common/sys/file.h"
#include "runtime-lite/image/manifest.h"
#include "runtime-lite/image/record.h"
#include "runtime-lite/image/reference.h"
#include "runtime-lite/image/store_internal.h"

static char dir[64];
static struct image_store *store;

static struct image_store *open_store(bool shared)
{
	struct image_store_options options = { .root = dir, .libexec_dir = "/nonexistent", .shared = shared };
	struct image_store *s = NULL;
	struct error err = ERROR_INIT;

	ck_assert_msg(image_store_open(&options, &s, &err) == 0, "%s", err.text);
	return s;
}

static void setup(void)
{
	strcpy(dir, "/tmp/store-test.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	store = open_store(false);
}

static void teardown(void)
{
	store = image_store_close(store);
	ck_assert_int_eq(dir_remove(AT_FDCWD, dir, NULL), 0);
}

/* A layer of one file; its "diff id" is made of `name`. The pin is closed: nobody works on it. */
static void make_layer(const char *name, struct strv *diff_ids, struct strv *chains)
{
	struct layer_meta meta = { 0 };
	char hex[SHA256_HEX_LEN + 1], path[64];
	_cleanup_free_ char *staging = NULL;
	_cleanup_fd_ int fd = -1;
	_cleanup_fd_ int fs = -1;
	_cleanup_fd_ int pin = -1;

	sha256_hex(name, strlen(name), hex);
	snprintf(meta.diff_id, sizeof(meta.diff_id), "sha256:%s", hex);
	strv_add(diff_ids, meta.diff_id);
	strv_done(chains);
	chain_ids(diff_ids, chains);
	ck_assert_int_eq(layout_staging_make(&store->layout, &staging, &fd, NULL), 0);
	ck_assert_int_eq(mkdirat(fd, "0", 0700), 0);
	ck_assert_int_eq(mkdirat(fd, "0/fs", 0755), 0);
	snprintf(path, sizeof(path), "0/fs/%s", name);
	ck_assert_int_eq(file_replace(fd, path, name, strlen(name), 0644, NULL), 0);
	fs = openat(fd, "0/fs", O_RDONLY | O_DIRECTORY);
	ck_assert_int_eq(survey_tree(fs, &meta.survey, NULL), 0);
	ck_assert_int_eq(layout_layer_publish(&store->layout, fd, "0", chains->v[chains->n - 1], &meta, &pin, NULL), 0);
	ck_assert_int_eq(layout_staging_remove(&store->layout, staging, NULL), 0);
}

/* An image of the layers named by the letters, recorded as `tag`. Returns its id; the caller's. */
static char *make_image(const char *letters, const char *tag)
{
	_cleanup_(strv_done) struct strv diff_ids = STRV_INIT, chains = STRV_INIT;
	_cleanup_(str_done) struct str config = STR_INIT;
	struct store_record record = { .manifest_digest = "", .size_bytes = 100 };
	struct error err = ERROR_INIT;
	char *id = xasprintf("sha256:%064d", 0);

	for (const char *p = letters; *p; p++) {
		char name[2] = { *p };

		make_layer(name, &diff_ids, &chains);
	}
	str_addf(&config, "{\"config\":{\"Cmd\":[\"%s\"]},\"rootfs\":{\"diff_ids\":[", letters);
	for (size_t i = 0; i < diff_ids.n; i++)
		str_addf(&config, "%s\"%s\"", i ? "," : "", diff_ids.v[i]);
	str_add(&config, "]}}");
	sha256_hex(config.buf, config.len, id + 7);
	ck_assert_int_eq(layout_blob_write(&store->layout, id, config.buf, config.len, NULL), 0);
	record.config_digest = id;
	if (tag)
		strv_add(&record.tags, tag);
	ck_assert_msg(store_record(store, &record, &err) == 0, "%s", err.text);
	strv_done(&record.tags);
	return id;
}

static size_t count(const char *what)
{
	_cleanup_(strv_done) struct strv names = STRV_INIT;
	_cleanup_free_ char *path = xasprintf("%s/%s", dir, what);
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_DIRECTORY);

	ck_assert_int_eq(layout_names(fd, &names, NULL), 0);
	return names.n;
}

#define A "docker.io/library/a:1"
#define B "docker.io/library/b:1"

START_TEST(find)
{
	_cleanup_free_ char *id = make_image("xy", A);
	_cleanup_free_ char *prefix = xstrndup(id + 7, 12);
	const char *const names[] = { "a:1", "docker.io/a:1", A, id, id + 7, prefix };
	struct image *image;
	struct error err = ERROR_INIT;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		ck_assert_msg(image_store_find(store, names[i], &image, &err) == 0, "%s: %s", names[i], err.text);
		ck_assert_str_eq(image->id, id);
		ck_assert_str_eq(image->config.cmd.v[0], "xy");
		image_unref(image);
	}
	ck_assert_int_lt(image_store_find(store, "a:2", &image, &err), 0);
	ck_assert_int_eq(err.code, ERROR_NOT_FOUND);
	ck_assert_int_lt(image_store_find(store, "A:2", &image, &err), 0);
	ck_assert_int_eq(err.code, ERROR_INVALID);
	ck_assert_int_lt(image_store_find(store, "sha256:00", &image, &err), 0);
	ck_assert_int_eq(err.code, ERROR_NOT_FOUND);
}
END_TEST

START_TEST(shared_layers)
{
	_cleanup_free_ char *a = make_image("xy", A), *b = make_image("xz", B);
	uint64_t bytes, inodes;

	ck_assert_uint_eq(count("layers"), 3);
	image_store_usage(store, &bytes, &inodes);
	ck_assert_uint_eq(inodes, 6);
	ck_assert_int_eq(image_store_remove(store, "a:1", NULL), 0);
	ck_assert_uint_eq(count("layers"), 2);
	ck_assert_uint_eq(count("blobs/sha256"), 1);
	image_store_usage(store, &bytes, &inodes);
	ck_assert_uint_eq(inodes, 4);
	/* Unknown is fine, and so is again. */
	ck_assert_int_eq(image_store_remove(store, "a:1", NULL), 0);
	ck_assert_int_eq(image_store_remove(store, b, NULL), 0);
	ck_assert_uint_eq(count("layers"), 0);
	ck_assert_uint_eq(count("blobs/sha256"), 0);
	ck_assert_uint_eq(count("staging"), 0);
}
END_TEST

START_TEST(tag_moves)
{
	_cleanup_free_ char *a = make_image("x", A), *b = make_image("y", A);
	struct image *image;

	ck_assert_int_eq(image_store_find(store, "a:1", &image, NULL), 0);
	ck_assert_str_eq(image->id, b);
	image_unref(image);
	ck_assert_int_eq(image_store_find(store, a, &image, NULL), 0);
	ck_assert_uint_eq(image->repo_tags.n, 0);
	image_unref(image);
	/* The one without a tag is what prune takes first. */
	_cleanup_(strv_done) struct strv removed = STRV_INIT;
	ck_assert_int_eq(image_store_prune(store, false, NULL, &removed, NULL), 0);
	ck_assert_uint_eq(removed.n, 1);
	ck_assert_str_eq(removed.v[0], a);
	ck_assert_uint_eq(count("layers"), 1);
}
END_TEST

START_TEST(containers_hold_layers)
{
	_cleanup_free_ char *a = make_image("xy", A);
	_cleanup_(strv_done) struct strv dirs = STRV_INIT, again = STRV_INIT, none = STRV_INIT, keep = STRV_INIT;
	struct error err = ERROR_INIT;
	struct stat st;

	ck_assert_int_eq(image_layers_acquire(store, "a:1", "c1", &dirs, NULL), 0);
	ck_assert_uint_eq(dirs.n, 2);
	/* Top first. */
	_cleanup_free_ char *top = xasprintf("%s/y", dirs.v[0]);
	ck_assert_int_eq(stat(top, &st), 0);
	ck_assert_int_eq(image_store_remove(store, a, NULL), 0);
	ck_assert_uint_eq(count("layers"), 2);
	/* Over a restart. */
	image_store_close(store);
	store = open_store(false);
	ck_assert_uint_eq(count("layers"), 2);
	ck_assert_int_eq(image_layers_held(store, "c1", &again, NULL), 0);
	ck_assert_str_eq(again.v[0], dirs.v[0]);
	ck_assert_int_lt(image_layers_held(store, "c2", &none, &err), 0);
	ck_assert_int_eq(err.code, ERROR_NOT_FOUND);
	strv_add(&keep, "c1");
	ck_assert_int_eq(image_layers_retain_only(store, &keep, NULL), 0);
	ck_assert_uint_eq(count("layers"), 2);
	ck_assert_int_eq(image_layers_release(store, "c1", NULL), 0);
	ck_assert_uint_eq(count("layers"), 0);
	ck_assert_int_eq(image_layers_release(store, "c1", NULL), 0);
	ck_assert_int_lt(image_layers_acquire(store, "a:1", "c1", NULL, &err), 0);
	ck_assert_int_eq(err.code, ERROR_NOT_FOUND);
	ck_assert_int_lt(image_layers_acquire(store, "a:1", "../c1", NULL, &err), 0);
	ck_assert_int_eq(err.code, ERROR_INVALID);
}
END_TEST

START_TEST(reboot_drops_holds)
{
	_cleanup_free_ char *a = make_image("x", A);
	_cleanup_(strv_done) struct strv nobody = STRV_INIT;

	ck_assert_int_eq(image_layers_acquire(store, a, "c1", NULL, NULL), 0);
	ck_assert_int_eq(image_store_remove(store, a, NULL), 0);
	ck_assert_int_eq(image_layers_retain_only(store, &nobody, NULL), 0);
	ck_assert_uint_eq(count("layers"), 0);
	ck_assert_uint_eq(count("refs"), 0);
}
END_TEST

START_TEST(prune_spares)
{
	_cleanup_free_ char *a = make_image("x", A), *b = make_image("y", B), *c = make_image("z", "docker.io/library/c:1");
	_cleanup_(strv_done) struct strv removed = STRV_INIT, in_use = STRV_INIT;

	ck_assert_int_eq(image_layers_acquire(store, a, "c1", NULL, NULL), 0);
	strv_add(&in_use, b);
	ck_assert_int_eq(image_store_prune(store, true, &in_use, &removed, NULL), 0);
	ck_assert_uint_eq(removed.n, 1);
	ck_assert_str_eq(removed.v[0], c);
}
END_TEST

START_TEST(pinned)
{
	_cleanup_(strv_done) struct strv names = STRV_INIT, removed = STRV_INIT;

	strv_add(&names, "a:1");
	image_store_close(store);
	struct image_store_options options = { .root = dir, .libexec_dir = "/x", .pinned = &names };
	ck_assert_int_eq(image_store_open(&options, &store, NULL), 0);
	_cleanup_free_ char *a = make_image("x", A);
	struct image *image;
	ck_assert_int_eq(image_store_find(store, a, &image, NULL), 0);
	ck_assert(image->pinned);
	image_unref(image);
	ck_assert_int_eq(image_store_prune(store, true, NULL, &removed, NULL), 0);
	ck_assert_uint_eq(removed.n, 0);
}
END_TEST

START_TEST(one_daemon)
{
	struct image_store_options options = { .root = dir, .libexec_dir = "/x" };
	struct image_store *second = NULL;
	struct error err = ERROR_INIT;

	ck_assert_int_lt(image_store_open(&options, &second, &err), 0);
	ck_assert_int_eq(err.code, ERROR_PRECONDITION);
	ck_assert(strstr(err.text, "in use by another runtime-lite"));
	ck_assert_ptr_null(second);
}
END_TEST

/* What another process records is seen at once; what it works on is not collected. */
START_TEST(beside_a_daemon)
{
	struct image_store *daemon = store;

	store = open_store(true);
	_cleanup_free_ char *a = make_image("x", A);
	struct image *image;
	ck_assert_int_eq(image_store_find(daemon, "a:1", &image, NULL), 0);
	image_unref(image);
	ck_assert_int_lt(image_store_collect(store, NULL), 0);
	image_store_close(store);
	store = daemon;
}
END_TEST

START_TEST(collection_spares_what_is_pinned)
{
	_cleanup_(strv_done) struct strv diff_ids = STRV_INIT, chains = STRV_INIT;
	_cleanup_free_ char *staging = NULL;
	int pin, staging_fd;

	make_layer("x", &diff_ids, &chains);
	ck_assert_int_eq(layout_layer_pin(&store->layout, chains.v[0], &pin), 0);
	ck_assert_int_eq(layout_staging_make(&store->layout, &staging, &staging_fd, NULL), 0);
	ck_assert_int_eq(image_store_collect(store, NULL), 0);
	ck_assert_uint_eq(count("layers"), 1);
	ck_assert_uint_eq(count("staging"), 1);
	close(pin);
	close(staging_fd);
	ck_assert_int_eq(image_store_collect(store, NULL), 0);
	ck_assert_uint_eq(count("layers"), 0);
	ck_assert_uint_eq(count("staging"), 0);
	ck_assert_int_eq(layout_layer_pin(&store->layout, chains.v[0], &pin), -ENOENT);
}
END_TEST

START_TEST(record_checks)
{
	_cleanup_free_ char *a = make_image("x", A);
	struct store_record record = { .config_digest = a, .manifest_digest = "" };
	struct error err = ERROR_INIT;
	_cleanup_(strv_done) struct strv layers = STRV_INIT;
	_cleanup_free_ char *meta = NULL;

	strv_add(&record.tags, "Not A Name");
	ck_assert_int_lt(store_record(store, &record, &err), 0);
	ck_assert_int_eq(err.code, ERROR_INVALID);
	strv_done(&record.tags);
	record.config_digest = "sha256:../../x";
	ck_assert_int_lt(store_record(store, &record, &err), 0);
	record.config_digest = a;
	/* A layer whose meta.json is gone. */
	ck_assert_int_eq(layout_names(store->layout.layers_fd, &layers, NULL), 0);
	meta = xasprintf("%s/meta.json", layers.v[0]);
	unlinkat(store->layout.layers_fd, meta, 0);
	ck_assert_int_lt(store_record(store, &record, &err), 0);
	ck_assert_int_eq(err.code, ERROR_NOT_FOUND);
}
END_TEST

START_TEST(damage)
{
	_cleanup_free_ char *a = make_image("x", A);
	_cleanup_(strv_done) struct strv layers = STRV_INIT, dirs = STRV_INIT;
	struct image_store_options options = { .root = dir, .libexec_dir = "/x" };
	struct error err = ERROR_INIT;

	ck_assert_int_eq(layout_names(store->layout.layers_fd, &layers, NULL), 0);
	ck_assert_int_eq(layout_layer_verify(&store->layout, layers.v[0], &err), 0);
	_cleanup_free_ char *file = xasprintf("%s/fs/x", layers.v[0]);
	unlinkat(store->layout.layers_fd, file, 0);
	ck_assert_int_lt(layout_layer_verify(&store->layout, layers.v[0], &err), 0);
	ck_assert_int_eq(err.code, ERROR_DATA_LOSS);
	ck_assert_int_eq(dir_remove(store->layout.layers_fd, layers.v[0], NULL), 0);
	ck_assert_int_lt(image_layers_acquire(store, a, "c", &dirs, &err), 0);
	ck_assert_int_eq(err.code, ERROR_PRECONDITION);

	/* The next start forgets the image. */
	image_store_close(store);
	store = open_store(false);
	struct image *image;
	ck_assert_int_lt(image_store_find(store, a, &image, &err), 0);
	ck_assert_int_eq(err.code, ERROR_NOT_FOUND);
	ck_assert_uint_eq(count("blobs/sha256"), 0);

	static const struct {
		const char *text;
		enum error_code code;
	} files[] = { { "{\"version\":2}", ERROR_UNIMPLEMENTED }, { "{", ERROR_INVALID }, { "", ERROR_INVALID },
		{ "{\"version\":1,\"images\":[{\"id\":\"x\"}]}", ERROR_DATA_LOSS } };
	store = image_store_close(store);
	_cleanup_free_ char *path = xasprintf("%s/images.json", dir);
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		ck_assert_int_eq(file_replace(AT_FDCWD, path, files[i].text, strlen(files[i].text), 0600, NULL), 0);
		ck_assert_int_lt(image_store_open(&options, &store, &err), 0);
		ck_assert_int_eq(err.code, files[i].code);
		ck_assert(strstr(err.text, "images.json"));
	}
	ck_assert_ptr_null(store);
}
END_TEST

/* The lock of a layer: a second one waits, and the name of the lock file goes away with its holder. */
START_TEST(layer_lock)
{
	static const char chain[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
	int fd, pipe_fd[2];
	char byte = 0;

	ck_assert_int_eq(layout_layer_lock(&store->layout, chain, &fd, NULL), 0);
	ck_assert_int_eq(pipe(pipe_fd), 0);
	pid_t pid = fork();
	if (pid == 0) {
		int mine;

		close(fd); /* else we would hold the lock ourselves */
		bool got = layout_layer_lock(&store->layout, chain, &mine, NULL) == 0;

		(void)!write(pipe_fd[1], got ? "y" : "n", 1);
		layout_layer_unlock(&store->layout, chain, mine);
		_exit(0);
	}
	fcntl(pipe_fd[0], F_SETFL, O_NONBLOCK);
	usleep(100000);
	ck_assert_int_eq(read(pipe_fd[0], &byte, 1), -1);
	layout_layer_unlock(&store->layout, chain, fd);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	ck_assert_int_eq(read(pipe_fd[0], &byte, 1), 1);
	ck_assert_int_eq(byte, 'y');
	ck_assert_uint_eq(count("locks"), 0);
}
END_TEST

int main(void)
{
	if (geteuid() != 0) {
		printf("skipped: the store needs root\n100%%: Checks: 0, Failures: 0, Errors: 0\n");
		return 0;
	}
	Suite *s = suite_create("store");
	TCase *t = tcase_create("store");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, find);
	tcase_add_test(t, shared_layers);
	tcase_add_test(t, tag_moves);
	tcase_add_test(t, containers_hold_layers);
	tcase_add_test(t, reboot_drops_holds);
	tcase_add_test(t, prune_spares);
	tcase_add_test(t, pinned);
	tcase_add_test(t, one_daemon);
	tcase_add_test(t, beside_a_daemon);
	tcase_add_test(t, collection_spares_what_is_pinned);
	tcase_add_test(t, record_checks);
	tcase_add_test(t, damage);
	tcase_add_test(t, layer_lock);
	suite_add_tcase(s, t);
	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}

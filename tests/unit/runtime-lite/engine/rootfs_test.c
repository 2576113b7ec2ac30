/* rootfs_test.c - purpose: files of an image are found through its layers, and never outside of them. */
#include "tests/unit/runtime-lite/engine/fixture.h"

#include "runtime-lite/engine/rootfs.h"

static void setup(void)
{
	fx_setup();
	fx_sh("cd %s && mkdir -p a/etc b/etc && echo top >a/etc/passwd && echo bottom >b/etc/passwd && echo group >b/etc/group && ln -s /etc/group b/link && "
	      "ln -s ../../../../../../../etc/hostname b/out && mkfifo b/fifo && ln -s /proc/self/exe b/magic && mknod a/etc/gone c 0 0 && echo x >b/etc/gone", fx_root);
}

static void teardown(void)
{
	fx_teardown();
}

static const struct {
	const char *path, *content; /* NULL: error */
	enum error_code code;
} files[] = {
	{ "/etc/passwd", "top\n", 0 },
	{ "etc/group", "group\n", 0 },
	{ "/link", "group\n", 0 },
	{ "/etc/gone", NULL, ERROR_NOT_FOUND },
	{ "/out", NULL, ERROR_NOT_FOUND },
	{ "/nosuch", NULL, ERROR_NOT_FOUND },
	{ "/etc/passwd/x", NULL, ERROR_NOT_FOUND },
	{ "/fifo", NULL, ERROR_INVALID },
	{ "/etc", NULL, ERROR_INVALID },
	{ "/magic", NULL, ERROR_NOT_FOUND },
};

START_TEST(lookup)
{
	_cleanup_(strv_done) struct strv lower = STRV_INIT;
	struct error err = ERROR_INIT;
	int root = -1, fd = -1;
	char text[64];

	strv_add_take(&lower, xasprintf("%s/a", fx_root));
	strv_add_take(&lower, xasprintf("%s/b", fx_root));
	ck_assert_msg(rootfs_open(&lower, &root, &err) == 0, "%s", err.text);
	int r = rootfs_open_file(root, files[_i].path, &fd, &err);

	if (files[_i].content) {
		ck_assert_msg(r == 0, "%s", err.text);
		ssize_t n = read(fd, text, sizeof(text) - 1);
		ck_assert_int_ge((int)n, 0);
		text[n] = '\0';
		ck_assert_str_eq(text, files[_i].content);
		close(fd);
	} else {
		ck_assert_int_lt(r, 0);
		ck_assert_int_eq(err.code, files[_i].code);
	}
	close(root);
}
END_TEST

START_TEST(many_layers)
{
	_cleanup_(strv_done) struct strv lower = STRV_INIT;
	struct error err = ERROR_INIT;
	int root = -1, fd = -1;

	for (int i = 0; i < 100; i++) {
		strv_add_take(&lower, xasprintf("%s/l%d", fx_root, i));
		mkdir(lower.v[i], 0755);
	}
	strv_add_take(&lower, xasprintf("%s/b", fx_root));
	ck_assert_msg(rootfs_open(&lower, &root, &err) == 0, "%s", err.text);
	ck_assert_int_eq(rootfs_open_file(root, "/etc/group", &fd, &err), 0);
	close(fd);
	close(root);
	strv_done(&lower);
	ck_assert_int_eq(rootfs_open(&lower, &root, &err), -EINVAL);
	strv_add(&lower, "/no/such/layer");
	ck_assert_int_lt(rootfs_open(&lower, &root, &err), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("rootfs");
	TCase *c = tcase_create("rootfs");
	const char *missing = fx_missing();

	if (missing) {
		printf("skipped: %s\n", missing);
	} else {
		tcase_add_loop_test(c, lookup, 0, ARRAY_LEN(files));
		tcase_add_test(c, many_layers);
	}
	tcase_add_checked_fixture(c, setup, teardown);
	suite_add_tcase(s, c);
	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}

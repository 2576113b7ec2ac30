/* reference_test.c - purpose: image references by table. */
#include "runtime-lite/image/reference.h"

#include <check.h>

#include "common/base/str.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define DIGEST "sha256:" HEX

static const struct {
	const char *text, *registry, *path, *tag, *digest;
} good[] = {
	{ "busybox", "docker.io", "library/busybox", "latest", "" },
	{ "busybox:1.36", "docker.io", "library/busybox", "1.36", "" },
	{ "busybox:1.36-glibc_x.Y", "docker.io", "library/busybox", "1.36-glibc_x.Y", "" },
	{ "library/busybox", "docker.io", "library/busybox", "latest", "" },
	{ "user/app", "docker.io", "user/app", "latest", "" },
	{ "user/deep/app:2", "docker.io", "user/deep/app", "2", "" },
	{ "docker.io/busybox", "docker.io", "library/busybox", "latest", "" },
	{ "docker.io/user/app", "docker.io", "user/app", "latest", "" },
	{ "index.docker.io/busybox", "docker.io", "library/busybox", "latest", "" },
	{ "index.docker.io/user/app:1", "docker.io", "user/app", "1", "" },
	{ "localhost/app", "localhost", "app", "latest", "" },
	{ "localhost:5000/app", "localhost:5000", "app", "latest", "" },
	{ "localhost:5000/app:v1", "localhost:5000", "app", "v1", "" },
	{ "host:5000/a/b/c:t", "host:5000", "a/b/c", "t", "" },
	{ "host.example/a", "host.example", "a", "latest", "" },
	{ "Host/app", "Host", "app", "latest", "" },
	{ "127.0.0.1:5000/app", "127.0.0.1:5000", "app", "latest", "" },
	{ "[::1]:5000/app:x", "[::1]:5000", "app", "x", "" },
	{ "[2001:db8::1]/app", "[2001:db8::1]", "app", "latest", "" },
	{ "busybox@" DIGEST, "docker.io", "library/busybox", "", DIGEST },
	{ "busybox:1@" DIGEST, "docker.io", "library/busybox", "1", DIGEST },
	{ "host:1/a:b@" DIGEST, "host:1", "a", "b", DIGEST },
	{ "a.b/c", "a.b", "c", "latest", "" },
	{ "a_b/c", "docker.io", "a_b/c", "latest", "" },
	{ "a__b", "docker.io", "library/a__b", "latest", "" },
	{ "a---b", "docker.io", "library/a---b", "latest", "" },
	{ "a.b", "docker.io", "library/a.b", "latest", "" },
	{ "x-0.1_2--3", "docker.io", "library/x-0.1_2--3", "latest", "" },
	{ "a:_", "docker.io", "library/a", "_", "" },
	{ "0", "docker.io", "library/0", "latest", "" },
	{ "registry.k8s.io/pause:3.10", "registry.k8s.io", "pause", "3.10", "" },
	{ "host.example:443/a", "host.example:443", "a", "latest", "" },
};

START_TEST(good_case)
{
	struct reference ref;
	struct error err = ERROR_INIT;

	ck_assert_msg(reference_parse(good[_i].text, &ref, &err) == 0, "%s: %s", good[_i].text, err.text);
	ck_assert_str_eq(ref.registry, good[_i].registry);
	ck_assert_str_eq(ref.path, good[_i].path);
	ck_assert_str_eq(ref.tag, good[_i].tag);
	ck_assert_str_eq(ref.digest, good[_i].digest);
	/* What we print is what we read. */
	_cleanup_free_ char *text = *ref.digest ? reference_with_digest(&ref, ref.digest) : reference_tagged(&ref);
	struct reference again;
	ck_assert_int_eq(reference_parse(text, &again, &err), 0);
	ck_assert_str_eq(again.registry, ref.registry);
	ck_assert_str_eq(again.path, ref.path);
	reference_done(&again);
	reference_done(&ref);
}
END_TEST

static const struct {
	const char *text, *why;
} bad[] = {
	{ "", "empty" },
	{ "Busybox", "lower-case" },
	{ "user/App", "lower-case" },
	{ "docker.io/Library/x", "lower-case" },
	{ ":tag", "no name" },
	{ "@" DIGEST, "no name" },
	{ "busybox:", "nothing behind" },
	{ "busybox@", "nothing behind" },
	{ "busybox:-x", "the tag" },
	{ "busybox:.x", "the tag" },
	{ "busybox:a/b:c d", "registry" },
	{ "busybox:a b", "the tag" },
	{ "busybox@sha256:abc", "the digest" },
	{ "busybox@sha512:" HEX, "the digest" },
	{ "busybox@sha256:" HEX "0", "the digest" },
	{ "busybox@sha256:0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef", "the digest" },
	{ "busybox@../../x", "the digest" },
	{ HEX, "image id" },
	{ "a//b", "repository" },
	{ "/a", "repository" },
	{ "a/", "repository" },
	{ "-a", "repository" },
	{ "a-", "repository" },
	{ "a..b", "repository" },
	{ "a___b", "repository" },
	{ "a._b", "repository" },
	{ "a/../b", "repository" },
	{ "host.example/../../etc/passwd", "repository" },
	{ "../etc/passwd", "registry" },
	{ "./a", "registry" },
	{ "host:99999/a", "registry" },
	{ "host:x/a", "registry" },
	{ "host:/a", "registry" },
	{ "ho st.example/a", "registry" },
	{ "-h.example/a", "registry" },
	{ "h..example/a", "registry" },
	{ "[::1/a", "registry" },
	{ "[]/a", "registry" },
	{ "[::1]x/a", "registry" },
	{ "http://host.example/a", "registry" },
	{ "a b", "repository" },
	{ "a\nb", "repository" },
	{ "b\xc3\xbcsybox", "repository" },
};

START_TEST(bad_case)
{
	struct reference ref = { .tag = (char *)"untouched" };
	struct error err = ERROR_INIT;

	ck_assert_msg(reference_parse(bad[_i].text, &ref, &err) < 0, "\"%s\" was taken", bad[_i].text);
	ck_assert_int_eq(err.code, ERROR_INVALID);
	ck_assert_msg(strstr(err.text, bad[_i].why), "\"%s\": %s", bad[_i].text, err.text);
	ck_assert_str_eq(ref.tag, "untouched");
}
END_TEST

START_TEST(limits)
{
	struct reference ref;
	_cleanup_(str_done) struct str text = STR_INIT;

	str_add(&text, "a:");
	for (int i = 0; i < 128; i++)
		str_add_char(&text, 'x');
	ck_assert_int_eq(reference_parse(text.buf, &ref, NULL), 0);
	reference_done(&ref);
	str_add_char(&text, 'x');
	ck_assert_int_lt(reference_parse(text.buf, &ref, NULL), 0);

	/* docker.io/library/ counts. */
	str_reset(&text);
	for (int i = 0; i < 255 - 18; i++)
		str_add_char(&text, 'a');
	ck_assert_int_eq(reference_parse(text.buf, &ref, NULL), 0);
	reference_done(&ref);
	str_add_char(&text, 'a');
	ck_assert_int_lt(reference_parse(text.buf, &ref, NULL), 0);

	str_reset(&text);
	for (int i = 0; i < 5000; i++)
		str_add_char(&text, '/');
	ck_assert_int_lt(reference_parse(text.buf, &ref, NULL), 0);
}
END_TEST

START_TEST(digests)
{
	ck_assert(digest_valid(DIGEST));
	ck_assert(!digest_valid(NULL));
	ck_assert(!digest_valid(""));
	ck_assert(!digest_valid(HEX));
	ck_assert(!digest_valid("sha256:"));
	ck_assert(!digest_valid("sha256:../../../../../../../../../../../../../../../../../../../../../../x"));
	ck_assert(!digest_valid(DIGEST "/"));
	ck_assert_str_eq(digest_hex(DIGEST), HEX);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("reference");
	TCase *t = tcase_create("reference");

	tcase_add_loop_test(t, good_case, 0, ARRAY_LEN(good));
	tcase_add_loop_test(t, bad_case, 0, ARRAY_LEN(bad));
	tcase_add_test(t, limits);
	tcase_add_test(t, digests);
	suite_add_tcase(s, t);
	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}

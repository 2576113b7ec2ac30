/* tar_test.c - purpose: the tar reader: every format by table, damage, limits, any size of pieces. */
#include "runtime-lite/image/tar.h"

#include <check.h>

#include "tests/unit/runtime-lite/image/tar_builder.h"

/* What was read, as text. */
static int on_entry(void *data, const struct tar_entry *e, struct error *err)
{
	struct str *out = data;

	(void)err;
	str_addf(out, "%d %s", (int)e->type, e->name);
	if (*e->link)
		str_addf(out, "->%s", e->link);
	str_addf(out, " %o %u:%u %lld.%u", e->mode, e->uid, e->gid, (long long)e->mtime_s, e->mtime_ns);
	if (e->type == TAR_CHAR || e->type == TAR_BLOCK_DEVICE)
		str_addf(out, " %u,%u", e->major, e->minor);
	for (size_t i = 0; i < e->n_xattrs; i++)
		str_addf(out, " %s=%.*s", e->xattrs[i].name, (int)e->xattrs[i].len, (const char *)e->xattrs[i].value);
	str_add(out, " <");
	return 0;
}

static int on_content(void *data, const void *p, size_t n, struct error *err)
{
	(void)err;
	str_add_bytes(data, p, n);
	return 0;
}

static int on_end(void *data, struct error *err)
{
	(void)err;
	str_add(data, ">\n");
	return 0;
}

static const struct tar_handler handler = { on_entry, on_content, on_end };

static int read_tar(const struct str *in, size_t piece, struct str *out, struct error *err)
{
	_cleanup_(tar_free_p) struct tar *tar = tar_new(&handler, out);

	for (size_t at = 0; at < in->len; at += piece) {
		int r = tar_feed(tar, in->buf + at, MIN(piece, in->len - at), err);

		if (r < 0)
			return r;
	}
	return tar_finish(tar, err);
}

#define LONG50 "0123456789/123456789/123456789/123456789/123456789"
#define LONG200 LONG50 LONG50 LONG50 LONG50

static const struct {
	const char *name;
	struct tar_spec spec;
	const char *want;
} entries[] = {
	{ "file", { '0', "a/b", NULL, "hello", 0755, 1, 2, 0, 0, 1700000000 }, "0 a/b 755 1:2 1700000000.0 <hello>\n" },
	{ "empty file", { '0', "e" }, "0 e 644 0:0 0.0 <>\n" },
	{ "v7 directory", { '0', "d/" }, "5 d/ 644 0:0 0.0 <>\n" },
	{ "old file type", { '\0', "f", NULL, "x" }, "0 f 644 0:0 0.0 <x>\n" },
	{ "contiguous file", { '7', "f", NULL, "x" }, "0 f 644 0:0 0.0 <x>\n" },
	{ "hard link", { '1', "l", "a/b" }, "1 l->a/b 644 0:0 0.0 <>\n" },
	{ "symlink", { '2', "l", "../x", NULL, 0777 }, "2 l->../x 777 0:0 0.0 <>\n" },
	{ "char device", { '3', "c", .major = 1, .minor = 3 }, "3 c 644 0:0 0.0 1,3 <>\n" },
	{ "block device", { '4', "b", .major = 8, .minor = 1 }, "4 b 644 0:0 0.0 8,1 <>\n" },
	{ "directory", { '5', "d/", .mode = 01777 }, "5 d/ 1777 0:0 0.0 <>\n" },
	{ "fifo", { '6', "p" }, "6 p 644 0:0 0.0 <>\n" },
	{ "set-uid", { '0', "su", NULL, "x", 04755 }, "0 su 4755 0:0 0.0 <x>\n" },
	{ "GNU long name", { '0', LONG200, NULL, "x", .gnu_long = true }, "0 " LONG200 " 644 0:0 0.0 <x>\n" },
	{ "pax path", { '0', "short", NULL, "x", .pax = "path=" LONG200 }, "0 " LONG200 " 644 0:0 0.0 <x>\n" },
	{ "pax link", { '2', "l", "x", .pax = "linkpath=" LONG200 }, "2 l->" LONG200 " 644 0:0 0.0 <>\n" },
	{ "pax ids", { '0', "f", .pax = "uid=3000000000\ngid=4000000" }, "0 f 644 3000000000:4000000 0.0 <>\n" },
	{ "pax time", { '0', "f", .pax = "mtime=1.5" }, "0 f 644 0:0 1.500000000 <>\n" },
	{ "pax time, many digits", { '0', "f", .pax = "mtime=12.123456789987" }, "0 f 644 0:0 12.123456789 <>\n" },
	{ "pax time before 1970", { '0', "f", .pax = "mtime=-1.25" }, "0 f 644 0:0 -2.750000000 <>\n" },
	{ "empty pax value falls back", { '0', "f", .pax = "path=\nuid=" }, "0 f 644 0:0 0.0 <>\n" },
	{ "last pax record counts", { '0', "f", .pax = "path=a\npath=b" }, "0 b 644 0:0 0.0 <>\n" },
	{ "xattr", { '0', "f", .pax = "SCHILY.xattr.user.a=1" }, "0 f 644 0:0 0.0 user.a=1 <>\n" },
	{ "two xattrs, one twice", { '0', "f", .pax = "SCHILY.xattr.user.a=1\nSCHILY.xattr.user.b=\nSCHILY.xattr.user.a=3" },
		"0 f 644 0:0 0.0 user.a=3 user.b= <>\n" },
	{ "libarchive xattr", { '0', "f", .pax = "LIBARCHIVE.xattr.user.%61b=aGk" }, "0 f 644 0:0 0.0 user.ab=hi <>\n" },
	{ "unknown pax key", { '0', "f", .pax = "comment=x\nSCHILY.dev=1" }, "0 f 644 0:0 0.0 <>\n" },
};

START_TEST(entry_case)
{
	_cleanup_(str_done) struct str in = STR_INIT;

	tar_add(&in, &entries[_i].spec);
	/* What stood in one entry's extended header must not stick to the next. */
	tar_add(&in, &(struct tar_spec){ '0', "next", NULL, "n" });
	tar_end(&in);
	_cleanup_free_ char *want = xasprintf("%s0 next 644 0:0 0.0 <n>\n", entries[_i].want);
	static const size_t pieces[] = { 1, 7, 512, 513, 1u << 20 };
	for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
		_cleanup_(str_done) struct str out = STR_INIT;
		struct error err = ERROR_INIT;

		ck_assert_msg(read_tar(&in, pieces[i], &out, &err) == 0, "%s: %s", entries[_i].name, err.text);
		ck_assert_str_eq(str_get(&out), want);
	}
}
END_TEST

static const struct {
	const char *name;
	struct tar_spec spec;
	const char *why;
} refused[] = {
	{ "GNU sparse", { 'S', "f" }, "sparse" },
	{ "pax sparse", { '0', "f", .pax = "GNU.sparse.major=1" }, "sparse" },
	{ "unknown type", { 'V', "f" }, "type \"V\"" },
	{ "binary type", { '\x01', "f" }, "unknown type" },
	{ "pax uid -1", { '0', "f", .pax = "uid=-1" }, "out of range" },
	{ "pax uid 2^32-1", { '0', "f", .pax = "uid=4294967295" }, "out of range" },
	{ "pax uid is text", { '0', "f", .pax = "uid=1x" }, "no number" },
	{ "pax size is negative", { '0', "f", .pax = "size=-5" }, "out of range" },
	{ "pax size is huge", { '0', "f", .pax = "size=9223372036854775807" }, "out of range" },
	{ "pax size overflows", { '0', "f", .pax = "size=99999999999999999999" }, "no number" },
	{ "pax mtime is text", { '0', "f", .pax = "mtime=now" }, "no time" },
	{ "pax record without key", { '0', "f", .pax = "=x" }, "without a key" },
	{ "libarchive xattr, broken base64", { '0', "f", .pax = "LIBARCHIVE.xattr.user.a=$$$" }, "base64" },
	{ "xattr without a name", { '0', "f", .pax = "SCHILY.xattr.=1" }, "empty or too long" },
	{ "device number", { '3', "c", .major = 5000 }, "out of range" },
};

START_TEST(refused_case)
{
	_cleanup_(str_done) struct str in = STR_INIT, out = STR_INIT;
	struct error err = ERROR_INIT;

	tar_add(&in, &refused[_i].spec);
	tar_end(&in);
	ck_assert_msg(read_tar(&in, 4096, &out, &err) < 0, "%s was taken", refused[_i].name);
	ck_assert(err.code == ERROR_INVALID || err.code == ERROR_DATA_LOSS);
	ck_assert_msg(strstr(err.text, refused[_i].why), "%s: %s", refused[_i].name, err.text);
}
END_TEST

/* Header fields that the builder does not make. */
static int read_header(const char *what, size_t at, const void *bytes, size_t n, struct str *out, struct error *err)
{
	_cleanup_(str_done) struct str in = STR_INIT;

	tar_add(&in, &(struct tar_spec){ '0', "f" });
	memcpy(in.buf + at, bytes, n);
	tar_checksum((uint8_t *)in.buf);
	tar_end(&in);
	(void)what;
	return read_tar(&in, 512, out, err);
}

START_TEST(fields)
{
	_cleanup_(str_done) struct str out = STR_INIT;
	struct error err = ERROR_INIT;

	/* uid in base 256 */
	ck_assert_int_eq(read_header("uid", 108, "\x80\0\0\0\x01\0\0\0", 8, &out, &err), 0);
	ck_assert_str_eq(str_get(&out), "0 f 644 16777216:0 0.0 <>\n");
	str_reset(&out);
	/* a negative time in base 256 */
	ck_assert_int_eq(read_header("mtime", 136, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe", 12, &out, &err), 0);
	ck_assert_str_eq(str_get(&out), "0 f 644 0:0 -2.0 <>\n");
	str_reset(&out);
	/* blanks around, no terminator */
	ck_assert_int_eq(read_header("mode", 100, "   0755 ", 8, &out, &err), 0);
	ck_assert_str_eq(str_get(&out), "0 f 755 0:0 0.0 <>\n");
	str_reset(&out);
	/* file type bits in the mode */
	ck_assert_int_eq(read_header("mode", 100, "0100644", 8, &out, &err), 0);
	ck_assert_str_eq(str_get(&out), "0 f 644 0:0 0.0 <>\n");
	str_reset(&out);
	/* prefix */
	ck_assert_int_eq(read_header("prefix", 345, "dir/sub", 8, &out, &err), 0);
	ck_assert_str_eq(str_get(&out), "0 dir/sub/f 644 0:0 0.0 <>\n");
	str_reset(&out);
	/* damage */
	ck_assert_int_lt(read_header("size", 124, "9", 1, &out, &err), 0);
	ck_assert_int_lt(read_header("size", 124, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe", 12, &out, &err), 0);
	ck_assert_int_lt(read_header("size", 124, "\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12, &out, &err), 0);
	ck_assert_int_lt(read_header("uid", 108, "\xff\xff\xff\xff\xff\xff\xff\xff", 8, &out, &err), 0);
	ck_assert_int_lt(read_header("mode", 100, "rwxrwxr", 7, &out, &err), 0);
}
END_TEST

START_TEST(ends)
{
	_cleanup_(str_done) struct str in = STR_INIT, out = STR_INIT;
	struct error err = ERROR_INIT;

	/* Nothing at all is an archive without entries. */
	ck_assert_int_eq(read_tar(&in, 1, &out, &err), 0);
	/* Without the zero blocks; without the padding of the last entry. */
	tar_add(&in, &(struct tar_spec){ '0', "f", NULL, "hello" });
	ck_assert_int_eq(read_tar(&in, 1000, &out, &err), 0);
	in.len = 512 + 5;
	ck_assert_int_eq(read_tar(&in, 1000, &out, &err), 0);
	in.len--;
	ck_assert_int_lt(read_tar(&in, 1000, &out, &err), 0);
	ck_assert(strstr(err.text, "truncated"));
	in.len = 500;
	ck_assert_int_lt(read_tar(&in, 1000, &out, &err), 0);
	ck_assert(strstr(err.text, "not a tar archive: it has only 500 bytes"));
	/* Behind the end anything may follow. */
	str_reset(&in);
	str_reset(&out);
	tar_add(&in, &(struct tar_spec){ '0', "f", NULL, "x" });
	tar_end(&in);
	for (int i = 0; i < 5000; i++)
		str_add_char(&in, 'x');
	ck_assert_int_eq(read_tar(&in, 777, &out, &err), 0);
	ck_assert_str_eq(str_get(&out), "0 f 644 0:0 0.0 <x>\n");
	/* One block of zeros and then a header is damage. */
	str_reset(&in);
	tar_end(&in);
	in.len = 512;
	tar_add(&in, &(struct tar_spec){ '0', "f" });
	ck_assert_int_lt(read_tar(&in, 512, &out, &err), 0);
	/* No tar at all. */
	str_reset(&in);
	for (int i = 0; i < 1024; i++)
		str_add_char(&in, 'x');
	ck_assert_int_lt(read_tar(&in, 512, &out, &err), 0);
	ck_assert(strstr(err.text, "wrong checksum"));
	/* An extended header with nothing behind. */
	str_reset(&in);
	tar_header(&in, 'x', "pax", NULL, 0, NULL);
	ck_assert_int_lt(read_tar(&in, 512, &out, &err), 0);
}
END_TEST

START_TEST(limits)
{
	_cleanup_(str_done) struct str in = STR_INIT, out = STR_INIT, big = STR_INIT;
	struct error err = ERROR_INIT;

	for (int i = 0; i <= TAR_NAME_MAX; i++)
		str_add_char(&big, i % 100 == 99 ? '/' : 'n');
	tar_add(&in, &(struct tar_spec){ '0', big.buf, .gnu_long = true });
	tar_end(&in);
	ck_assert_int_lt(read_tar(&in, 4096, &out, &err), 0);
	ck_assert(strstr(err.text, "more than 4096 bytes"));

	str_reset(&in);
	for (int i = 0; i < 17; i++)
		tar_header(&in, 'x', "pax", NULL, 0, NULL);
	tar_add(&in, &(struct tar_spec){ '0', "f" });
	ck_assert_int_lt(read_tar(&in, 4096, &out, &err), 0);
	ck_assert(strstr(err.text, "in a row"));

	str_reset(&in);
	tar_header(&in, 'x', "pax", NULL, TAR_META_MAX + 1, NULL);
	ck_assert_int_lt(read_tar(&in, 4096, &out, &err), 0);
	ck_assert(strstr(err.text, "1 MiB"));

	str_reset(&in);
	str_reset(&big);
	for (int i = 0; i <= TAR_XATTRS_MAX; i++)
		str_addf(&big, "SCHILY.xattr.user.x%d=1\n", i);
	tar_add(&in, &(struct tar_spec){ '0', "f", .pax = big.buf });
	ck_assert_int_lt(read_tar(&in, 4096, &out, &err), 0);
	ck_assert(strstr(err.text, "128"));
}
END_TEST

static const char *const broken_pax[] = { "5 a=b", "x a=b\n", "99 a=b\n", "6 a=b\n6", "4 a\n", "3 =\n", " 6 a=b\n", "06 a=b\n\n",
	"-6 a=b\n", "6a=b\n", "0 a=b\n", "99999999999999999999999 a=b\n" };

START_TEST(broken_pax_case)
{
	_cleanup_(str_done) struct str in = STR_INIT, out = STR_INIT;
	struct error err = ERROR_INIT;
	const char *text = broken_pax[_i];

	tar_header(&in, 'x', "pax", NULL, strlen(text), NULL);
	tar_body(&in, text, strlen(text));
	tar_add(&in, &(struct tar_spec){ '0', "f" });
	tar_end(&in);
	ck_assert_msg(read_tar(&in, 4096, &out, &err) < 0, "\"%s\" was taken", text);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("tar");
	TCase *t = tcase_create("tar");

	tcase_add_loop_test(t, entry_case, 0, ARRAY_LEN(entries));
	tcase_add_loop_test(t, refused_case, 0, ARRAY_LEN(refused));
	tcase_add_loop_test(t, broken_pax_case, 0, ARRAY_LEN(broken_pax));
	tcase_add_test(t, fields);
	tcase_add_test(t, ends);
	tcase_add_test(t, limits);
	suite_add_tcase(s, t);
	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}

/* layer_test.c - purpose: layers as they are transferred: compression, damage, bombs, digests, sizes; surveys of the result. */
#include "runtime-lite/image/layer.h"

#include <check.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

#include "common/base/sha256.h"
#include "common/sys/file.h"
#include "tests/unit/runtime-lite/image/tar_builder.h"

static char dir[64];
static int root_fd;

static void setup(void)
{
	strcpy(dir, "/tmp/layer-test.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	root_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void teardown(void)
{
	close(root_fd);
	ck_assert_int_eq(dir_remove(AT_FDCWD, dir, NULL), 0);
}

enum how { PLAIN, GZIP, ZSTD };

static void add_compressed(struct str *out, const struct str *in, enum how how)
{
	size_t max = how == ZSTD ? ZSTD_compressBound(in->len) : in->len + in->len / 100 + 1000;
	_cleanup_free_ char *buf = xmalloc(max);
	size_t n = 0;

	if (how == PLAIN) {
		str_add_bytes(out, in->buf, in->len);
		return;
	}
	if (how == ZSTD) {
		n = ZSTD_compress(buf, max, in->buf, in->len, 3);
	} else {
		z_stream z = { 0 };

		deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
		z.next_in = (uint8_t *)in->buf;
		z.avail_in = (unsigned)in->len;
		z.next_out = (uint8_t *)buf;
		z.avail_out = (unsigned)max;
		deflate(&z, Z_FINISH);
		n = z.total_out;
		deflateEnd(&z);
	}
	str_add_bytes(out, buf, n);
}

static void digest_of(const struct str *text, char ret[72])
{
	strcpy(ret, "sha256:");
	sha256_hex(text->buf, text->len, ret + 7);
}

static int run(const struct str *packed, const struct layer_want *want, const struct layer_limits *limits, size_t piece,
	struct survey *ret, struct error *err)
{
	struct unpack_options unpack = { .root_fd = root_fd };
	_cleanup_(layer_free_p) struct layer *layer = layer_new(want, limits, &unpack);

	for (size_t at = 0; at < packed->len; at += piece) {
		int r = layer_feed(layer, packed->buf + at, MIN(piece, packed->len - at), err);

		if (r < 0)
			return r;
	}
	return layer_finish(layer, ret, err);
}

static void make_tar(struct str *out)
{
	_cleanup_free_ char *big = xmalloc(300001);

	for (unsigned i = 0; i < 300000; i++)
		big[i] = (char)('a' + (i * 7919 + i / 13) % 26);
	big[300000] = '\0';
	tar_add(out, &(struct tar_spec){ '5', "d/", .mode = 0755 });
	tar_add(out, &(struct tar_spec){ '0', "d/small", NULL, "hello" });
	tar_add(out, &(struct tar_spec){ '0', "d/big", NULL, big });
	tar_add(out, &(struct tar_spec){ '1', "d/link", "d/big" });
	tar_end(out);
}

static const struct {
	const char *name;
	enum how how;
	size_t piece, members; /* compressed as so many streams in a row */
	const char *tail;
	size_t tail_len;
} good[] = {
	{ "plain", PLAIN, 1000, 1 },
	{ "gzip", GZIP, 1000, 1 },
	{ "gzip, byte by byte", GZIP, 1, 1 },
	{ "gzip, all at once", GZIP, 1u << 30, 1 },
	{ "gzip, many members", GZIP, 1000, 5 },
	{ "gzip, many members, byte by byte", GZIP, 1, 3 },
	{ "gzip, zeros behind", GZIP, 1000, 1, "\0\0\0\0\0", 5 },
	{ "zstd", ZSTD, 1000, 1 },
	{ "zstd, byte by byte", ZSTD, 1, 1 },
	{ "zstd, all at once", ZSTD, 1u << 30, 1 },
	{ "zstd, many frames", ZSTD, 777, 4 },
	{ "zstd, skippable frame behind", ZSTD, 1000, 1, "\x50\x2a\x4d\x18\x03\0\0\0abc", 11 },
};

START_TEST(good_case)
{
	_cleanup_(str_done) struct str tar = STR_INIT, packed = STR_INIT;
	struct error err = ERROR_INIT;
	struct survey survey = { 0 };
	char digest[72], diff_id[72];

	make_tar(&tar);
	digest_of(&tar, diff_id);
	size_t step = (tar.len + good[_i].members - 1) / good[_i].members;
	for (size_t at = 0; at < tar.len; at += step) {
		struct str part = { tar.buf + at, MIN(step, tar.len - at), 0 };

		add_compressed(&packed, &part, good[_i].how);
	}
	if (good[_i].tail)
		str_add_bytes(&packed, good[_i].tail, good[_i].tail_len);
	digest_of(&packed, digest);
	struct layer_want want = { digest, packed.len, diff_id };
	int r = run(&packed, &want, &(struct layer_limits){ 0 }, good[_i].piece, &survey, &err);
	ck_assert_msg(r == 0, "%s: %s", good[_i].name, err.text);
	/* root, d, small, big; the link is no inode of its own */
	ck_assert_uint_eq(survey.inodes, 4);
	ck_assert_uint_ge(survey.bytes, 300000);
}
END_TEST

/* Damage: what to do to the packed bytes, and what must be said. */
enum damage { NONE, CUT_HALF, CUT_ONE, FLIP, FLIP_RIGHT, LONGER, GARBAGE_BEHIND, WRONG_DIGEST, WRONG_DIFF_ID, WRONG_SIZE, EMPTY };

static const struct {
	const char *name;
	enum how how;
	enum damage damage;
	bool know_size;
	const char *why;
	enum error_code code;
} damaged[] = {
	{ "gzip, wrong digest", GZIP, WRONG_DIGEST, true, "wrong digest", ERROR_DATA_LOSS },
	{ "zstd, wrong digest", ZSTD, WRONG_DIGEST, true, "wrong digest", ERROR_DATA_LOSS },
	{ "plain, wrong digest", PLAIN, WRONG_DIGEST, true, "wrong digest", ERROR_DATA_LOSS },
	{ "wrong diff id", GZIP, WRONG_DIFF_ID, true, "wrong digest of the unpacked layer", ERROR_DATA_LOSS },
	{ "half of it", GZIP, CUT_HALF, true, "truncated", ERROR_DATA_LOSS },
	{ "all but one byte", ZSTD, CUT_ONE, true, "truncated", ERROR_DATA_LOSS },
	{ "half of it, size not known", GZIP, CUT_HALF, false, "wrong digest", ERROR_DATA_LOSS },
	{ "one byte more than said", GZIP, LONGER, true, "longer than", ERROR_DATA_LOSS },
	{ "size too small in the manifest", PLAIN, WRONG_SIZE, true, "longer than", ERROR_DATA_LOSS },
	{ "flipped bits in gzip", GZIP, FLIP, true, "wrong digest: ", ERROR_DATA_LOSS },
	{ "flipped bits in zstd", ZSTD, FLIP, true, "wrong digest: ", ERROR_DATA_LOSS },
	{ "flipped bits in tar", PLAIN, FLIP, true, "wrong digest: ", ERROR_DATA_LOSS },
	{ "flipped bits, size not known", GZIP, FLIP, false, "wrong digest: ", ERROR_DATA_LOSS },
	{ "flipped bits in gzip, right digest", GZIP, FLIP_RIGHT, true, "damaged gzip", ERROR_DATA_LOSS },
	{ "flipped bits in zstd, right digest", ZSTD, FLIP_RIGHT, true, "damaged zstd", ERROR_DATA_LOSS },
	{ "garbage behind gzip, right digest", GZIP, GARBAGE_BEHIND, false, "garbage behind", ERROR_DATA_LOSS },
	{ "nothing", PLAIN, EMPTY, true, "truncated", ERROR_DATA_LOSS },
};

START_TEST(damaged_case)
{
	_cleanup_(str_done) struct str tar = STR_INIT, packed = STR_INIT;
	struct error err = ERROR_INIT;
	struct survey survey = { 0 };
	char digest[72], diff_id[72];

	make_tar(&tar);
	digest_of(&tar, diff_id);
	add_compressed(&packed, &tar, damaged[_i].how);
	digest_of(&packed, digest);
	struct layer_want want = { digest, damaged[_i].know_size ? packed.len : UINT64_MAX, diff_id };
	switch (damaged[_i].damage) {
	case CUT_HALF:
		packed.len /= 2;
		break;
	case CUT_ONE:
		packed.len--;
		break;
	case FLIP:
	case FLIP_RIGHT:
		packed.buf[packed.len / 2] ^= 0x10;
		packed.buf[packed.len / 2 + 1] ^= 0x55;
		packed.buf[packed.len / 2 + 2] ^= 0xff;
		break;
	case LONGER:
	case GARBAGE_BEHIND:
		str_add_char(&packed, 'x');
		break;
	case WRONG_DIGEST:
		digest[10] = digest[10] == '0' ? '1' : '0';
		break;
	case WRONG_DIFF_ID:
		diff_id[10] = diff_id[10] == '0' ? '1' : '0';
		break;
	case WRONG_SIZE:
		want.size--;
		break;
	case EMPTY:
		packed.len = 0;
		break;
	default:
		break;
	}
	if (damaged[_i].damage == FLIP_RIGHT || damaged[_i].damage == GARBAGE_BEHIND)
		digest_of(&packed, digest);
	int r = run(&packed, &want, &(struct layer_limits){ 0 }, 1000, &survey, &err);
	ck_assert_msg(r < 0, "%s was taken", damaged[_i].name);
	ck_assert_msg(strstr(err.text, damaged[_i].why), "%s: %s", damaged[_i].name, err.text);
	ck_assert_msg(err.code == damaged[_i].code, "%s: %s", damaged[_i].name, error_code_name(err.code));
	ck_assert_uint_eq(survey.inodes, 0);
}
END_TEST

/* Without a digest (a docker-archive) a cut stream must be seen by the decompressor. */
START_TEST(cut_without_digest)
{
	_cleanup_(str_done) struct str tar = STR_INIT, packed = STR_INIT;
	struct error err = ERROR_INIT;
	struct survey survey;
	char diff_id[72];
	enum how how = _i;

	make_tar(&tar);
	digest_of(&tar, diff_id);
	add_compressed(&packed, &tar, how);
	packed.len /= 2;
	struct layer_want want = { NULL, UINT64_MAX, diff_id };
	ck_assert_int_lt(run(&packed, &want, &(struct layer_limits){ 0 }, 1000, &survey, &err), 0);
	ck_assert_msg(strstr(err.text, "truncated"), "%s", err.text);
}
END_TEST

/* Zeros, as many as a bomb has. */
static void make_bomb(struct str *packed, enum how how)
{
	_cleanup_(str_done) struct str tar = STR_INIT;

	tar_header(&tar, '0', "zeros", NULL, 64u << 20, NULL);
	str_reserve(&tar, 64u << 20);
	memset(tar.buf + tar.len, 0, 64u << 20);
	tar.len += 64u << 20;
	tar_end(&tar);
	add_compressed(packed, &tar, how);
}

START_TEST(bombs)
{
	static const struct {
		enum how how;
		struct layer_limits limits;
		const char *why;
	} cases[] = {
		{ GZIP, { .max_ratio = 200, .ratio_free_bytes = 1u << 20 }, "compression bomb" },
		{ ZSTD, { .max_ratio = 200, .ratio_free_bytes = 1u << 20 }, "compression bomb" },
		{ GZIP, { .max_bytes = 32u << 20 }, "33554432 bytes allowed" },
		{ ZSTD, { .max_bytes = 32u << 20 }, "33554432 bytes allowed" },
		{ GZIP, { .max_bytes = 128u << 20, .max_ratio = 1000000 }, NULL },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_(str_done) struct str packed = STR_INIT;
		struct error err = ERROR_INIT;
		struct survey survey;
		char diff_id[72] = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

		make_bomb(&packed, cases[i].how);
		struct layer_want want = { NULL, packed.len, diff_id };
		ck_assert_int_lt(run(&packed, &want, &cases[i].limits, 4096, &survey, &err), 0);
		ck_assert_msg(strstr(err.text, cases[i].why ? cases[i].why : "wrong digest of the unpacked layer"), "%s", err.text);
	}
}
END_TEST

START_TEST(other_formats)
{
	static const struct {
		const char *bytes, *why;
	} cases[] = { { "BZh91AY&SY", "bzip2" }, { "\xfd" "7zXZ\0\0\0\0", "xz" } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct str packed = { (char *)cases[i].bytes, 10, 0 };
		struct error err = ERROR_INIT;
		struct survey survey;
		struct layer_want want = { NULL, UINT64_MAX, "sha256:0000000000000000000000000000000000000000000000000000000000000000" };

		ck_assert_int_lt(run(&packed, &want, &(struct layer_limits){ 0 }, 3, &survey, &err), 0);
		ck_assert_msg(strstr(err.text, cases[i].why), "%s", err.text);
	}
}
END_TEST

/* The survey sees every kind of loss that a power cut makes; and does not care about the order of a directory. */
START_TEST(surveys)
{
	struct survey before, after;
	struct timespec times[2] = { { 5, 0 }, { 5, 0 } };

	ck_assert_int_eq(mkdirat(root_fd, "d", 0755), 0);
	ck_assert_int_eq(file_replace(root_fd, "d/a", "aaaa", 4, 0644, NULL), 0);
	ck_assert_int_eq(file_replace(root_fd, "d/b", "bbbb", 4, 0644, NULL), 0);
	ck_assert_int_eq(symlinkat("a", root_fd, "d/l"), 0);
	ck_assert_int_eq(linkat(root_fd, "d/a", root_fd, "d/h", 0), 0);
	utimensat(root_fd, "d/a", times, 0);
	utimensat(root_fd, "d", times, 0);
	ck_assert_int_eq(survey_tree(root_fd, &before, NULL), 0);
	ck_assert_uint_eq(before.inodes, 5);
	ck_assert_int_eq(survey_tree(root_fd, &after, NULL), 0);
	ck_assert_uint_eq(before.checksum, after.checksum);

	_cleanup_fd_ int fd = openat(root_fd, "d/a", O_RDWR);
	ck_assert_int_eq(ftruncate(fd, 0), 0);
	futimens(fd, times);
	ck_assert_int_eq(survey_tree(root_fd, &after, NULL), 0);
	ck_assert_uint_ne(before.checksum, after.checksum);
	ck_assert_int_eq(ftruncate(fd, 4), 0);
	futimens(fd, times);
	ck_assert_int_eq(survey_tree(root_fd, &after, NULL), 0);
	ck_assert_uint_eq(before.checksum, after.checksum);

	ck_assert_int_eq(fchmod(fd, 0600), 0);
	ck_assert_int_eq(survey_tree(root_fd, &after, NULL), 0);
	ck_assert_uint_ne(before.checksum, after.checksum);
	fchmod(fd, 0644);
	unlinkat(root_fd, "d/b", 0);
	utimensat(root_fd, "d", times, 0);
	ck_assert_int_eq(survey_tree(root_fd, &after, NULL), 0);
	ck_assert_uint_ne(before.checksum, after.checksum);
	ck_assert_uint_eq(after.inodes, 4);
}
END_TEST

int main(void)
{
	if (geteuid() != 0) {
		printf("skipped: unpacking needs root\n100%%: Checks: 0, Failures: 0, Errors: 0\n");
		return 0;
	}
	Suite *s = suite_create("layer");
	TCase *t = tcase_create("layer");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, good_case, 0, ARRAY_LEN(good));
	tcase_add_loop_test(t, damaged_case, 0, ARRAY_LEN(damaged));
	tcase_add_loop_test(t, cut_without_digest, PLAIN, ZSTD + 1);
	tcase_add_test(t, bombs);
	tcase_add_test(t, other_formats);
	tcase_add_test(t, surveys);
	suite_add_tcase(s, t);
	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}

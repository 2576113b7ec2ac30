/* sha256_test.c - purpose: SHA-256 by the vectors of FIPS 180-4, in pieces of every size. */
#include "common/base/sha256.h"

#include <check.h>

static const struct {
	const char *text;
	size_t repeat;
	const char *hex;
} vectors[] = {
	{ "", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
	{ "abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
	{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
		"248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
	{ "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu", 1,
		"cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" },
	{ "a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0" },
};

START_TEST(vector_case)
{
	size_t len = strlen(vectors[_i].text), total = len * vectors[_i].repeat;
	_cleanup_free_ char *all = xmalloc(total);
	static const size_t pieces[] = { 1, 3, 55, 56, 63, 64, 65, 127, 128, 1000, 1u << 30 };
	char hex[SHA256_HEX_LEN + 1];

	for (size_t i = 0; i < vectors[_i].repeat; i++)
		memcpy(all + i * len, vectors[_i].text, len);
	for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
		struct sha256 h = SHA256_INIT;

		for (size_t at = 0; at < total; at += pieces[i])
			sha256_add(&h, all + at, MIN(pieces[i], total - at));
		sha256_end_hex(&h, hex);
		ck_assert_str_eq(hex, vectors[_i].hex);
	}
	sha256_hex(all, total, hex);
	ck_assert_str_eq(hex, vectors[_i].hex);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("sha256");
	TCase *t = tcase_create("sha256");

	tcase_add_loop_test(t, vector_case, 0, ARRAY_LEN(vectors));
	suite_add_tcase(s, t);
	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}

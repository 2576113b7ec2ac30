/* libc_test.c - purpose: the monitor's own string functions against those of the system. */
#include <check.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define memcpy own_memcpy
#define memmove own_memmove
#define memset own_memset
#define memcmp own_memcmp
#define memchr own_memchr
#define strlen own_strlen
#define strncmp own_strncmp
#define strcmp own_strcmp
#define strcpy own_strcpy
#define strcat own_strcat
#define strchr own_strchr
#define strrchr own_strrchr
#define strspn own_strspn
#define strcspn own_strcspn
#define strpbrk own_strpbrk
#define strstr own_strstr
#define strtol own_strtol
#define strtoull own_strtoull
#define snprintf own_snprintf
#define vsnprintf own_vsnprintf
#define strerrordesc_np own_strerrordesc_np
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#include "runtime-lite/monitor/libc/text.c"
#undef memcpy
#undef memmove
#undef memset
#undef memcmp
#undef memchr
#undef strlen
#undef strncmp
#undef strcmp
#undef strcpy
#undef strcat
#undef strchr
#undef strrchr
#undef strspn
#undef strcspn
#undef strpbrk
#undef strstr
#undef strtol
#undef strtoull
#undef snprintf
#undef vsnprintf
#undef strerrordesc_np

#define SAME(size, ...)                                                                                                \
	do {                                                                                                           \
		char own[64], theirs[64];                                                                              \
		memset(own, 'x', sizeof(own));                                                                         \
		memset(theirs, 'x', sizeof(theirs));                                                                   \
		int n = own_snprintf(own, size, __VA_ARGS__), m = snprintf(theirs, size, __VA_ARGS__);                 \
		ck_assert_int_eq(n, m);                                                                                \
		ck_assert_str_eq(own, theirs);                                                                         \
	} while (0)

#pragma GCC diagnostic ignored "-Wformat-truncation"
START_TEST(formats)
{
	SAME(64, "plain %% text");
	SAME(64, "%s|%s|%.*s|%.3s", "", "abc", 2, "abcdef", "abcdef");
	SAME(64, "%d %d %d %d", 0, -1, INT_MAX, INT_MIN);
	SAME(64, "%u %x %o %c", UINT_MAX, 0xdeadbeefu, 0755u, 'c');
	SAME(64, "%lld %llu", (long long)INT64_MIN, (unsigned long long)UINT64_MAX);
	SAME(64, "%zu %ld", SIZE_MAX, -5L);
	SAME(64, "%04d-%02d %09ld %5d|%05d", 26, 7, 123456L, 42, -42);
	SAME(64, "%8s|%*d", "ab", 6, 7);
	SAME(5, "%s", "abcdefgh");
	SAME(1, "%d", 12345);
	SAME(6, "%d", 12345);
	SAME(64, "\"%s\": %s", "x", "y");
	ck_assert_int_eq(own_snprintf(NULL, 0, "%s", "abc"), 3);
}
END_TEST

START_TEST(numbers)
{
	static const char *const texts[] = { "0", "12 34", " 7", "-9x", "", "x", "18446744073709551615", "99999999999999999999", "-", "9223372036854775808" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char *a, *b;

		ck_assert(own_strtol(texts[i], &a, 10) == strtol(texts[i], &b, 10));
		ck_assert_ptr_eq(a, b);
		if (texts[i][0] == '-')
			continue;
		ck_assert(own_strtoull(texts[i], &a, 10) == strtoull(texts[i], &b, 10));
		ck_assert_ptr_eq(a, b);
	}
}
END_TEST

static int sign(int v)
{
	return (v > 0) - (v < 0);
}

START_TEST(strings)
{
	static const char *const texts[] = { "", "a", "abc", "abd", "ab/cd/ef", "/", "aaab", "\xff", "a b\tc" };
	enum { N = sizeof(texts) / sizeof(texts[0]) };
	char buf[32] = "x", other[32] = "x";

	for (size_t i = 0; i < N; i++)
		for (size_t k = 0; k < N; k++) {
			const char *s = texts[i], *t = texts[k];

			ck_assert(own_strlen(s) == strlen(s));
			ck_assert_int_eq(sign(own_strcmp(s, t)), sign(strcmp(s, t)));
			ck_assert_int_eq(sign(own_strncmp(s, t, 2)), sign(strncmp(s, t, 2)));
			ck_assert_ptr_eq(own_strstr(s, t), strstr(s, t));
			ck_assert_ptr_eq(own_strchr(s, t[0]), strchr(s, t[0]));
			ck_assert_ptr_eq(own_strrchr(s, t[0]), strrchr(s, t[0]));
			ck_assert_ptr_eq(own_memchr(s, t[0], strlen(s)), memchr(s, t[0], strlen(s)));
			ck_assert(own_strspn(s, t) == strspn(s, t) && own_strcspn(s, t) == strcspn(s, t));
			ck_assert_ptr_eq(own_strpbrk(s, t), strpbrk(s, t));
			own_strcat(own_strcpy(buf, s), t);
			strcat(strcpy(other, s), t);
			ck_assert_str_eq(buf, other);
		}
	own_memmove(buf + 2, memcpy(buf, "0123456789", 11), 8);
	ck_assert_str_eq(buf, "0101234567");
	own_memmove(buf, buf + 2, 8);
	ck_assert_str_eq(buf, "0123456767");
	own_memset(buf, 'z', 3);
	own_memcpy(buf + 3, "yy", 2);
	ck_assert_int_eq(own_memcmp(buf, "zzzyy", 5), 0);
}
END_TEST

START_TEST(words)
{
	/* Where it has words they are those of the system. */
	for (int sys = 1; sys < 140; sys++) {
		const char *own = own_strerrordesc_np(sys);

		if (strncmp(own, "error ", 6) != 0)
			ck_assert_str_eq(own, strerrordesc_np(sys));
	}
	ck_assert_str_eq(own_strerrordesc_np(ENOENT), "No such file or directory");
	ck_assert_str_eq(own_strerrordesc_np(4000), "error 4000");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("libc");
	TCase *c = tcase_create("libc");

	tcase_add_test(c, formats);
	tcase_add_test(c, numbers);
	tcase_add_test(c, strings);
	tcase_add_test(c, words);
	suite_add_tcase(s, c);
	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}

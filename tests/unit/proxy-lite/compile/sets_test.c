/* sets_test.c - purpose: the sets are described to nft byte for byte as nft 1.0.6 does it itself. */
#include "proxy-lite/compile/sets.h"

#include "common/base/str.h"

#include <check.h>
#include <stdlib.h>

/* Read from the kernel after Debian 12's nft had loaded sets of these shapes from text. */
static const struct {
	enum set_id id;
	uint32_t key_type, key_len, value_type, value_len;
	const char *userdata;
} golden[] = {
	{ SET_PLAN, 0x17, 4, 0xffffff00, 0,
		"00 04 01 00 00 00 01 04 00 00 00 00 03 0e 00 04 09 00 00 00 01 06 00 04 02 00 00 00 04 08 00 04 01 00 "
		"00 00 01 00 "
		"06 04 00 00 00 00" },
	{ SET_FRONTEND, 0x730d, 12, 0x17, 4,
		"00 04 00 00 00 00 01 04 01 00 00 00 03 44 00 04 0d 00 00 00 01 3c 00 14 00 04 07 00 00 00 01 0c 00 04 "
		"0c 00 00 00 "
		"01 04 0c 00 00 00 01 0e 00 04 09 00 00 00 01 06 00 04 10 00 00 00 02 14 00 04 07 00 00 00 01 0c 00 04 "
		"0b 00 00 00 "
		"01 04 02 00 00 00 04 0e 00 04 09 00 00 00 01 06 00 04 02 00 00 00 06 04 00 00 00 00" },
	{ SET_FRONTEND6, 0x830d, 24, 0x17, 4,
		"00 04 00 00 00 00 01 04 01 00 00 00 03 44 00 04 0d 00 00 00 01 3c 00 14 00 04 07 00 00 00 01 0c 00 04 "
		"0d 00 00 00 "
		"01 04 09 00 00 00 01 0e 00 04 09 00 00 00 01 06 00 04 10 00 00 00 02 14 00 04 07 00 00 00 01 0c 00 04 "
		"0b 00 00 00 "
		"01 04 02 00 00 00 04 0e 00 04 09 00 00 00 01 06 00 04 02 00 00 00 06 04 00 00 00 00" },
	{ SET_PORT_FRONTEND, 0x30d, 8, 0x17, 4,
		"00 04 00 00 00 00 01 04 01 00 00 00 03 2e 00 04 0d 00 00 00 01 26 00 0e 00 04 09 00 00 00 01 06 00 04 "
		"10 00 00 00 "
		"01 14 00 04 07 00 00 00 01 0c 00 04 0b 00 00 00 01 04 02 00 00 00 04 0e 00 04 09 00 00 00 01 06 00 04 "
		"02 00 00 00 "
		"06 04 00 00 00 00" },
	{ SET_REFUSE, 0x730d, 12, 0, 0,
		"00 04 00 00 00 00 03 44 00 04 0d 00 00 00 01 3c 00 14 00 04 07 00 00 00 01 0c 00 04 0c 00 00 00 01 04 "
		"0c 00 00 00 "
		"01 0e 00 04 09 00 00 00 01 06 00 04 10 00 00 00 02 14 00 04 07 00 00 00 01 0c 00 04 0b 00 00 00 01 04 "
		"02 00 00 00" },
	{ SET_HAIRPIN6, 0x208, 32, 0, 0,
		"00 04 00 00 00 00 03 34 00 04 0d 00 00 00 01 2c 00 14 00 04 07 00 00 00 01 0c 00 04 0d 00 00 00 01 04 "
		"08 00 00 00 "
		"01 14 00 04 07 00 00 00 01 0c 00 04 0d 00 00 00 01 04 09 00 00 00" },
	{ SET_NODEIP, 7, 4, 0, 0,
		"00 04 02 00 00 00 03 14 00 04 07 00 00 00 01 0c 00 04 0c 00 00 00 01 04 0c 00 00 00" },
};

START_TEST(as_nft_writes_it)
{
	uint8_t buf[SET_USERDATA_MAX];
	size_t n = set_userdata(golden[_i].id, buf);
	_cleanup_(str_done) struct str hex = STR_INIT;

	for (size_t i = 0; i < n; i++)
		str_addf(&hex, i ? " %02x" : "%02x", buf[i]);
	ck_assert_str_eq(str_get(&hex), golden[_i].userdata);
	ck_assert_uint_eq(set_key_type(golden[_i].id), golden[_i].key_type);
	ck_assert_uint_eq(set_key_len(golden[_i].id), golden[_i].key_len);
	ck_assert_uint_eq(set_value_type(golden[_i].id), golden[_i].value_type);
	ck_assert_uint_eq(set_value_len(golden[_i].id), golden[_i].value_len);
}
END_TEST

START_TEST(names_are_found)
{
	for (int id = 0; id < SET_COUNT; id++) {
		ck_assert_ptr_nonnull(set_spec((enum set_id)id)->name);
		ck_assert_int_eq(set_find(set_spec((enum set_id)id)->name), id);
		ck_assert_uint_le(set_key_len((enum set_id)id), SET_KEY_MAX);
		ck_assert_uint_le(set_value_len((enum set_id)id), SET_VALUE_MAX);
	}
	ck_assert_int_eq(set_find("nothing"), SET_COUNT);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sets");
	TCase *t = tcase_create("sets");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(t, as_nft_writes_it, 0, ARRAY_LEN(golden));
	tcase_add_test(t, names_are_found);
	suite_add_tcase(suite, t);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

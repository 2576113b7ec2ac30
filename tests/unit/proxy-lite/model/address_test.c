/* address_test.c - purpose: tests of model/address.c. */
#include "proxy-lite/model/address.h"

#include <check.h>
#include <stdlib.h>

static const struct {
	const char *text, *printed; /* NULL: refused */
} ips[] = {
	{ "10.0.0.1", "10.0.0.1" },
	{ "0.0.0.0", "0.0.0.0" },
	{ "255.255.255.255", "255.255.255.255" },
	{ "fd00::1", "fd00::1" },
	{ "FD00:0:0::0001", "fd00::1" },
	{ "::", "::" },
	{ "::ffff:10.0.0.1", "::ffff:10.0.0.1" },
	{ "", NULL },
	{ "10.0.0", NULL },
	{ "10.0.0.256", NULL },
	{ "010.0.0.1", NULL },
	{ "10.0.0.1 ", NULL },
	{ " 10.0.0.1", NULL },
	{ "10.0.0.1/8", NULL },
	{ "fe80::1%eth0", NULL },
	{ "1:2:3", NULL },
	{ "localhost", NULL },
};

START_TEST(parses_addresses)
{
	struct ip ip;
	char buf[IP_TEXT_MAX];

	ck_assert_int_eq(ip_parse(ips[_i].text, &ip), ips[_i].printed != NULL);
	if (ips[_i].printed)
		ck_assert_str_eq(ip_format(&ip, buf), ips[_i].printed);
}
END_TEST

static const struct {
	const char *text, *ip;
	int prefix;
} cidrs[] = {
	{ "10.0.0.0/8", "10.0.0.0", 8 },
	{ "10.1.2.3/8", "10.0.0.0", 8 },
	{ "10.1.2.3/32", "10.1.2.3", 32 },
	{ "10.1.2.129/25", "10.1.2.128", 25 },
	{ "0.0.0.0/0", "0.0.0.0", 0 },
	{ "fd00:1:2:3::1/64", "fd00:1:2:3::", 64 },
	{ "::/0", "::", 0 },
	{ "10.0.0.0", NULL, 0 },
	{ "10.0.0.0/", NULL, 0 },
	{ "10.0.0.0/33", NULL, 0 },
	{ "10.0.0.0/-1", NULL, 0 },
	{ "10.0.0.0/+8", NULL, 0 },
	{ "10.0.0.0/ 8", NULL, 0 },
	{ "10.0.0.0/8x", NULL, 0 },
	{ "10.0.0.0/00000008", NULL, 0 },
	{ "fd00::/129", NULL, 0 },
	{ "/8", NULL, 0 },
	{ "", NULL, 0 },
	{ "1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb/64", NULL, 0 },
};

START_TEST(parses_ranges)
{
	struct cidr cidr;
	char buf[IP_TEXT_MAX];

	ck_assert_int_eq(cidr_parse(cidrs[_i].text, &cidr), cidrs[_i].ip != NULL);
	if (cidrs[_i].ip) {
		ck_assert_str_eq(ip_format(&cidr.ip, buf), cidrs[_i].ip);
		ck_assert_int_eq(cidr.prefix, cidrs[_i].prefix);
	}
}
END_TEST

static const struct {
	const char *cidr, *ip;
	bool in;
} contained[] = {
	{ "10.0.0.0/8", "10.255.0.1", true },
	{ "10.0.0.0/8", "11.0.0.1", false },
	{ "10.1.2.128/25", "10.1.2.200", true },
	{ "10.1.2.128/25", "10.1.2.127", false },
	{ "0.0.0.0/0", "1.2.3.4", true },
	{ "0.0.0.0/0", "fd00::1", false },
	{ "fd00::/63", "fd00:0:0:1::5", true },
	{ "fd00::/63", "fd00:0:0:2::5", false },
};

START_TEST(ranges_contain)
{
	struct cidr cidr;
	struct ip ip;

	ck_assert(cidr_parse(contained[_i].cidr, &cidr) && ip_parse(contained[_i].ip, &ip));
	ck_assert_int_eq(cidr_contains(&cidr, &ip), contained[_i].in);
}
END_TEST

static const struct {
	const char *ip;
	bool destination, link_local;
} kinds[] = {
	{ "10.0.0.1", true, false },
	{ "127.0.0.1", false, false },
	{ "127.8.0.1", false, false },
	{ "0.0.0.0", false, false },
	{ "0.1.2.3", false, false },
	{ "224.0.0.1", false, false },
	{ "255.255.255.255", false, false },
	{ "169.254.1.1", true, true },
	{ "::", false, false },
	{ "::1", false, false },
	{ "ff02::1", false, false },
	{ "fe80::1", true, true },
	{ "febf::1", true, true },
	{ "fec0::1", true, false },
};

START_TEST(kinds_of_addresses)
{
	struct ip ip;

	ck_assert(ip_parse(kinds[_i].ip, &ip));
	ck_assert_int_eq(ip_is_destination(&ip), kinds[_i].destination);
	ck_assert_int_eq(ip_is_link_local(&ip), kinds[_i].link_local);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("address");
	TCase *t = tcase_create("address");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(t, parses_addresses, 0, ARRAY_LEN(ips));
	tcase_add_loop_test(t, parses_ranges, 0, ARRAY_LEN(cidrs));
	tcase_add_loop_test(t, ranges_contain, 0, ARRAY_LEN(contained));
	tcase_add_loop_test(t, kinds_of_addresses, 0, ARRAY_LEN(kinds));
	suite_add_tcase(suite, t);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

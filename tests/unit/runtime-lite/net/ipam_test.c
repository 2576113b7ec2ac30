/* ipam_test.c - purpose: address ranges by table; leases in a directory, over restarts and after damage. */
#include "runtime-lite/net/ipam.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/sys/file.h"

#include <arpa/inet.h>
#include <check.h>
#include <fcntl.h>
#include <stdio.h>

static const struct {
	const char *text;
	const char *gateway; /* NULL: refused */
} ranges[] = {
	{ "10.85.0.0/16", "10.85.0.1" },
	{ "192.168.7.0/24", "192.168.7.1" },
	{ "10.0.0.0/8", "10.0.0.1" },
	{ "10.1.2.8/29", "10.1.2.9" },
	{ "10.1.2.0/30", NULL },
	{ "10.0.0.0/7", NULL },
	{ "10.85.0.1/16", NULL },
	{ "10.85.0.0", NULL },
	{ "10.85.0.0/", NULL },
	{ "10.85.0.0/+16", NULL },
	{ "10.85.0.0/ 16", NULL },
	{ "10.85.0.0/16 ", NULL },
	{ "10.85.0.0/99999999999999999999", NULL },
	{ "10.85.0/16", NULL },
	{ "fd00::/64", NULL },
	{ "/16", NULL },
	{ "", NULL },
};

START_TEST(range_case)
{
	struct ip_range range;
	struct error err = ERROR_INIT;
	int r = ip_range_parse(ranges[_i].text, &range, &err);
	char ip[INET_ADDRSTRLEN];

	ck_assert_msg((r == 0) == (ranges[_i].gateway != NULL), "\"%s\": %d %s", ranges[_i].text, r, err.text);
	if (r == 0)
		ck_assert_str_eq(inet_ntop(AF_INET, &range.gateway, ip, sizeof(ip)), ranges[_i].gateway);
	else
		ck_assert_int_eq(err.code, ERROR_INVALID);
}
END_TEST

static const struct {
	const char *range;
	const char *ip;
	uint8_t prefix;
	bool overlaps;
} overlaps[] = {
	{ "10.85.0.0/16", "10.85.3.4", 24, true },
	{ "10.85.0.0/16", "10.0.0.1", 8, true },
	{ "10.85.0.0/16", "10.86.0.1", 16, false },
	{ "10.85.0.0/16", "10.85.255.255", 32, true },
	{ "10.85.0.0/16", "192.0.2.1", 24, false },
	{ "10.85.0.0/16", "1.2.3.4", 0, true },
};

START_TEST(overlap_case)
{
	struct ip_range range;
	struct in_addr ip;

	ck_assert_int_eq(ip_range_parse(overlaps[_i].range, &range, NULL), 0);
	ck_assert_int_eq(inet_pton(AF_INET, overlaps[_i].ip, &ip), 1);
	ck_assert_msg(ip_range_overlaps(&range, ip, overlaps[_i].prefix) == overlaps[_i].overlaps, "%s %s/%u",
		overlaps[_i].range, overlaps[_i].ip, overlaps[_i].prefix);
}
END_TEST

/* ---- leases ---- */

static char dir[64];
static struct ipam *ipam;

static void reopen(const char *cidr)
{
	struct ip_range range;
	struct error err = ERROR_INIT;

	ipam_close(ipam);
	ck_assert_int_eq(ip_range_parse(cidr, &range, NULL), 0);
	ck_assert_msg(ipam_open(dir, &range, &ipam, &err) == 0, "%s", err.text);
}

static void setup(void)
{
	log_init("ipam_test", LOG_LEVEL_ERROR);
	strcpy(dir, "/tmp/ipam_test.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	ipam = NULL;
	reopen("10.1.2.0/29"); /* .2 to .6 */
}

static void teardown(void)
{
	ipam = ipam_close(ipam);
	ck_assert_int_eq(dir_remove(AT_FDCWD, dir, NULL), 0);
}

static const char *reserve(const char *id, const struct port_mapping *ports, size_t n)
{
	static char ip[INET_ADDRSTRLEN];
	const struct lease *lease;
	struct error err = ERROR_INIT;

	if (ipam_reserve(ipam, id, ports, n, &lease, &err) < 0)
		return error_code_name(err.code);
	return inet_ntop(AF_INET, &lease->ip, ip, sizeof(ip));
}

START_TEST(directory_removed)
{
	ck_assert_str_eq(reserve("a", NULL, 0), "10.1.2.2");
	ck_assert_int_eq(dir_remove(AT_FDCWD, dir, NULL), 0);
	ck_assert_str_eq(reserve("b", NULL, 0), "10.1.2.3");
	reopen("10.1.2.0/29");
	ck_assert_uint_eq(ipam_count(ipam), 2);
	ck_assert_ptr_nonnull(ipam_find(ipam, "a"));
	ck_assert_str_eq(reserve("c", NULL, 0), "10.1.2.4");
}
END_TEST

START_TEST(round_robin)
{
	ck_assert_str_eq(reserve("a", NULL, 0), "10.1.2.2");
	ck_assert_str_eq(reserve("b", NULL, 0), "10.1.2.3");
	ck_assert_int_eq(ipam_release(ipam, "b", NULL), 0);
	ck_assert_int_eq(ipam_release(ipam, "b", NULL), 0);
	reopen("10.1.2.0/29");
	ck_assert_uint_eq(ipam_count(ipam), 1);
	ck_assert_str_eq(reserve("c", NULL, 0), "10.1.2.4");
	ck_assert_str_eq(reserve("d", NULL, 0), "10.1.2.5");
	ck_assert_str_eq(reserve("e", NULL, 0), "10.1.2.6");
	ck_assert_str_eq(reserve("f", NULL, 0), "10.1.2.3"); /* around */
	ck_assert_str_eq(reserve("g", NULL, 0), "ResourceExhausted");
	ck_assert_int_eq(ipam_release(ipam, "d", NULL), 0);
	ck_assert_str_eq(reserve("g", NULL, 0), "10.1.2.5");
	reopen("10.9.0.0/24"); /* another range: the leases live on */
	ck_assert_uint_eq(ipam_count(ipam), 5);
	ck_assert_str_eq(reserve("h", NULL, 0), "10.9.0.2");
	ck_assert_uint_eq(ipam_find(ipam, "g")->range.prefix, 29);
}
END_TEST

START_TEST(host_ports)
{
	const struct port_mapping p[] = {
		{ IPPROTO_TCP, 80, 8080, "0.0.0.0" },
		{ IPPROTO_UDP, 80, 8080, "" },
		{ IPPROTO_TCP, 81, 8081, "127.0.0.1" },
		{ IPPROTO_TCP, 0, 9999, "" }, /* maps nothing */
		{ IPPROTO_TCP, 81, 8081, "192.0.2.1" },
		{ IPPROTO_TCP, 81, 8081, "::" },
		{ 1, 81, 8081, "" },
		{ IPPROTO_TCP, 82, 0, "" },
		{ IPPROTO_TCP, 82, 1, "fd00::1" },
	};

	ck_assert_str_eq(reserve("a", p, 4), "10.1.2.2");
	reopen("10.1.2.0/29");
	ck_assert_uint_eq(ipam_find(ipam, "a")->n_ports, 3);
	ck_assert_str_eq(ipam_find(ipam, "a")->ports[2].host_ip, "127.0.0.1");
	ck_assert_str_eq(reserve("b", &p[0], 1), "AlreadyExists");
	ck_assert_str_eq(reserve("b", &p[4], 1), "10.1.2.3"); /* another address of the node */
	ck_assert_str_eq(reserve("c", &p[5], 1), "AlreadyExists");
	ck_assert_str_eq(reserve("c", &p[6], 1), "InvalidArgument");
	ck_assert_str_eq(reserve("c", &p[7], 1), "InvalidArgument");
	ck_assert_str_eq(reserve("c", &p[8], 1), "InvalidArgument");
	ck_assert_str_eq(reserve("two words", NULL, 0), "InvalidArgument");
	ck_assert_str_eq(reserve("", NULL, 0), "InvalidArgument");
	ck_assert_uint_eq(ipam_count(ipam), 2);
}
END_TEST

static const struct {
	const char *name;
	const char *text;
	bool kept;
} files[] = {
	{ "whole", "runtime-lite lease 1\nsandbox x\nrange 10.1.2.0/29\nport tcp 80 8080 *\n", true },
	{ "empty", "", false },
	{ "cut", "runtime-lite lea", false },
	{ "no range", "runtime-lite lease 1\nsandbox x\n", false },
	{ "no sandbox", "runtime-lite lease 1\nrange 10.1.2.0/29\n", false },
	{ "bad port", "runtime-lite lease 1\nsandbox x\nrange 10.1.2.0/29\nport tcp 99999 8080 *\n", false },
	{ "bad protocol", "runtime-lite lease 1\nsandbox x\nrange 10.1.2.0/29\nport icmp 1 8080 *\n", false },
	{ "unknown line", "runtime-lite lease 1\nsandbox x\nrange 10.1.2.0/29\nhello\n", false },
	{ "control characters", "runtime-lite lease 1\nsandbox \033[1m\nrange 10.1.2.0/29\n", false },
};

START_TEST(file_case)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/10.1.2.6", dir);
	ck_assert_int_eq(file_replace(AT_FDCWD, path, files[_i].text, strlen(files[_i].text), 0600, NULL), 0);
	reopen("10.1.2.0/29");
	ck_assert_msg((ipam_count(ipam) == 1) == files[_i].kept, "%s", files[_i].name);
	ck_assert_msg((access(path, F_OK) == 0) == files[_i].kept, "%s", files[_i].name);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ipam");
	TCase *tc = tcase_create("ranges"), *leases = tcase_create("leases");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(tc, range_case, 0, ARRAY_LEN(ranges));
	tcase_add_loop_test(tc, overlap_case, 0, ARRAY_LEN(overlaps));
	suite_add_tcase(suite, tc);
	tcase_add_checked_fixture(leases, setup, teardown);
	tcase_add_test(leases, directory_removed);
	tcase_add_test(leases, round_robin);
	tcase_add_test(leases, host_ports);
	tcase_add_loop_test(leases, file_case, 0, ARRAY_LEN(files));
	suite_add_tcase(suite, leases);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}

/* addresses_test.c - purpose: ClusterIPs and nodePorts: asked for, found, conflicts, exhaustion. */
#include "kubelet-lite/store/addresses.h"

#include "tests/unit/quotes.h"

static struct addresses make(const char *cidr, unsigned min, unsigned max)
{
	struct addresses a = { .port_min = min, .port_max = max };

	ck_assert_int_eq(ip_range_parse(cidr, &a.range, NULL), 0);
	return a;
}

static const struct {
	const char *text;
	bool ok;
} ranges[] = {
	{ "10.96.0.0/16", true }, { "10.96.0.0/12", true }, { "fd00:10:96::/112", true }, { "10.96.0.0/30", true },
	{ "10.96.0.0/31", false }, { "10.96.0.1/16", false }, { "10.96.0.0", false }, { "10.96.0.0/", false }, { "/16", false },
	{ "10.96.0.0/16x", false }, { "300.1.1.0/24", false }, { "fd00::1/64", false }, { "10.96.0.0/-1", false }, { "", false },
	{ "x/8", false }, { "0.0.0.0/0", false },
};

START_TEST(range_case)
{
	struct ip_range r;

	ck_assert_msg((ip_range_parse(ranges[_i].text, &r, NULL) == 0) == ranges[_i].ok, "%s", ranges[_i].text);
}
END_TEST

START_TEST(same_owner_same_address)
{
	char first[ADDRESS_TEXT_MAX], second[ADDRESS_TEXT_MAX];

	for (int i = 0; i < 2; i++) {
		_cleanup_(addresses_done) struct addresses a = make("10.96.0.0/16", 30000, 32767);

		ck_assert_int_eq(addresses_take_ip(&a, "default/web", NULL, i ? second : first, NULL), 0);
		ck_assert(ip_range_has(&a.range, first));
	}
	ck_assert_str_eq(first, second);
}
END_TEST

START_TEST(all_of_a_small_range)
{
	_cleanup_(addresses_done) struct addresses a = make("10.0.0.0/29", 1, 2);
	char text[ADDRESS_TEXT_MAX];
	struct error err = ERROR_INIT;

	for (int i = 0; i < 5; i++) {
		_cleanup_free_ char *owner = xasprintf("default/s%d", i);

		ck_assert_int_eq(addresses_take_ip(&a, owner, NULL, text, NULL), 0);
		ck_assert_str_ne(text, "10.0.0.0");
		ck_assert_str_ne(text, "10.0.0.1");
		ck_assert_str_ne(text, "10.0.0.7");
	}
	ck_assert_int_lt(addresses_take_ip(&a, "default/more", NULL, text, &err), 0);
	ck_assert_int_eq(err.code, ERROR_EXHAUSTED);
	addresses_release(&a, "default/s3");
	ck_assert_int_eq(addresses_take_ip(&a, "default/more", NULL, text, NULL), 0);
}
END_TEST

START_TEST(asked_for)
{
	_cleanup_(addresses_done) struct addresses a = make("10.96.0.0/16", 30000, 32767);
	char text[ADDRESS_TEXT_MAX];
	struct error err = ERROR_INIT;

	ck_assert_int_eq(addresses_take_ip(&a, "default/a", "10.96.0.1", text, NULL), 0);
	ck_assert_int_eq(addresses_take_ip(&a, "default/a", "10.96.0.1", text, NULL), 0);
	ck_assert_int_lt(addresses_take_ip(&a, "default/b", "10.96.0.1", text, &err), 0);
	ck_assert_int_eq(err.code, ERROR_EXISTS);
	ck_assert_ptr_nonnull(strstr(err.text, "default/a"));
	ck_assert_int_lt(addresses_take_ip(&a, "default/b", "10.97.0.1", text, &err), 0);
	ck_assert_int_eq(err.code, ERROR_OUT_OF_RANGE);
	ck_assert_ptr_nonnull(strstr(err.text, "10.96.0.0/16"));
	ck_assert_int_lt(addresses_take_ip(&a, "default/b", "nonsense", text, &err), 0);
	ck_assert_int_eq(err.code, ERROR_INVALID);
}
END_TEST

START_TEST(ipv6)
{
	_cleanup_(addresses_done) struct addresses a = make("fd00:10:96::/112", 30000, 32767);
	char text[ADDRESS_TEXT_MAX];

	ck_assert_int_eq(addresses_take_ip(&a, "default/a", "fd00:10:96:0:0:0:0:5", text, NULL), 0);
	ck_assert_str_eq(text, "fd00:10:96::5");
	ck_assert_int_lt(addresses_take_ip(&a, "default/b", "fd00:10:96::5", text, NULL), 0);
	ck_assert_int_eq(addresses_take_ip(&a, "default/b", NULL, text, NULL), 0);
	ck_assert(ip_range_has(&a.range, text));
}
END_TEST

START_TEST(ports)
{
	_cleanup_(addresses_done) struct addresses a = make("10.96.0.0/16", 30000, 30002);
	struct error err = ERROR_INIT;
	unsigned one, two, three, more;

	ck_assert_int_eq(addresses_take_port(&a, "d/a", "TCP", "http", 0, &one, NULL), 0);
	ck_assert_int_eq(addresses_take_port(&a, "d/a", "TCP", "https", 0, &two, NULL), 0);
	ck_assert_uint_ne(one, two);
	/* The same number for another protocol, when asked for. */
	ck_assert_int_eq(addresses_take_port(&a, "d/b", "UDP", "", one, &more, NULL), 0);
	ck_assert_int_lt(addresses_take_port(&a, "d/b", "TCP", "", one, &more, &err), 0);
	ck_assert_int_eq(err.code, ERROR_EXISTS);
	ck_assert_int_lt(addresses_take_port(&a, "d/b", "TCP", "", 80, &more, &err), 0);
	ck_assert_int_eq(err.code, ERROR_OUT_OF_RANGE);
	ck_assert_int_eq(addresses_take_port(&a, "d/c", "TCP", "", 0, &three, NULL), 0);
	ck_assert_int_lt(addresses_take_port(&a, "d/d", "TCP", "", 0, &more, &err), 0);
	ck_assert_int_eq(err.code, ERROR_EXHAUSTED);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("addresses");

	tcase_add_loop_test(t, range_case, 0, ARRAY_LEN(ranges));
	tcase_add_test(t, same_owner_same_address);
	tcase_add_test(t, all_of_a_small_range);
	tcase_add_test(t, asked_for);
	tcase_add_test(t, ipv6);
	tcase_add_test(t, ports);
	return run_case(t);
}

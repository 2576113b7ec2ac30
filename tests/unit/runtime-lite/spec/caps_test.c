/* caps_test.c - purpose: capability sets, by table. */
#include "runtime-lite/spec/caps.h"

#include <check.h>

#define BIT(n) (UINT64_C(1) << (n))
enum { CHOWN = 0, NET_ADMIN = 12, NET_RAW = 13, SYS_ADMIN = 21, NET_BIND = 10 };
#define ALL ((UINT64_C(1) << 41) - 1)
#define DEFAULTS UINT64_C(0xa80425fb)

static const struct {
	const char *name, *add, *drop, *ambient;
	bool privileged;
	uint64_t all, want, want_ambient;
	bool fails;
} cases[] = {
	{ "defaults", NULL, NULL, NULL, false, ALL, DEFAULTS, 0, false },
	{ "add one", "NET_ADMIN", NULL, NULL, false, ALL, DEFAULTS | BIT(NET_ADMIN), 0, false },
	{ "any spelling", "cap_net_admin", NULL, NULL, false, ALL, DEFAULTS | BIT(NET_ADMIN), 0, false },
	{ "drop one", NULL, "CHOWN", NULL, false, ALL, DEFAULTS & ~BIT(CHOWN), 0, false },
	{ "drop all", NULL, "ALL", NULL, false, ALL, 0, 0, false },
	{ "drop all, add one", "NET_BIND_SERVICE", "ALL", NULL, false, ALL, BIT(NET_BIND), 0, false },
	{ "add all", "ALL", NULL, NULL, false, ALL, ALL, 0, false },
	{ "add all, drop one", "ALL", "SYS_ADMIN", NULL, false, ALL, ALL & ~BIT(SYS_ADMIN), 0, false },
	{ "add and drop the same", "NET_RAW", "NET_RAW", NULL, false, ALL, DEFAULTS & ~BIT(NET_RAW), 0, false },
	{ "privileged", NULL, "ALL", NULL, true, ALL, ALL, 0, false },
	{ "no more than we have", "ALL", NULL, NULL, false, DEFAULTS, DEFAULTS, 0, false },
	{ "ambient", NULL, NULL, "NET_ADMIN", false, ALL, DEFAULTS | BIT(NET_ADMIN), BIT(NET_ADMIN), false },
	{ "unknown", "NO_SUCH", NULL, NULL, false, ALL, 0, 0, true },
	{ "unknown drop", NULL, "NO_SUCH", NULL, false, ALL, 0, 0, true },
};

static void add(size_t *n, char ***list, const char *name)
{
	if (name)
		message_add(n, list, xstrdup(name));
}

START_TEST(caps_case)
{
	_cleanup_message_ CRI(LinuxContainerSecurityContext) *security =
		CRI_NEW(LinuxContainerSecurityContext, linux_container_security_context);
	CRI(Capability) *want = CRI_NEW(Capability, capability);
	struct cap_sets got = { 0 };
	struct error err = ERROR_INIT;

	add(&want->n_add_capabilities, &want->add_capabilities, cases[_i].add);
	add(&want->n_drop_capabilities, &want->drop_capabilities, cases[_i].drop);
	add(&want->n_add_ambient_capabilities, &want->add_ambient_capabilities, cases[_i].ambient);
	security->capabilities = want;
	security->privileged = cases[_i].privileged;
	int r = caps_build(security, cases[_i].all, &got, &err);
	ck_assert_msg((r < 0) == cases[_i].fails, "%s: %s", cases[_i].name, err.text);
	if (r < 0)
		return;
	ck_assert_msg(got.bounding == cases[_i].want, "%s: got %llx, want %llx", cases[_i].name,
		(unsigned long long)got.bounding, (unsigned long long)cases[_i].want);
	ck_assert(got.permitted == got.bounding && got.effective == got.bounding);
	ck_assert(got.ambient == cases[_i].want_ambient && got.inheritable == cases[_i].want_ambient);
}
END_TEST

START_TEST(nothing_said)
{
	struct cap_sets got;

	ck_assert_int_eq(caps_build(NULL, ALL, &got, NULL), 0);
	ck_assert(got.bounding == DEFAULTS);
	ck_assert_int_eq(__builtin_popcountll(caps_default()), 14);
	ck_assert(caps_of_daemon() != 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("caps");
	TCase *tcase = tcase_create("all");

	tcase_add_loop_test(tcase, caps_case, 0, ARRAY_LEN(cases));
	tcase_add_test(tcase, nothing_said);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}

/* user_test.c - purpose: users and groups of a container, by table. */
#include "runtime-lite/spec/user.h"

#include <check.h>

static const char passwd[] = "# comment\n"
			     "root:x:0:0:root:/root:/bin/sh\n"
			     "www-data:x:33:33:www:/var/www:/bin/false\n"
			     "broken\n"
			     "huge:x:99999999999:1:h:/h:/x\n"
			     "default-user:x:1000:1000::/home/d:/bin/sh\n"
			     "1005:x:1:1::/evil:/bin/sh\n"
			     "nohome:x:1006:1007";
static const char group[] = "root:x:0:\n"
			    "adm:x:4:www-data,default-user\n"
			    "www-data:x:33:\n"
			    "predefined:x:50000:default-user\n"
			    "other:x:50001:nobody,default-user2\n"
			    "bad:x:notanumber:default-user\n"
			    "last:x:77:default-user";

enum { NO = -100 };

static const struct {
	const char *name;
	const char *username;
	int64_t uid, gid; /* of the request, NO: not given */
	const char *image;
	bool strict, files;
	int64_t supplemental[3]; /* ends with 0 */
	const char *want; /* "uid gid groups home", or the error after '!' */
} cases[] = {
	{ "nothing asked", "", NO, NO, "", false, true, { 0 }, "0 0 0 /root" },
	{ "nothing asked, no files", "", NO, NO, "", false, false, { 0 }, "0 0 0 -" },
	{ "image names a user", "", NO, NO, "www-data", false, true, { 0 }, "33 33 33,4 /var/www" },
	{ "image uid", "", NO, NO, "1002", false, true, { 0 }, "1002 0 0 -" },
	{ "image uid:gid", "", NO, NO, "1003:22", false, true, { 0 }, "1003 22 22 -" },
	{ "image user:group by name", "", NO, NO, "default-user:adm", false, true, { 0 }, "1000 4 4,50000,77 /home/d" },
	{ "image :group", "", NO, NO, ":adm", false, true, { 0 }, "0 4 4 /root" },
	{ "image group unknown", "", NO, NO, "root:nosuch", false, true, { 0 },
		"!the image's USER: unable to find group nosuch: no matching entry in the image's /etc/group" },
	{ "all-digit name is a number", "", NO, NO, "1005", false, true, { 0 }, "1005 0 0 -" },
	{ "digits out of range are no name", "", NO, NO, "99999999999", false, true, { 0 },
		"!the image's USER: user id 99999999999 is out of range (0 to 2147483647)" },
	{ "request beats image", "", 1000, NO, "www-data", false, true, { 0 }, "1000 1000 1000,4,50000,77 /home/d" },
	{ "uid without entry", "", 4242, NO, "", false, true, { 0 }, "4242 0 0 -" },
	{ "run_as_group", "", 1000, 5, "", false, true, { 0 }, "1000 5 5,4,50000,77 /home/d" },
	{ "group alone", "", NO, 5, "", false, true, { 0 }, "!run_as_group is specified without run_as_user or run_as_username" },
	{ "username beats uid", "www-data", 1000, NO, "", false, true, { 0 }, "33 33 33,4 /var/www" },
	{ "username unknown", "nosuch", NO, NO, "", false, true, { 0 },
		"!unable to find user nosuch: no matching entry in the image's /etc/passwd" },
	{ "username without files", "www-data", NO, NO, "", false, false, { 0 },
		"!unable to find user www-data: no matching entry in the image's /etc/passwd" },
	{ "username with a bad uid", "huge", NO, NO, "", false, true, { 0 }, "!user huge: the image's /etc/passwd has a bad uid" },
	{ "negative uid", "", -1, NO, "", false, true, { 0 }, "!user id -1 is out of range (0 to 2147483647)" },
	{ "merge adds supplemental ones", "", 1000, NO, "", false, true, { 4, 1234 }, "1000 1000 1000,4,50000,77,1234 /home/d" },
	{ "strict leaves the image's out", "", 1000, NO, "", true, true, { 1234 }, "1000 1000 1000,1234 /home/d" },
	{ "last line without line feed", "nohome", NO, NO, "", false, true, { 0 }, "1006 1007 1007 -" },
};

static char *describe(const struct user *user)
{
	struct str s = STR_INIT;

	str_addf(&s, "%u %u ", user->uid, user->gid);
	for (size_t i = 0; i < user->n_groups; i++)
		str_addf(&s, "%s%u", i ? "," : "", user->groups[i]);
	str_addf(&s, " %s", user->home ? user->home : "-");
	return str_take(&s);
}

static CRI(Int64Value) * int64(int64_t v)
{
	CRI(Int64Value) *m = CRI_NEW(Int64Value, int64_value);

	m->value = v;
	return m;
}

START_TEST(user_case)
{
	_cleanup_message_ CRI(LinuxContainerSecurityContext) *security =
		CRI_NEW(LinuxContainerSecurityContext, linux_container_security_context);
	struct user user = { 0 };
	struct error err = ERROR_INIT;

	message_set(&security->run_as_username, cases[_i].username);
	security->run_as_user = cases[_i].uid == NO ? NULL : int64(cases[_i].uid);
	security->run_as_group = cases[_i].gid == NO ? NULL : int64(cases[_i].gid);
	security->supplemental_groups_policy = cases[_i].strict ? RUNTIME__V1__SUPPLEMENTAL_GROUPS_POLICY__Strict
								  : RUNTIME__V1__SUPPLEMENTAL_GROUPS_POLICY__Merge;
	for (int i = 0; cases[_i].supplemental[i]; i++) {
		message_add(&security->n_supplemental_groups, &security->supplemental_groups,
			cases[_i].supplemental[i]);
	}
	int r = user_resolve(security, cases[_i].image, cases[_i].files ? passwd : NULL, cases[_i].files ? group : NULL,
		&user, &err);
	_cleanup_free_ char *got = r < 0 ? xasprintf("!%s", err.text) : describe(&user);
	ck_assert_msg(str_eq(got, cases[_i].want), "%s: got %s, want %s", cases[_i].name, got, cases[_i].want);
	user_done(&user);
}
END_TEST

START_TEST(without_security)
{
	struct user user = { 0 };

	ck_assert_int_eq(user_resolve(NULL, "www-data", passwd, group, &user, NULL), 0);
	ck_assert_uint_eq(user.uid, 33);
	user_done(&user);
}
END_TEST

START_TEST(many_groups)
{
	_cleanup_message_ CRI(LinuxContainerSecurityContext) *security =
		CRI_NEW(LinuxContainerSecurityContext, linux_container_security_context);
	struct user user = { 0 };

	for (int64_t i = 1; i <= 300; i++)
		message_add(&security->n_supplemental_groups, &security->supplemental_groups, i);
	ck_assert_int_eq(user_resolve(security, "", NULL, NULL, &user, NULL), 0);
	ck_assert_uint_eq(user.n_groups, 301);
	ck_assert_uint_eq(user.groups[300], 300);
	user_done(&user);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("user");
	TCase *tcase = tcase_create("all");

	tcase_add_loop_test(tcase, user_case, 0, ARRAY_LEN(cases));
	tcase_add_test(tcase, without_security);
	tcase_add_test(tcase, many_groups);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}

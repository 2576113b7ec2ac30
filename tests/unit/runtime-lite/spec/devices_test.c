/* devices_test.c - purpose: device nodes that a container asks for, by table. */
#include "runtime-lite/spec/devices.h"

#include <check.h>

static const struct {
	const char *name, *host, *container, *permissions;
	const char *want; /* "path type major:minor access", or the error after '!' */
} cases[] = {
	{ "a device", "/dev/null", "/dev/mine", "rw", "/dev/mine c 1:3 rw" },
	{ "in its own place", "/dev/zero", "", "r", "/dev/zero c 1:5 r" },
	{ "no permissions are all", "/dev/null", "", "", "/dev/null c 1:3 rwm" },
	{ "no device", "/etc/passwd", "/dev/x", "r", "!devices[0]: /etc/passwd is not a device" },
	{ "not there", "/dev/no-such", "", "r", "!devices[0]: /dev/no-such: No such file or directory" },
	{ "relative", "dev/null", "/dev/x", "r", "!devices[0]: host_path \"dev/null\"" },
	{ "odd permissions", "/dev/null", "", "rx", "!devices[0]: permissions \"rx\"" },
};

START_TEST(device_case)
{
	CRI(Device) d = RUNTIME__V1__DEVICE__INIT, *one = &d;
	CRI(ContainerConfig) config = RUNTIME__V1__CONTAINER_CONFIG__INIT;
	struct plan_device *got = NULL;
	struct error err = ERROR_INIT;
	size_t n = 0;

	d.host_path = (char *)cases[_i].host;
	d.container_path = (char *)cases[_i].container;
	d.permissions = (char *)cases[_i].permissions;
	config.devices = &one;
	config.n_devices = 1;
	if (devices_resolve(&config, &got, &n, &err) < 0) {
		ck_assert_msg(cases[_i].want[0] == '!' && str_starts(err.text, cases[_i].want + 1), "%s: %s", cases[_i].name, err.text);
		return;
	}
	ck_assert_uint_eq(n, 1);
	_cleanup_free_ char *text = xasprintf("%s %c %u:%u %s", got->path, got->type, got->major, got->minor, got->access);

	ck_assert_str_eq(text, cases[_i].want);
	devices_free(got, n);
}
END_TEST

START_TEST(directory)
{
	CRI(Device) d = RUNTIME__V1__DEVICE__INIT, *one = &d;
	CRI(ContainerConfig) config = RUNTIME__V1__CONTAINER_CONFIG__INIT;
	struct plan_device *got = NULL;
	struct error err = ERROR_INIT;
	size_t n = 0;

	d.host_path = d.container_path = "/dev";
	config.devices = &one;
	config.n_devices = 1;
	ck_assert_msg(devices_resolve(&config, &got, &n, &err) == 0, "%s", err.text);
	ck_assert_uint_gt(n, 3);
	devices_free(got, n);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("devices");
	TCase *tcase = tcase_create("all");

	tcase_add_loop_test(tcase, device_case, 0, ARRAY_LEN(cases));
	tcase_add_test(tcase, directory);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}

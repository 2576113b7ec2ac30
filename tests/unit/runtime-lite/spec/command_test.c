/* command_test.c - purpose: command, args and entrypoint; environment; signals. By table. */
#include "runtime-lite/spec/command.h"

#include <check.h>

/* Words are separated by '|'; NULL is none. */
static void words(const char *text, struct strv *ret)
{
	if (text)
		strv_split(ret, *text ? text : "|", '|');
	if (text && !*text) { /* exactly one empty word */
		strv_done(ret);
		strv_add(ret, "");
	}
}

static char *joined(const struct strv *list)
{
	struct str s = STR_INIT;

	for (size_t i = 0; i < list->n; i++)
		str_addf(&s, "%s%s", i ? "|" : "", list->v[i]);
	return str_take(&s);
}

static void set_words(size_t *n, char ***field, const char *text)
{
	struct strv list = STRV_INIT;

	words(text, &list);
	*n = list.n;
	*field = list.v;
}

static const struct {
	const char *name, *command, *args, *entrypoint, *cmd, *want;
} commands[] = {
	{ "image alone", NULL, NULL, "/e", "c1|c2", "/e|c1|c2" },
	{ "only cmd in the image", NULL, NULL, NULL, "c1|c2", "c1|c2" },
	{ "only entrypoint in the image", NULL, NULL, "/e|x", NULL, "/e|x" },
	{ "args replace cmd", NULL, "a", "/e", "c", "/e|a" },
	{ "args without entrypoint", NULL, "a|b", NULL, "c", "a|b" },
	{ "command replaces both", "/k", NULL, "/e", "c", "/k" },
	{ "command and args", "/k|x", "a", "/e", "c", "/k|x|a" },
	{ "empty entrypoint word counts as none", NULL, NULL, "", "c", "c" },
	{ "nothing at all", NULL, NULL, NULL, NULL, NULL },
	{ "empty program", "", NULL, "/e", NULL, NULL },
};

START_TEST(command_case)
{
	_cleanup_message_ CRI(ContainerConfig) *config = CRI_NEW(ContainerConfig, container_config);
	_cleanup_(strv_done) struct strv entrypoint = STRV_INIT, cmd = STRV_INIT, got = STRV_INIT;
	struct error err = ERROR_INIT;

	set_words(&config->n_command, &config->command, commands[_i].command);
	set_words(&config->n_args, &config->args, commands[_i].args);
	words(commands[_i].entrypoint, &entrypoint);
	words(commands[_i].cmd, &cmd);
	struct image_process image = { .entrypoint = entrypoint.v, .cmd = cmd.v };
	int r = command_build(config, &image, &got, &err);
	if (!commands[_i].want) {
		ck_assert_msg(r < 0 && err.code == ERROR_INVALID, "%s", commands[_i].name);
		ck_assert_uint_eq(got.n, 0);
		return;
	}
	_cleanup_free_ char *text = joined(&got);
	ck_assert_msg(r == 0 && str_eq(text, commands[_i].want), "%s: got %s, want %s", commands[_i].name, text,
		commands[_i].want);
}
END_TEST

static void add_env(CRI(ContainerConfig) * config, const char *key, const char *value)
{
	CRI(KeyValue) *kv = CRI_NEW(KeyValue, key_value);

	message_set(&kv->key, key);
	kv->value.len = strlen(value);
	kv->value.data = xmemdup(value, kv->value.len);
	message_add(&config->n_envs, &config->envs, kv);
}

START_TEST(env_order)
{
	_cleanup_message_ CRI(ContainerConfig) *config = CRI_NEW(ContainerConfig, container_config);
	_cleanup_(strv_done) struct strv from = STRV_INIT, got = STRV_INIT;

	words("PATH=/bin|A=image|HOSTNAME=image|BARE|=bad", &from);
	add_env(config, "A", "config");
	add_env(config, "B", "x=y");
	struct image_process image = { .env = from.v };
	config->tty = true;
	ck_assert_int_eq(command_env(config, &image, "host", "/root", &got, NULL), 0);
	_cleanup_free_ char *text = joined(&got);
	ck_assert_str_eq(text, "HOSTNAME=image|TERM=xterm|PATH=/bin|A=config|BARE=|B=x=y|HOME=/root");
}
END_TEST

START_TEST(env_defaults)
{
	_cleanup_message_ CRI(ContainerConfig) *config = CRI_NEW(ContainerConfig, container_config);
	_cleanup_(strv_done) struct strv got = STRV_INIT;
	struct image_process image = { 0 };

	add_env(config, "PATHS", "no path");
	ck_assert_int_eq(command_env(config, &image, "", NULL, &got, NULL), 0);
	_cleanup_free_ char *text = joined(&got);
	ck_assert_str_eq(text, "PATHS=no path|PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin|HOME=/");
}
END_TEST

START_TEST(env_bad)
{
	_cleanup_message_ CRI(ContainerConfig) *config = CRI_NEW(ContainerConfig, container_config);
	_cleanup_(strv_done) struct strv got = STRV_INIT;
	struct image_process image = { 0 };
	struct error err = ERROR_INIT;

	add_env(config, "A=B", "x");
	ck_assert_int_lt(command_env(config, &image, NULL, NULL, &got, &err), 0);
	ck_assert_str_eq(err.text, "environment variable \"A=B\": bad name");
	message_set(&config->envs[0]->key, "A");
	config->envs[0]->value.data[0] = 0;
	ck_assert_int_lt(command_env(config, &image, NULL, NULL, &got, &err), 0);
	ck_assert_uint_eq(got.n, 0);
}
END_TEST

START_TEST(cwd)
{
	_cleanup_message_ CRI(ContainerConfig) *config = CRI_NEW(ContainerConfig, container_config);
	struct image_process image = { 0 };
	const char *got;

	ck_assert_int_eq(command_cwd(config, &image, &got, NULL), 0);
	ck_assert_str_eq(got, "/");
	image.working_dir = "/image";
	ck_assert_int_eq(command_cwd(config, &image, &got, NULL), 0);
	ck_assert_str_eq(got, "/image");
	message_set(&config->working_dir, "/config");
	ck_assert_int_eq(command_cwd(config, &image, &got, NULL), 0);
	ck_assert_str_eq(got, "/config");
	message_set(&config->working_dir, "relative");
	ck_assert_int_lt(command_cwd(config, &image, &got, NULL), 0);
}
END_TEST

static const struct {
	int wanted;
	const char *image;
	int want; /* -1: error */
} signals[] = {
	{ 0, NULL, 15 },
	{ 0, "", 15 },
	{ 0, "SIGQUIT", 3 },
	{ 0, "quit", 3 },
	{ 0, "9", 9 },
	{ 0, "64", 64 },
	{ 0, "65", -1 },
	{ 0, "0", -1 },
	{ 0, "SIGRTMIN", 34 },
	{ 0, "SIGRTMIN+3", 37 },
	{ 0, "RTMAX-2", 62 },
	{ 0, "SIGRTMIN+31", -1 },
	{ 0, "SIGNOSUCH", -1 },
	{ 0, "999999999999", -1 },
	{ RUNTIME__V1__SIGNAL__SIGUSR1, "SIGQUIT", 10 },
	{ RUNTIME__V1__SIGNAL__SIGRTMINPLUS3, NULL, 37 },
	{ RUNTIME__V1__SIGNAL__SIGRTMAXMINUS2, NULL, 62 },
	{ RUNTIME__V1__SIGNAL__SIGRTMAX, NULL, 64 },
	{ 1000, NULL, -1 },
};

START_TEST(signal_case)
{
	int got = -1;

	int r = stop_signal_number((CRI(Signal))signals[_i].wanted, signals[_i].image, &got, NULL);
	ck_assert_int_eq(got, signals[_i].want);
	ck_assert_int_eq(r < 0, signals[_i].want < 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("command");
	TCase *tcase = tcase_create("all");

	tcase_add_loop_test(tcase, command_case, 0, ARRAY_LEN(commands));
	tcase_add_test(tcase, env_order);
	tcase_add_test(tcase, env_defaults);
	tcase_add_test(tcase, env_bad);
	tcase_add_test(tcase, cwd);
	tcase_add_loop_test(tcase, signal_case, 0, ARRAY_LEN(signals));
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}

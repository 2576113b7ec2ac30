/* admin.c - purpose: find and run an administrator's command. */
#include "runtime-lite/admin/admin.h"

#include "runtime-lite/admin/image_commands.h"
#include "runtime-lite/admin/tool.h"

#include <runtime-lite.opts.h>
#include <stdio.h>

static const struct option_spec no_options[] = { { 0 } };

static const struct command {
	const char *name;
	const char *synopsis;
	const struct option_spec *options;
	int min_args, max_args; /* max -1: any number */
	command_run run;
} commands[] = {
	{ "pods", "pods [options]", runtime_lite_pods_options, 0, 0, command_pods },
	{ "ps", "ps [options]", runtime_lite_ps_options, 0, 0, command_ps },
	{ "inspect", "inspect container...", no_options, 1, -1, command_inspect },
	{ "inspectp", "inspectp pod...", no_options, 1, -1, command_inspectp },
	{ "logs", "logs [options] container", runtime_lite_logs_options, 1, 1, command_logs },
	{ "stats", "stats [options] [container...]", runtime_lite_stats_options, 0, -1, command_stats },
	{ "statsp", "statsp [options] [pod...]", runtime_lite_statsp_options, 0, -1, command_statsp },
	{ "events", "events [options]", runtime_lite_events_options, 0, 0, command_events },
	{ "info", "info", no_options, 0, 0, command_info },
	{ "version", "version", no_options, 0, 0, command_version },
	{ "runp", "runp [options] pod-file", runtime_lite_runp_options, 1, 1, command_runp },
	{ "create", "create [options] pod container-file pod-file", runtime_lite_create_options, 3, 3, command_create },
	{ "start", "start container...", no_options, 1, -1, command_start },
	{ "run", "run [options] container-file pod-file", runtime_lite_run_options, 2, 2, command_run_all },
	{ "exec", "exec [options] container command [argument...]", runtime_lite_exec_options, 2, -1, command_exec },
	{ "update", "update [options] container...", runtime_lite_update_options, 1, -1, command_update },
	{ "stop", "stop [options] container...", runtime_lite_stop_options, 1, -1, command_stop },
	{ "reopen-log", "reopen-log container...", no_options, 1, -1, command_reopen_log },
	{ "rm", "rm [options] container...", runtime_lite_rm_options, 1, -1, command_rm },
	{ "stopp", "stopp pod...", no_options, 1, -1, command_stopp },
	{ "rmp", "rmp [options] [pod...]", runtime_lite_rmp_options, 0, -1, command_rmp },
	{ "prune", "prune [options]", runtime_lite_prune_options, 0, 0, command_prune },
};

static const struct command *find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		if (str_eq(commands[i].name, name))
			return &commands[i];
	return NULL;
}

bool admin_known(const char *name)
{
	return find(name) || image_command_known(name);
}

char *admin_synopsis(void)
{
	struct str text = STR_INIT;
	const char *image_command;

	str_add(&text, "[options]\n  runtime-lite [options] command [arguments]\n\nCommands (--help behind one lists its flags):");
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		str_addf(&text, "\n  %s", commands[i].synopsis);
	for (size_t i = 0; (image_command = image_command_synopsis(i)); i++)
		str_addf(&text, "\n  %s", image_command);
	return str_take(&text);
}

static const struct option_spec *spec_by_letter(const struct option_spec *table, char letter)
{
	while (table->name && *table->name != letter)
		table++;
	return table->name ? table : NULL;
}

static bool takes_value(const struct option_spec *table, const char *flag)
{
	if (!str_starts(flag, "--") || strchr(flag, '='))
		return false;
	while (table->name && !str_eq(table->name, flag + 2))
		table++;
	return table->name && table->type != OPTION_BOOL;
}

/* "-a" stands for the first flag of the command that begins so, "-af" for two; only if every letter is one. */
static bool expand_letters(const struct option_spec *table, const char *arg, struct strv *ret)
{
	if (arg[0] != '-' || !arg[1] || arg[1] == '-')
		return false;
	for (const char *p = arg + 1; *p; p++)
		if (!spec_by_letter(table, *p))
			return false;
	for (const char *p = arg + 1; *p; p++)
		strv_add_take(ret, xasprintf("--%s", spec_by_letter(table, *p)->name));
	return true;
}

/* Ends at the first word that is no flag and no value of one. */
static void expand_short(const struct option_spec *table, int argc, char **argv, struct strv *ret)
{
	bool flags = true;

	strv_add(ret, argv[0]);
	for (int i = 1; i < argc; i++) {
		flags = flags && *argv[i] == '-' && !str_eq(argv[i], "--");
		if (!flags || !expand_letters(table, argv[i], ret))
			strv_add(ret, argv[i]);
		if (flags && takes_value(table, ret->v[ret->n - 1]) && i + 1 < argc)
			strv_add(ret, argv[++i]);
	}
}

static int run(const struct command *command, int argc, char **argv, const struct admin *admin)
{
	_cleanup_(strv_done) struct strv words = STRV_INIT;
	struct option_values *options = NULL;
	struct error err = ERROR_INIT;
	int rest = 0;

	expand_short(command->options, argc, argv, &words);
	int r = options_parse(command->options, "runtime-lite", command->synopsis, (int)words.n, words.v, &rest, &options,
		&err);
	int count = (int)words.n - rest;
	if (r == 0 && (count < command->min_args || (command->max_args >= 0 && count > command->max_args)))
		r = error_set(&err, ERROR_INVALID, "usage: runtime-lite %s", command->synopsis);
	if (r < 0) {
		fprintf(stderr, "runtime-lite %s: %s\n", command->name, err.text);
		option_values_free(options);
		return 1;
	}
	struct invocation in = { .admin = admin, .options = options, .argc = count, .argv = words.v + rest };
	r = command->run(&in, &err);
	if (r < 0)
		fprintf(stderr, "runtime-lite %s: %s\n", command->name, err.text);
	option_values_free(options);
	if (fflush(stdout) != 0 && r == 0)
		return 1;
	return r < 0 ? 1 : r;
}

int admin_run(int argc, char **argv, const struct admin *admin)
{
	const struct command *command = find(argv[0]);

	if (command)
		return run(command, argc, argv, admin);
	_cleanup_free_ char *root = admin->root_given ? NULL : tool_daemon_root(admin);
	struct image_command_env env = {
		.socket_path = admin->socket_path,
		.root = root ? root : admin->root,
		.libexec_dir = admin->libexec_dir,
		.registry_config_dir = admin->registry_config_dir,
		.limits = admin->image_limits,
	};
	return image_command_run(argc, argv, &env);
}

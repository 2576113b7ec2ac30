/*
 * admin.h - purpose: the administrator's commands: `runtime-lite ps`, `runtime-lite logs web`, ...
 *
 * A command is a client of the running daemon: it speaks CRI on the daemon's socket and nothing else. Its flags come out
 * of the manual page, as the daemon's do.
 */
#pragma once
#include "common/base/options.h"
#include "common/cri/message.h"
#include "runtime-lite/image/store.h"

struct admin {
	const char *socket_path;
	const char *root, *libexec_dir, *registry_config_dir; /* for the image commands */
	struct image_limits image_limits;
	bool root_given; /* else the daemon that answers knows better */
	const char *bridge, *pod_cidr, *cgroup_parent; /* for `prune --network` */
};

/* What a command gets: parsed flags and the arguments behind them. Returns 0, a negative errno with the reason in err,
 * or a positive exit status. Prints to stdout. */
struct invocation {
	const struct admin *admin;
	const struct option_values *options;
	int argc;
	char **argv;
};
typedef int (*command_run)(const struct invocation *in, struct error *err);

/* Is there a command of this name? */
bool admin_known(const char *name);
/* The program's synopsis for --help, with all commands. The caller's. */
char *admin_synopsis(void);
/* Runs argv[0] with its own arguments. Returns the exit status: 0, 1 for a failure, 2 for wrong usage. */
int admin_run(int argc, char **argv, const struct admin *admin);

/* Commands by the file that has them. */
#define COMMAND(name) int name(const struct invocation *in, struct error *err)
/* list.c */
COMMAND(command_pods);
COMMAND(command_ps);
COMMAND(command_inspect);
COMMAND(command_inspectp);
COMMAND(command_info);
COMMAND(command_version);
/* run.c */
COMMAND(command_runp);
COMMAND(command_create);
COMMAND(command_start);
COMMAND(command_run_all);
COMMAND(command_exec);
COMMAND(command_update);
COMMAND(command_reopen_log);
/* stop.c */
COMMAND(command_stop);
COMMAND(command_rm);
COMMAND(command_stopp);
COMMAND(command_rmp);
COMMAND(command_prune);
/* logs.c */
COMMAND(command_logs);
/* stats.c */
COMMAND(command_stats);
COMMAND(command_statsp);
/* events.c */
COMMAND(command_events);

/*
 * image_commands.h - purpose: `runtime-lite images|pull|load|rmi|prune|save`, the administrator's image commands.
 *
 * images, pull, rmi and prune are CRI calls to the running daemon. load works on the store itself, beside the daemon or
 * without one (store.h says why that is safe); the daemon sees the new images at once.
 */
#pragma once
#include "runtime-lite/image/store.h"

struct image_command_env {
	const char *socket_path; /* the daemon's socket, without unix:// */
	const char *root;        /* the store: /var/lib/runtime-lite */
	const char *libexec_dir;
	const char *registry_config_dir; /* may be NULL */
	struct image_limits limits;
};

/* True for the name of a command of this module. */
bool image_command_known(const char *name);
/* The synopsis of the i-th command, NULL after the last. */
const char *image_command_synopsis(size_t i);
/* Runs argv[0] with its own arguments (argv[argc] need not be NULL). Prints to stdout; errors and progress to stderr.
 * Returns the exit status: 0, 1 for a failure, 2 for wrong usage. */
int image_command_run(int argc, char **argv, const struct image_command_env *env);

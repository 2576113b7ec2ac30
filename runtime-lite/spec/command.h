/*
 * command.h - purpose: argument vector and environment of a container's first process. Pure.
 */
#pragma once
#include "common/cri/message.h"

/* What an image says about its process; borrowed, NULL-terminated lists, NULL for none. */
struct image_process {
	char *const *entrypoint;
	char *const *cmd;
	char *const *env; /* "KEY=value" */
	const char *working_dir;
	const char *user;
};

/* Kubernetes' rules: `command` replaces entrypoint and cmd, `args` replaces cmd. Nothing at all is an error. */
int command_build(const CRI(ContainerConfig) * config, const struct image_process *image, struct strv *ret,
	struct error *err) MUST_USE;

/* HOSTNAME, TERM (with a tty), the image's, then the config's variables; the last of each name counts and keeps the
 * place of the first. PATH and HOME are added where nobody gave them. A NUL in a value or '=' in a name is an error. */
int command_env(const CRI(ContainerConfig) * config, const struct image_process *image, const char *hostname,
	const char *home, struct strv *ret, struct error *err) MUST_USE;

/* The directory to start in: config, image, "/". Must be absolute. Borrowed. */
int command_cwd(const CRI(ContainerConfig) * config, const struct image_process *image, const char **ret,
	struct error *err) MUST_USE;

/* Number of the signal that stops the container: the config's, the image's text ("SIGTERM", "TERM", "15",
 * "RTMIN+3"), or SIGTERM. */
int stop_signal_number(CRI(Signal) wanted, const char *image_text, int *ret, struct error *err) MUST_USE;

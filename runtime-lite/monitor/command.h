/* command.h - purpose: find the program of args[0] as a shell would, and name what is wrong as runc does. */
#pragma once
#include "runtime-lite/spec/launch.h"

/* Fills `path` (PATH_MAX). ERROR_NOT_FOUND: `exec: "x": executable file not found in $PATH`; ERROR_DENIED. */
int command_find(const struct launch *l, char *path, struct error *err);
/* What execve() failed with. */
int command_failed(const struct launch *l, const char *path, int sys, struct error *err);

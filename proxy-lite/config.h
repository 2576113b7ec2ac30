/*
 * config.h - purpose: KubeProxyConfiguration files, as command-line options.
 *
 * Keys that we have an option for become "--name=value"; keys that make no difference to us are taken in silence; those
 * whose wish cannot be met, and unknown ones, are warned of by name.
 */
#pragma once
#include "common/base/error.h"
#include "common/base/options.h"

/* Appends options for what the file says and `given` (the command line) does not. Relative paths stay relative. */
int config_read(
	const char *path, const struct option_values *given, struct strv *ret_options, struct error *err) MUST_USE;
/* The same from text; for tests. */
int config_parse(const char *text, size_t len, const struct option_values *given, struct strv *ret_options,
	struct error *err) MUST_USE;

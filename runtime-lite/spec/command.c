/* command.c - purpose: argument vector and environment of a container's first process. Pure. */
#include "runtime-lite/spec/command.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>

static const char default_path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

static void add_all(struct strv *list, char *const *from)
{
	for (; from && *from; from++)
		strv_add(list, *from);
}

int command_build(const CRI(ContainerConfig) * config, const struct image_process *image, struct strv *ret,
	struct error *err)
{
	struct strv args = STRV_INIT;

	for (size_t i = 0; i < config->n_command; i++)
		strv_add(&args, config->command[i]);
	if (!config->n_command) {
		char *const *entrypoint = image->entrypoint;

		/* An entrypoint of one empty word is how some builders write "none". */
		if (entrypoint && entrypoint[0] && !*entrypoint[0] && !entrypoint[1])
			entrypoint = NULL;
		add_all(&args, entrypoint);
		if (!config->n_args)
			add_all(&args, image->cmd);
	}
	for (size_t i = 0; i < config->n_args; i++)
		strv_add(&args, config->args[i]);
	if (!args.n)
		return error_set(err, ERROR_INVALID,
			"no command specified: neither the container's command and args nor the image's Entrypoint and Cmd "
			"name a program");
	if (!*args.v[0]) {
		strv_done(&args);
		return error_set(err, ERROR_INVALID, "the command's first word is empty");
	}
	*ret = args;
	return 0;
}

static size_t name_len(const char *variable)
{
	const char *equals = strchr(variable, '=');

	return equals ? (size_t)(equals - variable) : strlen(variable);
}

/* Replaces the variable of the same name or appends; takes `variable`. */
static void env_put(struct strv *env, char *variable)
{
	size_t n = name_len(variable);

	for (size_t i = 0; i < env->n; i++) {
		if (name_len(env->v[i]) == n && strncmp(env->v[i], variable, n) == 0) {
			free(env->v[i]);
			env->v[i] = variable;
			return;
		}
	}
	strv_add_take(env, variable);
}

static bool env_has(const struct strv *env, const char *name)
{
	for (size_t i = 0; i < env->n; i++)
		if (name_len(env->v[i]) == strlen(name) && str_starts(env->v[i], name))
			return true;
	return false;
}

static int env_put_config(struct strv *env, const CRI(ContainerConfig) * config, struct error *err)
{
	for (size_t i = 0; i < config->n_envs; i++) {
		const CRI(KeyValue) *kv = config->envs[i];

		if (!*kv->key || strchr(kv->key, '='))
			return error_set(err, ERROR_INVALID, "environment variable \"%s\": bad name", kv->key);
		if (kv->value.len && memchr(kv->value.data, 0, kv->value.len))
			return error_set(err, ERROR_INVALID, "environment variable %s: has a NUL byte", kv->key);
		env_put(env, xasprintf("%s=%.*s", kv->key, (int)kv->value.len, (const char *)kv->value.data));
	}
	return 0;
}

int command_env(const CRI(ContainerConfig) * config, const struct image_process *image, const char *hostname,
	const char *home, struct strv *ret, struct error *err)
{
	_cleanup_(strv_done) struct strv env = STRV_INIT;

	if (!str_empty(hostname))
		env_put(&env, xasprintf("HOSTNAME=%s", hostname));
	if (config->tty)
		env_put(&env, xstrdup("TERM=xterm"));
	for (char *const *v = image->env; v && *v; v++)
		if (**v && **v != '=')
			env_put(&env, strchr(*v, '=') ? xstrdup(*v) : xasprintf("%s=", *v));
	int r = env_put_config(&env, config, err);
	if (r < 0)
		return r;
	if (!env_has(&env, "PATH"))
		strv_add(&env, default_path);
	if (!env_has(&env, "HOME"))
		strv_add_take(&env, xasprintf("HOME=%s", str_empty(home) ? "/" : home));
	*ret = env;
	env = STRV_INIT;
	return 0;
}

int command_cwd(const CRI(ContainerConfig) * config, const struct image_process *image, const char **ret,
	struct error *err)
{
	const char *cwd = *config->working_dir		     ? config->working_dir
			  : !str_empty(image->working_dir) ? image->working_dir
							     : "/";

	if (*cwd != '/')
		return error_set(err, ERROR_INVALID, "working directory \"%s\" must be an absolute path", cwd);
	*ret = cwd;
	return 0;
}

static const struct {
	const char *name; /* without SIG */
	int number;
} signals[] = {
	{ "ABRT", SIGABRT },
	{ "ALRM", SIGALRM },
	{ "BUS", SIGBUS },
	{ "CHLD", SIGCHLD },
	{ "CLD", SIGCHLD },
	{ "CONT", SIGCONT },
	{ "FPE", SIGFPE },
	{ "HUP", SIGHUP },
	{ "ILL", SIGILL },
	{ "INT", SIGINT },
	{ "IO", SIGIO },
	{ "IOT", SIGIOT },
	{ "KILL", SIGKILL },
	{ "PIPE", SIGPIPE },
	{ "POLL", SIGPOLL },
	{ "PROF", SIGPROF },
	{ "PWR", SIGPWR },
	{ "QUIT", SIGQUIT },
	{ "SEGV", SIGSEGV },
	{ "STKFLT", 16 },
	{ "STOP", SIGSTOP },
	{ "SYS", SIGSYS },
	{ "TERM", SIGTERM },
	{ "TRAP", SIGTRAP },
	{ "TSTP", SIGTSTP },
	{ "TTIN", SIGTTIN },
	{ "TTOU", SIGTTOU },
	{ "URG", SIGURG },
	{ "USR1", SIGUSR1 },
	{ "USR2", SIGUSR2 },
	{ "VTALRM", SIGVTALRM },
	{ "WINCH", SIGWINCH },
	{ "XCPU", SIGXCPU },
	{ "XFSZ", SIGXFSZ },
};

enum { RT_MIN = 34, RT_MAX = 64 }; /* as programs built with glibc count them: images do not know our libc */

/* "RTMIN+3", "RTMINPLUS3" (CRI's spelling), "RTMAX-2", "RTMAXMINUS2" */
static int realtime_signal(const char *name)
{
	bool low = str_starts(name, "RTMIN");
	const char *rest = name + strlen("RTMIN");

	if (!low && !str_starts(name, "RTMAX"))
		return -EINVAL;
	if (!*rest)
		return low ? RT_MIN : RT_MAX;
	const char *word = low ? "PLUS" : "MINUS";
	if (*rest == (low ? '+' : '-'))
		rest++;
	else if (str_starts(rest, word))
		rest += strlen(word);
	else
		return -EINVAL;
	if (strlen(rest) > 2 || !*rest || strspn(rest, "0123456789") != strlen(rest))
		return -EINVAL;
	int number = low ? RT_MIN + atoi(rest) : RT_MAX - atoi(rest);
	return number >= RT_MIN && number <= RT_MAX ? number : -EINVAL;
}

static int signal_parse(const char *text)
{
	if (*text && strlen(text) <= 2 && strspn(text, "0123456789") == strlen(text)) {
		int number = atoi(text);

		return number >= 1 && number <= RT_MAX ? number : -EINVAL;
	}
	if (strncasecmp(text, "SIG", 3) == 0)
		text += 3;
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		if (strcasecmp(text, signals[i].name) == 0)
			return signals[i].number;
	return realtime_signal(text);
}

int stop_signal_number(CRI(Signal) wanted, const char *image_text, int *ret, struct error *err)
{
	int number = SIGTERM;

	if (wanted != RUNTIME__V1__SIGNAL__RUNTIME_DEFAULT) {
		number = signal_parse(message_enum_name(&runtime__v1__signal__descriptor, (int)wanted));
		if (number < 0)
			return error_set(err, ERROR_INVALID, "stop_signal %d is not a signal", (int)wanted);
	} else if (!str_empty(image_text)) {
		number = signal_parse(image_text);
		if (number < 0)
			return error_set(err, ERROR_INVALID, "the image's StopSignal \"%.40s\" is not a signal", image_text);
	}
	*ret = number;
	return 0;
}

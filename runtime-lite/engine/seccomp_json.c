/*
 * seccomp_json.c - purpose: localhost profiles: the OCI runtime's JSON, and Docker's with its includes and excludes.
 *
 * {defaultAction, defaultErrnoRet, architectures[], archMap[{architecture, subArchitectures[]}], syscalls[{names[] or name,
 * action, errnoRet, args[{index, value, valueTwo, op}], includes{caps[], arches[], minKernel}, excludes{...}}]}
 */
#include "runtime-lite/engine/seccomp.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <sys/capability.h>
#include <sys/utsname.h>

#include "common/wire/json.h"
#include "runtime-lite/engine/seccomp_profile.h"

enum { ARGS_MAX = 6, PROFILE_MAX = 1 << 20 };

static int parse_action(const char *name, int64_t errno_ret, uint32_t *ret, struct error *err)
{
	static const struct {
		const char *name;
		uint32_t action;
	} actions[] = {
		{ "SCMP_ACT_KILL", SCMP_ACT_KILL_THREAD }, { "SCMP_ACT_KILL_THREAD", SCMP_ACT_KILL_THREAD },
		{ "SCMP_ACT_KILL_PROCESS", SCMP_ACT_KILL_PROCESS }, { "SCMP_ACT_TRAP", SCMP_ACT_TRAP },
		{ "SCMP_ACT_ALLOW", SCMP_ACT_ALLOW }, { "SCMP_ACT_LOG", SCMP_ACT_LOG },
	};

	if (errno_ret < 0 || errno_ret > 4095)
		return error_set(err, ERROR_INVALID, "errnoRet %lld: must be 0 to 4095", (long long)errno_ret);
	if (str_eq(name, "SCMP_ACT_ERRNO")) {
		*ret = SCMP_ACT_ERRNO((uint32_t)errno_ret);
		return 0;
	}
	if (str_eq(name, "SCMP_ACT_TRACE")) {
		*ret = SCMP_ACT_TRACE((uint32_t)errno_ret);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(actions); i++)
		if (str_eq(name, actions[i].name)) {
			*ret = actions[i].action;
			return 0;
		}
	return error_set(err, ERROR_INVALID, "action \"%s\": unknown or not supported", name ? name : "");
}

static int parse_op(const char *name, enum scmp_compare *ret, struct error *err)
{
	static const char *const names[] = { [SCMP_CMP_NE] = "SCMP_CMP_NE", [SCMP_CMP_LT] = "SCMP_CMP_LT", [SCMP_CMP_LE] = "SCMP_CMP_LE",
		[SCMP_CMP_EQ] = "SCMP_CMP_EQ", [SCMP_CMP_GE] = "SCMP_CMP_GE", [SCMP_CMP_GT] = "SCMP_CMP_GT",
		[SCMP_CMP_MASKED_EQ] = "SCMP_CMP_MASKED_EQ" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (names[i] && str_eq(name, names[i])) {
			*ret = (enum scmp_compare)i;
			return 0;
		}
	return error_set(err, ERROR_INVALID, "op \"%s\": unknown", name ? name : "");
}

static int add_arch(struct seccomp_profile *p, const char *name, struct error *err)
{
	static const char prefix[] = "SCMP_ARCH_";
	char lower[32];
	size_t n = 0;

	if (!str_starts(name, prefix))
		return error_set(err, ERROR_INVALID, "architecture \"%s\": unknown", name ? name : "");
	for (const char *s = name + sizeof(prefix) - 1; *s && n < sizeof(lower) - 1; s++)
		lower[n++] = *s >= 'A' && *s <= 'Z' ? (char)(*s - 'A' + 'a') : *s;
	lower[n] = '\0';
	uint32_t arch = seccomp_arch_resolve_name(lower);

	if (arch == 0)
		return error_set(err, ERROR_INVALID, "architecture \"%s\": unknown", name);
	/* Those of other byte orders cannot run here, and cannot be in one filter with ours. */
	int r = seccomp_profile_add_arch(p, arch);
	return r < 0 && r != -EDOM && r != -EINVAL ? error_sys(err, r, "architecture \"%s\"", name) : 0;
}

static int add_arch_list(struct seccomp_profile *p, const json_t *list, struct error *err)
{
	size_t i;
	json_t *item;
	int r = 0;

	json_array_foreach(list, i, item)
		if (r == 0)
			r = add_arch(p, json_string_value(item), err);
	return r;
}

/* "amd64" of Docker's conditions against our own. */
static bool is_native(const char *arch)
{
	static const struct {
		const char *name;
		uint32_t arch;
	} names[] = { { "amd64", SCMP_ARCH_X86_64 }, { "x86", SCMP_ARCH_X86 }, { "arm64", SCMP_ARCH_AARCH64 }, { "arm", SCMP_ARCH_ARM },
		{ "ppc64le", SCMP_ARCH_PPC64LE }, { "s390x", SCMP_ARCH_S390X }, { "riscv64", SCMP_ARCH_RISCV64 } };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_eq(arch, names[i].name))
			return names[i].arch == seccomp_arch_native();
	return false;
}

static int add_architectures(struct seccomp_profile *p, const json_t *root, struct error *err)
{
	const json_t *map = json_object_get(root, "archMap");
	int r = add_arch_list(p, json_object_get(root, "architectures"), err);
	size_t i;
	json_t *item;

	json_array_foreach(map, i, item) {
		char name[64];
		const char *arch = json_string_value(json_object_get(item, "architecture"));
		const char *native = seccomp_arch_native() == SCMP_ARCH_X86_64 ? "SCMP_ARCH_X86_64" :
				     seccomp_arch_native() == SCMP_ARCH_AARCH64 ? "SCMP_ARCH_AARCH64" : "";

		snprintf(name, sizeof(name), "%s", arch ? arch : "");
		if (r == 0 && str_eq(name, native))
			r = add_arch_list(p, json_object_get(item, "subArchitectures"), err);
	}
	return r;
}

static bool has_cap(uint64_t caps, const char *name)
{
	cap_value_t value;

	return name && cap_from_name(name, &value) == 0 && value < 64 && caps >> value & 1;
}

static bool kernel_at_least(const char *version)
{
	struct utsname u;
	int want_major = 0, want_minor = 0, major = 0, minor = 0;

	if (uname(&u) < 0 || sscanf(version, "%d.%d", &want_major, &want_minor) < 1 || sscanf(u.release, "%d.%d", &major, &minor) < 2)
		return false;
	return major > want_major || (major == want_major && minor >= want_minor);
}

/* Docker: includes need all of their conditions, excludes any one of them. Of a list of architectures one is enough. */
static bool condition(const json_t *c, uint64_t caps, bool all)
{
	const json_t *cap_list = json_object_get(c, "caps"), *arches = json_object_get(c, "arches");
	const char *kernel = json_string_value(json_object_get(c, "minKernel"));
	size_t i;
	json_t *item;
	bool arch = false;

	json_array_foreach(cap_list, i, item)
		if (has_cap(caps, json_string_value(item)) != all)
			return !all;
	json_array_foreach(arches, i, item)
		arch = arch || is_native(json_string_value(item));
	if (json_array_size(arches) && arch != all)
		return !all;
	if (!str_empty(kernel) && kernel_at_least(kernel) != all)
		return !all;
	return all;
}

static bool applies(const json_t *rule, uint64_t caps)
{
	return condition(json_object_get(rule, "includes"), caps, true) && !condition(json_object_get(rule, "excludes"), caps, false);
}

/* Unsigned 64 bits; what does not fit into a signed integer was read as a real. */
static uint64_t number(const json_t *object, const char *key)
{
	const json_t *v = json_object_get(object, key);

	if (json_is_real(v))
		return json_real_value(v) >= 18446744073709549568.0 ? UINT64_MAX : json_real_value(v) > 0 ? (uint64_t)json_real_value(v) : 0;
	return (uint64_t)json_integer_value(v);
}

static int parse_args(const json_t *list, struct scmp_arg_cmp args[ARGS_MAX], unsigned *ret_n, bool *ret_twice, struct error *err)
{
	size_t i, seen = 0;
	json_t *item;

	if (json_array_size(list) > ARGS_MAX)
		return error_set(err, ERROR_INVALID, "args: more than %d", ARGS_MAX);
	json_array_foreach(list, i, item) {
		int64_t index = json_int_at(item, "index", -1);
		enum scmp_compare op = SCMP_CMP_EQ;
		int r = parse_op(json_str_at(item, "op", NULL), &op, err);

		if (r < 0)
			return r;
		if (index < 0 || index >= ARGS_MAX)
			return error_set(err, ERROR_INVALID, "args: index %lld: must be 0 to 5", (long long)index);
		*ret_twice = *ret_twice || seen >> index & 1;
		seen |= 1u << index;
		args[i] = (struct scmp_arg_cmp){ .arg = (unsigned)index, .op = op, .datum_a = number(item, "value"),
			.datum_b = number(item, "valueTwo") };
	}
	*ret_n = (unsigned)json_array_size(list);
	return 0;
}

/* One rule cannot test an argument twice: then every test is a rule of its own, as runc does it. */
static int add_rule(struct seccomp_profile *p, const char *name, uint32_t action, unsigned n, const struct scmp_arg_cmp *args, bool twice)
{
	int r = 0;

	if (!twice)
		return seccomp_profile_rule(p, name, action, n, args);
	for (unsigned i = 0; i < n && r == 0; i++)
		r = seccomp_profile_rule(p, name, action, 1, &args[i]);
	return r;
}

static int add_syscalls(struct seccomp_profile *p, const json_t *rule, uint32_t action, struct error *err)
{
	const json_t *names = json_object_get(rule, "names");
	const char *single = json_str_at(rule, "name", NULL);
	struct scmp_arg_cmp args[ARGS_MAX];
	unsigned n = 0;
	bool twice = false;
	size_t i;
	json_t *item;
	int r = parse_args(json_object_get(rule, "args"), args, &n, &twice, err);

	if (r < 0)
		return r;
	if (single)
		r = add_rule(p, single, action, n, args, twice);
	json_array_foreach(names, i, item)
		if (r == 0 && json_is_string(item))
			r = add_rule(p, json_string_value(item), action, n, args, twice);
	return r < 0 ? error_sys(err, r, "add rule") : 0;
}

static int64_t errno_ret(const json_t *object, const char *key)
{
	return json_int_at(object, key, EPERM);
}

static int build(struct seccomp_profile *p, const json_t *root, uint64_t caps, struct error *err)
{
	uint32_t action;
	size_t i;
	json_t *rule;
	int r = parse_action(json_str_at(root, "defaultAction", NULL), errno_ret(root, "defaultErrnoRet"), &action, err);

	if (r < 0)
		return error_prefix(err, "defaultAction");
	r = seccomp_profile_begin(p, action, err);
	if (r == 0)
		r = add_architectures(p, root, err);
	if (r < 0)
		return r;
	p->no_stub = action == SCMP_ACT_ALLOW || action == SCMP_ACT_LOG || action == SCMP_ACT_TRACE(EPERM) ||
		     errno_ret(root, "defaultErrnoRet") != EPERM;
	json_array_foreach(json_object_get(root, "syscalls"), i, rule) {
		if (!applies(rule, caps))
			continue;
		r = parse_action(json_str_at(rule, "action", NULL), errno_ret(rule, "errnoRet"), &action, err);
		if (r == 0)
			r = add_syscalls(p, rule, action, err);
		if (r < 0)
			return error_prefix(err, "syscalls[%zu]", i);
	}
	return 0;
}

int seccomp_json_filter(const char *text, size_t len, uint64_t caps, struct sock_filter **ret, size_t *ret_n, struct error *err)
{
	_cleanup_(seccomp_profile_done) struct seccomp_profile p = SECCOMP_PROFILE_INIT;
	_cleanup_json_ json_t *root = NULL;
	int r = len > PROFILE_MAX ? error_set(err, ERROR_INVALID, "larger than %d bytes", PROFILE_MAX) :
				    json_read(text, len, false, &root, err);

	if (r == 0)
		r = json_is_object(root) ? build(&p, root, caps, err) : error_set(err, ERROR_INVALID, "must be an object");
	if (r == 0)
		r = seccomp_profile_export(&p, ret, ret_n, err);
	malloc_trim(0);
	return r < 0 ? error_prefix(err, "seccomp profile") : 0;
}

/* caps.c - purpose: the capability sets of a container. */
#include "runtime-lite/spec/caps.h"

#include "common/sys/file.h"

#include <fcntl.h>
#include <strings.h>

static const char *const names[] = {
	"CHOWN",
	"DAC_OVERRIDE",
	"DAC_READ_SEARCH",
	"FOWNER",
	"FSETID",
	"KILL",
	"SETGID",
	"SETUID",
	"SETPCAP",
	"LINUX_IMMUTABLE",
	"NET_BIND_SERVICE",
	"NET_BROADCAST",
	"NET_ADMIN",
	"NET_RAW",
	"IPC_LOCK",
	"IPC_OWNER",
	"SYS_MODULE",
	"SYS_RAWIO",
	"SYS_CHROOT",
	"SYS_PTRACE",
	"SYS_PACCT",
	"SYS_ADMIN",
	"SYS_BOOT",
	"SYS_NICE",
	"SYS_RESOURCE",
	"SYS_TIME",
	"SYS_TTY_CONFIG",
	"MKNOD",
	"LEASE",
	"AUDIT_WRITE",
	"AUDIT_CONTROL",
	"SETFCAP",
	"MAC_OVERRIDE",
	"MAC_ADMIN",
	"SYSLOG",
	"WAKE_ALARM",
	"BLOCK_SUSPEND",
	"AUDIT_READ",
	"PERFMON",
	"BPF",
	"CHECKPOINT_RESTORE",
};

int caps_number(const char *name)
{
	if (strncasecmp(name, "CAP_", 4) == 0)
		name += 4;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcasecmp(name, names[i]) == 0)
			return (int)i;
	return -1;
}

uint64_t caps_default(void)
{
	static const char *const set[] = { "CHOWN", "DAC_OVERRIDE", "FSETID", "FOWNER", "MKNOD", "NET_RAW", "SETGID",
		"SETUID", "SETFCAP", "SETPCAP", "NET_BIND_SERVICE", "SYS_CHROOT", "KILL", "AUDIT_WRITE" };
	uint64_t mask = 0;

	for (size_t i = 0; i < ARRAY_LEN(set); i++)
		mask |= UINT64_C(1) << caps_number(set[i]);
	return mask;
}

static int read_list(size_t n, char *const *list, const char *field, bool *ret_all, uint64_t *ret, struct error *err)
{
	for (size_t i = 0; i < n; i++) {
		int number = caps_number(list[i]);

		if (strcasecmp(list[i], "ALL") == 0 || strcasecmp(list[i], "CAP_ALL") == 0)
			*ret_all = true;
		else if (number < 0)
			return error_set(err, ERROR_INVALID, "%s: unknown capability \"%.40s\"", field, list[i]);
		else
			*ret |= UINT64_C(1) << number;
	}
	return 0;
}

int caps_build(const CRI(LinuxContainerSecurityContext) * security, uint64_t all, struct cap_sets *ret,
	struct error *err)
{
	const CRI(Capability) *want = security ? security->capabilities : NULL;
	uint64_t add = 0, drop = 0, ambient = 0;
	bool add_all = false, drop_all = false, ambient_all = false;
	int r = 0;

	if (want)
		r = read_list(want->n_add_capabilities, want->add_capabilities, "add_capabilities", &add_all, &add, err);
	if (want && r == 0)
		r = read_list(want->n_drop_capabilities, want->drop_capabilities, "drop_capabilities", &drop_all, &drop,
			err);
	if (want && r == 0)
		r = read_list(want->n_add_ambient_capabilities, want->add_ambient_capabilities,
			"add_ambient_capabilities", &ambient_all, &ambient, err);
	if (r < 0)
		return r;

	uint64_t set = add_all ? all : drop_all ? 0 : caps_default();
	if (ambient_all)
		ambient = all;
	set = ((set | add | ambient) & ~drop) & all;
	if (security && security->privileged)
		set = all;
	ambient &= set;
	/* Inheritable stays empty unless ambient needs it (CVE-2022-29162). */
	*ret = (struct cap_sets){ .bounding = set, .effective = set, .permitted = set, .inheritable = ambient,
		.ambient = ambient };
	return 0;
}

uint64_t caps_of_daemon(void)
{
	_cleanup_free_ char *status = NULL;
	uint64_t known = ARRAY_LEN(names) < 64 ? (UINT64_C(1) << ARRAY_LEN(names)) - 1 : UINT64_MAX;

	if (file_read(AT_FDCWD, "/proc/self/status", 64 * 1024, &status, NULL, NULL) < 0)
		return known;
	const char *line = strstr(status, "\nCapBnd:");
	return line ? strtoull(line + strlen("\nCapBnd:"), NULL, 16) & known : known;
}

/* security.c - purpose: choose a container's seccomp filter and AppArmor profile. */
#include "runtime-lite/spec/security.h"

#include "common/base/log.h"
#include "common/sys/file.h"
#include "runtime-lite/engine/seccomp.h"

#include <errno.h>
#include <fcntl.h>

enum { PROFILE_MAX_BYTES = 1 << 20, PROFILES_LIST_MAX = 16 << 20 };
enum choice { UNCONFINED, DEFAULT, LOCALHOST };

static int choose_seccomp(const CRI(LinuxContainerSecurityContext) * sc, enum choice *ret, const char **ret_path,
	struct error *err)
{
	const char *old = sc->seccomp_profile_path;

	if (sc->seccomp) {
		*ret = sc->seccomp->profile_type == RUNTIME__V1__SECURITY_PROFILE__PROFILE_TYPE__RuntimeDefault ? DEFAULT
		       : sc->seccomp->profile_type == RUNTIME__V1__SECURITY_PROFILE__PROFILE_TYPE__Localhost
			       ? LOCALHOST
			       : UNCONFINED;
		*ret_path = sc->seccomp->localhost_ref;
	} else if (!*old || str_eq(old, "unconfined")) {
		*ret = UNCONFINED;
	} else if (str_eq(old, "runtime/default") || str_eq(old, "docker/default")) {
		*ret = DEFAULT;
	} else if (str_starts(old, "localhost/")) {
		*ret = LOCALHOST;
		*ret_path = old + strlen("localhost/");
	} else {
		return error_set(err, ERROR_INVALID,
			"seccomp_profile_path \"%.200s\" must be runtime/default, unconfined or localhost/<path>", old);
	}
	return 0;
}

int security_seccomp(const CRI(LinuxContainerSecurityContext) * sc, uint64_t caps, struct sock_filter **ret,
	size_t *ret_n, struct error *err)
{
	static bool warned;
	_cleanup_free_ char *text = NULL;
	const char *path = "";
	enum choice choice = UNCONFINED;
	size_t len;

	*ret = NULL;
	*ret_n = 0;
	int r = sc ? choose_seccomp(sc, &choice, &path, err) : 0;
	if (r < 0 || choice == UNCONFINED || sc->privileged)
		return r;
	if (!seccomp_supported()) {
		if (choice == LOCALHOST)
			return error_set(err, ERROR_PRECONDITION, "seccomp: this kernel has no seccomp filters");
		if (!warned)
			log_warning("this kernel has no seccomp filters: containers run without the default one");
		warned = true;
		return 0;
	}
	if (choice == DEFAULT)
		return seccomp_default_filter(caps, ret, ret_n, err);
	if (*path != '/')
		return error_set(err, ERROR_INVALID, "seccomp: localhost profile \"%.200s\" must be an absolute path", path);
	r = file_read(AT_FDCWD, path, PROFILE_MAX_BYTES, &text, &len, err);
	if (r == 0)
		r = seccomp_json_filter(text, len, caps, ret, ret_n, err);
	return r < 0 ? error_prefix(err, "seccomp profile %s", path) : 0;
}

static bool apparmor_enabled(void)
{
	_cleanup_free_ char *text = NULL;

	return file_read(AT_FDCWD, "/sys/module/apparmor/parameters/enabled", 16, &text, NULL, NULL) == 0 && *text == 'Y';
}

/* Lines are "name (mode)". */
static bool apparmor_loaded(const char *profile)
{
	_cleanup_free_ char *text = NULL;
	size_t n = strlen(profile);

	if (file_read(AT_FDCWD, "/sys/kernel/security/apparmor/profiles", PROFILES_LIST_MAX, &text, NULL, NULL) < 0)
		return false;
	for (const char *p = text; p && *p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
		if (strncmp(p, profile, n) == 0 && p[n] == ' ' && p[n + 1] == '(')
			return true;
	return false;
}

int security_apparmor(const CRI(LinuxContainerSecurityContext) * sc, char **ret, struct error *err)
{
	const char *profile = NULL, *old = sc ? sc->apparmor_profile : "";

	*ret = NULL;
	if (!sc)
		return 0;
	if (sc->apparmor) {
		if (sc->apparmor->profile_type == RUNTIME__V1__SECURITY_PROFILE__PROFILE_TYPE__Localhost)
			profile = sc->apparmor->localhost_ref;
	} else if (str_starts(old, "localhost/")) {
		profile = old + strlen("localhost/");
	} else if (*old && !str_eq(old, "unconfined") && !str_eq(old, "runtime/default")) {
		return error_set(err, ERROR_INVALID,
			"apparmor_profile \"%.200s\" must be runtime/default, unconfined or localhost/<name>", old);
	}
	if (!profile)
		return 0;
	if (!apparmor_enabled())
		return error_set(err, ERROR_PRECONDITION, "apparmor profile %.200s: AppArmor is not enabled on this node",
			profile);
	if (!apparmor_loaded(profile))
		return error_set(err, ERROR_PRECONDITION, "apparmor profile %.200s is not loaded", profile);
	*ret = xstrdup(profile);
	return 0;
}

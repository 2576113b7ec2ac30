/*
 * user.h - purpose: who a container's first process is: uid, gid, groups and home, from the request and the image's
 * passwd and group files. Pure; rootfs_file.h reads the files.
 */
#pragma once
#include "common/cri/message.h"

enum { USER_GROUPS_MAX = 65536 }; /* NGROUPS_MAX */

struct user {
	uint32_t uid;
	uint32_t gid;
	uint32_t *groups; /* the primary gid first */
	size_t n_groups;
	char *home; /* NULL: not known */
};
void user_done(struct user *user);

/* `passwd` and `group` are the files' text, NULL when the image has none. `security` may be NULL. Precedence:
 * run_as_username, run_as_user, the image's USER ("user", "uid", "user:group", ...). An all-digit name is a number, or an
 * error when it is none that a uid can have. With policy Merge the groups that name the user are added, with Strict
 * only what the request says. */
int user_resolve(const CRI(LinuxContainerSecurityContext) * security, const char *image_user, const char *passwd,
	const char *group, struct user *ret, struct error *err) MUST_USE;

/* Does user_resolve() need the two files for more than the home directory? */
bool user_needs_files(const CRI(LinuxContainerSecurityContext) * security, const char *image_user);

/* user.c - purpose: who a container's first process is, from the request and the image's user database. Pure. */
#include "runtime-lite/spec/user.h"

#include <errno.h>

enum { FIELDS_MAX = 7, ID_MAX = 0x7fffffff };

void user_done(struct user *user)
{
	free(user->groups);
	free(user->home);
	*user = (struct user){ 0 };
}

/* One line of passwd or group: "name:x:1000:1000:...", as slices. */
struct record {
	struct bytes field[FIELDS_MAX];
	int n;
};

/* Takes the next line that has at least `min` fields; false at the end. */
static bool record_next(const char **text, int min, struct record *ret)
{
	while (*text && **text) {
		const char *end = strchrnul(*text, '\n');
		const char *p = *text;

		*text = *end ? end + 1 : end;
		ret->n = 0;
		while (ret->n < FIELDS_MAX) {
			const char *colon = memchr(p, ':', (size_t)(end - p));

			ret->field[ret->n++] = (struct bytes){ p, (size_t)((colon ? colon : end) - p) };
			if (!colon)
				break;
			p = colon + 1;
		}
		if (ret->n >= min && ret->field[0].len && *ret->field[0].ptr != '#')
			return true;
	}
	return false;
}

static bool bytes_eq(struct bytes b, const char *text)
{
	return b.len == strlen(text) && memcmp(b.ptr, text, b.len) == 0;
}

static bool id_parse(struct bytes b, uint32_t *ret)
{
	uint64_t v = 0;

	if (!b.len || b.len > 10)
		return false;
	for (size_t i = 0; i < b.len; i++) {
		if (b.ptr[i] < '0' || b.ptr[i] > '9')
			return false;
		v = v * 10 + (uint64_t)(b.ptr[i] - '0');
	}
	if (v > ID_MAX)
		return false;
	*ret = (uint32_t)v;
	return true;
}

static bool all_digits(const char *text)
{
	return *text && strspn(text, "0123456789") == strlen(text);
}

/* The entry of a name, or of a uid when name is NULL. */
static bool passwd_find(const char *passwd, const char *name, uint32_t uid, struct record *ret)
{
	uint32_t id;

	while (record_next(&passwd, 4, ret))
		if (name ? bytes_eq(ret->field[0], name) : id_parse(ret->field[2], &id) && id == uid)
			return true;
	return false;
}

static void take_entry(struct user *user, char **name, const struct record *entry)
{
	uint32_t id;

	if (id_parse(entry->field[2], &id))
		user->uid = id;
	if (id_parse(entry->field[3], &id))
		user->gid = id;
	free(user->home);
	user->home = entry->n > 5 && entry->field[5].len ? xstrndup(entry->field[5].ptr, entry->field[5].len) : NULL;
	free(*name);
	*name = xstrndup(entry->field[0].ptr, entry->field[0].len);
}

static int user_by_number(struct user *user, char **name, int64_t uid, const char *passwd, struct error *err)
{
	struct record entry;

	if (uid < 0 || uid > ID_MAX)
		return error_set(err, ERROR_INVALID, "user id %lld is out of range (0 to %d)", (long long)uid, ID_MAX);
	user->uid = (uint32_t)uid;
	if (passwd_find(passwd, NULL, user->uid, &entry))
		take_entry(user, name, &entry);
	return 0;
}

static int user_by_text(struct user *user, char **name, const char *text, const char *passwd, struct error *err)
{
	struct record entry;
	uint32_t id;

	if (all_digits(text)) {
		if (!id_parse((struct bytes){ text, strlen(text) }, &id))
			return error_set(err, ERROR_INVALID, "user id %.40s is out of range (0 to %d)", text, ID_MAX);
		return user_by_number(user, name, id, passwd, err);
	}
	if (!passwd_find(passwd, text, 0, &entry))
		return error_set(err, ERROR_INVALID, "unable to find user %.80s: no matching entry in the image's /etc/passwd",
			text);
	if (!id_parse(entry.field[2], &id))
		return error_set(err, ERROR_INVALID, "user %.80s: the image's /etc/passwd has a bad uid", text);
	take_entry(user, name, &entry);
	return 0;
}

static int group_by_text(struct user *user, const char *text, const char *group, struct error *err)
{
	struct record entry;
	uint32_t id;

	if (all_digits(text)) {
		if (!id_parse((struct bytes){ text, strlen(text) }, &id))
			return error_set(err, ERROR_INVALID, "group id %.40s is out of range (0 to %d)", text, ID_MAX);
		user->gid = id;
		return 0;
	}
	while (record_next(&group, 3, &entry)) {
		if (bytes_eq(entry.field[0], text) && id_parse(entry.field[2], &id)) {
			user->gid = id;
			return 0;
		}
	}
	return error_set(err, ERROR_INVALID, "unable to find group %.80s: no matching entry in the image's /etc/group", text);
}

static int group_add(struct user *user, uint32_t gid, struct error *err)
{
	for (size_t i = 0; i < user->n_groups; i++)
		if (user->groups[i] == gid)
			return 0;
	if (user->n_groups >= USER_GROUPS_MAX)
		return error_set(err, ERROR_INVALID, "more than %d groups", USER_GROUPS_MAX);
	if ((user->n_groups & (user->n_groups + 1)) == 0 || !user->groups) /* grow at 0, 1, 3, 7, ... */
		user->groups = xreallocarray(user->groups, user->n_groups * 2 + 2, sizeof(*user->groups));
	user->groups[user->n_groups++] = gid;
	return 0;
}

/* Is `name` in the comma-separated list of members? */
static bool is_member(struct bytes members, const char *name)
{
	const char *p = members.ptr, *end = members.ptr + members.len;

	while (p < end) {
		const char *comma = memchr(p, ',', (size_t)(end - p));
		size_t n = (size_t)((comma ? comma : end) - p);

		if (bytes_eq((struct bytes){ p, n }, name))
			return true;
		p += n + 1;
	}
	return false;
}

static int groups_of_image(struct user *user, const char *name, const char *group, struct error *err)
{
	struct record entry;
	uint32_t id;

	while (record_next(&group, 4, &entry)) {
		if (!is_member(entry.field[3], name) || !id_parse(entry.field[2], &id))
			continue;
		int r = group_add(user, id, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int find_user(struct user *user, char **name, const CRI(LinuxContainerSecurityContext) * security,
	const char *image_user, const char *passwd, const char *group, struct error *err)
{
	if (security && *security->run_as_username)
		return user_by_text(user, name, security->run_as_username, passwd, err);
	if (security && security->run_as_user)
		return user_by_number(user, name, security->run_as_user->value, passwd, err);
	if (str_empty(image_user))
		return user_by_number(user, name, 0, passwd, err);

	const char *colon = strchr(image_user, ':');
	_cleanup_free_ char *text = xstrndup(image_user, colon ? (size_t)(colon - image_user) : strlen(image_user));
	int r = *text ? user_by_text(user, name, text, passwd, err) : user_by_number(user, name, 0, passwd, err);
	if (r == 0 && colon && colon[1])
		r = group_by_text(user, colon + 1, group, err);
	return r < 0 ? error_prefix(err, "the image's USER") : 0;
}

static int check_group_request(const CRI(LinuxContainerSecurityContext) * security, struct error *err)
{
	if (!security || !security->run_as_group)
		return 0;
	if (!security->run_as_user && !*security->run_as_username)
		return error_set(err, ERROR_INVALID, "run_as_group is specified without run_as_user or run_as_username");
	if (security->run_as_group->value < 0 || security->run_as_group->value > ID_MAX)
		return error_set(err, ERROR_INVALID, "run_as_group %lld is out of range (0 to %d)",
			(long long)security->run_as_group->value, ID_MAX);
	return 0;
}

int user_resolve(const CRI(LinuxContainerSecurityContext) * security, const char *image_user, const char *passwd,
	const char *group, struct user *ret, struct error *err)
{
	_cleanup_(user_done) struct user user = { 0 };
	_cleanup_free_ char *name = NULL;

	int r = check_group_request(security, err);
	if (r == 0)
		r = find_user(&user, &name, security, image_user, passwd, group, err);
	if (r < 0)
		return r;
	if (security && security->run_as_group)
		user.gid = (uint32_t)security->run_as_group->value;

	r = group_add(&user, user.gid, err);
	bool strict = security && security->supplemental_groups_policy == RUNTIME__V1__SUPPLEMENTAL_GROUPS_POLICY__Strict;
	if (r == 0 && !strict && name)
		r = groups_of_image(&user, name, group, err);
	for (size_t i = 0; security && r == 0 && i < security->n_supplemental_groups; i++) {
		int64_t gid = security->supplemental_groups[i];

		if (gid < 0 || gid > ID_MAX)
			return error_set(err, ERROR_INVALID, "supplemental group %lld is out of range (0 to %d)",
				(long long)gid, ID_MAX);
		r = group_add(&user, (uint32_t)gid, err);
	}
	if (r < 0)
		return r;
	*ret = user;
	user = (struct user){ 0 };
	return 0;
}

bool user_needs_files(const CRI(LinuxContainerSecurityContext) * security, const char *image_user)
{
	bool named = security && *security->run_as_username && !all_digits(security->run_as_username);

	if (security && (*security->run_as_username || security->run_as_user))
		return named;
	return !str_empty(image_user) && strspn(image_user, "0123456789:") != strlen(image_user);
}

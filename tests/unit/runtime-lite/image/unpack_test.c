/* unpack_test.c - purpose: layers, also hostile ones, into a directory: what is there afterwards, and what stays outside. */
#include "runtime-lite/image/unpack.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "common/sys/file.h"
#include "tests/unit/runtime-lite/image/tar_builder.h"

/* Each test has <dir>/root, the layer; <dir>/outside, which nothing may touch; <dir>/lower0 (top), lower1. */
static char dir[64];
static int root_fd, dir_fd, lower_fds[2];
static size_t n_lower;

static void setup(void)
{
	strcpy(dir, "/tmp/unpack-test.XXXXXX");
	umask(0);
	ck_assert_ptr_nonnull(mkdtemp(dir));
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_eq(mkdirat(dir_fd, "root", 0755), 0);
	ck_assert_int_eq(mkdirat(dir_fd, "outside", 0755), 0);
	ck_assert_int_eq(mkdirat(dir_fd, "lower0", 0755), 0);
	ck_assert_int_eq(mkdirat(dir_fd, "lower1", 0755), 0);
	ck_assert_int_eq(file_replace(dir_fd, "outside/file", "untouched", 9, 0600, NULL), 0);
	root_fd = openat(dir_fd, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	lower_fds[0] = openat(dir_fd, "lower0", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	lower_fds[1] = openat(dir_fd, "lower1", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	n_lower = 0;
}

static void teardown(void)
{
	struct stat st;
	_cleanup_free_ char *text = NULL;

	/* Whatever the archive was: */
	ck_assert_int_eq(file_read(dir_fd, "outside/file", 100, &text, NULL, NULL), 0);
	ck_assert_str_eq(text, "untouched");
	ck_assert_int_eq(fstatat(dir_fd, "outside/file", &st, 0), 0);
	ck_assert_uint_eq(st.st_nlink, 1);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	ck_assert_int_eq(fstatat(dir_fd, "outside", &st, 0), 0);
	ck_assert_uint_eq(st.st_nlink, 2);
	close(root_fd);
	close(dir_fd);
	close(lower_fds[0]);
	close(lower_fds[1]);
	ck_assert_int_eq(dir_remove(AT_FDCWD, dir, NULL), 0);
}

static int give_lower(void *data, const int **ret_fds, size_t *ret_n, struct error *err)
{
	(void)data, (void)err;
	*ret_fds = lower_fds;
	*ret_n = n_lower;
	return 0;
}

static int unpack_with(const struct str *in, struct unpack_limits limits, struct error *err)
{
	struct unpack_options options = { .root_fd = root_fd, .limits = limits, .lower = give_lower };
	_cleanup_(unpack_free_p) struct unpack *u = unpack_new(&options);
	_cleanup_(tar_free_p) struct tar *tar = tar_new(&unpack_tar_handler, u);
	int r = tar_feed(tar, in->buf, in->len, err);

	if (r == 0)
		r = tar_finish(tar, err);
	return r == 0 ? unpack_finish(u, err) : r;
}

static int unpack_specs(const struct tar_spec *specs, size_t n, struct error *err)
{
	_cleanup_(str_done) struct str in = STR_INIT;

	for (size_t i = 0; i < n && specs[i].name; i++)
		tar_add(&in, &specs[i]);
	tar_end(&in);
	return unpack_with(&in, (struct unpack_limits){ 0 }, err);
}

static bool is_opaque(const char *path)
{
	_cleanup_fd_ int fd = openat(root_fd, path, O_RDONLY | O_DIRECTORY);
	char value[4];

	return fd >= 0 && fgetxattr(fd, "trusted.overlay.opaque", value, sizeof(value)) == 1 && value[0] == 'y';
}

/* "name type mode owner content-or-target" of a path below the root; "name -" if absent. */
static char *describe(const char *path)
{
	struct stat st;

	if (fstatat(root_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return xasprintf("%s -", path);
	if (S_ISLNK(st.st_mode)) {
		char target[4096];
		ssize_t n = readlinkat(root_fd, path, target, sizeof(target));

		return xasprintf("%s l %.*s", path, (int)MAX(n, 0), target);
	}
	if (S_ISREG(st.st_mode)) {
		_cleanup_free_ char *text = NULL;

		ck_assert_int_eq(file_read(root_fd, path, 1 << 20, &text, NULL, NULL), 0);
		return xasprintf("%s f %o %u:%u %s", path, st.st_mode & 07777, st.st_uid, st.st_gid, text);
	}
	if (S_ISCHR(st.st_mode) && st.st_rdev == 0)
		return xasprintf("%s w", path);
	if (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode))
		return xasprintf("%s %c %o %u,%u", path, S_ISCHR(st.st_mode) ? 'c' : 'b', st.st_mode & 07777, major(st.st_rdev),
			minor(st.st_rdev));
	if (S_ISFIFO(st.st_mode))
		return xasprintf("%s p %o", path, st.st_mode & 07777);
	return xasprintf("%s d%s %o %u:%u", path, is_opaque(path) ? "o" : "", st.st_mode & 07777, st.st_uid, st.st_gid);
}

enum { SPECS = 8, WANTS = 6 };

static const struct {
	const char *name;
	struct tar_spec specs[SPECS];
	const char *want[WANTS];
} good[] = {
	{ "files and directories", { { '5', "d/", .mode = 0750, .uid = 5, .gid = 6 }, { '0', "d/f", NULL, "x", 0640, 7, 8 } },
		{ "d d 750 5:6", "d/f f 640 7:8 x" } },
	{ "leading slash and dots", { { '0', "/a/./b//c", NULL, "x" }, { '0', "./d", NULL, "y" } }, { "a/b/c f 644 0:0 x", "d f 644 0:0 y" } },
	{ "up and down again", { { '0', "a/b/../c", NULL, "x" } }, { "a/c f 644 0:0 x", "a/b -" } },
	{ "parents that nobody named", { { '0', "a/b/c/d", NULL, "x" } }, { "a d 755 0:0", "a/b/c d 755 0:0" } },
	{ "the root itself", { { '5', "./", .mode = 0711, .uid = 3 } }, { ". d 711 3:0" } },
	{ "mode 000", { { '0', "f", NULL, "x", 010000 }, { '5', "d/", .mode = 010000 }, { '0', "d/f", NULL, "y", 010000 } },
		{ "f f 0 0:0 x", "d d 0 0:0", "d/f f 0 0:0 y" } },
	{ "a file of mode 000 is replaced", { { '0', "f", NULL, "x", 010000 }, { '0', "f", NULL, "y", 0600 } }, { "f f 600 0:0 y" } },
	{ "set-id and sticky", { { '0', "s", NULL, "x", 06755, 1, 2 }, { '5', "t/", .mode = 03777, .gid = 9 } },
		{ "s f 6755 1:2 x", "t d 3777 0:9" } },
	{ "owners without names", { { '0', "f", NULL, "x", 0600, 65534, 100000 } }, { "f f 600 65534:100000 x" } },
	{ "devices and FIFOs", { { '3', "null", .mode = 0666, .major = 1, .minor = 3 }, { '4', "disk", .mode = 0660, .major = 8 }, { '6', "p", .mode = 0622 } },
		{ "null c 666 1,3", "disk b 660 8,0", "p p 622" } },
	{ "links", { { '0', "f", NULL, "x", 0600, 4 }, { '1', "d/h", "f" }, { '2', "s", "/etc/passwd" }, { '2', "u", "../../../x" } },
		{ "d/h f 600 4:0 x", "s l /etc/passwd", "u l ../../../x" } },
	{ "hard link with a leading slash", { { '0', "a/f", NULL, "x" }, { '1', "h", "/a/f" } }, { "h f 644 0:0 x" } },
	{ "hard link to a symbolic link", { { '2', "s", "nowhere" }, { '1', "h", "s" } }, { "h l nowhere" } },
	{ "last one wins", { { '0', "f", NULL, "1" }, { '0', "f", NULL, "2" }, { '2', "f", "x" }, { '0', "f", NULL, "3" } }, { "f f 644 0:0 3" } },
	{ "directory twice keeps what is in it", { { '5', "d/", .mode = 0700 }, { '0', "d/f", NULL, "x" }, { '5', "d/", .mode = 0711 } },
		{ "d d 711 0:0", "d/f f 644 0:0 x" } },
	{ "directory, link, directory", { { '5', "d/" }, { '0', "d/f", NULL, "x" }, { '2', "d", "elsewhere" }, { '5', "d/", .mode = 0700 } },
		{ "d d 700 0:0", "d/f -" } },
	{ "link over link", { { '2', "s", "a" }, { '2', "s", "b" } }, { "s l b" } },
	{ "file over a full directory", { { '0', "d/e/f", NULL, "x" }, { '0', "d", NULL, "y" } }, { "d f 644 0:0 y" } },
	{ "through a link inside of the layer", { { '5', "usr/lib/" }, { '2', "lib", "usr/lib" }, { '0', "lib/x", NULL, "x" } },
		{ "lib l usr/lib", "usr/lib/x f 644 0:0 x" } },
	{ "through an absolute link", { { '5', "usr/lib/" }, { '2', "lib", "/usr/lib" }, { '0', "lib/x", NULL, "x" } }, { "usr/lib/x f 644 0:0 x" } },
	{ "through a link to nowhere", { { '2', "l", "/made/here" }, { '0', "l/f", NULL, "x" } }, { "made/here/f f 644 0:0 x", "l l /made/here" } },
	{ "through a relative link to nowhere", { { '2', "a/l", "../b/c/" }, { '0', "a/l/f", NULL, "x" } }, { "b/c/f f 644 0:0 x" } },
	{ "through links that lead up", { { '2', "l", "../../../.." }, { '0', "l/f", NULL, "x" } }, { "f f 644 0:0 x" } },
	{ "link swapped between entries", { { '5', "d/" }, { '0', "d/a", NULL, "1" }, { '2', "d", "/e" }, { '0', "d/b", NULL, "2" } },
		{ "d l /e", "e/b f 644 0:0 2", "d/a -" } },
	{ "whiteout", { { '0', "d/.wh.gone" } }, { "d/gone w", "d/.wh.gone -" } },
	{ "whiteout with content", { { '0', ".wh.gone", NULL, "ignored" }, { '0', "f", NULL, "x" } }, { "gone w", "f f 644 0:0 x" } },
	{ "whiteout, then the name anew", { { '0', ".wh.f" }, { '0', "f", NULL, "x" } }, { "f f 644 0:0 x" } },
	{ "the name, then its whiteout", { { '0', "f", NULL, "x" }, { '0', ".wh.f" } }, { "f f 644 0:0 x" } },
	{ "whiteout, then a directory", { { '0', ".wh.d" }, { '5', "d/" }, { '0', "d/f", NULL, "x" } }, { "d do 644 0:0", "d/f f 644 0:0 x" } },
	{ "a directory, then its whiteout", { { '5', "d/", .mode = 0755 }, { '0', "d/f", NULL, "x" }, { '0', ".wh.d" } },
		{ "d do 755 0:0", "d/f f 644 0:0 x" } },
	{ "whiteout, then something below it", { { '0', ".wh.d" }, { '0', "d/f", NULL, "x" } }, { "d do 755 0:0", "d/f f 644 0:0 x" } },
	{ "opaque first", { { '5', "d/", .mode = 0755 }, { '0', "d/.wh..wh..opq" }, { '0', "d/f", NULL, "x" } }, { "d do 755 0:0", "d/f f 644 0:0 x" } },
	{ "opaque last", { { '0', "d/f", NULL, "x" }, { '5', "d/", .mode = 0755 }, { '0', "d/.wh..wh..opq" } },
		{ "d do 755 0:0", "d/f f 644 0:0 x", "d/.wh..wh..opq -" } },
	{ "opaque only", { { '0', "d/.wh..wh..opq" } }, { "d do 755 0:0" } },
	{ "opaque root", { { '0', ".wh..wh..opq" } }, { ". do 755 0:0" } },
	{ "aufs' own files", { { '5', ".wh..wh.plnk/" }, { '0', ".wh..wh.aufs", NULL, "x" } }, { ".wh..wh.plnk -", ".wh..wh.aufs -" } },
	{ "a 0/0 device is a whiteout", { { '3', "f" } }, { "f w" } },
	{ "a whiteout makes place for a hard link", { { '0', "a", NULL, "x" }, { '0', ".wh.b" }, { '1', "b", "a" } }, { "b f 644 0:0 x" } },
};

START_TEST(good_case)
{
	struct error err = ERROR_INIT;

	ck_assert_msg(unpack_specs(good[_i].specs, SPECS, &err) == 0, "%s: %s", good[_i].name, err.text);
	for (size_t i = 0; i < WANTS && good[_i].want[i]; i++) {
		_cleanup_free_ char *path = xstrndup(good[_i].want[i], strcspn(good[_i].want[i], " "));
		_cleanup_free_ char *got = describe(path);

		ck_assert_msg(strcmp(got, good[_i].want[i]) == 0, "%s: %s instead of %s", good[_i].name, got, good[_i].want[i]);
	}
}
END_TEST

static const struct {
	const char *name;
	struct tar_spec specs[SPECS];
	const char *why;
} hostile[] = {
	{ "dot dot", { { '0', "../outside/file", NULL, "evil" } }, "\"../outside/file\": leaves the root filesystem" },
	{ "deeper dot dot", { { '0', "a/../../outside/file", NULL, "evil" } }, "leaves the root filesystem" },
	{ "dot dot alone", { { '5', ".." } }, "leaves the root filesystem" },
	{ "absolute dot dot", { { '0', "/../outside/file", NULL, "evil" } }, "leaves the root filesystem" },
	{ "hard link to outside", { { '1', "h", "../outside/file" } }, "hard link to \"../outside/file\": leaves the root filesystem" },
	{ "hard link to an absolute path", { { '1', "h", "/etc/passwd" } }, "no file of this layer or one below" },
	{ "hard link through a link to outside", { { '2', "l", "../outside" }, { '1', "h", "l/file" } }, "no file of this layer" },
	{ "hard link to a directory", { { '5', "d/" }, { '1', "h", "d" } }, "hard link to the directory" },
	{ "hard link to the root", { { '1', "h", "." } }, "hard link to the root" },
	{ "hard link to itself", { { '0', "f", NULL, "x" }, { '1', "f", "f" } }, "itself" },
	{ "hard link to nothing", { { '1', "h", "" } }, "hard link to the root" },
	{ "hard link to a whiteout", { { '0', ".wh.f" }, { '1', "h", "f" } }, "no file of this layer" },
	{ "links in a circle", { { '2', "a", "b" }, { '2', "b", "a" }, { '0', "a/f", NULL, "x" } }, "links" },
	{ "link to itself", { { '2', "a", "a/x" }, { '0', "a/f", NULL, "x" } }, "links" },
	{ "growing links", { { '2', "a", "a/a" }, { '0', "a/f", NULL, "x" } }, "links" },
	{ "below a file", { { '0', "f", NULL, "x" }, { '0', "f/g", NULL, "y" } }, "not a directory" },
	{ "below a device", { { '3', "f", .major = 1, .minor = 3 }, { '0', "f/g", NULL, "y" } }, "not a directory" },
	{ "root as a file", { { '0', ".", NULL, "x" } }, "can only be a directory" },
	{ "root as a link", { { '2', ".", "/outside" } }, "can only be a directory" },
	{ "symlink to nothing", { { '2', "s", "" } }, "without a target" },
	{ "whiteout of dot dot", { { '0', "d/.wh..." } }, NULL }, /* of a file called "..": that is ".wh." + ".." */
	{ "whiteout of dot", { { '0', "d/.wh.." } }, "whiteout of nothing" },
	{ "whiteout of nothing", { { '0', "d/.wh." } }, "whiteout of nothing" },
	{ "a part that is too long", { { '0', "n/"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", NULL, "x", .gnu_long = true } }, "longer than 255" },
};

START_TEST(hostile_case)
{
	struct error err = ERROR_INIT;
	const char *why = hostile[_i].why ? hostile[_i].why : "whiteout of nothing";

	ck_assert_msg(unpack_specs(hostile[_i].specs, SPECS, &err) < 0, "%s was taken", hostile[_i].name);
	ck_assert_msg(strstr(err.text, why), "%s: %s", hostile[_i].name, err.text);
}
END_TEST

/* The classic: a link that leads out by its text, and then a file "through" it: it lands inside. */
START_TEST(links_that_lead_out)
{
	_cleanup_free_ char *absolute = xasprintf("%s/outside", dir);
	_cleanup_free_ char *path = xasprintf("root%s/outside/file", dir);
	_cleanup_free_ char *inside = NULL;
	struct error err = ERROR_INIT;
	struct tar_spec specs[] = { { '2', "l", absolute }, { '0', "l/file", NULL, "evil", 0777 } };

	ck_assert_msg(unpack_specs(specs, 2, &err) == 0, "%s", err.text);
	ck_assert_int_eq(file_read(dir_fd, path, 100, &inside, NULL, NULL), 0);
	ck_assert_str_eq(inside, "evil");
}
END_TEST

START_TEST(entry_times)
{
	struct tar_spec specs[] = { { '5', "d/", .mtime = 1000 }, { '0', "d/f", NULL, "x", .pax = "mtime=1700000000.123456789" },
		{ '2', "d/l", "f", .mtime = 3000 }, { '5', "./", .mtime = 4000 }, { '6', "d/p", .mtime = 5000 } };
	struct stat st;

	ck_assert_int_eq(unpack_specs(specs, ARRAY_LEN(specs), NULL), 0);
	fstatat(root_fd, "d", &st, 0);
	ck_assert_int_eq(st.st_mtim.tv_sec, 1000);
	fstatat(root_fd, "d/f", &st, 0);
	ck_assert_int_eq(st.st_mtim.tv_sec, 1700000000);
	ck_assert_int_eq(st.st_mtim.tv_nsec, 123456789);
	fstatat(root_fd, "d/l", &st, AT_SYMLINK_NOFOLLOW);
	ck_assert_int_eq(st.st_mtim.tv_sec, 3000);
	fstatat(root_fd, "d/p", &st, 0);
	ck_assert_int_eq(st.st_mtim.tv_sec, 5000);
	fstat(root_fd, &st);
	ck_assert_int_eq(st.st_mtim.tv_sec, 4000);
}
END_TEST

START_TEST(attributes)
{
	/* cap_net_raw=ep, version 2 */
	static const char capability[20] = { 1, 0, 0, 2, 0, 32 };
	_cleanup_(str_done) struct str in = STR_INIT, pax = STR_INIT, record = STR_INIT;
	struct error err = ERROR_INIT;
	char value[64];

	str_add(&record, "SCHILY.xattr.security.capability=");
	str_add_bytes(&record, capability, sizeof(capability));
	tar_pax_record(&pax, record.buf, record.len);
	static const char *const others[] = { "SCHILY.xattr.user.a=1", "SCHILY.xattr.trusted.overlay.opaque=y",
		"SCHILY.xattr.trusted.overlay.redirect=/etc", "SCHILY.xattr.user.overlay.opaque=y", "SCHILY.xattr.security.selinux=x",
		"SCHILY.xattr.trusted.x=1" };
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		tar_pax_record(&pax, others[i], strlen(others[i]));
	tar_header(&in, 'x', "pax", NULL, pax.len, NULL);
	tar_body(&in, pax.buf, pax.len);
	tar_add(&in, &(struct tar_spec){ '0', "ping", NULL, "x", 04755, 1, 1 });
	tar_header(&in, 'x', "pax", NULL, pax.len, NULL);
	tar_body(&in, pax.buf, pax.len);
	tar_add(&in, &(struct tar_spec){ '5', "d/" });
	tar_end(&in);
	int r = unpack_with(&in, (struct unpack_limits){ 0 }, &err);
	/* security.capability on a directory is nothing that a kernel takes. */
	ck_assert_msg(r == 0 || strstr(err.text, "security.capability"), "%s", err.text);
	_cleanup_fd_ int fd = openat(root_fd, "ping", O_RDONLY);
	ck_assert_int_eq(fgetxattr(fd, "security.capability", value, sizeof(value)), 20);
	ck_assert_int_eq(memcmp(value, capability, 20), 0);
	ck_assert_int_eq(fgetxattr(fd, "user.a", value, sizeof(value)), 1);
	ck_assert_int_lt(fgetxattr(fd, "trusted.overlay.redirect", value, sizeof(value)), 0);
	ck_assert_int_lt(fgetxattr(fd, "user.overlay.opaque", value, sizeof(value)), 0);
	ck_assert_int_lt(fgetxattr(fd, "trusted.x", value, sizeof(value)), 0);
	ck_assert(!is_opaque("d"));
	_cleanup_free_ char *got = describe("ping");
	ck_assert_str_eq(got, "ping f 4755 1:1 x");
}
END_TEST

/* Directories that the archive does not name look as in the layers below; a hard link reaches files there. */
START_TEST(lower_layers)
{
	struct stat a, b;
	struct timespec times[2] = { { 77, 0 }, { 77, 0 } };

	n_lower = 2;
	mkdirat(lower_fds[1], "tmp", 01777);
	mkdirat(lower_fds[1], "home", 0700);
	mkdirat(lower_fds[1], "home/u", 0750);
	ck_assert_int_eq(fchownat(lower_fds[1], "home/u", 1000, 1001, 0), 0);
	utimensat(lower_fds[1], "home/u", times, 0);
	mknodat(lower_fds[0], "gone", S_IFCHR, 0);
	mkdirat(lower_fds[1], "gone", 0700);
	mkdirat(lower_fds[1], "covered", 0700);
	ck_assert_int_eq(symlinkat("/outside", lower_fds[0], "covered"), 0);
	ck_assert_int_eq(file_replace(lower_fds[1], "tool", "tool", 4, 0755, NULL), 0);
	ck_assert_int_eq(fchownat(lower_fds[1], "tool", 3, 4, 0), 0);
	ck_assert_int_eq(fchmodat(lower_fds[1], "tool", 04755, 0), 0);
	ck_assert_int_eq(fchownat(lower_fds[0], ".", 9, 9, 0), 0);
	ck_assert_int_eq(fchmodat(lower_fds[0], ".", 0751, 0), 0);
	struct tar_spec specs[] = { { '0', "tmp/f", NULL, "x" }, { '0', "home/u/f", NULL, "x" }, { '0', "gone/f", NULL, "x" },
		{ '0', "covered/f", NULL, "x" }, { '1', "bin/copy", "tool" } };
	struct error err = ERROR_INIT;

	ck_assert_msg(unpack_specs(specs, ARRAY_LEN(specs), &err) == 0, "%s", err.text);
	static const char *const want[] = { "tmp d 1777 0:0", "home d 700 0:0", "home/u d 750 1000:1001", "gone d 755 0:0",
		"covered d 755 0:0", "tool f 4755 3:4 tool", "bin/copy f 4755 3:4 tool", ". d 751 9:9" };
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		_cleanup_free_ char *path = xstrndup(want[i], strcspn(want[i], " "));
		_cleanup_free_ char *got = describe(path);

		ck_assert_str_eq(got, want[i]);
	}
	fstatat(root_fd, "tool", &a, 0);
	fstatat(root_fd, "bin/copy", &b, 0);
	ck_assert_uint_eq(a.st_ino, b.st_ino);
	fstatat(root_fd, "home/u", &a, 0);
	ck_assert_int_eq(a.st_mtim.tv_sec, 77);
}
END_TEST

START_TEST(limits)
{
	_cleanup_(str_done) struct str in = STR_INIT, deep = STR_INIT;
	struct error err = ERROR_INIT;

	for (int i = 0; i < 4; i++) {
		char name[8];

		snprintf(name, sizeof(name), "f%d", i);
		tar_add(&in, &(struct tar_spec){ '0', name, NULL, "12345" });
	}
	tar_end(&in);
	ck_assert_int_lt(unpack_with(&in, (struct unpack_limits){ .max_entries = 3 }, &err), 0);
	ck_assert_int_eq(err.code, ERROR_EXHAUSTED);
	ck_assert(strstr(err.text, "3 entries"));
	ck_assert_int_lt(unpack_with(&in, (struct unpack_limits){ .max_bytes = 19 }, &err), 0);
	ck_assert(strstr(err.text, "19 bytes"));
	ck_assert_int_eq(unpack_with(&in, (struct unpack_limits){ .max_bytes = 20, .max_entries = 4 }, &err), 0);

	for (int i = 0; i < 257; i++)
		str_add(&deep, "d/");
	str_reset(&in);
	tar_add(&in, &(struct tar_spec){ '5', deep.buf, .gnu_long = true });
	tar_end(&in);
	ck_assert_int_lt(unpack_with(&in, (struct unpack_limits){ 0 }, &err), 0);
	ck_assert(strstr(err.text, "256 directories deep"));
}
END_TEST

/* Links stack directories: each name is short enough, the tree would be too deep to be removed. */
START_TEST(deep_by_links)
{
	_cleanup_(str_done) struct str in = STR_INIT, deep = STR_INIT, name = STR_INIT, before = STR_INIT;
	struct error err = ERROR_INIT;
	int r;

	for (int i = 0; i < 100; i++)
		str_add(&deep, "d/");
	for (int i = 0; i < 20; i++) {
		str_reset(&name);
		str_addf(&name, "%s%s", i ? "l/" : "", deep.buf);
		tar_add(&in, &(struct tar_spec){ '5', name.buf, .gnu_long = true });
		/* l -> where we are now */
		str_addf(&before, "%s", deep.buf);
		_cleanup_free_ char *pax = xasprintf("linkpath=/%.*s", (int)MIN(before.len, 4000u), before.buf);
		tar_add(&in, &(struct tar_spec){ '2', "l", "x", .pax = pax });
	}
	tar_end(&in);
	r = unpack_with(&in, (struct unpack_limits){ 0 }, &err);
	ck_assert_int_lt(r, 0);
	ck_assert_msg(strstr(err.text, "deep"), "%s", err.text);
}
END_TEST

int main(void)
{
	if (geteuid() != 0) {
		printf("skipped: unpacking needs root\n100%%: Checks: 0, Failures: 0, Errors: 0\n");
		return 0;
	}
	Suite *s = suite_create("unpack");
	TCase *t = tcase_create("unpack");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, good_case, 0, ARRAY_LEN(good));
	tcase_add_loop_test(t, hostile_case, 0, ARRAY_LEN(hostile));
	tcase_add_test(t, links_that_lead_out);
	tcase_add_test(t, entry_times);
	tcase_add_test(t, attributes);
	tcase_add_test(t, lower_layers);
	tcase_add_test(t, limits);
	tcase_add_test(t, deep_by_links);
	suite_add_tcase(s, t);
	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}

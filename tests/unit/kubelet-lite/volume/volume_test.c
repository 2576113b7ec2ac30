/* volume_test.c - purpose: payload files switched at once, sub-paths that cannot leave, volumes up and down; as root. */
#include "tests/unit/kubelet-lite/core/pods.h"

#include "common/sys/file.h"
#include "kubelet-lite/volume/payload_write.h"
#include "kubelet-lite/volume/volume.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

static char dir[64];

static void setup(void)
{
	strcpy(dir, "/tmp/volume_test.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void teardown(void)
{
	ck_assert_int_eq(volumes_tear_down(dir, true, NULL), 0);
	ck_assert_int_lt(access(dir, F_OK), 0);
}

static char *at(const char *path)
{
	return xasprintf("%s/%s", dir, path);
}

static char *text_of(const char *path)
{
	_cleanup_free_ char *full = at(path);
	char *text = NULL;

	return file_read(AT_FDCWD, full, 4096, &text, NULL, NULL) == 0 ? text : xstrdup("(none)");
}

static void write_payload(const char *const *pairs, int64_t gid)
{
	struct payload_file files[4];
	struct payload p = { files, 0 };
	struct error err = ERROR_INIT;

	for (; pairs[p.n * 2]; p.n++)
		files[p.n] = (struct payload_file){ (char *)pairs[p.n * 2], (char *)pairs[p.n * 2 + 1],
			strlen(pairs[p.n * 2 + 1]), 0600 };
	ck_assert_msg(payload_write(dir, &p, gid, &err) == 0, "%s", err.text);
}

static void assert_text(const char *path, const char *want)
{
	_cleanup_free_ char *got = text_of(path);

	ck_assert_msg(str_eq(got, want), "%s: \"%s\", want \"%s\"", path, got, want);
}

static char *data_link(void)
{
	_cleanup_free_ char *link = at("..data");
	char to[256] = "";

	ck_assert_int_gt(readlink(link, to, sizeof(to) - 1), 0);
	return xstrdup(to);
}

START_TEST(payload_versions)
{
	write_payload((const char *const[]){ "a", "1", "sub/b", "2", NULL }, -1);
	assert_text("a", "1");
	assert_text("sub/b", "2");
	_cleanup_free_ char *first = data_link();
	/* The same again changes nothing. */
	write_payload((const char *const[]){ "a", "1", "sub/b", "2", NULL }, -1);
	_cleanup_free_ char *again = data_link();
	ck_assert_str_eq(first, again);
	/* Another content: another directory, the old one is gone, and so is the file that went. */
	write_payload((const char *const[]){ "a", "3", NULL }, -1);
	_cleanup_free_ char *second = data_link();
	ck_assert_str_ne(first, second);
	assert_text("a", "3");
	assert_text("sub/b", "(none)");
	_cleanup_free_ char *old = at(first);
	ck_assert_int_lt(access(old, F_OK), 0);
	_cleanup_free_ char *sub = at("sub");
	struct stat st;
	ck_assert_int_lt(lstat(sub, &st), 0);
}
END_TEST

/* A crash between the steps leaves things that the next write tidies. */
START_TEST(payload_after_a_crash)
{
	_cleanup_free_ char *half = at("..2020_01_01_00_00_00.1"), *tmp = at("..data_tmp");

	ck_assert_int_eq(mkdir(half, 0755), 0);
	ck_assert_int_eq(symlink("..2020_01_01_00_00_00.1", tmp), 0);
	write_payload((const char *const[]){ "a", "1", NULL }, -1);
	assert_text("a", "1");
	ck_assert_int_lt(access(half, F_OK), 0);
}
END_TEST

START_TEST(payload_modes)
{
	_cleanup_free_ char *a = at("a");
	struct stat st;

	umask(077);
	write_payload((const char *const[]){ "a", "1", NULL }, geteuid() == 0 ? 4242 : -1);
	ck_assert_int_eq(stat(a, &st), 0);
	ck_assert_int_eq(st.st_mode & 0777, geteuid() == 0 ? 0640 : 0600);
	if (geteuid() == 0)
		ck_assert_int_eq(st.st_gid, 4242);
	umask(022);
}
END_TEST

static const struct {
	const char *path, *error; /* error NULL: resolved */
} sub_paths[] = {
	{ "new/deep", NULL },
	{ "file", NULL },
	{ "inner-link", NULL },
	{ "outside", "leaves the volume" },
	{ "absolute", "leaves the volume" },
	{ "outside/x", "leaves the volume" },
	{ "../x", "leaves the volume" },
	{ "loop", "symbolic links" },
	{ "proc-link", "leaves the volume" },
	{ "outside/made/by/us", "leaves the volume" },
};

START_TEST(sub_path_case)
{
	_cleanup_free_ char *volume = at("volumes/v"), *target = at("volume-subpaths/v/c/0"), *outer = at("volumes/outer");
	struct error err = ERROR_INIT;

	if (geteuid() != 0)
		return;
	ck_assert_int_eq(dir_make(volume, 0755, NULL), 0);
	ck_assert_int_eq(dir_make(outer, 0755, NULL), 0);
	ck_assert_int_eq(chdir(volume), 0);
	ck_assert_int_eq(mkdir("real", 0755), 0);
	ck_assert_int_eq(symlink("real", "inner-link"), 0);
	ck_assert_int_eq(symlink("../outer", "outside"), 0);
	ck_assert_int_eq(symlink("/etc", "absolute"), 0);
	ck_assert_int_eq(symlink("loop", "loop"), 0);
	ck_assert_int_eq(symlink("/proc/self/root", "proc-link"), 0);
	int fd = open("file", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_int_eq(chdir("/"), 0);
	for (int round = 0; round < 2; round++) { /* a restart of the container makes it again */
		int r = volume_sub_path(volume, sub_paths[_i].path, target, &err);

		ck_assert_msg((r < 0) == (sub_paths[_i].error != NULL), "%s: %d %s", sub_paths[_i].path, r, err.text);
		if (r < 0)
			ck_assert_msg(strstr(err.text, sub_paths[_i].error), "%s: %s", sub_paths[_i].path, err.text);
		else
			ck_assert_int_eq(access(target, F_OK), 0);
	}
	/* Nothing was made outside. */
	ck_assert_int_eq(rmdir(outer), 0);
}
END_TEST

START_TEST(volumes_up_and_down)
{
	_cleanup_free_ char *memory = at("volumes/kubernetes.io~empty-dir/m"), *disk = at("volumes/kubernetes.io~empty-dir/d"),
			    *file = at("volumes/kubernetes.io~empty-dir/d/deep"), *kept = at("status.json");
	struct volume_step m = { .kind = VOLUME_EMPTY_DIR, .path = memory, .on_tmpfs = true, .size_bytes = 65536, .fs_group = -1 },
			   d = { .kind = VOLUME_EMPTY_DIR, .path = disk, .fs_group = 4242 };
	struct stat st;
	struct error err = ERROR_INIT;

	if (geteuid() != 0)
		return;
	ck_assert_msg(volume_set_up(&m, &err) == 0 && volume_set_up(&d, &err) == 0, "%s", err.text);
	ck_assert_int_eq(volume_set_up(&m, &err), 0); /* mounted once only */
	ck_assert_int_eq(stat(disk, &st), 0);
	ck_assert_int_eq(st.st_mode & 07777, 02777);
	ck_assert_int_eq(st.st_gid, 4242);
	ck_assert_int_eq(mkdir(file, 0700), 0);
	ck_assert_int_eq(file_replace(AT_FDCWD, kept, "{}", 2, 0600, NULL), 0);
	ck_assert_msg(volumes_tear_down(dir, false, &err) == 0, "%s", err.text);
	ck_assert_int_lt(access(memory, F_OK), 0);
	ck_assert_int_lt(access(disk, F_OK), 0);
	ck_assert_int_eq(access(kept, F_OK), 0);
	ck_assert_int_eq(volumes_tear_down(dir, false, &err), 0);
	ck_assert_int_eq(mkdir(dir, 0700) == 0 || access(dir, F_OK) == 0, 1);
}
END_TEST

/* Somebody mounted something foreign in there: it is unmounted, what it holds stays. */
START_TEST(foreign_mounts_survive)
{
	_cleanup_free_ char *inside = at("volumes/kubernetes.io~empty-dir/d/bind"), *precious = xasprintf("%s.precious", dir),
			    *file = xasprintf("%s.precious/file", dir);

	if (geteuid() != 0)
		return;
	ck_assert_int_eq(dir_make(inside, 0755, NULL), 0);
	ck_assert_int_eq(dir_make(precious, 0755, NULL), 0);
	ck_assert_int_eq(file_replace(AT_FDCWD, file, "x", 1, 0600, NULL), 0);
	ck_assert_int_eq(mount(precious, inside, NULL, MS_BIND, NULL), 0);
	ck_assert_int_eq(volumes_tear_down(dir, false, NULL), 0);
	ck_assert_int_eq(access(file, F_OK), 0);
	ck_assert_int_eq(dir_remove(AT_FDCWD, precious, NULL), 0);
}
END_TEST

static const struct {
	const char *type, *path, *error;
} host_paths[] = {
	{ "", "/nowhere", NULL },
	{ "Directory", "/etc", NULL },
	{ "Directory", "/etc/passwd", "hostPath type check failed: /etc/passwd is not a directory" },
	{ "File", "/etc/passwd", NULL },
	{ "File", "/nowhere", "hostPath type check failed: /nowhere is not a file" },
	{ "CharDevice", "/dev/null", NULL },
	{ "BlockDevice", "/dev/null", "is not a block device" },
	{ "Socket", "/dev/null", "is not a socket file" },
};

START_TEST(host_path_case)
{
	struct volume_step s = { .kind = VOLUME_HOST_PATH, .path = (char *)host_paths[_i].path,
		.host_type = (char *)host_paths[_i].type };
	struct error err = ERROR_INIT;
	int r = volume_set_up(&s, &err);

	ck_assert_msg((r < 0) == (host_paths[_i].error != NULL), "%s %s: %s", s.host_type, s.path, err.text);
	if (r < 0)
		ck_assert_msg(strstr(err.text, host_paths[_i].error), "%s", err.text);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("volume");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, payload_versions);
	tcase_add_test(t, payload_after_a_crash);
	tcase_add_test(t, payload_modes);
	tcase_add_loop_test(t, sub_path_case, 0, ARRAY_LEN(sub_paths));
	tcase_add_test(t, volumes_up_and_down);
	tcase_add_test(t, foreign_mounts_survive);
	tcase_add_loop_test(t, host_path_case, 0, ARRAY_LEN(host_paths));
	return run_case(t);
}

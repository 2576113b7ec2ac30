/*
 * fixture.h - purpose: pods for the engine's tests: a directory of their own, a root file system out of busybox-static.
 *
 * Needs root, cgroups and $BUILD/libexec (or build/libexec); engine tests are skipped where one of them is missing.
 */
#pragma once
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/sys/file.h"
#include "runtime-lite/engine/cgroup.h"
#include "runtime-lite/engine/pod.h"
#include "runtime-lite/engine/seccomp.h"

#define DEFAULT_CAPS 0xa80425fbull /* the 14 that Docker and containerd give */

static char fx_root[64];
static char fx_libexec[300];
static char fx_cgroup[64];
static unsigned fx_count;

static UNUSED void fx_sh(const char *fmt, ...)
{
	char cmd[2048];
	va_list args;

	va_start(args, fmt);
	vsnprintf(cmd, sizeof(cmd), fmt, args);
	va_end(args);
	ck_assert_msg(system(cmd) == 0, "%s", cmd);
}

static UNUSED const char *fx_missing(void)
{
	struct error err = ERROR_INIT;
	char self[256];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (geteuid() != 0)
		return "needs root";
	if (access("/bin/busybox", X_OK) < 0)
		return "needs busybox-static";
	if (cgroup_detect(&err) < 0)
		return "needs cgroups";
	self[MAX(n, 0)] = '\0';
	char *p = strstr(self, "/tests/unit/");
	if (p)
		*p = '\0';
	snprintf(fx_libexec, sizeof(fx_libexec), "%s/libexec/runtime-lite", self);
	return access(fx_libexec, X_OK) < 0 ? "needs the monitor (make)" : NULL;
}

/* A tmpfs, as /run is one; the overlay's upper directories are fine there as well. */
static UNUSED void fx_setup(void)
{
	snprintf(fx_root, sizeof(fx_root), "/tmp/engine-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(fx_root));
	ck_assert_int_eq(mount("tmpfs", fx_root, "tmpfs", 0, "mode=700"), 0);
	ck_assert_int_eq(mount(NULL, fx_root, NULL, MS_PRIVATE, NULL), 0);
	snprintf(fx_cgroup, sizeof(fx_cgroup), "/%s", strrchr(fx_root, '/') + 1);
	fx_sh("mkdir -p %s/sandboxes %s/logs %s/c %s/layer/bin %s/layer/etc %s/layer/tmp && cp /bin/busybox %s/layer/bin/ && chmod 1777 %s/layer/tmp && "
	      "chroot %s/layer /bin/busybox --install -s /bin && echo root:x:0:0::/root:/bin/sh >%s/layer/etc/passwd",
		fx_root, fx_root, fx_root, fx_root, fx_root, fx_root, fx_root, fx_root, fx_root, fx_root);
}

static UNUSED void fx_teardown(void)
{
	struct error err = ERROR_INIT;

	ck_assert_msg(cgroup_remove(fx_cgroup, &err) == 0, "%s", err.text);
	ck_assert_msg(umount2(fx_root, 0) == 0, "umount %s: %s", fx_root, strerror(errno));
	rmdir(fx_root);
	seccomp_cache_clear();
}

static UNUSED struct sandbox_launch *fx_sandbox(void)
{
	struct sandbox_launch *s = sandbox_launch_new();

	s->id = xasprintf("pod%u", ++fx_count);
	s->dir = xasprintf("%s/sandboxes/%s", fx_root, s->id);
	s->hostname = xstrdup("test-pod");
	s->shm_bytes = 1 << 20;
	s->cgroup = xasprintf("%s/%s", fx_cgroup, s->id);
	s->cgroup_owned = true;
	s->monitors_cgroup = xasprintf("%s/monitors", fx_cgroup);
	mkdir(s->dir, 0700);
	return s;
}

static UNUSED struct pod_monitor *fx_start_pod(struct sandbox_launch *s)
{
	struct pod_monitor *m = NULL;
	struct error err = ERROR_INIT;

	ck_assert_msg(pod_monitor_start(s, fx_libexec, &m, &err) == 0, "%s", err.text);
	return m;
}

/* A container of the pod that runs `sh -c script`. */
static UNUSED struct launch *fx_container(const struct sandbox_launch *s, const char *script)
{
	struct launch *l = launch_new();
	_cleanup_free_ char *disk = NULL;
	struct error err = ERROR_INIT;

	l->id = xasprintf("ctr%u", ++fx_count);
	l->sandbox_id = xstrdup(s->id);
	l->dir = xasprintf("%s/containers/%s", s->dir, l->id);
	disk = xasprintf("%s/c/%s", fx_root, l->id);
	fx_sh("mkdir -p %s/upper %s/work %s/merged", disk, disk, disk);
	if (script) {
		strv_add(&l->args, "sh");
		strv_add(&l->args, "-c");
		strv_add(&l->args, script);
	}
	strv_add(&l->env, "PATH=/bin");
	strv_add(&l->env, "KEY=value");
	launch_add_group(l, 0);
	l->caps = (struct launch_caps){ .bounding = DEFAULT_CAPS, .effective = DEFAULT_CAPS, .permitted = DEFAULT_CAPS };
	ck_assert_int_eq(seccomp_default_filter(DEFAULT_CAPS, &l->seccomp, &l->n_seccomp, &err), 0);
	_cleanup_free_ char *layer = xasprintf("%s/layer", fx_root);
	strv_add(&l->rootfs.lower, layer);
	l->rootfs.upper = xasprintf("%s/upper", disk);
	l->rootfs.work = xasprintf("%s/work", disk);
	l->rootfs.merged = xasprintf("%s/merged", disk);
	_cleanup_free_ char *shm = xasprintf("%s/shm", s->dir);
	launch_add_mount(l, shm, "/dev/shm");
	l->log_path = xasprintf("%s/logs/%s/0.log", fx_root, l->id);
	l->cgroup = xasprintf("%s/%s", s->cgroup, l->id);
	return l;
}

static UNUSED void fx_start(struct pod_monitor *m, struct launch *l)
{
	struct error err = ERROR_INIT;
	pid_t pid;
	uint64_t started;

	ck_assert_msg(pod_container_start(m, l, 0, &pid, &started, &err) == 0, "%s", err.text);
	ck_assert_int_gt(pid, 1);
}

static UNUSED struct exit_record fx_wait(const struct launch *l)
{
	struct exit_record e;

	for (int i = 0; i < 3000; i++) {
		if (pod_container_exit(l->dir, &e, NULL) == 0)
			return e;
		usleep(10000);
	}
	ck_abort_msg("container %s did not end", l->id);
}

/* The text of the log without time, tags and stream; the caller frees. */
static UNUSED char *fx_log(const struct launch *l)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_(str_done) struct str out = STR_INIT;

	ck_assert_int_eq(file_read(AT_FDCWD, l->log_path, 64 << 20, &text, NULL, NULL), 0);
	for (char *line = text; *line;) {
		char *end = strchr(line, '\n');
		char *p = line;

		ck_assert_ptr_nonnull(end);
		*end = '\0';
		for (int i = 0; i < 3; i++) {
			p = strchr(p, ' ');
			ck_assert_ptr_nonnull(p);
			p++;
		}
		str_add(&out, p);
		if (p[-2] == 'F')
			str_add_char(&out, '\n');
		line = end + 1;
	}
	return str_take(&out);
}

/* Runs the container to its end; its output. */
static UNUSED char *fx_run(struct pod_monitor *m, struct launch *l, int status)
{
	fx_start(m, l);
	struct exit_record e = fx_wait(l);
	char *log = fx_log(l);

	ck_assert_msg(e.status == status, "status %d, log: %s", e.status, log);
	return log;
}

static UNUSED void fx_stop(struct pod_monitor *m, struct sandbox_launch *s)
{
	struct error err = ERROR_INIT;

	ck_assert_msg(pod_monitor_stop(m, &err) == 0, "%s", err.text);
	pod_monitor_free(m);
	ck_assert(!cgroup_exists(s->cgroup));
	sandbox_launch_free(s);
}

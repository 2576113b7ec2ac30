/*
 * mounts.h - purpose: the container's file system tree, put together by descriptors before pivot_root.
 *
 * Called in this order by child.c, in a new mount namespace that is still a copy of the node's.
 */
#pragma once
#include "runtime-lite/spec/launch.h"

struct mounts {
	const struct launch *l;
	int root;	/* O_PATH of the new root, once mounted */
	int dev;	/* the container's /dev when it is a tmpfs of ours, else -1 */
	int pts;	/* its /dev/pts */
	int proc_host;	/* the node's /proc, trusted */
	int *sources;	/* detached clone of each bind source */
	int *cgroups;	/* detached clone of each cgroup directory */
	int unified;
	int empty;	/* the tmpfs that covers masked directories, attached; -1: not yet */
};

/* Clones the sources while the node's mounts still have their propagation; errors name the mount. */
int mounts_collect(struct mounts *m, const struct launch *l, struct error *err);
/* Cuts the namespace off from the node's and mounts the layers. */
int mounts_rootfs(struct mounts *m, struct error *err);
/* /proc, /sys, cgroups, /dev, then the launch's own in order of depth. */
int mounts_attach(struct mounts *m, struct error *err);
int mounts_mask(struct mounts *m, struct error *err);
/* Read-only root if wanted; then it becomes "/". */
int mounts_pivot(struct mounts *m, struct error *err);

/* devices.c */
int devices_make(struct mounts *m, struct error *err);
/* A new terminal pair on the container's devpts: *ret_master, *ret_slave; the slave appears as /dev/console. */
int devices_console(struct mounts *m, int *ret_master, int *ret_slave, struct error *err);
/* The same in a container that runs already, for an exec; called inside of it. */
int devices_exec_terminal(const struct launch *l, int *ret_master, int *ret_slave, struct error *err);

/* Used by both. A new file system instance as a detached mount; `options` is "a=b,c". -errno. */
int mount_new(const char *type, const char *source, const char *options, uint64_t attrs);
/* A detached copy of what is at path (or of fd when path is ""). -errno. */
int mount_clone(int fd, const char *path, bool recursive);
int mount_attach(int mount_fd, int target_fd);

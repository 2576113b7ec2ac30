/*
 * volume.h - purpose: make a pod's volumes on the node, refresh them, and take them down.
 *
 * Layout as the kubelet's: <root>/pods/<uid>/volumes/kubernetes.io~<type>/<name>. Everything here blocks and works on
 * plain data, for jobs. Directories that pods can write to are never followed by name: paths inside a volume are
 * resolved by openat2() below it.
 */
#pragma once
#include "kubelet-lite/core/payload.h"

/* One volume as plain data: a job's part. */
struct volume_step {
	enum volume_kind kind;
	char *name;
	char *path; /* host directory; hostPath: the path itself */
	bool on_tmpfs;
	int64_t size_bytes; /* tmpfs; 0: the kernel's default */
	char *host_type;
	struct payload payload;
	int64_t fs_group; /* -1: none */
};
void volume_step_done(struct volume_step *step);

/* Host directory of a volume; owned by the caller. */
char *volume_path(const char *root_dir, const struct pod *pod, const struct volume *volume) MUST_USE;

/* Makes it; for one that is there already, brings a payload up to date. */
int volume_set_up(const struct volume_step *step, struct error *err) MUST_USE;
/* Unmounts everything below the pod's directory and removes its volumes; with `everything` the directory too. Never
 * removes through a mount. */
int volumes_tear_down(const char *pod_dir, bool everything, struct error *err) MUST_USE;

/* A part of a volume, for subPath: resolved below volume_dir without leaving it, made as a directory if missing, and
 * bind-mounted on `target`, which is made as well. */
int volume_sub_path(const char *volume_dir, const char *sub_path, const char *target, struct error *err) MUST_USE;

/*
 * payload_write.h - purpose: replace the files of a payload volume all at once, as the kubelet's atomic writer does.
 *
 *	..2026_01_01_00_00_00.123456/   the files
 *	..data -> ..2026_01_01_...      renamed over the old link: the one atomic step
 *	name -> ..data/name             one link for each first path component
 */
#pragma once
#include "kubelet-lite/core/payload.h"

/* Does nothing when the files have this content already. gid -1: keep; else files get it and read for the group. */
int payload_write(const char *dir, const struct payload *payload, int64_t gid, struct error *err) MUST_USE;

/*
 * volumes.h - purpose: the directories that an image declares as volumes, where the root file system cannot be written.
 *
 * A container with a writable root needs none: what it writes there goes to its writable layer and is gone with it, just
 * as a volume nobody named. With a read-only root each declared volume that the client does not mount itself becomes a
 * directory of the container's own, filled with what the image has there.
 */
#pragma once
#include "runtime-lite/model/container.h"

/* Makes <layer dir>/volumes/<n> for each and notes their places in c->volumes. */
int volumes_make(struct container *c, const struct strv *declared, struct error *err) MUST_USE;

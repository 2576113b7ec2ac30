/* load.h - purpose: the images of an OCI layout or a docker-archive into the store. */
#pragma once
#include "runtime-lite/pull/pull.h"

/* From INPUT_FD. */
int load_images(struct pull *p, int opaque_fd, struct error *err) MUST_USE;

/* fetch.h - purpose: one image from its registry into the store. */
#pragma once
#include "runtime-lite/pull/pull.h"

int fetch_image(struct pull *p, int opaque_fd, struct error *err) MUST_USE;

/*
 * image.h - purpose: pulls under way, which end when their clients go away.
 */
#pragma once
#include "runtime-lite/cri/service.h"

struct pulls *pulls_new(struct service *svc);
void pulls_close(struct pulls *pulls);
void pulls_free(struct pulls *pulls);

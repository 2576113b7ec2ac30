/* record.h - purpose: struct image to and from its JSON in images.json. Pure. */
#pragma once
#include "runtime-lite/image/store.h"

enum { IMAGES_VERSION = 1, IMAGES_FILE_MAX = 16 * 1024 * 1024 };

struct image *image_new(void);
/* The whole file. Owned by the caller. */
char *images_write(struct image *const *images, size_t n) MUST_USE;
/* UNIMPLEMENTED for a version that we do not know, DATA_LOSS for what we cannot have written. */
int images_read(const char *text, size_t len, struct image ***ret, size_t *ret_n, struct error *err) MUST_USE;
/* Is `text` the id of the image, with or without "sha256:", or its beginning (at least 4 digits)? */
bool image_id_matches(const struct image *image, const char *text);
